// SPDX-License-Identifier: GPL-2.0
/*
 * The superblock and the segments on the SSD. dss_format.h has the format,
 * dss_commit.c writes the table, dss_load.c reads it back.
 */
/* long: format, probe, start and stop check one another's assumptions */
#include <linux/random.h>
#include <linux/vmalloc.h>

#include "dss.h"

u32 dss_crc(const void *data)
{
	return crc32c(~0, data + sizeof(__le32),
		      DSS_BLOCK_BYTES - sizeof(__le32));
}

/* ---- reading and writing, and waiting for it ---- */

static int dss_bdev_io(struct dss *d, struct block_device *bdev,
		       blk_opf_t opf, sector_t sector, struct page **pages,
		       unsigned int nr_pages)
{
	struct bio *bio = bio_alloc(bdev, nr_pages, opf, GFP_NOIO);
	unsigned int i;
	int error;

	bio->bi_iter.bi_sector = sector;
	if (d->meta_class < DSS_CLASSES)
		bio->bi_ioprio = dss_priority_of(d->meta_class);
	for (i = 0; i < nr_pages; i++)
		__bio_add_page(bio, pages[i], PAGE_SIZE, 0);
	error = submit_bio_wait(bio);
	bio_put(bio);
	return error;
}

int dss_sync_io(struct dss *d, blk_opf_t opf, sector_t sector,
		struct page **pages, unsigned int nr_pages)
{
	return dss_bdev_io(d, d->ssd->bdev, opf, sector, pages, nr_pages);
}

/* ---- the origin, known by its bytes ---- */

/**
 * dss_origin_sum() - of parts of the origin that lie still after a clean stop
 * @sectors: how long it was then
 *
 * Return: 0, -ENOMEM, -EIO.
 */
static int dss_origin_sum(struct dss *d, sector_t sectors, u32 *sum)
{
	struct page *page = alloc_page(GFP_NOIO);
	unsigned int i;
	int error = 0;

	if (!page)
		return -ENOMEM;
	*sum = ~0;
	for (i = 0; i < DSS_SAMPLE_FIRST + DSS_SAMPLE_SPREAD; i++) {
		sector_t sector = i < DSS_SAMPLE_FIRST ?
			i * DSS_BLOCK_SECTORS :
			div_u64(sectors, DSS_SAMPLE_SPREAD + 1) *
			(i - DSS_SAMPLE_FIRST + 1);

		sector = round_down(sector, DSS_BLOCK_SECTORS);
		if (sector + DSS_BLOCK_SECTORS > sectors)
			continue;
		error = dss_bdev_io(d, d->hdd->bdev, REQ_OP_READ, sector,
				    &page, 1);
		if (error)
			break;
		*sum = crc32c(*sum, page_address(page), DSS_BLOCK_BYTES);
	}
	__free_page(page);
	return error;
}

/* Whether the origin is the one that the cache was stopped with. */
static int dss_check_origin(struct dss *d, const struct dss_super *super)
{
	const u32 both = DSS_SUPER_CLEAN | DSS_SUPER_ORIGIN_SUM;
	sector_t sectors = le64_to_cpu(super->origin_sectors);
	u32 sum;
	int error;

	if (d->rebind || (le32_to_cpu(super->flags) & both) != both)
		return 0;
	/* The HDD has become shorter: the sample cannot be read. */
	if (bdev_nr_sectors(d->hdd->bdev) < sectors)
		return 0;
	error = dss_origin_sum(d, sectors, &sum);
	if (error || sum == le32_to_cpu(super->origin_sum))
		return error;
	DMERR("the origin %s does not have the bytes that it had at the clean stop: it is another one, or was written to without this cache (rebind: use it all the same)",
	      d->hdd->name);
	return -ESTALE;
}

/* ---- segments ---- */

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

/* ---- the superblock ---- */

static void dss_pack_classes(struct dss *d, struct dss_super *super)
{
	struct dss_class_spec spec;
	unsigned int i;

	for (i = 0; i < DSS_CLASSES; i++) {
		struct dss_disk_class *row = &super->classes[i];

		dss_core_get_class(d->core, i, &spec);
		row->present = dss_core_has_class(d->core, i) ?
			1 | spec.inner << 1 : 0;
		row->rank = cpu_to_le32(spec.rank);
		row->floor_parts = cpu_to_le32(spec.floor_parts);
		row->cap_parts = cpu_to_le32(spec.cap_parts);
		row->weight = cpu_to_le32(spec.weight);
		row->cutoff_sectors = cpu_to_le32(spec.cutoff_sectors);
		super->no_dirty_parts[i] =
			cpu_to_le32(DSS_PARTS - spec.dirty_cap_parts);
		row->allocate = spec.allocate;
		row->write_mode = spec.write_mode;
		row->flags = spec.flags;
	}
}

/* Rows that the core refuses are left out: hints, not bytes. */
static void dss_unpack_classes(struct dss *d, const struct dss_super *super)
{
	struct dss_class_spec spec = { 0 };
	unsigned int i;

	for (i = 0; i < DSS_CLASSES; i++) {
		const struct dss_disk_class *row = &super->classes[i];

		if (!row->present)
			continue;
		spec.rank = le32_to_cpu(row->rank);
		spec.floor_parts = le32_to_cpu(row->floor_parts);
		spec.cap_parts = le32_to_cpu(row->cap_parts);
		spec.weight = le32_to_cpu(row->weight);
		spec.cutoff_sectors = le32_to_cpu(row->cutoff_sectors);
		/* Over DSS_PARTS it wraps, and is refused. */
		spec.dirty_cap_parts = DSS_PARTS -
			le32_to_cpu(super->no_dirty_parts[i]);
		spec.allocate = row->allocate;
		spec.write_mode = row->write_mode;
		spec.flags = row->flags;
		spec.inner = row->present >> 1;
		if (dss_core_set_class(d->core, i, &spec))
			DMWARN("row of class %u on the SSD is not valid", i);
	}
}

static u32 dss_table_sum(const struct dss *d)
{
	u32 sum = ~0, region;
	__le64 seq;

	for (region = 0; region < d->nr_regions; region++) {
		seq = cpu_to_le64(d->region_seq[region]);
		sum = crc32c(sum, &seq, sizeof(seq));
	}
	return sum;
}

static void dss_pack_super(struct dss *d, struct dss_super *super)
{
	u32 i;

	super->version = cpu_to_le32(DSS_VERSION);
	super->magic = cpu_to_le64(DSS_SUPER_MAGIC);
	memcpy(super->uuid, d->uuid, sizeof(d->uuid));
	super->generation = cpu_to_le64(d->generation);
	super->seq = cpu_to_le64(d->super_seq);
	super->commit_seq = cpu_to_le64(d->commit_seq);
	super->flags = cpu_to_le32(d->super_flags);
	super->table_sum = cpu_to_le32(dss_table_sum(d));
	super->chunk_sectors = cpu_to_le32(d->chunk_sectors);
	super->grain_sectors = cpu_to_le32(d->grain_sectors);
	super->record_bytes = cpu_to_le32(d->record_bytes);
	super->nr_segments = cpu_to_le32(d->nr_segments);
	super->origin_sectors = cpu_to_le64(d->origin_sectors);
	for (i = 0; i < d->nr_segments; i++) {
		const struct dss_segment *from = &d->segments[i];
		struct dss_disk_segment *to = &super->segments[i];

		to->table_sector = cpu_to_le64(from->table_sector);
		to->data_sector = cpu_to_le64(from->data_sector);
		to->first_slot = cpu_to_le32(from->first_slot);
		to->nr_slots = cpu_to_le32(from->nr_slots);
		to->first_region = cpu_to_le32(from->first_region);
		to->nr_regions = cpu_to_le32(from->nr_regions);
	}
	super->meta_class = d->meta_class;
	super->strategy = d->strategy;
	super->mode = d->mode;
	super->twin_seq = cpu_to_le64(d->twin_seq);
	memcpy(super->origin_id, d->origin_id, sizeof(d->origin_id));
	super->origin_sum = cpu_to_le32(d->origin_sum);
	dss_pack_classes(d, super);
}

/**
 * dss_meta_mark() - write the superblock, durably, over its older copy
 * @flags: DSS_SUPER_*
 *
 * Call with meta_mutex held, or while no other thread has the device.
 */
int dss_meta_mark(struct dss *d, u32 flags)
{
	struct page *page = alloc_page(GFP_NOIO | __GFP_ZERO);
	struct dss_super *super;
	int error;

	if (!page)
		return -ENOMEM;
	super = page_address(page);
	d->super_flags = flags;
	d->super_seq++;
	spin_lock_irq(&d->lock);
	dss_pack_super(d, super);
	spin_unlock_irq(&d->lock);
	super->csum = cpu_to_le32(dss_crc(super));
	error = dss_sync_io(d, REQ_OP_WRITE | REQ_META | REQ_SYNC |
			    REQ_PREFLUSH | REQ_FUA,
			    d->super_seq & 1 ? DSS_BLOCK_SECTORS : 0, &page,
			    1);
	__free_page(page);
	return error;
}

/* The same while the device is in use: an SSD that does not take it failed. */
int dss_meta_mark_or_fail(struct dss *d, u32 flags)
{
	int error = dss_meta_mark(d, flags);

	if (!error)
		return 0;
	spin_lock_irq(&d->lock);
	d->ssd_errors++;
	dss_ssd_failed(d);
	spin_unlock_irq(&d->lock);
	return error;
}

/* Reads the newer valid copy. Return: 0, -ENODATA (empty SSD), -EILSEQ. */
static int dss_read_super(struct dss *d, struct dss_super *super)
{
	struct page *pages[2] = { NULL, NULL };
	const struct dss_super *found;
	int i, error = -ENOMEM;
	bool empty = true;
	u64 best = 0;

	for (i = 0; i < 2; i++) {
		pages[i] = alloc_page(GFP_KERNEL);
		if (!pages[i])
			goto out;
	}
	error = dss_sync_io(d, REQ_OP_READ, 0, pages, 2);
	if (error)
		goto out;
	for (i = 0; i < 2; i++) {
		found = page_address(pages[i]);
		if (memchr_inv(found, 0, DSS_BLOCK_BYTES))
			empty = false;
		if (le64_to_cpu(found->magic) != DSS_SUPER_MAGIC ||
		    le32_to_cpu(found->csum) != dss_crc(found) ||
		    le64_to_cpu(found->seq) <= best)
			continue;
		best = le64_to_cpu(found->seq);
		memcpy(super, found, sizeof(*super));
	}
	if (!best)
		error = empty ? -ENODATA : -EILSEQ;
out:
	for (i = 0; i < 2; i++)
		if (pages[i])
			__free_page(pages[i]);
	return error;
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

/* ---- starting ---- */

/* A clean stop left a sum: a block that went back in time is found out. */
static int dss_check_sum(struct dss *d, const struct dss_super *super)
{
	u32 regions = d->nr_regions;
	u32 sum;

	if (!(le32_to_cpu(super->flags) & DSS_SUPER_CLEAN))
		return 0;
	if (d->grow)
		d->nr_regions = d->segments[d->nr_segments - 1].first_region;
	sum = dss_table_sum(d);
	d->nr_regions = regions;
	if (sum == le32_to_cpu(super->table_sum))
		return 0;
	DMERR("a table block is older than the clean stop");
	return -EILSEQ;
}

static int dss_zero_table(struct dss *d, const struct dss_segment *segment)
{
	return blkdev_issue_zeroout(d->ssd->bdev, segment->table_sector,
				    (sector_t)segment->nr_regions * 2 *
				    DSS_BLOCK_SECTORS, GFP_KERNEL, 0);
}

static int dss_format(struct dss *d)
{
	int error = dss_zero_table(d, &d->segments[0]);

	if (error)
		return error;
	get_random_bytes(&d->generation, sizeof(d->generation));
	get_random_bytes(d->uuid, sizeof(d->uuid));
	d->super_seq = 0;
	d->commit_seq = 0;
	d->twin_seq = 0;
	/* Both copies, so that none of an earlier life is left. */
	error = dss_meta_mark(d, 0);
	return error ?: dss_meta_mark(d, 0);
}

/**
 * dss_meta_load() - read back what was cached; once, before the first I/O
 *
 * Afterwards the superblock says "in use": a later load without a clean stop
 * before it follows a crash.
 */
int dss_meta_load(struct dss *d)
{
	struct dss_super *super;
	int error;

	if (d->fresh) {
		error = dss_format(d);
		d->loaded = !error;
		return error;
	}
	super = kzalloc(sizeof(*super), GFP_KERNEL);
	if (!super)
		return -ENOMEM;
	error = dss_read_super(d, super);
	if (error)
		goto out;
	memcpy(d->uuid, super->uuid, sizeof(d->uuid));
	d->generation = le64_to_cpu(super->generation);
	d->super_seq = le64_to_cpu(super->seq);
	d->twin_seq = le64_to_cpu(super->twin_seq);
	dss_unpack_classes(d, super);
	error = dss_check_origin(d, super);
	if (!error)
		error = dss_load_table(d, super, d->nr_segments - d->grow);
	if (!error)
		error = dss_check_sum(d, super);
	if (!error && d->grow)
		error = dss_zero_table(d, &d->segments[d->nr_segments - 1]);
	if (!error)
		error = dss_meta_mark(d, 0);
	d->loaded = !error;
out:
	kfree(super);
	return error;
}

/* ---- stopping ---- */

/* With all regions written twice, the second time for the order of use. */
static int dss_mark_clean(struct dss *d)
{
	u32 flags = DSS_SUPER_CLEAN;

	if (d->recency) {
		bitmap_zero(d->lagging, d->nr_regions);
		d->twin_seq = d->commit_seq;
	}
	if (!dss_origin_sum(d, d->origin_sectors, &d->origin_sum))
		flags |= DSS_SUPER_ORIGIN_SUM;
	return dss_meta_mark(d, flags);
}

/* Notes for the table in which order chunks would leave. */
static void dss_number_recency(struct dss *d)
{
	u32 number = 1, class_id;
	int dirty;

	for (class_id = 0; class_id < DSS_CLASSES; class_id++)
		for (dirty = 0; dirty < 2; dirty++)
			number = dss_core_number(d->core, class_id, dirty,
						 d->recency, number);
}

/**
 * dss_meta_stop() - nothing is in flight: leave all that is needed to start
 *
 * Return: 0, or -EIO and the next start is one after a crash.
 */
int dss_meta_stop(struct dss *d)
{
	u32 region;
	int error;

	if (d->health != DSS_OK)
		return -EIO;
	spin_lock_irq(&d->lock);
	d->want_hdd_flush = true;
	spin_unlock_irq(&d->lock);
	error = dss_commit_all(d);
	if (error)
		return error;
	d->recency = vzalloc(array_size(d->nr_slots, sizeof(*d->recency)));
	if (d->recency) {
		dss_number_recency(d);
		for (region = 0; region < d->nr_regions; region++)
			if (d->region_seq[region] &&
			    !__test_and_set_bit(region, d->pending))
				d->nr_pending++;
	}
	error = dss_commit_all(d);
	if (!error && !d->nr_pending && !d->want_hdd_flush)
		error = dss_mark_clean(d);
	vfree(d->recency);
	d->recency = NULL;
	return error;
}
