// SPDX-License-Identifier: GPL-2.0 OR Apache-2.0
/*
 * The engine around the core at its smallest; see dss_replay.h.
 */
#include "dss_replay.h"

#define CLEAN_EVERY 64
#define BATCH 64

static void clean(struct dss_core *core)
{
	u32 goal = dss_core_cleaning_goal(core);
	dss_slot_t slots[BATCH];

	while (goal) {
		u32 pulled, i;

		pulled = dss_core_pull_dirty(core, slots,
					     goal < BATCH ? goal : BATCH);
		if (!pulled)
			break;
		for (i = 0; i < pulled; i++)
			dss_core_cleaned(core, slots[i], true);
		goal -= pulled;
	}
}

static u8 hit(struct dss_core *core, dss_slot_t slot, u8 class_id, bool write,
	      bool dirty)
{
	enum dss_touched touched = dss_core_touch(core, slot, class_id, write);

	/* Write through the writes that must not become dirty. */
	if (dirty && (dss_core_slot_state(core, slot, NULL, NULL) &
		      DSS_SLOT_DIRTY || dss_core_may_dirty(core, class_id))) {
		dss_core_set_dirty(core, slot);
	} else if (dirty && dss_core_stage_room(core)) {
		dss_core_stage(core, slot);
		dss_core_set_dirty(core, slot);
	}
	if (touched == DSS_GIVE_UP &&
	    !(dss_core_slot_state(core, slot, NULL, NULL) & DSS_SLOT_DIRTY))
		dss_core_evict(core, slot, DSS_EVICT_HIT);
	return DSS_REPLAY_HIT;
}

static u8 miss(struct dss_core *core, struct dss_trace *trace, u64 at,
	       bool sequential, bool dirty)
{
	dss_oblock_t oblock = dss_to_oblock(trace->oblocks[at]);
	struct dss_verdict verdict;

	dss_core_miss(core, trace->class_ids[at],
		      (sequential ? DSS_MISS_SEQUENTIAL : 0) |
		      (dirty ? DSS_MISS_DIRTY : 0), &verdict);
	if (verdict.kind != DSS_VERDICT_BYPASS) {
		if (verdict.kind == DSS_VERDICT_VICTIM)
			trace->victims[trace->nr_victims++] =
				dss_from_oblock(verdict.victim);
		dss_core_commit(core, dss_core_take(core, &verdict, oblock),
				dirty);
	}
	return verdict.kind << 4 | verdict.reason;
}

void dss_core_replay(struct dss_core *core, struct dss_trace *trace)
{
	u64 at;

	trace->nr_victims = 0;
	for (at = 0; at < trace->length; at++) {
		u64 oblock = trace->oblocks[at];
		u8 class_id = trace->class_ids[at];
		bool write = trace->writes[at];
		bool dirty = write && trace->flags & DSS_REPLAY_BACK;
		bool sequential = trace->flags & DSS_REPLAY_RUNS &&
			dss_core_run(core, class_id,
				     oblock * trace->chunk_sectors,
				     trace->chunk_sectors);
		dss_slot_t slot = dss_core_lookup(core, dss_to_oblock(oblock));

		if (slot != DSS_NO_SLOT)
			trace->kinds[at] = hit(core, slot, class_id, write,
					       dirty);
		else
			trace->kinds[at] = miss(core, trace, at, sequential,
						dirty);
		if (trace->flags & DSS_REPLAY_BACK &&
		    at % CLEAN_EVERY == CLEAN_EVERY - 1)
			clean(core);
	}
}
