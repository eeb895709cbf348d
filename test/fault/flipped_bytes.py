#!/usr/bin/env python
"""R18: bytes change on SSDs and HDDs; none of them is sent.

An object server of ours with an SSD and an HDD folder holds objects of many
sizes, replicated ones and fragments: on the SSD, on the HDD, on both, and cut
over both within blocks. One byte after another is changed in a random copy.
After each, the object is read as a whole and by ranges that reach the byte,
begin or end with it, or lie elsewhere, as a client does and as an auditor
does. Each answer is the bytes that were written, or it ends before the
block, or is a 409. Where the other tier has the block the answer must be
whole; then both files are mended and compared. What no tier has stays where it
is until it is put anew, as replication would.

    python test/fault/flipped_bytes.py [--flips 10000] [--seed 1] [--on DIR]

The wrong twin checks nothing (``block_checksums = false``).
"""

from __future__ import annotations

import eventlet

eventlet.monkey_patch()

import argparse  # noqa: E402
import collections  # noqa: E402
import io  # noqa: E402
import logging  # noqa: E402
import os  # noqa: E402
import random  # noqa: E402
import sys  # noqa: E402
import tempfile  # noqa: E402
from typing import Any, Counter, Dict, List, NamedTuple, Tuple  # noqa: E402

from swift.common import storage_policy, utils  # noqa: E402

from swift_dss.core.spans import ClassMap, Span  # noqa: E402
from swift_dss.io import mending, switch  # noqa: E402
from swift_dss.io.capacity import Capacity  # noqa: E402
from swift_dss.wire import classmap, layout  # noqa: E402
from swift_dss.wire.records.blocks import BLOCK_BYTES  # noqa: E402

_SWIFT_CONF = """\
[swift-hash]
swift_hash_path_suffix = rot
[storage-policy:0]
name = dss
default = yes
diskfile_module = egg:swift_dss#dss.fs
[storage-policy:1]
name = dss-ec
policy_type = erasure_coding
ec_type = liberasurecode_rs_vand
ec_num_data_fragments = 2
ec_num_parity_fragments = 1
diskfile_module = egg:swift_dss#dss_ec.fs
"""
_DSS_CONF = """\
[dss]
devices = %(root)s/devices
run_dir = %(root)s/run
class_table = %(root)s/classes
mount_check = false
[capacity]
* = %(root)s/hdd/%%(device)s
[io]
block_checksums = %(checks)s
[tier]
min_demote_bytes = 0
"""
_CLASSES = """\
[class:0]
name = plain
rank = 0
[class:1]
name = ssd
rank = 3
[class:2]
name = hdd
rank = 1
allocate = never
[class:3]
name = both
rank = 2
write = through
"""
_SIZES = (1, 4096, BLOCK_BYTES - 1, BLOCK_BYTES, BLOCK_BYTES + 1, 200000,
          4 * BLOCK_BYTES, (1 << 20) + 7, (3 << 20) + 12345)


class Thing(NamedTuple):
    """An object that was put.

    :param map_text: where its bytes go
    :param policy: 0, or 1 for a fragment
    """

    name: str
    body: bytes
    map_text: str
    policy: int


class Outcome:
    """What came of so many flips."""

    def __init__(self) -> None:
        self.counts: Counter[str] = collections.Counter()

    def line(self) -> str:
        """One line for the reader."""
        counts = self.counts
        return ('%d flips: %d on SSDs, %d on HDDs; %d whole GETs, %d of '
                'ranges, %d audits; %d of the byte were right and %d copies '
                'mended, %d ended before the block, %d were 409; '
                '%d wrong bytes out' % (
                    counts['ssd'] + counts['hdd'], counts['ssd'],
                    counts['hdd'],
                    counts['whole'], counts['ranges'], counts['audits'],
                    counts['elsewhere'], counts['mended'], counts['ended'],
                    counts['409'], counts['wrong']))


class Server:
    """An object server on a fresh folder."""

    def __init__(self, root: str, checks: bool, seed: int) -> None:
        self.root = root
        self.random = random.Random(seed)
        for name, text in (
                ('swift.conf', _SWIFT_CONF), ('classes', _CLASSES),
                ('dss.conf', _DSS_CONF % {
                    'root': root, 'checks': str(checks).lower()})):
            with open(os.path.join(root, name), 'w') as target:
                target.write(text)
        self.device = os.path.join(root, 'devices', 'd1')
        for folder in (self.device, os.path.join(root, 'run')):
            os.makedirs(folder)
        self.capacity = Capacity(os.path.join(root, 'hdd', 'd1'), 'd1')
        os.makedirs(self.capacity.path)
        self.capacity.initialise()
        utils.set_swift_dir(root)
        storage_policy.reload_storage_policies()
        utils.validate_hash_conf()
        from swift.obj.diskfile import DiskFileRouter
        from swift_dss.objserver.server import DssObjectController
        self.conf = {'devices': os.path.join(root, 'devices'),
                     'mount_check': 'false', 'swift_dir': root,
                     'fallocate_reserve': '0', 'log_level': 'CRITICAL',
                     'dss_conf': os.path.join(root, 'dss.conf')}
        self.app = DssObjectController(self.conf)
        self.auditors = DiskFileRouter(self.conf, utils.get_logger(
            self.conf))
        self.things = [self._thing(number, size, placed)
                       for number, (size, placed) in enumerate(
                           (size, placed) for size in _SIZES
                           for placed in ('1', '2', '3', 'cut', 'ec'))]
        for thing in self.things:
            self.put(thing)

    def _thing(self, number: int, size: int, placed: str) -> Thing:
        text = placed
        if placed == 'cut':
            third = max(1, size // 3)
            text = classmap.encode(ClassMap.from_spans(
                [Span(0, third, 1), Span(third, third, 2)], rest=3))
        body = self.random.randbytes(size)
        if placed == 'ec':
            # A fragment of it, which Swift's reader looks into.
            policy = storage_policy.POLICIES[1]
            step = policy.ec_segment_size
            body = b''.join(
                policy.pyeclib_driver.encode(body[at:at + step])[1]
                for at in range(0, size, step))
            text = '3'
        return Thing('o%d' % number, body, text, placed == 'ec')

    def _request(self, method: str, thing: Thing, body: bytes = b'',
                 **more: str) -> Tuple[int, List[bytes], bool]:
        """(status, what was given, whether the response broke)."""
        environ: Dict[str, Any] = {
            'REQUEST_METHOD': method, 'SCRIPT_NAME': '',
            'PATH_INFO': '/d1/0/a/c/' + thing.name, 'SERVER_NAME': 'x',
            'SERVER_PORT': '80', 'HTTP_HOST': 'x',
            'SERVER_PROTOCOL': 'HTTP/1.1', 'REMOTE_ADDR': '127.0.0.1',
            'HTTP_X_BACKEND_STORAGE_POLICY_INDEX': str(int(thing.policy)),
            'HTTP_X_TIMESTAMP': utils.Timestamp.now().internal,
            'wsgi.errors': io.StringIO(), 'wsgi.url_scheme': 'http',
            'wsgi.input': io.BytesIO(body), **more}
        said: List[str] = []
        answer: Any = self.app(
            environ, lambda status, *_rest, **_more: said.append(status))
        given: List[bytes] = []
        broke = False
        try:
            for part in answer:
                given.append(part)
        except Exception:
            broke = True
        if hasattr(answer, 'close'):
            answer.close()
        return int(said[-1].split()[0]), given, broke

    def put(self, thing: Thing) -> None:
        """Write it, or write it anew."""
        more = {'CONTENT_LENGTH': str(len(thing.body)),
                'CONTENT_TYPE': 'a/b',
                'HTTP_X_BACKEND_DSS_MAP': thing.map_text,
                'HTTP_X_OBJECT_SYSMETA_DSS_MAP': thing.map_text}
        if thing.policy:
            more['HTTP_X_OBJECT_SYSMETA_EC_FRAG_INDEX'] = '1'
            more['HTTP_X_OBJECT_SYSMETA_EC_ETAG'] = 'e'
        status, _, _ = self._request('PUT', thing, thing.body, **more)
        if status != 201:
            raise SystemExit('PUT: %d' % status)

    def place(self, thing: Thing) -> switch.Place:
        """Its newest version."""
        folder = os.path.join(
            self.device, 'objects-1' if thing.policy else 'objects', '0')
        digest = utils.hash_path('a', 'c', thing.name)
        folder = os.path.join(folder, digest[-3:], digest)
        name = sorted(name for name in os.listdir(folder)
                      if name.endswith('.data'))[-1]
        version = layout.version_of_path('d1', os.path.join(folder, name))
        assert version is not None
        return switch.Place(self.device, self.capacity, version, '0',
                            len(thing.body))

    def get(self, thing: Thing, span: Tuple[int, int]
            ) -> Tuple[int, bytes, bool]:
        """A GET of the whole, or of one range."""
        more = {} if span == (0, len(thing.body)) else {
            'HTTP_RANGE': 'bytes=%d-%d' % (span[0], span[1] - 1)}
        status, given, broke = self._request('GET', thing, **more)
        return status, b''.join(given) if status < 300 else b'', broke

    def audit(self, thing: Thing) -> bytes:
        """What an auditor reads until something stops it."""
        from swift.obj.diskfile import AuditLocation
        policy = storage_policy.POLICIES[int(thing.policy)]
        disk_file = self.auditors[policy].get_diskfile_from_audit_location(
            AuditLocation(self.place(thing).hash_dir, 'd1', '0', policy))
        given = b''
        try:
            with disk_file.open():
                reader = disk_file.reader()
            for part in reader:
                given += part
        except Exception:
            pass
        return given

    def is_there(self, thing: Thing) -> bool:
        """Is it not in quarantine?"""
        try:
            self.place(thing)
        except (FileNotFoundError, IndexError):
            return False
        return True


def copies(place: switch.Place) -> Dict[str, Tuple[str, List[Any]]]:
    """Tier to the path of its file and the extents that it has."""
    with switch.LiveVersion(place) as live:
        by_tier = {'ssd': (live.path, []), 'hdd': (
            place.capacity.file_path(place.version), [])}
        for extent in live.residency.extents:
            for tier, (_, extents) in by_tier.items():
                if tier in [bit.name.lower() for bit in (
                        switch.Tier.SSD, switch.Tier.HDD)
                        if extent.tiers & bit]:
                    extents.append(extent)
    return by_tier


def flip(path: str, at: int, chance: random.Random) -> None:
    """Change the byte to any other."""
    with open(path, 'r+b') as target:
        target.seek(at)
        was = target.read(1)[0]
        target.seek(at)
        target.write(bytes([was ^ chance.randrange(1, 256)]))


def spans_of(size: int, at: int, chance: random.Random
             ) -> List[Tuple[int, int]]:
    """The whole, and ranges around and beside a byte."""
    other = chance.randrange(size)
    return [(0, size), (at, at + 1), (0, at + 1), (at, size),
            (max(0, at - chance.randrange(100)),
             min(size, at + 1 + chance.randrange(200000))),
            (other, min(size, other + 1 + chance.randrange(100000)))]


def one_flip(server: Server, outcome: Outcome) -> None:
    """Flip one byte and look at all that comes of it."""
    chance, counts = server.random, outcome.counts
    thing = chance.choice(server.things)
    place = server.place(thing)
    by_tier = {tier: copy for tier, copy in copies(place).items() if copy[1]}
    tier = chance.choice(sorted(by_tier))
    path, extents = by_tier[tier]
    extent = chance.choice(extents)
    at = extent.offset + chance.randrange(extent.length)
    flip(path, at, chance)
    counts[tier] += 1
    is_twice = len([copy for copy in by_tier.values() if any(
        other.offset <= at < other.end for other in copy[1])]) > 1
    spans = spans_of(len(thing.body), at, chance)
    chance.shuffle(spans)
    for span in spans[:3]:
        if not server.is_there(thing):
            break
        status, given, broke = server.get(thing, span)
        counts['whole' if span == (0, len(thing.body)) else 'ranges'] += 1
        right = thing.body[slice(*span)]
        counts['wrong'] += sum(
            byte != other for byte, other in zip(given, right)) \
            + max(0, len(given) - len(right))
        if given == right:
            counts['elsewhere'] += span[0] <= at < span[1]
        elif broke:
            counts['ended'] += 1
        elif status == 409:
            counts['409'] += 1
        else:
            counts['wrong answers'] += 1
        if is_twice and given != right:
            counts['wrong answers'] += 1
    if server.is_there(thing):
        counts['audits'] += 1
        given = server.audit(thing)
        counts['wrong'] += sum(
            byte != other for byte, other in zip(given, thing.body))
    if not server.is_there(thing):
        server.put(thing)
        return
    rot = mending.look(place)
    if rot.lost:
        counts['wrong answers'] += is_twice
        server.put(thing)
        return
    mending.mend(place, rot)
    counts['mended'] += bool(rot.length)
    for path, extents in copies(place).values():
        for extent in extents:
            with open(path, 'rb') as source:
                if os.pread(source.fileno(), extent.length,
                            extent.offset) != \
                        thing.body[extent.offset:extent.end]:
                    counts['not mended'] += 1
    if counts['not mended']:
        server.put(thing)


def flips(root: str, count: int, seed: int, checks: bool = True) -> Outcome:
    """Flip so many bytes, one after another.

    :param root: an empty folder
    """
    server, outcome = Server(root, checks, seed), Outcome()
    for _ in range(count):
        one_flip(server, outcome)
    return outcome


def main() -> int:
    """See the module's text."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument('--flips', type=int, default=10000)
    options.add_argument('--seed', type=int, default=1)
    options.add_argument('--on', default='/dev/shm', metavar='FOLDER')
    args = options.parse_args()
    logging.getLogger().addHandler(logging.NullHandler())
    with tempfile.TemporaryDirectory(prefix='dss-', dir=args.on) as root:
        outcome = flips(root, args.flips, args.seed)
    print('R18: ' + outcome.line(), flush=True)
    with tempfile.TemporaryDirectory(prefix='dss-', dir=args.on) as root:
        twin = flips(root, min(50, args.flips), args.seed, checks=False)
    print('R18 wrong twin: ' + twin.line())
    is_right = not (outcome.counts['wrong'] or outcome.counts['wrong answers']
                    or outcome.counts['not mended'])
    caught = twin.counts['wrong'] > 0
    print('twin %s' % ('caught' if caught else 'NOT caught'))
    return 0 if is_right and caught else 1


if __name__ == '__main__':
    sys.exit(main())
