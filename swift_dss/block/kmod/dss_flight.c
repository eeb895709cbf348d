// SPDX-License-Identifier: GPL-2.0
/*
 * Requests in flight: each request and each move holds its grains from its
 * decision to its end, and others check here whether they must wait. None
 * crosses a multiple of d->span_shift chunks, because the mapper cuts larger
 * ones there; so all that may overlap are in one bucket. Call all of it with
 * d->lock held.
 */
#include <linux/hash.h>

#include "dss_slots.h"

static u32 dss_bucket_of(const struct dss *d, u64 oblock)
{
	return hash_64(oblock >> d->span_shift, ilog2(DSS_BUCKETS));
}

static struct hlist_head *dss_bucket(struct dss *d, u64 oblock)
{
	return &d->inflight[dss_bucket_of(d, oblock)];
}

/* Counted from the origin's first one. */
static u64 dss_first_grain(const struct dss *d, const struct dss_io *io)
{
	return io->oblock * d->grains + io->first;
}

static bool dss_overlap(const struct dss *d, const struct dss_io *a,
			const struct dss_io *b)
{
	u64 first_a = dss_first_grain(d, a);
	u64 first_b = dss_first_grain(d, b);

	return first_a < first_b + b->nr && first_b < first_a + a->nr;
}

static u64 dss_last_oblock(const struct dss_io *io)
{
	return io->oblock + (io->first + io->nr - 1U) / io->d->grains;
}

static bool dss_has_chunk(const struct dss_io *io, u64 oblock)
{
	return oblock >= io->oblock && oblock <= dss_last_oblock(io);
}

void dss_hash(struct dss_io *io, enum dss_kind kind)
	__must_hold(&io->d->lock)
{
	lockdep_assert_held(&io->d->lock);
	io->kind = kind;
	if (io->flags & DSS_IO_HASHED)
		return;
	io->flags |= DSS_IO_HASHED;
	io->d->nr_inflight++;
	hlist_add_head(&io->node, dss_bucket(io->d, io->oblock));
}

/* Wait until another request gives up a chunk. */
void dss_defer(struct dss_io *io)
	__must_hold(&io->d->lock)
{
	lockdep_assert_held(&io->d->lock);
	list_add_tail(&io->list,
		      &io->d->deferred[dss_bucket_of(io->d, io->oblock)]);
	io->d->nr_waiting++;
	io->d->nr_deferred++;
}

/* Gives the range up, and lets those that wait for it look again. */
void dss_unhash(struct dss_io *io)
	__must_hold(&io->d->lock)
{
	struct dss *d = io->d;
	struct dss_io *other, *next;
	struct list_head *waiting;

	lockdep_assert_held(&d->lock);
	if (!(io->flags & DSS_IO_HASHED))
		return;
	io->flags &= ~DSS_IO_HASHED;
	d->nr_inflight--;
	hlist_del(&io->node);
	waiting = &d->deferred[dss_bucket_of(d, io->oblock)];
	list_for_each_entry_safe(other, next, waiting, list) {
		if (other->oblock > dss_last_oblock(io) ||
		    io->oblock > dss_last_oblock(other))
			continue;
		list_del(&other->list);
		d->nr_waiting--;
		dss_again(other);
	}
}

static bool dss_stops(const struct dss_io *other, bool writes_hdd)
{
	switch (other->kind) {
	case DSS_READ_SSD:
	case DSS_READ_HDD:
		return false;
	case DSS_CLEAN:
		return writes_hdd;
	default:
		return true;
	}
}

/*
 * Whether @io has to wait for another request. Reads under way stop none:
 * their chunk cannot leave its slot before they end. The cleaner stops only
 * writes of the origin; for others it is told to look again.
 */
bool dss_conflict(struct dss *d, const struct dss_io *io, bool writes_hdd)
	__must_hold(&d->lock)
{
	struct dss_io *other;

	lockdep_assert_held(&d->lock);
	hlist_for_each_entry(other, dss_bucket(d, io->oblock), node)
		if (dss_overlap(d, other, io) && dss_stops(other, writes_hdd))
			return true;
	return false;
}

/* Whether a request other than a read is there; ignores those with @flag. */
static bool dss_busy_but(struct dss *d, const struct dss_io *io, u16 flag)
{
	struct dss_io *other;

	lockdep_assert_held(&d->lock);
	hlist_for_each_entry(other, dss_bucket(d, io->oblock), node)
		if (dss_overlap(d, other, io) && other->kind != DSS_READ_SSD &&
		    other->kind != DSS_READ_HDD && !(other->flags & flag))
			return true;
	return false;
}

/* Whether a request that changes bytes is under way in the range. */
bool dss_range_busy(struct dss *d, const struct dss_io *io)
	__must_hold(&d->lock)
{
	return dss_busy_but(d, io, 0);
}

/*
 * A write does not wait for speculative fills: while such a fill is being
 * read, it is given up and never reaches the SSD.
 */
void dss_overtake(struct dss *d, const struct dss_io *io)
	__must_hold(&d->lock)
{
	struct dss_io *other;
	struct hlist_node *next;

	hlist_for_each_entry_safe(other, next, dss_bucket(d, io->oblock), node)
		if ((other->flags & DSS_IO_READING) && dss_overlap(d, other, io))
			dss_unhash(other);
}

/*
 * Neither does a read: the origin has the bytes, and may be read twice.
 *
 * Return: whether only speculative fills are in the way.
 */
bool dss_only_behind(struct dss *d, const struct dss_io *io)
	__must_hold(&d->lock)
{
	return io->slot != DSS_NO_SLOT &&
	       !dss_any(d, d->valid, io->slot, io->first, io->nr) &&
	       !dss_busy_but(d, io, DSS_IO_READING);
}

/* How many leading grains of a read need not wait. */
unsigned int dss_free_grains(struct dss *d, const struct dss_io *io)
	__must_hold(&d->lock)
{
	u64 first = dss_first_grain(d, io), end = first + io->nr;
	struct dss_io *other;

	hlist_for_each_entry(other, dss_bucket(d, io->oblock), node)
		if (dss_overlap(d, other, io) && dss_stops(other, false))
			end = min(end, max(first, dss_first_grain(d, other)));
	return end - first;
}

/*
 * Least of all does a read wait for a fill that has its bytes already, and
 * only has to put them on the SSD.
 *
 * Return: the fill that has the first grain, and in @nr how many it has; or
 * NULL.
 */
struct dss_io *dss_filled(struct dss *d, const struct dss_io *io,
			  unsigned int *nr)
	__must_hold(&d->lock)
{
	u64 first = dss_first_grain(d, io), begin;
	struct dss_io *other;

	hlist_for_each_entry(other, dss_bucket(d, io->oblock), node) {
		begin = dss_first_grain(d, other);
		if (!(other->flags & DSS_IO_FILLED) || first < begin ||
		    first >= begin + other->nr)
			continue;
		*nr = min_t(u64, io->nr, begin + other->nr - first);
		return other;
	}
	return NULL;
}

/* The cleaner's copy of this range may be older than these bytes. */
void dss_tell_cleaner(struct dss_io *io)
	__must_hold(&io->d->lock)
{
	struct dss_io *other;

	hlist_for_each_entry(other, dss_bucket(io->d, io->oblock), node)
		if (other->kind == DSS_CLEAN &&
		    dss_overlap(io->d, other, io))
			other->flags |= DSS_IO_AGAIN;
}

bool dss_in_flight(struct dss *d, u64 oblock)
	__must_hold(&d->lock)
{
	struct dss_io *io;

	lockdep_assert_held(&d->lock);
	hlist_for_each_entry(io, dss_bucket(d, oblock), node)
		if (dss_has_chunk(io, oblock))
			return true;
	return false;
}

/**
 * dss_next_chunk() - the chunks of a request, one after the other
 * @one: the chunk and the request's grains in it; none in it at first
 *
 * Return: whether there was one more.
 */
bool dss_next_chunk(const struct dss_io *io, struct dss_io *one)
{
	unsigned int grains = io->d->grains, done = 0;

	if (one->nr) {
		one->oblock++;
		one->first = 0;
		done = (one->oblock - io->oblock) * grains - io->first;
	} else {
		one->oblock = io->oblock;
		one->first = io->first;
	}
	if (done >= io->nr)
		return false;
	one->nr = min(io->nr - done, grains - one->first);
	return true;
}

/**
 * dss_next_part() - a write's parts for the SSD, one chunk after the other
 * @chunk: where to look, counted from the write's first chunk: 0 at first,
 *	then behind the last part
 * @part: its chunk, slot and grains
 *
 * A chunk keeps its slot as long as the write holds its range.
 *
 * Return: whether there was one more.
 */
bool dss_next_part(const struct dss_io *io, unsigned int *chunk,
		   struct dss_io *part)
	__must_hold(&io->d->lock)
{
	struct dss *d = io->d;
	unsigned int last = dss_last_oblock(io) - io->oblock, end;

	lockdep_assert_held(&d->lock);
	if (last)
		*chunk = find_next_bit(io->here, last + 1, *chunk);
	if (*chunk > last)
		return false;
	part->d = d;
	part->bio = io->bio;
	part->class_id = io->class_id;
	part->oblock = io->oblock + *chunk;
	part->slot = last ?
		dss_core_lookup(d->core, dss_to_oblock(part->oblock)) :
		io->slot;
	part->first = *chunk ? 0 : io->first;
	end = *chunk < last ? d->grains : io->first + io->nr - last * d->grains;
	part->nr = end - part->first;
	++*chunk;
	return true;
}
