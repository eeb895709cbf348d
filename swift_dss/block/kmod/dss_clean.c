// SPDX-License-Identifier: GPL-2.0
/*
 * Cleaning: dirty grains go to the HDD, those of the lowest class first. When,
 * how much, and beside whom; dss_batch.c does it.
 *
 * Context: the worker "dss-clean".
 */
#include "dss_copy.h"

/* Those that wait may wait for the HDD. */
static enum dss_clean dss_clean_beside(const struct dss *d)
{
	if (d->draining || (!d->nr_inflight && !d->staged.nr && !d->nr_waiting &&
			    !time_before(jiffies, d->last_request + HZ / 10)))
		return DSS_CLEAN_IDLE;
	if (d->turn_sectors ||
	    (d->last_read && time_before(jiffies, d->last_read + HZ / 10)))
		return DSS_CLEAN_READS;
	return DSS_CLEAN_WRITES;
}

/* Whether all that is dirty is to be cleaned, by the stage or not. */
static bool dss_clean_all(const struct dss *d)
	__must_hold(&d->lock)
{
	return d->cleaning_all || d->draining || d->health == DSS_REFUSING ||
	       (d->idle_ms && time_after(jiffies, d->last_request +
					 msecs_to_jiffies(d->idle_ms)));
}

/* How many slots to clean now, and whether in the order of addresses. */
static u32 dss_clean_goal(struct dss *d, enum dss_clean *how, bool *sweep)
{
	u32 goal;

	spin_lock_irq(&d->lock);
	goal = dss_core_cleaning_goal(d->core);
	*sweep = dss_core_has_stage(d->core);
	*how = dss_clean_beside(d);
	if (dss_clean_all(d)) {
		goal = dss_core_nr_dirty(d->core);
		*sweep = false;
	}
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

/* Writes that wait for room go on, or pass the SSD if the cleaner is @stuck. */
static void dss_let_staged_go(struct dss *d, bool stuck)
{
	s64 room;

	spin_lock_irq(&d->lock);
	room = dss_stage_open(d, stuck);
	while (dss_stage_release(d, &room)) {
		spin_unlock_irq(&d->lock);
		cond_resched();
		spin_lock_irq(&d->lock);
	}
	spin_unlock_irq(&d->lock);
}

void dss_clean_work(struct work_struct *work)
{
	struct dss *d = container_of(to_delayed_work(work), struct dss,
				     clean_work);
	struct dss_batch *batch = d->batch;
	bool sweep, stuck;
	enum dss_clean how;
	u32 goal;

	dss_batch_begin(batch);
	while ((goal = dss_clean_goal(d, &how, &sweep))) {
		stuck = !dss_clean_batch(batch, goal, how, sweep);
		dss_let_staged_go(d, stuck);
		if (!stuck)
			continue;
		/* In use, or failing: not at once again. */
		dss_kick_cleaner(d, HZ / 10);
		return;
	}
	dss_let_staged_go(d, READ_ONCE(d->health) != DSS_OK);
}
