/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The floor of the slots: which requests hold grains, what a slot holds, and
 * who has its turn at the HDD. All of it under d->lock, in any context.
 */
#ifndef DSS_SLOTS_H
#define DSS_SLOTS_H

#include "dss_ground.h"

/* ---- dss_flight.c: requests that hold grains ---- */
void dss_hash(struct dss_io *io, enum dss_kind kind)
	__must_hold(&io->d->lock);
void dss_unhash(struct dss_io *io)
	__must_hold(&io->d->lock);
void dss_defer(struct dss_io *io)
	__must_hold(&io->d->lock);
bool dss_conflict(struct dss *d, const struct dss_io *io, bool writes_hdd)
	__must_hold(&d->lock);
bool dss_range_busy(struct dss *d, const struct dss_io *io)
	__must_hold(&d->lock);
void dss_overtake(struct dss *d, const struct dss_io *io)
	__must_hold(&d->lock);
bool dss_only_behind(struct dss *d, const struct dss_io *io)
	__must_hold(&d->lock);
unsigned int dss_free_grains(struct dss *d, const struct dss_io *io)
	__must_hold(&d->lock);
struct dss_io *dss_filled(struct dss *d, const struct dss_io *io,
			  unsigned int *nr)
	__must_hold(&d->lock);
void dss_tell_cleaner(struct dss_io *io)
	__must_hold(&io->d->lock);
bool dss_in_flight(struct dss *d, u64 oblock)
	__must_hold(&d->lock);
bool dss_next_chunk(const struct dss_io *io, struct dss_io *one);
bool dss_next_part(const struct dss_io *io, unsigned int *chunk,
		   struct dss_io *part)
	__must_hold(&io->d->lock);

/* ---- dss_planes.c: what a slot holds, told to planes, core and table ---- */
void dss_touch_region(struct dss *d, dss_slot_t slot)
	__must_hold(&d->lock);
void dss_set_valid(struct dss *d, dss_slot_t slot, unsigned int first,
		   unsigned int nr)
	__must_hold(&d->lock);
void dss_set_dirty(struct dss *d, dss_slot_t slot, unsigned int first,
		   unsigned int nr)
	__must_hold(&d->lock);
void dss_clear_dirty(struct dss *d, dss_slot_t slot, unsigned int first,
		     unsigned int nr)
	__must_hold(&d->lock);
void dss_set_unsettled(struct dss *d, dss_slot_t slot, unsigned int first,
		       unsigned int nr)
	__must_hold(&d->lock);
bool dss_invalidate(struct dss *d, dss_slot_t slot, unsigned int first,
		    unsigned int nr)
	__must_hold(&d->lock);
void dss_invalidate_parts(const struct dss_io *io)
	__must_hold(&io->d->lock);
void dss_forget(struct dss *d, dss_slot_t slot, u64 oblock)
	__must_hold(&d->lock);
void dss_evict(struct dss *d, dss_slot_t slot, enum dss_evict reason)
	__must_hold(&d->lock);
bool dss_is_stale(const struct dss *d, dss_slot_t slot)
	__must_hold(&d->lock);
void dss_wrote_hdd(struct dss *d, u64 oblock)
	__must_hold(&d->lock);
void dss_wrote_chunks(const struct dss_io *io)
	__must_hold(&io->d->lock);
bool dss_is_volatile(const struct dss *d, u64 oblock)
	__must_hold(&d->lock);
bool dss_was_evicted(const struct dss *d, u64 oblock)
	__must_hold(&d->lock);
bool dss_has_left(const struct dss *d, u64 oblock)
	__must_hold(&d->lock);
void dss_settle_begin(struct dss *d)
	__must_hold(&d->lock);
u32 dss_settle(struct dss *d, u32 from)
	__must_hold(&d->lock);

/* ---- dss_turn.c: requests that wait for the HDD ---- */
u32 dss_rank_of(const struct dss *d, unsigned int class_id)
	__must_hold(&d->lock);
void dss_held_init(struct dss_held *held);	/* control: nothing waits yet */
void dss_held_add(struct dss_held *held, struct dss_io *io)
	__must_hold(&io->d->lock);
void dss_held_move(struct dss_held *held, struct dss_io *io,
		   struct list_head *to)
	__must_hold(&io->d->lock);
struct dss_io *dss_held_next(const struct dss *d, struct dss_held *held,
			     u64 now)
	__must_hold(&d->lock);
bool dss_turn_begin(struct dss_io *io, sector_t sectors,
		    void (*then)(struct dss_io *io))
	__must_hold(&io->d->lock);
void dss_turn_end(struct dss_io *io)
	__must_hold(&io->d->lock);

/* ---- dss_stage.c ---- */
bool dss_stage_hold(struct dss_io *io, unsigned int how)
	__must_hold(&io->d->lock);
s64 dss_stage_open(struct dss *d, bool stuck)
	__must_hold(&d->lock);
bool dss_stage_release(struct dss *d, s64 *room)
	__must_hold(&d->lock);

#endif /* DSS_SLOTS_H */
