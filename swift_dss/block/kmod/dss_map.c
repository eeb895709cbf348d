// SPDX-License-Identifier: GPL-2.0
/*
 * Where requests come in, and come back to.
 *
 * dss_decide() limits a request to what goes one way, and the mapper sends the
 * rest again. A request that had to wait is judged again in the worker, which
 * cuts it into pieces instead. dss_issue.c gives them to the devices.
 *
 * Context: map, or the worker "dss-io". Neither waits for memory.
 */
#include "dss_way.h"

static void dss_io_init(struct dss *d, struct dss_io *io, struct bio *bio)
{
	memset(io, 0, sizeof(*io));
	INIT_HLIST_NODE(&io->node);
	INIT_LIST_HEAD(&io->list);
	io->d = d;
	io->bio = bio;
	io->slot = DSS_NO_SLOT;
	io->start_ns = ktime_get_ns();
	io->class_id = dss_class_of(d, bio);
}

/* Without pages for a fill: the read alone. It holds its range as before. */
static void dss_no_memory(struct dss_io *io)
{
	struct dss *d = io->d;
	unsigned long irq;

	spin_lock_irqsave(&d->lock, irq);
	d->counts[io->class_id].no_memory++;
	io->kind = DSS_READ_HDD;
	spin_unlock_irqrestore(&d->lock, irq);
	dss_aim_hdd(io);
}

/* ---- cutting in the worker ---- */

/* The first io->nr grains become a piece; the rest is looked at again. */
static void dss_cut(struct dss_io *io)
{
	struct dss *d = io->d;
	sector_t sectors = ((sector_t)(io->first + io->nr) << d->grain_shift) -
			   (dss_io_begin(io) & (d->chunk_sectors - 1));
	struct dss_piece *piece;
	struct bio *bio;

	bio = bio_alloc_clone(d->hdd->bdev, io->bio, GFP_NOWAIT, &d->pieces);
	if (!bio) {
		/* Pieces end in this worker: it must not wait for one. */
		dss_place(io);
		dss_starve(io, NULL);
		return;
	}
	piece = container_of(bio, struct dss_piece, bio);
	bio->bi_iter.bi_size = sectors << SECTOR_SHIFT;
	bio->bi_end_io = dss_piece_end;
	dss_io_init(d, &piece->io, bio);
	piece->io.class_id = io->class_id;
	piece->io.flags = io->flags & DSS_IO_HDD_ONLY;
	if (io->flags & DSS_IO_HELD)
		piece->io.flags |= io->flags & (DSS_IO_HELD | DSS_IO_RUN);
	piece->io.parent = io;
	dss_place(&piece->io);
	bio_inc_remaining(io->bio);
	bio_advance(io->bio, sectors << SECTOR_SHIFT);
	io->flags &= ~(DSS_IO_COUNTED | DSS_IO_RUN | DSS_IO_HELD);
	io->flags |= DSS_IO_CUT;
	dss_place(io);
	dss_ready(&piece->io, NULL);
	dss_ready(io, NULL);
}

/*
 * Return: true if io->bio is aimed and the caller MUST submit it; else do not
 * touch it any more.
 */
static bool dss_process(struct dss_io *io, bool in_map)
{
	struct dss *d = io->d;
	enum dss_next next;
	unsigned long irq;

	spin_lock_irqsave(&d->lock, irq);
	next = dss_decide(io, in_map);
	spin_unlock_irqrestore(&d->lock, irq);
	switch (next) {
	case DSS_NEXT_SUBMIT:
		return true;
	case DSS_NEXT_FILL:
		if (!dss_fill(io))
			return false;
		dss_no_memory(io);
		return true;
	case DSS_NEXT_BOTH:
		dss_issue_both(io, in_map);
		return false;
	case DSS_NEXT_GIVE:
		dss_fill_give(io->fill, io);
		return false;
	case DSS_NEXT_CUT:
		dss_cut(io);
		return false;
	case DSS_NEXT_REFUSE:
		io->bio->bi_status = bio_op(io->bio) == REQ_OP_DISCARD ?
				     BLK_STS_OK : BLK_STS_IOERR;
		bio_endio(io->bio);
		return false;
	case DSS_NEXT_WAIT:
	case DSS_NEXT_FREE:
		break;
	}
	return false;
}

/* Looks at a request that had to wait, or a rest of one, in the worker. */
static void dss_reprocess(struct dss_io *io)
{
	if (dss_process(io, false))
		dss_send(io->d, io->bio);
}

void dss_work(struct work_struct *work)
{
	struct dss *d = container_of(work, struct dss, work);
	struct dss_io *io, *next;
	struct blk_plug plug;
	LIST_HEAD(ready);

	spin_lock_irq(&d->lock);
	list_splice_init(&d->ready, &ready);
	spin_unlock_irq(&d->lock);
	blk_start_plug(&plug);
	list_for_each_entry_safe(io, next, &ready, list)
		if (io->then)
			io->then(io);
		else
			dss_reprocess(io);
	blk_finish_plug(&plug);
}

int dss_map(struct dm_target *ti, struct bio *bio)
{
	struct dss *d = ti->private;
	struct dss_io *io = dm_per_bio_data(bio, sizeof(*io));
	unsigned long irq;
	sector_t room;

	dss_io_init(d, io, bio);
	if (bio->bi_opf & REQ_PREFLUSH) {
		/* Empty: the mapper sends the data of one by itself. */
		io->kind = DSS_FLUSH;
		spin_lock_irqsave(&d->lock, irq);
		d->last_flush = jiffies;
		d->want_ssd_flush = true;
		/*
		 * Ignore the cleaner's writes: the SSD still has those bytes.
		 */
		d->want_hdd_flush |= d->hdd_owes || d->hdd_owed ||
				     d->health != DSS_OK;
		dss_wait_commit(io, dss_issue);
		spin_unlock_irqrestore(&d->lock, irq);
		return DM_MAPIO_SUBMITTED;
	}
	bio->bi_iter.bi_sector = dm_target_offset(ti, bio->bi_iter.bi_sector);
	/* Discards may reach over it: older kernels leave that to us. */
	room = dss_span_sectors(d) -
		(bio->bi_iter.bi_sector & (dss_span_sectors(d) - 1));
	if (bio_sectors(bio) > room)
		dm_accept_partial_bio(bio, room);
	dss_place(io);
	return dss_process(io, true) ? DM_MAPIO_REMAPPED : DM_MAPIO_SUBMITTED;
}
