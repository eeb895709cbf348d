"""Single flight, without S3: who leads, who waits, who gives way."""

from __future__ import annotations

import threading
import time

import pytest

from swift_dss.core.errors import RemoteUnavailable
from swift_dss.core.version import VersionId
from swift_dss.gateway.down.flights import Flights

KEY = (VersionId('sda', 0, 'a' * 32, '1'), 100)


def _soon():
    return time.monotonic() + 5.0


@pytest.fixture
def leads():
    return []


def test_the_second_reader_joins_the_first(leads):
    flights = Flights(2)
    first = flights.join(KEY, _soon(), leads.append)
    second = flights.join(KEY, _soon(), leads.append)
    assert first is second and leads == [first]
    first.publish(b'abc')
    first.publish(b'def')
    flights.land(first, None, False)
    assert first.read(100, 99, _soon()) == b'abc'
    assert first.read(102, 99, _soon()) == b'c'
    assert second.read(103, 2, _soon()) == b'de'
    assert second.read(106, 1, _soon()) is None, 'past its end: look again'
    flights.leave(first)
    assert flights.counts() == (0, 1)
    flights.leave(second)
    assert flights.counts() == (0, 0)


def test_a_reader_sees_bytes_as_they_are_published(leads):
    flights = Flights(2)
    flight = flights.join(KEY, _soon(), leads.append)
    got = []
    reader = threading.Thread(
        target=lambda: got.append(flight.read(100, 9, _soon())))
    reader.start()
    flight.publish(b'first')
    reader.join(5.0)
    assert got == [b'first']


def test_an_error_reaches_its_readers_and_is_not_cached(leads):
    flights = Flights(2)
    flight = flights.join(KEY, _soon(), leads.append)
    flight.publish(b'ab')
    flights.land(flight, RemoteUnavailable('no', 1), False)
    assert flight.read(100, 9, _soon()) == b'ab', 'good bytes still count'
    with pytest.raises(RemoteUnavailable):
        flight.read(102, 9, _soon())
    again = flights.join(KEY, _soon(), leads.append)
    assert again is not flight and len(leads) == 2


def test_a_deadline_is_kept(leads):
    flights = Flights(2)
    flight = flights.join(KEY, _soon(), leads.append)
    with pytest.raises(TimeoutError):
        flight.read(100, 1, time.monotonic() + 0.05)


def test_buffers_are_bounded_and_stored_ones_give_way(leads):
    flights = Flights(1)
    first = flights.join(KEY, _soon(), leads.append)
    other = (KEY[0], 200)
    assert flights.join(other, time.monotonic(), leads.append) is None
    first.publish(b'abc')
    flights.land(first, None, True)
    second = flights.join(other, time.monotonic(), leads.append)
    assert second is not None
    assert first.read(100, 3, _soon()) is None, 'now on local disk'
    assert flights.counts() == (1, 1)


def test_a_reader_that_waits_for_room_gets_it(leads):
    flights = Flights(1)
    first = flights.join(KEY, _soon(), leads.append)
    got = []
    waiter = threading.Thread(target=lambda: got.append(
        flights.join((KEY[0], 200), _soon(), leads.append)))
    waiter.start()
    flights.land(first, None, False)
    flights.leave(first)
    waiter.join(5.0)
    assert got and got[0] is not None


def test_a_leader_that_cannot_start_leaves_nothing_behind():
    flights = Flights(1)

    def fail(_flight):
        raise RuntimeError('pool is down')
    with pytest.raises(RuntimeError):
        flights.join(KEY, _soon(), fail)
    assert flights.counts() == (0, 0)


def test_a_part_fetched_ahead_is_given_up_when_nobody_wants_it(leads):
    flights = Flights(2)
    flight = flights.join(KEY, _soon(), leads.append, ahead=True)
    assert not flights.given_up(flight), 'who asked for it still waits'
    flights.leave(flight)
    assert flights.given_up(flight)
    # Whoever comes now must not get its error: it is a new flight.
    again = flights.join(KEY, _soon(), leads.append)
    assert again is not flight
    flights.land(flight, RemoteUnavailable('given up', 1), False)
    assert flights.join(KEY, _soon(), leads.append) is again


def test_a_reader_makes_a_part_that_was_fetched_ahead_his_own(leads):
    flights = Flights(2)
    flight = flights.join(KEY, _soon(), leads.append, ahead=True)
    assert flights.join(KEY, _soon(), leads.append) is flight
    flights.leave(flight)
    flights.leave(flight)
    assert not flights.given_up(flight), 'a reader who leaves ends no fill'


def test_nobody_gives_up_what_a_reader_asked_for(leads):
    flights = Flights(2)
    flight = flights.join(KEY, _soon(), leads.append)
    assert flights.join(KEY, _soon(), leads.append, ahead=True) is flight
    flights.leave(flight)
    flights.leave(flight)
    assert not flights.given_up(flight)


def test_who_fetches_ahead_can_wait_until_it_is_stored(leads):
    flights = Flights(2)
    flight = flights.join(KEY, _soon(), leads.append, ahead=True)
    flight.publish(b'abc')
    assert flight.read(100, 3, _soon()) == b'abc'
    assert not flight.wait(time.monotonic() + 0.01)
    flights.land(flight, None, True)
    assert flight.wait(_soon()) and flight.stored
