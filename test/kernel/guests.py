"""Programs of this folder in a guest, which have to end well there."""

from __future__ import annotations

import json
import os
from typing import Any, Sequence

from swift_dss.block import lab

HERE = os.path.dirname(os.path.abspath(__file__))


def ended_well(program: str, args: Sequence[Any] = (),
               **options: Any) -> lab.Result:
    """Run a program of this folder in a guest.

    Fails if the program does, or if the kernel complains.

    :param options: as of :func:`swift_dss.block.lab.run`
    """
    ended = lab.run(os.path.join(HERE, program), [str(arg) for arg in args],
                    say=print, **options)
    assert not ended.complaints, '\n'.join(ended.complaints)
    assert ended.status == 0, '%d: %s\n%s\n%s' % (
        ended.status, ended.output,
        ended.stderr.decode('utf-8', 'replace'), ended.kernel_log[-4000:])
    return ended


def found(program: str, args: Sequence[Any] = (), **options: Any) -> Any:
    """The same: the JSON in the last line that it prints."""
    return json.loads(
        ended_well(program, args, **options).output.splitlines()[-1])
