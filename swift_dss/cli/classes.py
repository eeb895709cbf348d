"""``swift-dss classes``: check and show a class table."""

from __future__ import annotations

import argparse
import dataclasses
import json
from enum import Enum
from typing import Any, Dict, List

from swift_dss.cli import dssfiles
from swift_dss.core.classes import ClassSpec, ClassTable
from swift_dss.wire.settings import classtable, rules

HELP = 'check and show a class table'
_COLUMNS = ('id', 'name', 'rank', 'allocate', 'floor', 'cap', 'write',
            'remote', 'pin', 'bundle', 'wan_share', 'deadline_ms', 'inner')


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    actions = parser.add_subparsers(dest='action', metavar='ACTION',
                                    required=True)
    check = actions.add_parser('check', help='say whether a server would '
                               'take the file')
    check.add_argument('--rules', metavar='FILE',
                       help='check this rules file against the table too')
    show = actions.add_parser('show', help='print the classes, the one '
                              'that stays longest first')
    for sub in (check, show):
        sub.add_argument('--json', action='store_true', help='for programs')
        sub.add_argument('file', metavar='FILE', help='- is stdin')


def run(args: argparse.Namespace) -> int:
    """Do it; the exit code (78 if the file has an error)."""
    with dssfiles.told_plainly():
        table = classtable.parse(dssfiles.read_text(args.file), args.file)
        if args.action == 'show':
            _show(table, args.json)
            return 0
        said = {'file': args.file, 'classes': len(table.specs)}
        text = '%s: %d classes' % (args.file, len(table.specs))
        if args.rules is not None:
            ruleset = rules.parse(dssfiles.read_text(args.rules), table,
                                  args.rules)
            said['rules'] = len(ruleset.rules)
            text += '; %s: %d rules' % (args.rules, len(ruleset.rules))
    print(json.dumps(said) if args.json else text)
    return 0


def _show(table: ClassTable, as_json: bool) -> None:
    rows = [_row(spec) for spec in reversed(table.in_eviction_order())]
    if as_json:
        print(json.dumps(rows, indent=1))
        return
    cells: List[List[str]] = [list(_COLUMNS)]
    cells += [[_text(row[column]) for column in _COLUMNS] for row in rows]
    widths = [max(len(line[at]) for line in cells)
              for at in range(len(_COLUMNS))]
    for line in cells:
        print('  '.join(cell.ljust(width) for cell, width
                        in zip(line, widths)).rstrip())


def _row(spec: ClassSpec) -> Dict[str, Any]:
    row = {'id': spec.class_id}
    for field in dataclasses.fields(spec):
        value = getattr(spec, field.name)
        row[field.name] = value.value if isinstance(value, Enum) else value
    del row['class_id']
    return row


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return 'yes' if value else 'no'
    return '%g' % value if isinstance(value, float) else str(value)
