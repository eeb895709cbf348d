"""No code that nothing uses, neither the product nor its tests."""

from __future__ import annotations

from pathlib import Path

import pytest
from vulture.core import Vulture

ROOT = Path(__file__).resolve().parents[3]
#: What others call or read by its name, by who does.
CALLED_BY = {
    "Swift's diskfile, its subclasses' users and its statistics":
        'diskfile_cls reader_cls writer_cls _inner_iter _read_to_eof '
        '_started_at_0 _md5_of_sent_bytes _tmppath quarantine_renamer '
        'durable_timestamp replication_failure_threshold async_update',
    'http.server and socketserver':
        'close_connection daemon_threads do_DELETE do_GET do_HEAD do_POST '
        'do_PUT handle_error log_message protocol_version '
        'request_queue_size server_version sys_version',
    'configparser, argparse, pickle and the interpreter':
        'optionxform formatter_class find_class __instancecheck__ '
        '__qualname__ utcnow',
    "Swift's reconstructor and object server, in the simulation":
        'object_ring set_hundred_continue_response_headers '
        'send_hundred_continue_response conn_timeout http_timeout '
        'node_timeout network_chunk_size max_objects_per_revert '
        'quarantine_threshold quarantine_age request_node_count '
        'partition_times handoffs_remaining reconstruction_count '
        'suffix_count suffix_sync _df_router recalculate do_listdir '
        '_get_suffixes_to_sync _get_response full_path',
    "Swift's memcache client, whose arguments have names":
        'server_key',
    "Swift's ring, as its servers reload it":
        'DEFAULT_RELOAD_TIME',
    'cli/main.py, which imports a verb by its name':
        'HELP',
    'boto3, whose calls the simulated S3 has':
        'get_bucket_versioning',
    'sim/world/power.py itself, by the name of what it exchanges':
        '_mkdir _removexattr _rmdir _setxattr',
    'a report, field by field':
        'absent_bytes fresh_share link_share read_p50_ms server_cpu '
        'suspended index_state orphan_bytes',
}
ALLOWED = {name for names in CALLED_BY.values() for name in names.split()}


@pytest.fixture(scope='module')
def unused():
    found = Vulture()
    found.scavenge([str(ROOT / 'swift_dss'), str(ROOT / 'test')])
    return [one for one in found.get_unused_code(min_confidence=60)
            if ROOT / 'swift_dss' in Path(one.filename).resolve().parents]


def test_nothing_in_the_product_is_unused(unused):
    assert [one.get_report() for one in unused
            if one.name not in ALLOWED] == []


def test_the_list_of_names_that_others_call_is_short(unused):
    assert {one.name for one in unused} >= ALLOWED
