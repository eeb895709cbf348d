"""Messages about stubs that travel."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from swift_dss.core.errors import DamagedRecord
from swift_dss.core.residency import RemoteCopy, Residency, Tier
from swift_dss.core.version import VersionId
from swift_dss.wire.records import proof, residency as record

STUB = Residency.whole(9000).with_remote(RemoteCopy(
    's3', 'k', 'e', 1.0)).drop(10, 100, Tier.SSD)
VERSION = VersionId('sda', 1, 'a' * 32, '1700000000.00001', 3)


def test_a_stub_goes_there_and_comes_back() -> None:
    raw = proof.encode_stub(STUB)
    length = proof.record_bytes(raw[:proof.HEAD_BYTES])
    assert length == len(raw) - proof.HEAD_BYTES
    assert record.decode(raw[proof.HEAD_BYTES:]) == STUB


@pytest.mark.parametrize('head', [
    b'', b'DSP1', b'DSP2\0\0\0\1', b'DSP1\0\0\0\0', b'DSP1\xff\0\0\0'])
def test_what_is_no_stub_is_refused(head: bytes) -> None:
    with pytest.raises(DamagedRecord):
        proof.record_bytes(head)


@pytest.mark.parametrize('request_', [
    proof.ProofRequest(VERSION, '7'),
    proof.ProofRequest(VERSION, '7', packed=True),
    proof.ProofRequest(VERSION, '7', leaves=True),
    proof.ProofRequest(replace(VERSION, frag_index=None), '7', 'e', STUB)])
def test_requests_go_there_and_come_back(request_: Any) -> None:
    line = proof.encode_request(request_)
    assert line.startswith(proof.PREFIX) and line.endswith(b'\n')
    assert proof.decode_request(line) == request_


def test_an_earlier_release_does_not_say_all() -> None:
    line = proof.encode_request(proof.ProofRequest(VERSION, '7'))
    unsaid = b', "packed": false, "leaves": false'
    assert unsaid in line
    asked = proof.decode_request(line.replace(unsaid, b''))
    assert not asked.packed and not asked.leaves


@pytest.mark.parametrize('reply', [
    proof.ProofReply(404, 'not there'),
    proof.ProofReply(200, '', STUB, 'e', {'name': '/a/c/\udcff'})])
def test_replies_go_there_and_come_back(reply: proof.ProofReply) -> None:
    line = proof.encode_reply(reply)
    assert line.count(b'\n') == 1
    assert proof.decode_reply(line) == reply


@pytest.mark.parametrize('line', [
    b'{}', b'{"prove": 1}', b'{"prove": {"version": {}}}',
    b'{"status": 200, "reason": "", "etag": "", "record": "!",'
    b' "metadata": {}}',
    b'{"status": 200, "reason": "", "etag": "", "record": "",'
    b' "metadata": {"a": 1}}'])
def test_rubbish_is_damage(line: bytes) -> None:
    for decode in (proof.decode_request, proof.decode_reply):
        with pytest.raises(DamagedRecord):
            decode(line)
