// SPDX-License-Identifier: GPL-2.0
/*
 * The contents of slots: every change of a grain goes through here, so that
 * the planes, the core's dirty marks and the list of table blocks to write
 * always agree. Call all of it with d->lock held.
 */
#include <linux/hash.h>

#include "dss_slots.h"

void dss_touch_region(struct dss *d, dss_slot_t slot)
	__must_hold(&d->lock)
{
	lockdep_assert_held(&d->lock);
	if (!__test_and_set_bit(dss_region_of(d, slot), d->pending))
		d->nr_pending++;
}

void dss_set_valid(struct dss *d, dss_slot_t slot, unsigned int first,
		   unsigned int nr)
	__must_hold(&d->lock)
{
	if (dss_all(d, d->valid, slot, first, nr))
		return;
	dss_plane_set(d->valid, dss_bit(d, slot, first), nr);
	d->ssd_named = true;
	dss_touch_region(d, slot);
}

static unsigned int dss_weight(const struct dss *d, dss_slot_t slot,
			       unsigned int first, unsigned int nr)
{
	unsigned long bit = dss_bit(d, slot, first);
	unsigned int count = 0;

	while (nr--)
		count += test_bit(bit++, d->dirty);
	return count;
}

void dss_set_dirty(struct dss *d, dss_slot_t slot, unsigned int first,
		   unsigned int nr)
	__must_hold(&d->lock)
{
	if (dss_all(d, d->dirty, slot, first, nr))
		return;
	d->dirty_grains += nr - dss_weight(d, slot, first, nr);
	dss_plane_set(d->dirty, dss_bit(d, slot, first), nr);
	dss_touch_region(d, slot);
}

/* Tells the core, too, unless the cleaner has the slot and will do so. */
void dss_clear_dirty(struct dss *d, dss_slot_t slot, unsigned int first,
		     unsigned int nr)
	__must_hold(&d->lock)
{
	unsigned int state;

	if (!dss_any(d, d->dirty, slot, first, nr))
		return;
	d->dirty_grains -= dss_weight(d, slot, first, nr);
	dss_plane_clear(d->dirty, dss_bit(d, slot, first), nr);
	dss_touch_region(d, slot);
	if (d->health == DSS_REFUSING && !d->dirty_grains)
		d->health = DSS_GIVEN_UP;
	if (dss_any(d, d->dirty, slot, 0, d->grains))
		return;
	state = dss_core_slot_state(d->core, slot, NULL, NULL);
	if ((state & DSS_SLOT_DIRTY) && !(state & DSS_SLOT_BUSY))
		dss_core_set_clean(d->core, slot);
}

void dss_set_unsettled(struct dss *d, dss_slot_t slot, unsigned int first,
		       unsigned int nr)
	__must_hold(&d->lock)
{
	u32 region = dss_region_of(d, slot);

	lockdep_assert_held(&d->lock);
	__set_bit(region, d->unsettled_regions);
	__set_bit(region, d->unsettled_new);
	if (dss_all(d, d->unsettled, slot, first, nr))
		return;
	dss_plane_set(d->unsettled, dss_bit(d, slot, first), nr);
	dss_touch_region(d, slot);
}

/*
 * The grains' bytes on the SSD become void. Unsettled grains lose their second
 * copy, so the origin is flushed before the table says so.
 *
 * Return: whether any was valid.
 */
bool dss_invalidate(struct dss *d, dss_slot_t slot, unsigned int first,
		    unsigned int nr)
	__must_hold(&d->lock)
{
	unsigned long bit = dss_bit(d, slot, first);

	if (!dss_any(d, d->valid, slot, first, nr))
		return false;
	if (dss_any(d, d->unsettled, slot, first, nr)) {
		d->want_hdd_flush = true;
		dss_plane_clear(d->unsettled, bit, nr);
	}
	dss_clear_dirty(d, slot, first, nr);
	dss_plane_clear(d->valid, bit, nr);
	dss_touch_region(d, slot);
	return true;
}

/* The same for all that a write gives the SSD. */
void dss_invalidate_parts(const struct dss_io *io)
	__must_hold(&io->d->lock)
{
	unsigned int chunk = 0;
	struct dss_io part;

	while (dss_next_part(io, &chunk, &part))
		dss_invalidate(io->d, part.slot, part.first, part.nr);
}

/*
 * Chunks that left their slot while the table may still name them. A
 * Bloom filter with one hash: a false yes costs one commit.
 */
static u32 dss_chunk_hash(u64 oblock)
{
	return hash_64(oblock, ilog2(DSS_HASH_BITS));
}

bool dss_was_evicted(const struct dss *d, u64 oblock)
	__must_hold(&d->lock)
{
	u32 hash = dss_chunk_hash(oblock);

	lockdep_assert_held(&d->lock);
	return test_bit(hash, d->evicted) || test_bit(hash, d->evicted_old);
}

/* The same since the last commit began. */
bool dss_has_left(const struct dss *d, u64 oblock)
	__must_hold(&d->lock)
{
	lockdep_assert_held(&d->lock);
	return test_bit(dss_chunk_hash(oblock), d->evicted);
}

/*
 * The origin was given bytes of a chunk, not durably. The same filter: a
 * false yes of dss_is_volatile() costs a flush.
 */
void dss_wrote_hdd(struct dss *d, u64 oblock)
	__must_hold(&d->lock)
{
	lockdep_assert_held(&d->lock);
	d->hdd_wrote = true;
	__set_bit(dss_chunk_hash(oblock), d->volatile_new);
}

/* The same for all chunks of a write. */
void dss_wrote_chunks(const struct dss_io *io)
	__must_hold(&io->d->lock)
{
	unsigned int more = (io->first + io->nr - 1U) / io->d->grains;

	do {
		dss_wrote_hdd(io->d, io->oblock + more);
	} while (more--);
}

bool dss_is_volatile(const struct dss *d, u64 oblock)
	__must_hold(&d->lock)
{
	u32 hash = dss_chunk_hash(oblock);

	lockdep_assert_held(&d->lock);
	return test_bit(hash, d->volatile_new) ||
	       test_bit(hash, d->volatile_old);
}

bool dss_is_stale(const struct dss *d, dss_slot_t slot)
	__must_hold(&d->lock)
{
	u32 number = dss_from_slot(slot);

	lockdep_assert_held(&d->lock);
	return test_bit(number, d->stale) || test_bit(number, d->stale_old);
}

/* The chunk leaves its slot; the core is told by the caller. */
void dss_forget(struct dss *d, dss_slot_t slot, u64 oblock)
	__must_hold(&d->lock)
{
	dss_invalidate(d, slot, 0, d->grains);
	__set_bit(dss_from_slot(slot), d->stale);
	__set_bit(dss_chunk_hash(oblock), d->evicted);
	dss_touch_region(d, slot);
}

void dss_evict(struct dss *d, dss_slot_t slot, enum dss_evict reason)
	__must_hold(&d->lock)
{
	dss_oblock_t oblock;

	dss_core_slot_state(d->core, slot, &oblock, NULL);
	dss_forget(d, slot, dss_from_oblock(oblock));
	dss_core_evict(d->core, slot, reason);
}

/*
 * The origin was flushed: grains that were unsettled before it began, and are
 * not being written now, can be settled. This finds out which are not.
 */
void dss_settle_begin(struct dss *d)
	__must_hold(&d->lock)
{
	struct dss_io *io, part;
	unsigned int i, chunk;

	lockdep_assert_held(&d->lock);
	for (i = 0; i < DSS_BUCKETS; i++)
		hlist_for_each_entry(io, &d->inflight[i], node) {
			if (io->kind != DSS_WRITE_BOTH)
				continue;
			chunk = 0;
			while (dss_next_part(io, &chunk, &part))
				__set_bit(dss_region_of(d, part.slot),
					  d->unsettled_new);
		}
}

/*
 * The others are settled, from region @from on and a few at a time: what is
 * written meanwhile marks its region as one that is not.
 *
 * Return: where to go on.
 */
u32 dss_settle(struct dss *d, u32 from)
	__must_hold(&d->lock)
{
	u32 region, first, nr, most = DSS_SETTLE_REGIONS;

	lockdep_assert_held(&d->lock);
	for (region = from; most--; region++) {
		region = find_next_andnot_bit(d->unsettled_regions,
					      d->unsettled_new,
					      d->nr_regions, region);
		if (region >= d->nr_regions)
			break;
		nr = dss_region_slots(d, region, &first);
		dss_plane_clear(d->unsettled,
				dss_bit(d, dss_to_slot(first), 0),
				nr * d->grains);
		__clear_bit(region, d->unsettled_regions);
		dss_touch_region(d, dss_to_slot(first));
	}
	return region;
}
