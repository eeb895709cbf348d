"""fsspec's own suites for file systems, on a running cluster."""

from __future__ import annotations

import posixpath
import uuid

import pytest

pytest.importorskip('fsspec.tests.abstract')

import fsspec
import fsspec.tests.abstract as suites

pytestmark = pytest.mark.cluster


class DssFixtures(suites.AbstractFixtures):
    """One container for all tests, as each has names of its own."""

    @pytest.fixture(scope='class')
    def fs(self, cluster):
        return fsspec.filesystem(
            'dss', auth_url=cluster.conf.auth_url, user='test:tester',
            key='testing')

    @pytest.fixture(scope='class')
    def fs_path(self, fs):
        container = 'test-%s' % uuid.uuid4().hex[:12]
        fs.mkdir(container)
        yield container
        fs.rm(container, recursive=True)

    @pytest.fixture
    def fs_join(self):
        return posixpath.join

    @pytest.fixture
    def supports_empty_directories(self):
        # Names of objects make the directories, as in all object stores.
        return False


class TestCopy(DssFixtures, suites.AbstractCopyTests):
    pass


class TestGet(DssFixtures, suites.AbstractGetTests):
    pass


class TestPut(DssFixtures, suites.AbstractPutTests):
    pass


class TestOpen(DssFixtures, suites.AbstractOpenTests):
    pass


class TestPipe(DssFixtures, suites.AbstractPipeTests):
    pass
