"""``.. release-notes::`` in a copy without git, which reno would ask."""

from typing import Any, Dict, List

from docutils import nodes
from docutils.parsers.rst import Directive, directives

_WORDS = 'This copy of the manual was built without the repository: its ' \
    'release notes are the files in doc/releasenotes/notes.'


class _Notes(Directive):
    option_spec = {'relnotessubdir': directives.unchanged}

    def run(self) -> List[nodes.Node]:
        return [nodes.paragraph(_WORDS, _WORDS)]


def setup(app: Any) -> Dict[str, Any]:
    """Tell Sphinx of the directive."""
    app.add_directive('release-notes', _Notes)
    return {'parallel_read_safe': True}
