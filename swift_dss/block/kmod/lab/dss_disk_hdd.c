// SPDX-License-Identifier: GPL-2.0
/*
 * A disk with one arm over turning platters.
 *
 * Sectors lie on tracks, tracks in zones that get slower towards the end.
 * A request of the medium costs the command's overhead, unless the disk has
 * understood it while the medium worked or has it in its memory; the way of
 * the arm (a base, a part by the root of the distance and a linear part), for
 * a write after that or after a read the settling; the wait for its first
 * sector to come round; and the passing of its sectors.  Each change to a
 * neighbouring track costs a switch, for which the next track is skewed.  The
 * platter's angle is the time.
 *
 * After a read the disk reads on, up to ahead_bytes, until it has other
 * work, and remembers the last two times ahead_bytes of it.  Writes go to a
 * cache while it has room, if there is one, and from there to the medium
 * when that has nothing else to do; a flush waits for all that was dirty
 * when it came; FUA goes to the medium.
 */
#include <linux/slab.h>

#include "dss_disk_hdd.h"

static struct hdd *to_hdd(struct dss_disk_model *model)
{
	return container_of(model, struct hdd, m);
}

/* Through the interface alone, one after the other. */
static void hdd_done_by_interface(struct hdd *h,
				  struct dss_disk_request *request, u64 now)
{
	h->interface_free = max(h->interface_free, now) +
		h->m.p.overhead_ns + dss_disk_transfer_ns(
			(u64)request->sectors * DSS_DISK_SECTOR,
			h->m.p.interface_rate);
	list_del(&request->list);
	dss_disk_done(&h->m, request, h->interface_free);
}

/* The medium worked so long for so many sectors. */
static void hdd_count(struct hdd *h, sector_t sectors, u64 ns)
{
	h->m.counters.busy_ns += ns;
	if (sectors > SMALL_SECTORS)
		return;
	h->m.counters.small++;
	h->m.counters.small_ns += ns;
}

/* When the disk has understood a command that it was told of. */
static u64 hdd_ready_ns(const struct hdd *h,
			const struct dss_disk_request *request)
{
	return request->entered_ns + h->m.p.overhead_ns;
}

static void hdd_medium(struct hdd *h, u64 now, u64 ready, sector_t start,
		       sector_t end, bool write)
{
	u64 ns;

	hdd_ahead_stop(h, now);
	if (hdd_track(h, h->head) != hdd_track(h, start))
		h->m.counters.seeks++;
	ns = hdd_position_ns(h, now, ready, start, write) +
		hdd_stream_ns(h, start, end);
	h->busy = true;
	h->wrote = write;
	h->busy_until = now + ns;
	hdd_count(h, end - start, ns);
	h->head = end;
}

static void hdd_serve(struct hdd *h, struct dss_disk_request *request,
		      u64 now)
{
	sector_t end = request->sector + request->sectors;

	list_del(&request->list);
	h->serving = request;
	h->destaged = false;
	hdd_medium(h, now, hdd_ready_ns(h, request), request->sector, end,
		   request->write);
	dss_disk_done(&h->m, request, h->busy_until);
	if (request->write)
		hdd_ahead_forget(h, request->sector, end);
	else
		hdd_ahead_start(h, request->sector, end, h->busy_until);
}

static void hdd_destage(struct hdd *h, u64 now)
{
	struct dirty *d = hdd_destage_choice(h, now);
	sector_t start = d->start;
	sector_t end = min_t(sector_t, d->end, start + DESTAGE_SECTORS);

	h->serving = NULL;
	h->destaged = true;
	/* It is in the disk's memory: no command has to be understood. */
	hdd_medium(h, now, 0, start, end, true);
	if (end == d->end) {
		hdd_dirty_drop(h, d);
	} else {
		/* The key grows and stays before the next extent's. */
		d->start = end;
		h->dirty_sectors -= end - start;
	}
}

/* The read is in the read-ahead, or will be: no positioning. */
static bool hdd_read_ahead_hit(struct hdd *h,
			       struct dss_disk_request *request, u64 now)
{
	sector_t start = request->sector;
	sector_t end = start + request->sectors, from = h->ahead_start;
	u64 kept = 2 * h->m.p.ahead_bytes / DSS_DISK_SECTOR, at, reached;

	/* Still reading the request before the read-ahead. */
	if (now < h->ahead_since)
		return false;
	at = hdd_ahead_end(h, now);
	if (at > kept)
		from = max_t(sector_t, from, at - kept);
	if (start < from || start > h->ahead_from + (h->ahead_runs ?
				     h->ahead_limit - h->ahead_from : 0))
		return false;
	if (end <= h->ahead_from ||
	    (h->ahead_runs && end <= hdd_ahead_end(h, now))) {
		h->m.counters.ahead_hits++;
		hdd_done_by_interface(h, request, now);
	} else if (h->ahead_runs && end <= h->ahead_limit && !h->busy) {
		reached = h->ahead_since +
			hdd_stream_ns(h, h->ahead_from, end);
		at = max(reached, max(now, hdd_ready_ns(h, request)));
		list_del(&request->list);
		dss_disk_done(&h->m, request, at);
		h->m.counters.ahead_hits++;
		hdd_count(h, request->sectors,
			  reached > now ? reached - now : 0);
		/* The arm stays until the last sector of it has passed. */
		h->busy = true;
		h->busy_until = reached;
		h->head = end;
		h->destaged = false;
		h->wrote = false;
		hdd_ahead_start(h, h->ahead_start, end, reached);
		return true;
	} else {
		return false;
	}
	/* It was read on for: so reading goes on. */
	if (h->ahead_runs && !h->busy)
		h->ahead_limit = min_t(sector_t, h->m.sectors, max_t(
			sector_t, h->ahead_limit,
			end + h->m.p.ahead_bytes / DSS_DISK_SECTOR));
	return true;
}

/*
 * Serve a request without the medium; true if the request is done or queued.
 */
static bool hdd_at_once(struct hdd *h, struct dss_disk_request *request,
			u64 now)
{
	sector_t end = request->sector + request->sectors;
	struct dirty *d;

	if (request->flush) {
		if (hdd_dirty_older(h, request->number) ||
		    (h->busy && h->destaged))
			return false;
		hdd_done_by_interface(h, request, now);
		return true;
	}
	if (request->free) {
		request->sectors = 0;
		hdd_done_by_interface(h, request, now);
		return true;
	}
	if (!request->write) {
		d = hdd_dirty_at_or_after(h, request->sector);
		if (d && d->start <= request->sector && d->end >= end) {
			h->m.counters.cache_hits++;
			hdd_done_by_interface(h, request, now);
			return true;
		}
		return hdd_read_ahead_hit(h, request, now);
	}
	if (request->fua || request->sectors >
	    h->m.p.cache_bytes / DSS_DISK_SECTOR)
		return false;
	if (!hdd_dirty_has_room(h, request->sectors)) {
		if (!request->stalled) {
			request->stalled = true;
			h->m.counters.cache_full++;
		}
		return false;
	}
	hdd_dirty_add(h, request->sector, end, request->number);
	hdd_ahead_forget(h, request->sector, end);
	hdd_done_by_interface(h, request, now);
	return true;
}

static bool hdd_wants_medium(const struct hdd *h,
			     const struct dss_disk_request *request)
{
	if (request->flush)
		return false;
	return !request->write || request->fua || request->sectors >
		h->m.p.cache_bytes / DSS_DISK_SECTOR;
}

/* Give the idle medium something to do. */
static void hdd_dispatch(struct hdd *h, u64 now)
{
	struct dss_disk_request *request, *best = NULL;
	u64 ns, best_ns = 0;
	bool pressed = false;

	hdd_ahead_stop(h, now);
	list_for_each_entry(request, &h->queued, list) {
		if (!hdd_wants_medium(h, request)) {
			pressed = true;
			continue;
		}
		if (now - request->arrived_ns > MAX_AGE_NS) {
			best = request;
			break;
		}
		ns = hdd_position_ns(h, now, hdd_ready_ns(h, request),
				     request->sector, request->write);
		if (!best || ns < best_ns) {
			best = request;
			best_ns = ns;
		}
	}
	if (!RB_EMPTY_ROOT(&h->dirty) &&
	    (!best || (pressed && !h->destaged)))
		hdd_destage(h, now);
	else if (best)
		hdd_serve(h, best, now);
}

static bool hdd_has_work(const struct hdd *h)
{
	return !RB_EMPTY_ROOT(&h->dirty) || !list_empty(&h->queued);
}

/* Take requests in while there is room, and do all that can be done at now. */
static void hdd_turn(struct hdd *h, u64 now)
{
	struct dss_disk_request *request, *next;
	bool moved;

	do {
		moved = false;
		while (h->m.inside < h->m.p.depth &&
		       !list_empty(&h->m.waiting)) {
			request = list_first_entry(&h->m.waiting,
						   struct dss_disk_request,
						   list);
			request->entered_ns = now;
			list_move_tail(&request->list, &h->queued);
			h->m.inside++;
		}
		list_for_each_entry_safe(request, next, &h->queued, list)
			moved |= hdd_at_once(h, request, now);
		if (!h->busy && hdd_has_work(h)) {
			hdd_dispatch(h, now);
			moved |= h->busy;
		}
	} while (moved && h->m.inside < h->m.p.depth &&
		 !list_empty(&h->m.waiting));
}

static u64 hdd_next(const struct hdd *h)
{
	return min(h->busy ? h->busy_until : DSS_DISK_NEVER,
		   dss_disk_first_done_ns(&h->m));
}

static u64 hdd_advance(struct dss_disk_model *model, u64 now)
{
	struct hdd *h = to_hdd(model);

	for (;;) {
		u64 at = h->busy ? h->busy_until : DSS_DISK_NEVER;
		struct dss_disk_request *request =
			dss_disk_first_inside(&h->m, &at);

		if (at > now)
			break;
		if (request)
			dss_disk_leave(&h->m, request);
		if (h->busy && h->busy_until <= at)
			h->busy = false;
		hdd_turn(h, at);
	}
	hdd_turn(h, now);
	return hdd_next(h);
}

static void hdd_arrive(struct dss_disk_model *model,
		       struct dss_disk_request *request, u64 now)
{
	hdd_advance(model, now);
	dss_disk_wait(model, request);
}

static u64 hdd_dirty_bytes(const struct dss_disk_model *model)
{
	return container_of(model, const struct hdd, m)->dirty_sectors *
		DSS_DISK_SECTOR;
}

static struct dss_disk_model *
hdd_create(const struct dss_disk_parameters *p, sector_t sectors,
	   char **error)
{
	struct hdd *h;
	int i;

	if (!p->rotation_ns || p->rotation_ns > NSEC_PER_SEC ||
	    p->switch_ns > NSEC_PER_SEC)
		*error = "rotation_ns is 1 to 10^9, switch_ns not over 10^9";
	else if (p->outer_rate < p->inner_rate || p->inner_rate < 1000000 ||
		 p->outer_rate > 10ULL * NSEC_PER_SEC)
		*error = "inner_rate is 10^6 to outer_rate, that to 10^10";
	else if (!p->zones || p->zones > MAX_ZONES)
		*error = "zones is 1 to 64";
	else if (!p->interface_rate || !p->depth)
		*error = "interface_rate and depth are 1 or more";
	else if (p->seek_sqrt_ns > NSEC_PER_SEC ||
		 p->seek_linear_ns > NSEC_PER_SEC)
		*error = "seek_sqrt_ns and seek_linear_ns are not over 10^9";
	else
		goto good;
	return NULL;

good:
	h = kvzalloc(sizeof(*h), GFP_KERNEL);
	if (!h) {
		*error = "no memory for the model";
		return NULL;
	}
	dss_disk_begin(&h->m, &dss_disk_hdd, p, sectors);
	h->m.p.volatile_cache = 1;
	INIT_LIST_HEAD(&h->queued);
	INIT_LIST_HEAD(&h->unused);
	h->dirty = RB_ROOT;
	for (i = 0; i < MAX_DIRTY; i++)
		list_add_tail(&h->pool[i].list, &h->unused);
	hdd_lay_out(h);
	return &h->m;
}

static void hdd_destroy(struct dss_disk_model *model)
{
	kvfree(to_hdd(model));
}

const struct dss_disk_model_type dss_disk_hdd = {
	.name = "hdd",
	.create = hdd_create,
	.destroy = hdd_destroy,
	.arrive = hdd_arrive,
	.advance = hdd_advance,
	.dirty_bytes = hdd_dirty_bytes,
};
