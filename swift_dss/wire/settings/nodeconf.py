"""``dss.conf`` text to :class:`~swift_dss.core.config.NodeConf`.

Sections ``[dss]``, ``[capacity]`` (``device = folder``, or ``* = folder``
with ``%(device)s`` for all), ``[engine]`` (``device = file|block``),
``[io]``, ``[tier]``, ``[gateway]`` and ``[prefetch]``; every option is named
like the field it sets. Unknown sections and options are errors: a misspelt
option must not silently keep its default. Options of ``[io]``, ``[tier]``,
``[gateway]`` and ``[prefetch]`` may also come from the environment:
``SWIFT_DSS_GATEWAY_SPILL_AT=0.7``.
"""

from __future__ import annotations

import configparser
import dataclasses
from typing import Any, Dict, Mapping, Type, TypeVar
from urllib.parse import urlsplit

from swift_dss.core.config import (
    Admit, Division, GatewayConf, IoConf, NodeConf, PrefetchConf, TierConf)
from swift_dss.core.errors import BadConfig
from swift_dss.core.limits import (
    MAX_BUNDLE_DATA_BYTES, MIN_PREFETCH_STATE_BYTES, RUN_DIR_BYTES)
from swift_dss.wire.node import shards
from swift_dss.wire.settings import admits

_TRUE = frozenset(('true', '1', 'yes', 'on', 't', 'y'))
_FALSE = frozenset(('false', '0', 'no', 'off', 'f', 'n'))
_CHOICES = {
    'carrier': ('auto', 'classified', 'ioprio', 'null'),
    'engine': ('file', 'block'),
    'strategy': ('none', 'seq', 'amp', 'graph', 'combined'),
    'eviction': ('class_ordered', 'weighted', 'lru', 's3fifo', 'sieve',
                 'gdsf', 'sarc'),
    'log_level': ('DEBUG', 'INFO', 'WARNING', 'ERROR', 'CRITICAL'),
    'verify': ('etag', 'readback'),
    'checksums': ('when_required', 'when_supported'),
    'addressing_style': ('path', 'virtual', 'auto'),
}
_SHARES = frozenset((
    'high_watermark', 'low_watermark', 'hdd_high_watermark',
    'hdd_low_watermark', 'dirty_watermark', 'dirty_reserve', 'headroom',
    'throttle_at', 'spill_at',
    'bundle_dead_share', 'pin_share'))
_UNITS = {'k': 1 << 10, 'm': 1 << 20, 'g': 1 << 30, 't': 1 << 40}
#: Past this a float skips whole numbers; no option needs more.
_MAX_NUMBER = float(1 << 53)
_NOTHING: Mapping[str, str] = {}
#: Sections whose options the environment may set, by their variables.
_PREFIXES = {'SWIFT_DSS_%s_' % section.upper(): section
             for section in ('io', 'tier', 'gateway', 'prefetch')}
_Conf = TypeVar('_Conf', IoConf, TierConf, GatewayConf,
                PrefetchConf, NodeConf)


def parse(text: str, source: str = 'dss.conf',
          environ: Mapping[str, str] = _NOTHING) -> NodeConf:
    """The configuration that ``text`` spells.

    :param source: name of the text in errors
    :param environ: variables such as ``SWIFT_DSS_GATEWAY_SPILL_AT``, which
        override the text
    :raises BadConfig: names the section, the option and the reason
    """
    parser = _sections(text, source)

    def options(section: str) -> Dict[str, str]:
        options = dict(parser.items(section)) if section in parser else {}
        options.update(_from_environ(environ, section))
        return options

    conf = NodeConf(
        capacity=options('capacity'),
        engines=_engines(options('engine'), source),
        io=_fill(IoConf, options('io'), 'io', source),
        tier=_fill(TierConf, options('tier'), 'tier', source),
        gateway=_fill(GatewayConf, options('gateway'), 'gateway', source),
        prefetch=_fill(PrefetchConf, options('prefetch'), 'prefetch',
                       source))
    plain = _fill(NodeConf, options('dss'), 'dss', source)
    conf = dataclasses.replace(
        plain, capacity=conf.capacity, engines=conf.engines, io=conf.io,
        tier=conf.tier, gateway=conf.gateway, prefetch=conf.prefetch)
    _check_order(conf.tier, source)
    _check_url(conf.gateway.url, source)
    _check_bundles(conf.gateway, source)
    _check_prefetch(conf.prefetch, source)
    _check_run_dir(conf.run_dir, source)
    return conf


def _sections(text: str, source: str) -> configparser.ConfigParser:
    parser = configparser.ConfigParser(
        interpolation=None, default_section='DEFAULT', strict=True)
    parser.optionxform = str  # type: ignore[assignment]  # device names
    try:
        parser.read_string(text, source)
    except configparser.Error as err:
        raise BadConfig('%s: %s' % (source, err)) from err
    for option in parser.defaults():
        # It would be one of every section, or of none if there is none.
        raise BadConfig('%s: [DEFAULT] %s: this file has no [DEFAULT]; write '
                        'the option in its section' % (source, option))
    known = {'dss', 'capacity', 'engine', 'io', 'tier', 'gateway',
             'prefetch'}
    for section in parser.sections():
        if section not in known:
            raise BadConfig('%s: unknown section [%s]; there are %s' % (
                source, section, ', '.join(sorted(known))))
    return parser


def capacity_path(conf: NodeConf, device: str) -> str:
    """The capacity folder of ``device``; '' if it has none."""
    path = conf.capacity.get(device, conf.capacity.get('*', ''))
    return path.replace('%(device)s', device)


def engine_of(conf: NodeConf, device: str) -> str:
    """The engine that moves bytes between SSD and HDD of a device: ``file``
    (the tier daemon) or ``block`` (the kernel, below its file system).
    """
    return conf.engines.get(device, conf.tier.engine)


def _from_environ(environ: Mapping[str, str],
                  section: str) -> Dict[str, str]:
    return {name[len(prefix):].lower(): value
            for prefix, of in _PREFIXES.items() if of == section
            for name, value in environ.items() if name.startswith(prefix)}


def _engines(options: Mapping[str, str], source: str) -> Dict[str, str]:
    return {device: str(_value('%s: [engine] %s' % (source, device),
                               'engine', text.strip(), ''))
            for device, text in options.items()}


def _fill(kind: Type[_Conf], options: Mapping[str, str], section: str,
          source: str) -> _Conf:
    defaults = kind()
    known = {field.name for field in dataclasses.fields(kind)
             if field.metadata.get('option', True)}
    values: Dict[str, Any] = {}
    for option, text in options.items():
        where = '%s: [%s] %s' % (source, section, option)
        default = getattr(defaults, option, None)
        if option not in known or isinstance(
                default, (dict, IoConf, TierConf, GatewayConf, PrefetchConf)):
            raise BadConfig('%s: no such option' % where)
        values[option] = _value(where, option, text.strip(), default)
    return kind(**values)


def _value(where: str, option: str, text: str, default: Any) -> Any:
    if option in _CHOICES and text not in _CHOICES[option]:
        raise BadConfig('%s: %r is not one of %s' % (
            where, text, ', '.join(_CHOICES[option])))
    if isinstance(default, Division):
        try:
            return shards.parse(text)
        except BadConfig as err:
            raise BadConfig('%s: %s' % (where, err)) from err
    if isinstance(default, Admit):
        return admits.parse(where, text)
    if isinstance(default, bool):
        if text.lower() in _TRUE | _FALSE:
            return text.lower() in _TRUE
        raise BadConfig('%s: %r is neither true nor false' % (where, text))
    if not isinstance(default, (int, float)):
        return text
    return _amount(where, option, text, default)


def _amount(where: str, option: str, text: str,
            default: float) -> float:
    try:
        number = _number(text) if option.endswith('_bytes') else float(text)
    except ValueError:
        raise BadConfig('%s: %r is not a number' % (where, text)) from None
    # A number that is none (nan) is not in any range either.
    if not 0 <= number < _MAX_NUMBER or (
            option in _SHARES and number > 1):
        raise BadConfig('%s: %s is out of range' % (where, text))
    if isinstance(default, float):
        return float(number)
    if number != int(number):
        raise BadConfig('%s: %s is not a whole number' % (where, text))
    return int(number)


def parse_bytes(text: str) -> int:
    """``24m``, ``256k`` or a number, as in ``*_bytes`` options.

    :raises BadConfig: it is none
    """
    try:
        return int(_number(text.strip()))
    except (ValueError, OverflowError):
        raise BadConfig('%r is not a number of bytes' % text) from None


def _number(text: str) -> float:
    unit = _UNITS.get(text[-1:].lower())
    return float(text[:-1]) * unit if unit else float(text)


def _check_order(tier: TierConf, source: str) -> None:
    for low, high in (('low_watermark', 'high_watermark'),
                      ('hdd_low_watermark', 'hdd_high_watermark')):
        if getattr(tier, low) >= getattr(tier, high):
            raise BadConfig('%s: [tier] %s must be below %s'
                            % (source, low, high))


def _check_run_dir(run_dir: str, source: str) -> None:
    if len(run_dir.encode()) > RUN_DIR_BYTES:
        raise BadConfig(
            '%s: [dss] run_dir: %r has more than %d bytes; the name of a '
            'socket in it would be longer than the system takes' % (
                source, run_dir, RUN_DIR_BYTES))


def _check_url(url: str, source: str) -> None:
    try:
        parts = urlsplit(url)
        # Asking for the port is what judges it.
        is_address = parts.scheme in ('http', 'https') and \
            bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_address = False
    if url and not is_address:
        raise BadConfig('%s: [gateway] url: %r is no address such as '
                        'https://s3.example.com:443' % (source, url))


def _check_prefetch(prefetch: PrefetchConf, source: str) -> None:
    for option, least in (('workers', 1), ('max_degree', 4),
                          ('state_bytes', MIN_PREFETCH_STATE_BYTES)):
        if getattr(prefetch, option) < least:
            raise BadConfig('%s: [prefetch] %s: less than %d'
                            % (source, option, least))


def _check_bundles(gateway: GatewayConf, source: str) -> None:
    if gateway.bundle_bytes > MAX_BUNDLE_DATA_BYTES:
        raise BadConfig('%s: [gateway] bundle_bytes: more than %d'
                        % (source, MAX_BUNDLE_DATA_BYTES))
    if gateway.bundle_member_bytes > gateway.bundle_bytes:
        raise BadConfig('%s: [gateway] bundle_member_bytes must not be '
                        'above bundle_bytes' % source)
