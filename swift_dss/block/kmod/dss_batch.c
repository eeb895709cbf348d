// SPDX-License-Identifier: GPL-2.0
/*
 * A batch of the cleaner: dirty grains are read from the SSD, and written to the
 * HDD in the order of the origin.
 *
 * Context: the worker "dss-clean"; waits for both devices.
 */
#include <linux/sort.h>

#include "dss_copy.h"

struct dss_batch {
	struct dss *d;
	dss_slot_t slots[DSS_CLEAN_RUNS];
	u64 oblocks[DSS_CLEAN_RUNS];
	struct dss_move *moves[DSS_CLEAN_RUNS];
	u32 nr_slots;
	u32 nr_moves;
	unsigned int nr_pages;
	atomic_t pending;
	struct completion done;
	u32 failed_flushes;	/* before it was written */
	bool failed;
};

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

/* Submits all moves that are well so far, in order, and waits for them. */
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

/* Makes moves of the dirty runs of one slot, as far as the batch has room. */
static void dss_batch_add(struct dss_batch *batch, u32 index)
{
	struct dss *d = batch->d;
	struct dss_io run = { .d = d, .slot = batch->slots[index],
			      .oblock = batch->oblocks[index] };
	unsigned int class_id, from = 0;
	struct dss_move *move;
	bool found, busy;

	while (batch->nr_moves < DSS_CLEAN_RUNS &&
	       batch->nr_pages < DSS_POOL_PAGES / 2) {
		spin_lock_irq(&d->lock);
		found = dss_next_run(d, &run, from);
		dss_core_slot_state(d->core, run.slot, NULL, &class_id);
		spin_unlock_irq(&d->lock);
		if (!found)
			return;
		run.class_id = class_id;
		from = run.first + run.nr;
		move = dss_move_alloc(d, &run, batch->nr_moves ?
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

static bool dss_batch_pull_beside(struct dss_batch *batch, u64 oblock)
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
static void dss_batch_widen(struct dss_batch *batch)
	__must_hold(&batch->d->lock)
{
	u64 first = batch->oblocks[batch->nr_slots - 1], last = first;
	u32 most = min_t(u32, DSS_CLEAN_RUNS, batch->nr_slots - 1 +
			 max_t(u32, 1, DSS_CLEAN_BESIDE >>
			       batch->d->chunk_shift));

	while (batch->nr_slots < most && dss_batch_pull_beside(batch, last + 1))
		last++;
	while (batch->nr_slots < most && first &&
	       dss_batch_pull_beside(batch, first - 1))
		first--;
}

/* Pulls slots from the core, lowest class first: how many. */
static u32 dss_batch_pull_some(struct dss_batch *batch, u32 most)
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

/* Beside requests neighbours go along: they cost the HDD no other way. */
static bool dss_batch_pull(struct dss_batch *batch, u32 most,
			   enum dss_clean how)
{
	u32 rows = how == DSS_CLEAN_READS ? 1 : DSS_CLEAN_ROWS;
	struct dss *d = batch->d;
	u32 enough = max_t(u32, 1, DSS_CLEAN_SECTORS >> d->chunk_shift);

	batch->nr_slots = 0;
	spin_lock_irq(&d->lock);
	if (how == DSS_CLEAN_IDLE && most > 1)
		dss_batch_pull_some(batch, most);
	else
		while (rows-- && batch->nr_slots < min(most, enough) &&
		       dss_batch_pull_some(batch, 1))
			dss_batch_widen(batch);
	spin_unlock_irq(&d->lock);
	return batch->nr_slots;
}

/* Rule 4: chunks that the table may still name elsewhere. */
static bool dss_batch_was_evicted(struct dss_batch *batch)
{
	struct dss *d = batch->d;
	bool was = false;
	u32 i;

	spin_lock_irq(&d->lock);
	for (i = 0; i < batch->nr_moves && !was; i++)
		was = dss_was_evicted(d, batch->moves[i]->io.oblock);
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
	for (i = 0; i < batch->nr_slots; i++)
		dss_core_cleaned(d->core, batch->slots[i],
				 !dss_any(d, d->dirty, batch->slots[i], 0,
					  d->grains));
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
	for (i = 0; i < batch->nr_moves; i++)
		dss_wrote_hdd(d, batch->moves[i]->io.oblock);
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

/*
 * Cleans one batch: all reads, then all writes in order of the origin.
 *
 * Return: whether it did something and nothing went wrong.
 */
bool dss_clean_batch(struct dss_batch *batch, u32 most,
			    enum dss_clean how)
{
	struct dss *d = batch->d;
	u32 order[DSS_CLEAN_RUNS];
	u32 i;

	batch->nr_moves = 0;
	batch->nr_pages = 0;
	batch->failed = false;
	if (!dss_batch_pull(batch, most, how))
		return false;
	for (i = 0; i < batch->nr_slots; i++)
		order[i] = i;
	sort_r(order, batch->nr_slots, sizeof(*order), dss_compare_oblocks,
	       NULL, batch);
	for (i = 0; i < batch->nr_slots; i++)
		dss_batch_add(batch, order[i]);
	dss_batch_submit(batch, true, REQ_OP_READ);
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
			 (how == DSS_CLEAN_READS ? REQ_FUA : 0));
	if (how == DSS_CLEAN_WRITES)
		dss_batch_settle(batch);
	dss_batch_finish(batch, how != DSS_CLEAN_IDLE);
	return batch->nr_moves && !batch->failed;
}

struct dss_batch *dss_batch_create(struct dss *d)
{
	struct dss_batch *batch = kzalloc(sizeof(*batch), GFP_KERNEL);

	if (batch) {
		batch->d = d;
		init_completion(&batch->done);
	}
	return batch;
}
