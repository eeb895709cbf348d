"""Where Swift keeps an object's files, found by Swift's public names."""

from __future__ import annotations

import os
from typing import Any

from swift.common.utils import hash_path, storage_directory
from swift.obj.diskfile import get_data_dir


def object_folder(devices: str, policy: Any, name: str,
                  device: str = 'sda', partition: str = '7') -> str:
    """The folder of an object's files.

    :param name: ``/account/container/object``
    """
    return os.path.join(devices, device, storage_directory(
        get_data_dir(policy), partition, hash_path(*name[1:].split('/', 2))))


def data_file(manager: Any, policy: Any, name: str) -> str:
    """The data file that a diskfile manager gives to readers.

    :raises FileNotFoundError: there is none
    """
    folder = object_folder(manager.devices, policy, name)
    path = manager.get_ondisk_files(
        os.listdir(folder), folder, policy=policy)['data_file']
    if path is None:
        raise FileNotFoundError('%s has no data file' % folder)
    return str(path)
