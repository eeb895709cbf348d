// SPDX-License-Identifier: GPL-2.0
/*
 * The origin, known by its bytes: a cache must not start over another HDD.
 *
 * Context: control; waits for the HDD.
 */
#include "dss_table.h"

/**
 * dss_origin_sum() - of parts of the origin that lie still after a clean stop
 * @sectors: how long it was then
 *
 * Return: 0, -ENOMEM, -EIO.
 */
int dss_origin_sum(struct dss *d, sector_t sectors, u32 *sum)
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
int dss_check_origin(struct dss *d, const struct dss_super *super)
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
