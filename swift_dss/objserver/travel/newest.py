"""``POST /dss/newest``: the newest states of many objects here, for gateways.

Before a key of S3 goes, every primary of its object is asked whether it has
something newer (``strategy.agreement``). Stock Swift answers that for one
object a request (HEAD); this is the same for up to a thousand. It only lists
folders, and reads an attribute if the question includes records; a quarantine
is listed again only after it changed. Like recon, it is for the cluster's own
network.
"""

from __future__ import annotations

import os
from typing import Any, Dict, List, Optional

from eventlet import sleep
from swift.common.constraints import check_drive
from swift.common.swob import Request, Response
from swift.common.utils import config_true_value

from swift_dss.core.errors import DamagedRecord
from swift_dss.core.limits import MAX_QUESTION_BYTES
from swift_dss.io.newest import newest_file, newest_record
from swift_dss.io.quarantine import Quarantine
from swift_dss.objserver.settings import count
from swift_dss.wire import layout
from swift_dss.wire import newest as wire

#: Folders that are listed before other requests have their turn.
_AT_ONCE = 32


class Newest:
    """The WSGI application of one object server.

    :param conf: the server's options
    """

    def __init__(self, conf: Any, logger: Any) -> None:
        self._root = conf.get('devices', '/srv/node')
        self._mount_check = config_true_value(
            conf.get('mount_check', 'true'))
        self._logger = logger
        self._quarantines: Dict[str, Quarantine] = {}

    def __call__(self, env: Any, start_response: Any) -> Any:
        request = Request(env)
        if request.method != 'POST':
            return Response(status=405, request=request)(env, start_response)
        if not 0 < (request.content_length or 0) <= MAX_QUESTION_BYTES:
            return Response(status=413, request=request)(env, start_response)
        try:
            asked, records = wire.decode_question(
                env['wsgi.input'].read(request.content_length))
        except DamagedRecord as err:
            return Response(status=400, body=str(err).encode(
                'utf-8', 'replace'), request=request)(env, start_response)
        return Response(
            body=wire.encode_answer(self._said(asked, records)),
            request=request, content_type='application/json')(
                env, start_response)

    def _said(self, asked: List[wire.Asked],
              records: bool) -> List[wire.Said]:
        paths: Dict[str, Optional[str]] = {}
        said: List[wire.Said] = []
        for number, one in enumerate(asked):
            if number % _AT_ONCE == _AT_ONCE - 1:
                sleep(0)
            if one.device not in paths:
                paths[one.device] = self._mounted(one.device)
            said.append(self._look(paths[one.device], one, records))
        return said

    def _look(self, path: Optional[str], one: wire.Asked,
              records: bool) -> wire.Said:
        if path is None:
            return None
        folder = layout.hash_dir(path, one.policy, one.partition,
                                 one.object_hash)
        try:
            said = newest_record(folder, one.frag_index) if records \
                else (newest_file(folder)[0], '', False)
            # Look here after the object's folder: a version that is
            # quarantined between the two looks is seen in one of them.
            return said + (self._quarantine(path, one.device).newest(
                one.policy, one.object_hash),)
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
