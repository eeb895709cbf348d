// SPDX-License-Identifier: GPL-2.0
/*
 * A copy between the devices, through pages of our own: the bytes of a read
 * that missed on their way to the SSD (dss_fill.c), dirty grains on theirs
 * to the HDD (dss_batch.c). The pages are ours because a reader may write to
 * its buffer while its request is under way; the SSD must get the bytes of the
 * HDD.
 *
 * Context: any; waits for memory only if a function's @gfp may.
 */
#include "dss_copy.h"

void dss_move_free(struct dss_move *move)
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
struct dss_move *dss_move_alloc(struct dss *d, const struct dss_io *like,
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
void dss_move_aim(struct dss_move *move, bool ssd, blk_opf_t opf,
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

/*
 * One bio for a row of moves, which lie one behind the other on the device:
 * the first one's own if it is alone. @end finds the first in bi_private.
 *
 * Return: NULL if there is no memory. Never waits for it.
 */
struct bio *dss_row_bio(struct dss_move *first, bool ssd, blk_opf_t opf,
			bio_end_io_t *end)
{
	unsigned int nr_pages = 0;
	struct dss_move *move;
	struct bio *bio;

	dss_move_aim(first, ssd, opf, end);
	first->bio.bi_private = first;
	if (!first->next)
		return &first->bio;
	for (move = first; move; move = move->next)
		nr_pages += move->nr_pages;
	bio = bio_alloc_bioset(first->bio.bi_bdev, nr_pages, opf,
			       GFP_NOWAIT | __GFP_NOWARN, &first->io.d->moves);
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

/* Submits a row as one bio; without memory for it, each move by itself. */
void dss_row_submit(struct dss_move *first, bool ssd, blk_opf_t opf,
		    bio_end_io_t *end)
{
	struct bio *bio = dss_row_bio(first, ssd, opf, end);
	struct dss_move *next;

	if (bio) {
		submit_bio_noacct(bio);
		return;
	}
	for (; first; first = next) {
		next = first->next;
		first->next = NULL;
		submit_bio_noacct(dss_row_bio(first, ssd, opf, end));
	}
}

/*
 * The end of such a bio: notes its outcome in each of the moves, and lets it
 * go. Its pool may go with the last of the moves, so this comes first.
 *
 * Return: the first of the moves.
 */
struct dss_move *dss_row_end(struct bio *bio)
{
	struct dss_move *first = bio->bi_private, *move;

	for (move = first; bio->bi_status && move; move = move->next)
		move->io.status = bio->bi_status;
	if (bio != &first->bio)
		bio_put(bio);
	return first;
}
