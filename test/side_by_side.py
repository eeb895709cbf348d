#!/usr/bin/env python3
"""Run the parts of the tests beside each other, and count every verdict.

    side_by_side.py --slots 3 --logs DIR --until SECONDS
        --part NAME COMMAND... [--part NAME COMMAND...]...

As many parts run at once as there are slots, the first ones first. What a
part prints goes to ``DIR/NAME.log`` and is shown whole when it ends, so
that the parts' lines are never mixed; meanwhile a line every half minute
says how far each is.

On a slow machine parts are cut off ``--until`` seconds after the beginning of
the run: interrupted, which lets pytest take its clusters down. The last lines
say how far they came. That is no failure, but a test that failed before is
one, and so is a part that does not end when it is interrupted; that a single
test hangs is for pytest to see.

Exit code 0: every part that was not cut off ended with 0. Interrupted itself,
it interrupts the parts and waits for them.
"""

from __future__ import annotations

import argparse
import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from typing import IO, List, Optional, Sequence, Tuple

POLL_SECONDS = 0.2
PROGRESS_SECONDS = 30.0
#: What an interrupted part gets to take its clusters down.
GRACE_SECONDS = 90.0
_PERCENT = re.compile(r'\[ *(\d+)%\]')
#: The last line of a pytest that was interrupted.
_FAILED = re.compile(r'\b[1-9]\d* (failed|errors?)\b')
_TAIL_BYTES = 4096


@dataclass
class Part:
    """One command and how it fares."""

    name: str
    command: List[str]
    log: str
    process: Optional[subprocess.Popen] = None
    began: float = 0.0
    seconds: float = 0.0
    interrupted: bool = False
    reached: str = '-'
    status: Optional[int] = None

    def start(self) -> None:
        """Run it as a process group of its own."""
        self.began = time.monotonic()
        with open(self.log, 'wb') as out:
            self.process = subprocess.Popen(
                self.command, stdin=subprocess.DEVNULL, stdout=out,
                stderr=subprocess.STDOUT, start_new_session=True)

    def ended(self, until: float) -> bool:
        """Look after it; true once it is gone.

        :param until: when it is cut off, by the steady clock
        """
        assert self.process is not None
        now = time.monotonic()
        self.seconds = now - self.began
        self.status = self.process.poll()
        if self.status is not None:
            return True
        if now > until and not self.interrupted:
            # Behind it comes a summary of any length.
            self.reached = self.percent()
            self.signal(signal.SIGINT)
            self.interrupted = True
        if now > until + GRACE_SECONDS:
            self.signal(signal.SIGKILL)
        return False

    def signal(self, signum: int) -> None:
        """To its first process; the rest only when it is killed: a
        cluster's servers are ended by who started them."""
        assert self.process is not None
        if signum == signal.SIGKILL:
            os.killpg(self.process.pid, signum)
        else:
            self.process.send_signal(signum)

    def percent(self) -> str:
        """What pytest last said of its progress, or a dash."""
        percents = _PERCENT.findall(self._last_words())
        return percents[-1] + ' %' if percents else '-'

    def verdict(self) -> str:
        """A few words."""
        if self.process is None:
            return 'left out: no time'
        if self.interrupted and not self.failed():
            return 'cut off at %s: no time' % self.reached
        return 'FAILED (%d)' % (
            -1 if self.status is None else self.status) \
            if self.failed() else 'ok'

    def failed(self) -> bool:
        """It ended with another status than 0; of one that was cut off: with
        a failed test before, or only when it was killed."""
        if self.process is None:
            return False
        if self.interrupted:
            return self.status == -signal.SIGKILL or bool(
                _FAILED.search(self._last_words()))
        return self.status != 0

    def _last_words(self) -> str:
        with open(self.log, 'rb') as source:
            source.seek(max(0, os.path.getsize(self.log) - _TAIL_BYTES))
            return source.read().decode('utf-8', 'replace')


class Run:
    """The parts, those that wait in front.

    :param until_seconds: after the beginning, parts are cut off
    """

    def __init__(self, parts: Sequence[Part], slots: int,
                 until_seconds: float, out: IO[str]) -> None:
        self.parts = parts
        self._waiting = list(parts)
        self._running: List[Part] = []
        self._slots = slots
        self._out = out
        self._began = time.monotonic()
        self._until = self._began + until_seconds
        self._next_progress = self._began + PROGRESS_SECONDS

    def run(self) -> int:
        """All of them; 0 if all went well, else 1."""
        try:
            while self._waiting or self._running:
                self._step()
                time.sleep(POLL_SECONDS)
        except KeyboardInterrupt:
            self._interrupt()
            return 130
        for part in self.parts:
            self._say('%-12s %5.0f s  %s' % (
                part.name, part.seconds, part.verdict()))
        return int(any(part.failed() for part in self.parts))

    def _step(self) -> None:
        while self._waiting and len(self._running) < self._slots:
            part = self._waiting.pop(0)
            if time.monotonic() >= self._until:
                continue
            self._say('%s begins: %s' % (part.name, ' '.join(part.command)))
            part.start()
            self._running.append(part)
        for part in list(self._running):
            if part.ended(self._until):
                self._running.remove(part)
                self._show(part)
        if time.monotonic() >= self._next_progress:
            self._next_progress += PROGRESS_SECONDS
            self._say(', '.join('%s %s' % (part.name, part.percent())
                                for part in self._running))

    def _show(self, part: Part) -> None:
        self._say('%s, whole:' % part.name)
        with open(part.log, encoding='utf-8', errors='replace') as source:
            for line in source:
                self._out.write(line)
        self._say('%s: %s' % (part.name, part.verdict()))

    def _interrupt(self) -> None:
        self._say('interrupted')
        for part in self._running:
            part.signal(signal.SIGINT)
        deadline = time.monotonic() + GRACE_SECONDS
        for part in self._running:
            assert part.process is not None
            try:
                part.process.wait(max(0.0, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                part.signal(signal.SIGKILL)
            self._show(part)

    def _say(self, text: str) -> None:
        self._out.write('[%5.0f s] %s\n' % (
            time.monotonic() - self._began, text))
        self._out.flush()


def main(argv: Sequence[str]) -> int:
    """Parse, run."""
    options, parts = _arguments(argv)

    def interrupted(_signum: int, _frame: object) -> None:
        raise KeyboardInterrupt
    # Also of SIGINT, which a shell ignores on behalf of what it starts in
    # the background; the parts would ignore it with us.
    for signum in (signal.SIGINT, signal.SIGTERM):
        signal.signal(signum, interrupted)
    os.makedirs(options.logs, exist_ok=True)
    return Run([
        Part(name, command, os.path.join(options.logs, name + '.log'))
        for name, *command in parts], options.slots, options.until,
        sys.stdout).run()


def _arguments(argv: Sequence[str]
               ) -> Tuple[argparse.Namespace, List[List[str]]]:
    groups: List[List[str]] = [[]]
    for word in argv:
        if word == '--part':
            groups.append([])
        else:
            groups[-1].append(word)
    parser = argparse.ArgumentParser(
        description=(__doc__ or '').splitlines()[0],
        usage='%(prog)s [options] --part NAME COMMAND... [--part ...]')
    parser.add_argument('--slots', type=int, default=2,
                        help='how many run at once (%(default)s)')
    parser.add_argument('--logs', required=True,
                        help='folder for one log a part')
    parser.add_argument('--until', type=float, default=3600.0,
                        help='seconds after which parts are cut off '
                             '(%(default)s)')
    options = parser.parse_args(groups[0])
    if len(groups) < 2:
        parser.error('no --part')
    for group in groups[1:]:
        if len(group) < 2:
            parser.error('--part %s: a name and a command' % ' '.join(group))
    names = [group[0] for group in groups[1:]]
    if len(set(names)) != len(names):
        parser.error('two parts of one name: %s' % ' '.join(names))
    return options, groups[1:]


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
