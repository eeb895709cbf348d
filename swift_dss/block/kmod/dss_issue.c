// SPDX-License-Identifier: GPL-2.0
/*
 * Give a request to the devices, at once or after a commit; or judge it again.
 *
 * Context: any; after a commit, the worker "dss-commit". Never waits for
 * memory. Takes d->lock, unless a function says otherwise.
 */
#include "dss_way.h"

static void dss_double_end(struct bio *bio)
{
	struct dss_io *io = bio->bi_private;

	if (bio->bi_status)
		io->status = bio->bi_status;
	bio_put(bio);
	if (atomic_dec_and_test(&io->left))
		bio_endio(io->bio);
}

/* Where the SSD has a part of a doubled write: two ends of the bytes. */
struct dss_row {
	sector_t begin;		/* on the origin */
	sector_t end;
	sector_t sector;	/* on the SSD */
};

static void dss_row_of(const struct dss_io *io, const struct dss_io *part,
		       struct dss_row *row)
{
	struct dss *d = io->d;

	row->begin = dss_part_begin(io, part->oblock);
	row->end = dss_part_end(io, part->oblock);
	row->sector = dss_slot_sector(d, part->slot) +
		(row->begin & (d->chunk_sectors - 1));
}

/* The next chunks that lie in a row there, too. */
static bool dss_next_row(struct dss_io *io, unsigned int *chunk,
			 struct dss_row *row)
{
	unsigned int behind;
	struct dss_row next;
	struct dss_io part;
	unsigned long irq;
	bool found;

	spin_lock_irqsave(&io->d->lock, irq);
	found = dss_next_part(io, chunk, &part);
	if (found)
		dss_row_of(io, &part, row);
	for (behind = *chunk; found && dss_next_part(io, &behind, &part);
	     *chunk = behind) {
		dss_row_of(io, &part, &next);
		if (next.begin != row->end || next.sector - row->sector !=
		    row->end - row->begin)
			break;
		row->end = next.end;
	}
	spin_unlock_irqrestore(&io->d->lock, irq);
	return found;
}

static struct bio *dss_row_copy(struct dss_io *io, const struct dss_row *row)
{
	struct bio *copy = bio_alloc_clone(io->d->ssd->bdev, io->bio,
					   GFP_NOWAIT, &io->d->doubles);

	if (!copy)
		return NULL;
	bio_trim(copy, row->begin - dss_io_begin(io), row->end - row->begin);
	copy->bi_iter.bi_sector = row->sector;
	copy->bi_private = io;
	copy->bi_end_io = dss_double_end;
	return copy;
}

/* Looks at the request again, as it was before it was issued. */
int dss_retry(struct dss_io *io)
	__must_hold(&io->d->lock)
{
	io->flags |= DSS_IO_HDD_ONLY;
	io->flags &= ~(DSS_IO_HAD_DIRTY | DSS_IO_ENDED | DSS_IO_GROUPED);
	io->status = BLK_STS_OK;
	io->kind = DSS_NOTHING;
	bitmap_zero(io->here, DSS_SPAN_SECTORS / DSS_CHUNK_MIN);
	io->bio->bi_status = BLK_STS_OK;
	io->bio->bi_iter = io->iter;
	dss_unhash(io);
	dss_again(io);
	return DM_ENDIO_INCOMPLETE;
}

/* No memory: later, or without the SSD if it may never be enough. */
static void dss_both_later(struct dss_io *io)
{
	unsigned long irq;

	if (io->first + io->nr <= io->d->grains) {
		dss_starve(io, dss_issue);
		return;
	}
	spin_lock_irqsave(&io->d->lock, irq);
	dss_retry(io);
	spin_unlock_irqrestore(&io->d->lock, irq);
}

/* Gives the same pages to both devices; in map it may wait for the HDD. */
void dss_issue_both(struct dss_io *io, bool in_map)
{
	struct bio_list copies = BIO_EMPTY_LIST;
	unsigned int chunk = 0, nr = 0;
	struct bio *copy = NULL;
	struct dss_row row;

	while (dss_next_row(io, &chunk, &row)) {
		copy = dss_row_copy(io, &row);
		if (!copy)
			break;
		bio_list_add(&copies, copy);
		nr++;
	}
	if (!copy) {
		while ((copy = bio_list_pop(&copies)))
			bio_put(copy);
		dss_both_later(io);
		return;
	}
	atomic_set(&io->left, nr + 1);
	dss_aim_hdd(io);
	while ((copy = bio_list_pop(&copies)))
		submit_bio_noacct(copy);
	if (in_map)
		submit_bio_noacct(io->bio);
	else
		dss_send(io->d, io->bio);
}

/* Goes on after a commit; io->status says how that ended. */
void dss_issue(struct dss_io *io)
{
	unsigned long irq;

	if (io->kind == DSS_FLUSH) {
		io->bio->bi_status = io->status;
		bio_endio(io->bio);
		return;
	}
	if (io->status && (io->flags & DSS_IO_HDD_ONLY)) {
		io->kind = DSS_NOTHING;
		dss_complete(io);
		return;
	}
	if (io->status) {
		/* Nothing was written. Without the SSD there may be a way. */
		spin_lock_irqsave(&io->d->lock, irq);
		dss_retry(io);
		spin_unlock_irqrestore(&io->d->lock, irq);
		return;
	}
	if (io->kind == DSS_WRITE_BOTH)
		dss_issue_both(io, false);
	else if (io->flags & DSS_IO_GROUPED)
		dss_group_issue(io);
	else
		dss_send(io->d, io->bio);
}
