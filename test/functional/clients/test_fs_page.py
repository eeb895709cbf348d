"""The commands of the manual's page about ``dss://`` do what it shows."""

from __future__ import annotations

import doctest
import pathlib

import pytest

pytest.importorskip('fsspec')
pytest.importorskip('aiohttp')

pytestmark = pytest.mark.cluster

PAGE = (pathlib.Path(__file__).resolve().parents[3]
        / 'doc/source/howto/python.rst')


def test_the_page_shows_what_happens(cluster, monkeypatch):
    for name, value in (('ST_AUTH', cluster.conf.auth_url),
                        ('ST_USER', 'test:tester'), ('ST_KEY', 'testing')):
        monkeypatch.setenv(name, value)
    failed, tried = doctest.testfile(str(PAGE), module_relative=False)
    assert tried > 15
    assert not failed
