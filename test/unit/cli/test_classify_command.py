"""swift-dss classify, as a user runs it."""

from __future__ import annotations

import json
import types
import zipfile

import pytest
from support.format_files import film

from swift_dss.cli import main


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)

    def command(*words):
        code = main.main(['classify', *map(str, words)])
        said = capsys.readouterr()
        return types.SimpleNamespace(code=code, out=said.out, err=said.err)
    return command


@pytest.fixture
def movie(tmp_path):
    film(tmp_path / 'film.mp4')
    return 'film.mp4'


def test_ranges_are_what_pack_takes(run, movie, tmp_path):
    made = run(movie, '--hot', '25')
    assert made.code == 0 and 'mp4' in made.err
    (tmp_path / 'r').write_text(made.out)
    assert run(movie, '--hot', '25', '--cold', '3',
               '--dss', 'b.dss').out == ''
    assert main.main(['pack', movie, '-o', 'a.dss', '--ranges-file', 'r',
                      '--class', '3']) == 0
    assert (tmp_path / 'a.dss').read_bytes() == \
        (tmp_path / 'b.dss').read_bytes()


def test_json(run, movie):
    facts = json.loads(run(movie, '--json', '--max-spans', '9').out)
    assert facts['format'] == 'mp4' and facts['hot'] == 1
    assert len(facts['spans']) <= 4
    assert facts['hot_bytes'] == sum(
        span['length'] for span in facts['spans'])
    assert facts['hot_bytes'] == pytest.approx(
        facts['share'] * facts['size'])


def test_names_of_classes_are_looked_up(run, movie, tmp_path):
    (tmp_path / 't').write_text('[class:25]\nname = gold\nrank = 1\n')
    made = run(movie, '--class-table', 't', '--hot', 'gold', '--json')
    assert json.loads(made.out)['hot'] == 25
    assert 'gould' in run(movie, '--class-table', 't',
                          '--hot', 'gould').err


def test_a_format_can_be_named(run, tmp_path):
    with zipfile.ZipFile(tmp_path / 'z', 'w') as made:
        made.writestr('a', 'a')
    assert 'zip' in run('z', '--format', 'zip').err
    assert run('z', '--format', 'mp4').code == 65


@pytest.mark.parametrize('words, code, said', [
    (['plain'], 2, 'format: the file is none of parquet'),
    (['plain', '--format', 'riff'], 2, "--format: 'riff' is none of auto"),
    (['plain', '--post'], 2, '--post: needs the URL'),
    (['plain', '--max-spans', '2'], 2, '--max-spans: is less than 3'),
    (['gone'], 74, 'No such file'),
    (['/dev/null'], 2, '/dev/null: is no file'),
    (['https://host/v1/account/container'], 2, 'URL: .* is not https://')])
def test_errors_are_one_sentence(run, tmp_path, words, code, said):
    (tmp_path / 'plain').write_text('nothing in particular')
    made = run(*words)
    assert made.code == code and made.out == ''
    assert made.err.count('\n') == 1
    import re
    assert re.search(said, made.err), made.err
