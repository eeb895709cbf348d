"""R01 in CI with the real daemon: a few of its kills."""

from __future__ import annotations

import kill_the_daemon


def test_a_killed_daemon_loses_nothing(tmp_path):
    outcome = kill_the_daemon.campaign(str(tmp_path), every=12)
    assert outcome.kills >= 3
    assert outcome.lost == []
