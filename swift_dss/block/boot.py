"""A systemd generator: a service for each line of ``/etc/dss-block.tab``.

systemd runs it at each start and each ``daemon-reload``, with the folder for
its units. A service waits for its two devices, attaches the cache before
anything that needs ``/dev/mapper/NAME``, and stops after all of that, so that
the SSD is left with a clean stop. Mounts of ``/etc/fstab`` need nothing but
the device's path: systemd orders them behind ``blockdev@``.

A line that is wrong makes no unit; the kernel log says what is wrong with it.
"""

from __future__ import annotations

import os
import sys
from typing import Dict, List, Sequence

from swift_dss.block import tab
from swift_dss.core.errors import DssError
from swift_dss.io.start.versions import versions

_KEPT = frozenset('abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ'
                  '0123456789:_.')
_UNIT = '''\
# Made by swift-dss-block-generator.
[Unit]
Description=dm-dss device {name}
Documentation=man:swift-dss-block(8) man:dm-dss(4)
SourcePath={path}
DefaultDependencies=no
IgnoreOnIsolate=true
BindsTo={ssd} {origin}
After={ssd} {origin} systemd-modules-load.service
RequiresMountsFor={needs}
Wants=blockdev@{device}.target
Before=blockdev@{device}.target
Conflicts=umount.target
Before=umount.target

[Service]
Type=oneshot
RemainAfterExit=yes
TimeoutSec=infinity
ExecStart={command} attach --tab {path} {name}
ExecStop={command} remove --keep-dirty {name}
'''


def escape(text: str, first: bool = True) -> str:
    """A name as a part of a unit's name, as ``systemd-escape`` has it."""
    return ''.join(
        char if char in _KEPT and not (first and not at and char == '.')
        else '-' if char == '/'
        else ''.join('\\x%02x' % byte for byte in char.encode())
        for at, char in enumerate(text))


def escape_path(path: str) -> str:
    """The same for a path."""
    return escape('/'.join(part for part in path.split('/') if part))


def service(name: str) -> str:
    """The unit that attaches a device."""
    return 'swift-dss-block@%s.service' % escape(name)


def units(entries: Sequence[tab.Entry], path: str = tab.PATH
          ) -> Dict[str, str]:
    """The units of a file: by name their text, or where a link points to.

    :returns: of a link the value begins with ``../``
    """
    files: Dict[str, str] = {}
    for entry in entries:
        unit, device = service(entry.name), 'dev-mapper-' + escape(
            entry.name, False)
        needs = [sys.executable, path] + [entry.class_table] * bool(
            entry.class_table)
        files[unit] = _UNIT.format(
            name=entry.name, path=path, device=device,
            ssd=escape_path(entry.ssd) + '.device',
            origin=escape_path(entry.origin) + '.device',
            needs=' '.join(needs),
            command='%s -m swift_dss.cli.main block' % sys.executable)
        files['%s.device.requires/%s' % (device, unit)] = '../' + unit
        if not entry.noauto:
            files['local-fs.target.%s/%s' % (
                'wants' if entry.nofail else 'requires', unit)] = '../' + unit
    return files


def write(folder: str, files: Dict[str, str]) -> None:
    """Put units where systemd looks for them."""
    for name, content in files.items():
        path = os.path.join(folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        if content.startswith('../'):
            os.symlink(content, path)
            continue
        with open(path, 'w') as out:
            out.write(content)


def main() -> int:
    """The generator: its first argument is the folder of the units."""
    path = os.environ.get(tab.VARIABLE, tab.PATH)
    folders: List[str] = sys.argv[1:]
    if folders == ['--version']:
        print(versions())
        return 0
    if not folders:
        print('wanted: the folder for the units', file=sys.stderr)
        return 2
    if not os.path.exists(path):
        return 0
    try:
        entries, wrong = tab.read(path)
        write(folders[0], units(list(entries.values()), path))
    except (DssError, OSError) as err:
        wrong = [str(err)]
    for line in wrong:
        print('swift-dss-block-generator: %s' % line, file=sys.stderr)
    return 1 if wrong else 0


if __name__ == '__main__':
    sys.exit(main())
