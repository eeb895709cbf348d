"""Give bundles of a lost edge a keeper again.

A keeper marks dead members of a bundle and rewrites it. It MUST be exactly one
node, or two would drop each other's members: the node whose device is first in
the ring for the bundle's first live member. It takes all members over, also
those of other nodes.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Callable, List, Tuple

from swift_dss.core.version import VersionId
from swift_dss.gateway.bundle.book import Book, Member
from swift_dss.gateway.bundle.pack import group_name
from swift_dss.gateway.restore.catalog import Held, split
from swift_dss.wire import classmap

if TYPE_CHECKING:
    # It brings Swift's diskfile, which the daemon has no use for.
    from swift_dss.gateway.restore.write import Target


def group_of_held(held: Held) -> str:
    """The group of a member's bundle, as its packer called it."""
    class_map = classmap.decode(held.record.class_map_text)
    return group_name(
        split(held.name)[0], held.record.version.policy, tuple(sorted(
            class_map.class_ids(held.record.content_length))))


class Adoption:
    """Collects the members of one bundle after the other.

    :param book_of: the book of the shard that has a device; that of the node
        where it has no shards
    """

    def __init__(self, book_of: Callable[[str], Book], now: float) -> None:
        self._book_of = book_of
        self._now = now
        self._key = ''
        self._members: List[Tuple[Held, List[Target]]] = []
        #: Bundles that this node keeps from now on.
        self.adopted = 0

    def see(self, held: Held, targets: List[Target]) -> None:
        """One more version of the walk, and where on this node it is."""
        if held.remote.key != self._key:
            self.flush()
            self._key = held.remote.key
        if held.bundle is not None:
            self._members.append((held, targets))

    def flush(self) -> None:
        """No more members of the current bundle come."""
        members, self._members = self._members, []
        if not members:
            return
        first, targets = members[0]
        keeper = next((target for target in targets if target.rank == 0
                       or first.record.version.frag_index is not None), None)
        if keeper is None:
            return
        self._keep(keeper.device, members)
        self.adopted += 1

    def _keep(self, device: str,
              members: List[Tuple[Held, List[Target]]]) -> None:
        """Write a bundle into the book of the shard that has a device."""
        first, _targets = members[0]
        kept_by = self._book_of(device)
        assert first.bundle is not None
        head, size = first.bundle
        group = group_of_held(first)
        kept_by.adopt(
            first.remote.key, group, str(head.get('seal', '')), size,
            [member_of(held, group, *(
                (on[0].device, str(on[0].partition)) if on else ()))
             for held, on in members],
            self._now)
        for held, on in members:
            for target in on:
                # In the book of another shard it leans on the bundle.
                self._book_of(target.device).hold(replace(
                    held.record.version, device=target.device),
                    str(target.partition), first.remote.key)


def member_of(held: Held, group: str, device: str = '',
              partition: str = '') -> Member:
    """A member as the book has it.

    :param device: of this node that has it, or ''
    """
    version = held.record.version
    return Member(
        VersionId(device, version.policy, version.object_hash,
                  version.timestamp, version.frag_index), partition,
        'live', group, held.record.content_length, held.record.etag,
        0, held.number, held.remote.offset, held.stored_bytes)
