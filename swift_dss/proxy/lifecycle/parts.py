"""Parts of S3's multipart uploads whose object a rule has ended.

A manifest that is deleted leaves its segments. Those of an upload of S3 have
no other use, so a row is written before the manifest is deleted; once two
looks have found no manifest, they go.
"""

from __future__ import annotations

import json
from typing import Callable, List, Mapping

from swift.common.swob import str_to_wsgi, wsgi_quote, wsgi_to_str
from swift.common.middleware.versioned_writes.legacy import (
    SYSMETA_VERSIONS_LOC)
from swift.common.middleware.versioned_writes.object_versioning import (
    SYSMETA_VERSIONS_CONT)
from swift.common.utils import close_if_possible
from swift.common.wsgi import make_pre_authed_request

from swift_dss.proxy import reclassify
from swift_dss.proxy.bodies import stored
from swift_dss.proxy.lifecycle.asking import guarded, pages
from swift_dss.proxy.lifecycle.subjects import Subject, Subjects
from swift_dss.proxy.services import Services
from swift_dss.proxy.target import SEGMENTS_SUFFIX, Target
from swift_dss.proxy.work.rows import (
    Row, Rows, Unreachable, name_of)
from swift_dss.proxy.wsgi import App, Env

_UPLOAD_ID = 'X-Object-Sysmeta-S3api-Upload-Id'
#: Seconds between two looks at a manifest.
_LOOK_SECONDS = 600
#: A row whose manifest one look has not found.
_GONE = 'gone'
_EXPIRED = {'X-Backend-Open-Expired': 'true'}
#: Sysmeta of containers that keep, or have kept, versions: as S3 has them, and
#: as Swift had them before.
_VERSIONS = (SYSMETA_VERSIONS_CONT, SYSMETA_VERSIONS_LOC)


class Parts:
    """Remembers uploads, and deletes their parts.

    :param app: what is below the filter
    :param look_seconds: between two looks for a manifest
    """

    def __init__(self, app: App, rows: Rows, services: Services,
                 subjects: Subjects, look_seconds: float) -> None:
        self._app = app
        self._services = services
        self._look_seconds = min(_LOOK_SECONDS, look_seconds)
        self._rows = rows
        self._primaries = subjects.primaries
        self._now = subjects.clock.now

    def note(self, env: Env, subject: Subject) -> str:
        """An object is about to be deleted.

        :returns: the name of its row; '' if it needs none
        :raises Unreachable: it could not be noted
        """
        upload_id = subject.headers.get(_UPLOAD_ID)
        if not upload_id or stored.STATIC not in subject.headers:
            # A copy of an old version has the number, and no parts.
            return ''
        body = json.dumps([*subject.target, upload_id])
        name = name_of(body)
        self._rows.put(env, name, body.encode(),
                       self._now() + self._look_seconds)
        return name

    def forget(self, env: Env, name: str) -> None:
        """It was not deleted.

        :param name: of its row, or ''
        """
        if name:
            self._rows.delete(env, name, self._now())

    def has_rows(self, env: Env) -> bool:
        """Whether any parts wait for their end."""
        return self._rows.has_any(env)

    def work(self, env: Env, leads: Callable[[], bool]) -> None:
        """Do what is due.

        :param leads: whether this process goes on
        """
        for row in self._rows.due(env, leads):
            beside = row.beside
            with guarded(self._services, 'lifecycle', row.name):
                beside = self._do(env, row, leads)
                if not beside:
                    self._rows.delete(env, row.name, self._now())
                    continue
            self._rows.touch(env, row.name, self._now() + self._look_seconds,
                             beside)

    def _do(self, env: Env, row: Row, leads: Callable[[], bool]) -> str:
        """
        :returns: how it stands, to be looked at again; '' if all is done
        """
        account, container, obj, upload_id = json.loads(row.body)
        target = Target(account, container, obj)
        # Each of its servers is asked: the only ones that have it may be away.
        if any(manifest.get(_UPLOAD_ID) == upload_id
               for manifest in self._manifests(env, target)) \
                or self._has_versions(env, target):
            return ''  # it stays, here or among the old versions
        if row.beside != _GONE:
            # Servers that missed it may have answered: look once more.
            return _GONE
        where = Target(account, container + SEGMENTS_SUFFIX)
        has_deleted = False
        for page in pages(env, self._app, where, prefix='%s/%s/' % (
                wsgi_to_str(obj), upload_id), newest=True):
            if not leads():
                return _GONE
            for listed in page:
                self._delete(env, where._replace(
                    obj=str_to_wsgi(listed['name'])))
            has_deleted = True
        # A listing may be late: the last look has deleted nothing.
        return _GONE if has_deleted else ''

    def _manifests(self, env: Env, target: Target) -> List[
            Mapping[str, str]]:
        manifest = reclassify.look(env, self._app, target, newest=True,
                                   also=_EXPIRED)
        return [manifest] if manifest is not None else \
            self._primaries.agree(env, target, _EXPIRED) or []

    def _has_versions(self, env: Env, target: Target) -> bool:
        return is_versioned(reclassify.look(
            env, self._app, target._replace(obj=''), newest=True) or {})

    def _delete(self, env: Env, target: Target) -> None:
        request = make_pre_authed_request(
            env, method='DELETE', path=wsgi_quote(target.path),
            swift_source='DSS')
        request.environ['QUERY_STRING'] = ''
        answer = request.get_response(self._app)
        close_if_possible(answer.app_iter)
        if answer.status_int not in (204, 404):
            raise Unreachable('%s: DELETE gives %d' % (
                target.path, answer.status_int))
        self._services.count('lifecycle.parts')


def is_versioned(headers: Mapping[str, str]) -> bool:
    """Whether a container keeps old versions, or has ever done so.

    :param headers: of its HEAD
    """
    return any(headers.get(name) for name in _VERSIONS)
