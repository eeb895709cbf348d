// SPDX-License-Identifier: GPL-2.0
/*
 * Turns at the HDD: requests wait here, by class.
 *
 * An HDD serves one request at a time. At the end of a long queue in the disk
 * a request of any class waits for all of it, so the queue is kept here. The
 * HDD gets a few reads with waiting readers at a time, the highest class
 * first, except for reads that have waited DSS_TURN_PATIENCE. The disk always
 * has the next one. Without classes reads go in the order of arrival.
 *
 * Call all of it with d->lock held.
 */
#include "dss_slots.h"

#define DSS_TURN_PATIENCE	(NSEC_PER_SEC / 2)

u32 dss_rank_of(const struct dss *d, unsigned int class_id)
	__must_hold(&d->lock)
{
	struct dss_class_spec spec;

	lockdep_assert_held(&d->lock);
	if (d->strategy == DSS_MODE_LRU)
		return 0;
	dss_core_get_class(d->core, class_id, &spec);
	return spec.rank;
}

void dss_held_init(struct dss_held *held)
{
	unsigned int i;

	for (i = 0; i < DSS_CLASSES; i++)
		INIT_LIST_HEAD(&held->by_class[i]);
}

void dss_held_add(struct dss_held *held, struct dss_io *io)
	__must_hold(&io->d->lock)
{
	lockdep_assert_held(&io->d->lock);
	list_add_tail(&io->list, &held->by_class[io->class_id]);
	held->nr++;
}

void dss_held_move(struct dss_held *held, struct dss_io *io,
		   struct list_head *to)
	__must_hold(&io->d->lock)
{
	list_move_tail(&io->list, to);
	held->nr--;
}

/* How urgent it is: by its age if that is great, or nothing has a class. */
static u64 dss_urgency(const struct dss *d, const struct dss_io *io, u64 now)
	__must_hold(&d->lock)
{
	u64 age = now - min(now, io->start_ns);

	if (d->strategy == DSS_MODE_LRU || age > DSS_TURN_PATIENCE)
		return DSS_RANK_MAX + age;
	return dss_rank_of(d, io->class_id);
}

/* Return: NULL if none waits. */
struct dss_io *dss_held_next(const struct dss *d, struct dss_held *held,
			     u64 now)
	__must_hold(&d->lock)
{
	struct dss_io *io, *best = NULL;
	unsigned int class_id;

	for (class_id = 0; held->nr && class_id < DSS_CLASSES; class_id++) {
		io = list_first_entry_or_null(&held->by_class[class_id],
					      struct dss_io, list);
		if (io && (!best || dss_urgency(d, io, now) >
			   dss_urgency(d, best, now)))
			best = io;
	}
	return best;
}

static void dss_turn_take(struct dss_io *io)
{
	io->flags |= DSS_IO_TURN;
	io->d->last_read = jiffies;
	io->d->turn_sectors += io->turn_sectors;
}

/**
 * dss_turn_begin() - a read wants the HDD
 * @sectors: that the HDD has to read for it
 * @then: submits it, in the worker, if it has to wait
 *
 * Return: whether it is its turn.
 */
bool dss_turn_begin(struct dss_io *io, sector_t sectors,
		    void (*then)(struct dss_io *io))
	__must_hold(&io->d->lock)
{
	struct dss *d = io->d;

	lockdep_assert_held(&d->lock);
	io->turn_sectors = sectors;
	if (!d->reads.nr && d->turn_sectors < DSS_TURN_SECTORS) {
		dss_turn_take(io);
		return true;
	}
	io->then = then;
	dss_held_add(&d->reads, io);
	return false;
}

/* The HDD has answered it; if it had a turn, others get theirs. */
void dss_turn_end(struct dss_io *io)
	__must_hold(&io->d->lock)
{
	struct dss *d = io->d;
	struct dss_io *next;
	u64 now;

	lockdep_assert_held(&d->lock);
	if (!(io->flags & DSS_IO_TURN))
		return;
	io->flags &= ~DSS_IO_TURN;
	d->turn_sectors -= io->turn_sectors;
	if (!d->reads.nr)
		return;
	now = ktime_get_ns();
	while (d->reads.nr && d->turn_sectors < DSS_TURN_SECTORS) {
		next = dss_held_next(d, &d->reads, now);
		dss_turn_take(next);
		dss_held_move(&d->reads, next, &d->ready);
	}
	queue_work(d->wq, &d->work);
}
