"""R33: classes never change what a client gets."""

from __future__ import annotations

import random

import pytest
import same_bytes

pytestmark = [pytest.mark.cluster, pytest.mark.slow]


@pytest.mark.parametrize('policy', ['dss', 'dss-ec'])
def test_every_classification_gives_the_same_bytes(cluster, policy):
    seed = random.randrange(1 << 32)
    print('seed %d' % seed)
    requests, differences = same_bytes.compare(cluster, seed, policy)
    assert requests > 500
    assert differences == []


def test_the_comparison_sees_a_changed_byte(cluster, monkeypatch):
    """The wrong twin: one labelling sends another last byte."""
    def wrong(number, size):
        monkeypatch.setattr(same_bytes, 'pattern', _one_byte_off)
        return {}, None
    monkeypatch.setattr(same_bytes, 'adversarial_labels', wrong)
    monkeypatch.setattr(same_bytes, 'SIZES', (7, 512))
    _requests, differences = same_bytes.compare(cluster, 1, 'dss')
    assert {name for name, _before, _now in differences} == {'adversarial'}
    assert any(before.body != now.body
               for _name, before, now in differences)


_PATTERN = same_bytes.pattern


def _one_byte_off(size, seed):
    body = _PATTERN(size, seed)
    return body[:-1] + bytes((body[-1] ^ 1,)) if body else body
