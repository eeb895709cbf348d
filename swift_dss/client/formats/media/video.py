"""Matroska, WebM, AVI, MPEG-TS, MPEG-PS, FLV, ASF, Ogg: by FFmpeg.

Needed: the blocks that PyAV reads to open the file, to decode the first frame
of its first video track, and to jump to its end, for which most formats have
an index. Optional: the key frames that the index names; where the format has
none (MPEG-TS), those of the first 64 MiB.

FFmpeg is C and not made for hostile files alone: classify those of strangers
in a process of its own.
"""

from __future__ import annotations

from typing import Any, Iterator, List, Optional

from swift_dss.client.formats.contract import (
    BadFile, Format, Hot, Reader, Wish, library, reason_of)
from swift_dss.client.formats.plan import Range
from swift_dss.client.formats.readers import AsFile

#: EBML, FLV, ASF, MPEG-PS, Ogg.
_MAGIC = (b'\x1a\x45\xdf\xa3', b'FLV\1', b'\x30\x26\xb2\x75', b'\0\0\1\xba',
          b'OggS')
_PACKET_BYTES = 188
#: FFmpeg reads so much wherever it looks at a few bytes.
_BUFFER_BYTES = 32 << 10
_LOOK_BYTES = 64 << 20
_MAX_FRAMES = 1 << 18


def _fits(reader: Reader) -> bool:
    raw = reader.read(0, 4 * _PACKET_BYTES)
    return raw.startswith(_MAGIC) \
        or (raw[:4] == b'RIFF' and raw[8:12] == b'AVI ') \
        or (len(raw) == 4 * _PACKET_BYTES
            and raw[::_PACKET_BYTES] == b'GGGG')


def _hot(reader: Reader, _: Wish) -> Iterator[Hot]:
    av = library('av', 'Video')
    source = AsFile(reader)
    try:
        with av.open(source) as opened:
            frames = _indexed(opened)
        if frames is None:
            with av.open(AsFile(reader)) as opened:
                frames = _looked_for(opened)
    except (av.FFmpegError, OSError, ValueError, LookupError) as err:
        raise BadFile('video', reason_of(err), source.tell()) from err
    for offset, length in source.ranges[:_MAX_FRAMES]:
        yield Hot(offset, max(length, _BUFFER_BYTES))
    for offset, length in frames:
        yield Hot(offset, length, False)


def _indexed(opened: Any) -> Optional[List[Range]]:
    """Decode the first frame, and jump to the end; the key frames of the
    index, or None if the format has none."""
    if not opened.streams.video:
        raise ValueError('has no video track')
    stream = opened.streams.video[0]
    next(opened.decode(stream), None)
    if opened.duration:
        opened.seek(opened.duration)
    if opened.format.name.startswith('mpeg'):
        return None
    return [(entry.pos, max(entry.size, _BUFFER_BYTES))
            for entry in stream.index_entries if entry.is_keyframe][
                :_MAX_FRAMES]


def _looked_for(opened: Any) -> List[Range]:
    """The key frames of the file's first part."""
    frames: List[Range] = []
    for packet in opened.demux(opened.streams.video[0]):
        if packet.pos is None or packet.pos > _LOOK_BYTES \
                or len(frames) >= _MAX_FRAMES:
            break
        if packet.is_keyframe:
            frames.append((packet.pos, packet.size))
    return frames


FORMAT = Format('video', _fits, _hot)
