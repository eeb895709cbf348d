/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The floor of the way: dss_decide.c, dss_read.c and dss_write.c decide for a
 * request, dss_issue.c gives it to the devices, dss_end.c ends it, dss_group.c
 * makes writes durable together; dss_map.c is where requests come in.
 */
#ifndef DSS_WAY_H
#define DSS_WAY_H

#include "dss_copy.h"

/* The verdict of a decision. */
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

/* ---- ranges. Context: any ---- */

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

/* Whether the request has more than one chunk. */
static inline bool dss_is_long(const struct dss_io *io)
{
	return io->first + io->nr > io->d->grains;
}

/* How many grains its first chunk has of it. */
static inline unsigned int dss_first_nr(const struct dss_io *io)
{
	return min_t(unsigned int, io->nr, io->d->grains - io->first);
}

/* For dss_next_chunk(): before the first chunk of a request. */
static inline struct dss_io dss_no_part(const struct dss_io *io)
{
	return (struct dss_io) { .d = io->d, .bio = io->bio,
				 .class_id = io->class_id,
				 .slot = DSS_NO_SLOT };
}

/* For dss_next_chunk(): at its first chunk. */
static inline struct dss_io dss_first_part(const struct dss_io *io)
{
	struct dss_io one = dss_no_part(io);

	one.oblock = io->oblock;
	one.first = io->first;
	one.nr = dss_first_nr(io);
	return one;
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

/* ---- dss_group.c: writes past the SSD, durable together ---- */
void dss_group_ask(struct dss_io *io)
	__must_hold(&io->d->lock);
bool dss_group_admit(struct dss_io *io)
	__must_hold(&io->d->lock);
void dss_group_issue(struct dss_io *io);	/* the commit's worker */
int dss_group_arrived(struct dss_io *io, blk_status_t error)
	__must_hold(&io->d->lock);
void dss_group_work(struct work_struct *work);

/* ---- dss_issue.c ---- */
void dss_issue(struct dss_io *io);	/* any; never waits for memory */
void dss_issue_both(struct dss_io *io, bool in_map);	/* the same */
int dss_retry(struct dss_io *io)
	__must_hold(&io->d->lock);

/* ---- dss_end.c. Context: end ---- */
int dss_end_io(struct dm_target *ti, struct bio *bio, blk_status_t *error);
void dss_piece_end(struct bio *bio);

/* ---- dss_verbs.c: what decisions are made of ---- */
void dss_place(struct dss_io *io);
bool dss_limit(struct dss_io *io, unsigned int nr, bool in_map);
void dss_count_hit(struct dss_io *io)
	__must_hold(&io->d->lock);
bool dss_allocate(struct dss_io *io, bool dirty)
	__must_hold(&io->d->lock);
enum dss_next dss_to_hdd(struct dss_io *io, enum dss_kind kind)
	__must_hold(&io->d->lock);
enum dss_next dss_read_hdd(struct dss_io *io)
	__must_hold(&io->d->lock);
enum dss_global_mode dss_asked_mode(const struct dss_io *io)
	__must_hold(&io->d->lock);
enum dss_global_mode dss_write_mode(const struct dss_io *io)
	__must_hold(&io->d->lock);
bool dss_intend(struct dss_io *io, bool through)
	__must_hold(&io->d->lock);
bool dss_class_alone(const struct dss *d, unsigned int class_id)
	__must_hold(&d->lock);
bool dss_chunk_alone(const struct dss *d, dss_slot_t slot)
	__must_hold(&d->lock);
void dss_tell_run(const struct dss_io *io, struct dss_io *one)
	__must_hold(&io->d->lock);

/* ---- dss_read.c, dss_write.c, dss_decide.c ---- */
enum dss_next dss_read(struct dss_io *io, bool in_map)
	__must_hold(&io->d->lock);
enum dss_next dss_read_busy(struct dss_io *io, bool in_map)
	__must_hold(&io->d->lock);
enum dss_next dss_write(struct dss_io *io, bool in_map)
	__must_hold(&io->d->lock);
enum dss_next dss_discard(struct dss_io *io)
	__must_hold(&io->d->lock);
enum dss_next dss_decide(struct dss_io *io, bool in_map)
	__must_hold(&io->d->lock);

/* ---- dss_map.c ---- */
int dss_map(struct dm_target *ti, struct bio *bio);
void dss_work(struct work_struct *work);

#endif /* DSS_WAY_H */
