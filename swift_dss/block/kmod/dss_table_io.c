// SPDX-License-Identifier: GPL-2.0
/*
 * Reading and writing a few blocks, and waiting for it.
 *
 * Context: worker or control.
 */
#include "dss_ground.h"

u32 dss_crc(const void *data)
{
	return crc32c(~0, data + sizeof(__le32),
		      DSS_BLOCK_BYTES - sizeof(__le32));
}

int dss_bdev_io(struct dss *d, struct block_device *bdev,
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
