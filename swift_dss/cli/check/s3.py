"""S3: is it there, does it know us, may we, whose is the prefix, what time.

The trial of rights writes, reads and removes one small key.
"""

from __future__ import annotations

from typing import Callable, Iterator, List, Optional

from swift_dss.cli.check.findings import (
    Finding, Place, error, fine, refused, warning)
from swift_dss.cli.check.node import Node
from swift_dss.core.config import GatewayConf
from swift_dss.core.errors import BadConfig, DssError
from swift_dss.gateway.form import digests
from swift_dss.gateway.form.cluster import cluster_id
from swift_dss.gateway.form.owner import NotOurs, Owner
from swift_dss.gateway.link.breaker import Breaker
from swift_dss.gateway.link.client import (
    CHECK_KEY, S3Client, S3Missing, S3Rejected)
from swift_dss.gateway.link.connect import Connect
from swift_dss.gateway.link.trusted_clock import TrustedClock
from swift_dss.gateway.service import require_bucket

_BYTES = b'swift-dss check'
#: A clock may differ so much before it is a warning, and before S3 refuses
#: signatures.
_WARN_SECONDS, _REFUSED_SECONDS = 30.0, 900.0
#: S3's error to the option that is wrong, and the remedy.
_REMEDIES = (
    ('NoSuchBucket', 'bucket', 'make the bucket, or write the name of the '
     'one that there is'),
    ('InvalidAccessKeyId', 'secret_file', 'S3 does not know the access_key: '
     'write the one that it gave you'),
    ('SignatureDoesNotMatch', 'secret_file', 'the secret_key is not that of '
     'the access_key, or [gateway] region is wrong'),
    ('RequestTimeTooSkewed', 'url', "set this node's clock"),
    ('AuthorizationHeaderMalformed', 'region', 'write the region of the '
     'bucket'),
    ('bucket name', 'bucket', 'write the name of the bucket alone'),
    ('Redirected', 'url', 'S3 is at another address: write that one (often '
     'https:// and not http://)'),
    ('SSLError', 'ca_bundle', "the certificate is not of an authority of this "
     "file (empty: the system's) or not for the host of url, or that port "
     'speaks no TLS'),
    ('AccessDenied', 'secret_file', '"swift-dss gateway policy" prints the '
     'rights that the key needs'),
    (' 403', 'secret_file', 'the keys are wrong, or lack rights: "swift-dss '
     'gateway policy" prints them'),
    (' 401', 'secret_file', 'the keys are wrong'))
_UNREACHED = 'is the address right, and does a firewall let this node ' \
    'through?'


def judge(node: Node, connect: Optional[Connect] = None
          ) -> Iterator[Finding]:
    """All of the group.

    :param connect: see :class:`S3Client`
    """
    conf = node.conf
    if conf is None:
        return
    if not conf.gateway.enabled:
        yield fine('S3', 'not used')
        return
    try:
        require_bucket(conf.gateway)
    except BadConfig as err:
        yield refused('S3', err, Place(node.config, '[gateway] bucket'),
                      'write the name of the bucket')
        return
    try:
        clock = TrustedClock()
        client = S3Client(conf.gateway, Breaker(), 2, connect=connect,
                          clock=clock)
        client.check_secret()
    except BadConfig:
        return  # the group "secrets" has said it
    yield from ask(client, clock, node, conf.gateway)


def ask(client: S3Client, clock: TrustedClock, node: Node,
        gate: GatewayConf) -> Iterator[Finding]:
    """Everything that takes S3's answer."""
    try:
        client.page(gate.prefix)
    except DssError as err:
        yield answer(err, 'list the bucket', gate, node.config)
        return
    yield fine('S3', '%s/%s can be listed' % (gate.bucket, gate.prefix))
    yield from skew(clock.ahead_seconds())
    yield from versioning(client, gate)
    mine = list(owner(client, node, gate))
    yield from mine
    if all(finding.level == 'ok' for finding in mine):
        yield from rights(client, gate, node.config)


def answer(err: DssError, action: str, gate: GatewayConf,
           path: str) -> Finding:
    """S3's refusal, with the option that is at fault."""
    text = 'cannot %s: %s' % (action, err)
    for words, option, remedy in _REMEDIES:
        if words in str(err):
            return error('S3', text, Place(path, '[gateway] ' + option, str(
                getattr(gate, option))), remedy)
    return error('S3', text, Place(path, '[gateway] url', gate.url),
                 '' if isinstance(err, S3Rejected) else _UNREACHED)


def skew(ahead: Optional[float]) -> Iterator[Finding]:
    """This node's clock, compared with S3's."""
    if ahead is None:
        yield fine('clock', 'S3 does not say its time')
    elif abs(ahead) < _WARN_SECONDS:
        yield fine('clock', "S3's differs by less than %d s" % _WARN_SECONDS)
    else:
        judged = warning if abs(ahead) < _REFUSED_SECONDS else error
        yield judged('clock', "%d s %s S3's; from %d s on S3 refuses every "
                     'request' % (abs(ahead), 'ahead of' if ahead > 0 else
                                  'behind', _REFUSED_SECONDS),
                     instead="set this node's clock (NTP)")


def versioning(client: S3Client, gate: GatewayConf) -> Iterator[Finding]:
    """Deleted keys of a versioned bucket stay, and cost."""
    try:
        state = client.versioning()
    except DssError as err:
        yield warning('S3', 'whether the bucket keeps old versions is not '
                      'known: %s' % err, instead='let the key have '
                      's3:GetBucketVersioning')
        return
    if state:
        yield warning(
            'S3', 'bucket %s has versioning %s: a deleted key stays as an '
            'old version, and is paid for' % (gate.bucket, state),
            instead='remove them with "swift-dss gateway gc --versions" or a '
            'lifecycle rule')
    else:
        yield fine('S3', 'no versioning')


def owner(client: S3Client, node: Node,
          gate: GatewayConf) -> Iterator[Finding]:
    """The owner's mark."""
    place = Place(node.config, '[gateway] prefix', gate.prefix or "''")
    try:
        mine = Owner(gate, client, cluster_id(node.swift_dir))
        mine.require_not_foreign()
        mark = mine.read()
    except (NotOurs, BadConfig) as err:
        yield refused('owner', err, place)
    except DssError as err:
        yield answer(err, 'read the mark of the owner', gate, node.config)
    else:
        yield fine('owner', 'this cluster' if mark else
                   'none yet: the daemon puts its mark at its start')


def rights(client: S3Client, gate: GatewayConf,
           path: str) -> Iterator[Finding]:
    """Write, read, begin an upload in parts, and remove."""
    key = gate.prefix + CHECK_KEY

    def tried(action: str, step: Callable[[], object]) -> List[Finding]:
        try:
            step()
        except S3Missing:
            pass  # another node's check has removed it
        except DssError as err:
            return [answer(err, action + ' a key', gate, path)]
        return []

    def parts() -> None:
        client.abort(key, client.begin_multipart(key, {}))

    try:
        wrong = tried('write', lambda: client.put(
            key, _BYTES, digests.md5(_BYTES).digest()))
        is_written = not wrong
        if is_written:
            wrong += tried('read', lambda: client.get_small(key, len(_BYTES)))
            wrong += tried('upload in parts', parts)
    finally:
        # Whatever was refused, and also after Ctrl-C.
        left = tried('delete', lambda: client.delete(key))
    if is_written:
        wrong += [finding._replace(text='%s (%s/%s stays)' % (
            finding.text, gate.bucket, key)) for finding in left]
    yield from wrong or [fine('S3', 'the key may write, read and delete')]
