"""Our modules on the kernels that Debian ships, in an emulated machine.

The packages (image, headers, tools) are fetched and unpacked in the cache;
nothing is installed. The modules are built against those headers, a warning
counting as an error, and loaded in a machine that QEMU emulates instruction
by instruction: slow, but it runs wherever Python does.
"""

from __future__ import annotations

import glob
import lzma
import os
import re
import shutil
import subprocess
import tempfile
import threading
import time
from dataclasses import dataclass
from typing import Callable, Dict, List, Sequence, Set

from swift_dss.block.lab import build, cache, carried, source
from swift_dss.block.lab.cache import Say
from swift_dss.block.lab.machine import TIMED_OUT, GuestDied
from swift_dss.core.errors import BadConfig

#: Kernel to packages, of one release of Debian or another, that may depend on
#: its newest release.
KERNELS = {'6.12': ('linux-image-6.12-cloud-amd64',
                    'linux-image-cloud-amd64'),
           '6.1': ('linux-image-cloud-amd64',),
           'newest': ('linux-image-cloud-amd64',)}
#: Kernels of a Debian that may not be the machine's, from its backports if
#: these have it. They are built with the compiler and the tools of theirs.
_RELEASES = {'newest': 'trixie'}

COMMANDS = ('apt-get', 'busybox', 'cpio', 'depmod', 'dmsetup', 'dpkg-deb',
            'gcc', 'gzip', 'make', 'qemu-system-x86_64')

#: No types for BPF: they need a program that unpacked headers lack.
_OPTIONS = ('CONFIG_DEBUG_INFO_BTF_MODULES=',)
#: Modules of the kernel's own that the smoke test stands on.
_THEIRS = ('dm-mod', 'dm-bufio', 'loop', 'crc32c_generic', 'libcrc32c')
_MEMORY = '640'
_RESULT = re.compile(r'^stock-lab: status (\d+)\s*$', re.M)
_COMPLAINT = re.compile(
    r'BUG:|WARNING:|Oops|general protection|Call Trace|module verification')


@dataclass(frozen=True)
class Stock:
    """An unpacked kernel of Debian's.

    :param release: as ``uname -r`` says it
    """

    release: str
    folder: str

    @property
    def root(self) -> str:
        """The folder of the unpacked packages."""
        return os.path.join(self.folder, 'root')

    @property
    def headers(self) -> str:
        """The folder of the headers for modules."""
        return os.path.join(self.root, 'usr', 'src',
                            'linux-headers-' + self.release)

    @property
    def image(self) -> str:
        """The file to boot."""
        with_modules = os.path.join(self.root, 'usr', 'lib', 'modules',
                                    self.release, 'vmlinuz')
        if os.path.exists(with_modules):
            return with_modules
        return os.path.join(self.root, 'boot', 'vmlinuz-' + self.release)


def prepare(kernel: str, say: Say) -> Stock:
    """Fetch and unpack the newest release of a kernel.

    :raises BadConfig: an unknown kernel, packages are missing, or the
        mirror does not have it
    """
    if kernel not in KERNELS:
        raise BadConfig('no stock kernel %s: there are %s' % (
            kernel, ', '.join(KERNELS)))
    cache.need(COMMANDS, 'a stock kernel')
    release = _release(kernel)
    made = Stock(release, os.path.join(cache.root(), 'stock-' + release))
    with cache.making(made.folder, say) as ours:
        if ours:
            _unpack(made, _RELEASES.get(kernel, ''), say)
    return made


def _release(kernel: str) -> str:
    release = ''
    if kernel not in _RELEASES:
        release = _newest(kernel, ['--no-all-versions'])
    if not release:
        # Backports are second to the release, so all versions are shown.
        try:
            with source.own_lists(_RELEASES.get(kernel, '')) as options:
                release = _newest(kernel, options)
        except cache.BuildFailed as err:
            raise BadConfig('no %s in the lists of apt here, and no others: '
                            '%s' % (kernel, err)) from err
    if not release:
        raise BadConfig("no %s in the machine's Debian mirror, nor in its "
                        'backports: %s' % (kernel, ', '.join(
                            KERNELS[kernel])))
    return release


def _newest(kernel: str, options: List[str]) -> str:
    """The release that a package depends on; '' if none does."""
    version = r'\d+\.\d+' if kernel in _RELEASES else re.escape(kernel)
    for package in KERNELS[kernel]:
        try:
            text = cache.call(['apt-cache', *options, 'show', package],
                              os.sep, 'apt-cache show %s' % package)
        except cache.BuildFailed:
            continue
        match = re.search(r'^Depends:.*\blinux-image-(%s\.\S+-cloud-amd64)\b'
                          % version, text, re.M)
        if match:
            return match.group(1)
    return ''


def _unpack(made: Stock, release: str, say: Say) -> None:
    os.mkdir(made.root)
    if release:
        packages = os.path.join(made.folder, 'packages')
        os.mkdir(packages)
        for path in source.fetch_all(
                ['linux-%s-%s' % (part, made.release)
                 for part in ('binary', 'modules', 'headers')], release,
                packages, say):
            _extract(made, path)
        os.rmdir(packages)
    else:
        for package in _packages(made.release):
            _extract(made, source.fetch(package, say))
    if not os.path.isdir(os.path.join(made.root, 'lib')):
        # Since Debian 13 packages have no /lib, which is a link.
        os.symlink('usr/lib', os.path.join(made.root, 'lib'))
    if release:
        carried.carry(made.root)
    _at_home(made, bool(release))
    cache.call(['depmod', '-b', made.root, made.release], made.folder,
               'depmod')


def _extract(made: Stock, package: str) -> None:
    cache.call(['dpkg-deb', '--extract', package, made.root], made.folder,
               'unpacking %s' % os.path.basename(package))
    os.unlink(package)


def _packages(release: str) -> List[str]:
    """Image, headers and tools of a kernel of the machine's Debian."""
    common = release[:-len('-cloud-amd64')]
    return ['linux-image-' + release, 'linux-headers-' + release,
            'linux-headers-%s-common' % common,
            # Until 6.1 they are of the version, not of the release.
            'linux-kbuild-' + ('6.1' if common.startswith('6.1.')
                               else common)]


def _at_home(made: Stock, with_compiler: bool) -> None:
    """Headers know one another, and their compiler, by the places where they
    would be installed."""
    places = {'/usr/src/': os.path.join(made.root, 'usr', 'src', '')}
    if with_compiler:
        tools = carried.TRIPLET + '-'
        places['= ' + tools] = '= ' + os.path.join(
            made.root, 'usr', 'bin', tools)
    for path in glob.glob(os.path.join(made.headers, 'Makefile')) + glob.glob(
            os.path.join(made.headers, '.kernelvariables')):
        with open(path) as text:
            words = text.read()
        for place, ours in places.items():
            words = words.replace(place, ours)
        with open(path, 'w') as out:
            out.write(words)


def module(made: Stock, name: str, say: Say) -> str:
    """Build a module of ours for that kernel, if it must be; its file."""
    folder = build.module_folder(made.folder, name)
    with cache.making(folder, say) as ours:
        if ours:
            say('building %s for %s' % (name, made.release))
            build.build_module(_OPTIONS, made.headers, name, folder)
    return os.path.join(folder, name + '.ko')


def run(kernel: str, timeout: float, say: Say,
        sink: Callable[[str], None] = lambda line: None) -> str:
    """Build our modules for a kernel, load them there, and try them.

    :param timeout: seconds for the machine alone
    :param sink: called with each line of the machine's console
    :returns: the console's text
    :raises GuestDied: a step failed, the kernel complained, or time ran
        out; with the end of the console
    """
    made = prepare(kernel, say)
    names = [name for name, _folder in build.MODULES
             if build.module_sources(name)[1]]
    ours = [module(made, name, say) for name in names]
    folder = tempfile.mkdtemp(prefix='dss-stock-')
    try:
        archive = _initramfs(made, names, ours, folder)
        say('booting %s' % made.release)
        text = boot(made, archive, timeout, sink)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    result = _RESULT.search(text)
    wrong = [line for line in text.splitlines() if _COMPLAINT.search(line)
             and 'module verification failed' not in line]
    if not result or result.group(1) != '0' or wrong:
        raise GuestDied('%s: %s\n%s\n%s' % (
            made.release,
            'status %s' % result.group(1) if result else 'no result',
            '\n'.join(wrong), cache.last_lines(text, 40)))
    return text


def _dependencies(made: Stock, names: Sequence[str]) -> List[str]:
    """Files of the kernel's own modules, in the order of loading."""
    base = os.path.join(made.root, 'lib', 'modules', made.release)
    needs: Dict[str, List[str]] = {}
    with open(os.path.join(base, 'modules.dep')) as lines:
        for line in lines:
            path, _, others = line.partition(':')
            needs[path] = others.split()
    by_name = {_module_name(path): path for path in needs}
    order: List[str] = []
    seen: Set[str] = set()

    def take(path: str) -> None:
        if path in seen:
            return
        seen.add(path)
        for other in needs[path]:
            take(other)
        order.append(os.path.join(base, path))

    for name in names:
        # Code that is not a module is in the kernel.
        if name.replace('-', '_') in by_name:
            take(by_name[name.replace('-', '_')])
    return order


def _module_name(path: str) -> str:
    return os.path.basename(path).split('.ko')[0].replace('-', '_')


def _plain(path: str) -> bytes:
    """A module as the kernel takes it, however it is packed."""
    with open(path, 'rb') as packed:
        data = packed.read()
    return lzma.decompress(data) if path.endswith('.xz') else data


def _initramfs(made: Stock, names: Sequence[str], ours: Sequence[str],
               folder: str) -> str:
    """A root with busybox, dmsetup, the modules and the smoke test."""
    root = os.path.join(folder, 'root')
    put_busybox(root)
    for place in ('tmp', 'smoke'):
        os.mkdir(os.path.join(root, place))
    path = cache.environment()['PATH']
    _with_libraries(str(shutil.which('dmsetup', path=path)), root)
    put_modules(made, _THEIRS, ours, os.path.join(root, 'modules'))
    smoke = os.path.join(build.kmod(), 'lab', 'smoke')
    for name in names:
        script = os.path.join(smoke, name + '.sh')
        if os.path.exists(script):
            shutil.copy(script, os.path.join(root, 'smoke'))
    shutil.copy(os.path.join(smoke, 'init'), os.path.join(root, 'init'))
    return pack(root, os.path.join(folder, 'initramfs.gz'))


def put_busybox(root: str) -> None:
    """Begin the root of an initramfs: its folders, and busybox."""
    for place in ('bin', 'dev', 'proc', 'sys', 'modules'):
        os.makedirs(os.path.join(root, place))
    shutil.copy(str(shutil.which(
        'busybox', path=cache.environment()['PATH'])),
        os.path.join(root, 'bin', 'busybox'))


def put_modules(made: Stock, names: Sequence[str], ours: Sequence[str],
                folder: str) -> None:
    """Put modules in a folder; their names sort in the order of loading.

    :param names: of the kernel's own; those that they need come too
    :param ours: files of further ones
    """
    for number, path in enumerate(_dependencies(made, names) + list(ours)):
        name = '%02d-%s.ko' % (number, _module_name(path))
        with open(os.path.join(folder, name), 'wb') as out:
            out.write(_plain(path))


def pack(root: str, archive: str) -> str:
    """Make an initramfs of a folder that has an ``init``; its file."""
    os.chmod(os.path.join(root, 'init'), 0o755)
    cache.call(['sh', '-c', 'find . | cpio --quiet -o -H newc | gzip -1 > '
                '"$0"', archive], root, 'packing the initramfs')
    return archive


def _with_libraries(program: str, root: str) -> None:
    """Copy a program and all that it is linked with."""
    listed = cache.call(['ldd', program], os.sep, 'ldd %s' % program)
    shutil.copy(program, os.path.join(root, 'bin'))
    for path in re.findall(r'(/\S+) \(0x', listed):
        target = os.path.join(root, path.lstrip('/'))
        os.makedirs(os.path.dirname(target), exist_ok=True)
        shutil.copy(path, target)


def boot(made: Stock, archive: str, timeout: float,
         sink: Callable[[str], None] = lambda line: None,
         words: Sequence[str] = (), options: Sequence[str] = ()) -> str:
    """Boot a kernel with an initramfs, until the machine stops.

    :param timeout: seconds
    :param sink: called with each line of the console
    :param words: more of the kernel's command line
    :param options: more of QEMU's: disks, serial lines
    :returns: the console's text
    :raises GuestDied: time ran out; with the end of the console
    """
    process = subprocess.Popen(
        ['qemu-system-x86_64', '-accel', 'tcg', '-cpu', 'Skylake-Client',
         '-m', _MEMORY, '-nographic', '-no-reboot', '-nodefaults',
         '-serial', 'stdio', '-kernel', made.image,
         '-initrd', archive, '-append',
         ' '.join(('console=ttyS0 mitigations=off panic=-1 quiet loglevel=4',
                   *words)), *options],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, env=cache.environment(),
        start_new_session=True)
    killer = threading.Timer(timeout, process.kill)
    killer.start()
    begin = time.monotonic()
    lines = []
    try:
        for raw in process.stdout:  # type: ignore[union-attr]
            line = raw.decode('utf-8', 'replace').rstrip()
            lines.append(line)
            sink(line)
        process.wait()
    finally:
        killer.cancel()
        process.kill()
        process.wait()
    if time.monotonic() - begin >= timeout:
        raise GuestDied('status %d: killed after %g s\n%s' % (
            TIMED_OUT, timeout, '\n'.join(lines[-40:])))
    return '\n'.join(lines)
