"""Names that a plan may have, checked before anything is measured."""

from __future__ import annotations

from typing import Iterable, Sequence

from swift_dss.core.errors import BadConfig


def require_known(option: str, given: Iterable[str],
                  known: Sequence[str]) -> None:
    """
    :param option: as it is written on the command line
    :raises BadConfig: names the first of ``given`` that is not ``known``
    """
    for name in given:
        if name not in known:
            raise BadConfig('%s: %s is not one of %s' % (
                option, name, ', '.join(known)))
