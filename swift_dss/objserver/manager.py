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
from swift_dss.io.place.copies import Copies
from swift_dss.objserver.extents import AUDIT, CLIENT
from swift_dss.objserver.settings import Node, node_for
from swift_dss.objserver.travel import adopting, parting, sending
from swift_dss.objserver.travel.leaving import TellsWhatLeaves
from swift_dss.wire import layout


class DssManagerBase(TellsWhatLeaves):
    """Goes between Swift's manager and its base class."""

    def __init__(self, conf: Any, logger: Any) -> None:
        super().__init__(conf, logger)
        self.dss_node: Node = node_for(conf, logger)
        self.dss_copies = Copies(conf.get('swift_dir', '/etc/swift'),
                                 conf.get('bind_ip', ''))
        self.dss_sessions = sending.Sessions()
        self.dss_adoptions = adopting.Adoptions()
        self.dss_partings = parting.Partings()
        few = str(conf.get('max_objects_per_revert', '')).strip()
        self.dss_one_at_a_time = few == '1'
        #: A session that removes fragments has room for a line of ours beside
        #: each.
        self.dss_has_room = few not in ('1', '2')

    def parse_on_disk_filename(self, filename: Any, policy: Any) -> Any:
        """As Swift's; the time of a Content-Type has no offset.

        A merged file has an offset in its name (``wire.registers``). If both
        times are equal, Swift would take the offset for the type's as well,
        and would offer that type for ever to a peer that knows it without.
        """
        parsed = super().parse_on_disk_filename(filename, policy)
        ctype = parsed['ctype_timestamp']
        if ctype is not None and ctype.offset:
            parsed['ctype_timestamp'] = Timestamp(ctype.normal)
        return parsed

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
        is_coded = policy.policy_type == EC_POLICY
        if is_coded and kwargs.get('frag_prefs', ()) is None:
            # The peer has fragments of its own of the objects offered here.
            offers = sending.hinted(offers, functools.partial(
                self._dss_hint_of, device, partition, policy,
                kwargs.get('frag_index')))
        elif self.dss_partings.is_leaving(session[:3]) and (
                # A job without an index has tombstones alone.
                not is_coded or session[3] is not None and self.dss_has_room):
            offers = sending.hinted(offers, functools.partial(
                self._dss_leaving, device, partition, policy,
                kwargs.get('frag_index')))
        return itertools.chain(sending.ANNOUNCED, offers)

    def _dss_hint_of(self, device: Any, partition: Any, policy: Any,
                     frag_index: Any, object_hash: str,
                     timestamp: Any) -> str:
        """Of a fragment with bytes that S3 alone has; '' of any other."""
        try:
            return sending.hint_of(residency_store.load(self._dss_path(
                device, partition, policy, frag_index, object_hash,
                timestamp)))
        except (OSError, DamagedRecord):
            return ''

    def _dss_leaving(self, device: Any, partition: Any, policy: Any,
                     frag_index: Any, object_hash: str,
                     timestamp: Any) -> str:
        """Of a version of which bytes are here; '' of any other."""
        try:
            has_bytes = parting.has_bytes(residency_store.load(
                self._dss_path(device, partition, policy, frag_index,
                               object_hash, timestamp)))
        except FileNotFoundError:
            return ''
        except (OSError, DamagedRecord):
            has_bytes = True
        return sending.LEAVING if has_bytes else ''

    def _dss_path(self, device: Any, partition: Any, policy: Any,
                  frag_index: Any, object_hash: str, timestamp: Any) -> str:
        """Of a durable data file."""
        return os.path.join(
            layout.hash_dir(self.dss_node.device_path(device), int(policy),
                            str(partition), object_hash),
            self.make_on_disk_filename(timestamp, '.data',
                                       frag_index=frag_index, durable=True))

    @contextlib.contextmanager
    def partition_lock(self, device: Any, policy: Any, partition: Any,
                       *args: Any, **kwargs: Any) -> Iterator[Any]:
        """As Swift's: a job holds it that may remove the partition."""
        with super().partition_lock(
                device, policy, partition, *args, **kwargs) as locked, \
                self.dss_partings.job((device, str(partition), int(policy))):
            yield locked

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
        disk_file = self.dss_diskfile_from_hash(
            device, partition, object_hash, policy, **kwargs)
        disk_file.dss_session = sending.session_of(device, partition, policy,
                                                   kwargs)
        return disk_file

    def _dss_announced(self, session: sending.Session, policy: Any,
                       hint: Any, is_sender: bool) -> Any:
        """Handle a sender's line about itself or a stub, which a stock server
        takes for an object.
        """
        if is_sender:
            if hint is not None and hint.kind == sending.LEAVING:
                return self.dss_partings.notice(self, session, hint)
            if hint is None or hint.kind == sending.STUB:
                self.dss_sessions.wants_whole(session)
            # An earlier release of ours wants a hint that it does not know.
            raise DiskFileNotExist()
        known = sending.ANNOUNCED[0][1]['ts_data']
        if hint is not None and hint.kind == sending.LEAVING:
            return sending.Known(known, Timestamp(0) if parting.wants(
                self, session, policy, hint) else known)
        if not self.dss_node.conf.gateway.enabled:
            # This node could not prove a stub: ask for the bytes.
            raise DiskFileNotExist()
        if hint is None:
            self.dss_adoptions.begin(session[:3])
        elif session[3] is not None:
            self._dss_hinted(session, policy, hint)
        # A receiver does not ask for an object that it has.
        return sending.Known(known)

    def _dss_hinted(self, session: sending.Session, policy: Any,
                    hint: sending.Hint) -> None:
        """The sender has a stub of an object: this node's fragment of it may
        be in S3, too.
        """
        mine, place = self.dss_adoptions, session[:3]
        assert session[3] is not None
        if not mine.may_ask(place) or not mine.heard(
                place, hint.object_hash, adopting.adopt(
                    self, adopting.Wanted(
                        place[0], place[1], policy, hint.object_hash,
                        hint.timestamp, session[3],
                        hint.kind == sending.PACKED
                        and not mine.has_waited(place, hint.object_hash)))):
            mine.put_off(place, hint.object_hash)

    def get_diskfile(self, *args: Any, **kwargs: Any) -> Any:
        disk_file = super().get_diskfile(*args, **kwargs)
        disk_file.dss_purpose = CLIENT
        return disk_file

    def get_diskfile_from_audit_location(self, audit_location: Any) -> Any:
        disk_file = super().get_diskfile_from_audit_location(audit_location)
        disk_file.dss_purpose = AUDIT
        return disk_file
