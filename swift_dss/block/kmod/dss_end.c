// SPDX-License-Identifier: GPL-2.0
/*
 * The end of a request: settle the state when the devices are done.
 *
 * Context: the end of a bio; interrupts may be off. Call it with d->lock held,
 * unless a function says otherwise.
 */
#include "dss_way.h"

static struct dss_io *dss_io_of(struct bio *bio, struct dss *d)
{
	if (bio->bi_end_io == dss_piece_end)
		return &container_of(bio, struct dss_piece, bio)->io;
	return dm_per_bio_data(bio, sizeof(struct dss_io));
}

/* The bytes are on the SSD, or not. */
static int dss_wrote_ssd(struct dss_io *io, blk_status_t *error)
	__must_hold(&io->d->lock)
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
	__must_hold(&io->d->lock)
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
	__must_hold(&io->d->lock)
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
	__must_hold(&io->d->lock)
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
	__must_hold(&io->d->lock)
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
	__must_hold(&io->d->lock)
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

/* The mapper's end_io. Takes d->lock. */
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

/* A piece ends, and perhaps the request that it was cut from. No lock. */
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
