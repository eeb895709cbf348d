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

/*
 * Whether the next batch is read while this one is written, so that the HDD does
 * not wait for the SSD: where it has long rows to write. For short ones its arm
 * takes much longer than the SSD, and what is read later has more neighbours.
 * Readers of the HDD would wait for both, and, without a stage, so would writes
 * that pass the SSD.
 */
static bool dss_clean_reads_ahead(const struct dss_batch *batch, bool stage)
{
	if (!stage)
		return batch->how == DSS_CLEAN_IDLE;
	return batch->how != DSS_CLEAN_READS &&
	       batch->nr_pages >= batch->nr_rows * DSS_AHEAD_PAGES;
}

/* Return: whether it did something and nothing went wrong. */
static bool dss_clean_some(struct dss *d, u32 goal, enum dss_clean how,
			   struct dss_sweep *sweep)
{
	struct dss_cleaner *cleaner = d->cleaner;
	struct dss_batch *batch = &cleaner->batches[cleaner->turn];
	struct dss_batch *next = &cleaner->batches[!cleaner->turn];

	batch->ahead = false;
	if (!batch->nr_moves) {
		if (!dss_batch_read(batch, goal, how, sweep))
			return false;
		goal -= min(goal, batch->nr_slots);
	}
	next->ahead = true;
	if (goal && how == batch->how && dss_clean_reads_ahead(batch, sweep))
		dss_batch_read(next, goal, how, sweep);
	cleaner->turn = !cleaner->turn;
	return dss_batch_write(batch);
}

/* What was read ahead is written, too. */
static void dss_clean_rest(struct dss *d)
{
	struct dss_cleaner *cleaner = d->cleaner;
	struct dss_batch *batch = &cleaner->batches[cleaner->turn];

	if (batch->nr_moves)
		dss_batch_write(batch);
}

void dss_clean_work(struct work_struct *work)
{
	struct dss *d = container_of(to_delayed_work(work), struct dss,
				     clean_work);
	/* Pairs with dss_cleaner_stage(). */
	struct dss_sweep *sweep = smp_load_acquire(&d->cleaner->sweep);
	bool sweeps, stuck = false;
	enum dss_clean how;
	u32 goal;

	/* Chunks have become dirty. */
	if (sweep)
		dss_sweep_renew(sweep);
	while (!stuck && (goal = dss_clean_goal(d, &how, &sweeps))) {
		stuck = !dss_clean_some(d, goal, how, sweeps ? sweep : NULL);
		if (!stuck)
			dss_let_staged_go(d, false);
	}
	dss_clean_rest(d);
	dss_let_staged_go(d, stuck || READ_ONCE(d->health) != DSS_OK);
	/* In use, or failing: not at once again. */
	if (stuck)
		dss_kick_cleaner(d, HZ / 10);
}

struct dss_cleaner *dss_cleaner_create(struct dss *d)
{
	struct dss_cleaner *cleaner = kvzalloc(sizeof(*cleaner), GFP_KERNEL);
	unsigned int i;

	if (!cleaner)
		return NULL;
	for (i = 0; i < ARRAY_SIZE(cleaner->batches); i++)
		dss_batch_init(&cleaner->batches[i], d);
	return cleaner;
}

/**
 * dss_cleaner_stage() - be ready for a stage
 *
 * Call it before the core has one. May be called again.
 *
 * Return: 0 or -ENOMEM.
 */
int dss_cleaner_stage(struct dss *d)
{
	struct dss_sweep *sweep;

	if (d->cleaner->sweep)
		return 0;
	sweep = dss_sweep_create(d);
	if (!sweep)
		return -ENOMEM;
	/* The cleaner may be at work: pairs with dss_clean_work(). */
	smp_store_release(&d->cleaner->sweep, sweep);
	return 0;
}

void dss_cleaner_destroy(struct dss_cleaner *cleaner)
{
	if (cleaner)
		kvfree(cleaner->sweep);
	kvfree(cleaner);
}
