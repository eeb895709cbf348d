"""Give the classes of a large object to its segments."""

from __future__ import annotations

from typing import (
    Any, Callable, Dict, Iterable, List, Mapping, NamedTuple,
    Optional, Sequence, Set, TypeVar)

from swift.common.swob import wsgi_to_str

from swift_dss.core.classes import ClassTable
from swift_dss.core.errors import TooManySpans
from swift_dss.core.limits import LARGE_CONCURRENCY
from swift_dss.core.spans import ClassMap
from swift_dss.io import waiting
from swift_dss.proxy import authorize
from swift_dss.proxy.large.reading import Whole
from swift_dss.proxy.large.segments import (
    Change, Segment, Segments, after, target_of)
from swift_dss.proxy.target import SEGMENTS_SUFFIX, Target
from swift_dss.proxy.work.rows import Unreachable
from swift_dss.proxy.wsgi import App, Env
from swift_dss.strategy.large import shares
from swift_dss.wire import classmap, names
from swift_dss.wire.large import claims
from swift_dss.wire.large.claims import owner_of

Maps = Dict[str, Optional[ClassMap]]
_Item = TypeVar('_Item')

#: Segments that are looked at before they are changed: some requests to each
#: of their servers, and a second of their work.
_AT_ONCE = 500
#: Others may change a segment meanwhile.
_ATTEMPTS = 4


class Work(NamedTuple):
    """A large object whose classes its segments are to have.

    :param owner: its manifest's name in claims
    :param at: timestamp of the decision
    :param is_late: done after the decision: segments that have its classes
        by now stay as they are
    :param is_newest: whether no newer decision about the large object is
        known. It is asked where a segment got newer classes
    :param path: the manifest's, ``/<container>/<object>``; '' if nobody needs
        to know
    """

    owner: str
    whole: Whole
    class_map: ClassMap
    at: str
    is_late: bool = False
    is_newest: Callable[[], bool] = lambda: True
    path: str = ''

    @classmethod
    def of(cls, target: Target, whole: Whole, class_map: ClassMap, at: str,
           **more: Any) -> Work:
        """Of this manifest."""
        return cls(owner_of(wsgi_to_str(target.path)), whole, class_map, at,
                   path=wsgi_to_str('/%s/%s' % target[1:]), **more)


class Spreader:
    """Does it, several segments at a time.

    :param app: what is below the filter
    """

    def __init__(self, app: App, segments: Segments, count: Callable[
            [str], None]) -> None:
        self._app = app
        self._segments = segments
        self._count = count

    def refusal(self, env: Env, target: Target, whole: Whole) -> Any:
        """Auth's answer to one who may not write the segments; None if all
        is well.

        Whoever may write the manifest's container was asked for before.
        """
        home = target.user_container(None)
        known: Set[str] = {home}
        if env.get('swift.source') == 'S3' or target.upload_marker(env):
            # Parts of an upload, that s3api wrote for the same client.
            known.add(home + SEGMENTS_SUFFIX)
        for use in whole.uses:
            segment = target_of(env, use.path) if use.path else target
            if segment.container in known:
                continue
            known.add(segment.container)
            answer = authorize.refusal(
                dict(env, PATH_INFO=segment.path, REQUEST_METHOD='POST'),
                self._app, segment)
            if answer is not None:
                return answer
        return None

    def spread(self, env: Env, work: Work, table: ClassTable,
               done: Callable[[int], None] = lambda count: None) -> Maps:
        """Give every segment its classes. Idempotent.

        :param done: told how many segments have theirs: often, as it keeps a
            lease
        :returns: what segments have then, by path
        :raises Unreachable: one cannot be changed now; others may be
        """
        # Shared by all requests to segments: Swift looks at each of their
        # containers once.
        env.setdefault('swift.infocache', {})
        claimed = shares.cut(work.whole.uses, work.class_map, table)
        maps: Maps = {}

        def lives() -> None:
            done(len(maps))

        def change_of(path: str, segment: Segment) -> Optional[Change]:
            return self._change(work, segment, claimed[path], table)

        def alone(path: str) -> None:
            self._give_alone(env, path, change_of, lives, maps)

        ahead = list(claimed)
        for start in range(0, len(ahead), _AT_ONCE):
            paths = ahead[start:start + _AT_ONCE]
            segments = self._segments.look_many(env, paths)
            lives()
            maps.update(self._give_many(env, segments, {
                path: change_of(path, segment)
                for path, segment in segments.items()}))
            lives()
            each(alone, [path for path in paths if path not in maps])
        lives()
        return maps

    def _give_alone(self, env: Env, path: str, change_of: Callable[
            [str, Segment], Optional[Change]], lives: Callable[[], None],
            maps: Maps) -> None:
        """Its servers refuse what follows from an old state."""
        for attempt in range(_ATTEMPTS):
            segment = self._segments.look(env, path)
            lives()
            if segment is None:
                # A hole in the large object, whatever its class.
                self._count('large.missing')
                return
            change = change_of(path, segment)
            if change is not None:
                is_given = self._segments.give(env, change)
                if not is_given and (change.differs or not attempt):
                    continue
                self._count('large.segments')
            maps[path] = (change or segment).class_map
            return
        raise Unreachable('%s changes all the time' % path)

    def _give_many(self, env: Env, segments: Mapping[str, Segment],
                   changes: Mapping[str, Optional[Change]]) -> Maps:
        """What those have that few requests settle."""
        left = {change.segment.target for change in self._segments.give_many(
            env, [change for change in changes.values()
                  if change is not None])}
        maps: Maps = {}
        for path, segment in segments.items():
            if segment.target not in left:
                change = changes[path]
                if change is not None:
                    self._count('large.segments')
                maps[path] = (change or segment).class_map
        return maps

    def seen(self, env: Env, whole: Whole) -> Optional[Maps]:
        """What segments have by HEADs of this transaction; None if one was
        not looked at."""
        maps: Maps = {}
        for use in whole.leaves:
            if use.path and use.path not in maps:
                segment = self._segments.seen(env, use.path)
                if segment is None:
                    return None
                maps[use.path] = segment.class_map
        return maps

    @staticmethod
    def _change(work: Work, segment: Segment, wanted: claims.Spans,
                table: ClassTable) -> Optional[Change]:
        """What is to be done to a segment; None if it stays as it is."""
        if segment.is_elsewhere:
            return None
        if len(wanted) == 1 and wanted[0].offset == 0 and \
                wanted[0].end >= segment.size:
            wanted = claims.everywhere(wanted[0].class_id)
        mine = segment.claimed.get(work.owner)
        if segment.class_at > after(work.at, segment.data_at):
            if work.is_late and mine == wanted:
                return None
            if (work.is_late or mine not in (None, wanted)) \
                    and not work.is_newest():
                raise Unreachable('a newer POST came')
        claimed = {owner: spans for owner, spans in segment.claimed.items()
                   if owner != work.owner}
        claimed[work.owner] = wanted
        return Change(segment, shares.laid_over(
            shares.highest(claimed.values(), table), segment.class_map,
            segment.size), claimed, after(
                work.at, segment.data_at, segment.class_at), dict(
                segment.paths, **{work.owner: work.path})
            if work.path else segment.paths)


def shown(whole: Whole, maps: Optional[Maps], class_map: ClassMap,
          count: Callable[[str], None]) -> ClassMap:
    """The classes that a large object's bytes have, or those it was to have
    where the former are too many for its headers.

    :param maps: of its segments; None if they are not known
    """
    if maps is None:
        return class_map
    composed = shares.composed(whole.leaves, maps, class_map)
    try:
        classmap.to_headers(names.SYSMETA_MAP, composed)
    except TooManySpans:
        count('large.too_mixed')
        return class_map
    return composed


def each(call: Callable[[_Item], None], items: Sequence[_Item],
         most: int = LARGE_CONCURRENCY) -> None:
    """Call for all, some at a time; raises what one raises, without
    beginning others."""
    todo = iter(items)
    failed: List[Exception] = []

    def work(_number: int) -> None:
        for item in todo:
            if failed:
                return
            try:
                call(item)
            except Exception as err:
                failed.append(err)
                raise

    workers: Iterable[int] = range(min(most, len(items)))
    for _result in waiting.together(work, workers):
        pass
