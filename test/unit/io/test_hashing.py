"""MD5 of several uploads in one pass, against hashlib's."""

from __future__ import annotations

import gc
import hashlib
import random
import sys
import threading
from typing import Any, Iterator, List

import eventlet
import pytest

from swift_dss.io.sums import hashing
from swift_dss.io.sums.hashing import Hasher

if hashing.md5_lanes is None:
    pytest.skip('md5_lanes was not compiled: no compiler, or no Python.h',
                allow_module_level=True)
md5_lanes: Any = hashing.md5_lanes


@pytest.fixture(params=md5_lanes.KERNELS)
def kernel(request: Any) -> Iterator[str]:
    md5_lanes.use(request.param)
    yield request.param
    md5_lanes.use(md5_lanes.KERNELS[0])


def test_a_kernel_that_is_not_here_is_refused() -> None:
    assert md5_lanes.KERNELS[-1] == 'plain'
    with pytest.raises(ValueError):
        md5_lanes.use('abacus')


def test_each_lane_is_hashlibs_md5(kernel: str) -> None:
    seed = random.randrange(1 << 32)
    print('seed', seed)
    source = random.Random(seed)
    for _ in range(300):
        pairs = [(md5_lanes.Digest(), hashlib.md5())
                 for _ in range(source.randint(0, md5_lanes.LANES))]
        for _ in range(source.randint(0, 4)):
            runs: List[Any] = []
            for digest, right in pairs:
                data = source.randbytes(source.choice(
                    (0, 1, 55, 56, 63, 64, 65, 128, 1000, 9000)))
                start = source.randint(0, len(data))
                stop = source.randint(start, len(data))
                runs.append((digest, data, start, stop))
                right.update(data[start:stop])
            md5_lanes.update(runs)
        for digest, right in pairs:
            assert digest.hexdigest() == right.hexdigest()


def test_every_length_around_a_block() -> None:
    data = bytes(range(256))
    for length in range(200):
        digest = md5_lanes.Digest()
        md5_lanes.update([(digest, data, 0, length)])
        # Asked twice: it changes nothing, and more may follow.
        assert digest.hexdigest() == digest.hexdigest() == \
            hashlib.md5(data[:length]).hexdigest()
        md5_lanes.update([(digest, data, length, 200)])
        assert digest.hexdigest() == hashlib.md5(data[:200]).hexdigest()


@pytest.mark.parametrize('run, error', [
    ((0, 9), ValueError), ((-1, 2), ValueError), ((3, 2), ValueError)])
def test_a_range_that_is_not_there_is_refused(run: Any, error: Any) -> None:
    digest = md5_lanes.Digest()
    with pytest.raises(error):
        md5_lanes.update([(digest, b'12345678') + run])
    md5_lanes.update([(digest, b'12345678', 0, 8)])
    assert digest.hexdigest() == hashlib.md5(b'12345678').hexdigest()


def test_one_stream_twice_in_a_pass_is_refused() -> None:
    digest = md5_lanes.Digest()
    with pytest.raises(RuntimeError):
        md5_lanes.update([(digest, b'a', 0, 1), (digest, b'b', 0, 1)])
    with pytest.raises(ValueError):
        md5_lanes.update([(md5_lanes.Digest(), b'a', 0, 1)
                          for _ in range(md5_lanes.LANES + 1)])
    with pytest.raises(TypeError):
        md5_lanes.update([(hashlib.md5(), b'a', 0, 1)])
    assert digest.hexdigest() == hashlib.md5().hexdigest()


def test_uploads_side_by_side_share_passes(green: None) -> None:
    hasher = Hasher()
    bodies = [random.randbytes(700000 + 1000 * number)
              for number in range(2 * md5_lanes.LANES)]
    digests = {}

    def upload(number: int) -> None:
        stream, body = hasher.stream(), bodies[number]
        for at in range(0, len(body), 300001):
            window = body[at:at + 300001]
            stream.begin([window[:77], b'', window[77:]])
            # As the network does: others come between.
            eventlet.sleep(0)
            stream.wait()
        stream.begin([])
        stream.wait()
        digests[number] = stream.hexdigest()
        stream.close()
        stream.close()

    threads = [eventlet.spawn(upload, number)
               for number in range(len(bodies))]
    for thread in threads:
        thread.wait()
    assert digests == {number: hashlib.md5(body).hexdigest()
                       for number, body in enumerate(bodies)}
    assert hasher.streams > md5_lanes.LANES // 2 * hasher.passes
    _nothing_is_left(hasher)


def _nothing_is_left(hasher: Hasher) -> None:
    """A stream waits for no other, and no other is hashed with it."""
    stream = hasher.stream()
    jobs, passes, streams = hasher.pool.jobs, hasher.passes, hasher.streams
    body = random.randbytes(3000000)
    references = sys.getrefcount(body)
    stream.begin([body])
    assert hasher.pool.jobs == jobs + 1
    stream.wait()
    assert hasher.passes - passes == hasher.streams - streams > 1
    stream.close()
    assert sys.getrefcount(body) == references, 'its bytes are kept'


def test_it_begins_when_all_are_there_or_one_waits(green: None) -> None:
    hasher = Hasher()
    first, second = hasher.stream(), hasher.stream()
    first.begin([b'one'])
    assert hasher.pool.jobs == 0
    second.begin([b'two'])
    assert hasher.pool.jobs == 1
    for stream in (first, second):
        stream.wait()
    first.begin([b' more'])
    first.wait()
    assert first.hexdigest() == hashlib.md5(b'one more').hexdigest()
    assert second.hexdigest() == hashlib.md5(b'two').hexdigest()
    second.close()
    jobs = hasher.pool.jobs
    first.begin([b' and more'])
    assert hasher.pool.jobs == jobs + 1
    first.wait()
    assert first.hexdigest() == hashlib.md5(b'one more and more').hexdigest()
    first.close()
    _nothing_is_left(hasher)


def test_one_that_waits_lets_others_in_first(green: None) -> None:
    hasher = Hasher()
    first, second, idle = (hasher.stream() for _ in range(3))
    jobs = []

    def begin() -> None:
        jobs.append(hasher.pool.jobs)
        second.begin([b'two'])
    first.begin([b'one'])
    eventlet.spawn(begin)
    first.wait()
    second.wait()
    assert jobs == [0]
    assert (hasher.passes, hasher.streams) == (1, 2)
    for stream in (first, second, idle):
        stream.close()
    _nothing_is_left(hasher)


def test_without_an_event_loop_the_caller_hashes() -> None:
    hasher = Hasher()
    streams = [hasher.stream() for _ in range(3)]
    for stream in streams:
        stream.begin([b'ab', b'', b'c'])
        stream.wait()
        assert stream.hexdigest() == hashlib.md5(b'abc').hexdigest()
        stream.close()
    assert (hasher.passes, hasher.pool.jobs) == (3 * 2, 0)


def test_who_cannot_be_hashed_stands_in_nobodys_way(green: None) -> None:
    hasher = Hasher()
    wrong, right, late = (hasher.stream() for _ in range(3))
    text: Any = 'text %d' % random.randrange(1 << 32)
    references = sys.getrefcount(text)
    wrong.begin([text])
    right.begin([b'bytes'])
    right.wait()
    late.begin([b'late'])
    late.wait()
    with pytest.raises(TypeError):
        wrong.wait()
    assert right.hexdigest() == hashlib.md5(b'bytes').hexdigest()
    assert late.hexdigest() == hashlib.md5(b'late').hexdigest()
    for stream in (wrong, right, late):
        stream.close()
    gc.collect()  # its error is in a circle
    assert sys.getrefcount(text) == references, 'it is kept'
    _nothing_is_left(hasher)


def test_who_gives_up_stands_in_nobodys_way(green: None) -> None:
    hasher = Hasher()
    gate = threading.Event()
    held = hasher.pool.submit(gate.wait)
    gone, stays = hasher.stream(), hasher.stream()
    body = random.randbytes(1000000)
    references = sys.getrefcount(body)
    gone.begin([body])
    gone.close()
    assert sys.getrefcount(body) == references, 'its bytes are kept'
    stays.begin([b'stays'])
    gate.set()
    held.wait()
    stays.wait()
    assert stays.hexdigest() == hashlib.md5(b'stays').hexdigest()
    stays.close()
    _nothing_is_left(hasher)
