"""Seeded generators: the same arguments give the same trace, anywhere.

``gen:NAME,key=value,...`` stands where a trace file may stand. Each generator
documents its workload and the source of the distribution; its keyword
arguments are the keys.
"""

from __future__ import annotations

import inspect
from typing import Any, Callable, Dict, List

from swift_dss.bench import cacs as cacs_objects
from swift_dss.core.errors import BadConfig
from swift_dss.replay.traces import sessions
from swift_dss.replay.traces.model import (
    Trace, Verb, numpy, renumbered)

PREFIX = 'gen:'
KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30
#: Classes that generators with few classes use: names of the sample table.
GOLD, SILVER, BRONZE = 25, 26, 27


def _dice(seed: int, name: str) -> Any:
    np = numpy()
    return np.random.Generator(np.random.PCG64(
        [seed] + [ord(letter) for letter in name]))


def _arrivals(dice: Any, requests: int, rate: float) -> Any:
    """Poisson arrivals, ms."""
    np = numpy()
    return np.cumsum(-np.log1p(-dice.random(requests)) * (1000.0 / rate))


def _zipf_ranks(dice: Any, requests: int, objects: int,
                alpha: float) -> Any:
    """Ranks from 0, of which rank r is asked for in proportion to
    ``(r + 1) ** -alpha``."""
    np = numpy()
    weights = np.cumsum(np.arange(1, objects + 1, dtype='f8') ** -alpha)
    return np.minimum(objects - 1, np.searchsorted(
        weights, dice.random(requests) * weights[-1], 'right'))


def _whole(name: str, at_ms: Any, objects: Any, sizes_by_object: Any,
           class_by_object: Any, writes: Any = None,
           accounts_by_object: Any = None) -> Trace:
    np = numpy()
    sizes = sizes_by_object[objects].astype('int64')
    zero = np.zeros(len(objects), dtype='int64')
    accounts = zero if accounts_by_object is None \
        else accounts_by_object[objects]
    verbs = zero.astype('uint8') if writes is None else np.where(
        writes, int(Verb.WRITE), int(Verb.READ)).astype('uint8')
    return Trace(name, at_ms, verbs, objects, zero, sizes, sizes,
                 class_by_object[objects].astype('uint8'), accounts,
                 accounts)


def zipf(requests: int = 1000000, objects: int = 100000,
         alpha: float = 0.9, size: int = 64 * KIB, sigma: float = 0.0,
         writes: float = 0.0, rate: float = 1000.0, seed: int = 1) -> Trace:
    """Independent requests, popularity by Zipf's law; sizes are equal, or
    log-normal around ``size`` with ``sigma``. Class gold for the first
    tenth of the ranks, silver for the next four, bronze for the rest."""
    np = numpy()
    dice = _dice(seed, 'zipf')
    ranks = _zipf_ranks(dice, requests, objects, alpha)
    sizes = np.full(objects, size, dtype='int64')
    if sigma:
        sizes = np.maximum(1, sizes * np.exp(
            sigma * dice.standard_normal(objects))).astype('int64')
    classes = np.full(objects, BRONZE)
    classes[:objects // 2] = SILVER
    classes[:objects // 10] = GOLD
    return _whole('zipf', _arrivals(dice, requests, rate), ranks, sizes,
                  classes, dice.random(requests) < writes)


#: Table I of Sondur and Kant, "Storage on the Edge": users, objects of
#: each, bytes of an object.
ESI = {'tiny': (25, 10000, 4 * KIB), 'small': (25, 10000, 256 * KIB),
       'medium': (5, 10000, 1 * MIB), 'large': (5, 1000, 10 * MIB),
       'huge': (2, 200, 1 * GIB)}


def esi(kinds: str = 'tiny+small+medium+large+huge', share: float = 0.01,
        requests: int = 100000, writes: float = 0.5, rate: float = 100.0,
        seed: int = 1) -> Trace:
    """Table I of "Storage on the Edge": users write and read objects of
    equal size with uniform popularity. ``share`` of each kind's objects is
    used; every kind has a class, tiny the highest, and as many requests as
    any other. Objects are written before they are read."""
    np = numpy()
    dice = _dice(seed, 'esi')
    chosen = kinds.split('+')
    unknown = [name for name in chosen if name not in ESI]
    if unknown:
        raise BadConfig('gen:esi: kinds: %r is not one of %s joined by "+"'
                        % (unknown[0], ', '.join(ESI)))
    sizes: List[int] = []
    owners: List[int] = []
    classes: List[int] = []
    parts = []
    users_before = 0
    for kind in chosen:
        users, each, size = ESI[kind]
        count = max(1, int(each * share))
        parts.append((len(sizes), users * count))
        sizes += [size] * (users * count)
        owners += [users_before + user for user in range(users)
                   for _ in range(count)]
        classes += [11 + list(ESI).index(kind)] * (users * count)
        users_before += users
    which = dice.integers(0, len(parts), requests)
    low = np.array([first for first, _ in parts])[which]
    many = np.array([count for _, count in parts])[which]
    objects = low + (dice.random(requests) * many).astype('int64')
    wanted = dice.random(requests) < writes
    _, first = np.unique(objects, return_index=True)
    wanted[first] = True
    return _whole('esi', _arrivals(dice, requests, rate), objects,
                  np.array(sizes), np.array(classes), wanted,
                  np.array(owners))


def flood(requests: int = 500000, objects: int = 20000, alpha: float = 0.9,
          once: float = 0.3, scans: int = 4, scan_objects: int = 20000,
          size: int = 64 * KIB, rate: float = 1000.0,
          seed: int = 1) -> Trace:
    """Zipf requests (gold) disturbed by a flood of objects that come once
    (bronze) and by scans of a fixed set from end to end (silver), evenly
    spaced in the trace."""
    np = numpy()
    dice = _dice(seed, 'flood')
    scanned = min(scans * scan_objects, requests // 2)
    rest = requests - scanned
    base = _zipf_ranks(dice, rest, objects, alpha)
    is_once = dice.random(rest) < once
    first_once = objects + scan_objects
    base = np.where(is_once, first_once + np.cumsum(is_once) - 1, base)
    total = first_once + int(is_once.sum())
    pieces = []
    each = scanned // max(1, scans)
    for turn in range(scans):
        begin, end = rest * turn // scans, rest * (turn + 1) // scans
        pieces += [base[begin:end],
                   objects + np.arange(each) % scan_objects]
    keys = np.concatenate(pieces) if scans else base
    classes = np.full(total, BRONZE)
    classes[:objects] = GOLD
    classes[objects:first_once] = SILVER
    return _whole('flood', _arrivals(dice, len(keys), rate), keys,
                  np.full(total, size, dtype='int64'), classes)


def cacs(requests: int = 200000, objects: int = 20000, alpha: float = 0.0,
         scale: float = 1.0, rate: float = 100.0, seed: int = 1) -> Trace:
    """Objects by the distribution of Client-aware Cloud Storage, case 1
    (types, sizes and classes of the slide); downloads of whole objects,
    uniform, or by Zipf's law with ranks drawn by lot."""
    np = numpy()
    drawn = cacs_objects.sample(objects, seed, scale)
    dice = _dice(seed, 'cacs')
    ranks = _zipf_ranks(dice, requests, objects, alpha)
    asked = np.argsort(dice.random(objects), kind='stable')[ranks]
    return _whole('cacs', _arrivals(dice, requests, rate), asked,
                  np.array([item.size for item in drawn], dtype='int64'),
                  np.array([item.class_id for item in drawn]))


def bursty(requests: int = 200000, objects: int = 20000, alpha: float = 0.9,
           size: int = 64 * KIB, rate: float = 200.0, burst: float = 20.0,
           on_seconds: float = 2.0, off_seconds: float = 8.0,
           seed: int = 1) -> Trace:
    """Zipf requests that come in bursts: ``burst`` times the rate while
    on, a fifth of it while off; exponential lengths of both."""
    np = numpy()
    made = zipf(requests, objects, alpha, size, rate=1.0, seed=seed)
    dice = _dice(seed, 'bursty')
    gaps = -np.log1p(-dice.random(requests)) * 1000.0
    at_ms, now, turn = [], 0.0, 0
    gap_list = gaps.tolist()
    on, until = True, 0.0
    while turn < requests:
        if now >= until:
            on = not on
            until = now - np.log1p(-dice.random()) * 1000.0 * (
                on_seconds if on else off_seconds)
        now = now + gap_list[turn] / (rate * (burst if on else 0.2))
        at_ms.append(now)
        turn += 1
    made.name, made.at_ms = 'bursty', np.array(at_ms)
    return made


GENERATORS: Dict[str, Callable[..., Trace]] = {
    'zipf': zipf, 'esi': esi, 'streams': sessions.streams,
    'chains': sessions.chains, 'flood': flood, 'cacs': cacs,
    'bursty': bursty}


def generate(spec: str) -> Trace:
    """The trace that ``gen:NAME,key=value,...`` asks for.

    :raises BadConfig: names the key and the reason
    """
    name, *pairs = spec[len(PREFIX):].split(',')
    maker = GENERATORS.get(name)
    if maker is None:
        raise BadConfig('%s: %r is not one of %s' % (
            spec, name, ', '.join(GENERATORS)))
    known = inspect.signature(maker).parameters
    values: Dict[str, Any] = {}
    for pair in pairs:
        key, equals, text = pair.partition('=')
        if not equals or key not in known:
            raise BadConfig('%s: %r is not KEY=VALUE with a key of %s' % (
                spec, pair, ', '.join(known)))
        values[key] = _value(spec, key, text, known[key].default)
    made = renumbered(maker(**values))
    made.name = spec[len(PREFIX):]
    return made


def _value(spec: str, key: str, text: str, default: Any) -> Any:
    if isinstance(default, str):
        return text
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if number < 0 or isinstance(default, int) and number != int(number):
        raise BadConfig('%s: %s: %r is not a %snumber of at least 0' % (
            spec, key, text, 'whole ' if isinstance(default, int) else ''))
    if number < 1 and key in ('requests', 'objects', 'size', 'clients'):
        raise BadConfig('%s: %s: %s is less than 1' % (spec, key, text))
    return int(number) if isinstance(default, int) else number
