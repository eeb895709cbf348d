// SPDX-License-Identifier: GPL-2.0
/*
 * Reading the table back: of each region the copy that counts, what a
 * damaged copy may cost, and which chunk is where. dss_format.h has the
 * format.
 *
 * Context: control; no request is there yet.
 */
#include <linux/sort.h>
#include <linux/vmalloc.h>

#include "dss_table.h"

#define DSS_LOAD_REGIONS 64
#define DSS_LOAD_PAGES (2 * DSS_LOAD_REGIONS)

/* A record that was read back. */
struct dss_found {
	u64 oblock;
	u32 slot;
	u32 recency;
	u8 class_id;
	bool dirty;
};

struct dss_load {
	struct dss *d;
	struct page *pages[DSS_LOAD_PAGES];
	struct dss_found *found;
	u32 nr_found;
	bool damaged;		/* nothing else is there in its place */
	u64 least_lost;		/* seq of damaged copies that may count */
	bool illegible;		/* such a copy does not say its seq */
	bool in_order;
};

static void dss_load_bits(struct dss *d, u32 slot, const u8 *bits,
			  struct dss_found *found)
{
	unsigned int bytes = DIV_ROUND_UP(d->grains, 8);
	unsigned int grain;

	for (grain = 0; grain < d->grains; grain++) {
		if (!(bits[grain / 8] & 1 << grain % 8))
			continue;
		__set_bit(dss_bit(d, dss_to_slot(slot), grain), d->valid);
		if (!(bits[bytes + grain / 8] & 1 << grain % 8))
			continue;
		__set_bit(dss_bit(d, dss_to_slot(slot), grain), d->dirty);
		d->dirty_grains++;
		found->dirty = true;
	}
}

static int dss_load_region(struct dss_load *load, u32 region,
			   const struct dss_table_head *head)
{
	struct dss *d = load->d;
	u32 first, nr, i;

	nr = dss_region_slots(d, region, &first);
	if (le16_to_cpu(head->nr_records) != nr)
		return -EILSEQ;
	for (i = 0; i < nr; i++) {
		const struct dss_record *record = (const void *)(head + 1) +
						  i * d->record_bytes;
		struct dss_found *found = &load->found[load->nr_found];

		if (le64_to_cpu(record->oblock) == DSS_NO_OBLOCK)
			continue;
		if (record->class_id >= DSS_CLASSES)
			return -EILSEQ;
		found->oblock = le64_to_cpu(record->oblock);
		found->slot = first + i;
		found->recency = le32_to_cpu(record->recency);
		found->class_id = record->class_id;
		found->dirty = false;
		dss_load_bits(d, first + i, record->bits, found);
		if (load->nr_found && found->recency < found[-1].recency)
			load->in_order = false;
		load->nr_found++;
	}
	return 0;
}

/* The seq that a head says it has; 0 if it is not one of ours. */
static u64 dss_head_seq(const struct dss *d, const struct dss_table_head *head,
			u32 region)
{
	if (le32_to_cpu(head->magic) != DSS_TABLE_MAGIC ||
	    le64_to_cpu(head->generation) != d->generation ||
	    le32_to_cpu(head->region) != region ||
	    le16_to_cpu(head->record_bytes) != d->record_bytes)
		return 0;
	return le64_to_cpu(head->seq);
}

/* That of a block that is whole. */
static u64 dss_block_seq(const struct dss *d, const void *block, u32 region)
{
	const struct dss_table_head *head = block;

	return le32_to_cpu(head->csum) == dss_crc(head) ?
		dss_head_seq(d, head, region) : 0;
}

/* That of one that is not, if at least its head is. */
static u64 dss_claimed_seq(const struct dss *d, const void *block, u32 region)
{
	const struct dss_table_head *head = block;
	const struct dss_record *record = block + sizeof(*head);

	return record->head_check == dss_head_check(head) ?
		dss_head_seq(d, head, region) : 0;
}

/*
 * A copy is damaged; @seq is that of the other copy, 0 if that is empty. If
 * the damaged copy was the older one or the twin of the other, nothing is
 * lost. If not, the crash may have cut it off; that is judged when the other
 * regions are known, because only the very last commit can be cut off.
 */
static void dss_lost_copy(struct dss_load *load, u32 region,
			  const void *block, u64 seq)
{
	struct dss *d = load->d;
	u64 claimed = dss_claimed_seq(d, block, region);

	DMWARN("a copy of table block %u is damaged", region);
	if (!seq && (!claimed || claimed <= d->twin_seq))
		load->damaged = true;
	else if (!claimed)
		load->illegible = true;
	else if (claimed > seq && claimed > d->twin_seq)
		load->least_lost = min(load->least_lost, claimed);
}

/* Once all regions are known: whether the lost copy may have counted. */
static bool dss_lost_counts(const struct dss_load *load)
{
	const struct dss *d = load->d;

	return load->damaged || load->least_lost < d->commit_seq ||
	       (load->illegible && d->commit_seq > d->twin_seq);
}

/* Whether two copies tell the same, but for the order of use. */
static bool dss_are_twins(const struct dss *d, u32 region, const void *a,
			  const void *b)
{
	u32 i, first, nr = dss_region_slots(d, region, &first);

	for (i = 0; i < nr; i++) {
		size_t at = sizeof(struct dss_table_head) +
			    i * d->record_bytes;
		const struct dss_record *one = a + at, *two = b + at;

		if (one->oblock != two->oblock)
			return false;
		if (le64_to_cpu(one->oblock) != DSS_NO_OBLOCK &&
		    (one->class_id != two->class_id ||
		     memcmp(one->bits, two->bits,
			    d->record_bytes - sizeof(*one))))
			return false;
	}
	return true;
}

/* Picks the copy that counts. */
static int dss_load_pair(struct dss_load *load, u32 region, const void *a,
			 const void *b)
{
	struct dss *d = load->d;
	u64 seq_a = dss_block_seq(d, a, region);
	u64 seq_b = dss_block_seq(d, b, region);
	bool lost_a = !seq_a && memchr_inv(a, 0, DSS_BLOCK_BYTES);
	bool lost_b = !seq_b && memchr_inv(b, 0, DSS_BLOCK_BYTES);

	if (lost_a)
		dss_lost_copy(load, region, a, seq_b);
	if (lost_b)
		dss_lost_copy(load, region, b, seq_a);
	/* The crash can have cut off one of them only. */
	load->damaged |= lost_a && lost_b;
	if (!seq_a && !seq_b)
		return 0;
	if (!seq_a || !seq_b || !dss_are_twins(d, region, a, b))
		__set_bit(region, d->lagging);
	d->region_seq[region] = max(seq_a, seq_b);
	d->commit_seq = max(d->commit_seq, d->region_seq[region]);
	if (seq_b > seq_a)
		__set_bit(region, d->copy);
	return dss_load_region(load, region, seq_b > seq_a ? b : a);
}

static int dss_load_segment(struct dss_load *load,
			    const struct dss_segment *segment)
{
	u32 i, nr, offset;
	int error;

	for (offset = 0; offset < segment->nr_regions; offset += nr) {
		nr = min_t(u32, segment->nr_regions - offset,
			   DSS_LOAD_REGIONS);
		error = dss_sync_io(load->d, REQ_OP_READ,
				    segment->table_sector +
				    (sector_t)offset * 2 * DSS_BLOCK_SECTORS,
				    load->pages, 2 * nr);
		for (i = 0; i < nr && !error; i++)
			error = dss_load_pair(load, segment->first_region +
					      offset + i,
					      page_address(load->pages[2 * i]),
					      page_address(load->pages[2 * i +
								       1]));
		if (error)
			return error;
		cond_resched();
	}
	return 0;
}

static int dss_compare_recency(const void *a, const void *b)
{
	u32 left = ((const struct dss_found *)a)->recency;
	u32 right = ((const struct dss_found *)b)->recency;

	return left < right ? -1 : left > right;
}

/* The record does not count: the table is told so with the next commit. */
static void dss_drop_found(struct dss *d, u32 slot)
	__must_hold(&d->lock)
{
	dss_slot_t at = dss_to_slot(slot);

	dss_invalidate(d, at, 0, d->grains);
	__set_bit(slot, d->stale);
	dss_touch_region(d, at);
}

/*
 * Two records name one chunk: a power cut came between the two blocks of
 * one commit, or before the older one was written again. The newer counts.
 */
static int dss_load_twice(struct dss *d, const struct dss_found *found)
	__must_hold(&d->lock)
{
	dss_slot_t other = dss_core_lookup(d->core,
					   dss_to_oblock(found->oblock));
	u64 seq = d->region_seq[dss_region_of(d, dss_to_slot(found->slot))];
	u64 other_seq = d->region_seq[dss_region_of(d, other)];

	if (seq == other_seq)
		return -EILSEQ;
	if (seq < other_seq) {
		dss_drop_found(d, found->slot);
		return 0;
	}
	dss_core_evict(d->core, other, DSS_EVICT_DISCARD);
	dss_drop_found(d, dss_from_slot(other));
	return dss_core_load(d->core, found->slot, found->oblock,
			     found->class_id, found->dirty);
}

/* Takes the lock for one record alone: there may be millions of them. */
static int dss_load_one(struct dss *d, const struct dss_found *found)
{
	int error;

	spin_lock_irq(&d->lock);
	error = dss_core_load(d->core, found->slot, found->oblock,
			      found->class_id, found->dirty);
	if (error == -EEXIST)
		error = dss_load_twice(d, found);
	spin_unlock_irq(&d->lock);
	return error;
}

static int dss_load_core(struct dss_load *load)
{
	struct dss *d = load->d;
	u64 chunks = DIV_ROUND_UP_ULL(d->origin_sectors, d->chunk_sectors);
	u32 i;
	int error;

	if (!load->in_order)
		sort(load->found, load->nr_found, sizeof(*load->found),
		     dss_compare_recency, NULL);
	for (i = 0; i < load->nr_found; i++) {
		const struct dss_found *found = &load->found[i];

		if (found->oblock >= chunks) {
			if (found->dirty) {
				DMERR("chunk %llu is dirty and beyond the end of the origin",
				      found->oblock);
				return -ENOSPC;
			}
			spin_lock_irq(&d->lock);
			dss_drop_found(d, found->slot);
			spin_unlock_irq(&d->lock);
			continue;
		}
		error = dss_load_one(d, found);
		if (error)
			return error;
	}
	return 0;
}

/**
 * dss_load_table() - fill planes and core from the table
 * @nr_segments: the first so many have one
 *
 * Return: 0; -EILSEQ (damaged), -ENOSPC (dirty beyond the origin's end),
 * -ENOMEM or -EIO.
 */
int dss_load_table(struct dss *d, const struct dss_super *super,
		   u32 nr_segments)
{
	struct dss_load *load = kzalloc(sizeof(*load), GFP_KERNEL);
	int error = -ENOMEM;
	u32 i;

	if (!load)
		return error;
	load->d = d;
	load->in_order = true;
	load->least_lost = U64_MAX;
	load->found = kvmalloc_array(d->nr_slots, sizeof(*load->found),
				     GFP_KERNEL);
	for (i = 0; i < DSS_LOAD_PAGES; i++) {
		load->pages[i] = alloc_page(GFP_KERNEL);
		if (!load->pages[i])
			goto out;
	}
	if (!load->found)
		goto out;
	d->commit_seq = le64_to_cpu(super->commit_seq);
	error = 0;
	for (i = 0; i < nr_segments && !error; i++)
		error = dss_load_segment(load, &d->segments[i]);
	/* After a clean stop the sum tells. */
	if (!error && !(le32_to_cpu(super->flags) & DSS_SUPER_CLEAN) &&
	    dss_lost_counts(load)) {
		DMERR("a damaged table block may be one that counts: \"swift-dss block check\" and \"repair\" the SSD");
		error = -EILSEQ;
	}
	if (!error)
		error = dss_load_core(load);
out:
	for (i = 0; i < DSS_LOAD_PAGES; i++)
		if (load->pages[i])
			__free_page(load->pages[i]);
	kvfree(load->found);
	kfree(load);
	return error;
}
