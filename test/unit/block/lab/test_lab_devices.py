"""Devices of a guest: what their text means, and what is refused."""

import pytest

from swift_dss.block.lab.devices import PRESETS, Device, parse_device
from swift_dss.core.errors import BadClassInput


def test_text_gives_name_size_and_all_parameters_of_the_preset():
    made = parse_device('d-1=hdd:2G')
    assert (made.name, made.size_bytes) == ('d-1', 2 << 30)
    kind, values = PRESETS['hdd']
    assert made.model.split()[0] == kind
    assert made.model.split()[1:] == [
        '%s=%d' % pair for pair in values.items()]


def test_raw_has_no_model():
    assert parse_device('r=raw:64M') == Device('r', 64 << 20, '')


def test_parameter_of_one_device_changes_no_preset():
    assert ' depth=8 ' in parse_device('d=hdd,depth=8:1G').model + ' '
    assert ' depth=1 ' in parse_device('d=hdd:1G').model + ' '


@pytest.mark.parametrize('text, reason', [
    ('', 'is not NAME'), ('d', 'is not NAME'), ('d=hdd', 'is not NAME'),
    ('d=hdd:1', 'is not NAME'), ('d=hdd:1K', 'is not NAME'),
    ('d/e=hdd:1G', 'is not NAME'), ('d=hdd:1G\n', 'is not NAME'),
    ('=hdd:1G', 'is not NAME'), ('d=hdd,depth=x:1G', 'is not NAME'),
    ('d=hdd,depth=-1:1G', 'is not NAME'), ('d=tape:1G', 'no preset'),
    ('d=hdd:0M', 'has no size'), ('d=hdd,channels=3:1G', 'no parameter'),
    ('d=raw,depth=3:1G', 'it has none')])
def test_other_text_is_refused_with_its_reason(text, reason):
    with pytest.raises(BadClassInput, match=reason):
        parse_device(text)
