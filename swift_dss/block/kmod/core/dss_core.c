// SPDX-License-Identifier: GPL-2.0 OR Apache-2.0
/*
 * Slots, lists and the index of the decision core.
 * long: every writer of struct dss_entry is in this one file.
 */
#include "dss_core_impl.h"

/* Odd, with bits all over: 2^64 divided by the golden ratio. */
#define HASH_FACTOR 0x9e3779b97f4a7c15ULL

/* ---- Lists ---- */

static void list_init(struct dss_list *list)
{
	list->oldest = NONE;
	list->youngest = NONE;
	list->count = 0;
	list->hand = NONE;
}

static void list_add_youngest(struct dss_core *core, struct dss_list *list,
			      u32 slot)
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

static void list_add_oldest(struct dss_core *core, struct dss_list *list,
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

static void list_del(struct dss_core *core, struct dss_list *list, u32 slot)
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
static struct dss_list *list_of(struct dss_core *core,
				const struct dss_entry *entry)
{
	unsigned int class_id = list_class(core, entry_class(entry));

	return entry->bits & BITS_DIRTY ? &core->dirty[class_id] :
		&core->clean[class_id];
}

static void leave_list(struct dss_core *core, u32 slot)
{
	struct dss_entry *entry = &core->entries[slot];

	if (!(entry->bits & BITS_BUSY))
		list_del(core, list_of(core, entry), slot);
}

/* @oldest: it is to leave next, in whatever order. */
static void join_list(struct dss_core *core, u32 slot, bool oldest)
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

static u32 *bucket_of(const struct dss_core *core, u64 oblock)
{
	u64 hash = (oblock ^ core->seed) * HASH_FACTOR;

	hash ^= hash >> 32;
	hash *= HASH_FACTOR;
	return &core->buckets[(hash >> 32) * core->nr_slots >> 32];
}

static u32 index_find(const struct dss_core *core, u64 oblock)
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

static void index_add(struct dss_core *core, u32 slot)
{
	struct dss_entry *entry = &core->entries[slot];
	u32 *bucket = bucket_of(core, entry_oblock(entry));

	entry->chain = *bucket;
	*bucket = slot;
}

static void index_del(struct dss_core *core, u32 slot)
{
	u32 *link = bucket_of(core, entry_oblock(&core->entries[slot]));

	while (*link != slot) {
		DSS_FORBID(*link == NONE);
		link = &core->entries[*link].chain;
	}
	*link = core->entries[slot].chain;
}

/* ---- Life ---- */

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

/* ---- Slots that come and go ---- */

static struct dss_entry *used_entry(const struct dss_core *core,
				    dss_slot_t slot)
{
	struct dss_entry *entry;

	DSS_FORBID(dss_from_slot(slot) >= core->nr_slots);
	entry = &core->entries[dss_from_slot(slot)];
	DSS_FORBID(!(entry->bits & BITS_USED));
	return entry;
}

/* A free slot gets a chunk; it is in no list yet. */
static void occupy(struct dss_core *core, u32 slot, u64 oblock,
		   unsigned int class_id, u32 bits)
{
	struct dss_entry *entry = &core->entries[slot];

	/* A victim's slot may be over the limit, so not free for all. */
	if (slot < core->limit)
		list_del(core, &core->free, slot);
	entry->low = (u32)oblock;
	entry->bits = (u32)(oblock >> 32) << BITS_HIGH | BITS_USED | bits |
		class_id;
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

static void count_dirty(struct dss_core *core, unsigned int class_id,
			int change)
{
	core->nr_dirty += change;
	core->stats[class_id].dirty += change;
}

static void make_busy(struct dss_core *core, u32 slot, u32 why)
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
static void end_busy(struct dss_core *core, u32 slot, u32 why)
{
	struct dss_entry *entry = &core->entries[slot];

	DSS_FORBID(!(entry->bits & BITS_BUSY));
	DSS_FORBID((entry->bits & (BITS_TAKEN | BITS_PULLED)) != why);
	entry->bits &= ~(BITS_BUSY | BITS_TAKEN | BITS_PULLED);
	core->stats[entry_class(entry)].busy--;
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
		count_dirty(core, class_id, -1);
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
	occupy(core, slot, number, verdict->class_id, 0);
	core->entries[slot].bits |= BITS_BUSY | BITS_TAKEN;
	core->stats[verdict->class_id].busy++;
	core->stats[verdict->class_id].takes++;
	return dss_to_slot(slot);
}

void dss_core_commit(struct dss_core *core, dss_slot_t slot, bool dirty)
{
	struct dss_entry *entry = used_entry(core, slot);

	end_busy(core, dss_from_slot(slot), BITS_TAKEN);
	if (dirty && !(entry->bits & BITS_DIRTY)) {
		entry->bits |= BITS_DIRTY;
		count_dirty(core, entry_class(entry), 1);
	}
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
	occupy(core, slot, oblock, class_id, dirty ? BITS_DIRTY : 0);
	if (dirty)
		count_dirty(core, class_id, 1);
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
	return state;
}

void dss_core_set_dirty(struct dss_core *core, dss_slot_t slot)
{
	struct dss_entry *entry = used_entry(core, slot);

	if (entry->bits & BITS_DIRTY) {
		if (entry->bits & BITS_PULLED)
			entry->bits |= BITS_AGAIN;
		return;
	}
	leave_list(core, dss_from_slot(slot));
	entry->bits |= BITS_DIRTY;
	count_dirty(core, entry_class(entry), 1);
	join_list(core, dss_from_slot(slot), false);
}

static void wipe_dirty(struct dss_core *core, struct dss_entry *entry)
{
	entry->bits &= ~(BITS_DIRTY | BITS_AGAIN);
	count_dirty(core, entry_class(entry), -1);
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

/* ---- Cleaning ---- */

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

	end_busy(core, dss_from_slot(slot), BITS_PULLED);
	core->nr_pulled--;
	entry->bits &= ~BITS_AGAIN;
	if (clean) {
		wipe_dirty(core, entry);
		core->stats[entry_class(entry)].cleaned++;
	}
	join_list(core, dss_from_slot(slot), false);
	return clean;
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
