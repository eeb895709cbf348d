"""Whose a storage policy is, read as Swift reads it."""

from __future__ import annotations

from configparser import ConfigParser

import pytest
from swift.common.storage_policy import parse_storage_policies

from swift_dss.core.errors import BadConfig
from swift_dss.wire.settings import policies

MIXED = '''
[swift-hash]
swift_hash_path_suffix = changeme
[storage-policy:0]
name = gold
aliases = yellow, orange
default = yes
diskfile_module = egg:swift_dss#dss.fs
[storage-policy:1]
name = fragments
policy_type = erasure_coding
ec_type = liberasurecode_rs_vand
ec_num_data_fragments = 2
ec_num_parity_fragments = 1
diskfile_module = egg:swift_dss#dss_ec.fs
[storage-policy:2]
name = stock
[storage-policy:03]
name = stock-fragments
policy_type = erasure_coding
ec_type = liberasurecode_rs_vand
ec_num_data_fragments = 2
ec_num_parity_fragments = 1
[storage-policy:12]
name = twice
diskfile_module = egg:swift_dss#dss.fs
diskfile_module = egg:swift#replication.fs
'''
BY_DEFAULT = '[DEFAULT]\ndiskfile_module = egg:swift_dss#dss.fs\n' \
    '[storage-policy:0]\nname = one\n'


@pytest.mark.parametrize('text', ['', '[swift-hash]\nx = 1\n', MIXED])
def test_it_is_read_as_swift_reads_it(text):
    parser = ConfigParser(strict=False)
    parser.read_string(text)
    theirs = {int(theirs_read): (theirs_read.name, theirs_read.diskfile_module)
              for theirs_read in parse_storage_policies(parser)}
    ours = {index: (policy.name, policy.diskfile_module)
            for index, policy in policies.parse(text).items()}
    assert ours == theirs


def test_ours_are_those_with_our_diskfiles_and_no_other():
    assert [index for index, policy in policies.parse(MIXED).items()
            if policy.is_ours] == [0, 1]
    # A default section counts for every policy, as it does in Swift.
    assert policies.parse(BY_DEFAULT)[0].is_ours


@pytest.mark.parametrize('module,ours', [
    ('egg:swift_dss#dss.fs', True), ('egg:swift-dss#dss_ec.fs', True),
    ('EGG:Swift.DSS#dss.fs', True), ('swift_dss#dss.fs', True),
    ('egg:swift#replication.fs', False), ('replication.fs', False),
    ('dss.fs', False), ('egg:swift_dss#other.fs', False),
    ('egg:swift_dss_fork#dss.fs', False), ('', False),
    ('http:swift_dss#dss.fs', False)])
def test_every_spelling_that_swift_takes(module, ours):
    assert policies.is_ours(module) is ours


@pytest.mark.parametrize('text', [
    '[storage-policy:x]\nname = a\n', '[storage-policy:-1]\nname = a\n',
    '[storage-policy:1]\nname = a\n[storage-policy:01]\nname = b\n',
    'no section\n', '[storage-policy:0]\nname = %(nothing)s\n'])
def test_what_leaves_doubt_is_refused(text):
    with pytest.raises(BadConfig, match='the.conf'):
        policies.parse(text, 'the.conf')


def test_our_entry_points_are_the_ones_that_are_looked_for():
    import importlib.metadata
    names = {entry_point.name
             for entry_point in importlib.metadata.distribution(
        policies.DISTRIBUTION).entry_points
             if entry_point.group == 'swift.diskfile'}
    assert names == {policies.REPLICATED, policies.ERASURE_CODED}
