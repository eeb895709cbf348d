/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The state of a disk with an arm, for the three files of its model:
 * dss_disk_arm.c has where sectors lie and how long the way there is,
 * dss_disk_cache.c what is read ahead and not written yet, dss_disk_hdd.c what
 * becomes of requests.
 */
#ifndef DSS_DISK_HDD_H
#define DSS_DISK_HDD_H

#include "dss_disk.h"

#define MAX_ZONES	64
#define MAX_DIRTY	8192
#define DESTAGE_SECTORS	2048		/* of one operation: 1 MiB */
#define DESTAGE_LOOK	16		/* dirty extents that are compared */
#define MAX_AGE_NS	NSEC_PER_SEC	/* then it is a request's turn */
#define SMALL_SECTORS	128		/* operations that are counted apart */

struct hdd_zone {
	sector_t first;
	u64 first_track;
	u32 sectors_per_track;
};

/* Dirty sectors of the write cache; none overlaps or touches another. */
struct dirty {
	struct rb_node node;
	struct list_head list;		/* while it is unused */
	sector_t start;
	sector_t end;
	u64 oldest;			/* number of its first write */
};

struct hdd {
	struct dss_disk_model m;
	struct hdd_zone zones[MAX_ZONES];
	unsigned int zone_count;
	u64 tracks;

	struct list_head queued;	/* for the medium, a flush or room */

	u64 busy_until;			/* of the medium */
	struct dss_disk_request *serving;
	bool busy;
	bool destaged;			/* the last operation was one */
	bool wrote;			/* so was that */
	sector_t head;			/* the sector that comes next */
	u64 interface_free;

	/*
	 * Bytes read, and read ahead: [ahead_start, ahead_from) at
	 * ahead_since, then on to ahead_limit while ahead_runs.
	 */
	sector_t ahead_start;
	sector_t ahead_from;
	sector_t ahead_limit;
	u64 ahead_since;
	bool ahead_runs;

	struct rb_root dirty;
	struct list_head unused;
	u64 dirty_sectors;
	struct dirty pool[MAX_DIRTY];
};

/* ---- dss_disk_arm.c ---- */
u64 hdd_track(const struct hdd *h, sector_t sector);
u64 hdd_stream_ns(const struct hdd *h, sector_t from, sector_t to);
u64 hdd_position_ns(const struct hdd *h, u64 now, u64 ready, sector_t sector,
		    bool write);
void hdd_lay_out(struct hdd *h);

/* ---- dss_disk_cache.c ---- */
sector_t hdd_ahead_end(const struct hdd *h, u64 now);
void hdd_ahead_stop(struct hdd *h, u64 now);
void hdd_ahead_start(struct hdd *h, sector_t start, sector_t end,
		     u64 now);
void hdd_ahead_forget(struct hdd *h, sector_t start, sector_t end);
struct dirty *hdd_dirty_at_or_after(const struct hdd *h,
				    sector_t sector);
void hdd_dirty_drop(struct hdd *h, struct dirty *d);
bool hdd_dirty_has_room(const struct hdd *h, u32 sectors);
void hdd_dirty_add(struct hdd *h, sector_t start, sector_t end,
		   u64 number);
bool hdd_dirty_older(const struct hdd *h, u64 number);
struct dirty *hdd_destage_choice(const struct hdd *h, u64 now);

#endif /* DSS_DISK_HDD_H */
