"""Which versions of the index a request is about, and that as SQL."""

from __future__ import annotations

from typing import Any, List, NamedTuple, Optional, Tuple

#: Where a version can have bytes: tiers, and ``dirty``, the SSD alone.
PLACES = ('ssd', 'hdd', 'remote', 'dirty')


class Filter(NamedTuple):
    """Versions that meet all given conditions; all versions if none is given.

    :param container: ``account/container``
    :param class_id: has bytes of it
    :param place: has bytes there; one of :data:`PLACES`
    :param pinned: by an operator
    :param on_remote: S3 has it
    :param held_by: pinned by an operator, by the pin rule or by one of
        these classes
    :param fitting: of ``held_by``: the pin rule fits it, pinned or not
    """

    container: str = ''
    device: str = ''
    class_id: Optional[int] = None
    place: str = ''
    pinned: bool = False
    on_remote: bool = False
    held_by: Optional[Tuple[int, ...]] = None
    fitting: bool = False

    def sql(self) -> Tuple[str, Tuple[Any, ...]]:
        """Conditions on ``version v``, each with "AND" before it, and their
        values.

        :raises ValueError: ``place`` is none
        """
        parts: List[str] = []
        values: List[Any] = []
        if self.container:
            prefix = '/%s/' % self.container.strip('/')
            parts.append('AND substr(v.name, 1, ?) = ?')
            values += [len(prefix), prefix]
        if self.device:
            parts.append('AND v.device_id IN '
                         '(SELECT id FROM device WHERE name = ?)')
            values.append(self.device)
        if self.class_id is not None:
            parts.append('AND v.id IN (SELECT version_id FROM span '
                         'WHERE class_id = ?)')
            values.append(self.class_id)
        if self.place:
            # The name of a column, so it can be no value.
            column = PLACES[PLACES.index(self.place)]
            parts.append('AND EXISTS (SELECT 1 FROM span s WHERE '
                         's.version_id = v.id AND s.%s > 0)' % column)
        if self.pinned:
            parts.append('AND v.pinned = 1')
        if self.on_remote:
            parts.append('AND v.on_remote = 1')
        if self.held_by is not None:
            parts.append(
                'AND (v.pinned = 1 OR v.pin_rule %s OR EXISTS (SELECT 1 '
                'FROM span s WHERE s.version_id = v.id AND s.class_id IN '
                '(%s)))' % ('> 0' if self.fitting else '= 2',
                            ','.join('?' * len(self.held_by))))
            values += self.held_by
        return ' '.join(parts), tuple(values)


ALL = Filter()
