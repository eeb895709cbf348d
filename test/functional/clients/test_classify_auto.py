"""Uploads whose rule says ``classify = auto``, on a running cluster.

One daemon has all devices, and so hears of three replicas of each upload: it
does the work once, and sees twice that it is done.
"""

from __future__ import annotations

import contextlib
import io
import os
import zipfile
from typing import Any, Dict, Iterator, List, Optional, Tuple

import pytest
from support import pattern, tier, wait_until
from support.nodes.tuned_cluster import TunedCluster

pytestmark = pytest.mark.cluster

BRONZE, SILVER, GOLD = '3', '26', '25'
RULES = '''
[rule:tables]
class = %s
classify = auto
hot = gold
name = *.parquet, *.zip, *.endless
''' % BRONZE
#: A classifier as another package brings it: this file keeps it busy until
#: it is killed. It sleeps, as CPU time has a wall of its own.
ENDLESS = '''
import time
from swift_dss.client.formats.contract import Format


def hot(reader, wish):
    time.sleep(3600)
    return ()


FORMAT = Format('endless', lambda reader: reader.read(0, 4) == b'HANG', hot)
'''
#: Longer than a child's imports on a busy machine.
TIMEOUT_SECONDS = 6


class Classifying(TunedCluster):
    """A cluster whose daemon reads uploads, with one classifier more."""

    options = {'tier': {
        'classify': 'true', 'classify_after_seconds': '1',
        'classify_next_seconds': '1',
        'classify_seconds': str(TIMEOUT_SECONDS)}}

    def _configure(self) -> None:
        super()._configure()
        with open(self.conf.path('etc', 'dss-rules.conf'), 'a',
                  encoding='ascii') as target:
            target.write(RULES)

    def spawn(self, name: str, *arguments: Any, **options: Any) -> int:
        if name == 'tierd':
            options['extra_env'] = {'PYTHONPATH': os.pathsep.join(filter(
                None, (_package(self.conf.path('plugin')),
                       os.environ.get('PYTHONPATH'))))}
        return super().spawn(name, *arguments, **options)


def _package(folder: str) -> str:
    about = os.path.join(folder, 'endless-1.dist-info')
    os.makedirs(about, exist_ok=True)
    for path, text in (
            (os.path.join(folder, 'endless.py'), ENDLESS),
            (os.path.join(about, 'METADATA'), 'Name: endless\nVersion: 1\n'),
            (os.path.join(about, 'entry_points.txt'),
             '[swift_dss.classifiers]\nendless = endless:FORMAT\n')):
        with open(path, 'w', encoding='ascii') as target:
            target.write(text)
    return folder


@pytest.fixture(scope='module')
def made() -> Iterator[Classifying]:
    with Classifying.started('dss-auto-', 19080) as new:
        yield new


@pytest.fixture(scope='module')
def client(made: Classifying) -> Iterator[Any]:
    with contextlib.closing(made.connection()) as connection:
        connection.put_container('auto')
        yield connection


def put(client: Any, name: str, body: bytes, **headers: str) -> None:
    client.put_object('auto', name, body, headers={
        key.replace('_', '-'): value for key, value in headers.items()})


def shown(client: Any, name: str) -> Tuple[Optional[str], List[List[str]]]:
    """The class of an object, and (offset, bytes, class) of its ranges."""
    headers = client.head_object('auto', name)
    ranges = headers.get('x-dss-range-class', '')
    return headers.get('x-dss-object-class'), [
        part.split('-') for part in ranges.split(',') if part]


def outcomes(made: Classifying) -> Dict[str, int]:
    counts: Dict[str, int] = tier(made, 'status')['classify']['outcomes']
    return counts


def after(made: Classifying, before: Dict[str, int], **new: int) -> None:
    """Wait until just these outcomes are added."""
    expected = dict(before)
    for name, count in new.items():
        expected[name] = expected.get(name, 0) + count
    shown_last: Dict[str, int] = {}

    def counted() -> bool:
        shown_last.clear()
        shown_last.update(outcomes(made))
        return sum(shown_last.values()) >= sum(expected.values())
    wait_until(counted, 60, 'as many as %r' % expected)
    assert shown_last == expected


def parquet() -> Tuple[bytes, int]:
    """A table, and where its footer begins."""
    arrow = pytest.importorskip('pyarrow')
    import pyarrow.parquet
    out = io.BytesIO()
    pyarrow.parquet.write_table(
        arrow.table({'a': list(range(200000)),
                     'b': [str(n * n) for n in range(200000)]}),
        out, row_group_size=50000)
    raw = out.getvalue()
    return raw, len(raw) - 8 - int.from_bytes(raw[-8:-4], 'little')


def archive() -> Tuple[bytes, int]:
    """A ZIP, and where its central directory begins."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, 'w') as target:
        for number in range(40):
            target.writestr('m%d' % number, pattern(20000, str(number)))
        start = target.start_dir
    return out.getvalue(), start


def test_the_end_that_opens_a_file_gets_its_class_by_itself(
        made: Classifying, client: Any) -> None:
    files = {'t.parquet': parquet(), 'a.zip': archive()}
    before = outcomes(made)
    for name, (body, _) in files.items():
        put(client, name, body)
        assert shown(client, name)[0] == BRONZE
    after(made, before, classified=2, given=4)
    for name, (body, index_at) in files.items():
        class_id, ranges = shown(client, name)
        assert class_id == BRONZE
        assert {given for _, _, given in ranges} == {GOLD}
        offset, length, _ = ranges[-1]
        assert int(offset) <= index_at
        assert int(offset) + int(length) == len(body)
        assert sum(int(length) for _, length, _ in ranges) < len(body) // 4
        assert client.get_object('auto', name)[1] == body


def test_a_clients_own_class_stays(made: Classifying, client: Any) -> None:
    """One that came with the upload, and one that followed it at once."""
    body, _ = archive()
    before = outcomes(made)
    put(client, 'own.zip', body, X_DSS_Object_Class='silver')
    put(client, 'ranges.zip', body, X_DSS_Range_Class='0-64-' + SILVER)
    put(client, 'posted.zip', body)
    client.post_object('auto', 'posted.zip',
                       {'X-DSS-Object-Class': 'silver'})
    after(made, before, given=3)
    assert shown(client, 'own.zip') == (SILVER, [])
    assert shown(client, 'posted.zip') == (SILVER, [])
    assert shown(client, 'ranges.zip') == (
        BRONZE, [['0', '64', SILVER]])


def test_a_hostile_file_costs_its_timeout_and_no_more(
        made: Classifying, client: Any) -> None:
    body, _ = archive()
    before = outcomes(made)
    daemon = tier(made, 'status')['pid']
    put(client, 'a.endless', b'HANG' + pattern(5000))
    put(client, 'cut.zip', body[:-10])
    put(client, 'text.parquet', b'no table at all')
    put(client, 'after.zip', body)
    # Each is looked at once, by one device of three.
    after(made, before, timeout=1, bad=1, unknown=1, classified=1, given=8)
    for name in ('a.endless', 'cut.zip', 'text.parquet'):
        assert shown(client, name) == (BRONZE, [])
    assert shown(client, 'after.zip')[1]
    status = tier(made, 'status')
    assert status['pid'] == daemon
    assert status['classify']['waiting'] == 0
