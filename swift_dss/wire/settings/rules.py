"""``dss-rules.conf`` text to rules of automatic classification.

One section a rule, ``[rule:<name>]``, tried in the order of the file; the
first whose conditions all hold decides. Options:

=============  ==========================================================
class          id 0..31 or a name of the class table (must be given)
classify       ``auto``: a storage node finds the bytes that open the file,
               after the upload; needs ``hot``
hot            class of these bytes
content_type   patterns of the media type
name           patterns of the object's name
name_regex     regular expression for the whole of the object's name
size           ``< N``, ``<= N``, ``> N``, ``>= N``, ``N`` or ``A-B``
               (both included); units k, m, g, t of 1,024
user           patterns of the user, as the auth system names it
account        patterns of the account
container      patterns of the container
header         ``Name: patterns``, one a line; each must match
=============  ==========================================================

Patterns are shell-style (:mod:`swift_dss.core.globs`), several with ``,``
of which one must match. A rule without conditions matches everything. The
size of a chunked upload is not known: no ``size`` matches it.
"""

from __future__ import annotations

import configparser
import re
from dataclasses import replace
from typing import Dict, List, Tuple

from swift_dss.core.classes import ClassTable
from swift_dss.core.errors import BadClassInput, BadConfig
from swift_dss.core.globs import Glob
from swift_dss.core.limits import (
    MAX_OBJECT_BYTES, MAX_PATTERN_CHARS, MAX_RULES, MAX_RULES_ALWAYS_TRIED)
from swift_dss.core.rules import HeaderCondition, Rule, Rules
from swift_dss.wire.headers import parse_object_class
from swift_dss.wire.settings.regexes import compile_bounded

_SECTION = re.compile(r'^rule:([A-Za-z0-9][A-Za-z0-9_. -]{0,63})$')
_HEADER_NAME = re.compile(r"^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,128}$")
_UNITS = {'': 1, 'k': 1 << 10, 'm': 1 << 20, 'g': 1 << 30, 't': 1 << 40}
_NUMBER = r'([0-9]{1,19})\s*([kmgt]?)(?:i?b)?'
_COMPARED = re.compile(r'^(<=|>=|<|>|)\s*%s$' % _NUMBER, re.I | re.ASCII)
_BETWEEN = re.compile(r'^%s\s*-\s*%s$' % (_NUMBER, _NUMBER),
                      re.I | re.ASCII)
#: Option: field of the rule.
_PATTERNS = {'content_type': 'content_types', 'name': 'names',
             'user': 'users', 'account': 'accounts',
             'container': 'containers'}
_OPTIONS = ('class', 'classify', 'hot', 'content_type', 'name', 'name_regex',
            'size', 'user', 'account', 'container', 'header')


def parse(text: str, table: ClassTable,
          source: str = 'dss-rules.conf') -> Rules:
    """The rules that ``text`` spells.

    A file without rules is legal: nothing is classified by rule.

    :param table: looks up class names; parse again when it changes
    :param source: what to call the text in errors
    :raises BadConfig: names the line, the section, the option, the reason
    """
    parser = configparser.ConfigParser(
        interpolation=None, default_section='DEFAULT', strict=True)
    try:
        parser.read_string(text, source)
    except configparser.Error as err:
        raise BadConfig('%s: %s' % (source,
                                    ' '.join(str(err).split()))) from err
    if parser.defaults():
        raise BadConfig('%s: [DEFAULT] has options; rules have none in '
                        'common' % source)
    if len(parser.sections()) > MAX_RULES:
        raise BadConfig('%s: %d rules are more than %d'
                        % (source, len(parser.sections()), MAX_RULES))
    lines = _lines(text)
    rules = Rules(tuple(
        _rule(section, dict(parser.items(section)), table, source, lines)
        for section in parser.sections()))
    if rules.index.always_tried > MAX_RULES_ALWAYS_TRIED:
        raise BadConfig(
            '%s: %d rules have no pattern that begins or ends with plain '
            'text, more than %d; each is tried on every upload' % (
                source, rules.index.always_tried, MAX_RULES_ALWAYS_TRIED))
    return rules


def _rule(section: str, options: Dict[str, str], table: ClassTable,
          source: str, lines: Dict[Tuple[str, str], int]) -> Rule:
    match = _SECTION.match(section)
    where = _where(source, section, '', lines)
    if not match:
        raise BadConfig('%s is not [rule:<name>] with a name of letters, '
                        'digits, ".", "_", "-" or spaces' % where)
    if 'class' not in options:
        raise BadConfig('%s class: is missing' % where)
    rule = Rule(match.group(1), 0)
    for option, text in options.items():
        where = _where(source, section, option, lines)
        if option not in _OPTIONS:
            raise BadConfig('%s: no such option; there are %s'
                            % (where, ', '.join(_OPTIONS)))
        if not text.strip():
            raise BadConfig('%s: is empty' % where)
        if ' #' in text:
            # It would silently become part of a pattern.
            raise BadConfig('%s: a comment has to be on a line of its own '
                            '(for " #" in a name, write "?#")' % where)
        try:
            rule = _with(rule, option, text.strip(), table)
        except ValueError as err:
            raise BadConfig('%s: %s' % (where, err)) from None
        except BadClassInput as err:
            raise BadConfig('%s: %s' % (where, err.reason)) from None
    if ('classify' in options) != ('hot' in options):
        raise BadConfig('%s: "classify = auto" and "hot" need each other'
                        % _where(source, section, '', lines))
    return rule


def _with(rule: Rule, option: str, text: str, table: ClassTable) -> Rule:
    """``rule`` with one more option; ValueError names the error."""
    if option == 'class':
        return replace(rule, class_id=parse_object_class(text, table))
    if option == 'hot':
        return replace(rule, auto_class=parse_object_class(text, table))
    if option == 'classify':
        if text != 'auto':
            raise ValueError('%r is not auto' % text[:64])
        return rule
    if option == 'size':
        least, most = parse_size_condition(text)
        return replace(rule, by_size=True, min_bytes=least, max_bytes=most)
    if option == 'name_regex':
        return replace(rule, name_regex=compile_bounded(text))
    if option == 'header':
        return replace(rule, headers=tuple(
            _header(line) for line in text.splitlines() if line.strip()))
    if option == 'content_type':
        text = text.lower()
    changed: Dict[str, Tuple[Glob, ...]] = {_PATTERNS[option]: _globs(text)}
    return replace(rule, **changed)  # type: ignore[arg-type]


def parse_size_condition(text: str) -> Tuple[int, int]:
    """(least, greatest) size in bytes that a ``size`` option accepts.

    :raises ValueError: says what is wrong
    """
    match = _BETWEEN.match(text)
    if match:
        least = _bytes(match.group(1), match.group(2))
        most = _bytes(match.group(3), match.group(4))
    else:
        match = _COMPARED.match(text)
        if not match:
            raise ValueError('%r is none of "< N", "<= N", "> N", ">= N", '
                             '"N" and "A-B" (units k, m, g, t)' % text[:64])
        number = _bytes(match.group(2), match.group(3))
        least, most = {
            '<': (0, number - 1), '<=': (0, number),
            '>': (number + 1, MAX_OBJECT_BYTES),
            '>=': (number, MAX_OBJECT_BYTES),
            '': (number, number)}[match.group(1)]
    if least > most or most > MAX_OBJECT_BYTES:
        raise ValueError('%r fits no size' % text[:64])
    return least, most


def _bytes(digits: str, unit: str) -> int:
    return int(digits) * _UNITS[unit.lower()]


def _header(line: str) -> HeaderCondition:
    name, colon, patterns = line.partition(':')
    if not colon or not _HEADER_NAME.match(name.strip()):
        raise ValueError('%r is not "Name: pattern"' % line[:64])
    return HeaderCondition(name.strip().lower(), _globs(patterns))


def _globs(text: str) -> Tuple[Glob, ...]:
    globs: List[Glob] = []
    for piece in text.replace('\n', ',').split(','):
        pattern = piece.strip()
        if not pattern:
            raise ValueError('an empty pattern')
        if len(pattern) > MAX_PATTERN_CHARS:
            raise ValueError('a pattern of %d characters is more than %d'
                             % (len(pattern), MAX_PATTERN_CHARS))
        globs.append(Glob.of(pattern))
    return tuple(globs)


def _lines(text: str) -> Dict[Tuple[str, str], int]:
    """(section, option) to its line, '' for the section's own."""
    lines: Dict[Tuple[str, str], int] = {}
    section = ''
    for number, line in enumerate(text.splitlines(), 1):
        header = re.match(r'^\[(.+)\]', line)
        option = re.match(r'^([^\s#;=:][^=:]*?)\s*[=:]', line)
        if header:
            section = header.group(1)
            lines[section, ''] = number
        elif option:
            lines[section, option.group(1).lower()] = number
    return lines


def _where(source: str, section: str, option: str,
           lines: Dict[Tuple[str, str], int]) -> str:
    line = lines.get((section, option)) or lines.get((section, ''))
    at = '' if line is None else ':%d' % line
    return '%s%s: [%s]%s' % (source, at, section,
                             ' ' + option if option else '')
