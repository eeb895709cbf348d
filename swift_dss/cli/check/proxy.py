"""The proxy server: its pipeline, and the options of our filters."""

from __future__ import annotations

import os
from typing import Iterator, List

from swift_dss.cli.check.findings import (
    Finding, Place, error, fine, refused, warning)
from swift_dss.cli.check.node import Node, Part, Server
from swift_dss.core.errors import BadConfig
from swift_dss.proxy import pipeline
from swift_dss.proxy.settings import OPTIONS, FilterOptions

#: Options of every filter.
_OF_ALL = frozenset(('__name__', 'use', 'paste.filter_factory'))
_LOG = ('log_', 'access_log_', 'set ')
_OURS_S3API = 'swift_dss.proxy.s3.seam'


def judge(node: Node) -> Iterator[Finding]:
    """All of the group."""
    server = node.proxy
    if server is None:
        if 'proxy' not in node.wrong:
            yield fine('proxy server', 'none on this node')
        return
    names = [pipeline.name_of_module(part.module)
             for part in server.filters]
    if 'dss' not in names:
        yield error('pipeline', 'it has no filter dss: the classes that '
                    'clients and rules give are ignored', server.pipeline,
                    pipeline.RIGHT_PLACE)
        return
    yield from place(server, names)
    yield from s3(server, names)
    for part in server.filters:
        if part.module == 'swift_dss.proxy.filter':
            yield from options(server, part)
            if node.conf is not None:
                yield from run_dir(server, part, node.conf.run_dir)


def place(server: Server, names: List[str]) -> Iterator[Finding]:
    """The filter dss, in relation to others."""
    at = names.index('dss')
    try:
        pipeline.check(names[:at], names[at + 1:])
    except BadConfig as err:
        yield refused('pipeline', err, server.pipeline)
        return
    yield fine('pipeline', 'dss is %d. of %d filters'
               % (at + 1, len(names)))


def s3(server: Server, names: List[str]) -> Iterator[Finding]:
    """The filters that bring classes to clients of S3."""
    if 's3api' not in names:
        return
    part = server.filters[names.index('s3api')]
    if part.module != _OURS_S3API:
        yield warning(
            's3api', 'Swift\'s own shows no storage classes, and has '
            'neither tags nor lifecycle rules nor RestoreObject', Place(
                server.path, '[filter:%s] use' % part.name,
                part.own.get('use', 'egg:swift#s3api')),
            'write "use = egg:swift_dss#s3api"')
    if 'dss_retry_after' not in names:
        yield warning(
            'pipeline', 'without dss_retry_after clients of S3 do not hear '
            'when to come again, and listings with classes are slow',
            server.pipeline, 'put dss_retry_after left of %s' % part.name)
    elif names.index('dss_retry_after') > names.index('s3api'):
        yield warning('pipeline', 'dss_retry_after is right of %s, where it '
                      'does nothing' % part.name, server.pipeline,
                      'put it left of %s' % part.name)


def options(server: Server, part: Part) -> Iterator[Finding]:
    """The options of [filter:dss]."""
    section = '[filter:%s] ' % part.name
    try:
        FilterOptions.of(part.options)
    except BadConfig as err:
        yield refused('filter dss', BadConfig('%s: %s' % (server.path, err)))
    for option, value in sorted(part.own.items()):
        if option not in OPTIONS | _OF_ALL and not option.startswith(_LOG) \
                and option not in server.app.options:
            yield warning(
                'filter dss', 'no such option, so it does nothing', Place(
                    server.path, section + option, value),
                'there are ' + ', '.join(sorted(OPTIONS)))


def run_dir(server: Server, part: Part, storage: str) -> Iterator[Finding]:
    """Workers share the answers of object servers in this folder."""
    try:
        path = FilterOptions.of(part.options).run_dir
    except BadConfig:
        return  # said before
    where = Place(server.path, '[filter:%s] run_dir' % part.name, path)
    if path and not os.path.isdir(path):
        yield warning(
            'filter dss', 'no such folder: every worker asks the object '
            'servers for itself', where, 'make it at boot '
            '(etc/swift-dss-tmpfiles.conf-sample), or write "run_dir = %s"'
            % storage)
