/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Where things are: slots, regions and table blocks on the SSD, and the bits
 * of grains in the planes. Arithmetic only.
 *
 * Context: any. The planes and the segments change under d->lock.
 */
#ifndef DSS_LAYOUT_H
#define DSS_LAYOUT_H

#include <linux/bitmap.h>
#include <linux/crc32c.h>

#include "dss_state.h"

/* No request reaches over a multiple of that. */
static inline sector_t dss_span_sectors(const struct dss *d)
{
	return max_t(sector_t, d->chunk_sectors, DSS_SPAN_SECTORS);
}

static inline sector_t dss_slot_sector(const struct dss *d, dss_slot_t slot)
{
	u32 number = dss_from_slot(slot);
	const struct dss_segment *segment = d->segments;

	while (number >= segment->first_slot + segment->nr_slots)
		segment++;
	return segment->data_sector +
	       ((sector_t)(number - segment->first_slot) << d->chunk_shift);
}

static inline u32 dss_region_of(const struct dss *d, dss_slot_t slot)
{
	u32 number = dss_from_slot(slot);
	const struct dss_segment *segment = d->segments;

	while (number >= segment->first_slot + segment->nr_slots)
		segment++;
	return segment->first_region +
	       (number - segment->first_slot) / d->per_region;
}

/* The slots of a region: the first, and how many. */
static inline u32 dss_region_slots(const struct dss *d, u32 region,
				   u32 *first)
{
	const struct dss_segment *segment = d->segments;
	u32 offset;

	while (region >= segment->first_region + segment->nr_regions)
		segment++;
	offset = (region - segment->first_region) * d->per_region;
	*first = segment->first_slot + offset;
	return min(d->per_region, segment->nr_slots - offset);
}

static inline sector_t dss_region_sector(const struct dss *d, u32 region,
					 bool copy)
{
	const struct dss_segment *segment = d->segments;

	while (region >= segment->first_region + segment->nr_regions)
		segment++;
	return segment->table_sector +
	       (sector_t)(region - segment->first_region) *
	       2 * DSS_BLOCK_SECTORS + (copy ? DSS_BLOCK_SECTORS : 0);
}

/* See dss_record.head_check. */
static inline __le16 dss_head_check(const struct dss_table_head *head)
{
	return cpu_to_le16(crc32c(~0, &head->magic, sizeof(*head) -
				  sizeof(head->csum)));
}

/* ---- planes: one bit a grain, flat over all slots ---- */

static inline unsigned long dss_bit(const struct dss *d, dss_slot_t slot,
				    unsigned int grain)
{
	return (unsigned long)dss_from_slot(slot) * d->grains + grain;
}

static inline bool dss_grain(const struct dss *d, const unsigned long *plane,
			     dss_slot_t slot, unsigned int grain)
{
	return test_bit(dss_bit(d, slot, grain), plane);
}

static inline void dss_plane_set(unsigned long *plane, unsigned long bit,
				 unsigned int nr)
{
	bitmap_set(plane + BIT_WORD(bit), bit % BITS_PER_LONG, nr);
}

static inline void dss_plane_clear(unsigned long *plane, unsigned long bit,
				   unsigned int nr)
{
	bitmap_clear(plane + BIT_WORD(bit), bit % BITS_PER_LONG, nr);
}

static inline bool dss_any(const struct dss *d, const unsigned long *plane,
			   dss_slot_t slot, unsigned int first,
			   unsigned int nr)
{
	unsigned long begin = dss_bit(d, slot, first);

	return find_next_bit(plane, begin + nr, begin) < begin + nr;
}

static inline bool dss_all(const struct dss *d, const unsigned long *plane,
			   dss_slot_t slot, unsigned int first,
			   unsigned int nr)
{
	unsigned long begin = dss_bit(d, slot, first);

	return find_next_zero_bit(plane, begin + nr, begin) >= begin + nr;
}

/* How many grains from @first on are like it in the plane, at most @nr. */
static inline unsigned int dss_alike(const struct dss *d,
				     const unsigned long *plane,
				     dss_slot_t slot, unsigned int first,
				     unsigned int nr)
{
	unsigned long begin = dss_bit(d, slot, first);
	unsigned long end;

	if (test_bit(begin, plane))
		end = find_next_zero_bit(plane, begin + nr, begin);
	else
		end = find_next_bit(plane, begin + nr, begin);
	return min_t(unsigned long, end - begin, nr);
}

#endif /* DSS_LAYOUT_H */
