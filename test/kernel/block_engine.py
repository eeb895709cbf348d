"""In a guest: an object server and a tier daemon with engine ``block``, on
XFS over dm-dss. Prints one line of JSON: what each step gave."""

from __future__ import annotations

import json
import os
import sys
from typing import Any, Dict

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))

from block_node import block, call, need  # noqa: E402
from support.nodes import object_node  # noqa: E402
from support.nodes.daemon_node import DaemonProcess  # noqa: E402

from swift_dss.core.spans import ClassMap  # noqa: E402
from swift_dss.wire import classmap, names  # noqa: E402

ROOT = '/run/node'
MOUNT = ROOT + '/devices/sda'
PAGE = 'http://127.0.0.1:26999/metrics'
SIZE = 256 * 1024
#: Class to where its objects must end: 5 takes the SSD, 2 never does.
CLASSES = (5, 2)
said: Dict[str, Any] = {}


def main() -> None:
    """All steps."""
    os.makedirs(MOUNT)
    node = object_node.make_node(ROOT, carrier='ioprio')
    configure()
    need(sys.executable, '-m', 'swift_dss.cli.main', 'block', 'create',
         'fast', '--ssd', '/dev/mapper/ssd', '--origin', '/dev/mapper/hdd',
         '--chunk', '64k', '--idle-ms', '0', '--class-table',
         ROOT + '/dss-classes.conf')
    need('mkfs.xfs', '-q', '/dev/mapper/fast')
    need('mount', '/dev/mapper/fast', MOUNT)
    # mkfs has zeroed what lies at the front, and that is on the SSD yet.
    need('fallocate', '-l', '80M', MOUNT + '/ballast')
    daemon = DaemonProcess(ROOT)
    daemon.start()
    node.start()
    try:
        requests(node)
        daemon.settle()
        shown(daemon)
        said['check'] = checked()
        live_table(daemon)
        said['demote'] = demote(daemon)
    finally:
        node.stop()
        daemon.stop()
    need('umount', MOUNT)
    said['remove'] = block('remove', 'fast', '--json')
    # The HDD alone has it all.
    need('mount', '-o', 'ro', '/dev/mapper/hdd', MOUNT)
    said['on_origin'] = {class_id: same(node, class_id)
                         for class_id in CLASSES}
    said['check_without'] = checked()


def checked() -> Any:
    """What an operator is told of the kernel's part."""
    code, out, err = call(
        sys.executable, '-m', 'swift_dss.cli.main', 'check', '--only',
        'kernel', '--config', ROOT + '/dss.conf', '--json')
    return [code, json.loads(out)['findings'] if out else err]


def configure() -> None:
    """The node's dss.conf, with the engine of its device."""
    path = ROOT + '/dss.conf'
    with open(path) as source:
        text = source.read()
    with open(path, 'w') as out:
        # [tier] is the last section there.
        out.write(text + 'prometheus_port = 26999\n'
                  'clean_after_seconds = 0\n\n[engine]\nsda = block\n')


def body(class_id: int) -> bytes:
    """What an object of a class has."""
    return b'%07d\n' % class_id * (SIZE // 8)


def classes() -> Dict[str, Any]:
    """Counters of the kernel."""
    code, out, err = block('status', 'fast', '--json', '--class-table',
                           ROOT + '/dss-classes.conf')
    assert code == 0, err
    return json.loads(out)[0]['classes']  # type: ignore[no-any-return]


def requests(node: Any) -> None:
    """A classified PUT and GET of each class, past the page cache."""
    said['before'] = classes()
    said['put'], said['get'] = {}, {}
    for class_id in CLASSES:
        headers = {}
        for name in (names.BACKEND_MAP, names.SYSMETA_MAP):
            headers.update(classmap.to_headers(
                name, ClassMap.uniform(class_id)))
        answer = node.request('PUT', 'o%d' % class_id, body(class_id),
                              headers)
        said['put'][class_id] = answer.status
    said['after_put'] = classes()
    need('sync')
    with open('/proc/sys/vm/drop_caches', 'w') as out:
        out.write('3')
    for class_id in CLASSES:
        answer = node.request('GET', 'o%d' % class_id)
        said['get'][class_id] = [
            answer.status, answer.body == body(class_id),
            answer.headers.get(names.BACKEND_TIER.lower())]
    said['after_get'] = classes()
    said['head'] = node.request('HEAD', 'o5').headers.get(
        names.BACKEND_TIER.lower())


def shown(daemon: Any) -> None:
    """What the daemon and its command say."""
    said['status'] = daemon.ask({'verb': 'status'})
    said['tier_status'] = call(
        sys.executable, '-m', 'swift_dss.cli.main', 'tier', 'status',
        '--config', ROOT + '/dss.conf')
    # The page is drawn anew every ten seconds; virtual ones.
    need('sleep', '15')
    said['page'] = need(
        sys.executable, '-c', 'import urllib.request, sys; sys.stdout.write('
        'urllib.request.urlopen(%r).read().decode())' % PAGE)


def live_table(daemon: Any) -> None:
    """A changed class table reaches the kernel without anybody's help."""
    path = ROOT + '/dss-classes.conf'
    with open(path) as source:
        text = source.read()
    with open(path, 'w') as out:
        out.write(text.replace('rank = 57', 'rank = oops'))
    need('sleep', '15')
    said['rows_of_bad_file'] = need('dmsetup', 'message', 'fast', '0',
                                    'classes')
    with open(path, 'w') as out:
        out.write(text.replace('rank = 57', 'rank = 59'))
    need('sleep', '15')
    said['rows'] = need('dmsetup', 'message', 'fast', '0', 'classes')


def demote(daemon: Any) -> Any:
    """The daemon leaves the kernel's work to the kernel."""
    return call(sys.executable, '-m', 'swift_dss.cli.main', 'tier',
                'demote', '--class', 'five', '--config',
                ROOT + '/dss.conf')


def same(node: Any, class_id: int) -> bool:
    """Is an object's data file what was put?"""
    with open(node.data_file('o%d' % class_id), 'rb') as source:
        return source.read() == body(class_id)


try:
    main()
finally:
    print(json.dumps(said))
