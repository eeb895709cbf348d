"""503 for the object servers' 409 that means "S3 does not answer", or "the
disks here cannot read it".

They cannot say 503 themselves: Swift would stop asking them for anything
for a minute.
"""

from __future__ import annotations

from typing import Any, Callable, Iterator, List, Optional, Tuple

from swift.common.header_key_dict import HeaderKeyDict
from swift.common.utils import close_if_possible

from swift_dss.core.limits import DEFAULT_RETRY_AFTER_SECONDS
from swift_dss.proxy.admit.retry_after import tell
from swift_dss.proxy.wsgi import App, Body, Env, Start
from swift_dss.wire import names

TEXT = (b'The bytes cannot be read now: remote storage does not answer, or '
        b'disks do not; try again after the time that Retry-After says.\n')

Rewrite = Callable[[str, Any], List[Tuple[str, str]]]


def call(app: App, env: Env, start: Start, rewrite: Rewrite) -> Body:
    """Let ``app`` answer a GET or HEAD.

    :param rewrite: (status, headers) to the headers that go on up
    """
    replaced: List[bool] = []

    def show(status: str, headers: Any, exc_info: Any = None) -> Any:
        seconds = retry_after(status, headers)
        replaced.append(seconds is not None)
        if seconds is not None:
            tell(env, seconds)
            return start('503 Service Unavailable', own_headers(seconds),
                         exc_info)
        return start(status, rewrite(status, headers), exc_info)

    answer = app(env, show)
    # Whether there is something to replace is known only once the answer
    # starts, which may be when its first bytes are asked for.
    if env['REQUEST_METHOD'] == 'HEAD' or (replaced and not replaced[-1]):
        return answer
    return _Replaceable(answer, replaced)


def retry_after(status: str, headers: Any) -> Optional[str]:
    """Seconds to wait, if the answer asks for that; else None."""
    if not status.startswith('409'):
        return None
    seconds: Optional[str] = HeaderKeyDict(headers).get(
        names.BACKEND_UNAVAILABLE)
    if seconds is None or seconds.isdigit():
        return seconds
    return str(DEFAULT_RETRY_AFTER_SECONDS)


def own_headers(seconds: str) -> List[Tuple[str, str]]:
    """Headers of our own answer, whose body is :data:`TEXT`."""
    return [('Content-Type', 'text/plain'),
            ('Content-Length', str(len(TEXT))), ('Retry-After', seconds)]


class _Replaceable:
    """A body that gives way to ours if its answer was replaced.

    :param replaced: of each start of the answer; none has come if it is empty
    """

    def __init__(self, answer: Body, replaced: List[bool]) -> None:
        self._answer = answer
        self._replaced = replaced

    def __iter__(self) -> Iterator[bytes]:
        for chunk in self._answer:
            if any(self._replaced):
                break
            yield chunk
        if any(self._replaced):
            yield TEXT

    def close(self) -> None:
        """Close what is wrapped."""
        close_if_possible(self._answer)
