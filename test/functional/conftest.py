"""What tests of the gateway share: each on every S3 server, and its nodes.

A module says what a ``Node`` of it is; one that needs another server says
``server`` itself.
"""

from __future__ import annotations

import os
from typing import Any, Callable, Iterator, List

import pytest
from support.edges.s3_servers import (
    MinioServer, S3Server, SwiftServer, VersityServer)


#: MinIO is for who has it, or the hour that it takes to build.
SERVERS = [VersityServer, SwiftServer] + (
    [MinioServer] if os.environ.get('SWIFT_DSS_MINIO') else [])


@pytest.fixture(scope='module', params=SERVERS,
                ids=[kind.name for kind in SERVERS])
def server(request: Any) -> Iterator[S3Server]:
    """A real S3 server, empty."""
    made = request.param()
    yield made
    made.close()


@pytest.fixture
def nodes(request: Any) -> Iterator[Callable[..., Any]]:
    """Makes nodes of the module's kind, and stops them."""
    made: List[Any] = []

    def make(*arguments: Any, **options: Any) -> Any:
        made.append(request.module.Node(*arguments, **options))
        return made[-1]

    yield make
    for node in made:
        node.gateway.stop()


@pytest.fixture
def node(server: S3Server, tmp_path: Any, nodes: Callable[..., Any]) -> Any:
    """One of them."""
    return nodes(server, tmp_path)
