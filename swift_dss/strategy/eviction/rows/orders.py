"""The orders that the tier daemon keeps in its index, by name."""

from __future__ import annotations

from typing import Dict

from swift_dss.strategy.eviction.rows.gdsf import RowGdsf
from swift_dss.strategy.eviction.rows.order import RowOrder
from swift_dss.strategy.eviction.rows.s3fifo import RowS3Fifo
from swift_dss.strategy.eviction.rows.sarc import RowSarc
from swift_dss.strategy.eviction.rows.sieve import RowSieve

#: LRU is not among them: its place is when a version was read, which the
#: index keeps anyhow.
ROW_ORDERS: Dict[str, RowOrder] = {
    order.name: order for order in (
        RowS3Fifo(), RowSieve(), RowGdsf(), RowSarc())}
