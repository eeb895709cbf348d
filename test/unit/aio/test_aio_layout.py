"""What a cluster may be asked to be."""

from __future__ import annotations

import argparse
import configparser
import dataclasses

import pytest

from swift_dss.aio import cluster, configs, layout
from swift_dss.cli.aio import verbs
from swift_dss.core.errors import BadConfig
from swift_dss.wire.settings import nodeconf

CONF = layout.AioConf(root='/r', base_port=9000)


@pytest.mark.parametrize('change, said', [
    ({'root': '/' + 'x' * 90}, 'sockets'),
    ({'devices': 2}, 'three'),
    ({'storage': 'loops', 'ssd_bytes': 1 << 20}, '320 MiB'),
    ({'default_policy': 'gold'}, 'dss-ec'),
    ({'replicas': 5}, '1 to 4'),
    ({'replicas': 0}, '1 to 4'),
    ({'chunk_bytes': 1 << 30}, '16384'),
])
def test_what_cannot_work_is_refused_with_the_reason(change, said):
    with pytest.raises(BadConfig, match=said):
        layout.check(dataclasses.replace(CONF, **change))


def test_a_conf_comes_back_as_it_was_saved(tmp_path):
    conf = dataclasses.replace(CONF, root=str(tmp_path), hdd_iops=7)
    layout.save(conf)
    assert layout.load(str(tmp_path)) == conf


def test_no_cluster_is_said_with_the_way_to_start_one(tmp_path):
    with pytest.raises(BadConfig, match='aio start'):
        layout.load(str(tmp_path))


def test_two_roots_share_no_cgroup_and_no_port():
    other = dataclasses.replace(CONF, root='/s', base_port=9010)
    assert CONF.cgroup_name != other.cgroup_name
    ports = {CONF.base_port + n for n in range(layout.PORTS)}
    assert CONF.metrics_port in ports and CONF.cloud_port + 3 in ports
    assert other.base_port not in ports


@pytest.mark.parametrize('plain', [False, True])
def test_every_configuration_file_parses_and_every_filter_is_there(plain):
    conf = dataclasses.replace(CONF, plain=plain)
    files = dict(configs.cluster_files(conf))
    files.update(configs.cloud_files(conf))
    for name, text in files.items():
        if not name.endswith('.conf') or name.endswith('dss.conf'):
            continue
        parser = configparser.ConfigParser(interpolation=None)
        parser.read_string(text, name)
        for section in parser.sections():
            if section.startswith('pipeline:'):
                for part in parser.get(section, 'pipeline').split():
                    assert ('filter:' + part in parser
                            or 'app:' + part in parser), (name, part)


def test_the_node_configuration_is_one_that_we_read():
    text = configs.cluster_files(CONF)['etc/dss.conf']
    node = nodeconf.parse(text)
    assert nodeconf.capacity_path(node, 'd2') == '/r/hdd/d2'
    assert node.gateway.url == CONF.cloud_url


def test_what_a_node_writes_is_removed_with_the_cluster():
    node = nodeconf.parse(configs.cluster_files(CONF)['etc/dss.conf'])
    for path in (node.devices, node.run_dir, node.tier.index_dir):
        assert path.startswith('/r/')
        assert path.split('/')[2] in cluster.FOLDERS


@pytest.mark.parametrize('text, number', [
    ('7', 7), ('64M', 64 << 20), ('1g', 1 << 30), ('2k', 2048)])
def test_sizes_have_units(text, number):
    assert verbs.size(text) == number


@pytest.mark.parametrize('text', ['', 'M', '1.5G', '-1', 'x'])
def test_a_bad_size_is_refused(text):
    with pytest.raises(argparse.ArgumentTypeError):
        verbs.size(text)
