"""The installation page is made of steps that a script can follow."""

from __future__ import annotations

import pathlib

import pytest
from fresh import page

MANUAL = pathlib.Path(__file__).resolve().parents[3] / 'doc' / 'source'
INSTALL = MANUAL / 'start' / 'install.rst'
UNINSTALL = MANUAL / 'howto' / 'uninstall.rst'


def test_every_fragment_of_the_page_names_its_file():
    listed = [step for title in ('The package', 'Steps')
              for step in page.steps(page.section(INSTALL, title))]
    assert [step.path.rpartition('/')[2] for step in listed if step.path] == [
        'dss.conf', 'object-server.conf', 'swift.conf', 'proxy-server.conf']
    assert {line.split()[0] for step in listed if not step.path
            for line in step.text.splitlines()} == {
        'apt', 'swift-dss-attach', 'cp', 'swift-dss', 'chown', 'sed',
        'systemctl'}


def test_object_daemons_are_restarted_before_the_tier_daemon_starts():
    """An auditor with Swift's own diskfile puts stubs into quarantine."""
    last = page.steps(page.section(INSTALL, 'Steps'))[-1].text
    assert last.index("restart 'swift-object*'") < last.index(
        'swift-dss-tierd')


def test_the_way_back_has_its_commands():
    assert ' '.join(step.text for step in page.steps(
        UNINSTALL.read_text())).split('\n')[:3] == [
            'swift-dss gateway drain --to local',
            ' swift-dss tier verify --stock',
            ' swift-dss tier place --remove']


def test_a_fragment_is_merged_and_the_rest_stays(tmp_path):
    path = tmp_path / 'object-server.conf'
    path.write_text('[DEFAULT]\nuser = swift\n[app:object-server]\n'
                    'use = egg:swift#object\n')
    page.merge(path, '[DEFAULT]\ndss_conf = x\n[app:object-server]\n'
               'use = egg:swift_dss#object\n[capacity]\n* = /hdd/%(device)s\n')
    assert list(filter(None, path.read_text().split('\n'))) == [
        '[DEFAULT]', 'user = swift', 'dss_conf = x', '[app:object-server]',
        'use = egg:swift_dss#object', '[capacity]', '* = /hdd/%(device)s']


def test_examples_are_no_steps_and_blocks_end_where_their_text_goes_on():
    text = ('In ``/etc/swift/a.conf``::\n\n    [x]\n    y = 1\n\n'
            'like this::\n\n    pipeline = ... dss\n\nand run::\n\n'
            '   first\n   second\n\n2. Then.\n')
    assert page.steps(text) == [
        page.Step('/etc/swift/a.conf', '[x]\ny = 1\n'),
        page.Step('', 'first\nsecond\n')]


def test_a_heading_that_is_not_there_is_an_error():
    with pytest.raises(KeyError, match='No such'):
        page.section(INSTALL, 'No such')
