"""Options of io, tier and gateway may come from the environment."""

from __future__ import annotations

import pytest

from swift_dss.core.errors import BadConfig
from swift_dss.wire.settings import nodeconf


def test_a_variable_goes_before_the_file():
    conf = nodeconf.parse('[gateway]\nspill_at = 0.5\n', environ={
        'SWIFT_DSS_GATEWAY_SPILL_AT': '0.7',
        'SWIFT_DSS_TIER_SSD_BYTES': '4g', 'SWIFT_DSS_CONF': '/x',
        'SWIFT_DSS_AIO_ROOT': '/y', 'HOME': '/'})
    assert conf.gateway.spill_at == 0.7
    assert conf.tier.ssd_bytes == 4 << 30


def test_without_one_the_file_counts():
    assert nodeconf.parse('[gateway]\nspill_at = 0.5\n',
                          environ={}).gateway.spill_at == 0.5


@pytest.mark.parametrize('name, value', [
    ('SWIFT_DSS_GATEWAY_SPIL_AT', '0.7'),
    ('SWIFT_DSS_GATEWAY_SPILL_AT', '7')])
def test_a_wrong_variable_is_an_error_as_a_wrong_line_is(name, value):
    with pytest.raises(BadConfig, match=r'\[gateway\] spil'):
        nodeconf.parse('', environ={name: value})


@pytest.mark.parametrize('text, count', [
    ('24m', 24 << 20), ('256k', 256 << 10), ('7', 7)])
def test_bytes_are_read_as_in_the_file(text, count):
    assert nodeconf.parse_bytes(text) == count
    with pytest.raises(BadConfig):
        nodeconf.parse_bytes(text + 'x')
