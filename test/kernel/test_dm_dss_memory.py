"""dm-dss is right, and ends, while there is little memory."""

from __future__ import annotations

import os
import shutil

import dss_lab

_INCLUDE = '#include "core/dss_core.h"\n#include "dss_format.h"\n'
_STANDS = 'static void dss_postsuspend(struct dm_target *ti)\n{\n'
_GOES_ON = '\tqueue_delayed_work(d->clean_wq, &d->tick_work, DSS_TICK);\n}\n'
_COUNTED = ('#include <linux/moduleparam.h>\n'
            'atomic_t dss_standing, dss_asked;\n'
            'module_param_named(asked, dss_asked.counter, int, 0444);\n')


def test_standing_device_asks_for_no_memory_that_may_wait_for_it(tmp_path):
    shutil.copy(os.path.join(dss_lab.HERE, 'dss_watched.h'), tmp_path)
    module = dss_lab.wrong_twin(str(tmp_path), [
        ('dss_state.h', _INCLUDE, _INCLUDE + '#include "dss_watched.h"\n'),
        ('dss_target.c', _STANDS, _COUNTED + _STANDS
         + '\tatomic_set(&dss_standing, 1);\n'),
        ('dss_target.c', _GOES_ON, _GOES_ON.replace(
            '}\n', '\tatomic_set(&dss_standing, 0);\n}\n'))])
    report = dss_lab.found('dss_no_reclaim.py', module=module)
    # It was watched: each of them asks for memory.
    assert all(times > 0 for times in report.values()), report


def test_request_cut_into_more_pieces_than_there_is_memory_for_ends():
    assert dss_lab.found('dss_no_memory.py', ['cut'], timeout=120) == {
        'right': True, 'deferred': 1}


def test_more_doubled_writes_than_there_is_memory_for_end():
    assert dss_lab.found('dss_no_memory.py', ['doubled'], timeout=120) == {
        'right': True, 'used': 120}
