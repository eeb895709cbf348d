"""Values of ``X-DSS-Range-Class`` as class maps."""

from __future__ import annotations

from typing import Optional

from swift_dss.core.classes import ClassTable
from swift_dss.core.limits import DEFAULT_MAX_SPANS
from swift_dss.core.spans import ClassMap
from swift_dss.wire.headers import map_of_ranges, parse_ranges


def parse_range_class(text: str, table: ClassTable, rest: int,
                      size: Optional[int] = None,
                      max_spans: int = DEFAULT_MAX_SPANS) -> ClassMap:
    """The class map that a value spells; ``rest`` is the object's class."""
    return map_of_ranges(parse_ranges(text, table, size, max_spans), rest,
                         max_spans)
