"""The configuration and the class table: as written, and as in force."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Tuple

from swift_dss.core.classes import ClassTable
from swift_dss.core.config import NodeConf
from swift_dss.core.errors import BadConfig
from swift_dss.io.start.text import read_text
from swift_dss.strategy.pinning import rule_of
from swift_dss.strategy.tuning.choices import Choice
from swift_dss.wire.settings import classtable, nodeconf


class Source:
    """The files of a node.

    :param path: of ``dss.conf``
    """

    def __init__(self, path: str) -> None:
        self._path = path

    def conf(self) -> NodeConf:
        """:raises BadConfig: the file is missing or does not parse."""
        return nodeconf.parse(read_text(self._path), self._path, os.environ)

    def read(self) -> Tuple[NodeConf, ClassTable]:
        """Both files, judged together.

        :raises BadConfig: a file is missing or does not parse, or the pin
            rule of the one does not fit the other
        """
        conf = self.conf()
        table = classtable.parse(read_text(conf.class_table),
                                 conf.class_table)
        try:
            rule_of(conf.tier, table)
        except BadConfig as err:
            raise BadConfig('%s: %s' % (self._path, err)) from err
        return conf, table


class InForce:
    """The configuration and tables in force. A part looks them up when it
    begins a piece of work: :meth:`take` and :meth:`choose` change them under
    way.

    :ivar conf, table: in force
    :ivar configured: both as they are written
    """

    def __init__(self, conf: NodeConf, table: ClassTable) -> None:
        self.configured = conf, table
        self.conf = conf
        self.table = table

    def take(self, conf: NodeConf, table: ClassTable) -> None:
        """Bring these into force, as they are."""
        self.configured = self.conf, self.table = conf, table

    def choose(self, choice: Choice) -> None:
        """Bring an order of eviction into force; all else is as configured."""
        conf, table = self.configured
        eviction, self.table = choice.apply(conf.tier.eviction, table)
        self.conf = replace(conf, tier=replace(conf.tier, eviction=eviction))
