/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The differences of the kernels that dm-dss is built for (6.1, 6.12 and those
 * after it). The names DSS_HAS_... are defined by the Kbuild file beside this;
 * nothing else of the module looks at them.
 */
#ifndef DSS_COMPAT_H
#define DSS_COMPAT_H

#include <linux/bio.h>
#include <linux/blkdev.h>
#include <linux/device-mapper.h>
#ifdef DSS_HAS_HEX_H
#include <linux/hex.h>
#endif

/* Inode write hints reach the bio from 6.9 on. */
static inline unsigned int dss_bio_write_hint(const struct bio *bio)
{
#ifdef DSS_HAS_BIO_WRITE_HINT
	return bio->bi_write_hint;
#else
	return 0;
#endif
}

/*
 * Discards are cut at chunks. Newer kernels do it for us if told so; older
 * ones cut at max_io_len or leave it to the map function.
 */
static inline void dss_split_discards(struct dm_target *ti)
{
#ifdef DSS_HAS_DISCARD_GRANULARITY
	ti->max_discard_granularity = true;
#endif
}

static inline void dss_discard_limits(struct queue_limits *limits,
				      struct block_device *origin,
				      unsigned int most,
				      unsigned int grain_sectors)
{
	if (!bdev_max_discard_sectors(origin))
		most = 0;
#ifdef DSS_HAS_USER_DISCARD_LIMIT
	limits->max_hw_discard_sectors = most;
#else
	limits->max_discard_sectors = most;
	limits->max_hw_discard_sectors = most;
#endif
	limits->discard_granularity = most ? grain_sectors << SECTOR_SHIFT : 0;
}

/* Whether pages under write must not change: we write them twice. */
static inline void dss_stable_writes(struct queue_limits *limits)
{
#ifdef DSS_HAS_STABLE_WRITES_LIMIT
	limits->features |= BLK_FEAT_STABLE_WRITES;
#endif
}

#endif /* DSS_COMPAT_H */
