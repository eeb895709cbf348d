"""The manual is a house: five parts, each page in one of them, no dead link.
"""

from __future__ import annotations

import os
import pathlib
import re
import subprocess
import sys
from collections import Counter

import pytest
from support import manual

ROOT = pathlib.Path(__file__).resolve().parents[3]
SOURCE = ROOT / 'doc' / 'source'
PARTS = ('start', 'howto', 'reference', 'explanation', 'evidence')
#: What a text names of the repository's own files.
NAMED_FILE = re.compile(
    r'(?<![\w/.~-])((?:doc|etc|test|devstack|swift_dss)/[\w./*-]*\w)')
#: A toctree with its options and its entries.
TOCTREE = re.compile(r'^\.\. toctree::\n((?:(?: +.*)?\n)+)', re.M)


def pages():
    return sorted(path.relative_to(SOURCE) for path in SOURCE.rglob('*.rst'))


def entries(page):
    """Pages that the toctrees of a page name, as paths below doc/source."""
    for block in TOCTREE.findall((SOURCE / page).read_text() + '\n'):
        for line in block.splitlines():
            name = line.strip()
            if name and not name.startswith(':'):
                yield pathlib.Path(os.path.normpath(
                    page.parent / (name + '.rst')))


def test_the_first_page_has_the_five_parts_and_nothing_else():
    assert [str(path) for path in entries(pathlib.Path('index.rst'))] == [
        '%s/index.rst' % part for part in PARTS]


def test_each_page_is_in_one_part():
    named = Counter(entry for page in pages() for entry in entries(page))
    wrong = {str(page): named[page] for page in pages()
             if str(page) != 'index.rst' and named[page] != 1}
    assert not wrong, 'pages, and how many toctrees have them'
    assert sorted(set(named) - set(pages())) == [], 'no such page'
    away = [(str(page), str(entry)) for page in pages()
            for entry in entries(page)
            if str(page) != 'index.rst' and entry.parts[0] != page.parts[0]]
    assert not away, 'a page of another part'
    assert {page.parts[0] for page in pages()} == {'index.rst', *PARTS}


def readers():
    """Texts that name files: the manual, the README, samples and sources."""
    for path in [ROOT / 'README.md', *SOURCE.rglob('*.rst'),
                 *(ROOT / 'etc').iterdir(), *(ROOT / 'devstack').glob('*.sh'),
                 *(ROOT / 'swift_dss').rglob('*.py'),
                 *(ROOT / 'swift_dss').rglob('*.[ch]')]:
        if path.is_file():
            yield path


def test_files_that_texts_name_are_there():
    gone = []
    for path in readers():
        pages_only = path.suffix not in ('.rst', '.md')
        for name in NAMED_FILE.findall(path.read_text()):
            if pages_only and not name.startswith('doc/'):
                continue
            if not any(ROOT.glob(name)):
                gone.append('%s: %s' % (path.relative_to(ROOT), name))
    assert not gone, '\n'.join(gone)


def test_the_links_of_the_readme_lead_to_files():
    text = (ROOT / 'README.md').read_text()
    links = re.findall(r'(?:\]\(|src(?:set)?=")([^)"\s]+)', text)
    gone = [link for link in links if '://' not in link
            and not (ROOT / link.split('#')[0]).exists()]
    assert not gone


@pytest.fixture(scope='module')
def html(tmp_path_factory):
    """The manual as Sphinx builds it, without a warning."""
    pytest.importorskip('openstackdocstheme')
    folder = tmp_path_factory.mktemp('html')
    subprocess.run(
        [sys.executable, '-m', 'sphinx', '-W', '-q', '-b', 'html',
         str(SOURCE), str(folder)], check=True, cwd=str(ROOT))
    return folder


def test_the_manual_builds_without_warnings(html):
    assert (html / 'index.html').exists()


def test_the_reference_has_each_verb(html):
    page = (html / 'reference' / 'commands.html').read_text()
    verbs = [words for words, _line, _parser in manual.generated().verbs()]
    assert ['tier', 'demote'] in verbs
    for words in verbs:
        assert 'id="cli-%s"' % '-'.join(words) in page, words


def test_the_reference_has_each_option(html):
    page = (html / 'reference' / 'options.html').read_text()
    sample = (ROOT / 'etc' / 'dss.conf-sample').read_text()
    names = re.findall(r'^# ([a-z]\w+) *=', sample, re.M)
    assert len(names) > 90
    for name in names:
        assert re.search('id="dss-conf-[a-z]+-%s"' % name, page), name


def test_options_of_a_sample_have_the_comments_above_them():
    assert manual.generated().parts("""# Of the file.

# Of the section.
[tier]
# First line,
# second line.
# movers = 2
engine = file
    next line
# Of nothing.

[capacity]
# Alone here.

""") == [
        ('tier', 'Of the section.', [
            ('movers', '2', 'First line,\nsecond line.'),
            ('engine', 'file', '')]),
        ('capacity', 'Alone here.', [])]


def test_each_decision_has_an_id_a_date_and_a_status():
    known, replaced = set(), {}
    entry = re.compile(
        r'^\.\. _([a-z]+-\d\d):\n\n\1: .+\n-+\n\n'
        r':Date: \d{4}-\d\d-\d\d\n:Status: (.+)\n\n', re.M)
    for path in (SOURCE / 'explanation' / 'decisions').glob('*.rst'):
        text = path.read_text()
        headings = len(re.findall(r'^---+$', text, re.M))
        rows = entry.findall(text)
        assert len(rows) == headings, path
        assert [name for name, _status in rows] == [
            '%s-%02d' % (path.stem, at + 1) for at in range(headings)]
        known.update(name for name, _status in rows)
        for name, status in rows:
            assert status == 'in force' or re.match(
                r'replaced by :ref:`[a-z]+-\d\d`$', status), name
            if status != 'in force':
                replaced[name] = re.search('`(.+)`', status).group(1)
    assert len(known) > 100
    # What took a decision's place is a decision, and is in force.
    assert replaced and set(replaced.values()) <= known - set(replaced)


#: Questions of a newcomer: pages from the first one to the answer, each with
#: a link to the next, and words that the last one says at the place.
QUESTIONS = {
    'install on my cluster': (
        ['start/install.html'], 'diskfile_module = egg:swift_dss#dss.fs'),
    'try it': (['start/all-in-one.html'], 'bash devstack/aio.sh'),
    'what does class X mean': (
        ['reference/class-table.html'], 'user1'),
    'how do I get off it': (
        ['howto/uninstall.html'], 'swift-dss gateway drain --to local'),
    'what happens when S3 is down': (
        ['reference/failures.html#failures-s3'], 'Retry-After'),
    'which alert means what': (
        ['reference/alerts.html#alerts'], 'SwiftDssOldBacklog'),
    'where is the code of X': (
        ['explanation/find-your-way.html'], 'objserver/writer.py'),
    'what does it cost me': (
        ['explanation/gateway.html#costs'], 'list prices'),
}


def links(html, page):
    """Where the text of a page leads to, without what the theme adds."""
    body = (html / page).read_text().partition('<section')[2].rpartition(
        '</section>')[0]
    for target in re.findall(r'href="([^"]+)"', body):
        if '://' not in target:
            path, _, anchor = target.partition('#')
            path = os.path.normpath(os.path.join(
                os.path.dirname(page), path)) if path else page
            yield path + ('#' + anchor if anchor else '')


@pytest.mark.parametrize('question', QUESTIONS)
def test_a_newcomer_finds_the_answer_in_three_links(html, question):
    path, answer = QUESTIONS[question]
    assert len(path) <= 3
    at = 'index.html'
    for step in path:
        assert step in set(links(html, at)), (at, step)
        at = step.partition('#')[0]
    text = (html / at).read_text()
    anchor = path[-1].partition('#')[2]
    if anchor:
        assert text.count('id="%s"' % anchor) == 1
        text = text.split('id="%s"' % anchor)[1]
    assert answer in re.sub(r'<[^>]+>', '', text)
    print('figure: %s: index > %s' % (question, ' > '.join(path)))


def shown(page):
    """The text of a page, with its tables of what benches wrote."""
    return re.sub(r'^\.\. results:: (\S+)$', table, page, flags=re.M)


def table(line):
    name, evidence = line.group(1), manual.evidence()
    told = evidence.kept(name)
    return '\n'.join([
        *(run['command'] for run in told['runs']),
        *('  '.join(row) for row in evidence.rows(name, told))])


def test_the_figures_of_the_first_page_stand_in_the_evidence():
    page = (SOURCE / 'index.rst').read_text()
    rows = [re.match(r'(.+?)\n     - ``(.+?)``\n     - :doc:`(.+?)`',
                     row, re.S).groups()
            for row in page.split('\n   * - ')[2:]]
    assert len(rows) == 6
    readme = ' '.join((ROOT / 'README.md').read_text().split())
    for figure, command, where in rows:
        figure, command = ' '.join(figure.split()), ' '.join(command.split())
        assert '| %s | `%s` |' % (figure, command) in readme
        evidence = re.sub(r'\s*\\?\n\s*', ' ', shown(
            (SOURCE / (where + '.rst')).read_text()))
        assert command.split(' --')[0] in evidence, (where, command)
        for number in re.findall(r'\*\*([\d.,]+)', figure):
            assert number in evidence, (where, number)


def test_the_readme_is_short():
    assert len((ROOT / 'README.md').read_text().splitlines()) <= 120
