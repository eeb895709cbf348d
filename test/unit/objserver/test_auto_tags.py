"""The class that a rule wants a node to give: from metadata to the daemon."""

from __future__ import annotations

import os
import socket
from typing import Any

import pytest
from support.rigs.dss_disk import Disk
from swift.common.utils import Timestamp

from swift_dss.core.limits import MAX_EVENT_BYTES
from swift_dss.objserver import tags
from swift_dss.wire import control, names


@pytest.mark.parametrize('text, class_id', [
    ('0', 0), ('9', 9), ('31', 31), ('32', None), ('', None), ('-1', None),
    ('gold', None), ('9 ', None)])
def test_metadata_that_says_no_class_says_nothing(
        text: str, class_id: Any) -> None:
    assert tags.auto_of({names.SYSMETA_AUTO: text}) == class_id


def test_metadata_without_it_says_nothing() -> None:
    assert tags.auto_of({}) is None


@pytest.mark.parametrize('said', ['9', None])
def test_the_daemon_hears_of_it_with_the_upload(disk: Disk,
                                                said: Any) -> None:
    os.makedirs(disk.node.conf.run_dir)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as heard:
        heard.bind(os.path.join(disk.node.conf.run_dir, 'events.sock'))
        heard.settimeout(10)
        opened = disk.open_file('o')
        metadata = {'X-Timestamp': Timestamp.now().internal, 'ETag': 'x',
                    'Content-Type': 'a/b', 'Content-Length': '1'}
        if said:
            metadata[names.SYSMETA_AUTO] = said
        with opened.create(1) as writer:
            writer.write(b'x')
            writer.put(metadata)
            writer.commit(Timestamp(metadata['X-Timestamp']))
        event, = map(control.decode_event, control.split_events(
            heard.recv(2 * MAX_EVENT_BYTES)))
    assert event.auto == (said and int(said))
