/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A request on its way, and the copies that it causes.
 */
#ifndef DSS_REQUEST_H
#define DSS_REQUEST_H

#include <linux/atomic.h>
#include <linux/bio.h>
#include <linux/blkdev.h>
#include <linux/completion.h>
#include <linux/device-mapper.h>
#include <linux/list.h>
#include <linux/refcount.h>

#include "core/dss_core.h"

#define DSS_CHUNK_MIN		8	/* sectors; 4 KiB */
#define DSS_CHUNK_MAX		2048	/* 1 MiB */
#define DSS_GRAINS_MAX		256	/* in a chunk: pages of one bio */
#define DSS_SPAN_SECTORS	1024	/* of several chunks at once */

/* Kinds of requests in flight; see dss_conflict(). */
enum dss_kind {
	DSS_NOTHING,
	DSS_READ_SSD,
	DSS_READ_HDD,
	DSS_WRITE_SSD,
	DSS_WRITE_HDD,
	DSS_WRITE_BOTH,
	DSS_DISCARD,
	DSS_FLUSH,
	DSS_FILL,
	DSS_CLEAN,
};

/* dss_io.flags */
#define DSS_IO_HASHED		(1U << 0)	/* in d->inflight */
#define DSS_IO_COUNTED		(1U << 1)	/* told to the core */
#define DSS_IO_RUN		(1U << 2)	/* part of a run */
#define DSS_IO_HAD_DIRTY	(1U << 3)	/* of its grains, before */
#define DSS_IO_AGAIN		(1U << 4)	/* written while cleaned */
#define DSS_IO_GIVE_UP		(1U << 5)	/* DSS_GIVE_UP afterwards */
#define DSS_IO_UNSETTLED	(1U << 6)	/* a fill beside HDD writes */
#define DSS_IO_ENDED		(1U << 7)	/* its work is done */
#define DSS_IO_HDD_ONLY		(1U << 8)	/* the SSD failed it */
#define DSS_IO_AFTER		(1U << 9)	/* a fill without reader */
#define DSS_IO_READING		(1U << 10)	/* one that has no bytes yet */
#define DSS_IO_GROUPED		(1U << 11)	/* durable with its group */
#define DSS_IO_CUT		(1U << 12)	/* pieces of it are apart */
#define DSS_IO_TURN		(1U << 13)	/* the HDD has it to read */
#define DSS_IO_FILLED		(1U << 14)	/* a fill that has its bytes */
#define DSS_IO_HELD		(1U << 15)	/* its run was told: dss_stage.c */

struct dss;

/**
 * struct dss_io - a request, from map to end
 * @node: in d->inflight while it holds its range
 * @list: in one of d's lists while it waits
 * @then: called after a commit or in the worker; NULL: judge it again
 * @bio: the mapper's clone, or a piece of it; NULL for moves
 * @oblock, @slot: its chunk and where that is, DSS_NO_SLOT if not here
 * @fill: the fill that has the bytes which a read needs
 * @first, @nr: its grains in the chunk
 * @status: of a commit, or of the SSD's half of a doubled write
 * @piece_status: of the pieces that were cut off
 * @left: parts of a doubled write that are under way
 * @turn_sectors: that the HDD has to read for it when its turn comes
 * @here: its chunks that the SSD gets, counted from the first
 */
struct dss_io {
	struct hlist_node node;
	struct list_head list;
	void (*then)(struct dss_io *io);
	struct dss *d;
	struct bio *bio;
	struct dss_io *parent;
	struct dss_io *fill;
	struct bvec_iter iter;
	u64 oblock;
	u64 start_ns;
	dss_slot_t slot;
	u16 first;
	u16 nr;
	u16 flags;
	u8 kind;
	u8 class_id;
	blk_status_t status;
	blk_status_t piece_status;
	atomic_t left;
	u32 turn_sectors;
	DECLARE_BITMAP(here, DSS_SPAN_SECTORS / DSS_CHUNK_MIN);
};

/* A copy between the devices, through pages of its own. */
struct dss_move {
	struct dss_io io;
	struct dss_io *user;	/* the read that asked for a fill, or NULL */
	struct completion *done;
	atomic_t *pending;
	struct dss_move *next;	/* of its row, which one bio has; or NULL */
	struct bio *whole;	/* that reads them, if @user waits for it */
	void (*kept)(struct dss_io *io);	/* on the SSD; NULL: done */
	sector_t sectors;
	unsigned int nr_pages;
	unsigned int after_end;	/* grain where DSS_IO_AFTER ends */
	refcount_t refs;	/* itself, and readers of its pages */
	struct bio bio;		/* last: its vectors follow */
};

static inline struct dss_move *dss_move_of(struct dss_io *io)
{
	return container_of(io, struct dss_move, io);
}

/* A part of a bio, with the same life as a bio of the mapper. */
struct dss_piece {
	struct dss_io io;
	struct bio bio;		/* last */
};

/* A bio of a commit. */
struct dss_meta_bio {
	struct dss_commit *commit;
	struct bio bio;		/* last */
};

#endif /* DSS_REQUEST_H */
