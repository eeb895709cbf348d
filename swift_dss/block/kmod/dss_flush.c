// SPDX-License-Identifier: GPL-2.0
/*
 * A flush of the HDD, and what it settles.
 *
 * Context: worker or control.
 */
#include "dss_table.h"

static void dss_settle_all(struct dss *d)
{
	u32 region = 0;

	spin_lock_irq(&d->lock);
	dss_settle_begin(d);
	while ((region = dss_settle(d, region)) < d->nr_regions) {
		spin_unlock_irq(&d->lock);
		cond_resched();
		spin_lock_irq(&d->lock);
	}
	spin_unlock_irq(&d->lock);
}

/*
 * Make the HDD's writes durable, and settle them. One at a time: a caller that
 * comes during another flush waits, and flushes again only if more was
 * written.
 */
int dss_flush_hdd(struct dss *d)
{
	int error = 0;

	mutex_lock(&d->hdd_mutex);
	spin_lock_irq(&d->lock);
	d->hdd_flushing = d->hdd_wrote;
	d->hdd_owed = d->hdd_owes;
	d->hdd_wrote = false;
	d->hdd_owes = false;
	bitmap_zero(d->unsettled_new, d->nr_regions);
	swap(d->volatile_new, d->volatile_old);
	spin_unlock_irq(&d->lock);
	if (d->hdd_flushing)
		error = blkdev_issue_flush(d->hdd->bdev);
	spin_lock_irq(&d->lock);
	d->hdd_flushing = false;
	d->hdd_owed = false;
	if (error) {
		d->hdd_wrote = true;
		d->hdd_owes = true;
		d->hdd_errors++;
		d->failed_flushes++;
		bitmap_or(d->volatile_new, d->volatile_new, d->volatile_old,
			  DSS_HASH_BITS);
		dss_group_failed(d);
	}
	bitmap_zero(d->volatile_old, DSS_HASH_BITS);
	spin_unlock_irq(&d->lock);
	if (!error)
		dss_settle_all(d);
	mutex_unlock(&d->hdd_mutex);
	return error;
}
