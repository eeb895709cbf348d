"""The class table and rules of a cluster: the shipped samples."""

from __future__ import annotations

import os
import sys
from typing import Dict, List

from swift_dss.aio import configs
from swift_dss.aio.layout import AioConf

#: File in ``etc/`` of the cluster -> sample.
SAMPLES = {
    'dss-classes.conf': 'dss-classes.conf-sample',
    'dss-rules.conf': 'dss-rules.conf-sample',
}


def sample_folders() -> List[str]:
    """Where samples lie: of a checkout first, then of an installation."""
    here = os.path.dirname(os.path.abspath(__file__))
    return [os.path.join(here, '..', '..', 'etc'),
            os.path.join(sys.prefix, 'share', 'swift-dss', 'etc')]


def write(conf: AioConf) -> None:
    """Put the samples where the cluster's configuration names them."""
    files: Dict[str, str] = {}
    for name, sample in SAMPLES.items():
        for folder in sample_folders():
            path = os.path.join(folder, sample)
            if os.path.exists(path):
                with open(path, encoding='utf-8') as source:
                    files['etc/' + name] = source.read()
                break
    configs.write(conf, files)
