"""``swift-dss gateway ls`` shows what can be read, and names the rest."""

from __future__ import annotations

from types import SimpleNamespace

from support.edges.memory_s3 import MemoryS3

from support.nodes.gateway_node import conf_for

from swift_dss.cli.gateway import ls
from swift_dss.gateway.link.breaker import Breaker
from swift_dss.gateway.link.client import S3Client
from swift_dss.gateway.restore import places
from swift_dss.gateway.restore.places import Place


def test_a_damaged_place_is_named_and_the_others_are_shown(
        tmp_path, monkeypatch, capsys):
    s3 = MemoryS3()
    conf = conf_for(SimpleNamespace(
        url='https://s3', access_key='a', secret_key='s'), str(tmp_path))
    monkeypatch.setattr(ls, 'open_client', lambda gateway: S3Client(
        gateway, Breaker(), 1, connect=s3.connect))
    s3.keys['p/accounts/0'] = b'junk', {}
    s3.keys[places.key_of('p/', '/a')] = places.encode(
        Place('/a', {})), {}
    status = ls.run(SimpleNamespace(places=True, json=False), conf)
    printed = capsys.readouterr()
    assert status == 1
    assert '/a' in printed.out and 'p/accounts/0' in printed.err
