"""Which versions of the index a request is about, and that as SQL."""

from __future__ import annotations

from typing import Any, List, NamedTuple, Optional, Tuple

#: Where a version can have bytes: tiers, and ``dirty``, the SSD alone.
PLACES = ('ssd', 'hdd', 'remote', 'dirty')


class Where(NamedTuple):
    """Parts of a query.

    :param tables: ``version v``, and what goes before it
    :param row_id: of the version, by what comes first of the tables
    :param conditions: each with "AND" before it
    :param values: of the conditions
    """

    tables: str
    row_id: str
    conditions: str
    values: Tuple[Any, ...]


class Filter(NamedTuple):
    """Versions that meet all given conditions; all versions if none is given.

    :param container: ``account/container``
    :param class_id: has bytes of it
    :param place: has bytes there, and of ``class_id`` if that is given;
        one of :data:`PLACES`
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

    def sql(self) -> Where:
        """The filter in SQL.

        :raises ValueError: ``place`` is none
        """
        tables, row_id = 'version v', 'v.id'
        parts: List[str] = []
        values: List[Any] = []
        if self.class_id is not None:
            # In this order: the rows of a class are few, or they are all.
            tables = 'span c CROSS JOIN version v ON v.id = c.version_id'
            row_id = 'c.version_id'
            parts.append('AND c.class_id = ?')
            values.append(self.class_id)
        if self.container:
            prefix = '/%s/' % self.container.strip('/')
            parts.append('AND substr(v.name, 1, ?) = ?')
            values += [len(prefix), prefix]
        if self.device:
            parts.append('AND v.device_id IN '
                         '(SELECT id FROM device WHERE name = ?)')
            values.append(self.device)
        if self.place:
            # The name of a column, so it can be no value.
            column = PLACES[PLACES.index(self.place)]
            parts.append('AND EXISTS (SELECT 1 FROM span s WHERE '
                         's.version_id = v.id AND s.%s > 0)' % column
                         if self.class_id is None else
                         'AND c.%s > 0' % column)
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
        return Where(tables, row_id, ' '.join(parts), tuple(values))


ALL = Filter()
