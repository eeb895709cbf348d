"""Tables of what is broken on purpose, and of links that are too slow."""

from __future__ import annotations

from typing import Dict

from .cells import Reports, Rows, Table, percent


def _table_iv(reports: Reports) -> Rows:
    return [['cache', 'client', 'cache, bytes', 'most on a quorum',
             'most on one device', 'sent back', 'failed', 'wrong'], *(
        [percent(row['share'], 1), row['client'],
         *('{:,}'.format(row[of]) for of in (
             'budget', 'most_on_a_quorum', 'most_waiting')),
         *('%d' % row[of] for of in ('told_to_retry', 'failed', 'wrong'))]
        for lines in reports for row in lines)]


TABLES: Dict[str, Table] = {
    'edge-table-iv': Table(
        ['python test/fault/edge_writes.py table-iv --objects 200 '
         '--object 256k --rate 2000000'],
        'share client budget most_on_a_quorum most_waiting told_to_retry '
        'failed wrong', _table_iv),
}
