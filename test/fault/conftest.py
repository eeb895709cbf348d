"""A real S3 server, and a proxy before it that fails as it is told."""

from __future__ import annotations

import pytest
from support.edges.faulty_s3 import FaultyS3
from support.edges.s3_servers import VersityServer


@pytest.fixture(scope='module')
def real():
    made = VersityServer()
    yield made
    made.close()


@pytest.fixture
def faulty(real):
    made = FaultyS3(real)
    yield made
    made.stop()
