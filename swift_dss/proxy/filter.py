"""
``dss`` is the proxy's middleware for storage classes.

It finds out which class each byte of an object has and tells the object
servers before the first byte of data; it shows the classes to clients and
changes them on request. A class is a handle, an id from 0 to 31 that may
have a name in the class table; the servers that store the bytes decide its
meaning. **Whatever a client says about classes, the bytes, ETags and listings
are the same.**

-----------------
Place in pipeline
-----------------

Below everything that makes several requests of one, above encryption::

    [pipeline:main]
    pipeline = catch_errors gatekeeper ... <auth> ... copy ... slo dlo
        versioned_writes symlink dss [keymaster encryption] proxy-logging
        proxy-server

    [filter:dss]
    use = egg:swift_dss#dss
    class_table = /etc/swift/dss-classes.conf
    rules_file = /etc/swift/dss-rules.conf

In any other place, or without gatekeeper, the proxy server refuses to start
and says why.

------
Upload
------

``X-DSS-Object-Class: 25`` (or a name) classifies the object, and
``X-DSS-Range-Class: 0-64-25,1024-32-26`` ranges of it. With
``X-DSS-Object-File: True`` the body is a ``.dss`` object. The filter removes
its class section, and Swift stores the data: ETag, Content-Length and listings
are those of the data. An ``ETag`` in the request is that of the data;
``Content-MD5``, through s3api, is that of the whole body.

The first of these that names a class wins:

1. the request: the headers above, then ``X-Object-Storage-Class`` (in S3:
   ``x-amz-storage-class``), then metadata ``X-Object-Meta-Dss-Class`` (in S3:
   ``x-amz-meta-dss-class``);
2. the multipart upload that a part belongs to; the source of a copy, unless
   the account may not use its class;
3. the first rule of ``rules_file`` that matches;
4. the container's ``X-DSS-Container-Class``;
5. class 0, unclassified, for which nothing is stored.

Symbolic links have no class. A large object's class is that of its data:
the classes of a manifest, ranges of the whole included, go to its segments
before the manifest is stored (``proxy.large``). A POST waits for up to
``segments_at_once`` segments; it is written down first, so that another
worker finishes it if this one dies or there are more.

Before the body is read, admission (``admission``, on by default) judges the
write by its class and the backlogs of the object servers. The write goes on,
waits a little, or is refused with the time after which there should be room.
One worker asks for the backlogs on behalf of all workers: every
``pressure_interval`` seconds, less often far from all limits. The filter
``dss_retry_after``, left of s3api, passes that time to S3 clients.

--------
Download
--------

GET and HEAD of a classified object show ``X-DSS-Object-Class`` (id),
``X-DSS-Class-Name``, ``X-DSS-Range-Class`` where classes differ inside the
object and the value is not too long, and ``X-DSS-Tier`` where the object
server sends it. With ``X-DSS-Object-File: True`` they give the ``.dss`` form;
the ETag is then left out and ``X-DSS-Data-Etag`` is that of the data, to which
If-Match and If-None-Match refer; ``Range`` is refused.

With ``least_loaded`` (off by default), bytes that the warm copy has on its HDD
alone come from the copy whose HDD is the least busy.

----------------
Reclassification
----------------

A POST with object or range headers, or ``POST ?dss-classes`` with a class
section as its body, gives an object other classes. Ranges not named get
the object class, which stays if it is not named. A POST that also sets
metadata replaces all of it, as always; a POST that only classifies leaves
metadata alone. ``X-Object-Meta-Dss-Class`` then shows the new class. Every
object POST costs one HEAD, because stock object servers lose what the last
POST set unless the next POST sets it again.

---------------------
Containers, accounts
---------------------

``X-DSS-Container-Class`` on a PUT or POST of a container sets its default;
an empty value removes it. A reseller admin sets ``X-DSS-Account-Classes:
gold,silver`` on a POST of an account to name the classes that it may ask for;
``*`` is all, and an empty value restores the ``account_classes`` option. Other
workers follow within a minute. The limit does not apply to classes from rules.

------
Errors
------

====  ==================================================================
400   a header or body is wrong; one sentence: which, where and why. Who
      may not make the request gets auth's answer instead (401, 403)
403   the account may not use the class; not a reseller admin
408   the client was too slow in sending a class section
413   more spans or a longer class section than ``/info`` allows
422   Content-MD5 is not that of the ``.dss`` body
503   with Retry-After: the bytes are in S3 and S3 does not answer; or,
      to a PUT, as much of its class waits for S3 as may (admission)
507   the object can never fit what may wait for S3 (413 through s3api,
      and into containers that keep versions)
====  ==================================================================
"""

from __future__ import annotations

import os
from typing import Any, Callable, Dict, List, Optional, Union

from swift.common.registry import register_swift_info
from swift.common.swob import HTTPException, Response
from swift.common.utils import get_logger

from swift_dss.core.errors import DssError
from swift_dss.core.limits import (
    CLASS_ID_MAX, MAX_RANGE_HEADER_BYTES)
from swift_dss.io import waiting
from swift_dss.proxy import authorize, pipeline
from swift_dss.proxy.accounts import AccountClasses
from swift_dss.proxy.admit.admission import Admission, Refused
from swift_dss.proxy.admit.full_devices import FullDevices
from swift_dss.proxy.admit.heard import Shared
from swift_dss.proxy.admit.pressures import Pressures
from swift_dss.proxy.containers import Containers
from swift_dss.proxy.objects import Objects
from swift_dss.proxy.replicas import Replicas
from swift_dss.proxy.request import ProxyRequest
from swift_dss.proxy.services import Services
from swift_dss.proxy.settings import FilterOptions, Settings, State
from swift_dss.proxy.target import Target
from swift_dss.proxy.uploads import Uploads
from swift_dss.proxy.wsgi import App, Body, Env, Start
from swift_dss.wire import names

Handler = Callable[[ProxyRequest], Body]


class DssMiddleware:
    """The WSGI filter; see the module."""

    def __init__(self, app: Any, conf: Dict[str, str],
                 logger: Any = None) -> None:
        """
        :raises BadConfig: an option or file cannot be used, or we stand in
            the wrong place
        """
        self.app: App = app
        self.logger = logger or get_logger(conf, log_route='dss')
        pipeline.check((), pipeline.names_of(pipeline.below_of(app)),
                       whole=False)
        self._options = options = FilterOptions.of(conf)
        self.settings = Settings(
            options.class_table, options.rules_file,
            options.reload_interval, self.logger, self._publish)
        replicas = Replicas(app)
        services = Services(
            self.logger, AccountClasses(
                app, options.account_classes, self.settings.current().table,
                options.account_recheck),
            Uploads(app), options.max_spans, options.max_section_bytes,
            options.client_timeout,
            Admission(replicas, self.logger,
                      pressures_of(options, self.logger)),
            FullDevices(replicas, self.logger), replicas, self.settings)
        objects = Objects(app, services, options.least_loaded,
                          options.segments_at_once, options.lifecycle)
        self._start_workers = objects.start_workers
        #: The process whose workers run.
        self._pid = 0
        self.lifecycles = objects.lifecycles
        containers = Containers(app, services, self.lifecycles.buckets)
        self._objects = {'PUT': objects.put, 'GET': objects.get,
                         'HEAD': objects.get, 'POST': objects.post}
        self._containers = _by_method(containers.set_default,
                                      containers.show_default)
        self._accounts = _by_method(containers.set_allowed,
                                    containers.show_allowed)
        self._services = services
        self._loaded: List[Any] = []

    @property
    def _pipeline(self) -> List[Any]:
        """All of the pipeline; Swift sets it when everything is loaded."""
        return self._loaded

    @_pipeline.setter
    def _pipeline(self, apps: List[Any]) -> None:
        place = apps.index(self)
        pipeline.check(pipeline.names_of(apps[:place]),
                       pipeline.names_of(apps[place + 1:]))
        self._loaded = apps

    def __call__(self, env: Env, start_response: Start) -> Body:
        if self._pid != os.getpid() and waiting.is_green():
            self._pid = os.getpid()
            self._start_workers()
        target = Target.of(env)
        if target is None:
            return self.app(env, start_response)
        handlers = self._objects if target.obj else (
            self._containers if target.container else self._accounts)
        handler: Optional[Handler] = handlers.get(env['REQUEST_METHOD'])
        if handler is None:
            self._services.strip(env)
            return self.app(env, start_response)
        try:
            return handler(ProxyRequest(env, start_response, target,
                                        self.settings.current()))
        except (DssError, Refused) as err:
            body: Body = (authorize.refusal(env, self.app, target)
                          or self._refuse(err))(env, start_response)
            return body
        except HTTPException as answer:
            body = answer(env, start_response)
            return body

    def _refuse(self, err: Union[DssError, Refused]) -> Response:
        """One sentence, with the error's own status; only for clients with the
        right to the request, or the answer would reveal classes and room to
        others.
        """
        if isinstance(err, Refused):
            return err
        self._services.count('refused.' + err.counter)
        return Response(status=err.http_status, content_type='text/plain',
                        body=('%s.\n' % err).encode('utf-8'))

    def _publish(self, state: State) -> None:
        """Tell ``/info``; called with every new class table."""
        restore = state.table.restore_spec
        register_swift_info(
            'dss', classes={spec.name: spec.class_id for spec in
                            state.table.specs.values()},
            pinning=[spec.name for spec in sorted(
                state.table.specs.values(), key=lambda spec: spec.rank)
                if spec.pin],
            max_class_id=CLASS_ID_MAX, max_spans=self._options.max_spans,
            max_section_bytes=self._options.max_section_bytes,
            max_shown_range_bytes=MAX_RANGE_HEADER_BYTES,
            formats=['object', 'range', 'dss-block', 'dss-range'],
            default_account_classes=self._options.account_classes,
            not_allowed_status=403,
            reclassify_query=names.RECLASSIFY_QUERY,
            s3_storage_classes=state.table.storage_classes,
            s3_lifecycle=bool(self._options.lifecycle.interval),
            restore_class=restore.name if restore else '')


def _by_method(sets: Handler, shows: Handler) -> Dict[str, Handler]:
    return {'PUT': sets, 'POST': sets, 'GET': shows, 'HEAD': shows}


def pressures_of(options: FilterOptions, logger: Any) -> Optional[Pressures]:
    """The source of admission's figures; None with ``admission = false``."""
    if not options.admission:
        return None
    return Pressures(float(options.pressure_interval), logger,
                     shared=Shared(options.run_dir, logger)
                     if options.run_dir else None)


def filter_factory(global_conf: Dict[str, str],
                   **local_conf: str) -> Callable[[Any], DssMiddleware]:
    """paste.deploy's entry point."""
    conf = dict(global_conf, **local_conf)

    def dss_filter(app: Any) -> DssMiddleware:
        return DssMiddleware(app, conf)

    return dss_filter
