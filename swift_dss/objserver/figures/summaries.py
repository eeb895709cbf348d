"""``GET /dss/status``: the node's figures in short, for operators.

The text is the file that the tier daemon writes every ten seconds
(``wire.node.summary``), with its age: an object server does not wait for the
daemon, and one that has stopped is seen by the age. Like recon, it is for the
cluster's own network.
"""

from __future__ import annotations

import os
import time
from typing import Any

from swift.common.swob import Request, Response

from swift_dss.core.errors import DamagedRecord
from swift_dss.objserver.figures.pressures import identity
from swift_dss.objserver.settings import node_for
from swift_dss.wire import names
from swift_dss.wire.node import summary


class Summaries:
    """The WSGI application of one object server.

    :param conf: the server's options, which name ``dss_conf``
    """

    def __init__(self, conf: Any, logger: Any) -> None:
        self._conf = conf
        self._logger = logger

    def __call__(self, env: Any, start_response: Any) -> Any:
        request = Request(env)
        if request.method != 'GET':
            return Response(status=405, request=request)(env, start_response)
        node = node_for(self._conf, self._logger)
        headers = {names.BACKEND_NODE: identity(node)}
        path = os.path.join(node.conf.run_dir, summary.FILE)
        try:
            with open(path, 'rb') as source:
                body = source.read()
            # Both times are of this node's clock.
            age = max(0.0, time.time() - summary.decode(body).at)
        except (OSError, DamagedRecord) as err:
            return Response(
                status=503, request=request, headers=headers,
                content_type='text/plain', body='%s: %s\n' % (
                    path, getattr(err, 'strerror', err)))(env, start_response)
        headers[names.BACKEND_AGE] = '%.1f' % age
        return Response(body=body, request=request, headers=headers,
                        content_type='application/json')(env, start_response)
