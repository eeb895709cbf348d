#!/usr/bin/env python3
"""Bundles beside the bucket: look into them, take them apart, make them.

One file that runs where the bucket is, without the rest of swift-dss: only
Python's library, and boto3 for ``s3://`` places. It reads and writes the
format by its documentation alone.

    bundles.py ls PLACE                     members that are alive
    bundles.py unbundle PLACE --to PLACE    each as an object of its own
    bundles.py bundle PLACE --to PLACE --account A --container C
                                            objects into bundles

A PLACE is a folder, a bundle's file, or ``s3://bucket/prefix``
(``--endpoint`` for a server other than AWS). What ``bundle`` makes under a
gateway's prefix (``s3://bucket/prefix/bundles/``) an edge takes in with
``swift-dss gateway restore``. Sealed (encrypted) bundles are refused by name:
their keys are at the edge.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import struct
import sys
import time
import uuid
import zlib
from typing import (
    Any, Dict, Iterable, Iterator, List, NamedTuple, Optional, Set,
    Tuple)

HEAD = struct.Struct('>4sIII')
MEMBER = struct.Struct('>4sIQI')
TRAILER = struct.Struct('>QQI4s32s')
MAX_MEMBERS = 16384
MAX_INDEX_BYTES = 64 << 20
#: Data of one bundle that is made here.
BUNDLE_BYTES = 16 << 20


class Damaged(Exception):
    """A bundle is damaged."""


class Member(NamedTuple):
    """One member: where its data lies, and its record."""

    number: int
    offset: int
    length: int
    record: Dict[str, Any]

    @property
    def name(self) -> str:
        """``/account/container/object``."""
        return str(self.record.get('metadata', {}).get('name', ''))


# -- the format -----------------------------------------------------------

def read_members(raw: bytes) -> List[Member]:
    """The members of a whole bundle, by its index, else by a scan.

    :raises Damaged: it is no bundle, or sealed
    """
    if len(raw) < HEAD.size or raw[:4] != b'DSB1':
        raise Damaged('no DSB1 at its start')
    _, flags, length, crc = HEAD.unpack_from(raw)
    text = raw[HEAD.size:HEAD.size + length]
    if len(text) != length or zlib.crc32(raw[4:12] + text) != crc:
        raise Damaged('the head is cut off or damaged')
    if flags & 1:
        raise Damaged('it is sealed: its keys are at the edge')
    if flags:
        raise Damaged('flags %#x of another version' % flags)
    try:
        return _by_index(raw)
    except Damaged:
        return list(_by_scan(raw, HEAD.size + length))


def _by_index(raw: bytes) -> List[Member]:
    if len(raw) < TRAILER.size:
        raise Damaged('cut off')
    offset, length, count, magic, digest = TRAILER.unpack(
        raw[-TRAILER.size:])
    index = raw[offset:offset + length]
    if magic != b'DSBE' or offset + length + TRAILER.size != len(raw) \
            or count > MAX_MEMBERS \
            or hashlib.sha256(index).digest() != digest:
        raise Damaged('the index is cut off or damaged')
    rows = json.loads(_inflate(index))
    members = [Member(number, row[0], row[1], row[2])
               for number, row in enumerate(rows)]
    if len(members) != count or any(
            member.offset < HEAD.size or member.length < 0
            or member.offset + member.length > offset for member in members):
        raise Damaged('the index points outside')
    return members


def _by_scan(raw: bytes, at: int) -> Iterator[Member]:
    for number in range(MAX_MEMBERS):
        if raw[at:at + 4] != b'DSBM' or len(raw) < at + MEMBER.size:
            return
        _, record_bytes, data_bytes, crc = MEMBER.unpack_from(raw, at)
        packed = raw[at + MEMBER.size:at + MEMBER.size + record_bytes]
        offset = at + MEMBER.size + record_bytes
        if zlib.crc32(raw[at + 4:at + 16] + packed) != crc or \
                offset + data_bytes > len(raw):
            return
        yield Member(number, offset, data_bytes,
                     json.loads(_inflate(packed)))
        at = offset + data_bytes


def _inflate(packed: bytes) -> bytes:
    inflate = zlib.decompressobj()
    try:
        raw = inflate.decompress(packed, MAX_INDEX_BYTES)
    except zlib.error as err:
        raise Damaged(str(err)) from err
    if not inflate.eof:
        raise Damaged('cut off, or more than %d bytes' % MAX_INDEX_BYTES)
    return raw


def make_bundle(head: Dict[str, Any],
                members: List[Tuple[Dict[str, Any], bytes]]) -> bytes:
    """A bundle of (record, data) pairs."""
    text = _json(head)
    fields = struct.pack('>II', 0, len(text))
    raw = bytearray(b'DSB1' + fields
                    + struct.pack('>I', zlib.crc32(fields + text)) + text)
    rows = []
    for record, data in members:
        packed = zlib.compress(_json(record))
        fields = struct.pack('>IQ', len(packed), len(data))
        raw += b'DSBM' + fields + struct.pack(
            '>I', zlib.crc32(fields + packed)) + packed
        rows.append([len(raw), len(data), record])
        raw += data
    index = zlib.compress(_json(rows))
    offset = len(raw)
    raw += index + TRAILER.pack(offset, len(index), len(rows), b'DSBE',
                                hashlib.sha256(index).digest())
    return bytes(raw)


def read_since(raw: bytes) -> Tuple[Set[int], Dict[int, Dict[str, Any]]]:
    """(dead members, newer records) of a ``.since`` object."""
    since = json.loads(_inflate(raw))
    records = dict(since['records'])
    return set(since['dead']), records


def alive(raw: bytes, beside: Iterable[bytes]) -> List[Member]:
    """Members that are not dead, with their newest records.

    :param beside: ``.since`` objects: each of its writers has one
    """
    dead: Set[int] = set()
    records: Dict[int, Dict[str, Any]] = {}
    for part in beside:
        more, newer = read_since(part)
        dead |= more
        for number, record in newer.items():
            records[number] = max(record, records.get(number, record),
                                  key=_changed_at)
    return [part._replace(record=records.get(part.number, part.record))
            for part in read_members(raw) if part.number not in dead]


def _changed_at(record: Dict[str, Any]) -> str:
    return str(record.get('metadata', {}).get('X-Timestamp', ''))


def data_of(raw: bytes, member: Member) -> bytes:
    """A member's data, proven by its MD5.

    :raises Damaged: it has another
    """
    data = raw[member.offset:member.offset + member.length]
    if hashlib.md5(data).hexdigest() != member.record['etag']:
        raise Damaged('%s has a wrong MD5' % member.name)
    return data


def _json(value: Any) -> bytes:
    return json.dumps(value, separators=(',', ':'),
                      sort_keys=True).encode('ascii')


# -- places ---------------------------------------------------------------

class Folder:
    """Files under a folder, or one file."""

    def __init__(self, path: str) -> None:
        self._path = path

    def names(self) -> Iterator[str]:
        """Names below, in order."""
        if os.path.isfile(self._path):
            yield ''
            folder, name = os.path.split(os.path.abspath(self._path))
            for entry in sorted(os.listdir(folder)):
                if entry.startswith(name + '.since'):
                    yield entry[len(name):]
            return
        for folder, folders, files in os.walk(self._path):
            folders.sort()
            for name in sorted(files):
                yield os.path.relpath(os.path.join(folder, name),
                                      self._path)

    def read(self, name: str) -> Optional[bytes]:
        """All of a file; None if there is none."""
        try:
            with open(self._at(name), 'rb') as source:
                return source.read()
        except FileNotFoundError:
            return None

    def kind(self, name: str) -> str:
        """Content type: files have none."""
        return 'application/octet-stream'

    def write(self, name: str, data: bytes, record: Dict[str, Any]) -> None:
        """Write a file; readers never see half of it."""
        path = os.path.normpath(os.path.join(self._path, name))
        if not path.startswith(os.path.normpath(self._path) + os.sep):
            raise Damaged('%r leads out of %s' % (name, self._path))
        os.makedirs(os.path.dirname(path), exist_ok=True)
        temporary = path + '.part'
        with open(temporary, 'wb') as target:
            target.write(data)
        os.replace(temporary, path)

    def _at(self, name: str) -> str:
        if name.startswith('.') and not os.path.isdir(self._path):
            return self._path + name  # beside a single file
        return os.path.join(self._path, name) if name else self._path


class Bucket:
    """Keys under a prefix of a bucket."""

    def __init__(self, url: str, endpoint: str) -> None:
        import boto3
        self._bucket, _, self._prefix = url[5:].partition('/')
        self._client = boto3.client('s3', endpoint_url=endpoint or None)

    def names(self) -> Iterator[str]:
        """Keys below, without the prefix."""
        for page in self._client.get_paginator('list_objects_v2').paginate(
                Bucket=self._bucket, Prefix=self._prefix):
            for item in page.get('Contents', ()):
                yield item['Key'][len(self._prefix):]

    def read(self, name: str) -> Optional[bytes]:
        """All of a key; None if there is none."""
        try:
            return bytes(self._client.get_object(
                Bucket=self._bucket, Key=self._prefix + name)['Body'].read())
        except self._client.exceptions.NoSuchKey:
            return None

    def kind(self, name: str) -> str:
        """Content type of a key."""
        return str(self._client.head_object(
            Bucket=self._bucket, Key=self._prefix + name)['ContentType'])

    def write(self, name: str, data: bytes, record: Dict[str, Any]) -> None:
        """Make a key, with the user metadata of a record."""
        metadata = record.get('metadata', {})
        self._client.put_object(
            Bucket=self._bucket, Key=self._prefix + name, Body=data,
            ContentType=metadata.get('Content-Type',
                                     'application/octet-stream'),
            Metadata={key[14:].lower(): value
                      for key, value in metadata.items()
                      if key.lower().startswith('x-object-meta-')})


def place(text: str, endpoint: str) -> Any:
    """The place that an argument names."""
    return Bucket(text, endpoint) if text.startswith('s3://') \
        else Folder(text)


# -- commands -------------------------------------------------------------

class Bundles:
    """The bundles of a place, as (name, bytes, live members). Skip other
    files; report and count damaged bundles.
    """

    def __init__(self, source: Any) -> None:
        self._source = source
        self.damaged = 0

    def __iter__(self) -> Iterator[Tuple[str, bytes, List[Member]]]:
        for name, beside in _grouped(self._source.names()):
            raw = self._source.read(name)
            if raw is None or raw[:4] != b'DSB1':
                continue
            try:
                yield name, raw, alive(raw, filter(None, map(
                    self._source.read, beside)))
            except (Damaged, ValueError, KeyError) as err:
                print('%s: %s' % (name, err), file=sys.stderr)
                self.damaged += 1


def _grouped(names: Iterable[str]) -> Iterator[Tuple[str, List[str]]]:
    """Names in their order, and of each those that lie beside it."""
    last: Optional[str] = None
    beside: List[str] = []
    for name in names:
        if last is not None and name.startswith(last + '.since'):
            beside.append(name)
        elif '.since' not in name.rpartition('/')[2]:
            if last is not None:
                yield last, beside
            last, beside = name, []
    if last is not None:
        yield last, beside


def newest(bundles: Bundles) -> Dict[str, str]:
    """Timestamp of the newest version of each name."""
    latest: Dict[str, str] = {}
    for _, _, members in bundles:
        for member in members:
            latest[member.name] = max(latest.get(member.name, ''),
                                      str(member.record.get('timestamp', '')))
    return latest


def show(args: argparse.Namespace) -> int:
    """``ls``."""
    bundles = Bundles(place(args.place, args.endpoint))
    for name, _, members in bundles:
        for member in members:
            print('%s\t%d\t%d\t%s\t%s' % (
                name, member.offset, member.length,
                member.record.get('timestamp'),
                member.name))
    return 1 if bundles.damaged else 0


def unbundle(args: argparse.Namespace) -> int:
    """``unbundle``: the newest version of each name."""
    bundles = Bundles(place(args.place, args.endpoint))
    target = place(args.to, args.endpoint)
    latest = newest(bundles)
    wrote = failed = 0
    for _, raw, members in bundles:
        for member in members:
            if args.container and not member.name.startswith(
                    '/' + args.container.strip('/') + '/'):
                continue
            if str(member.record.get('timestamp', '')) < latest[member.name]:
                continue
            try:
                target.write(member.name.lstrip('/'), data_of(raw, member),
                             member.record)
                wrote += 1
            except (Damaged, OSError) as err:
                print('%s: %s' % (member.name, err), file=sys.stderr)
                failed += 1
    print('%d objects' % wrote)
    return 1 if failed or bundles.damaged else 0


def bundle(args: argparse.Namespace) -> int:
    """``bundle``: every object of a place, in the order of names."""
    source = place(args.place, args.endpoint)
    target = place(args.to, args.endpoint)
    pending: List[Tuple[Dict[str, Any], bytes]] = []
    made = count = length = 0

    def flush() -> int:
        if not pending:
            return 0
        name = uuid.uuid4().hex
        target.write('%s/%016.5f-%s' % (name[-3:], time.time(), name),
                     make_bundle({
                         'account': args.account,
                         'container': args.container,
                         'policy': args.policy, 'classes': [args.class_id],
                         'created': time.time()}, pending), {})
        del pending[:]
        return 1

    for name in source.names():
        data = source.read(name)
        if data is None or len(data) > args.bytes:
            print('%s: too large for a bundle, left out' % name,
                  file=sys.stderr)
            continue
        if pending and (length + len(data) > args.bytes
                        or len(pending) >= MAX_MEMBERS):
            made += flush()
            length = 0
        pending.append((_record(args, name, data, source.kind(name)), data))
        count += 1
        length += len(data)
    made += flush()
    print('%d objects in %d bundles' % (count, made))
    return 0


def _record(args: argparse.Namespace, name: str, data: bytes,
            kind: str) -> Dict[str, Any]:
    timestamp = '%016.5f' % time.time()
    etag = hashlib.md5(data).hexdigest()
    metadata = {'name': '/%s/%s/%s' % (args.account, args.container,
                                       name.replace(os.sep, '/')),
                'X-Timestamp': timestamp, 'Content-Type': kind,
                'Content-Length': str(len(data)), 'ETag': etag}
    if args.class_id:
        metadata['X-Object-Sysmeta-Dss-Map'] = str(args.class_id)
    return {'v': 1, 'policy': args.policy, 'hash': '',
            'timestamp': timestamp, 'frag': None, 'length': len(data),
            'etag': etag, 'map': str(args.class_id), 'metadata': metadata}


def main(argv: Optional[List[str]] = None) -> int:
    """Run one command."""
    parser = argparse.ArgumentParser(
        description=str(__doc__).split('\n')[0])
    commands = parser.add_subparsers(dest='command', metavar='COMMAND')
    for name, run, line in (
            ('ls', show, 'members that are alive'),
            ('unbundle', unbundle, 'each member as an object of its own'),
            ('bundle', bundle, 'objects into bundles')):
        sub = commands.add_parser(name, help=line, description=line)
        sub.add_argument('place', help='folder, file or s3://bucket/prefix')
        sub.add_argument('--endpoint', default='',
                         help='S3 server, if it is not AWS')
        sub.set_defaults(run=run)
        if name != 'ls':
            sub.add_argument('--to', required=True, metavar='PLACE')
        if name == 'unbundle':
            sub.add_argument('--container', metavar='ACCOUNT/CONTAINER',
                             default='')
        if name == 'bundle':
            sub.add_argument('--account', required=True)
            sub.add_argument('--container', required=True)
            sub.add_argument('--policy', type=int, default=0,
                             help='index of the storage policy')
            sub.add_argument('--class-id', type=int, default=0)
            sub.add_argument('--bytes', type=int, default=BUNDLE_BYTES)
    args = parser.parse_args(argv)
    if not args.command:
        parser.error('say which command')
    return int(args.run(args))


if __name__ == '__main__':
    sys.exit(main())
