"""Regular expressions of operators on names that tenants choose.

A pattern like ``(a+)+$`` takes longer than the universe on a bad name, and
one proxy worker serves hundreds of clients. So a pattern is compiled once,
when the file is read, and only if its cost is bounded: nothing is repeated
inside a repetition, no alternatives are, nothing refers back, and the
ways to cut a name of 1,024 characters among its repetitions stay under
``MAX_REGEX_STEPS``. (Python has no engine with a time bound.)
"""

from __future__ import annotations

import re
import warnings
from typing import Any, Pattern

from swift_dss.core.limits import MAX_PATTERN_CHARS, MAX_REGEX_STEPS

try:
    from re import _constants as _ops  # type: ignore[attr-defined]
    from re import _parser as _sre  # type: ignore[attr-defined]
except ImportError:  # before Python 3.11
    import sre_constants as _ops
    import sre_parse as _sre

#: Swift's longest object name.
_NAME_CHARS = 1024
_REPEATS = (_ops.MAX_REPEAT, _ops.MIN_REPEAT)
_SINGLE = (_ops.LITERAL, _ops.NOT_LITERAL, _ops.ANY, _ops.IN)
_LOOK = (_ops.ASSERT, _ops.ASSERT_NOT)


def compile_bounded(text: str) -> Pattern[str]:
    """Compile ``text`` if matching it has a bounded cost.

    :raises ValueError: one sentence why not
    """
    if len(text) > MAX_PATTERN_CHARS:
        raise ValueError('%d characters are more than %d'
                         % (len(text), MAX_PATTERN_CHARS))
    try:
        with warnings.catch_warnings():
            # "[[" and "--" in a set will mean something else one day.
            warnings.simplefilter('error')
            tree = _sre.parse(text)
            compiled = re.compile(text)
    except (re.error, OverflowError, RecursionError, Warning) as err:
        raise ValueError('is no regular expression: %s' % err) from None
    steps = _steps(tree)
    if steps > MAX_REGEX_STEPS:
        raise ValueError('could take %.0e steps on a name of %d characters '
                         '(use fewer "*", "+" and "{}")'
                         % (steps, _NAME_CHARS))
    return compiled


def _steps(tree: Any, repeated: bool = False) -> float:
    """How many ways the pattern can be tried on the longest name."""
    steps = 1.0
    for op, args in tree:
        if op in _REPEATS:
            least, most, body = args
            if repeated:
                raise ValueError('repeats inside a repetition')
            free = min(int(most), _NAME_CHARS) - min(int(least), _NAME_CHARS)
            steps *= (1 + free) * _steps(body, repeated=int(most) > 1)
        elif op is _ops.BRANCH:
            if repeated:
                raise ValueError('repeats alternatives ("|")')
            steps *= sum(_steps(branch) for branch in args[1])
        elif op is _ops.SUBPATTERN:
            steps *= _steps(args[-1], repeated)
        elif op in _LOOK:
            steps *= _steps(args[1], repeated)
        elif op not in _SINGLE and op is not _ops.AT:
            raise ValueError('uses %s, which has no bounded cost'
                             % str(op).lower())
    return steps
