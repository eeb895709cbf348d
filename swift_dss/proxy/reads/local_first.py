"""Prefer a replica that has the bytes over one that would fetch them from S3.

The first round of a GET asks object servers for local bytes
(``BACKEND_IF_LOCAL``). A server that would have to ask S3 answers 404 at once,
with the timestamp of its data, so that Swift's own getter goes on to the next
node, counts no error, and does not take an older version there for the newest.
If no server has the bytes, a second round asks without that condition.

The proxy application shows each answer to the filter's ``check_response``,
which notes such a 404; so a GET of a missing object costs one round. The
filter remembers for a while the objects that no server had; these cost one
round as well.

The condition names the range of the request. It does not hold for a retry with
the rest of a body, whose range differs: any replica serves it. Nor does it
hold for a range of an erasure-coded object, because offsets in fragments
differ: only GETs of whole objects prefer local fragments.

Both rounds, and HEADs, ask the warm copy first
(:mod:`swift_dss.proxy.reads.warm_first`).
"""

from __future__ import annotations

import time
from collections import OrderedDict
from typing import Any, Callable, Dict, List, Optional

from swift.common.header_key_dict import HeaderKeyDict
from swift.common.swob import wsgi_to_str
from swift.common.utils import close_if_possible, config_true_value
from swift.common.wsgi import WSGIContext

from swift_dss.proxy.replicas import Replicas
from swift_dss.proxy.trusted import env_key
from swift_dss.proxy.reads.warm_first import Asking, WarmFirst
from swift_dss.proxy.wsgi import App, Body, Env, Start
from swift_dss.wire import names

#: Objects that one worker remembers, and for how long: a recall brings
#: bytes back, and then they are to be preferred again.
_MAX_REMEMBERED = 8192
_COLD_SECONDS = 30.0
_IF_LOCAL = env_key(names.BACKEND_IF_LOCAL)


class _Round:
    """One GET, asking for bytes that object servers have themselves."""

    def __init__(self, asking: Optional[Asking]) -> None:
        self.asking = asking
        self.sent_elsewhere = False
        self.met_busy = False


class LocalFirst:
    """The application below the filter, as GETs see it.

    :param has_cold: whether a class has cold copies: else nothing asks the
        warm one first
    :param clock: monotonic seconds
    :param least_loaded: bytes that no copy has on its SSD come from the one
        with the least busy HDD
    """

    def __init__(self, app: App, replicas: Replicas,
                 count: Callable[[str], None],
                 has_cold: Callable[[], bool] = lambda: False,
                 clock: Callable[[], float] = time.monotonic,
                 least_loaded: bool = False) -> None:
        self._app = app
        self._replicas = replicas
        self._count = count
        self._has_cold = has_cold
        self._clock = clock
        self._least_loaded = least_loaded
        self.warm_first = WarmFirst(clock, least_loaded)
        #: First rounds under way, by path: each learns if a server has sent
        #: it elsewhere. Never forgotten before it has ended, or a 404 that
        #: is meant for this filter would reach a client.
        self._asking: Dict[str, List[_Round]] = {}
        #: Until when a path counts as cold.
        self._cold: OrderedDict[str, float] = OrderedDict()
        self._listens_to: Any = None

    def __call__(self, env: Env, start: Start) -> Body:
        if env['REQUEST_METHOD'] not in ('GET', 'HEAD') or \
                not self._listens():
            return self._app(env, start)
        # As the proxy application has it: without the version.
        path = '/' + str(wsgi_to_str(env['PATH_INFO'].split('/', 2)[2]))
        has_cold = self._has_cold()
        if not has_cold and not self._least_loaded:
            return self._in_order(env, start, path, None)
        with self.warm_first.asking(path, has_cold) as asking:
            return self._in_order(env, self._telling(asking, start), path,
                                  asking)

    def _telling(self, asking: Asking, start: Start) -> Start:
        """``start`` that tells of the answer."""
        def tell(status: str, headers: Any, exc_info: Any = None) -> Any:
            self.warm_first.given(asking, status, headers)
            return start(status, headers, exc_info)
        return tell

    def _in_order(self, env: Env, start: Start, path: str,
                  asking: Optional[Asking]) -> Body:
        if env['REQUEST_METHOD'] != 'GET' or \
                config_true_value(env.get('HTTP_X_NEWEST')):
            return self._app(env, start)
        if self._is_cold(path):
            return self._app(env, self._watching(path, start))
        context = WSGIContext(self._app)
        round_ = _Round(asking)
        self._asking.setdefault(path, []).append(round_)
        try:
            answer = self._local(context, env, round_)
        finally:
            self._ended(path, round_)
        if context._response_status[0] == '2' or not round_.sent_elsewhere:
            start(context._response_status, context._response_headers,
                  context._response_exc_info)
            return answer
        close_if_possible(answer)
        self._count('get.nobody_has_bytes')
        self._remember(path)
        return self._app(env, self._watching(path, start))

    def _local(self, context: WSGIContext, env: Env, round_: _Round) -> Body:
        """The first round; once more if it came by busy HDDs, and no other
        had the bytes."""
        asking = round_.asking
        first = dict(env)
        first[_IF_LOCAL] = if_local(env)
        if asking is None or not self._least_loaded:
            answer: Body = context._app_call(first)
            return answer
        # A copy: Swift's order of nodes may give it a limit.
        asking.env = dict(first)
        answer = context._app_call(asking.env)
        if not round_.met_busy or \
                context._response_status[0] in '23':
            return answer
        close_if_possible(answer)
        self._count('get.all_are_busy')
        asking.env, asking.is_refused = None, True
        again: Body = context._app_call(first)
        return again

    def _ended(self, path: str, round_: _Round) -> None:
        """A first round for ``path`` is no longer under way."""
        rounds = self._asking[path]
        rounds.remove(round_)
        if not rounds:
            del self._asking[path]

    def _is_cold(self, path: str) -> bool:
        until = self._cold.get(path)
        if until is None:
            return False
        if self._clock() < until:
            return True
        del self._cold[path]
        return False

    def _remember(self, path: str) -> None:
        self._cold[path] = self._clock() + _COLD_SECONDS
        self._cold.move_to_end(path)
        if len(self._cold) > _MAX_REMEMBERED:
            self._cold.popitem(last=False)

    def _watching(self, path: str, start: Start) -> Start:
        """``start`` that notices when a replica has the bytes again."""
        def show(status: str, headers: Any, exc_info: Any = None) -> Any:
            tier = HeaderKeyDict(headers).get(names.BACKEND_TIER, 'remote')
            if tier != 'remote':
                self._cold.pop(path, None)
            return start(status, headers, exc_info)
        return show

    def _listens(self) -> bool:
        """Listen to the answers of object servers, from the first GET on;
        False where the pipeline does not end in Swift's proxy application.
        """
        proxy = self._replicas.proxy
        if proxy is not self._listens_to:
            real = getattr(proxy, 'check_response', None)
            if real is None:
                return False

            def check_response(node: Any, server_type: str, response: Any,
                               method: str, path: str,
                               *args: Any, **kwargs: Any) -> Any:
                why = response.getheader(names.BACKEND_ELSEWHERE) \
                    if response.status == 404 else None
                for round_ in self._asking.get(path, ()):
                    if why == names.BUSY:
                        round_.met_busy = True
                    elif why:
                        round_.sent_elsewhere = True
                return real(node, server_type, response, method, path,
                            *args, **kwargs)

            proxy.check_response = check_response
            self.warm_first.listen(proxy)
            self._listens_to = proxy
        return True


def if_local(env: Env) -> str:
    """The condition of a request: its range, ``-`` for none."""
    return env.get('HTTP_RANGE') or '-'
