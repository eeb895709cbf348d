// SPDX-License-Identifier: Apache-2.0
/*
 * What the verbs of the decision core cost: core_speed SLOTS. Prints one
 * line a verb, nanoseconds of processor time a call. Chunks are met in
 * random order, so that with many slots each call misses the caches, as it
 * does in the kernel.
 */
#include <stdlib.h>
#include <time.h>

#include "dss_core.h"

#define CALLS 2000000U

static u64 state = 88172645463325252ULL;

static u32 below(u32 limit)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (state >> 32) * limit >> 32;
}

static double seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return now.tv_sec + now.tv_nsec / 1e9;
}

static void tell(const char *verb, double from, double nothing)
{
	printf("%-28s %6.1f ns\n", verb,
	       (seconds() - from - nothing) * 1e9 / CALLS);
}

static void fill(struct dss_core *core, u32 slots)
{
	u32 at;

	/* Chunks lie as sparsely as they do on an origin ten times as big. */
	for (at = 0; at < slots; at++)
		if (dss_core_load(core, at, (u64)at * 10, 1 + at % 3, false))
			abort();
}

static void classes(struct dss_core *core)
{
	struct dss_class_spec spec;
	u32 class_id;

	for (class_id = 0; class_id < DSS_CLASSES; class_id++) {
		dss_core_default_class(&spec);
		spec.rank = class_id * 10;
		if (dss_core_set_class(core, class_id, &spec))
			abort();
	}
}

int main(int argc, char **argv)
{
	u32 slots = argc > 1 ? strtoul(argv[1], NULL, 0) : 1 << 20;
	u64 bytes = dss_core_bytes(slots), found = 0, fresh = 5;
	struct dss_core *core = dss_core_init(malloc(bytes), bytes, slots, 1);
	struct dss_verdict verdict;
	double from, nothing;
	u32 call;

	if (!core)
		return 1;
	classes(core);
	fill(core, slots);
	printf("%u slots, %llu bytes, %.2f a slot\n", slots,
	       (unsigned long long)bytes, (double)bytes / slots);
	from = seconds();
	for (call = 0; call < CALLS; call++)
		found += below(slots);
	nothing = seconds() - from;
	from = seconds();
	for (call = 0; call < CALLS; call++)
		found += dss_from_slot(dss_core_lookup(
			core, dss_to_oblock((u64)below(slots) * 10)));
	tell("lookup, found", from, nothing);
	from = seconds();
	for (call = 0; call < CALLS; call++)
		found += dss_from_slot(dss_core_lookup(
			core, dss_to_oblock((u64)below(slots) * 10 + 1)));
	tell("lookup, not there", from, nothing);
	from = seconds();
	for (call = 0; call < CALLS; call++) {
		u32 slot = below(slots);

		found += dss_core_touch(core, dss_to_slot(slot), 1 + slot % 3,
					false);
	}
	tell("touch", from, nothing);
	from = seconds();
	for (call = 0; call < CALLS; call++) {
		dss_core_miss(core, 1 + below(3), false, &verdict);
		found += verdict.kind;
	}
	tell("verdict", from, nothing);
	from = seconds();
	for (call = 0; call < CALLS; call++) {
		dss_core_miss(core, 31, false, &verdict);
		if (verdict.kind == DSS_VERDICT_BYPASS)
			abort();
		fresh += 10;
		dss_core_commit(core, dss_core_take(core, &verdict,
						    dss_to_oblock(fresh)),
				false);
	}
	tell("verdict, take and commit", from, 0);
	/* Keeps the compiler from leaving the calls out. */
	return found == 42;
}
