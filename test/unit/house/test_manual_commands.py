"""Commands of the manual are ones that the programs take.

No command is run here: the whole ``swift-dss`` lines of code blocks go through
the real parsers, commands in the text through the names of verbs and options.
Other programs' commands are judged by the files that they name.
"""

from __future__ import annotations

import contextlib
import io
import re

import pytest
from support import manual

from swift_dss.cli import main

#: A page of release notes is made by reno, of many versions.
PAGES = [page for page in manual.pages() if page.stem != 'releasenotes']
#: Programs whose arguments name files of this repository.
OTHERS = ('python', 'pytest', 'bash')
#: An elision, which stands for more arguments.
ELISION = re.compile(r'\.\.\.|\[|<')


@pytest.fixture(scope='module')
def parser():
    return main.whole_parser()


def refused(parser, words):
    """Why the parser does not take a command, or None."""
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said), \
                contextlib.redirect_stdout(io.StringIO()):
            parser.parse_args(words)
    except SystemExit as end:
        return said.getvalue().strip().splitlines()[-1] if end.code else None
    return None


def test_the_parsers_take_each_command_of_a_code_block(parser):
    wrong, taken = [], 0
    for page in PAGES:
        for command in manual.commands(page):
            if any(ELISION.search(word) for word in command.words):
                wrong += missing(parser, command)
                continue
            why = refused(parser, command.words[1:])
            taken += why is None
            wrong += ['%s\n  %s' % (command, why)] if why else []
    assert not wrong, '\n'.join(wrong)
    assert taken > 100
    print('figure: %d commands of code blocks taken by their parsers' % taken)


def missing(parser, command):
    """Verbs and options that a command names and its parser has not."""
    at, words = parser, command.words[1:]
    children = manual.generated().children
    while words and re.match(r'[a-z][a-z-]*$', words[0]):
        verbs = children(at)
        if not verbs:
            break
        if words[0] not in verbs:
            return ['%s: no verb %s' % (command, words[0])]
        at = verbs[words.pop(0)]
    known = manual.generated().option_names(at)
    end = words.index('--') if '--' in words else len(words)
    return ['%s: no option %s' % (command, word) for word in words[:end]
            if word.startswith('--')
            and word.split('=')[0].rstrip('.,') not in known]


def test_verbs_and_options_of_commands_in_the_text_are_there(parser):
    wrong = [line for page in PAGES
             for command in manual.inline(page)
             if command.words[0] == 'swift-dss'
             for line in missing(parser, command)]
    assert not wrong, '\n'.join(wrong)


def test_scripts_and_tests_that_commands_name_are_there():
    wrong, seen = [], 0
    for page in PAGES:
        for command in manual.commands(
                page, programs=OTHERS) + manual.inline(page):
            for word in command.words[1:]:
                if re.match(r'(test|devstack|doc)/[\w/.-]+', word):
                    seen += 1
                    if not (manual.ROOT / word.split('::')[0]).exists():
                        wrong.append('%s: %s' % (command, word))
    assert not wrong, '\n'.join(wrong)
    assert seen > 60


def test_a_wrong_command_is_seen(parser, tmp_path):
    """The wrong twin: a verb, an option and a value that are not there."""
    assert refused(parser, ['tier', 'demoted'])
    assert refused(parser, ['tier', 'demote', '--to', 'tape'])
    assert refused(parser, ['tier', 'status', '--jsonn'])
    assert refused(parser, ['tier', 'status', '--json']) is None
    command = manual.Command('page', '', ['swift-dss', 'tier', 'status',
                                          '--colour', 'FILE'])
    assert missing(parser, command)


def test_commands_are_read_as_a_shell_does(tmp_path, monkeypatch):
    page = tmp_path / 'page.rst'
    page.write_text(
        'Head\n====\n\n    $ swift-dss pack \\\n        a.txt > b  # why\n'
        '    cat x | swift-dss inspect "a b"\n\nBelow\n-----\n\n'
        '    swift-dss check\n\nIn ``swift-dss tier\nstatus`` it says.\n')
    monkeypatch.setattr(manual, 'ROOT', tmp_path)
    found = [command.words for command in manual.commands(page)]
    assert ['swift-dss', 'pack', 'a.txt'] in found
    assert ['swift-dss', 'inspect', 'a b'] in found
    assert [command.words for command in manual.commands(page, 'Below')] == [
        ['swift-dss', 'check']]
    assert [command.words for command in manual.inline(page)] == [
        ['swift-dss', 'tier', 'status']]
