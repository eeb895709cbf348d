"""Requests in the words of Swift and of S3.

A front end makes the method, path and headers of each request; the connection
of :mod:`swift_dss.bench.load.link` is the same for both.
"""

from __future__ import annotations

from typing import Any, Dict, FrozenSet, List, Mapping, NamedTuple, Optional
from urllib.parse import quote, urlsplit

from swift_dss.bench.load.scenario import Scenario, Size
from swift_dss.client import info
from swift_dss.client.classlist import map_of_range_list
from swift_dss.core.errors import BadClassInput
from swift_dss.core.limits import UNCLASSIFIED
from swift_dss.core.spans import ClassMap
from swift_dss.wire import names
from swift_dss.wire.headers import format_range_class, parse_object_class

#: S3's form of ``X-Object-Meta-Dss-Class``.
_S3_CLASS = 'x-amz-meta-dss-class'


class Place(NamedTuple):
    """Where a front end listens.

    :param prefix: of all paths, without a slash at its end
    """

    host: str
    port: int
    tls: bool
    prefix: str

    @property
    def endpoint(self) -> str:
        """``http://host:port``"""
        return '%s://%s:%d' % ('https' if self.tls else 'http', self.host,
                               self.port)


class Ask(NamedTuple):
    """One request, without its body."""

    method: str
    path: str
    headers: Mapping[str, str]


def place_of(url: str, option: str) -> Place:
    """:raises BadClassInput: it is no URL of http or https"""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as err:
        raise BadClassInput(option, str(err)) from err
    if parts.scheme not in ('http', 'https') or not parts.hostname:
        raise BadClassInput(option, '%s is not http://HOST:PORT or '
                            'https://...' % ascii(url[:80]))
    tls = parts.scheme == 'https'
    return Place(parts.hostname, port or (443 if tls else 80), tls,
                 parts.path.rstrip('/'))


def beside(container: str) -> str:
    """Where the segments of a container's objects are."""
    return container + '_segments'


class Classes:
    """The class headers of the objects of each size.

    :param server: None: a cluster that is not asked, as no size has a class
    :raises BadClassInput: the cluster has no such class, or a range is wrong;
        names the field
    """

    def __init__(self, scenario: Scenario,
                 server: Optional[info.Server]) -> None:
        self._maps: Dict[str, ClassMap] = {}
        for number, size in enumerate(scenario.sizes):
            if server is None or not wants_classes(size):
                continue
            rest = UNCLASSIFIED if size.class_name is None else \
                parse_object_class(size.class_name, server.table,
                                   'sizes[%d].class' % number)
            class_map = map_of_range_list(
                list(size.ranges), server.table, rest,
                'sizes[%d].ranges' % number)
            server.check(class_map, 0)
            if size.ranges and format_range_class(
                    class_map, class_map.end) is None:
                raise BadClassInput('sizes[%d].ranges' % number,
                                    'has no range of another class than the '
                                    'object, or more than a header holds')
            self._maps[size.name] = class_map

    def of(self, kind: Size, size: int) -> Dict[str, str]:
        """The headers of one PUT."""
        class_map = self._maps.get(kind.name)
        if class_map is None:
            return {}
        headers = {}
        if kind.class_name is not None:
            headers[names.OBJECT_CLASS] = str(class_map.rest)
        ranges = format_range_class(class_map, size)
        if ranges is not None:
            headers[names.RANGE_CLASS] = ranges
        return headers


def wants_classes(size: Size) -> bool:
    """Does a PUT of this size need the cluster's class table?"""
    return size.class_name is not None or bool(size.ranges)


class SwiftFront:
    """Swift's API.

    :param storage_url: of the account
    """

    #: Statuses of :meth:`make`, other than 2xx, that are no failure. Swift's
    #: 409 is: the container is there with another policy.
    made: FrozenSet[int] = frozenset()
    #: Segments are objects; else they are parts of a multipart upload.
    has_slo = True

    def __init__(self, scenario: Scenario, storage_url: str,
                 token: str) -> None:
        self.place = place_of(storage_url, '--storage-url')
        self._own = {'X-Auth-Token': token}
        self._scenario = scenario
        self.containers = scenario.containers
        self.all_containers = self.containers + [
            beside(name) for name in self.containers
            if any(size.segment_bytes is not None
                   for size in scenario.sizes)]
        self._classes = Classes(
            scenario, info.read(storage_url)
            if any(map(wants_classes, scenario.sizes)) else None)

    def make(self, container: str) -> Ask:
        """A container."""
        headers = dict(self._own)
        if self._scenario.policy is not None:
            headers['X-Storage-Policy'] = self._scenario.policy
        return Ask('PUT', self._path(container), headers)

    def unmake(self, container: str) -> Ask:
        """No container."""
        return Ask('DELETE', self._path(container), self._own)

    def put(self, path: str, kind: Size, size: int) -> Ask:
        """An object."""
        ask = self.segment(path)
        return ask._replace(headers=dict(
            ask.headers, **self._classes.of(kind, size)))

    def segment(self, path: str) -> Ask:
        """A segment of an object."""
        headers = dict(self._own)
        if self._scenario.delete_after is not None:
            headers['X-Delete-After'] = str(self._scenario.delete_after)
        return Ask('PUT', self._path(path), headers)

    def manifest(self, path: str, kind: Size, size: int) -> Ask:
        """An object of segments that are there."""
        ask = self.put(path, kind, size)
        return ask._replace(path=ask.path + '?multipart-manifest=put')

    def get(self, path: str) -> Ask:
        """All of its bytes."""
        return Ask('GET', self._path(path), self._own)

    def head(self, path: str) -> Ask:
        """Its headers alone."""
        return Ask('HEAD', self._path(path), self._own)

    def delete(self, path: str) -> Ask:
        """No object."""
        return Ask('DELETE', self._path(path), self._own)

    def _path(self, path: str) -> str:
        return '%s/%s' % (self.place.prefix, quote(path))


class S3Front:
    """S3's API, with signed headers; bodies are not signed.

    :param url: of the service; buckets are in paths
    :raises BadClassInput: the scenario has a field that S3 has no word for
    """

    #: S3 says 409 to the bucket that its owner has already.
    made: FrozenSet[int] = frozenset((409,))
    has_slo = False

    def __init__(self, scenario: Scenario, url: str, access_key: str,
                 secret_key: str, region: str) -> None:
        from botocore.auth import S3SigV4Auth
        from botocore.credentials import Credentials
        self.place = place_of(url, '--s3')
        _refuse(scenario)
        # Names of buckets have neither underscores nor capitals.
        self.containers = [name.replace('_', '-').lower()
                           for name in scenario.containers]
        #: Containers of segments are the server's own.
        self.all_containers = self.containers
        self._signer = S3SigV4Auth(Credentials(access_key, secret_key), 's3',
                                   region)

    def make(self, container: str) -> Ask:
        """A bucket."""
        return self._signed('PUT', container, {})

    def unmake(self, container: str) -> Ask:
        """No bucket."""
        return self._signed('DELETE', container, {})

    def put(self, path: str, kind: Size, size: int) -> Ask:
        """An object."""
        return self._signed('PUT', path, _class_of(kind))

    def get(self, path: str) -> Ask:
        """All of its bytes."""
        return self._signed('GET', path, {})

    def head(self, path: str) -> Ask:
        """Its headers alone."""
        return self._signed('HEAD', path, {})

    def delete(self, path: str) -> Ask:
        """No object."""
        return self._signed('DELETE', path, {})

    def begin_parts(self, path: str, kind: Size) -> Ask:
        """A multipart upload, which has the class."""
        return self._signed('POST', path, _class_of(kind), '?uploads=')

    def part(self, path: str, upload: str, number: int) -> Ask:
        """A part of it."""
        return self._signed('PUT', path, {}, '?partNumber=%d&uploadId=%s' % (
            number, quote(upload, '')))

    def complete_parts(self, path: str, upload: str) -> Ask:
        """Its end."""
        return self._signed('POST', path, {}, '?uploadId='
                            + quote(upload, ''))

    def _signed(self, method: str, path: str, headers: Mapping[str, str],
                query: str = '') -> Ask:
        from botocore.awsrequest import AWSRequest
        target = '%s/%s%s' % (self.place.prefix, quote(path), query)
        request: Any = AWSRequest(
            method, self.place.endpoint + target, headers)
        # Without it botocore signs payloads over http, and there is none yet.
        request.context['client_config'] = _Unsigned
        self._signer.add_auth(request)
        return Ask(method, target, dict(request.headers.items()))


def _class_of(kind: Size) -> Dict[str, str]:
    return {} if kind.class_name is None else {_S3_CLASS: kind.class_name}


class _Unsigned:
    """The part of botocore's Config that its signer reads."""

    s3 = {'payload_signing_enabled': False}


def _refuse(scenario: Scenario) -> None:
    wrong: List[str] = []
    for number, size in enumerate(scenario.sizes):
        if size.ranges:
            wrong.append('sizes[%d].ranges' % number)
    if scenario.policy is not None:
        wrong.append('policy')
    if scenario.delete_after is not None:
        wrong.append('delete_after')
    if wrong:
        raise BadClassInput('--s3', 'S3 has no word for %s: use Swift\'s API'
                            % ', '.join(wrong))
