"""The commands that the manual tells a reader to type.

Reads ``doc/source`` and the README, so that tests run or judge what stands
there and not a copy of it.
"""

from __future__ import annotations

import importlib
import pathlib
import re
import shlex
import sys
from typing import Any, Iterator, List, NamedTuple, Tuple

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SOURCE = ROOT / 'doc' / 'source'
#: What a shell reads as the end of one command.
_ENDS = frozenset(('|', '||', '&&', ';', '&', '>', '>>', '<', '2>'))
_HEADING = re.compile(r'^([^\n]+)\n([=~-])\2{3,}$', re.M)
_INLINE = re.compile(r'``?((?:swift-dss|python|pytest|bash) [^`]+)``?')

class Command(NamedTuple):
    """One command of a code block."""

    page: str
    heading: str
    words: List[str]

    def __str__(self) -> str:
        return '%s: %s' % (self.page, ' '.join(self.words))


def generated() -> Any:
    """The extension that makes pages of parsers and samples."""
    pytest.importorskip('sphinx')
    return _extension('generated')


def evidence() -> Any:
    """What makes tables of the figures that benches wrote."""
    return _extension('evidence')


def _extension(name: str) -> Any:
    sys.path.insert(0, str(ROOT / 'doc' / 'ext'))
    try:
        return importlib.import_module(name)
    finally:
        sys.path.pop(0)


def pages() -> List[pathlib.Path]:
    """Every page, and the README."""
    return [ROOT / 'README.md', *sorted(SOURCE.rglob('*.rst'))]


def commands(page: pathlib.Path, heading: str = '',
             programs: Tuple[str, ...] = ('swift-dss',)) -> List[Command]:
    """The commands in the code blocks of a page, in its order.

    :param heading: of this section alone
    :param programs: of these alone; a line that begins with another word may
        be an output, or prose
    """
    name, made, under = str(page.relative_to(ROOT)), [], ''
    text = page.read_text(encoding='utf-8')
    # A command may go on in the next line.
    lines = re.sub(r'\\\n\s*', ' ', text).split('\n')
    for at, line in enumerate(lines):
        if at + 1 < len(lines) and _HEADING.match(
                line + '\n' + lines[at + 1]):
            under = line
        if line.startswith(' ') and (not heading or heading == under):
            made += [Command(name, under, words)
                     for words in _words(line.strip())
                     if words and words[0] in programs]
    return made


def _words(line: str) -> Iterator[List[str]]:
    if line.startswith('$ '):
        line = line[2:]
    lexer = shlex.shlex(line, posix=True, punctuation_chars='|&;<>')
    lexer.whitespace_split = True
    words: List[str] = []
    try:
        for word in lexer:
            if word in _ENDS:
                yield words
                words = []
            else:
                words.append(word)
    except ValueError:
        # A quotation mark of prose.
        return
    yield words


def lines(page: pathlib.Path, program: str) -> List[str]:
    """Lines of code blocks that begin with a program, for a shell."""
    return [line.strip() for line in page.read_text('utf-8').split('\n')
            if line.startswith('   ') and line.split()[:1] == [program]]


def inline(page: pathlib.Path) -> List[Command]:
    """Commands that stand in the text of a page."""
    text = page.read_text(encoding='utf-8')
    return [Command(str(page.relative_to(ROOT)), '', words)
            for command in _INLINE.findall(text)
            for words in _words(' '.join(command.split())) if words]
