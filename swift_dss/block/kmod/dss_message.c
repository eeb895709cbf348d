// SPDX-License-Identifier: GPL-2.0
/*
 * Messages, one at a time; doc/source/reference/dm-dss.rst has them.
 *
 * Context: control, with message_mutex held. May sleep.
 */
#include "dss_top.h"

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

static int dss_message_stage(struct dss *d, const char *text)
{
	u32 percent;

	if (kstrtou32(text, 10, &percent) || percent > 100)
		return -EINVAL;
	if (percent && dss_cleaner_stage(d))
		return -ENOMEM;
	spin_lock_irq(&d->lock);
	d->stage_parts = percent * DSS_PARTS / 100;
	dss_core_set_stage(d->core, d->stage_parts);
	spin_unlock_irq(&d->lock);
	dss_kick_cleaner(d, 0);
	return 0;
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
	d->nr_stage_waits = 0;
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
	if (argc == 2 && !strcasecmp(verb, "stage"))
		return dss_message_stage(d, argv[1]);
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
