"""The classes of a cluster, as its /info has them."""

from __future__ import annotations

import contextlib
import http.server
import json
import threading

import pytest

from swift_dss.cli import main
from swift_dss.client import info
from swift_dss.core.errors import BadClassInput, TooManySpans
from swift_dss.core.spans import ClassMap, Span

INFO = {'swift': {}, 'dss': {'classes': {'Gold': 25, 'plain': 0},
                             'max_spans': 2, 'max_section_bytes': 120}}


@contextlib.contextmanager
def swift(status=200, body=None):
    """A server with an /info."""
    asked = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append(self.path)
            raw = json.dumps(INFO).encode() if body is None else body
            self.send_response(status)
            self.send_header('Content-Length', str(len(raw)))
            self.end_headers()
            self.wfile.write(raw)

        def log_message(self, *_args):
            pass

    server = http.server.HTTPServer(('127.0.0.1', 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.01,),
                     daemon=True).start()
    try:
        yield 'http://127.0.0.1:%d' % server.server_port, asked
    finally:
        server.shutdown()
        server.server_close()


@pytest.mark.parametrize('server, url', [
    ('http://h:8080', 'http://h:8080/info'),
    ('https://h/', 'https://h/info'),
    ('https://h/info', 'https://h/info'),
    ('https://h/v1', 'https://h/info'),
    ('http://h/v1/AUTH_a/c/o?x=y', 'http://h/info'),
    ('http://h/swift/v1/AUTH_a', 'http://h/swift/info')])
def test_where_it_is(server, url):
    assert info.info_url(server) == url


@pytest.mark.parametrize('server', [
    '', 'h:8080', 'file:///etc/passwd', 'ftp://h', 'http://', 'http://[h'])
def test_other_urls_are_refused(server):
    with pytest.raises(BadClassInput, match='^--server: .* is not http://'):
        info.read(server)


def test_names_and_limits():
    with swift() as (url, asked):
        server = info.read(url + '/v1/AUTH_a')
    assert asked == ['/info']
    assert server.table.by_name('gold').class_id == 25
    assert (server.max_spans, server.max_section_bytes) == (2, 120)


@pytest.mark.parametrize('status, body, why', [
    (404, b'', 'Not Found'),
    (200, b'no json', 'Expecting value'),
    (200, b'\xff', "can't decode"),
    (200, b'[]', 'has no classes'),
    (200, b'{"swift": {}}', 'has no classes'),
    (200, b'{"dss": {"classes": 5}}', 'cannot be understood'),
    (200, b'{"dss": {"classes": {"gold": 32}}}', 'class gold has id 32'),
    (200, b'{"dss": {"classes": {"gold": "x"}}}', 'class gold has id x'),
    (200, b'"' + b'x' * (1 << 20) + b'"', 'more than 1048576 bytes')])
def test_a_server_that_says_something_else(status, body, why):
    with swift(status, body) as (url, _):
        with pytest.raises(info.ServerUnreachable) as caught:
            info.read(url)
    assert str(caught.value).startswith(url + '/info: ')
    assert why in str(caught.value)


def test_a_server_that_is_not_there():
    with swift() as (url, _):
        pass
    with pytest.raises(info.ServerUnreachable, match='Errno 111'):
        info.read(url)


def test_limits_are_those_of_the_server():
    server = info.decode(json.dumps(INFO).encode(), 'u')
    two = ClassMap.from_spans([Span(0, 1, 1), Span(1, 1, 2)])
    server.check(two, 120)
    with pytest.raises(TooManySpans, match='^--server: takes 2 spans and not '
                                           '3$'):
        server.check(ClassMap.from_spans([Span(0, 1, 1), Span(2, 1, 2)]), 1)
    with pytest.raises(TooManySpans, match='section of 120 bytes and not of '
                                           '121'):
        server.check(two, 121)


def test_pack_takes_names_from_a_server(tmp_path, capsys):
    (tmp_path / 'data').write_bytes(b'x' * 5000)
    words = ['pack', str(tmp_path / 'data'), '-o', str(tmp_path / 'd.dss'),
             '--class', 'gold']
    # The sample's names are not those of this cluster.
    assert main.main([*words, '--class-table', '/dev/null']) != 0
    with swift() as (url, _):
        assert main.main([*words, '--server', url]) == 0
        assert main.main([*words, '--force', '--server', url, '--range',
                          '0-1-3', '--range', '2-1-4']) == 2
        assert "--server: takes 2 spans and not 3" in capsys.readouterr().err
        assert main.main([*words, '--force', '--server', url, '--class',
                          'silver']) == 2
    assert main.main([*words, '--force', '--server', url]) == 69
    with pytest.raises(SystemExit):
        main.main([*words, '--server', url, '--class-table', 'x'])
