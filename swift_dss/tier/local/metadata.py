"""Read Swift's own files of a version: metadata and class map.

Reads the extended attributes that Swift's diskfile wrote and merges
``.data`` and ``.meta`` the way its DiskFile does, without opening the
object through it: a stock DiskFile would quarantine a stub.
"""

from __future__ import annotations

import codecs
import functools
import hashlib
import io
import os
import pickle
from typing import (
    Any, Callable, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple,
    Union)

from pyeclib.ec_iface import ECDriver, ECDriverError
from swift.common.request_helpers import is_sys_meta
from swift.common.utils.pickle import unpickle

from swift_dss.core.classes import ClassTable
from swift_dss.core.errors import BadClassInput, DamagedRecord, VersionGone
from swift_dss.core.spans import UNCLASSIFIED_MAP, ClassMap
from swift_dss.strategy.fragments import fragment_map
from swift_dss.io.newest import newest_file
from swift_dss.io.switch import listdir
from swift_dss.wire import classmap, names, registers

#: Where Swift's diskfile keeps metadata; more of it under ``...1`` and on.
_ATTRIBUTE = 'user.swift.metadata'
_CHECKSUM = 'user.swift.metadata_checksum'
_EC_SCHEME = 'X-Object-Sysmeta-Ec-Scheme'
_EC_SEGMENT = 'X-Object-Sysmeta-Ec-Segment-Size'

#: Only the data file may say these (diskfile's own list).
_DATA_ONLY = frozenset((
    'content-length', 'deleted', 'etag', 'x-timestamp',
    'x-static-large-object'))


class VersionMetadata(NamedTuple):
    """Effective metadata of one version, as a DiskFile would return it.

    :param etag: MD5 of the bytes in this very data file
    :param class_map: in the *object's* offsets; see :meth:`file_map`
    """

    headers: Dict[str, str]
    content_length: int
    etag: str
    class_map: ClassMap

    @property
    def name(self) -> str:
        """``/account/container/object``."""
        return self.headers.get('name', '')

    def file_map(self, table: ClassTable) -> ClassMap:
        """The class map in the offsets of the data file.

        A fragment archive is not the object: its bytes of one segment lie
        elsewhere than the object's. Everything that moves bytes needs this
        one.

        :raises DamagedRecord: no fragment archive of any known kind
        """
        segment = self.headers.get(_EC_SEGMENT)
        if segment is None or self.class_map.is_uniform:
            return self.class_map
        scheme = self.headers.get(_EC_SCHEME, '')
        try:
            fragment_bytes = _fragment_bytes(scheme, int(segment))
        except (ValueError, ECDriverError) as err:
            raise DamagedRecord('%s: EC scheme %r, segment %r: %s' % (
                self.name, scheme, segment, err)) from err
        return fragment_map(self.class_map, int(segment), fragment_bytes,
                            table)


@functools.lru_cache(maxsize=32)
def _fragment_bytes(scheme: str, segment_bytes: int) -> int:
    """Size of the fragment of a whole segment, its header included.

    :param scheme: as Swift writes it beside a fragment archive:
        ``liberasurecode_rs_vand 2+1``
    """
    kind, _, counts = scheme.partition(' ')
    data, _, parity = counts.partition('+')
    driver = ECDriver(k=int(data), m=int(parity), ec_type=kind)
    info = driver.get_segment_info(segment_bytes, segment_bytes)
    return int(info['fragment_size'])


def of_version(data_path: str, data_fd: int,
               beside: Optional[Sequence[str]] = None,
               attributes: Optional[Sequence[str]] = None
               ) -> VersionMetadata:
    """Read it from an open data file and the ``.meta`` beside it.

    :param beside: names in its folder, if the caller has just looked
    :param attributes: names of its extended attributes, likewise
    :raises VersionGone: the files are gone
    :raises DamagedRecord: the metadata cannot be read
    """
    merged = data = read(data_fd, attributes)
    for meta_path in _newer_meta_files(
            data_path, data['X-Timestamp'], beside):
        meta = registers.current(read(meta_path), data)
        merged = {key: value for key, value in data.items()
                  if key.lower() in _DATA_ONLY
                  or key in ('name', 'Content-Type')
                  or is_sys_meta('object', key)}
        merged.update((key, value) for key, value in meta.items()
                      if key.lower() not in _DATA_ONLY
                      or key == 'X-Timestamp')
        break
    try:
        length = int(data['Content-Length'])
    except (KeyError, ValueError) as err:
        raise DamagedRecord('%s has no length' % data_path) from err
    return VersionMetadata(merged, length, data.get('ETag', ''),
                           effective_map(merged))


def effective_map(headers: Mapping[str, str]) -> ClassMap:
    """The class map that counts: a POST's before the PUT's before none.

    A map that cannot be read is placement lost, not data: class 0.
    """
    maps = _map_headers(tuple(headers))
    if not maps:
        return UNCLASSIFIED_MAP
    folded = {title: headers[name] for title, name in maps}
    for name in (names.TRANSIENT_MAP, names.SYSMETA_MAP):
        try:
            class_map = classmap.from_headers(name, folded)
        except BadClassInput:
            continue
        if class_map is not None:
            return class_map
    return UNCLASSIFIED_MAP


@functools.lru_cache(maxsize=1024)
def _map_headers(header_names: Tuple[str, ...]
                 ) -> Tuple[Tuple[str, str], ...]:
    """Those that may spell a map, each after its folded form. The same few
    names come with every version."""
    return tuple((name.title(), name) for name in header_names
                 if name.title().startswith((names.TRANSIENT_MAP,
                                             names.SYSMETA_MAP)))


def object_name(hash_dir: str) -> str:
    """``/account/container/object`` by the newest file of a folder; '' if
    it has none that says so."""
    name = newest_file(hash_dir)[1]
    if not name:
        return ''
    try:
        return read(os.path.join(hash_dir, name)).get('name', '')
    except (VersionGone, DamagedRecord):
        return ''


def _newer_meta_files(data_path: str, timestamp: str,
                      beside: Optional[Sequence[str]]) -> List[str]:
    if beside is None:
        beside = listdir(os.path.dirname(data_path))
    names: List[Tuple[str, str]] = []
    for name in beside:
        # <timestamp>[<sign><hex delta to the content type's>].meta
        if name.endswith('.meta'):
            meta_at = name[:-5].split('+')[0].split('-')[0]
            if meta_at > timestamp:
                names.append((meta_at, os.path.join(
                    os.path.dirname(data_path), name)))
    return [path for _, path in sorted(names, reverse=True)]


def read(target: Union[int, str],
         attributes: Optional[Sequence[str]] = None) -> Dict[str, str]:
    """The metadata of one data file or ``.meta`` file.

    :param target: an open file, or its path
    :param attributes: see :func:`of_version`
    :raises VersionGone: the file is gone
    :raises DamagedRecord: the metadata cannot be read
    """
    try:
        metadata_read = _metadata(target, attributes)
    except FileNotFoundError as err:
        raise VersionGone(str(target)) from err
    except (EOFError, ValueError, pickle.UnpicklingError) as err:
        # A file without Swift's attributes, or with torn ones.
        raise DamagedRecord('Swift metadata: %r' % err) from err
    if 'X-Timestamp' not in metadata_read:
        raise DamagedRecord('Swift metadata has no X-Timestamp')
    return metadata_read


def _metadata(target: Union[int, str],
              attributes: Optional[Sequence[str]] = None
              ) -> Dict[str, str]:
    """Read the metadata of Swift's diskfile, at a third of the price of its
    own reader: it is called for every version that is looked at.

    :raises ValueError, EOFError, pickle.UnpicklingError: it is damaged
    """
    there = os.listxattr(target) if attributes is None else attributes
    raw = b''
    if _ATTRIBUTE in there:
        raw = os.getxattr(target, _ATTRIBUTE)
        number = 1
        while _ATTRIBUTE + str(number) in there:
            raw += os.getxattr(target, _ATTRIBUTE + str(number))
            number += 1
    if _CHECKSUM in there and os.getxattr(
            target, _CHECKSUM) != hashlib.md5(raw).hexdigest().encode():
        raise ValueError('checksum does not match')
    if not raw:
        raise ValueError('none')
    # Python 2 wrote text of unknown encoding.
    if b'_codecs\nencode' not in raw[:32]:
        return _texts(unpickle(raw, encoding='bytes'), 'latin-1')
    try:
        pickled: Dict[str, str] = _Unpickler(_Whole(raw)).load()
        return pickled
    except _NotPlain:
        return _texts(unpickle(raw, encoding='bytes'), 'utf-8')


def _texts(pairs: Any, encoding: str) -> Dict[str, str]:
    return {_text(name, encoding): _text(
        value, 'utf-8' if name == b'name' else encoding)
        for name, value in pairs.items()}


def _text(value: Any, encoding: str) -> Any:
    if isinstance(value, bytes):
        return value.decode(encoding, 'surrogateescape')
    return value


class _NotPlain(pickle.UnpicklingError):
    """Something else than a dictionary of bytes."""


class _Whole:
    """A source that shows all that it has at once: without ``peek`` each
    item would be one call."""

    def __init__(self, raw: bytes) -> None:
        source = io.BytesIO(raw)
        self._raw = raw
        self.read: Callable[..., bytes] = source.read
        self.readline: Callable[..., bytes] = source.readline

    def peek(self, _: int) -> bytes:
        """All of it, once: a second call means a torn end."""
        raw, self._raw = self._raw, b''
        return raw


class _Unpickler(pickle.Unpickler):
    """Nothing but what ``pickle`` made of bytes under protocol 2, and that
    as text at once."""

    def find_class(self, module: str, name: str) -> Any:
        """See :meth:`pickle.Unpickler.find_class`."""
        if (module, name) == ('_codecs', 'encode'):
            return _written
        raise _NotPlain('%s.%s' % (module, name))


def _written(text: str, encoding: str) -> str:
    """The UTF-8 text whose bytes were pickled as ``text``."""
    if text.isascii():
        return text
    return codecs.encode(text, encoding).decode('utf-8', 'surrogateescape')
