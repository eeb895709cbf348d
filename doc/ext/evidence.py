"""Write the files that the tables of the manual's evidence are made of.

    python doc/ext/evidence.py NAME [--folder TRACES] [--beside TEXT]

runs the commands of that table of :mod:`tables`, one after the other, and
writes ``doc/source/evidence/NAME.json``: each command with the fields of its
figures that the table shows, the date, the commit whose code was measured, the
machine in general words, and what else was at work on it.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile
from typing import Any, Dict, List

import tables

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDER = ROOT / 'doc' / 'source' / 'evidence'
#: What a table is measured with; other commits change no figure.
_MEASURED = ('swift_dss',)


def trimmed(value: Any, kept: Any) -> Any:
    """The fields of a report that a table keeps (``Table.kept``)."""
    if isinstance(value, list):
        return [trimmed(item, kept) for item in value]
    if not kept:
        return value
    if isinstance(kept, str):
        kept = dict.fromkeys(kept.split(), '')
    return {name: trimmed(item, kept.get(name, kept.get('*')))
            for name, item in value.items() if name in kept or '*' in kept}


def filled(name: str, reports: List[Any], **measured: str) -> Dict[str, Any]:
    """The file of a table."""
    table = tables.TABLES[name]
    return {'measured': measured, 'runs': [
        {'command': command, 'printed': trimmed(report, table.kept)}
        for command, report in zip(table.commands, reports)]}


def rows(name: str, told: Dict[str, Any]) -> tables.Rows:
    """Head and rows of a file."""
    return tables.TABLES[name].rows([run['printed'] for run in told['runs']])


def conditions(name: str, told: Dict[str, Any]) -> str:
    """When and where a table was measured, in a sentence."""
    measured = told['measured']
    where = {
        'exact': 'in virtual time, the same on every machine',
        'virtual': 'in virtual time, which other work does not slow; several '
                   'processes share it, so that runs differ a little',
        'counts': 'counts, which other work hardly changes',
        'real': '%s, beside %s' % (measured['machine'], measured['beside']),
    }[tables.TABLES[name].clock]
    return 'Measured on %s at commit %s; %s.' % (
        measured['date'], measured['commit'], where)


def kept(name: str) -> Dict[str, Any]:
    """A file of the manual."""
    told: Dict[str, Any] = json.loads(
        (FOLDER / (name + '.json')).read_text('utf-8'))
    return told


def save(name: str, told: Dict[str, Any]) -> None:
    """Write a file of the manual."""
    text = re.sub(r'[\[{][^\]\[{}]*[\]}]', lambda row: ' '.join(
        row.group().split()), json.dumps(told, indent=1, sort_keys=True))
    (FOLDER / (name + '.json')).write_text(text + '\n', 'utf-8')


def about(beside: str) -> Dict[str, str]:
    """Date, commit and machine."""
    memory = os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES')
    return {'date': datetime.date.today().isoformat(),
            'commit': subprocess.check_output(
                ['git', 'log', '-1', '--format=%h', '--', *_MEASURED],
                cwd=str(ROOT), text=True).strip(),
            'machine': '%d cores and %.0f GiB' % (
                os.cpu_count() or 1, memory / tables.GIB),
            'beside': beside}


def prints(command: str) -> bool:
    """True if it prints lines of JSON by itself, and writes no file."""
    return not command.startswith('swift-dss ') or '--json' in command


def read(command: str, text: str) -> Any:
    """What a command of ours wrote; of a script, its lines of JSON."""
    if not prints(command):
        return json.loads(text)
    return [json.loads(line) for line in text.splitlines()
            if line.startswith('{')]


def run(command: str, folder: str) -> Any:
    """What a command writes by ``--json``, or a script prints."""
    words = shlex.split(command.replace('FOLDER', folder))
    if prints(command):
        return read(command, subprocess.check_output(
            words, cwd=str(ROOT), text=True))
    with tempfile.TemporaryDirectory() as work:
        out = os.path.join(work, 'out.json')
        subprocess.run([*words, '--json', out], check=True, cwd=str(ROOT))
        return read(command, pathlib.Path(out).read_text('utf-8'))


def main() -> None:
    """Measure one table, or more."""
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('names', nargs='+', metavar='NAME',
                        choices=list(tables.TABLES))
    parser.add_argument('--folder', default='', help='for ``FOLDER``: '
                        'of published traces, of disks, of a secret')
    parser.add_argument('--beside', default='no other work',
                        help='what else the machine did')
    parser.add_argument('--printed', metavar='FILE', nargs='+',
                        help='what the commands wrote before; runs nothing')
    args = parser.parse_args()
    for name in args.names:
        commands = tables.TABLES[name].commands
        reports = [read(command, pathlib.Path(path).read_text('utf-8'))
                   for command, path in zip(commands, args.printed)
                   ] if args.printed else [
            run(command, args.folder) for command in commands]
        save(name, filled(name, reports, **about(args.beside)))
        for row in rows(name, kept(name)):
            print('\t'.join(row), file=sys.stdout)


if __name__ == '__main__':
    main()
