/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The disk model of the laboratory.
 *
 * A model knows nothing of bios and timers.  It is told of requests with
 * the time they arrive at, says when it wants to be called next, and hands
 * back requests with the time they are done at.  Time is virtual or real
 * alike: it knows only its parameters and requests, so the same requests at
 * the same times give the same answers.
 */
#ifndef DSS_DISK_H
#define DSS_DISK_H

#include <linux/bio.h>
#include <linux/list.h>
#include <linux/rbtree.h>
#include <linux/types.h>

#define DSS_DISK_SECTOR		512
#define DSS_DISK_NEVER		(~0ULL)

/* One request; lives in the bio's per-target data. */
struct dss_disk_request {
	struct list_head list;
	struct rb_node node;		/* by completion time, then number */
	u64 number;			/* in order of arrival, from 1 */
	u64 arrived_ns;
	u64 entered_ns;			/* the disk was told of it */
	u64 done_ns;
	u64 drained_ns;			/* SSD: a flush waits for that much */
	sector_t sector;
	u32 sectors;
	bool write;
	bool fua;
	bool flush;
	bool free;			/* costs the command's overhead only */
	bool stalled;			/* was refused for want of room */
	bool left;			/* its place in the queue is free */
};

/* Parameters of a table line; zero where a model has no use for it. */
struct dss_disk_parameters {
	u64 rotation_ns;
	u64 outer_rate;
	u64 inner_rate;
	u64 zones;
	u64 seek_base_ns;
	u64 seek_sqrt_ns;
	u64 seek_linear_ns;
	u64 write_settle_ns;
	u64 switch_ns;
	u64 ahead_bytes;

	u64 channels;
	u64 page_bytes;
	u64 read_ns;
	u64 program_ns;
	u64 collect_ns;
	u64 channel_rate;
	u64 write_ns;
	u64 volatile_cache;
	u64 flush_ns;

	u64 overhead_ns;
	u64 interface_rate;
	u64 depth;
	u64 cache_bytes;
};

struct dss_disk_counters {
	u64 reads;
	u64 writes;
	u64 flushes;
	u64 seeks;			/* HDD: the arm moved */
	u64 ahead_hits;			/* HDD: served by reading on */
	u64 cache_hits;			/* HDD: read from the write cache */
	u64 cache_full;			/* writes that waited for room */
	u64 busy_ns;			/* of the medium */
	u64 small;			/* HDD: its operations of 64 KiB or less */
	u64 small_ns;			/* HDD: of busy_ns, theirs */
};

struct dss_disk_model;

struct dss_disk_model_type {
	const char *name;
	/* NULL, with the error of the parameters in *error. */
	struct dss_disk_model *(*create)(const struct dss_disk_parameters *p,
					 sector_t sectors, char **error);
	void (*destroy)(struct dss_disk_model *model);
	/* A request has arrived; it stays the model's until it is taken. */
	void (*arrive)(struct dss_disk_model *model,
		       struct dss_disk_request *request, u64 now);
	/* Do due work; when to be called again, or DSS_DISK_NEVER. */
	u64 (*advance)(struct dss_disk_model *model, u64 now);
	u64 (*dirty_bytes)(const struct dss_disk_model *model);
};

/* The first part of both kinds of model. */
struct dss_disk_model {
	const struct dss_disk_model_type *type;
	struct dss_disk_parameters p;
	struct dss_disk_counters counters;
	sector_t sectors;
	struct list_head waiting;	/* for a place in the queue */
	unsigned int inside;		/* have one, and are not done yet */
	struct rb_root done;		/* served; by time, then number */
};

/* ---- dss_disk_model.c: the queue and the completions, of both kinds ---- */
void dss_disk_begin(struct dss_disk_model *model,
		    const struct dss_disk_model_type *type,
		    const struct dss_disk_parameters *p, sector_t sectors);
/* A request waits for a place in the queue; counts it. */
void dss_disk_wait(struct dss_disk_model *model,
		   struct dss_disk_request *request);
/* A request that is in no list any more will be done at that time. */
void dss_disk_done(struct dss_disk_model *model,
		   struct dss_disk_request *request, u64 at);
/* When the first of them is done, or DSS_DISK_NEVER. */
u64 dss_disk_first_done_ns(const struct dss_disk_model *model);
/*
 * A place in the queue is free again when its request is done, even if the
 * next request takes it later: so completions are counted in their time. This
 * is the first request that has its place still, if it is done by *at; *at is
 * then
 * its time.  NULL if there is none.
 */
struct dss_disk_request *
dss_disk_first_inside(const struct dss_disk_model *model, u64 *at);
/* It gives its place up. */
void dss_disk_leave(struct dss_disk_model *model,
		    struct dss_disk_request *request);
/* The next request that is done by now, or NULL. */
struct dss_disk_request *dss_disk_take(struct dss_disk_model *model,
				       u64 now);

extern const struct dss_disk_model_type dss_disk_hdd;
extern const struct dss_disk_model_type dss_disk_ssd;

/* Time of moving bytes at bytes a second, rounded up to a nanosecond. */
static inline u64 dss_disk_transfer_ns(u64 bytes, u64 rate)
{
	return DIV64_U64_ROUND_UP(bytes * NSEC_PER_SEC, rate);
}

#endif /* DSS_DISK_H */
