"""Requests of the block benchmarks: the same every time, and as said."""

import gzip
import shutil
import subprocess

import pytest

from swift_dss.bench.block import chunks, driver, load
from swift_dss.bench.block.driver import CHAINED, FLUSH, WRITE

MIB = 1 << 20
KIB = 1024


def all_requests(workload):
    return [request for phase in workload.phases for request in phase.requests]


@pytest.mark.parametrize('name', ['cacs', 'plain'])
def test_the_same_call_gives_the_same_list(name, tmp_path):
    workload = load.make(name, tmp_path, 2000, 1)
    assert workload == load.make(name, tmp_path, 2000, 1)
    assert workload.phases != load.make(name, tmp_path, 2000, 2).phases
    for phase in workload.phases:
        driver.encode(phase.requests)  # Or it would raise.
    assert max(request.offset + request.length
               for request in all_requests(workload)) <= workload.origin_bytes


def test_cacs_objects_are_written_once_and_read_whole():
    work = load.cacs_mix(count=60, scale=0.1, reads=50)
    upload, warm, download = work.phases
    assert (upload.measured, warm.measured, download.measured) == (
        True, False, True)
    assert all(request.flags & WRITE for request in upload.requests)
    # Side by side, each byte once.
    at = 0
    for request in upload.requests:
        assert request.offset == at
        at += request.length
    # A client ends an object with a flush, and only there.
    for request, after in zip(upload.requests, upload.requests[1:]):
        assert bool(request.flags & FLUSH) == (not after.flags & CHAINED)
    assert not any(request.flags & (WRITE | FLUSH)
                   for request in download.requests)
    starts = {request.offset for request in upload.requests
              if not request.flags & CHAINED}
    assert {request.offset for request in download.requests
            if not request.flags & CHAINED} <= starts
    assert sum(1 for request in download.requests
               if not request.flags & CHAINED) == 50
    # The slide's order: USER1 leaves last.
    ranks = [work.ranks[class_id] for class_id in sorted(work.ranks)]
    assert ranks == sorted(ranks, reverse=True)
    assert work.cache_bytes == pytest.approx(0.14 * at, abs=MIB)


def test_plain_is_unclassified_and_skewed():
    work = load.plain(count=8000, range_bytes=64 * MIB)
    requests = all_requests(work)
    assert not work.ranks
    assert {request.class_id for request in requests} == {0}
    writes = sum(1 for request in requests if request.flags & WRITE)
    assert 0.25 < writes / len(requests) < 0.35
    groups = {}
    for request in requests:
        if request.length < 128 * KIB:
            groups[request.offset // (64 * KIB)] = groups.get(
                request.offset // (64 * KIB), 0) + 1
    hottest = sorted(groups.values(), reverse=True)
    assert sum(hottest[:len(hottest) // 10]) > 0.4 * sum(hottest)


def put_cloudphysics(folder, rows):
    with gzip.open(str(folder / 'cloudphysics.csv.gz'), 'wt') as out:
        out.write('version,time,op,size,lbn\n')
        for row in rows:
            out.write(','.join(str(field) for field in row) + '\n')


def test_a_trace_gets_classes_by_region_and_no_gaps(tmp_path):
    # Four far places; the third is the busiest.
    rows = [(1, 0, '28', 4096, place * 10**6)
            for place, count in enumerate((1, 2, 5, 3), 1)
            for _ in range(count)]
    rows.append((1, 0, '2a', 8192, 4 * 10**6))
    rows.append((1, 0, '35', 512, 1))  # Not a read or write.
    put_cloudphysics(tmp_path, rows)
    work = load.published('cloudphysics', tmp_path)
    requests = all_requests(work)
    assert len(requests) == 12
    assert requests[-1].flags & WRITE and requests[-1].length == 8192
    assert sorted({request.offset for request in requests}) == [
        0, 4096, 8192, 12288]
    # Five blocks, of which a region has two: the third place is alone
    # with the busiest class or shares it with the fourth.
    best = max(work.ranks, key=lambda class_id: work.ranks[class_id])
    assert best == 12
    assert {request.class_id for request in requests
            if request.offset == 8192} == {12}


def test_a_long_request_of_a_trace_is_cut_and_chained(tmp_path):
    put_cloudphysics(tmp_path, [(1, 0, '28', 5 * MIB // 2, 8)])
    requests = all_requests(load.published('cloudphysics', tmp_path))
    assert [request.length for request in requests] == [MIB, MIB, MIB // 2]
    assert [bool(request.flags & CHAINED) for request in requests] == [
        False, True, True]
    driver.encode(requests)


@pytest.mark.skipif(not shutil.which('zstd'), reason='needs zstd')
def test_arc_traces_are_read_as_far_as_wanted(tmp_path):
    def put(text):
        subprocess.run(['zstd', '-qfo', str(tmp_path / 'p6.lis.zst')],
                       input=text.encode(), check=True)

    put(''.join('%d 8 0 %d\n' % (8 * n, n) for n in range(50)))
    work = load.published('p6', tmp_path, count=20)
    assert [request.length for request in all_requests(work)] == [4096] * 20
    put('8 8 0 0\nnonsense\n')
    with pytest.raises(load.NoTrace, match='line 2'):
        load.published('p6', tmp_path)


def test_a_trace_that_is_not_there_is_said(tmp_path):
    with pytest.raises(load.NoTrace, match='no such trace'):
        load.published('oltp', tmp_path)


def test_the_check_reads_all_that_was_written():
    work = load.plain(count=500, range_bytes=32 * MIB)
    seen = load.checks(work)
    assert not seen.measured
    covered = {request.offset for request in seen.requests}
    for request in all_requests(work):
        if request.flags & WRITE:
            assert request.offset // MIB * MIB in covered
    assert all(not request.flags for request in seen.requests)


def test_chunk_runs_differ_and_have_the_shares():
    plan = chunks.Plan(scale=256)
    work = chunks.workload(plan)
    first, second = work.phases
    assert first.seconds == pytest.approx(360 / 256)
    assert first.requests != second.requests
    assert {request.length for request in first.requests} == {8192}
    writes = sum(1 for request in first.requests if request.flags & WRITE)
    assert writes / len(first.requests) == pytest.approx(0.1, abs=0.01)
    assert max(request.offset for request in first.requests) < 20 * MIB
    assert work.cache_bytes > 20 * MIB
