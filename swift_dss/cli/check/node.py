"""A node as its files spell it: read once, before anything is judged."""

from __future__ import annotations

import os
import pwd
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Optional, \
    TypeVar

from paste.deploy import loadwsgi
from swift.common import wsgi
from swift.common.utils.config import readconf
from swift.proxy.server import Application

from swift_dss.cli.check.findings import Finding, Place, error, refused
from swift_dss.core.classes import ClassTable
from swift_dss.core.config import NodeConf
from swift_dss.core.errors import BadConfig
from swift_dss.core.rules import Rules
from swift_dss.io.start.syncing import there
from swift_dss.io.start.text import read_text
from swift_dss.tier.inforce import Source
from swift_dss.tier.policies import Policies
from swift_dss.wire.settings import classtable
from swift_dss.wire.settings import rules as rules_wire
from swift_dss.wire.settings.policies import StoragePolicy

#: Of Swift's servers, if their file names no user.
_USER = 'swift'
_Read = TypeVar('_Read')


class Part(NamedTuple):
    """A filter or an application, as the file spells it.

    :param name: of its section, without ``filter:``
    :param module: of its factory
    :param options: with those of [DEFAULT]
    :param own: its own alone
    """

    name: str
    module: str
    options: Mapping[str, str]
    own: Mapping[str, str]


class Server(NamedTuple):
    """A WSGI server's file, as Swift's loader reads it.

    :param path: of the file or the folder
    :param filters: from the client's side down; those that Swift adds itself
        are there
    :param sections: of the whole file, with the options of [DEFAULT] in each
    """

    path: str
    filters: List[Part]
    app: Part
    sections: Mapping[str, Mapping[str, str]]

    @property
    def pipeline(self) -> Place:
        """Where the pipeline is written."""
        return Place(self.path, '[pipeline:main] pipeline')


class Account(NamedTuple):
    """The user that servers run as."""

    name: str
    uid: int
    gid: int


@dataclass(frozen=True)
class Node:
    """What is known of a node. None: the file is missing or wrong, and
    ``wrong`` says so.

    :param config: path of ``dss.conf``
    :param objects: the object server; None also on a proxy
    :param proxy: the proxy server; None also on a storage node
    :param account: None if the system does not know the user
    :param wrong: group to its findings while files were read
    """

    config: str
    conf: Optional[NodeConf]
    swift_dir: str
    table: Optional[ClassTable]
    rules: Optional[Rules]
    policies: Optional[Dict[int, StoragePolicy]]
    objects: Optional[Server]
    proxy: Optional[Server]
    account: Optional[Account]
    wrong: Mapping[str, List[Finding]] = field(default_factory=dict)

    @property
    def ours(self) -> List[StoragePolicy]:
        """Policies whose files may be stubs."""
        return [policy for policy in (self.policies or {}).values()
                if policy.is_ours]


def read(config: str, proxy_conf: str = '') -> Node:
    """Read the files of a node.

    :param config: path of ``dss.conf``; without it this is a proxy
    :param proxy_conf: of the proxy server; '' is that of ``swift_dir``
    """
    reader = _Reader()
    config = os.path.abspath(config)
    proxy_conf = proxy_conf and os.path.abspath(proxy_conf)
    is_storage = os.path.exists(config) or there(os.path.join(
        os.path.dirname(config), 'object-server.conf')) is not None
    conf = reader.read('config', 'dss.conf', Source(config).conf) \
        if is_storage else None
    swift_dir = conf.swift_dir if conf else os.path.dirname(config)
    objects = None
    if is_storage:
        path = there(conf.object_conf if conf else os.path.join(
            swift_dir, 'object-server.conf'))
        objects = path and reader.read(
            'object', 'object server', lambda: _server(str(path)))
    proxy_path = there(proxy_conf or os.path.join(
        swift_dir, 'proxy-server.conf'))
    if proxy_conf and proxy_path is None:
        reader.note('proxy', error(
            'proxy server', 'no such file', Place(proxy_conf)))
    proxy = proxy_path and reader.read(
        'proxy', 'proxy server', lambda: _server(str(proxy_path), True))
    if not is_storage and proxy_path is None:
        reader.note('config', error(
            'dss.conf', 'no such file, and no proxy-server.conf beside it',
            Place(config), 'say where it is with --config'))
    policies = reader.read('policies', 'swift.conf',
                           lambda: Policies(swift_dir).known)
    table, rules = _classes(reader, conf, proxy or None)
    return Node(config, conf, swift_dir, table, rules, policies,
                objects or None, proxy or None,
                _account(reader, objects or proxy or None), reader.wrong)


class _Reader:
    """Reads, and notes what cannot be read."""

    def __init__(self) -> None:
        self.wrong: Dict[str, List[Finding]] = {}

    def note(self, group: str, finding: Finding) -> None:
        self.wrong.setdefault(group, []).append(finding)

    def read(self, group: str, about: str,
             load: Callable[[], _Read]) -> Optional[_Read]:
        try:
            return load()
        except BadConfig as err:
            self.note(group, refused(about, err))
            return None


def _classes(reader: _Reader, conf: Optional[NodeConf],
             proxy: Optional[Server]) -> Any:
    """The class table of the node, and the rules of its proxy."""
    options = options_of(proxy)
    path = conf.class_table if conf else options.get(
        'class_table', '').strip()
    table = reader.read('config', 'class table', lambda: classtable.parse(
        read_text(path), path)) if path else None
    rules_path = options.get('rules_file', '').strip()
    if not rules_path or (path and table is None):
        return table, None
    return table, reader.read('config', 'rules', lambda: rules_wire.parse(
        read_text(rules_path), table or ClassTable(), rules_path))


def options_of(proxy: Optional[Server]) -> Mapping[str, str]:
    """Of the filter dss; none if there is no such filter."""
    return next((part.options for part in proxy.filters
                 if part.module == 'swift_dss.proxy.filter'), {}) \
        if proxy else {}


def _server(path: str, is_proxy: bool = False) -> Server:
    """:raises BadConfig: Swift's loader refuses it; with its reason"""
    try:
        context = wsgi.loadcontext(loadwsgi.APP, path)
        if context.object_type.name != 'pipeline':
            raise LookupError('[pipeline:main] is missing')
        if is_proxy:
            # Swift puts in the filters that it needs, as at a start.
            Application.modify_wsgi_pipeline(
                SimpleNamespace(logger=_Silent()),
                wsgi.PipelineWrapper(context))
        return Server(path, [_part(made) for made in context.filter_contexts],
                      _part(context.app_context), {
                          name: options for name, options
                          in readconf(path).items()
                          if isinstance(options, dict)})
    except Exception as err:  # whatever a parser of such files raises
        reason = ' '.join(str(err).split())
        raise BadConfig('%s: %s' % (path, reason)) from err


def _part(context: Any) -> Part:
    return Part(str(context.name), str(context.object.__module__),
                dict(context.global_conf, **context.local_conf),
                context.local_conf)


class _Silent:
    """A logger for Swift's loader."""

    def info(self, *_: Any) -> None:
        """Say nothing."""

    debug = info


def _account(reader: _Reader, server: Optional[Server]) -> Optional[Account]:
    """The user of the servers; a user who is not root checks for itself."""
    if os.geteuid():
        uid = os.geteuid()
        try:
            name = pwd.getpwuid(uid).pw_name
        except KeyError:  # as in containers
            name = str(uid)
        return Account(name, uid, os.getegid())
    if server is None:
        return None
    name = server.app.options.get('user', _USER)
    try:
        entry = pwd.getpwnam(name)
    except KeyError:
        reader.note('folders', error(
            'user', 'the system has no such user', Place(
                server.path, '[DEFAULT] user', name),
            "make it, or name the user that Swift's servers run as"))
        return None
    return Account(entry.pw_name, entry.pw_uid, entry.pw_gid)
