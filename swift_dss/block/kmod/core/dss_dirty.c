// SPDX-License-Identifier: GPL-2.0 OR Apache-2.0
/*
 * Slots that become dirty, and clean again.
 */
#include "dss_lists.h"

void dss_core_set_dirty(struct dss_core *core, dss_slot_t slot)
{
	struct dss_entry *entry = used_entry(core, slot);

	if (entry->bits & BITS_DIRTY) {
		if (entry->bits & BITS_PULLED)
			entry->bits |= BITS_AGAIN;
		return;
	}
	leave_list(core, dss_from_slot(slot));
	turn_dirty(core, entry);
	join_list(core, dss_from_slot(slot), false);
}

void dss_core_stage(struct dss_core *core, dss_slot_t slot)
{
	struct dss_entry *entry = used_entry(core, slot);

	if (!(entry->bits & BITS_DIRTY))
		entry->bits |= BITS_STAGED;
}

static void wipe_dirty(struct dss_core *core, struct dss_entry *entry)
{
	count_dirty(core, entry, -1);
	entry->bits &= ~(BITS_DIRTY | BITS_AGAIN | BITS_STAGED);
}

void dss_core_set_clean(struct dss_core *core, dss_slot_t slot)
{
	struct dss_entry *entry = used_entry(core, slot);

	DSS_FORBID(!(entry->bits & BITS_DIRTY));
	DSS_FORBID(entry->bits & BITS_BUSY);
	leave_list(core, dss_from_slot(slot));
	wipe_dirty(core, entry);
	join_list(core, dss_from_slot(slot), false);
}

u32 dss_core_pull_dirty(struct dss_core *core, dss_slot_t *slots, u32 most)
{
	unsigned int place;
	u32 pulled = 0;

	for (place = 0; place < DSS_CLASSES; place++) {
		struct dss_list *list = &core->dirty[core->order[place]];

		while (pulled < most && list->count) {
			u32 slot = list->oldest;

			make_busy(core, slot, BITS_PULLED);
			core->nr_pulled++;
			slots[pulled++] = dss_to_slot(slot);
		}
	}
	return pulled;
}

dss_slot_t dss_core_pull_beside(struct dss_core *core, dss_oblock_t oblock)
{
	u32 slot = index_find(core, dss_from_oblock(oblock));

	if (slot == NONE || (core->entries[slot].bits &
			     (BITS_DIRTY | BITS_BUSY)) != BITS_DIRTY)
		return DSS_NO_SLOT;
	make_busy(core, slot, BITS_PULLED);
	core->nr_pulled++;
	return dss_to_slot(slot);
}

bool dss_core_cleaned(struct dss_core *core, dss_slot_t slot, bool written)
{
	struct dss_entry *entry = used_entry(core, slot);
	bool clean = written && !(entry->bits & BITS_AGAIN);
	bool staged = entry->bits & BITS_STAGED;

	end_busy(core, dss_from_slot(slot), BITS_PULLED);
	core->nr_pulled--;
	entry->bits &= ~BITS_AGAIN;
	if (clean) {
		wipe_dirty(core, entry);
		core->stats[entry_class(entry)].cleaned++;
	}
	join_list(core, dss_from_slot(slot), clean && staged);
	return clean;
}

bool dss_core_has_stage(const struct dss_core *core)
{
	return core->stage;
}

u32 dss_core_stage_room(const struct dss_core *core)
{
	return core->nr_staged < core->stage ?
		core->stage - core->nr_staged : 0;
}

bool dss_core_may_dirty(const struct dss_core *core, unsigned int class_id)
{
	u32 rank, dirty = 0, cap;
	unsigned int other;

	DSS_FORBID(class_id >= DSS_CLASSES);
	rank = spec_of(core, class_id)->rank;
	cap = core->rows[class_id].dirty_cap;
	if (cap == NO_CAP || core->mode == DSS_MODE_LRU)
		return true;
	for (other = 0; other < DSS_CLASSES; other++)
		if (spec_of(core, other)->rank <= rank)
			dirty += core->stats[other].dirty;
	return dirty < cap;
}
