"""Read an object's classes from an object server's answer."""

from __future__ import annotations

from typing import Any, Dict, Iterable, List, Mapping, Optional, Tuple

from swift_dss.core.errors import BadClassInput
from swift_dss.core.spans import ClassMap
from swift_dss.wire import classmap, names
from swift_dss.wire.s3 import restores

SYMLINK_TARGET = 'X-Object-Sysmeta-Symlink-Target'
#: Of answers that are about an object without being its bytes.
STATIC, DYNAMIC = 'X-Static-Large-Object', 'X-Object-Manifest'
#: Headers that no client sees, in lower case.
OURS = ('x-object-sysmeta-dss-', 'x-object-transient-sysmeta-dss-',
        'x-backend-dss-')


class Given(Dict[str, str]):
    """The headers of an answer, whose names are in lower case, to be looked
    up by any. Swift's own mapping makes a title of each name first.
    """

    def get(self, name: str, default: Any = None) -> Any:
        """The header called ``name``."""
        return super().get(name.lower(), default)

    def __getitem__(self, name: str) -> str:
        return super().__getitem__(name.lower())

    def __contains__(self, name: object) -> bool:
        return super().__contains__(str(name).lower())


def effective_map(headers: Mapping[str, str]) -> Optional[ClassMap]:
    """The map in force; None for an unclassified object.

    The map of a POST wins. A damaged map counts as none: placement fails open,
    and the bytes stay the same.
    """
    return transient_map(headers) or _map(headers, names.SYSMETA_MAP)


def transient_map(headers: Mapping[str, str]) -> Optional[ClassMap]:
    """The map that a POST set, if one did."""
    return _map(headers, names.TRANSIENT_MAP)


def lasting_map(headers: Mapping[str, str]) -> Optional[ClassMap]:
    """The map in force once a restoration has ended."""
    if restores.of_headers(headers) is None:
        return effective_map(headers)
    return _map(headers, names.BEFORE)


def posted(headers: Mapping[str, str]) -> Dict[str, str]:
    """The class headers of an earlier POST and their time, for a POST without
    classes to repeat; {} if no POST set classes.
    """
    kept = {name: value for name, value in headers.items()
            if name.lower().startswith(names.TRANSIENT_MAP.lower())}
    if kept:
        # Before registers had times of their own, the file's was that.
        kept.setdefault(names.MAP_AT, headers.get(
            'X-Backend-Timestamp') or headers.get('X-Timestamp', ''))
    return kept


def _map(headers: Mapping[str, str], name: str) -> Optional[ClassMap]:
    try:
        return classmap.from_headers(name, headers)
    except BadClassInput:
        return None


def is_symlink(headers: Mapping[str, str]) -> bool:
    """True if the object is a symbolic link."""
    return bool(headers.get(SYMLINK_TARGET))


def is_manifest(headers: Mapping[str, str]) -> bool:
    """True if the object stands for the segments of a large one."""
    return any(headers.get(name) for name in (STATIC, DYNAMIC))


def without_maps(
        headers: Iterable[Tuple[str, str]]) -> List[Tuple[str, str]]:
    """The headers of an answer, our own stored ones left out."""
    return [(name, value) for name, value in headers
            if not name.lower().startswith(OURS)]
