"""Tests that run in both forms of waiting: green threads, and threads.

A pytest plug-in. A test that asks for ``form`` runs twice, each time as a
request of that form.
"""

from __future__ import annotations

import contextlib
import inspect
import sys
import threading
import time
from typing import Any, Callable, Iterator, List, Optional

import pytest

from swift_dss.io import native, waiting


FORMS = ['threads'] if 'support.no_eventlet' in sys.modules else [
    'green', 'threads']


class Request:
    """A request that runs beside the test."""

    def __init__(self, call: Callable[..., Any], args: Any) -> None:
        self._value: Any = None
        self._error: Optional[BaseException] = None
        self._ended = False
        waiting.spawn(self._run, call, args)

    def _run(self, call: Callable[..., Any], args: Any) -> None:
        try:
            self._value = call(*args)
        except BaseException as err:
            self._error = err
        self._ended = True

    def wait(self) -> Any:
        """Its result; raises its error."""
        until(lambda: self._ended)
        if self._error is not None:
            raise self._error
        return self._value


def until(holds: Callable[[], Any]) -> None:
    """Let others go on until something holds."""
    patience = time.monotonic() + 20
    while not holds():
        assert time.monotonic() < patience
        waiting.sleep(0.0005)


class Form:
    """One form of waiting.

    :param name: ``green`` or ``threads``
    """

    def __init__(self, name: str) -> None:
        self.name = name

    begin = staticmethod(lambda call, *args: Request(call, args))
    until = staticmethod(until)


@contextlib.contextmanager
def in_green() -> Iterator[None]:
    """Let requests wait in an event loop, as if sockets were patched.

    What was begun inside ends with it: a worker that works for ever would
    take over the loop of a later test, and sleep there as a thread does.
    """
    import eventlet

    from swift_dss.io.waiting import green
    begun: List[Any] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(waiting, '_green', green)
        patch.setattr(green, 'spawn', lambda call, *args: begun.append(
            eventlet.spawn(call, *args)))
        try:
            yield
        finally:
            for thread in begun:
                thread.kill()


@pytest.fixture(params=FORMS)
def form(request: Any, monkeypatch: Any) -> Iterator[Form]:
    """The form that this test runs in."""
    if request.param == 'green':
        with in_green():
            yield Form(request.param)
    else:
        monkeypatch.setattr(waiting, '_green', None)
        yield Form(request.param)


@pytest.fixture
def green() -> Iterator[None]:
    """Let this test's requests wait in an event loop."""
    with in_green():
        yield


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: Any) -> Optional[bool]:
    """Run a test of threads in a thread: the main one serves nobody."""
    form = pyfuncitem.funcargs.get('form')
    if not isinstance(form, Form) or form.name != 'threads':
        return None
    args = {name: pyfuncitem.funcargs[name]
            for name in inspect.signature(pyfuncitem.obj).parameters}
    errors: List[BaseException] = []

    def run() -> None:
        try:
            pyfuncitem.obj(**args)
        except BaseException as err:
            errors.append(err)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join(60)
    assert not thread.is_alive(), 'the test hangs'
    if errors:
        raise errors[0]
    assert native.get_ident() == native.MAIN_IDENT
    return True
