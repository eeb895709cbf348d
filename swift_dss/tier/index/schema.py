"""The index as SQL. A new number means: move the old file aside, rebuild.

``occupancy`` holds the sums that every decision needs, kept by triggers in
the transaction of the change itself, so that neither a start nor a
decision ever counts the population. The partial indexes hold exactly the
candidates of each kind of move: a dirty or pinned row is in none that
leads to eviction.
"""

from swift_dss.strategy.pinning import BUCKETS

VERSION = 4

_OCCUPANCY = (
    ('objects', '1'), ('total', '{0}.total'), ('ssd', '{0}.ssd'),
    ('hdd', '{0}.hdd'), ('remote', '{0}.remote'), ('dirty', '{0}.dirty'),
    ('spare', '{0}.spare'),
    ('evictable', '{0}.movable * ({0}.ssd - {0}.dirty)'),
    ('cleanable', '{0}.movable * {0}.dirty'))
#: Of these, what cold copies have.
_COLD = (
    ('cold', '({0}.warmth = 1) * {0}.ssd'),
    ('cold_evictable',
     '({0}.warmth = 1) * {0}.movable * ({0}.ssd - {0}.dirty)'),
    ('cold_cleanable', '({0}.warmth = 1) * {0}.movable * {0}.dirty'))
_SUMS = _OCCUPANCY + _COLD

TABLES = '''
CREATE TABLE state (name TEXT PRIMARY KEY, value TEXT) WITHOUT ROWID;
CREATE TABLE device (id INTEGER PRIMARY KEY, name TEXT UNIQUE NOT NULL);
CREATE TABLE version (
    id INTEGER PRIMARY KEY,
    hash BLOB NOT NULL,
    device_id INTEGER NOT NULL,
    policy INTEGER NOT NULL,
    frag INTEGER NOT NULL,
    timestamp TEXT NOT NULL,
    partition TEXT NOT NULL,
    size INTEGER NOT NULL,
    name TEXT NOT NULL,
    put_at REAL NOT NULL,
    pinned INTEGER NOT NULL,
    on_remote INTEGER NOT NULL,
    wants_remote INTEGER NOT NULL,
    pin_rule INTEGER NOT NULL,
    UNIQUE (hash, device_id, policy, frag, timestamp));
CREATE INDEX version_upload ON version (put_at)
    WHERE wants_remote = 1 AND on_remote = 0;
CREATE INDEX version_pin_size ON version (device_id, pin_rule, size)
    WHERE pin_rule > 0;
CREATE INDEX version_pin_id ON version (device_id, id) WHERE pin_rule > 0;
CREATE TABLE pin_sizes (
    device_id INTEGER NOT NULL,
    bucket INTEGER NOT NULL,
    count INTEGER NOT NULL DEFAULT 0,
    bytes INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (device_id, bucket)) WITHOUT ROWID;
CREATE TABLE span (
    version_id INTEGER NOT NULL,
    class_id INTEGER NOT NULL,
    device_id INTEGER NOT NULL,
    movable INTEGER NOT NULL,
    total INTEGER NOT NULL,
    ssd INTEGER NOT NULL,
    hdd INTEGER NOT NULL,
    remote INTEGER NOT NULL,
    dirty INTEGER NOT NULL,
    spare INTEGER NOT NULL,
    read_at REAL NOT NULL,
    put_at REAL NOT NULL,
    queue INTEGER,
    place REAL NOT NULL DEFAULT 0,
    turn INTEGER NOT NULL DEFAULT 0,
    uses INTEGER NOT NULL DEFAULT 0,
    warmth INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (version_id, class_id)) WITHOUT ROWID;
CREATE INDEX span_place ON span (device_id, class_id, queue, place, turn)
    WHERE movable = 1 AND ssd > dirty AND queue IS NOT NULL;
CREATE INDEX span_place_dirty ON span (
    device_id, class_id, queue, place, turn)
    WHERE movable = 1 AND ssd = dirty AND dirty > 0 AND queue IS NOT NULL;
CREATE INDEX span_gone ON span (device_id, class_id, queue, place, turn)
    WHERE ssd = 0 AND queue IS NOT NULL;
CREATE INDEX span_dirty ON span (device_id, class_id, put_at)
    WHERE movable = 1 AND dirty > 0;
CREATE INDEX span_dirty_lru ON span (device_id, class_id, read_at)
    WHERE movable = 1 AND dirty > 0;
CREATE INDEX span_spare ON span (device_id, class_id, read_at)
    WHERE spare > 0;
CREATE TABLE order_state (
    device_id INTEGER NOT NULL,
    class_group INTEGER NOT NULL,
    name TEXT NOT NULL,
    value REAL NOT NULL,
    PRIMARY KEY (device_id, class_group, name)) WITHOUT ROWID;
CREATE TABLE queue_bytes (
    device_id INTEGER NOT NULL,
    class_id INTEGER NOT NULL,
    queue INTEGER NOT NULL,
    bytes INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (device_id, class_id, queue)) WITHOUT ROWID;
CREATE TABLE occupancy (
    device_id INTEGER NOT NULL,
    class_id INTEGER NOT NULL,
    %s,
    PRIMARY KEY (device_id, class_id)) WITHOUT ROWID;
''' % ',\n    '.join('%s INTEGER NOT NULL DEFAULT 0' % name
                     for name, _ in _SUMS)

#: The next rows to leave: cold copies, and all others.
_BY_WARMTH = '''
CREATE INDEX span_warm ON span (device_id, class_id, read_at)
    WHERE movable = 1 AND ssd > dirty AND warmth != 1;
CREATE INDEX span_cold ON span (device_id, class_id, read_at)
    WHERE movable = 1 AND ssd > dirty AND warmth = 1;
CREATE INDEX span_cold_dirty ON span (device_id, class_id, read_at)
    WHERE movable = 1 AND dirty > 0 AND warmth = 1;
'''
TABLES += _BY_WARMTH

COLUMNS = tuple(name for name, _ in _SUMS)


def _change(sign: str, row: str) -> str:
    sums = ', '.join(
        '%s = %s %s %s' % (name, name, sign, source.format(row))
        for name, source in _SUMS)
    where = 'device_id = %s.device_id AND class_id = %s.class_id' % (row, row)
    return 'UPDATE occupancy SET %s WHERE %s;' % (sums, where)


_MAKE = ('INSERT OR IGNORE INTO occupancy (device_id, class_id) '
         'VALUES (NEW.device_id, NEW.class_id);')

SPAN_TRIGGERS = '''
CREATE TRIGGER span_insert AFTER INSERT ON span BEGIN
    {make} {plus}
END;
CREATE TRIGGER span_delete AFTER DELETE ON span BEGIN
    {minus}
END;
CREATE TRIGGER span_update AFTER UPDATE OF movable, total, ssd, hdd, remote,
        dirty, spare, warmth ON span BEGIN
    {minus} {plus}
END;
'''.format(make=_MAKE, plus=_change('+', 'NEW'), minus=_change('-', 'OLD'))
TRIGGERS = SPAN_TRIGGERS

#: From version 3, whose copies are all warm: the walk of the device tells
#: which are not.
FROM_3 = '''
ALTER TABLE span ADD COLUMN warmth INTEGER NOT NULL DEFAULT 0;
%s;
DROP INDEX span_lru;
%s
DROP TRIGGER span_insert;
DROP TRIGGER span_delete;
DROP TRIGGER span_update;
''' % (';\n'.join('ALTER TABLE occupancy ADD COLUMN %s INTEGER NOT NULL '
                  'DEFAULT 0' % name for name, _ in _COLD), _BY_WARMTH)


def _queue_change(sign: str, row: str) -> str:
    return ('INSERT OR IGNORE INTO queue_bytes (device_id, class_id, queue) '
            'VALUES ({0}.device_id, {0}.class_id, {0}.queue); '
            'UPDATE queue_bytes SET bytes = bytes {1} CASE {0}.queue % 4 '
            'WHEN 2 THEN {0}.total ELSE {0}.movable * {0}.ssd END WHERE '
            'device_id = {0}.device_id AND class_id = {0}.class_id AND '
            'queue = {0}.queue;').format(row, sign)


#: Bytes of each queue of the orders but the first, which has the rest of
#: what may leave, or might if it were clean. An order with one queue, and
#: LRU, pay nothing for it.
TRIGGERS += '''
CREATE TRIGGER queue_insert AFTER INSERT ON span
        WHEN NEW.queue % 4 > 0 BEGIN
    {plus}
END;
CREATE TRIGGER queue_delete AFTER DELETE ON span
        WHEN OLD.queue % 4 > 0 BEGIN
    {minus}
END;
CREATE TRIGGER queue_leave AFTER UPDATE OF queue, movable, total, ssd, dirty
        ON span WHEN OLD.queue % 4 > 0 BEGIN
    {minus}
END;
CREATE TRIGGER queue_enter AFTER UPDATE OF queue, movable, total, ssd, dirty
        ON span WHEN NEW.queue % 4 > 0 BEGIN
    {plus}
END;
'''.format(plus=_queue_change('+', 'NEW'), minus=_queue_change('-', 'OLD'))


def _pin_change(sign: str, row: str) -> str:
    bucket = ('CASE ' + ' '.join(
        'WHEN {0}.size <= %d THEN %d' % (upper, number)
        for number, upper in enumerate(BUCKETS))
        + ' ELSE %d END' % len(BUCKETS)).format(row)
    return ('INSERT OR IGNORE INTO pin_sizes (device_id, bucket) SELECT '
            '{0}.device_id, {1} WHERE {0}.pin_rule IN (2, 3); '
            'UPDATE pin_sizes SET count = count {2} 1, bytes = bytes {2} '
            '{0}.size WHERE device_id = {0}.device_id AND bucket = {1} AND '
            '{0}.pin_rule IN (2, 3);').format(row, bucket, sign)


#: The histogram of what the pin rule fits: 2 is pinned, 3 too large now.
TRIGGERS += '''
CREATE TRIGGER version_insert AFTER INSERT ON version
        WHEN NEW.pin_rule > 0 BEGIN
    {plus}
END;
CREATE TRIGGER version_delete AFTER DELETE ON version
        WHEN OLD.pin_rule > 0 BEGIN
    {minus}
END;
CREATE TRIGGER version_update AFTER UPDATE OF pin_rule, size ON version
        WHEN OLD.pin_rule > 0 OR NEW.pin_rule > 0 BEGIN
    {minus} {plus}
END;
'''.format(plus=_pin_change('+', 'NEW'), minus=_pin_change('-', 'OLD'))

#: Rows of ``version`` that share a row of ``named``.
NAMED_ROWS = 16384
#: Later additions: made when a file without them is opened
#: (indexes: 0.8 s a million versions, once). Older daemons keep it up: a row
#: of ``named`` goes when one of its versions comes or gets another name, and
#: is made again in the background.
LATER = (
    'CREATE INDEX IF NOT EXISTS version_partition ON version '
    '(device_id, policy, partition)',
    'CREATE INDEX IF NOT EXISTS span_class ON span (class_id, version_id)',
    'CREATE TABLE IF NOT EXISTS named '
    '(chunk INTEGER PRIMARY KEY, bits BLOB NOT NULL)',
    'CREATE TRIGGER IF NOT EXISTS named_came AFTER INSERT ON version BEGIN '
    'DELETE FROM named WHERE chunk = (NEW.id - 1) / %d; END' % NAMED_ROWS,
    'CREATE TRIGGER IF NOT EXISTS named_anew AFTER UPDATE OF name ON version '
    'WHEN OLD.name != NEW.name BEGIN '
    'DELETE FROM named WHERE chunk = (NEW.id - 1) / %d; END' % NAMED_ROWS,
)

PRAGMAS = (
    # Of new files alone, before anything else is in them: pages that became
    # free can be given back, some at a time.
    'PRAGMA auto_vacuum = INCREMENTAL',
    # Readers never wait for the writer, nor it for them.
    'PRAGMA journal_mode = WAL',
    # A power cut may take back the last transactions (the sweep after an
    # unclean stop finds them again) but never damages the file.
    'PRAGMA synchronous = NORMAL',
    # 8 MiB of pages: memory does not grow with the population.
    'PRAGMA cache_size = -8192',
    'PRAGMA temp_store = FILE',
    'PRAGMA busy_timeout = 5000',
)
