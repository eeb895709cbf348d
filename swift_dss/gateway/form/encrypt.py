"""Encryption on this side of the wire: the bucket sees no plaintext.

AES-256-GCM by ``cryptography``. Every S3 object has a data key of its own;
the *seal*, a short text beside the object and in the residency record,
holds it wrapped (RFC 3394) under one of the keys of the key file, which it
names. So keys rotate by name: new objects are sealed under the active key, old
ones open as long as their key is in the file, and rewrapping a seal moves no
data.

Data is a row of blocks of 1 MiB, each with a tag of 16 bytes; authenticated
with a block are its place, the object's length and whether it is the last, so
that blocks can be read by range, and none can be moved, dropped or doubled
unseen. Nonces never repeat under a key: a data block's is its place, and a
data key is derived from (or as fresh as) what it encrypts; everything else has
one derived from its own plaintext.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import os
import re
import struct
from dataclasses import dataclass, replace
from typing import Dict, Tuple

from swift_dss.core.errors import BadConfig, DamagedRecord, RemoteCorrupt
from swift_dss.gateway.form import digests
from swift_dss.gateway.form.verify import check_local
from swift_dss.gateway.link.credentials import OwnerFile
from swift_dss.gateway.ports import LocalReader, LocalVersion
from swift_dss.wire import bundle

try:
    from cryptography.exceptions import InvalidTag
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM
    from cryptography.hazmat.primitives.keywrap import (
        InvalidUnwrap, aes_key_unwrap, aes_key_wrap)
except ImportError:  # an extra: only needed where a key file is set
    AESGCM = None  # type: ignore[assignment,misc]

BLOCK_BYTES = digests.BLOCK_BYTES
TAG_BYTES = 16
SEALED_BLOCK_BYTES = BLOCK_BYTES + TAG_BYTES
#: User metadata that says how the key's data is encrypted.
SEAL_META = 'dss-seal'
_VERSION = 'g1'
_ENVELOPE = b'DSE1'
_NONCE_BYTES = 12
_KEY_BYTES = 32
#: Of the key file: some keys and comments.
_MAX_FILE_BYTES = 65536
_ID = re.compile(r'^[A-Za-z0-9_-]{1,32}$')
_KINDS = {'data': 1, 'record': 2, 'index': 3, 'since': 4, 'meta': 5,
          'proofs': 6}


class WrongSeal(RemoteCorrupt):
    """Bytes from S3 do not open: they are wrong, or sealed under another key.
    """

    counter = 'remote_seal'


@dataclass(frozen=True)
class _Keys:
    active: str
    keys: Dict[str, bytes]

    def __repr__(self) -> str:
        return '_Keys(active=%r)' % self.active


class KeyFile:
    """The keys of one file, read again when it changes. Thread-safe.

    :param path: '' where nothing is encrypted
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._file = OwnerFile(path, 'key file', _parse, _MAX_FILE_BYTES)

    def __bool__(self) -> bool:
        return bool(self._path)

    def check(self) -> None:
        """:raises BadConfig: it is set and cannot be used."""
        if self._path:
            self._read()

    @property
    def active(self) -> str:
        """Id of the key that new objects are sealed under."""
        return self._read().active

    def new(self, derived_from: bytes = b'') -> Seal:
        """A seal under the active key.

        :param derived_from: a name of exactly the bytes to be sealed: the same
            gives the same data key, so that a retry or another replica sends
            the same bytes; nothing gives a fresh key
        """
        keys = self._read()
        master = keys.keys[keys.active]
        data_key = os.urandom(_KEY_BYTES) if not derived_from else hmac.new(
            master, b'dss data key\0' + derived_from,
            hashlib.sha256).digest()
        return Seal('%s.%s.%s' % (_VERSION, keys.active, _text(
            aes_key_wrap(_wrapping(master), data_key))), data_key)

    def open(self, text: str) -> Seal:
        """The seal that a text spells.

        :raises BadConfig: its key is not in the file
        :raises WrongSeal: it is no seal, or the key is another one
        """
        parts = text.split('.')
        if len(parts) not in (3, 4) or parts[0] != _VERSION:
            raise WrongSeal('%r is no seal' % text[:80])
        master = self._read().keys.get(parts[1])
        if master is None:
            raise BadConfig('key file %s: no key %r, which S3 objects are '
                            'sealed under' % (self._path, parts[1]))
        try:
            data_key = aes_key_unwrap(_wrapping(master), _raw(parts[2]))
            number = int(parts[3]) if len(parts) == 4 else 0
        except (InvalidUnwrap, ValueError) as err:
            raise WrongSeal('seal under key %s: %r' % (
                parts[1], err)) from err
        return Seal('.'.join(parts[:3]), data_key, number)

    @property
    def active_prefix(self) -> str:
        """How every seal under the active key begins."""
        return '%s.%s.' % (_VERSION, self.active)

    def rewrap(self, text: str) -> str:
        """The same seal under the active key."""
        keys = self._read()
        seal = self.open(text)
        made = '%s.%s.%s' % (_VERSION, keys.active, _text(aes_key_wrap(
            _wrapping(keys.keys[keys.active]), seal.data_key)))
        return made + ('.%d' % seal.number if text.count('.') == 3 else '')

    def _read(self) -> _Keys:
        if not self._path:
            raise BadConfig('[gateway] key_file is not set, and S3 objects '
                            'are sealed')
        if AESGCM is None:
            raise BadConfig('[gateway] key_file: the package "cryptography" '
                            'is not installed')
        return self._file.read()[0]


class Seal:
    """One object's data key. Printing it shows only which key wraps it.

    :param number: of a member, where the object is a bundle
    """

    def __init__(self, text: str, data_key: bytes, number: int = 0) -> None:
        self.text = text
        self.data_key = data_key
        self.number = number
        self._gcm = AESGCM(data_key)
        self._nonce_key = hmac.new(data_key, b'dss nonces',
                                   hashlib.sha256).digest()

    def __repr__(self) -> str:
        return 'Seal(%r)' % self.text.split('.')[1]

    def block(self, number: int, index: int, length: int,
              data: bytes) -> bytes:
        """One sealed block.

        :param number: of the member, 0 where the object is no bundle
        :param index: of the block in the version
        :param length: of the whole version
        """
        nonce, said = _place(number, index, length)
        return self._gcm.encrypt(nonce, data, said)

    def open_block(self, number: int, index: int, length: int,
                   sealed: bytes) -> bytes:
        """:raises WrongSeal: it is not that block."""
        nonce, said = _place(number, index, length)
        try:
            return self._gcm.decrypt(nonce, sealed, said)
        except InvalidTag:
            raise WrongSeal('block %d does not open' % index) from None

    def wrap(self, part: str, number: int, data: bytes) -> bytes:
        """Close a part of a bundle (``wire.bundle.Wrap``) or a record."""
        if part == 'data':
            return b''.join(
                self.block(number, at // BLOCK_BYTES, len(data),
                           data[at:at + BLOCK_BYTES])
                for at in range(0, len(data), BLOCK_BYTES))
        said = struct.pack('>BI', _KINDS[part], number)
        nonce = hmac.new(self._nonce_key, said + data,
                         hashlib.sha256).digest()[:_NONCE_BYTES]
        return nonce + self._gcm.encrypt(nonce, data, said)

    def unwrap(self, part: str, number: int, sealed: bytes) -> bytes:
        """:raises WrongSeal: it is not that part."""
        if part == 'data':
            length = plain_length(len(sealed))
            return b''.join(
                self.open_block(number, at // SEALED_BLOCK_BYTES, length,
                                sealed[at:at + SEALED_BLOCK_BYTES])
                for at in range(0, len(sealed), SEALED_BLOCK_BYTES))
        try:
            return self._gcm.decrypt(
                sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:],
                struct.pack('>BI', _KINDS[part], number))
        except (InvalidTag, ValueError):
            raise WrongSeal('%s %d does not open' % (part, number)) \
                from None


class SealedReader(LocalReader):
    """A version's local bytes as S3 is to have them."""

    def __init__(self, reader: LocalReader, seal: Seal,
                 length: int) -> None:
        self._reader = reader
        self._seal = seal
        self._length = length
        self._index = -1
        self._block = b''

    def read(self, offset: int, length: int) -> bytes:
        """See :meth:`LocalReader.read`; offsets are those in S3."""
        pieces = []
        while length:
            index, start = divmod(offset, SEALED_BLOCK_BYTES)
            piece = self._sealed(index)[start:start + length]
            pieces.append(piece)
            offset += len(piece)
            length -= len(piece)
        return b''.join(pieces)

    def _sealed(self, index: int) -> bytes:
        if index != self._index:
            at = index * BLOCK_BYTES
            self._block = self._seal.block(0, index, self._length,
                                           self._reader.read(at, min(
                                               BLOCK_BYTES,
                                               self._length - at)))
            self._index = index
        return self._block

    def close(self) -> None:
        """The reader below is its owner's to close."""


def sealed_view(local: LocalVersion, reader: LocalReader,
                seal: Seal) -> Tuple[LocalVersion, LocalReader]:
    """A version and its bytes as S3 is to have them.

    Reads all local bytes once, to compute the digest of the sealed bytes, and
    compares them with the version's own digest.

    :raises LocalCorrupt: the bytes do not match the metadata
    """
    length = sealed_length(local.content_length)
    made = SealedReader(reader, seal, local.content_length)
    plain, closed = digests.md5(), digests.md5()
    for at in range(0, local.content_length, BLOCK_BYTES):
        plain.update(reader.read(at, min(BLOCK_BYTES,
                                         local.content_length - at)))
        start = at // BLOCK_BYTES * SEALED_BLOCK_BYTES
        closed.update(made.read(start, min(SEALED_BLOCK_BYTES,
                                           length - start)))
    check_local(local, plain.digest())
    return replace(local, etag=str(closed.hexdigest()), residency=replace(
        local.residency, content_length=length)), made


def seal_for(keys: KeyFile, key: str, local: LocalVersion) -> Seal:
    """The seal of a version with a key of its own: the same each time,
    as long as the same key is active."""
    return keys.new(('%s %d %s' % (
        key, local.content_length, local.etag)).encode('utf-8'))


def close_envelope(seal: Seal, data: bytes) -> bytes:
    """A small object that says itself how it is sealed."""
    text = seal.text.encode('ascii')
    return (_ENVELOPE + struct.pack('>H', len(text)) + text
            + seal.wrap('meta', 0, data))


def open_envelope(keys: KeyFile, raw: bytes) -> Tuple[bytes, str]:
    """(its contents, its seal); as it is and '' if it is not sealed.

    :raises WrongSeal: it does not open
    """
    if raw[:4] != _ENVELOPE:
        return raw, ''
    if len(raw) < 6:
        raise DamagedRecord('a sealed record of %d bytes' % len(raw))
    length, = struct.unpack_from('>H', raw, 4)
    text = raw[6:6 + length].decode('ascii', 'replace')
    return keys.open(text).unwrap('meta', 0, raw[6 + length:]), text


def sealed_length(length: int) -> int:
    """Bytes that a version takes in S3."""
    return length + TAG_BYTES * -(-length // BLOCK_BYTES)


def plain_length(length: int) -> int:
    """Bytes of the version that takes so many in S3."""
    return length - TAG_BYTES * -(-length // SEALED_BLOCK_BYTES)


def opener(keys: KeyFile, text: str) -> bundle.Wrap:
    """The function that opens a bundle with this seal; '' is a bundle without
    one.
    """
    return keys.open(text).unwrap if text else bundle.plain


def _place(number: int, index: int, length: int) -> Tuple[bytes, bytes]:
    """(nonce, associated data) of a block of data."""
    last = (index + 1) * BLOCK_BYTES >= length
    return (struct.pack('>IQ', number, index),
            struct.pack('>BIQQB', _KINDS['data'], number, index, length,
                        last))


def _wrapping(master: bytes) -> bytes:
    # Not the master itself: it also derives data keys.
    return hmac.new(master, b'dss wrapping key', hashlib.sha256).digest()


def _text(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).decode('ascii').rstrip('=')


def _raw(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + '=' * (-len(text) % 4))


def _parse(path: str, raw: bytes) -> _Keys:
    """:raises BadConfig: names the line, never its contents."""
    if len(raw) > _MAX_FILE_BYTES:
        raise BadConfig('key file %s: more than %d bytes' % (
            path, _MAX_FILE_BYTES))
    active, keys = '', {}
    for number, line in enumerate(raw.decode('utf-8', 'replace')
                                  .splitlines(), 1):
        line = line.strip()
        if not line or line.startswith('#'):
            continue
        name, sign, value = (part.strip() for part in line.partition('='))
        where = 'key file %s, line %d: ' % (path, number)
        words = name.split()
        if sign and words == ['active']:
            active = value
        elif sign and len(words) == 2 and words[0] == 'key' and \
                _ID.match(words[1]):
            try:
                keys[words[1]] = base64.b64decode(value, validate=True)
            except (binascii.Error, ValueError):
                raise BadConfig(where + 'not base64') from None
            if len(keys[words[1]]) != _KEY_BYTES:
                raise BadConfig(where + 'not %d bytes' % _KEY_BYTES)
        else:
            raise BadConfig(where + 'expected "active = ID" or '
                            '"key ID = BASE64"')
    if active not in keys:
        raise BadConfig('key file %s: there is no key for "active = %s"'
                        % (path, active[:32]))
    return _Keys(active, keys)
