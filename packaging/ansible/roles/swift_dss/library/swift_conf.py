"""Ansible module: options of Swift's configuration files, in their place.

Comments, order and all other options stay. Ansible's own ``lineinfile`` knows
no sections, and its ``ini_file`` is in no package that comes with it.
"""

from __future__ import annotations

import configparser
import os
import re
from typing import Dict, List, Optional

from ansible.module_utils.basic import AnsibleModule

DOCUMENTATION = '''
module: swift_conf
short_description: Sets options of Swift's configuration files
description: Keeps comments, the order and all other options.
options:
  path:
    description: The file, which is there.
    type: path
    required: true
  options:
    description: Section to option to value.
    type: dict
    required: true
  existing_sections:
    description: Refuse sections that the file does not have.
    type: bool
    default: false
  place_filters:
    description: Put dss into the pipeline, and what belongs to s3api.
    type: bool
    default: false
author: swift-dss
'''
_HEADER = re.compile(r'\[([^\]]+)\]')
_PIPELINE = 'pipeline:main'
#: What stands behind dss, at the end of a pipeline.
_BEHIND = re.compile(r'proxy-server|proxy-logging|encryption|.*keymaster')


class Lines:
    """The lines of a file.

    :raises ValueError: it is no configuration file
    """

    def __init__(self, text: str) -> None:
        self._lines = text.splitlines()
        self._check()

    def __str__(self) -> str:
        """The file."""
        return '\n'.join(self._lines) + '\n'

    def has(self, section: str) -> bool:
        """Is there such a section?"""
        return section in map(self._header, range(len(self._lines)))

    def get(self, section: str, option: str) -> Optional[str]:
        """The value that counts, its continued lines joined; or None."""
        there = self._of_option(section, option)
        if not there:
            return None
        first, end = there[-1], self._end(there[-1])
        lines = [self._lines[first].partition('=')[2]] + [
            line for line in self._lines[first + 1:end]
            if not line.lstrip().startswith(('#', ';'))]
        return ' '.join(' '.join(lines).split())

    def set(self, section: str, option: str, value: str) -> None:
        """Set the option that counts, or add it to its section."""
        if self.get(section, option) == value:
            return
        there = self._of_option(section, option)
        line = '%s = %s' % (option, value)
        if there:
            self._lines[there[-1]:self._end(there[-1])] = [line]
        elif self.has(section):
            self._lines.insert(self._last_of(section) + 1, line)
        else:
            self._lines += ['', '[%s]' % section, line]
        self._check()

    def _check(self) -> None:
        try:
            configparser.RawConfigParser(strict=False).read_string(str(self))
        except configparser.Error as err:
            raise ValueError(' '.join(str(err).split())) from err

    def _header(self, at: int) -> Optional[str]:
        match = _HEADER.match(self._lines[at])
        return match.group(1) if match else None

    def _inside(self, section: str) -> List[int]:
        """Numbers of the lines of a section, its header first."""
        inside, numbers = False, []
        for at in range(len(self._lines)):
            header = self._header(at)
            if header is not None:
                inside = header == section
            if inside:
                numbers.append(at)
        return numbers

    def _of_option(self, section: str, option: str) -> List[int]:
        pattern = re.compile(r'(?:set +)?%s *[=:]' % re.escape(option))
        return [at for at in self._inside(section)
                if pattern.match(self._lines[at])]

    def _last_of(self, section: str) -> int:
        return max(at for at in self._inside(section)
                   if self._lines[at].strip())

    def _end(self, first: int) -> int:
        """The line behind those that continue an option. Comments and empty
        lines may lie between them."""
        end = first + 1
        for at in range(end, len(self._lines)):
            line = self._lines[at]
            if line.strip() and line[0] in ' \t':
                end = at + 1
            elif line.strip() and line[0] not in '#;':
                break
        return end


def placed(pipeline: str) -> str:
    """A pipeline with dss in its place, and dss_retry_after left of s3api."""
    words = pipeline.split()
    if 's3api' in words and 'dss_retry_after' not in words:
        words.insert(words.index('s3api'), 'dss_retry_after')
    if 'dss' not in words:
        at = len(words)
        while at and _BEHIND.fullmatch(words[at - 1]):
            at -= 1
        words.insert(at, 'dss')
    return ' '.join(words)


def place_filters(lines: Lines) -> None:
    """Change the pipeline of a proxy, and sections that it names.

    :raises ValueError: there is no pipeline
    """
    pipeline = lines.get(_PIPELINE, 'pipeline')
    if not pipeline:
        raise ValueError('[%s] pipeline is missing' % _PIPELINE)
    lines.set(_PIPELINE, 'pipeline', placed(pipeline))
    if 's3api' in pipeline.split():
        lines.set('filter:s3api', 'use', 'egg:swift_dss#s3api')
        lines.set('filter:dss_retry_after', 'use',
                  'egg:swift_dss#dss_retry_after')


def edited(text: str, wanted: Dict[str, Dict[str, str]],
           existing_sections: bool, has_pipeline: bool) -> str:
    """The text with the options.

    :raises ValueError: it cannot be; with the reason
    """
    lines = Lines(text)
    if has_pipeline:
        place_filters(lines)
    for section, options in wanted.items():
        if existing_sections and not lines.has(section):
            raise ValueError('there is no section [%s]' % section)
        for option, value in options.items():
            lines.set(section, option, str(value))
    return str(lines) if str(lines).split() != text.split() else text


def main() -> None:
    """Ansible calls it on the node."""
    module = AnsibleModule({
        'path': {'type': 'path', 'required': True},
        'options': {'type': 'dict', 'required': True},
        'existing_sections': {'type': 'bool', 'default': False},
        'place_filters': {'type': 'bool', 'default': False},
    }, supports_check_mode=True)
    path = module.params['path']
    try:
        with open(path, encoding='utf-8') as source:
            before = source.read()
        after = edited(before, module.params['options'],
                       module.params['existing_sections'],
                       module.params['place_filters'])
    except (OSError, ValueError) as err:
        module.fail_json(msg='%s: %s' % (path, err))
    if after != before and not module.check_mode:
        # The folder is the module's alone: swift.conf may be secret.
        fresh = os.path.join(module.tmpdir, 'swift_conf')
        with open(fresh, 'w', encoding='utf-8') as target:
            target.write(after)
        # Owner and mode stay those of the file.
        module.atomic_move(fresh, path)
    module.exit_json(changed=after != before, diff={
        'before': before, 'after': after, 'before_header': path,
        'after_header': path})


if __name__ == '__main__':
    main()
