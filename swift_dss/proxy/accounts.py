"""Which classes an account may ask for.

An account's own list is sysmeta that only a reseller admin sets; without
one, the ``account_classes`` option counts. Lists are remembered for a
minute by each worker, so that classified uploads do not ask every time.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from typing import Any, Callable, FrozenSet, Optional, Tuple

from swift.proxy.controllers.base import get_account_info

from swift_dss.core.classes import ClassTable
from swift_dss.core.errors import BadClassInput, BadConfig
from swift_dss.core.limits import UNCLASSIFIED
from swift_dss.proxy.wsgi import Env
from swift_dss.wire import names
from swift_dss.wire.headers import parse_object_class


ALL = '*'
#: The header that reseller admins send and account owners see.
ACCOUNT_CLASSES = names.ACCOUNT_CLASSES
_SYSMETA_KEY = names.ACCOUNT_SYSMETA_CLASSES[
    len('X-Account-Sysmeta-'):].lower()
#: Accounts one worker remembers: some 200 bytes each.
_MAX_REMEMBERED = 10000


def parse_list(text: str, table: ClassTable,
               field: str = ACCOUNT_CLASSES) -> Optional[FrozenSet[int]]:
    """The class ids that ``text`` allows; None means all.

    :param text: ``*``, or names and ids with ``,`` between them
    :raises BadClassInput: the entry at fault and why
    """
    if text.strip() == ALL:
        return None
    allowed = {UNCLASSIFIED}
    for position, entry in enumerate(text.split(',')):
        try:
            allowed.add(parse_object_class(entry.strip(), table))
        except BadClassInput as err:
            raise BadClassInput(field, 'entry %d: %s' % (
                position + 1, err.reason)) from err
    return frozenset(allowed)


def canonical(text: str, table: ClassTable) -> str:
    """The list as it is stored: ids, sorted, or ``*``; '' removes it."""
    if not text.strip():
        return ''
    allowed = parse_list(text, table)
    if allowed is None:
        return ALL
    return ','.join(str(class_id) for class_id in sorted(allowed))


class AccountClasses:
    """Answers whether an account may ask for a class.

    :param default: the ``account_classes`` option
    :raises BadConfig: the option names a class that there is not
    """

    def __init__(self, app: Any, default: str, table: ClassTable,
                 remember_seconds: float = 60.0,
                 clock: Callable[[], float] = time.monotonic) -> None:
        self._app = app
        self._default = default.strip() or ALL
        self._remember_seconds = remember_seconds
        self._clock = clock
        self._known: OrderedDict[str, Tuple[float, str]] = OrderedDict()
        try:
            parse_list(self._default, table, 'account_classes')
        except BadClassInput as err:
            raise BadConfig(str(err)) from err

    def allowed(self, env: Env, account: str,
                table: ClassTable) -> Optional[FrozenSet[int]]:
        """The ids that ``account`` may ask for; None means all.

        May make one account HEAD. A stored list that no longer parses
        (a class left the table) counts as far as it does.
        """
        text = self._stored(env, account) or self._default
        try:
            return parse_list(text, table)
        except BadClassInput:
            return frozenset({UNCLASSIFIED} | {
                int(entry) for entry in text.split(',')
                if entry.strip().isdigit()})

    def shown(self, stored: str, table: ClassTable) -> str:
        """The value of an account HEAD; '' if every class may be used."""
        text = stored or self._default
        if text == ALL:
            return ''
        try:
            allowed = parse_list(text, table) or frozenset()
        except BadClassInput:
            return text
        return ','.join(table.name_of(class_id)
                        for class_id in sorted(allowed) if class_id)

    def forget(self, account: str) -> None:
        """The account's list was just changed through this worker."""
        self._known.pop(account, None)

    def _stored(self, env: Env, account: str) -> str:
        now = self._clock()
        known = self._known.get(account)
        if known and now < known[0]:
            return known[1]
        info = get_account_info(env, self._app, swift_source='DSS')
        text: str = (info.get('sysmeta') or {}).get(_SYSMETA_KEY, '')
        self._known[account] = (now + self._remember_seconds, text)
        self._known.move_to_end(account)
        while len(self._known) > _MAX_REMEMBERED:
            self._known.popitem(last=False)
        return text
