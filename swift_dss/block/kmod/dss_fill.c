// SPDX-License-Identifier: GPL-2.0
/*
 * Fills: a read that misses brings its bytes to the SSD. The HDD reads them
 * into pages of ours, for all chunks of the request at once; the reader gets
 * its bytes from there, and dss_keep.c puts them on the SSD.
 *
 * Context: map or the worker "dss-io", unless a function says otherwise.
 * Never waits for memory.
 */
#include "dss_copy.h"

/* Copy from @from on to @to on, until one of them is at its end. */
static void dss_fill_copy_bytes(struct bio *user, struct bvec_iter to,
				struct bio *fill, struct bvec_iter from)
{
	while (to.bi_size && from.bi_size) {
		struct bio_vec target = bio_iter_iovec(user, to);
		struct bio_vec source = bio_iter_iovec(fill, from);
		void *bytes = bvec_kmap_local(&source);

		target.bv_len = min(target.bv_len, source.bv_len);
		memcpy_to_bvec(&target, bytes);
		kunmap_local(bytes);
		bio_advance_iter_single(user, &to, target.bv_len);
		bio_advance_iter_single(fill, &from, target.bv_len);
	}
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
	dss_fill_copy_bytes(user->bio, to, &move->bio, from);
}

/* All of them, from the pages of one or more moves. */
static void dss_fill_answer(struct dss_move *move, struct dss_io *user)
{
	for (; move; move = move->next)
		dss_fill_copy_part(move, user);
	bio_endio(user->bio);
}

/* Keeps the pages of one that dss_filled() named. */
void dss_fill_hold(struct dss_io *fill)
	__must_hold(&fill->d->lock)
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

/* The reader gets its bytes, then they go to the SSD. Context: worker. */
static void dss_fill_copy(struct dss_io *io)
{
	struct dss_move *first = dss_move_of(io);

	/* The fill stays: no write overtakes a fill with a waiting reader. */
	dss_keep_read(first);
	if (io->status) {
		dss_fill_alone(first->user);
	} else {
		dss_fill_answer(first, first->user);
		dss_after(first);
	}
	dss_keep_row(first);
}

/* Context: end. */
static void dss_fill_end(struct bio *bio)
{
	struct dss_move *first = dss_row_end(bio);
	struct dss *d = first->io.d;
	unsigned long irq;

	spin_lock_irqsave(&d->lock, irq);
	dss_turn_end(first->user);
	spin_unlock_irqrestore(&d->lock, irq);
	dss_ready(&first->io, dss_fill_copy);
}

/* The flags of a read that its fill inherits. */
static blk_opf_t dss_fill_opf(const struct dss_io *user)
{
	return REQ_OP_READ | (user->bio->bi_opf & (REQ_META | REQ_PRIO |
						   REQ_SYNC | REQ_RAHEAD));
}

static void dss_fill_free(struct dss_move *move)
{
	struct dss_move *next;

	for (; move; move = next) {
		next = move->next;
		dss_move_free(move);
	}
}

/* A move for each chunk, and one bio for all; NULL without memory. */
static struct dss_move *dss_fill_moves(const struct dss_io *user)
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
	first->whole = dss_row_bio(first, false, dss_fill_opf(user),
				   dss_fill_end);
	if (first->whole)
		return first;
no_memory:
	dss_fill_free(first);
	return NULL;
}

/*
 * The moves take over the range of @user. A chunk without a slot is only
 * read.
 *
 * Return: how many sectors the HDD has to read.
 */
static sector_t dss_fill_take_over(struct dss_io *user, struct dss_move *move)
	__must_hold(&user->d->lock)
{
	struct dss *d = user->d;
	unsigned int chunk;
	sector_t sectors = 0;

	for (chunk = 0; move; move = move->next, chunk++) {
		sectors += move->sectors;
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
	/* Not dss_unhash(): the range is still held. */
	hlist_del(&user->node);
	user->flags &= ~DSS_IO_HASHED;
	user->kind = DSS_NOTHING;
	d->nr_inflight--;
	return sectors;
}

static void dss_fill_submit(struct dss_io *user)
{
	submit_bio_noacct(dss_move_of(user->fill)->whole);
}

/**
 * dss_fill() - read what @user asks for, in whole grains, and keep it
 * @user: holds its range as DSS_FILL; its @here says which of its chunks have
 *	a slot, in which none of the grains is valid
 *
 * One read of the HDD, whatever the number of chunks.
 *
 * Return: 0, or -ENOMEM and nothing has happened.
 */
int dss_fill(struct dss_io *user)
{
	struct dss_move *first = dss_fill_moves(user);
	struct dss *d = user->d;
	unsigned long irq;
	sector_t sectors;
	bool now;

	if (!first)
		return -ENOMEM;
	first->user = user;
	user->fill = &first->io;
	spin_lock_irqsave(&d->lock, irq);
	sectors = dss_fill_take_over(user, first);
	now = dss_turn_begin(user, sectors, dss_fill_submit);
	spin_unlock_irqrestore(&d->lock, irq);
	if (now)
		dss_fill_submit(user);
	return 0;
}
