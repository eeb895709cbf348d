"""Pages of the reference that are made of what the program itself reads.

Four directives for ``doc/source``:

``.. commands::``
    Each verb of ``swift-dss`` with its usage, arguments and options, from the
    parsers that the commands run with.

``.. sample:: etc/NAME-sample``
    Sections and options of a sample configuration file with their defaults,
    and with the comments of the file. The anchor of a section is
    ``NAME-SECTION``, that of an option ``NAME-SECTION-OPTION``.

``.. alerts:: etc/prometheus-rules.yml``
    Each alert with its condition, and what the rule says of it.

``.. results:: NAME``
    The commands of a table of evidence, the table made of what they wrote, and
    when and on what machine that was (:mod:`evidence`).

None can differ from the program, as none is written by hand.
"""

from __future__ import annotations

import argparse
import pathlib
import re
import textwrap
from typing import Any, Dict, FrozenSet, Iterator, List, NamedTuple, Tuple

import evidence
from docutils import nodes
from sphinx.util.docutils import SphinxDirective

_ROOT = pathlib.Path(__file__).resolve().parents[2]
#: An option of a sample that is commented out, or is set.
_OPTION = re.compile(r'(?:# ?)?([a-z][a-z0-9_]*) *=(?: *(.*))?$')
_SECTION = re.compile(r'(?:# ?)?\[([^\]]+)\]$')


class Option(NamedTuple):
    """One option of a sample, and the comment above it."""

    name: str
    default: str
    text: str


class Part(NamedTuple):
    """One section of a sample."""

    name: str
    text: str
    options: List[Option]


def parts(text: str) -> List[Part]:
    """The sections of a sample file.

    A comment belongs to the option or section below it; lines before the
    first section are left out.
    """
    made: List[Part] = []
    above: List[str] = []
    for line in text.splitlines():
        section, option = _SECTION.match(line), _OPTION.match(line)
        if section:
            made.append(Part(section.group(1), _prose(above), []))
        elif option and made:
            made[-1].options.append(Option(
                option.group(1), option.group(2) or '', _prose(above)))
        elif line.startswith('#'):
            above.append(line.lstrip('#'))
            continue
        elif line:
            # The next line of a value; lists of a sample have some.
            continue
        elif above and made and not made[-1].options:
            # A section without options of its own: it is all said here.
            made[-1] = made[-1]._replace(text='\n\n'.join(
                filter(None, [made[-1].text, _prose(above)])))
        above = []
    return made


def alerts(text: str) -> Iterator[Tuple[str, str, str]]:
    """Name, meaning and condition of each alert of a file of rules."""
    # Reno, of the same extra, brings it.
    import yaml
    for group in yaml.safe_load(text)['groups']:
        for rule in group['rules']:
            told = rule['annotations']
            yield (rule['alert'], '%s. %s' % (
                re.sub(r"\{\{ \$labels\.(\w+) \}\}", r'<\1>',
                       told['summary']).replace('{{ $value }}', '<number>'),
                told['description']), '%s, if %s%s' % (
                    rule['labels']['severity'], rule['expr'],
                    ', for ' + rule['for'] if 'for' in rule else ''))


def _prose(lines: List[str]) -> str:
    return '\n'.join(line[1:] if line.startswith(' ') else line
                     for line in lines).strip('\n')


def verbs() -> Iterator[Tuple[List[str], str, argparse.ArgumentParser]]:
    """Words, help line and parser of each command and each verb of one."""
    from swift_dss.cli.main import COMMANDS, whole_parser
    for name, parser in children(whole_parser()).items():
        yield from _below([name], COMMANDS[name][1], parser)


def _below(words: List[str], line: str, parser: argparse.ArgumentParser
           ) -> Iterator[Tuple[List[str], str, argparse.ArgumentParser]]:
    yield words, line, parser
    for name, child in children(parser).items():
        yield from _below([*words, name], child.description or '', child)


def children(parser: argparse.ArgumentParser
             ) -> Dict[str, argparse.ArgumentParser]:
    """The verbs below a parser."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            return dict(action.choices)
    return {}


def option_names(parser: argparse.ArgumentParser) -> FrozenSet[str]:
    """The options that a parser takes, in each spelling."""
    return frozenset(name for action in parser._actions
                     for name in action.option_strings)


class _Generated(SphinxDirective):
    """What both share: sections with anchors, and lists of terms."""

    def section(self, anchor: str, title: str, *inside: nodes.Node
                ) -> nodes.section:
        made = nodes.section('', nodes.title(title, title), *inside,
                             ids=[anchor], names=[anchor])
        self.env.get_domain('std').note_hyperlink_target(  # type: ignore
            anchor, self.env.docname, anchor, title)
        return made

    def term(self, head: str, tail: str, text: str, anchor: str = ''
             ) -> nodes.definition_list_item:
        term = nodes.term('', '', nodes.literal(head, head),
                          nodes.Text('  ' + tail if tail else ''))
        if anchor:
            term['ids'].append(anchor)
            self.env.get_domain('std').note_hyperlink_target(  # type: ignore
                anchor, self.env.docname, anchor, head)
        paragraphs = [nodes.paragraph(piece, piece.replace('\n', ' '))
                      for piece in text.split('\n\n') if piece]
        return nodes.definition_list_item(
            '', term, nodes.definition('', *paragraphs))


class Commands(_Generated):
    """``.. commands::``"""

    def run(self) -> List[nodes.Node]:
        return [self._verb(*verb) for verb in verbs()]

    def _verb(self, words: List[str], line: str,
              parser: argparse.ArgumentParser) -> nodes.section:
        name = ' '.join(['swift-dss', *words])
        usage = parser.format_usage()
        inside: List[nodes.Node] = []
        if line:
            inside.append(nodes.paragraph(line, line[:1].upper() + line[1:]))
        inside.append(nodes.literal_block(usage, usage, language='none'))
        rows = [self.term(*self._argument(parser, action))
                for action in parser._actions
                if not isinstance(action, (argparse._HelpAction,
                                           argparse._SubParsersAction))
                and action.help != argparse.SUPPRESS]
        if rows:
            inside.append(nodes.definition_list('', *rows))
        return self.section('-'.join(['cli', *words]), name, *inside)

    def _argument(self, parser: argparse.ArgumentParser,
                  action: argparse.Action) -> Tuple[str, str, str]:
        shown = parser._get_formatter()
        value = '' if action.nargs == 0 else \
            shown._format_args(action, (action.metavar if isinstance(
                action.metavar, str) else action.dest.upper()))
        text = shown._expand_help(action) if action.help else ''
        if not action.option_strings:
            return value, '', text
        head = ', '.join(action.option_strings) + (value and ' ' + value)
        default: Any = action.default
        plain = action.nargs != 0 and default not in (
            None, '', argparse.SUPPRESS) and not isinstance(default, (
                list, tuple)) and 'default' not in text
        return head, '(default: %s)' % default if plain else '', text


class Sample(_Generated):
    """``.. sample:: etc/NAME-sample``"""

    required_arguments = 1

    def run(self) -> List[nodes.Node]:
        path = _ROOT / self.arguments[0]
        self.env.note_dependency(str(path))
        file = path.name.replace('-sample', '').replace('.', '-')
        return [self._part(file, part)
                for part in parts(path.read_text(encoding='utf-8'))]

    def _part(self, file: str, part: Part) -> nodes.section:
        anchor = '%s-%s' % (file, re.sub(r'\W+', '-', part.name).strip('-'))
        inside: List[nodes.Node] = [
            nodes.paragraph(text, text.replace('\n', ' '))
            for text in part.text.split('\n\n') if text]
        rows: List[nodes.definition_list_item] = []
        for option in part.options:
            row = self.term(
                option.name, '= %s' % option.default if option.default else '',
                option.text, '%s-%s' % (anchor, option.name))
            if option.text or not rows:
                rows.append(row)
            else:
                # The comment above belongs to this option too.
                rows[-1].insert(rows[-1].index(rows[-1][-1]), row[0])
        if rows:
            inside.append(nodes.definition_list('', *rows))
        return self.section(anchor, '[%s]' % part.name, *inside)


class Alerts(_Generated):
    """``.. alerts:: etc/prometheus-rules.yml``"""

    required_arguments = 1

    def run(self) -> List[nodes.Node]:
        path = _ROOT / self.arguments[0]
        self.env.note_dependency(str(path))
        return [nodes.definition_list('', *(
            self.term(name, '', '%s\n\n%s' % (meaning, condition),
                      'alert-' + name.lower())
            for name, meaning, condition in alerts(
                path.read_text(encoding='utf-8'))))]


class Results(_Generated):
    """``.. results:: NAME``"""

    required_arguments = 1

    def run(self) -> List[nodes.Node]:
        name = self.arguments[0]
        for path in (evidence.FOLDER / (name + '.json'),
                     *(_ROOT / 'doc' / 'ext' / 'tables').glob('*.py')):
            self.env.note_dependency(str(path))
        told = evidence.kept(name)
        typed = '\n'.join(' \\\n'.join(textwrap.wrap(
            run['command'], 84, subsequent_indent='    ',
            break_on_hyphens=False, break_long_words=False))
            for run in told['runs'])
        head, *rows = evidence.rows(name, told)
        table = nodes.tgroup(
            '', *(nodes.colspec(colwidth=1) for _ in head),
            # The theme's literals cannot be read on the ground of a head.
            nodes.thead('', self._row([
                cell.replace('``', '') for cell in head])),
            nodes.tbody('', *map(self._row, rows)), cols=len(head))
        said = evidence.conditions(name, told)
        return [nodes.literal_block(typed, typed, language='none'),
                nodes.table('', table), nodes.paragraph(
                    '', '', nodes.emphasis(said, said))]

    def _row(self, cells: List[str]) -> nodes.row:
        return nodes.row('', *(nodes.entry('', nodes.paragraph(
            cell, '', *self._texts(cell))) for cell in cells))

    def _texts(self, cell: str) -> Iterator[nodes.Node]:
        for at, text in enumerate(cell.split('``')):
            yield nodes.literal(text, text) if at % 2 else nodes.Text(text)


def setup(app: Any) -> Dict[str, Any]:
    """Tell Sphinx of the directives."""
    app.add_directive('commands', Commands)
    app.add_directive('sample', Sample)
    app.add_directive('alerts', Alerts)
    app.add_directive('results', Results)
    return {'parallel_read_safe': True}
