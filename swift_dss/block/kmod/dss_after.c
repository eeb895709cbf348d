// SPDX-License-Identifier: GPL-2.0
/*
 * Fills without a reader: after a read that missed, the rest of its window in
 * the chunk, and neighbouring chunks. Only a few run at a time, and each is
 * small, so that other requests wait behind those and not behind a whole
 * chunk. They do nothing without memory, or beside enough others.
 *
 * Context: the worker "dss-io". Never waits for memory.
 */
#include "dss_copy.h"

/*
 * The next grains of [run->first, @end) that are not here and not about to
 * change.
 */
static bool dss_next_missing(struct dss *d, struct dss_io *run,
			     unsigned int end)
	__must_hold(&d->lock)
{
	unsigned int grain;

	for (run->nr = 1; run->first < end; run->first++)
		if (!dss_grain(d, d->valid, run->slot, run->first) &&
		    !dss_range_busy(d, run))
			break;
	if (run->first >= end)
		return false;
	for (grain = run->first + 1; grain < end; grain++) {
		if (dss_grain(d, d->valid, run->slot, grain))
			break;
		run->nr++;
		if (!dss_range_busy(d, run))
			continue;
		run->nr--;
		break;
	}
	return true;
}

/* The chunks of a window; 0 or 1: it lies within one. */
static unsigned int dss_window_chunks(const struct dss *d)
{
	return min_t(sector_t, READ_ONCE(d->after_sectors),
		     DSS_AFTER_SECTORS) >> d->chunk_shift;
}

static unsigned int dss_most_after(const struct dss *d)
{
	return DSS_AFTER_FILLS * max(1U, dss_window_chunks(d));
}

/* ---- reading a row, and keeping it ---- */

static void dss_after_keep(struct dss_io *io)
{
	struct dss_move *first = dss_move_of(io);

	dss_keep_read(first);
	dss_keep_row(first);
}

/* Context: end. */
static void dss_after_end(struct bio *bio)
{
	dss_ready(&dss_row_end(bio)->io, dss_after_keep);
}

static void dss_after_read(struct dss_move *move)
{
	dss_row_submit(move, false, REQ_OP_READ | REQ_RAHEAD, dss_after_end);
}

static void dss_after_next(struct dss_io *io);

static void dss_after_hash(struct dss_move *move, unsigned int end)
	__must_hold(&move->io.d->lock)
{
	struct dss *d = move->io.d;

	if (dss_is_volatile(d, move->io.oblock))
		move->io.flags |= DSS_IO_UNSETTLED;
	move->io.flags |= DSS_IO_AFTER | DSS_IO_READING;
	move->kept = dss_after_next;
	move->after_end = end;
	d->nr_after++;
	dss_hash(&move->io, DSS_FILL);
}

/* ---- the rest of a chunk ---- */

/* Starts to bring the next grains of [run->first, @end) that are missing. */
static void dss_after_run(struct dss_io *run, unsigned int end)
{
	struct dss *d = run->d;
	unsigned int most = max_t(unsigned int, 1, DSS_AFTER_SECTORS >>
				  d->grain_shift);
	struct dss_move *move;
	bool ours;

	spin_lock_irq(&d->lock);
	ours = d->health == DSS_OK && !d->suspended &&
	       d->nr_after < dss_most_after(d) && dss_next_missing(d, run, end);
	spin_unlock_irq(&d->lock);
	if (!ours)
		return;
	run->nr = min_t(unsigned int, run->nr, most);
	move = dss_move_alloc(d, run, GFP_NOWAIT | __GFP_NOWARN);
	if (!move)
		return;
	spin_lock_irq(&d->lock);
	/* Only now is the range ours: it may have changed. */
	ours = !dss_any(d, d->valid, run->slot, run->first, run->nr) &&
	       !dss_range_busy(d, run);
	if (ours)
		dss_after_hash(move, end);
	spin_unlock_irq(&d->lock);
	if (ours)
		dss_after_read(move);
	else
		dss_move_free(move);
}

/* One is done, and holds its range until the next does. */
static void dss_after_next(struct dss_io *io)
{
	struct dss_move *move = dss_move_of(io);
	struct dss *d = io->d;
	struct dss_io run = { .d = d, .slot = io->slot, .oblock = io->oblock,
			      .class_id = io->class_id,
			      .first = io->first + io->nr };

	spin_lock_irq(&d->lock);
	io->flags &= ~DSS_IO_AFTER;
	d->nr_after--;
	spin_unlock_irq(&d->lock);
	dss_after_run(&run, move->after_end);
	dss_keep_done(move);
}

/*
 * The window of after_sectors around a read, within the chunk. @read holds
 * its range, so that the chunk keeps its slot.
 */
static void dss_after_rest(const struct dss_io *read)
{
	struct dss *d = read->d;
	unsigned int window = min(d->grains, READ_ONCE(d->after_sectors) >>
				  d->grain_shift);
	struct dss_io run = { .d = d, .slot = read->slot,
			      .oblock = read->oblock,
			      .class_id = read->class_id };
	sector_t last;

	if (read->slot == DSS_NO_SLOT || window < 2 || read->nr >= window)
		return;
	run.first = rounddown(read->first, window);
	last = d->origin_sectors - (read->oblock << d->chunk_shift);
	dss_after_run(&run, min_t(u64, roundup(read->first + read->nr,
					       window),
				  min_t(u64, d->grains,
					last >> d->grain_shift)));
}

/* ---- chunks beside one that missed ---- */

static bool dss_beside_may_come(struct dss *d, const struct dss_io *one,
				struct dss_verdict *verdict)
	__must_hold(&d->lock)
{
	return d->health == DSS_OK && !d->suspended && !d->shrinking &&
	       !d->picturing &&
	       d->mode != DSS_GLOBAL_PASS &&
	       d->nr_after < dss_most_after(d) &&
	       dss_core_lookup(d->core, dss_to_oblock(one->oblock)) ==
	       DSS_NO_SLOT && !dss_in_flight(d, one->oblock) &&
	       dss_core_room(d->core, one->class_id, verdict);
}

/* A whole chunk that is to be read, with a slot; NULL if it is not. */
static struct dss_move *dss_beside_one(struct dss *d, struct dss_io *one)
{
	struct dss_verdict verdict;
	struct dss_move *move;
	bool may;

	spin_lock_irq(&d->lock);
	may = dss_beside_may_come(d, one, &verdict);
	spin_unlock_irq(&d->lock);
	if (!may)
		return NULL;
	move = dss_move_alloc(d, one, GFP_NOWAIT | __GFP_NOWARN);
	if (!move)
		return NULL;
	spin_lock_irq(&d->lock);
	may = dss_beside_may_come(d, one, &verdict);
	if (may) {
		move->io.slot = dss_core_take(d->core, &verdict,
					      dss_to_oblock(one->oblock));
		dss_core_commit(d->core, move->io.slot, false);
		dss_after_hash(move, 0);
	}
	spin_unlock_irq(&d->lock);
	if (may)
		return move;
	dss_move_free(move);
	return NULL;
}

/*
 * The chunks of the window of after_sectors, if that is larger than a chunk;
 * of DSS_AFTER_SECTORS at most. They take free slots only: requested chunks
 * do not leave for speculative ones. Neighbours are one read of the HDD, and
 * one write of the SSD if their slots are neighbours too.
 */
static void dss_after_beside(const struct dss_io *read)
{
	struct dss *d = read->d;
	unsigned int window = dss_window_chunks(d);
	struct dss_io one = { .d = d, .class_id = read->class_id,
			      .slot = DSS_NO_SLOT, .nr = d->grains };
	struct dss_move *row = NULL, *last = NULL, *move;
	u64 end = d->origin_sectors >> d->chunk_shift;

	if (window < 2)
		return;
	one.oblock = rounddown(read->oblock, window);
	end = min(end, one.oblock + window);
	for (; one.oblock < end; one.oblock++) {
		move = dss_beside_one(d, &one);
		if (move && row && last->io.oblock + 1 == one.oblock) {
			last->next = move;
		} else if (move) {
			if (row)
				dss_after_read(row);
			row = move;
		}
		if (move)
			last = move;
	}
	if (row)
		dss_after_read(row);
}

/**
 * dss_after() - bring what lies at both ends of a read that missed
 * @first: the first of its moves; they hold their ranges as DSS_FILL
 *
 * The reader already has its bytes and does not wait.
 */
void dss_after(struct dss_move *first)
{
	struct dss *d = first->io.d;
	unsigned int window = max(1U, dss_window_chunks(d));
	struct dss_move *last = first;

	if (!READ_ONCE(d->after_sectors))
		return;
	while (last->next)
		last = last->next;
	dss_after_rest(&first->io);
	if (last != first)
		dss_after_rest(&last->io);
	dss_after_beside(&first->io);
	if (rounddown(first->io.oblock, window) !=
	    rounddown(last->io.oblock, window))
		dss_after_beside(&last->io);
}
