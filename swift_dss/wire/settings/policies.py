"""``swift.conf`` text to the storage policies of a cluster, and whose they
are.

A policy is *ours* if its ``diskfile_module`` is one of this package. Stock
Swift quarantines a file that lacks bytes at the first read, so nothing of
ours may change a file of any other policy.

Read with the rules of ``swift.common.storage_policy``: the same parser,
the same sections, the same defaults. Swift itself refuses other errors; only
errors that make a policy's index doubtful are refused here.
"""

from __future__ import annotations

import configparser
import re
from dataclasses import dataclass
from typing import Dict

from swift_dss.core.errors import BadConfig

#: Distribution and entry points of our diskfiles.
DISTRIBUTION = 'swift-dss'
REPLICATED, ERASURE_CODED = 'dss.fs', 'dss_ec.fs'
_OURS = frozenset((REPLICATED, ERASURE_CODED))
_SECTION = 'storage-policy:'
_MODULE = 'diskfile_module'
_STOCK = {'replication': 'egg:swift#replication.fs',
          'erasure_coding': 'egg:swift#erasure_coding.fs'}
#: Characters that package names take for each other.
_SEPARATORS = re.compile(r'[-_.]+')


@dataclass(frozen=True)
class StoragePolicy:
    """One storage policy.

    :param diskfile_module: as the file has it, or Swift's default
    :param data_fragments: that an object can be made from; 1: whole replicas
    """

    index: int
    name: str
    diskfile_module: str
    data_fragments: int = 1

    @property
    def is_ours(self) -> bool:
        """True if its files may be stubs."""
        return is_ours(self.diskfile_module)

    @property
    def is_replicated(self) -> bool:
        """True if it is ours and Swift's object replicator moves its
        files; those of fragments are the reconstructor's."""
        return is_replicated(self.diskfile_module)

    def __str__(self) -> str:
        return 'storage policy %d (%s)' % (self.index, self.name)


def is_ours(diskfile_module: str) -> bool:
    """True for ``egg:swift_dss#dss.fs`` and its twin for fragments, in any
    spelling that Swift takes for them."""
    uri, separator, name = diskfile_module.partition('#')
    if not separator:
        return False  # Swift looks for it in Swift
    scheme, separator, distribution = uri.partition(':')
    if not separator:
        scheme, distribution = 'egg', uri
    return scheme.lower() == 'egg' and name in _OURS and \
        _SEPARATORS.sub('-', distribution).lower() == DISTRIBUTION


def is_replicated(diskfile_module: str) -> bool:
    """See :attr:`StoragePolicy.is_replicated`."""
    return is_ours(diskfile_module) and diskfile_module.endswith(
        '#' + REPLICATED)


def parse(text: str, source: str = 'swift.conf') -> Dict[int, StoragePolicy]:
    """Index to policy.

    :param source: name of the text in errors
    :raises BadConfig: not a configuration file, or a number is not numeric
    """
    # As Swift's: the last of several settings is the one that counts, and
    # a percent sign begins a substitution.
    parser = configparser.ConfigParser(strict=False)
    policies: Dict[int, StoragePolicy] = {}
    try:
        parser.read_string(text, source)
        for section in parser.sections():
            if not section.startswith(_SECTION):
                continue
            options = dict(parser.items(section))
            index = int(section[len(_SECTION):])
            if index < 0 or index in policies:
                raise ValueError('index %d is negative or taken' % index)
            policies[index] = StoragePolicy(
                index, options.get('name', ''),
                options.get(_MODULE, _STOCK.get(
                    options.get('policy_type', 'replication'), '')),
                int(options.get('ec_num_data_fragments', '1')))
    except (configparser.Error, ValueError) as err:
        raise BadConfig('%s: storage policies: %s' % (source, err)) from err
    return policies or {0: StoragePolicy(0, 'Policy-0', _STOCK['replication'])}
