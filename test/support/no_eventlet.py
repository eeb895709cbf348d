"""A pytest plug-in: a process in which eventlet cannot be imported.

With ``NO_EVENTLET=ours`` only Swift, which imports it all over, may; nobody
gets an event loop then.
"""

from __future__ import annotations

import builtins
import inspect
import os
import sys
from typing import Any

_import = builtins.__import__
_SWIFT_MAY = os.environ.get('NO_EVENTLET') == 'ours'


def _refused(*_args: Any, **_named: Any) -> Any:
    raise AssertionError('an event loop in a process of threads')


def _import_but_eventlet(name: str, namespace: Any = None, *args: Any,
                         **named: Any) -> Any:
    frame = inspect.currentframe()
    assert frame is not None and frame.f_back is not None
    importer = frame.f_back.f_globals.get('__name__', '')
    if name.partition('.')[0] == 'eventlet' and not (
            _SWIFT_MAY and importer.partition('.')[0] in (
                'swift', 'eventlet', 'pyeclib')):
        raise ImportError('%s imports eventlet' % importer)
    module = _import(name, namespace, *args, **named)
    hubs = sys.modules.get('eventlet.hubs')
    if hubs is not None and hasattr(hubs, 'get_hub'):
        hubs.get_hub = _refused
    return module


assert 'eventlet' not in sys.modules
builtins.__import__ = _import_but_eventlet
