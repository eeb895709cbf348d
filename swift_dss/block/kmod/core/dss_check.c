// SPDX-License-Identifier: GPL-2.0 OR Apache-2.0
/*
 * The invariants of a core between two calls.
 */
#include "dss_core_impl.h"

#define STATES (BITS_USED | BITS_DIRTY | BITS_BUSY)

/* The slots of one list are linked both ways and are as @bits say. */
static int check_list(const struct dss_core *core, const struct dss_list *list,
		      int class_id, u32 bits)
{
	u32 slot = list->oldest, older = NONE, count = 0;
	bool hand = list->hand == NONE;

	while (slot != NONE) {
		const struct dss_entry *entry;

		if (slot >= core->nr_slots || count >= list->count)
			return __LINE__;
		entry = &core->entries[slot];
		if (entry->older != older)
			return __LINE__;
		if ((entry->bits & STATES) != bits)
			return __LINE__;
		if (class_id >= 0 && (unsigned int)class_id !=
		    list_class(core, entry_class(entry)))
			return __LINE__;
		hand |= slot == list->hand;
		older = slot;
		slot = entry->younger;
		count++;
	}
	if (list->youngest != older || list->count != count || !hand)
		return __LINE__;
	return 0;
}

static int check_lists(const struct dss_core *core)
{
	u32 listed = core->free.count;
	unsigned int class_id;
	int bad;

	bad = check_list(core, &core->free, -1, 0);
	if (bad)
		return bad;
	for (class_id = 0; class_id < DSS_CLASSES; class_id++) {
		bad = check_list(core, &core->clean[class_id], class_id,
				 BITS_USED);
		if (!bad)
			bad = check_list(core, &core->dirty[class_id],
					 class_id, BITS_USED | BITS_DIRTY);
		if (bad)
			return bad;
		listed += core->clean[class_id].count +
			core->dirty[class_id].count +
			core->stats[class_id].busy;
	}
	/* The rest are free slots over the limit. */
	if (listed > core->nr_slots)
		return __LINE__;
	if (core->limit == core->nr_slots && listed != core->nr_slots)
		return __LINE__;
	return 0;
}

/* Check the counters of one class. */
static int check_class(const struct dss_core *core, unsigned int class_id)
{
	u32 resident = 0, dirty = 0, busy = 0, slot;

	for (slot = 0; slot < core->nr_slots; slot++) {
		const struct dss_entry *entry = &core->entries[slot];

		if (!(entry->bits & BITS_USED) ||
		    entry_class(entry) != class_id)
			continue;
		resident++;
		dirty += !!(entry->bits & BITS_DIRTY);
		busy += !!(entry->bits & BITS_BUSY);
	}
	if (core->stats[class_id].resident != resident)
		return __LINE__;
	if (core->stats[class_id].dirty != dirty)
		return __LINE__;
	if (core->stats[class_id].busy != busy)
		return __LINE__;
	return 0;
}

static int check_slots(const struct dss_core *core)
{
	u32 used = 0, dirty = 0, pulled = 0, staged = 0, slot;

	for (slot = 0; slot < core->nr_slots; slot++) {
		const struct dss_entry *entry = &core->entries[slot];

		if (!(entry->bits & BITS_USED)) {
			if (entry->bits)
				return __LINE__;
			continue;
		}
		used++;
		dirty += !!(entry->bits & BITS_DIRTY);
		pulled += !!(entry->bits & BITS_PULLED);
		staged += (entry->bits & (BITS_DIRTY | BITS_STAGED)) ==
			(BITS_DIRTY | BITS_STAGED);
		/* Each chunk is found, and found where it is. */
		if (dss_core_lookup(core, dss_to_oblock(entry_oblock(entry))) !=
		    dss_to_slot(slot))
			return __LINE__;
	}
	if (core->nr_used != used)
		return __LINE__;
	if (core->nr_dirty != dirty)
		return __LINE__;
	if (core->nr_pulled != pulled)
		return __LINE__;
	if (core->nr_staged != staged)
		return __LINE__;
	return 0;
}

int dss_core_check(const struct dss_core *core)
{
	unsigned int class_id;
	int bad;

	bad = check_lists(core);
	if (!bad)
		bad = check_slots(core);
	for (class_id = 0; !bad && class_id < DSS_CLASSES; class_id++)
		bad = check_class(core, class_id);
	return bad;
}
