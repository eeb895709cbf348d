/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The floor of the table: what the SSD says of its slots, from the start to
 * the stop. Context: worker or control, unless a line says otherwise; it
 * waits for the devices, so call it without d->lock.
 */
#ifndef DSS_TABLE_H
#define DSS_TABLE_H

#include "dss_slots.h"

/* ---- dss_super.c: the superblock ---- */
int dss_read_super(struct dss *d, struct dss_super *super);
void dss_unpack_classes(struct dss *d, const struct dss_super *super);
u32 dss_table_sum(const struct dss *d);
/* Both with meta_mutex held, or while no other thread has the device. */
int dss_meta_mark(struct dss *d, u32 flags);
int dss_meta_mark_or_fail(struct dss *d, u32 flags);
void dss_fail_work(struct work_struct *work);

/* ---- dss_origin.c: the origin, known by its bytes ---- */
int dss_origin_sum(struct dss *d, sector_t sectors, u32 *sum);
int dss_check_origin(struct dss *d, const struct dss_super *super);

/* ---- dss_probe.c, dss_load.c, dss_start.c: the start; control only ---- */
int dss_meta_probe(struct dss *d, char **error);
int dss_load_table(struct dss *d, const struct dss_super *super,
		   u32 nr_segments);
int dss_meta_load(struct dss *d);

/* ---- dss_flush.c ---- */
int dss_flush_hdd(struct dss *d);

/* ---- dss_picture.c: the table as it is to be ---- */
void dss_picture_begin(struct dss *d)
	__must_hold(&d->lock);
bool dss_picture(struct dss *d, u32 *cursor, bool twins, u32 *nr)
	__must_hold(&d->lock);
void dss_picture_end(struct dss *d)
	__must_hold(&d->lock);
u64 dss_twin_seq(const struct dss *d);	/* with meta_mutex held */

/* ---- dss_commit.c ---- */
void dss_commit_work(struct work_struct *work);
int dss_commit_all(struct dss *d);	/* not from the commit's worker */
void dss_tick_work(struct work_struct *work);

/* ---- dss_stop.c: the stop; control only, and nothing is in flight ---- */
int dss_meta_stop(struct dss *d);

/* ---- dss_shrink.c ---- */
int dss_shrink(struct dss *d, sector_t sectors)
	__must_hold(&d->message_mutex);
bool dss_give_up_slot(struct dss *d, dss_slot_t slot)
	__must_hold(&d->lock);

#endif /* DSS_TABLE_H */
