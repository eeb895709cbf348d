/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/*
 * The decision core of dm-dss: which chunks of the origin live on the SSD,
 * by class. It decides and remembers; it moves no byte.
 *
 * Words
 *   chunk    the unit of caching, a fixed number of sectors
 *   oblock   number of a chunk on the origin (dss_oblock_t)
 *   slot     number of a place for a chunk on the SSD (dss_slot_t)
 *   class    0..31; 0 is "unclassified"
 *   rank     order of eviction: the lowest rank leaves first; of equal
 *            ranks the lower class id
 *   parts    a share in parts of 65536: chunks = parts * slots >> 16,
 *            rounded down. No floating point.
 *
 * The seam
 *   Lookup never decides; work is pulled; the outcome is told back.
 *   - dss_core_lookup() says where a chunk is and changes nothing.
 *   - A hit is told with dss_core_touch().
 *   - On a miss dss_core_miss() gives a verdict. It changes nothing but
 *     counters and, of a class in order DSS_INNER_SIEVE, marks and hand.
 *     The caller then either follows the verdict and calls dss_core_take(), or
 *     does not and calls dss_core_decline().
 *   - A slot that was taken is busy until dss_core_commit() or
 *     dss_core_abort().
 *   - The cleaner pulls with dss_core_pull_dirty() and tells the outcome
 *     with dss_core_cleaned().
 *
 * The caller MUST guarantee
 *   - One call at a time: there is no lock in here, nothing sleeps, nothing
 *     is allocated. Every verb may be called with interrupts off.
 *   - Slots it passes are below dss_core_nr_slots() and in the state that
 *     the verb names; classes are below DSS_CLASSES. See DSS_FORBID().
 *     Verbs that return an int take unchecked input, and answer bad input with
 *     an errno and an unchanged core.
 *   - Between dss_core_miss() and dss_core_take() there is no other call
 *     that changes the core: give the verdict and take it under one lock.
 *
 * The core guarantees
 *   - A dirty, busy or free slot is never a victim, nor one of a pinned
 *     class. (Not even if the miss is of that class itself.)
 *   - Same calls, same answers: no clock, no randomness.
 *   - Every verb but _init, _resize, _set_limit, _over_limit, _pull_dirty,
 *     _number and _check costs O(1) to O(classes).
 *   - Its memory is a hint. If all of it were wrong, the wrong chunks would be
 *     cached; the caller's dirty and valid bits decide which bytes a reader
 *     gets.
 *
 * Sources
 *   dss_core.c (slots that come and are used), dss_dirty.c (dirty ones),
 *   dss_life.c (memory, number of slots), dss_verdict.c (which chunk comes,
 *   which leaves), dss_run.c (sequential runs), dss_table.c (classes, modes,
 *   watermarks), dss_check.c (self-check); dss_core_impl.h and dss_lists.h
 *   are theirs alone.
 *
 * Recency
 *   Each class has a list of clean slots and one of dirty slots, each in
 *   order of use. Cleaning counts as a use: a slot that becomes clean goes
 *   to the young end of the clean list. Busy slots are in no list; a slot
 *   that stops being busy goes to the young end.
 *   The clean slots of a class in order DSS_INNER_SIEVE are in order of
 *   arrival instead: a hit leaves them where they are, and marks them.
 */
#ifndef DSS_CORE_H
#define DSS_CORE_H

#include "dss_env.h"

#define DSS_CLASSES 32
#define DSS_UNCLASSIFIED 0
#define DSS_PARTS 65536

/* Limits of the table: chunks on the origin, slots on the SSD. */
#define DSS_OBLOCKS_MAX BIT_ULL(48)
#define DSS_SLOTS_MAX 0x7fffffffU

/*
 * Numbers of chunks there and of slots here: sparse refuses to mix them.
 */
typedef u64 __bitwise dss_oblock_t;
typedef u32 __bitwise dss_slot_t;

static inline dss_oblock_t dss_to_oblock(u64 number)
{
	return (__force dss_oblock_t)number;
}

static inline u64 dss_from_oblock(dss_oblock_t oblock)
{
	return (__force u64)oblock;
}

static inline dss_slot_t dss_to_slot(u32 number)
{
	return (__force dss_slot_t)number;
}

static inline u32 dss_from_slot(dss_slot_t slot)
{
	return (__force u32)slot;
}

/* "No slot": the answer to a lookup of a chunk that is not here. */
#define DSS_NO_SLOT ((__force dss_slot_t)0xffffffffU)

/* ---- The class table ---- */

/* Selective allocation: what a miss of the class may do. */
enum dss_allocate {
	DSS_ALLOCATE_ALWAYS,	/* take a free slot, else evict */
	DSS_ALLOCATE_ROOM,	/* take a free slot, never evict */
	DSS_ALLOCATE_NEVER,	/* stay on the origin */
	DSS_NR_ALLOCATE
};

/* Write mode of the class; only the caller uses it. */
enum dss_write_mode {
	DSS_WRITE_BACK,
	DSS_WRITE_THROUGH,
	DSS_WRITE_AROUND,
	DSS_NR_WRITE_MODE
};

/*
 * A read hit gives the slot up: what is read once and then dead. Clean
 * slots are to be evicted after the read; dirty ones go to the old end of
 * their list.
 */
#define DSS_EVICT_ON_HIT	BIT(0)
/*
 * Misses stay on the origin and hits change nothing: neither recency nor
 * class. For scans.
 */
#define DSS_NO_ALLOCATE		BIT(1)
/*
 * Direct to HDD: misses stay on the origin; a hit gives the slot up as
 * soon as it is clean.
 */
#define DSS_DIRECT_HDD		BIT(2)
/*
 * Direct to SSD: allocates whatever the sequential cutoff says, and may
 * displace classes that rank above it (lowest first). Caps, floors of
 * others and pins still hold.
 */
#define DSS_DIRECT_SSD		BIT(3)
/* Never a victim. */
#define DSS_PIN			BIT(4)
/*
 * For copies that are only passing through, on their way to the origin. A
 * write comes with the rank of the class: it waits no longer, and counts for
 * dirty caps like one of a class that stays. Once here, its chunk ranks below
 * all classes: the first to be cleaned, and then to leave. A read finds room
 * only in place of such chunks.
 */
#define DSS_PASSING		BIT(5)
#define DSS_CLASS_FLAGS		0x3fU

/* The order of eviction of a class's clean slots. */
enum dss_inner {
	/* The one that was used longest ago. */
	DSS_INNER_LRU,
	/*
	 * SIEVE (Zhang et al., NSDI 2024): a hand goes from old to young and
	 * around, clears the mark of each marked slot, and stops at the first
	 * slot without one. Chunks used once leave soon, chunks used again
	 * stay; a hit moves nothing.
	 */
	DSS_INNER_SIEVE,
	DSS_NR_INNER
};

/*
 * Marks that one miss takes at most; then the slot under the hand leaves,
 * marked or not. So many looks at memory that is not in the processor's
 * cache are a few microseconds.
 */
#define DSS_SIEVE_LOOKS 64

#define DSS_RANK_MAX 1000000U
#define DSS_WEIGHT_MAX 1000U

/**
 * struct dss_class_spec - how a class is treated
 * @rank: order of eviction, 0..DSS_RANK_MAX; the lowest leaves first
 * @floor_parts: share of all slots that eviction for other classes leaves
 *	to it: a class at or below its floor is not their victim
 * @cap_parts: share that it takes at most, at least @floor_parts; at its
 *	cap it evicts its own. DSS_PARTS is no cap
 * @weight: 1..DSS_WEIGHT_MAX, for DSS_MODE_WEIGHTED
 * @cutoff_sectors: sequential runs at least this long stay on the origin;
 *	0 is no cutoff
 * @dirty_cap_parts: share that dirty slots of this class and of all that
 *	rank below it may take together before its writes make another one
 *	dirty; what is left can be cleared at once for those above.
 *	DSS_PARTS is no limit
 * @allocate: enum dss_allocate
 * @write_mode: enum dss_write_mode
 * @flags: DSS_EVICT_ON_HIT ... DSS_PASSING. DSS_DIRECT_SSD excludes
 *	DSS_DIRECT_HDD, DSS_NO_ALLOCATE and DSS_ALLOCATE_NEVER; DSS_PIN
 *	excludes these and DSS_EVICT_ON_HIT; DSS_PASSING excludes all others
 *	and DSS_ALLOCATE_NEVER
 * @inner: enum dss_inner; not asked in DSS_MODE_LRU
 */
struct dss_class_spec {
	u32 rank;
	u32 floor_parts;
	u32 cap_parts;
	u32 weight;
	u32 cutoff_sectors;
	u32 dirty_cap_parts;
	u8 allocate;
	u8 write_mode;
	u8 flags;
	u8 inner;
};

/* The order of eviction over classes. */
enum dss_mode {
	/*
	 * The lowest-ranked class that has a candidate; if that ranks above
	 * the newcomer, the newcomer stays out. The default.
	 */
	DSS_MODE_STRICT,
	/*
	 * The class with most slots per weight. Ranks only break ties; the
	 * newcomer takes from others as long as they hold more per weight
	 * than it would, then from its own.
	 */
	DSS_MODE_WEIGHTED,
	/*
	 * One LRU over all classes, the reference of the others: no rank,
	 * floor, cap or pin. Only an empty core changes to or from it.
	 */
	DSS_MODE_LRU,
	DSS_NR_MODE
};

/* ---- Verdicts and counters ---- */

enum dss_verdict_kind {
	DSS_VERDICT_BYPASS,	/* @reason says why; no slot */
	DSS_VERDICT_FREE,	/* @slot is free */
	DSS_VERDICT_VICTIM,	/* @slot is clean and holds @victim */
	DSS_NR_VERDICT
};

/* Why a miss stayed on the origin. */
enum dss_bypass {
	DSS_BYPASS_DIRECT,	/* DSS_DIRECT_HDD */
	DSS_BYPASS_NEVER,	/* DSS_ALLOCATE_NEVER or DSS_NO_ALLOCATE */
	DSS_BYPASS_SEQUENTIAL,	/* a run over the cutoff */
	DSS_BYPASS_CAP,		/* at its cap, nothing of its own to evict */
	DSS_BYPASS_ROOM,	/* DSS_ALLOCATE_ROOM and no free slot */
	DSS_BYPASS_RANK,	/* only what ranks above it is left (or, */
				/* weighted, what is within its share) */
	DSS_BYPASS_HELD,	/* only floors and pins stand in the way */
	DSS_BYPASS_DIRTY,	/* the victim is dirty or busy */
	DSS_BYPASS_DECLINED,	/* the caller did not follow the verdict */
	DSS_BYPASS_FAILED,	/* dss_core_abort() */
	DSS_BYPASS_DIRTY_CAP,	/* DSS_MISS_DIRTY, and !dss_core_may_dirty() */
	DSS_NR_BYPASS
};

/* Why a chunk left its slot. Counted at the class of the chunk. */
enum dss_evict {
	DSS_EVICT_ABOVE,	/* for a class of a higher rank */
	DSS_EVICT_OWN,		/* for its own class */
	DSS_EVICT_PEER,		/* for another class, of a rank not higher */
	DSS_EVICT_CAP,		/* its class was at or over its cap */
	DSS_EVICT_HIT,		/* DSS_EVICT_ON_HIT, DSS_DIRECT_HDD */
	DSS_EVICT_DEMOTE,	/* an operator's wish, or room was wanted */
	DSS_EVICT_DISCARD,	/* the origin's bytes were discarded, or */
				/* written around the SSD */
	DSS_EVICT_SHRINK,	/* the SSD becomes smaller */
	DSS_EVICT_FAILED,	/* an I/O error on the SSD */
	DSS_NR_EVICT
};

/**
 * struct dss_verdict - what to do with a miss
 * @victim: chunk that is to leave @slot (DSS_VERDICT_VICTIM)
 * @slot: where the newcomer may go. With DSS_BYPASS_DIRTY the oldest dirty
 *	slot in its way if there is one, else DSS_NO_SLOT
 * @kind: enum dss_verdict_kind
 * @reason: enum dss_bypass (DSS_VERDICT_BYPASS), else enum dss_evict
 * @class_id: the newcomer's
 * @victim_class: of @victim
 * @staged: the slot will be dirty by the stage
 * @want_clean: a class that should have given had only dirty or busy
 *	slots; wake the cleaner, whatever @kind says
 */
struct dss_verdict {
	dss_oblock_t victim;
	dss_slot_t slot;
	u8 kind;
	u8 reason;
	u8 class_id;
	u8 victim_class;
	u8 want_clean;
	u8 staged;
	u8 unused[2];
};

/**
 * struct dss_class_stats - one class since dss_core_init()
 * @read_hits: dss_core_touch() of a read, by the class of the request
 * @write_hits: the same of a write
 * @misses: dss_core_miss(), by the class of the request
 * @takes: dss_core_take()
 * @bypass: misses that stayed on the origin, by enum dss_bypass
 * @evicted: chunks of the class that left, by enum dss_evict
 * @reclassed: chunks that a hit or dss_core_reclass() gave to the class
 * @cleaned: dss_core_cleaned() that left the slot clean
 * @resident: slots that it has now, busy ones among them
 * @dirty: of them, dirty
 * @busy: of them, busy
 */
struct dss_class_stats {
	u64 read_hits;
	u64 write_hits;
	u64 misses;
	u64 takes;
	u64 bypass[DSS_NR_BYPASS];
	u64 evicted[DSS_NR_EVICT];
	u64 reclassed;
	u64 cleaned;
	u32 resident;
	u32 dirty;
	u32 busy;
	u32 unused;
};

/* ---- Life ---- */

struct dss_core;

/**
 * dss_core_bytes() - memory for a core, all in one piece
 * @slots: 1..DSS_SLOTS_MAX
 *
 * 24 bytes a slot and some 10 KiB. The memory belongs to the caller and is
 * given back by giving it back: there is no exit verb.
 *
 * Return: bytes, or 0 for a number of slots that cannot be.
 */
u64 dss_core_bytes(u64 slots);

/**
 * dss_core_init() - an empty core
 * @memory: aligned to 8 bytes; need not be zeroed
 * @bytes: at least dss_core_bytes(@slots)
 * @slots: 1..DSS_SLOTS_MAX
 * @seed: of the hash, so that clients cannot choose colliding chunks
 *
 * Mode strict; every class as in dss_core_default_class(); watermarks
 * 1/2 and 1/4.
 *
 * Return: the core, at @memory; NULL for @slots or @bytes that cannot be.
 */
struct dss_core *dss_core_init(void *memory, u64 bytes, u64 slots, u64 seed);

/**
 * dss_core_resize() - the same core in other memory with more or less slots
 * @core: stays as it is, and may be given back after success
 * @memory: not that of @core
 *
 * Slot numbers, order, busy marks, counters and settings stay. Floors and caps
 * are recalculated. Nothing may lie at or above @slots; see
 * dss_core_set_limit(). O(slots).
 *
 * Return: 0, -EINVAL (sizes), -EBUSY (a slot at or above @slots is in use).
 */
int dss_core_resize(const struct dss_core *core, void *memory, u64 bytes,
		    u64 slots);

/**
 * dss_core_set_limit() - give out no slot at or above @limit
 * @limit: 1..dss_core_nr_slots(); the latter takes a limit away
 *
 * The first step of shrinking. Floors, caps and watermarks now refer to
 * @limit. Then call dss_core_over_limit() and evict or clean what it
 * names, until it answers DSS_NO_SLOT. O(slots).
 *
 * Return: 0 or -EINVAL.
 */
int dss_core_set_limit(struct dss_core *core, u32 limit);

/**
 * dss_core_over_limit() - the next slot in use at or above the limit
 * @from: where to go on searching; dss_to_slot(0) at first
 */
dss_slot_t dss_core_over_limit(const struct dss_core *core, dss_slot_t from);

/*
 * The defaults of a row: rank 0, always, back, no floor, no caps, weight 1,
 * LRU. (Without a row class 0 is in order DSS_INNER_SIEVE.)
 */
void dss_core_default_class(struct dss_class_spec *spec);

/**
 * dss_core_set_class() - load one row of the class table; live
 * @spec: NULL takes the row out: the class is then treated like class 0
 *	(and class 0 by the defaults, but for its order, which is then
 *	DSS_INNER_SIEVE), under its own number
 *
 * Slots stay where they are. A class that is now over its cap gives its
 * surplus by dss_core_reclaim() and by its own misses.
 *
 * Return: 0 or -EINVAL (a field is out of range, or flags exclude one
 * another); nothing is changed then.
 */
int dss_core_set_class(struct dss_core *core, unsigned int class_id,
		       const struct dss_class_spec *spec);

/**
 * dss_core_set_table() - load the whole class table at once; live
 * @specs: DSS_CLASSES rows
 * @has: bit N says that row N is there; the others are not looked at
 *
 * Return: 0 or -EINVAL; nothing is changed then.
 */
int dss_core_set_table(struct dss_core *core,
		       const struct dss_class_spec *specs, u32 has);

/* How a class is treated now: its row, class 0's, or the defaults. */
void dss_core_get_class(const struct dss_core *core, unsigned int class_id,
			struct dss_class_spec *spec);

/* Whether the class has a row of its own. */
bool dss_core_has_class(const struct dss_core *core, unsigned int class_id);

/**
 * dss_core_set_mode() - set the order of eviction; live between strict and
 * weighted
 *
 * Return: 0, -EINVAL (no such mode), -EBUSY (to or from DSS_MODE_LRU while
 * a slot is in use).
 */
int dss_core_set_mode(struct dss_core *core, unsigned int mode);

/**
 * dss_core_set_watermarks() - shares of dirty slots at which cleaning
 * begins and ends
 *
 * Return: 0 or -EINVAL (@low_parts above @high_parts, or that above
 * DSS_PARTS).
 */
int dss_core_set_watermarks(struct dss_core *core, u32 high_parts,
			    u32 low_parts);

/**
 * dss_core_set_stage() - the share of slots that writes of any class may use
 * @parts: 0..DSS_PARTS; 0 is no stage
 *
 * A write that would make a slot dirty, and that rank, caps or
 * DSS_ALLOCATE_ROOM send past the SSD, gets a slot of the stage instead. If
 * none is free, the lowest-ranked clean chunk leaves, whatever its rank; floors
 * and pins hold. Once it is clean, it is the next of its class to leave: rank
 * decides who stays. Slots that are dirty by the right of their class are not
 * counted.
 *
 * Return: 0 or -EINVAL.
 */
int dss_core_set_stage(struct dss_core *core, u32 parts);

/* How many further slots may become dirty by the stage; 0 without one. */
u32 dss_core_stage_room(const struct dss_core *core);

/* ---- The way of a request ---- */

/**
 * dss_core_lookup() - where a chunk is
 *
 * Changes nothing. The slot may be busy: see dss_core_slot_state().
 *
 * Return: its slot or DSS_NO_SLOT.
 */
dss_slot_t dss_core_lookup(const struct dss_core *core, dss_oblock_t oblock);

/* Requests of dss_core_touch() to its caller. */
enum dss_touched {
	DSS_KEEP,		/* nothing */
	DSS_GIVE_UP,		/* dss_core_evict(..., DSS_EVICT_HIT) as */
				/* soon as the request is done, if clean; */
				/* else clean it first */
};

/**
 * dss_core_touch() - a request of @class_id found its chunk in @slot
 *
 * The slot becomes the youngest of its class; or, if it is clean and its
 * class in order DSS_INNER_SIEVE, it is marked. A classified request gives
 * its class to the chunk; an unclassified one leaves the class that is
 * there (writeback often comes without). The class stays, too, if the new
 * one is at its cap. DSS_NO_ALLOCATE changes nothing. A busy slot changes
 * its class, and its order when it stops being busy; it is never given up.
 * Nor is a slot whose chunk is of a pinned class.
 *
 * Call it before dss_core_set_dirty().
 */
enum dss_touched dss_core_touch(struct dss_core *core, dss_slot_t slot,
				unsigned int class_id, bool write);

/**
 * dss_core_run() - whether a request belongs to a run over the cutoff
 * @sector: where on the origin it begins
 * @sectors: how long it is
 *
 * Follows the last 32 streams; a request goes on with a stream if it
 * begins where that ended. Call it once for each request, hits too, then
 * pass the answer to dss_core_miss(). Costs nothing but a look while no
 * class has a cutoff.
 */
bool dss_core_run(struct dss_core *core, unsigned int class_id, u64 sector,
		  u32 sectors);

/**
 * dss_core_would_run() - the answer of dss_core_run(), without the request
 */
bool dss_core_would_run(const struct dss_core *core, unsigned int class_id,
			u64 sector, u32 sectors);

/**
 * dss_core_may_dirty() - whether a write of @class_id may make a slot dirty
 *
 * That is, one that is not dirty yet: a chunk that is new (see
 * DSS_MISS_DIRTY), or a clean one, whose write the caller otherwise gives
 * the origin too. O(classes). Always true in DSS_MODE_LRU.
 */
bool dss_core_may_dirty(const struct dss_core *core, unsigned int class_id);

/* Facts of a miss. */
#define DSS_MISS_SEQUENTIAL	BIT(0)	/* dss_core_run() said so */
#define DSS_MISS_DIRTY		BIT(1)	/* a write that the origin does not */
					/* get: its slot will be dirty */

/**
 * dss_core_miss() - judge a miss of @class_id
 * @how: DSS_MISS_*
 *
 * A write for which this ends in a bypass gets a slot of the stage, unless that
 * is full or the class or its run stay out (see dss_core_set_stage()). In this
 * order:
 *  1. DSS_DIRECT_HDD, DSS_NO_ALLOCATE and DSS_ALLOCATE_NEVER bypass; so does a
 *     sequential run, unless DSS_DIRECT_SSD; so does a write that would be
 *     dirty, unless dss_core_may_dirty().
 *  2. At its cap a class evicts its own oldest, even if slots are free
 *     (DSS_ALLOCATE_ROOM bypasses).
 *  3. A free slot is taken.
 *  4. DSS_ALLOCATE_ROOM bypasses.
 *  5. The mode names the class that gives a clean slot: its oldest, or
 *     the one that its DSS_INNER_SIEVE finds. Classes that cannot give are
 *     passed over: pinned ones, those without a clean slot, and, unless it
 *     is the newcomer's own, those at or below their floor.
 *
 * Nothing but counters changes: @misses, and @bypass if that is the
 * verdict; and the marks that a hand passed, and where it stands.
 */
void dss_core_miss(struct dss_core *core, unsigned int class_id,
		   unsigned int how, struct dss_verdict *verdict);

/**
 * dss_core_passes() - whether dss_core_miss() would be a BYPASS now
 *
 * Nothing is counted.
 */
bool dss_core_passes(const struct dss_core *core, unsigned int class_id,
		     unsigned int how);

/**
 * dss_core_must_wait() - whether a write has to wait for room in the stage
 * @how: DSS_MISS_* of a miss; without DSS_MISS_DIRTY a hit of a clean slot
 *
 * There is a stage without room, the class has no right to a dirty slot of its
 * own, and the write would be staged if there were room.
 */
bool dss_core_must_wait(const struct dss_core *core, unsigned int class_id,
			unsigned int how);

/**
 * dss_core_room() - whether there is room for a prefetched chunk
 *
 * As dss_core_miss(), but no chunk leaves for it, and nothing is counted.
 *
 * Return: whether @verdict is FREE, to be followed by dss_core_take().
 */
bool dss_core_room(const struct dss_core *core, unsigned int class_id,
		   struct dss_verdict *verdict);

/**
 * dss_core_take() - follow a verdict of FREE or VICTIM
 * @oblock: the newcomer, not in the core, below DSS_OBLOCKS_MAX
 *
 * The victim's chunk is forgotten, and @oblock is found by lookup from now
 * on. The slot is busy and clean. Before its bytes change, the caller MUST
 * have made the end of the old chunk durable, and no request of the old
 * chunk may still be under way in it.
 */
dss_slot_t dss_core_take(struct dss_core *core,
			 const struct dss_verdict *verdict,
			 dss_oblock_t oblock);

/*
 * A verdict of FREE or VICTIM that is not followed; counted as a bypass.
 * A victim that DSS_INNER_SIEVE found is marked: it seems to be in use.
 */
void dss_core_decline(struct dss_core *core,
		      const struct dss_verdict *verdict);

/* A taken slot is filled: it becomes the youngest of its class. */
void dss_core_commit(struct dss_core *core, dss_slot_t slot, bool dirty);

/* A taken slot could not be filled: its chunk is forgotten, it is free. */
void dss_core_abort(struct dss_core *core, dss_slot_t slot);

/* ---- States of a slot ---- */

#define DSS_SLOT_USED		BIT(0)
#define DSS_SLOT_DIRTY		BIT(1)
/* Taken and not committed, being cleaned, or held by the caller. */
#define DSS_SLOT_BUSY		BIT(2)
/* Dirtied again since dss_core_pull_dirty(). */
#define DSS_SLOT_AGAIN		BIT(3)
/* Dirty by the stage. */
#define DSS_SLOT_STAGED		BIT(4)

/**
 * dss_core_slot_state() - the contents of a slot
 * @oblock: NULL or where to put the chunk
 * @class_id: NULL or where to put its class
 *
 * Return: DSS_SLOT_* bits; 0 for a free slot, whose chunk and class mean
 * nothing.
 */
unsigned int dss_core_slot_state(const struct dss_core *core, dss_slot_t slot,
				 dss_oblock_t *oblock,
				 unsigned int *class_id);

/**
 * dss_core_set_dirty() - bytes of a used slot differ from the origin's
 *
 * A clean slot becomes the youngest dirty one. A dirty one stays where it
 * is; if it is being cleaned, it will be dirty afterwards.
 */
void dss_core_set_dirty(struct dss_core *core, dss_slot_t slot);

/*
 * A used, clean slot is about to become dirty by the stage: a write hit it, and
 * dss_core_may_dirty() says no. Nothing changes if it is dirty.
 */
void dss_core_stage(struct dss_core *core, dss_slot_t slot);

/* A dirty, idle slot equals the origin without the cleaner's work. */
void dss_core_set_clean(struct dss_core *core, dss_slot_t slot);

/*
 * Hold a used, idle slot: it is in no list, so neither a victim nor pulled
 * by the cleaner, until it is let go (and then the youngest).
 */
void dss_core_hold(struct dss_core *core, dss_slot_t slot);
void dss_core_let_go(struct dss_core *core, dss_slot_t slot);

/**
 * dss_core_evict() - forget the chunk of a used slot; the slot is free
 *
 * The slot MUST be clean, with one exception: DSS_EVICT_DISCARD, when the
 * bytes have no meaning any more. It may be busy if the caller holds it.
 */
void dss_core_evict(struct dss_core *core, dss_slot_t slot,
		    enum dss_evict reason);

/* Give the chunk of a used slot another class; its order is the youngest. */
void dss_core_reclass(struct dss_core *core, dss_slot_t slot,
		      unsigned int class_id);

/*
 * Make a used, idle slot the oldest of its list: it leaves next. It loses
 * its mark, and the hand comes to it.
 */
void dss_core_age(struct dss_core *core, dss_slot_t slot);

/* ---- Work that is pulled ---- */

/**
 * dss_core_cleaning_goal() - how many slots to clean now
 *
 * Above the high watermark, and then until the low one is reached, the slots
 * above the low one; else 0. Slots being cleaned count as clean. Over half of
 * the stage, and then until it is empty, at least the slots that are dirty by
 * it, those being cleaned among them.
 */
u32 dss_core_cleaning_goal(struct dss_core *core);

/**
 * dss_core_wants_clean() - whether to clean a used slot now, if in any order
 *
 * It is dirty and idle; and dirty by the stage, or of one of the lowest-ranked
 * classes, as many as together have what dss_core_cleaning_goal() has last
 * said about the watermarks. Ask only if there is a stage.
 */
bool dss_core_wants_clean(const struct dss_core *core, dss_slot_t slot);

/* Whether there is a stage. */
bool dss_core_has_stage(const struct dss_core *core);

/**
 * dss_core_pull_dirty() - the next slots to clean, made busy
 * @slots: where to put them
 * @most: how many fit
 *
 * Lowest rank first, oldest first in a class. Sort them by oblock to write
 * them; requests may still read and write them. Each MUST be told back with
 * dss_core_cleaned().
 *
 * Return: how many; 0 when no idle slot is dirty.
 */
u32 dss_core_pull_dirty(struct dss_core *core, dss_slot_t *slots, u32 most);

/**
 * dss_core_pull_beside() - pull one more chunk, because of its place
 * @oblock: beside one that was pulled
 *
 * Of any class and age: beside a chunk that is written anyway, its own write
 * to the origin costs next to nothing.
 *
 * Return: its slot, made busy as by dss_core_pull_dirty(); DSS_NO_SLOT if
 * it is not here, or clean or busy.
 */
dss_slot_t dss_core_pull_beside(struct dss_core *core, dss_oblock_t oblock);

/**
 * dss_core_cleaned() - report the outcome of a pulled slot
 * @written: the origin has its bytes, durably
 *
 * Becomes the youngest clean slot of its class, or the oldest if it was dirty
 * by the stage; or the youngest dirty one if it was not written, or was dirtied
 * again.
 *
 * Return: whether it is clean now.
 */
bool dss_core_cleaned(struct dss_core *core, dss_slot_t slot, bool written);

/**
 * dss_core_reclaim() - the next slot to evict with DSS_EVICT_CAP, of a
 * class that is over its cap
 *
 * Return: a clean, idle slot; DSS_NO_SLOT when no class has a surplus that
 * may leave.
 */
dss_slot_t dss_core_reclaim(struct dss_core *core);

/* ---- Restart, and looking inside ---- */

/**
 * dss_core_load() - a chunk that was in @slot before the restart
 *
 * Becomes the youngest of its class: load the oldest first. Ranks, caps
 * and floors are not asked. No counter changes but @resident and @dirty.
 *
 * Return: 0; -ERANGE (@slot, @oblock or @class_id out of range), -EBUSY
 * (@slot is in use), -EEXIST (@oblock is in another slot). Nothing is
 * changed then.
 */
int dss_core_load(struct dss_core *core, u32 slot, u64 oblock,
		  unsigned int class_id, bool dirty);

/*
 * The oldest idle slot of a class, clean or dirty, and the next younger
 * one, for saving the order; DSS_NO_SLOT at the end. In DSS_MODE_LRU all
 * classes share the lists of class 0.
 */
dss_slot_t dss_core_oldest(const struct dss_core *core, unsigned int class_id,
			   bool dirty);
dss_slot_t dss_core_younger(const struct dss_core *core, dss_slot_t slot);

/**
 * dss_core_number() - number the idle slots of a class, clean or dirty
 * @numbers: by slot
 * @next: of the one that would leave (or be cleaned) first
 *
 * As they would leave if nothing more happened. Of DSS_INNER_SIEVE these
 * are the slots without a mark from the hand on and around, then those
 * with one. Slots that are loaded in this order after a restart leave in
 * it, though marks and hand are not kept. O(slots of the class).
 *
 * Return: the number behind the last one given.
 */
u32 dss_core_number(const struct dss_core *core, unsigned int class_id,
		    bool dirty, u32 *numbers, u32 next);

void dss_core_stats(const struct dss_core *core, unsigned int class_id,
		    struct dss_class_stats *stats);

u32 dss_core_nr_slots(const struct dss_core *core);
u32 dss_core_nr_free(const struct dss_core *core);
/* Of all classes; slots that are being cleaned among them. */
u32 dss_core_nr_dirty(const struct dss_core *core);

/**
 * dss_core_check() - look for damage; for tests and debugging
 *
 * Walks every list and chain. O(slots).
 *
 * Return: 0, or the line in dss_check.c of the first thing that is wrong.
 */
int dss_core_check(const struct dss_core *core);

#endif /* DSS_CORE_H */
