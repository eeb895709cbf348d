"""``swift-dss manual``: man pages, one of each program and one a command."""

from __future__ import annotations

import argparse
import os
from typing import Dict

from swift_dss.io.start.versions import version
from swift_dss.core.errors import BadConfig

HELP = 'write the man pages'
_PROGRAM = 'swift-dss'
#: Commands whose page is written by hand, in ``doc/man``.
_BY_HAND = frozenset(('block',))


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the argument."""
    parser.add_argument('folder', metavar='FOLDER',
                        help='it is made')


def run(args: argparse.Namespace) -> int:
    """Write them, and print their paths."""
    os.makedirs(args.folder, exist_ok=True)
    for name, text in sorted(pages().items()):
        path = os.path.join(args.folder, name)
        with open(path, 'w', encoding='utf-8') as target:
            target.write(text)
        print(path)
    return 0


def pages() -> Dict[str, str]:
    """File name to text.

    :raises BadConfig: the library is not installed
    """
    # It imports all commands.
    from swift_dss.cli.main import COMMANDS, whole_parser
    from swift_dss.tier.main import parser as tierd_parser
    whole = whole_parser()
    commands = next(action.choices for action in whole._actions
                    if isinstance(action, argparse._SubParsersAction))
    also = ', '.join('swift-dss-%s(%d)' % (
        name, 8 if name in _BY_HAND else 1) for name in COMMANDS)
    made = {_PROGRAM + '.1': _page(_short(whole), whole.description or '',
                                   also + ', swift-dss-tierd(8)'),
            'swift-dss-tierd.8': _page(
                tierd_parser(), 'serve events, moves and S3 of a node',
                'swift-dss(1), swift-dss-tier(1), swift-dss-gateway(1)', 8)}
    for name, parser in commands.items():
        if name not in _BY_HAND:
            made['%s-%s.1' % (_PROGRAM, name)] = _page(
                parser, COMMANDS[name][1], 'swift-dss(1)')
    return made


def _short(whole: argparse.ArgumentParser) -> argparse.ArgumentParser:
    """The program alone: each command has its own page."""
    short = argparse.ArgumentParser(
        prog=_PROGRAM, description=whole.description, usage='swift-dss '
        'COMMAND [ARGUMENT ...]', epilog='Exit codes: 0 done; 2 a wrong '
        'option; 78 a configuration that cannot be used; others as '
        'sysexits.h has them.')
    short.add_argument('--version', action='store_true',
                       help='print the versions, and end')
    for action in whole._actions:
        if isinstance(action, argparse._SubParsersAction):
            group = short.add_argument_group('commands')
            for choice in action._choices_actions:
                group.add_argument(choice.dest, help=choice.help)
    return short


def _page(parser: argparse.ArgumentParser, line: str, also: str,
          section: int = 1) -> str:
    try:
        from argparse_manpage.manpage import Manpage
    except ImportError as err:
        raise BadConfig('this needs argparse-manpage: pip install '
                        '"swift-dss[package]"') from err
    parser.prog = parser.prog.replace(' ', '-')
    page = Manpage(parser, {
        'project_name': _PROGRAM, 'version': version(),
        'manual_title': 'swift-dss', 'description': line,
        'manual_section': section})
    page.add_section('see also', '=', also.replace('-', '\\-'))
    return str(page)
