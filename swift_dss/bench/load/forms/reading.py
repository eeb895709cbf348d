"""A scenario in any of the forms that are read.

JSON of ssbench, YAML of warp and XML of COSBench tell themselves apart by how
they begin.
"""

from __future__ import annotations

import re
from typing import Optional

from swift_dss.bench.load import scenario
from swift_dss.bench.load.forms import cosbench
from swift_dss.bench.load.scenario import BadScenario, Scenario
from swift_dss.core.errors import BadClassInput, BadConfig

MAX_CHARACTERS = 1 << 20
_WARP = re.compile(r'^(warp|"warp"|\'warp\') *:', re.M)


def parse(text: str, file: str, stage: Optional[str] = None) -> Scenario:
    """Read a scenario.

    :param file: its name, for errors
    :param stage: of a workload of COSBench that has several
    :raises BadScenario: names the field, its place and the reason
    :raises BadClassInput: a stage of a form that has none
    :raises BadConfig: the library for YAML is not installed
    """
    if len(text) > MAX_CHARACTERS:
        raise BadScenario(file, '', 1, 1, 'has more than %d characters'
                          % MAX_CHARACTERS)
    text = text.lstrip('\ufeff')
    if text.lstrip().startswith('<'):
        return cosbench.parse(text, file, stage)
    if stage is not None:
        raise BadClassInput('--stage', 'only a workload of COSBench has '
                            'stages')
    if _WARP.search(text):
        try:
            from swift_dss.bench.load.forms import warpyaml
        except ImportError as err:
            raise BadConfig("%s: pip install 'swift-dss[load]'"
                            % err) from err
        return warpyaml.parse(text, file)
    return scenario.parse(text, file)
