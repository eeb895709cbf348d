"""The plots of the block benchmarks are drawn of any report."""

import pytest

from swift_dss.bench.block import plots

pytest.importorskip('matplotlib')

FIGURES = {'mb_per_second': 2.0, 'mean_us': 100.0, 'p99_us': 300.0,
           'max_us': 400.0}
GROUPS = dict.fromkeys(('all', 'read', 'write'), FIGURES)


def is_png(path):
    return path.read_bytes()[:8] == b'\x89PNG\r\n\x1a\n'


def test_a_comparison_is_drawn(tmp_path):
    path = tmp_path / 'block.png'
    plots.compare({'workloads': [
        {'workload': name, 'setups': [
            {'setup': setup, 'phases': {'run': GROUPS}}
            for setup in ('hdd', 'dm-dss', 'dm-cache')]}
        for name in ('cacs', 'plain')]}, str(path))
    assert is_png(path)


def test_chunks_are_drawn(tmp_path):
    path = tmp_path / 'chunks.png'
    rows = [{'setup': 'no cache', 'mode': 'back', 'chunk_kib': 0,
             'phases': {'first': GROUPS, 'second': GROUPS}}]
    rows += [{'setup': setup, 'mode': mode, 'chunk_kib': chunk,
              'phases': {'first': GROUPS, 'second': GROUPS}}
             for setup in ('dm-dss', 'dm-cache')
             for mode in ('back', 'through') for chunk in (32, 64)]
    plots.chunks({'what': 'w', 'plan': {'origin': 'array'},
                        'rows': rows}, str(path))
    assert is_png(path)
