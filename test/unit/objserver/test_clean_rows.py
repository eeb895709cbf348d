"""Classes leave container databases before an uninstall."""

from __future__ import annotations

import os
from typing import Any, Dict, List, Tuple

import pytest
from swift.common.storage_policy import POLICIES
from swift.common.utils import (
    Timestamp, hash_path, override_bytes_from_content_type, storage_directory)
from swift.container.backend import DATADIR, ContainerBroker

from swift_dss.cli import main
from swift_dss.objserver.listed import cleaning

POLICY = int(POLICIES.default)
#: Content types as rows have them, and as a stock listing shows them before
#: and afterwards.
KINDS = [
    ('a/b', 'a/b', 'a/b'),
    ('a/b;x-dss-class=26', 'a/b;x-dss-class=26', 'a/b'),
    ('a/b;charset=x;x-dss-class=3;swift_bytes=7',
     'a/b;charset=x;x-dss-class=3', 'a/b;charset=x'),
    ('a/b;swift_bytes=7;x-dss-class=3', 'a/b;x-dss-class=3', 'a/b'),
    ('a/b;x-dss-class=9;c=d', 'a/b;x-dss-class=9;c=d',
     'a/b;x-dss-class=9;c=d'),
    ('a/b;x-dss-class=9;x-dss-class=0', 'a/b;x-dss-class=9;x-dss-class=0',
     'a/b;x-dss-class=9;x-dss-class=0')]


def at(seconds: int) -> str:
    return Timestamp(seconds).internal


def made(devices: Any, device: str = 'd1', container: str = 'c') -> Any:
    hashed = hash_path('a', container)
    folder = os.path.join(str(devices), device,
                          storage_directory(DATADIR, '0', hashed))
    os.makedirs(folder)
    broker: Any = ContainerBroker(
        os.path.join(folder, hashed + '.db'), account='a',
        container=container)
    broker.initialize(at(1), POLICY)
    return broker


def put(broker: Any, name: str, kind: str, data_at: int = 10,
        type_at: int = 0, meta_at: int = 0, deleted: bool = False) -> None:
    broker.put_object(
        name, at(data_at), 5, kind, 'e' * 32, int(deleted), POLICY,
        ctype_timestamp=at(type_at or data_at),
        meta_timestamp=at(meta_at or type_at or data_at))


def listed(broker: Any) -> List[Dict[str, Any]]:
    """As Swift's own container server has the rows."""
    rows = []
    for name, modified, size, kind, etag in broker.list_objects_iter(
            100, None, None, None, None, storage_policy_index=POLICY):
        row = {'name': name, 'last_modified': modified, 'bytes': size,
               'content_type': kind, 'hash': etag}
        override_bytes_from_content_type(row)
        rows.append(row)
    return rows


def state(broker: Any) -> Tuple[Any, Any]:
    """What replicas compare, and what they have."""
    info = broker.get_info()
    return info['hash'], [
        {key: value for key, value in row.items() if key != 'ROWID'}
        for row in broker.get_objects()]


@pytest.fixture
def devices(tmp_path: Any) -> Any:
    return tmp_path / 'srv'


def filled(devices: Any, device: str = 'd1') -> Any:
    broker = made(devices, device)
    for number, (kind, _before, _after) in enumerate(KINDS):
        put(broker, 'o%d' % number, kind)
    put(broker, 'posted', 'a/b;x-dss-class=4', 10, 20, 30)
    put(broker, 'gone', 'a/b;x-dss-class=4', 11, deleted=True)
    return broker


def test_a_stock_listing_has_the_content_types_of_clients(
        devices: Any) -> None:
    broker = filled(devices)
    before = listed(broker)
    assert [row['content_type'] for row in before] == [
        kind for _kind, kind, _ in KINDS] + ['a/b;x-dss-class=4']
    counts = cleaning.clean(str(devices), writes=True)
    after = listed(broker)
    assert [row['content_type'] for row in after] == [
        kind for _kind, _, kind in KINDS] + ['a/b']
    assert (counts.databases, counts.rows, counts.kept) == (1, 4, 2)
    assert not counts.skipped
    for row in before + after:
        del row['content_type']
    assert after == before


def test_a_second_run_changes_nothing(devices: Any) -> None:
    broker = filled(devices)
    cleaning.clean(str(devices), writes=True)
    first = state(broker)
    counts = cleaning.clean(str(devices), writes=True)
    assert state(broker) == first
    assert (counts.rows, counts.kept) == (0, 2)


def test_counting_writes_nothing(devices: Any) -> None:
    broker = filled(devices)
    before = state(broker)
    assert cleaning.clean(str(devices), writes=False).rows == 4
    assert state(broker) == before


def test_replicas_make_the_same_of_it(devices: Any) -> None:
    first, third = filled(devices / 'n1'), filled(devices / 'n3')
    second = filled(devices / 'n2')
    cleaning.clean(str(devices / 'n1'), writes=True)
    cleaning.clean(str(devices / 'n2'), writes=True)
    assert state(first) == state(second)
    # Replication brings it to one that is not cleaned yet.
    third.merge_items(first.get_items_since(-1, 100), source='first')
    assert state(third) == state(first)
    cleaning.clean(str(devices / 'n3'), writes=True)
    assert state(third) == state(first)


def test_a_late_update_does_not_bring_a_class_back(devices: Any) -> None:
    broker = filled(devices)
    cleaning.clean(str(devices), writes=True)
    put(broker, 'o1', KINDS[1][0])
    put(broker, 'posted', 'a/b;x-dss-class=4', 10, 20, 40)
    rows = {row['name']: row for row in listed(broker)}
    assert rows['o1']['content_type'] == 'a/b'
    assert rows['posted']['content_type'] == 'a/b'
    assert rows['posted']['last_modified'] == at(40)
    put(broker, 'o1', 'c/d', 50)
    assert {row['name']: row for row in listed(broker)}[
        'o1']['content_type'] == 'c/d'


def test_rows_that_wait_for_their_commit_are_cleaned(devices: Any) -> None:
    broker = made(devices)
    put(broker, 'o', 'a/b;x-dss-class=4')
    assert os.path.getsize(broker.pending_file)
    cleaning.clean(str(devices), writes=True)
    assert [row['content_type'] for row in listed(broker)] == ['a/b']


def test_more_rows_than_are_read_at_a_time(
        devices: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(cleaning, '_ROWS', 2)
    broker = filled(devices)
    assert cleaning.clean(str(devices), writes=True).rows == 4
    assert cleaning.clean(str(devices), writes=True).rows == 0
    assert len(listed(broker)) == len(KINDS) + 1


@pytest.mark.parametrize('words, said', [
    (['count'], '1 databases: 4 rows have a class, 2 keep a content type '
     'that looks so\n'),
    (['clean'], '1 databases: 4 rows had a class, 2 keep a content type that '
     'looks so\n'),
    (['clean', '--json'], '{\n  "databases": 1,\n  "kept": 2,\n  "rows": 4,\n'
     '  "skipped": []\n}\n')])
def test_the_command_says_what_it_did(
        devices: Any, capsys: Any, words: Any, said: str) -> None:
    filled(devices)
    assert main.main(['listings', *words, '--devices', str(devices)]) == 0
    assert capsys.readouterr().out == said


def test_the_command_says_what_it_left_out(
        devices: Any, capsys: Any) -> None:
    sharding = made(devices)
    sharding.enable_sharding(Timestamp(99))
    sharding.set_sharding_state()
    assert main.main(['listings', 'clean', '--devices', str(devices)]) == 1
    assert '\nleft out: %s' % os.path.dirname(sharding.db_file) in \
        capsys.readouterr().out
    assert main.main(['listings', 'clean', '--devices', '/none']) == 78
    assert 'there is no such folder' in capsys.readouterr().err


def test_a_database_that_cannot_be_read_does_not_end_the_run(
        devices: Any) -> None:
    broken = made(devices, 'd1', 'broken')
    with open(broken.db_file, 'wb') as target:
        target.write(b'no database' * 1000)
    sharding = made(devices, 'd1', 'sharding')
    put(sharding, 'o', 'a/b;x-dss-class=4')
    sharding.enable_sharding(Timestamp(99))
    sharding.set_sharding_state()
    broker = filled(devices, 'd2')
    counts = cleaning.clean(str(devices), writes=True)
    assert counts.databases == 1 and counts.rows == 4
    assert sorted(map(os.path.dirname, counts.skipped)) == sorted(
        map(os.path.dirname, (broken.db_file, sharding.db_file)))
    assert listed(broker)[1]['content_type'] == 'a/b'
