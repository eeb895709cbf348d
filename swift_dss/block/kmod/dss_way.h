/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Shared by the files of a request's way: dss_map.c decides, dss_span.c
 * decides for several chunks at once, dss_end.c issues and ends.
 */
#ifndef DSS_WAY_H
#define DSS_WAY_H

#include "dss.h"

/* The verdict of dss_process() under the lock. */
enum dss_next {
	DSS_NEXT_SUBMIT,	/* the bio is aimed; submit it */
	DSS_NEXT_FILL,		/* read through pages of our own */
	DSS_NEXT_BOTH,		/* write to both devices */
	DSS_NEXT_CUT,		/* cut after io->nr grains */
	DSS_NEXT_GIVE,		/* from the pages of a fill, io->fill */
	DSS_NEXT_REFUSE,
	DSS_NEXT_WAIT,		/* it is in some list */
	DSS_NEXT_FREE,		/* of others; goes on */
};

/* ---- ranges ---- */

static inline bool dss_is_write(const struct dss_io *io)
{
	return io->bio && op_is_write(bio_op(io->bio));
}

static inline sector_t dss_io_begin(const struct dss_io *io)
{
	return io->iter.bi_sector;
}

static inline sector_t dss_io_end(const struct dss_io *io)
{
	return io->iter.bi_sector + (io->iter.bi_size >> SECTOR_SHIFT);
}

/* Whether the request covers only a part of its first or last grain. */
static inline bool dss_part_first(const struct dss_io *io)
{
	return dss_io_begin(io) & (io->d->grain_sectors - 1);
}

static inline bool dss_part_last(const struct dss_io *io)
{
	return dss_io_end(io) & (io->d->grain_sectors - 1) &&
	       dss_io_end(io) != io->d->origin_sectors;
}

/* Where a chunk's part of the request begins and ends. */
static inline sector_t dss_part_begin(const struct dss_io *io, u64 oblock)
{
	return max(dss_io_begin(io), oblock << io->d->chunk_shift);
}

static inline sector_t dss_part_end(const struct dss_io *io, u64 oblock)
{
	return min(dss_io_end(io), (oblock + 1) << io->d->chunk_shift);
}

static inline void dss_aim_ssd(struct dss_io *io)
{
	struct dss *d = io->d;

	bio_set_dev(io->bio, d->ssd->bdev);
	io->bio->bi_iter.bi_sector = dss_slot_sector(d, io->slot) +
		(dss_io_begin(io) & (d->chunk_sectors - 1));
}

static inline void dss_aim_hdd(struct dss_io *io)
{
	bio_set_dev(io->bio, io->d->hdd->bdev);
	io->bio->bi_iter.bi_sector = dss_io_begin(io);
}

/* ---- dss_map.c; all under the lock, but for the last ---- */
void dss_place(struct dss_io *io);
bool dss_limit(struct dss_io *io, unsigned int nr, bool in_map);
void dss_count_hit(struct dss_io *io);
bool dss_allocate(struct dss_io *io, bool dirty);
enum dss_next dss_to_hdd(struct dss_io *io, enum dss_kind kind);
enum dss_next dss_read_hdd(struct dss_io *io);
enum dss_global_mode dss_asked_mode(const struct dss_io *io);
enum dss_global_mode dss_write_mode(const struct dss_io *io);
bool dss_intend(struct dss_io *io, bool through);
enum dss_next dss_admit(struct dss_io *io);
void dss_piece_end(struct bio *bio);

/* ---- dss_span.c ---- */
enum dss_next dss_span(struct dss_io *io, bool in_map);

#endif /* DSS_WAY_H */
