"""JSON objects of our messages and state files, field by field.

JSON does not declare types. Check each message here, so that the code behind
never meets a list in place of a name.
"""

from __future__ import annotations

import json
from math import isfinite
from typing import Any, Dict, Optional, Union

from swift_dss.core.errors import DamagedRecord
from swift_dss.core.version import VersionId


class Fields:
    """One JSON object.

    :param raw: its bytes
    :param record: its name in errors
    :raises DamagedRecord: it is no JSON object
    """

    def __init__(self, raw: Union[bytes, str], record: str) -> None:
        self._what = record
        try:
            values = json.loads(raw)
        except (ValueError, RecursionError) as err:
            raise DamagedRecord('%s: %s' % (record, err)) from err
        if not isinstance(values, dict):
            raise DamagedRecord('%s: not an object' % record)
        self.values: Dict[str, Any] = values

    def text(self, name: str, default: Optional[str] = None) -> str:
        """A string."""
        value = self._get(name, default)
        if not isinstance(value, str):
            raise self._wrong(name, 'a text')
        return value

    def whole(self, name: str, default: Optional[int] = None) -> int:
        """A whole number, 0 or more."""
        value = self._get(name, default)
        # JSON's true is Python's 1.
        if not isinstance(value, int) or isinstance(value, bool) or \
                value < 0:
            raise self._wrong(name, 'a whole number')
        return value

    def whole_or_none(self, name: str) -> Optional[int]:
        """A whole number of either sign, or null, or nothing."""
        value = self.values.get(name)
        if value is not None and (
                not isinstance(value, int) or isinstance(value, bool)):
            raise self._wrong(name, 'a whole number or null')
        return value

    def number(self, name: str, default: Optional[float] = None) -> float:
        """A finite number."""
        value = self._get(name, default)
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise self._wrong(name, 'a number')
        try:
            number = float(value)
        except OverflowError:
            raise self._wrong(name, 'a number below 1.8e308') from None
        if not isfinite(number):
            raise self._wrong(name, 'a finite number')
        return number

    def flag(self, name: str, default: Optional[bool] = None) -> bool:
        """true or false."""
        value = self._get(name, default)
        if not isinstance(value, bool):
            raise self._wrong(name, 'true or false')
        return value

    def name(self, name: str) -> str:
        """A text that may be one part of a path."""
        value = self.text(name)
        if not value or value.startswith('.') or '/' in value or \
                '\0' in value:
            raise self._wrong(name, 'one part of a path')
        return value

    def version(self, device: str, policy: str, object_hash: str,
                timestamp: str, frag_index: str) -> VersionId:
        """The version whose parts are under these names."""
        frag = self.whole_or_none(frag_index)
        if frag is not None and frag < 0:
            raise self._wrong(frag_index, 'a fragment')
        return VersionId(self.name(device), self.whole(policy),
                         self.name(object_hash), self.name(timestamp), frag)

    def inner(self, name: str) -> Fields:
        """The object under ``name``."""
        value = self.values.get(name)
        if not isinstance(value, dict):
            raise self._wrong(name, 'an object')
        fields = Fields.__new__(Fields)
        fields._what = '%s %s' % (self._what, name)
        fields.values = value
        return fields

    def _get(self, name: str, default: Any) -> Any:
        if name not in self.values:
            if default is None:
                raise self._wrong(name, 'there')
            return default
        return self.values[name]

    def _wrong(self, name: str, wanted: str) -> DamagedRecord:
        return DamagedRecord('%s: %s is not %s' % (self._what, name, wanted))
