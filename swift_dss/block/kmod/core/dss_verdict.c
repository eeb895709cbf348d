// SPDX-License-Identifier: GPL-2.0 OR Apache-2.0
/*
 * Decide which chunk comes to the SSD, and which leaves for it.
 *
 * The strict order is selective allocation and selective eviction of
 * Differentiated Storage Services (Mesnier et al., SOSP 2011, section 3.3);
 * no-allocate and evict-on-hit are hStorage-DB's (Luo et al., VLDB 2012);
 * the order inside a class may be SIEVE (Zhang et al., NSDI 2024, listing 1).
 */
#include "dss_core_impl.h"

/*
 * The obstacles in a search for a victim: the first class, in eviction order,
 * that has only dirty or busy slots, and whether floors or pins kept a class
 * from giving. @rank: that the newcomer comes with.
 */
struct search {
	unsigned int newcomer;
	u32 rank;
	unsigned int dirty_class;
	bool dirty;
	bool held;
};

/* Whether a class that may lose slots has one to lose; notes why not. */
static bool can_give(const struct dss_core *core, unsigned int class_id,
		     struct search *search)
{
	const struct dss_row *row = &core->rows[class_id];

	if (row->spec.flags & DSS_PIN ||
	    (class_id != search->newcomer &&
	     core->stats[class_id].resident <= row->floor)) {
		search->held = true;
		return false;
	}
	if (!core->clean[class_id].count) {
		if (!search->dirty)
			search->dirty_class = class_id;
		search->dirty = true;
		return false;
	}
	return true;
}

/* The lowest-ranked class that can give, up to the newcomer's rank. */
static int strict_giver(const struct dss_core *core, struct search *search)
{
	const struct dss_class_spec *spec = spec_of(core, search->newcomer);
	unsigned int place;

	for (place = 0; place < DSS_CLASSES; place++) {
		unsigned int class_id = core->order[place];

		if (!core->stats[class_id].resident)
			continue;
		if (rank_here(core, class_id) > search->rank &&
		    !(spec->flags & DSS_DIRECT_SSD))
			break;
		if (can_give(core, class_id, search))
			return class_id;
	}
	return -1;
}

/* Whether @more slots at @weight are more per weight than @slots at @other. */
static bool per_weight(u64 more, u32 weight, u64 slots, u32 other)
{
	return more * other > slots * weight;
}

/* The class with most per weight, if that is not less than the newcomer's. */
static int weighted_giver(const struct dss_core *core, struct search *search)
{
	const struct dss_class_spec *spec = spec_of(core, search->newcomer);
	u32 wanted = core->stats[search->newcomer].resident + 1;
	unsigned int place;
	int best = -1;

	for (place = 0; place < DSS_CLASSES; place++) {
		unsigned int class_id = core->order[place];
		u32 resident = core->stats[class_id].resident;
		u32 weight = spec_of(core, class_id)->weight;

		if (!resident)
			continue;
		if (class_id != search->newcomer &&
		    !(spec->flags & DSS_DIRECT_SSD) &&
		    per_weight(wanted, spec->weight, resident, weight))
			continue;
		if (!can_give(core, class_id, search))
			continue;
		if (best < 0 || per_weight(resident, weight,
					   core->stats[best].resident,
					   spec_of(core, best)->weight))
			best = class_id;
	}
	return best;
}

/* The lowest-ranked class that can give, for a newcomer of any rank. */
static int stage_giver(const struct dss_core *core, struct search *search)
{
	unsigned int place;

	for (place = 0; place < DSS_CLASSES; place++) {
		unsigned int class_id = core->order[place];

		if (core->stats[class_id].resident &&
		    can_give(core, class_id, search))
			return class_id;
	}
	return -1;
}

/* All classes share one list. */
static int lru_giver(const struct dss_core *core, struct search *search)
{
	if (core->clean[DSS_UNCLASSIFIED].count)
		return DSS_UNCLASSIFIED;
	search->dirty = true;
	search->dirty_class = DSS_UNCLASSIFIED;
	return -1;
}

static int (*const givers[DSS_NR_MODE])(const struct dss_core *core,
					struct search *search) = {
	[DSS_MODE_STRICT] = strict_giver,
	[DSS_MODE_WEIGHTED] = weighted_giver,
	[DSS_MODE_LRU] = lru_giver,
};

static void bypass(struct dss_core *core, struct dss_verdict *verdict,
		   enum dss_bypass reason)
{
	verdict->kind = DSS_VERDICT_BYPASS;
	verdict->reason = reason;
	core->stats[verdict->class_id].bypass[reason]++;
}

/* The first victim of a class's clean slots; there is one. */
static u32 first_out(struct dss_core *core, unsigned int class_id)
{
	struct dss_list *list = &core->clean[class_id];
	unsigned int looks;
	u32 slot;

	if (!is_sieved(core, class_id))
		return list->oldest;
	slot = under_hand(list);
	for (looks = 0; looks < DSS_SIEVE_LOOKS; looks++) {
		if (!(core->entries[slot].bits & BITS_MARKED))
			break;
		core->entries[slot].bits &= ~BITS_MARKED;
		slot = further(core, list, slot);
	}
	list->hand = slot;
	return slot;
}

/* Name the clean slot that leaves first of @class_id as the victim. */
static void give(struct dss_core *core, struct dss_verdict *verdict,
		 const struct search *search, unsigned int class_id, bool cap)
{
	u32 slot = first_out(core, class_id);
	const struct dss_entry *entry = &core->entries[slot];

	verdict->kind = DSS_VERDICT_VICTIM;
	verdict->slot = dss_to_slot(slot);
	verdict->victim = dss_to_oblock(entry_oblock(entry));
	verdict->victim_class = entry_class(entry);
	if (cap)
		verdict->reason = DSS_EVICT_CAP;
	else if (verdict->victim_class == search->newcomer)
		verdict->reason = DSS_EVICT_OWN;
	else if (rank_here(core, verdict->victim_class) < search->rank)
		verdict->reason = DSS_EVICT_ABOVE;
	else
		verdict->reason = DSS_EVICT_PEER;
}

/* At its cap a class makes room by itself, or stays out. */
static void miss_at_cap(struct dss_core *core, struct dss_verdict *verdict,
			struct search *search)
{
	unsigned int class_id = search->newcomer;

	if (spec_of(core, class_id)->allocate == DSS_ALLOCATE_ALWAYS &&
	    core->stats[class_id].resident &&
	    can_give(core, class_id, search)) {
		give(core, verdict, search, class_id, true);
		return;
	}
	bypass(core, verdict, search->dirty ? DSS_BYPASS_DIRTY :
	       DSS_BYPASS_CAP);
}

static void miss_when_full(struct dss_core *core, struct dss_verdict *verdict,
			   struct search *search)
{
	int class_id = givers[core->mode](core, search);

	if (class_id >= 0)
		give(core, verdict, search, class_id, false);
	else if (search->dirty)
		bypass(core, verdict, DSS_BYPASS_DIRTY);
	else if (search->held)
		bypass(core, verdict, DSS_BYPASS_HELD);
	else
		bypass(core, verdict, DSS_BYPASS_RANK);
}

/* Whether the class keeps away from the SSD by itself, and why. */
static int stays_out(const struct dss_core *core, unsigned int class_id,
		     unsigned int how)
{
	const struct dss_class_spec *spec = spec_of(core, class_id);

	if (spec->flags & DSS_DIRECT_HDD)
		return DSS_BYPASS_DIRECT;
	if (spec->flags & DSS_NO_ALLOCATE ||
	    spec->allocate == DSS_ALLOCATE_NEVER)
		return DSS_BYPASS_NEVER;
	if (how & DSS_MISS_SEQUENTIAL && !(spec->flags & DSS_DIRECT_SSD))
		return DSS_BYPASS_SEQUENTIAL;
	if (how & DSS_MISS_DIRTY && !dss_core_may_dirty(core, class_id))
		return DSS_BYPASS_DIRTY_CAP;
	return -1;
}

/* Whether a miss has no slot by the right of its class. */
static bool has_no_right(const struct dss_core *core, unsigned int class_id,
			 unsigned int how)
{
	struct search search = {
		.newcomer = class_id, .rank = rank_coming(core, class_id, how)
	};
	const struct dss_class_spec *spec;

	spec = spec_of(core, class_id);
	if (stays_out(core, class_id, how) >= 0)
		return true;
	if (at_cap(core, class_id))
		return spec->allocate != DSS_ALLOCATE_ALWAYS ||
		       !core->stats[class_id].resident ||
		       !can_give(core, class_id, &search);
	if (core->free.count)
		return false;
	return spec->allocate == DSS_ALLOCATE_ROOM ||
	       givers[core->mode](core, &search) < 0;
}

/* The class that gives for a write of the stage; -1: none. */
static int staged_giver(const struct dss_core *core, struct search *search)
{
	return core->mode == DSS_MODE_LRU ? lru_giver(core, search) :
		stage_giver(core, search);
}

/* Whether a miss without a right goes to the stage, if that has room. */
static bool is_for_stage(const struct dss_core *core, unsigned int class_id,
			 unsigned int how)
{
	return how & DSS_MISS_DIRTY && core->stage &&
	       stays_out(core, class_id, how & ~DSS_MISS_DIRTY) < 0 &&
	       has_no_right(core, class_id, how);
}

bool dss_core_must_wait(const struct dss_core *core, unsigned int class_id,
			unsigned int how)
{
	DSS_FORBID(class_id >= DSS_CLASSES);
	if (!core->stage || dss_core_stage_room(core))
		return false;
	if (how & DSS_MISS_DIRTY)
		return is_for_stage(core, class_id, how);
	return stays_out(core, class_id, how) < 0 &&
	       !dss_core_may_dirty(core, class_id);
}

/* A place in the stage, whatever the class: whether there is one. */
static bool miss_staged(struct dss_core *core, unsigned int class_id,
			struct dss_verdict *verdict)
{
	struct search search = {
		.newcomer = class_id,
		.rank = rank_coming(core, class_id, DSS_MISS_DIRTY)
	};
	int giver = -1;

	if (!dss_core_stage_room(core))
		return false;
	if (core->free.count) {
		verdict->kind = DSS_VERDICT_FREE;
		verdict->slot = dss_to_slot(core->free.oldest);
	} else {
		giver = staged_giver(core, &search);
		if (giver < 0)
			return false;
		give(core, verdict, &search, giver, false);
	}
	verdict->staged = true;
	return true;
}

void dss_core_miss(struct dss_core *core, unsigned int class_id,
		   unsigned int how, struct dss_verdict *verdict)
{
	struct search search = {
		.newcomer = class_id, .rank = rank_coming(core, class_id, how)
	};
	const struct dss_class_spec *spec;
	int reason;

	DSS_FORBID(class_id >= DSS_CLASSES);
	spec = spec_of(core, class_id);
	memset(verdict, 0, sizeof(*verdict));
	verdict->class_id = class_id;
	verdict->slot = DSS_NO_SLOT;
	core->stats[class_id].misses++;
	if (is_for_stage(core, class_id, how) &&
	    miss_staged(core, class_id, verdict))
		return;
	reason = stays_out(core, class_id, how);
	if (reason >= 0) {
		bypass(core, verdict, reason);
	} else if (at_cap(core, class_id)) {
		miss_at_cap(core, verdict, &search);
	} else if (core->free.count) {
		verdict->kind = DSS_VERDICT_FREE;
		verdict->slot = dss_to_slot(core->free.oldest);
	} else if (spec->allocate == DSS_ALLOCATE_ROOM) {
		bypass(core, verdict, DSS_BYPASS_ROOM);
	} else {
		miss_when_full(core, verdict, &search);
	}
	verdict->want_clean = search.dirty;
	if (search.dirty && verdict->kind == DSS_VERDICT_BYPASS)
		verdict->slot = dss_core_oldest(core, search.dirty_class, true);
}

bool dss_core_passes(const struct dss_core *core, unsigned int class_id,
		     unsigned int how)
{
	struct search search = { .newcomer = class_id };

	DSS_FORBID(class_id >= DSS_CLASSES);
	if (!has_no_right(core, class_id, how))
		return false;
	return !is_for_stage(core, class_id, how) ||
	       !dss_core_stage_room(core) ||
	       (!core->free.count && staged_giver(core, &search) < 0);
}

bool dss_core_room(const struct dss_core *core, unsigned int class_id,
		   struct dss_verdict *verdict)
{
	DSS_FORBID(class_id >= DSS_CLASSES);
	memset(verdict, 0, sizeof(*verdict));
	verdict->class_id = class_id;
	verdict->slot = DSS_NO_SLOT;
	verdict->kind = DSS_VERDICT_BYPASS;
	if (stays_out(core, class_id, 0) >= 0 || at_cap(core, class_id) ||
	    !core->free.count)
		return false;
	verdict->kind = DSS_VERDICT_FREE;
	verdict->slot = dss_to_slot(core->free.oldest);
	return true;
}

void dss_core_decline(struct dss_core *core,
		      const struct dss_verdict *verdict)
{
	DSS_FORBID(verdict->kind == DSS_VERDICT_BYPASS);
	core->stats[verdict->class_id].bypass[DSS_BYPASS_DECLINED]++;
	if (verdict->kind == DSS_VERDICT_VICTIM &&
	    is_sieved(core, verdict->victim_class))
		core->entries[dss_from_slot(verdict->slot)].bits |=
			BITS_MARKED;
}

dss_slot_t dss_core_reclaim(struct dss_core *core)
{
	unsigned int place;

	if (core->mode == DSS_MODE_LRU)
		return DSS_NO_SLOT;
	for (place = 0; place < DSS_CLASSES; place++) {
		unsigned int class_id = core->order[place];
		const struct dss_row *row = &core->rows[class_id];

		if (core->stats[class_id].resident > row->cap &&
		    core->clean[class_id].count &&
		    !(row->spec.flags & DSS_PIN))
			return dss_to_slot(first_out(core, class_id));
	}
	return DSS_NO_SLOT;
}
