"""What tests of the gateway share: each on every S3 server, and its nodes.

A module says what a ``Node`` of it is; one that needs another server says
``server`` itself.
"""

from __future__ import annotations

from typing import Any, Callable, Iterator, List

import pytest
from functional.s3_servers import S3Server, SwiftServer, VersityServer


@pytest.fixture(scope='module', params=[VersityServer, SwiftServer],
                ids=['versitygw', 'swift'])
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
