"""Diskfiles of erasure-coded objects: ``egg:swift_dss#dss_ec.fs``.

Everything is in the base classes: a fragment archive is a version of its
own, with its fragment index in every name and key, and class maps are
translated to its offsets (``strategy.fragments``).
"""

from __future__ import annotations

from typing import Any

from swift.obj.diskfile import ECDiskFile, ECDiskFileManager

from swift_dss.objserver.diskfile import DssDiskFileBase
from swift_dss.objserver.manager import DssManagerBase
from swift_dss.objserver.reader import DssECDiskFileReader
from swift_dss.objserver.writer import DssECDiskFileWriter


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
