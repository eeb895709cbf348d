// SPDX-License-Identifier: GPL-2.0
/*
 * Segments, regions and slots that lie on the SSD, or would fit there. Changes
 * nothing on the SSD.
 *
 * Context: control; no other thread has the device.
 */
#include "dss_table.h"

/*
 * Lays table and slots out between two sectors.
 *
 * Return: whether at least one slot fits.
 */
static bool dss_plan_segment(const struct dss *d, sector_t begin, sector_t end,
			     struct dss_segment *segment)
{
	u64 most = end > begin ? (end - begin) >> d->chunk_shift : 0;
	u64 nr = min_t(u64, most, DSS_SLOTS_MAX - d->nr_slots);
	u64 regions;
	sector_t data;

	for (; nr; nr--) {
		regions = DIV_ROUND_UP_ULL(nr, d->per_region);
		data = round_up(begin + regions * 2 * DSS_BLOCK_SECTORS,
				DSS_DATA_ALIGN);
		if (data + (nr << d->chunk_shift) <= end)
			break;
		if (data >= end)
			most = nr / 2;
		else
			most = (end - data) >> d->chunk_shift;
		nr = min(nr, most + 1);
	}
	if (!nr)
		return false;
	segment->table_sector = begin;
	segment->data_sector = data;
	segment->first_slot = d->nr_slots;
	segment->nr_slots = nr;
	segment->first_region = d->nr_regions;
	segment->nr_regions = regions;
	return true;
}

static sector_t dss_segment_end(const struct dss *d,
				const struct dss_segment *segment)
{
	return segment->data_sector +
	       ((sector_t)segment->nr_slots << d->chunk_shift);
}

static void dss_add_segment(struct dss *d, const struct dss_segment *segment)
{
	d->segments[d->nr_segments++] = *segment;
	d->nr_slots += segment->nr_slots;
	d->nr_regions += segment->nr_regions;
}

/* ---- what fits together ---- */

static const char *dss_check_segments(struct dss *d,
				      const struct dss_super *super)
{
	u32 i, nr = le32_to_cpu(super->nr_segments);
	sector_t begin = DSS_SUPER_SECTORS;
	struct dss_segment segment;

	if (!nr || nr > DSS_SEGMENTS)
		return "superblock: number of segments";
	for (i = 0; i < nr; i++) {
		const struct dss_disk_segment *from = &super->segments[i];

		segment.table_sector = le64_to_cpu(from->table_sector);
		segment.data_sector = le64_to_cpu(from->data_sector);
		segment.first_slot = le32_to_cpu(from->first_slot);
		segment.nr_slots = le32_to_cpu(from->nr_slots);
		segment.first_region = le32_to_cpu(from->first_region);
		segment.nr_regions = le32_to_cpu(from->nr_regions);
		if (segment.table_sector < begin || !segment.nr_slots ||
		    segment.nr_slots > DSS_SLOTS_MAX - d->nr_slots ||
		    segment.first_slot != d->nr_slots ||
		    segment.first_region != d->nr_regions ||
		    segment.nr_regions != DIV_ROUND_UP(segment.nr_slots,
						       d->per_region) ||
		    segment.data_sector < segment.table_sector +
		    (u64)segment.nr_regions * 2 * DSS_BLOCK_SECTORS)
			return "superblock: segments do not fit together";
		dss_add_segment(d, &segment);
		begin = dss_segment_end(d, &segment);
	}
	if (begin > bdev_nr_sectors(d->ssd->bdev))
		return "the SSD is smaller than its superblock says";
	return NULL;
}

static void dss_geometry(struct dss *d)
{
	unsigned int bits = DIV_ROUND_UP(d->grains, 8);

	d->record_bytes = round_up(sizeof(struct dss_record) + 2 * bits, 8);
	d->per_region = (DSS_BLOCK_BYTES - sizeof(struct dss_table_head)) /
			d->record_bytes;
	d->nr_segments = 0;
	d->nr_slots = 0;
	d->nr_regions = 0;
}

/* Version 1 ends before origin_id: zeroes are there, which name nothing. */
static bool dss_other_origin(const struct dss *d,
			     const struct dss_super *super)
{
	return !d->rebind &&
	       memchr_inv(super->origin_id, 0, sizeof(super->origin_id)) &&
	       memcmp(super->origin_id, d->origin_id, sizeof(d->origin_id));
}

static const char *dss_check_super(struct dss *d,
				   const struct dss_super *super)
{
	u32 version = le32_to_cpu(super->version);

	if (version < DSS_VERSION_MIN || version > DSS_VERSION)
		return "superblock: unknown version";
	if (dss_other_origin(d, super))
		return "the SSD is the cache of another origin than origin_id says, or the table has none";
	if (le32_to_cpu(super->chunk_sectors) != d->chunk_sectors)
		return "chunk size differs from the superblock's";
	if (le32_to_cpu(super->grain_sectors) != d->grain_sectors)
		return "grain differs from the superblock's";
	if (le32_to_cpu(super->record_bytes) != d->record_bytes)
		return "superblock: record size";
	if (le32_to_cpu(super->flags) & DSS_SUPER_FAILED)
		return "this SSD failed before and may be behind the HDD: repair or format it";
	return dss_check_segments(d, super);
}

/* Slots that the SSD has beyond the last segment. */
static bool dss_plan_growth(struct dss *d, struct dss_segment *segment)
{
	sector_t begin = dss_segment_end(d, &d->segments[d->nr_segments - 1]);

	begin = round_up(begin, DSS_BLOCK_SECTORS);
	return d->nr_segments < DSS_SEGMENTS &&
	       dss_plan_segment(d, begin, bdev_nr_sectors(d->ssd->bdev),
				segment);
}

/**
 * dss_meta_probe() - find out the number of slots, changing nothing
 * @error: where to put what is wrong
 */
int dss_meta_probe(struct dss *d, char **error)
{
	struct dss_super *super = kzalloc(sizeof(*super), GFP_KERNEL);
	struct dss_segment segment;
	const char *wrong = NULL;
	int result;

	if (!super)
		return -ENOMEM;
	dss_geometry(d);
	result = d->format ? -ENODATA : dss_read_super(d, super);
	d->fresh = result == -ENODATA;
	d->grow = false;
	if (d->fresh) {
		result = 0;
		if (!dss_plan_segment(d, DSS_SUPER_SECTORS,
				      bdev_nr_sectors(d->ssd->bdev), &segment))
			wrong = "the SSD is too small";
		else
			dss_add_segment(d, &segment);
	} else if (result == -EILSEQ) {
		wrong = "the SSD has something else on it; say format to use it";
	} else if (result) {
		wrong = "cannot read the superblock";
	} else {
		wrong = dss_check_super(d, super);
		if (!wrong && dss_plan_growth(d, &segment)) {
			d->grow = true;
			dss_add_segment(d, &segment);
		}
	}
	kfree(super);
	if (wrong) {
		*error = (char *)wrong;
		return result ?: -EINVAL;
	}
	return 0;
}
