"""Which class each request of a replay has, and how classes are treated.

``--classes RULE``:

==================  ====================================================
trace               as in the trace (class 0 where it names none)
none                class 0 for all
size:A,B,...        by the size of the object: up to A, up to B, ...; the
                    smallest are class 11 and rank highest
region:N            volumes are cut into N regions with as many blocks
                    each, the one with most requests ranks highest
account             one class an account, the busiest ranks highest
rules:FILE          by the rules of ``dss-rules.conf`` (size, name, account)
==================  ====================================================
"""

from __future__ import annotations

from typing import Any, Dict, List, Optional

from swift_dss.aio import tables
from swift_dss.core.classes import ClassSpec, ClassTable
from swift_dss.core.errors import BadConfig
from swift_dss.core.limits import CLASS_ID_MAX, UNCLASSIFIED
from swift_dss.core.rules import RequestFacts, Rules
from swift_dss.replay.traces.model import Trace, numpy
from swift_dss.strategy.classify import first_match
from swift_dss.wire.settings import classtable, rules

FIRST_CLASS = 11
_UNITS = {'k': 1 << 10, 'm': 1 << 20, 'g': 1 << 30, 't': 1 << 40}


def size_of(option: str, text: str) -> int:
    """``64k`` to 65536.

    :raises BadConfig: names the option
    """
    unit = _UNITS.get(text[-1:].lower(), 0)
    digits = text[:-1] if unit else text
    if not digits.isdigit() or len(digits) > 15 or not int(digits):
        raise BadConfig('%s: %r is not a number of bytes (units k, m, g, '
                        't)' % (option, text))
    return int(digits) * (unit or 1)


def apply(rule: str, trace: Trace, table: ClassTable) -> Trace:
    """The trace with the classes of ``rule``.

    :raises BadConfig: names the error
    """
    kind, _, rest = rule.partition(':')
    np = numpy()
    if kind == 'trace':
        return trace
    trace.ranked = []
    if kind == 'none':
        trace.class_ids = np.zeros(len(trace), dtype='uint8')
    elif kind == 'size':
        _by_size(trace, [size_of('--classes', part)
                         for part in rest.split(',')])
    elif kind == 'region':
        _by_region(trace, rest)
    elif kind == 'account':
        _by_heat(trace, trace.accounts)
    elif kind == 'rules':
        _by_rules(trace, _rules(rest, table))
    else:
        raise BadConfig('--classes: %r is not one of trace, none, '
                        'size:A,B,..., region:N, account and rules:FILE'
                        % rule)
    return trace


def _by_size(trace: Trace, edges: List[int]) -> None:
    np = numpy()
    if sorted(set(edges)) != edges or \
            FIRST_CLASS + len(edges) > CLASS_ID_MAX:
        raise BadConfig('--classes: sizes do not rise, or are more than %d'
                        % (CLASS_ID_MAX - FIRST_CLASS))
    band = np.searchsorted(np.array(edges), trace.sizes, 'left')
    trace.class_ids = (FIRST_CLASS + band).astype('uint8')
    trace.ranked = [FIRST_CLASS + at
                    for at in reversed(range(len(edges) + 1))]


def _by_region(trace: Trace, text: str) -> None:
    np = numpy()
    most = CLASS_ID_MAX - FIRST_CLASS + 1
    if not text.isdigit() or not 1 <= int(text) <= most:
        raise BadConfig('--classes: region: %r is not a whole number of '
                        '1..%d' % (text, most))
    places = trace.objects.astype('int64') << 40 | \
        trace.starts // max(1, trace.unit_bytes)
    _, inverse = np.unique(places, return_inverse=True)
    inverse = inverse.reshape(-1)
    _by_heat(trace, inverse * int(text) // (int(inverse.max()) + 1))


def _by_heat(trace: Trace, groups: Any) -> None:
    """A class a group, in the order of their numbers."""
    np = numpy()
    unique, inverse = np.unique(groups, return_inverse=True)
    if len(unique) > CLASS_ID_MAX - FIRST_CLASS + 1:
        raise BadConfig('--classes: %d groups are more than there are '
                        'classes' % len(unique))
    inverse = inverse.reshape(-1)
    trace.class_ids = (FIRST_CLASS + inverse).astype('uint8')
    heat = np.bincount(inverse)
    trace.ranked = [FIRST_CLASS + int(at)
                    for at in np.argsort(heat, kind='stable')]


def _rules(path: str, table: ClassTable) -> Rules:
    try:
        with open(path, encoding='utf-8') as source:
            return rules.parse(source.read(), table, path)
    except OSError as err:
        raise BadConfig('--classes: %s: %s' % (path, err.strerror)) from err


def _by_rules(trace: Trace, rules: Rules) -> None:
    """Each object once: rules look at the object, not at the request."""
    np = numpy()
    _, first = np.unique(trace.objects, return_index=True)
    names = trace.object_names
    by_object = np.zeros(int(trace.objects.max()) + 1, dtype='uint8')
    for row in first.tolist():
        number = int(trace.objects[row])
        key = names[number] if names else ''
        account, slash, name = key.partition('/')
        container, cut, obj = name.partition('/')
        rule = first_match(RequestFacts(
            account=account if slash else '',
            container=container if cut else '',
            obj=obj if cut else name if slash else key,
            size=int(trace.sizes[row])), rules)
        by_object[number] = rule.class_id if rule else UNCLASSIFIED
    trace.class_ids = by_object[trace.objects]


def table_for(trace: Trace, path: Optional[str]) -> ClassTable:
    """The class table for a trace: that of the file; else an empty one if
    there is only class 0; else one of the ranks that its rule or maker
    gave; else the shipped sample if it knows all of them; else one in
    which higher ids rank higher.

    :raises BadConfig: the file cannot be used
    """
    if path:
        try:
            with open(path, encoding='utf-8') as source:
                return classtable.parse(source.read(), path)
        except OSError as err:
            raise BadConfig('--table: %s: %s' % (path, err.strerror)) \
                from err
    present = trace.classes()
    if present == [UNCLASSIFIED]:
        # The sample table restricts class 0, which must not bind a trace
        # without classes.
        return ClassTable()
    if trace.ranked:
        return ClassTable.of(
            ClassSpec(class_id, 'c%d' % class_id, 10 + 10 * place)
            for place, class_id in enumerate(trace.ranked))
    sample = classtable.parse(tables.sample_text(tables.CLASSES_SAMPLE),
                              tables.CLASSES_SAMPLE)
    if set(present) <= set(sample.specs):
        return sample
    return ClassTable.of(ClassSpec(class_id, 'c%d' % class_id, class_id)
                         for class_id in present)


def weights_of(text: str, table: ClassTable) -> Dict[int, float]:
    """``--weights``.

    :raises BadConfig: names the part that is wrong
    """
    return _by_class('--weights', text, table, 1e9,
                     'CLASS=W with a class of the table and a number above '
                     '0')


def floors_of(text: str, table: ClassTable) -> Dict[int, float]:
    """``--floors``, as shares of the cache.

    :raises BadConfig: names the part that is wrong
    """
    floors = _by_class('--floors', text, table, 1.0,
                       'CLASS=SHARE with a class of the table and a share '
                       'of the cache')
    if sum(floors.values()) > 1:
        raise BadConfig('--floors: %s is more than the whole cache' % text)
    return floors


def _by_class(option: str, text: str, table: ClassTable, most: float,
              wanted: str) -> Dict[int, float]:
    """Numbers above 0 and up to ``most``; ``5%`` is 0.05."""
    values: Dict[int, float] = {}
    for part in filter(None, text.split(',')):
        name, equals, number = part.partition('=')
        spec = table.by_name(name)
        class_id: Optional[int] = spec.class_id if spec else (
            int(name) if name.isdigit() else None)
        try:
            value = float(number[:-1]) / 100 if number.endswith('%') \
                else float(number)
        except ValueError:
            value = 0.0
        if not equals or class_id is None or not 0 < value <= most:
            raise BadConfig('%s: %r is not %s' % (option, part, wanted))
        values[class_id] = value
    return values
