"""The identity of an object version on one device."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Optional


@dataclass(frozen=True)
class VersionId:
    """One data file of Swift: a version of an object on one device.

    :param device: Swift's device name
    :param policy: storage policy index
    :param object_hash: Swift's hash of the object's path, 32 hex digits
    :param timestamp: internal form of X-Timestamp, as in the file name
    :param frag_index: fragment of an erasure-coded object, else None
    """

    device: str
    policy: int
    object_hash: str
    timestamp: str
    frag_index: Optional[int] = None

    @property
    def key(self) -> str:
        """Unique on one node; used for index rows and capacity files."""
        made: Optional[str] = self.__dict__.get('_key')
        if made is None:
            frag = ('' if self.frag_index is None
                    else '#%d' % self.frag_index)
            made = '%d/%s/%s%s' % (self.policy, self.object_hash,
                                   self.timestamp, frag)
            # Asked for a dozen times of each; no field, so of no account
            # to what is equal.
            self.__dict__['_key'] = made
        return made

    @classmethod
    def of_key(cls, key: str, device: str) -> VersionId:
        """The version on a device whose :attr:`key` this is.

        :raises ValueError: it is none
        """
        policy, object_hash, rest = key.split('/')
        timestamp, _, frag = rest.partition('#')
        return VersionId(device, int(policy), object_hash, timestamp,
                         int(frag) if frag else None)
