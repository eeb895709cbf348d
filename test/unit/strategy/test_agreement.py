"""A version that lacks bytes goes where somebody else is known to have it."""

from __future__ import annotations

import pytest

from swift_dss.strategy.agreement import (
    Answer, Aside, keys_besides, may_be_put_aside)

OLD, NEW, KEY = '1700000000.00000', '1700000100.00000', 'p/lost'
STUB = Answer(OLD, KEY)
CLAIMED, PROVEN = Answer(OLD, '', True), Answer(OLD, '', True, '', True)


def verdict(answers, keys=(), needed=1, is_failing=False):
    return may_be_put_aside(OLD, answers, keys, needed, is_failing)


@pytest.mark.parametrize('answers, wanted', [
    ([], Aside.NOBODY),
    ([STUB, STUB, STUB], Aside.NOBODY),
    ([STUB, None, Answer()], Aside.NOBODY),
    # What a record says is no proof: that disk may lie too.
    ([STUB, CLAIMED, CLAIMED], Aside.NOBODY),
    ([STUB, CLAIMED, PROVEN], Aside.YES),
    ([None, None, PROVEN], Aside.YES),
    # Older and newer versions are others.
    ([STUB, PROVEN._replace(timestamp=NEW),
      PROVEN._replace(timestamp='1600000000.00000')], Aside.NOBODY),
    ([STUB, PROVEN._replace(timestamp='', quarantined=OLD)], Aside.NOBODY)])
def test_it_goes_if_another_primary_has_proven_its_bytes(answers, wanted):
    assert verdict(answers) is wanted


@pytest.mark.parametrize('proven, wanted', [
    (1, Aside.NOBODY), (3, Aside.NOBODY), (4, Aside.YES), (5, Aside.YES)])
def test_of_fragments_there_must_be_enough(proven, wanted):
    answers = [STUB] + [PROVEN] * proven + [CLAIMED] * (5 - proven)
    assert verdict(answers, needed=4) is wanted


@pytest.mark.parametrize('keys, wanted', [
    ([], Aside.NOBODY), (['p/1'], Aside.NOBODY), (['p/gone'], Aside.NOBODY),
    (['p/1', 'p/2'], Aside.YES)])
def test_a_fragment_that_s3_has_is_one_of_them(keys, wanted):
    proven = PROVEN._replace(remote_key='p/3')
    answers = [STUB, proven, Answer(OLD, 'p/1'), Answer(OLD, 'p/2'),
               # The same fragment twice, and one of another version.
               Answer(OLD, 'p/1'), Answer(NEW, 'p/gone')]
    # What was read on a disk is not counted again because S3 has it too.
    assert verdict(answers, keys + ['p/3'], needed=3) is wanted


@pytest.mark.parametrize('answer, wanted', [
    (Answer(OLD, 'p/other'), Aside.YES),
    (Answer(OLD, 'p/gone'), Aside.NOBODY),
    (Answer(NEW, 'p/other'), Aside.NOBODY),
    (None, Aside.NOBODY)])
def test_it_goes_if_another_record_names_a_key_that_s3_has(answer, wanted):
    assert verdict([STUB, answer], ['p/other']) is wanted


@pytest.mark.parametrize('answers', [[], [PROVEN] * 3])
def test_nothing_goes_from_a_device_that_fails_as_a_whole(answers):
    assert verdict(answers, ['p/other'], is_failing=True) is Aside.FAILING


@pytest.mark.parametrize('mine, answers, keys', [
    (KEY, [STUB, None, Answer(), Answer(OLD)], []),
    (KEY, [STUB, Answer(OLD, 'p/other'), Answer(OLD, 'p/other')],
     ['p/other']),
    (KEY, [Answer(NEW, 'p/new'), Answer(OLD, 'p/more', True)], ['p/more']),
    ('', [STUB], [KEY])])
def test_keys_are_those_that_others_name_of_this_version(
        mine, answers, keys):
    assert keys_besides(OLD, mine, answers) == keys
