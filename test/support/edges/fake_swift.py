"""A proxy server that fits on a page: objects, containers, accounts.

It keeps what a PUT sent, gives it back on GET and HEAD, and lets POST
replace what POSTs replace. It reads bodies the way the real one does, and
answers 499 where the real one sees a client that went away.
"""

from __future__ import annotations

import hashlib

from swift.common.exceptions import ChunkReadError
from swift.common.header_key_dict import HeaderKeyDict
from swift.common.swob import Request, Response

from swift_dss.wire import names, registers

_LASTING = ('x-object-sysmeta-', 'x-static-large-object')
_POSTED = ('x-object-meta-', 'x-object-transient-sysmeta-', 'content-enc',
           'content-disp', 'x-delete-at', 'x-object-manifest')


class Logger:
    """Hears of everything and says nothing."""

    def increment(self, *_args):
        """And all the others."""

    debug = info = warning = error = increment


class FakeSwift:
    """The WSGI application below the filter."""

    def __init__(self):
        self.objects = {}
        self.containers = {}
        self.accounts = {}
        self.requests = []
        self.answer_get_with = None
        #: Whether the object servers are stock Swift's.
        self.is_stock = False

    def __call__(self, env, start_response):
        request = Request(env)
        self.requests.append((request.method, request.path_info,
                              HeaderKeyDict(request.headers)))
        depth = len([piece for piece in request.path_info.split('/')
                     if piece])
        if depth >= 4:
            answer = getattr(self, '_' + request.method.lower())(request)
        else:
            kept = self.containers if depth == 3 else self.accounts
            answer = self._simple(request, kept)
        return answer(env, start_response)

    def _simple(self, request, kept):
        headers = kept.setdefault(request.path_info, HeaderKeyDict())
        for name, value in request.headers.items():
            if '-sysmeta-' in name.lower() or '-Meta-' in name:
                headers[name] = value
                if not value:
                    del headers[name]
        return Response(status=204, headers=dict(headers), request=request)

    def _put(self, request):
        chunks = []
        source = request.environ['wsgi.input']
        try:
            while True:
                chunk = source.read(7)
                if not chunk:
                    break
                chunks.append(chunk)
        except ChunkReadError:
            return Response(status=499, request=request)
        body = b''.join(chunks)
        # With 0 there may be a body all the same: object versioning's.
        if request.content_length not in (None, 0, len(body)):
            return Response(status=499, request=request)
        etag = hashlib.md5(body).hexdigest()
        if request.headers.get('Etag', etag) != etag:
            return Response(status=422, request=request)
        headers = HeaderKeyDict(
            (name, value) for name, value in request.headers.items()
            if name.lower().startswith(_LASTING + _POSTED))
        self.objects[request.path_info] = (body, headers)
        return Response(status=201, headers={'Etag': etag}, request=request)

    def _get(self, request):
        if self.answer_get_with is not None:
            return self.answer_get_with
        if request.path_info not in self.objects:
            return Response(status=404, request=request)
        body, headers = self.objects[request.path_info]
        return Response(
            body=body, request=request, conditional_response=True,
            headers=dict(headers, Etag=hashlib.md5(body).hexdigest()))

    def _head(self, request):
        return self._get(request)

    def _delete(self, request):
        known = self.objects.pop(request.path_info, None)
        return Response(status=404 if known is None else 204,
                        request=request)

    def _post(self, request):
        if request.path_info not in self.objects:
            return Response(status=404, request=request)
        body, headers = self.objects[request.path_info]
        if request.headers.get(names.META_AT) == registers.NEVER:
            # What our object servers merge, and stock ones find too old.
            assert float(request.headers['X-Timestamp']) < 10
            if self.is_stock:
                return Response(status=409, request=request)
            at = request.headers[names.MAP_AT]
            there = headers.get(names.MAP_AT, '')
            if at <= there or '' < request.headers.get(
                    names.SEEN_MAP_AT, '') < there:
                return Response(status=409, headers={names.MAP_AT: at},
                                request=request)
            for name in [name for name in headers
                         if name.startswith(names.TRANSIENT_MAP)]:
                del headers[name]
            headers.update((name, value) for name, value
                           in request.headers.items()
                           if name.startswith(names.TRANSIENT_MAP))
            return Response(status=202, request=request)
        if not self.is_stock and '' < request.headers.get(
                names.SEEN_MAP_AT, '') < headers.get(names.MAP_AT, ''):
            return Response(status=409, headers={names.MAP_AT: 'seen'},
                            request=request)
        kept = HeaderKeyDict((name, value) for name, value in headers.items()
                             if name.lower().startswith(_LASTING))
        classes = request.headers
        if not self.is_stock and '' < classes.get(names.MAP_AT, '') <= \
                headers.get(names.MAP_AT, ''):
            classes = headers
        kept.update((name, value) for name, value in request.headers.items()
                    if name.lower().startswith(_POSTED)
                    and not name.startswith(names.TRANSIENT_MAP))
        kept.update((name, value) for name, value in classes.items()
                    if name.startswith(names.TRANSIENT_MAP)
                    or name == names.MAP_AT)
        self.objects[request.path_info] = (body, kept)
        return Response(status=202, request=request)
