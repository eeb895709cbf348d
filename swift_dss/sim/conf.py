"""The configuration of simulated nodes, and of the Swift around them."""

from __future__ import annotations

import os

from swift_dss.core.config import (
    GatewayConf, IoConf, NodeConf, TierConf)
from swift_dss.sim.world.ring import DEVICE

#: Room on a node's SSD: small enough that pressure is the ordinary case.
SSD_BYTES = 9 * 1024
BUCKET, PREFIX = 'sim', 'p/'
SWIFT_CONF = '''[swift-hash]
swift_hash_path_suffix = sim
[storage-policy:0]
name = ours
default = yes
diskfile_module = egg:swift_dss#dss.fs
[storage-policy:1]
name = stock
'''


def node_conf(root: str, devices: str, hdd: str, state: str) -> NodeConf:
    """Of a node: short ages, so that little time has to pass.

    :param root: of the simulation
    :param hdd: the capacity folder of its device; '' none
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
            index_dir=state),
        gateway=GatewayConf(
            enabled=True, url='http://s3', bucket=BUCKET, prefix=PREFIX,
            secret_file=os.path.join(root, 'secret'), fills=1,
            remote_after_seconds=2.0, delete_delay_seconds=12.0,
            take_over_seconds=25.0, bundle_age_seconds=3.0,
            bundle_member_bytes=1500, bundle_put_bytes=500))
