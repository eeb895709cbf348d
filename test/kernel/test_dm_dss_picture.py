"""The table is drawn a few regions at a time, and is right all the same."""

from __future__ import annotations

import dss_lab
import pytest

#: A second passes between two regions of a picture.
SLOWLY = (
    ('dss_state.h', '#define DSS_PICTURE_REGIONS\t8U',
     '#define DSS_PICTURE_REGIONS\t1U'),
    ('dss_commit.c', '\t\tcond_resched();\n', '\t\tssleep(1);\n'),
    ('dss_commit.c', '#include "dss_table.h"\n',
     '#include <linux/delay.h>\n\n#include "dss_table.h"\n'))
#: A chunk comes back while the table is drawn.
HASTY = ('dss_decide.c', 'if (d->picturing && dss_left_meanwhile(io))',
         'if (0 && dss_left_meanwhile(io))')


def test_chunk_that_moves_while_the_table_is_drawn_is_in_one_place(tmp_path):
    module = dss_lab.wrong_twin(str(tmp_path), SLOWLY)
    report = dss_lab.found('dss_picture.py', module=module, timeout=120)
    assert report['drawn'] == 2
    assert report['waited'] > 1.9
    assert report['right'] and report['used'] == 248


@pytest.mark.twin
def test_wrong_twin_that_lets_it_come_back_does_not_start_again(tmp_path):
    module = dss_lab.wrong_twin(str(tmp_path), SLOWLY + (HASTY,))
    ended = dss_lab.result('dss_picture.py', module=module, timeout=120)
    assert ended.status and 'cannot start' in ended.kernel_log
