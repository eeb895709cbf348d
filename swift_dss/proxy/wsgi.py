"""Names for WSGI's shapes."""

from __future__ import annotations

from typing import Any, Callable, Dict, Iterable

Env = Dict[str, Any]
Start = Callable[..., Any]
Body = Iterable[bytes]
App = Callable[[Env, Start], Body]
