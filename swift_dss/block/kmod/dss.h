/* SPDX-License-Identifier: GPL-2.0 */
/* long: one header for the few files of the target */
/*
 * dm-dss: an SSD in front of an HDD, by class.
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
 * The rules that make a crash harmless (doc/source/dm-dss.rst has the
 * argument):
 *  1. A grain is named valid by the table only after its bytes are durable.
 *  2. Bytes of a grain that the table names valid and clean do not change
 *     before the table names it dirty or no longer valid.
 *  3. The table names a grain clean only when the origin's copy is durable.
 *  4. Origin bytes that the table says the SSD has clean are not written
 *     before the table says otherwise.
 *
 * Locks: d->lock (a spinlock, taken with interrupts off) covers the core,
 * the planes and everything in flight. Nothing is allocated under it.
 */
#ifndef DSS_H
#define DSS_H

#include <linux/atomic.h>
#include <linux/bio.h>
#include <linux/blkdev.h>
#include <linux/completion.h>
#include <linux/crc32c.h>
#include <linux/device-mapper.h>
#include <linux/kobject.h>
#include <linux/ktime.h>
#include <linux/list.h>
#include <linux/mempool.h>
#include <linux/mutex.h>
#include <linux/refcount.h>
#include <linux/spinlock.h>
#include <linux/wait.h>
#include <linux/workqueue.h>

#include "core/dss_core.h"
#include "dss_format.h"
#include "env/dss_compat.h"

#define DM_MSG_PREFIX "dss"

#define DSS_CHUNK_MIN		8	/* sectors; 4 KiB */
#define DSS_CHUNK_MAX		2048	/* 1 MiB */
#define DSS_GRAINS_MAX		256	/* in a chunk: pages of one bio */
#define DSS_BUCKETS		1024	/* of requests in flight */
#define DSS_HASH_BITS		65536	/* see dss_was_evicted() */
#define DSS_COMMIT_REGIONS	64	/* table blocks written at once */
#define DSS_POOL_PAGES		1024	/* kept back for moves; 4 MiB */
#define DSS_POOL_MOVES		64
#define DSS_AFTER_FILLS		4	/* at once, without a reader */
#define DSS_AFTER_SECTORS	256	/* of one of them: 128 KiB */
#define DSS_AFTER_PAGES		(DSS_AFTER_SECTORS / DSS_BLOCK_SECTORS)
#define DSS_SPAN_SECTORS	1024	/* of several chunks at once */
#define DSS_STREAM_SECTORS	2048	/* worth a way of the arm; 1 MiB */
#define DSS_CLEAN_RUNS		64	/* of one batch of the cleaner */
#define DSS_CLEAN_BESIDE	2048	/* sectors that go together; 1 MiB */
#define DSS_CLEAN_ROWS		8	/* such rows, flushed together */
#define DSS_CLEAN_SECTORS	4096	/* of all these; 2 MiB */
#define DSS_TURN_SECTORS	1024	/* that the HDD has to read at once */
#define DSS_GROUP_SECTORS	16384	/* made durable together; 8 MiB */
#define DSS_GROUP_BELOW		2048	/* where some are of a lower class */
#define DSS_TICK		HZ	/* settle and commit the rest */
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

struct dss;
struct dss_batch;

/**
 * struct dss_io - a request, from map to end
 * @node: in d->inflight while it holds its range
 * @list: in one of d's lists while it waits
 * @then: called after a commit or in the worker
 * @bio: the mapper's clone, or a piece of it; NULL for moves
 * @oblock, @slot: its chunk and where that is, DSS_NO_SLOT if not here
 * @fill: the fill that has the bytes which a read needs
 * @first, @nr: its grains in the chunk
 * @status: of a commit, or of the SSD's half of a doubled write
 * @piece_status: of the pieces that were cut off
 * @left: parts of a doubled write that are under way
 * @here: of a request of several chunks, those that the SSD gets
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
	DECLARE_BITMAP(here, DSS_SPAN_SECTORS / DSS_CHUNK_MIN);
};

/* A copy between the devices, through pages of its own. */
struct dss_move {
	struct dss_io io;
	struct dss_io *user;	/* the read that asked for a fill, or NULL */
	struct completion *done;
	atomic_t *pending;
	struct dss_move **row;	/* that one bio writes, from here on */
	unsigned int nr_row;
	struct dss_move *next;	/* read or written with it; or NULL */
	struct bio *whole;	/* that reads them, if @user waits for it */
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
	struct list_head deferred;	/* wait for a range */
	struct list_head ready;		/* for the worker */
	struct list_head committing;	/* wait for a commit */
	/* Reads of the HDD: dss_turn.c */
	struct dss_held reads;		/* wait for their turn */
	sector_t turn_sectors;		/* of those that the HDD has */
	unsigned long last_read;	/* of the HDD, in jiffies; 0: none */
	/* Writes past the SSD that are durable when they end: dss_group.c */
	struct dss_held held;		/* wait for the next group */
	struct list_head gathered;	/* of this one, given to the HDD */
	u32 group_left;			/* of this one, on their way there */
	sector_t group_sectors;		/* of this one */
	u32 group_rank;			/* the highest in it */
	bool group_flushing;		/* it is closed */
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
	struct work_struct work;
	struct work_struct group_work;
	struct work_struct commit_work;
	struct work_struct fail_work;
	struct delayed_work clean_work;
	struct delayed_work tick_work;
	wait_queue_head_t idle;		/* no move left; nothing dirty */
	atomic_t nr_moves;

	struct bio_set pieces;		/* dss_piece */
	struct bio_set doubles;		/* plain */
	struct bio_set moves;		/* dss_move */
	struct bio_set meta_bios;	/* dss_meta_bio */
	mempool_t pages;
	struct dss_batch *batch;	/* the cleaner's */
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
};

extern const char *const dss_mode_names[DSS_NR_GLOBAL];
extern const char *const dss_strategy_names[DSS_NR_MODE];
extern const char *const dss_health_names[DSS_NR_HEALTH];

/* ---- where things are ---- */

/* No request reaches over a multiple of that. */
static inline sector_t dss_span_sectors(const struct dss *d)
{
	return max_t(sector_t, d->chunk_sectors, DSS_SPAN_SECTORS);
}

static inline sector_t dss_slot_sector(const struct dss *d, dss_slot_t slot)
{
	u32 number = dss_from_slot(slot);
	const struct dss_segment *segment = d->segments;

	while (number >= segment->first_slot + segment->nr_slots)
		segment++;
	return segment->data_sector +
	       ((sector_t)(number - segment->first_slot) << d->chunk_shift);
}

static inline u32 dss_region_of(const struct dss *d, dss_slot_t slot)
{
	u32 number = dss_from_slot(slot);
	const struct dss_segment *segment = d->segments;

	while (number >= segment->first_slot + segment->nr_slots)
		segment++;
	return segment->first_region +
	       (number - segment->first_slot) / d->per_region;
}

/* The slots of a region: the first, and how many. */
static inline u32 dss_region_slots(const struct dss *d, u32 region,
				   u32 *first)
{
	const struct dss_segment *segment = d->segments;
	u32 offset;

	while (region >= segment->first_region + segment->nr_regions)
		segment++;
	offset = (region - segment->first_region) * d->per_region;
	*first = segment->first_slot + offset;
	return min(d->per_region, segment->nr_slots - offset);
}

static inline sector_t dss_region_sector(const struct dss *d, u32 region,
					 bool copy)
{
	const struct dss_segment *segment = d->segments;

	while (region >= segment->first_region + segment->nr_regions)
		segment++;
	return segment->table_sector +
	       (sector_t)(region - segment->first_region) *
	       2 * DSS_BLOCK_SECTORS + (copy ? DSS_BLOCK_SECTORS : 0);
}

/* See dss_record.head_check. */
static inline __le16 dss_head_check(const struct dss_table_head *head)
{
	return cpu_to_le16(crc32c(~0, &head->magic, sizeof(*head) -
				  sizeof(head->csum)));
}

/* ---- planes: one bit a grain, flat over all slots ---- */

static inline unsigned long dss_bit(const struct dss *d, dss_slot_t slot,
				    unsigned int grain)
{
	return (unsigned long)dss_from_slot(slot) * d->grains + grain;
}

static inline bool dss_grain(const struct dss *d, const unsigned long *plane,
			     dss_slot_t slot, unsigned int grain)
{
	return test_bit(dss_bit(d, slot, grain), plane);
}

static inline void dss_plane_set(unsigned long *plane, unsigned long bit,
				 unsigned int nr)
{
	bitmap_set(plane + BIT_WORD(bit), bit % BITS_PER_LONG, nr);
}

static inline void dss_plane_clear(unsigned long *plane, unsigned long bit,
				   unsigned int nr)
{
	bitmap_clear(plane + BIT_WORD(bit), bit % BITS_PER_LONG, nr);
}

static inline bool dss_any(const struct dss *d, const unsigned long *plane,
			   dss_slot_t slot, unsigned int first,
			   unsigned int nr)
{
	unsigned long begin = dss_bit(d, slot, first);

	return find_next_bit(plane, begin + nr, begin) < begin + nr;
}

static inline bool dss_all(const struct dss *d, const unsigned long *plane,
			   dss_slot_t slot, unsigned int first,
			   unsigned int nr)
{
	unsigned long begin = dss_bit(d, slot, first);

	return find_next_zero_bit(plane, begin + nr, begin) >= begin + nr;
}

/* How many grains from @first on are like it in the plane, at most @nr. */
static inline unsigned int dss_alike(const struct dss *d,
				     const unsigned long *plane,
				     dss_slot_t slot, unsigned int first,
				     unsigned int nr)
{
	unsigned long begin = dss_bit(d, slot, first);
	unsigned long end;

	if (test_bit(begin, plane))
		end = find_next_zero_bit(plane, begin + nr, begin);
	else
		end = find_next_bit(plane, begin + nr, begin);
	return min_t(unsigned long, end - begin, nr);
}

/* ---- dss_map.c ---- */
int dss_map(struct dm_target *ti, struct bio *bio);
int dss_end_io(struct dm_target *ti, struct bio *bio, blk_status_t *error);
void dss_work(struct work_struct *work);
void dss_ready(struct dss_io *io, void (*then)(struct dss_io *io));
void dss_reprocess(struct dss_io *io);
void dss_wait_commit(struct dss_io *io, void (*then)(struct dss_io *io));
void dss_issue(struct dss_io *io);
void dss_end_again(struct dss_io *io);
unsigned short dss_priority_of(unsigned int class_id);

/* ---- dss_turn.c: requests that wait for the HDD ---- */
u32 dss_rank_of(const struct dss *d, unsigned int class_id);
void dss_held_init(struct dss_held *held);
void dss_held_add(struct dss_held *held, struct dss_io *io);
void dss_held_move(struct dss_held *held, struct dss_io *io,
		   struct list_head *to);
struct dss_io *dss_held_next(const struct dss *d, struct dss_held *held,
			     u64 now);
bool dss_turn_begin(struct dss_io *io, void (*then)(struct dss_io *io));
void dss_turn_end(struct dss_io *io);

/* ---- dss_group.c: writes past the SSD, durable together ---- */
void dss_group_ask(struct dss_io *io);
bool dss_group_admit(struct dss_io *io);
void dss_group_issue(struct dss_io *io);
int dss_group_arrived(struct dss_io *io, blk_status_t error);
void dss_group_failed(struct dss *d);
void dss_group_work(struct work_struct *work);

/* ---- dss_flight.c: requests that hold grains ---- */
void dss_hash(struct dss_io *io, enum dss_kind kind);
void dss_unhash(struct dss_io *io);
bool dss_conflict(struct dss *d, const struct dss_io *io, bool writes_hdd);
bool dss_range_busy(struct dss *d, const struct dss_io *io);
void dss_overtake(struct dss *d, const struct dss_io *io);
bool dss_only_behind(struct dss *d, const struct dss_io *io);
unsigned int dss_free_grains(struct dss *d, const struct dss_io *io);
struct dss_io *dss_filled(struct dss *d, const struct dss_io *io,
			  unsigned int *nr);
void dss_tell_cleaner(struct dss_io *io);
bool dss_in_flight(struct dss *d, u64 oblock);
void dss_defer(struct dss_io *io);
bool dss_next_chunk(const struct dss_io *io, struct dss_io *one);
bool dss_next_part(const struct dss_io *io, unsigned int *chunk,
		   struct dss_io *part);

/* ---- dss_planes.c: what a slot holds, told to planes, core and table ---- */
void dss_touch_region(struct dss *d, dss_slot_t slot);
void dss_set_valid(struct dss *d, dss_slot_t slot, unsigned int first,
		   unsigned int nr);
void dss_set_dirty(struct dss *d, dss_slot_t slot, unsigned int first,
		   unsigned int nr);
void dss_clear_dirty(struct dss *d, dss_slot_t slot, unsigned int first,
		     unsigned int nr);
void dss_set_unsettled(struct dss *d, dss_slot_t slot, unsigned int first,
		       unsigned int nr);
bool dss_invalidate(struct dss *d, dss_slot_t slot, unsigned int first,
		    unsigned int nr);
void dss_invalidate_parts(const struct dss_io *io);
void dss_forget(struct dss *d, dss_slot_t slot, u64 oblock);
void dss_evict(struct dss *d, dss_slot_t slot, enum dss_evict reason);
bool dss_is_stale(const struct dss *d, dss_slot_t slot);
void dss_wrote_hdd(struct dss *d, u64 oblock);
void dss_wrote_chunks(const struct dss_io *io);
bool dss_is_volatile(const struct dss *d, u64 oblock);
bool dss_was_evicted(const struct dss *d, u64 oblock);
void dss_settle(struct dss *d);

/* ---- dss_move.c ---- */
struct dss_move *dss_move_alloc(struct dss *d, const struct dss_io *like,
				gfp_t gfp);
void dss_move_aim(struct dss_move *move, bool ssd, blk_opf_t opf,
		  bio_end_io_t *end);
void dss_move_free(struct dss_move *move);

/* ---- dss_fill.c ---- */
int dss_fill(struct dss_io *user);
int dss_fill_span(struct dss_io *user);
void dss_fill_hold(struct dss_io *fill);
void dss_fill_give(struct dss_io *fill, struct dss_io *user);

/* ---- dss_clean.c ---- */
struct dss_batch *dss_batch_create(struct dss *d);
void dss_clean_work(struct work_struct *work);
void dss_kick_cleaner(struct dss *d, unsigned int delay);

/* ---- dss_shrink.c ---- */
int dss_shrink(struct dss *d, sector_t sectors);
bool dss_give_up_slot(struct dss *d, dss_slot_t slot);

/* ---- dss_message.c: lines of counters, under the lock; their length ---- */
unsigned int dss_tell_class(const struct dss *d, unsigned int class_id,
			    char *result, unsigned int maxlen);
unsigned int dss_tell_class_latency(const struct dss *d, unsigned int class_id,
				    char *result, unsigned int maxlen);
unsigned int dss_tell_device(const struct dss *d, char *result,
			     unsigned int maxlen);

/* ---- dss_sysfs.c ---- */
void dss_sysfs_add(struct dss *d);
void dss_sysfs_remove(struct dss *d);

/* ---- dss_commit.c ---- */
void dss_commit_work(struct work_struct *work);
void dss_kick_commit(struct dss *d);
int dss_commit_all(struct dss *d);
int dss_flush_hdd(struct dss *d);
void dss_tick_work(struct work_struct *work);
void dss_ssd_failed(struct dss *d);
void dss_fail_work(struct work_struct *work);

/* ---- dss_meta.c ---- */
int dss_meta_probe(struct dss *d, char **error);
int dss_meta_load(struct dss *d);
int dss_meta_mark(struct dss *d, u32 flags);
int dss_meta_mark_or_fail(struct dss *d, u32 flags);
int dss_meta_stop(struct dss *d);
int dss_sync_io(struct dss *d, blk_opf_t opf, sector_t sector,
		struct page **pages, unsigned int nr_pages);
u32 dss_crc(const void *data);

/* ---- dss_load.c ---- */
int dss_load_table(struct dss *d, const struct dss_super *super,
		   u32 nr_segments);

/* ---- dss_message.c ---- */
int dss_message(struct dm_target *ti, unsigned int argc, char **argv,
		char *result, unsigned int maxlen);
void dss_status(struct dm_target *ti, status_type_t type,
		unsigned int status_flags, char *result, unsigned int maxlen);
int dss_parse_name(const char *name, const char *const *names,
		   unsigned int nr);

#endif /* DSS_H */
