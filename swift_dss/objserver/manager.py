"""The additions of our diskfile managers to Swift's.

Swift's daemons ask a manager for diskfiles. Ours tells each diskfile why it is
read, and talks to our manager at the other end of ssync by lines of
``objserver.sending`` among the offered hashes.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import os
from typing import Any, Iterator

from swift.common.exceptions import DiskFileNotExist
from swift.common.storage_policy import EC_POLICY
from swift.common.utils import Timestamp

from swift_dss.core.errors import DamagedRecord
from swift_dss.io import residency_store
from swift_dss.objserver.extents import AUDIT, CLIENT
from swift_dss.objserver.settings import Node, node_for
from swift_dss.objserver.travel import adopting, sending
from swift_dss.objserver.travel.leaving import TellsWhatLeaves
from swift_dss.wire import layout


class DssManagerBase(TellsWhatLeaves):
    """Goes between Swift's manager and its base class."""

    def __init__(self, conf: Any, logger: Any) -> None:
        super().__init__(conf, logger)
        self.dss_node: Node = node_for(conf, logger)
        self.dss_sessions = sending.Sessions()
        self.dss_adoptions = adopting.Adoptions()
        self.dss_one_at_a_time = str(
            conf.get('max_objects_per_revert', '')).strip() == '1'

    def parse_on_disk_filename(self, filename: Any, policy: Any) -> Any:
        """As Swift's; the time of a Content-Type has no offset.

        A merged file has an offset in its name (``wire.registers``). If both
        times are equal, Swift would take the offset for the type's as well,
        and would offer that type for ever to a peer that knows it without.
        """
        found = super().parse_on_disk_filename(filename, policy)
        ctype = found['ctype_timestamp']
        if ctype is not None and ctype.offset:
            found['ctype_timestamp'] = Timestamp(ctype.normal)
        return found

    def yield_hashes(self, device: Any, partition: Any, policy: Any,
                     suffixes: Any = None, **kwargs: Any) -> Any:
        session = (device, str(partition), int(policy),
                   kwargs.get('frag_index'))
        self.dss_sessions.begin(session)
        if self.dss_one_at_a_time:
            # Nothing but the announcement would ever be offered.
            self.dss_sessions.wants_whole(session)
            return super().yield_hashes(device, partition, policy, suffixes,
                                        **kwargs)
        offers = super().yield_hashes(device, partition, policy, suffixes,
                                      **kwargs)
        if policy.policy_type == EC_POLICY and \
                kwargs.get('frag_prefs', ()) is None:
            # The peer has fragments of its own of the objects offered here.
            offers = sending.hinted(offers, functools.partial(
                self._dss_is_away, device, partition, policy,
                kwargs.get('frag_index')))
        return itertools.chain(sending.ANNOUNCED, offers)

    def _dss_is_away(self, device: Any, partition: Any, policy: Any,
                     frag_index: Any, object_hash: str,
                     timestamp: Any) -> bool:
        """True of a fragment with bytes that S3 alone has."""
        path = os.path.join(
            layout.hash_dir(self.dss_node.device_path(device), int(policy),
                            str(partition), object_hash),
            self.make_on_disk_filename(timestamp, '.data', frag_index,
                                       durable=True))
        try:
            found = residency_store.load(path)
        except (OSError, DamagedRecord):
            return False
        return found is not None and not found.is_local

    @contextlib.contextmanager
    def replication_lock(self, device: Any, policy: Any,
                         partition: Any) -> Iterator[Any]:
        """As Swift's: a receiver of ssync holds it for one session."""
        with super().replication_lock(device, policy, partition) as locked:
            try:
                yield locked
            finally:
                # Or the next session would be told what this one was.
                self.dss_adoptions.end((device, str(partition), int(policy)))

    def dss_diskfile_from_hash(self, *args: Any, **kwargs: Any) -> Any:
        """As Swift's ``get_diskfile_from_hash``, and for no session."""
        return super().get_diskfile_from_hash(*args, **kwargs)

    def get_diskfile_from_hash(self, device: Any, partition: Any,
                               object_hash: Any, policy: Any,
                               **kwargs: Any) -> Any:
        session = (device, str(partition), int(policy),
                   kwargs.get('frag_index'))
        hint = sending.read_hint(object_hash)
        if object_hash == sending.ANNOUNCEMENT or hint is not None:
            return self._dss_announced(session, policy, hint,
                                       'frag_prefs' in kwargs)
        if 'frag_prefs' not in kwargs and self.dss_adoptions.was_put_off(
                session[:3], object_hash):
            return sending.Known(Timestamp.now())
        found = self.dss_diskfile_from_hash(
            device, partition, object_hash, policy, **kwargs)
        found.dss_session = sending.session_of(device, partition, policy,
                                               kwargs)
        return found

    def _dss_announced(self, session: sending.Session, policy: Any,
                       hint: Any, is_sender: bool) -> Any:
        """Handle a sender's line about itself or a stub, which a stock server
        takes for an object.
        """
        if is_sender:
            self.dss_sessions.wants_whole(session)
            raise DiskFileNotExist()
        if not self.dss_node.conf.gateway.enabled:
            # This node could not prove a stub: ask for the bytes.
            raise DiskFileNotExist()
        if hint is None:
            self.dss_adoptions.begin(session[:3])
        elif session[3] is not None:
            mine = self.dss_adoptions
            if not mine.may_ask(session[:3]) or not mine.heard(
                    session[:3], adopting.adopt(self, adopting.Wanted(
                        session[0], session[1], policy, hint[0], hint[1],
                        session[3]))):
                mine.put_off(session[:3], hint[0])
        # A receiver does not ask for an object that it has.
        return sending.Known(sending.ANNOUNCED[0][1]['ts_data'])

    def get_diskfile(self, *args: Any, **kwargs: Any) -> Any:
        found = super().get_diskfile(*args, **kwargs)
        found.dss_purpose = CLIENT
        return found

    def get_diskfile_from_audit_location(self, audit_location: Any) -> Any:
        found = super().get_diskfile_from_audit_location(audit_location)
        found.dss_purpose = AUDIT
        return found
