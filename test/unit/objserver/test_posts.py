"""POSTs of metadata and of classes: neither loses the other."""

from __future__ import annotations

import glob
import multiprocessing
import os
import random
import time
from typing import Any, Dict, List

import eventlet
import pytest
from eventlet import hubs, tpool
from support.nodes.three_replicas import Proxy, Replica, replicate, settle
from support.rigs.dss_disk import Disk
from swift.common.swob import Request

from swift_dss.objserver import posts
from swift_dss.proxy.filter import DssMiddleware
from swift_dss.tier.local.metadata import of_version
from swift_dss.wire import names, registers

NAME = '/a/c/o'
#: ``DSS_POST_RACES=10000`` runs as many; a race takes some 25 ms.
RACES = int(os.environ.get('DSS_POST_RACES', '100'))


@pytest.fixture
def replicas(scratch_folder: str) -> List[Replica]:
    return [Replica(os.path.join(scratch_folder, 'r%d' % number))
            for number in range(3)]


def at(number: int) -> str:
    return '%010d.00000' % (1000000000 + number)


def post_meta(replica: Replica, when: int, value: str = '',
              **headers: str) -> int:
    said = {key.replace('_', '-'): text for key, text in headers.items()}
    return int(replica.ask('POST', NAME, dict({
        'X-Timestamp': at(when), 'X-Object-Meta-M': value or str(when)},
        **said)).status_int)


def post_class(replica: Replica, when: int, class_id: int = 0,
               **headers: str) -> int:
    said = {key.replace('_', '-'): text for key, text in headers.items()}
    return int(replica.ask('POST', NAME, dict({
        'X-Timestamp': '0000000001.00000', names.META_AT: registers.NEVER,
        names.MAP_AT: at(when),
        names.TRANSIENT_MAP: str(class_id or when)},
        **said)).status_int)


def state(replica: Replica) -> Any:
    metadata = replica.metadata(NAME)
    return metadata.get('X-Object-Meta-M'), metadata.get(names.TRANSIENT_MAP)


def test_a_class_set_after_an_object_expired_stops_no_replica(
        replicas: List[Replica]) -> None:
    """The replica that missed the POST of X-Delete-At takes the class; the
    others merge both, under a time that is later than X-Delete-At."""
    for replica in replicas:
        replica.put(NAME, X_Timestamp=at(0))
    for replica in replicas[:2]:
        assert post_meta(replica, 10, X_Delete_At=str(
            1000000060)) == 202
    assert post_class(replicas[2], 100, 5) == 202
    settle(replicas, NAME)
    for replica in replicas:
        metadata = replica.metadata(NAME)
        assert metadata['X-Delete-At'] == '1000000060'
        assert state(replica) == ('10', '5')
        assert replica.ask('GET', NAME, {}).status_int == 404


def test_a_client_may_still_not_delete_in_the_past(
        replicas: List[Replica]) -> None:
    replicas[0].put(NAME, X_Timestamp=at(0))
    assert post_meta(replicas[0], 10, X_Delete_At='1000000005') == 400


def test_a_class_leaves_metadata_and_the_reverse(
        replicas: List[Replica]) -> None:
    replica = replicas[0]
    replica.put(NAME, X_Timestamp=at(0), X_Object_Meta_M='put',
                X_Delete_At='3000000000')
    assert post_class(replica, 5) == 202
    assert state(replica) == ('put', '5')
    assert replica.metadata(NAME)['X-Delete-At'] == '3000000000'
    assert post_meta(replica, 3) == 202  # older than the class
    assert state(replica) == ('3', '5')
    assert 'X-Delete-At' not in replica.metadata(NAME)
    assert post_meta(replica, 9) == 202
    assert state(replica) == ('9', '5')
    assert post_class(replica, 7) == 202  # older than the metadata
    assert state(replica) == ('9', '7')
    assert len(replica.meta_names(NAME)) == 1


def test_what_is_old_is_refused(replicas: List[Replica]) -> None:
    replica = replicas[0]
    replica.put(NAME, X_Timestamp=at(2), X_Object_Meta_M='put')
    assert post_meta(replica, 1) == post_class(replica, 1) == 409
    assert post_class(replica, 5) == post_meta(replica, 4) == 202
    before = replica.meta_names(NAME)
    assert post_class(replica, 4, 9) == post_class(replica, 5, 9) == 409
    assert post_meta(replica, 3) == post_meta(replica, 4, 'other') == 409
    assert state(replica) == ('4', '5')
    assert replica.meta_names(NAME) == before


def test_the_refusal_says_that_classes_are_known(
        replicas: List[Replica]) -> None:
    replica = replicas[0]
    replica.put(NAME, X_Timestamp=at(2))
    answer = replica.ask('POST', NAME, {
        'X-Timestamp': '1', names.META_AT: registers.NEVER,
        names.MAP_AT: at(1), names.TRANSIENT_MAP: '1'})
    assert answer.status_int == 409 and names.MAP_AT in answer.headers


def test_stock_swift_refuses_a_class_and_keeps_its_metadata(
        scratch_folder: str) -> None:
    replica = Replica(os.path.join(scratch_folder, 's'), is_stock=True)
    replica.put(NAME, X_Timestamp=at(0), X_Object_Meta_M='put')
    assert post_class(replica, 5) == 409
    assert state(replica) == ('put', None)


def test_a_policy_of_stock_swift_on_our_server_does_too(
        scratch_folder: str) -> None:
    replica = Replica(os.path.join(scratch_folder, 's'), has_stock_policy=True)
    replica.put(NAME, X_Timestamp=at(0), X_Object_Meta_M='put')
    assert post_class(replica, 5) == 409
    assert state(replica) == ('put', None)


def test_a_post_that_deletes_later_is_not_undone_by_a_class(
        replicas: List[Replica], monkeypatch: Any) -> None:
    replica = replicas[0]
    told: List[Any] = []
    monkeypatch.setattr(replica.server, 'delete_at_update',
                        lambda *args, **_kwargs: told.append(args[:2]))
    replica.put(NAME, X_Timestamp=at(0), X_Delete_At='3000000000')
    del told[:]
    assert post_class(replica, 5) == 202
    assert told == []
    assert post_meta(replica, 6) == 202
    assert told == [('DELETE', 3000000000)]


def test_content_types_are_a_register_of_their_own(
        replicas: List[Replica]) -> None:
    replica = replicas[0]
    replica.put(NAME, X_Timestamp=at(0))
    assert post_class(replica, 5, Content_Type='x/class') == 202
    assert post_meta(replica, 6) == 202
    assert replica.metadata(NAME)['Content-Type'] == 'x/class'
    assert post_meta(replica, 7, Content_Type='x/meta') == 202
    assert post_class(replica, 8) == 202
    assert replica.metadata(NAME)['Content-Type'] == 'x/meta'
    assert state(replica) == ('7', '8')


def test_a_new_version_starts_anew(replicas: List[Replica]) -> None:
    replica = replicas[0]
    replica.put(NAME, X_Timestamp=at(0), X_Object_Meta_M='put')
    post_class(replica, 5)
    replica.put(NAME, X_Timestamp=at(6), X_Object_Meta_M='new')
    assert state(replica) == ('new', None)
    assert replica.meta_names(NAME) == []


@pytest.mark.parametrize('first, second, left', [
    (post_class, post_meta, ('9', None)),
    (post_meta, post_class, ('new', '9'))])
def test_a_put_between_two_posts_voids_the_older_one(
        replicas: List[Replica], first: Any, second: Any, left: Any) -> None:
    """A replica that missed a PUT gets it after both POSTs."""
    replica, other, _third = replicas
    for member in (replica, other):
        member.put(NAME, X_Timestamp=at(0), X_Object_Meta_M='put')
    assert first(replica, 5) == second(replica, 9) == 202
    replica.put(NAME, X_Timestamp=at(7), X_Object_Meta_M='new')
    assert state(replica) == left
    other.put(NAME, X_Timestamp=at(7), X_Object_Meta_M='new')
    assert second(other, 9) == 202
    settle([replica, other], NAME)
    assert state(replica) == state(other) == left


@pytest.mark.parametrize('first, second', [
    (post_class, post_meta), (post_meta, post_class), (post_meta, post_meta)])
def test_a_put_between_two_posts_voids_the_type_of_the_older_one(
        replicas: List[Replica], first: Any, second: Any) -> None:
    """Swift keeps it in the file of the newer one. Readers pass over it, and
    so does what S3 is told of the version."""
    replica = replicas[0]
    replica.put(NAME, X_Timestamp=at(0))
    assert first(replica, 5, Content_Type='x/old') == second(replica, 9) == 202
    replica.put(NAME, X_Timestamp=at(7))
    assert len(replica.meta_names(NAME)) == 1
    assert replica.metadata(NAME)['Content-Type'] == 'a/b'
    path, = glob.glob(os.path.join(replica.folder(NAME), '*.data'))
    with open(path, 'rb') as source:
        read = of_version(path, source.fileno())
    assert read.headers['Content-Type'] == 'a/b'
    assert read.headers.get('X-Object-Meta-M') == replica.metadata(
        NAME).get('X-Object-Meta-M')


def test_what_a_void_post_said_of_the_end_does_not_count(
        replicas: List[Replica]) -> None:
    replica = replicas[0]
    replica.put(NAME, X_Timestamp=at(0))
    post_meta(replica, 5, X_Delete_At='3000000000')
    post_class(replica, 20)
    replica.put(NAME, X_Timestamp=at(15), X_Object_Meta_M='new')
    assert state(replica) == ('new', '20')
    assert 'X-Delete-At' not in replica.metadata(NAME)


@pytest.mark.parametrize('seed', range(40))
def test_replicas_that_saw_other_posts_agree(
        replicas: List[Replica], seed: int) -> None:
    dice = random.Random(seed)
    when = list(range(1, 9))
    operations = [(dice.choice((post_meta, post_class)), number)
                  for number in when]
    for replica in replicas:
        replica.put(NAME, X_Timestamp=at(0), X_Object_Meta_M='put')
        seen = [operation for operation in operations if dice.random() < 0.7]
        dice.shuffle(seen)
        for operation, number in seen:
            operation(replica, number)
    known = [state(replica) for replica in replicas]
    settle(replicas, NAME)
    metas = [int(meta) for meta, _ in known if meta != 'put']
    classes = [int(class_id) for _, class_id in known if class_id]
    wanted = (str(max(metas)) if metas else 'put',
              str(max(classes)) if classes else None)
    assert {state(replica) for replica in replicas} == {wanted}, seed
    assert len({tuple(replica.meta_names(NAME)) for replica in replicas}) == 1


def test_stock_replicas_take_what_ours_know(
        replicas: List[Replica], scratch_folder: str) -> None:
    stock = Replica(os.path.join(scratch_folder, 's'), is_stock=True)
    both = [replicas[0], stock]
    for replica in both:
        replica.put(NAME, X_Timestamp=at(0), X_Object_Meta_M='put')
    assert post_class(replicas[0], 5) == 202
    assert post_class(stock, 5) == 409
    assert post_meta(replicas[0], 3) == post_meta(stock, 3) == 202
    settle(both, NAME)
    assert {state(replica) for replica in both} == {('3', '5')}
    # As the proxy sends it where it cannot know who is stock.
    for replica in both:
        assert post_meta(replica, 9, **{
            names.TRANSIENT_MAP: '5', names.MAP_AT: at(5)}) == 202
    settle(both, NAME)
    assert {state(replica) for replica in both} == {('9', '5')}


def test_a_file_of_an_older_version_merges(
        replicas: List[Replica], scratch_folder: str) -> None:
    """Older versions wrote metadata and class at one time."""
    old = Replica(os.path.join(scratch_folder, 's'), is_stock=True)
    old.put(NAME, X_Timestamp=at(0))
    post_meta(old, 5, 'old', **{names.TRANSIENT_MAP: '4'})
    replica = replicas[0]
    replica.put(NAME, X_Timestamp=at(0))
    assert post_class(replica, 7) == 202
    replicate(old, replica, NAME)
    assert state(replica) == ('old', '7') or \
        replicate(old, replica, NAME) is None
    settle([old, replica], NAME)
    assert post_meta(replica, 6) == 202
    settle([old, replica], NAME)
    assert state(replica) == state(old) == ('6', '7')


def test_fragments_have_registers_too(disk: Disk) -> None:
    disk.put('o', b'x' * 300, timestamp=at(0), policy=1, frag_index=2)
    for metadata in (
            {'X-Timestamp': at(5), names.TRANSIENT_MAP: '5',
             names.META_AT: registers.NEVER},
            {'X-Timestamp': at(3), 'X-Object-Meta-M': '3'}):
        disk_file = disk.open_file('o', policy=1)
        with disk_file.open():
            disk_file.write_metadata(metadata)
    with disk.open_file('o', policy=1).open() as disk_file:
        after = disk_file.get_metadata()
    assert after['X-Object-Meta-M'] == '3'
    assert after[names.TRANSIENT_MAP] == '5'


def test_workers_wait_for_one_another(
        replicas: List[Replica], monkeypatch: Any) -> None:
    """What another worker wrote after we looked is kept."""
    replica = replicas[0]
    replica.put(NAME, X_Timestamp=at(0), X_Object_Meta_M='put')
    real = posts.Post.presented
    inside: List[int] = []

    def presented(self: Any, *args: Any) -> Any:
        shown = real(self, *args)
        if not inside:
            inside.append(0)
            inside[0] = post_class(replica, 5)
        return shown
    monkeypatch.setattr(posts.Post, 'presented', presented)
    assert post_meta(replica, 4) == 202
    assert inside == [202]
    assert state(replica) == ('4', '5')


def test_the_lock_is_held_while_the_file_is_written(
        replicas: List[Replica], monkeypatch: Any) -> None:
    replica = replicas[0]
    replica.put(NAME, X_Timestamp=at(0), X_Object_Meta_M='put')
    monkeypatch.setattr(posts, '_LOCK_SECONDS', 0.05)
    with posts.lock(replica.folder(NAME)):
        assert post_class(replica, 5) == 503
    assert post_class(replica, 5) == 202


def test_worker_processes_lose_nothing_either(
        replicas: List[Replica], monkeypatch: Any) -> None:
    """Two processes write to one object at a time, many times."""
    replica = replicas[0]
    replica.put(NAME, X_Timestamp=at(0), X_Object_Meta_M='put')
    real = posts.merged

    def slowly(*args: Any) -> Any:
        answer = real(*args)
        time.sleep(0.002)
        return answer
    monkeypatch.setattr(posts, 'merged', slowly)
    context = multiprocessing.get_context('fork')
    gate = context.Barrier(2)
    lost = context.Value('i', 0)

    def worker(post: Any, place: int) -> None:
        hubs.use_hub()
        for when in range(1, 41):
            gate.wait(30)
            assert post(replica, when) == 202
            gate.wait(30)
            lost.value += state(replica)[place] != str(when)
    children = [context.Process(target=worker, args=args) for args in (
        (post_meta, 0), (post_class, 1))]
    # A fork has none of its parent's threads, and starts its own if its
    # parent has none.
    tpool.killall()
    for child in children:
        child.start()
    for child in children:
        child.join(60)
        child.kill()
    assert [child.exitcode for child in children] == [0, 0]
    assert lost.value == 0


def test_no_race_loses_metadata_or_a_class(
        green: None, replicas: List[Replica]) -> None:
    """Two clients at a time through the filter, each POST reaching two or
    three replicas in an order of its own."""
    lost, both = _races(replicas, RACES)
    print('figure: %d of %d races of POSTs lost one, in %d both were taken'
          % (lost, RACES, both))
    assert not lost, '%d of %d' % (lost, RACES)
    # Races in which one was refused prove nothing.
    assert both > 0.9 * RACES, both


def test_stock_object_servers_lose_some(
        green: None, scratch_folder: str) -> None:
    """Or the test above could not see a loss."""
    lost, _both = _races([
        Replica(os.path.join(scratch_folder, 's%d' % number), is_stock=True)
        for number in range(3)], 40)
    assert lost


def _races(replicas: List[Replica], count: int) -> Any:
    """(races that lost what was acknowledged, races where both were)."""
    dice = random.Random(13)
    proxy = Proxy(replicas, dice)
    dss = DssMiddleware(proxy, {}, _Logger())
    lost = both = 0
    for number in range(count):
        name = '/a/c/%d' % number
        for replica in replicas:
            replica.put(name, X_Timestamp=proxy.now(), X_Object_Meta_M='put')
        codes = _race(dss, dice, name)
        settle(replicas, name)
        lost += any(
            codes['meta'] == 202
            and metadata.get('X-Object-Meta-M') != 'posted'
            or codes['class'] == 202
            and metadata.get(names.TRANSIENT_MAP) != '7'
            for metadata in [replica.metadata(name) for replica in replicas])
        both += codes == {'meta': 202, 'class': 202}
    return lost, both


def _race(dss: Any, dice: random.Random, name: str) -> Dict[str, int]:
    codes: Dict[str, int] = {}

    def client(kind: str, headers: Dict[str, str]) -> None:
        for _step in range(dice.randrange(4)):
            eventlet.sleep(0)
        codes[kind] = Request.blank(
            '/v1' + name, method='POST',
            headers=headers).get_response(dss).status_int
    both = [eventlet.spawn(client, 'meta', {'X-Object-Meta-M': 'posted'}),
            eventlet.spawn(client, 'class', {'X-DSS-Object-Class': '7'})]
    dice.shuffle(both)
    for thread in both:
        thread.wait()
    return codes


class _Logger:
    def increment(self, *_args: Any) -> None:
        pass

    debug = info = warning = error = exception = increment


def test_a_file_that_a_put_has_removed_is_not_merged(
        replicas: List[Replica]) -> None:
    """A power cut may bring it back: its folder was not synced."""
    replica = replicas[0]
    replica.put(NAME, X_Timestamp=at(0))
    assert post_class(replica, 4, 5) == 202
    assert post_meta(replica, 3, Content_Type='a/old') == 202
    folder = replica.folder(NAME)
    name, = replica.meta_names(NAME)
    kept = os.path.join(folder, os.pardir, 'kept')
    os.link(os.path.join(folder, name), kept)
    replica.put(NAME, X_Timestamp=at(6))
    assert not replica.meta_names(NAME)
    os.rename(kept, os.path.join(folder, name))
    assert post_meta(replica, 7) == 202
    after, = replica.meta_names(NAME)
    assert after == at(7) + '.meta'
    assert state(replica) == ('7', None)
