"""``swift-dss trace``: from what processes wrote to a trace that replays."""

import gzip
import json
import os
import threading
import time

import pytest

from swift_dss.cli import main
from swift_dss.wire import tracing


@pytest.fixture
def conf(tmp_path):
    run_dir = tmp_path / 'run'
    run_dir.mkdir()
    path = tmp_path / 'dss.conf'
    path.write_text('[dss]\nrun_dir = %s\n' % run_dir)
    return path, run_dir


def writer(run_dir, said):
    """Two processes of an object server, of which one has rotated."""
    path = tracing.path_in(str(run_dir))
    for _ in range(600):
        if os.path.exists(path):
            break
        time.sleep(0.05)
    with open(path, 'rb') as source:
        order = tracing.decode(source.read())
    said.append(order)
    for name, rows in (('1.trace.1', (3, 1)), ('1.trace', (7, 5)),
                       ('2.trace', (6, 2, 4))):
        with open(os.path.join(order.folder, name), 'w') as target:
            for at in rows:
                target.write('%d.000 GET d/o%d 10 0 9 25\n' % (at, at % 3))


def test_record_gathers_what_processes_wrote_and_it_replays(
        conf, tmp_path, monkeypatch, capsys):
    path, run_dir = conf
    monkeypatch.setattr('swift_dss.cli.trace._SETTLE_SECONDS', 0.0)
    said = []
    thread = threading.Thread(target=writer, args=(run_dir, said))
    thread.start()
    out = tmp_path / 'node.trace.gz'
    assert main.main(['trace', 'record', '--config', str(path), '--seconds',
                      '2', '-o', str(out)]) == 0
    thread.join()
    assert said[0].process_bytes == 64 << 20
    assert os.listdir(str(run_dir)) == []
    with gzip.open(str(out), 'rt') as source:
        assert [int(float(line.split()[0])) for line in source
                if not line.startswith('#')] == [1, 2, 3, 4, 5, 6, 7]
    capsys.readouterr()
    assert main.main(['replay', str(out), '--cache', '20,30', '--strategy',
                      'lru', '--json', '-']) == 0
    report = json.loads(capsys.readouterr().out)
    assert [run['hit_ratio'] for run in report['runs']] == [
        0.0, pytest.approx(4 / 7, abs=1e-5)]
    assert report['classes'] == [25]


def test_two_records_at_once_are_refused(conf, tmp_path, capsys):
    path, run_dir = conf
    (run_dir / 'trace.json').write_text('{}')
    assert main.main(['trace', 'record', '--config', str(path), '-o',
                      str(tmp_path / 'x')]) == 78
    assert 'another record is running' in capsys.readouterr().err


def test_make_writes_what_show_and_replay_read(tmp_path, capsys):
    out = str(tmp_path / 'made.trace')
    assert main.main(['trace', 'make', 'gen:esi,requests=2000,share=0.001',
                      '-o', out]) == 0
    capsys.readouterr()
    said = []
    for source in ('gen:esi,requests=2000,share=0.001', out):
        assert main.main(['trace', 'show', source, '--json']) == 0
        said.append(json.loads(capsys.readouterr().out))
    for row in said:
        del row['trace'], row['seconds']
    assert said[0] == said[1]
    assert said[0]['verbs']['write'] > 200
