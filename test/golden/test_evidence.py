"""Tables of the manual's evidence are what their commands print.

``SWIFT_DSS_EVIDENCE=1`` in the environment writes them again.
"""

from __future__ import annotations

import json
import os
import shlex

from support import manual

from swift_dss.cli import main

FOLDER = manual.SOURCE / 'evidence'
CLASSES = {'user1': '11', 'user2': '12', 'user3': '13', 'user4': '14',
           'user7': '17'}


def told(name, table):
    """What the manual has of a table; written anew if that is asked for."""
    path = FOLDER / name
    if os.environ.get('SWIFT_DSS_EVIDENCE'):
        path.write_text(json.dumps(table, indent=1) + '\n')
    return json.loads(path.read_text())


def replayed(command, tmp_path):
    """The runs of a command, run in here."""
    out = tmp_path / 'replay.json'
    words = shlex.split(command)
    assert words[:2] == ['swift-dss', 'replay']
    assert main.main([*words[1:], '--json', str(out)]) == 0
    return json.loads(out.read_text())['runs']


def test_class_order_on_the_mix_of_cacs(tmp_path, capsys):
    """In virtual time, seeded: the same on every machine."""
    common = 'swift-dss replay gen:cacs,requests=100000,objects=10000 ' \
        '--cloud hdd --cache 5%,10%,20%,50% --strategy '
    commands = [common + 'lru,class', common + 'class '
                '--floors user2=20%,user3=10%,user4=5%,user7=10%']
    rows = []
    for command, with_floors in zip(commands, (False, True)):
        for run in replayed(command, tmp_path):
            rows.append([
                run['cache_share'],
                'with floors' if with_floors else run['strategy'],
                *('%.3f' % ratio for ratio in (
                    run['hit_ratio'], run['byte_hit_ratio'],
                    *(run['classes'][class_id]['hit_ratio']
                      for class_id in CLASSES.values())))])
    rows = [['%d %%' % round(100 * row[0]), *row[1:]]
            for row in sorted(rows, key=lambda row: row[0])]
    table = {'commands': commands, 'rows': rows,
             'head': ['cache', 'strategy', 'all', 'bytes', *CLASSES]}
    assert told('class-order.json', table) == table
