"""What becomes of bytes in S3 by what the primaries say of them."""

from __future__ import annotations

import pytest

from swift_dss.strategy.agreement import Answer, places_besides

OLD, NEW, KEY = '1700000000.00000', '1700000100.00000', 'p/lost'
STUB = Answer(OLD, KEY)


@pytest.mark.parametrize('answers, places', [
    ([STUB, STUB, STUB], []),
    ([STUB, None, Answer()], []),
    # Older and newer versions are others.
    ([STUB, Answer(NEW, '', True), Answer('1600000000.00000', '', True)],
     []),
    ([STUB, Answer(OLD, '', True), Answer(OLD, '', True)], ['', '']),
    # Bytes that are there do not need the key that their record names.
    ([STUB, Answer(OLD, KEY, True)], ['']),
    ([STUB, Answer(OLD, 'p/other'), Answer(OLD, 'p/other')], ['p/other']),
    ([STUB, Answer(OLD, 'p/other'), Answer(OLD, 'p/more', True)],
     ['', 'p/other']),
    # A record that is being written, or an older server: nobody knows.
    ([STUB, Answer(OLD)], [])])
def test_a_version_whose_key_is_lost_is_with_who_does_not_need_it(
        answers, places):
    assert places_besides(OLD, KEY, answers) == places
