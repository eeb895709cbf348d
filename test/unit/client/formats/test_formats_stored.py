"""URLs of stored objects: whose they are, and what is posted to them."""

from __future__ import annotations

import pytest

pytest.importorskip('fsspec')
pytest.importorskip('keystoneauth1')

import fsspec

from swift_dss.client.formats import known
from swift_dss.client.formats.stored import Stored
from swift_dss.client.fs import login
from swift_dss.core.errors import BadClassInput

ACCOUNT = 'https://host:8080/v1/AUTH_a'


class FileSystem:
    """Stands for ``dss://``: one object, and what was asked of it."""

    def __init__(self, data, **words):
        self.data, self.words, self.posted = data, words, []
        self.max_spans = 99

    def info(self, path):
        self.path = path
        kind = 'directory' if path.endswith('/d') else 'file'
        return {'name': path, 'size': len(self.data), 'type': kind,
                'etag': 'e1'}

    def class_id(self, name):
        if name == 'gould':
            raise ValueError('no such class')
        return {'gold': 25}.get(name, 0)

    def cat_version(self, path, start, end, etag):
        assert (path, etag) == (self.path, 'e1')
        return self.data[start:end]

    def set_ranges(self, *words, **more):
        self.posted.append((words, more))


@pytest.fixture
def made(monkeypatch):
    """The file systems that were opened."""
    opened = []

    def filesystem(scheme, **words):
        assert scheme == 'dss'
        opened.append(FileSystem(b'PK\5\6' + bytes(18), **words))
        return opened[-1]
    monkeypatch.setattr(fsspec, 'filesystem', filesystem)
    monkeypatch.setattr(login.Login, 'access', lambda self: login.Access(
        ACCOUNT, 'own'))
    monkeypatch.delenv('OS_AUTH_TOKEN', raising=False)
    return opened


@pytest.mark.parametrize('url, path', [
    ('dss://c/a/b', 'c/a/b'), (ACCOUNT + '/c/a/b', 'c/a/b'),
    (ACCOUNT + '/c%20d/a%2Fb%3F', 'c d/a/b?')])
def test_own_objects_are_read_with_the_own_login(made, url, path):
    assert Stored(url).reader.read(0, 4) == b'PK\5\6'
    assert made[0].path == path and made[0].words == {}


def test_a_token_opens_another_account(made, monkeypatch):
    other = 'http://elsewhere/v1/AUTH_b'
    with pytest.raises(BadClassInput,
                       match='set OS_AUTH_TOKEN and OS_STORAGE_URL'):
        Stored(other + '/c/o')
    monkeypatch.setenv('OS_AUTH_TOKEN', 'theirs')
    monkeypatch.setenv('OS_STORAGE_URL', other)
    Stored(other + '/c/o')
    assert made[-1].words == {'storage_url': other, 'token': 'theirs'}


def test_a_token_goes_to_the_account_that_it_is_of(made, monkeypatch):
    monkeypatch.setenv('OS_AUTH_TOKEN', 'mine')
    with pytest.raises(BadClassInput, match='of OS_STORAGE_URL alone'):
        Stored('http://evil/v1/AUTH_b/c/o')
    assert made == []


def test_a_password_in_a_url_is_refused_and_not_shown(made):
    with pytest.raises(BadClassInput, match='a password') as caught:
        Stored('http://me:secret@host/v1/AUTH_b/c/o')
    assert 'secret' not in str(caught.value) and made == []


@pytest.mark.parametrize('url', [
    'dss://c', 'dss://', ACCOUNT + '/c', ACCOUNT + '/c/',
    ACCOUNT + '/c/o?x=1', 'dss://c/d'])
def test_a_url_without_an_object_is_refused(made, url):
    with pytest.raises(BadClassInput, match='^URL'):
        Stored(url)


def test_the_version_that_was_read_is_posted_to(made):
    stored = Stored('dss://c/o')
    ranges = known.classify(stored.reader).plan.ranges
    stored.post(ranges, stored.class_id('gold', '--hot'), None)
    assert made[0].posted == [(('c/o', [(0, 22)], 25, None), {'etag': 'e1'})]
    assert stored.max_spans == 99
    with pytest.raises(BadClassInput, match='--hot: no such class'):
        stored.class_id('gould', '--hot')
