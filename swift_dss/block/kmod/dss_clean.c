// SPDX-License-Identifier: GPL-2.0
/*
 * Cleaning: dirty grains go to the HDD, those of the lowest class first. When,
 * how much, and beside whom; dss_batch.c does it.
 *
 * Context: the worker "dss-clean".
 */
#include "dss_copy.h"

/* d->deferred has the requests waiting for the HDD. */
static enum dss_clean dss_clean_beside(const struct dss *d)
{
	if (d->draining || (!d->nr_inflight && list_empty(&d->deferred) &&
			    !time_before(jiffies, d->last_request + HZ / 10)))
		return DSS_CLEAN_IDLE;
	if (d->turn_sectors ||
	    (d->last_read && time_before(jiffies, d->last_read + HZ / 10)))
		return DSS_CLEAN_READS;
	return DSS_CLEAN_WRITES;
}

/* How many slots to clean now. */
static u32 dss_clean_goal(struct dss *d, enum dss_clean *how)
{
	u32 goal;

	spin_lock_irq(&d->lock);
	goal = dss_core_cleaning_goal(d->core);
	*how = dss_clean_beside(d);
	if (d->cleaning_all || d->draining || d->health == DSS_REFUSING ||
	    (d->idle_ms && time_after(jiffies, d->last_request +
				      msecs_to_jiffies(d->idle_ms))))
		goal = dss_core_nr_dirty(d->core);
	if (d->health == DSS_GIVEN_UP || d->stopping ||
	    (d->suspended && !d->draining))
		goal = 0;
	if (!dss_core_nr_dirty(d->core)) {
		d->cleaning_all = false;
		wake_up_all(&d->idle);
	}
	spin_unlock_irq(&d->lock);
	return goal;
}

void dss_clean_work(struct work_struct *work)
{
	struct dss *d = container_of(to_delayed_work(work), struct dss,
				     clean_work);
	struct dss_batch *batch = d->batch;
	enum dss_clean how;
	u32 goal;

	while ((goal = dss_clean_goal(d, &how))) {
		if (dss_clean_batch(batch, goal, how))
			continue;
		/* In use, or failing: not at once again. */
		dss_kick_cleaner(d, HZ / 10);
		return;
	}
}
