// SPDX-License-Identifier: GPL-2.0
/*
 * The decision: what stands in the way of a request, and then its way, in
 * dss_read.c or dss_write.c.
 *
 * A request of several chunks and one of a single chunk are decided once, by
 * the same lines: the first chunk's way is found, further chunks go along as
 * long as theirs is the same, and the request is limited to those. The rest
 * comes back by itself. The core is told of each chunk as if it had come by
 * itself.
 *
 * Call all of it with d->lock held. Context: map or the worker "dss-io".
 */
#include "dss_way.h"

/*
 * Whether each chunk of a request goes its own way: in the worker, where a
 * cut costs a bio, all but doubled writes do.
 */
static bool dss_goes_alone(const struct dss_io *io, bool through, bool in_map)
	__must_hold(&io->d->lock)
{
	const struct dss *d = io->d;

	return d->mode == DSS_GLOBAL_PASS || d->health != DSS_OK ||
	       d->suspended || d->shrinking ||
	       (io->flags & DSS_IO_HDD_ONLY) || !(in_map || through);
}

/*
 * Whether the request has to wait for one that holds the same grains. A
 * doubled write waits for all of them, so that it stays one write of the HDD;
 * others for those of the first chunk.
 */
static bool dss_must_wait(struct dss_io *io, bool through)
	__must_hold(&io->d->lock)
{
	struct dss_io one = { .oblock = io->oblock, .first = io->first,
			      .nr = through ? io->nr : dss_first_nr(io) };
	bool write = dss_is_write(io);

	return dss_conflict(io->d, &one, write &&
			    (bio_op(io->bio) == REQ_OP_DISCARD ||
			     dss_write_mode(io) != DSS_GLOBAL_BACK));
}

/*
 * Whether a chunk of the request left its slot while the table is being drawn:
 * it must not get another one yet.
 */
static bool dss_left_meanwhile(const struct dss_io *io)
	__must_hold(&io->d->lock)
{
	struct dss_io one = dss_no_part(io);

	while (dss_next_chunk(io, &one))
		if (dss_has_left(io->d, one.oblock))
			return true;
	return false;
}

/**
 * dss_decide() - which way a request goes
 * @io: dss_place() has placed it
 * @in_map: it can be limited; in the worker it has to be cut
 */
enum dss_next dss_decide(struct dss_io *io, bool in_map)
	__must_hold(&io->d->lock)
{
	struct dss *d = io->d;
	bool write = dss_is_write(io);
	bool through = bio_op(io->bio) == REQ_OP_WRITE &&
		       dss_asked_mode(io) == DSS_GLOBAL_THROUGH;
	sector_t begin = dss_io_begin(io);
	enum dss_next next;

	d->last_request = jiffies;
	if (d->picturing && dss_left_meanwhile(io)) {
		io->then = NULL;
		list_add_tail(&io->list, &d->unpictured);
		return DSS_NEXT_WAIT;
	}
	if (dss_is_long(io) && dss_goes_alone(io, through, in_map) &&
	    !dss_limit(io, dss_first_nr(io), in_map))
		return DSS_NEXT_CUT;
	if (d->health == DSS_GIVEN_UP)
		return dss_to_hdd(io, write ? DSS_WRITE_HDD : DSS_READ_HDD);
	if (write && d->nr_after)
		dss_overtake(d, io);
	io->slot = dss_core_lookup(d->core, dss_to_oblock(io->oblock));
	if (dss_must_wait(io, through)) {
		if (!through)
			dss_limit(io, dss_first_nr(io), in_map);
		next = write ? DSS_NEXT_WAIT : dss_read_busy(io, in_map);
		if (next == DSS_NEXT_WAIT)
			dss_defer(io);
		if (next != DSS_NEXT_FREE)
			return next;
	}
	if (d->shrinking && io->slot != DSS_NO_SLOT &&
	    dss_from_slot(io->slot) >= d->limit &&
	    dss_give_up_slot(d, io->slot))
		io->slot = DSS_NO_SLOT;
	if (bio_op(io->bio) == REQ_OP_DISCARD)
		return dss_discard(io);
	if (!(io->flags & (DSS_IO_COUNTED | DSS_IO_HELD)) &&
	    dss_core_run(d->core, io->class_id, begin,
			 dss_part_end(io, io->oblock) - begin))
		io->flags |= DSS_IO_RUN;
	return write ? dss_write(io, in_map) : dss_read(io, in_map);
}
