"""The secret file: who may read it, when it is read, what is said of it."""

from __future__ import annotations

import os

import pytest

from swift_dss.core.errors import BadConfig
from swift_dss.gateway.link.credentials import SecretFile

CANARY = 'canary-7f3a'


def _write(path, text, mode=0o600):
    secret_fd = os.open(str(path), os.O_WRONLY | os.O_CREAT | os.O_TRUNC,
                        0o600)
    with os.fdopen(secret_fd, 'w') as out:
        out.write(text)
    os.chmod(str(path), mode)
    return str(path)


@pytest.fixture
def good(tmp_path):
    return _write(tmp_path / 's', '# keys\naccess_key = A\n\n'
                  'secret_key = a=b=%s\n' % CANARY)


def test_both_keys_are_read_and_values_may_hold_equal_signs(good):
    secret, _stamp = SecretFile(good).read()
    assert (secret.access_key, secret.secret_key) == ('A', 'a=b=' + CANARY)


def test_printing_a_secret_shows_neither_key(good):
    secret, _stamp = SecretFile(good).read()
    assert CANARY not in repr(secret) and "'A'" not in repr(secret)


@pytest.mark.parametrize('mode', [0o640, 0o604, 0o644, 0o660, 0o700])
def test_looser_permissions_are_refused_and_say_what_to_do(good, mode):
    os.chmod(good, mode)
    with pytest.raises(BadConfig) as caught:
        SecretFile(good).read()
    assert 'chmod 0600 %s' % good in str(caught.value)
    assert CANARY not in str(caught.value)


def test_permissions_loosened_later_are_noticed(good):
    secret_file = SecretFile(good)
    secret_file.read()
    os.chmod(good, 0o644)
    with pytest.raises(BadConfig):
        secret_file.read()


def test_a_changed_file_is_read_again_and_its_stamp_differs(good):
    secret_file = SecretFile(good)
    _secret, before = secret_file.read()
    assert secret_file.read()[1] == before
    other = _write(good + '.new', 'access_key = B\nsecret_key = C\n')
    os.rename(other, good)
    secret, after = secret_file.read()
    assert secret.access_key == 'B' and after != before


@pytest.mark.parametrize('text', [
    '', 'access_key = A\n', 'secret_key = %s\n' % CANARY,
    'access_key = A\nsecret_key =\n', 'access_key A\nsecret_key=%s' % CANARY,
    'access_key = A\nsecret_key = %s\nextra = 1\n' % CANARY,
    'access_key = A\nsecret_key = %s\n' % CANARY + '#' * 20000])
def test_a_malformed_file_is_refused_without_showing_it(tmp_path, text):
    path = _write(tmp_path / 's', text)
    with pytest.raises(BadConfig) as caught:
        SecretFile(path).read()
    assert path in str(caught.value) and CANARY not in str(caught.value)


@pytest.mark.parametrize('path', ['', '/nonexistent/secret', '/'])
def test_a_missing_file_is_a_configuration_error(path):
    with pytest.raises(BadConfig):
        SecretFile(path).read()
