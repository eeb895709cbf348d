"""Findings: what was looked at, and what is wrong with it."""

from __future__ import annotations

import re
from typing import Any, Dict, NamedTuple

OK, WARNING, ERROR = 'ok', 'warning', 'error'
#: As the parsers of configuration begin their errors:
#: ``FILE[:LINE]: [SECTION] [OPTION]: REASON``.
_PARSED = re.compile(r'^(?P<file>/[^:\n]*)(?::[0-9]+)?: '
                     r'(?:\[(?!Errno )(?P<section>[^]]+)\]'
                     r'(?: (?P<option>[^:\s]+))?)?')


class Place(NamedTuple):
    """Where something is written.

    :param option: with its section, such as ``[dss] devices``
    """

    file: str = ''
    option: str = ''
    value: str = ''

    def __str__(self) -> str:
        """``FILE: OPTION = VALUE``, as much of it as there is."""
        setting = self.option + (
            ' = %s' % self.value if self.option and self.value else '')
        return ': '.join(part for part in (self.file, setting) if part)


#: Where the text itself says it, or there is no file.
NOWHERE = Place()


class Finding(NamedTuple):
    """One line of the report.

    :param level: OK, WARNING or ERROR
    :param about: the thing that was looked at, in a word or two
    :param text: one sentence
    :param place: where to mend it; empty if the text says so
    :param instead: what to write there, or to do
    """

    level: str
    about: str
    text: str
    place: Place = NOWHERE
    instead: str = ''

    def __str__(self) -> str:
        """``ABOUT: FILE: OPTION = VALUE: TEXT; INSTEAD``."""
        # Parsers' errors begin with the place themselves.
        where = '' if self.text.startswith(self.place.file or '\0') \
            else str(self.place)
        said = ': '.join(part for part in (self.about, where, self.text)
                         if part)
        return said + ('; ' + self.instead if self.instead else '')

    def plain(self, group: str) -> Dict[str, Any]:
        """For ``--json``."""
        return {'group': group, 'level': self.level, 'about': self.about,
                'text': self.text, 'instead': self.instead,
                **self.place._asdict()}


def fine(about: str, text: str) -> Finding:
    """Nothing is wrong."""
    return Finding(OK, about, text)


def warning(about: str, text: str, place: Place = NOWHERE,
            instead: str = '') -> Finding:
    """It works, and not as an operator would expect."""
    return Finding(WARNING, about, text, place, instead)


def error(about: str, text: str, place: Place = NOWHERE,
          instead: str = '') -> Finding:
    """A server will not start, or requests will fail."""
    return Finding(ERROR, about, text, place, instead)


def refused(about: str, err: Exception, place: Place = NOWHERE,
            instead: str = '') -> Finding:
    """An error of a parser or of a start-up check, passed on.

    :param place: where it is, if the error does not say so itself
    """
    text = ' '.join(str(err).split())
    match = _PARSED.match(text)
    if match and place == NOWHERE:
        section, option = match.group('section'), match.group('option')
        place = Place(match.group('file'), ' '.join(
            part for part in (section and '[%s]' % section, option) if part))
    return error(about, text, place, instead)
