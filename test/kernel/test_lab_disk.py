"""The disk model against times worked out by hand, and against itself."""

from __future__ import annotations

import pytest

from swift_dss.block.lab.devices import PRESETS

#: A disk to reckon with: a turn of 8 ms, one zone of 1000 sectors a track
#: (64 MB/s over 8 ms), an arm that takes 1 ms and 2 ms for all the way.
#: 64 MiB are 131072 sectors on 132 tracks.
PLAIN = ('d=hdd,rotation_ns=8000000,outer_rate=64000000,inner_rate=64000000,'
         'zones=1,seek_base_ns=1000000,seek_sqrt_ns=0,'
         'seek_linear_ns=2000000,write_settle_ns=500000,switch_ns=0,'
         'overhead_ns=100000,interface_rate=512000000,depth=1,'
         'cache_bytes=%d,ahead_bytes=%d:64M')
#: With a switch of 1 ms a track has 1125 sectors, so the rate is the same.
SKEWED = PLAIN.replace('switch_ns=0', 'switch_ns=1000000')

#: In virtual time the one thing that costs the processor time is to look at
#: the clock: 256 ns, by the program and by the kernel on a request's way.
#: What is reckoned from the start of the steps before has theirs in it.
CLOCK_NS = 3000
#: To start threads looks at it more often.
THREADS_NS = 15000


def times(in_lab, device, *steps):
    """Nanoseconds that each timed step took."""
    result = in_lab('lab_disk.py', '/dev/mapper/d', 'script', *steps,
                    devices=[device])
    return [int(line) for line in result.output.split()]


def close(got, wanted, within=CLOCK_NS):
    assert len(got) == len(wanted), got
    for number, (shown, other) in enumerate(zip(got, wanted)):
        assert abs(shown - other) <= within, (number, got, wanted)


def test_read_waits_for_its_sector_to_come_round(in_lab):
    # A sector passes in 8 us. Sector 100 is under the head 0.8 ms into a
    # turn: asked for at its start, it is there after that (the overhead of
    # 0.1 ms is over by then), and eight sectors pass in 64 us.
    # Sector 8 passed at 64 us, before the overhead was over: a turn more.
    close(times(in_lab, PLAIN % (0, 0),
                'at:8000000', 'read:100:8', 'at:8000000', 'read:8:8'),
          [800000 + 64000, 8000000 + 64000 + 64000])


def test_arm_takes_time_by_distance(in_lab):
    # Track 66 of 132: 0.1 + 1 + 2 * 0.5 ms, and sector 500 of it passes
    # at 4 ms; from there to track 0: 2.1 ms, and sector 300 is at 2.4 ms.
    # With 20 bits after the point half is exact.
    close(times(in_lab, PLAIN % (0, 0), 'at:8000000', 'read:66500:8',
                'at:8000000', 'read:300:8'),
          [4000000 + 64000, 2400000 + 64000])


def test_arm_that_comes_too_late_waits_a_turn(in_lab):
    # The same way takes 2.1 ms, and sector 200 passed at 1.6 ms.
    close(times(in_lab, PLAIN % (0, 0), 'at:8000000', 'read:66200:8'),
          [8000000 + 1600000 + 64000])


def test_write_without_cache_settles_first(in_lab):
    # 0.1 ms overhead and 0.5 ms settling, as the head has not written: sector
    # 60 (0.48 ms) is missed, a read would not have missed it.
    close(times(in_lab, PLAIN % (0, 0), 'at:8000000', 'write:60:8',
                'at:8000000', 'read:60:8'),
          [8000000 + 480000 + 64000, 480000 + 64000])


def test_write_where_the_head_writes_has_nothing_to_settle(in_lab):
    # On the same track sector 60 is met. From track 66 the way takes 2.1 ms
    # and settling 0.5: sector 320 (2.56 ms) is missed, 340 (2.72 ms) is not.
    close(times(in_lab, PLAIN % (0, 0), 'at:8000000', 'write:100:8',
                'at:8000000', 'write:60:8', 'at:8000000', 'write:66500:8',
                'at:8000000', 'write:320:8', 'at:8000000', 'write:66500:8',
                'at:8000000', 'write:340:8'),
          [800000 + 64000, 480000 + 64000, 4000000 + 64000,
           8000000 + 2560000 + 64000, 4000000 + 64000, 2720000 + 64000])


def test_gap_between_writes_of_the_cache_passes_under_the_head(in_lab):
    # Sectors 100..107 are written until 0.864 ms, 116..123 wait in the cache
    # then: after a gap of 64 us they are written until 0.992 ms. Were they
    # commands of the medium, their overhead would miss the gap: a turn more.
    close(times(in_lab, PLAIN % (1 << 20, 0), 'at:8000000', 'write:100:8',
                'write:116:8', 'sync'),
          [108000, 108000, 992000 - 216000 + 100000])


def test_gap_over_the_end_of_a_track_costs_a_switch(in_lab):
    # A sector is 64/9 us. Sectors 1100..1115 are written until 7.936 ms. Track
    # 1 begins with sector 1125, skewed by 1 ms: 1132 is there 0.05 ms later,
    # at 9.05 ms, and 16 sectors pass in 0.114 ms.
    close(times(in_lab, SKEWED % (1 << 20, 0), 'at:8000000',
                'write:1100:16', 'write:1132:16', 'sync'),
          [116000, 116000, 9163556 - 232000 + 100000])


def test_disk_understands_a_command_while_the_medium_works(in_lab):
    # With room for two in the disk the second's overhead is over by 0.864 ms,
    # when the first is done: 16 sectors later it is met. With room for one it
    # is told of then, and misses it.
    for depth, second in ((2, 992000), (1, 8000000 + 992000)):
        close(times(in_lab, PLAIN.replace('depth=1', 'depth=%d' % depth) % (
            0, 0), 'at:8000000', 'read:100:8+read:116:8'),
            [864000, second - 1000], THREADS_NS)


def test_small_operations_of_the_medium_are_counted_apart(in_lab):
    # 8 sectors from 0.8 ms on; 129 are more than 64 KiB.
    result = in_lab('lab_disk.py', '/dev/mapper/d', 'counts', 'at:8000000',
                    'read:100:8', 'at:8000000', 'read:200:129',
                    devices=[PLAIN % (0, 0)])
    counts = dict(word.split('=') for word in result.output.split()
                  if '=' in word)
    assert counts['small'] == '1'
    assert abs(int(counts['small_ns']) - 864000) < CLOCK_NS
    assert abs(int(counts['busy_ns']) - 864000 - 2632000) < 2 * CLOCK_NS


def test_cached_write_costs_the_interface_and_flush_the_medium(in_lab):
    # 8 sectors at 512 MB/s are 8 us. At once the medium begins: 0.6 ms,
    # sector 100 at 0.8 ms, done at 0.864 ms. The flush comes at 0.108 ms,
    # waits for that, and costs the interface's 0.1 ms.
    close(times(in_lab, PLAIN % (1 << 20, 0), 'at:8000000',
                'write:100:8', 'sync', 'sync'),
          [108000, 864000 - 108000 + 100000, 100000])


def test_read_finds_what_the_write_cache_has(in_lab):
    # 0.9 ms: the write of 1 MiB is on its way to the medium (8 ms and
    # more), so what comes after it is still in the cache.
    got = times(in_lab, PLAIN % (4 << 20, 0), 'at:8000000',
                'write:0:2048', 'write:60000:8', 'read:60000:8')
    close(got[1:], [108000, 108000])


def test_write_waits_for_room_in_the_cache(in_lab):
    # 2048 sectors fill the cache. The medium takes them all at once, when
    # they come: what is being written is out of the cache. So the next
    # 2048 have room, and the third wait for the first's end: from the
    # start 0.1 + 0.5 ms, a wait until the turn is over, two turns and 48
    # sectors = 8 + 16.384 ms, and then their own way through the interface.
    got = times(in_lab, PLAIN % (1 << 20, 0), 'at:8000000',
                'write:0:2048', 'write:10000:2048', 'write:20000:2048')
    through = 100000 + 2048000
    close(got, [through, through,
                8000000 + 16384000 - 2 * through + through])


def test_disk_reads_on_and_gives_it_at_once(in_lab):
    # After sectors 100..107 it reads on. 1 ms later 125 more have passed:
    # the next 8 cost the interface. Sectors 300..307 pass at 2.4 ms: asked
    # for at 0.864 + 1 + 0.108 = 1.972 ms they are there at 2.464 ms.
    close(times(in_lab, PLAIN % (0, 1 << 20), 'at:8000000', 'read:100:8',
                'pause:1000000', 'read:108:8', 'read:300:8'),
          [864000, 108000, 2464000 - 1972000])


SSD = ('d=sata-ssd,channels=4,page_bytes=16384,read_ns=50000,'
       'program_ns=400000,collect_ns=0,channel_rate=1024000000,'
       'overhead_ns=10000,write_ns=20000,interface_rate=512000000,'
       'depth=32,cache_bytes=%d,volatile=%d,flush_ns=5000:64M')


def test_flash_read_takes_its_steps(in_lab):
    # 4 KiB: 10 us, 50 us, 4 us over the channel, 8 us to the host.
    # 128 KiB are 8 pages on 4 channels: two reads of 66 us on each, then
    # the last page's 32 us: 10 + 132 + 32; the interface alone would need
    # 10 + 256 and decides.
    close(times(in_lab, SSD % (0, 0), 'read:0:8', 'read:0:256'),
          [72000, 266000])


def test_flash_write_is_done_in_the_buffer_and_flush_may_wait(in_lab):
    # 10 + 8 + 20 us; the page part takes 100 us to program from when the
    # write began, so a flush after 38 us waits 62 us, and costs 5.
    close(times(in_lab, SSD % (1 << 20, 1), 'write:0:8', 'sync',
                'pause:1000000', 'sync'),
          [38000, 62000 + 5000, 5000])
    close(times(in_lab, SSD % (1 << 20, 0), 'write:0:8', 'sync'),
          [38000, 5000])


def test_flash_collects_what_is_written_in_order(in_lab):
    # Each 4 KiB are programmed for 100 us, and collected for 1 ms more but
    # where they go on from a write before: 0, 64 and 8 begin at 0, 38 and
    # 76 us, all on the channel of their page. The first two channels are
    # done after 1,100 us; the first has 100 us more to do: 1,200.
    disk = (SSD % (1 << 20, 1)).replace('collect_ns=0', 'collect_ns=1000000')
    close(times(in_lab, disk, 'write:0:8', 'write:64:8', 'write:8:8',
                'sync'), [38000, 38000, 38000, 1200000 - 114000 + 5000])


def test_flash_read_waits_for_the_page_that_is_programmed(in_lab):
    # A page of 16 KiB is programmed for 400 us from time 0. The write is
    # done at 10 + 32 + 20 = 62 us; a read of the same channel is told at
    # 72 us, begins at 400 us and takes 50 + 4 + 8: another channel's read
    # does not wait.
    close(times(in_lab, SSD % (1 << 20, 0), 'write:0:32', 'read:0:8',
                'pause:9000000', 'write:0:32', 'read:32:8'),
          [62000, 400000 - 62000 + 62000, 62000, 72000])


def test_flash_reads_go_before_a_further_page(in_lab):
    # Two pages on one channel, until 400 and 800 us; both are in the buffer
    # after 124. The first read waits for the first page: 400 + 50 + 4 + 8.
    # The second has the channel next: 454 + 54 + 8.
    close(times(in_lab, SSD % (1 << 20, 0), 'write:0:32', 'write:128:32',
                'read:0:8+read:0:8'),
          [62000, 62000, 462000 - 124000, 516000 - 125000],
          THREADS_NS)
    # When a flush waits for the buffer, the second page comes between them:
    # 454 + 400. The flush costs 5 more, the read 54 + 8.
    close(times(in_lab, SSD % (1 << 20, 1), 'write:0:32', 'write:128:32',
                'sync+read:0:8+read:0:8'),
          [62000, 62000, 859000 - 124000, 462000 - 125000,
           916000 - 126000], THREADS_NS)


def test_flash_request_after_a_pause_is_not_served_before_it_came(in_lab):
    # What the first write left to program ended long before.
    close(times(in_lab, SSD % (1 << 20, 0), 'write:0:8', 'pause:9000000',
                'write:64:8', 'pause:9000000', 'read:0:8',
                'pause:9000000', 'sync'),
          [38000, 38000, 72000, 5000])


@pytest.mark.parametrize('preset', [name for name in PRESETS
                                    if name != 'raw'])
def test_same_load_takes_the_same_time_on_every_run(in_lab, preset):
    runs = [in_lab('lab_disk.py', '/dev/mapper/d', 'loads',
                   devices=['d=%s:256M' % preset]) for _ in range(3)]
    assert runs[0].output == runs[1].output == runs[2].output
    assert len({run.virtual_seconds for run in runs}) == 1
    # And they are not simply all the same figure.
    reads = eval(runs[0].output.splitlines()[1][len('mixed'):])
    assert len(set(reads)) > 20


def test_another_disk_takes_another_time(in_lab):
    first, other = (in_lab('lab_disk.py', '/dev/mapper/d', 'loads',
                           devices=['d=hdd,rotation_ns=%d:256M' % turn])
                    for turn in (8333333, 8333334))
    assert first.output != other.output
