// SPDX-License-Identifier: GPL-2.0
/*
 * The start: format the SSD, or read back what was cached, before the first
 * request.
 *
 * Context: control; no other thread has the device.
 */
#include <linux/random.h>

#include "dss_table.h"

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
