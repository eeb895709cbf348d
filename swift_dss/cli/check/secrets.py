"""Secrets: readable for the daemon's user, and for nobody else."""

from __future__ import annotations

import os
from typing import Iterator

from swift_dss.cli.check.findings import (
    Finding, Place, error, fine, refused, warning)
from swift_dss.cli.check.node import Node
from swift_dss.core.config import GatewayConf
from swift_dss.core.errors import BadConfig
from swift_dss.gateway.form.encrypt import KeyFile
from swift_dss.gateway.link.credentials import Secret, SecretFile

#: Of ``etc/dss-s3-secret-sample``.
_SAMPLE = ('ACCESS-KEY-HERE', 'SECRET-KEY-HERE')


def judge(node: Node) -> Iterator[Finding]:
    """All of the group."""
    if node.conf is None or not node.conf.gateway.enabled:
        return
    gate = node.conf.gateway
    place = Place(node.config, '[gateway] secret_file', gate.secret_file)
    try:
        secret, _stamp = SecretFile(gate.secret_file).read()
    except BadConfig as err:
        yield refused('S3 secret', err, place)
    else:
        yield from sample(secret, place)
        yield from owner('S3 secret', gate.secret_file, node, place)
    yield from keys(gate, node)


def sample(secret: Secret, place: Place) -> Iterator[Finding]:
    """Keys that nobody has filled in."""
    if secret.access_key in _SAMPLE or secret.secret_key in _SAMPLE:
        yield error('S3 secret', 'it has the words of the sample', place,
                    'write the keys that S3 gave you into it')
    else:
        yield fine('S3 secret', '%s has two keys' % place.value)


def owner(about: str, path: str, node: Node,
          place: Place) -> Iterator[Finding]:
    """The daemon refuses a file of another user than its own and root."""
    owner_uid = os.stat(path).st_uid
    if node.account is None or owner_uid == node.account.uid:
        return
    yield error(about, 'mode 0600 of user %d, and the daemon runs as %s'
                % (owner_uid, node.account.name), place,
                'chown %s %s' % (node.account.name, path))


def keys(gate: GatewayConf, node: Node) -> Iterator[Finding]:
    """The file of keys, and the certificates."""
    if gate.key_file:
        place = Place(node.config, '[gateway] key_file', gate.key_file)
        try:
            KeyFile(gate.key_file).check()
        except BadConfig as err:
            yield refused('key file', err, place)
        else:
            yield fine('key file', '%s can be used' % gate.key_file)
            yield from owner('key file', gate.key_file, node, place)
    if gate.ca_bundle and not os.path.isfile(gate.ca_bundle):
        yield error('certificates', 'no such file', Place(
            node.config, '[gateway] ca_bundle', gate.ca_bundle),
            'name a file of CA certificates, or leave it empty for the '
            'system\'s')
    if gate.url.startswith('http://'):
        yield warning('S3', 'keys are signed, and bytes go in plain text',
                      Place(node.config, '[gateway] url', gate.url),
                      'write https:// outside a trusted network')
