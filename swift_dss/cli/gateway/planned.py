"""What a verb would do: the option, and the answer for those that move bytes.
"""

from __future__ import annotations

import argparse
from typing import Any, Dict

from swift_dss.cli.table import size


def add_dry_run(parser: argparse.ArgumentParser) -> None:
    """Let a verb have ``--dry-run``."""
    parser.add_argument('--dry-run', action='store_true',
                        help='say what it would be, and do nothing')


def text(verb: str, answer: Dict[str, Any]) -> str:
    """In a line."""
    parts = ['%d of %d versions' % (answer['moves'], answer['versions'])]
    parts += ['%s %s' % (size(answer[name]), words) for name, words in (
        ('sent_bytes', 'to S3'), ('fetched_bytes', 'from S3'),
        ('freed_bytes', 'of SSD and HDD freed')) if answer[name]]
    if answer['stays']:
        parts.append('%d stay, by their class' % answer['stays'])
    return 'would %s: %s' % (verb, ', '.join(parts))
