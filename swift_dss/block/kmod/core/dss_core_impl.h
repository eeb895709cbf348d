/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/*
 * Shared by the sources of the decision core. Do not include it elsewhere: the
 * contract is dss_core.h.
 */
#ifndef DSS_CORE_IMPL_H
#define DSS_CORE_IMPL_H

#include "dss_core.h"

/* End of a list or chain. */
#define NONE 0xffffffffU

/* Of dss_entry.bits: class in 0..4, states, chunk number 32..47 on top. */
#define BITS_CLASS	0x1fU
#define BITS_USED	BIT(5)
#define BITS_DIRTY	BIT(6)
#define BITS_BUSY	BIT(7)
#define BITS_AGAIN	BIT(8)
/* Why it is busy; without either, the caller holds it. */
#define BITS_TAKEN	BIT(9)
#define BITS_PULLED	BIT(10)
/* Used since it came, or since the hand passed; see DSS_INNER_SIEVE. */
#define BITS_MARKED	BIT(11)
/* It became dirty by the stage, not by the right of its class. */
#define BITS_STAGED	BIT(12)
#define BITS_HIGH	16

#define NR_STREAMS 32

/**
 * struct dss_entry - one slot; with its bucket 24 bytes
 * @chain: next slot of the same bucket
 * @older: neighbour in the list that the slot is in: the free one, or the
 * @younger: clean or dirty one of its class; a busy slot is in none
 * @low: chunk number, low 32 bits
 * @bits: BITS_*
 */
struct dss_entry {
	u32 chain;
	u32 older;
	u32 younger;
	u32 low;
	u32 bits;
};

/*
 * @hand: where DSS_INNER_SIEVE looks next; NONE: at the oldest. Kept of
 *	every list, so that a class may change its order at any time
 */
struct dss_list {
	u32 oldest;
	u32 youngest;
	u32 count;
	u32 hand;
};

/* A run of requests on the origin: where it ended, and how long it is. */
struct dss_stream {
	u64 next_sector;
	u32 sectors;
	u32 used_at;
};

/* Of a class that may have all slots: it is never at its cap. */
#define NO_CAP 0xffffffffU

/* A class, ready for the hot path: its spec with shares in slots. */
struct dss_row {
	struct dss_class_spec spec;
	u32 floor;
	u32 cap;
	u32 dirty_cap;
};

struct dss_core {
	struct dss_entry *entries;
	u32 *buckets;
	u64 seed;
	u32 nr_slots;
	u32 limit;
	u32 nr_dirty;
	u32 nr_pulled;
	u32 nr_staged;		/* of the dirty ones */
	u32 unclean;		/* classes that the goal reaches */
	bool staging;		/* the stage is being cleaned */
	u32 nr_used;
	u32 high_parts;
	u32 low_parts;
	u32 stage_parts;
	u32 stage;		/* the same in slots */
	u32 stream_clock;
	u32 has;		/* classes that have a row */
	u32 cutoffs;		/* classes that have a cutoff */
	u8 mode;
	bool cleaning;
	u8 order[DSS_CLASSES];	/* class ids, the first to leave in front */
	struct dss_list free;
	struct dss_list clean[DSS_CLASSES];
	struct dss_list dirty[DSS_CLASSES];
	struct dss_row rows[DSS_CLASSES];
	struct dss_class_spec given[DSS_CLASSES];
	struct dss_class_stats stats[DSS_CLASSES];
	struct dss_stream streams[NR_STREAMS];
};

static inline unsigned int entry_class(const struct dss_entry *entry)
{
	return entry->bits & BITS_CLASS;
}

static inline u64 entry_oblock(const struct dss_entry *entry)
{
	return (u64)(entry->bits >> BITS_HIGH) << 32 | entry->low;
}

/* Which list the slots of a class are in. */
static inline unsigned int list_class(const struct dss_core *core,
				      unsigned int class_id)
{
	return core->mode == DSS_MODE_LRU ? DSS_UNCLASSIFIED : class_id;
}

static inline const struct dss_class_spec *
spec_of(const struct dss_core *core, unsigned int class_id)
{
	return &core->rows[class_id].spec;
}

/* What a class's slots rank as; what passes through ranks below all. */
static inline u32 rank_here(const struct dss_core *core, unsigned int class_id)
{
	const struct dss_class_spec *spec = spec_of(core, class_id);

	return spec->flags & DSS_PASSING ? 0 : 1 + spec->rank;
}

/* What a miss of a class ranks as; @how: DSS_MISS_* */
static inline u32 rank_coming(const struct dss_core *core,
			      unsigned int class_id, unsigned int how)
{
	return how & DSS_MISS_DIRTY ? 1 + spec_of(core, class_id)->rank :
		rank_here(core, class_id);
}

/* Whether the class has all that it may have. */
static inline bool at_cap(const struct dss_core *core, unsigned int class_id)
{
	return core->mode != DSS_MODE_LRU &&
	       core->stats[class_id].resident >= core->rows[class_id].cap;
}

/* Whether the clean slots of the class leave by DSS_INNER_SIEVE. */
static inline bool is_sieved(const struct dss_core *core,
			     unsigned int class_id)
{
	return core->mode != DSS_MODE_LRU &&
	       spec_of(core, class_id)->inner == DSS_INNER_SIEVE;
}

/* The next slot on the way of the hand. */
static inline u32 further(const struct dss_core *core,
			  const struct dss_list *list, u32 slot)
{
	u32 younger = core->entries[slot].younger;

	return younger == NONE ? list->oldest : younger;
}

static inline u32 under_hand(const struct dss_list *list)
{
	return list->hand == NONE ? list->oldest : list->hand;
}

/* Compute rows, shares and order from the settings. */
void dss_table_refresh(struct dss_core *core);

#endif /* DSS_CORE_IMPL_H */
