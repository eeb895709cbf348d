"""The configuration of simulated nodes, and of the Swift around them."""

from __future__ import annotations

import os
from random import Random
from typing import List, NamedTuple

from swift_dss.core.config import (
    Admit, GatewayConf, IoConf, NodeConf, TierConf)
from swift_dss.sim.world.ring import DEVICE

#: Room on a node's SSD: small enough that pressure is the ordinary case.
SSD_BYTES = 9 * 1024
BUCKET, PREFIX = 'sim', 'p/'
#: A third of the longest object of a run: most have several.
SEGMENT_BYTES = 3000
_SWIFT_CONF = '''[swift-hash]
swift_hash_path_suffix = sim
[storage-policy:0]
name = ours
default = yes
diskfile_module = egg:swift_dss#dss.fs
[storage-policy:1]
name = stock
[storage-policy:2]
name = coded
policy_type = erasure_coding
diskfile_module = egg:swift_dss#dss_ec.fs
ec_type = liberasurecode_rs_vand
ec_num_data_fragments = %d
ec_num_parity_fragments = %d
ec_object_segment_size = %d
'''


class Scheme(NamedTuple):
    """Fragments that an object is made from, and those besides."""

    data: int
    parity: int

    @property
    def fragments(self) -> int:
        """Of an object, all together."""
        return self.data + self.parity

    def __str__(self) -> str:
        return '%d+%d' % self


#: Of the erasure-coded policy.
SCHEMES = (Scheme(2, 1), Scheme(2, 2), Scheme(3, 1), Scheme(4, 2))


def schemes(nodes: int) -> List[Scheme]:
    """Those with which a node is left to stand in for another one."""
    return [scheme for scheme in SCHEMES if scheme.fragments < nodes]


#: Of the tier daemon: which first reads bring bytes to the SSD. A cache is so
#: small here that a window of one forgets soon.
ADMITS = (Admit(), Admit(1), Admit(4), Admit(learns=True))


def admits(seed: int, nodes: int) -> List[Admit]:
    """Those of the nodes of a seed's run: each has its own."""
    return Random('admit %d' % seed).choices(ADMITS, k=nodes)


def swift_conf(scheme: Scheme) -> str:
    """The text of ``swift.conf``."""
    return _SWIFT_CONF % (scheme.data, scheme.parity, SEGMENT_BYTES)


def node_conf(root: str, devices: str, hdd: str, state: str,
              admit: Admit) -> NodeConf:
    """Of a node: short ages, so that little time has to pass.

    :param root: of the simulation
    :param hdd: the capacity folder of its device; '' none
    :param admit: which reads bring bytes from there to the SSD
    """
    return NodeConf(
        devices=devices, swift_dir=os.path.join(root, 'etc'),
        mount_check=False, run_dir=state,
        capacity={DEVICE: hdd} if hdd else {},
        io=IoConf(carrier='null'),
        tier=TierConf(
            ssd_bytes=SSD_BYTES, clean_after_seconds=5.0,
            min_demote_bytes=600,
            high_watermark=0.7, low_watermark=0.4,
            index_dir=state, admit=admit),
        gateway=GatewayConf(
            enabled=True, url='http://s3', bucket=BUCKET, prefix=PREFIX,
            secret_file=os.path.join(root, 'secret'), fills=1,
            remote_after_seconds=2.0, delete_delay_seconds=12.0,
            take_over_seconds=25.0, bundle_age_seconds=3.0,
            bundle_member_bytes=1500, bundle_put_bytes=500))
