"""What servers say of their newest files, from release to release."""

from __future__ import annotations

import json

import pytest

from swift_dss.core.errors import DamagedRecord
from swift_dss.wire.newest import decode_answer, encode_answer


def test_an_answer_comes_back_as_it_was_said():
    said = [('1.0', 'k', True, ''), ('2.0', '', False, '1.0'), None]
    assert decode_answer(encode_answer(said), 3) == said


@pytest.mark.parametrize('said, local', [
    (['1.0', 'k'], False), (['1.0', 'k', True], True),
    (['1.0', 'k', 1.5], False), (['1.0', 'k', 'yes', True], False)])
def test_who_does_not_say_that_it_has_all_bytes_has_not(said, local):
    raw = json.dumps({'v': 1, 'said': [said]}).encode()
    assert decode_answer(raw, 1) == [('1.0', 'k', local, None)]


@pytest.mark.parametrize('said', [['1.0'], [1.0, 'k'], 7])
def test_what_is_no_answer_is_refused(said):
    with pytest.raises(DamagedRecord):
        decode_answer(json.dumps({'v': 1, 'said': [said]}).encode(), 1)
