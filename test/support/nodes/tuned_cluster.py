"""A cluster whose tier daemon has other ages than a demonstration's.

What a demonstration shows in seconds, so that one can watch, a test waits
for: uploads and deletes that are due at once test the same as later ones.
"""

from __future__ import annotations

import configparser
import contextlib
import io
import shutil
import tempfile
from typing import Dict, Iterator, Mapping, Type, TypeVar

from swift_dss.aio import configs, layout, processes, storage
from swift_dss.aio.cluster import Cluster, printer

_Made = TypeVar('_Made', bound='TunedCluster')


class TunedCluster(Cluster):
    """A cluster with ``options`` in its ``dss.conf``."""

    #: Section to option to value: what differs.
    options: Mapping[str, Mapping[str, str]] = {
        'gateway': {'remote_after_seconds': '1',
                    'delete_delay_seconds': '3'}}
    #: Options of the filter ``dss`` that differ: a demonstration's rounds are
    #: too long to wait for, and a day is too.
    filter_options: Mapping[str, str] = {
        'lifecycle_interval': '2', 'lifecycle_day_seconds': '6'}

    @classmethod
    @contextlib.contextmanager
    def started(cls: Type[_Made], prefix: str, first_port: int
                ) -> Iterator[_Made]:
        """A cluster of its own in a new folder, for as long as the block.

        :param prefix: of the folder's name
        :param first_port: below which no free port is looked for
        """
        root = tempfile.mkdtemp(prefix=prefix, dir='/var/tmp')
        made = cls(layout.AioConf(
            root=root, hdd_iops=0, background=False,
            storage='folders' if storage.why_no_loops() else 'loops',
            base_port=processes.free_base_port(
                layout.PORTS, first=first_port)), printer())
        made.start()
        yield made
        made.stop()
        shutil.rmtree(root, ignore_errors=True)

    def extra_options(self) -> Dict[str, Dict[str, str]]:
        """More of them, known only when the cluster is configured."""
        return {}

    def _configure(self) -> None:
        super()._configure()
        if configs.has(self.conf, 'proxy'):
            self._set_in_proxy()
        if not configs.has(self.conf, 'tier'):
            return
        parser = configparser.ConfigParser(interpolation=None)
        parser.optionxform = str  # type: ignore[assignment,method-assign]
        parser.read(self.conf.path('etc', 'dss.conf'))
        for options in (self.options, self.extra_options()):
            parser.read_dict(options)
        text = io.StringIO()
        parser.write(text)
        configs.write(self.conf, {'etc/dss.conf': text.getvalue()})

    def _set_in_proxy(self) -> None:
        with open(self.conf.path('etc', 'proxy-server.conf'),
                  encoding='utf-8') as source:
            text = source.read()
        head, section, tail = text.partition('[filter:dss]\n')
        kept = ''.join(
            line for line in tail.splitlines(keepends=True)
            if line.partition(' =')[0] not in self.filter_options)
        configs.write(self.conf, {'etc/proxy-server.conf': ''.join((
            head, section, *('%s = %s\n' % item
                             for item in self.filter_options.items()),
            kept))})
