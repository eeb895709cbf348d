// SPDX-License-Identifier: GPL-2.0
/*
 * The cleaner's way over the HDD if there is a stage: the chunks that it is to
 * clean now, those of the stage among them, in the order of their addresses,
 * from one end to the other and again. So the arm moves little between two
 * rows, whatever the order in which they became dirty.
 *
 * A list of these chunks is made and sorted, then walked. A chunk that is no
 * longer dirty when its turn comes is passed over; a chunk that became dirty
 * meanwhile waits for the next list, unless it lies beside one of this list.
 *
 * Context: the cleaner's worker, which alone has the list.
 */
#include <linux/sort.h>

#include "dss_copy.h"

#define DSS_SWEEP_CHUNKS	16384U	/* of one list; 128 KiB */
#define DSS_SWEEP_NOTED		256U	/* noted at once: 25 us */
#define DSS_SWEEP_BITS		65536UL	/* of one look */

struct dss_sweep {
	struct dss *d;
	unsigned long grain;	/* of the SSD, where the next list begins */
	u64 from;		/* the arm is there: a chunk */
	u32 nr;
	u32 next;
	u32 left;
	u64 oblocks[DSS_SWEEP_CHUNKS];
};

static int dss_compare_oblocks(const void *a, const void *b)
{
	u64 left = *(const u64 *)a;
	u64 right = *(const u64 *)b;

	return left < right ? -1 : left > right;
}

/*
 * Notes dirty chunks, as many as d->lock may be held for.
 *
 * Return: the grain of the SSD behind what it looked at.
 */
static unsigned long dss_sweep_note(struct dss_sweep *sweep,
				    unsigned long grain, unsigned long end)
	__must_hold(&sweep->d->lock)
{
	struct dss *d = sweep->d;
	u32 most = min(sweep->nr + DSS_SWEEP_NOTED, DSS_SWEEP_CHUNKS);
	dss_oblock_t oblock;
	dss_slot_t slot;

	end = min(end, grain + DSS_SWEEP_BITS);
	while (sweep->nr < most) {
		grain = find_next_bit(d->dirty, end, grain);
		if (grain >= end)
			return end;
		slot = dss_to_slot(grain / d->grains);
		if (dss_core_wants_clean(d->core, slot)) {
			dss_core_slot_state(d->core, slot, &oblock, NULL);
			sweep->oblocks[sweep->nr++] = dss_from_oblock(oblock);
		}
		grain = dss_bit(d, slot, d->grains);
	}
	return grain;
}

/* Looks at the grains of [@grain, @end), or until the list is full. */
static unsigned long dss_sweep_look(struct dss_sweep *sweep,
				    unsigned long grain, unsigned long end)
{
	while (grain < end && sweep->nr < DSS_SWEEP_CHUNKS) {
		spin_lock_irq(&sweep->d->lock);
		grain = dss_sweep_note(sweep, grain, end);
		spin_unlock_irq(&sweep->d->lock);
		cond_resched();
	}
	return grain;
}

/* Makes a new list, and goes on where the arm is. */
static void dss_sweep_list(struct dss_sweep *sweep)
{
	unsigned long end = (unsigned long)READ_ONCE(sweep->d->nr_slots) *
			    sweep->d->grains;
	unsigned long begin = sweep->grain < end ? sweep->grain : 0;

	sweep->nr = 0;
	sweep->grain = dss_sweep_look(sweep, begin, end);
	if (sweep->grain >= end)
		sweep->grain = dss_sweep_look(sweep, 0, begin);
	sort(sweep->oblocks, sweep->nr, sizeof(*sweep->oblocks),
	     dss_compare_oblocks, NULL);
	sweep->left = sweep->nr;
	for (sweep->next = 0; sweep->next < sweep->nr; sweep->next++)
		if (sweep->oblocks[sweep->next] >= sweep->from)
			break;
}

/* The list may be old: others were dirty when it was made. */
void dss_sweep_renew(struct dss_sweep *sweep)
{
	sweep->left = 0;
}

/**
 * dss_sweep_next() - the next dirty chunk on the way
 * @fresh: make a new list if this one is at its end
 *
 * Return: whether there is one, at @oblock.
 */
bool dss_sweep_next(struct dss_sweep *sweep, bool fresh, u64 *oblock)
{
	if (!sweep->left && fresh)
		dss_sweep_list(sweep);
	if (!sweep->left)
		return false;
	if (sweep->next >= sweep->nr)
		sweep->next = 0;
	*oblock = sweep->oblocks[sweep->next++];
	sweep->from = *oblock + 1;
	sweep->left--;
	return true;
}

/* Others may wait for this device when it gets a stage, so it does no I/O. */
struct dss_sweep *dss_sweep_create(struct dss *d)
{
	struct dss_sweep *sweep = kvzalloc(sizeof(*sweep), GFP_NOIO);

	if (sweep)
		sweep->d = d;
	return sweep;
}
