// SPDX-License-Identifier: GPL-2.0
/*
 * Copies between the devices, through pages of our own: fills (the bytes
 * of a read that missed, to the SSD) and cleaning (dirty grains, to the
 * HDD). The pages are ours because a reader may write to its buffer while
 * its request is under way; what we put on the SSD has to be what the HDD
 * said.
 */
/* long: fills and cleaning share the move */
#include <linux/sort.h>

#include "dss.h"

/* ---- a move ---- */

static void dss_move_free(struct dss_move *move)
{
	struct dss *d = move->io.d;
	unsigned int i;

	if (!refcount_dec_and_test(&move->refs))
		return;
	for (i = 0; i < move->nr_pages; i++)
		mempool_free(move->bio.bi_io_vec[i].bv_page, &d->pages);
	bio_put(&move->bio);
	if (atomic_dec_and_test(&d->nr_moves))
		wake_up_all(&d->idle);
}

/*
 * For the grains of @like; it has pages, and its bio is of no device yet.
 *
 * Return: NULL if there is no memory and @gfp may not wait.
 */
static struct dss_move *dss_move_alloc(struct dss *d, const struct dss_io *like,
				       gfp_t gfp)
{
	sector_t begin = (like->oblock << d->chunk_shift) +
			 ((sector_t)like->first << d->grain_shift);
	sector_t end = min(begin + ((sector_t)like->nr << d->grain_shift),
			   d->origin_sectors);
	unsigned int bytes = (end - begin) << SECTOR_SHIFT;
	unsigned int nr_pages = DIV_ROUND_UP(bytes, PAGE_SIZE);
	struct dss_move *move;
	struct page *page;
	struct bio *bio;

	bio = bio_alloc_bioset(NULL, nr_pages, 0, gfp, &d->moves);
	if (!bio)
		return NULL;
	move = container_of(bio, struct dss_move, bio);
	memset(move, 0, offsetof(struct dss_move, bio));
	INIT_HLIST_NODE(&move->io.node);
	INIT_LIST_HEAD(&move->io.list);
	move->io.d = d;
	move->io.oblock = like->oblock;
	move->io.slot = like->slot;
	move->io.first = like->first;
	move->io.nr = like->nr;
	move->io.class_id = like->class_id;
	move->io.iter.bi_sector = begin;
	move->io.iter.bi_size = bytes;
	move->sectors = end - begin;
	refcount_set(&move->refs, 1);
	atomic_inc(&d->nr_moves);
	while (move->nr_pages < nr_pages) {
		page = mempool_alloc(&d->pages, gfp);
		if (!page) {
			dss_move_free(move);
			return NULL;
		}
		bio->bi_io_vec[move->nr_pages].bv_page = page;
		bio->bi_io_vec[move->nr_pages].bv_offset = 0;
		bio->bi_io_vec[move->nr_pages].bv_len =
			min_t(unsigned int, bytes, PAGE_SIZE);
		bytes -= bio->bi_io_vec[move->nr_pages].bv_len;
		move->nr_pages++;
	}
	return move;
}

/* Aims the move's bio, with the pages that it has and the class. */
static void dss_move_aim(struct dss_move *move, bool ssd, blk_opf_t opf,
			 bio_end_io_t *end)
{
	struct dss *d = move->io.d;
	struct bio *bio = &move->bio;
	sector_t sector = move->io.iter.bi_sector;

	bio_reset(bio, ssd ? d->ssd->bdev : d->hdd->bdev, opf);
	if (ssd)
		sector = dss_slot_sector(d, move->io.slot) +
			 (sector & (d->chunk_sectors - 1));
	bio->bi_vcnt = move->nr_pages;
	bio->bi_iter.bi_sector = sector;
	bio->bi_iter.bi_size = move->io.iter.bi_size;
	bio->bi_ioprio = dss_priority_of(move->io.class_id);
	bio->bi_end_io = end;
}

static struct dss_move *dss_move_of(struct dss_io *io)
{
	return container_of(io, struct dss_move, io);
}

/* ---- fills ---- */

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

/* What was read goes to the SSD as soon as its slot may change. */
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
 * What nobody waits for was read.
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

/* The bytes that @user asks for, from the pages of a move. */
static void dss_fill_answer(struct dss_move *move, struct dss_io *user)
{
	struct bvec_iter from = { .bi_sector = move->io.iter.bi_sector,
				  .bi_size = move->io.iter.bi_size };
	struct bvec_iter to = user->iter;

	bio_advance_iter(&move->bio, &from,
			 (to.bi_sector - from.bi_sector) << SECTOR_SHIFT);
	bio_copy_data_iter(user->bio, &to, &move->bio, &from);
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

	dss_fill_answer(move, user);
	dss_move_free(move);
}

/* In the worker: the reader gets its bytes, then they go to the SSD. */
static void dss_fill_copy(struct dss_io *io)
{
	struct dss_move *move = dss_move_of(io);
	struct dss_io *user = move->user;
	struct dss *d = io->d;

	if (!user) {
		if (dss_fill_was_read(move))
			dss_fill_keep(io);
		return;
	}
	if (move->bio.bi_status) {
		/* Perhaps only what was read beside the user's bytes. */
		user->kind = DSS_READ_HDD;
		bio_set_dev(user->bio, d->hdd->bdev);
		submit_bio_noacct(user->bio);
		dss_fill_done(move);
		return;
	}
	spin_lock_irq(&d->lock);
	io->flags |= DSS_IO_FILLED;
	spin_unlock_irq(&d->lock);
	dss_fill_answer(move, user);
	if (READ_ONCE(d->after_sectors)) {
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
	dss_move_aim(move, false, REQ_OP_READ | (user->bio->bi_opf &
		     (REQ_META | REQ_PRIO | REQ_SYNC | REQ_RAHEAD)),
		     dss_fill_read_end);
	move->user = user;
	move->io.start_ns = user->start_ns;
	move->io.flags = user->flags & DSS_IO_UNSETTLED;
	spin_lock_irqsave(&d->lock, irq);
	dss_hash(&move->io, DSS_FILL);
	hlist_del(&user->node);
	user->flags &= ~DSS_IO_HASHED;
	user->kind = DSS_NOTHING;
	d->nr_inflight--;
	now = dss_turn_begin(&move->io, dss_fill_submit);
	spin_unlock_irqrestore(&d->lock, irq);
	if (now)
		submit_bio_noacct(&move->bio);
	return 0;
}

/*
 * The next grains of [run->first, @end) that are not here and that nobody
 * is about to change. Under the lock.
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
 * There are few of these at a time, and each is small: who wants something
 * of the devices meanwhile waits behind those, not behind a whole chunk.
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
 * dss_fill_rest() - bring what surrounds a read that missed
 * @read: holds its range as DSS_FILL, so that the chunk keeps its slot
 *
 * The window of after_sectors around it, within the chunk. The reader has
 * its bytes already: he does not wait for this. Without memory, or beside
 * enough others of the kind, nothing happens.
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

	if (window < 2 || read->nr >= window)
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
	struct dss_move *move;
	struct bio *bio;

	dss_move_aim(first, ssd, opf, end);
	bio = bio_alloc_bioset(first->bio.bi_bdev, DSS_AFTER_PAGES, opf,
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

/* In the worker: what was read goes to the SSD, slots in a row together. */
static void dss_beside_keep(struct dss_io *io)
{
	struct dss_move *move = dss_move_of(io), *next, *row = NULL;
	struct dss_move *last = NULL;
	struct dss *d = io->d;
	bool wait;

	for (; move; move = next) {
		next = move->next;
		move->next = NULL;
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
 * DSS_AFTER_SECTORS at most. They take free slots only: what somebody asked
 * for does not leave for what might be asked for. Neighbours are one read
 * of the HDD, and one write of the SSD if their slots are neighbours too.
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

/* ---- cleaning ---- */

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
	bool failed;
};

static void dss_batch_end(struct bio *bio)
{
	struct dss_move *move = container_of(bio, struct dss_move, bio);

	if (bio->bi_status)
		move->io.status = bio->bi_status;
	if (atomic_dec_and_test(move->pending))
		complete(move->done);
}

/* How many moves from @first on lie in one row on the HDD. */
static u32 dss_batch_row(const struct dss_batch *batch, u32 first)
{
	unsigned int nr_pages = batch->moves[first]->nr_pages;
	u32 end;

	for (end = first + 1; end < batch->nr_moves; end++) {
		const struct dss_move *last = batch->moves[end - 1];
		const struct dss_move *next = batch->moves[end];

		nr_pages += next->nr_pages;
		if (next->io.status || nr_pages > BIO_MAX_VECS ||
		    next->io.iter.bi_sector !=
		    last->io.iter.bi_sector + last->sectors)
			break;
	}
	return end - first;
}

static void dss_row_end(struct bio *bio)
{
	struct dss_move *first = bio->bi_private;
	blk_status_t status = bio->bi_status;
	u32 i;

	for (i = 0; status && i < first->nr_row; i++)
		first->row[i]->io.status = status;
	bio_put(bio);
	if (atomic_dec_and_test(first->pending))
		complete(first->done);
}

/*
 * One write of the HDD for a row of moves: apart, each with REQ_FUA, the
 * disk would turn once for every one of them.
 *
 * Return: NULL without memory for it.
 */
static struct bio *dss_row_bio(struct dss_batch *batch, u32 from, u32 nr,
			       blk_opf_t opf)
{
	struct dss_move *first = batch->moves[from];
	struct bio *bio;
	u32 i;

	bio = bio_alloc_bioset(batch->d->hdd->bdev, BIO_MAX_VECS, opf,
			       GFP_NOWAIT | __GFP_NOWARN, &batch->d->moves);
	if (!bio)
		return NULL;
	for (i = 0; i < nr; i++) {
		const struct dss_move *move = batch->moves[from + i];

		memcpy(bio->bi_io_vec + bio->bi_vcnt, move->bio.bi_io_vec,
		       move->nr_pages * sizeof(*bio->bi_io_vec));
		bio->bi_vcnt += move->nr_pages;
		bio->bi_iter.bi_size += move->io.iter.bi_size;
	}
	bio->bi_iter.bi_sector = first->io.iter.bi_sector;
	bio->bi_ioprio = dss_priority_of(first->io.class_id);
	bio->bi_private = first;
	bio->bi_end_io = dss_row_end;
	first->row = batch->moves + from;
	first->nr_row = nr;
	return bio;
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
		bio = NULL;
		if (!ssd)
			nr = dss_batch_row(batch, i);
		if (nr > 1)
			bio = dss_row_bio(batch, i, nr, opf);
		if (!bio) {
			nr = 1;
			bio = &move->bio;
			dss_move_aim(move, ssd, opf, dss_batch_end);
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
{
	dss_slot_t slot = dss_core_pull_beside(batch->d->core,
					       dss_to_oblock(oblock));

	if (slot == DSS_NO_SLOT)
		return false;
	batch->slots[batch->nr_slots] = slot;
	batch->oblocks[batch->nr_slots++] = oblock;
	return true;
}

/* The one that was pulled takes its dirty neighbours along. */
static void dss_batch_widen(struct dss_batch *batch)
{
	u64 first = batch->oblocks[0], last = first;
	u32 most = min_t(u32, DSS_CLEAN_RUNS,
			 DSS_CLEAN_BESIDE >> batch->d->chunk_shift);

	while (batch->nr_slots < most && dss_batch_pull_beside(batch, last + 1))
		last++;
	while (batch->nr_slots < most && first &&
	       dss_batch_pull_beside(batch, first - 1))
		first--;
}

/* Pulls slots from the core: lowest class first. */
static bool dss_batch_pull(struct dss_batch *batch, u32 most)
{
	struct dss *d = batch->d;
	dss_oblock_t oblock;
	u32 i;

	spin_lock_irq(&d->lock);
	batch->nr_slots = dss_core_pull_dirty(d->core, batch->slots,
					      min_t(u32, most,
						    DSS_CLEAN_RUNS));
	for (i = 0; i < batch->nr_slots; i++) {
		dss_core_slot_state(d->core, batch->slots[i], &oblock, NULL);
		batch->oblocks[i] = dss_from_oblock(oblock);
	}
	if (batch->nr_slots == 1)
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
static bool dss_clean_batch(struct dss_batch *batch, u32 most, bool busy)
{
	struct dss *d = batch->d;
	u32 order[DSS_CLEAN_RUNS];
	u32 i;

	batch->nr_moves = 0;
	batch->nr_pages = 0;
	batch->failed = false;
	if (!dss_batch_pull(batch, most))
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
	/*
	 * Beside requests each write is made durable by itself, so that the
	 * next one who wants the HDD waits for one of them. Left to a flush,
	 * all that piled up would come at once, and everybody wait for that.
	 */
	dss_batch_submit(batch, false, REQ_OP_WRITE | (busy ? REQ_FUA : 0));
	dss_batch_finish(batch, busy);
	return batch->nr_moves && !batch->failed;
}

/* How many slots to clean now. */
static u32 dss_clean_goal(struct dss *d, bool *busy)
{
	u32 goal;

	spin_lock_irq(&d->lock);
	goal = dss_core_cleaning_goal(d->core);
	/* Those who wait for the HDD send nothing new, and are there. */
	*busy = d->nr_inflight || !list_empty(&d->deferred) ||
		time_before(jiffies, d->last_request + HZ / 10);
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
	bool busy;
	u32 goal;

	while ((goal = dss_clean_goal(d, &busy))) {
		if (busy && !d->draining)
			goal = min_t(u32, goal, DSS_CLEAN_RUNS_BUSY);
		if (dss_clean_batch(batch, goal, busy && !d->draining))
			continue;
		/* In use, or failing: not at once again. */
		dss_kick_cleaner(d, HZ / 10);
		return;
	}
}

void dss_kick_cleaner(struct dss *d, unsigned int delay)
{
	if (!d->stopping)
		queue_delayed_work(d->clean_wq, &d->clean_work, delay);
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
