"""Tell the tier daemon of data files that Swift removes from a device.

A whole partition that the replicator removes passes no diskfile; the daemon
finds it (``tier.departures``).
"""

from __future__ import annotations

import os
import time
from typing import Any, Iterable

from swift.obj.diskfile import BaseDiskFileManager, quarantine_dir_renamer

from swift_dss.objserver.settings import Node
from swift_dss.wire import layout
from swift_dss.wire.control import Event, EventKind


class TellsWhatLeaves(BaseDiskFileManager):
    """A manager that reports removed and quarantined files."""

    #: Set by the class that mixes this in.
    dss_node: Node

    def cleanup_ondisk_files(self, hsh_path: str, **kwargs: Any) -> Any:
        """As Swift's; also reports removed data files. A writer's clean-up is
        not reported, because the writer reports the version that replaced
        them.
        """
        listing = super().cleanup_ondisk_files(hsh_path, **kwargs)
        # Writers say nothing of the policy.
        if 'policy' in kwargs:
            self.dss_note_gone(hsh_path, [
                info['filename'] for info in listing.get('obsolete', ())])
        return listing

    def quarantine_renamer(self, device_path: str,
                           corrupted_file_path: str) -> Any:
        """As Swift's, through the one below."""
        return self.quarantine_dir_renamer(
            device_path, os.path.dirname(corrupted_file_path))

    def quarantine_dir_renamer(self, device_path: str,
                               from_dir: str) -> Any:
        """As Swift's; tells of the data files that it put aside."""
        files = {folder: names for folder, _, names in os.walk(from_dir)}
        to_dir = quarantine_dir_renamer(device_path, from_dir)
        for folder, names in files.items():
            self.dss_note_gone(folder, names)
        return to_dir

    def dss_note_gone(self, folder: str, names: Iterable[str]) -> None:
        """Tell the daemon of data files that left the device.

        :param folder: of one object
        :param names: of files in it; those of other kinds do not matter
        """
        parts = folder.split(os.sep)
        device, partition = parts[-5:-4], parts[-3:-2]
        for name in names:
            version = layout.version_of_path(
                ''.join(device), os.path.join(folder, name))
            if version is not None:
                self.dss_node.events.send(Event(
                    EventKind.GONE, version, partition[0], at=time.time()))
