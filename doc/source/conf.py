"""Sphinx: ``sphinx-build -W -b html doc/source doc/build/html``."""

import os
import subprocess
import sys

project = 'swift-dss'
copyright = 'the swift-dss authors'
master_doc = 'index'
exclude_patterns = []
#: autodoc for docstrings that are the manual; generated for what parsers and
#: samples say.
extensions = ['sphinx.ext.autodoc', 'generated']
autodoc_typehints = 'none'
nitpicky = True
# Options begin with two hyphens.
smartquotes = False
pygments_style = 'native'

_HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(_HERE, os.pardir, 'ext'))


def _in_git():
    # The theme and reno both ask git; an unpacked archive has none, and
    # its pages are then built with Sphinx's own theme, without the notes.
    try:
        return subprocess.call(
            ['git', 'rev-parse', 'HEAD'], cwd=_HERE,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) == 0
    except OSError:
        return False


if _in_git():
    os.chdir(_HERE)
    extensions += ['openstackdocstheme', 'reno.sphinxext']
    html_theme = 'openstackdocs'
    html_theme_options = {'display_badge': False,
                          'show_other_versions': False}
    openstackdocs_auto_name = False
    openstackdocs_auto_version = False
else:
    extensions.append('no_history')
version = release = ''
