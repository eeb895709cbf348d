// SPDX-License-Identifier: GPL-2.0
/*
 * The stop: leave on the SSD all that the next start needs.
 *
 * Context: control; nothing is in flight, and no other thread has the device.
 */
#include <linux/vmalloc.h>

#include "dss_table.h"

/* With all regions written twice, the second time for the order of use. */
static int dss_mark_clean(struct dss *d)
{
	u32 flags = DSS_SUPER_CLEAN;

	if (d->recency) {
		bitmap_zero(d->lagging, d->nr_regions);
		d->twin_seq = d->commit_seq;
	}
	if (!dss_origin_sum(d, d->origin_sectors, &d->origin_sum))
		flags |= DSS_SUPER_ORIGIN_SUM;
	return dss_meta_mark(d, flags);
}

/* Notes for the table in which order chunks would leave. */
static void dss_number_recency(struct dss *d)
{
	u32 number = 1, class_id;
	int dirty;

	for (class_id = 0; class_id < DSS_CLASSES; class_id++)
		for (dirty = 0; dirty < 2; dirty++)
			number = dss_core_number(d->core, class_id, dirty,
						 d->recency, number);
}

/**
 * dss_meta_stop() - nothing is in flight: leave all that is needed to start
 *
 * Return: 0, or -EIO and the next start is one after a crash.
 */
int dss_meta_stop(struct dss *d)
{
	u32 region;
	int error;

	if (d->health != DSS_OK)
		return -EIO;
	spin_lock_irq(&d->lock);
	d->want_hdd_flush = true;
	spin_unlock_irq(&d->lock);
	error = dss_commit_all(d);
	if (error)
		return error;
	d->recency = vzalloc(array_size(d->nr_slots, sizeof(*d->recency)));
	if (d->recency) {
		dss_number_recency(d);
		for (region = 0; region < d->nr_regions; region++)
			if (d->region_seq[region] &&
			    !__test_and_set_bit(region, d->pending))
				d->nr_pending++;
	}
	error = dss_commit_all(d);
	if (!error && !d->nr_pending && !d->want_hdd_flush)
		error = dss_mark_clean(d);
	vfree(d->recency);
	d->recency = NULL;
	return error;
}
