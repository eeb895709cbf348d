// SPDX-License-Identifier: GPL-2.0
/*
 * The names of modes, classes' fields and counters: those of the target line,
 * of messages and of the status. swift_dss/block/table.py has the same.
 *
 * Context: any.
 */
#include "dss_top.h"

const char *const dss_mode_names[DSS_NR_GLOBAL] = {
	[DSS_GLOBAL_BACK] = "writeback",
	[DSS_GLOBAL_THROUGH] = "writethrough",
	[DSS_GLOBAL_AROUND] = "writearound",
	[DSS_GLOBAL_PASS] = "passthrough",
};

const char *const dss_strategy_names[DSS_NR_MODE] = {
	[DSS_MODE_STRICT] = "strict",
	[DSS_MODE_WEIGHTED] = "weighted",
	[DSS_MODE_LRU] = "lru",
};

const char *const dss_health_names[DSS_NR_HEALTH] = {
	[DSS_OK] = "ok",
	[DSS_GIVEN_UP] = "given_up",
	[DSS_REFUSING] = "refusing",
};

const char *const dss_allocate_names[DSS_NR_ALLOCATE] = {
	[DSS_ALLOCATE_ALWAYS] = "always",
	[DSS_ALLOCATE_ROOM] = "room",
	[DSS_ALLOCATE_NEVER] = "never",
};

const char *const dss_write_names[DSS_NR_WRITE_MODE] = {
	[DSS_WRITE_BACK] = "back",
	[DSS_WRITE_THROUGH] = "through",
	[DSS_WRITE_AROUND] = "around",
};

const char *const dss_inner_names[DSS_NR_INNER] = {
	[DSS_INNER_LRU] = "lru",
	[DSS_INNER_SIEVE] = "sieve",
};

/* By bit. */
const char *const dss_flag_names[DSS_NR_FLAGS] = {
	"evict-on-hit", "no-allocate", "direct-hdd", "direct-ssd", "pin",
	"passing",
};

/* In the order of enum dss_bypass and enum dss_evict. */
const char *const dss_bypass_names[DSS_NR_BYPASS] = {
	"direct", "never", "sequential", "cap", "room", "rank", "held",
	"dirty", "declined", "failed", "dirty_cap",
};

const char *const dss_evict_names[DSS_NR_EVICT] = {
	"above", "own", "peer", "cap", "hit", "demote", "discard", "shrink",
	"failed",
};

/* Return: the index of a name, or -EINVAL. */
int dss_parse_name(const char *name, const char *const *names,
		   unsigned int nr)
{
	unsigned int i;

	for (i = 0; i < nr; i++)
		if (!strcasecmp(name, names[i]))
			return i;
	return -EINVAL;
}
