"""Methods of Swift with functions of ours."""

from __future__ import annotations

from types import FunctionType
from typing import Any, Callable


def with_functions(method: Callable[..., Any],
                   **functions: Callable[..., Any]) -> Callable[..., Any]:
    """Swift's method, which calls these functions instead of its module's.

    The module stays as it is, and with it the classes of other policies.

    :param functions: by the global names that the method calls
    :raises AttributeError: the method calls none of that name
    """
    code = method.__code__
    for name in functions:
        if name not in code.co_names:
            raise AttributeError('%s does not call %s' % (
                method.__name__, name))
    return FunctionType(
        code, dict(method.__globals__, **functions), method.__name__,
        method.__defaults__, method.__closure__)
