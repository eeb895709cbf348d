"""A name that is not known is refused, with its option and what is."""

from __future__ import annotations

import pytest

from swift_dss.bench.choices import require_known
from swift_dss.core.errors import BadConfig


def test_known_names_pass():
    require_known('--setups', ('ssd', 'hdd', 'ssd'), ('hdd', 'ssd'))
    require_known('--setups', (), ('hdd',))


def test_first_unknown_name_is_named_with_its_option_and_the_choice():
    with pytest.raises(BadConfig, match='--modes: up is not one of a, b'):
        require_known('--modes', ('a', 'up', 'down'), ('a', 'b'))
