// SPDX-License-Identifier: GPL-2.0 OR Apache-2.0
/*
 * The life of a decision core: its memory, and how many slots it has.
 */
#include "dss_lists.h"

static u64 align8(u64 bytes)
{
	return (bytes + 7) & ~7ULL;
}

u64 dss_core_bytes(u64 slots)
{
	if (!slots || slots > DSS_SLOTS_MAX)
		return 0;
	return align8(sizeof(struct dss_core)) +
		align8(slots * sizeof(struct dss_entry)) +
		align8(slots * sizeof(u32));
}

/* Point a core at the tables behind it, and empty them. */
static void lay_out(struct dss_core *core, u32 slots)
{
	u8 *memory = (u8 *)core + align8(sizeof(*core));

	core->nr_slots = slots;
	core->limit = slots;
	core->entries = (struct dss_entry *)memory;
	memory += align8((u64)slots * sizeof(struct dss_entry));
	core->buckets = (u32 *)memory;
	memset(core->entries, 0, (size_t)slots * sizeof(struct dss_entry));
	memset(core->buckets, 0xff, (size_t)slots * sizeof(u32));
}

/* All slots from @from on that are not used become free, in their order. */
static void add_free(struct dss_core *core, u32 from, u32 until)
{
	u32 slot;

	for (slot = from; slot < until; slot++)
		if (!(core->entries[slot].bits & BITS_USED))
			list_add_youngest(core, &core->free, slot);
}

struct dss_core *dss_core_init(void *memory, u64 bytes, u64 slots, u64 seed)
{
	u64 needed = dss_core_bytes(slots);
	struct dss_core *core = memory;
	unsigned int class_id;

	if (!needed || bytes < needed)
		return NULL;
	memset(core, 0, sizeof(*core));
	lay_out(core, slots);
	core->seed = seed;
	core->high_parts = DSS_PARTS / 2;
	core->low_parts = DSS_PARTS / 4;
	list_init(&core->free);
	for (class_id = 0; class_id < DSS_CLASSES; class_id++) {
		list_init(&core->clean[class_id]);
		list_init(&core->dirty[class_id]);
	}
	add_free(core, 0, slots);
	dss_table_refresh(core);
	return core;
}

int dss_core_resize(const struct dss_core *core, void *memory, u64 bytes,
		    u64 slots)
{
	u64 needed = dss_core_bytes(slots);
	struct dss_core *sized = memory;
	u32 slot, kept;

	if (!needed || bytes < needed)
		return -EINVAL;
	for (slot = slots; slot < core->nr_slots; slot++)
		if (core->entries[slot].bits & BITS_USED)
			return -EBUSY;
	*sized = *core;
	lay_out(sized, slots);
	kept = slots < core->nr_slots ? slots : core->nr_slots;
	memcpy(sized->entries, core->entries,
	       (size_t)kept * sizeof(struct dss_entry));
	for (slot = 0; slot < kept; slot++)
		if (sized->entries[slot].bits & BITS_USED)
			index_add(sized, slot);
	list_init(&sized->free);
	add_free(sized, 0, slots);
	dss_table_refresh(sized);
	return 0;
}

int dss_core_set_limit(struct dss_core *core, u32 limit)
{
	u32 old = core->limit;
	u32 slot;

	if (!limit || limit > core->nr_slots)
		return -EINVAL;
	for (slot = limit; slot < old; slot++)
		if (!(core->entries[slot].bits & BITS_USED))
			list_del(core, &core->free, slot);
	core->limit = limit;
	add_free(core, old, limit);
	dss_table_refresh(core);
	return 0;
}

dss_slot_t dss_core_over_limit(const struct dss_core *core, dss_slot_t from)
{
	u32 slot = dss_from_slot(from);

	if (slot < core->limit)
		slot = core->limit;
	for (; slot < core->nr_slots; slot++)
		if (core->entries[slot].bits & BITS_USED)
			return dss_to_slot(slot);
	return DSS_NO_SLOT;
}
