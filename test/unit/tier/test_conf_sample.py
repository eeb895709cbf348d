"""The sample shows every option of dss.conf at its default."""

from __future__ import annotations

import dataclasses
import os
import re

from swift_dss.core.config import NodeConf
from swift_dss.wire.settings import nodeconf

_SAMPLE = os.path.join(os.path.dirname(__file__), os.pardir, os.pardir,
                       os.pardir, 'etc', 'dss.conf-sample')


def _sample():
    with open(_SAMPLE, encoding='utf-8') as source:
        return source.read()


def _uncommented():
    return re.sub(r'(?m)^# ([a-z_0-9]+ =.*)$', r'\1', _sample())


def test_the_sample_as_it_is_changes_nothing():
    assert nodeconf.parse(_sample()) == NodeConf()


def test_every_option_is_there_at_its_default():
    text = _uncommented()
    conf = nodeconf.parse(text)
    assert dataclasses.replace(conf, gateway=dataclasses.replace(
        conf.gateway, ca_bundle=None)) == NodeConf()
    for kind, section in ((NodeConf(), 'dss'), (NodeConf().io, 'io'),
                          (NodeConf().tier, 'tier'),
                          (NodeConf().gateway, 'gateway'),
                          (NodeConf().prefetch, 'prefetch')):
        body = text.split('[%s]' % section)[1].split('\n[')[0]
        for option in vars(kind):
            if option in ('io', 'tier', 'gateway', 'prefetch', 'capacity',
                          'engines', 'shard'):
                continue
            assert re.search('(?m)^%s =' % option, body), option
