// SPDX-License-Identifier: GPL-2.0
/*
 * The operator's interface: status line and messages, field by field in
 * doc/source/dm-dss.rst. The class table is loaded by one message, and is
 * taken as a whole or not at all.
 */
/* long: the texts of status and messages belong beside one another */
#include <linux/ctype.h>

#include "dss.h"

#define DSS_RATE_BYTES 64

static const char *const dss_allocate_names[DSS_NR_ALLOCATE] = {
	[DSS_ALLOCATE_ALWAYS] = "always",
	[DSS_ALLOCATE_ROOM] = "room",
	[DSS_ALLOCATE_NEVER] = "never",
};

static const char *const dss_write_names[DSS_NR_WRITE_MODE] = {
	[DSS_WRITE_BACK] = "back",
	[DSS_WRITE_THROUGH] = "through",
	[DSS_WRITE_AROUND] = "around",
};

static const char *const dss_inner_names[DSS_NR_INNER] = {
	[DSS_INNER_LRU] = "lru",
	[DSS_INNER_SIEVE] = "sieve",
};

#define DSS_NR_FLAGS 5

/* By bit. */
static const char *const dss_flag_names[DSS_NR_FLAGS] = {
	"evict-on-hit", "no-allocate", "direct-hdd", "direct-ssd", "pin",
};

/* In the order of enum dss_bypass and enum dss_evict. */
static const char *const dss_bypass_names[DSS_NR_BYPASS] = {
	"direct", "never", "sequential", "cap", "room", "rank", "held",
	"dirty", "declined", "failed", "dirty_cap",
};

static const char *const dss_evict_names[DSS_NR_EVICT] = {
	"above", "own", "peer", "cap", "hit", "demote", "discard", "shrink",
	"failed",
};

/* Return: the index of a name, or -EINVAL. */
int dss_parse_name(const char *name, const char *const *names,
		   unsigned int nr)
{
	unsigned int i;

	for (i = 0; i < nr; i++)
		if (!strcasecmp(name, names[i]))
			return i;
	return -EINVAL;
}

/* ---- the class table ---- */

struct dss_rows {
	struct dss_class_spec specs[DSS_CLASSES];
	bool present[DSS_CLASSES];
};

/* "-", or names joined by "+". */
static int dss_parse_flags(char *text, u8 *flags)
{
	char *name;
	int bit;

	*flags = 0;
	if (!strcmp(text, "-"))
		return 0;
	while ((name = strsep(&text, "+"))) {
		bit = dss_parse_name(name, dss_flag_names, DSS_NR_FLAGS);
		if (bit < 0)
			return bit;
		*flags |= 1 << bit;
	}
	return 0;
}

/*
 * One row: nine fields, joined by commas; the tenth and eleventh may be
 * left out.
 */
static int dss_parse_row(const char *word, unsigned int *class_id,
			 struct dss_class_spec *spec)
{
	char *copy = kstrdup(word, GFP_KERNEL);
	char *rest = copy, *field[9], *dirty_cap, *order;
	int i, allocate, write_mode, inner = DSS_INNER_LRU, error = -EINVAL;

	if (!copy)
		return -ENOMEM;
	for (i = 0; i < 9; i++) {
		field[i] = strsep(&rest, ",");
		if (!field[i])
			goto out;
	}
	dirty_cap = strsep(&rest, ",");
	order = strsep(&rest, ",");
	if (order)
		inner = dss_parse_name(order, dss_inner_names, DSS_NR_INNER);
	memset(spec, 0, sizeof(*spec));
	spec->dirty_cap_parts = DSS_PARTS;
	allocate = dss_parse_name(field[2], dss_allocate_names,
				  DSS_NR_ALLOCATE);
	write_mode = dss_parse_name(field[3], dss_write_names,
				    DSS_NR_WRITE_MODE);
	if (rest || allocate < 0 || write_mode < 0 || inner < 0 ||
	    kstrtouint(field[0], 10, class_id) || *class_id >= DSS_CLASSES ||
	    kstrtou32(field[1], 10, &spec->rank) ||
	    kstrtou32(field[4], 10, &spec->floor_parts) ||
	    kstrtou32(field[5], 10, &spec->cap_parts) ||
	    kstrtou32(field[6], 10, &spec->weight) ||
	    kstrtou32(field[7], 10, &spec->cutoff_sectors) ||
	    dss_parse_flags(field[8], &spec->flags) ||
	    (dirty_cap && kstrtou32(dirty_cap, 10, &spec->dirty_cap_parts)))
		goto out;
	spec->allocate = allocate;
	spec->write_mode = write_mode;
	spec->inner = inner;
	error = 0;
out:
	kfree(copy);
	return error;
}

static int dss_set_rows(struct dss *d, const struct dss_rows *rows)
{
	unsigned int i;
	int error;

	for (i = 0; i < DSS_CLASSES; i++) {
		error = dss_core_set_class(d->core, i, rows->present[i] ?
					   &rows->specs[i] : NULL);
		if (error)
			return error;
	}
	return 0;
}

/* Under the lock; all of the new table, or all of the old one. */
static int dss_swap_rows(struct dss *d, const struct dss_rows *rows,
			 struct dss_rows *old)
{
	unsigned int i;
	int error;

	for (i = 0; i < DSS_CLASSES; i++) {
		old->present[i] = dss_core_has_class(d->core, i);
		dss_core_get_class(d->core, i, &old->specs[i]);
	}
	error = dss_set_rows(d, rows);
	if (error)
		dss_set_rows(d, old);
	return error;
}

/* Classes over a cap that shrank give their surplus. */
static void dss_reclaim(struct dss *d)
{
	dss_oblock_t oblock;
	dss_slot_t slot;

	while ((slot = dss_core_reclaim(d->core)) != DSS_NO_SLOT) {
		dss_core_slot_state(d->core, slot, &oblock, NULL);
		if (dss_in_flight(d, dss_from_oblock(oblock)))
			break;
		dss_evict(d, slot, DSS_EVICT_CAP);
	}
}

/* classes <row>...: the whole table; class <row>: one row of it. */
static int dss_message_classes(struct dss *d, unsigned int argc, char **argv,
			       bool all)
{
	struct dss_rows *rows = kcalloc(2, sizeof(*rows), GFP_KERNEL);
	struct dss_class_spec spec;
	unsigned int i, class_id;
	int error = 0;

	if (!rows)
		return -ENOMEM;
	spin_lock_irq(&d->lock);
	for (i = 0; i < DSS_CLASSES && !all; i++) {
		rows->present[i] = dss_core_has_class(d->core, i);
		dss_core_get_class(d->core, i, &rows->specs[i]);
	}
	spin_unlock_irq(&d->lock);
	for (i = 0; i < argc && !error; i++) {
		error = dss_parse_row(argv[i], &class_id, &spec);
		if (error || (all && rows->present[class_id])) {
			DMERR("row %u of the class table: \"%s\"", i,
			      argv[i]);
			error = error ?: -EINVAL;
			break;
		}
		rows->present[class_id] = true;
		rows->specs[class_id] = spec;
	}
	if (!error) {
		spin_lock_irq(&d->lock);
		error = dss_swap_rows(d, rows, rows + 1);
		if (!error)
			dss_reclaim(d);
		spin_unlock_irq(&d->lock);
		if (error)
			DMERR("class table: a field is out of range, or flags exclude one another");
	}
	kfree(rows);
	return error;
}

/* ---- other settings ---- */

static int dss_message_watermarks(struct dss *d, const char *high,
				  const char *low)
{
	u32 high_percent, low_percent;
	int error;

	if (kstrtou32(high, 10, &high_percent) || high_percent > 100 ||
	    kstrtou32(low, 10, &low_percent) || low_percent > high_percent)
		return -EINVAL;
	spin_lock_irq(&d->lock);
	error = dss_core_set_watermarks(d->core,
					high_percent * DSS_PARTS / 100,
					low_percent * DSS_PARTS / 100);
	if (!error) {
		d->high_parts = high_percent * DSS_PARTS / 100;
		d->low_parts = low_percent * DSS_PARTS / 100;
	}
	spin_unlock_irq(&d->lock);
	dss_kick_cleaner(d, 0);
	return error;
}

static int dss_message_strategy(struct dss *d, const char *name)
{
	int which = dss_parse_name(name, dss_strategy_names, DSS_NR_MODE);
	int error;

	if (which < 0)
		return which;
	spin_lock_irq(&d->lock);
	error = dss_core_set_mode(d->core, which);
	if (!error)
		d->strategy = which;
	spin_unlock_irq(&d->lock);
	return error;
}

static int dss_message_number(struct dss *d, const char *name,
			      const char *text)
{
	u32 number;

	if (kstrtou32(text, 10, &number))
		return -EINVAL;
	if (!strcasecmp(name, "meta_class") && number < 256)
		d->meta_class = number;
	else if (!strcasecmp(name, "idle_ms") && number <= 3600000)
		d->idle_ms = number;
	else if (!strcasecmp(name, "ahead") && number <= DSS_CHUNK_MAX)
		d->ahead_sectors = number;
	else if (!strcasecmp(name, "after") && number <= DSS_CHUNK_MAX)
		d->after_sectors = number;
	else
		return -EINVAL;
	return 0;
}

static int dss_message_hint(struct dss *d, const char *hint,
			    const char *class_id)
{
	u32 from, to;

	if (kstrtou32(hint, 10, &from) || !from || from >= DSS_WRITE_HINTS ||
	    kstrtou32(class_id, 10, &to) || to >= DSS_CLASSES)
		return -EINVAL;
	d->hint_class[from] = to;
	return 0;
}

static bool dss_drained(struct dss *d)
{
	bool drained;

	spin_lock_irq(&d->lock);
	drained = !dss_core_nr_dirty(d->core) || d->health == DSS_GIVEN_UP;
	spin_unlock_irq(&d->lock);
	return drained;
}

/* Waits until the origin has everything, durably. */
static int dss_message_drain(struct dss *d)
{
	int error;

	d->draining = true;
	dss_kick_cleaner(d, 0);
	error = wait_event_interruptible(d->idle, dss_drained(d));
	d->draining = false;
	if (error)
		return error;
	if (READ_ONCE(d->health) == DSS_GIVEN_UP)
		return blkdev_issue_flush(d->hdd->bdev);
	spin_lock_irq(&d->lock);
	d->want_hdd_flush = true;
	spin_unlock_irq(&d->lock);
	error = dss_commit_all(d);
	return error ?: dss_commit_all(d);
}

static int dss_message_shrink(struct dss *d, const char *text)
{
	u64 sectors;

	if (kstrtou64(text, 10, &sectors))
		return -EINVAL;
	return dss_shrink(d, sectors);
}

/* The chunks of a range of the origin leave the SSD, if they are clean. */
static int dss_message_demote(struct dss *d, const char *from, const char *nr)
{
	u64 begin, sectors, oblock, end;
	dss_slot_t slot;

	if (kstrtou64(from, 10, &begin) || kstrtou64(nr, 10, &sectors) ||
	    !sectors || begin >= d->origin_sectors ||
	    sectors > d->origin_sectors - begin)
		return -EINVAL;
	end = (begin + sectors - 1) >> d->chunk_shift;
	for (oblock = begin >> d->chunk_shift; oblock <= end; oblock++) {
		spin_lock_irq(&d->lock);
		slot = dss_core_lookup(d->core, dss_to_oblock(oblock));
		if (slot != DSS_NO_SLOT && !dss_in_flight(d, oblock) &&
		    dss_core_slot_state(d->core, slot, NULL, NULL) ==
		    DSS_SLOT_USED)
			dss_evict(d, slot, DSS_EVICT_DEMOTE);
		spin_unlock_irq(&d->lock);
		cond_resched();
	}
	return 0;
}

/* ---- answers ---- */

static int dss_tell_classes(struct dss *d, char *result, unsigned int maxlen)
{
	struct dss_class_spec spec;
	unsigned int i, bit, sz = 0;

	for (i = 0; i < DSS_CLASSES; i++) {
		const char *sep = "";

		if (!dss_core_has_class(d->core, i))
			continue;
		dss_core_get_class(d->core, i, &spec);
		DMEMIT("%u,%u,%s,%s,%u,%u,%u,%u,", i, spec.rank,
		       dss_allocate_names[spec.allocate],
		       dss_write_names[spec.write_mode], spec.floor_parts,
		       spec.cap_parts, spec.weight, spec.cutoff_sectors);
		for (bit = 0; bit < DSS_NR_FLAGS; bit++) {
			if (!(spec.flags & 1 << bit))
				continue;
			DMEMIT("%s%s", sep, dss_flag_names[bit]);
			sep = "+";
		}
		DMEMIT("%s,%u", spec.flags ? "" : "-", spec.dirty_cap_parts);
		if (spec.inner != DSS_INNER_LRU)
			DMEMIT(",%s", dss_inner_names[spec.inner]);
		DMEMIT("\n");
	}
	return 1;
}

unsigned int dss_tell_class(const struct dss *d, unsigned int class_id,
			    char *result, unsigned int maxlen)
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
{
	unsigned int sz = 0;

	DMEMIT("commits=%llu table_writes=%llu intents=%llu deferred=%llu groups=%llu grouped=%llu ssd_errors=%llu hdd_errors=%llu unsettled_regions=%u\n",
	       d->nr_commits, d->nr_table_writes, d->nr_intents,
	       d->nr_deferred, d->nr_groups, d->nr_grouped, d->ssd_errors,
	       d->hdd_errors,
	       bitmap_weight(d->unsettled_regions, d->nr_regions));
	return sz;
}

static int dss_tell_stats(struct dss *d, char *result, unsigned int maxlen)
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

static int dss_tell_latency(struct dss *d, char *result, unsigned int maxlen)
{
	unsigned int i, sz = 0;

	for (i = 0; i < DSS_CLASSES; i++)
		if (sz < maxlen)
			sz += dss_tell_class_latency(d, i, result + sz,
						     maxlen - sz);
	return 1;
}

static int dss_message_told(struct dss *d, const char *what, char *result,
			    unsigned int maxlen)
{
	int told = -EINVAL;

	spin_lock_irq(&d->lock);
	if (!strcasecmp(what, "classes"))
		told = dss_tell_classes(d, result, maxlen);
	else if (!strcasecmp(what, "stats"))
		told = dss_tell_stats(d, result, maxlen);
	else if (!strcasecmp(what, "latency"))
		told = dss_tell_latency(d, result, maxlen);
	spin_unlock_irq(&d->lock);
	return told;
}

static int dss_message_mode(struct dss *d, const char *name)
{
	int mode = dss_parse_name(name, dss_mode_names, DSS_NR_GLOBAL);

	if (mode < 0)
		return mode;
	spin_lock_irq(&d->lock);
	d->mode = mode;
	/* Without write-back, clean all dirty grains. */
	d->cleaning_all |= mode != DSS_GLOBAL_BACK;
	spin_unlock_irq(&d->lock);
	dss_kick_cleaner(d, 0);
	return 0;
}

static void dss_reset_counters(struct dss *d)
{
	spin_lock_irq(&d->lock);
	memset(d->counts, 0, DSS_CLASSES * sizeof(*d->counts));
	d->nr_commits = 0;
	d->nr_table_writes = 0;
	d->nr_intents = 0;
	d->nr_deferred = 0;
	d->nr_groups = 0;
	d->nr_grouped = 0;
	spin_unlock_irq(&d->lock);
}

static int dss_message_one(struct dss *d, const char *verb)
{
	if (!strcasecmp(verb, "drain"))
		return dss_message_drain(d);
	if (!strcasecmp(verb, "commit"))
		return dss_commit_all(d);
	if (!strcasecmp(verb, "reset")) {
		dss_reset_counters(d);
		return 0;
	}
	if (!strcasecmp(verb, "clean")) {
		d->cleaning_all = true;
		dss_kick_cleaner(d, 0);
		return 0;
	}
	if (!strcasecmp(verb, "check")) {
		int line;

		spin_lock_irq(&d->lock);
		line = dss_core_check(d->core);
		spin_unlock_irq(&d->lock);
		if (line)
			DMERR("the chunk table is damaged: line %d", line);
		return line ? -EUCLEAN : 0;
	}
	return -EINVAL;
}

static int dss_message_any(struct dss *d, unsigned int argc, char **argv,
			   char *result, unsigned int maxlen)
{
	const char *verb = argv[0];

	if (argc == 1 && (!strcasecmp(verb, "classes") ||
			  !strcasecmp(verb, "stats") ||
			  !strcasecmp(verb, "latency")))
		return dss_message_told(d, verb, result, maxlen);
	if (argc == 1)
		return dss_message_one(d, verb);
	if (!strcasecmp(verb, "classes"))
		return dss_message_classes(d, argc - 1, argv + 1, true);
	if (!strcasecmp(verb, "class"))
		return dss_message_classes(d, argc - 1, argv + 1, false);
	if (argc == 2 && !strcasecmp(verb, "mode"))
		return dss_message_mode(d, argv[1]);
	if (argc == 2 && !strcasecmp(verb, "shrink"))
		return dss_message_shrink(d, argv[1]);
	if (argc == 2 && !strcasecmp(verb, "strategy"))
		return dss_message_strategy(d, argv[1]);
	if (argc == 2)
		return dss_message_number(d, verb, argv[1]);
	if (argc == 3 && !strcasecmp(verb, "watermarks"))
		return dss_message_watermarks(d, argv[1], argv[2]);
	if (argc == 3 && !strcasecmp(verb, "write_hint"))
		return dss_message_hint(d, argv[1], argv[2]);
	if (argc == 3 && !strcasecmp(verb, "demote"))
		return dss_message_demote(d, argv[1], argv[2]);
	return -EINVAL;
}

int dss_message(struct dm_target *ti, unsigned int argc, char **argv,
		char *result, unsigned int maxlen)
{
	struct dss *d = ti->private;
	int outcome;

	if (!argc)
		return -EINVAL;
	mutex_lock(&d->message_mutex);
	outcome = dss_message_any(d, argc, argv, result, maxlen);
	mutex_unlock(&d->message_mutex);
	if (outcome == -EINVAL)
		DMERR("%s: message \"%s\" with %u arguments: unknown, or an argument is out of range",
		      dm_table_device_name(ti->table), argv[0], argc - 1);
	return outcome;
}

/* ---- the status line ---- */

static unsigned int dss_percent(u32 parts)
{
	return DIV_ROUND_CLOSEST(parts * 100, DSS_PARTS);
}

static void dss_emit_info(struct dss *d, char *result, unsigned int maxlen)
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
	       12 + (d->ahead_sectors ? 2 : 0) +
	       (d->after_sectors ? 2 : 0) + (known ? 2 : 0),
	       dss_mode_names[d->mode], dss_strategy_names[d->strategy],
	       (u64)d->grain_sectors, d->meta_class,
	       dss_percent(d->high_parts), dss_percent(d->low_parts),
	       d->idle_ms);
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
