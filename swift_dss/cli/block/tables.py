"""Tables of ``swift-dss block``."""

from __future__ import annotations

from typing import Any, Dict, List

from swift_dss.block.table import MODES, STRATEGIES
from swift_dss.block.tools import Examined
from swift_dss.block.tools_device import grain_list
from swift_dss.cli.table import share, size, table


def status(found: List[Dict[str, Any]]) -> str:
    """Devices, then classes of each."""
    parts = [_devices(found)]
    for one in found:
        if one['classes']:
            parts += ['%s, by class' % one['name'], _classes(one)]
            parts += [text for text in (_reasons(one), _latency(one))
                      if text]
    return '\n\n'.join(parts)


def _devices(found: List[Dict[str, Any]]) -> str:
    return table(
        ('DEVICE', 'HEALTH', 'MODE', 'STRATEGY', 'CHUNK>', 'SSD>', 'USED>',
         'DIRTY>', 'HITS>', 'MISSES', 'PROMOTED', 'BYPASSED', 'EVICTED',
         'ERRORS'),
        [(one['name'], one['health'], one['mode'], one['strategy'],
          size(one['chunk_bytes']), size(one['ssd_bytes']),
          share(one['used_slots'], one['slots']), size(one['dirty_bytes']),
          share(one['read_hits'] + one['write_hits'], one['read_hits']
                + one['write_hits'] + one['misses']),
          one['misses'], one['promotions'], one['bypasses'],
          one['evictions'], one['ssd_errors'] + one['hdd_errors'])
         for one in found])


def _classes(one: Dict[str, Any]) -> str:
    return table(
        ('CLASS', 'ID', 'ON SSD>', 'OF>', 'DIRTY>', 'READ>', 'WRITTEN>',
         'HITS', 'MISSES', 'RATIO>', 'PROMOTED>', 'CLEANED>'),
        [(row['name'], class_id, size(row['bytes']),
          share(row['slots'], one['slots']),
          size(row['dirty_slots'] * one['chunk_bytes']),
          size(row['read_bytes']), size(row['written_bytes']), row['hits'],
          row['misses'], share(row['hits'], row['hits'] + row['misses']),
          size(row['promoted_bytes']), size(row['cleaned_bytes']))
         for class_id, row in sorted(one['classes'].items())])


def _reasons(one: Dict[str, Any]) -> str:
    rows = []
    for _class_id, row in sorted(one['classes'].items()):
        texts = [' '.join('%s %d' % pair for pair in row[kind].items()
                          if pair[1]) or '-'
                 for kind in ('bypasses', 'evictions')]
        if texts != ['-', '-']:
            rows.append((row['name'], texts[0], texts[1]))
    return table(('CLASS', 'BYPASSED BECAUSE', 'EVICTED BECAUSE'),
                 rows) if rows else ''


def _latency(one: Dict[str, Any]) -> str:
    rows = []
    for _class_id, row in sorted(one['classes'].items()):
        for op, found in sorted(row['latency'].items()):
            rows.append((row['name'], op, found['count'],
                         _time(found['mean_us']), _time(found['p50_us']),
                         _time(found['p99_us']), _time(found['p99.9_us']),
                         _time(found['max_us'])))
    return table(('CLASS', 'OP', 'COUNT', 'MEAN>', 'P50<=>', 'P99<=>',
                  'P99.9<=>', 'MAX>'), rows) if rows else ''


def _time(microseconds: float) -> str:
    if microseconds < 1000:
        return '%d us' % microseconds
    if microseconds < 1e6:
        return '%.1f ms' % (microseconds / 1e3)
    return '%.2f s' % (microseconds / 1e6)


def examined(found: Examined, chunks: bool) -> Dict[str, Any]:
    """The contents of a cache, for JSON."""
    superblock = found.superblock
    geometry = superblock.geometry
    made: Dict[str, Any] = {
        'uuid': superblock.uuid.hex(), 'seq': superblock.seq,
        'clean': superblock.is_clean, 'failed': superblock.has_failed,
        'mode': _name(MODES, superblock.mode),
        'strategy': _name(STRATEGIES, superblock.strategy),
        'meta_class': superblock.meta_class,
        'chunk_bytes': superblock.chunk_sectors * 512,
        'grain_bytes': superblock.grain_sectors * 512,
        'origin_bytes': superblock.origin_sectors * 512,
        'origin_id': superblock.origin_id.hex()
        if any(superblock.origin_id) else '',
        'twin_seq': superblock.twin_seq,
        'slots': superblock.nr_slots, 'regions': superblock.nr_regions,
        'segments': [segment._asdict() for segment in superblock.segments],
        'class_rows': {class_id: {
            'rank': row.rank, 'allocate': row.allocate.value,
            'floor_parts': row.floor_parts, 'cap_parts': row.cap_parts,
            'weight': row.weight, 'cutoff_sectors': row.cutoff_sectors,
            'write_mode': row.write_mode, 'flags': int(row.flags),
            'dirty_cap_parts': row.dirty_cap_parts}
            for class_id, row in sorted(superblock.classes.items())},
        'classes': _sums(found),
        'chunks': len(found.chunks), 'dirty_chunks': len(found.dirty),
        'findings': verdict(found)['findings'], 'starts': not found.refusals}
    if chunks:
        made['chunk_list'] = [
            {'oblock': oblock, 'slot': chunk.slot,
             'class': chunk.record.class_id,
             'recency': chunk.record.recency,
             'origin_sector': oblock * superblock.chunk_sectors,
             'ssd_sector': superblock.slot_sector(chunk.slot),
             'valid': _grains(chunk.record.valid, geometry.grains),
             'dirty': _grains(chunk.record.dirty, geometry.grains)}
            for oblock, chunk in sorted(found.chunks.items())]
    return made


def verdict(found: Examined) -> Dict[str, Any]:
    """What ``check`` says, for JSON."""
    return {
        'verdict': found.worst.name.lower(), 'exit_code': found.exit_code,
        'starts': not found.refusals, 'refusals': found.refusals,
        'clean': found.superblock.is_clean, 'chunks': len(found.chunks),
        'dirty_chunks': len(found.dirty),
        'findings': [{'kind': one.kind.name.lower(), 'sector': one.sector,
                      'region': one.region, 'text': one.text}
                     for one in found.findings]}


def verdict_text(path: str, found: Examined) -> str:
    """The same for people."""
    lines = ['%s: %s: %s' % (path, one.kind.name.lower(), one.text)
             for one in found.findings]
    words = {0: 'sound', 1: 'damaged, and repair mends it without loss',
             4: 'damaged, and something has to be decided: see repair'}
    lines.append('%s: %s; %d chunks, %d of them dirty' % (
        path, words[found.exit_code], len(found.chunks), len(found.dirty)))
    if found.refusals:
        lines.append('%s: the kernel would not start: %s' % (
            path, '; '.join(found.refusals)))
    return '\n'.join(lines)


def dump_text(found: Examined, chunks: bool) -> str:
    """The contents of a cache, for people."""
    made = examined(found, chunks)
    parts = [table(('CACHE', ''), [
        (name.replace('_', ' '), _text(name, made[name])) for name in (
            'uuid', 'seq', 'clean', 'failed', 'mode', 'strategy',
            'meta_class', 'chunk_bytes', 'grain_bytes', 'origin_bytes',
            'origin_id', 'slots', 'regions', 'chunks', 'dirty_chunks',
            'starts')])]
    parts.append(table(
        ('SEGMENT', 'TABLE AT', 'DATA AT', 'FIRST SLOT', 'SLOTS'),
        [(number, one.table_sector, one.data_sector, one.first_slot,
          one.nr_slots)
         for number, one in enumerate(found.superblock.segments)]))
    if made['classes']:
        parts.append(table(
            ('CLASS', 'CHUNKS', 'VALID>', 'DIRTY>'),
            [(class_id, one['chunks'], size(one['valid_bytes']),
              size(one['dirty_bytes']))
             for class_id, one in sorted(made['classes'].items())]))
    if chunks and made['chunk_list']:
        parts.append(table(
            ('CHUNK', 'SLOT', 'CLASS', 'USED', 'ORIGIN SECTOR',
             'SSD SECTOR', 'VALID', 'DIRTY'),
            [(one['oblock'], one['slot'], one['class'], one['recency'],
              one['origin_sector'], one['ssd_sector'],
              ','.join(one['valid']) or '-', ','.join(one['dirty']) or '-')
             for one in made['chunk_list']]))
    return '\n\n'.join(parts)


def _text(name: str, value: Any) -> str:
    if isinstance(value, bool):
        return 'yes' if value else 'no'
    return size(value) if name.endswith('_bytes') else str(value)


def _sums(found: Examined) -> Dict[int, Dict[str, int]]:
    grain = found.superblock.grain_sectors * 512
    sums: Dict[int, Dict[str, int]] = {}
    for chunk in found.chunks.values():
        into = sums.setdefault(chunk.record.class_id, dict.fromkeys(
            ('chunks', 'valid_bytes', 'dirty_bytes'), 0))
        into['chunks'] += 1
        into['valid_bytes'] += bin(chunk.record.valid).count('1') * grain
        into['dirty_bytes'] += bin(chunk.record.dirty).count('1') * grain
    return sums


def _grains(bits: int, count: int) -> List[str]:
    """Runs of set bits: ``0-3``, ``7``."""
    if bits == (1 << count) - 1:
        return ['all']
    runs: List[List[int]] = []
    for bit in grain_list(bits):
        if runs and runs[-1][1] == bit - 1:
            runs[-1][1] = bit
        else:
            runs.append([bit, bit])
    return ['%d' % first if first == last else '%d-%d' % (first, last)
            for first, last in runs]


def _name(names: Any, number: int) -> str:
    return str(names[number]) if number < len(names) else str(number)
