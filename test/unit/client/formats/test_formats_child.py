"""A child that can only read its file: formats work, hostile ones do not."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import zipfile

import pytest

from swift_dss.client.formats.child.main import Pieces

#: A classifier of others, as a package with an entry point would bring it.
_HOSTILE = '''
import concurrent.futures.thread, errno, os, socket
from swift_dss.client.formats.contract import Format, Hot


def hot(reader, wish):
    %s
    yield Hot(0, 1)


FORMAT = Format('hostile', lambda reader: reader.read(0, 4) == b'EVIL', hot)
'''


@pytest.fixture
def child(tmp_path):
    """``child(data, code, ...)``: a child's exit status and answer."""
    def run(data, code='', pieces=None, **options):
        (tmp_path / 'hostile.py').write_text(_HOSTILE % (
            code.replace('\n', '\n    ') or 'pass'))
        about = tmp_path / 'hostile-1.dist-info'
        about.mkdir(exist_ok=True)
        (about / 'METADATA').write_text('Name: hostile\nVersion: 1\n')
        (about / 'entry_points.txt').write_text(
            '[swift_dss.classifiers]\nhostile = hostile:FORMAT\n')
        files = [data] if isinstance(data, bytes) else data
        handles = []
        for number, text in enumerate(files):
            (tmp_path / str(number)).write_bytes(text)
            handles.append(os.open(tmp_path / str(number), os.O_RDONLY))
        job = {'parent': os.getpid(), 'size': len(files[0]), 'pieces': [
            [offset, length, handles[number]] for offset, length, number
            in pieces or [(0, len(files[0]), 0)]],
            'spans': 1000, 'memory': 256 << 20, 'cpu': 10}
        job.update(options)
        try:
            with tempfile.TemporaryFile() as asked, \
                    tempfile.TemporaryFile() as said:
                asked.write(json.dumps(job).encode())
                asked.seek(0)
                ended = subprocess.run(
                    [sys.executable, '-m',
                     'swift_dss.client.formats.child.main'], stdin=asked,
                    stdout=said, pass_fds=handles, timeout=60,
                    env={'PYTHONPATH': os.pathsep.join(
                        [str(tmp_path), *filter(None, sys.path)])})
                said.seek(0)
                raw = said.read()
        finally:
            for handle in handles:
                os.close(handle)
        return ended.returncode, raw if ended.returncode \
            else json.loads(raw)
    return run


def archive(path):
    with zipfile.ZipFile(path, 'w') as out:
        for number in range(50):
            out.writestr('m%d' % number, os.urandom(4000))
    return path.read_bytes()


def test_a_file_is_classified_behind_the_walls(child, tmp_path, classify):
    data = archive(tmp_path / 'a.zip')
    expected = classify(tmp_path / 'a.zip')
    assert child(data) == (0, {
        'format': 'zip', 'ranges': list(map(list, expected.plan.ranges))})


def test_a_file_in_two_pieces_is_one(child, tmp_path, classify):
    """The end is on another disk, at the same offset."""
    data = archive(tmp_path / 'a.zip')
    cut = 100000
    first = data[:cut] + bytes(len(data) - cut)
    expected = classify(tmp_path / 'a.zip')
    status, said = child([first, bytes(cut) + data[cut:]], pieces=[
        (0, cut, 0), (cut, len(data) - cut, 1)])
    assert said['ranges'] == list(map(list, expected.plan.ranges))


@pytest.mark.parametrize('name', ['parquet', 'orc', 'arrow', 'hdf5'])
def test_libraries_work_behind_the_walls(child, tmp_path, classify, name):
    path = tmp_path / ('t.' + name)
    _MAKERS[name](path)
    expected = classify(path)
    assert expected.format_name == name
    assert child(path.read_bytes()) == (0, {
        'format': name, 'ranges': list(map(list, expected.plan.ranges))})


def _table():
    arrow = pytest.importorskip('pyarrow')
    return arrow.table({'a': list(range(20000)), 'b': ['x' * 20] * 20000})


def _parquet(path):
    table = _table()
    import pyarrow.parquet
    pyarrow.parquet.write_table(table, path, row_group_size=1000)


def _orc(path):
    table = _table()
    import pyarrow.orc
    pyarrow.orc.write_table(table, path)


def _arrow(path):
    table = _table()
    import pyarrow
    with pyarrow.OSFile(str(path), 'wb') as out, \
            pyarrow.ipc.new_file(out, table.schema) as writer:
        writer.write_table(table)


def _hdf5(path):
    h5py = pytest.importorskip('h5py')
    with h5py.File(path, 'w') as out:
        out.create_dataset('x', data=list(range(100000)))


_MAKERS = {'parquet': _parquet, 'orc': _orc, 'arrow': _arrow, 'hdf5': _hdf5}


#: The kernel lets a process do each of these without the walls.
_CALLS = (
    'os.fork()',
    'os.posix_spawn("/bin/true", ["true"], {})',
    'os.execv("/bin/true", ["true"])',
    'socket.socket(socket.AF_INET)',
    'socket.socket(socket.AF_UNIX)',
    'open("/etc/passwd")',
    'open("/tmp/made-by-a-child", "w")',
    'os.stat("/etc/passwd")',
    'os.listdir("/")',
    'os.kill(os.getppid(), 0)',
    'os.pipe()',
    'os.memfd_create("x")',
    'os.sched_setaffinity(0, {0})')


def test_calls_that_no_reader_needs_are_refused(child):
    status, said = child(b'EVIL', '''
refused = 0
for call in %r:
    try:
        eval(call)
    except OSError as err:
        refused += err.errno == errno.EPERM
    else:
        raise Exception(call)
raise Exception("refused %%d" %% refused)''' % (_CALLS,))
    assert (status, said) == (0, {
        'error': 'failed', 'reason': 'refused %d' % len(_CALLS)})


def test_threads_of_a_library_run_and_are_bound_as_well(child):
    status, said = child(b'EVIL', '''
with concurrent.futures.ThreadPoolExecutor(2) as pool:
    raise Exception(type(pool.submit(os.fork).exception()).__name__)''')
    assert said['reason'] == 'PermissionError'


def test_memory_has_an_end(child):
    status, said = child(b'EVIL', 'kept = []\nfor _ in range(512):\n'
                         '    kept.append(bytearray(1 << 20))')
    assert (status, said) == (0, {'error': 'failed',
                                  'reason': 'MemoryError'})


def test_processor_time_has_an_end(child):
    status, said = child(b'EVIL', 'while True: pass', cpu=1)
    assert status < 0
    assert said == b''


def test_an_answer_has_an_end(child):
    """What a child says is bounded by the kernel, not by its good will."""
    status, said = child(b'EVIL', 'for _ in range(9):\n'
                         '    os.write(1, bytes(1 << 20))')
    assert status
    assert said == bytes(1 << 20)


def test_a_child_without_walls_reads_nothing(child):
    """Its parent is another process: it is not the child of a daemon."""
    status, said = child(b'EVIL', 'raise Exception("it was read")', parent=1)
    assert said['error'] == 'no_walls'


def test_a_format_of_nobody_and_a_damaged_file_are_told_apart(child):
    assert child(b'nothing that is known')[1]['error'] == 'unknown'
    assert child(b'PAR1' + bytes(20) + b'PAR1')[1]['error'] == 'bad'


def test_pieces_are_read_over_their_borders(tmp_path):
    for name in ('a', 'b'):
        (tmp_path / name).write_bytes(name.encode() * 10)
    with open(tmp_path / 'a', 'rb') as one, open(tmp_path / 'b', 'rb') as two:
        reader = Pieces(10, [(0, 3, one.fileno()), (3, 4, two.fileno()),
                             (7, 3, one.fileno())])
        assert reader.read(0, 100) == b'aaabbbbaaa'
        assert reader.read(2, 2) == b'ab'
        assert reader.read(7, 1) == b'a'
