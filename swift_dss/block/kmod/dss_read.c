// SPDX-License-Identifier: GPL-2.0
/*
 * Which way a read goes. Chunks go along with the first one as long as they go
 * the same way; a read of one chunk is a read of several of which none follow.
 *
 * Call all of it with d->lock held. Context: map or the worker "dss-io".
 */
#include "dss_way.h"

/* ---- what is here ---- */

/*
 * How many grains of a read are all here, one behind the other on the SSD and
 * not being changed. The first chunk's part is; then in whole chunks, but for
 * the last.
 */
static unsigned int dss_here_grains(const struct dss_io *io)
	__must_hold(&io->d->lock)
{
	struct dss *d = io->d;
	struct dss_io one = dss_first_part(io);
	sector_t sector = dss_slot_sector(d, io->slot);
	u32 slot = dss_from_slot(io->slot);
	unsigned int grains = one.nr;

	if (dss_class_alone(d, io->class_id) || dss_chunk_alone(d, io->slot))
		return grains;
	while (dss_next_chunk(io, &one) && ++slot < d->nr_slots) {
		one.slot = dss_to_slot(slot);
		sector += d->chunk_sectors;
		if (dss_core_lookup(d->core, dss_to_oblock(one.oblock)) !=
		    one.slot || dss_slot_sector(d, one.slot) != sector ||
		    !dss_all(d, d->valid, one.slot, one.first, one.nr) ||
		    dss_conflict(d, &one, false) ||
		    dss_chunk_alone(d, one.slot))
			break;
		grains += one.nr;
	}
	return grains;
}

/* The core is told of each further chunk as if it had come by itself. */
static void dss_count_further(const struct dss_io *io)
	__must_hold(&io->d->lock)
{
	struct dss_io one = dss_first_part(io);
	u32 slot = dss_from_slot(io->slot);

	while (dss_next_chunk(io, &one)) {
		one.slot = dss_to_slot(++slot);
		dss_tell_run(io, &one);
		dss_count_hit(&one);
	}
}

static enum dss_next dss_read_ssd(struct dss_io *io)
	__must_hold(&io->d->lock)
{
	dss_count_hit(io);
	if (dss_is_long(io))
		dss_count_further(io);
	dss_hash(io, DSS_READ_SSD);
	dss_aim_ssd(io);
	return DSS_NEXT_SUBMIT;
}

/* ---- what is not here ---- */

/*
 * Count the grains of a read that the SSD lacks, and that no request changes.
 * The first chunk's part is so; then in whole chunks, but for the last.
 */
static unsigned int dss_missing_grains(const struct dss_io *io)
	__must_hold(&io->d->lock)
{
	struct dss *d = io->d;
	struct dss_io one = dss_first_part(io);
	unsigned int grains = one.nr;

	while (dss_next_chunk(io, &one)) {
		if (dss_core_lookup(d->core, dss_to_oblock(one.oblock)) !=
		    DSS_NO_SLOT || dss_conflict(d, &one, false))
			break;
		grains += one.nr;
	}
	return grains;
}

/* Whether a grain beside a read can be fetched with it. */
static bool dss_is_missing(struct dss *d, u64 oblock, dss_slot_t slot,
			   unsigned int grain)
	__must_hold(&d->lock)
{
	struct dss_io one = { .oblock = oblock, .first = grain, .nr = 1 };

	return slot != DSS_NO_SLOT && !dss_grain(d, d->valid, slot, grain) &&
	       !dss_conflict(d, &one, false);
}

/*
 * A read miss also fetches missing grains on both sides, in its window of
 * ahead_sectors, in chunks that have a slot: if positioning is the cost,
 * neighbouring bytes cost next to nothing. io->iter still covers only the
 * reader's bytes.
 */
static void dss_widen(struct dss_io *io)
	__must_hold(&io->d->lock)
{
	struct dss *d = io->d;
	unsigned int window = min(d->grains, READ_ONCE(d->ahead_sectors) >>
				  d->grain_shift);
	unsigned int chunk = (io->first + io->nr - 1U) / d->grains;
	u64 last = io->oblock + chunk;
	sector_t left = d->origin_sectors - (last << d->chunk_shift);
	unsigned int begin, end, grain;
	dss_slot_t slot;

	if (window < 2)
		return;
	begin = rounddown(io->first, window);
	slot = dss_core_lookup(d->core, dss_to_oblock(io->oblock));
	while (io->first > begin &&
	       dss_is_missing(d, io->oblock, slot, io->first - 1)) {
		io->first--;
		io->nr++;
	}
	grain = io->first + io->nr - chunk * d->grains;
	end = min_t(u64, min_t(u64, d->grains, left >> d->grain_shift),
		    roundup(grain, window));
	slot = dss_core_lookup(d->core, dss_to_oblock(last));
	for (; grain < end && dss_is_missing(d, last, slot, grain); grain++)
		io->nr++;
}

/* A chunk that is here misses grains. */
static enum dss_next dss_read_grains(struct dss_io *io)
	__must_hold(&io->d->lock)
{
	struct dss *d = io->d;
	struct dss_class_spec spec;

	dss_count_hit(io);
	d->counts[io->class_id].grain_misses++;
	dss_core_get_class(d->core, io->class_id, &spec);
	if (d->suspended || (io->flags & DSS_IO_RUN) ||
	    (spec.flags & (DSS_EVICT_ON_HIT | DSS_NO_ALLOCATE |
			   DSS_DIRECT_HDD)) ||
	    spec.allocate == DSS_ALLOCATE_NEVER)
		return dss_read_hdd(io);
	__set_bit(0, io->here);
	dss_hash(io, DSS_FILL);
	dss_widen(io);
	return DSS_NEXT_FILL;
}

/*
 * Chunks of which nothing is here are one read of the HDD, whether they get a
 * slot or pass the SSD.
 */
static enum dss_next dss_read_chunks(struct dss_io *io, bool in_map)
	__must_hold(&io->d->lock)
{
	struct dss_io one = dss_no_part(io);
	unsigned int chunk;

	if (dss_is_long(io))
		dss_limit(io, dss_missing_grains(io), in_map);
	/* First: what needs a slot must not take that of its own. */
	dss_hash(io, DSS_FILL);
	for (chunk = 0; dss_next_chunk(io, &one); chunk++) {
		dss_tell_run(io, &one);
		if (dss_allocate(&one, false))
			__set_bit(chunk, io->here);
	}
	io->flags |= DSS_IO_COUNTED;
	if (bitmap_empty(io->here, chunk))
		return dss_read_hdd(io);
	dss_widen(io);
	return DSS_NEXT_FILL;
}

/* ---- the way ---- */

/**
 * dss_read() - the way of a read for which nothing stands in the way
 * @io: its @slot is that of its first chunk
 */
enum dss_next dss_read(struct dss_io *io, bool in_map)
	__must_hold(&io->d->lock)
{
	struct dss *d = io->d;
	bool avoid_ssd = d->mode == DSS_GLOBAL_PASS || d->health != DSS_OK ||
			 (io->flags & DSS_IO_HDD_ONLY);
	unsigned int part = dss_first_nr(io), nr;
	bool valid;

	if (io->slot == DSS_NO_SLOT)
		return avoid_ssd || d->suspended ? dss_read_hdd(io) :
						   dss_read_chunks(io, in_map);
	valid = dss_grain(d, d->valid, io->slot, io->first);
	nr = dss_alike(d, d->valid, io->slot, io->first, part);
	if (avoid_ssd)
		nr = dss_alike(d, d->dirty, io->slot, io->first, nr);
	else if (valid && nr == part && nr < io->nr)
		nr = dss_here_grains(io);
	if (!dss_limit(io, nr, in_map))
		return DSS_NEXT_CUT;
	if (avoid_ssd && !dss_grain(d, d->dirty, io->slot, io->first)) {
		dss_count_hit(io);
		if (!valid)
			d->counts[io->class_id].grain_misses++;
		return dss_read_hdd(io);
	}
	return valid ? dss_read_ssd(io) : dss_read_grains(io);
}

/**
 * dss_read_busy() - a read of one chunk whose range overlaps held grains
 *
 * It does not wait for its free grains, nor for grains whose bytes a fill has.
 *
 * Return: DSS_NEXT_FREE: io->nr grains are free; DSS_NEXT_WAIT: none is.
 */
enum dss_next dss_read_busy(struct dss_io *io, bool in_map)
	__must_hold(&io->d->lock)
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
