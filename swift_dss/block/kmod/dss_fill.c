// SPDX-License-Identifier: GPL-2.0
/*
 * Fills: bytes that a read miss brings to the SSD. Its own bytes, which the
 * reader gets as soon as the HDD has read them; the rest of their window in
 * the chunk; and neighbouring chunks.
 */
/* long: three kinds of fills share their ends */
#include "dss.h"

static void dss_fill_next(struct dss_io *io);

static void dss_fill_done(struct dss_move *move)
{
	struct dss *d = move->io.d;
	unsigned long irq;

	spin_lock_irqsave(&d->lock, irq);
	dss_unhash(&move->io);
	if (move->io.flags & DSS_IO_AFTER)
		d->nr_after--;
	spin_unlock_irqrestore(&d->lock, irq);
	dss_move_free(move);
}

/* The bytes are on the SSD: from now on they may be read there. */
static void dss_fill_write_end(struct bio *bio)
{
	struct dss_move *move = container_of(bio, struct dss_move, bio);
	struct dss_class_count *count;
	struct dss_io *io = &move->io;
	struct dss *d = io->d;
	unsigned long irq;

	spin_lock_irqsave(&d->lock, irq);
	d->ssd_wrote = true;
	count = &d->counts[io->class_id];
	if (bio->bi_status) {
		d->ssd_errors++;
		count->fill_failed++;
		dss_ssd_failed(d);
	} else {
		dss_set_valid(d, io->slot, io->first, io->nr);
		if (io->flags & DSS_IO_UNSETTLED)
			dss_set_unsettled(d, io->slot, io->first, io->nr);
		count->promoted++;
		count->promoted_sectors += move->sectors;
	}
	spin_unlock_irqrestore(&d->lock, irq);
	if (io->flags & DSS_IO_AFTER)
		dss_ready(io, dss_fill_next);
	else
		dss_fill_done(move);
}

static void dss_fill_write(struct dss_io *io)
{
	struct dss_move *move = dss_move_of(io);

	if (io->status || READ_ONCE(io->d->health) != DSS_OK) {
		dss_fill_done(move);
		return;
	}
	dss_move_aim(move, true, REQ_OP_WRITE, dss_fill_write_end);
	submit_bio_noacct(&move->bio);
}

/* Write the bytes to the SSD as soon as their slot may change. */
static void dss_fill_keep(struct dss_io *io)
{
	struct dss *d = io->d;
	bool wait;

	spin_lock_irq(&d->lock);
	wait = dss_is_stale(d, io->slot);
	if (wait)
		dss_wait_commit(io, dss_fill_write);
	spin_unlock_irq(&d->lock);
	if (!wait)
		dss_fill_write(io);
}

static void dss_fill_rest(const struct dss_io *read);
static void dss_fill_beside(const struct dss_io *read);

/*
 * The move has its bytes.
 *
 * Return: whether it is to be kept; if it was overtaken, it is gone.
 */
static bool dss_fill_was_read(struct dss_move *move)
{
	struct dss_io *io = &move->io;
	struct dss *d = io->d;
	bool keep;

	spin_lock_irq(&d->lock);
	keep = io->flags & DSS_IO_HASHED;
	io->flags &= ~DSS_IO_READING;
	io->status = move->bio.bi_status;
	if (keep && !io->status)
		io->flags |= DSS_IO_FILLED;
	spin_unlock_irq(&d->lock);
	if (!keep)
		dss_fill_done(move);
	return keep;
}

/* Copy a move's part of the bytes that @user asks for. */
static void dss_fill_copy_part(struct dss_move *move, struct dss_io *user)
{
	struct bvec_iter from = { .bi_sector = move->io.iter.bi_sector,
				  .bi_size = move->io.iter.bi_size };
	struct bvec_iter to = user->iter;

	if (to.bi_sector > from.bi_sector)
		bio_advance_iter(&move->bio, &from, (to.bi_sector -
				 from.bi_sector) << SECTOR_SHIFT);
	else
		bio_advance_iter(user->bio, &to, (from.bi_sector -
				 to.bi_sector) << SECTOR_SHIFT);
	bio_copy_data_iter(user->bio, &to, &move->bio, &from);
}

/* All of them, from the pages of one or more moves. */
static void dss_fill_answer(struct dss_move *move, struct dss_io *user)
{
	for (; move; move = move->next)
		dss_fill_copy_part(move, user);
	bio_endio(user->bio);
}

/* Keeps the pages of one that dss_filled() found. Under the lock. */
void dss_fill_hold(struct dss_io *fill)
{
	refcount_inc(&dss_move_of(fill)->refs);
}

/* A read gets its bytes from there, and ends. */
void dss_fill_give(struct dss_io *fill, struct dss_io *user)
{
	struct dss_move *move = dss_move_of(fill);

	dss_fill_copy_part(move, user);
	bio_endio(user->bio);
	dss_move_free(move);
}

/* The read of a fill failed: perhaps only bytes beside the user's. */
static void dss_fill_alone(struct dss_io *user)
{
	user->kind = DSS_READ_HDD;
	bio_set_dev(user->bio, user->d->hdd->bdev);
	submit_bio_noacct(user->bio);
}

/* In the worker: the reader gets its bytes, then they go to the SSD. */
static void dss_fill_copy(struct dss_io *io)
{
	struct dss_move *move = dss_move_of(io);
	struct dss_io *user = move->user;

	if (!user) {
		if (dss_fill_was_read(move))
			dss_fill_keep(io);
		return;
	}
	if (move->bio.bi_status) {
		dss_fill_alone(user);
		dss_fill_done(move);
		return;
	}
	/* The fill stays: no write overtakes a fill with a waiting reader. */
	dss_fill_was_read(move);
	dss_fill_answer(move, user);
	if (READ_ONCE(io->d->after_sectors)) {
		dss_fill_rest(io);
		dss_fill_beside(io);
	}
	dss_fill_keep(io);
}

static void dss_fill_read_end(struct bio *bio)
{
	struct dss_move *move = container_of(bio, struct dss_move, bio);
	struct dss *d = move->io.d;
	unsigned long irq;

	spin_lock_irqsave(&d->lock, irq);
	dss_turn_end(&move->io);
	spin_unlock_irqrestore(&d->lock, irq);
	dss_ready(&move->io, dss_fill_copy);
}

/* The flags of a read that its fill inherits. */
static blk_opf_t dss_fill_opf(const struct dss_io *user)
{
	return REQ_OP_READ | (user->bio->bi_opf & (REQ_META | REQ_PRIO |
						   REQ_SYNC | REQ_RAHEAD));
}

/* Its moves have its range now. Under the lock. */
static void dss_fill_take_over(struct dss_io *user)
{
	hlist_del(&user->node);
	user->flags &= ~DSS_IO_HASHED;
	user->kind = DSS_NOTHING;
	user->d->nr_inflight--;
}

static void dss_fill_submit(struct dss_io *io)
{
	submit_bio_noacct(&dss_move_of(io)->bio);
}

/**
 * dss_fill() - read what @user asks for, in whole grains, and keep it
 * @user: holds its range as DSS_FILL; the move takes that over
 *
 * Never waits for memory.
 *
 * Return: 0, or -ENOMEM and nothing has happened.
 */
int dss_fill(struct dss_io *user)
{
	struct dss *d = user->d;
	struct dss_move *move;
	unsigned long irq;
	bool now;

	move = dss_move_alloc(d, user, GFP_NOWAIT | __GFP_NOWARN);
	if (!move)
		return -ENOMEM;
	dss_move_aim(move, false, dss_fill_opf(user), dss_fill_read_end);
	move->user = user;
	move->io.start_ns = user->start_ns;
	move->io.flags = user->flags & DSS_IO_UNSETTLED;
	spin_lock_irqsave(&d->lock, irq);
	dss_hash(&move->io, DSS_FILL);
	dss_fill_take_over(user);
	now = dss_turn_begin(&move->io, dss_fill_submit);
	spin_unlock_irqrestore(&d->lock, irq);
	if (now)
		submit_bio_noacct(&move->bio);
	return 0;
}

/*
 * The next grains of [run->first, @end) that are not here and not about to
 * change. Call with d->lock held.
 */
static bool dss_next_missing(struct dss *d, struct dss_io *run,
			     unsigned int end)
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

/*
 * Starts to bring the next grains of [run->first, @end) that are missing.
 * Only a few run at a time, and each is small, so that other requests wait
 * behind those and not behind a whole chunk.
 */
static void dss_fill_after(struct dss_io *run, unsigned int end)
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
	if (ours) {
		if (dss_is_volatile(d, run->oblock))
			move->io.flags |= DSS_IO_UNSETTLED;
		move->io.flags |= DSS_IO_AFTER | DSS_IO_READING;
		move->after_end = end;
		d->nr_after++;
		dss_hash(&move->io, DSS_FILL);
	}
	spin_unlock_irq(&d->lock);
	if (!ours) {
		dss_move_free(move);
		return;
	}
	dss_move_aim(move, false, REQ_OP_READ | REQ_RAHEAD,
		     dss_fill_read_end);
	submit_bio_noacct(&move->bio);
}

/* In the worker: one is done, and holds its range until the next does. */
static void dss_fill_next(struct dss_io *io)
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
	dss_fill_after(&run, move->after_end);
	dss_fill_done(move);
}

/**
 * dss_fill_rest() - bring the bytes around a read that missed
 * @read: holds its range as DSS_FILL, so that the chunk keeps its slot
 *
 * The window of after_sectors around it, within the chunk. The reader already
 * has its bytes and does not wait. Does nothing without memory, or beside
 * enough other such fills.
 */
static void dss_fill_rest(const struct dss_io *read)
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
	dss_fill_after(&run, min_t(u64, roundup(read->first + read->nr,
						window),
				   min_t(u64, d->grains,
					 last >> d->grain_shift)));
}

/* ---- chunks beside one that missed ---- */

/* One bio for a row of moves; NULL without memory for it. */
static struct bio *dss_beside_bio(struct dss_move *first, bool ssd,
				  blk_opf_t opf, bio_end_io_t *end)
{
	struct dss *d = first->io.d;
	unsigned int nr_pages = 0;
	struct dss_move *move;
	struct bio *bio;

	for (move = first; move; move = move->next)
		nr_pages += move->nr_pages;
	dss_move_aim(first, ssd, opf, end);
	bio = bio_alloc_bioset(first->bio.bi_bdev, nr_pages, opf,
			       GFP_NOWAIT | __GFP_NOWARN, &d->moves);
	if (!bio)
		return NULL;
	bio->bi_iter.bi_sector = first->bio.bi_iter.bi_sector;
	bio->bi_ioprio = first->bio.bi_ioprio;
	for (move = first; move; move = move->next) {
		memcpy(bio->bi_io_vec + bio->bi_vcnt, move->bio.bi_io_vec,
		       move->nr_pages * sizeof(*bio->bi_io_vec));
		bio->bi_vcnt += move->nr_pages;
		bio->bi_iter.bi_size += move->io.iter.bi_size;
	}
	bio->bi_private = first;
	bio->bi_end_io = end;
	return bio;
}

static void dss_beside_wrote(struct bio *bio)
{
	struct dss_move *move = bio->bi_private, *next;
	blk_status_t status = bio->bi_status;

	/* First: with the last of the moves its pool may go. */
	bio_put(bio);
	for (; move; move = next) {
		next = move->next;
		move->bio.bi_status = status;
		dss_fill_write_end(&move->bio);
	}
}

/* A row of slots; each is written alone if they cannot be together. */
static void dss_beside_write(struct dss_move *move)
{
	struct dss_move *next;
	struct bio *bio = NULL;

	if (move->next && READ_ONCE(move->io.d->health) == DSS_OK)
		bio = dss_beside_bio(move, true, REQ_OP_WRITE,
				     dss_beside_wrote);
	if (bio) {
		submit_bio_noacct(bio);
		return;
	}
	for (; move; move = next) {
		next = move->next;
		dss_fill_write(&move->io);
	}
}

static bool dss_beside_may_join(const struct dss_move *last,
				const struct dss_move *next)
{
	struct dss *d = last->io.d;

	return dss_slot_sector(d, last->io.slot) + d->chunk_sectors ==
	       dss_slot_sector(d, next->io.slot);
}

/* In the worker: the bytes go to the SSD, slots in a row together. */
static void dss_beside_keep(struct dss_io *io)
{
	struct dss_move *move = dss_move_of(io), *next, *row = NULL;
	struct dss_move *last = NULL;
	struct dss *d = io->d;
	bool wait;

	for (; move; move = next) {
		next = move->next;
		move->next = NULL;
		if (move->io.slot == DSS_NO_SLOT) {
			dss_fill_done(move);
			continue;
		}
		if (!dss_fill_was_read(move))
			continue;
		spin_lock_irq(&d->lock);
		wait = move->io.status || dss_is_stale(d, move->io.slot);
		spin_unlock_irq(&d->lock);
		if (wait) {
			dss_fill_keep(&move->io);
			continue;
		}
		if (row && dss_beside_may_join(last, move)) {
			last->next = move;
		} else {
			if (row)
				dss_beside_write(row);
			row = move;
		}
		last = move;
	}
	if (row)
		dss_beside_write(row);
}

static void dss_beside_was_read(struct bio *bio)
{
	struct dss_move *first = bio->bi_private, *move;

	for (move = first; move; move = move->next)
		move->bio.bi_status = bio->bi_status;
	bio_put(bio);
	dss_ready(&first->io, dss_beside_keep);
}

static void dss_beside_read(struct dss_move *move)
{
	blk_opf_t opf = REQ_OP_READ | REQ_RAHEAD;
	struct bio *bio = dss_beside_bio(move, false, opf,
					 dss_beside_was_read);
	struct dss_move *next;

	if (bio) {
		submit_bio_noacct(bio);
		return;
	}
	for (; move; move = next) {
		next = move->next;
		move->next = NULL;
		dss_move_aim(move, false, opf, dss_fill_read_end);
		submit_bio_noacct(&move->bio);
	}
}

/* Under the lock. */
static bool dss_beside_may_come(struct dss *d, const struct dss_io *one,
				struct dss_verdict *verdict)
{
	return d->health == DSS_OK && !d->suspended && !d->shrinking &&
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
		if (dss_is_volatile(d, one->oblock))
			move->io.flags |= DSS_IO_UNSETTLED;
		move->io.flags |= DSS_IO_AFTER | DSS_IO_READING;
		d->nr_after++;
		dss_hash(&move->io, DSS_FILL);
	}
	spin_unlock_irq(&d->lock);
	if (may)
		return move;
	dss_move_free(move);
	return NULL;
}

/**
 * dss_fill_beside() - bring the chunks beside a read that missed
 * @read: holds its range as DSS_FILL
 *
 * Those of the window of after_sectors, if that is larger than a chunk; of
 * DSS_AFTER_SECTORS at most. They take free slots only: requested chunks do
 * not leave for speculative ones. Neighbours are one read of the HDD, and one
 * write of the SSD if their slots are neighbours too.
 */
static void dss_fill_beside(const struct dss_io *read)
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
				dss_beside_read(row);
			row = move;
		}
		if (move)
			last = move;
	}
	if (row)
		dss_beside_read(row);
}

/* ---- reads of several chunks ---- */

/* dss_fill_rest() and dss_fill_beside() at both ends of a row. */
static void dss_span_after(struct dss_move *first)
{
	unsigned int window = max(1U, dss_window_chunks(first->io.d));
	struct dss_move *last = first;

	while (last->next)
		last = last->next;
	dss_fill_rest(&first->io);
	dss_fill_rest(&last->io);
	dss_fill_beside(&first->io);
	if (rounddown(first->io.oblock, window) !=
	    rounddown(last->io.oblock, window))
		dss_fill_beside(&last->io);
}

static void dss_span_copy(struct dss_io *io)
{
	struct dss_move *first = dss_move_of(io);

	if (first->bio.bi_status) {
		dss_fill_alone(first->user);
	} else {
		dss_fill_answer(first, first->user);
		if (READ_ONCE(io->d->after_sectors))
			dss_span_after(first);
	}
	dss_beside_keep(io);
}

static void dss_span_was_read(struct bio *bio)
{
	struct dss_move *first = bio->bi_private, *move;
	struct dss *d = first->io.d;
	unsigned long irq;

	for (move = first; move; move = move->next)
		move->bio.bi_status = bio->bi_status;
	bio_put(bio);
	spin_lock_irqsave(&d->lock, irq);
	dss_turn_end(first->user);
	spin_unlock_irqrestore(&d->lock, irq);
	dss_ready(&first->io, dss_span_copy);
}

static void dss_span_submit(struct dss_io *user)
{
	submit_bio_noacct(dss_move_of(user->fill)->whole);
}

static void dss_span_free(struct dss_move *move)
{
	struct dss_move *next;

	for (; move; move = next) {
		next = move->next;
		dss_move_free(move);
	}
}

/* A move for each chunk, and one bio for all; NULL without memory. */
static struct dss_move *dss_span_moves(const struct dss_io *user)
{
	struct dss_io one = { .class_id = user->class_id,
			      .slot = DSS_NO_SLOT };
	struct dss_move *first = NULL, **end = &first;

	while (dss_next_chunk(user, &one)) {
		*end = dss_move_alloc(user->d, &one,
				      GFP_NOWAIT | __GFP_NOWARN);
		if (!*end)
			goto no_memory;
		end = &(*end)->next;
	}
	first->whole = dss_beside_bio(first, false, dss_fill_opf(user),
				      dss_span_was_read);
	if (first->whole)
		return first;
no_memory:
	dss_span_free(first);
	return NULL;
}

/* Under the lock. A chunk without a slot is only read. */
static void dss_span_hash(const struct dss_io *user, struct dss_move *move)
{
	struct dss *d = user->d;
	unsigned int chunk;

	for (chunk = 0; move; move = move->next, chunk++) {
		if (!test_bit(chunk, user->here)) {
			dss_hash(&move->io, DSS_READ_HDD);
			continue;
		}
		move->io.slot = dss_core_lookup(d->core, dss_to_oblock(
						move->io.oblock));
		if (dss_is_volatile(d, move->io.oblock))
			move->io.flags |= DSS_IO_UNSETTLED;
		dss_hash(&move->io, DSS_FILL);
	}
}

/**
 * dss_fill_span() - dss_fill() for several chunks, by one read of the HDD
 * @user: holds its range as DSS_FILL; its @here says which chunks have a
 *	slot, of which nothing is valid
 *
 * Return: 0, or -ENOMEM and nothing has happened.
 */
int dss_fill_span(struct dss_io *user)
{
	struct dss_move *first = dss_span_moves(user);
	struct dss *d = user->d;
	unsigned long irq;
	bool now;

	if (!first)
		return -ENOMEM;
	first->user = user;
	user->fill = &first->io;
	spin_lock_irqsave(&d->lock, irq);
	dss_span_hash(user, first);
	dss_fill_take_over(user);
	now = dss_turn_begin(user, dss_span_submit);
	spin_unlock_irqrestore(&d->lock, irq);
	if (now)
		dss_span_submit(user);
	return 0;
}
