"""The one command for all campaigns: what it counts, and what it runs."""

from __future__ import annotations

import inspect
import json
import os
import subprocess
import sys

import campaign
import pytest
import trusting_daemon

from swift_dss.gateway.link import client

HERE = os.path.dirname(os.path.abspath(campaign.__file__))
SCRIPTS = sorted({listed.script for listed in campaign.CAMPAIGNS} - {'-m'})


def test_figures_are_added_up_and_those_of_twins_are_not():
    assert campaign.counted(
        'R12: 63 calls, 51 faults fired, 0 wrong\n'
        'R12 wrong twin: 40 faults fired, 9 wrong (must be more than 0)\n'
        'R01: 30 kills at 9 steps, 2 lost, worst recovery 0.1 s\n'
        'WRONG: 7 lost in a line that is no figure\n'
        '{"cycles": 6, "cycles_with_fault": 5, "kills": 3, "lost": 1}\n'
    ) == (51 + 30 + 5, 2 + 1)


def test_nothing_that_fired_is_not_right(tmp_path, monkeypatch):
    script = tmp_path / 'none.py'
    script.write_text("print('R99: 0 faults fired, 0 wrong')\n")
    monkeypatch.setattr(campaign, '_HERE', str(tmp_path))
    result = campaign.run(campaign.Campaign('R99', 'x', 'none.py'), False)
    assert not result.is_right and not result.caught
    script.write_text("print('R99: 3 faults fired, 0 wrong')\n")
    result = campaign.run(campaign.Campaign('R99', 'x', 'none.py'), False)
    assert not result.is_right, 'a twin that was not seen was not caught'
    script.write_text("print('R99: 3 faults fired, 0 wrong')\n"
                      "print('R99 wrong twin: 1 fired, 1 wrong')\n")
    result = campaign.run(campaign.Campaign('R99', 'x', 'none.py'), False)
    assert result.is_right and (result.fired, result.caught) == (3, 1)
    script.write_text("print('wrong: lost x')\nraise SystemExit(1)\n")
    result = campaign.run(campaign.Campaign(
        'R99', 'x', 'none.py', twin=False), False)
    assert result.caught and result.is_right


def test_lines_of_json_say_what_the_table_says(
        tmp_path, monkeypatch, capsys):
    (tmp_path / 'two.py').write_text(
        "print('noise')\nprint('R98: 3 faults fired, 0 wrong')\n"
        "print('R98 wrong twin: 1 fault fired, 1 wrong')\n")
    (tmp_path / 'none.py').write_text("print('R99: 0 faults fired')\n")
    monkeypatch.setattr(campaign, '_HERE', str(tmp_path))
    monkeypatch.setattr(campaign, 'CAMPAIGNS', (
        campaign.Campaign('R98', 'x', 'two.py'),
        campaign.Campaign('R99', 'y', 'none.py')))
    monkeypatch.setattr(sys, 'argv', ['campaign.py', '--json'])
    assert campaign.main() == 1
    printed = capsys.readouterr()
    right, wrong = map(json.loads, printed.out.splitlines())
    assert right.pop('seconds') >= 0
    assert right == {
        'id': 'R98', 'what': 'x', 'command': 'fault/two.py', 'fired': 3,
        'lost': 0, 'caught': True, 'is_right': True, 'printed': [
            'R98: 3 faults fired, 0 wrong',
            'R98 wrong twin: 1 fault fired, 1 wrong']}
    assert not wrong['is_right'] and not wrong['caught']
    assert '3 faults fired, 0 bytes lost, 1 twins caught, 1 camp' in \
        printed.err
    monkeypatch.setattr(sys, 'argv', ['campaign.py', '--only', 'R98'])
    assert campaign.main() == 0
    assert 'R98     x ' in capsys.readouterr().out


def test_every_campaign_is_there():
    for listed in campaign.CAMPAIGNS:
        if listed.script == '-m':
            paths = [word for word in listed.short if word.endswith('.py')]
            assert paths and all(os.path.exists(os.path.join(
                HERE, os.pardir, path)) for path in paths)
        else:
            assert os.path.exists(os.path.join(HERE, listed.script))


def test_the_trusting_twin_takes_what_the_client_takes():
    """One that cannot send anything loses nothing."""
    really = inspect.signature(client.S3Client.put)
    twin = inspect.signature(trusting_daemon.put)
    twin.bind(*(['x'] * 4), **{name: None for name, taken in
                               really.parameters.items()
                               if taken.default is not taken.empty})


@pytest.mark.parametrize('script', SCRIPTS)
def test_a_campaign_starts_by_its_own_path(script):
    """As its manual says, with no PYTHONPATH that finds its modules."""
    alone = {name: value for name, value in os.environ.items()
             if name != 'PYTHONPATH'}
    subprocess.run([sys.executable, os.path.join(HERE, script), '--help'],
                   check=True, capture_output=True, env=alone)
