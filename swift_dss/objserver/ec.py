"""Diskfiles of erasure-coded objects: ``egg:swift_dss#dss_ec.fs``.

Everything is in the base classes: a fragment archive is a version of its
own, with its fragment index in every name and key, and class maps are
translated to its offsets (``strategy.fragments``).
"""

from __future__ import annotations

import contextlib
import json
import os
from typing import Any, Dict, List, Optional

from swift.common.utils import safe_json_loads
from swift.obj.diskfile import ECDiskFile, ECDiskFileManager

from swift_dss.objserver.diskfile import DssDiskFileBase
from swift_dss.objserver.manager import DssManagerBase
from swift_dss.objserver.reader import DssECDiskFileReader
from swift_dss.objserver.writer import DssECDiskFileWriter
from swift_dss.wire import layout

_PREFERENCES = 'HTTP_X_BACKEND_FRAGMENT_PREFERENCES'


class DssECDiskFile(ECDiskFile, DssDiskFileBase):
    """A fragment archive."""

    reader_cls = DssECDiskFileReader
    writer_cls = DssECDiskFileWriter

    def purge(self, timestamp: Any, frag_index: Any, *args: Any,
              **kwargs: Any) -> None:
        """As Swift's; tells that the fragment left."""
        super().purge(timestamp, frag_index, *args, **kwargs)
        if frag_index is not None:
            self.manager.dss_note_gone(
                self._datadir, [self.manager.make_on_disk_filename(
                    timestamp, ext='.data', frag_index=frag_index)])


class DssECDiskFileManager(ECDiskFileManager, DssManagerBase):
    """Manager of fragment archives."""

    diskfile_cls = DssECDiskFile


def another_fragment(env: Dict[str, Any],
                     data_file: str) -> Optional[Dict[str, Any]]:
    """The same GET, for another fragment of the version in the folder of a
    data file; None if there is none that the GET takes.

    After a move of its partition a device may have two fragments of one
    object, its own and one that is another's by now. Swift gives the one with
    the higher index; if that cannot be read, the object may need the other.

    :param env: WSGI environment, with Swift's header of preferences; not
        changed
    :param data_file: path of the fragment that cannot be read
    """
    folder, name = os.path.split(data_file)
    wrong = layout.parse_data_file(name)
    if wrong is None or wrong[1] is None:
        return None
    timestamp = wrong[0]
    asked = _preferences(env)
    refused = {wrong[1]}
    for fragment in asked:
        if fragment['timestamp'] == timestamp:
            refused.update(fragment['exclude'])
    there = set()
    with contextlib.suppress(OSError):
        there = {parsed[1] for parsed in map(
            layout.parse_data_file, os.listdir(folder))
            if parsed is not None and parsed[0] == timestamp}
    if there <= refused:
        return None
    return dict(env, **{_PREFERENCES: json.dumps(
        [{'timestamp': timestamp, 'exclude': sorted(refused)}]
        + [fragment for fragment in asked
           if fragment['timestamp'] != timestamp])})


def is_of_another_write(env: Dict[str, Any], timestamp: str) -> bool:
    """True if a rebuild asks for fragments of one write, and would get one
    of another.

    Swift's reconstructor prefers fragments of the timestamp of its own, and
    rebuilds from those of any timestamp that enough servers answer with: the
    new fragment has its own timestamp then, and bytes of another write.

    :param env: of a GET of replication
    :param timestamp: of the data that it would get
    """
    wanted = _preferences(env)
    return bool(wanted) and timestamp not in [
        fragment['timestamp'] for fragment in wanted]


def _preferences(env: Dict[str, Any]) -> List[Dict[str, Any]]:
    """As Swift reads them: what is no JSON says nothing."""
    preferences: List[Dict[str, Any]] = safe_json_loads(
        env.get(_PREFERENCES)) or []
    return preferences
