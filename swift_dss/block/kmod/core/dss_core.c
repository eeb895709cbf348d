// SPDX-License-Identifier: GPL-2.0 OR Apache-2.0
/*
 * Slots that come, go and are used, in the decision core.
 */
#include "dss_lists.h"

/* ---- Slots that come and go ---- */

/* A free slot gets a chunk; it is in no list yet. */
static void occupy(struct dss_core *core, u32 slot, u64 oblock,
		   unsigned int class_id)
{
	struct dss_entry *entry = &core->entries[slot];

	/* A victim's slot may be over the limit, so not free for all. */
	if (slot < core->limit)
		list_del(core, &core->free, slot);
	entry->low = (u32)oblock;
	entry->bits = (u32)(oblock >> 32) << BITS_HIGH | BITS_USED | class_id;
	index_add(core, slot);
	core->nr_used++;
	core->stats[class_id].resident++;
}

/* A used slot loses its chunk; it is in no list any more. */
static void vacate(struct dss_core *core, u32 slot)
{
	struct dss_entry *entry = &core->entries[slot];

	index_del(core, slot);
	core->nr_used--;
	core->stats[entry_class(entry)].resident--;
	entry->bits = 0;
	if (slot < core->limit)
		list_add_oldest(core, &core->free, slot);
}

static void forget(struct dss_core *core, u32 slot, enum dss_evict reason)
{
	struct dss_entry *entry = &core->entries[slot];
	unsigned int class_id = entry_class(entry);

	if (entry->bits & BITS_BUSY)
		end_busy(core, slot, 0);
	else
		leave_list(core, slot);
	if (entry->bits & BITS_DIRTY)
		count_dirty(core, entry, -1);
	vacate(core, slot);
	core->stats[class_id].evicted[reason]++;
}

dss_slot_t dss_core_take(struct dss_core *core,
			 const struct dss_verdict *verdict,
			 dss_oblock_t oblock)
{
	u64 number = dss_from_oblock(oblock);
	u32 slot = dss_from_slot(verdict->slot);

	DSS_FORBID(verdict->kind == DSS_VERDICT_BYPASS);
	DSS_FORBID(slot >= core->nr_slots);
	DSS_FORBID(number >= DSS_OBLOCKS_MAX);
	DSS_FORBID(index_find(core, number) != NONE);
	if (verdict->kind == DSS_VERDICT_VICTIM) {
		struct dss_entry *entry = used_entry(core, verdict->slot);

		DSS_FORBID(entry->bits & (BITS_DIRTY | BITS_BUSY));
		DSS_FORBID(entry_oblock(entry) !=
			   dss_from_oblock(verdict->victim));
		forget(core, slot, verdict->reason);
	}
	DSS_FORBID(core->entries[slot].bits & BITS_USED);
	occupy(core, slot, number, verdict->class_id);
	core->entries[slot].bits |= BITS_BUSY | BITS_TAKEN |
		(verdict->staged ? BITS_STAGED : 0);
	core->stats[verdict->class_id].busy++;
	core->stats[verdict->class_id].takes++;
	return dss_to_slot(slot);
}

void dss_core_commit(struct dss_core *core, dss_slot_t slot, bool dirty)
{
	struct dss_entry *entry = used_entry(core, slot);

	end_busy(core, dss_from_slot(slot), BITS_TAKEN);
	if (dirty && !(entry->bits & BITS_DIRTY))
		turn_dirty(core, entry);
	entry->bits &= ~BITS_AGAIN;
	join_list(core, dss_from_slot(slot), false);
}

void dss_core_abort(struct dss_core *core, dss_slot_t slot)
{
	struct dss_entry *entry = used_entry(core, slot);

	DSS_FORBID(entry->bits & BITS_DIRTY);
	end_busy(core, dss_from_slot(slot), BITS_TAKEN);
	core->stats[entry_class(entry)].bypass[DSS_BYPASS_FAILED]++;
	vacate(core, dss_from_slot(slot));
}

void dss_core_evict(struct dss_core *core, dss_slot_t slot,
		    enum dss_evict reason)
{
	struct dss_entry *entry = used_entry(core, slot);

	DSS_FORBID((unsigned int)reason >= DSS_NR_EVICT);
	DSS_FORBID(entry->bits & BITS_DIRTY && reason != DSS_EVICT_DISCARD);
	forget(core, dss_from_slot(slot), reason);
}

int dss_core_load(struct dss_core *core, u32 slot, u64 oblock,
		  unsigned int class_id, bool dirty)
{
	if (slot >= core->limit || oblock >= DSS_OBLOCKS_MAX ||
	    class_id >= DSS_CLASSES)
		return -ERANGE;
	if (core->entries[slot].bits & BITS_USED)
		return -EBUSY;
	if (index_find(core, oblock) != NONE)
		return -EEXIST;
	occupy(core, slot, oblock, class_id);
	if (dirty)
		turn_dirty(core, &core->entries[slot]);
	join_list(core, slot, false);
	return 0;
}

/* ---- Slots that stay ---- */

dss_slot_t dss_core_lookup(const struct dss_core *core, dss_oblock_t oblock)
{
	return dss_to_slot(index_find(core, dss_from_oblock(oblock)));
}

/* Change the class of a slot that is in no list. */
static void move_class(struct dss_core *core, struct dss_entry *entry,
		       unsigned int class_id)
{
	struct dss_class_stats *from = &core->stats[entry_class(entry)];
	struct dss_class_stats *to = &core->stats[class_id];

	if (from == to)
		return;
	from->resident--;
	to->resident++;
	to->reclassed++;
	if (entry->bits & BITS_DIRTY) {
		from->dirty--;
		to->dirty++;
	}
	if (entry->bits & BITS_BUSY) {
		from->busy--;
		to->busy++;
	}
	entry->bits = (entry->bits & ~BITS_CLASS) | class_id;
}

/* The flags that hold for a hit: the chunk's, and the request's own. */
static bool gives_up(const struct dss_core *core, unsigned int chunk_class,
		     unsigned int class_id, bool write)
{
	u8 flags = spec_of(core, chunk_class)->flags;

	if (flags & DSS_PIN && core->mode != DSS_MODE_LRU)
		return false;
	if (class_id != DSS_UNCLASSIFIED)
		flags |= spec_of(core, class_id)->flags;
	return flags & DSS_DIRECT_HDD ||
		(flags & DSS_EVICT_ON_HIT && !write);
}

enum dss_touched dss_core_touch(struct dss_core *core, dss_slot_t slot,
				unsigned int class_id, bool write)
{
	struct dss_entry *entry = used_entry(core, slot);
	unsigned int home = entry_class(entry);
	bool give_up;

	DSS_FORBID(class_id >= DSS_CLASSES);
	if (write)
		core->stats[class_id].write_hits++;
	else
		core->stats[class_id].read_hits++;
	if (spec_of(core, class_id)->flags & DSS_NO_ALLOCATE)
		return DSS_KEEP;
	if (class_id != DSS_UNCLASSIFIED && class_id != entry_class(entry) &&
	    !at_cap(core, class_id))
		home = class_id;
	give_up = !(entry->bits & BITS_BUSY) &&
		gives_up(core, home, class_id, write);
	entry->bits |= BITS_MARKED;
	if (home == entry_class(entry) && !give_up &&
	    !(entry->bits & BITS_DIRTY) && is_sieved(core, home))
		return DSS_KEEP;
	leave_list(core, dss_from_slot(slot));
	move_class(core, entry, home);
	join_list(core, dss_from_slot(slot), give_up);
	return give_up ? DSS_GIVE_UP : DSS_KEEP;
}

unsigned int dss_core_slot_state(const struct dss_core *core, dss_slot_t slot,
				 dss_oblock_t *oblock,
				 unsigned int *class_id)
{
	const struct dss_entry *entry;
	unsigned int state = 0;

	DSS_FORBID(dss_from_slot(slot) >= core->nr_slots);
	entry = &core->entries[dss_from_slot(slot)];
	if (oblock)
		*oblock = dss_to_oblock(entry_oblock(entry));
	if (class_id)
		*class_id = entry_class(entry);
	if (entry->bits & BITS_USED)
		state |= DSS_SLOT_USED;
	if (entry->bits & BITS_DIRTY)
		state |= DSS_SLOT_DIRTY;
	if (entry->bits & BITS_BUSY)
		state |= DSS_SLOT_BUSY;
	if (entry->bits & BITS_AGAIN)
		state |= DSS_SLOT_AGAIN;
	if (entry->bits & BITS_STAGED)
		state |= DSS_SLOT_STAGED;
	return state;
}

void dss_core_hold(struct dss_core *core, dss_slot_t slot)
{
	used_entry(core, slot);
	make_busy(core, dss_from_slot(slot), 0);
}

void dss_core_let_go(struct dss_core *core, dss_slot_t slot)
{
	used_entry(core, slot);
	end_busy(core, dss_from_slot(slot), 0);
	join_list(core, dss_from_slot(slot), false);
}

void dss_core_reclass(struct dss_core *core, dss_slot_t slot,
		      unsigned int class_id)
{
	struct dss_entry *entry = used_entry(core, slot);

	DSS_FORBID(class_id >= DSS_CLASSES);
	leave_list(core, dss_from_slot(slot));
	move_class(core, entry, class_id);
	join_list(core, dss_from_slot(slot), false);
}

void dss_core_age(struct dss_core *core, dss_slot_t slot)
{
	struct dss_entry *entry = used_entry(core, slot);

	DSS_FORBID(entry->bits & BITS_BUSY);
	leave_list(core, dss_from_slot(slot));
	join_list(core, dss_from_slot(slot), true);
}

/* ---- Looking inside ---- */

dss_slot_t dss_core_oldest(const struct dss_core *core, unsigned int class_id,
			   bool dirty)
{
	DSS_FORBID(class_id >= DSS_CLASSES);
	return dss_to_slot(dirty ? core->dirty[class_id].oldest :
			   core->clean[class_id].oldest);
}

dss_slot_t dss_core_younger(const struct dss_core *core, dss_slot_t slot)
{
	return dss_to_slot(used_entry(core, slot)->younger);
}

u32 dss_core_number(const struct dss_core *core, unsigned int class_id,
		    bool dirty, u32 *numbers, u32 next)
{
	bool sieved = !dirty && is_sieved(core, class_id);
	const struct dss_list *list;
	u32 marked, slot, left;

	DSS_FORBID(class_id >= DSS_CLASSES);
	list = dirty ? &core->dirty[class_id] : &core->clean[class_id];
	for (marked = 0; marked <= sieved; marked++) {
		slot = sieved ? under_hand(list) : list->oldest;
		for (left = list->count; left; left--) {
			u32 bits = core->entries[slot].bits;

			if (!sieved || marked == !!(bits & BITS_MARKED))
				numbers[slot] = next++;
			slot = further(core, list, slot);
		}
	}
	return next;
}

void dss_core_stats(const struct dss_core *core, unsigned int class_id,
		    struct dss_class_stats *stats)
{
	DSS_FORBID(class_id >= DSS_CLASSES);
	*stats = core->stats[class_id];
}

u32 dss_core_nr_slots(const struct dss_core *core)
{
	return core->nr_slots;
}

u32 dss_core_nr_free(const struct dss_core *core)
{
	return core->free.count;
}

u32 dss_core_nr_dirty(const struct dss_core *core)
{
	return core->nr_dirty;
}
