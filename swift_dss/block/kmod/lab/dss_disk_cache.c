// SPDX-License-Identifier: GPL-2.0
/*
 * The memory of a disk: what it reads ahead, and what it has not written yet.
 * dss_disk_hdd.c has the rules.
 */
#include "dss_disk_hdd.h"

/* ---- reading ahead ---- */

/* How far reading on has come by now. */
sector_t hdd_ahead_end(const struct hdd *h, u64 now)
{
	sector_t low = h->ahead_from, high = h->ahead_limit;

	if (!h->ahead_runs || now <= h->ahead_since)
		return low;
	while (low < high) {
		sector_t middle = low + (high - low + 1) / 2;

		if (h->ahead_since +
		    hdd_stream_ns(h, h->ahead_from, middle) <= now)
			low = middle;
		else
			high = middle - 1;
	}
	return low;
}

/* The arm is wanted elsewhere. */
void hdd_ahead_stop(struct hdd *h, u64 now)
{
	if (!h->ahead_runs)
		return;
	h->ahead_from = hdd_ahead_end(h, now);
	h->head = h->ahead_from;
	h->ahead_runs = false;
}

void hdd_ahead_start(struct hdd *h, sector_t start, sector_t end,
		     u64 now)
{
	h->ahead_start = start;
	h->ahead_from = end;
	h->ahead_since = now;
	h->ahead_limit = min_t(sector_t, h->m.sectors,
			       end + h->m.p.ahead_bytes / DSS_DISK_SECTOR);
	h->ahead_runs = true;
}

void hdd_ahead_forget(struct hdd *h, sector_t start, sector_t end)
{
	sector_t last = h->ahead_runs ? h->ahead_limit : h->ahead_from;

	if (start < last && end > h->ahead_start) {
		h->ahead_start = 0;
		h->ahead_from = 0;
		h->ahead_limit = 0;
		h->ahead_runs = false;
	}
}

/* ---- the write cache ---- */

struct dirty *hdd_dirty_at_or_after(const struct hdd *h,
				    sector_t sector)
{
	struct rb_node *node = h->dirty.rb_node;
	struct dirty *best = NULL;

	while (node) {
		struct dirty *d = rb_entry(node, struct dirty, node);

		if (d->end > sector) {
			best = d;
			node = node->rb_left;
		} else {
			node = node->rb_right;
		}
	}
	return best;
}

void hdd_dirty_drop(struct hdd *h, struct dirty *d)
{
	h->dirty_sectors -= d->end - d->start;
	rb_erase(&d->node, &h->dirty);
	list_add(&d->list, &h->unused);
}

bool hdd_dirty_has_room(const struct hdd *h, u32 sectors)
{
	return !list_empty(&h->unused) && h->dirty_sectors + sectors <=
		h->m.p.cache_bytes / DSS_DISK_SECTOR;
}

void hdd_dirty_add(struct hdd *h, sector_t start, sector_t end,
		   u64 number)
{
	struct rb_node **link = &h->dirty.rb_node, *parent = NULL;
	struct dirty *d;

	/* Merge with ranges that it overlaps or touches. */
	while ((d = hdd_dirty_at_or_after(h, start ? start - 1 : 0)) &&
	       d->start <= end) {
		start = min(start, d->start);
		end = max(end, d->end);
		number = min(number, d->oldest);
		hdd_dirty_drop(h, d);
	}
	d = list_first_entry(&h->unused, struct dirty, list);
	list_del(&d->list);
	d->start = start;
	d->end = end;
	d->oldest = number;
	while (*link) {
		parent = *link;
		link = start < rb_entry(parent, struct dirty, node)->start ?
			&parent->rb_left : &parent->rb_right;
	}
	rb_link_node(&d->node, parent, link);
	rb_insert_color(&d->node, &h->dirty);
	h->dirty_sectors += end - start;
}

bool hdd_dirty_older(const struct hdd *h, u64 number)
{
	struct rb_node *node;

	for (node = rb_first(&h->dirty); node; node = rb_next(node))
		if (rb_entry(node, struct dirty, node)->oldest < number)
			return true;
	return false;
}

/* Of the next few dirty extents on the arm's way, the quickest to reach. */
struct dirty *hdd_destage_choice(const struct hdd *h, u64 now)
{
	struct dirty *d = hdd_dirty_at_or_after(h, h->head), *best = NULL;
	u64 best_ns = 0;
	int look;

	for (look = 0; look < DESTAGE_LOOK; look++) {
		struct rb_node *node = d ? rb_next(&d->node) : NULL;
		u64 ns;

		if (!d) {
			/* Past the last: the way starts at the first again. */
			node = rb_first(&h->dirty);
			if (!node || best)
				break;
			d = rb_entry(node, struct dirty, node);
			node = rb_next(node);
		}
		ns = hdd_position_ns(h, now, 0, d->start, true);
		if (!best || ns < best_ns) {
			best = d;
			best_ns = ns;
		}
		d = node ? rb_entry(node, struct dirty, node) : NULL;
		if (!d)
			break;
	}
	return best;
}
