/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The ground floor: classes, the lists in which requests wait for a worker,
 * and plain I/O of table blocks.
 */
#ifndef DSS_GROUND_H
#define DSS_GROUND_H

#include "dss_layout.h"
#include "env/dss_compat.h"

/* ---- dss_class.c. Context: any ---- */
unsigned short dss_priority_of(unsigned int class_id);
unsigned int dss_class_of(const struct dss *d, const struct bio *bio);

/* ---- dss_queue.c. Context: any ---- */
void dss_ready(struct dss_io *io, void (*then)(struct dss_io *io));
void dss_starve(struct dss_io *io, void (*then)(struct dss_io *io));
void dss_starved_work(struct work_struct *work);
void dss_send(struct dss *d, struct bio *bio);
void dss_send_work(struct work_struct *work);
void dss_again(struct dss_io *io)
	__must_hold(&io->d->lock);
void dss_wait_commit(struct dss_io *io, void (*then)(struct dss_io *io))
	__must_hold(&io->d->lock);
void dss_complete(struct dss_io *io);
void dss_kick_commit(struct dss *d);
void dss_kick_cleaner(struct dss *d, unsigned int delay);
void dss_ssd_failed(struct dss *d)
	__must_hold(&d->lock);
void dss_group_failed(struct dss *d)
	__must_hold(&d->lock);

/* ---- dss_table_io.c. Context: worker or control; waits for the device ---- */
int dss_bdev_io(struct dss *d, struct block_device *bdev, blk_opf_t opf,
		sector_t sector, struct page **pages, unsigned int nr_pages);
int dss_sync_io(struct dss *d, blk_opf_t opf, sector_t sector,
		struct page **pages, unsigned int nr_pages);
u32 dss_crc(const void *data);	/* any context */

#endif /* DSS_GROUND_H */
