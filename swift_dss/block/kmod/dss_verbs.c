// SPDX-License-Identifier: GPL-2.0
/*
 * Parts of decisions: a request's place, its slot, its device.
 *
 * Call it with d->lock held, unless a function says otherwise.
 */
#include "dss_way.h"

/* Works out chunk and grains from the bio. */
void dss_place(struct dss_io *io)
{
	struct dss *d = io->d;
	sector_t sector = io->bio->bi_iter.bi_sector;
	sector_t offset = sector & (d->chunk_sectors - 1);
	sector_t end = offset + max(bio_sectors(io->bio), 1U);

	io->iter = io->bio->bi_iter;
	io->oblock = sector >> d->chunk_shift;
	io->first = offset >> d->grain_shift;
	io->nr = DIV_ROUND_UP(end, d->grain_sectors) - io->first;
}

/*
 * Limits the request to its first @nr grains, if that is possible here.
 *
 * Return: false if it has to be cut in the worker; io->nr is set for that.
 */
bool dss_limit(struct dss_io *io, unsigned int nr, bool in_map)
{
	struct dss *d = io->d;
	sector_t sectors;

	if (nr == io->nr)
		return true;
	io->nr = nr;
	if (!in_map)
		return false;
	sectors = ((sector_t)(io->first + nr) << d->grain_shift) -
		  (dss_io_begin(io) & (d->chunk_sectors - 1));
	dm_accept_partial_bio(io->bio, sectors);
	io->iter = io->bio->bi_iter;
	return true;
}

/* Whether hits of this class must be judged alone. */
bool dss_class_alone(const struct dss *d, unsigned int class_id)
	__must_hold(&d->lock)
{
	struct dss_class_spec spec;

	dss_core_get_class(d->core, class_id, &spec);
	return spec.flags & (DSS_EVICT_ON_HIT | DSS_NO_ALLOCATE |
			     DSS_DIRECT_HDD);
}

/* The same of the class of a chunk. */
bool dss_chunk_alone(const struct dss *d, dss_slot_t slot)
	__must_hold(&d->lock)
{
	unsigned int class_id;

	dss_core_slot_state(d->core, slot, NULL, &class_id);
	return dss_class_alone(d, class_id);
}

/*
 * Tells the core of a chunk's part, unless it is the first one, of which
 * dss_decide() has told it: whether it belongs to a run.
 */
void dss_tell_run(const struct dss_io *io, struct dss_io *one)
	__must_hold(&io->d->lock)
{
	sector_t begin = dss_part_begin(io, one->oblock);

	one->flags = 0;
	if (one->oblock == io->oblock)
		one->flags = io->flags & (DSS_IO_COUNTED | DSS_IO_RUN);
	else if (dss_core_run(io->d->core, io->class_id, begin,
			      dss_part_end(io, one->oblock) - begin))
		one->flags = DSS_IO_RUN;
}

void dss_count_hit(struct dss_io *io)
	__must_hold(&io->d->lock)
{
	if (io->flags & DSS_IO_COUNTED)
		return;
	io->flags |= DSS_IO_COUNTED;
	if (dss_core_touch(io->d->core, io->slot, io->class_id,
			   dss_is_write(io)) == DSS_GIVE_UP)
		io->flags |= DSS_IO_GIVE_UP;
}

/*
 * A miss: asks the core for a slot.
 *
 * Return: whether the chunk has one now, at io->slot.
 */
bool dss_allocate(struct dss_io *io, bool dirty)
	__must_hold(&io->d->lock)
{
	struct dss *d = io->d;
	unsigned int how = dirty ? DSS_MISS_DIRTY : 0;
	struct dss_verdict verdict;

	if (io->flags & DSS_IO_COUNTED)
		return false;
	io->flags |= DSS_IO_COUNTED;
	if (io->flags & DSS_IO_RUN)
		how |= DSS_MISS_SEQUENTIAL;
	dss_core_miss(d->core, io->class_id, how, &verdict);
	if (verdict.want_clean)
		dss_kick_cleaner(d, 0);
	if (verdict.kind == DSS_VERDICT_BYPASS)
		return false;
	if (verdict.kind == DSS_VERDICT_VICTIM) {
		u64 victim = dss_from_oblock(verdict.victim);

		if (dss_in_flight(d, victim)) {
			dss_core_decline(d->core, &verdict);
			return false;
		}
		dss_forget(d, verdict.slot, victim);
	}
	io->slot = dss_core_take(d->core, &verdict, dss_to_oblock(io->oblock));
	dss_core_commit(d->core, io->slot, false);
	return true;
}

enum dss_next dss_to_hdd(struct dss_io *io, enum dss_kind kind)
	__must_hold(&io->d->lock)
{
	dss_hash(io, kind);
	dss_aim_hdd(io);
	return DSS_NEXT_SUBMIT;
}

static void dss_submit(struct dss_io *io)
{
	dss_send(io->d, io->bio);
}

/* A read with a waiting reader. */
enum dss_next dss_read_hdd(struct dss_io *io)
	__must_hold(&io->d->lock)
{
	dss_to_hdd(io, DSS_READ_HDD);
	return dss_turn_begin(io, io->iter.bi_size >> SECTOR_SHIFT,
			      dss_submit) ? DSS_NEXT_SUBMIT : DSS_NEXT_WAIT;
}

/* Whether a write may leave its grains dirty. */
static bool dss_may_dirty(const struct dss_io *io)
	__must_hold(&io->d->lock)
{
	struct dss *d = io->d;

	return io->slot == DSS_NO_SLOT ||
	       dss_core_slot_state(d->core, io->slot, NULL, NULL) &
	       DSS_SLOT_DIRTY || dss_core_may_dirty(d->core, io->class_id) ||
	       dss_core_stage_room(d->core);
}

/* The stricter write mode of device and class. */
enum dss_global_mode dss_asked_mode(const struct dss_io *io)
	__must_hold(&io->d->lock)
{
	struct dss *d = io->d;
	struct dss_class_spec spec;
	enum dss_global_mode mode = d->mode;

	/* The SSD becomes smaller: nothing gets dirty again. */
	if (d->shrinking)
		mode = max(mode, DSS_GLOBAL_THROUGH);
	if (d->health != DSS_OK || (io->flags & DSS_IO_HDD_ONLY))
		return DSS_GLOBAL_PASS;
	dss_core_get_class(d->core, io->class_id, &spec);
	if (spec.flags & DSS_DIRECT_HDD)
		return max(mode, DSS_GLOBAL_AROUND);
	return max_t(enum dss_global_mode, mode, spec.write_mode);
}

/*
 * How the write is done. A clean chunk that must not become dirty is written
 * on both devices.
 */
enum dss_global_mode dss_write_mode(const struct dss_io *io)
	__must_hold(&io->d->lock)
{
	enum dss_global_mode mode = dss_asked_mode(io);

	return mode == DSS_GLOBAL_BACK && !dss_may_dirty(io) ?
		DSS_GLOBAL_THROUGH : mode;
}

/*
 * Marks what the table must say before the bytes on the SSD change, and
 * while they do: valid clean grains become dirty (or unsettled, if the
 * origin gets the bytes at the same time). Grains that are not valid yet
 * are named only when the bytes are there.
 *
 * Return: whether a commit has to come first.
 */
bool dss_intend(struct dss_io *io, bool through)
	__must_hold(&io->d->lock)
{
	struct dss *d = io->d;
	bool commit = dss_is_stale(d, io->slot);
	unsigned int grain;

	if (dss_any(d, d->dirty, io->slot, io->first, io->nr))
		io->flags |= DSS_IO_HAD_DIRTY;
	for (grain = io->first; grain < io->first + io->nr; grain++) {
		if (!dss_grain(d, d->valid, io->slot, grain) ||
		    dss_grain(d, d->dirty, io->slot, grain))
			continue;
		if (!dss_grain(d, d->unsettled, io->slot, grain)) {
			commit = true;
			d->nr_intents++;
		}
		if (through)
			dss_set_unsettled(d, io->slot, grain, 1);
		else
			dss_set_dirty(d, io->slot, grain, 1);
	}
	return commit;
}
