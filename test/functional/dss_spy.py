"""A spy in front of the storage servers: which of our headers arrived?

Each request becomes one line of JSON in the file that the option ``log``
names: server, method, path and every header that has ``dss`` in its name,
spelled as it came.
"""

from __future__ import annotations

import json
import os


class Spy:
    """The WSGI filter."""

    def __init__(self, app, log, server):
        self._app = app
        self._server = server
        # One write of one line on an O_APPEND file: servers share it.
        self._file_fd = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT,
                                0o644)

    def __call__(self, env, start_response):
        raw = env.get('headers_raw') or [
            (key[5:].replace('_', '-'), value) for key, value in env.items()
            if key.startswith('HTTP_')]
        seen = {name: value for name, value in raw if 'dss' in name.lower()}
        line = json.dumps([self._server, env['REQUEST_METHOD'],
                           env['PATH_INFO'], seen])
        os.write(self._file_fd, line.encode('ascii') + b'\n')
        return self._app(env, start_response)


def filter_factory(global_conf, **local_conf):
    """paste.deploy's entry point."""
    return lambda app: Spy(app, local_conf['log'], local_conf['server'])
