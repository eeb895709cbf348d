"""Run a command of the package swift-dss: ``start.py NAME [ARGUMENT ...]``."""

import importlib
import importlib.util
import sys

MODULES = {
    'swift-dss': 'swift_dss.cli.main',
    'swift-dss-tierd': 'swift_dss.tier.main',
    'swift-dss-block-generator': 'swift_dss.block.boot',
    'swift-dss-block-probe': 'swift_dss.block.probe',
}
BAD_CONFIG = 78


def start() -> int:
    """Give the command its own name and arguments, and run it."""
    name = sys.argv[1]
    sys.argv = ['/usr/bin/' + name, *sys.argv[2:]]
    # The folder of this file is no place for modules.
    sys.path.pop(0)
    for needed in ('swift', 'swift_dss'):
        if importlib.util.find_spec(needed) is None:
            print('%s: %s does not see the package %s. Run swift-dss-attach '
                  'with the Python that runs Swift'
                  % (name, sys.executable, needed), file=sys.stderr)
            return BAD_CONFIG
    return int(importlib.import_module(MODULES[name]).main() or 0)


if __name__ == '__main__':
    sys.exit(start())
