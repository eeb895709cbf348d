"""The class table and rules of a cluster: the shipped samples."""

from __future__ import annotations

import os
import sys
from typing import List

from swift_dss.aio import configs
from swift_dss.aio.layout import AioConf
from swift_dss.core.classes import ClassTable
from swift_dss.core.errors import BadConfig
from swift_dss.wire.settings import classtable

CLASSES_SAMPLE = 'dss-classes.conf-sample'
RULES_SAMPLE = 'dss-rules.conf-sample'


def sample_folders() -> List[str]:
    """Where samples lie: of a checkout first, then of an installation."""
    here = os.path.dirname(os.path.abspath(__file__))
    return [os.path.join(here, '..', '..', 'etc'),
            os.path.join(sys.prefix, 'share', 'swift-dss', 'etc')]


def sample_text(name: str) -> str:
    """A shipped sample.

    :raises BadConfig: the installation lacks it
    """
    for folder in sample_folders():
        path = os.path.join(folder, name)
        if os.path.exists(path):
            with open(path, encoding='utf-8') as source:
                return source.read()
    raise BadConfig('%s is in none of %s' % (
        name, ', '.join(map(os.path.normpath, sample_folders()))))


def write(conf: AioConf) -> None:
    """Put them where the cluster's configuration names them."""
    configs.write(conf, {
        'etc/dss-classes.conf': sample_text(CLASSES_SAMPLE),
        'etc/dss-rules.conf': sample_text(RULES_SAMPLE)})


def read_classes(conf: AioConf) -> ClassTable:
    """The class table of the cluster, as it is now."""
    path = conf.path('etc', 'dss-classes.conf')
    with open(path, encoding='utf-8') as source:
        return classtable.parse(source.read(), path)
