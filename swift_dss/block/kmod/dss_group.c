// SPDX-License-Identifier: GPL-2.0
/*
 * Writes past the SSD, beside those that flush.
 *
 * A flush covers the whole device: a client that flushes a few bytes on the
 * SSD would wait for all bytes that others left in the HDD's cache. So a write
 * past the SSD ends only when it is durable, and a flush finds no such bytes
 * to wait for. Single writes with FUA would reach the medium in the order of
 * sending, a seek each; and a disk without FUA would empty its cache for each.
 * So they go in groups: the HDD gets all writes of a group and sorts them in
 * its cache; then it is flushed once; then all of the group ends. Writes that
 * come during this wait for the next group, to which the highest class comes
 * first, except for writes that have waited long (dss_turn.c). A group has a
 * limit, because readers of the HDD may have to wait for its flush.
 *
 * The lists and counters are under d->lock. Held writes keep their range in
 * flight, as submitted ones do.
 */
#include "dss_way.h"

/*
 * Make a write past the SSD durable when it ends, if there are flushes: with
 * its group, or alone if pieces were cut off. Such a write ends after its
 * pieces, which may be in the group, so no group can wait for it.
 */
void dss_group_ask(struct dss_io *io)
	__must_hold(&io->d->lock)
{
	const struct dss *d = io->d;

	if (!d->last_flush || !time_before(jiffies, d->last_flush + HZ) ||
	    (io->bio->bi_opf & REQ_FUA) || d->suspended)
		return;
	if (io->flags & DSS_IO_CUT)
		io->bio->bi_opf |= REQ_FUA;
	else
		io->flags |= DSS_IO_GROUPED;
}

static sector_t dss_group_size(const struct dss_io *io)
{
	return io->iter.bi_size >> SECTOR_SHIFT;
}

/* With a higher class there is little room for those below it. */
static bool dss_group_has_room(const struct dss *d, const struct dss_io *io)
	__must_hold(&d->lock)
{
	sector_t most = dss_rank_of(d, io->class_id) < d->group_rank ?
			DSS_GROUP_BELOW : DSS_GROUP_SECTORS;

	return !d->group_sectors ||
	       d->group_sectors + dss_group_size(io) <= most;
}

static void dss_group_enter(struct dss_io *io)
	__must_hold(&io->d->lock)
{
	io->d->group_sectors += dss_group_size(io);
	io->d->group_rank = max(io->d->group_rank,
				dss_rank_of(io->d, io->class_id));
	io->d->group_left++;
	io->d->nr_grouped++;
}

/*
 * Return: whether it belongs to the group that is open, and is to be
 * submitted; else it is held.
 */
bool dss_group_admit(struct dss_io *io)
	__must_hold(&io->d->lock)
{
	struct dss *d = io->d;

	if (d->group_flushing || d->held.nr || !dss_group_has_room(d, io)) {
		dss_held_add(&d->held, io);
		return false;
	}
	dss_group_enter(io);
	return true;
}

/* After a commit; takes d->lock. Context: its worker. */
void dss_group_issue(struct dss_io *io)
{
	unsigned long irq;
	bool admitted;

	spin_lock_irqsave(&io->d->lock, irq);
	admitted = dss_group_admit(io);
	spin_unlock_irqrestore(&io->d->lock, irq);
	if (admitted)
		dss_send(io->d, io->bio);
}

/*
 * The HDD has it, or failed it. The last one of a group closes that.
 */
int dss_group_arrived(struct dss_io *io, blk_status_t error)
	__must_hold(&io->d->lock)
{
	struct dss *d = io->d;

	if (!--d->group_left) {
		d->group_flushing = true;
		queue_work(d->group_wq, &d->group_work);
	}
	if (error)
		return DM_ENDIO_DONE;
	io->flags |= DSS_IO_ENDED;
	dss_wrote_chunks(io);
	list_add_tail(&io->list, &d->gathered);
	return DM_ENDIO_INCOMPLETE;
}

/* Opens the next group: what was held, as much as there is room for. */
static void dss_group_open(struct dss *d, struct list_head *group)
	__must_hold(&d->lock)
{
	u64 now = ktime_get_ns();
	struct dss_io *io;

	d->group_flushing = false;
	d->group_sectors = 0;
	d->group_rank = 0;
	for (;;) {
		io = dss_held_next(d, &d->held, now);
		if (!io || !dss_group_has_room(d, io))
			break;
		dss_group_enter(io);
		dss_held_move(&d->held, io, group);
	}
}

/* A group is on the HDD: it is made durable, and ends. Context: worker. */
void dss_group_work(struct work_struct *work)
{
	struct dss *d = container_of(work, struct dss, group_work);
	blk_status_t status = errno_to_blk_status(dss_flush_hdd(d));
	struct dss_io *io, *next;
	struct blk_plug plug;
	LIST_HEAD(gathered);
	LIST_HEAD(group);

	spin_lock_irq(&d->lock);
	d->nr_groups++;
	list_splice_init(&d->gathered, &gathered);
	dss_group_open(d, &group);
	spin_unlock_irq(&d->lock);
	blk_start_plug(&plug);
	list_for_each_entry_safe(io, next, &group, list) {
		list_del_init(&io->list);
		submit_bio_noacct(io->bio);
	}
	blk_finish_plug(&plug);
	list_for_each_entry_safe(io, next, &gathered, list) {
		list_del_init(&io->list);
		io->status = io->status ?: status;
		dss_complete(io);
	}
}
