"""The man pages are whole, and name what there is."""

from __future__ import annotations

import argparse
import pathlib
import re
import shutil
import subprocess

import pytest

from swift_dss.block import tab
from swift_dss.cli.block import verbs

ROOT = pathlib.Path(__file__).resolve().parents[3]
PAGES = [*sorted((ROOT / 'doc' / 'man').iterdir()),
         ROOT / 'packaging' / 'swift-dss-attach.8']
KMOD = ROOT / 'swift_dss' / 'block' / 'kmod'


def words(name):
    text = (ROOT / 'doc' / 'man' / name).read_text().replace('\\-', '-')
    return set(re.findall(r'[\w=-]+', re.sub(r'\\f.', ' ', text)))


@pytest.mark.skipif(not shutil.which('man'), reason='apt-get install man-db')
@pytest.mark.parametrize('page', PAGES, ids=lambda page: page.name)
def test_page_is_formatted_without_a_warning(page):
    ended = subprocess.run(
        ['man', '--warnings', '--local-file', str(page)],
        capture_output=True, text=True, env={'LC_ALL': 'C.UTF-8',
                                             'MANWIDTH': '80',
                                             'PATH': '/usr/bin:/bin'})
    assert (ended.returncode, ended.stderr) == (0, '')
    assert 'SEE ALSO' in ended.stdout


def test_every_verb_and_option_of_the_tab_has_its_words():
    parser = argparse.ArgumentParser()
    verbs.configure(parser)
    told = set(re.findall(r'^ {4}([\w-]+)(?: |$)', parser.format_help(), re.M))
    documented = words('swift-dss-block.8')
    assert {'create', 'repair'} < told <= documented
    assert {'noauto', 'nofail'} | {
        name + '=' for name in (*tab._NUMBERS, *tab._CHOICES, 'class-table')
    } <= documented


def test_every_message_and_argument_of_the_target_has_its_words():
    messages = set(re.findall(r'strcasecmp\((?:verb|name|what), "(\w+)"\)',
                              (KMOD / 'dss_message.c').read_text()))
    arguments = set(re.findall(r'!strcasecmp\(\w+, "(\w+)"\)',
                               (KMOD / 'dss_args.c').read_text()))
    assert len(messages) > 10 and len(arguments) > 3
    assert messages | arguments <= words('dm-dss.4')
