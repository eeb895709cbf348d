"""A request's line in the log is the one that Swift would write."""

from __future__ import annotations

import re
from typing import Any, Dict

import pytest
from support.rigs.dss_disk import Disk
from swift.common.swob import Request, Response
from swift.common.utils import LOG_LINE_DEFAULT_FORMAT, get_log_line

from swift_dss.objserver.server import DssObjectController
from swift_dss.objserver.stock import logline
from swift_dss.objserver.stock.borrowed import with_functions

FULL = {'HTTP_REFERER': 'PUT http://x/v1', 'HTTP_X_TRANS_ID': 'tx1',
        'HTTP_USER_AGENT': 'proxy-server 7', 'REMOTE_ADDR': '10.0.0.1',
        'HTTP_X_BACKEND_STORAGE_POLICY_INDEX': '3'}


def lines(fmt: str, environ: Dict[str, str], headers: Dict[str, Any],
          seconds: float = 0.01234, told: str = '',
          path: str = '/sda/0/a/c/o',
          body: bytes = b'four') -> Dict[str, str]:
    """Ours and Swift's, of one request."""
    request = Request.blank(path, environ=environ)
    response = Response(status=206, headers=headers, body=body,
                        request=request)
    return {who: re.sub(r':\d\d \+0000', '', call(
        request, response, seconds, told, fmt, 'md5', ''))
        for who, call in (('ours', logline.line), ('swift', get_log_line))}


@pytest.mark.parametrize('environ,headers,more', [
    (FULL, {}, {}), ({'REMOTE_ADDR': ''}, {}, {}),
    (FULL, {'X-Backend-Storage-Policy-Index': 0}, {}),
    ({'HTTP_X_BACKEND_STORAGE_POLICY_INDEX': ''}, {}, {}),
    (FULL, {}, {'seconds': 0.0, 'told': 'slow'}),
    (FULL, {}, {'body': b''}), ({'REQUEST_METHOD': 'PUT'}, {}, {}),
    (FULL, {}, {'path': '/sda/0/a/c/a%20%C3%A9%25 b'}),
    (FULL, {}, {'path': '/'})])
def test_the_default_line_is_swifts(environ: Dict[str, str],
                                    headers: Dict[str, Any],
                                    more: Any) -> None:
    told = lines(LOG_LINE_DEFAULT_FORMAT, environ, headers, **more)
    assert told['ours'] == told['swift']


def test_another_format_is_left_to_swift() -> None:
    told = lines('{path.anonymized} {time.iso8601} {account}', FULL, {})
    assert told['ours'] == told['swift']


class Lines:
    """A logger that keeps what it is told."""

    def __init__(self) -> None:
        self.said: Any = []

    def info(self, line: str, *args: Any) -> None:
        self.said.append(line % args if args else line)

    def __getattr__(self, name: str) -> Any:
        return lambda *args, **kwargs: None


def test_the_server_writes_it(disk: Disk) -> None:
    assert logline.FORMAT == LOG_LINE_DEFAULT_FORMAT
    app = DssObjectController(disk.options)
    logger = app.logger = Lines()
    Request.blank('/sda/0/a/c/none', environ=dict(
        FULL, HTTP_X_BACKEND_STORAGE_POLICY_INDEX='0')).get_response(app)
    line, = logger.said
    assert re.fullmatch(
        r'10\.0\.0\.1 - - \[[^]]+ \+0000] "GET /sda/0/a/c/none" 404 70 '
        r'"PUT http://x/v1" "tx1" "proxy-server 7" [\d.]+ "-" \d+ 0', line)


def test_a_method_that_calls_it_no_more_is_noticed() -> None:
    with pytest.raises(AttributeError, match='does not call get_log_line'):
        with_functions(Lines.info, get_log_line=logline.line)
