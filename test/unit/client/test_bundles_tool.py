"""The one-file tool: a second reader and writer of the format."""

from __future__ import annotations

import hashlib
import os
import pathlib
import subprocess
import sys

import pytest

from swift_dss.client import bundles
from swift_dss.gateway.bundle import since
from swift_dss.gateway.form.metadata import of_record
from swift_dss.wire import bundle

BODIES = [b'', b'x', bytes(range(256)) * 20, b'last']


def record(number, data, timestamp='1700000000.00000', name=''):
    return {'v': 1, 'policy': 0, 'hash': '0' * 32, 'timestamp': timestamp,
            'frag': None, 'length': len(data),
            'etag': hashlib.md5(data).hexdigest(), 'map': '5',
            'metadata': {'name': name or '/a/c/dir/o%d' % number,
                         'Content-Type': 'text/plain'}}


def made(bodies=BODIES, **options):
    builder = bundle.Builder({'account': 'a'})
    for number, body in enumerate(bodies):
        builder.add(record(number, body, **options), body)
    return builder.finish()


def test_each_reads_what_the_other_wrote():
    raw = made()
    theirs = bundles.read_members(raw)
    assert [tuple(entry) for entry in theirs] == [
        (entry.number, entry.offset, entry.stored_bytes, entry.record)
        for entry in bundle.scan(raw)]
    ours = bundles.make_bundle({'account': 'a'}, [
        (record(number, body), body) for number, body in enumerate(BODIES)])
    trailer = bundle.read_trailer(ours[-bundle.TRAILER_BYTES:], len(ours))
    entries = bundle.read_index(ours[
        trailer.index_offset:-bundle.TRAILER_BYTES], trailer)
    assert entries == list(bundle.scan(ours))
    assert [ours[entry.offset:entry.offset + entry.stored_bytes]
            for entry in entries] == BODIES
    assert bundle.read_head(ours)[0] == {'account': 'a'}


def test_a_cut_bundle_gives_what_is_whole():
    raw = made()
    whole = bundles.read_members(raw)
    for end in range(20, len(raw), 37):
        try:
            members = bundles.read_members(raw[:end])
        except bundles.Damaged:
            continue
        assert members == whole[:len(members)]


def test_a_sealed_bundle_is_refused_by_name():
    builder = bundle.Builder({'seal': 'g1.k.x'}, sealed=True)
    with pytest.raises(bundles.Damaged, match='sealed'):
        bundles.read_members(builder.finish())


def test_it_runs_alone_and_takes_bundles_apart(tmp_path):
    """As a copy of one file, in a Python that has nothing of ours."""
    folder = tmp_path / 'bucket' / 'bundles' / 'abc'
    folder.mkdir(parents=True)
    (folder / 'one').write_bytes(made())
    (folder / 'one.since').write_bytes(since.encode(
        since.Since({1}, {})))
    (folder / ('one.since.' + '1f' * 8)).write_bytes(since.encode(
        since.Since({0}, {})))
    newer = b'newer'
    builder = bundle.Builder({})
    builder.add(record(3, newer, '1700000001.00000'), newer)
    (folder / 'two').write_bytes(builder.finish())
    (folder / 'other').write_bytes(b'no bundle')
    tool = tmp_path / 'tool.py'
    tool.write_bytes(pathlib.Path(bundles.__file__).read_bytes())
    out = tmp_path / 'out'
    done = subprocess.run(
        [sys.executable, '-I', '-S', str(tool), 'unbundle',
         str(tmp_path / 'bucket'), '--to', str(out)],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert (done.returncode, done.stdout) == (0, '2 objects\n')
    files = {os.path.relpath(os.path.join(folder, name), out): pathlib.Path(
        folder, name).read_bytes()
        for folder, _, names in os.walk(out) for name in names}
    assert files == {'a/c/dir/o2': BODIES[2], 'a/c/dir/o3': newer}


def test_what_it_bundles_the_gateway_can_read(tmp_path):
    source = tmp_path / 'in'
    (source / 'dir').mkdir(parents=True)
    bodies = {'dir/%d' % n: b'%d' % n * 4000 for n in range(20)}
    for name, body in bodies.items():
        (source / name).write_bytes(body)
    assert bundles.main([
        'bundle', str(source), '--to', str(tmp_path / 'to'), '--account',
        'AUTH_x', '--container', 'c', '--class-id', '5', '--bytes',
        '40000']) == 0
    members = {}
    files = [os.path.join(folder, name) for folder, _, names
             in os.walk(tmp_path / 'to') for name in names]
    assert len(files) > 2
    for path in files:
        raw = pathlib.Path(path).read_bytes()
        head = bundle.read_head(raw)[0]
        assert (head['account'], head['container']) == ('AUTH_x', 'c')
        for member in bundle.scan(raw):
            assert of_record(member.record).class_map_text == '5'
            members[member.record['metadata']['name']] = raw[
                member.offset:member.offset + member.stored_bytes]
    assert members == {'/AUTH_x/c/' + name: body
                       for name, body in bodies.items()}


def test_a_name_that_leads_out_of_the_folder_is_refused(tmp_path):
    (tmp_path / 'in').mkdir()
    (tmp_path / 'in' / 'evil').write_bytes(made(
        [b'boo'], name='/../../../evil'))
    assert bundles.main(['unbundle', str(tmp_path / 'in'), '--to',
                         str(tmp_path / 'deep' / 'out')]) == 1
    assert not (tmp_path / 'evil').exists()
