// SPDX-License-Identifier: GPL-2.0
/*
 * Writes that wait for room in the stage. The stage is the share of the SSD
 * that writes of any class may make dirty. A write that finds it full would
 * have to pass the SSD, and its way of the arm would come between those of the
 * cleaner. So it waits here, and the cleaner lets it go on: the highest class
 * first, except for writes that have waited long.
 *
 * A write waits only while the cleaner gets on: if a batch fails, all go on and
 * pass the SSD. Those that wait hold no range.
 *
 * Call all of it with d->lock held.
 */
#include "dss_slots.h"

#define DSS_STAGE_FEW	64	/* let go at once: 20 us */

/**
 * dss_stage_hold() - let a write wait if it has to
 * @how: DSS_MISS_* of a miss; 0 is a hit of a clean chunk
 *
 * Return: whether it waits.
 */
bool dss_stage_hold(struct dss_io *io, unsigned int how)
	__must_hold(&io->d->lock)
{
	struct dss *d = io->d;

	if (d->stage_stuck || d->suspended ||
	    !dss_core_must_wait(d->core, io->class_id, how))
		return false;
	dss_held_add(&d->staged, io);
	io->flags |= DSS_IO_HELD;
	d->nr_stage_waits++;
	dss_kick_cleaner(d, 0);
	return true;
}

/*
 * How many chunks of those that wait may go on: as many as there is room for,
 * or all if the cleaner is @stuck.
 */
s64 dss_stage_open(struct dss *d, bool stuck)
	__must_hold(&d->lock)
{
	lockdep_assert_held(&d->lock);
	d->stage_stuck = stuck;
	return stuck || !dss_core_has_stage(d->core) ? S64_MAX :
		dss_core_stage_room(d->core);
}

/**
 * dss_stage_release() - let a few that wait go on
 * @room: for so many chunks; the rest of it afterwards
 *
 * Return: whether further ones may.
 */
bool dss_stage_release(struct dss *d, s64 *room)
	__must_hold(&d->lock)
{
	unsigned int few = DSS_STAGE_FEW;
	u64 now = ktime_get_ns();
	struct dss_io *io;

	lockdep_assert_held(&d->lock);
	if (!d->staged.nr)
		return false;
	while (*room > 0 && few-- &&
	       (io = dss_held_next(d, &d->staged, now))) {
		*room -= 1 + io->nr / d->grains;
		io->then = NULL;
		dss_held_move(&d->staged, io, &d->ready);
	}
	queue_work(d->wq, &d->work);
	return *room > 0 && d->staged.nr;
}
