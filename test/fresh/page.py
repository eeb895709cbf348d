"""What a page of the manual tells an operator to do, in its order.

A literal block that begins with ``[`` is a part of the configuration file that
the text before it names; every other block has commands. A block with ``...``
shows what to look for, and is no step.
"""

from __future__ import annotations

import configparser
import pathlib
import re
import textwrap
from typing import List, NamedTuple


class Step(NamedTuple):
    """Commands, or what goes into a file."""

    path: str
    text: str


def section(page: pathlib.Path, title: str) -> str:
    """The text between a heading and the next one of its kind.

    :raises KeyError: there is no such heading
    """
    parts = re.split(r'^(\S.*)\n-{3,}\n', page.read_text(), flags=re.M)
    return dict(zip(parts[1::2], parts[2::2]))[title]


def steps(text: str) -> List[Step]:
    """The steps of a section."""
    listed = []
    lines, before = text.split('\n'), ''
    while lines:
        line = lines.pop(0)
        before += line + '\n'
        if not line.rstrip().endswith('::'):
            continue
        block = _block(lines)
        if '...' not in block:
            names = re.findall(r'``(/etc/swift/[\w.-]+)``', before)
            listed.append(Step(names[-1] if block.startswith('[') else '',
                               block))
        before = ''
    return listed


def _block(lines: List[str]) -> str:
    """Take a literal block off the lines: up to one further left than its
    first."""
    while lines and not lines[0].strip():
        lines.pop(0)
    margin = len(lines[0]) - len(lines[0].lstrip())
    block = []
    while lines and (not lines[0].strip()
                     or len(lines[0]) - len(lines[0].lstrip()) >= margin):
        block.append(lines.pop(0))
    return textwrap.dedent('\n'.join(block)).strip('\n') + '\n'


def merge(path: pathlib.Path, text: str) -> None:
    """Put options into a configuration file, as an editor would."""
    told = configparser.RawConfigParser(strict=False)
    told.optionxform = str  # type: ignore[assignment,method-assign]
    if path.exists():
        told.read(path)
    wanted = configparser.RawConfigParser(default_section='')
    wanted.optionxform = str  # type: ignore[assignment,method-assign]
    wanted.read_string(text)
    for name in wanted.sections():
        if name != 'DEFAULT' and not told.has_section(name):
            told.add_section(name)
        for option, value in wanted.items(name):
            told.set(name, option, value)
    with open(path, 'w') as target:
        told.write(target)
