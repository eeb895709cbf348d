"""Processes that do not count build diskfile managers too."""

from __future__ import annotations

import logging

import pytest

from swift_dss.objserver.diskfile import DssDiskFileManager
from swift_dss.objserver.ec import DssECDiskFileManager


@pytest.mark.parametrize('manager', [DssDiskFileManager,
                                     DssECDiskFileManager])
def test_the_relinker_s_logger_will_do(manager, tmp_path):
    logger = logging.getLogger('without-statsd')
    assert not hasattr(logger, 'increment')
    made = manager({'devices': str(tmp_path), 'mount_check': 'false'},
                   logger)
    assert made.dss_node.class_table is not None
