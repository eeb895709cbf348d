// SPDX-License-Identifier: GPL-2.0
/*
 * A batch of the cleaner: dirty grains are read from the SSD, and written to the
 * HDD in the order of the origin.
 *
 * Context: the worker "dss-clean"; waits for both devices.
 */
#include <linux/sort.h>

#include "dss_copy.h"

/* Context: end. */
static void dss_batch_end(struct bio *bio)
{
	struct dss_move *first = dss_row_end(bio);

	if (atomic_dec_and_test(first->pending))
		complete(first->done);
}

/*
 * Links the moves from @first on that lie in one row on the HDD: apart, each
 * with REQ_FUA, the disk would turn once for every one of them.
 *
 * Return: how many there are.
 */
static u32 dss_batch_row(const struct dss_batch *batch, u32 first)
{
	unsigned int nr_pages = batch->moves[first]->nr_pages;
	u32 end;

	for (end = first + 1; end < batch->nr_moves; end++) {
		struct dss_move *last = batch->moves[end - 1];
		struct dss_move *next = batch->moves[end];

		nr_pages += next->nr_pages;
		if (next->io.status || nr_pages > BIO_MAX_VECS ||
		    next->io.iter.bi_sector !=
		    last->io.iter.bi_sector + last->sectors)
			break;
		last->next = next;
	}
	batch->moves[end - 1]->next = NULL;
	return end - first;
}

/* Submits all moves that are well so far, in order. */
static void dss_batch_submit(struct dss_batch *batch, bool ssd, blk_opf_t opf)
{
	struct blk_plug plug;
	struct bio *bio;
	u32 i, nr;

	reinit_completion(&batch->done);
	atomic_set(&batch->pending, 1);
	blk_start_plug(&plug);
	for (i = 0; i < batch->nr_moves; i += nr) {
		struct dss_move *move = batch->moves[i];

		nr = 1;
		if (move->io.status)
			continue;
		atomic_inc(&batch->pending);
		move->pending = &batch->pending;
		move->done = &batch->done;
		if (!ssd)
			nr = dss_batch_row(batch, i);
		bio = dss_row_bio(move, ssd, opf, dss_batch_end);
		if (!bio) {
			/* No memory for the row: it goes one by one. */
			nr = 1;
			move->next = NULL;
			bio = dss_row_bio(move, ssd, opf, dss_batch_end);
		}
		submit_bio_noacct(bio);
	}
	blk_finish_plug(&plug);
}

static void dss_batch_wait(struct dss_batch *batch)
{
	if (!atomic_dec_and_test(&batch->pending))
		wait_for_completion_io(&batch->done);
}

/* The next dirty run of a slot from @from on, as a range. */
static bool dss_next_run(struct dss *d, struct dss_io *run, unsigned int from)
{
	unsigned long begin = dss_bit(d, run->slot, from);
	unsigned long end = dss_bit(d, run->slot, 0) + d->grains;
	unsigned long bit = find_next_bit(d->dirty, end, begin);

	if (bit >= end)
		return false;
	run->first = bit - dss_bit(d, run->slot, 0);
	run->nr = dss_alike(d, d->dirty, run->slot, run->first,
			    d->grains - run->first);
	return true;
}

/*
 * Fills need pages, too: without other memory they have half of those that are
 * kept back, and no batch is read ahead.
 */
static bool dss_batch_has_room(const struct dss_batch *batch)
{
	return batch->nr_moves < DSS_BATCH_SLOTS &&
	       ((!batch->ahead && batch->nr_pages < DSS_POOL_PAGES / 2) ||
		READ_ONCE(batch->d->pages.curr_nr) > DSS_POOL_PAGES / 2);
}

/* Makes moves of the dirty runs of one slot, as far as the batch has room. */
static void dss_batch_add(struct dss_batch *batch, u32 index)
{
	struct dss *d = batch->d;
	struct dss_io run = { .d = d, .slot = batch->slots[index],
			      .oblock = batch->oblocks[index] };
	unsigned int class_id, from = 0;
	struct dss_move *move;
	bool found, busy;

	while (dss_batch_has_room(batch)) {
		spin_lock_irq(&d->lock);
		found = dss_next_run(d, &run, from);
		dss_core_slot_state(d->core, run.slot, NULL, &class_id);
		spin_unlock_irq(&d->lock);
		if (!found)
			return;
		run.class_id = class_id;
		from = run.first + run.nr;
		move = dss_move_alloc(d, &run, batch->nr_moves || batch->ahead ?
				      GFP_NOWAIT | __GFP_NOWARN : GFP_NOIO);
		if (!move)
			return;
		/* It may have changed; what counts is what is so now. */
		spin_lock_irq(&d->lock);
		busy = !dss_all(d, d->dirty, run.slot, run.first, run.nr) ||
		       dss_range_busy(d, &move->io);
		if (!busy)
			dss_hash(&move->io, DSS_CLEAN);
		spin_unlock_irq(&d->lock);
		if (busy) {
			dss_move_free(move);
			continue;
		}
		batch->moves[batch->nr_moves++] = move;
		batch->nr_pages += move->nr_pages;
	}
}

static int dss_compare_oblocks(const void *a, const void *b, const void *priv)
{
	const struct dss_batch *batch = priv;
	u64 left = batch->oblocks[*(const u32 *)a];
	u64 right = batch->oblocks[*(const u32 *)b];

	return left < right ? -1 : left > right;
}

/* A large batch gives d->lock back now and then. */
static void dss_batch_breathe(struct dss *d, u32 i)
	__must_hold(&d->lock)
{
	if (!i || i % DSS_BATCH_PULLS)
		return;
	spin_unlock_irq(&d->lock);
	spin_lock_irq(&d->lock);
}

/* Rule 4: chunks that the table may still name elsewhere. */
static bool dss_batch_was_evicted(struct dss_batch *batch)
{
	struct dss *d = batch->d;
	bool was = false;
	u32 i;

	spin_lock_irq(&d->lock);
	for (i = 0; i < batch->nr_moves && !was; i++) {
		dss_batch_breathe(d, i);
		was = dss_was_evicted(d, batch->moves[i]->io.oblock);
	}
	spin_unlock_irq(&d->lock);
	return was;
}

/*
 * The origin was given the bytes: dirty grains become unsettled ones, or
 * clean ones if it cannot lose them any more.
 */
static void dss_batch_finish(struct dss_batch *batch, bool durable)
{
	struct dss *d = batch->d;
	u32 i;

	spin_lock_irq(&d->lock);
	for (i = 0; i < batch->nr_moves; i++) {
		struct dss_io *io = &batch->moves[i]->io;

		dss_batch_breathe(d, i);
		dss_unhash(io);
		if (io->status) {
			batch->failed = true;
			continue;
		}
		if (!durable)
			dss_wrote_hdd(d, io->oblock);
		if (io->flags & DSS_IO_AGAIN)
			continue;
		d->counts[io->class_id].cleaned_sectors +=
			batch->moves[i]->sectors;
		if (!durable)
			dss_set_unsettled(d, io->slot, io->first, io->nr);
		dss_clear_dirty(d, io->slot, io->first, io->nr);
	}
	for (i = 0; i < batch->nr_slots; i++) {
		dss_batch_breathe(d, i);
		dss_core_cleaned(d->core, batch->slots[i],
				 !dss_any(d, d->dirty, batch->slots[i], 0,
					  d->grains));
	}
	spin_unlock_irq(&d->lock);
	for (i = 0; i < batch->nr_moves; i++)
		dss_move_free(batch->moves[i]);
}

/*
 * Together they cost the disk less than one by one, and so does one flush.
 * After one that failed, also of others, the next may succeed without them.
 */
static void dss_batch_settle(struct dss_batch *batch)
{
	struct dss *d = batch->d;
	u32 i;

	spin_lock_irq(&d->lock);
	for (i = 0; i < batch->nr_moves; i++) {
		dss_batch_breathe(d, i);
		dss_wrote_hdd(d, batch->moves[i]->io.oblock);
	}
	spin_unlock_irq(&d->lock);
	if (!dss_flush_hdd(d) &&
	    READ_ONCE(d->failed_flushes) == batch->failed_flushes)
		return;
	for (i = 0; i < batch->nr_moves; i++)
		batch->moves[i]->io.status = BLK_STS_IOERR;
}

static void dss_batch_fail_unread(struct dss_batch *batch)
{
	struct dss *d = batch->d;
	u32 i;

	spin_lock_irq(&d->lock);
	for (i = 0; i < batch->nr_moves; i++)
		if (batch->moves[i]->io.status) {
			d->ssd_errors++;
			dss_ssd_failed(d);
		}
	spin_unlock_irq(&d->lock);
}

/**
 * dss_batch_read() - begin a batch: pull chunks, and read them from the SSD
 * @sweep: in this order, or NULL: the lowest class first
 *
 * It does not wait for the reads. Without memory a batch that is read ahead
 * may be empty.
 *
 * Return: whether there is something to write.
 */
bool dss_batch_read(struct dss_batch *batch, u32 most, enum dss_clean how,
		    struct dss_sweep *sweep)
{
	u32 i;

	batch->nr_moves = 0;
	batch->nr_pages = 0;
	batch->failed = false;
	batch->how = how;
	if (!(sweep ? dss_pull_sweep(batch, sweep, how) :
	      dss_pull_lowest(batch, most, how)))
		return false;
	for (i = 0; i < batch->nr_slots; i++)
		batch->order[i] = i;
	sort_r(batch->order, batch->nr_slots, sizeof(*batch->order),
	       dss_compare_oblocks, NULL, batch);
	for (i = 0; i < batch->nr_slots; i++)
		dss_batch_add(batch, batch->order[i]);
	if (batch->nr_moves)
		dss_batch_submit(batch, true, REQ_OP_READ);
	else
		dss_batch_finish(batch, false);
	return batch->nr_moves;
}

/**
 * dss_batch_write() - end a batch: all writes, in order of the origin
 *
 * Return: whether nothing went wrong.
 */
bool dss_batch_write(struct dss_batch *batch)
{
	struct dss *d = batch->d;
	u32 i;

	dss_batch_wait(batch);
	dss_batch_fail_unread(batch);
	if (READ_ONCE(d->health) == DSS_OK && dss_batch_was_evicted(batch) &&
	    dss_commit_all(d))
		for (i = 0; i < batch->nr_moves; i++)
			batch->moves[i]->io.status = BLK_STS_IOERR;
	batch->failed_flushes = READ_ONCE(d->failed_flushes);
	/*
	 * Beside readers make each write durable by itself, so that a reader
	 * waits for one write only. Beside writers, which wait for the flush
	 * of a group anyway, make a few durable together. Otherwise the next
	 * flush would write all of the backlog at once, and every request
	 * would wait for it.
	 */
	dss_batch_submit(batch, false, REQ_OP_WRITE |
			 (batch->how == DSS_CLEAN_READS ? REQ_FUA : 0));
	dss_batch_wait(batch);
	if (batch->how == DSS_CLEAN_WRITES)
		dss_batch_settle(batch);
	dss_batch_finish(batch, batch->how != DSS_CLEAN_IDLE);
	batch->nr_moves = 0;
	return !batch->failed;
}

void dss_batch_init(struct dss_batch *batch, struct dss *d)
{
	batch->d = d;
	init_completion(&batch->done);
}
