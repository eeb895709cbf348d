// SPDX-License-Identifier: GPL-2.0
/*
 * The picture of the table: what it is to say of the slots, drawn into the pages
 * of the commit. Interrupts are off meanwhile, so it is drawn a few regions at a
 * time. A chunk that left one region after that was drawn must not come into
 * another before the end: two regions of one commit would name it, and no start
 * could tell which counts. Requests for such chunks wait (dss_decide.c).
 *
 * Call all of it with d->lock held.
 */
#include "dss_table.h"

#if BITS_PER_LONG != 64
#error "dm-dss needs a 64-bit kernel"
#endif

/* Up to 64 bits of a plane, the first one lowest. */
static u64 dss_bits(const unsigned long *plane, unsigned long bit,
		    unsigned int nr)
{
	unsigned int shift = bit % BITS_PER_LONG;
	u64 bits = plane[BIT_WORD(bit)] >> shift;

	if (shift + nr > BITS_PER_LONG)
		bits |= (u64)plane[BIT_WORD(bit) + 1] << (64 - shift);
	return nr == 64 ? bits : bits & ((1ULL << nr) - 1);
}

static void dss_put_bits(u8 *to, u64 bits, unsigned int nr)
{
	unsigned int i;

	for (i = 0; i < DIV_ROUND_UP(nr, 8); i++)
		to[i] = bits >> (8 * i);
}

static void dss_draw_record(struct dss *d, dss_slot_t slot,
			    struct dss_record *record)
	__must_hold(&d->lock)
{
	unsigned int bytes = DIV_ROUND_UP(d->grains, 8);
	unsigned int class_id, grain, nr;
	dss_oblock_t oblock;
	unsigned long bit;
	u64 valid;

	if (!(dss_core_slot_state(d->core, slot, &oblock, &class_id) &
	      DSS_SLOT_USED)) {
		record->oblock = cpu_to_le64(DSS_NO_OBLOCK);
		return;
	}
	record->oblock = cpu_to_le64(dss_from_oblock(oblock));
	record->class_id = class_id;
	record->recency = cpu_to_le32(d->recency ?
				      d->recency[dss_from_slot(slot)] :
				      (u32)d->commit_seq);
	for (grain = 0; grain < d->grains; grain += 64) {
		nr = min(64U, d->grains - grain);
		bit = dss_bit(d, slot, grain);
		valid = dss_bits(d->valid, bit, nr);
		dss_put_bits(record->bits + grain / 8, valid, nr);
		dss_put_bits(record->bits + bytes + grain / 8, valid &
			     (dss_bits(d->dirty, bit, nr) |
			      dss_bits(d->unsettled, bit, nr)), nr);
	}
}

static void dss_draw_region(struct dss *d, u32 region, void *block)
	__must_hold(&d->lock)
{
	struct dss_table_head *head = block;
	struct dss_record *record = block + sizeof(*head);
	u32 first, nr, i;

	memset(block, 0, DSS_BLOCK_BYTES);
	nr = dss_region_slots(d, region, &first);
	head->magic = cpu_to_le32(DSS_TABLE_MAGIC);
	head->generation = cpu_to_le64(d->generation);
	head->seq = cpu_to_le64(d->commit_seq);
	head->region = cpu_to_le32(region);
	head->nr_records = cpu_to_le16(nr);
	head->record_bytes = cpu_to_le16(d->record_bytes);
	for (i = 0; i < nr; i++)
		dss_draw_record(d, dss_to_slot(first + i),
				block + sizeof(*head) + i * d->record_bytes);
	record->head_check = dss_head_check(head);
}

/* The region's stale slots wait for this commit, no longer for the next. */
static void dss_hand_over_stale(struct dss *d, u32 region)
{
	u32 first, nr, slot;

	nr = dss_region_slots(d, region, &first);
	for (slot = first; slot < first + nr; slot++)
		if (__test_and_clear_bit(slot, d->stale))
			__set_bit(slot, d->stale_old);
}

/* The next region to draw, from that one on. */
static u32 dss_next_region(const struct dss *d, u32 region, bool twins)
{
	return twins ? find_next_andnot_bit(d->lagging, d->pending,
					    d->nr_regions, region) :
		find_next_bit(d->pending, d->nr_regions, region);
}

void dss_picture_begin(struct dss *d)
	__must_hold(&d->lock)
{
	d->commit_seq++;
	d->picturing = true;
}

/**
 * dss_picture() - draw a few regions
 * @nr: how many are drawn; d->lock may be let go between two calls
 *
 * Return: whether there may be more.
 */
bool dss_picture(struct dss *d, u32 *cursor, bool twins, u32 *nr)
	__must_hold(&d->lock)
{
	struct dss_commit *commit = &d->commit;
	u32 end = min(*nr + DSS_PICTURE_REGIONS, DSS_COMMIT_REGIONS);
	u32 region;

	for (region = dss_next_region(d, *cursor, twins);
	     region < d->nr_regions && *nr < end;
	     region = dss_next_region(d, region + 1, twins)) {
		if (twins) {
			__clear_bit(region, d->lagging);
		} else {
			__clear_bit(region, d->pending);
			d->nr_pending--;
			__set_bit(region, d->lagging);
		}
		__set_bit(region, d->writing);
		dss_hand_over_stale(d, region);
		dss_draw_region(d, region, page_address(commit->pages[*nr]));
		commit->regions[(*nr)++] = region;
		*cursor = region + 1;
	}
	return *nr == end && end < DSS_COMMIT_REGIONS;
}

/* Requests that waited for the end of it are judged again. */
void dss_picture_end(struct dss *d)
	__must_hold(&d->lock)
{
	d->picturing = false;
	if (list_empty(&d->unpictured))
		return;
	list_splice_tail_init(&d->unpictured, &d->ready);
	queue_work(d->wq, &d->work);
}

/*
 * Up to which seq every region's last change is in both copies. Call it with
 * meta_mutex held: only commits change what it reads.
 */
u64 dss_twin_seq(const struct dss *d)
{
	u64 seq = d->commit_seq;
	u32 region;

	for_each_set_bit(region, d->lagging, d->nr_regions)
		seq = min(seq, d->region_seq[region] - 1);
	return seq;
}
