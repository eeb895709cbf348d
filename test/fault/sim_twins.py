"""The product as it once was, or as it must never be: wrong twins of guards.

Each takes one guard out. A simulation that does not find a twin proves
nothing about the guard.
"""

from __future__ import annotations

import os
from typing import Any, Callable, Dict, Set, Tuple

from swift_dss.core.residency import Residency
from swift_dss.gateway.bundle import book, follow
from swift_dss.gateway.collect import keys
from swift_dss.gateway.mend import witness
from swift_dss.gateway.restore import arrivals
from swift_dss.gateway.up import deletes
from swift_dss.io import capacity, newest, switch
from swift_dss.io.sums import blocks
from swift_dss.objserver import posts, writer
from swift_dss.objserver.reader import BytesUnavailable
from swift_dss.objserver.travel import adopting, sending
from swift_dss.strategy import agreement
from swift_dss.strategy.agreement import Verdict
from swift_dss.tier import policies
from swift_dss.tier.index.pins import NONE
from swift_dss.tier.keep.wishes import Doorkeeper
from swift_dss.tier.local.departures import Departures
from swift_dss.tier.local.local import Local
from swift_dss.tier.local.mover import Mover
from swift_dss.wire import classmap, layout


def one_replica_decides(patch: Any) -> None:
    """A shared key goes although other primaries show its version."""
    patch(deletes, 'of_key', lambda *_args, **_named: Verdict.DEAD)


def old_proof(patch: Any) -> None:
    """The last local bytes go on what the record says alone."""
    patch(witness.Asker, 'proven',
          lambda self, local: local.residency.remote)


def every_policy_is_ours(patch: Any) -> None:
    """The daemon tiers what stock Swift serves."""
    patch(policies.Policies, 'ours', frozenset((0, 1)))


def stubs_fetch_their_bytes(patch: Any) -> None:
    """A stub that arrives is read from S3."""
    def prove(self: Any, request: Any) -> Any:
        said = proven(self, request)
        remote = said.residency.remote
        self._client.get(remote.key, remote.offset,
                         said.residency.content_length).close()
        return said
    proven = arrivals.Arrivals.prove
    patch(arrivals.Arrivals, 'prove', prove)


def deletes_are_in_the_queue_alone(patch: Any) -> None:
    """Nobody looks for what a lost queue had to delete."""
    patch(keys.Collector, 'run', lambda self, wish, *rest:
          keys.Collected())


def posts_replace_all(patch: Any) -> None:
    """A POST writes what it sets, and nothing of what is there."""
    patch(posts, 'merged', lambda _disk_file, metadata, post=None:
          posts.Merged(dict(post.completed(metadata) if post else metadata),
                       True))


def a_class_cancels_an_expiry(patch: Any) -> None:
    """Swift's controller sees when to delete what a POST leaves alone."""
    def presented(self: Any, disk_file: Any, metadata: Any) -> Any:
        return dict(metadata, **{'X-Timestamp': before(
            self, disk_file, metadata)['X-Timestamp']})
    before = posts.Post.presented
    patch(posts.Post, 'presented', presented)


def an_expiry_is_for_ever(patch: Any) -> None:
    """A POST without X-Delete-At leaves the one that is there."""
    def merged(disk_file: Any, metadata: Any, post: Any = None) -> Any:
        after = before(disk_file, metadata, post)
        until = disk_file.get_datafile_metadata().get('X-Delete-At')
        if until:
            after.metadata.setdefault('X-Delete-At', until)
        return after
    before = posts.merged
    patch(posts, 'merged', merged)


class _NoSync:
    """``os``, whose fsync does nothing."""

    def __getattr__(self, name: str) -> Any:
        return getattr(os, name)

    def fsync(self, fd: int) -> None:
        """Nothing is durable."""


def new_files_are_not_synced(patch: Any) -> None:
    """A move exchanges names before the new file is on the disk."""
    patch(switch, 'os', _NoSync())


def writes_are_not_synced(patch: Any) -> None:
    """What a PUT has written to an HDD is not on it yet."""
    patch(writer, 'os', _NoSync())


def names_are_not_synced(patch: Any) -> None:
    """An HDD has the bytes of a version, and no name of them."""
    patch(capacity, 'sync_dir', lambda path: None)


def one_object_ends_its_session(patch: Any) -> None:
    """What cannot be read ends a session of ssync where it is reached."""
    def pack(*args: Any) -> Any:
        try:
            parcel = before(*args)
        except sending.Skipped as err:
            raise BytesUnavailable(str(err)) from err
        if not parcel.metadata:
            raise BytesUnavailable('it was to be left out')
        return parcel
    before = sending.pack
    patch(sending, 'pack', pack)


def nobody_is_asked(patch: Any) -> None:
    """What a disk does not give goes into quarantine, whoever has it."""
    patch(agreement, 'may_be_put_aside', lambda *_args: agreement.Aside.YES)


def fragments_are_not_looked_for(patch: Any) -> None:
    """A fragment that S3 has is rebuilt from the stubs of others."""
    patch(adopting, 'adopt', lambda *_args: adopting.Answer.SETTLED)


def a_book_forgets_what_was_lost(patch: Any) -> None:
    """The bundle of a fragment that went with its drive is not known."""
    patch(follow.Follower, '_is_lost', lambda *_args: False)


def one_fragment_is_enough(patch: Any) -> None:
    """A fragment is put aside because one other has been proven."""
    patch(Local, 'copies_needed', lambda self, version: 1)


class _AllDurable:
    """``wire.layout``, by which every fragment was committed."""

    def __getattr__(self, name: str) -> Any:
        return getattr(layout, name)

    def parse_data_file(self, name: str) -> Any:
        """As it is, but durable."""
        parts = layout.parse_data_file(name)
        return parts and parts[:2] + (True,)


def writes_count_before_they_are_committed(patch: Any) -> None:
    """A primary with a fragment of a PUT that failed says that it has
    something newer."""
    patch(newest, 'layout', _AllDurable())


def an_event_is_believed(patch: Any) -> None:
    """A PUT has its row though a DELETE has overtaken it meanwhile."""
    def row(self: Any, event: Any) -> Any:
        if not event.name or event.version.frag_index is not None:
            return None
        return self._row(
            event.version, event.partition, event.name,
            Residency.whole(event.size), classmap.decode(event.map_text),
            event.at, event.at, False, NONE)
    patch(Mover, 'row_of_put', row)


def only_newer_versions_replace(patch: Any) -> None:
    """A row stays where the disk has an older version."""
    def check(self: Any, row: Any) -> Any:
        newest = self._local.newest(row.version, row.partition)
        return (newest is None or newest >= row.version.timestamp) and \
            before(self, row)
    before = Departures.check
    patch(Departures, 'check', check)


def moves_write_where_readers_read(patch: Any) -> None:
    """A move changes the data file that is there, and does not put another
    one in its place. Blocks have no checksums, as an option allows."""
    def exchange(new: str, name: str) -> None:
        with open(new, 'rb') as source, open(name, 'r+b') as target:
            target.truncate(0)
            target.write(source.read())
            target.flush()
            said = {key: os.getxattr(source.fileno(), key)
                    for key in os.listxattr(source.fileno())}
            for key in set(os.listxattr(target.fileno())) - set(said):
                os.removexattr(target.fileno(), key)
            for key, value in said.items():
                os.setxattr(target.fileno(), key, value)
            os.fsync(target.fileno())
    patch(switch, 'exchange', exchange)
    patch(blocks, 'load', lambda *_args: None)


def who_died_before_its_bundle_is_its_first_member(patch: Any) -> None:
    """A version that was deleted while its bundle was packed keeps its row in
    the book, with the number that no member has yet."""
    patch(book, '_UNPLACED', 'members WHERE 0 AND bundle')


def who_is_kept_out_leaves_the_hdd(patch: Any) -> None:
    """A version that admission keeps off the SSD loses its bytes on the HDD,
    as if it had come in."""
    def lets_in(self: Any, newcomer: Any, *room: int) -> bool:
        if not judged(self, newcomer, *room):
            kept_out.add(newcomer.wish.version)
        return True

    def promote(self: Any, version: Any, partition: str,
                class_ids: Any = ()) -> Any:
        if version not in kept_out:
            return promoted(self, version, partition, class_ids)
        kept_out.remove(version)
        with self.mover.moving(version, partition) as (place, *_):
            place.capacity.remove(version)
        return None
    kept_out: Set[Any] = set()
    judged, promoted = Doorkeeper.lets_in, Local.promote
    patch(Doorkeeper, 'lets_in', lets_in)
    patch(Local, 'promote', promote)


#: Name to what takes the guard out.
TWINS: Dict[str, Callable[[Any], None]] = {
    'one replica decides': one_replica_decides,
    'old proof': old_proof,
    'every policy is ours': every_policy_is_ours,
    'stubs fetch their bytes': stubs_fetch_their_bytes,
    'deletes are in the queue alone': deletes_are_in_the_queue_alone,
    'posts replace all': posts_replace_all,
    'a class cancels an expiry': a_class_cancels_an_expiry,
    'an expiry is for ever': an_expiry_is_for_ever,
    'new files are not synced': new_files_are_not_synced,
    'writes are not synced': writes_are_not_synced,
    'names are not synced': names_are_not_synced,
    'fragments are not looked for': fragments_are_not_looked_for,
    'one fragment is enough': one_fragment_is_enough,
    'writes count before they are committed':
        writes_count_before_they_are_committed,
    'nobody is asked': nobody_is_asked,
    'one object ends its session': one_object_ends_its_session}
#: Those that cost bytes of S3 and break no promise of a run.
MOVING_TWINS: Dict[str, Callable[[Any], None]] = {
    'a book forgets what was lost': a_book_forgets_what_was_lost}
#: Those that matter in what one verb does alone, and the others never show.
VERBS_TWINS: Dict[str, Tuple[str, Callable[[Any], None]]] = {
    'an event is believed': ('race', an_event_is_believed),
    'only newer versions replace': ('put-back', only_newer_versions_replace),
    'moves write where readers read':
        ('get-slowly', moves_write_where_readers_read),
    'who is kept out leaves the HDD':
        ('come-back', who_is_kept_out_leaves_the_hdd),
    'who died before its bundle is its first member':
        ('interrupt', who_died_before_its_bundle_is_its_first_member)}
#: The seed that found each when it was last looked for; others are tried when
#: it does not, and the figures of the tests say which one does now.
FOUND_BY: Dict[str, int] = {
    'an expiry is for ever': 22,
    'writes count before they are committed': 36,
    'who died before its bundle is its first member': 41,
    'who is kept out leaves the HDD': 1,
    'one object ends its session': 121,
    'only newer versions replace': 125}
