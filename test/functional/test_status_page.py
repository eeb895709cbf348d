"""What the daemon shows: the page, its JSON, and the metrics that the
dashboard and the alert rules ask for."""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import urllib.error
import urllib.parse
import urllib.request
from html.parser import HTMLParser

import pytest
import yaml
from functional.test_gateway_relocate import Node
from support import wait_until
from support.edges.s3_servers import VersityServer

from swift_dss.aio import processes
from swift_dss.gateway import service
from swift_dss.gateway.down import source
from swift_dss.gateway.form import verify
from swift_dss.gateway.link import client
from swift_dss.gateway.link.throughput import SAMPLE_SECONDS
from swift_dss.gateway.up import upload
from swift_dss.tier.doors.html import page
from swift_dss.tier.local import local

ETC = pathlib.Path(__file__).resolve().parents[2] / 'etc'
_METRIC = re.compile(r'swift_dss_[a-z0-9_]+')
#: Each page leads to the other.
_PAGES = {('href', '/'), ('href', '/cluster')}
#: Tags that have no end.
_VOID = {'meta', 'path', 'polyline', 'polygon', 'br'}


@pytest.fixture(scope='module')
def patch():
    with pytest.MonkeyPatch.context() as made:
        yield made


def measure(gateway, patch):
    """Three samples of a link that takes 1 MB a second."""
    clock, up = gateway.parts.around.clock, gateway.throughput.up
    for _ in range(3):
        now = clock.monotonic
        with up.busy():
            patch.setattr(clock, 'monotonic',
                          lambda now=now: now() + SAMPLE_SECONDS)
            up.moved(int(1e6 * SAMPLE_SECONDS))
    assert up.outlook().samples >= 3


@pytest.fixture(scope='module')
def node(tmp_path_factory, patch):
    """A node at work, with everything that can be shown."""
    server = VersityServer()
    port = processes.free_base_port(1, first=27780)
    os.environ['SWIFT_DSS_TIER_PROMETHEUS_PORT'] = str(port)
    try:
        made = Node(str(tmp_path_factory.mktemp('page') / 'n'), server,
                    remote_after_seconds='0')
    finally:
        del os.environ['SWIFT_DSS_TIER_PROMETHEUS_PORT']
    made.url = 'http://127.0.0.1:%d' % port
    folder = os.path.join(made.root, 'run', 'state', 'admitted')
    os.makedirs(folder)
    with open(os.path.join(folder, '%d.json' % os.getpid()), 'w') as out:
        out.write('{"0": {"accept": 5, "retry": 2}}')
    for number in range(4):
        made.put(number)
    wait_until(lambda: not made.daemon.node.gateway.status()['uploads'], 60)
    made.daemon.node.ledger.hits.count(0, 1, 100)
    measure(made.daemon.node.gateway, patch)
    # A device's budget is told of in its keeper's next round.
    wait_until(lambda: made.daemon.node.settle(1e9) and all(
        keeper.state.pressure for keeper in made.daemon.node.keepers), 60)
    for _ in range(3):
        made.daemon.upkeep.publish()
    yield made
    made.daemon.stop()
    server.close()


def read(url, **headers):
    with urllib.request.urlopen(urllib.request.Request(
            url, headers=headers), timeout=20) as answer:
        return answer.headers, answer.read().decode()


class Checker(HTMLParser):
    """Every tag is closed, and nothing comes from elsewhere."""

    def __init__(self):
        super().__init__()
        self.open, self.text, self.wrong = [], '', []

    def handle_starttag(self, tag, attrs):
        if tag in ('script', 'link', 'img', 'iframe'):
            self.wrong.append(tag)
        self.wrong += [value for name, value in attrs
                       if name in ('src', 'href', 'onclick')
                       and (name, value) not in _PAGES]
        if tag not in _VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        pass

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.wrong.append('</%s>' % tag)

    def handle_data(self, data):
        self.text += data


def test_the_page_shows_all_of_it_and_asks_for_nothing_else(node):
    headers, text = read(node.url + '/')
    checker = Checker()
    checker.feed(text)
    assert checker.wrong == [] and checker.open == []
    for shown in ('S3 answers', 'Where bytes are', 'Classes on the SSD',
                  'Waiting for S3', 'Bandwidth up', 'predicted',
                  'Drain of the backlog', 'told to retry', 'plain',
                  'put object', 'list price', 'Bundles', 'sda',
                  'share one file system'):
        assert shown in checker.text, shown
    assert "default-src 'none'" in headers['Content-Security-Policy']
    assert 'prefers-color-scheme: dark' in text


def test_the_page_of_all_nodes_is_one_too(node):
    _headers, text = read(node.url + '/cluster')
    checker = Checker()
    checker.feed(text)
    assert checker.wrong == [] and checker.open == []
    assert 'nodes answer' in checker.text or 'cannot be read' in checker.text


def test_names_are_escaped(node):
    status = node.daemon.upkeep.status()
    status['classes'][0]['name'] = '<script>alert(1)</script>'
    text = page(status, node.daemon.upkeep.history.samples())
    assert '<script>' not in text and '&lt;script&gt;' in text


def test_the_json_has_the_same_numbers(node):
    _, text = read(node.url + '/status.json')
    status = json.loads(text)
    assert status['admissions'] == {'0': {'accept': 5, 'retry': 2}}
    assert status['link']['operations']['put_object'] >= 4


@pytest.mark.parametrize('host', ['evil.example', 'evil.example:80', ''])
def test_other_names_of_this_machine_are_refused(node, host):
    with pytest.raises(urllib.error.HTTPError) as caught:
        read(node.url + '/', Host=host)
    assert caught.value.code == 403


def test_there_is_nothing_but_get(node):
    for method, path, code in (('POST', '/', 501), ('GET', '/x', 404)):
        with pytest.raises(urllib.error.HTTPError) as caught:
            urllib.request.urlopen(urllib.request.Request(
                node.url + path, method=method), timeout=20)
        assert caught.value.code == code


def counted_names():
    """Counters that code of ours can count, although it has not yet."""
    names = set()
    for module in (client, service, source, upload, verify, local):
        text = pathlib.Path(module.__file__).read_text()
        names |= {'swift_dss_' + name.replace('.', '_') + '_total'
                  for name in re.findall(
                      r"count\(\s*'([a-z_.]+)'", text)}
        names |= {'swift_dss_gateway_%s_total' % name for name in
                  re.findall(r"counter = '([a-z_]+)'", text)}
    names.add('swift_dss_gateway_remote_corrupt_total')
    return names


def exported(node):
    _, text = read(node.url + '/metrics')
    return set(re.findall(r'^(swift_dss_[a-z0-9_]+)[ {]', text, re.M))


@pytest.mark.parametrize('name', ['grafana-dashboard.json',
                                  'prometheus-rules.yml'])
def test_every_metric_that_is_asked_for_is_exported(node, name):
    wanted = set(_METRIC.findall((ETC / name).read_text()))
    known = exported(node) | counted_names()
    assert len(wanted) > 5
    assert wanted - known == set()
    assert {*wanted, 'swift_dss_gateway_pendign_bytes'} - known, \
        'a misspelt name would be seen'


def test_the_dashboard_is_one(node):
    dashboard = json.loads((ETC / 'grafana-dashboard.json').read_text())
    taken = set()
    for panel in dashboard['panels']:
        at = panel['gridPos']
        cells = {(x, y) for x in range(at['x'], at['x'] + at['w'])
                 for y in range(at['y'], at['y'] + at['h'])}
        assert not cells & taken and at['x'] + at['w'] <= 24
        taken |= cells
        assert all(target['expr'] for target in panel['targets'])
    assert len({panel['id'] for panel in dashboard['panels']}) == len(
        dashboard['panels'])


def test_the_rules_are_rules():
    promtool = shutil.which('promtool')
    if promtool:
        subprocess.run([promtool, 'check', 'rules', str(
            ETC / 'prometheus-rules.yml')], check=True, timeout=60,
            stdout=subprocess.DEVNULL)
    text = (ETC / 'prometheus-rules.yml').read_text()
    alerts = re.findall(r'- alert: (\w+)', text)
    assert len(alerts) == len(set(alerts)) >= 8
    assert text.count('expr:') == text.count('severity:') == \
        text.count('summary:') == len(alerts)


def panels():
    """Expressions of the dashboard, by the panels' titles."""
    board = json.loads((ETC / 'grafana-dashboard.json').read_text())
    return [(panel['title'], target['expr'].replace('$node', '.*'))
            for panel in board['panels']
            for target in panel.get('targets', ())]


def alerts():
    """Expressions of the rules, by the alerts' names."""
    rules = yaml.safe_load((ETC / 'prometheus-rules.yml').read_text())
    return [(rule['alert'], rule['expr']) for group in rules['groups']
            for rule in group['rules']]


@contextlib.contextmanager
def prometheus(node, folder):
    """A Prometheus that reads the node's page each second; its address."""
    port = processes.free_base_port(1, first=27790)
    (folder / 'prometheus.yml').write_text(
        'scrape_configs:\n- job_name: swift-dss\n  scrape_interval: 1s\n'
        '  static_configs:\n  - targets: [%r]\n'
        % node.url.rpartition('/')[2])
    server = subprocess.Popen(
        ['prometheus', '--config.file=%s' % (folder / 'prometheus.yml'),
         '--storage.tsdb.path=%s' % (folder / 'series'),
         '--web.listen-address=127.0.0.1:%d' % port],
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL)
    try:
        yield 'http://127.0.0.1:%d' % port
    finally:
        server.terminate()
        server.wait(30)


def evaluated(url, text):
    """What an expression gives now, as label sets; an error is raised."""
    _headers, answer = read('%s/api/v1/query?%s' % (
        url, urllib.parse.urlencode({'query': text})))
    return json.loads(answer)['data']['result']


@pytest.mark.skipif(not shutil.which('prometheus'),
                    reason='apt-get install prometheus')
def test_a_prometheus_evaluates_every_expression(node, tmp_path):
    with prometheus(node, tmp_path) as url:
        def samples():
            with contextlib.suppress(OSError):
                count = evaluated(url, 'count_over_time('
                                  'swift_dss_tier_read_bytes_total[1m])')
                return count and float(count[0]['value'][1]) >= 3
            return False

        wait_until(samples, 60)
        empty = [(name, text) for name, text in panels()
                 if not evaluated(url, text)]
        fired = {name for name, text in alerts() if evaluated(url, text)}
        with pytest.raises(urllib.error.HTTPError):
            evaluated(url, 'sum by (class) (')
    assert len(panels()) > 10 and empty == []
    # The node's data, index and queue share one file system.
    assert len(alerts()) > 5 and fired == {'SwiftDssSharedDisks'}


#: Of the pictures in the manual: ``SWIFT_DSS_PICTURES=doc/source/pictures``
#: in the environment of this test renews them.
PICTURES = os.environ.get('SWIFT_DSS_PICTURES', '')
#: A picture of the manual is no larger than this.
MAX_PICTURE_BYTES = 150000


# chromium's own numbers of the colour schemes that a user may prefer.
@pytest.mark.parametrize('name,scheme', [('light', 1), ('dark', 0)])
@pytest.mark.skipif(not shutil.which('chromium'), reason='no chromium here')
def test_a_browser_shows_it_without_a_complaint(node, tmp_path, name, scheme):
    picture = tmp_path / 'page.png'
    done = subprocess.run(
        ['chromium', '--headless=new', '--no-sandbox', '--disable-gpu',
         '--enable-logging=stderr', '--v=0', '--window-size=1240,1080',
         '--hide-scrollbars',
         '--blink-settings=preferredColorScheme=%d' % scheme,
         '--user-data-dir=%s' % (tmp_path / 'profile'),
         '--screenshot=%s' % picture, node.url + '/'],
        stdin=subprocess.DEVNULL, capture_output=True, text=True,
        timeout=120)
    assert done.returncode == 0, done.stderr[-2000:]
    assert 20000 < picture.stat().st_size < MAX_PICTURE_BYTES
    complaints = [line for line in done.stderr.splitlines()
                  if 'CONSOLE' in line]
    assert complaints == []
    if PICTURES:
        shutil.copy(picture, os.path.join(
            PICTURES, 'status-%s.png' % name))
