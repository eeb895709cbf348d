"""Check that S3's copy is byte for byte this version. Nothing is taken on
trust.

Two proofs. ``etag``: S3 computed its ETag from the bytes it received, and
it is the MD5 (or MD5 of part MD5s) that *we* computed from local bytes.
``readback``: the object is read back whole and its MD5 compared; used when
configured, and wherever an ETag is not an MD5 (encryption with a KMS key,
checksum ETags), so that an odd ETag costs a read and never a false proof.
"""

from __future__ import annotations

from typing import Optional

from swift_dss.core.errors import (
    DamagedRecord, RemoteCorrupt, TierUnavailable, VersionGone)
from swift_dss.core.limits import IO_WINDOW_BYTES
from swift_dss.core.version import VersionId
from swift_dss.gateway.form.digests import (
    BLOCK_BYTES, Sums, SumsBuilder, md5, part_size)
from swift_dss.gateway.link.client import S3Client, S3Head, S3Missing
from swift_dss.gateway.ports import (
    LocalReader, LocalVersion, LocalVersions)

#: User metadata that says how a version was cut into parts.
PART_BYTES_META = 'dss-part-bytes'


class LocalCorrupt(RemoteCorrupt):
    """Local bytes do not have the digest that their metadata says.

    They are never uploaded; quarantine is the auditor's work.
    """

    http_status = 500
    counter = 'local_corrupt'


def is_multipart(content_length: int, part_bytes: int) -> bool:
    """Whether a version goes up in parts."""
    return content_length > part_size(content_length, part_bytes)


def sums_of(local: LocalVersion, reader: LocalReader,
            part_bytes: int) -> Sums:
    """Read all local bytes and digest them as an upload would.

    :raises LocalCorrupt: the bytes do not match the metadata
    """
    builder = SumsBuilder(local.content_length, part_bytes)
    for offset in range(0, local.content_length, part_bytes):
        builder.add_part(reader.read(
            offset, min(part_bytes, local.content_length - offset)))
    sums = builder.finish()
    check_local(local, sums.md5)
    return sums


def is_sound(here: LocalVersions, version: VersionId,
             partition: str) -> bool:
    """True if all bytes of a version, or of the fragment that its device has
    of it, are on the device's own disks, were read just now, and are the
    right ones."""
    try:
        version = here.own_fragment(version, partition)
        local = here.describe(version, partition)
        if not local.residency.is_local:
            return False
        whole = md5()
        with here.open(version, partition) as reader:
            for offset in range(0, local.content_length, IO_WINDOW_BYTES):
                whole.update(reader.read(offset, min(
                    IO_WINDOW_BYTES, local.content_length - offset)))
        check_local(local, whole.digest())
    except (LocalCorrupt, TierUnavailable, VersionGone, DamagedRecord):
        return False
    return True


def check_local(local: LocalVersion, digest: bytes) -> None:
    """Compare the MD5 of local bytes with the metadata's ETag.

    :raises LocalCorrupt: they differ
    """
    if digest.hex() != local.etag:
        raise LocalCorrupt('%s on %s: local bytes have MD5 %s, not %s' % (
            local.version.key, local.version.device, digest.hex(),
            local.etag))


class Verifier:
    """Proves remote copies.

    :param always_readback: ``verify = readback``
    """

    def __init__(self, client: S3Client, always_readback: bool) -> None:
        self._client = client
        self._always_readback = always_readback

    def proves(self, head: S3Head, key: str, local: LocalVersion,
               expected_etag: str) -> bool:
        """True if ``key`` holds exactly ``local``'s bytes.

        :param expected_etag: computed from local bytes (or, in one PUT,
            the metadata's ETag, which is the MD5 of the right bytes)
        :raises RemoteUnavailable: S3 broke off during a read-back
        """
        if head.size != local.content_length:
            return False
        if head.etag == expected_etag and not self._always_readback:
            return True
        return self.read_back(key, local)

    def proves_small(self, key: str, data: bytes) -> bool:
        """True if ``key`` gives out exactly ``data`` (a side car)."""
        try:
            return self._client.get_small(key, len(data)) == data
        except (S3Missing, DamagedRecord):
            return False

    def read_back(self, key: str, local: LocalVersion) -> bool:
        """True if the bytes that S3 gives out have the version's MD5."""
        whole = md5()
        if local.content_length:
            try:
                body = self._client.get(key, 0, local.content_length)
            except S3Missing:
                return False
            try:
                left = local.content_length
                while left:
                    data = body.read(min(BLOCK_BYTES, left))
                    whole.update(data)
                    left -= len(data)
            finally:
                body.close()
        return str(whole.hexdigest()) == local.etag


def remote_part_bytes(head: S3Head) -> Optional[int]:
    """How the object in S3 was cut, or None if it came in one piece."""
    text = head.metadata.get(PART_BYTES_META, '')
    if not text.isdigit() or not 0 < int(text) <= 1 << 40:
        return None
    return int(text)


def holds(client: S3Client, path: str, data: bytes) -> bool:
    """True if S3 has just these bytes, a few, under a key.

    :raises RemoteUnavailable: S3 does not answer
    """
    try:
        return client.get_small(path, len(data)) == data
    except (S3Missing, DamagedRecord):
        return False
