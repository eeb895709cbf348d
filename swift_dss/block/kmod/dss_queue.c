// SPDX-License-Identifier: GPL-2.0
/*
 * The lists in which requests wait, and the workers that take them.
 *
 * A file of a lower floor never calls one above it: it puts the request into a
 * list here, and a worker of that floor takes it.
 *
 * Context: any.
 */
#include "dss_ground.h"

/* The worker calls @then; if that is NULL, it judges the request again. */
void dss_ready(struct dss_io *io, void (*then)(struct dss_io *io))
{
	struct dss *d = io->d;
	unsigned long irq;

	io->then = then;
	spin_lock_irqsave(&d->lock, irq);
	list_add_tail(&io->list, &d->ready);
	spin_unlock_irqrestore(&d->lock, irq);
	queue_work(d->wq, &d->work);
}

/*
 * The same, but a while later: there was no memory, and at once there would
 * be none. Requests that end meanwhile give theirs back.
 */
void dss_starve(struct dss_io *io, void (*then)(struct dss_io *io))
{
	struct dss *d = io->d;
	unsigned long irq;

	io->then = then;
	spin_lock_irqsave(&d->lock, irq);
	list_add_tail(&io->list, &d->starved);
	queue_delayed_work(d->wq, &d->starved_work, DSS_STARVED);
	spin_unlock_irqrestore(&d->lock, irq);
}

void dss_starved_work(struct work_struct *work)
{
	struct dss *d = container_of(to_delayed_work(work), struct dss,
				     starved_work);

	spin_lock_irq(&d->lock);
	list_splice_tail_init(&d->starved, &d->ready);
	spin_unlock_irq(&d->lock);
	queue_work(d->wq, &d->work);
}

/*
 * Gives a bio to its device. An HDD takes so many at a time and lets whoever
 * gives it more wait; so a worker of its own does, and those that commit and
 * decide, also for the SSD, go on.
 */
void dss_send(struct dss *d, struct bio *bio)
{
	unsigned long irq;

	if (bio->bi_bdev != d->hdd->bdev) {
		submit_bio_noacct(bio);
		return;
	}
	spin_lock_irqsave(&d->lock, irq);
	bio_list_add(&d->sending, bio);
	spin_unlock_irqrestore(&d->lock, irq);
	queue_work(d->send_wq, &d->send_work);
}

void dss_send_work(struct work_struct *work)
{
	struct dss *d = container_of(work, struct dss, send_work);
	struct bio_list sending;
	struct blk_plug plug;
	struct bio *bio;

	spin_lock_irq(&d->lock);
	sending = d->sending;
	bio_list_init(&d->sending);
	spin_unlock_irq(&d->lock);
	blk_start_plug(&plug);
	while ((bio = bio_list_pop(&sending)))
		submit_bio_noacct(bio);
	blk_finish_plug(&plug);
}

/* The worker judges the request again. */
void dss_again(struct dss_io *io)
	__must_hold(&io->d->lock)
{
	struct dss *d = io->d;

	lockdep_assert_held(&d->lock);
	io->then = NULL;
	list_add_tail(&io->list, &d->ready);
	queue_work(d->wq, &d->work);
}

/* Waits for a table commit, then goes on: @then in the commit's worker. */
void dss_wait_commit(struct dss_io *io, void (*then)(struct dss_io *io))
	__must_hold(&io->d->lock)
{
	struct dss *d = io->d;

	lockdep_assert_held(&d->lock);
	io->then = then;
	list_add_tail(&io->list, &d->committing);
	dss_kick_commit(d);
}

/* The request ends, with io->status. Call without d->lock. */
void dss_complete(struct dss_io *io)
{
	io->bio->bi_status = io->status;
	bio_endio(io->bio);
}

void dss_kick_commit(struct dss *d)
{
	queue_work(d->commit_wq, &d->commit_work);
}

void dss_kick_cleaner(struct dss *d, unsigned int delay)
{
	if (!d->stopping)
		queue_delayed_work(d->clean_wq, &d->clean_work, delay);
}

/*
 * Without dirty bytes the HDD has everything; with some, writes are refused,
 * and the cleaner saves what can still be read.
 */
void dss_ssd_failed(struct dss *d)
	__must_hold(&d->lock)
{
	lockdep_assert_held(&d->lock);
	if (d->health != DSS_OK)
		return;
	d->health = d->dirty_grains ? DSS_REFUSING : DSS_GIVEN_UP;
	queue_work(d->clean_wq, &d->fail_work);
}

/*
 * A flush by any caller failed: the next one may succeed without the bytes of
 * this group.
 */
void dss_group_failed(struct dss *d)
	__must_hold(&d->lock)
{
	struct dss_io *io;

	lockdep_assert_held(&d->lock);
	list_for_each_entry(io, &d->gathered, list)
		io->status = BLK_STS_IOERR;
}
