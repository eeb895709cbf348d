"""The families of metrics: their kinds, and what they say to a person.

A counter that is born with its first event is no news to Prometheus:
``increase()`` of a series that begins at 1 is 0, and no alert fires. So the
counters of errors are there from the start, at 0.
"""

from __future__ import annotations

#: Counters that are there from the start, and their help.
FROM_ZERO = {
    'gateway.verify_failed': 'uploads whose copy in S3 proved wrong',
    'gateway.remote_corrupt': "reads from S3 that gave wrong bytes",
    'gateway.remote_differs': 'copies in S3 that are not the version they '
                              'are named after',
    'gateway.local_corrupt': 'versions not sent, as their bytes here are '
                             'wrong',
    'gateway.local_lost': 'versions whose bytes neither this node nor S3 has',
    'gateway.queue_damaged': 'queues that were set aside as damaged',
    'gateway.dispatch_errors': 'errors in handing out work of the gateway',
    'gateway.fetch_failed': 'reads that needed S3 and failed',
    'gateway.uploaded_bytes': 'bytes sent to S3',
    'gateway.fetched_bytes': 'bytes that readers got from S3',
    'tier.chore_errors': 'errors in the regular work on a device',
    'tier.damaged': 'records of residency that were damaged',
    'tier.demoted_bytes': 'bytes that left the SSD',
    'tier.events_dropped': 'events of object servers that were lost',
    'tier.events_failed': 'events of object servers that failed',
    'tier.index_damaged': 'indexes that were set aside as damaged',
    'tier.kept_out_bytes': 'bytes that a first read did not bring to the SSD',
    'tier.move_errors': 'moves between tiers that failed',
    'tier.order_changes': 'orders of eviction that self-tuning brought into '
                          'force',
    'tier.promoted_bytes': 'bytes that came back to the SSD',
    'tier.promotions_kept_out': 'first reads that did not bring a version to '
                                'the SSD',
    'tier.rotten_bytes': 'bytes of a disk that are not those written there',
    'tier.rotten_versions_lost': 'versions that rot took from this node',
    'tier.round_errors': 'rounds of work on a device that ended by an error',
}
#: Counters with labels, and their help.
LABELLED = {
    'gateway.admissions': 'answers to writes, by class',
    'gateway.cost_dollars': 'price of requests to S3, by list price',
    'gateway.link_bytes': 'bytes on the link to S3, by direction',
    'gateway.operations': 'requests to S3, by operation',
    'tier.hit_bytes': 'bytes read that came from the SSD, by class',
    'tier.read_bytes': 'bytes read, by class',
}
#: Gauges of alerts and of the dashboard, and their help.
_GAUGES = {
    'gateway.budget_bytes': 'bytes that may wait for S3 before writes are '
                            'refused',
    'gateway.measured_bytes_per_second': 'rate of the link, by direction',
    'gateway.oldest_upload_seconds': 'age of the oldest version that waits '
                                     'for S3',
    'gateway.pending_bytes': 'bytes that wait for S3',
    'gateway.predicted_bytes_per_second': 'rate that the link will have, by '
                                          'direction',
    'gateway.prediction_mape': 'mean error of predictions, as a share',
    'gateway.queued_deletes': 'deletes that wait for S3',
    'gateway.queued_uploads': 'versions that wait for S3',
    'gateway.reserve_bytes': 'bytes on top of the budget for higher classes',
    'gateway.room_bytes': 'room that is left on a device',
    'gateway.up': '1 while S3 answers',
    'tier.event_backlog': 'events of object servers that wait',
    'tier.failing': '1 while a drive fails as a whole',
    'tier.hdd_bytes': 'bytes on the HDD, by device and class',
    'tier.lacking_versions': 'versions that lack bytes which no other node '
                             'is known to have',
    'tier.left_policies': 'storage policies that were ours and are not',
    'tier.remote_bytes': 'bytes that S3 alone has, by device and class',
    'tier.space_warnings': 'warnings about disks and budgets',
    'tier.ssd_bytes': 'bytes on the SSD, by device and class',
}
_HELP = {**FROM_ZERO, **LABELLED, **_GAUGES}


def help_of(name: str) -> str:
    """What a metric says, in words; of a name without an entry, its words."""
    return _HELP.get(name) or name.replace('.', ' ').replace('_', ' ')
