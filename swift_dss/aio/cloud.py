"""The second Swift alone: an S3 server for tests and benchmarks."""

from __future__ import annotations

import os

from swift_dss.aio import configs, layout, processes, rings


def prepare(root: str, first_port: int) -> layout.AioConf:
    """Folders, configuration and rings; ``Cluster.start_cloud`` starts it.

    :param root: an empty folder, on a file system with room for big
        attributes
    :param first_port: where the search for free ports begins
    """
    conf = layout.AioConf(
        root=root, storage='folders',
        base_port=processes.free_base_port(layout.PORTS, first=first_port))
    for folder in (conf.log, conf.run, conf.path('cloud', 'devices', 'c1')):
        os.makedirs(folder, exist_ok=True)
    configs.write(conf, configs.cloud_files(conf))
    for name, offset in (('object', 1), ('container', 2), ('account', 3)):
        rings.write(conf.path('cloud', 'etc'), name, 1,
                    conf.cloud_port + offset, ['c1'])
    return conf
