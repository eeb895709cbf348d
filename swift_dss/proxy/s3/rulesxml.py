"""Lifecycle rules as S3's XML, both ways.

Everything that S3 knows and this server does not do is refused with the name
of the element, so that no rule is taken that will not be followed.
"""

from __future__ import annotations

import calendar
import re
import time
import uuid
from typing import Any, Container, List, Optional, Tuple

from swift.common.middleware.s3api.etree import (
    Element, SubElement, XMLSyntaxError, fromstring, tostring)
from swift.common.middleware.s3api.s3response import (
    InvalidArgument, InvalidRequest, InvalidStorageClass, MalformedXML,
    S3NotImplemented)

from swift_dss.core.lifecycle import Lifecycle, Rule, Transition, When
from swift_dss.core.limits import (
    MAX_LIFECYCLE_DAYS, MAX_LIFECYCLE_ID_CHARS, MAX_LIFECYCLE_RULES,
    MAX_LIFECYCLE_SIZE, MAX_S3_TAG_KEY_CHARS, MAX_S3_TAG_VALUE_CHARS)

_ROOT = 'LifecycleConfiguration'
_DATE = re.compile(
    r'(\d{4}-\d\d-\d\d)(T00:00:00(\.0{1,9})?(Z|[+]00:00)?)?')
_ANY_DATE = re.compile(r'\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d{1,9})?)?'
                       r'(Z|[+-]\d\d:\d\d)?')
_NUMBER = re.compile(r'-?\d{1,30}')
#: Elements of S3's that no rule of ours does.
_NOT_DONE = ('AbortIncompleteMultipartUpload', 'NoncurrentVersionTransition',
             'NoncurrentVersionExpiration', 'ExpiredObjectDeleteMarker')
_CONDITIONS = ('Prefix', 'Tag', 'ObjectSizeGreaterThan',
               'ObjectSizeLessThan')


def parse(body: bytes, storage_classes: Container[str]) -> Lifecycle:
    """The configuration in a document.

    :param storage_classes: that a transition may name
    :raises ErrorResponse: S3's own; it names the element at fault
    """
    try:
        root = fromstring(body)
    except XMLSyntaxError:
        raise MalformedXML() from None
    _known(root, 'Rule')
    if root.tag != _ROOT or not len(root):
        raise MalformedXML()
    if len(root) > MAX_LIFECYCLE_RULES:
        raise MalformedXML('A lifecycle configuration has at most %d rules, '
                           'and this one has %d.' % (
                               MAX_LIFECYCLE_RULES, len(root)))
    rules = tuple(_rule(elem, storage_classes) for elem in root)
    ids = set()
    for rule in rules:
        if rule.rule_id in ids:
            raise InvalidArgument('ID', rule.rule_id, 'Rule ID must be '
                                  'unique. Found same ID for more than one '
                                  'rule.')
        ids.add(rule.rule_id)
    return Lifecycle(rules)


def document(lifecycle: Lifecycle) -> bytes:
    """The document that a client gets."""
    root = Element(_ROOT)
    for rule in lifecycle.rules:
        _add_rule(SubElement(root, 'Rule'), rule)
    written: bytes = tostring(root)
    return written


def _rule(elem: Any, storage_classes: Container[str]) -> Rule:
    for name in _NOT_DONE:
        if elem.find('.//' + name) is not None:
            raise S3NotImplemented('%s is not implemented.' % name)
    _known(elem, 'ID', 'Status', 'Filter', 'Prefix', 'Transition',
           'Expiration')
    status = _text(elem, 'Status')
    if status not in ('Enabled', 'Disabled'):
        raise MalformedXML()
    rule_id = _text(elem, 'ID') or uuid.uuid4().hex
    if len(rule_id) > MAX_LIFECYCLE_ID_CHARS:
        raise InvalidArgument('ID', rule_id, 'ID length should not exceed '
                              'allowed limit of %d' % MAX_LIFECYCLE_ID_CHARS)
    inside, is_old = _only(elem, 'Filter'), elem.find('Prefix') is not None
    if (inside is None) != is_old:
        raise MalformedXML()
    prefix, tags, size_over, size_under = _conditions(
        elem if inside is None else inside, is_old)
    transitions = tuple(_transition(each, storage_classes)
                        for each in elem.findall('Transition'))
    expiration = _only(elem, 'Expiration')
    rule = Rule(rule_id, status == 'Enabled', prefix, tags, size_over,
                size_under, transitions, None if expiration is None
                else _when(expiration, 'Expiration', 1), is_old)
    _check_actions(rule)
    return rule


def _conditions(elem: Any, is_old: bool) -> Tuple[
        str, Tuple[Tuple[str, str], ...], Optional[int], Optional[int]]:
    """Prefix, tags and sizes of a filter."""
    if not is_old:
        _known(elem, 'And', *_CONDITIONS)
        if len(elem) > 1:
            raise MalformedXML()
        both = elem.find('And')
        if both is not None:
            _known(both, *_CONDITIONS)
            if len(both) < 2:
                raise MalformedXML()
            elem = both
    tags = [] if is_old else [_tag(each) for each in elem.findall('Tag')]
    if len(dict(tags)) < len(tags):
        raise InvalidRequest('Duplicate Tag Keys are not allowed.')
    over, under = (None, None) if is_old else (
        _number(elem, 'ObjectSizeGreaterThan', 0, MAX_LIFECYCLE_SIZE),
        _number(elem, 'ObjectSizeLessThan', 1, MAX_LIFECYCLE_SIZE))
    if over is not None and under is not None and over + 1 >= under:
        raise InvalidRequest("'ObjectSizeLessThan' has to be a value greater "
                             "than 'ObjectSizeGreaterThan' and leave a size "
                             'between them.')
    prefix = _text(elem, 'Prefix') or ''
    if len(prefix.encode('utf-8')) > 1024:
        raise InvalidRequest('The maximum size of a prefix is 1024.')
    return prefix, tuple(tags), over, under


def _tag(elem: Any) -> Tuple[str, str]:
    _known(elem, 'Key', 'Value')
    key, value = _text(elem, 'Key'), _text(elem, 'Value')
    if key is None or value is None:
        raise MalformedXML()
    if not 0 < len(key) <= MAX_S3_TAG_KEY_CHARS:
        raise InvalidArgument('Key', key, 'The TagKey you have provided is '
                              'invalid')
    if len(value) > MAX_S3_TAG_VALUE_CHARS:
        raise InvalidArgument('Value', value, 'The TagValue you have '
                              'provided is invalid')
    return key, value


def _transition(elem: Any, storage_classes: Container[str]) -> Transition:
    when = _when(elem, 'Transition', 0, 'StorageClass')
    storage_class = _text(elem, 'StorageClass')
    if storage_class is None:
        raise MalformedXML()
    if storage_class not in storage_classes:
        raise InvalidStorageClass()
    return Transition(when, storage_class)


def _when(elem: Any, action: str, least: int, *others: str) -> When:
    _known(elem, 'Days', 'Date', *others)
    days, date = _only(elem, 'Days'), _text(elem, 'Date')
    if (days is None) == (date is None):
        raise MalformedXML()
    if date is not None:
        return When(date=_date(date))
    number = _number(elem, 'Days', least, MAX_LIFECYCLE_DAYS, (
        "'Days' for %s action must be a %s integer" % (
            action, 'positive' if least else 'nonnegative')))
    return When(days=number)


def _date(text: str) -> int:
    told = _DATE.fullmatch(text)
    try:
        if told is None:
            if _ANY_DATE.fullmatch(text):
                raise InvalidArgument(
                    'Date', text, "'Date' must be at midnight GMT")
            raise ValueError(text)
        return calendar.timegm(time.strptime(told.group(1), '%Y-%m-%d'))
    except (ValueError, OverflowError):
        raise MalformedXML() from None


def _check_actions(rule: Rule) -> None:
    """S3's own rules about the actions of one rule."""
    if not rule.transitions and rule.expiration is None:
        raise InvalidRequest('At least one action needs to be specified in a '
                             'rule.')
    times = [transition.when for transition in rule.transitions] + (
        [rule.expiration] if rule.expiration else [])
    if len({when.days is None for when in times}) > 1:
        raise InvalidRequest(
            "Found mixed 'Date' and 'Days' based Expiration and Transition "
            "actions in lifecycle rule for filter '(prefix=%s)'"
            % rule.prefix)
    names = [transition.storage_class for transition in rule.transitions]
    if len(set(names)) < len(names):
        raise InvalidRequest("'StorageClass' must be different for "
                             "'Transition' actions in same 'Rule'")
    last = rule.expiration
    for when in times[:len(names)]:
        for field in ('days', 'date'):
            if last is not None and getattr(when, field) is not None and \
                    getattr(when, field) >= getattr(last, field):
                raise InvalidArgument(
                    field.title(), str(getattr(last, field)),
                    "'%s' in the Expiration action for filter "
                    "'(prefix=%s)' must be greater than '%s' in the "
                    'Transition action' % (
                        field.title(), rule.prefix, field.title()))


def _number(elem: Any, name: str, least: int, most: int,
            says: str = '') -> Optional[int]:
    """An integer.

    :raises InvalidArgument: it is out of bounds
    :raises MalformedXML: it is none
    """
    text = _text(elem, name)
    if text is None:
        return None
    if not _NUMBER.fullmatch(text.strip()):
        raise MalformedXML()
    number = int(text)
    if not least <= number <= most:
        raise InvalidArgument(name, text.strip(), says if says and number
                              < least else "'%s' must be an integer from %d "
                              'to %d' % (name, least, most))
    return number


def _known(elem: Any, *names: str) -> None:
    """All children are of these names; comments, that S3 takes, are not.

    :raises MalformedXML: another one
    """
    for child in list(elem):
        if not isinstance(child.tag, str):
            elem.remove(child)
        elif child.tag not in names:
            raise MalformedXML()


def _only(elem: Any, name: str) -> Any:
    children: List[Any] = elem.findall(name)
    if len(children) > 1:
        raise MalformedXML()
    return children[0] if children else None


def _text(elem: Any, name: str) -> Optional[str]:
    child = _only(elem, name)
    if child is None:
        return None
    if len(child):
        raise MalformedXML()
    return child.text or ''


def _add_rule(elem: Any, rule: Rule) -> None:
    SubElement(elem, 'ID').text = rule.rule_id
    if rule.is_old:
        SubElement(elem, 'Prefix').text = rule.prefix
    else:
        _add_filter(SubElement(elem, 'Filter'), rule)
    SubElement(elem, 'Status').text = \
        'Enabled' if rule.is_enabled else 'Disabled'
    for transition in rule.transitions:
        inner = SubElement(elem, 'Transition')
        _add_when(inner, transition.when)
        SubElement(inner, 'StorageClass').text = transition.storage_class
    if rule.expiration is not None:
        _add_when(SubElement(elem, 'Expiration'), rule.expiration)


def _add_filter(elem: Any, rule: Rule) -> None:
    sizes = [('ObjectSizeGreaterThan', rule.size_over),
             ('ObjectSizeLessThan', rule.size_under)]
    sizes = [(name, size) for name, size in sizes if size is not None]
    count = bool(rule.prefix) + len(rule.tags) + len(sizes)
    if count > 1:
        elem = SubElement(elem, 'And')
    if rule.prefix or not count:
        SubElement(elem, 'Prefix').text = rule.prefix
    for key, value in rule.tags:
        tag = SubElement(elem, 'Tag')
        SubElement(tag, 'Key').text = key
        SubElement(tag, 'Value').text = value
    for name, size in sizes:
        SubElement(elem, name).text = str(size)


def _add_when(elem: Any, when: When) -> None:
    if when.days is not None:
        SubElement(elem, 'Days').text = str(when.days)
    else:
        SubElement(elem, 'Date').text = time.strftime(
            '%Y-%m-%dT00:00:00.000Z', time.gmtime(when.date))
