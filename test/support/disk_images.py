"""Images of disks, made without the tools that make them."""

from __future__ import annotations

import os
import struct

from support.format_files import MIB, sparse


def ntfs(path, size=256 * MIB):
    """A volume with a master file table of two runs and one directory."""
    boot = bytearray(512)
    boot[3:11] = b'NTFS    '
    struct.pack_into('<HB', boot, 11, 512, 8)
    struct.pack_into('<QQQb', boot, 40, size // 512 - 1, 4, 2, -10)

    def attribute(kind, runs):
        raw = bytearray(64 + len(runs) + 8 & ~7)
        struct.pack_into('<IIB', raw, 0, kind, len(raw), 1)
        struct.pack_into('<H', raw, 32, 64)
        raw[64:64 + len(runs)] = runs
        return bytes(raw)

    def record(flags, *attributes):
        raw = bytearray(1024)
        raw[:4] = b'FILE'
        struct.pack_into('<HH', raw, 4, 48, 3)
        struct.pack_into('<HH', raw, 20, 56, flags)
        body = b''.join(attributes) + b'\xff' * 4
        raw[56:56 + len(body)] = body
        raw[48:50] = raw[510:512] = b'ab'
        raw[1022:1024] = b'ab'
        return bytes(raw)
    # 4 clusters at 4, then 4 clusters 996 further on; 3 at 2,000.
    table = record(1, attribute(0x80, b'\x11\4\4\x21\4\xe4\3'))
    folder = record(3, attribute(0xa0, b'\x21\3\xd0\x07'))
    first = table + record(1) * 11 + record(1) * 4
    sparse(path, size, [(0, bytes(boot)), (4 * 4096, first),
                        (1000 * 4096, folder)])


def mbr(*entries):
    raw = bytearray(512)
    for number, (kind, start, sectors) in enumerate(entries):
        struct.pack_into('<BxxxBxxxII', raw, 446 + 16 * number, 0, kind,
                         start, sectors)
    raw[510:] = b'\x55\xaa'
    return bytes(raw)


def gpt(start, sectors, size):
    entry = bytearray(128)
    entry[:16] = entry[16:32] = b'a' * 16
    struct.pack_into('<QQ', entry, 32, start, start + sectors - 1)
    header = struct.pack('<8s64xQII', b'EFI PART', 2, 128, 128)
    return [(0, mbr((0xee, 1, size // 512 - 1))), (512, header),
            (1024, bytes(entry))]


def qcow2(path, disk, cluster=65536):
    """An image of a disk, as qemu-img convert lays it out; clusters of
    zeros are not there."""
    size = os.path.getsize(disk)
    count = -(-size // cluster)
    tables = -(-count // (cluster // 8))
    header = struct.pack('>4sIQIIQIIQQIIQ', b'QFI\xfb', 3, 0, 0, 16, size, 0,
                         tables, cluster * 3, cluster, 1, 0, 0)
    header += struct.pack('>QQQII', 0, 0, 0, 4, 104)
    l1 = [(cluster * (4 + at)) | 1 << 63 for at in range(tables)]
    at = cluster * (4 + tables)
    l2 = [0] * (tables * cluster // 8)
    with open(disk, 'rb') as source, open(path, 'wb') as out:
        for number in range(count):
            raw = source.read(cluster)
            if any(raw):
                l2[number] = at | 1 << 63
                out.seek(at)
                out.write(raw.ljust(cluster, b'\0'))
                at += cluster
        for where, piece in (
                (0, header), (cluster, struct.pack('>Q', 2 * cluster)),
                (3 * cluster, struct.pack('>%dQ' % tables, *l1)),
                (4 * cluster, struct.pack('>%dQ' % len(l2), *l2))):
            out.seek(where)
            out.write(piece)
    return l2
