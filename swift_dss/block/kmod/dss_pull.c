// SPDX-License-Identifier: GPL-2.0
/*
 * The chunks of a batch of the cleaner: the lowest class first, or, with a
 * stage, in the order of addresses.
 *
 * Context: the worker "dss-clean".
 */
#include "dss_copy.h"

static bool dss_pull_beside(struct dss_batch *batch, u64 oblock)
	__must_hold(&batch->d->lock)
{
	dss_slot_t slot = dss_core_pull_beside(batch->d->core,
					       dss_to_oblock(oblock));

	if (slot == DSS_NO_SLOT)
		return false;
	batch->slots[batch->nr_slots] = slot;
	batch->oblocks[batch->nr_slots++] = oblock;
	return true;
}

/* The last one that was pulled takes its dirty neighbours along. */
static void dss_pull_neighbours(struct dss_batch *batch)
	__must_hold(&batch->d->lock)
{
	u64 first = batch->oblocks[batch->nr_slots - 1], last = first;
	u32 most = min_t(u32, DSS_CLEAN_RUNS, batch->nr_slots - 1 +
			 max_t(u32, 1, DSS_CLEAN_BESIDE >>
			       batch->d->chunk_shift));

	while (batch->nr_slots < most && dss_pull_beside(batch, last + 1))
		last++;
	while (batch->nr_slots < most && first &&
	       dss_pull_beside(batch, first - 1))
		first--;
}

/* Pulls slots from the core, lowest class first: how many. */
static u32 dss_pull_some(struct dss_batch *batch, u32 most)
	__must_hold(&batch->d->lock)
{
	struct dss *d = batch->d;
	dss_oblock_t oblock;
	u32 i, nr;

	most = min(most, DSS_CLEAN_RUNS - batch->nr_slots);
	nr = dss_core_pull_dirty(d->core, batch->slots + batch->nr_slots,
				 most);
	for (i = 0; i < nr; i++) {
		dss_core_slot_state(d->core, batch->slots[batch->nr_slots],
				    &oblock, NULL);
		batch->oblocks[batch->nr_slots++] = dss_from_oblock(oblock);
	}
	return nr;
}

/*
 * A row of dirty chunks, as much of it as d->lock may be held for.
 *
 * Return: how many.
 */
static u32 dss_pull_row(struct dss_batch *batch, u64 oblock, u32 most)
{
	u32 nr = 0;

	most = min(most, batch->nr_slots + DSS_BATCH_PULLS);
	spin_lock_irq(&batch->d->lock);
	while (batch->nr_slots < most &&
	       dss_pull_beside(batch, oblock + nr))
		nr++;
	spin_unlock_irq(&batch->d->lock);
	return nr;
}

/* With a stage: in order of addresses; beside readers one row. */
bool dss_pull_sweep(struct dss_batch *batch, struct dss_sweep *sweep,
		    enum dss_clean how)
{
	bool reads = how == DSS_CLEAN_READS;
	u32 rows = reads ? 1 : DSS_STAGE_ROWS;
	u32 most = max_t(u32, 1, (reads ? DSS_CLEAN_BESIDE :
				  DSS_STAGE_SECTORS) >> batch->d->chunk_shift);
	u64 oblock;
	u32 nr;

	batch->nr_slots = 0;
	batch->nr_rows = 0;
	while (batch->nr_rows < rows && batch->nr_slots < most &&
	       dss_sweep_next(sweep, !batch->nr_slots, &oblock)) {
		nr = dss_pull_row(batch, oblock, most);
		batch->nr_rows += nr > 0;
		for (; nr; nr = dss_pull_row(batch, oblock, most))
			oblock += nr;
	}
	return batch->nr_slots;
}

/* Beside requests neighbours go along: they cost the HDD no other way. */
bool dss_pull_lowest(struct dss_batch *batch, u32 most, enum dss_clean how)
{
	u32 rows = how == DSS_CLEAN_READS ? 1 : DSS_CLEAN_ROWS;
	struct dss *d = batch->d;
	u32 enough = max_t(u32, 1, DSS_CLEAN_SECTORS >> d->chunk_shift);

	batch->nr_slots = 0;
	batch->nr_rows = 0;
	spin_lock_irq(&d->lock);
	if (how == DSS_CLEAN_IDLE && most > 1)
		dss_pull_some(batch, most);
	else
		while (rows-- && batch->nr_slots < min(most, enough) &&
		       dss_pull_some(batch, 1))
			dss_pull_neighbours(batch);
	spin_unlock_irq(&d->lock);
	return batch->nr_slots;
}
