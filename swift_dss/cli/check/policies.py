"""``swift.conf``: which storage policies are ours, and by which diskfile."""

from __future__ import annotations

from typing import Iterator, Tuple

from swift_dss.cli.check.findings import Finding, Place, error, fine, warning
from swift_dss.cli.check.node import Node
from swift_dss.core.errors import BadConfig
from swift_dss.gateway.form.cluster import hash_path_ends
from swift_dss.wire.settings.policies import StoragePolicy, is_ours

#: Diskfiles of Swift, by the policy that they are for.
_STOCK = ('egg:swift#replication.fs', 'egg:swift#erasure_coding.fs')
_REPLICATED, _CODED = 'egg:swift_dss#dss.fs', 'egg:swift_dss#dss_ec.fs'
#: Of Swift's sample.
_PLACEHOLDERS = ('changeme', '%SWIFT_HASH_PATH_SUFFIX%')


def judge(node: Node) -> Iterator[Finding]:
    """All of the group."""
    if node.policies is None:
        return
    path = '%s/swift.conf' % node.swift_dir
    for policy in node.policies.values():
        yield from diskfile(policy, path)
    if not node.ours:
        yield warning(
            'policies', 'no storage policy is ours: nothing is tiered, and '
            'nothing goes to S3', Place(path, 'diskfile_module'),
            'write "diskfile_module = %s" in the section of each policy '
            'that is to have classes' % _REPLICATED)
    yield from hash_ends(node.swift_dir, path)


def diskfile(policy: StoragePolicy, path: str) -> Iterator[Finding]:
    """The diskfile of one policy."""
    module = policy.diskfile_module
    place = Place(path, '[storage-policy:%d] diskfile_module' % policy.index,
                  module)
    is_coded = policy.data_fragments > 1
    right = _CODED if is_coded else _REPLICATED
    if is_ours(module):
        if policy.is_replicated == is_coded:
            yield error('policies', '%s is %s' % (
                policy, 'erasure-coded' if is_coded else 'replicated'),
                place, 'write "%s"' % right)
        else:
            yield fine('policies', '%s is ours' % policy)
    elif module not in _STOCK and 'dss' in module:
        yield error('policies', 'no such diskfile', place,
                    'write "%s"' % right)


def hash_ends(swift_dir: str, path: str) -> Iterator[Finding]:
    """The salt of all hashes: the owner's mark in S3 is made of it."""
    try:
        ends: Tuple[str, str] = hash_path_ends(swift_dir)
    except BadConfig:
        return  # said before
    if not any(ends):
        yield error('swift.conf', 'neither a prefix nor a suffix: Swift does '
                    'not start', Place(
                        path, '[swift-hash] swift_hash_path_suffix'),
                    'write the one of the cluster\'s other nodes')
    elif any(end in _PLACEHOLDERS for end in ends):
        yield warning('swift.conf', 'it is that of Swift\'s sample, and so '
                      'other clusters\' as well', Place(
                          path, '[swift-hash] swift_hash_path_suffix',
                          ends[1]), 'choose one before there are objects')
