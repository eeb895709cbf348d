"""Makes the sample node of the fault campaigns importable here."""

from __future__ import annotations

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), os.pardir,
                                os.pardir, 'fault'))
