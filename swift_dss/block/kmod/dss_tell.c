// SPDX-License-Identifier: GPL-2.0
/*
 * For operators: the status line, and lines of counters. Field by field in
 * doc/source/reference/dm-dss.rst.
 *
 * Call it with d->lock held, unless a function says otherwise.
 */
#include "dss_top.h"

unsigned int dss_tell_class(const struct dss *d, unsigned int class_id,
			    char *result, unsigned int maxlen)
	__must_hold(&d->lock)
{
	const struct dss_class_count *count = &d->counts[class_id];
	struct dss_class_stats stats;
	unsigned int i, sz = 0;

	dss_core_stats(d->core, class_id, &stats);
	DMEMIT("class=%u resident=%u dirty=%u busy=%u", class_id,
	       stats.resident, stats.dirty, stats.busy);
	DMEMIT(" read_hits=%llu write_hits=%llu misses=%llu takes=%llu",
	       stats.read_hits, stats.write_hits, stats.misses, stats.takes);
	for (i = 0; i < DSS_NR_BYPASS; i++)
		DMEMIT(" bypass_%s=%llu", dss_bypass_names[i],
		       stats.bypass[i]);
	for (i = 0; i < DSS_NR_EVICT; i++)
		DMEMIT(" evicted_%s=%llu", dss_evict_names[i],
		       stats.evicted[i]);
	DMEMIT(" reclassed=%llu cleaned=%llu", stats.reclassed,
	       stats.cleaned);
	DMEMIT(" read_sectors=%llu write_sectors=%llu grain_misses=%llu",
	       count->sectors[0], count->sectors[1], count->grain_misses);
	DMEMIT(" promoted=%llu promoted_sectors=%llu fill_failed=%llu",
	       count->promoted, count->promoted_sectors, count->fill_failed);
	DMEMIT(" no_memory=%llu cleaned_sectors=%llu refused=%llu\n",
	       count->no_memory, count->cleaned_sectors, count->refused);
	return sz;
}

static bool dss_class_seen(struct dss *d, unsigned int class_id)
	__must_hold(&d->lock)
{
	const struct dss_class_count *count = &d->counts[class_id];
	struct dss_class_stats stats;

	dss_core_stats(d->core, class_id, &stats);
	return stats.resident || stats.misses || stats.read_hits ||
	       stats.write_hits || count->latency[0].count ||
	       count->latency[1].count;
}

unsigned int dss_tell_device(const struct dss *d, char *result,
			     unsigned int maxlen)
	__must_hold(&d->lock)
{
	unsigned int sz = 0;

	DMEMIT("commits=%llu table_writes=%llu intents=%llu deferred=%llu groups=%llu grouped=%llu stage_waits=%llu ssd_errors=%llu hdd_errors=%llu unsettled_regions=%u\n",
	       d->nr_commits, d->nr_table_writes, d->nr_intents,
	       d->nr_deferred, d->nr_groups, d->nr_grouped,
	       d->nr_stage_waits, d->ssd_errors, d->hdd_errors,
	       bitmap_weight(d->unsettled_regions, d->nr_regions));
	return sz;
}

int dss_tell_stats(struct dss *d, char *result, unsigned int maxlen)
	__must_hold(&d->lock)
{
	unsigned int i, sz = 0;

	for (i = 0; i < DSS_CLASSES; i++)
		if (dss_class_seen(d, i) && sz < maxlen)
			sz += dss_tell_class(d, i, result + sz, maxlen - sz);
	if (sz < maxlen)
		dss_tell_device(d, result + sz, maxlen - sz);
	return 1;
}

unsigned int dss_tell_class_latency(const struct dss *d, unsigned int class_id,
				    char *result, unsigned int maxlen)
	__must_hold(&d->lock)
{
	unsigned int write, bucket, sz = 0;

	for (write = 0; write < 2; write++) {
		const struct dss_latency *latency =
			&d->counts[class_id].latency[write];

		if (!latency->count)
			continue;
		DMEMIT("class=%u op=%s count=%llu total_us=%llu max_us=%llu buckets=",
		       class_id, write ? "write" : "read", latency->count,
		       latency->total_us, latency->max_us);
		for (bucket = 0; bucket < DSS_LATENCY_BUCKETS; bucket++)
			DMEMIT("%s%llu", bucket ? "," : "",
			       latency->buckets[bucket]);
		DMEMIT("\n");
	}
	return sz;
}

int dss_tell_latency(struct dss *d, char *result, unsigned int maxlen)
	__must_hold(&d->lock)
{
	unsigned int i, sz = 0;

	for (i = 0; i < DSS_CLASSES; i++)
		if (sz < maxlen)
			sz += dss_tell_class_latency(d, i, result + sz,
						     maxlen - sz);
	return 1;
}

/* ---- the status line ---- */

static unsigned int dss_percent(u32 parts)
{
	return DIV_ROUND_CLOSEST(parts * 100, DSS_PARTS);
}

static void dss_emit_info(struct dss *d, char *result, unsigned int maxlen)
	__must_hold(&d->lock)
{
	u64 hits[2] = { 0, 0 }, misses = 0, takes = 0, evictions = 0;
	u64 bypasses = 0, cleaned = 0;
	struct dss_class_stats stats;
	unsigned int i, j, sz = 0;

	for (i = 0; i < DSS_CLASSES; i++) {
		dss_core_stats(d->core, i, &stats);
		hits[0] += stats.read_hits;
		hits[1] += stats.write_hits;
		misses += stats.misses;
		takes += stats.takes;
		cleaned += stats.cleaned;
		for (j = 0; j < DSS_NR_EVICT; j++)
			evictions += stats.evicted[j];
		for (j = 0; j < DSS_NR_BYPASS; j++)
			bypasses += stats.bypass[j];
	}
	DMEMIT("1 %s %s %s %llu %llu", dss_health_names[d->health],
	       dss_mode_names[d->mode], dss_strategy_names[d->strategy],
	       (u64)d->chunk_sectors, (u64)d->grain_sectors);
	DMEMIT(" %u/%u %u %llu", d->nr_slots - dss_core_nr_free(d->core),
	       d->nr_slots, dss_core_nr_dirty(d->core), d->dirty_grains);
	DMEMIT(" %llu %llu %llu %llu %llu %llu %llu", hits[0], hits[1],
	       misses, takes, bypasses, evictions, cleaned);
	DMEMIT(" %llu %llu", d->ssd_errors, d->hdd_errors);
	for (i = 0; i < DSS_CLASSES; i++) {
		dss_core_stats(d->core, i, &stats);
		if (stats.resident)
			DMEMIT(" %u:%u:%u", i, stats.resident, stats.dirty);
	}
}

static void dss_emit_table(struct dss *d, char *result, unsigned int maxlen)
{
	bool known = memchr_inv(d->origin_id, 0, sizeof(d->origin_id));
	unsigned int sz = 0;

	DMEMIT("%s %s %llu %u %s %s grain %llu meta_class %u high %u low %u idle_ms %u",
	       d->ssd->name, d->hdd->name, (u64)d->chunk_sectors,
	       12 + (d->stage_parts ? 2 : 0) + (d->ahead_sectors ? 2 : 0) +
	       (d->after_sectors ? 2 : 0) + (known ? 2 : 0),
	       dss_mode_names[d->mode], dss_strategy_names[d->strategy],
	       (u64)d->grain_sectors, d->meta_class,
	       dss_percent(d->high_parts), dss_percent(d->low_parts),
	       d->idle_ms);
	if (d->stage_parts)
		DMEMIT(" stage %u", dss_percent(d->stage_parts));
	if (d->ahead_sectors)
		DMEMIT(" ahead %u", d->ahead_sectors);
	if (d->after_sectors)
		DMEMIT(" after %u", d->after_sectors);
	if (known)
		DMEMIT(" origin_id %*phN", (int)sizeof(d->origin_id),
		       d->origin_id);
}

void dss_status(struct dm_target *ti, status_type_t type,
		unsigned int status_flags, char *result, unsigned int maxlen)
{
	struct dss *d = ti->private;
	unsigned int sz = 0;

	switch (type) {
	case STATUSTYPE_INFO:
		spin_lock_irq(&d->lock);
		dss_emit_info(d, result, maxlen);
		spin_unlock_irq(&d->lock);
		break;
	case STATUSTYPE_TABLE:
		dss_emit_table(d, result, maxlen);
		break;
	case STATUSTYPE_IMA:
		DMEMIT_TARGET_NAME_VERSION(ti->type);
		DMEMIT(",ssd_device=%s,origin_device=%s,chunk_sectors=%llu;",
		       d->ssd->name, d->hdd->name, (u64)d->chunk_sectors);
		break;
	}
}
