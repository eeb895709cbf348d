"""Listings of containers as directories."""

from __future__ import annotations

from typing import Any, Dict, List

from swift_dss.client.fs import paths
from swift_dss.client.fs.store import Store


class Listing:
    """The directories of an account."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def has(self, container: str, prefix: str) -> bool:
        """Does any object's name begin with ``prefix``?"""
        return bool(await self._store.rows(container, limit=1,
                                           prefix=prefix))

    async def directory(self, path: str,
                        prefix: str = '') -> List[Dict[str, Any]]:
        """What is directly below ``path``; nothing may mean that it is not
        there, or no directory.

        :param prefix: of the names, below ``path``
        :raises FileNotFoundError: there is no such container
        """
        container, name = paths.split(path)
        if not container:
            return [paths.directory(row['name'])
                    for row in await self._store.rows('', prefix=prefix)]
        top = name + '/' if name else ''
        rows = await self._store.rows(container, prefix=top + prefix,
                                      delimiter='/')
        entries: Dict[str, Dict[str, Any]] = {}
        for row in rows:
            if row.get('name') == top:
                continue
            info = paths.of_row(container, row)
            # "a" and "a/b" may both be objects: what has something below
            # it is a directory, to fsspec.
            if info['type'] == 'directory' or info['name'] not in entries:
                entries[info['name']] = info
        return list(entries.values())

    async def tree(self, path: str, prefix: str,
                   withdirs: bool) -> Dict[str, Dict[str, Any]]:
        """All objects below ``path``, however deep, by their names."""
        container, name = paths.split(path)
        top = name + '/' if name else ''
        tree: Dict[str, Dict[str, Any]] = {}
        for row in await self._store.rows(container, prefix=top + prefix):
            info = paths.of_row(container, row)
            if info['type'] == 'file' or (
                    withdirs and len(info['name']) > len(path)):
                tree[info['name']] = info
            if withdirs:
                _add_parents(tree, path, info['name'])
        return tree

    async def objects(self, path: str) -> Dict[str, bool]:
        """All objects at and below ``path``, those that stand for
        directories too, and whether each is in segments."""
        container, name = paths.split(path)
        rows = await self._store.rows(container, prefix=name)
        return {'%s/%s' % (container, row['name']): 'slo_etag' in row
                for row in rows if not name or row['name'] == name
                or row['name'].startswith(name + '/')}


def _add_parents(tree: Dict[str, Dict[str, Any]], top: str,
                 name: str) -> None:
    parent = name.rpartition('/')[0]
    while len(parent) > len(top) and parent not in tree:
        tree[parent] = paths.directory(parent)
        parent = parent.rpartition('/')[0]
