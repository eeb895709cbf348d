"""Counters and gauges: one set, shown as StatsD, Prometheus and JSON.

StatsD goes out as Swift's daemons send it, with the same options. The
Prometheus page is only ever served on the loopback address: it shows how much
of each class there is, which is private.
"""

from __future__ import annotations

import logging
import re
import threading
from typing import Any, Dict, Iterable, List, Mapping, Tuple

from prometheus_client import (
    CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest)
from prometheus_client.core import (
    CounterMetricFamily, GaugeMetricFamily, Metric)
from swift.common.statsd_client import get_statsd_client

from swift_dss.core.config import NodeConf
from swift_dss.gateway import ports
from swift_dss.tier.families import FROM_ZERO, LABELLED, help_of

#: Of what :meth:`Metrics.text` gives.
CONTENT_TYPE = CONTENT_TYPE_LATEST
_UNSAFE = re.compile('[^a-zA-Z0-9_]')
#: name, labels -> value
Sample = Tuple[str, Dict[str, str], float]


class Metrics(ports.Metrics):
    """See the module. Never raises, never blocks on the network."""

    def __init__(self, conf: NodeConf, logger: logging.Logger) -> None:
        self.logger = logger
        self._lock = threading.Lock()
        self._counters: Dict[str, float] = dict.fromkeys(FROM_ZERO, 0.0)
        self._gauges: Dict[str, float] = {}
        self._labelled: List[Sample] = []
        self._statsd: Any = None
        if conf.log_statsd_host:
            self._statsd = get_statsd_client({
                'log_statsd_host': conf.log_statsd_host,
                'log_statsd_port': conf.log_statsd_port,
                'log_statsd_default_sample_rate':
                    conf.log_statsd_default_sample_rate,
                'log_statsd_sample_rate_factor':
                    conf.log_statsd_sample_rate_factor,
                'log_statsd_metric_prefix': conf.log_statsd_metric_prefix,
            }, 'dss-tierd', logger)

    def count(self, name: str, amount: int = 1) -> None:
        """Add to a counter."""
        with self._lock:
            self._counters[name] = self._counters.get(name, 0) + amount
        if self._statsd is not None:
            self._statsd.update_stats(name, amount)

    def gauge(self, name: str, value: float) -> None:
        """Set a gauge (StatsD has no gauges in Swift: a timing there)."""
        with self._lock:
            self._gauges[name] = value

    def timing(self, name: str, seconds: float) -> None:
        """Note how long something took: sum and number of times."""
        with self._lock:
            for suffix, amount in (('.seconds', seconds), ('.times', 1)):
                self._counters[name + suffix] = \
                    self._counters.get(name + suffix, 0) + amount
        if self._statsd is not None:
            self._statsd.timing(name, seconds * 1000)

    def label(self, samples: Iterable[Sample]) -> None:
        """Replace the numbers that carry labels (device, class, tier)."""
        fresh = list(samples)
        with self._lock:
            self._labelled = fresh

    def snapshot(self) -> Dict[str, float]:
        """All counters and plain gauges, by name."""
        with self._lock:
            merged = dict(self._counters)
            merged.update(self._gauges)
        return dict(sorted(merged.items()))

    def gauges(self) -> List[str]:
        """Those names of :meth:`snapshot` that are no counters."""
        with self._lock:
            return sorted(self._gauges)

    def replace(self, values: Mapping[str, float],
                gauges: Iterable[str]) -> None:
        """Show these numbers, which others counted, and no others."""
        names = set(gauges)
        with self._lock:
            self._counters = dict(
                dict.fromkeys(FROM_ZERO, 0.0),
                **{name: value for name, value in values.items()
                   if name not in names})
            self._gauges = {name: value for name, value in values.items()
                            if name in names}

    def collect(self) -> Iterable[Metric]:
        """The metrics for a Prometheus registry."""
        with self._lock:
            counters = sorted(self._counters.items())
            gauges = sorted(self._gauges.items())
            labelled = list(self._labelled)
        for name, value in counters:
            yield CounterMetricFamily(_page_name(name), help_of(name),
                                      value=value)
        for name, value in gauges:
            yield GaugeMetricFamily(_page_name(name), help_of(name),
                                    value=value)
        families: Dict[str, Any] = {}
        for name, labels, value in labelled:
            if name not in families:
                kind = CounterMetricFamily if name in LABELLED \
                    else GaugeMetricFamily
                families[name] = kind(_page_name(name), help_of(name),
                                      labels=list(labels))
            families[name].add_metric(list(labels.values()), value)
        yield from families.values()

    def text(self) -> bytes:
        """The page for a Prometheus server."""
        registry = CollectorRegistry()
        registry.register(self)
        return bytes(generate_latest(registry))


def _page_name(name: str) -> str:
    return 'swift_dss_' + _UNSAFE.sub('_', name)
