"""The line of a request in the log of an object server.

Swift puts it together with a formatter written in Python, field by field. A
line of the default format is put together at once here; every other format is
left to Swift.
"""

from __future__ import annotations

import os
import time
from typing import Any

from swift.common.utils import get_log_line

#: ``LOG_LINE_DEFAULT_FORMAT``, as this module knows it.
FORMAT = (
    '{remote_addr} - - [{time.d}/{time.b}/{time.Y}:{time.H}:{time.M}:'
    '{time.S} +0000] "{method} {path}" {status} {content_length} '
    '"{referer}" "{txn_id}" "{user_agent}" {trans_time:.4f} '
    '"{additional_info}" {pid} {policy_index}')
_LINE = '%s - - [%s +0000] "%s %s" %s %s "%s" "%s" "%s" %s "%s" %s %s'
_POLICY = 'X-Backend-Storage-Policy-Index'
_ASKED_POLICY = 'HTTP_' + _POLICY.upper().replace('-', '_')


def line(req: Any, res: Any, trans_time: float, additional_info: str,
         fmt: str, *anonymization: Any) -> str:
    """See ``swift.common.utils.get_log_line``."""
    if fmt != FORMAT:
        text: str = get_log_line(req, res, trans_time, additional_info, fmt,
                                 *anonymization)
        return text
    env = req.environ
    policy_index = res.headers.get(_POLICY, env.get(_ASKED_POLICY))
    return _LINE % (
        env.get('REMOTE_ADDR') or '-',
        time.strftime('%d/%b/%Y:%H:%M:%S', time.gmtime()),
        env['REQUEST_METHOD'] or '-', req.path or '-',
        res.status.split(None, 1)[0], res.content_length or '-',
        env.get('HTTP_REFERER') or '-', env.get('HTTP_X_TRANS_ID') or '-',
        env.get('HTTP_USER_AGENT') or '-',
        '%.4f' % trans_time if trans_time else '-', additional_info or '-',
        os.getpid(), '-' if policy_index in (None, '') else policy_index)
