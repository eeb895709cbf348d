"""What the kernel's decision core costs: bytes a slot, ns a verb.

``python test/bench/core_speed.py [SLOTS ...]`` compiles ``core_speed.c``
with the core and runs it; 262,144 slots are 1 GiB of 4 KiB chunks.
"""

import os
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from support.chunk_oracle import core_library

SOURCE = pathlib.Path(__file__).with_suffix('.c')
SLOTS = ('4096', '262144', '4194304')


def main(slots):
    with tempfile.TemporaryDirectory() as folder:
        program = os.path.join(folder, 'core_speed')
        subprocess.run(
            ['cc', '-std=gnu11', '-O2', '-Wall', '-Wextra', '-Werror',
             '-I', str(core_library.SOURCE_DIR), '-o', program, str(SOURCE),
             *(str(core_library.SOURCE_DIR / name)
               for name in core_library.SOURCES)], check=True)
        for number in slots:
            sys.stdout.flush()
            subprocess.run([program, number], check=True)
    return 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:] or SLOTS))
