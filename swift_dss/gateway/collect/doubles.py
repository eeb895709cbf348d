"""Find keys of versions that are in a bundle as well.

A member of a bundle that is rewritten gets a key of its own for each node that
may be late (``bundle.lean``). When the records of all primaries name one
bundle, and S3 says that it has the same bytes there, nothing needs the key.
"""

from __future__ import annotations

from typing import Callable, Iterator, NamedTuple, Sequence

from swift_dss.core.config import GatewayConf
from swift_dss.core.version import VersionId
from swift_dss.gateway.bundle.read import is_bundle
from swift_dss.gateway.form.encrypt import sealed_length
from swift_dss.gateway.form.one_key import KeyFailures
from swift_dss.gateway.peers.primaries import Primaries, Wanted
from swift_dss.gateway.restore.arrivals import Arrivals
from swift_dss.strategy.agreement import agreed_key


class Item(NamedTuple):
    """One version's keys."""

    version: VersionId
    key: str
    length: int


class Doubles:
    """Asks the primaries, and S3.

    :param arrivals: ask S3 for both copies
    """

    def __init__(self, conf: GatewayConf, primaries: Primaries,
                 arrivals: Arrivals,
                 failures: KeyFailures) -> None:
        self._prefix = conf.prefix
        self._most_bytes = sealed_length(conf.bundle_member_bytes)
        self._primaries = primaries
        self._arrivals = arrivals
        self._failures = failures

    def among(self, live: Sequence[Item],
              skip: Callable[[str, str], None]) -> Iterator[Item]:
        """Those of these whose keys may go now. Blocks on S3 before each:
        remove it before the next one.

        :param skip: gets each key about which S3 says nothing now, and why
        """
        small = [item for item in live if item.length <= self._most_bytes]
        if not small:
            return
        for item, said in zip(small, self._primaries.ask(
                [Wanted(item.version) for item in small], True)):
            bundle = agreed_key(item.version.timestamp, said)
            if not is_bundle(self._prefix, bundle):
                continue
            is_doubled = False
            with self._failures.of(item.key, skip):
                is_doubled = self._arrivals.is_doubled(
                    item.version, bundle)
            if is_doubled:
                yield item
