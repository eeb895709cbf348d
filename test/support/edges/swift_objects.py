"""Swift's objects in a dictionary, for what writes them by ``dss://``."""

from __future__ import annotations

import asyncio
import hashlib
import json

from swift_dss.client.fs.errors import error_of
from swift_dss.client.fs.store import Answer

DSS = {'dss': {'classes': {'gold': 25}}}


class Swift:
    """Objects in a dictionary, behind the verbs of a store.

    :param plan: (method, part of the path) to an error to raise
    """

    def __init__(self, **containers):
        self.containers = dict({'c': {}}, **containers)
        self.objects = {}
        self.plan = {}
        self.seen = []
        #: Part of the path of objects of which a byte changes on the way.
        self.damaged = None

    async def info(self):
        return DSS

    async def send(self, request):
        await asyncio.sleep(0)
        self.seen.append(request)
        for (method, part), error in list(self.plan.items()):
            if request.method == method and part in request.path:
                raise error
        status, headers, body = getattr(self, request.method)(request)
        if status > 299 and status not in request.allow:
            raise error_of(status, request.method, request.path, body)
        return Answer(status, headers, body)

    def HEAD(self, request):
        if not request.name:
            headers = self.containers.get(request.container)
            return (404, {}, b'') if headers is None else (204, headers, b'')
        obj = self.objects.get(request.path)
        return (404, {}, b'') if obj is None else (200, obj[0], b'')

    def GET(self, request):
        headers, body = self.objects[request.path]
        if 'Range' in request.headers:
            first, last = map(int, request.headers['Range'][6:].split('-'))
            return 206, headers, body[first:last + 1]
        rows = [{'name': row['path'], 'hash': row['etag'],
                 'bytes': row['size_bytes']} for row in json.loads(body)]
        return 200, headers, json.dumps(rows).encode()

    def PUT(self, request):
        if not request.name:
            self.containers[request.container] = dict(request.headers)
            return 201, {}, b''
        if request.container not in self.containers:
            return 404, {}, b''
        body = b''.join(map(bytes, request.body))
        if self.damaged and self.damaged in request.path:
            body = body[:-1] + bytes([body[-1] ^ 1])
        headers = dict(request.headers)
        etag = hashlib.md5(body).hexdigest()
        if headers.get('ETag', etag) != etag:
            return 422, {}, b''
        if request.query:
            headers['X-Static-Large-Object'] = 'True'
        self.objects[request.path] = headers, body
        return 201, {'Etag': etag}, b''

    def POST(self, request):
        headers, _ = self.objects[request.path]
        headers.update(request.headers)
        return 202, {}, b''

    def DELETE(self, request):
        return (204 if self.objects.pop(request.path, None) else 404), {}, b''
