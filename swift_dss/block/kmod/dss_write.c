// SPDX-License-Identifier: GPL-2.0
/*
 * Which way a write or a discard goes: to the SSD, to both devices, or past
 * the SSD. Chunks go along with the first one as long as they go the same way:
 * cut, they would be a write of the HDD each.
 *
 * Call all of it with d->lock held. Context: map or the worker "dss-io".
 */
#include "dss_way.h"

/* ---- past the SSD ---- */

/*
 * Whether a further chunk has nothing to do with the SSD.
 * @how: of its miss, if the core has a say; -1: it has none
 */
static bool dss_is_past(const struct dss_io *io, const struct dss_io *one,
			int how)
	__must_hold(&io->d->lock)
{
	sector_t begin = dss_part_begin(io, one->oblock);
	sector_t end = dss_part_end(io, one->oblock);
	struct dss *d = io->d;

	if (dss_core_lookup(d->core, dss_to_oblock(one->oblock)) !=
	    DSS_NO_SLOT || dss_conflict(d, one, true) ||
	    dss_was_evicted(d, one->oblock))
		return false;
	if (how < 0)
		return true;
	if (dss_core_would_run(d->core, io->class_id, begin, end - begin))
		how |= DSS_MISS_SEQUENTIAL;
	/* Its last grain may need another way than the others. */
	return (end != dss_io_end(io) || !dss_part_last(io)) &&
	       dss_core_passes(d->core, io->class_id, how);
}

/*
 * How many grains pass the SSD with the first chunk: in whole chunks, but for
 * the last, each told to the core as if it had come by itself.
 */
static unsigned int dss_past_grains(const struct dss_io *io, int how)
	__must_hold(&io->d->lock)
{
	struct dss_io one = dss_first_part(io);
	unsigned int grains = one.nr;

	while (dss_next_chunk(io, &one) && dss_is_past(io, &one, how)) {
		grains += one.nr;
		if (bio_op(io->bio) == REQ_OP_DISCARD)
			continue;
		dss_tell_run(io, &one);
		if (how >= 0)
			dss_allocate(&one, how & DSS_MISS_DIRTY);
	}
	return grains;
}

/* Give the origin the bytes, or the discard; perhaps after a commit. */
static enum dss_next dss_write_past(struct dss_io *io, enum dss_kind kind,
				    bool commit)
	__must_hold(&io->d->lock)
{
	dss_to_hdd(io, kind);
	if (kind == DSS_WRITE_HDD)
		dss_group_ask(io);
	if (commit && io->d->health == DSS_OK) {
		dss_wait_commit(io, dss_issue);
		return DSS_NEXT_WAIT;
	}
	return !(io->flags & DSS_IO_GROUPED) || dss_group_admit(io) ?
		DSS_NEXT_SUBMIT : DSS_NEXT_WAIT;
}

/*
 * Write the origin; first forget the SSD's copy of it, durably. Chunks of
 * which the SSD has nothing go along with one of which it has nothing.
 */
static enum dss_next dss_write_around(struct dss_io *io, enum dss_kind kind,
				      int how)
	__must_hold(&io->d->lock)
{
	struct dss *d = io->d;
	bool commit = dss_was_evicted(d, io->oblock);

	if (dss_is_long(io))
		dss_limit(io, io->slot != DSS_NO_SLOT || commit ?
			  dss_first_nr(io) : dss_past_grains(io, how), true);
	if (io->slot != DSS_NO_SLOT)
		commit |= dss_invalidate(d, io->slot, io->first, io->nr);
	return dss_write_past(io, kind, commit);
}

/* ---- to the SSD ---- */

/*
 * A grain that is dirty or unsettled needs no new intent: the request that
 * marked it held its range until that was durable, or the table does not name
 * it.
 */
static enum dss_next dss_write_back(struct dss_io *io)
	__must_hold(&io->d->lock)
{
	struct dss *d = io->d;
	bool commit = dss_intend(io, false);

	if (!dss_core_may_dirty(d->core, io->class_id))
		dss_core_stage(d->core, io->slot);
	dss_core_set_dirty(d->core, io->slot);
	if (dss_core_cleaning_goal(d->core))
		dss_kick_cleaner(d, 0);
	dss_tell_cleaner(io);
	dss_hash(io, DSS_WRITE_SSD);
	dss_aim_ssd(io);
	if (!commit)
		return DSS_NEXT_SUBMIT;
	dss_wait_commit(io, dss_issue);
	return DSS_NEXT_WAIT;
}

/* ---- to both ---- */

/*
 * How many grains of a write can be doubled together: in whole chunks, but
 * for the last; at least the first chunk's part.
 */
static unsigned int dss_both_grains(const struct dss_io *io)
	__must_hold(&io->d->lock)
{
	struct dss_io one = dss_no_part(io);
	unsigned int grains = 0;
	struct dss *d = io->d;

	while (dss_next_chunk(io, &one)) {
		one.slot = dss_core_lookup(d->core, dss_to_oblock(one.oblock));
		if (one.slot != DSS_NO_SLOT &&
		    (dss_chunk_alone(d, one.slot) ||
		     dss_any(d, d->dirty, one.slot, one.first, one.nr)))
			break;
		if (dss_part_end(io, one.oblock) == dss_io_end(io) &&
		    dss_part_last(io))
			break;
		grains += one.nr;
	}
	return max(grains, dss_first_nr(io));
}

/*
 * One chunk of a doubled write: it gets a slot, or has one, or passes.
 *
 * Return: whether a commit has to come before the write.
 */
static bool dss_both_one(struct dss_io *io, struct dss_io *one,
			 unsigned int chunk)
	__must_hold(&io->d->lock)
{
	struct dss *d = io->d;
	bool commit = dss_was_evicted(d, one->oblock);

	one->slot = dss_core_lookup(d->core, dss_to_oblock(one->oblock));
	dss_tell_run(io, one);
	if (one->slot != DSS_NO_SLOT)
		dss_count_hit(one);
	else if (d->suspended || !dss_allocate(one, false))
		return commit;
	__set_bit(chunk, io->here);
	commit |= dss_intend(one, true);
	if (!chunk) {
		io->slot = one->slot;
		io->flags |= one->flags & (DSS_IO_GIVE_UP | DSS_IO_HAD_DIRTY);
	}
	return commit;
}

/* Chunks that both devices get are one write of the HDD. */
static enum dss_next dss_write_both(struct dss_io *io)
	__must_hold(&io->d->lock)
{
	struct dss_io one = dss_no_part(io);
	bool commit = false;
	unsigned int chunk;

	/* First: what needs a slot must not take that of its own. */
	dss_to_hdd(io, DSS_WRITE_BOTH);
	for (chunk = 0; dss_next_chunk(io, &one); chunk++)
		commit |= dss_both_one(io, &one, chunk);
	io->flags |= DSS_IO_COUNTED;
	if (bitmap_empty(io->here, chunk))
		return dss_write_past(io, DSS_WRITE_HDD, commit);
	if (!commit)
		return DSS_NEXT_BOTH;
	dss_wait_commit(io, dss_issue);
	return DSS_NEXT_WAIT;
}

/* ---- the way ---- */

/*
 * The grains of the first chunk's part that are treated alike. A grain that
 * is written in part and is not here goes to the origin: filling it up would
 * need a read of the HDD first.
 */
static unsigned int dss_write_run(const struct dss_io *io,
				  enum dss_global_mode mode, bool *around)
	__must_hold(&io->d->lock)
{
	struct dss *d = io->d;
	bool here = io->slot != DSS_NO_SLOT;
	unsigned int nr = dss_first_nr(io);
	unsigned int last = io->first + nr - 1;

	*around = mode >= DSS_GLOBAL_AROUND;
	if (*around) {
		if (here) {
			nr = dss_alike(d, d->dirty, io->slot, io->first, nr);
			*around = !dss_grain(d, d->dirty, io->slot,
					     io->first);
		}
		return nr;
	}
	if (dss_part_first(io) &&
	    !(here && dss_grain(d, d->valid, io->slot, io->first))) {
		*around = true;
		return 1;
	}
	if (!dss_is_long(io) && dss_part_last(io) &&
	    !(here && dss_grain(d, d->valid, io->slot, last))) {
		*around = nr == 1;
		return max(nr - 1, 1U);
	}
	return nr;
}

/*
 * Whether further chunks may go along with the first one, of which @nr grains
 * are treated alike.
 */
static bool dss_may_follow(const struct dss_io *io, unsigned int nr,
			   enum dss_global_mode mode)
	__must_hold(&io->d->lock)
{
	if (!dss_is_long(io) || nr != dss_first_nr(io) ||
	    (dss_part_first(io) && mode < DSS_GLOBAL_AROUND))
		return false;
	/* Where only a clean chunk makes a write double, others may not be. */
	return mode == DSS_GLOBAL_THROUGH ?
		dss_asked_mode(io) == mode &&
		!dss_class_alone(io->d, io->class_id) :
		io->slot == DSS_NO_SLOT;
}

/* Whether it has to wait for room in the stage, and does. */
static bool dss_waits_for_stage(struct dss_io *io, enum dss_global_mode mode,
				bool around)
	__must_hold(&io->d->lock)
{
	unsigned int how = DSS_MISS_DIRTY;

	if (around || dss_asked_mode(io) != DSS_GLOBAL_BACK)
		return false;
	if (io->slot != DSS_NO_SLOT)
		return mode != DSS_GLOBAL_BACK && dss_stage_hold(io, 0);
	if (io->flags & DSS_IO_RUN)
		how |= DSS_MISS_SEQUENTIAL;
	return dss_stage_hold(io, how);
}

/**
 * dss_write() - the way of a write for which nothing stands in the way
 * @io: its @slot is that of its first chunk
 */
enum dss_next dss_write(struct dss_io *io, bool in_map)
	__must_hold(&io->d->lock)
{
	struct dss *d = io->d;
	enum dss_global_mode mode = dss_write_mode(io);
	bool around, follow;
	unsigned int nr;

	if (d->health == DSS_REFUSING) {
		d->counts[io->class_id].refused++;
		return DSS_NEXT_REFUSE;
	}
	nr = dss_write_run(io, mode, &around);
	if (dss_waits_for_stage(io, mode, around))
		return DSS_NEXT_WAIT;
	follow = dss_may_follow(io, nr, mode);
	if (follow && mode == DSS_GLOBAL_THROUGH)
		nr = dss_both_grains(io);
	if ((!follow || mode == DSS_GLOBAL_THROUGH) &&
	    !dss_limit(io, nr, in_map))
		return DSS_NEXT_CUT;
	if (!around && mode == DSS_GLOBAL_THROUGH)
		return dss_write_both(io);
	if (io->slot != DSS_NO_SLOT)
		dss_count_hit(io);
	else if (!around)
		around = d->suspended || !dss_allocate(io, true);
	if (around)
		return dss_write_around(io, DSS_WRITE_HDD,
					mode >= DSS_GLOBAL_AROUND ? -1 :
					DSS_MISS_DIRTY);
	dss_limit(io, nr, in_map);
	return dss_write_back(io);
}

/* Only whole grains are forgotten; the origin is told of all of it. */
enum dss_next dss_discard(struct dss_io *io)
	__must_hold(&io->d->lock)
{
	struct dss *d = io->d;

	if (d->health == DSS_REFUSING)
		return DSS_NEXT_REFUSE;
	if (io->slot != DSS_NO_SLOT && dss_is_long(io))
		dss_limit(io, dss_first_nr(io), true);
	if (io->slot != DSS_NO_SLOT &&
	    (dss_part_first(io) || dss_part_last(io)) &&
	    dss_any(d, d->dirty, io->slot, io->first, io->nr)) {
		/* A discard is a hint: this one is not taken. */
		dss_hash(io, DSS_NOTHING);
		return DSS_NEXT_REFUSE;
	}
	return dss_write_around(io, DSS_DISCARD, -1);
}
