"""``POST /dss/newest``: the newest states of many objects here, for gateways.

Before a key of S3 goes, every primary of its object is asked whether it has
something newer (``strategy.agreement``). Stock Swift answers that for one
object a request (HEAD); this is the same for up to a thousand. It only lists
folders, and reads an attribute if the question includes records; a quarantine
is listed again only after it changed. Of one object it also proves its bytes,
before another node quarantines its own. Like recon, it is for the cluster's
own network.
"""

from __future__ import annotations

import os
from typing import (
    Any, Dict, Generator, Iterator, List, Optional, Sequence)

from swift.common.constraints import check_drive
from swift.common.exceptions import DiskFileError, ReplicationException
from swift.common.storage_policy import POLICIES
from swift.common.swob import HTTPException, Request, Response
from swift.common.utils import config_true_value

from swift_dss.core.errors import DamagedRecord, DssError
from swift_dss.io import waiting
from swift_dss.io.newest import newest_file, newest_record
from swift_dss.io.quarantine import Quarantine
from swift_dss.objserver.many.asked import question_of
from swift_dss.objserver.settings import count
from swift_dss.wire import layout
from swift_dss.wire import newest as wire

#: Folders that are listed before other requests have their turn.
_AT_ONCE = 32
#: A space goes out each time that so many bytes were read for a proof.
_SIGN_OF_LIFE_BYTES = 4 * 1024 * 1024


class Newest:
    """The WSGI application of one object server.

    :param conf: the server's options
    :param managers: the diskfile manager of a policy
    """

    def __init__(self, conf: Any, logger: Any, managers: Any) -> None:
        self._managers = managers
        self._root = conf.get('devices', '/srv/node')
        self._mount_check = config_true_value(
            conf.get('mount_check', 'true'))
        self._logger = logger
        self._quarantines: Dict[str, Quarantine] = {}

    def __call__(self, env: Any, start_response: Any) -> Any:
        request = Request(env)
        try:
            question = question_of(request, wire.decode_question)
        except HTTPException as refusal:
            return refusal(env, start_response)
        said = self._said(question.asked, question.records)
        return Response(
            app_iter=self._proving(question.asked[0], said)
            if question.prove else [wire.encode_answer(said)],
            request=request, content_type='application/json')(
                env, start_response)

    def _proving(self, asked: wire.Asked,
                 said: List[wire.Said]) -> Iterator[bytes]:
        """The answer, with what a whole read of the version says."""
        if said[0] is not None and said[0][2]:
            is_right = yield from self._read(asked, said[0][0])
            said = [said[0][:4] + (is_right,)]
        yield wire.encode_answer(said)

    def _read(self, asked: wire.Asked,
              timestamp: str) -> Generator[bytes, None, bool]:
        """Read a version as replication does, which checks it."""
        policy = POLICIES.get_by_index(asked.policy)
        open_file = getattr(self._managers[policy], 'dss_diskfile_from_hash',
                            None) if policy is not None else None
        if open_file is None:
            return False  # a policy that is not ours
        unsaid = whole = 0
        try:
            disk_file = open_file(asked.device, asked.partition,
                                  asked.object_hash, policy)
            with disk_file.open():
                if disk_file.data_timestamp.internal != timestamp:
                    return False
                reader = disk_file.dss_build_reader()
            try:
                if reader.dss_bytes.needs_remote(
                        [(0, disk_file.content_length)]):
                    return False
                for chunk in reader:
                    whole += len(chunk)
                    unsaid += len(chunk)
                    if unsaid >= _SIGN_OF_LIFE_BYTES:
                        unsaid = 0
                        yield b' '
            finally:
                reader.close()
        except (DiskFileError, ReplicationException, DssError,
                OSError) as err:
            self._logger.warning('dss: %s of %s is not proven: %s',
                                 asked.object_hash, asked.device, err)
            return False
        # Swift compares the MD5 when it closes.
        return not reader._quarantined_dir and \
            whole == disk_file.content_length

    def _said(self, asked: Sequence[wire.Asked],
              records: bool) -> List[wire.Said]:
        paths: Dict[str, Optional[str]] = {}
        said: List[wire.Said] = []
        for number, question in enumerate(asked):
            if number % _AT_ONCE == _AT_ONCE - 1:
                waiting.sleep(0)
            if question.device not in paths:
                paths[question.device] = self._mounted(question.device)
            said.append(self._look(paths[question.device], question, records))
        return said

    def _look(self, path: Optional[str], asked: wire.Asked,
              records: bool) -> wire.Said:
        if path is None:
            return None
        folder = layout.hash_dir(path, asked.policy, asked.partition,
                                 asked.object_hash)
        try:
            said = newest_record(folder, asked.frag_index) if records \
                else (newest_file(folder)[0], '', False)
            # Look here after the object's folder: a version that is
            # quarantined between the two looks is seen in one of them.
            return said + (self._quarantine(path, asked.device).newest(
                asked.policy, asked.object_hash), False)
        except (DamagedRecord, OSError) as err:
            count(self._logger, 'dss.errors.newest')
            self._logger.warning('dss: %s: %s', folder, err)
            return None

    def _quarantine(self, path: str, device: str) -> Quarantine:
        if device not in self._quarantines:
            self._quarantines[device] = Quarantine(path, device)
        return self._quarantines[device]

    def _mounted(self, device: str) -> Optional[str]:
        try:
            path = check_drive(self._root, device, self._mount_check)
        except ValueError:
            return None
        # A drive that failed under its mount has no folders: it must not
        # be taken for one that has nothing.
        try:
            os.listdir(path)
        except OSError:
            return None
        return str(path)
