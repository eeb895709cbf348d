"""Shell-style patterns that no text can make slow.

``*`` matches any text (``/`` too), ``?`` one character, ``[abc]``,
``[a-z]`` and ``[!abc]`` one of a set. Between stars every piece has a
fixed length, so the leftmost place of each is as good as any: matching
costs at most the pattern's length times the text's, on every Python
(``fnmatch`` before 3.9 backtracks without bound).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Iterator, Optional, Pattern, Tuple


@dataclass(frozen=True)
class Glob:
    """One pattern, compiled. Build it with :meth:`of`.

    :param text: as the operator wrote it
    """

    text: str
    _pieces: Tuple[Pattern[str], ...] = field(
        default=(), repr=False, compare=False)
    _tail: Tuple[str, int] = field(
        default=('', 0), repr=False, compare=False)

    @classmethod
    def of(cls, text: str) -> Glob:
        """Compile ``text``. Never fails: an open ``[`` is a literal."""
        pieces = _cut_at_stars(text)
        lengths = [_length_of(piece) for piece in pieces]
        compiled = tuple(re.compile(_regex_of(piece), re.DOTALL)
                         for piece in pieces)
        return cls(text, compiled, (pieces[-1], lengths[-1]))

    def matches(self, text: str) -> bool:
        """True if the whole of ``text`` fits the pattern."""
        first = self._pieces[0].match(text)
        if first is None:
            return False
        if len(self._pieces) == 1:
            return first.end() == len(text)
        at = first.end()
        for piece in self._pieces[1:-1]:
            match = piece.search(text, at)
            if match is None:
                return False
            at = match.end()
        start = len(text) - self._tail[1]
        return start >= at and \
            self._pieces[-1].match(text, start) is not None


    def literals(self) -> Tuple[Optional[str], str, str]:
        """(the only text that matches, if there is one; what each matching
        text begins with; what it ends with)."""
        special = [(at, stop) for at, stop in _tokens(self.text)
                   if stop > at + 1 or self.text[at] in '*?']
        if not special:
            return self.text, self.text, self.text
        return None, self.text[:special[0][0]], self.text[special[-1][1]:]


def _tokens(text: str) -> Iterator[Tuple[int, int]]:
    at = 0
    while at < len(text):
        stop = _set_end(text, at) if text[at] == '[' else at + 1
        yield at, stop
        at = stop


def _cut_at_stars(text: str) -> Tuple[str, ...]:
    """The pieces between stars; a star in ``[...]`` cuts nothing."""
    pieces = ['']
    at = 0
    while at < len(text):
        if text[at] == '*':
            pieces.append('')
            at += 1
            continue
        stop = _set_end(text, at) if text[at] == '[' else at + 1
        pieces[-1] += text[at:stop]
        at = stop
    return tuple(pieces)


def _set_end(text: str, at: int) -> int:
    """First character after the set that opens at ``at``."""
    stop = at + 1
    if text[stop:stop + 1] == '!':
        stop += 1
    if text[stop:stop + 1] == ']':
        stop += 1
    close = text.find(']', stop)
    return at + 1 if close < 0 else close + 1


def _length_of(piece: str) -> int:
    length = at = 0
    while at < len(piece):
        at = _set_end(piece, at) if piece[at] == '[' else at + 1
        length += 1
    return length


def _regex_of(piece: str) -> str:
    parts = []
    at = 0
    while at < len(piece):
        stop = _set_end(piece, at) if piece[at] == '[' else at + 1
        token = piece[at:stop]
        if token == '?':
            parts.append('.')
        elif stop > at + 1:
            parts.append(_set_regex(token))
        else:
            parts.append(re.escape(token))
        at = stop
    return ''.join(parts)


def _set_regex(token: str) -> str:
    """One character of ``[...]``; a range that runs backwards is empty.

    Not left to ``fnmatch.translate``: before Python 3.9 it makes a broken
    expression of ``[z-a]``.
    """
    body = token[1:-1]
    negated = body.startswith('!')
    body = body[1:] if negated else body
    ranges = []
    at = 0
    while at < len(body):
        low = high = body[at]
        if body[at + 1:at + 2] == '-' and at + 2 < len(body):
            high = body[at + 2]
            at += 2
        at += 1
        if low <= high:
            ranges.append('%s-%s' % (re.escape(low), re.escape(high)))
    if not ranges:
        return '.' if negated else '(?!)'
    return '[%s%s]' % ('^' if negated else '', ''.join(ranges))
