"""Class names, and the class that a path gets by patterns."""

from __future__ import annotations

from typing import Any, Dict, List, Mapping, Optional, Tuple, Union

from swift_dss.core.globs import Glob
from swift_dss.core.limits import CLASS_ID_MAX, DEFAULT_MAX_SPANS

#: A class as a program names it.
ClassName = Union[str, int]
#: The class of bytes that the file's own format decides.
AUTO = 'auto'


class Names:
    """The classes of one cluster.

    :param info: what its ``/info`` says
    :raises OSError: the cluster has no classes
    """

    def __init__(self, info: Mapping[str, Any]) -> None:
        said = info.get('dss')
        if not said:
            raise OSError(
                'this Swift has no classes (no "dss" in its /info)')
        self._ids: Dict[str, int] = {
            name.lower(): number for name, number in said['classes'].items()}
        self._names: Dict[int, str] = {
            number: name
            for name, number in said['classes'].items()}
        self.max_spans = int(said.get('max_spans', DEFAULT_MAX_SPANS))
        self.pinning: Tuple[str, ...] = tuple(said.get('pinning', ()))

    def id_of(self, class_name: ClassName) -> int:
        """The id of a class.

        :param class_name: a name of the cluster's table, or an id
        :raises ValueError: it is neither
        """
        text = str(class_name).strip()
        if text.isascii() and text.isdigit():
            if len(text) <= 2 and int(text) <= CLASS_ID_MAX:
                return int(text)
            raise ValueError('class id %s is not in 0..%d'
                             % (text[:20], CLASS_ID_MAX))
        class_id = self._ids.get(text.lower())
        if class_id is None:
            raise ValueError('%r is neither a class id nor a class name (%s)'
                             % (text[:48], ', '.join(sorted(self._ids))))
        return class_id

    def name_of(self, class_id: int) -> str:
        """Its name in the cluster's table, else the id as text."""
        return self._names.get(class_id, str(class_id))


class Patterns:
    """Classes of paths, by the first pattern that fits.

    :param classes: pattern to class, in order; a pattern is compared with
        ``container/object``, and ``*`` matches any text, ``/`` too
    """

    def __init__(self, classes: Optional[Mapping[str, ClassName]]) -> None:
        self._rules: List[Tuple[Glob, ClassName]] = [
            (Glob.of(pattern), class_name)
            for pattern, class_name in (classes or {}).items()]

    def class_of(self, path: str) -> Optional[ClassName]:
        """None: the cluster decides; it may be :data:`AUTO`."""
        for glob, class_name in self._rules:
            if glob.matches(path):
                return class_name
        return None
