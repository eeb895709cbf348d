"""What a container hears of an object's class."""

from __future__ import annotations

from typing import Any, Dict, Optional

import pytest
from swift.common.header_key_dict import HeaderKeyDict
from swift.common.swob import Request

from swift_dss.core.classes import ClassSpec, ClassTable
from swift_dss.core.errors import BadConfig
from swift_dss.objserver.listed.updates import Updates
from swift_dss.objserver.posts import Post
from swift_dss.wire import names

T1, T2, T3 = ('000000000%d.00000' % at for at in (1, 2, 3))


class Opened:
    """A diskfile before the POST: what its PUT and its last POST set."""

    def __init__(self, put: Dict[str, str],
                 posted: Optional[Dict[str, str]] = None) -> None:
        self._put, self._posted = put, posted

    def get_metadata(self) -> Dict[str, str]:
        return dict(self._put, **(self._posted or {}))

    def get_metafile_metadata(self) -> Any:
        return self._posted


class Logger:
    def increment(self, *_args: Any) -> None:
        pass

    warning = increment


class Manager:
    """Of a policy of ours."""

    class dss_node:
        class_table = ClassTable.of([
            ClassSpec(25, 'gold', 9),
            ClassSpec(26, 'silver', 8, s3_storage_class=('STANDARD_IA',))])


def update(method: str, headers: Dict[str, str], kind: str = 'a/b',
           type_at: str = '', post: Optional[Post] = None,
           opened: Any = None, which: str = 'all',
           manager: Any = Manager) -> Any:
    sent = HeaderKeyDict({'x-content-type': kind, 'x-timestamp': T1})
    if type_at:
        sent['x-content-type-timestamp'] = type_at
    Updates({'listed_classes': which}, Logger()).add_class(
        sent, Request.blank('/', method=method, headers=headers), post,
        opened, manager)
    return sent['x-content-type'], sent.get('x-content-type-timestamp')


@pytest.mark.parametrize('headers, kind, wanted', [
    ({}, 'a/b', 'a/b'),
    ({names.SYSMETA_MAP: '25'}, 'a/b', 'a/b;x-dss-class=25'),
    ({names.SYSMETA_MAP: '25'}, 'a/b;swift_bytes=7',
     'a/b;swift_bytes=7;x-dss-class=25'),
    # A client cannot say it.
    ({}, 'a/b;x-dss-class=9', 'a/b;x-dss-class=9;x-dss-class=0')])
def test_a_put_says_its_class(headers: Any, kind: str, wanted: str) -> None:
    assert update('PUT', headers, kind) == (wanted, None)


def test_a_delete_says_nothing() -> None:
    headers = HeaderKeyDict({'x-timestamp': T1})
    Updates({}, Logger()).add_class(
        headers, Request.blank('/', method='DELETE'), None, None, Manager)
    assert dict(headers) == {'X-Timestamp': T1}


def test_a_post_that_classifies_makes_the_content_type_news() -> None:
    post = Post(T2, '', T2, False)
    opened = Opened({names.SYSMETA_MAP: '25'})
    assert update('POST', {names.TRANSIENT_MAP: '3'}, type_at=T1, post=post,
                  opened=opened) == ('a/b;x-dss-class=3', T2)
    # Back to no class: the row has to hear of that too.
    assert update('POST', {names.TRANSIENT_MAP: '0'}, type_at=T1, post=post,
                  opened=opened) == ('a/b', T2)


def test_a_post_without_class_says_the_one_in_force() -> None:
    post = Post(T3, T3, '', False)
    put = {names.SYSMETA_MAP: '25'}
    assert update('POST', {}, type_at=T1, post=post, opened=Opened(
        put)) == ('a/b;x-dss-class=25', T1)
    posted = {'X-Timestamp': T2, names.TRANSIENT_MAP: '3',
              names.MAP_AT: T2}
    assert update('POST', {}, type_at=T1, post=post, opened=Opened(
        put, posted)) == ('a/b;x-dss-class=3', T2)
    # A content type that is newer than the class stays so.
    assert update('POST', {}, type_at=T3, post=post, opened=Opened(
        put, posted)) == ('a/b;x-dss-class=3', T3)


def test_an_older_post_changes_nothing() -> None:
    posted = {'X-Timestamp': T3, names.TRANSIENT_MAP: '3', names.MAP_AT: T3}
    assert update('POST', {names.TRANSIENT_MAP: '5'}, type_at=T1,
                  post=Post(T2, '', T2, False), opened=Opened({}, posted)
                  ) == ('a/b;x-dss-class=3', T3)


@pytest.mark.parametrize('which, manager, wanted', [
    ('all', Manager, ['a/b;x-dss-class=25', 'a/b;x-dss-class=26']),
    (' S3 ', Manager, ['a/b', 'a/b;x-dss-class=26']),
    # Swift's own diskfile has no class table.
    ('s3', object, ['a/b', 'a/b']),
    ('none', Manager, ['a/b', 'a/b'])])
def test_the_option_says_whose_class_is_told(
        which: str, manager: Any, wanted: Any) -> None:
    assert [update('PUT', {names.SYSMETA_MAP: said}, which=which,
                   manager=manager)[0] for said in ('25', '26')] == wanted


def test_a_class_that_is_not_told_replaces_one_that_was() -> None:
    post = Post(T2, '', T2, False)
    assert update('POST', {names.TRANSIENT_MAP: '25'}, type_at=T1, post=post,
                  opened=Opened({names.SYSMETA_MAP: '26'}), which='s3'
                  ) == ('a/b', T2)
    # A client's own words stay its own.
    assert update('PUT', {names.SYSMETA_MAP: '25'}, 'a/b;x-dss-class=9',
                  which='none')[0] == 'a/b;x-dss-class=9;x-dss-class=0'


def test_another_value_of_the_option_is_refused() -> None:
    with pytest.raises(BadConfig, match="^listed_classes: 'some' is none of "
                                        'all, s3 and none$'):
        Updates({'listed_classes': 'some'}, Logger())
