"""Runs that broke a promise once: the fewest steps of the seed that did."""

from __future__ import annotations

from typing import Dict, List

import pytest

from swift_dss.sim import runs
from swift_dss.sim.runs import Step

NODES = 5
#: Seed to its steps; a seed alone gives other steps with other verbs.
PINNED: Dict[int, List[Step]] = {
    # The event of a POST is lost with the power, and its version is known.
    633: [Step('race', 'n1', '/a/e1/l', 818, 3147661839),
          Step('work', 'n2', '/a/c0/k', 889, 3696107196),
          Step('post', 'n1', '/a/e1/l', 893, 3144435918),
          Step('power', 'n2', '/a/c0/o', 144, 538228186)],
    # A restore writes a stub over a fragment that was not committed.
    765: [Step('mood', 'n3', '/a/c0/k', 178, 3082666988),
          Step('race', 'n4', '/a/e0/k', 153, 3007243421),
          Step('sweep', 'n1', '/a/c4/r', 745, 1343633269),
          Step('work', 'n2', '/a/c0/m', 750, 3898920893),
          Step('restore', 'n1', '/a/c2/x', 257, 1211843630)],
    # A disk of few versions that has failed answers again.
    1543: [Step('fail-disk', 'n2', '/a/e1/l', 309, 3580347077),
           Step('race', 'n1', '/a/e1/l', 185, 514935400),
           Step('put-until', 'n5', '/a/c1/n', 929, 1734008372),
           Step('put', 'n3', '/a/c0/k', 292, 108783488),
           Step('get', 'n3', '/a/e1/l', 35, 1887501784),
           Step('spoil', 'n4', '/a/c0/m', 896, 1423386860),
           Step('race', 'n2', '/a/c0/o', 435, 707295490),
           Step('spoil', 'n4', '/a/c0/o', 672, 1187225396),
           Step('work', 'n4', '/a/c2/t', 135, 4092872994)],
    # A server gives the fragment of a newer write, whose power cut left both.
    675: [Step('race', 'n4', '/a/e0/k', 111, 2291636289),
          Step('power', 'n2', '/a/c1/n', 546, 2472744333)],
    # A handoff of a version that all primaries had outlived becomes a primary.
    709: [Step('race', 'n3', '/a/c1/l', 9, 3717173740),
          Step('work', 'n1', '/a/c1/n', 143, 733778728),
          Step('put-until', 'n3', '/a/c1/l', 456, 2663338435),
          Step('work', 'n4', '/a/c0/o', 240, 3331153792),
          Step('replicate', 'n1', '/a/c2/t', 923, 774843043),
          Step('pass', 'n5', '/a/c1/l', 197, 697566737),
          Step('work', 'n1', '/a/c4/r', 888, 2175396291),
          Step('leave-ring', 'n1', '/a/c1/l', 772, 2275184682)],
    # The type of a void POST goes into the record of S3.
    2413: [Step('race', 'n4', '/a/c2/x', 504, 4185476436),
           Step('post', 'n5', '/a/c2/x', 858, 995232223),
           Step('replicate', 'n1', '/a/c2/t', 239, 1372851720),
           Step('put', 'n4', '/a/c2/x', 648, 1394009053),
           Step('post', 'n1', '/a/c2/x', 460, 1349777224)],
    # A node that left the ring has the last bytes of what S3 has lost, and its
    # primaries have stubs.
    1211: [Step('put', 'n3', '/a/c4/r', 905, 289987795),
           Step('work', 'n1', '/a/c0/o', 507, 547199597),
           Step('leave-ring', 'n5', '/a/c1/l', 237, 958252309),
           Step('work', 'n1', '/a/c4/r', 812, 2467312263),
           Step('work', 'n2', '/a/c0/k', 239, 3624047066),
           Step('pass', 'n2', '/a/c4/r', 872, 724899598),
           Step('replicate', 'n2', '/a/e1/l', 847, 2353539533),
           Step('forget', 'n5', '/a/c2/t', 625, 1725315517)],
    # A handoff has a tombstone alone of an erasure-coded object.
    621: [Step('cut', 'n4', '/a/c1/n', 612, 2146921533),
          Step('delete', 'n2', '/a/e1/l', 614, 2199711211),
          Step('new-ssd', 'n2', '/a/e1/l', 488, 3645474678),
          Step('take-out', 'n1', '/a/c2/t', 845, 1524166286)],
    # S3 loses a bundle; its keeper has stubs, and another node packs one more.
    1295: [Step('put', 'n2', '/a/c2/x', 203, 3961275813),
           Step('work', 'n4', '/a/e0/k', 633, 2594741129),
           Step('interrupt', 'n1', '/a/c2/x', 540, 4140316531),
           Step('pass', 'n2', '/a/c0/o', 229, 4062541465),
           Step('forget', 'n4', '/a/c4/r', 764, 2026046435)],
    # S3 loses the record of a POST beside a fragment, and offers the fragment.
    362: [Step('leave-ring', 'n1', '/a/c1/n', 198, 4270220652),
          Step('put', 'n1', '/a/c4/r', 384, 3279196173),
          Step('mood', 'n2', '/a/c2/t', 178, 381067934),
          Step('put', 'n3', '/a/c0/o', 412, 1634778178),
          Step('put', 'n1', '/a/e1/l', 445, 1359407588),
          Step('get-slowly', 'n3', '/a/c1/l', 159, 3393026721),
          Step('forget', 'n5', '/a/e0/k', 910, 3944546041),
          Step('post', 'n4', '/a/e1/l', 35, 1542587172),
          Step('mood', 'n3', '/a/e1/l', 885, 1213464077),
          Step('sweep', 'n4', '/a/e1/l', 655, 3369310174),
          Step('get-slowly', 'n3', '/a/c1/n', 587, 3566993808)],
    # An SSD comes back to another HDD, which has its version from a later
    # copy; which bytes of it are there, its record does not say.
    2000058: [Step('put', 'n2', '/a/e0/k', 557, 3801274410),
              Step('get-slowly', 'n2', '/a/c0/k', 556, 2390249986),
              Step('come-back', 'n3', '/a/c4/r', 827, 1179266942),
              Step('take-out', 'n1', '/a/c2/t', 150, 2387163792),
              Step('new-hdd', 'n1', '/a/c0/o', 466, 3289120079),
              Step('replicate', 'n2', '/a/c0/o', 254, 3050695101),
              Step('put-back', 'n3', '/a/e1/l', 751, 4029802555),
              Step('leave-ring', 'n2', '/a/c4/r', 619, 1248475587)],
    # A handoff has missed the POST of a class that may go to S3.
    2000573: [Step('leave-ring', 'n5', '/a/c0/m', 970, 187555990),
              Step('cut', 'n4', '/a/c0/o', 28, 1776064675),
              Step('come-back', 'n3', '/a/c0/k', 218, 2002922088),
              Step('post', 'n2', '/a/c2/x', 136, 3576398745),
              Step('race', 'n4', '/a/c0/k', 174, 1105631561)],
    # A stub moves whose bundle S3 has lost: its own key is read to be proven.
    2001113: [Step('put-until', 'n4', '/a/c0/k', 2, 851107772),
              Step('put', 'n5', '/a/c2/x', 846, 2453947902),
              Step('race', 'n4', '/a/c0/o', 295, 3007997009),
              Step('delete', 'n1', '/a/c0/o', 437, 1294924634),
              Step('put', 'n3', '/a/c4/r', 958, 581599649),
              Step('race', 'n5', '/a/c1/l', 322, 3689123579),
              Step('cut', 'n1', '/a/c4/r', 434, 943823616),
              Step('interrupt', 'n1', '/a/c2/x', 247, 106099831),
              Step('put', 'n1', '/a/c1/l', 926, 885347067),
              Step('leave-ring', 'n2', '/a/c4/r', 25, 1222433136),
              Step('work', 'n5', '/a/c2/t', 398, 3090974930),
              Step('pass', 'n4', '/a/c1/l', 155, 3084604339),
              Step('get-slowly', 'n1', '/a/c1/n', 252, 1367433321),
              Step('work', 'n2', '/a/c2/t', 672, 3663116292),
              Step('pass', 'n4', '/a/e0/k', 686, 1247123227),
              Step('work', 'n1', '/a/c2/x', 503, 1690999591),
              Step('work', 'n3', '/a/c2/x', 609, 3060889252),
              Step('pass', 'n2', '/a/c0/o', 755, 193629633),
              Step('forget', 'n1', '/a/c0/k', 611, 2036464119)],
    # S3 loses the note of a bundle's dead members, and their keeper lives.
    2003313: [Step('put', 'n3', '/a/c4/r', 253, 1910404783),
              Step('put', 'n5', '/a/c2/t', 300, 4157587472),
              Step('work', 'n5', '/a/c0/m', 468, 3872276157),
              Step('come-back', 'n1', '/a/c4/r', 355, 2519920047),
              Step('get-slowly', 'n1', '/a/c1/n', 705, 3757465965),
              Step('pass', 'n4', '/a/c0/k', 172, 472753743),
              Step('come-back', 'n5', '/a/c0/o', 951, 2463176558),
              Step('get-slowly', 'n1', '/a/c0/k', 120, 2590586507),
              Step('work', 'n4', '/a/e1/l', 441, 4184586669),
              Step('forget', 'n2', '/a/c1/n', 726, 1521900801)],
    # All records name a bundle that leaves, and a member's own key is taken
    # for a second copy.
    2006986: [Step('work', 'n4', '/a/c4/r', 398, 142231176),
              Step('interrupt', 'n1', '/a/c1/n', 666, 997476498),
              Step('interrupt', 'n2', '/a/c1/l', 696, 1815527776),
              Step('leave-ring', 'n2', '/a/c1/l', 248, 375745956),
              Step('sweep', 'n2', '/a/c0/m', 889, 664079907),
              Step('take-out', 'n1', '/a/c2/x', 315, 4191675962),
              Step('come-back', 'n1', '/a/e1/l', 910, 501401144),
              Step('take-out', 'n5', '/a/c0/o', 245, 470159842),
              Step('work', 'n4', '/a/c1/l', 207, 4280749360),
              Step('put', 'n5', '/a/c1/l', 181, 1500509447),
              Step('interrupt', 'n1', '/a/c1/l', 85, 3154146366),
              Step('pass', 'n4', '/a/c0/k', 556, 206892945),
              Step('work', 'n2', '/a/c4/r', 780, 2533422056),
              Step('work', 'n4', '/a/c4/r', 723, 3811745382)]}


@pytest.mark.parametrize('seed', PINNED)
def test_what_a_seed_has_broken_stays_whole(seed):
    assert runs.run(PINNED[seed], NODES, seed).violation == ''
