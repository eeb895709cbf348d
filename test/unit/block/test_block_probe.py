"""What udev is told of SSDs and origins."""

from __future__ import annotations

import subprocess
import sys
import uuid

import pytest

from swift_dss.block import probe, tab
from swift_dss.block.ondisk.blocks import BLOCK_BYTES, flip, seal
from swift_dss.block.ondisk.superblock import SUPER, build_super, fresh
from swift_dss.block.ondisk.geometry import Geometry

UUID = uuid.UUID('01234567-89ab-cdef-0123-456789abcdef')
BLOCK = build_super(fresh(Geometry(128, 8), 1 << 17, 1 << 20, UUID.bytes, 7))
NOTHING = bytes(BLOCK_BYTES)
ENTRIES = list(tab.parse('''
fast /dev/disk/by-id/nvme-X /dev/disk/by-id/ata-Y
slow /dev/sdc1 /dev/sdd
''')[0].values())
LINKS = ['disk/by-id/ata-Y', 'disk/by-uuid/1234', 'disk/by-label/d1',
         'disk/by-path/pci-1']


def told(node='/dev/sda', links=(), blocks=2 * NOTHING, known=''):
    return probe.properties(node, links, blocks, ENTRIES, known)


@pytest.mark.parametrize('blocks', [
    BLOCK + NOTHING, NOTHING + BLOCK, BLOCK + BLOCK, flip(BLOCK, 900) + BLOCK])
def test_ssd_with_a_cache_has_a_type_and_the_uuid_of_the_cache(blocks):
    assert told(blocks=blocks) == {
        'DSS_BLOCK': 'cache', 'ID_FS_TYPE': 'dm_dss', 'ID_FS_USAGE': 'other',
        'ID_FS_VERSION': '2', 'ID_FS_UUID': str(UUID),
        'ID_FS_UUID_ENC': str(UUID)}


def test_cache_of_a_version_to_come_is_one_all_the_same():
    newer = bytearray(BLOCK)
    SUPER.pack_into(newer, 0, 0, 99, *SUPER.unpack_from(BLOCK)[2:])
    assert told(blocks=seal(bytes(newer)) + NOTHING)['ID_FS_VERSION'] == '99'


@pytest.mark.parametrize('blocks', [
    b'', BLOCK[:100], 2 * NOTHING, 2 * flip(BLOCK, 900),
    2 * seal(b'x' * BLOCK_BYTES)])
def test_what_is_no_cache_is_not_called_one(blocks):
    assert told(blocks=blocks) == {}


def test_what_blkid_knows_it_knows_better():
    assert told(blocks=BLOCK + BLOCK, known='ext4') == {}


@pytest.mark.parametrize('node, links, name', [
    ('/dev/sdb', LINKS, 'fast'), ('/dev/sdd', LINKS[1:], 'slow')])
def test_origin_of_the_tab_keeps_no_link_of_its_file_system(
        node, links, name):
    answers = told(node, links, known='xfs')
    assert (answers['DSS_BLOCK'], answers['DSS_BLOCK_NAME']) == ('origin',
                                                                 name)
    assert answers['DSS_BLOCK_LINKS'].split() == [
        link for link in links if 'by-id' in link or 'by-path' in link]


@pytest.mark.parametrize('node, links', [
    ('/dev/sdb', LINKS[1:]), ('/dev/sdc1', []),
    ('/dev/nvme0n1', ['disk/by-id/nvme-X'])])
def test_other_disks_are_none_of_its_business(node, links):
    assert told(node, links, known='xfs') == {}


def run(*words, **environment):
    return subprocess.run(
        [sys.executable, '-m', 'swift_dss.block.probe', *words],
        capture_output=True, text=True, env=environment)


def test_program_reads_the_device_and_prints_for_udev(tmp_path):
    ssd, path = tmp_path / 'ssd', tmp_path / 'tab'
    ssd.write_bytes(NOTHING + BLOCK + NOTHING)
    path.write_text('fast /dev/s /dev/h\n')
    ended = run(str(ssd), 'disk/by-id/x', **{tab.VARIABLE: str(path)})
    assert (ended.returncode, ended.stderr) == (0, '')
    assert 'ID_FS_TYPE=dm_dss\n' in ended.stdout
    assert 'ID_FS_UUID=%s\n' % UUID in ended.stdout
    known = run(str(ssd), **{tab.VARIABLE: str(path), 'ID_FS_TYPE': 'xfs'})
    assert (known.returncode, known.stdout) == (0, '')


def test_table_of_a_disk_is_none_of_its_partitions(tmp_path):
    """udev gives partitions all that it knows of their disk."""
    ssd = tmp_path / 'ssd'
    ssd.write_bytes(NOTHING + BLOCK + NOTHING)
    known = {tab.VARIABLE: str(tmp_path / 'none'),
             'ID_PART_TABLE_TYPE': 'gpt'}
    assert 'ID_FS_TYPE=dm_dss\n' in run(
        str(ssd), DEVTYPE='partition', **known).stdout
    assert not run(str(ssd), DEVTYPE='disk', **known).stdout


def test_device_that_is_gone_is_an_error_in_words(tmp_path):
    ended = run(str(tmp_path / 'none'))
    assert ended.returncode == 1
    assert ended.stderr.startswith('swift-dss-block-probe: ')
    assert ended.stderr.count('\n') == 1


def test_rule_asks_the_program_of_this_installation():
    ended = run('--rule')
    assert ended.returncode == 0
    assert 'IMPORT{program}="%s -m swift_dss.block.probe $devnode $links"' \
        % sys.executable in ended.stdout
    assert '{{' not in ended.stdout
