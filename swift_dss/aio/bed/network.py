"""The network of a bed: namespaces, one bridge, and cuts between members.

Each member (a node, a proxy, the S3) has a network namespace of its own,
joined by a pair of virtual links to a bridge that has a namespace of its
own too. No link leads to the root namespace: nothing outside can reach a
server of the bed, nor the other way round, and every bed may use the same
addresses. To talk to a member, enter its namespace:
:meth:`Network.inside` for a thread, :meth:`Network.entrance` for a new
process.

A namespace's name starts with a number made of the bed's root, so that
:meth:`Network.remove` finds those of a bed whose starter was killed.

A cut between two members is an unused address of the link layer, set at both:
packets are lost silently, as when a switch dies. Routes that refuse would
answer at once, and hide the effects of time-outs.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import socket
import subprocess
import zlib
from typing import Dict, Iterator, List, Tuple

from swift_dss.core.errors import DssError

#: Where ``ip netns`` keeps the namespaces.
NAMESPACES = '/run/netns'
#: The namespace of the bridge, and the bridge in it.
_SWITCH = 'net'
_BRIDGE = 'bridge0'
_NOBODY = '02:00:00:00:00:fe'
_CLONE_NEWNET = 0x40000000

_libc = ctypes.CDLL(None, use_errno=True)


def ip(*lines: str) -> str:
    """Run commands of ``ip``, one a line, all or none.

    :returns: the output
    :raises DssError: with the output of ``ip``
    """
    done = subprocess.run(
        ['ip', '-batch', '-'], input='\n'.join(lines) + '\n',
        capture_output=True, text=True)
    if done.returncode:
        raise DssError('ip: %s' % done.stderr.strip())
    return done.stdout


def enter(namespace: str) -> None:
    """Move the calling thread into a network namespace.

    :param namespace: path of its file
    :raises DssError: it is not there
    """
    try:
        target = os.open(namespace, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError as err:
        raise DssError('no network namespace %s' % namespace) from err
    try:
        if _libc.setns(target, _CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), 'setns to ' + namespace)
    finally:
        os.close(target)


class Network:
    """The namespaces of one bed.

    :param root: the bed's folder
    :param hosts: a file that processes have as ``/etc/hosts``; '' is none
    """

    def __init__(self, root: str, hosts: str = '') -> None:
        self._hosts = hosts
        self._prefix = 'dss-%08x-' % zlib.crc32(root.encode('utf-8'))

    def namespace(self, member: str) -> str:
        """The name of a member's namespace, for ``ip netns exec``."""
        return self._prefix + member

    def members(self) -> List[str]:
        """The members that have a namespace now."""
        names = [name[len(self._prefix):] for name in self._all()]
        return [name for name in names if name != _SWITCH]

    def _all(self) -> List[str]:
        try:
            names = os.listdir(NAMESPACES)
        except FileNotFoundError:
            return []
        return sorted(name for name in names
                      if name.startswith(self._prefix))

    # -- up and down -----------------------------------------------------

    def make(self, addresses: Dict[str, str]) -> None:
        """Make the bridge and join members to it.

        :param addresses: member to address, all in one /16
        """
        switch = self.namespace(_SWITCH)
        ip('netns add ' + switch)
        self._within(_SWITCH,
                     'link add %s type bridge' % _BRIDGE,
                     'link set %s up' % _BRIDGE)
        for member, address in addresses.items():
            self.join(member, address)

    def join(self, member: str, address: str) -> None:
        """Give one more member a namespace and a link to the bridge."""
        name = self.namespace(member)
        ip('netns add ' + name)
        self._within(
            member, 'link set lo up',
            'link add eth0 type veth peer name %s netns %s'
            % (member, self.namespace(_SWITCH)),
            'address add %s/16 dev eth0' % address,
            'link set eth0 up')
        self._within(_SWITCH, 'link set %s master %s up' % (
            member, _BRIDGE))

    def leave(self, member: str) -> None:
        """Remove a member's namespace; its processes must be gone."""
        ip('netns delete ' + self.namespace(member))

    def remove(self) -> int:
        """Remove every namespace of the bed.

        :returns: how many there were
        """
        names = self._all()
        for name in names:
            ip('netns delete ' + name)
        return len(names)

    # -- entering --------------------------------------------------------

    def _path(self, member: str) -> str:
        return os.path.join(NAMESPACES, self.namespace(member))

    def entrance(self, member: str) -> List[str]:
        """The words that make a command run in a member's namespace."""
        into = ['nsenter', '--net=' + self._path(member)]
        if self._hosts:
            # "slave": a drive that is taken away leaves these, too.
            into += ['unshare', '--mount', '--propagation', 'slave', 'sh',
                     '-ec', 'mount --bind "$0" /etc/hosts; exec "$@"',
                     self._hosts]
        return into

    @contextlib.contextmanager
    def inside(self, member: str) -> Iterator[None]:
        """Run the calling thread in the member's namespace.

        A socket stays in the namespace in which it was made. Other
        threads stay where they are.
        """
        back = '/proc/thread-self/ns/net'
        here = os.open(back, os.O_RDONLY | os.O_CLOEXEC)
        try:
            enter(self._path(member))
            try:
                yield
            finally:
                if _libc.setns(here, _CLONE_NEWNET):
                    raise OSError(ctypes.get_errno(), 'setns back')
        finally:
            os.close(here)

    def connect(self, member: str, server: Tuple[str, int],
                seconds: float) -> socket.socket:
        """A connection that a member makes.

        :param seconds: time-out of this and of all that follows
        """
        with self.inside(member):
            return socket.create_connection(server, seconds)

    def _within(self, member: str, *lines: str) -> str:
        with self.inside(member):
            return ip(*lines)

    # -- cuts ------------------------------------------------------------

    def cut(self, member: str, address: str,
            others: Dict[str, str]) -> None:
        """Lose every packet between a member and some others.

        :param address: of the member
        :param others: member to address
        """
        for other, there in others.items():
            self._within(member, 'neighbour replace %s lladdr %s dev eth0 '
                         'nud permanent' % (there, _NOBODY))
            self._within(other, 'neighbour replace %s lladdr %s dev eth0 '
                         'nud permanent' % (address, _NOBODY))

    def heal(self, members: Dict[str, str]) -> None:
        """Lose no packet of these members any more.

        :param members: name to address
        """
        mine = set(members.values())
        for member, lost in self.cuts().items():
            gone = [address for address in lost
                    if member in members or address in mine]
            self._within(member, *(
                'neighbour delete %s dev eth0' % address
                for address in gone))

    def cuts(self) -> Dict[str, List[str]]:
        """Member to the addresses that its packets don't reach."""
        cuts = {member: self._cuts(member) for member in self.members()}
        return {member: lost for member, lost in cuts.items() if lost}

    def _cuts(self, member: str) -> List[str]:
        text = self._within(member, 'neighbour show nud permanent dev eth0')
        return [line.split()[0] for line in text.splitlines()
                if _NOBODY in line]
