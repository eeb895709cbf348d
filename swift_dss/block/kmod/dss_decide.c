// SPDX-License-Identifier: GPL-2.0
/*
 * The decision for a request of one chunk: which of its grains go which way.
 *
 * Call all of it with d->lock held.
 */
#include "dss_way.h"

static bool dss_may_fill(const struct dss_io *io)
{
	struct dss *d = io->d;
	struct dss_class_spec spec;

	if (d->mode == DSS_GLOBAL_PASS || d->health != DSS_OK ||
	    d->suspended || (io->flags & (DSS_IO_RUN | DSS_IO_HDD_ONLY)))
		return false;
	dss_core_get_class(d->core, io->class_id, &spec);
	return !(spec.flags & (DSS_EVICT_ON_HIT | DSS_NO_ALLOCATE |
			       DSS_DIRECT_HDD)) &&
	       spec.allocate != DSS_ALLOCATE_NEVER;
}

/* Whether a grain beside a read can be fetched with it. */
static bool dss_is_missing(const struct dss_io *io, unsigned int grain)
{
	struct dss_io one = { .oblock = io->oblock, .first = grain, .nr = 1 };

	return !dss_grain(io->d, io->d->valid, io->slot, grain) &&
	       !dss_conflict(io->d, &one, false);
}

/*
 * A read miss also fetches missing grains on both sides, in its window of
 * ahead_sectors: if positioning is the cost, neighbouring bytes cost next to
 * nothing. io->iter still covers only the reader's bytes.
 */
static void dss_widen(struct dss_io *io)
{
	struct dss *d = io->d;
	unsigned int window = min(d->grains, READ_ONCE(d->ahead_sectors) >>
				  d->grain_shift);
	sector_t last = d->origin_sectors - (io->oblock << d->chunk_shift);
	unsigned int begin, end;

	if (window < 2)
		return;
	begin = rounddown(io->first, window);
	end = min_t(u64, min_t(u64, d->grains, last >> d->grain_shift),
		    roundup(io->first + io->nr, window));
	while (io->first > begin && dss_is_missing(io, io->first - 1)) {
		io->first--;
		io->nr++;
	}
	while (io->first + io->nr < end &&
	       dss_is_missing(io, io->first + io->nr))
		io->nr++;
}

static enum dss_next dss_fill_or_not(struct dss_io *io)
{
	dss_widen(io);
	__set_bit(0, io->here);
	dss_hash(io, DSS_FILL);
	return DSS_NEXT_FILL;
}

static enum dss_next dss_read(struct dss_io *io, bool in_map)
{
	struct dss *d = io->d;
	bool avoid_ssd = d->mode == DSS_GLOBAL_PASS || d->health != DSS_OK ||
			 (io->flags & DSS_IO_HDD_ONLY);
	unsigned int nr;

	if (io->slot == DSS_NO_SLOT) {
		if (avoid_ssd || d->suspended || !dss_allocate(io, false))
			return dss_read_hdd(io);
		return dss_fill_or_not(io);
	}
	nr = dss_alike(d, d->valid, io->slot, io->first, io->nr);
	if (avoid_ssd)
		nr = dss_alike(d, d->dirty, io->slot, io->first, nr);
	if (!dss_limit(io, nr, in_map))
		return DSS_NEXT_CUT;
	dss_count_hit(io);
	if (dss_grain(d, d->valid, io->slot, io->first)) {
		if (avoid_ssd && !dss_grain(d, d->dirty, io->slot, io->first))
			return dss_read_hdd(io);
		dss_hash(io, DSS_READ_SSD);
		dss_aim_ssd(io);
		return DSS_NEXT_SUBMIT;
	}
	d->counts[io->class_id].grain_misses++;
	if (!dss_may_fill(io))
		return dss_read_hdd(io);
	return dss_fill_or_not(io);
}

/*
 * A grain that is dirty or unsettled needs no new intent: the request that
 * marked it held its range until that was durable, or the table does not name
 * it.
 */
static enum dss_next dss_write_here(struct dss_io *io, bool through)
{
	struct dss *d = io->d;
	bool commit = dss_intend(io, through);

	if (through) {
		commit |= dss_was_evicted(d, io->oblock);
		dss_hash(io, DSS_WRITE_BOTH);
	} else {
		dss_core_set_dirty(d->core, io->slot);
		if (dss_core_cleaning_goal(d->core))
			dss_kick_cleaner(d, 0);
		dss_tell_cleaner(io);
		dss_hash(io, DSS_WRITE_SSD);
		dss_aim_ssd(io);
	}
	if (commit) {
		dss_wait_commit(io, dss_issue);
		return DSS_NEXT_WAIT;
	}
	return through ? DSS_NEXT_BOTH : DSS_NEXT_SUBMIT;
}

/* Write the origin; first forget the SSD's copy of it, durably. */
static enum dss_next dss_write_around(struct dss_io *io, enum dss_kind kind)
{
	struct dss *d = io->d;
	bool commit = dss_was_evicted(d, io->oblock);

	if (io->slot != DSS_NO_SLOT)
		commit |= dss_invalidate(d, io->slot, io->first, io->nr);
	if (d->health != DSS_OK)
		commit = false;
	dss_to_hdd(io, kind);
	if (kind == DSS_WRITE_HDD)
		dss_group_ask(io);
	if (!commit)
		return dss_admit(io);
	dss_wait_commit(io, dss_issue);
	return DSS_NEXT_WAIT;
}

/*
 * A write's first grains that are treated alike. A grain that is written
 * in part and is not here goes to the origin: filling it up would need a
 * read of the HDD first.
 */
static unsigned int dss_write_run(struct dss_io *io,
				  enum dss_global_mode mode, bool *around)
{
	struct dss *d = io->d;
	bool here = io->slot != DSS_NO_SLOT;
	unsigned int last = io->first + io->nr - 1;
	unsigned int nr = io->nr;

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
	if (dss_part_last(io) &&
	    !(here && dss_grain(d, d->valid, io->slot, last))) {
		*around = nr == 1;
		return max(nr - 1, 1U);
	}
	return nr;
}

static enum dss_next dss_write(struct dss_io *io, bool in_map)
{
	struct dss *d = io->d;
	enum dss_global_mode mode = dss_write_mode(io);
	bool around;

	if (d->health == DSS_REFUSING) {
		d->counts[io->class_id].refused++;
		return DSS_NEXT_REFUSE;
	}
	if (!dss_limit(io, dss_write_run(io, mode, &around), in_map))
		return DSS_NEXT_CUT;
	if (io->slot != DSS_NO_SLOT)
		dss_count_hit(io);
	if (around || (io->slot == DSS_NO_SLOT &&
		       (d->suspended ||
			!dss_allocate(io, mode == DSS_GLOBAL_BACK))))
		return dss_write_around(io, DSS_WRITE_HDD);
	return dss_write_here(io, mode == DSS_GLOBAL_THROUGH);
}

/* Only whole grains are forgotten; the origin is told of all of it. */
static enum dss_next dss_discard(struct dss_io *io)
{
	struct dss *d = io->d;

	if (d->health == DSS_REFUSING)
		return DSS_NEXT_REFUSE;
	if (io->slot != DSS_NO_SLOT &&
	    (dss_part_first(io) || dss_part_last(io)) &&
	    dss_any(d, d->dirty, io->slot, io->first, io->nr)) {
		/* A discard is a hint: this one is not taken. */
		dss_hash(io, DSS_NOTHING);
		return DSS_NEXT_REFUSE;
	}
	return dss_write_around(io, DSS_DISCARD);
}

/*
 * A read whose range overlaps held grains. It does not wait for its free
 * grains, nor for grains whose bytes a fill has.
 *
 * Return: DSS_NEXT_FREE: io->nr grains are free; DSS_NEXT_WAIT: none is.
 */
static enum dss_next dss_read_busy(struct dss_io *io, bool in_map)
{
	struct dss *d = io->d;
	unsigned int nr = dss_free_grains(d, io);

	io->fill = nr ? NULL : dss_filled(d, io, &nr);
	if (nr) {
		if (!dss_limit(io, nr, in_map))
			return DSS_NEXT_CUT;
		if (!io->fill)
			return DSS_NEXT_FREE;
		dss_count_hit(io);
		dss_fill_hold(io->fill);
		return DSS_NEXT_GIVE;
	}
	if (!dss_only_behind(d, io))
		return DSS_NEXT_WAIT;
	dss_count_hit(io);
	d->counts[io->class_id].grain_misses++;
	return dss_read_hdd(io);
}

enum dss_next dss_decide(struct dss_io *io, bool in_map)
{
	struct dss *d = io->d;
	bool write = dss_is_write(io);
	enum dss_next next;

	if (d->health == DSS_GIVEN_UP)
		return dss_to_hdd(io, write ? DSS_WRITE_HDD : DSS_READ_HDD);
	if (write && d->nr_after)
		dss_overtake(d, io);
	io->slot = dss_core_lookup(d->core, dss_to_oblock(io->oblock));
	if (dss_conflict(d, io, write && (bio_op(io->bio) == REQ_OP_DISCARD ||
				       dss_write_mode(io) !=
				       DSS_GLOBAL_BACK))) {
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
	if (!(io->flags & DSS_IO_COUNTED) &&
	    dss_core_run(d->core, io->class_id, dss_io_begin(io),
			 bio_sectors(io->bio)))
		io->flags |= DSS_IO_RUN;
	return write ? dss_write(io, in_map) : dss_read(io, in_map);
}
