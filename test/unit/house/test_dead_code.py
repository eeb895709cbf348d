"""No code that nothing uses, and none that only tests use.

Two runs: over the product and its tests, and over the product alone. Names
that others call stand in a list, with their callers.
"""

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
        'durable_timestamp replication_failure_threshold async_update '
        'log_requests',
    'http.server and socketserver':
        'close_connection daemon_threads do_DELETE do_GET do_HEAD do_POST '
        'do_PUT handle_error log_message protocol_version '
        'request_queue_size server_version sys_version',
    'configparser, argparse, pickle and the interpreter':
        'optionxform formatter_class find_class __instancecheck__ '
        '__qualname__ utcnow StartElementHandler EndElementHandler '
        'EntityDeclHandler',
    "Swift's reconstructor and object server, in the simulation":
        'set_hundred_continue_response_headers '
        'send_hundred_continue_response http_timeout '
        'network_chunk_size max_objects_per_revert '
        'quarantine_threshold quarantine_age request_node_count '
        'partition_times handoffs_remaining reconstruction_count '
        'suffix_count suffix_sync _df_router recalculate do_listdir '
        '_get_hashes _get_suffixes_to_sync _get_response full_path',
    "Swift's object versioning, which counts an upload's bytes":
        'bytes_read',
    "Swift's memcache client, whose arguments have names":
        'server_key',
    "Swift's ring, as its servers reload it":
        'DEFAULT_RELOAD_TIME',
    'cli/main.py, which imports a verb by its name':
        'HELP',
    'fsspec, by the names that its file systems and their files have, and '
    'setup.cfg':
        'DssFileSystem _cp_file _get_file _makedirs _pipe_file '
        '_put_file _rm _rm_file loc protocol root_marker writable',
    'smart_open':
        'open_uri',
    'boto3, whose calls the simulated S3 has':
        'abort_multipart_upload get_bucket_versioning',
    'concurrent.futures, whose executors have such a parameter':
        'cancel_futures',
    'sim/world/power.py itself, by the name of what it exchanges':
        '_removexattr _setxattr',
    'a report, field by field':
        'absent_bytes fresh_share link_share read_p50_ms server_cpu '
        'suspended index_state orphan_bytes',
}
#: What is used outside of the product alone, by its users.
CALLED_FROM_OUTSIDE = {
    'setup.cfg: entry points, which Swift and paste load':
        'DssDiskFileManager DssECDiskFileManager app_factory',
    "Swift's proxy, diskfile, object server and ssync":
        'acl can_zero_copy_send zero_copy_send content_type_timestamp',
    'programs that use dss://':
        'checksum classes_of modified open_async',
    'programs that use a memcache client':
        'decr get_multi set_multi',
    'boto3 and s3transfer':
        'complete_multipart_upload create_multipart_upload '
        'list_multipart_uploads list_objects_v2 list_parts '
        'upload_part',
    'pickle and datetime, by name':
        'today',
    'dataclasses.asdict, for a report or a status':
        'bundles_dead daemon_cpu doubled foreign link_cpu link_read_bytes '
        'link_sent_bytes members_quarantined quarantined_bytes room_state '
        'ssd_state wait_p50 wait_p99',
    "dm-dss's numbers: the kernel sends them, so all have a name":
        'ABOVE CAP DECLINED DEMOTE DIRECT DIRTY DIRTY_CAP DISCARD FAILED '
        'HELD LATENCY_BUCKETS OWN PEER RANK SEQUENTIAL SHRINK',
    'tests that crash a process at a step, and beds that tests change':
        'arm set_options',
    "tests that hold S3's policy and the link to their figures":
        'VERSION_ACTIONS waited_seconds',
    'tests that stop where a part is at rest, or add one row of a queue':
        'add_delete enqueue_upload is_awaited',
    'tests that read a bundle without its index, as a second opinion':
        'scan',
}


def names(lists):
    return {name for listed in lists for name in listed.split()}


ALLOWED = names(CALLED_BY.values())
ALLOWED_OUTSIDE = names(CALLED_FROM_OUTSIDE.values())


def unused_in(*folders):
    vulture = Vulture()
    vulture.scavenge([str(ROOT / folder) for folder in folders])
    return [item for item in vulture.get_unused_code(min_confidence=60)
            if ROOT / 'swift_dss' in Path(item.filename).resolve().parents]


@pytest.fixture(scope='module')
def unused():
    return unused_in('swift_dss', 'test')


@pytest.fixture(scope='module')
def unused_by_product():
    return unused_in('swift_dss')


def test_nothing_in_the_product_is_unused(unused):
    assert [item.get_report() for item in unused
            if item.name not in ALLOWED] == []


def test_the_list_of_names_that_others_call_is_short(unused):
    assert {item.name for item in unused} >= ALLOWED


def test_nothing_in_the_product_serves_tests_alone(unused_by_product):
    assert [item.get_report() for item in unused_by_product
            if item.name not in ALLOWED | ALLOWED_OUTSIDE] == []


def test_the_list_of_what_is_used_outside_is_short(unused_by_product):
    assert {item.name for item in unused_by_product} >= ALLOWED_OUTSIDE
    assert not ALLOWED & ALLOWED_OUTSIDE
