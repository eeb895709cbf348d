// SPDX-License-Identifier: GPL-2.0
/*
 * Spans: requests of several chunks that go the same way, and so are one
 * request of a device. The core is told of each chunk as if it had come by
 * itself. Under the lock.
 */
#include "dss_way.h"

/* Whether each hit of this class must be judged alone. */
static bool dss_hits_alone(const struct dss *d, unsigned int class_id)
{
	struct dss_class_spec spec;

	dss_core_get_class(d->core, class_id, &spec);
	return spec.flags & (DSS_EVICT_ON_HIT | DSS_NO_ALLOCATE |
			     DSS_DIRECT_HDD);
}

/*
 * From where on the grains of a request, counted from its first chunk, are
 * not all here, one behind the other on the SSD and not being changed. In
 * whole chunks, but for the last. Under the lock.
 */
static unsigned int dss_span_end(struct dss_io *io)
{
	struct dss *d = io->d;
	sector_t sector = dss_slot_sector(d, io->slot);
	unsigned int class_id, grain = io->first;
	dss_slot_t slot = io->slot;
	struct dss_io one = { };

	while (dss_next_chunk(io, &one)) {
		if (dss_core_lookup(d->core, dss_to_oblock(one.oblock)) !=
		    slot || dss_slot_sector(d, slot) != sector ||
		    !dss_all(d, d->valid, slot, one.first, one.nr) ||
		    dss_conflict(d, &one, false))
			break;
		dss_core_slot_state(d->core, slot, NULL, &class_id);
		if (dss_hits_alone(d, class_id))
			break;
		grain += one.nr;
		sector += d->chunk_sectors;
		if (dss_from_slot(slot) + 1 == d->nr_slots)
			break;
		slot = dss_to_slot(dss_from_slot(slot) + 1);
	}
	return grain;
}

static void dss_span_begin(struct dss_io *io)
{
	struct dss *d = io->d;
	u32 slot = dss_from_slot(io->slot);
	u32 last = slot + (io->first + io->nr - 1U) / d->grains;

	d->last_request = jiffies;
	dss_core_run(d->core, io->class_id, dss_io_begin(io),
		     bio_sectors(io->bio));
	for (; slot <= last; slot++)
		dss_core_touch(d->core, dss_to_slot(slot), io->class_id,
			       false);
	io->flags |= DSS_IO_COUNTED;
	dss_hash(io, DSS_READ_SSD);
}

/* Several chunks that lie on the SSD in a row are read together. */
static enum dss_next dss_span_here(struct dss_io *io)
{
	struct dss *d = io->d;
	unsigned int end;

	if (dss_is_write(io) || dss_hits_alone(d, io->class_id))
		return DSS_NEXT_CUT;
	end = dss_span_end(io);
	if (end <= d->grains)
		return DSS_NEXT_CUT;
	dss_limit(io, end - io->first, true);
	dss_span_begin(io);
	dss_aim_ssd(io);
	return DSS_NEXT_SUBMIT;
}

/* Tells the core of a chunk's part; whether it belongs to a run. */
static bool dss_part_runs(const struct dss_io *io, const struct dss_io *one)
{
	sector_t begin = dss_part_begin(io, one->oblock);

	return dss_core_run(io->d->core, io->class_id, begin,
			    dss_part_end(io, one->oblock) - begin);
}

/* How a miss of the request is told to the core; -1: it is not. */
static int dss_miss_of(const struct dss_io *io)
{
	enum dss_global_mode mode;

	if (!dss_is_write(io))
		return 0;
	if (bio_op(io->bio) == REQ_OP_DISCARD)
		return -1;
	mode = dss_write_mode(io);
	if (mode >= DSS_GLOBAL_AROUND)
		return -1;
	return mode == DSS_GLOBAL_BACK ? DSS_MISS_DIRTY : 0;
}

/* Whether a chunk that a request is for has nothing to do with the SSD. */
static bool dss_is_past(const struct dss_io *io, const struct dss_io *one,
			int how)
{
	sector_t begin = dss_part_begin(io, one->oblock);
	struct dss *d = io->d;

	if (how >= 0 && dss_core_would_run(d->core, io->class_id, begin,
					   dss_part_end(io, one->oblock) -
					   begin))
		how |= DSS_MISS_SEQUENTIAL;
	return dss_core_lookup(d->core, dss_to_oblock(one->oblock)) ==
	       DSS_NO_SLOT && !dss_conflict(d, one, dss_is_write(io)) &&
	       !(dss_is_write(io) && dss_was_evicted(d, one->oblock)) &&
	       (how < 0 || dss_core_passes(d->core, io->class_id, how));
}

/* The core is told of a miss that passes, as if it were by itself. */
static void dss_tell_past(struct dss_io *io, const struct dss_io *one, int how)
{
	struct dss *d = io->d;
	struct dss_verdict verdict;
	bool run;

	if (bio_op(io->bio) == REQ_OP_DISCARD)
		return;
	run = dss_part_runs(io, one);
	if (how < 0)
		return;
	dss_core_miss(d->core, io->class_id,
		      how | (run ? DSS_MISS_SEQUENTIAL : 0), &verdict);
	if (verdict.want_clean)
		dss_kick_cleaner(d, 0);
}

/* How many grains, in whole chunks but for the last, pass the SSD. */
static unsigned int dss_past_grains(struct dss_io *io)
{
	int how = dss_miss_of(io);
	unsigned int grains = 0;
	struct dss_io one = { };

	while (dss_next_chunk(io, &one) && dss_is_past(io, &one, how)) {
		dss_tell_past(io, &one, how);
		grains += one.nr;
	}
	return grains;
}

/* A write of which the SSD gets nothing, perhaps after a commit. */
static enum dss_next dss_write_past(struct dss_io *io, bool commit)
{
	dss_to_hdd(io, DSS_WRITE_HDD);
	dss_group_ask(io);
	if (!commit)
		return dss_admit(io);
	dss_wait_commit(io, dss_issue);
	return DSS_NEXT_WAIT;
}

/* So are chunks read, written or discarded that the SSD has nothing of. */
static enum dss_next dss_span_past(struct dss_io *io)
{
	unsigned int grains;

	if (dss_is_write(io) && (dss_part_first(io) || dss_part_last(io)))
		return DSS_NEXT_CUT;
	grains = dss_past_grains(io);
	if (!grains)
		return DSS_NEXT_CUT;
	dss_limit(io, grains, true);
	io->d->last_request = jiffies;
	io->flags |= DSS_IO_COUNTED;
	if (!dss_is_write(io))
		return dss_read_hdd(io);
	if (bio_op(io->bio) == REQ_OP_DISCARD)
		return dss_to_hdd(io, DSS_DISCARD);
	return dss_write_past(io, false);
}

/* How many grains, in whole chunks but for the last, can be read at once. */
static unsigned int dss_missing_grains(struct dss_io *io)
{
	struct dss *d = io->d;
	unsigned int grains = 0;
	struct dss_io one = { };

	while (dss_next_chunk(io, &one)) {
		if (dss_core_lookup(d->core, dss_to_oblock(one.oblock)) !=
		    DSS_NO_SLOT || dss_conflict(d, &one, false))
			break;
		grains += one.nr;
	}
	return grains;
}

/* dss_widen() at both ends of several chunks of which nothing is here. */
static void dss_span_widen(struct dss_io *io, unsigned int last)
{
	struct dss *d = io->d;
	unsigned int window = min(d->grains, READ_ONCE(d->ahead_sectors) >>
				  d->grain_shift);
	struct dss_io one = { .oblock = io->oblock };
	u64 end;

	if (window < 2)
		return;
	one.first = rounddown(io->first, window);
	one.nr = io->first - one.first;
	if (one.nr && test_bit(0, io->here) && !dss_conflict(d, &one, false)) {
		io->first -= one.nr;
		io->nr += one.nr;
	}
	one.oblock += last;
	one.first = io->first + io->nr - last * d->grains;
	end = min_t(u64, roundup(one.first, window),
		    (d->origin_sectors - (one.oblock << d->chunk_shift)) >>
		    d->grain_shift);
	if (end <= one.first || !test_bit(last, io->here))
		return;
	one.nr = end - one.first;
	if (!dss_conflict(d, &one, false))
		io->nr += one.nr;
}

/* Chunks of which nothing is here are read at once, also if some pass. */
static enum dss_next dss_span_fill(struct dss_io *io)
{
	struct dss *d = io->d;
	struct dss_io one = { .d = d, .bio = io->bio,
			      .class_id = io->class_id };
	unsigned int grains = dss_missing_grains(io), chunk;

	if (grains <= d->grains - io->first)
		return DSS_NEXT_CUT;
	dss_limit(io, grains, true);
	d->last_request = jiffies;
	io->flags |= DSS_IO_COUNTED;
	dss_hash(io, DSS_FILL);
	for (chunk = 0; dss_next_chunk(io, &one); chunk++) {
		one.flags = dss_part_runs(io, &one) ? DSS_IO_RUN : 0;
		if (dss_allocate(&one, false))
			__set_bit(chunk, io->here);
	}
	if (bitmap_empty(io->here, chunk))
		return dss_read_hdd(io);
	dss_span_widen(io, chunk - 1);
	return DSS_NEXT_FILL;
}

/* The first chunk is not here. */
static enum dss_next dss_span_missing(struct dss_io *io)
{
	enum dss_next next = dss_span_past(io);

	return next == DSS_NEXT_CUT && !dss_is_write(io) ?
		dss_span_fill(io) : next;
}

/* How many grains, in whole chunks but for the last, can be doubled. */
static unsigned int dss_through_grains(struct dss_io *io)
{
	struct dss *d = io->d;
	unsigned int grains = 0, class_id;
	struct dss_io one = { };

	while (dss_next_chunk(io, &one)) {
		one.slot = dss_core_lookup(d->core, dss_to_oblock(one.oblock));
		if (one.slot != DSS_NO_SLOT) {
			dss_core_slot_state(d->core, one.slot, NULL,
					    &class_id);
			if (dss_hits_alone(d, class_id) ||
			    dss_any(d, d->dirty, one.slot, one.first, one.nr))
				break;
		}
		grains += one.nr;
	}
	return grains;
}

/*
 * One chunk of a doubled write: it gets a slot, or has one, or passes.
 *
 * Return: whether a commit has to come before the write.
 */
static bool dss_through_one(struct dss_io *io, struct dss_io *one,
			    unsigned int chunk)
{
	struct dss *d = io->d;
	bool commit = dss_was_evicted(d, one->oblock);

	one->slot = dss_core_lookup(d->core, dss_to_oblock(one->oblock));
	one->flags = dss_part_runs(io, one) ? DSS_IO_RUN : 0;
	if (one->slot != DSS_NO_SLOT)
		dss_count_hit(one);
	else if (!dss_allocate(one, false))
		return commit;
	__set_bit(chunk, io->here);
	return dss_intend(one, true) || commit;
}

/*
 * Chunks that both devices get are one write of the HDD: cut, they would be a
 * write each, and a reader might wait for all of them.
 */
static enum dss_next dss_span_through(struct dss_io *io, bool in_map)
{
	struct dss *d = io->d;
	struct dss_io one = { .d = d, .bio = io->bio,
			      .class_id = io->class_id };
	unsigned int grains, chunk;
	bool commit = false;

	if (dss_part_first(io) || dss_part_last(io) ||
	    dss_hits_alone(d, io->class_id))
		return DSS_NEXT_CUT;
	if (d->nr_after)
		dss_overtake(d, io);
	grains = dss_through_grains(io);
	if (grains <= d->grains - io->first || (!in_map && grains < io->nr))
		return DSS_NEXT_CUT;
	dss_limit(io, grains, true);
	if (dss_conflict(d, io, true)) {
		dss_defer(io);
		return DSS_NEXT_WAIT;
	}
	d->last_request = jiffies;
	io->flags |= DSS_IO_COUNTED;
	/* First: what it needs a slot for must not take that of its own. */
	dss_to_hdd(io, DSS_WRITE_BOTH);
	for (chunk = 0; dss_next_chunk(io, &one); chunk++)
		commit |= dss_through_one(io, &one, chunk);
	if (bitmap_empty(io->here, chunk))
		return dss_write_past(io, commit);
	if (!commit)
		return DSS_NEXT_BOTH;
	dss_wait_commit(io, dss_issue);
	return DSS_NEXT_WAIT;
}

/*
 * A read of several chunks that are all here, one behind the other, is one
 * read of the SSD: cut at every chunk, it would be one for each. So is a
 * read of chunks of which the SSD has nothing one of the HDD, a write of
 * which it gets nothing, and one that both get. If only its beginning is so,
 * that is, and the rest is looked at again.
 *
 * In the worker, where only a doubled write comes back to, it is all or
 * nothing.
 *
 * Return: DSS_NEXT_CUT, and nothing has happened; or what follows.
 */
enum dss_next dss_span(struct dss_io *io, bool in_map)
{
	enum dss_next next = DSS_NEXT_CUT;
	enum req_op op = bio_op(io->bio);
	struct dss *d = io->d;
	unsigned long irq;

	if (op != REQ_OP_READ && op != REQ_OP_WRITE && op != REQ_OP_DISCARD)
		return next;
	dss_place(io);
	spin_lock_irqsave(&d->lock, irq);
	if (d->health == DSS_OK && d->mode != DSS_GLOBAL_PASS &&
	    !d->suspended && !d->shrinking) {
		io->slot = dss_core_lookup(d->core, dss_to_oblock(io->oblock));
		if (op == REQ_OP_WRITE &&
		    dss_asked_mode(io) == DSS_GLOBAL_THROUGH)
			next = dss_span_through(io, in_map);
		else if (in_map && io->slot == DSS_NO_SLOT)
			next = dss_span_missing(io);
		else if (in_map)
			next = dss_span_here(io);
	}
	spin_unlock_irqrestore(&d->lock, irq);
	return next;
}
