// SPDX-License-Identifier: GPL-2.0
/*
 * Give a request to the devices, and settle the state when it is done.
 *
 * Context: to issue, any; after a commit, the worker "dss-commit". To end, the
 * end of a bio: interrupts may be off.
 */
#include "dss_way.h"

/* ---- issue ---- */

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

static int dss_retry(struct dss_io *io);

/* No memory: later, or without the SSD if it may never be enough. */
static void dss_both_later(struct dss_io *io)
{
	unsigned long irq;

	if (io->first + io->nr <= io->d->grains) {
		dss_ready(io, dss_issue);
		return;
	}
	spin_lock_irqsave(&io->d->lock, irq);
	dss_retry(io);
	spin_unlock_irqrestore(&io->d->lock, irq);
}

/* Gives the same pages to both devices. */
static void dss_issue_both(struct dss_io *io)
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
	submit_bio_noacct(io->bio);
}

/* Looks at the request again, as it was before it was issued. */
static int dss_retry(struct dss_io *io)
{
	io->flags |= DSS_IO_HDD_ONLY;
	io->flags &= ~(DSS_IO_HAD_DIRTY | DSS_IO_ENDED | DSS_IO_GROUPED);
	io->status = BLK_STS_OK;
	io->kind = DSS_NOTHING;
	io->bio->bi_status = BLK_STS_OK;
	io->bio->bi_iter = io->iter;
	dss_unhash(io);
	dss_again(io);
	return DM_ENDIO_INCOMPLETE;
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
		dss_issue_both(io);
	else if (io->flags & DSS_IO_GROUPED)
		dss_group_issue(io);
	else
		submit_bio_noacct(io->bio);
}

/* ---- the end ---- */

static struct dss_io *dss_io_of(struct bio *bio, struct dss *d)
{
	if (bio->bi_end_io == dss_piece_end)
		return &container_of(bio, struct dss_piece, bio)->io;
	return dm_per_bio_data(bio, sizeof(struct dss_io));
}

/* The bytes are on the SSD. Under the lock, as all that follow. */
static int dss_wrote_ssd(struct dss_io *io, blk_status_t *error)
{
	struct dss *d = io->d;
	u32 region;

	d->ssd_wrote = true;
	if (*error) {
		d->ssd_errors++;
		dss_ssd_failed(d);
		if (io->flags & DSS_IO_HAD_DIRTY)
			return DM_ENDIO_DONE;
		/* The origin still has the old bytes. */
		dss_invalidate(d, io->slot, io->first, io->nr);
		return dss_retry(io);
	}
	if (d->health == DSS_GIVEN_UP) {
		/* Written, but the SSD was given up. */
		dss_invalidate(d, io->slot, io->first, io->nr);
		return dss_retry(io);
	}
	dss_set_valid(d, io->slot, io->first, io->nr);
	dss_set_dirty(d, io->slot, io->first, io->nr);
	/* Again: the cleaner may have seen the slot before the bytes came. */
	dss_core_set_dirty(d->core, io->slot);
	region = dss_region_of(d, io->slot);
	if ((io->bio->bi_opf & REQ_FUA) &&
	    (test_bit(region, d->pending) || test_bit(region, d->writing))) {
		/* Durable only when the table says so. */
		io->flags |= DSS_IO_ENDED;
		dss_wait_commit(io, dss_complete);
		return DM_ENDIO_INCOMPLETE;
	}
	return DM_ENDIO_DONE;
}

/* One chunk of a write that the SSD has, and the HDD unless it @failed. */
static void dss_wrote_part(struct dss_io *io, const struct dss_io *part,
			   bool failed)
{
	struct dss *d = io->d;
	unsigned int first = part->first;
	unsigned int nr = part->nr;

	dss_set_valid(d, part->slot, first, nr);
	if (failed) {
		/* The cleaner will try again. */
		if (d->health == DSS_GIVEN_UP)
			return;
		dss_set_dirty(d, part->slot, first, nr);
		dss_core_set_dirty(d->core, part->slot);
		return;
	}
	dss_set_unsettled(d, part->slot, first, nr);
	/* Clears the dirty mark of grains that the origin now has whole. */
	if (dss_part_first(io)) {
		first++;
		nr--;
	}
	if (nr && dss_part_last(io))
		nr--;
	if (nr)
		dss_clear_dirty(d, part->slot, first, nr);
}

static void dss_wrote_both(struct dss_io *io, blk_status_t *error)
{
	struct dss *d = io->d;
	bool failed = *error;
	unsigned int chunk = 0;
	struct dss_io part;

	dss_wrote_chunks(io);
	d->hdd_owes = true;
	d->ssd_wrote = true;
	if (io->status) {
		d->ssd_errors++;
		dss_ssd_failed(d);
		if (!(io->flags & DSS_IO_HAD_DIRTY))
			dss_invalidate_parts(io);
		else
			*error = io->status;
		return;
	}
	d->hdd_errors += failed;
	while (dss_next_part(io, &chunk, &part))
		dss_wrote_part(io, &part, failed);
}

static int dss_read_ssd_failed(struct dss_io *io)
{
	unsigned int grain, nr, end = io->first + io->nr;
	u32 slot = dss_from_slot(io->slot);
	struct dss *d = io->d;

	d->ssd_errors++;
	if (dss_any(d, d->dirty, io->slot, io->first, io->nr)) {
		dss_ssd_failed(d);
		return DM_ENDIO_DONE;
	}
	for (grain = io->first; grain < end; grain += nr) {
		nr = min(end - grain, d->grains - grain % d->grains);
		dss_invalidate(d, dss_to_slot(slot + grain / d->grains),
			       grain % d->grains, nr);
	}
	return dss_retry(io);
}

static void dss_record_latency(struct dss_io *io)
{
	struct dss_class_count *count = &io->d->counts[io->class_id];
	bool write = dss_is_write(io);
	struct dss_latency *latency = &count->latency[write];
	u64 us = div_u64(ktime_get_ns() - io->start_ns, NSEC_PER_USEC);

	latency->count++;
	latency->total_us += us;
	latency->max_us = max(latency->max_us, us);
	latency->buckets[min(fls64(us), DSS_LATENCY_BUCKETS - 1)]++;
	count->sectors[write] += io->iter.bi_size >> SECTOR_SHIFT;
}

/* A chunk that is read once and dead, or does not belong here. */
static void dss_give_up(struct dss_io *io)
{
	struct dss *d = io->d;
	unsigned int state;
	dss_oblock_t oblock;

	if (!(io->flags & DSS_IO_GIVE_UP) || d->health != DSS_OK)
		return;
	state = dss_core_slot_state(d->core, io->slot, &oblock, NULL);
	if (state != DSS_SLOT_USED || dss_from_oblock(oblock) != io->oblock ||
	    dss_in_flight(d, io->oblock))
		return;
	dss_evict(d, io->slot, DSS_EVICT_HIT);
}

static int dss_finish(struct dss_io *io, blk_status_t *error)
{
	struct dss *d = io->d;
	int result = DM_ENDIO_DONE;

	switch (io->kind) {
	case DSS_READ_SSD:
		if (*error)
			result = dss_read_ssd_failed(io);
		break;
	case DSS_READ_HDD:
		dss_turn_end(io);
		d->hdd_errors += *error != BLK_STS_OK;
		break;
	case DSS_WRITE_SSD:
		if (!(io->flags & DSS_IO_ENDED))
			result = dss_wrote_ssd(io, error);
		break;
	case DSS_WRITE_BOTH:
		dss_wrote_both(io, error);
		break;
	case DSS_WRITE_HDD:
	case DSS_DISCARD:
		if (io->flags & DSS_IO_GROUPED && !(io->flags & DSS_IO_ENDED))
			result = dss_group_arrived(io, *error);
		if (result == DM_ENDIO_INCOMPLETE)
			break;
		d->hdd_errors += *error != BLK_STS_OK;
		if (*error || !(io->bio->bi_opf & REQ_FUA ||
				io->flags & DSS_IO_GROUPED)) {
			dss_wrote_chunks(io);
			d->hdd_owes = true;
		}
		break;
	default:
		break;
	}
	if (result == DM_ENDIO_INCOMPLETE)
		return result;
	dss_unhash(io);
	if (io->kind != DSS_FLUSH)
		dss_record_latency(io);
	dss_give_up(io);
	if (!*error)
		*error = io->piece_status;
	return result;
}

int dss_end_io(struct dm_target *ti, struct bio *bio, blk_status_t *error)
{
	struct dss *d = ti->private;
	struct dss_io *io = dss_io_of(bio, d);
	unsigned long irq;
	int result;

	if (io->kind == DSS_WRITE_BOTH && !(io->flags & DSS_IO_ENDED) &&
	    atomic_read(&io->left)) {
		io->flags |= DSS_IO_ENDED;
		if (!atomic_dec_and_test(&io->left))
			return DM_ENDIO_INCOMPLETE;
	}
	spin_lock_irqsave(&d->lock, irq);
	result = dss_finish(io, error);
	spin_unlock_irqrestore(&d->lock, irq);
	return result;
}

void dss_piece_end(struct bio *bio)
{
	struct dss_piece *piece = container_of(bio, struct dss_piece, bio);
	struct bio *parent = piece->io.parent->bio;
	blk_status_t status = bio->bi_status;
	struct dm_target *ti = piece->io.d->ti;

	if (dss_end_io(ti, bio, &status) == DM_ENDIO_INCOMPLETE)
		return;
	if (status)
		piece->io.parent->piece_status = status;
	bio_put(bio);
	bio_endio(parent);
}
