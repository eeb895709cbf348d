"""The line and column of a field of a JSON text, for errors."""

from __future__ import annotations

import json
import re
from typing import Sequence, Tuple, Union

#: Keys and indexes that lead to a value.
Path = Sequence[Union[str, int]]
_SPACE = re.compile(r'[ \t\r\n]*')


def field_text(path: Path) -> str:
    """The path as people write it: ``sizes[1].size_min``."""
    text = ''
    for step in path:
        text += '[%d]' % step if isinstance(step, int) else '.' + step
    return text.lstrip('.')


def line_and_column(text: str, path: Path) -> Tuple[int, int]:
    """The place of a value, both counted from 1.

    :param text: valid JSON
    :param path: if the text does not have all of it, the place of the
        innermost container that it has
    """
    at = _skip(text, 0)
    for step in path:
        inner = _member(text, at, step)
        if inner < 0:
            break
        at = inner
    before = text[:at]
    return before.count('\n') + 1, at - (before.rfind('\n') + 1) + 1


def _member(text: str, at: int, step: Union[str, int]) -> int:
    """Where a member of the container at ``at`` begins; -1: nowhere."""
    is_object = text[at] == '{'
    if text[at] not in '{[' or is_object != isinstance(step, str):
        return -1
    decoder = json.JSONDecoder()
    place, number = -1, 0
    at = _skip(text, at + 1)
    while text[at] not in '}]':
        key: Union[str, int] = number
        if is_object:
            key, at = decoder.raw_decode(text, at)
            at = _skip(text, _skip(text, at) + 1)
        if key == step:
            # As json.loads: the last of two members of one name counts.
            place = at
        _, at = decoder.raw_decode(text, at)
        at = _skip(text, at)
        if text[at] == ',':
            at = _skip(text, at + 1)
        number += 1
    return place


def _skip(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    return match.end() if match else at
