"""Which missed objects come to the SSD: the option ``admit`` of the daemon
and of the replay.
"""

from __future__ import annotations

from swift_dss.core.config import Admit
from swift_dss.core.errors import BadConfig

_ALL, _SECOND, _LEARNED = str(Admit()), 'second', str(Admit(learns=True))
#: Windows, in sizes of the cache.
DEFAULT_WINDOW = 4
MAX_WINDOW = 64


def parse(option: str, text: str) -> Admit:
    """``all``, ``second``, ``second:WINDOW`` or ``learned``.

    :param option: its name in errors
    :raises BadConfig: it is none of them
    """
    name, colon, number = text.partition(':')
    if name == _ALL and not colon:
        return Admit()
    if text == _LEARNED:
        return Admit(learns=True)
    window = DEFAULT_WINDOW if not colon else int(number) \
        if number.isascii() and number.isdigit() else 0
    if name != _SECOND or not 1 <= window <= MAX_WINDOW:
        raise BadConfig(
            '%s: %r is not all, learned, second, or second:N with N caches of '
            '1 to %d' % (option, text, MAX_WINDOW))
    return Admit(window)
