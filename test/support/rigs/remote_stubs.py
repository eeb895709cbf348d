"""Objects in every state that the tiers know, and what the disks say.

What a test asserts comes from the data files, the HTTP answers and the
cloud's own access log, not from the tier daemon's index.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shutil
import socket
import uuid
from typing import Any, Dict, List, NamedTuple, Optional

from support.rigs import direct_answers as direct
from support import data_files, md5, pattern, wait_until
from swift.obj.diskfile import read_metadata
from swiftclient import ClientException

from swift_dss.aio import layout
from swift_dss.aio.cluster import Cluster
from swift_dss.core.errors import DamagedRecord
from swift_dss.core.residency import Residency, Tier
from swift_dss.gateway.form.metadata import META_SUFFIX
from swift_dss.io import residency_store
from swift_dss.io.capacity import Capacity
from swift_dss.wire import layout as wire_layout
from swift_dss.wire.control import decode_line, encode_line

ACCOUNT = 'AUTH_test'
#: Over three EC segments, so that a range class can have one to itself.
SIZE = (3 << 20) + 4099
_RANGE = '%d-%d' % (1 << 20, 1 << 20)
FAST, SLOW, CLOUD, ATTIC, PINNED = 20, 21, 22, 23, 24

#: The states that a test can ask for, and which headers lead there.
HDD, MIXED, REMOTE, MIXED_REMOTE = 'hdd', 'mixed', 'remote', 'mixed-remote'
LOCAL_STUBS = (HDD, MIXED)
ALL_STUBS = (HDD, MIXED, REMOTE, MIXED_REMOTE)
#: On the HDD, and in S3 too.
BACKED = 'backed'
_HEADERS = {
    'whole': {'X-DSS-Object-Class': 'fast'},
    HDD: {'X-DSS-Object-Class': 'fast'},
    MIXED: {'X-DSS-Object-Class': 'fast',
            'X-DSS-Range-Class': '%s-%d' % (_RANGE, SLOW)},
    REMOTE: {'X-DSS-Object-Class': 'cloud'},
    BACKED: {'X-DSS-Object-Class': 'cloud'},
    MIXED_REMOTE: {'X-DSS-Object-Class': 'cloud',
                   'X-DSS-Range-Class': '%s-%d' % (_RANGE, ATTIC)},
}
_TIERS = {HDD: Tier.HDD, REMOTE: Tier.REMOTE,
          BACKED: Tier.HDD | Tier.REMOTE}


class Copy(NamedTuple):
    """A data file, read: a replica or a fragment archive."""

    device: str
    partition: str
    path: str
    policy: int
    content_length: int
    etag: str
    residency: Residency
    capacity_id: str

    @property
    def is_whole(self) -> bool:
        """True if the file has all bytes, and they are the right ones."""
        with open(self.path, 'rb') as source:
            return (not self.residency.is_stub
                    and md5(source.read()) == self.etag)


class Object(NamedTuple):
    """An object that a test has made."""

    container: str
    name: str
    body: bytes
    policy: int

    @property
    def path(self) -> str:
        """``/account/container/object``."""
        return '/%s/%s/%s' % (ACCOUNT, self.container, self.name)


def admin(cluster: Cluster, verb: str, **fields: Any) -> Any:
    """Ask the tier daemon; its result.

    :raises AssertionError: it answered with an error
    """
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(120)
        connection.connect(cluster.conf.path('run', 'admin.sock'))
        connection.sendall(encode_line(dict(fields, verb=verb)))
        with connection.makefile('rb') as lines:
            for line in lines:
                said = decode_line(line)
                assert 'error' not in said, said
                if 'result' in said:
                    return said['result']
    raise AssertionError('the tier daemon hung up')


def cloud_reads(cluster: Cluster) -> int:
    """GETs of objects' bytes that the cloud has answered since its start;
    records beside them, which a POST renews, and what a daemon asks for to
    know whose the bucket is and whether S3 answers, are none."""
    log = os.path.join(cluster.conf.log, 'cloud-proxy-server.log')
    wanted = re.compile(r' GET /%s/(\S+)' % layout.CLOUD_BUCKET)
    with open(log, encoding='utf-8', errors='replace') as source:
        asked = [match.group(1) for match in map(wanted.search, source)
                 if match]
    return sum(not key.endswith(META_SUFFIX) and '.dss-' not in key
               for key in asked)


def cloud_keys(cluster: Cluster, containing: str) -> List[str]:
    """Keys in the cloud's bucket that contain a text."""
    from swiftclient import client
    account, user, key = layout.CLOUD_USER
    connection = client.Connection(
        authurl=cluster.conf.cloud_url + '/auth/v1.0',
        user='%s:%s' % (account, user), key=key, retries=2)
    try:
        listed = connection.get_container(
            layout.CLOUD_BUCKET, full_listing=True)[1]
    finally:
        connection.close()
    return [row['name'] for row in listed if containing in row['name']]


def read_copy(path: str, device: str, partition: str,
              policy: int) -> Copy:
    """What a data file says of itself.

    :raises DamagedRecord: its residency cannot be trusted
    """
    with open(path, 'rb') as source:
        metadata = read_metadata(source)
        length = int(metadata['Content-Length'])
        return Copy(device, partition, path, policy, length,
                    metadata['ETag'],
                    residency_store.judge(source.fileno(), length),
                    residency_store.load_capacity_id(source.fileno()))


class Objects:
    """Objects of one new container.

    :param policy_name: of the storage policy
    """

    def __init__(self, cluster: Cluster, swift: Any,
                 policy_name: str) -> None:
        self.cluster = cluster
        self.swift = swift
        self.policy_name = policy_name
        self.policy = layout.POLICIES.index(policy_name)
        self.container = 'probe-%s' % uuid.uuid4().hex[:10]
        swift.put_container(self.container, headers={
            'X-Storage-Policy': policy_name})
        self.made: List[Object] = []

    # -- making ----------------------------------------------------------

    def make(self, state: str, name: str = '', size: int = SIZE,
             headers: Optional[Dict[str, str]] = None) -> Object:
        """A new object in a state, the same on every device."""
        return self.make_all([state], size, name, headers)[0]

    def make_all(self, states: Any, size: int = SIZE, name: str = '',
                 headers: Optional[Dict[str, str]] = None) -> List[Object]:
        """New objects, one a state; waits for uploads only once."""
        made = []
        for state in states:
            obj = Object(self.container, name or '%s-%s' % (
                state, uuid.uuid4().hex[:6]), pattern(
                    size, state + uuid.uuid4().hex), self.policy)
            self.made.append(obj)
            # A body that can be read anew: clients try a 503 again.
            self.swift.put_object(
                self.container, obj.name, io.BytesIO(obj.body),
                headers=dict(_HEADERS[state], **(headers or {})))
            made.append(obj)
        for obj in made:
            # Of a fragment, the commit is a rename that may be under way.
            wait_until(lambda obj=obj: len(self.copies(obj)) == 3, 10,
                       'three copies of %s' % obj.name)
        self.settle()
        for state, obj in zip(states, made):
            self._bring(state, obj)
        return made

    def _bring(self, state: str, obj: Object) -> None:
        if state in (REMOTE, MIXED_REMOTE, BACKED):
            wait_until(lambda: self.all_remote(obj), 60,
                       'copies of %s in S3' % obj.name)
        if state in (HDD, BACKED):
            self.demote(obj)
        if state == REMOTE:
            self.demote(obj, 'remote')
        if state == MIXED_REMOTE:
            wait_until(lambda: all(
                _local_tiers(copy) == [Tier.SSD, Tier.NONE, Tier.SSD]
                for copy in self.copies(obj)), 60,
                'the attic of %s' % obj.name)
        for copy in self.copies(obj):
            assert copy.residency.is_stub == (state != 'whole'), copy
            if state in _TIERS:
                assert copy.residency.tiers == _TIERS[state], copy

    def demote(self, obj: Object, to: str = 'hdd') -> None:
        """Take all bytes off the SSDs, or off the node."""
        # The index hears of an upload, or of a copy, a moment after the
        # disk has it, so the daemon may know fewer copies than there are.
        def moved() -> bool:
            failed = admin(self.cluster, 'demote', object=obj.path,
                           to=to)['failed']
            return not failed and all(copy.residency.is_stub
                                      for copy in self.copies(obj))
        wait_until(moved, 10, 'demotion of %s' % obj.name)

    def promote(self, obj: Object) -> None:
        """Bring all bytes that the HDDs have to the SSDs."""
        counts = admin(self.cluster, 'promote', object=obj.path)
        assert not counts['failed'], counts['failed']

    def settle(self) -> None:
        """Let the tier daemon learn of everything that was said."""
        assert admin(self.cluster, 'settle', seconds=30)['settled']

    def delete_all(self) -> None:
        """Leave nothing for the next test's daemons to look at."""
        for obj in self.made:
            with contextlib.suppress(ClientException):
                self.swift.delete_object(obj.container, obj.name)

    # -- looking ---------------------------------------------------------

    def copies(self, obj: Object) -> List[Copy]:
        """Every data file of an object that can be trusted."""
        copies = []
        for file in data_files(self.cluster, ACCOUNT, obj.container,
                               obj.name, obj.policy):
            try:
                copies.append(read_copy(file.path, file.device,
                                        file.partition, obj.policy))
            except (FileNotFoundError, DamagedRecord):
                continue
        return copies

    def copy_on(self, obj: Object, device: str) -> Optional[Copy]:
        """The data file of one device."""
        copies = [copy for copy in self.copies(obj)
                  if copy.device == device]
        return copies[0] if copies else None

    def all_remote(self, obj: Object) -> bool:
        """True if every copy knows of its verified twin in S3."""
        return all(copy.residency.remote is not None
                   for copy in self.copies(obj))

    def get(self, obj: Object) -> bytes:
        """The object as a client gets it."""
        body: bytes = self.swift.get_object(obj.container, obj.name)[1]
        return body

    def direct(self, obj: Object, copy: Copy, method: str = 'GET',
               headers: Optional[Dict[str, str]] = None,
               port: int = 0) -> direct.Reply:
        """Ask the one device that a copy is on."""
        return direct.request(
            port or self.cluster.conf.object_port, method, copy.device,
            copy.partition, obj.path, obj.policy, headers)

    def capacity_path(self, copy: Copy) -> str:
        """The HDD file of a copy, whether or not it is there."""
        version = wire_layout.version_of_path(copy.device, copy.path)
        assert version is not None
        return wire_layout.capacity_file(
            self.cluster.conf.path('hdd', copy.device), version)

    def copies_but(self, obj: Object, device: str) -> List[Copy]:
        """The data files of all devices but one."""
        return [copy for copy in self.copies(obj) if copy.device != device]

    def capacity_id(self, device: str) -> str:
        """Identity of a device's own HDD."""
        return Capacity(self.cluster.conf.path('hdd', device),
                        device).identity

    # -- breaking --------------------------------------------------------

    def lose(self, copy: Copy) -> None:
        """Take a copy away with its folder, as a lost disk would."""
        shutil.rmtree(os.path.dirname(copy.path))
        partition = copy.path.rsplit(os.sep, 3)[0]
        for name in ('hashes.pkl', 'hashes.invalid'):
            try:
                os.unlink(os.path.join(partition, name))
            except FileNotFoundError:
                pass

    def heal(self) -> None:
        """One pass of what brings lost copies back."""
        self.cluster.run_once(
            'object-reconstructor' if self.policy_name == 'dss-ec'
            else 'object-replicator')


def _local_tiers(copy: Copy) -> List[Tier]:
    """SSD and HDD of each extent, neighbours merged."""
    tiers_in_order: List[Tier] = []
    for extent in copy.residency.extents:
        tiers = extent.tiers & (Tier.SSD | Tier.HDD)
        if not tiers_in_order or tiers_in_order[-1] != tiers:
            tiers_in_order.append(tiers)
    return tiers_in_order


def say(text: str) -> None:
    """A figure for the record; shown with ``pytest -s`` or ``-rP``."""
    print('R22: %s' % text)
