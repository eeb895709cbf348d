"""A request of many chunks is decided as if each chunk came by itself."""

from __future__ import annotations

import dss_lab
import pytest

#: Every request is limited to its first chunk.
CUT = ('dss_decide.c',
       'if (dss_is_long(io) && dss_goes_alone(io, through, in_map) &&',
       'if (dss_is_long(io) &&')
#: Further chunks are not told to the core.
UNTOLD = ('dss_read.c', '\t\tdss_count_hit(&one);\n', '')


@pytest.fixture(scope='module')
def cut(tmp_path_factory):
    return dss_lab.wrong_twin(str(tmp_path_factory.mktemp('cut')), [CUT])


@pytest.mark.parametrize('mode, ahead, mib', [
    ('writeback', 0, 24), ('writeback', 32, 24),
    # On an SSD that has room for all: a doubled write's chunks do not take
    # the slots of one another, as they may where each comes by itself.
    ('writethrough', 0, 12)])
def test_core_counts_the_same_if_every_request_is_cut(cut, mode, ahead, mib):
    args = [7 + ahead, 1500, mode, ahead, mib]
    whole = dss_lab.found('dss_spans.py', args)
    pieces = dss_lab.found('dss_spans.py', args, cut)
    assert whole['right'] and pieces['right']
    assert whole['counts'] == pieces['counts']
    # All the same the HDD has less to do.
    assert sum(whole['hdd']) < 0.8 * sum(pieces['hdd'])


def test_chunks_that_are_not_told_are_seen(cut, tmp_path):
    args = [7, 400, 'writeback', 0, 24]
    untold = dss_lab.wrong_twin(str(tmp_path), [UNTOLD])
    assert dss_lab.found('dss_spans.py', args, untold)['counts'] != \
        dss_lab.found('dss_spans.py', args, cut)['counts']
