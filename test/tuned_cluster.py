"""A cluster whose tier daemon has other ages than a demonstration's.

What a demonstration shows in seconds, so that one can watch, a test waits
for: uploads and deletes that are due at once test the same as later ones.
"""

from __future__ import annotations

import configparser
import io
from typing import Dict, Mapping

from swift_dss.aio import configs
from swift_dss.aio.cluster import Cluster


class TunedCluster(Cluster):
    """A cluster with ``options`` in its ``dss.conf``."""

    #: Section to option to value: what differs.
    options: Mapping[str, Mapping[str, str]] = {
        'gateway': {'remote_after_seconds': '1',
                    'delete_delay_seconds': '3'}}

    def extra_options(self) -> Dict[str, Dict[str, str]]:
        """More of them, known only when the cluster is configured."""
        return {}

    def _configure(self) -> None:
        super()._configure()
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
