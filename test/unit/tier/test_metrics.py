"""Metrics have types and help, and alerts see the first event of a daemon."""

from __future__ import annotations

import json
import logging
import os
import pathlib
import re
import shutil
import socket
import subprocess

import pytest
from prometheus_client.parser import text_string_to_metric_families

from swift_dss.core.classes import ClassSpec, ClassTable
from swift_dss.core.config import NodeConf
from swift_dss.gateway.link.throughput import DIRECTIONS
from swift_dss.tier import families, report
from swift_dss.tier.metrics import Metrics

ETC = pathlib.Path(__file__).resolve().parents[3] / 'etc'
RULES = ETC / 'prometheus-rules.yml'
#: Of counters in rules and dashboard: increase(NAME_total...) or rate(...).
_RATED = re.compile(r'(?:increase|rate)\(swift_dss_(\w+?)_total\b')


def page(metrics):
    return {family.name: family for family in
            text_string_to_metric_families(metrics.text().decode())}


@pytest.fixture()
def metrics():
    return Metrics(NodeConf(), logging.getLogger('test'))


def test_statsd_hears_of_each_event():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind(('127.0.0.1', 0))
        server.settimeout(10)
        told = Metrics(NodeConf(
            log_statsd_host='127.0.0.1', log_statsd_metric_prefix='n1',
            log_statsd_port=server.getsockname()[1]),
            logging.getLogger('test'))
        told.count('tier.demoted_bytes', 4096)
        told.timing('tier.pass', 0.25)
        assert server.recv(1000) == b'n1.dss-tierd.tier.demoted_bytes:4096|c'
        assert server.recv(1000) == b'n1.dss-tierd.tier.pass:250.0|ms'


def page_name(name):
    return 'swift_dss_' + name.replace('.', '_')


def test_counters_of_errors_are_there_before_the_first(metrics):
    shown = page(metrics)
    for name, text in families.FROM_ZERO.items():
        family = shown[page_name(name)]
        assert (family.type, family.documentation) == ('counter', text)
        assert [sample.value for sample in family.samples] == [0.0]
    metrics.count('gateway.queue_damaged')
    assert page(metrics)[page_name('gateway.queue_damaged')].samples[
        0].value == 1.0


def test_what_is_rated_is_a_counter():
    rated = set(_RATED.findall(RULES.read_text())) | set(_RATED.findall(
        (ETC / 'grafana-dashboard.json').read_text()))
    known = {name.replace('.', '_') for name in
             (*families.FROM_ZERO, *families.LABELLED)}
    assert len(rated) > 5 and rated <= known
    everything = RULES.read_text() + (
        ETC / 'grafana-dashboard.json').read_text()
    # And nothing else is.
    assert not re.findall(r'(?:increase|rate)\(swift_dss_\w+?(?<!_total)\b'
                          r'[{\[]', everything)


def test_labelled_counters_are_counters(metrics):
    metrics.label([('gateway.admissions', {'class': 'gold', 'answer': 'ok'},
                    2.0), ('tier.failing', {'device': 'sda'}, 0.0)])
    shown = page(metrics)
    assert shown['swift_dss_gateway_admissions'].type == 'counter'
    assert shown['swift_dss_gateway_admissions'].samples[0].name == \
        'swift_dss_gateway_admissions_total'
    assert shown['swift_dss_tier_failing'].type == 'gauge'


def test_help_is_for_people(metrics):
    metrics.count('tier.some_new_thing')
    metrics.gauge('tier.event_backlog', 1.0)
    shown = page(metrics)
    assert shown['swift_dss_tier_event_backlog'].documentation == \
        'events of object servers that wait'
    assert shown['swift_dss_tier_some_new_thing'].documentation == \
        'tier some new thing'
    assert not [name for name, family in shown.items()
                if family.documentation in ('', name)]


def test_all_counters_of_shards_add_up(metrics):
    metrics.replace({'tier.rotten_bytes': 3.0}, ())
    shown = page(metrics)
    assert shown['swift_dss_tier_rotten_bytes'].samples[0].value == 3.0
    assert 'swift_dss_gateway_queue_damaged' in shown


#: An alert of a counter, and how long its rule looks back.
FIRST_EVENTS = [
    ('SwiftDssBytesDiffer', 'gateway_verify_failed_total', 'critical'),
    ('SwiftDssBytesDiffer', 'gateway_remote_corrupt_total', 'critical'),
    ('SwiftDssBytesDiffer', 'gateway_local_corrupt_total', 'critical'),
    ('SwiftDssDiskChangesBytes', 'tier_rotten_bytes_total', 'warning'),
    ('SwiftDssWorkFails', 'tier_round_errors_total', 'critical'),
    ('SwiftDssWorkFails', 'tier_chore_errors_total', 'critical'),
    ('SwiftDssWorkFails', 'gateway_dispatch_errors_total', 'critical'),
    ('SwiftDssDamagedQueue', 'gateway_queue_damaged_total', 'warning')]


@pytest.mark.skipif(not shutil.which('promtool'),
                    reason='apt-get install prometheus')
@pytest.mark.parametrize('alert, metric, severity', FIRST_EVENTS)
def test_an_alert_fires_at_the_first_event(
        tmp_path, alert, metric, severity):
    def fires(values):
        rule = re.search(r'- alert: %s\n(?:(?!- alert).*\n)+' % alert,
                         RULES.read_text()).group(0)
        texts = {key: re.search(r"%s: '(.*)'" % key, rule).group(1)
                 .replace('{{ $labels.instance }}', 'node1')
                 for key in ('summary', 'description')}
        path = tmp_path / 'first.json'
        path.write_text(json.dumps({
            'rule_files': [str(RULES)], 'evaluation_interval': '1m',
            'tests': [{
                'interval': '1m', 'input_series': [{
                    'series': 'swift_dss_%s{instance="node1"}' % metric,
                    'values': values}],
                'alert_rule_test': [{
                    'eval_time': '10m', 'alertname': alert, 'exp_alerts': [{
                        'exp_labels': {'severity': severity,
                                       'instance': 'node1'},
                        'exp_annotations': texts}]}]}]}))
        return subprocess.run(['promtool', 'test', 'rules', str(path)],
                              capture_output=True, timeout=60).returncode == 0

    assert fires('0 0 0 0 0 1 1 1 1 1 1')
    # A counter that is born with the event says nothing.
    assert not fires('_ _ _ _ _ 1 1 1 1 1 1')


def test_every_counter_of_an_alert_has_such_a_test():
    counters = {name + '_total' for name in _RATED.findall(
        RULES.read_text())} - {'gateway_admissions_total'}
    assert counters == {metric for _alert, metric, _severity in FIRST_EVENTS}


def test_the_page_of_the_manual_has_their_names():
    manual = (ETC.parent / 'doc' / 'source' / 'howto'
              / 'status-page.rst').read_text()
    for name in families.LABELLED:
        if name != 'gateway.link_bytes':
            assert name + '_total' in manual, name
    assert os.path.exists(RULES)


def test_refusals_of_each_class_are_there_before_the_first():
    status = {
        'gateway': {'oldest_upload_seconds': None}, 'devices': [],
        'link': dict(
            {direction: {'bytes': 0, 'measured': 0, 'predicted': 0,
                         'mape': None} for direction in DIRECTIONS},
            operations={}, cost_dollars=0),
        'admissions': {'7': {'accept': 2}}, 'space': {'warnings': []}}
    table = ClassTable({3: ClassSpec(3, 'gold', rank=9)})
    shown = {(labels['class'], labels['answer']): number
             for name, labels, number in report.of_gateway(status, table)
             if name == 'gateway.admissions'}
    assert shown[('gold', 'retry')] == shown[('gold', 'full')] == 0
    assert shown[(table.name_of(7), 'accept')] == 2
    assert shown[(table.name_of(0), 'retry')] == 0
