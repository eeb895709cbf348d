"""``admin.sock`` of a node with shards: asks them, answers for all."""

from __future__ import annotations

import abc
import logging
import queue
import threading
from typing import Any, Dict, Iterator, List, Mapping, Tuple

from swift_dss.core.errors import DssError, TierUnavailable, VersionGone
from swift_dss.tier.doors.asking import DaemonSaid, ask
from swift_dss.tier.doors.door import AdminDoor, Progress
from swift_dss.tier.shards import sums

#: Answered in the order of the shards, one after the other: their rows are
#: pages of one list.
_IN_TURN = frozenset(('ls', 'pins'))
#: Rows and failures that an answer names at most.
_MOST_TOLD = 1000
_Said = Tuple[int, str, Any]


class Shards(abc.ABC):
    """A node's shards, as their parent knows them."""

    @abc.abstractmethod
    def sockets(self) -> Mapping[int, str]:
        """Admin sockets of the shards, by their numbers."""

    @abc.abstractmethod
    def status(self) -> Dict[str, Any]:
        """The sum of what the shards say, and how they are.

        :raises TierUnavailable: none answers
        """

    @abc.abstractmethod
    def reload(self) -> None:
        """Read configuration and class table; all shards take them over,
        or nothing changes.

        :raises BadConfig: what is wrong
        """


class Board(AdminDoor):
    """Answers for the node.

    :param path: of the socket
    """

    def __init__(self, path: str, shards: Shards,
                 logger: logging.Logger) -> None:
        super().__init__(path, logger)
        self._shards = shards

    def answer(self, request: Dict[str, Any], progress: Progress) -> Any:
        """See :meth:`AdminDoor.answer`."""
        verb = request.get('verb')
        if verb == 'status':
            return self._shards.status()
        if verb == 'reload':
            self._shards.reload()
            return {'reloaded': True}
        return self.ask(request, progress)

    def ask(self, request: Dict[str, Any], progress: Progress) -> Any:
        """Ask all shards, and add up what they answer.

        :param progress: is told of the node as a whole
        :raises DssError: as the first shard says that cannot answer
        :raises TierUnavailable: a shard does not answer at all
        """
        shards = self._shards.sockets()
        if request.get('verb') in _IN_TURN:
            return sums.merged(list(self._in_turn(
                request, shards, progress)))
        answers: Dict[int, Any] = {}
        failed: List[DssError] = []
        gone = 0
        total = sums.Progress()
        for number, kind, said in _side_by_side(shards, request):
            if kind == 'progress':
                progress(total.add(number, said))
            elif kind == 'result':
                answers[number] = said
            elif _is_elsewhere(said, request):
                gone += 1
            else:
                failed.append(said)
        if failed:
            raise failed[0]
        if not answers and gone:
            raise VersionGone('%s is not on this node' % request['object'])
        return _bounded(sums.merged([
            answers[number] for number in sorted(answers)]))

    def _in_turn(self, request: Dict[str, Any], shards: Mapping[int, str],
                 progress: Progress) -> Iterator[Any]:
        left = int(request.get('limit', 0))
        for number in sorted(shards):
            asked = dict(request, limit=left) if left else request
            result = None
            for message in ask(shards[number], asked):
                if 'progress' in message:
                    progress(message['progress'])
                    if left:
                        left -= len(message['progress'].get('rows', ()))
                result = message.get('result', result)
            yield result
            if request.get('limit') and left <= 0:
                return


def _side_by_side(shards: Mapping[int, str],
                  request: Dict[str, Any]) -> Iterator[_Said]:
    """(shard, 'progress', 'result' or 'error', what it said), until all have
    ended."""
    said: queue.SimpleQueue[_Said] = queue.SimpleQueue()

    def run(number: int, path: str) -> None:
        try:
            result = None
            for message in ask(path, request):
                if 'progress' in message:
                    said.put((number, 'progress', message['progress']))
                result = message.get('result', result)
            said.put((number, 'result', result))
        except TierUnavailable as err:
            said.put((number, 'error', TierUnavailable(
                'shard %d of this node: %s' % (number, err))))
        except DssError as err:
            said.put((number, 'error', err))
        except Exception as err:
            # The one who asks must hear the end of every shard.
            said.put((number, 'error', TierUnavailable(
                'shard %d: %s' % (number, err))))

    for number, path in shards.items():
        threading.Thread(target=run, args=(number, path), daemon=True,
                         name='dss-ask-%d' % number).start()
    left = len(shards)
    while left:
        sentence = said.get()
        left -= sentence[1] != 'progress'
        yield sentence


def _is_elsewhere(err: DssError, request: Dict[str, Any]) -> bool:
    """Only a shard that has the object can do something with it."""
    return bool(request.get('object')) and isinstance(err, DaemonSaid) \
        and err.counter == VersionGone.counter


def _bounded(answer: Any) -> Any:
    """No more rows and failures than one shard would name."""
    if isinstance(answer, dict):
        for name in ('rows', 'failed'):
            if isinstance(answer.get(name), list):
                del answer[name][_MOST_TOLD + 1:]
    return answer
