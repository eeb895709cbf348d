"""MP4, MOV and other ISO media: the index, the first second, key frames.

Needed: the headers of the file's boxes; ``ftyp``, ``moov``, ``meta``,
``sidx`` and ``mfra`` as wholes; the first samples of each track. Optional:
the samples of video tracks that ``stss`` calls sync samples, and ``moof``
boxes after the first. Nothing is decoded.

Key frames are a tenth or more of a film's bytes, so a plan takes every
second, third ... of them. A fragmented film without ``mfra`` is looked
through by players; only its first boxes are needed.
"""

from __future__ import annotations

from typing import Iterator

from swift_dss.client.formats.contract import Format, Hot, Reader, Wish
from swift_dss.client.formats.media.boxes import Box, Moov, top_level
from swift_dss.client.formats.media.samples import sync_samples, tables_of

_FIRST = frozenset((b'ftyp', b'moov', b'styp', b'wide', b'pnot'))
_WHOLE = frozenset((b'ftyp', b'moov', b'meta', b'sidx', b'ssix', b'mfra',
                    b'styp', b'pnot'))
#: FFmpeg reads so much wherever it looks at a few bytes.
_BUFFER_BYTES = 64 << 10
#: Players decode some frames of each track before they show the first.
_START_BYTES = 256 << 10
#: Boxes whose headers are needed.
_FIRST_BOXES = 32


def _fits(reader: Reader) -> bool:
    return reader.read(4, 4) in _FIRST


def _hot(reader: Reader, _: Wish) -> Iterator[Hot]:
    fragments = 0
    for number, box in enumerate(top_level(reader)):
        is_whole = box.kind in _WHOLE
        if box.kind == b'moof':
            fragments += 1
            yield Hot(box.offset, box.length, fragments == 1)
        if is_whole or number < _FIRST_BOXES:
            yield Hot(box.offset, max(box.length if is_whole else 0,
                                      _BUFFER_BYTES))
        if box.kind == b'moov':
            yield from _tracks(reader, Moov(reader, box))


def _tracks(reader: Reader, moov: Moov) -> Iterator[Hot]:
    for track in moov.all(moov.box, b'trak'):
        media = moov.one(track, b'mdia')
        tables = tables_of(moov, moov.one(media, b'minf', b'stbl'))
        if tables is None:
            continue
        reader.check(tables.chunks[0], 0, tables.box.name)
        yield Hot(tables.chunks[0], _START_BYTES)
        if _is_video(moov, media):
            for offset, length in sync_samples(tables):
                reader.check(offset, length, 'MP4 box stss')
                yield Hot(offset, length, False)


def _is_video(moov: Moov, media: Box) -> bool:
    handlers = moov.all(media, b'hdlr')
    return bool(handlers) and \
        moov.taken(handlers[0], 8, 4) == b'vide'


FORMAT = Format('mp4', _fits, _hot)
