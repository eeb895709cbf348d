"""Asking the tier daemon over its admin socket, for every command."""

from __future__ import annotations

import json
import os
import textwrap
from typing import (
    Any, Callable, Dict, Iterable, Iterator, Optional, Sequence)

from swift_dss.core.config import NodeConf
from swift_dss.core.errors import BadConfig
from swift_dss.io.start.text import read_text
from swift_dss.tier.doors import asking
from swift_dss.tier.doors.asking import DaemonSaid
from swift_dss.wire.settings import nodeconf

__all__ = ('CONFIG', 'DaemonSaid', 'ask', 'json_rows', 'json_text',
           'read_conf', 'result')

#: "swift-dss aio env" names the all-in-one cluster's.
CONFIG = os.environ.get('SWIFT_DSS_CONF', '/etc/swift/dss.conf')


def ask(conf: NodeConf, request: Dict[str, Any]) -> Iterator[Dict[str, Any]]:
    """The daemon's answers, line by line.

    :raises TierUnavailable: no daemon answers
    :raises DaemonSaid: its error
    """
    return asking.ask(os.path.join(conf.run_dir, 'admin.sock'), request)


def result(messages: Iterator[Dict[str, Any]],
           progress: Optional[Callable[[Dict[str, Any]], None]] = None
           ) -> Any:
    """The last answer; ``progress`` is shown the ones before it."""
    outcome = None
    for message in messages:
        if progress is not None and 'progress' in message:
            progress(message['progress'])
        outcome = message.get('result', outcome)
    return outcome


def read_conf(path: str) -> NodeConf:
    """:raises BadConfig: the file is missing or does not parse."""
    try:
        text = read_text(path)
    except BadConfig as err:
        raise BadConfig('%s (say which with --config)' % err) from err
    return nodeconf.parse(text, path, os.environ)


def json_text(value: Any) -> str:
    """As every ``--json`` prints it."""
    return json.dumps(value, indent=2, sort_keys=True)


def json_rows(pages: Iterable[Sequence[Any]]) -> None:
    """Print one list of all rows of pages as :func:`json_text` would, with
    no more than a page of them in memory."""
    before = '['
    for rows in pages:
        for row in rows:
            print(before + '\n' + textwrap.indent(json_text(row), '  '),
                  end='')
            before = ','
    print('[]' if before == '[' else '\n]')
