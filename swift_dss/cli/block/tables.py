"""Tables of ``swift-dss block``."""

from __future__ import annotations

from typing import Any, Dict, List

from swift_dss.block.ondisk.device import grain_list
from swift_dss.block.ondisk.findings import Examined
from swift_dss.block.table import MODES, STRATEGIES
from swift_dss.cli.table import share, size, table


def status(devices: List[Dict[str, Any]]) -> str:
    """Devices, then classes of each."""
    parts = [_devices(devices)]
    for device in devices:
        if device['classes']:
            parts += ['%s, by class' % device['name'], _classes(device)]
            parts += [text for text in (_reasons(device), _latency(device))
                      if text]
    return '\n\n'.join(parts)


def _devices(devices: List[Dict[str, Any]]) -> str:
    return table(
        ('DEVICE', 'HEALTH', 'MODE', 'STRATEGY', 'CHUNK>', 'SSD>', 'USED>',
         'DIRTY>', 'HITS>', 'MISSES', 'PROMOTED', 'BYPASSED', 'EVICTED',
         'ERRORS'),
        [(device['name'], device['health'], device['mode'], device['strategy'],
          size(device['chunk_bytes']), size(device['ssd_bytes']),
          share(device['used_slots'], device['slots']),
          size(device['dirty_bytes']),
          share(device['read_hits'] + device['write_hits'], device['read_hits']
                + device['write_hits'] + device['misses']),
          device['misses'], device['promotions'], device['bypasses'],
          device['evictions'], device['ssd_errors'] + device['hdd_errors'])
         for device in devices])


def _classes(device: Dict[str, Any]) -> str:
    return table(
        ('CLASS', 'ID', 'ON SSD>', 'OF>', 'DIRTY>', 'READ>', 'WRITTEN>',
         'HITS', 'MISSES', 'RATIO>', 'PROMOTED>', 'CLEANED>'),
        [(row['name'], class_id, size(row['bytes']),
          share(row['slots'], device['slots']),
          size(row['dirty_slots'] * device['chunk_bytes']),
          size(row['read_bytes']), size(row['written_bytes']), row['hits'],
          row['misses'], share(row['hits'], row['hits'] + row['misses']),
          size(row['promoted_bytes']), size(row['cleaned_bytes']))
         for class_id, row in sorted(device['classes'].items())])


def _reasons(device: Dict[str, Any]) -> str:
    rows = []
    for _class_id, row in sorted(device['classes'].items()):
        texts = [' '.join('%s %d' % pair for pair in row[kind].items()
                          if pair[1]) or '-'
                 for kind in ('bypasses', 'evictions')]
        if texts != ['-', '-']:
            rows.append((row['name'], texts[0], texts[1]))
    return table(('CLASS', 'BYPASSED BECAUSE', 'EVICTED BECAUSE'),
                 rows) if rows else ''


def _latency(device: Dict[str, Any]) -> str:
    rows = []
    for _class_id, row in sorted(device['classes'].items()):
        for op, figures in sorted(row['latency'].items()):
            rows.append((row['name'], op, figures['count'],
                         _time(figures['mean_us']), _time(figures['p50_us']),
                         _time(figures['p99_us']), _time(figures['p99.9_us']),
                         _time(figures['max_us'])))
    return table(('CLASS', 'OP', 'COUNT', 'MEAN>', 'P50<=>', 'P99<=>',
                  'P99.9<=>', 'MAX>'), rows) if rows else ''


def _time(microseconds: float) -> str:
    if microseconds < 1000:
        return '%d us' % microseconds
    if microseconds < 1e6:
        return '%.1f ms' % (microseconds / 1e3)
    return '%.2f s' % (microseconds / 1e6)


def examined(state: Examined, chunks: bool) -> Dict[str, Any]:
    """The contents of a cache, for JSON."""
    superblock = state.superblock
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
        'classes': _sums(state),
        'chunks': len(state.chunks), 'dirty_chunks': len(state.dirty),
        'findings': verdict(state)['findings'], 'starts': not state.refusals}
    if chunks:
        made['chunk_list'] = [
            {'oblock': oblock, 'slot': chunk.slot,
             'class': chunk.record.class_id,
             'recency': chunk.record.recency,
             'origin_sector': oblock * superblock.chunk_sectors,
             'ssd_sector': superblock.slot_sector(chunk.slot),
             'valid': _grains(chunk.record.valid, geometry.grains),
             'dirty': _grains(chunk.record.dirty, geometry.grains)}
            for oblock, chunk in sorted(state.chunks.items())]
    return made


def verdict(state: Examined) -> Dict[str, Any]:
    """The verdict of ``check``, for JSON."""
    return {
        'verdict': state.worst.name.lower(), 'exit_code': state.exit_code,
        'starts': not state.refusals, 'refusals': state.refusals,
        'clean': state.superblock.is_clean, 'chunks': len(state.chunks),
        'dirty_chunks': len(state.dirty),
        'findings': [{'kind': finding.kind.name.lower(),
                      'sector': finding.sector,
                      'region': finding.region, 'text': finding.text}
                     for finding in state.findings]}


def verdict_text(path: str, state: Examined) -> str:
    """The same for people."""
    lines = ['%s: %s: %s' % (path, finding.kind.name.lower(), finding.text)
             for finding in state.findings]
    words = {0: 'sound', 1: 'damaged, and repair mends it without loss',
             4: 'damaged, and something has to be decided: see repair'}
    lines.append('%s: %s; %d chunks, %d of them dirty' % (
        path, words[state.exit_code], len(state.chunks), len(state.dirty)))
    if state.refusals:
        lines.append('%s: the kernel would not start: %s' % (
            path, '; '.join(state.refusals)))
    return '\n'.join(lines)


def dump_text(state: Examined, chunks: bool) -> str:
    """The contents of a cache, for people."""
    made = examined(state, chunks)
    parts = [table(('CACHE', ''), [
        (name.replace('_', ' '), _text(name, made[name])) for name in (
            'uuid', 'seq', 'clean', 'failed', 'mode', 'strategy',
            'meta_class', 'chunk_bytes', 'grain_bytes', 'origin_bytes',
            'origin_id', 'slots', 'regions', 'chunks', 'dirty_chunks',
            'starts')])]
    parts.append(table(
        ('SEGMENT', 'TABLE AT', 'DATA AT', 'FIRST SLOT', 'SLOTS'),
        [(number, row.table_sector, row.data_sector, row.first_slot,
          row.nr_slots)
         for number, row in enumerate(state.superblock.segments)]))
    if made['classes']:
        parts.append(table(
            ('CLASS', 'CHUNKS', 'VALID>', 'DIRTY>'),
            [(class_id, row['chunks'], size(row['valid_bytes']),
              size(row['dirty_bytes']))
             for class_id, row in sorted(made['classes'].items())]))
    if chunks and made['chunk_list']:
        parts.append(table(
            ('CHUNK', 'SLOT', 'CLASS', 'USED', 'ORIGIN SECTOR',
             'SSD SECTOR', 'VALID', 'DIRTY'),
            [(row['oblock'], row['slot'], row['class'], row['recency'],
              row['origin_sector'], row['ssd_sector'],
              ','.join(row['valid']) or '-', ','.join(row['dirty']) or '-')
             for row in made['chunk_list']]))
    return '\n\n'.join(parts)


def _text(name: str, value: Any) -> str:
    if isinstance(value, bool):
        return 'yes' if value else 'no'
    return size(value) if name.endswith('_bytes') else str(value)


def _sums(state: Examined) -> Dict[int, Dict[str, int]]:
    grain = state.superblock.grain_sectors * 512
    sums: Dict[int, Dict[str, int]] = {}
    for chunk in state.chunks.values():
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
