"""``dss-classes.conf`` text to a class table.

One section a class, ``[class:<id>]``, whose options are the fields of
:class:`~swift_dss.core.classes.ClassSpec`; ``[DEFAULT]`` holds options for
every class that does not say otherwise. ``name`` and ``rank`` must be
given per class, and both are unique: two classes of one rank would leave
the order of eviction open. ``etc/dss-classes.conf-sample`` explains each.

A table is accepted whole or not at all.
"""

from __future__ import annotations

import configparser
import dataclasses
import re
from typing import Any, Dict, List, Tuple

from swift_dss.core.classes import (
    EVERY_COPY, Allocate, ClassSpec, ClassTable, Direct, PrefetchHint,
    RemoteMode, WriteMode)
from swift_dss.core.errors import BadConfig
from swift_dss.core.limits import CLASS_ID_MAX, UNCLASSIFIED

#: A name may stand where an id may, and inside ``<offset>-<len>-<class>``.
_NAME = re.compile(r'^[a-z][a-z0-9_-]{0,31}$')
#: As S3 writes them; RGW and MinIO let operators invent some.
_STORAGE_CLASS = re.compile(r'^[A-Z][A-Z0-9_-]{0,31}$')
_SECTION = re.compile(r'^class:(0|[1-9][0-9]?)$')
_RESERVED = frozenset(('all', 'any', 'default', 'false', 'none', 'true'))
_ENUMS = {'allocate': Allocate, 'write': WriteMode, 'remote': RemoteMode,
          'prefetch': PrefetchHint, 'direct': Direct}
_INNER = ('lru', 's3fifo', 'sieve', 'gdsf', 'sarc')
_SHARES = frozenset(('floor', 'cap', 'dirty_cap'))
#: Option: least and greatest value.
_WHOLE = {'rank': (0, 1000000), 'wan_share': (1, 1000),
          'deadline_ms': (0, 3600000), 'weight': (1, 1000),
          'warm_copies': (1, EVERY_COPY),
          'cutoff_kib': (0, 1048576)}
_FLAGS = frozenset((
    'pin', 'bundle', 'evict_on_hit', 'no_allocate', 's3_restore'))
_TRUE = frozenset(('true', 'yes', 'on', '1'))
_FALSE = frozenset(('false', 'no', 'off', '0'))
_OPTIONS = frozenset(
    field.name for field in dataclasses.fields(ClassSpec)
    if field.name != 'class_id')
_PER_CLASS = ('name', 'rank')
#: Floors are decimal fractions: their sum may miss 1 by a rounding.
_ROUNDING = 1e-9


def parse(text: str, source: str = 'dss-classes.conf') -> ClassTable:
    """The class table that ``text`` spells.

    :param source: what to call the text in errors
    :raises BadConfig: names the section, the option and the reason
    """
    parser = configparser.ConfigParser(
        interpolation=None, default_section='DEFAULT', strict=True)
    try:
        parser.read_string(text, source)
    except configparser.Error as err:
        raise BadConfig('%s: %s' % (source, _one_line(err))) from err
    for option in parser.defaults():
        if option in _PER_CLASS:
            raise BadConfig('%s: [DEFAULT] %s: must be given per class'
                            % (source, option))
    specs = [_spec(section, dict(parser.items(section)), source)
             for section in parser.sections()]
    if not specs:
        raise BadConfig('%s: no [class:<id>] section' % source)
    _check_together(specs, source)
    return ClassTable.of(specs)


def _spec(section: str, options: Dict[str, str], source: str) -> ClassSpec:
    match = _SECTION.match(section)
    if not match or int(match.group(1)) > CLASS_ID_MAX:
        raise BadConfig('%s: [%s] is not [class:<id>] with an id of 0..%d'
                        % (source, section, CLASS_ID_MAX))
    class_id = int(match.group(1))
    values: Dict[str, Any] = {}
    for option, text in options.items():
        where = '%s: [%s] %s' % (source, section, option)
        if option not in _OPTIONS:
            raise BadConfig('%s: no such option; there are %s' % (
                where, ', '.join(sorted(_OPTIONS))))
        values[option] = _value(where, option, text.strip())
    for option in _PER_CLASS:
        if option not in values:
            raise BadConfig('%s: [%s] %s: is missing'
                            % (source, section, option))
    spec = ClassSpec(class_id=class_id, **values)
    _check_spec(spec, '%s: [%s]' % (source, section))
    return spec


def _value(where: str, option: str, text: str) -> Any:
    if option == 'name':
        return _name(where, text)
    if option == 's3_storage_class':
        return _storage_classes(where, text)
    if option in _ENUMS:
        choices = [item.value for item in _ENUMS[option]]
        _check_choice(where, text, choices)
        return _ENUMS[option](text.lower())
    if option == 'inner':
        _check_choice(where, text, _INNER)
        return text.lower()
    if option in _FLAGS:
        if text.lower() not in _TRUE | _FALSE:
            raise BadConfig('%s: %r is neither true nor false'
                            % (where, text))
        return text.lower() in _TRUE
    if option in _SHARES:
        return _share(where, text)
    least, most = _WHOLE[option]
    if not re.match(r'^[0-9]{1,9}$', text, re.ASCII) or \
            not least <= int(text) <= most:
        raise BadConfig('%s: %r is not a whole number of %d..%d'
                        % (where, text, least, most))
    return int(text)


def _name(where: str, text: str) -> str:
    name = text.lower()
    if name.isdigit():
        raise BadConfig('%s: %r would read as a class id' % (where, text))
    if not _NAME.match(name):
        raise BadConfig(
            '%s: %r is not a letter and then up to 31 letters, digits, '
            '"-" or "_"' % (where, text))
    if name in _RESERVED:
        raise BadConfig('%s: %r is reserved' % (where, text))
    return name


def _storage_classes(where: str, text: str) -> Tuple[str, ...]:
    names = tuple(name.strip() for name in text.split(',') if name.strip())
    for name in names:
        if not _STORAGE_CLASS.match(name):
            raise BadConfig(
                '%s: %r is not a storage class of S3: a capital, and then up '
                'to 31 capitals, digits, "_" or "-"' % (where, name))
    return names


def _check_choice(where: str, text: str, choices: Any) -> None:
    if text.lower() not in choices:
        raise BadConfig('%s: %r is not one of %s'
                        % (where, text, ', '.join(choices)))


def _share(where: str, text: str) -> float:
    match = re.match(r'^([0-9]{1,3}(?:\.[0-9]{1,9})?)\s*(%?)$', text,
                     re.ASCII)
    number = float(match.group(1)) if match else -1.0
    if match and match.group(2):
        number /= 100
    if not 0 <= number <= 1:
        raise BadConfig('%s: %r is not a share of 0..1 or 0%%..100%%'
                        % (where, text))
    return number


def _check_spec(spec: ClassSpec, where: str) -> None:
    """Check the options of a class against one another."""
    if spec.cap < spec.floor:
        raise BadConfig('%s cap: %g is below the floor of %g'
                        % (where, spec.cap, spec.floor))
    if spec.pin and spec.allocate is Allocate.NEVER:
        raise BadConfig('%s pin: bytes that never go to the SSD cannot be '
                        'kept there (allocate = never)' % where)
    if spec.pin and spec.remote is RemoteMode.ONLY:
        raise BadConfig('%s pin: bytes that live only in S3 cannot be kept '
                        'on the SSD (remote = only)' % where)
    if spec.s3_restore and not spec.pin and spec.direct is not Direct.SSD:
        raise BadConfig('%s s3_restore: restored bytes have to stay on the '
                        'SSD, so give it pin = true (or, for the engine '
                        'block, direct = ssd)' % where)
    _check_block(spec, where)
    if spec.name == 'unclassified' and spec.class_id != UNCLASSIFIED:
        raise BadConfig('%s name: "unclassified" is class 0' % where)


def _check_block(spec: ClassSpec, where: str) -> None:
    """Refuse options that the kernel's cache cannot combine."""
    stays_away = spec.no_allocate or spec.allocate is Allocate.NEVER
    if spec.direct is Direct.SSD and stays_away:
        raise BadConfig('%s direct: to the SSD, and kept away from it '
                        '(no_allocate, or allocate = never)' % where)
    if spec.pin and (spec.no_allocate or spec.evict_on_hit
                     or spec.direct is Direct.HDD):
        raise BadConfig('%s pin: bytes that are kept away from the SSD or '
                        'leave it cannot be kept there (no_allocate, '
                        'evict_on_hit, direct = hdd)' % where)


def _check_together(specs: List[ClassSpec], source: str) -> None:
    for option in _PER_CLASS:
        seen: Dict[Any, int] = {}
        for spec in specs:
            value = getattr(spec, option)
            if value in seen:
                raise BadConfig(
                    '%s: [class:%d] %s: %s is taken by [class:%d]' % (
                        source, spec.class_id, option, value, seen[value]))
            seen[value] = spec.class_id
    restoring = [spec.class_id for spec in specs if spec.s3_restore]
    if len(restoring) > 1:
        raise BadConfig('%s: [class:%d] s3_restore: [class:%d] has it, and '
                        'one class at most may' % (
                            source, restoring[1], restoring[0]))
    names: Dict[str, int] = {}
    for spec in specs:
        for name in spec.s3_storage_class:
            if name in names:
                raise BadConfig(
                    '%s: [class:%d] s3_storage_class: %s is taken by '
                    '[class:%d]' % (source, spec.class_id, name,
                                    names[name]))
            names[name] = spec.class_id
    total = sum(spec.floor for spec in specs)
    if total > 1 + _ROUNDING:
        raise BadConfig('%s: the floors of all classes add up to %g, more '
                        'than the whole SSD' % (source, total))


def _one_line(err: Exception) -> str:
    return ' '.join(str(err).split())
