// SPDX-License-Identifier: GPL-2.0
/*
 * The arm and the platters of a disk: where sectors lie, and how long it takes
 * to get there. dss_disk_hdd.c has the rules.
 */
#include <linux/math64.h>

#include "dss_disk_hdd.h"

static const struct hdd_zone *hdd_zone(const struct hdd *h, sector_t sector)
{
	unsigned int i = h->zone_count - 1;

	while (i && h->zones[i].first > sector)
		i--;
	return &h->zones[i];
}

u64 hdd_track(const struct hdd *h, sector_t sector)
{
	const struct hdd_zone *z = hdd_zone(h, sector);

	return z->first_track +
		div_u64(sector - z->first, z->sectors_per_track);
}

/* When in a turn the sector passes the head. */
static u64 hdd_angle(const struct hdd *h, sector_t sector)
{
	const struct hdd_zone *z = hdd_zone(h, sector);
	u64 track, angle;
	u32 within;

	track = z->first_track +
		div_u64_rem(sector - z->first, z->sectors_per_track, &within);
	angle = div_u64(within * h->m.p.rotation_ns, z->sectors_per_track) +
		track * h->m.p.switch_ns;
	div64_u64_rem(angle, h->m.p.rotation_ns, &angle);
	return angle;
}

/* How long sectors take to pass, once the first is there. */
u64 hdd_stream_ns(const struct hdd *h, sector_t from, sector_t to)
{
	u64 ns;

	if (from >= to)
		return 0;
	ns = (hdd_track(h, to - 1) - hdd_track(h, from)) * h->m.p.switch_ns;
	while (from < to) {
		const struct hdd_zone *z = hdd_zone(h, from);
		sector_t end = to;

		if (z != &h->zones[h->zone_count - 1])
			end = min(end, z[1].first);
		ns += div_u64((end - from) * h->m.p.rotation_ns,
			      z->sectors_per_track);
		from = end;
	}
	return ns;
}

static u64 hdd_seek_ns(const struct hdd *h, u64 from, u64 to)
{
	u64 distance = from > to ? from - to : to - from;
	u64 share;

	if (!distance)
		return 0;
	/* Tracks are skewed for that. */
	if (distance == 1)
		return h->m.p.switch_ns;
	/* The share of the whole way, 20 bits after the point. */
	share = div64_u64(distance << 20, h->tracks);
	return h->m.p.seek_base_ns +
		((h->m.p.seek_linear_ns * share) >> 20) +
		((h->m.p.seek_sqrt_ns * int_sqrt64(share << 20)) >> 20);
}

/* Whether a write has to wait until the head is still enough. */
static bool hdd_has_to_settle(const struct hdd *h, u64 from, u64 to)
{
	return !h->wrote || from > to + 1 || to > from + 1;
}

/**
 * hdd_position_ns() - from @now to the first sector under the head
 * @ready: the disk has understood the command then, whatever the medium did
 *	   meanwhile; 0 for what it has in its own memory
 */
u64 hdd_position_ns(const struct hdd *h, u64 now, u64 ready, sector_t sector,
		    bool write)
{
	u64 from = hdd_track(h, h->head), to = hdd_track(h, sector);
	u64 ns = ready > now ? ready - now : 0, turn;

	/* It goes on where it is, without a pause. */
	if (write && h->wrote && !ns && now == h->busy_until &&
	    sector == h->head)
		return sector && hdd_track(h, sector - 1) !=
			hdd_track(h, sector) ? h->m.p.switch_ns : 0;
	ns += hdd_seek_ns(h, from, to);
	if (write && hdd_has_to_settle(h, from, to))
		ns += h->m.p.write_settle_ns;
	div64_u64_rem(now + ns, h->m.p.rotation_ns, &turn);
	turn = hdd_angle(h, sector) + h->m.p.rotation_ns - turn;
	return ns + (turn >= h->m.p.rotation_ns ?
		     turn - h->m.p.rotation_ns : turn);
}

void hdd_lay_out(struct hdd *h)
{
	const struct dss_disk_parameters *p = &h->m.p;
	u64 share = DIV64_U64_ROUND_UP(h->m.sectors, p->zones);
	u64 first = 0, track = 0;

	while (first < h->m.sectors) {
		struct hdd_zone *z = &h->zones[h->zone_count++];
		u64 rate = p->outer_rate;

		/* Sustained: a turn and a switch for each track. */
		if (p->zones > 1)
			rate -= div64_u64((p->outer_rate - p->inner_rate) *
					  (h->zone_count - 1), p->zones - 1);
		z->first = first;
		z->first_track = track;
		z->sectors_per_track = max_t(u64, 1, div_u64(
			div_u64(rate, DSS_DISK_SECTOR) *
			(p->rotation_ns + p->switch_ns), NSEC_PER_SEC));
		track += DIV_ROUND_UP_ULL(share, z->sectors_per_track);
		first += share;
	}
	h->tracks = track;
}
