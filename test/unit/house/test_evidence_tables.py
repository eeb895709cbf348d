"""Tables of figures in the evidence are made of JSON that benches wrote."""

from __future__ import annotations

import contextlib
import io
import json
import re
import shlex

import pytest
from support import manual

from swift_dss.cli import main

EVIDENCE = manual.evidence()
TABLES = EVIDENCE.tables.TABLES
PAGES = sorted(EVIDENCE.FOLDER.glob('*.rst'))
#: Tables that are still typed, by the words of their head. This list only
#: gets shorter: whoever makes one of JSON takes it out here.
BY_HAND = {
    'bundling': [
        'upload objects fresh, backlog, o',
        'run backlog, % of the link fresh',
    ],
    'edge-writes': [
        'eight writers of into the edge s',
        'process 512 MiB, this 512 MiB, S',
        'chunk object server proxy',
    ],
}
_SIDE = {'seconds': 4.0, 'per_second': 1 << 27, 'cpu_seconds_per_gib': {
    'object-server': 1.5, 'proxy-server': 0.75, 'machine': 4.0}}
_BUNDLED = {
    'variant': 'bundled', 'objects': 24000, 'data_bytes': 24000 * 4096,
    'seconds': 8.0, 'drain_seconds': 6.0, 'link_share': 0.625,
    'fresh_share': 0.5, 'wait_p50': 6.0, 'wait_p99': 8.0, 'puts': 12,
    'price': 0.0001, 'stored_bytes': 24000 * 4300, 'read_bytes': 1000,
    'link_sent_bytes': 24000 * 4400, 'link_read_bytes': 1150,
    'daemon_cpu': 3.0, 'link_cpu': 0.12, 'server_cpu': 0.48}
#: Tables whose figures are typed until a machine with nothing else to do has
#: measured them: what their commands write, cut short, and a row of it.
WAITING = {
    'edge-checkpoint': ([[{'writers': 8, 'object': 512 << 20,
                           'sync_seconds': 200.0, 'written_back': _SIDE,
                           'vanilla': dict(_SIDE, seconds=8.0)}]],
                        ['times less', '50.0', '25.0']),
    'edge-chunks': ([[{'chunk_kib': 1024, 'written_back': _SIDE}]],
                    ['1 MiB', '1.50', '0.75']),
    'bundles': ([{'figures': [_BUNDLED]}],
                ['4 KiB, in bundles', '24,000', '6.14', '8.19', '2,000',
                 '62 %', '6.0', '8.0', '0.50', '0.00', '5.0 %', '7.4 %',
                 '15.0 %']),
    'bundles-backlog': ([{'figures': [_BUNDLED]}],
                        ['24,000', '62.5', '50.0', '12', '0.25', '0.01',
                         '0.04']),
}
MEASURED = sorted(set(TABLES) - set(WAITING))
#: Tables of what a publication says, or an option means.
NOT_MEASURED = {'figure published', 'published Files Pictures Music V',
                'row what it is'}
#: A line of the borders of a simple table.
BORDER = re.compile(r'=+(?: +=+)+$')
LIST_TABLE = re.compile(r'^\.\. list-table::.*\n((?:   .*\n|\n)+)', re.M)
#: A cell that is a figure, perhaps with a unit or a range.
FIGURE = re.compile(r'[-~<]?\**\d[\d.,]*(?![\w-])(?! of )')
RESULTS = re.compile(r'^\.\. results:: (\S+)$', re.M)


def simple_tables(text):
    """(head, body lines) of each simple table; it ends at a blank line."""
    for block in re.split(r'\n\s*\n', text):
        lines = block.split('\n')
        borders = [at for at, line in enumerate(lines) if BORDER.match(line)]
        if len(borders) > 1:
            yield (' '.join(' '.join(
                lines[borders[0] + 1:borders[1]]).split()),
                lines[borders[-2] + 1:borders[-1]])


def name_of(head):
    """The first words of a table's head, without inner borders."""
    return re.sub(r' -{3,}', '', head)[:32].strip()


def typed(text):
    """The heads of tables with figures in a page."""
    for head, body in simple_tables(text):
        cells = [cell for line in body
                 for cell in re.split(r' {2,}', line.strip())[1:]]
        if any(FIGURE.match(cell) for cell in cells):
            yield name_of(head)
    for block in LIST_TABLE.findall(text + '\n'):
        rows = [re.findall(r'(?:\* |  )- ?(.*)', row)
                for row in block.split('   * -')]
        cells = [cell for row in rows[1:] for cell in row]
        if any(FIGURE.match(cell) for cell in cells):
            yield name_of(' '.join(rows[1]))


def test_no_table_of_figures_is_typed():
    found = {}
    for page in PAGES:
        heads = [head for head in typed(page.read_text())
                 if head not in NOT_MEASURED]
        # The list of mutants is made by its own script.
        if heads and page.stem != 'mutants':
            found[page.stem] = heads
    assert found == BY_HAND
    print('figure: %d tables of evidence made of JSON, %d typed' % (
        len(MEASURED), sum(map(len, BY_HAND.values()))))


def test_a_typed_table_is_seen():
    table = '\n===  =====\na    MB/s\n===  =====\nx    %s\n===  =====\n'
    assert list(typed('Text\n' + table % '17.5' + table % 'y')) == ['a MB/s']
    assert list(typed('.. list-table::\n\n   * - a\n     - b\n'
                      '   * - x\n     - 12 lost\n'))


def test_each_file_of_figures_is_one_table_of_one_page():
    shown = [name for page in PAGES
             for name in RESULTS.findall(page.read_text())]
    files = [path.stem for path in EVIDENCE.FOLDER.glob('*.json')]
    assert sorted(shown) == MEASURED
    assert sorted(files) == MEASURED


@pytest.mark.parametrize('name', WAITING)
def test_a_table_that_waits_can_be_made(name):
    reports, row = WAITING[name]
    table = TABLES[name]
    head, *rows = table.rows([EVIDENCE.trimmed(report, table.kept)
                              for report in reports])
    assert row in rows and {len(row) for row in rows} == {len(head)}


@pytest.mark.parametrize('name', MEASURED)
def test_a_file_of_figures_is_short_and_of_the_commands_of_today(name):
    told, table = EVIDENCE.kept(name), TABLES[name]
    assert [run['command'] for run in told['runs']] == table.commands
    for run in told['runs']:
        assert EVIDENCE.trimmed(run['printed'], table.kept) == run['printed']
    text = (EVIDENCE.FOLDER / (name + '.json')).read_text()
    assert len(text) < 16384
    assert not re.search(r'"[^"]*/(?:work|home|root|tmp|mnt)\b', text)
    assert set(told['measured']) == {'date', 'commit', 'machine', 'beside'}
    head, *rows = EVIDENCE.rows(name, told)
    assert rows and {len(row) for row in rows} == {len(head)}


@pytest.mark.parametrize('name', TABLES)
def test_the_programs_take_the_commands_of_a_table(name):
    parser = main.whole_parser()
    for command in TABLES[name].commands:
        words = shlex.split(command)
        if words[0] == 'swift-dss':
            with contextlib.redirect_stderr(io.StringIO()):
                parser.parse_args(words[1:] if EVIDENCE.prints(command)
                                  else [*words[1:], '--json', 'out.json'])
            continue
        assert words[0] == 'python'
        script = (manual.ROOT / words[1]).read_text()
        for word in words[2:]:
            if word.startswith('--'):
                assert "'%s'" % word in script, (command, word)


def test_a_report_is_cut_to_what_its_table_shows():
    report = {'runs': [{'a': 1, 'b': 2, 'more': {'x': {'a': 3, 'c': 4}}}],
              'raw': [1, 2, 3], 'whole': {'d': 5}}
    assert EVIDENCE.trimmed(report, {
        'runs': {'a': '', 'more': {'*': 'a'}}, 'whole': ''}) == {
            'runs': [{'a': 1, 'more': {'x': {'a': 3}}}], 'whole': {'d': 5}}
    assert json.loads(json.dumps(report)) == report


def test_of_a_script_its_lines_of_json_are_read():
    assert EVIDENCE.read('python a.py --json', 'noise\n{"a": 1}\n{"a": 2}\n'
                         ) == [{'a': 1}, {'a': 2}]
    assert EVIDENCE.read('swift-dss bench x', '{\n"a": 1}') == {'a': 1}
    assert EVIDENCE.read('swift-dss x --json', '{"a": 1}') == [{'a': 1}]


def test_cells_that_repeat_those_above_are_left_out():
    assert EVIDENCE.tables.grouped([
        ['a', 'x', '1'], ['a', 'x', '2'], ['a', 'y', '1'], ['b', 'y', '1'],
    ], 2) == [['a', 'x', '1'], ['', '', '2'], ['', 'y', '1'],
              ['b', 'y', '1']]
