/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/*
 * Lists, index and states of the slots, for the sources of the decision core
 * that change them. Inline: a hit goes through most of it.
 */
#ifndef DSS_LISTS_H
#define DSS_LISTS_H

#include "dss_core_impl.h"

/* Odd, with bits all over: 2^64 divided by the golden ratio. */
#define HASH_FACTOR 0x9e3779b97f4a7c15ULL

/* ---- Lists ---- */

static inline void list_init(struct dss_list *list)
{
	list->oldest = NONE;
	list->youngest = NONE;
	list->count = 0;
	list->hand = NONE;
}

static inline void list_add_youngest(struct dss_core *core,
				     struct dss_list *list, u32 slot)
{
	struct dss_entry *entry = &core->entries[slot];

	entry->older = list->youngest;
	entry->younger = NONE;
	if (list->youngest == NONE)
		list->oldest = slot;
	else
		core->entries[list->youngest].younger = slot;
	list->youngest = slot;
	list->count++;
}

static inline void list_add_oldest(struct dss_core *core, struct dss_list *list,
				   u32 slot)
{
	struct dss_entry *entry = &core->entries[slot];

	entry->older = NONE;
	entry->younger = list->oldest;
	if (list->oldest == NONE)
		list->youngest = slot;
	else
		core->entries[list->oldest].older = slot;
	list->oldest = slot;
	list->count++;
}

static inline void list_del(struct dss_core *core, struct dss_list *list,
			    u32 slot)
{
	struct dss_entry *entry = &core->entries[slot];

	if (list->hand == slot)
		list->hand = entry->younger;
	if (entry->older == NONE)
		list->oldest = entry->younger;
	else
		core->entries[entry->older].younger = entry->younger;
	if (entry->younger == NONE)
		list->youngest = entry->older;
	else
		core->entries[entry->younger].older = entry->older;
	entry->older = NONE;
	entry->younger = NONE;
	list->count--;
}

/* The list that a used, idle slot is in. */
static inline struct dss_list *list_of(struct dss_core *core,
				       const struct dss_entry *entry)
{
	unsigned int class_id = list_class(core, entry_class(entry));

	return entry->bits & BITS_DIRTY ? &core->dirty[class_id] :
		&core->clean[class_id];
}

static inline void leave_list(struct dss_core *core, u32 slot)
{
	struct dss_entry *entry = &core->entries[slot];

	if (!(entry->bits & BITS_BUSY))
		list_del(core, list_of(core, entry), slot);
}

/* @oldest: it is to leave next, in whatever order. */
static inline void join_list(struct dss_core *core, u32 slot, bool oldest)
{
	struct dss_entry *entry = &core->entries[slot];
	struct dss_list *list = list_of(core, entry);

	if (entry->bits & BITS_BUSY)
		return;
	if (oldest) {
		entry->bits &= ~BITS_MARKED;
		list_add_oldest(core, list, slot);
		list->hand = slot;
	} else {
		list_add_youngest(core, list, slot);
	}
}

/* ---- Index ---- */

static inline u32 *bucket_of(const struct dss_core *core, u64 oblock)
{
	u64 hash = (oblock ^ core->seed) * HASH_FACTOR;

	hash ^= hash >> 32;
	hash *= HASH_FACTOR;
	return &core->buckets[(hash >> 32) * core->nr_slots >> 32];
}

static inline u32 index_find(const struct dss_core *core, u64 oblock)
{
	u32 slot = *bucket_of(core, oblock);

	while (slot != NONE) {
		const struct dss_entry *entry = &core->entries[slot];

		if (entry->low == (u32)oblock && entry_oblock(entry) == oblock)
			break;
		slot = entry->chain;
	}
	return slot;
}

static inline void index_add(struct dss_core *core, u32 slot)
{
	struct dss_entry *entry = &core->entries[slot];
	u32 *bucket = bucket_of(core, entry_oblock(entry));

	entry->chain = *bucket;
	*bucket = slot;
}

static inline void index_del(struct dss_core *core, u32 slot)
{
	u32 *link = bucket_of(core, entry_oblock(&core->entries[slot]));

	while (*link != slot) {
		DSS_FORBID(*link == NONE);
		link = &core->entries[*link].chain;
	}
	*link = core->entries[slot].chain;
}

/* ---- States ---- */

static inline struct dss_entry *used_entry(const struct dss_core *core,
					   dss_slot_t slot)
{
	struct dss_entry *entry;

	DSS_FORBID(dss_from_slot(slot) >= core->nr_slots);
	entry = &core->entries[dss_from_slot(slot)];
	DSS_FORBID(!(entry->bits & BITS_USED));
	return entry;
}

static inline void count_dirty(struct dss_core *core,
			       const struct dss_entry *entry, int change)
{
	core->nr_dirty += change;
	core->stats[entry_class(entry)].dirty += change;
	if (entry->bits & BITS_STAGED)
		core->nr_staged += change;
}

/* By the right of its class, or as the stage's: what passes through is that. */
static inline void turn_dirty(struct dss_core *core, struct dss_entry *entry)
{
	if (core->mode != DSS_MODE_LRU &&
	    spec_of(core, entry_class(entry))->flags & DSS_PASSING)
		entry->bits |= BITS_STAGED;
	entry->bits |= BITS_DIRTY;
	count_dirty(core, entry, 1);
}

static inline void make_busy(struct dss_core *core, u32 slot, u32 why)
{
	struct dss_entry *entry = &core->entries[slot];

	DSS_FORBID(entry->bits & BITS_BUSY);
	leave_list(core, slot);
	entry->bits |= BITS_BUSY | why;
	core->stats[entry_class(entry)].busy++;
}

/*
 * @why: the work that it MUST be busy with; it is in no list afterwards
 * either.
 */
static inline void end_busy(struct dss_core *core, u32 slot, u32 why)
{
	struct dss_entry *entry = &core->entries[slot];

	DSS_FORBID(!(entry->bits & BITS_BUSY));
	DSS_FORBID((entry->bits & (BITS_TAKEN | BITS_PULLED)) != why);
	entry->bits &= ~(BITS_BUSY | BITS_TAKEN | BITS_PULLED);
	core->stats[entry_class(entry)].busy--;
}

#endif /* DSS_LISTS_H */
