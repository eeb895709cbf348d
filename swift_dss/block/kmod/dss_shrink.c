// SPDX-License-Identifier: GPL-2.0
/*
 * Give up the end of the SSD while the device stays in use: chunks there are
 * written back and leave, then the superblock says that the cache ends
 * earlier. Do not make the SSD smaller before that.
 *
 * Whole regions go: those that stay are in the table as they were.
 *
 * Context: control, with message_mutex held, unless a function says otherwise.
 */
#include "dss_table.h"

#define DSS_SHRINK_LOOK		(HZ / 20)
#define DSS_SHRINK_LIMIT	(600 * HZ)

/* The segments that remain when the SSD has so many sectors. */
struct dss_cut {
	u32 nr_segments;
	u32 nr_slots;		/* of all */
	u32 nr_regions;
	u32 last_slots;		/* of the last segment that stays */
	u32 last_regions;
};

static void dss_plan_cut(const struct dss *d, sector_t sectors,
			 struct dss_cut *cut)
{
	u32 i;

	memset(cut, 0, sizeof(*cut));
	for (i = 0; i < d->nr_segments; i++) {
		const struct dss_segment *segment = &d->segments[i];
		u64 fit = sectors > segment->data_sector ?
			(sectors - segment->data_sector) >> d->chunk_shift : 0;
		u32 slots = segment->nr_slots, regions = segment->nr_regions;

		if (fit < slots) {
			regions = div_u64(fit, d->per_region);
			slots = regions * d->per_region;
		}
		if (!slots)
			break;
		cut->nr_segments++;
		cut->nr_slots += slots;
		cut->nr_regions += regions;
		cut->last_slots = slots;
		cut->last_regions = regions;
		if (slots < segment->nr_slots)
			break;
	}
}

/*
 * A slot over the limit is given up if it is clean and idle.
 * Requests look, too: a chunk in constant use is idle between two requests.
 */
bool dss_give_up_slot(struct dss *d, dss_slot_t slot)
	__must_hold(&d->lock)
{
	dss_oblock_t oblock;

	if (dss_core_slot_state(d->core, slot, &oblock, NULL) !=
	    DSS_SLOT_USED || dss_in_flight(d, dss_from_oblock(oblock)))
		return false;
	dss_evict(d, slot, DSS_EVICT_SHRINK);
	return true;
}

/* Return: how many slots over the limit cannot leave yet. */
static u32 dss_evict_over_limit(struct dss *d)
{
	dss_slot_t slot = dss_to_slot(0);
	u32 left = 0;

	for (;;) {
		spin_lock_irq(&d->lock);
		slot = dss_core_over_limit(d->core, slot);
		if (slot == DSS_NO_SLOT)
			break;
		left += !dss_give_up_slot(d, slot);
		spin_unlock_irq(&d->lock);
		slot = dss_to_slot(dss_from_slot(slot) + 1);
		cond_resched();
	}
	spin_unlock_irq(&d->lock);
	return left;
}

/*
 * Nothing new comes there, and writes also go to the HDD: so the cleaner
 * finishes, and clean chunks leave when they are not in use.
 */
static int dss_empty_the_end(struct dss *d)
{
	unsigned long deadline = jiffies + DSS_SHRINK_LIMIT;
	int error = 0;

	WRITE_ONCE(d->draining, true);
	while (!error && dss_evict_over_limit(d)) {
		dss_kick_cleaner(d, 0);
		schedule_timeout_interruptible(DSS_SHRINK_LOOK);
		if (signal_pending(current))
			error = -EINTR;
		else if (READ_ONCE(d->health) != DSS_OK)
			error = -EIO;
		else if (time_after(jiffies, deadline))
			error = -EBUSY;
	}
	WRITE_ONCE(d->draining, false);
	return error ?: dss_commit_all(d);
}

/* The end is not there any more. meta_mutex is held, too. */
static void dss_cut_off(struct dss *d, const struct dss_cut *cut)
{
	struct dss_segment *last = &d->segments[cut->nr_segments - 1];
	u32 gone = d->nr_regions - cut->nr_regions;

	bitmap_clear(d->pending, cut->nr_regions, gone);
	d->nr_pending = bitmap_weight(d->pending, cut->nr_regions);
	bitmap_clear(d->lagging, cut->nr_regions, gone);
	bitmap_clear(d->unsettled_regions, cut->nr_regions, gone);
	bitmap_clear(d->unsettled_new, cut->nr_regions, gone);
	last->nr_slots = cut->last_slots;
	last->nr_regions = cut->last_regions;
	d->nr_segments = cut->nr_segments;
	d->nr_slots = cut->nr_slots;
	d->nr_regions = cut->nr_regions;
	d->shrinking = false;
}

static int dss_set_limit(struct dss *d, u32 nr_slots)
{
	int error = -EIO;

	spin_lock_irq(&d->lock);
	if (d->health == DSS_OK && !d->suspended)
		error = dss_core_set_limit(d->core, nr_slots);
	d->shrinking = !error && nr_slots < d->nr_slots;
	d->limit = nr_slots;
	spin_unlock_irq(&d->lock);
	return error;
}

/**
 * dss_shrink() - use nothing of the SSD from that sector on
 *
 * Under message_mutex. Return: 0; -EINVAL (no room for a region), -EIO (the
 * SSD failed), -EBUSY or -EINTR, and nothing has changed.
 */
int dss_shrink(struct dss *d, sector_t sectors)
{
	struct dss_cut cut;
	int error;

	dss_plan_cut(d, sectors, &cut);
	if (!cut.nr_slots)
		return -EINVAL;
	if (cut.nr_slots == d->nr_slots)
		return 0;
	error = dss_set_limit(d, cut.nr_slots);
	if (error)
		return error;
	error = dss_empty_the_end(d);
	if (error) {
		dss_set_limit(d, d->nr_slots);
		return error;
	}
	mutex_lock(&d->meta_mutex);
	spin_lock_irq(&d->lock);
	dss_cut_off(d, &cut);
	spin_unlock_irq(&d->lock);
	/* The cache ends there once this is durable. */
	error = dss_meta_mark_or_fail(d, d->super_flags);
	mutex_unlock(&d->meta_mutex);
	return error;
}
