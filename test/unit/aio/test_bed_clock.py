"""A node's clock: every way to ask for the time gives the moved one."""

from __future__ import annotations

import json
import subprocess
import sys

from swift_dss.aio.bed import clock

#: Asks in a process of its own: the clock of this one stays right.
_ASK = '''
import json, sys
from swift_dss.aio.bed import clock
import time, datetime
right = time.time(), time.monotonic()
clock.follow(sys.argv[1])
import logging
from datetime import datetime as by_name
from time import time as time_by_name
utc = datetime.timezone.utc
epoch = datetime.datetime(1970, 1, 1)
class Holds:
    clock = time.time
record = logging.LogRecord('x', 20, 'f', 1, 'text', (), None)
shown = logging.Formatter('%(asctime)s').format(record)
moved = {
    'time': time.time(), 'by name': time_by_name(),
    'as an attribute': Holds().clock(),
    'time_ns': time.time_ns() / 1e9,
    'clock_gettime': time.clock_gettime(time.CLOCK_REALTIME),
    'gmtime': __import__('calendar').timegm(time.gmtime()),
    'localtime': time.mktime(time.localtime()),
    'ctime': time.mktime(time.strptime(time.ctime())),
    'asctime': time.mktime(time.strptime(time.asctime())),
    'strftime': time.mktime(time.strptime(
        time.strftime('%Y-%m-%d %H:%M:%S'), '%Y-%m-%d %H:%M:%S')),
    'now': datetime.datetime.now(utc).timestamp(),
    'utcnow': (datetime.datetime.utcnow() - epoch).total_seconds(),
    'today': datetime.datetime.today().timestamp(),
    'datetime by name': by_name.now(utc).timestamp(),
    'logging': time.mktime(time.strptime(
        shown.partition(',')[0], '%Y-%m-%d %H:%M:%S'))}
still = {'monotonic': time.monotonic() - right[1],
         'gmtime of': time.gmtime(86400).tm_mday,
         'a date': isinstance(datetime.datetime(2001, 2, 3),
                              datetime.datetime),
         'of C': isinstance(datetime.datetime.strptime('1', '%d'), by_name)}
print(json.dumps({'moved': {name: value - right[0]
                            for name, value in moved.items()},
                  'still': still}))
sys.stdout.flush()
sys.stdin.readline()
print(json.dumps(time.time() - right[0] - (time.monotonic() - right[1])))
'''


def test_every_way_to_ask_gives_the_moved_time(tmp_path):
    path = str(tmp_path / 'clock')
    clock.set_offset(path, -300.0)
    with subprocess.Popen([sys.executable, '-W', 'ignore', '-c', _ASK, path],
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          text=True) as child:
        asked = json.loads(child.stdout.readline())
        wrong = {name: moved for name, moved in asked['moved'].items()
                 if not -301.5 < moved < -290}
        assert not wrong
        assert asked['still'] == {
            'monotonic': asked['still']['monotonic'], 'gmtime of': 2,
            'a date': True, 'of C': True}
        assert 0 <= asked['still']['monotonic'] < 10
        # A change counts at once, in a process that runs.
        clock.set_offset(path, 7200.0)
        later, _err = child.communicate('\n')
    assert abs(json.loads(later) - 7200) < 1
