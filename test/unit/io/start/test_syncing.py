"""rsync is refused, wherever its option is seen."""

from __future__ import annotations

import logging
from types import SimpleNamespace

import pytest

from swift_dss.core.errors import BadConfig
from swift_dss.io.start import syncing
from swift_dss.objserver import server
from swift_dss.objserver.diskfile import DssDiskFileManager
from swift_dss.objserver.ec import DssECDiskFileManager

SSYNC = '[object-replicator]\nsync_method = ssync\n'
REFUSED = ('[object-replicator]\n', '[object-replicator]\nsync_method =\n',
           '[object-replicator]\nsync_method = rsync\n',
           '[DEFAULT]\nsync_method = rsync\n[object-replicator]\n')
LOGGER = logging.getLogger('syncing-test')


@pytest.mark.parametrize('text', REFUSED)
def test_rsync_is_refused_and_what_to_write_is_said(tmp_path, text):
    path = tmp_path / 'object-server.conf'
    path.write_text('[app:object-server]\nuse = egg:swift_dss#object\n' + text)
    with pytest.raises(BadConfig) as told:
        syncing.check_file(str(path))
    for word in (str(path), '[object-replicator]', 'sync_method', 'rsync',
                 'sync_method = ssync'):
        assert word in str(told.value)


@pytest.mark.parametrize('text', [
    SSYNC, '[DEFAULT]\nsync_method = ssync\n[object-replicator]\n',
    '[app:object-server]\nuse = x\n', '[DEFAULT]\nsync_method = rsync\n'])
def test_ssync_and_files_without_a_replicator_are_taken(tmp_path, text):
    path = tmp_path / 'object-server.conf'
    path.write_text(text)
    assert syncing.check_file(str(path))


def test_a_folder_of_files_is_one_configuration(tmp_path):
    folder = tmp_path / 'object-server.conf.d'
    folder.mkdir()
    (folder / '10.conf').write_text(SSYNC)
    plain = str(tmp_path / 'object-server.conf')
    assert syncing.check_file(plain) and syncing.check_file(str(folder))
    (folder / '20.conf').write_text(
        '[object-replicator]\nsync_method = rsync\n')
    for path in (plain, str(folder)):
        with pytest.raises(BadConfig):
            syncing.check_file(path)


def test_a_file_that_is_not_there_says_nothing(tmp_path):
    assert not syncing.check_file(str(tmp_path / 'none.conf'))
    (tmp_path / 'bad.conf').write_text('no section\n')
    with pytest.raises(BadConfig, match='bad.conf'):
        syncing.check_file(str(tmp_path / 'bad.conf'))


@pytest.mark.parametrize('method', [{}, {'sync_method': 'rsync'}])
def test_a_replicator_of_ours_does_not_start_with_rsync(method):
    conf = dict(method, log_name='object-replicator', devices='/none')
    with pytest.raises(SystemExit, match='sync_method = ssync'):
        DssDiskFileManager(conf, LOGGER)


def test_other_daemons_and_fragments_need_no_replicator():
    for name in ('object-auditor', 'object-reconstructor'):
        DssDiskFileManager({'log_name': name, 'devices': '/none'}, LOGGER)
    DssECDiskFileManager({'log_name': 'object-replicator',
                          'devices': '/none'}, LOGGER)
    DssDiskFileManager({'log_name': 'object-replicator', 'devices': '/none',
                        'sync_method': 'ssync'}, LOGGER)


@pytest.mark.parametrize('ours', [True, False])
def test_the_object_server_looks_at_its_own_file(
        tmp_path, monkeypatch, ours):
    path = tmp_path / 'object-server.conf'
    path.write_text('[object-replicator]\n')
    monkeypatch.setattr(server, 'POLICIES', [SimpleNamespace(
        diskfile_module='egg:swift_dss#dss.fs' if ours
        else 'egg:swift_dss#dss_ec.fs')])
    monkeypatch.setattr(server, 'DssObjectController', dict)
    options = {'__file__': str(path)}
    if not ours:
        assert server.app_factory(options) == options
        return
    with pytest.raises(SystemExit, match='object-server.conf.*rsync'):
        server.app_factory(options)
    path.write_text(SSYNC)
    assert server.app_factory(options) == options


def test_swift_gives_a_replicator_the_name_of_its_section(tmp_path):
    """What the check of the replicator leans on."""
    from swift.common.utils import readconf
    path = tmp_path / 'object-server.conf'
    path.write_text('[object-replicator]\n')
    assert readconf(str(path), 'object-replicator')['log_name'] == \
        syncing.SECTION
