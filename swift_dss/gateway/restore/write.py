"""Write a version of the bucket on this node as a stub.

The data file is written by Swift's own diskfile, so that names, metadata,
suffix hashes and durability are Swift's; before it gets its name it is made
a stub with a residency record, so that no reader ever sees it without. No
byte of data is fetched: reads bring it back, or ``drain``.
"""

from __future__ import annotations

import fcntl
import os
import time
from dataclasses import replace
from typing import Any, Dict, Iterator, List, Mapping, NamedTuple, Tuple

from swift.common.storage_policy import (
    EC_POLICY, POLICIES, reload_storage_policies)
from swift.common.utils import Timestamp, set_swift_dir
from swift.obj.diskfile import (
    DiskFileManager, ECDiskFileManager, read_metadata)

from swift_dss.core.config import NodeConf
from swift_dss.core.errors import BadConfig, TierUnavailable
from swift_dss.core.residency import Residency, Tier
from swift_dss.core.version import VersionId
from swift_dss.gateway.peers.here import Here
from swift_dss.gateway.peers.ranks import ring_name
from swift_dss.gateway.ports import Logger
from swift_dss.gateway.restore.catalog import Held, split
from swift_dss.gateway.restore.places import PUT_HEADERS, Place, Servers
from swift_dss.io import residency_store, steps
from swift_dss.io.newest import newest_timestamp
from swift_dss.io.switch import listdir
from swift_dss.strategy.agreement import Answer
from swift_dss.wire import layout, registers
from swift_dss.wire.settings.policies import is_ours

_SYSMETA = 'x-object-sysmeta-'
#: In the place of a path: a tombstone, or a fragment that is not durable.
_STAYS = '-'
#: Values for the container that differ from the object's own (of encrypted,
#: large and erasure-coded objects).
_OVERRIDE = 'X-Object-Sysmeta-Container-Update-Override-'
_EC_LENGTH = 'X-Object-Sysmeta-Ec-Content-Length'
_EC_ETAG = 'X-Object-Sysmeta-Ec-Etag'


class Target(NamedTuple):
    """A device of this node that a version belongs on."""

    device: str
    partition: int
    rank: int


class Writer:
    """Writes versions to this node's devices. Call from the main thread:
    Swift's diskfile does.

    :param my_ips: addresses of this node; none asks the system
    :raises BadConfig: ``swift.conf`` cannot be used
    """

    def __init__(self, conf: NodeConf, servers: Servers, logger: Logger,
                 my_ips: Tuple[str, ...] = ()) -> None:
        self._conf = conf
        self._servers = servers
        self._here = Here(my_ips or None)
        set_swift_dir(conf.swift_dir)
        reload_storage_policies()
        options = {'devices': conf.devices,
                   'mount_check': str(conf.mount_check)}
        # Swift's own, not the plug-ins: the written files have no data.
        self._managers = {True: ECDiskFileManager(options, logger),
                          False: DiskFileManager(options, logger)}

    def targets(self, held: Held) -> List[Target]:
        """Where on this node a version belongs, by the ring."""
        version = held.record.version
        account, container, obj = split(held.name)
        ring = self._servers.ring(ring_name(version.policy))
        part, nodes = ring.get_nodes(account, container, obj)
        targets = []
        for rank, node in enumerate(nodes):
            if not self._here.is_here(node['ip']) and \
                    not self._here.is_here(node.get('replication_ip')):
                continue
            if version.frag_index in (None, rank):
                targets.append(Target(node['device'], part, rank))
        return targets

    def named(self, held: Held) -> Held:
        """The same under the hash that its name has on this cluster."""
        record = held.record
        version = replace(record.version, object_hash=hash_of(
            self._servers.ring(ring_name(record.version.policy)),
            *split(held.name)))
        return replace(held, record=replace(record, version=version))

    def write(self, held: Held, target: Target) -> bool:
        """Make the stub, unless the device has this version, durable or
        not, or a newer one, or a newer tombstone. If it has it, it gets the
        registers of POSTs that it lacks, because the bucket may have several
        records of a version. Idempotent.

        :returns: True if anything was written
        :raises TierUnavailable: the device is not mounted
        :raises DamagedRecord: Swift would not take the metadata
        """
        record = held.record
        timestamp = record.version.timestamp
        newest, there = self._newest(held, target)
        if newest > timestamp or there == _STAYS:
            return False
        policy = POLICIES.get_by_index(record.version.policy)
        if policy is None:
            raise BadConfig('there is no storage policy %d here'
                            % record.version.policy)
        if not is_ours(policy.diskfile_module):
            # Stock Swift would quarantine the stub at its first read.
            raise BadConfig('storage policy %s has the diskfile_module %s, '
                            'not ours: no stub may lie there' % (
                                policy.name, policy.diskfile_module))
        manager = self._managers[policy.policy_type == EC_POLICY]
        self._mounted(target.device)
        account, container, obj = split(held.name)
        options: Dict[str, Any] = {}
        if record.version.frag_index is not None:
            options['frag_index'] = record.version.frag_index
        disk_file = manager.get_diskfile(
            target.device, target.partition, account, container, obj,
            policy=policy, **options)
        if there:
            return self._renew(disk_file, held, target, there)
        self._make(disk_file, held, target)
        return True

    def _make(self, disk_file: Any, held: Held, target: Target) -> None:
        """A stub that is not there yet."""
        data, post = split_metadata(held)
        with disk_file.create() as writer:
            _make_stub(writer, held)
            steps.reached('restore.stub')
            writer.put(data)
            writer.commit(Timestamp(held.record.version.timestamp))
        steps.reached('restore.written')
        if post:
            disk_file.write_metadata(post)

    def _renew(self, disk_file: Any, held: Held, target: Target,
               data_path: str) -> bool:
        """Write the registers of a POST that the version here lacks; False if
        it lacks none."""
        _data, post = split_metadata(held)
        if not post:
            return False
        opened = os.open(os.path.dirname(data_path),
                         os.O_RDONLY | os.O_DIRECTORY)
        try:
            # The object server merges POSTs under this lock.
            fcntl.flock(opened, fcntl.LOCK_EX)
            there = registers_there(data_path)
            after = registers.join(there, registers.of_post(post))
            if after == there:
                return False
            disk_file.write_metadata(registers.to_metadata(after))
        finally:
            os.close(opened)
        steps.reached('restore.renewed')
        return True

    def look(self, version: VersionId, partition: str,
             records: bool = False) -> Answer:
        """The state of an object on a device of this node.

        :raises TierUnavailable: the device is not mounted
        """
        return Answer(newest_timestamp(layout.hash_dir(
            self._mounted(version.device), version.policy, partition,
            version.object_hash)) or '', '', False, None)

    def _mounted(self, device: str) -> str:
        path = os.path.join(self._conf.devices, device)
        if not os.path.isdir(path) or (
                self._conf.mount_check and not os.path.ismount(path)):
            raise TierUnavailable('%s is not mounted' % path)
        return path

    def _newest(self, held: Held, target: Target) -> Tuple[str, str]:
        """Timestamp of the newest file of the object; and the path of this
        very version, or ``_STAYS`` if nothing may take its place."""
        version = held.record.version
        folder = self._folder(held, target)
        newest, there = '', ''
        for name in sorted(listdir(folder)):
            parsed = layout.parse_data_file(name)
            if parsed is not None and parsed[2]:
                newest = max(newest, parsed[0])
                if parsed[:2] == (version.timestamp, version.frag_index):
                    there = there or os.path.join(folder, name)
            elif parsed is not None and parsed[:2] == (
                    version.timestamp, version.frag_index):
                # It has bytes of its own, and S3's are not proven here.
                there = there or _STAYS
            elif name.endswith('.ts'):
                newest = max(newest, name[:-3])
                if name[:-3] == version.timestamp:
                    there = _STAYS
        return newest, there

    def _folder(self, held: Held, target: Target) -> str:
        """Where the files of an object lie."""
        version = held.record.version
        account, container, obj = split(held.name)
        ring = self._servers.ring(ring_name(version.policy))
        return layout.hash_dir(
            os.path.join(self._conf.devices, target.device),
            version.policy, str(target.partition),
            hash_of(ring, account, container, obj))

    def list_in_container(self, held: Held) -> None:
        """Have the container's servers list the version. Idempotent: the
        newest timestamp wins there too.

        :raises TierUnavailable: none of them took it
        """
        record = held.record
        folded = {name.title(): value
                  for name, value in record.metadata.items()}

        def override(name: str, default: str) -> str:
            return folded.get((_OVERRIDE + name).title(), default)

        headers = {
            'X-Timestamp': record.version.timestamp,
            'X-Backend-Storage-Policy-Index': str(record.version.policy),
            'X-Size': override('Size', folded.get(
                _EC_LENGTH.title(), str(record.content_length))),
            'X-Etag': override('Etag', folded.get(
                _EC_ETAG.title(), record.etag)),
            'X-Content-Type': override('Content-Type', folded.get(
                'Content-Type', 'application/octet-stream'))}
        changed = folded.get('X-Timestamp', '')
        if changed > record.version.timestamp:
            headers['X-Meta-Timestamp'] = changed
        if 'Content-Type-Timestamp' in folded:
            headers['X-Content-Type-Timestamp'] = folded[
                'Content-Type-Timestamp']
        self._servers.put(held.name, headers)


class PlaceWriter:
    """Writes accounts and containers back."""

    def __init__(self, servers: Servers) -> None:
        self._servers = servers
        self._known: Dict[str, bool] = {}

    def write(self, place: Place) -> None:
        """PUT it with the bucket's metadata. Idempotent: metadata with an
        older timestamp than the stored one changes nothing.

        :raises TierUnavailable: no server took it
        """
        headers = {name: value for name, value in place.headers.items()
                   if not name.startswith('x-backend-')
                   and name not in PUT_HEADERS}
        headers['X-Timestamp'] = next(
            (place.headers[name] for name in PUT_HEADERS
             if name in place.headers), Timestamp.now().internal)
        if not place.is_account:
            headers['X-Backend-Storage-Policy-Index'] = place.headers.get(
                'x-backend-storage-policy-index', '0')
            headers.update(self._account_update(place.path))
        self._servers.put(place.path, headers)
        self._known[place.path] = True

    def require(self, held: Held) -> None:
        """Make sure that the account and container of a version are there,
        though the bucket has no record of them."""
        account, container, _ = split(held.name)
        timestamp = held.record.version.timestamp
        for path in ('/' + account, '/%s/%s' % (account, container)):
            if path in self._known:
                continue
            if not self._is_there(path):
                self.write(Place(path, {
                    'x-backend-put-timestamp': timestamp,
                    'x-backend-storage-policy-index':
                        str(held.record.version.policy)}))
            self._known[path] = True

    def _is_there(self, path: str) -> bool:
        try:
            return self._servers.head(path) is not None
        except TierUnavailable:
            # As old as the version: a silent server may have a newer one.
            return False

    def _account_update(self, path: str) -> Mapping[str, str]:
        """Headers by which container servers tell the account of it."""
        account = path.split('/')[1]
        part, nodes = self._servers.ring('account').get_nodes(account)
        return {'X-Account-Host': ','.join(
                    '%s:%s' % (node['ip'], node['port']) for node in nodes),
                'X-Account-Partition': str(part),
                'X-Account-Device': ','.join(
                    node['device'] for node in nodes)}


def hash_of(ring: Any, account: str, container: str, obj: str) -> str:
    """Swift's hash of an object, by the ``swift.conf`` that rings read."""
    from swift.common.utils import hash_path
    del ring  # it has read swift.conf
    return str(hash_path(account, container, obj))


def _make_stub(writer: Any, held: Held) -> None:
    """Make the file that has no name yet a stub of the version."""
    length = held.record.content_length
    if not length:
        return  # an empty version holds all its bytes itself
    residency = Residency.whole(length, Tier.REMOTE)
    residency = replace(residency, remote=replace(
        held.remote, verified_at=time.time()))
    fd = writer._fd
    os.ftruncate(fd, residency.file_size)
    # Durable with the file itself: put() syncs it before it gets a name.
    residency_store.store(fd, residency)


def split_metadata(held: Held) -> Tuple[Dict[str, str], Dict[str, str]]:
    """(metadata of the data file, metadata of a later POST or {})."""
    record = held.record
    data = dict(record.metadata)
    changed = data.get('X-Timestamp', '')
    data.update({
        'X-Timestamp': record.version.timestamp, 'ETag': record.etag,
        'Content-Length': str(record.content_length)})
    data.pop('name', None)
    if changed <= record.version.timestamp:
        return data, {}
    return data, dict(_of_post(data), **{'X-Timestamp': changed})


def registers_there(data_path: str) -> registers.Registers:
    """Those of a data file and of the POSTs beside it."""
    folder = os.path.dirname(data_path)
    there = registers.of_data(read_metadata(data_path))
    for name in sorted(listdir(folder)):
        if name.endswith('.meta'):
            there = registers.join(registers.of_post(read_metadata(
                os.path.join(folder, name))), there)
    return there


def _of_post(data: Mapping[str, str]) -> Iterator[Tuple[str, str]]:
    for name, value in data.items():
        folded = name.lower()
        if not folded.startswith(_SYSMETA) and folded not in (
                'content-length', 'etag', 'x-timestamp'):
            yield name, value
