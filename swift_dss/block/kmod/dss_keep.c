// SPDX-License-Identifier: GPL-2.0
/*
 * The second half of a fill: bytes that the HDD has given go to the SSD.
 *
 * Context: the worker "dss-io", unless a function says otherwise. Never waits
 * for memory.
 */
#include "dss_copy.h"

/* The move gives up its range, and its pages. Context: worker, end. */
void dss_keep_done(struct dss_move *move)
{
	struct dss *d = move->io.d;
	unsigned long irq;

	spin_lock_irqsave(&d->lock, irq);
	dss_unhash(&move->io);
	if (move->io.flags & DSS_IO_AFTER)
		d->nr_after--;
	spin_unlock_irqrestore(&d->lock, irq);
	dss_move_free(move);
}

/* The bytes are on the SSD: from now on they may be read there. */
static void dss_kept(struct dss_move *move)
	__must_hold(&move->io.d->lock)
{
	struct dss_io *io = &move->io;
	struct dss *d = io->d;
	struct dss_class_count *count = &d->counts[io->class_id];

	d->ssd_wrote = true;
	if (io->status) {
		d->ssd_errors++;
		count->fill_failed++;
		dss_ssd_failed(d);
		return;
	}
	dss_set_valid(d, io->slot, io->first, io->nr);
	if (io->flags & DSS_IO_UNSETTLED)
		dss_set_unsettled(d, io->slot, io->first, io->nr);
	count->promoted++;
	count->promoted_sectors += move->sectors;
}

/* Context: end. */
static void dss_keep_end(struct bio *bio)
{
	struct dss_move *move = dss_row_end(bio), *next;
	struct dss *d = move->io.d;
	unsigned long irq;

	for (; move; move = next) {
		next = move->next;
		spin_lock_irqsave(&d->lock, irq);
		dss_kept(move);
		spin_unlock_irqrestore(&d->lock, irq);
		if (move->kept)
			dss_ready(&move->io, move->kept);
		else
			dss_keep_done(move);
	}
}

static void dss_keep_write(struct dss_move *move)
{
	dss_row_submit(move, true, REQ_OP_WRITE, dss_keep_end);
}

/* After a commit; io->status says how that ended. Context: its worker. */
static void dss_keep_later(struct dss_io *io)
{
	struct dss_move *move = dss_move_of(io);

	if (io->status || READ_ONCE(io->d->health) != DSS_OK)
		dss_keep_done(move);
	else
		dss_keep_write(move);
}

/* The HDD has given the bytes of a row, or not: io.status says. */
void dss_keep_read(struct dss_move *first)
{
	struct dss *d = first->io.d;
	struct dss_move *move;

	spin_lock_irq(&d->lock);
	for (move = first; move; move = move->next) {
		move->io.flags &= ~DSS_IO_READING;
		if ((move->io.flags & DSS_IO_HASHED) && !move->io.status &&
		    move->io.kind == DSS_FILL)
			move->io.flags |= DSS_IO_FILLED;
	}
	spin_unlock_irq(&d->lock);
}

/*
 * Whether a move is to be written now. If not, it waits for a commit, because
 * its slot may not change yet, or is gone: it failed, was overtaken, or has
 * no slot.
 */
static bool dss_keep_now(struct dss_move *move)
{
	struct dss_io *io = &move->io;
	struct dss *d = io->d;
	bool keep, now;

	spin_lock_irq(&d->lock);
	keep = (io->flags & DSS_IO_FILLED) && d->health == DSS_OK;
	now = keep && !dss_is_stale(d, io->slot);
	if (keep && !now)
		dss_wait_commit(io, dss_keep_later);
	spin_unlock_irq(&d->lock);
	if (!keep)
		dss_keep_done(move);
	return now;
}

static bool dss_keep_may_join(const struct dss_move *last,
			      const struct dss_move *next)
{
	struct dss *d = last->io.d;

	return dss_slot_sector(d, last->io.slot) + d->chunk_sectors ==
	       dss_slot_sector(d, next->io.slot);
}

/**
 * dss_keep_row() - write to the SSD what the HDD gave
 * @move: the first of a row, after dss_keep_read(); the row is gone then
 *
 * Slots that lie in a row are one write of the SSD.
 */
void dss_keep_row(struct dss_move *move)
{
	struct dss_move *next, *row = NULL, *last = NULL;

	for (; move; move = next) {
		next = move->next;
		move->next = NULL;
		if (!dss_keep_now(move))
			continue;
		if (row && dss_keep_may_join(last, move)) {
			last->next = move;
		} else {
			if (row)
				dss_keep_write(row);
			row = move;
		}
		last = move;
	}
	if (row)
		dss_keep_write(row);
}
