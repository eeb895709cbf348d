"""A load of reads by several machines."""

from __future__ import annotations

import json

import pytest
from support.edges.far_hosts import FarHosts
from support.edges.small_swift import SmallSwift

from swift_dss.cli import main


@pytest.fixture
def server():
    made = SmallSwift()
    yield made
    made.close()


@pytest.fixture
def far_hosts(tmp_path, monkeypatch):
    made = FarHosts(tmp_path, monkeypatch)
    yield made
    made.close()


@pytest.fixture
def load_reads(server, tmp_path):
    """Reads of a few objects; exit code and report."""
    def run(*words, **fields):
        scenario = tmp_path / 'scenario.json'
        scenario.write_text(json.dumps(dict({
            'name': 'reads', 'operation_count': 120, 'user_count': 6,
            'crud_profile': [0, 1, 0, 0], 'container_count': 2,
            'sizes': [{'name': 'tiny', 'size_min': 0, 'size_max': 900}],
            'initial_files': {'tiny': 9}}, **fields)))
        out = tmp_path / 'out.json'
        code = main.main([
            'load', str(scenario), '--storage-url', server.storage_url,
            '--token', 'a', '--json', str(out), *words])
        return code, json.loads(out.read_text()) if out.exists() else None

    return run
