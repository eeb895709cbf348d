"""``--version``: of swift-dss, and of what it runs on."""

from __future__ import annotations

import argparse
import platform
from typing import Any


def version(distribution: str = 'swift-dss') -> str:
    """The version of an installed distribution; ``?`` if it is none."""
    try:
        from importlib import metadata
    except ImportError:  # before Python 3.8
        return '?'
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return '?'


def versions() -> str:
    """Those of all that matters, in a line."""
    return 'swift-dss %s, Swift %s, Python %s' % (
        version(), version('swift'), platform.python_version())


class Version(argparse.Action):
    """An option that prints the versions, and ends the program. They are only
    looked up then."""

    def __call__(self, parser: argparse.ArgumentParser, *_: Any,
                 **__: Any) -> None:
        """Print, and end."""
        print(versions())
        parser.exit()


def add_version(parser: argparse.ArgumentParser) -> None:
    """Let a program have ``--version``."""
    parser.add_argument('--version', action=Version, nargs=0,
                        help='print the versions, and end')
