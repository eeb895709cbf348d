"""Tables of ``swift-dss tier``."""

from __future__ import annotations

from typing import Any, Dict, Iterator, List, Optional, Tuple

from swift_dss.cli.block import tables
from swift_dss.cli.table import seconds, share, size, table


def status(found: Dict[str, Any]) -> str:
    """Header, devices, classes, gateway, prefetch."""
    parts = [_header(found), _devices(found['devices']),
             _classes(found['classes'])]
    kernel = [device['block'] for device in found['devices']
              if device.get('block')]
    if kernel:
        parts.append(tables.status(kernel))
    if found['gateway'] is not None:
        parts.append(_gateway(found['gateway']))
        parts.append(_link(found['link']))
    parts += ['warning: ' + text for text in found['space']['warnings']]
    parts.append(_prefetch(found.get('prefetch') or {}))
    return '\n\n'.join(part for part in parts if part)


def _header(found: Dict[str, Any]) -> str:
    text = 'tier daemon %d, up %s; engine %s, eviction %s, carrier %s; %d ' \
        'events waiting' % (
            found['pid'], seconds(found['up_seconds']), found['engine'],
            found['eviction'], found['carrier'], found['event_backlog'])
    for shard in found.get('shards', ()):
        text += '\nshard %d: %s, %s; %s' % (
            shard['number'],
            'process %d, up %s' % (shard['pid'], seconds(
                shard['up_seconds'])) if shard['answers']
            else 'does not answer, and is started again',
            'started again %d times' % shard['restarts']
            if shard['restarts'] else 'never started again',
            ' '.join(shard['devices']))
    if found['rebuild_needed']:
        text += '\nthe index is being rebuilt: figures are not complete'
    elif found['sweep_needed']:
        text += '\nafter an unclean stop, a sweep is under way'
    for name in found.get('left_policies', ()):
        text += '\n%s is not ours any more and was left as it is; "swift-' \
            'dss tier verify" names what lacks bytes there' % name
    return text


def _devices(devices: List[Dict[str, Any]]) -> str:
    rows = []
    for device in devices:
        pressure = device['pressure'] or {}
        totals = device['totals']
        rows.append((
            device['name'], device['ssd_state'], device['hdd_state'],
            device['room_state'], totals['objects'],
            size(totals['ssd']), size(pressure.get('ssd_bytes')),
            share(pressure.get('ssd_used_bytes', 0),
                  pressure.get('ssd_bytes', 0)),
            size(totals['hdd']), size(totals['remote']),
            size(totals['dirty']), seconds(device['oldest_dirty_seconds']),
            device['wishes'], device.get('lacking', 0)))
    return table(('DEVICE', 'SSD', 'HDD', 'ROOM', 'SPANS', 'ON SSD>',
                  'OF>', 'FULL>', 'ON HDD>', 'ON S3>', 'DIRTY>',
                  'OLDEST>', 'TO PROMOTE', 'LACKING>'), rows)


def _classes(classes: Dict[str, Any]) -> str:
    order = sorted(classes.items(), key=lambda item: (
        -item[1]['rank'], -int(item[0])))
    return table(
        ('CLASS', 'ID', 'RANK', 'OBJECTS', 'TOTAL>', 'ON SSD>', 'ON HDD>',
         'ON S3>', 'DIRTY>', 'READS', 'HITS>', 'BYTE HITS>', ''),
        [(one['name'], int(class_id), one['rank'], one['objects'],
          size(one['total']), size(one['ssd']), size(one['hdd']),
          size(one['remote']), size(one['dirty']), one.get('reads', 0),
          share(one.get('hits', 0), one.get('reads', 0)),
          share(one.get('hit_bytes', 0), one.get('bytes', 0)),
          'pinned' if one['pinned'] else '')
         for class_id, one in order])


def _gateway(gateway: Dict[str, Any]) -> str:
    return table(('GATEWAY', ''), [
        (name.replace('_', ' '), _told(name, value))
        for name, value in sorted(_flat(gateway))])


def _flat(found: Dict[str, Any], above: str = ''
          ) -> Iterator[Tuple[str, Any]]:
    """Each value under its own name and that of what it is in."""
    for name, value in found.items():
        if isinstance(value, dict):
            yield from _flat(value, above + name + '_')
        else:
            yield above + name, value


def _told(name: str, value: Any) -> str:
    if value in (None, '', []):
        return '-'
    if name.endswith('_seconds'):
        return seconds(value)
    return size(value) if name.endswith('_bytes') else str(value)


#: The fates of pieces: key of the status, and text of the table.
_FATES = (('useful', 'useful: here before it was read'),
          ('late', 'late: asked for before it was here'),
          ('wasted', 'wasted: left unread'),
          ('dropped', 'dropped: no room, no time, or failed'),
          ('cancelled', 'cancelled: a reader went first'))


def _prefetch(found: Dict[str, Any]) -> str:
    if not found:
        return ''
    head = 'prefetch %s: %d waiting, %d coming, %d unread; %s of %s; %s of ' \
        'memory; $%.6f' % (
            found['strategy'], found['waiting'], found['coming'],
            found['here'], size(found['open_bytes']),
            size(found['budget_bytes']), size(found['state_bytes']),
            found['dollars'])
    return head + '\n' + table(
        ('PREFETCHED', 'PARTS>', 'BYTES>', 'DOLLARS>'),
        [(text, found[key + '_pieces'], size(found[key + '_bytes']),
          '%.6f' % found[key + '_dollars']) for key, text in _FATES])


def _link(link: Dict[str, Any]) -> str:
    return table(('LINK', 'MEASURED>', 'PREDICTED>', 'ERROR>', 'BY'), [
        (name, _rate(link[name]['measured']), _rate(link[name]['predicted']),
         _error(link[name]['mape']),
         link[name]['method'].replace('_', ' '))
        for name in ('up', 'down', 'drain')])


def _rate(value: Optional[float]) -> str:
    return size(value) + '/s' if value else '-'


def _error(share: Optional[float]) -> str:
    # Of samples near nothing (objects of a few bytes), the error is near
    # anything.
    if share is None:
        return '-'
    return '>999 %' if share > 9.99 else '%.0f %%' % (100 * share)


def listing(rows: List[Dict[str, Any]], with_heads: bool = True) -> str:
    """One line a version: where its bytes are, by class.

    :param with_heads: False for what follows on other rows
    """
    text = table(
        ('DEVICE', 'OBJECT', 'CLASS', 'SIZE>', 'TIERS', 'SSD>', 'HDD>',
         'S3>', 'FLAGS'),
        [(row['device'], _name(row),
          ','.join(one['name'] for one in row['classes']) or '-',
          size(row['size']), _tiers(row), size(row['ssd']),
          size(row['hdd']), size(row['remote']), _flags(row))
         for row in rows])
    return text if with_heads else text.partition('\n')[2]


def _name(row: Dict[str, Any]) -> str:
    name = str(row['name'] or row['hash'])
    return name if row['frag'] is None else '%s#%d' % (name, row['frag'])


def _tiers(row: Dict[str, Any]) -> str:
    return '+'.join(tier for tier in ('ssd', 'hdd', 'remote')
                    if row[tier]) or '-'


def _flags(row: Dict[str, Any]) -> str:
    return ' '.join(flag for flag, on in (
        ('dirty', row['dirty']), ('pinned', row['pinned'])) if on)


def walks(found: List[Dict[str, Any]]) -> str:
    """The work of a rebuild or sweep, by device."""
    return table(
        ('DEVICE', 'VERSIONS', 'UNREADABLE', 'FORGOTTEN', 'ORPHANS',
         'ORPHAN BYTES>'),
        [(one['device'], one['versions'], one['unreadable'],
          one['forgotten'], one['orphans'], size(one['orphan_bytes']))
         for one in found])


def inits(found: List[Dict[str, str]]) -> str:
    """What ``tier init`` marked."""
    return table(('DEVICE', 'FOLDER', 'IDENTITY'), [
        (one['device'], one['folder'], one['identity']) for one in found])
