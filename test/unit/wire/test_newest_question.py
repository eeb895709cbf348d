"""What servers say of their newest files, from release to release."""

from __future__ import annotations

import json

import pytest

from swift_dss.core.errors import DamagedRecord
from swift_dss.wire.newest import (
    Asked, Question, decode_answer, decode_question, encode_answer,
    encode_question)


def test_an_answer_comes_back_as_it_was_said():
    said = [('1.0', 'k', True, '', True), ('2.0', '', False, '1.0', False),
            None]
    assert decode_answer(encode_answer(said), 3) == said


@pytest.mark.parametrize('said, local', [
    (['1.0', 'k'], False), (['1.0', 'k', True], True),
    (['1.0', 'k', 1.5], False), (['1.0', 'k', 'yes', True], False)])
def test_who_does_not_say_that_it_has_all_bytes_has_not(said, local):
    raw = json.dumps({'v': 1, 'said': [said]}).encode()
    assert decode_answer(raw, 1) == [
        ('1.0', 'k', local, None, False)]


@pytest.mark.parametrize('last', [False, 'yes', None])
def test_who_does_not_say_that_it_has_proven_it_has_not(last):
    raw = json.dumps({'v': 1, 'said': [['1.0', 'k', True, '', last]]})
    assert not decode_answer(raw.encode(), 1)[0][4]


def test_one_object_at_a_time_is_proven():
    asked = Asked('sda', 0, '7', 'a' * 32)
    assert decode_question(encode_question(Question(
        [asked], True, True))) == ([asked], True, True)
    for wrong in ({'prove': 1}, {'prove': True, 'ask': [list(asked)] * 2}):
        question = json.loads(encode_question(Question([asked], True)))
        with pytest.raises(DamagedRecord):
            decode_question(json.dumps(dict(question, **wrong)).encode())


@pytest.mark.parametrize('said', [['1.0'], [1.0, 'k'], 7])
def test_what_is_no_answer_is_refused(said):
    with pytest.raises(DamagedRecord):
        decode_answer(json.dumps({'v': 1, 'said': [said]}).encode(), 1)
