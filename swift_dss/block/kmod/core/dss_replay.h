/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/*
 * A whole trace through the decision core, in the library only.
 */
#ifndef DSS_REPLAY_H
#define DSS_REPLAY_H

#include "dss_core.h"

/* Of dss_trace.flags. */
#define DSS_REPLAY_BACK	BIT(0)	/* writes make chunks dirty */
#define DSS_REPLAY_RUNS	BIT(1)	/* ask dss_core_run() */

/* A hit in dss_trace.kinds; a miss is kind << 4 | reason. */
#define DSS_REPLAY_HIT	255

/**
 * struct dss_trace - requests, and the decisions on them
 * @length: of the four arrays
 * @class_ids: below DSS_CLASSES
 * @oblocks: below DSS_OBLOCKS_MAX
 * @writes: 0 or 1
 * @kinds: decision of each request
 * @victims: room for @length; chunks that left, in order
 * @nr_victims: how many there are
 * @flags: DSS_REPLAY_*
 * @chunk_sectors: for runs
 */
struct dss_trace {
	u64 length;
	const u8 *class_ids;
	const u64 *oblocks;
	const u8 *writes;
	u8 *kinds;
	u64 *victims;
	u64 nr_victims;
	u32 flags;
	u32 chunk_sectors;
};

/**
 * dss_core_replay() - put every request through @core
 *
 * A taken slot is committed at once. With DSS_REPLAY_BACK a cleaner that
 * needs no time is asked every 64 requests.
 */
void dss_core_replay(struct dss_core *core, struct dss_trace *trace);

#endif /* DSS_REPLAY_H */
