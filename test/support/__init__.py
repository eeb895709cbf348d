"""What tests of a running cluster share."""

from __future__ import annotations

import contextlib
import hashlib
import http.client
import io
import json
import os
import subprocess
import sys
import time
from typing import (
    Any, Callable, Iterable, List, NamedTuple, Optional, Sequence, TypeVar)

_Value = TypeVar('_Value')

#: How often ``wait_until`` looks again.
POLL_SECONDS = 0.05
#: What an update of a listing may take before the updater is called.
UPDATER_AFTER_SECONDS = 2.0


def wait_until(predicate: Callable[[], _Value], seconds: float = 30.0,
               awaited: str = '') -> _Value:
    """The first true value of ``predicate()``.

    The one place where tests wait for something to come about. Half of
    the time, at least, belongs to those who make it true.

    :raises AssertionError: it did not within ``seconds``
    """
    deadline = time.monotonic() + seconds
    while True:
        asked = time.monotonic()
        value = predicate()
        if value:
            return value
        now = time.monotonic()
        if now >= deadline:
            raise AssertionError('%s not within %.0f s (last: %r)' % (
                awaited or getattr(predicate, '__name__', 'true'),
                seconds, value))
        time.sleep(max(POLL_SECONDS, min(now - asked, deadline - now)))


def pattern(size: int, seed: str = '') -> bytes:
    """``size`` bytes in which no two places look alike."""
    blocks = []
    for number in range(size // 32 + 1):
        blocks.append(hashlib.sha256(
            ('%s %d' % (seed, number)).encode('utf-8')).digest())
    return b''.join(blocks)[:size]


def md5(data: bytes) -> str:
    """The ETag of ``data``."""
    return hashlib.md5(data).hexdigest()  # nosec: Swift's ETag


class DataFile(NamedTuple):
    """One replica or fragment of an object on disk."""

    device: str
    path: str
    partition: str
    object_hash: str
    policy: int


def data_files(cluster: object, account: str, container: str, name: str,
               policy: int = 0) -> List[DataFile]:
    """Every ``.data`` file of an object, wherever it lies.

    :param cluster: a ``swift_dss.aio.cluster.Cluster``
    """
    conf = cluster.conf  # type: ignore[attr-defined]
    object_hash = hash_of(conf, account, container, name)
    objects = 'objects-%d' % policy if policy else 'objects'
    files = []
    for device in conf.device_names:
        top = conf.path('devices', device, objects)
        for partition in _listdir(top):
            folder = os.path.join(top, partition, object_hash[-3:],
                                  object_hash)
            for file_name in _listdir(folder):
                if file_name.endswith('.data'):
                    files.append(DataFile(
                        device, os.path.join(folder, file_name), partition,
                        object_hash, policy))
    return files


def hash_of(conf: object, account: str, container: str, name: str) -> str:
    """Swift's hash of an object's path in the cluster of ``conf``."""
    from swift.common.utils import config
    values = config.readconf(
        conf.path('etc', 'swift.conf'), 'swift-hash')  # type: ignore
    text = '/%s/%s/%s' % (account, container, name)
    return hashlib.md5(  # nosec: Swift's hash
        values['swift_hash_path_prefix'].encode('latin1')
        + text.encode('utf-8')
        + values['swift_hash_path_suffix'].encode('latin1')).hexdigest()


def listings(cluster: object, account: str,
             container: str) -> List[List[str]]:
    """What each replica of a container lists, asked at its own server.

    A client gets any one of them: one that has yet to hear of an object
    (its update timed out and waits for the updater) is no error of Swift.
    """
    from swift.common.utils import config
    conf = cluster.conf  # type: ignore[attr-defined]
    values = config.readconf(conf.path('etc', 'swift.conf'), 'swift-hash')
    folder = hashlib.md5(  # nosec: Swift's hash
        values['swift_hash_path_prefix'].encode('latin1')
        + ('/%s/%s' % (account, container)).encode('utf-8')
        + values['swift_hash_path_suffix'].encode('latin1')).hexdigest()
    shown = []
    for device in conf.device_names:
        top = conf.path('devices', device, 'containers')
        for partition in _listdir(top):
            if folder not in _listdir(
                    os.path.join(top, partition, folder[-3:])):
                continue
            connection = http.client.HTTPConnection(
                '127.0.0.1', conf.container_port, timeout=30)
            connection.request('GET', '/%s/%s/%s/%s' % (
                device, partition, account, container))
            answer = connection.getresponse()
            shown.append(answer.read().decode('utf-8').split('\n')[:-1])
            connection.close()
    return shown


def await_listings(cluster: object, account: str, container: str,
                   names: Iterable[str], seconds: float = 120.0) -> None:
    """Return once every replica of a container lists just ``names``.

    An update that timed out waits for Swift's updater. Where it does not
    run in the background, it is run now and then.
    """
    wanted = sorted(names)
    background = cluster.conf.background  # type: ignore[attr-defined]
    next_round = time.monotonic() + UPDATER_AFTER_SECONDS

    def agree() -> bool:
        nonlocal next_round
        shown = listings(cluster, account, container)
        if shown and all(listing == wanted for listing in shown):
            return True
        if not background and time.monotonic() >= next_round:
            cluster.run_once('object-updater')  # type: ignore[attr-defined]
            next_round = time.monotonic() + UPDATER_AFTER_SECONDS
        return False
    wait_until(agree, seconds, 'replicas of %s that agree' % container)


def _listdir(path: str) -> List[str]:
    try:
        return sorted(os.listdir(path))
    except (FileNotFoundError, NotADirectoryError):
        return []


def quarantined(cluster: object) -> List[str]:
    """Everything that any server of the cluster has quarantined."""
    conf = cluster.conf  # type: ignore[attr-defined]
    paths: List[str] = []
    for device in conf.device_names:
        top = conf.path('devices', device, 'quarantined')
        for folder, _folders, files in os.walk(top):
            paths += [os.path.join(folder, name) for name in files]
    return paths


def first_line_with(path: str, text: str) -> Optional[str]:
    """The first line of a log that has ``text`` in it."""
    with open(path, encoding='utf-8', errors='replace') as source:
        for line in source:
            if text in line:
                return line
    return None


def tier(cluster: object, *arguments: str) -> Any:
    """What ``swift-dss tier ARGUMENTS --json`` answers, run in here.

    :raises AssertionError: it failed; the text has what it said
    """
    from swift_dss.cli import main as cli
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = cli.main(_tier_words(cluster, arguments))
    assert code == 0, err.getvalue() or out.getvalue()
    return json.loads(out.getvalue())


def tier_command(cluster: object, *arguments: str) -> Any:
    """The same from a process of its own, as an operator would.

    :raises AssertionError: it failed; the text has what it said
    """
    done = subprocess.run(
        [sys.executable, '-m', 'swift_dss.cli.main']
        + _tier_words(cluster, arguments), stdin=subprocess.DEVNULL,
        capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr or done.stdout
    return json.loads(done.stdout)


def _tier_words(cluster: object, arguments: Sequence[str]) -> List[str]:
    return ['tier', arguments[0], '--json', '--config',
            cluster.conf.path('etc', 'dss.conf')  # type: ignore
            ] + list(arguments[1:])


def replicas(cluster: object, path: str) -> List[Any]:
    """The replicas or fragments of ``/account/container/object``, as the
    disks have them (``swift_dss.aio.survey.Replica``)."""
    from swift_dss.aio import layout, survey, tables
    account, container, name = path[1:].split('/', 2)
    classes = tables.read_classes(cluster.conf)  # type: ignore
    survey_rows = [survey.replica(file.device, policy, file.path, classes)
                   for policy in range(len(layout.POLICIES))
                   for file in data_files(cluster, account, container, name,
                                          policy)]
    return [replica for replica in survey_rows
            if replica is not None and replica.name == path]


def await_remote(cluster: object, path: str,
                 seconds: float = 90.0) -> List[Any]:
    """The replicas, once each knows of a verified copy in S3."""
    def verified() -> List[Any]:
        on_disk = replicas(cluster, path)
        return on_disk if on_disk and all(
            replica.residency.remote for replica in on_disk) else []
    return wait_until(verified, seconds, '%s in S3' % path)


def drop_local(cluster: object, path: str) -> List[Any]:
    """Send an object to S3 and take its local bytes away.

    :returns: its replicas, none of which has a byte here any more
    """
    from swift_dss.core.residency import Tier
    await_remote(cluster, path)

    def demoted() -> bool:
        # The index hears of an upload a moment after the disk does.
        try:
            tier(cluster, 'demote', path, '--to', 'remote')
        except AssertionError as err:
            if 'has no verified copy in S3 yet' not in str(err):
                raise
            return False
        return True
    wait_until(demoted, 30, 'local bytes of %s gone' % path)
    stubs = replicas(cluster, path)
    assert stubs
    assert all(replica.residency.tiers == Tier.REMOTE
               for replica in stubs), stubs
    return stubs
