"""The option that says which missed objects come to the SSD."""

import pytest

from swift_dss.core.config import Admit
from swift_dss.core.errors import BadConfig
from swift_dss.wire.settings import admits, nodeconf


@pytest.mark.parametrize('text, wanted', [
    ('all', 0), ('second', admits.DEFAULT_WINDOW),
    ('second:1', 1), ('second:64', 64)])
def test_names(text, wanted):
    assert admits.parse('--admit', text) == Admit(wanted)


@pytest.mark.parametrize('text', [
    '', 'third', 'all:1', 'second:', 'second:0', 'second:65', 'second:-1',
    'second:1.5', 'second:x', 'second:\u00b2'])
def test_other_names_are_refused(text):
    with pytest.raises(BadConfig, match='--admit: .*1 to 64'):
        admits.parse('--admit', text)


def test_the_daemon_has_it():
    conf = nodeconf.parse('[tier]\nadmit = second:2\n')
    assert conf.tier.admit == Admit(2)
    assert str(conf.tier.admit) == 'second:2'
    assert nodeconf.parse('').tier.admit == Admit()
    with pytest.raises(BadConfig, match=r'dss.conf: \[tier\] admit: .third'):
        nodeconf.parse('[tier]\nadmit = third\n')
    assert nodeconf.parse('[tier]\nadmit = learned\n').tier.admit.learns


def test_the_one_that_is_learned_has_no_window():
    assert admits.parse('--admit', 'learned') == Admit(learns=True)
    assert str(Admit(learns=True)) == 'learned'
    with pytest.raises(BadConfig):
        admits.parse('--admit', 'learned:4')
