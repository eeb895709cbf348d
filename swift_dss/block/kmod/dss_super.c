// SPDX-License-Identifier: GPL-2.0
/*
 * The superblock: its two copies, the class table in it, and the mark of an SSD
 * that failed. dss_format.h has the format.
 *
 * Context: worker or control; waits for the SSD.
 */
#include "dss_table.h"

static void dss_pack_classes(struct dss *d, struct dss_super *super)
	__must_hold(&d->lock)
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
void dss_unpack_classes(struct dss *d, const struct dss_super *super)
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

/* The versions change under meta_mutex alone; call it with that. */
u32 dss_table_sum(const struct dss *d)
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
	__must_hold(&d->lock)
{
	u32 i;

	super->version = cpu_to_le32(DSS_VERSION);
	super->magic = cpu_to_le64(DSS_SUPER_MAGIC);
	memcpy(super->uuid, d->uuid, sizeof(d->uuid));
	super->generation = cpu_to_le64(d->generation);
	super->seq = cpu_to_le64(d->super_seq);
	super->commit_seq = cpu_to_le64(d->commit_seq);
	super->flags = cpu_to_le32(d->super_flags);
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
	super->table_sum = cpu_to_le32(dss_table_sum(d));
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
int dss_read_super(struct dss *d, struct dss_super *super)
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

/* Says so on the SSD, if it still takes a write, so that it stays out. */
void dss_fail_work(struct work_struct *work)
{
	struct dss *d = container_of(work, struct dss, fail_work);

	DMERR("%s: the SSD %s failed; %llu dirty grains",
	      dm_table_device_name(d->ti->table), d->ssd->name,
	      d->dirty_grains);
	mutex_lock(&d->meta_mutex);
	if (dss_meta_mark(d, DSS_SUPER_FAILED))
		DMWARN("%s: the SSD does not take the mark that it failed; do not use it again before it is wiped",
		       dm_table_device_name(d->ti->table));
	mutex_unlock(&d->meta_mutex);
	dm_table_event(d->ti->table);
	dss_kick_cleaner(d, 0);
}
