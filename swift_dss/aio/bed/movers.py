"""One pass of several daemons of a node, one after the other:
``SWIFT_DIR [NAME CONF LOG]...``.

Each is a fork of this process, which has imported Swift for all of them:
the import is most of the cost of a short pass.
"""

from __future__ import annotations

import importlib
import os
import sys
import traceback

from swift_dss.aio import run

#: Modules that the daemons load by name, once they know their policies.
_LOADED_LATER = ('swift_dss.objserver.diskfile', 'swift_dss.objserver.ec')


def main() -> int:
    """Run them; 1 if any failed, and its log says why."""
    swift_dir, words = sys.argv[1], sys.argv[2:]
    jobs = [words[at:at + 3] for at in range(0, len(words), 3)]
    run.prepare(swift_dir)
    for module in [run.MODULES[name] for name, _conf, _log in jobs] \
            + list(_LOADED_LATER):
        importlib.import_module(module)
    failed = 0
    for name, conf, log in jobs:
        pid = os.fork()
        if not pid:
            _become(name, conf, log)
        status = os.waitpid(pid, 0)[1]
        if status:
            print('%s ended with status %d' % (name, status), flush=True)
            failed = 1
    return failed


def _become(name: str, conf: str, log: str) -> None:
    """Run one daemon; does not return."""
    status = 1
    try:
        log_fd = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        for standard_fd in (1, 2):
            os.dup2(log_fd, standard_fd)
        run.log_to(log)
        status = run.start(name, [conf, 'once'])
    except SystemExit as ended:
        status = ended.code if isinstance(ended.code, int) else 1
    except BaseException:
        traceback.print_exc()
    finally:
        # Nothing that the parent would do at its end is ours to do.
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


if __name__ == '__main__':
    sys.exit(main())
