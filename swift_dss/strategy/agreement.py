"""Decide from the primaries' answers what may become of replicas' bytes.

May S3 lose bytes that replicas share? May a device quarantine its version
(:func:`may_be_put_aside`)?

One replica knows only that *it* has a newer version. Another may have
missed the overwrite or the delete, and its stub may need the key: if the
first one's drive dies before they met, that stub is the object. So a key
goes when every primary has said that it has something newer.

That answer stays true, because timestamps of an object only grow. A primary
with something newer than T hands it to the others, and never takes T back; a
primary that loses all gets the newest version of the others. Only a drive that
was away for longer than ``reclaim_age`` can bring T back, as in stock Swift,
because by then no primary remembers the tombstone. So a silent primary holds
the key for ``reclaim_age``; a primary that *answers* that T is its newest
holds it for ever.
"""

from __future__ import annotations

import math
from enum import Enum
from typing import Collection, List, NamedTuple, Optional, Sequence


class Verdict(Enum):
    """The verdicts on the bytes of one version in S3."""

    #: No primary needs them, or will.
    DEAD = 'dead'
    #: At least one primary needs them.
    NEEDED = 'needed'
    #: The answers do not decide.
    OPEN = 'open'


class Answer(NamedTuple):
    """One primary's newest state of an object.

    :param timestamp: of its newest data file or tombstone; '' if it has
        neither
    :param remote_key: the S3 key that the record of that data file names,
        '' if it names none or the question left it out
    :param is_local: all bytes of that data file are on its own disks; False
        also if the question left it out
    :param quarantined: of the newest data file that Swift has taken out of
        its place there; '' if there is none, None if unknown, as on a stock
        server
    :param is_proven: its server read all of its bytes from its own disks just
        now, and they are right; False also if the question left it out
    """

    timestamp: str = ''
    remote_key: str = ''
    is_local: bool = False
    quarantined: Optional[str] = ''
    is_proven: bool = False


def of_key(timestamp: str, answers: Sequence[Optional[Answer]], now: float,
           reclaim_age_seconds: float,
           newer_since: float = math.inf) -> Verdict:
    """Of the key that the replicas of a version share.

    :param timestamp: of the version, as in its file's name
    :param answers: of each primary; None for one that does not answer
    :param newer_since: when this node knew of something newer at the
        latest: its tombstone may have been reclaimed since. A time before
        the version's own was noted by a clock that was wrong
    """
    said = [answer for answer in answers if answer is not None]
    if any(answer.timestamp == timestamp for answer in said):
        return Verdict.NEEDED
    newer = [answer.timestamp for answer in said
             if answer.timestamp > timestamp]
    if newer and len(newer) == len(answers):
        return Verdict.DEAD
    if newer_since < seconds_of(timestamp):
        newer_since = math.inf
    since = min([newer_since] + [seconds_of(max(newer)) for _ in newer[:1]])
    return Verdict.DEAD if since + reclaim_age_seconds < now \
        else Verdict.OPEN


def of_member(timestamp: str, key: str, answers: Sequence[Optional[Answer]],
              now: float, reclaim_age_seconds: float,
              is_fragment: bool = False) -> Verdict:
    """Of a member of the bundle ``key``, whose packer has no replica of it
    any more: only records of others can need it.

    It is dead also where the version lives on, once every primary has it
    and names another place for it. A primary that has it and names none may
    be about to send it: until then the bundle is all that S3 has.

    :param answers: with the keys that records name
    :param is_fragment: one primary alone has this fragment
    """
    verdict = of_key(timestamp, answers, now, reclaim_age_seconds)
    if verdict is Verdict.DEAD:
        return verdict
    said = [answer for answer in answers if answer is not None]
    if any(answer[:2] == (timestamp, key) for answer in said):
        return Verdict.NEEDED
    if len(said) < len(answers) or any(
            answer.timestamp < timestamp for answer in said):
        return Verdict.OPEN
    settled = [answer.timestamp > timestamp or bool(answer.remote_key)
               for answer in said]
    return Verdict.DEAD if settled and (
        any(settled) if is_fragment else all(settled)) else Verdict.OPEN


def of_place(timestamp: str, key: str,
             answers: Sequence[Optional[Answer]]) -> Verdict:
    """Judge the old place (bundle ``key``) of a member that has a newer place.

    A primary without the newest version may still get it from a handoff, which
    is not asked and whose record may name the bundle. A primary whose record
    names no key yet may be about to name the bundle, as another primary's
    record did.

    :param answers: with the keys that records name
    """
    said = [answer for answer in answers if answer is not None]
    newest = max((answer.timestamp for answer in said), default='')
    if any(answer[:2] == (timestamp, key) for answer in said) or \
            newest <= timestamp and any(
                answer.timestamp < timestamp for answer in said):
        return Verdict.NEEDED
    if len(said) < len(answers) or newest <= timestamp and any(
            answer[:2] == (timestamp, '') for answer in said):
        return Verdict.OPEN
    return Verdict.DEAD


def of_buried(timestamp: str, key: str,
              answers: Sequence[Optional[Answer]]) -> Verdict:
    """Judge the place (bundle ``key``) of a member that is in no other one:
    it was found dead, or was given a key of its own.

    The latter's key may be gone by now, as all records named the bundle.

    :param answers: with the keys that records name
    """
    said = [answer for answer in answers if answer is not None]
    if any(answer[:2] == (timestamp, key) for answer in said):
        return Verdict.NEEDED
    if len(said) < len(answers) and not any(
            answer.timestamp > timestamp for answer in said):
        return Verdict.OPEN
    return Verdict.DEAD


def agreed_key(timestamp: str,
               answers: Sequence[Optional[Answer]]) -> str:
    """The one key that the records of all primaries name of a version; '' if
    one is silent, has another version, or names another key or none.

    :param answers: with the keys that records name
    """
    said = {None if answer is None else answer[:2] for answer in answers}
    if len(said) != 1:
        return ''
    only = said.pop()
    return only[1] if only is not None and only[0] == timestamp else ''


def order(key: str) -> str:
    """The order of bundles by the time that they were begun. A follower of a
    version only goes to a later bundle, and so never in circles, even if
    clocks were wrong.

    :param key: of a bundle, whose name begins with that time
    """
    return key.rpartition('/')[2]


def leans_on(timestamp: str, mine: str,
             answers: Sequence[Optional[Answer]]) -> List[str]:
    """Keys that other records name of this version, best first: a bundle
    that was begun later is the one whose keeper keeps it.

    :param mine: the key that the record here names, or ''
    """
    keys = {answer.remote_key for answer in answers if answer is not None
            and answer.timestamp == timestamp and answer.remote_key}
    return sorted((key for key in keys if not mine
                   or order(key) > order(mine)), key=order, reverse=True)


class Aside(Enum):
    """May a device put its version into quarantine now?"""

    YES = 'yes'
    #: Much of what is on the device cannot be read: it is not this version.
    FAILING = 'failing'
    #: No primary is known to have what this one lacks.
    NOBODY = 'nobody'


def may_be_put_aside(timestamp: str, answers: Sequence[Optional[Answer]],
                     keys_there: Collection[str], needed: int,
                     is_failing: bool) -> Aside:
    """Of a version of which a device lacks bytes: its disks cannot read
    them, or have other bytes than were written, or S3 has lost the key.

    In its place such a version keeps its replica from getting it again:
    no node sends a version that seems to be there. But its readable bytes
    may be the last ones. So it goes if others are known to have all of it, by
    proofs of just now: local bytes that were read, or a key that S3 has. That
    another one's record says so is no proof, as the two may lie in the same
    way. Otherwise it stays, and MUST be asked for again later.

    :param answers: of the primaries, which were asked for proof. The
        caller's own device MUST NOT be among those that are proven
    :param keys_there: of :func:`keys_besides`, those that S3 has
    :param needed: data files from which one can be made: 1, or the data
        fragments of an erasure-coded object
    :param is_failing: the device fails as a whole (``strategy.health``)
    """
    if is_failing:
        return Aside.FAILING
    there = [answer for answer in answers
             if answer is not None and answer.timestamp == timestamp]
    in_s3 = {answer.remote_key for answer in there
             if not answer.is_proven}.intersection(keys_there)
    if sum(answer.is_proven for answer in there) + len(in_s3) >= needed:
        return Aside.YES
    return Aside.NOBODY


def keys_besides(timestamp: str, key: str,
                 answers: Sequence[Optional[Answer]]) -> List[str]:
    """Keys that records of others name of a version; S3 may have lost these
    too.

    :param key: that the record here names, or ''
    :param answers: with the keys that records name
    """
    return sorted({answer.remote_key for answer in answers
                   if answer is not None and answer.timestamp == timestamp
                   and answer.remote_key not in ('', key)})


def is_absent(timestamp: str, answers: Sequence[Optional[Answer]]) -> bool:
    """True if every primary has answered, and none has the version or
    something newer, in its place or in quarantine. Something older may be
    there: a write that was refused, and lost with the one node that took
    it."""
    return bool(answers) and all(
        answer is not None and answer.timestamp < timestamp
        and answer.quarantined is not None
        and answer.quarantined < timestamp for answer in answers)


def is_quarantined(timestamp: str,
                   answers: Sequence[Optional[Answer]]) -> bool:
    """True if no primary that answered has the version or something newer
    in its place, and one has it, or something newer, in quarantine: until
    an operator has had it brought back or removed, its bytes are needed."""
    said = [answer for answer in answers if answer is not None]
    return all(answer.timestamp < timestamp for answer in said) and any(
        (answer.quarantined or '') >= timestamp for answer in said)


def seconds_of(timestamp: str) -> float:
    """Of a timestamp in Swift's internal form; never, if it is none."""
    try:
        return float(timestamp.partition('_')[0])
    except ValueError:
        return math.inf

