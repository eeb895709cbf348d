// SPDX-License-Identifier: GPL-2.0 OR Apache-2.0
/*
 * The class table of the decision core, its modes and its watermarks.
 */
#include "dss_lists.h"

static const struct dss_class_spec default_spec = {
	.cap_parts = DSS_PARTS,
	.dirty_cap_parts = DSS_PARTS,
	.weight = 1,
	.allocate = DSS_ALLOCATE_ALWAYS,
	.write_mode = DSS_WRITE_BACK,
};

/*
 * The rule of a class without a row. If class 0 has no row, the device is
 * unclassified: no reference order has to be kept there, and SIEVE hits more
 * often.
 */
static struct dss_class_spec fallback_of(const struct dss_core *core,
					 unsigned int class_id)
{
	struct dss_class_spec spec = default_spec;

	if (core->has & 1)
		return core->given[DSS_UNCLASSIFIED];
	if (class_id == DSS_UNCLASSIFIED)
		spec.inner = DSS_INNER_SIEVE;
	return spec;
}

static u32 share(const struct dss_core *core, u32 parts)
{
	return (u32)((u64)parts * core->limit >> 16);
}

/* The same where all of it stands for "as many as there are". */
static u32 cap_of(const struct dss_core *core, u32 parts)
{
	return parts == DSS_PARTS ? NO_CAP : share(core, parts);
}

static void sort_order(struct dss_core *core)
{
	unsigned int place, class_id;

	for (class_id = 0; class_id < DSS_CLASSES; class_id++) {
		u32 rank = rank_here(core, class_id);

		for (place = class_id; place > 0; place--) {
			if (rank_here(core, core->order[place - 1]) <= rank)
				break;
			core->order[place] = core->order[place - 1];
		}
		core->order[place] = class_id;
	}
}

void dss_table_refresh(struct dss_core *core)
{
	unsigned int class_id;

	core->cutoffs = 0;
	core->stage = share(core, core->stage_parts);
	for (class_id = 0; class_id < DSS_CLASSES; class_id++) {
		struct dss_row *row = &core->rows[class_id];

		row->spec = core->has & 1U << class_id ?
			core->given[class_id] : fallback_of(core, class_id);
		row->floor = share(core, row->spec.floor_parts);
		row->cap = cap_of(core, row->spec.cap_parts);
		row->dirty_cap = cap_of(core, row->spec.dirty_cap_parts);
		if (row->spec.cutoff_sectors)
			core->cutoffs |= 1U << class_id;
	}
	sort_order(core);
}

static bool flags_agree(const struct dss_class_spec *spec)
{
	u8 away = spec->flags & (DSS_DIRECT_HDD | DSS_NO_ALLOCATE);

	if (spec->allocate == DSS_ALLOCATE_NEVER)
		away |= DSS_NO_ALLOCATE;
	if (spec->flags & DSS_DIRECT_SSD && away)
		return false;
	if (spec->flags & DSS_PIN &&
	    (away || spec->flags & DSS_EVICT_ON_HIT))
		return false;
	if (spec->flags & DSS_PASSING && (away || spec->flags != DSS_PASSING))
		return false;
	return true;
}

static bool spec_is_sound(const struct dss_class_spec *spec)
{
	return spec->rank <= DSS_RANK_MAX &&
	       spec->cap_parts <= DSS_PARTS &&
	       spec->floor_parts <= spec->cap_parts &&
	       spec->dirty_cap_parts <= DSS_PARTS &&
	       spec->weight >= 1 && spec->weight <= DSS_WEIGHT_MAX &&
	       spec->allocate < DSS_NR_ALLOCATE &&
	       spec->write_mode < DSS_NR_WRITE_MODE &&
	       !(spec->flags & ~DSS_CLASS_FLAGS) &&
	       spec->inner < DSS_NR_INNER && flags_agree(spec);
}

void dss_core_default_class(struct dss_class_spec *spec)
{
	*spec = default_spec;
}

int dss_core_set_class(struct dss_core *core, unsigned int class_id,
		       const struct dss_class_spec *spec)
{
	if (class_id >= DSS_CLASSES || (spec && !spec_is_sound(spec)))
		return -EINVAL;
	if (spec) {
		core->given[class_id] = *spec;
		core->has |= 1U << class_id;
	} else {
		core->has &= ~(1U << class_id);
	}
	dss_table_refresh(core);
	return 0;
}

int dss_core_set_table(struct dss_core *core,
		       const struct dss_class_spec *specs, u32 has)
{
	unsigned int class_id;

	for (class_id = 0; class_id < DSS_CLASSES; class_id++)
		if (has & 1U << class_id && !spec_is_sound(&specs[class_id]))
			return -EINVAL;
	for (class_id = 0; class_id < DSS_CLASSES; class_id++)
		if (has & 1U << class_id)
			core->given[class_id] = specs[class_id];
	core->has = has;
	dss_table_refresh(core);
	return 0;
}

void dss_core_get_class(const struct dss_core *core, unsigned int class_id,
			struct dss_class_spec *spec)
{
	DSS_FORBID(class_id >= DSS_CLASSES);
	*spec = *spec_of(core, class_id);
}

bool dss_core_has_class(const struct dss_core *core, unsigned int class_id)
{
	DSS_FORBID(class_id >= DSS_CLASSES);
	return core->has & 1U << class_id;
}

int dss_core_set_mode(struct dss_core *core, unsigned int mode)
{
	if (mode >= DSS_NR_MODE)
		return -EINVAL;
	/* Whether classes have lists of their own. */
	if (core->nr_used && mode != core->mode &&
	    (mode == DSS_MODE_LRU || core->mode == DSS_MODE_LRU))
		return -EBUSY;
	core->mode = mode;
	return 0;
}

int dss_core_set_watermarks(struct dss_core *core, u32 high_parts,
			    u32 low_parts)
{
	if (high_parts > DSS_PARTS || low_parts > high_parts)
		return -EINVAL;
	core->high_parts = high_parts;
	core->low_parts = low_parts;
	return 0;
}

int dss_core_set_stage(struct dss_core *core, u32 parts)
{
	if (parts > DSS_PARTS)
		return -EINVAL;
	core->stage_parts = parts;
	dss_table_refresh(core);
	return 0;
}

/* Over half of the stage, and then until it is empty. */
static u32 stage_goal(struct dss_core *core)
{
	if (core->nr_staged > core->stage / 2)
		core->staging = true;
	if (!core->nr_staged)
		core->staging = false;
	return core->staging ? core->nr_staged : 0;
}

/* Dirty slots above the low watermark, once they were above the high one. */
static u32 marks_goal(struct dss_core *core)
{
	u32 waiting = core->nr_dirty - core->nr_pulled;
	u32 low = share(core, core->low_parts);

	if (waiting > share(core, core->high_parts))
		core->cleaning = true;
	if (waiting <= low)
		core->cleaning = false;
	return core->cleaning ? waiting - low : 0;
}

/* How many places of the order have @goal dirty slots together. */
static unsigned int places_of(const struct dss_core *core, u32 goal)
{
	unsigned int place;
	u32 dirty = 0;

	for (place = 0; place < DSS_CLASSES && dirty < goal; place++)
		dirty += core->stats[core->order[place]].dirty;
	return place;
}

u32 dss_core_cleaning_goal(struct dss_core *core)
{
	u32 goal = marks_goal(core), staged = stage_goal(core);
	unsigned int place, places;

	core->unclean = 0;
	/* Each write that makes a chunk dirty asks for the goal. */
	places = core->stage ? places_of(core, goal) : 0;
	for (place = 0; place < places; place++)
		core->unclean |= 1U << core->order[place];
	return goal > staged ? goal : staged;
}

bool dss_core_wants_clean(const struct dss_core *core, dss_slot_t slot)
{
	const struct dss_entry *entry = used_entry(core, slot);
	bool all = core->mode == DSS_MODE_LRU && core->unclean;

	return (entry->bits & (BITS_DIRTY | BITS_BUSY)) == BITS_DIRTY &&
	       (entry->bits & BITS_STAGED || all ||
		core->unclean & 1U << entry_class(entry));
}
