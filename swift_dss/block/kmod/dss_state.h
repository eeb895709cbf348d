/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The state of a device, and the words of the module.
 *
 * Words, beside those of core/dss_core.h
 *   grain    the part of a chunk that is valid or dirty by itself
 *   region   the slots whose records share one table block (dss_format.h)
 *   valid    the slot has the grain's bytes (plane V)
 *   dirty    the origin has older bytes of the grain (plane D)
 *   unsettled  the origin was given the same bytes, but may not keep them
 *            over a power cut yet (plane U). Written to the table as dirty
 *   intent   a table commit that must be durable before bytes change
 *   stale    the table on the SSD may still name bytes that the slot no longer
 *            holds; its bytes must not change before a commit
 *
 * The rules that make a crash harmless (doc/source/reference/dm-dss.rst has the
 * argument):
 *  1. A grain is named valid by the table only after its bytes are durable.
 *  2. Bytes of a grain that the table names valid and clean do not change
 *     before the table names it dirty or no longer valid.
 *  3. The table names a grain clean only when the origin's copy is durable.
 *  4. Origin bytes that the table says the SSD has clean are not written
 *     before the table says otherwise.
 *
 * Locks, outermost first:
 *   message_mutex  one message at a time
 *   meta_mutex     superblock, commit and its pages; held over I/O
 *   hdd_mutex      one flush of the HDD at a time; held over I/O
 *   d->lock        a spinlock, taken with interrupts off: the core, the
 *                  planes, everything in flight, and what the members of
 *                  struct dss below it say. Nothing is allocated and nothing
 *                  sleeps under it
 * A function that needs d->lock says __must_hold(). test/unit/house reads the
 * sources for that, and dss_queue.c, dss_flight.c, dss_planes.c and dss_turn.c,
 * which all others use, have lockdep check it.
 *
 * Contexts:
 *   map      dss_map(): the submitter's. Never waits for memory
 *   end      of a bio: interrupts may be off. Never sleeps
 *   worker   "dss-io", "dss-commit", "dss-group", "dss-send", "dss-clean": may
 *            sleep. All but the cleaner serve requests, so they wait for no memory that a
 *            request may be needed to free
 *   control  constructor, suspension, messages: may sleep
 *
 * Floors: a file calls its own floor and those below it, never upwards; what
 * has to go up waits in a list until a worker of that floor takes it.
 *   dss_top.h     the target: arguments, messages, counters
 *   dss_way.h     the way of a request: decision, issue, end
 *   dss_copy.h    copies between the devices: fills, cleaning
 *   dss_table.h   the table on the SSD: load, commit, stop
 *   dss_slots.h   what a slot holds and who uses it
 *   dss_ground.h  classes, lists, plain I/O
 *   dss_layout.h, dss_state.h, dss_request.h, core/
 */
#ifndef DSS_STATE_H
#define DSS_STATE_H

#include <linux/completion.h>
#include <linux/device-mapper.h>
#include <linux/kobject.h>
#include <linux/list.h>
#include <linux/mempool.h>
#include <linux/mutex.h>
#include <linux/spinlock.h>
#include <linux/wait.h>
#include <linux/workqueue.h>

#include "core/dss_core.h"
#include "dss_format.h"
#include "dss_request.h"

#define DM_MSG_PREFIX "dss"

#define DSS_BUCKETS		1024	/* of requests in flight */
#define DSS_HASH_BITS		65536	/* see dss_was_evicted() */
#define DSS_COMMIT_REGIONS	64U	/* table blocks written at once */
#define DSS_PICTURE_REGIONS	8U	/* drawn at once: 25 us */
#define DSS_SETTLE_REGIONS	256U	/* settled at once */
#define DSS_POOL_PAGES		1024	/* kept back for moves; 4 MiB */
#define DSS_POOL_MOVES		64
#define DSS_AFTER_FILLS		4	/* at once, without a reader */
#define DSS_AFTER_SECTORS	256	/* of one of them: 128 KiB */
#define DSS_STREAM_SECTORS	2048	/* worth a way of the arm; 1 MiB */
#define DSS_CLEAN_RUNS		64	/* of one batch of the cleaner */
#define DSS_CLEAN_BESIDE	2048	/* sectors that go together; 1 MiB */
#define DSS_CLEAN_ROWS		8	/* such rows, flushed together */
#define DSS_CLEAN_SECTORS	4096	/* of all these; 2 MiB */
#define DSS_STAGE_ROWS		64	/* of the stage, flushed together */
#define DSS_STAGE_SECTORS	16384	/* of all these; 8 MiB */
#define DSS_AHEAD_PAGES		64U	/* of a row, to read ahead: 256 KiB */
#define DSS_BATCH_SLOTS		2048	/* the same in the smallest chunks */
#define DSS_BATCH_PULLS		64U	/* with d->lock held */
#define DSS_TURN_SECTORS	1024	/* that the HDD has to read at once */
#define DSS_GROUP_SECTORS	16384	/* made durable together; 8 MiB */
#define DSS_GROUP_BELOW		2048	/* where some are of a lower class */
#define DSS_TICK		HZ	/* settle and commit the rest */
#define DSS_STARVED		1	/* jiffies until memory is asked again */
#define DSS_LATENCY_BUCKETS	26	/* 2^n microseconds */
#define DSS_WRITE_HINTS		8

/* The mode of the whole device; the stricter of it and the class's holds. */
enum dss_global_mode {
	DSS_GLOBAL_BACK,
	DSS_GLOBAL_THROUGH,
	DSS_GLOBAL_AROUND,
	DSS_GLOBAL_PASS,
	DSS_NR_GLOBAL
};

/* Whether the SSD may be used. */
enum dss_health {
	DSS_OK,
	DSS_GIVEN_UP,	/* it failed with nothing dirty: all to the HDD */
	DSS_REFUSING,	/* it failed with dirty bytes: writes are refused */
	DSS_NR_HEALTH
};

struct dss_cleaner;

struct dss_segment {
	sector_t table_sector;
	sector_t data_sector;
	u32 first_slot;
	u32 nr_slots;
	u32 first_region;
	u32 nr_regions;
};

struct dss_latency {
	u64 count;
	u64 total_us;
	u64 max_us;
	u64 buckets[DSS_LATENCY_BUCKETS];
};

/* Counters that the core does not keep; by the class of the request. */
struct dss_class_count {
	u64 sectors[2];		/* read, written */
	u64 grain_misses;	/* the chunk was here, its grains were not */
	u64 promoted;		/* fills that ended well */
	u64 fill_failed;
	u64 promoted_sectors;
	u64 no_memory;		/* fills that found no pages */
	u64 cleaned_sectors;
	u64 refused;
	struct dss_latency latency[2];
};

struct dss_commit {
	struct page *pages[DSS_COMMIT_REGIONS];
	u32 regions[DSS_COMMIT_REGIONS];
	struct completion done;
	atomic_t left;
	int error;
};

/* Requests that wait for the HDD, in order of arrival in each class. */
struct dss_held {
	struct list_head by_class[DSS_CLASSES];
	u32 nr;
};

struct dss {
	struct dm_target *ti;
	struct list_head claim;		/* dss_claim.c */
	struct dm_dev *ssd;
	struct dm_dev *hdd;
	sector_t chunk_sectors;
	sector_t grain_sectors;
	unsigned int chunk_shift;
	unsigned int grain_shift;
	unsigned int grains;		/* in a chunk */
	unsigned int span_shift;	/* chunks that a request may have */
	sector_t origin_sectors;

	/* Settings. */
	u8 mode;			/* enum dss_global_mode */
	u8 strategy;			/* enum dss_mode */
	u8 meta_class;			/* 255: none */
	u8 hint_class[DSS_WRITE_HINTS];
	u32 high_parts;
	u32 low_parts;
	u32 stage_parts;
	unsigned int idle_ms;		/* 0: no cleaning when idle */
	unsigned int ahead_sectors;	/* read with a miss; 0: no more */
	unsigned int after_sectors;	/* read after a miss; 0: none */
	bool format;			/* wanted by the constructor */
	bool rebind;			/* whatever origin the SSD had */
	u8 origin_id[16];		/* zeroes: nothing is known */
	bool fresh;			/* no superblock yet */
	bool grow;			/* the last segment is new */

	spinlock_t lock;
	struct dss_core *core;
	unsigned long *valid;
	unsigned long *dirty;
	unsigned long *unsettled;
	unsigned long *stale;		/* by slot */
	unsigned long *stale_old;	/* of the commit under way */
	unsigned long *copy;		/* by region: 1 if B is current */
	unsigned long *pending;		/* by region: differs from the table */
	unsigned long *writing;		/* by region: commit under way */
	unsigned long *lagging;		/* by region: the copies differ */
	unsigned long *unsettled_regions;
	unsigned long *unsettled_new;	/* since the flush under way began */
	unsigned long *evicted;		/* hashes of chunks */
	unsigned long *evicted_old;	/* of the commit under way */
	unsigned long *volatile_new;	/* the same, which the HDD might lose */
	unsigned long *volatile_old;	/* of the flush under way */
	u32 nr_slots;
	u32 nr_regions;
	u32 nr_pending;
	u32 per_region;
	u32 record_bytes;
	u64 dirty_grains;

	struct hlist_head inflight[DSS_BUCKETS];
	u32 nr_inflight;
	u32 nr_after;			/* DSS_IO_AFTER under way */
	struct list_head deferred[DSS_BUCKETS];	/* wait for a range */
	u32 nr_waiting;			/* in these */
	struct list_head ready;		/* for the worker */
	struct list_head starved;	/* the same, but not at once */
	struct bio_list sending;	/* for the HDD: dss_send() */
	struct list_head committing;	/* wait for a commit */
	struct list_head unpictured;	/* wait for the end of a picture */
	/* Reads of the HDD: dss_turn.c */
	struct dss_held reads;		/* wait for their turn */
	sector_t turn_sectors;		/* of those that the HDD has */
	unsigned long last_read;	/* of the HDD, in jiffies; 0: none */
	/* Writes past the SSD that are durable when they end: dss_group.c */
	struct dss_held held;		/* wait for the next group */
	/* Writes that wait for room: dss_stage.c */
	struct dss_held staged;
	bool stage_stuck;		/* the cleaner does not get on */
	struct list_head gathered;	/* of this one, given to the HDD */
	u32 group_left;			/* of this one, on their way there */
	sector_t group_sectors;		/* of this one */
	u32 group_rank;			/* the highest in it */
	bool group_flushing;		/* it is closed */
	bool picturing;			/* dss_picture.c */
	bool want_twins;
	bool want_hdd_flush;
	bool want_ssd_flush;
	/* Since the last flush began: */
	bool ssd_wrote;			/* anything */
	bool ssd_named;			/* grains that became valid */
	bool hdd_wrote;			/* anything */
	bool hdd_owes;			/* bytes that a flush has to cover */
	bool hdd_owed;			/* the same, of the flush under way */
	bool hdd_flushing;
	u32 failed_flushes;		/* of the HDD, by any caller */
	u8 health;			/* enum dss_health */
	bool suspended;
	bool draining;
	bool shrinking;			/* to limit slots */
	u32 limit;
	bool cleaning_all;
	bool loaded;
	bool stopping;
	unsigned long last_request;	/* jiffies */
	unsigned long last_flush;	/* the same; 0: none yet */

	struct workqueue_struct *wq;
	struct workqueue_struct *commit_wq;
	struct workqueue_struct *clean_wq;
	struct workqueue_struct *group_wq;
	struct workqueue_struct *send_wq;
	struct work_struct work;
	struct work_struct send_work;
	struct work_struct group_work;
	struct work_struct commit_work;
	struct work_struct fail_work;
	struct delayed_work starved_work;
	struct delayed_work clean_work;
	struct delayed_work tick_work;
	wait_queue_head_t idle;		/* no move left; nothing dirty */
	atomic_t nr_moves;

	struct bio_set pieces;		/* dss_piece */
	struct bio_set doubles;		/* plain */
	struct bio_set moves;		/* dss_move */
	struct bio_set meta_bios;	/* dss_meta_bio */
	mempool_t pages;
	struct dss_cleaner *cleaner;
	u32 *recency;			/* by slot, while stopping */
	struct dss_commit commit;
	struct mutex meta_mutex;	/* superblock and commit I/O */
	struct mutex hdd_mutex;		/* a flush of the HDD */
	struct mutex message_mutex;

	/* The superblock. */
	u8 uuid[16];
	u64 generation;
	u64 super_seq;
	u64 commit_seq;
	u64 twin_seq;
	u32 origin_sum;
	u64 *region_seq;
	struct dss_segment segments[DSS_SEGMENTS];
	u32 nr_segments;
	u32 super_flags;

	struct kobject kobj;		/* dss_sysfs.c */
	struct completion kobj_gone;
	bool in_sysfs;
	struct dss_class_count *counts;	/* DSS_CLASSES of them */
	u64 ssd_errors;
	u64 hdd_errors;
	u64 nr_commits;
	u64 nr_table_writes;
	u64 nr_intents;
	u64 nr_groups;
	u64 nr_grouped;
	u64 nr_deferred;
	u64 nr_stage_waits;
};

#endif /* DSS_STATE_H */
