"""A proxy server whose pipeline is exactly the one it was given.

Swift itself puts a gatekeeper into every pipeline that lacks one; a test
that wants to see what happens without has to ask for it here.
Arguments: those of ``swift_dss.aio.run``.
"""

from __future__ import annotations

import functools
import os
import sys


def main():
    """Run until ended."""
    sys.path.insert(0, os.path.join(os.path.dirname(
        os.path.abspath(__file__)), 'blind'))
    from swift_dss.aio import run
    from swift.common import utils
    # Swift reads its configuration while it is imported.
    utils.set_swift_dir(sys.argv[1])
    from swift.proxy import server
    server.run_wsgi = functools.partial(
        server.run_wsgi, allow_modify_pipeline=False)
    return run.main(sys.argv[1:])


if __name__ == '__main__':
    sys.exit(main())
