"""Tables of ``swift-dss tier``."""

from __future__ import annotations

import time
from typing import Any, Dict, Iterator, List, Optional, Tuple

from swift_dss.cli.block import tables
from swift_dss.cli.table import seconds, share, size, table
from swift_dss.wire.node.summary import REMOTE_STATES


def status(answer: Dict[str, Any]) -> str:
    """Header, devices, classes, gateway, prefetch."""
    parts = [_header(answer), _devices(answer['devices']),
             _classes(answer['classes'])]
    kernel = [device['block'] for device in answer['devices']
              if device.get('block')]
    if kernel:
        parts.append(tables.status(kernel))
    if answer['gateway'] is not None:
        parts.append(_gateway(answer['gateway']))
        parts.append(_link(answer['link']))
    parts += ['warning: ' + text for text in answer['space']['warnings']]
    parts += map(tuning, answer.get('self_tuning', ()))
    parts.append(kept_out(answer))
    parts.append(_prefetch(answer.get('prefetch') or {}))
    parts.append(_classify(answer.get('classify') or {}))
    return '\n\n'.join(part for part in parts if part)


def _header(answer: Dict[str, Any]) -> str:
    text = 'tier daemon %d, up %s; engine %s, eviction %s, carrier %s; %d ' \
        'events waiting' % (
            answer['pid'], seconds(answer['up_seconds']), answer['engine'],
            answer['eviction'], answer['carrier'], answer['event_backlog'])
    for shard in answer.get('shards', ()):
        text += '\nshard %d: %s, %s; %s' % (
            shard['number'],
            'process %d, up %s' % (shard['pid'], seconds(
                shard['up_seconds'])) if shard['answers']
            else 'does not answer, and is started again',
            'started again %d times' % shard['restarts']
            if shard['restarts'] else 'never started again',
            ' '.join(shard['devices']))
    if answer['rebuild_needed']:
        text += '\nthe index is being rebuilt: figures are not complete'
    elif answer['sweep_needed']:
        text += '\nafter an unclean stop, a sweep is under way'
    for name in answer.get('left_policies', ()):
        text += '\n%s is not ours any more and was left as it is; "swift-' \
            'dss tier verify" names what lacks bytes there' % name
    return text


def kept_out(answer: Dict[str, Any]) -> str:
    """Bytes that first reads did not bring to the SSD; '' if they bring
    all."""
    # A daemon of an earlier version does not tell it.
    if answer.get('admit', 'all') == 'all':
        return ''
    counts = answer['metrics']
    text = 'admit %s: %d first reads did not bring %s to the SSD, others ' \
        'brought %s; %d first reads are remembered' % (
            answer['admit'], counts['tier.promotions_kept_out'],
            size(counts['tier.kept_out_bytes']),
            size(counts['tier.promoted_bytes']),
            sum(device['kept_out'] for device in answer['devices']))
    if answer['admit'] == 'learned':
        text += '\nin force: ' + ', '.join(
            '%s %s' % (device['name'], device['admits'])
            for device in answer['devices'])
    return text


def tuning(told: Dict[str, Any]) -> str:
    """A tuner: what is in force and why, and what each order would save."""
    where = '' if told['shard'] is None else ' of shard %d' % told['shard']
    text = 'self-tuning%s: %s is in force, configured is %s; since %s: %s' % (
        where, told['in_force'], told['configured'],
        seconds(time.time() - told['since']), told['why'])
    if told['is_held']:
        text += '\nit stays for now: another order did not keep its promise'
    text += '\n%s of all objects are sampled, %d are remembered; %.1f of ' \
        '%.1f s of processor time' % (
            share(told['sample_share'], 1), told['objects'],
            told['cpu_seconds'], told['daemon_cpu_seconds'])
    return '%s\n%s' % (text, table(
        ('ORDER', 'WOULD SAVE>', 'HITS>', 'OF BYTES>', ''), [
            (name, share(saved, 1), *(
                # A daemon of an earlier version does not tell them.
                share(told[key][name], 1) if key in told else '-'
                for key in ('hits', 'hit_bytes')), ', '.join(
                word for word, order in (
                    ('in force', 'in_force'), ('configured', 'configured'))
                if told[order] == name))
            for name, saved in told['saved'].items()]))


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
        ('CLASS', 'ID', 'RANK', 'WARM', 'SPANS', 'TOTAL>', 'ON SSD>',
         'COLD>', 'ON HDD>', 'ON S3>', 'DIRTY>', 'READS', 'HITS>',
         'BYTE HITS>', ''),
        [(part['name'], int(class_id), part['rank'], part['warm_copies'],
          part['objects'], size(part['total']), size(part['ssd']),
          size(part['cold']), size(part['hdd']), size(part['remote']),
          size(part['dirty']), part.get('reads', 0),
          share(part.get('hits', 0), part.get('reads', 0)),
          share(part.get('hit_bytes', 0), part.get('bytes', 0)),
          'pinned' if part['pinned'] else '')
         for class_id, part in order])


def _gateway(gateway: Dict[str, Any]) -> str:
    return table(('GATEWAY', ''), [
        (name.replace('_', ' '), _told(name, value))
        for name, value in sorted(_flat(gateway))])


def _flat(fields: Dict[str, Any], above: str = ''
          ) -> Iterator[Tuple[str, Any]]:
    """Each value under its own name and that of what it is in."""
    for name, value in fields.items():
        if isinstance(value, dict):
            yield from _flat(value, above + name + '_')
        else:
            yield above + name, value


def _told(name: str, value: Any) -> str:
    if name == 'state':
        return REMOTE_STATES.get(value, str(value))
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


def _prefetch(state: Dict[str, Any]) -> str:
    if not state:
        return ''
    head = 'prefetch %s: %d waiting, %d coming, %d unread; %s of %s; %s of ' \
        'memory; $%.6f%s' % (
            state['strategy'], state['waiting'], state['coming'],
            state['here'], size(state['open_bytes']),
            size(state['budget_bytes']), size(state['state_bytes']),
            state['dollars'], _today(state))
    return head + '\n' + table(
        ('PREFETCHED', 'PARTS>', 'BYTES>', 'DOLLARS>'),
        [(text, state[key + '_pieces'], size(state[key + '_bytes']),
          '%.6f' % state[key + '_dollars']) for key, text in _FATES])


def _today(state: Dict[str, Any]) -> str:
    # Daemons of older releases do not say it.
    limit = state.get('dollars_per_day', 0.0)
    if not limit:
        return ''
    spent = state['dollars_today']
    return ', $%.6f of $%g today%s' % (
        spent, limit, ': no more is fetched ahead' if spent >= limit else '')


def _classify(state: Dict[str, Any]) -> str:
    outcomes = state.get('outcomes') or {}
    if not state or not (state['on'] or outcomes):
        return ''
    return 'classify = auto %s: %d waiting%s' % (
        'on' if state['on'] else 'off', state['waiting'], ''.join(
            '; %s %d' % (name.replace('_', ' '), count)
            for name, count in sorted(outcomes.items())))


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
        ('DEVICE', 'OBJECT', 'CLASS', 'COPY', 'SIZE>', 'TIERS', 'SSD>',
         'HDD>', 'S3>', 'FLAGS'),
        [(row['device'], _name(row),
          ','.join(held['name'] for held in row['classes']) or '-', _copy(row),
          size(row['size']), _tiers(row), size(row['ssd']),
          size(row['hdd']), size(row['remote']), _flags(row))
         for row in rows])
    return text if with_heads else text.partition('\n')[2]


def _name(row: Dict[str, Any]) -> str:
    name = str(row['name'] or row['hash'])
    return name if row['frag'] is None else '%s#%d' % (name, row['frag'])


def _copy(row: Dict[str, Any]) -> str:
    """Rank, and what that is in each class."""
    rank = row.get('copy_rank')
    warmth = ','.join(dict.fromkeys(
        held['warmth'] for held in row['classes'])) or '-'
    return warmth if rank is None else '%d %s' % (rank, warmth)


def _tiers(row: Dict[str, Any]) -> str:
    return '+'.join(tier for tier in ('ssd', 'hdd', 'remote')
                    if row[tier]) or '-'


def _flags(row: Dict[str, Any]) -> str:
    return ' '.join(flag for flag, on in (
        ('dirty', row['dirty']), ('pinned', row['pinned'])) if on)


def walks(walked: List[Dict[str, Any]]) -> str:
    """The work of a rebuild or sweep, by device."""
    return table(
        ('DEVICE', 'VERSIONS', 'UNREADABLE', 'FORGOTTEN', 'ORPHANS',
         'ORPHAN BYTES>'),
        [(walk['device'], walk['versions'], walk['unreadable'],
          walk['forgotten'], walk['orphans'], size(walk['orphan_bytes']))
         for walk in walked])


def inits(folders: List[Dict[str, Any]]) -> str:
    """The folders that ``tier init`` marked."""
    return table(('DEVICE', 'FOLDER', 'IDENTITY'), [
        (folder['device'], folder['folder'], folder['identity'])
        for folder in folders])


def moves(verb: str, answer: Dict[str, Any], took_seconds: float) -> str:
    """What a verb on many did, in a line."""
    count = answer['moved']
    text = '%s: %d version%s, %s' % (
        'would ' + verb if answer['dry_run'] else verb, count,
        '' if count == 1 else 's', size(answer['moved_bytes']))
    if answer['failures']:
        text += '; %d not' % answer['failures']
    if not answer['dry_run']:
        text += '; %s' % seconds(took_seconds)
        if took_seconds >= 1:
            text += ', %.3g a second' % (count / took_seconds)
    return text
