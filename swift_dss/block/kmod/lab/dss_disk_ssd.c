// SPDX-License-Identifier: GPL-2.0
/*
 * A disk of flash: channels that work side by side behind one interface.
 *
 * Page n is on channel n modulo channels.  A read costs the command's
 * overhead, on each channel it touches the reading of the pages and their
 * way over the channel, one after the other, and the way through the
 * interface, which all requests share.  A write is done when it is in the
 * buffer; the buffer is programmed into the channels when they have
 * nothing to read, page by page, and a read waits for the page that is
 * being programmed.  A read that comes while another one is served has the
 * channel next, before a further page, unless a write waits for the buffer:
 * then reads and pages take turns. A write costs one channel collect_ns
 * more, for the bookkeeping of small writes, but where it goes on from one of
 * the last STREAMS writes: the disk collects what comes in order. A write that
 * finds the buffer full waits.  A flush waits for the buffer if a power cut
 * would empty it, and costs flush_ns.
 */

#include <linux/math64.h>
#include <linux/slab.h>

#include "dss_disk.h"

#define MAX_CHANNELS	256
#define STREAMS		32

struct channel {
	u64 free_ns;		/* when its last read is done */
	u64 backlog_ns;		/* of programming, as of since_ns */
	u64 since_ns;
	u64 page_ns;		/* until then, a page that a read waits for; */
};				/* 0: there is none */

struct ssd {
	struct dss_disk_model m;
	struct list_head flushes;	/* that wait for the buffer */
	u64 interface_free;
	u64 written_ns;		/* programming asked for, ever */
	u64 buffer_ns;		/* programming that the buffer can hold */
	sector_t ends[STREAMS];	/* of the last writes; no order */
	unsigned int oldest;	/* of them */
	struct channel channels[MAX_CHANNELS];
};

static struct ssd *to_ssd(struct dss_disk_model *model)
{
	return container_of(model, struct ssd, m);
}

/* Program until now, as far as reads left time for it. */
static void ssd_program(struct ssd *s, struct channel *c, u64 now)
{
	u64 from = max(c->since_ns, c->free_ns);
	u64 ns;

	if (c->page_ns <= now)
		c->page_ns = 0;
	if (now <= from)
		return;
	ns = min(c->backlog_ns, now - from);
	c->backlog_ns -= ns;
	c->since_ns = now;
	s->m.counters.busy_ns += ns;
}

static u64 ssd_backlog_ns(struct ssd *s, u64 now)
{
	u64 ns = 0;
	unsigned int i;

	for (i = 0; i < s->m.p.channels; i++) {
		ssd_program(s, &s->channels[i], now);
		ns += s->channels[i].backlog_ns;
		if (s->channels[i].page_ns)
			ns += s->channels[i].page_ns - now;
	}
	return ns;
}

/* When the first channel has programmed a page more, if it is let. */
static u64 ssd_next_page(const struct ssd *s)
{
	u64 next = DSS_DISK_NEVER;
	unsigned int i;

	for (i = 0; i < s->m.p.channels; i++) {
		const struct channel *c = &s->channels[i];

		if (c->page_ns)
			next = min(next, c->page_ns);
		else if (c->backlog_ns)
			next = min(next, max(c->since_ns, c->free_ns) +
				   min(c->backlog_ns, s->m.p.program_ns));
	}
	return next;
}

/* The interface is taken for a request's bytes; when it is through. */
static u64 ssd_interface(struct ssd *s, u64 from, u64 bytes)
{
	s->interface_free = max(s->interface_free, from) +
		dss_disk_transfer_ns(bytes, s->m.p.interface_rate);
	return s->interface_free;
}

/* Whether a request waits for the buffer. */
static bool ssd_waits(const struct ssd *s)
{
	return !list_empty(&s->flushes) ||
		(!list_empty(&s->m.waiting) && s->m.inside < s->m.p.depth);
}

static void ssd_read(struct ssd *s, struct dss_disk_request *request,
		     u64 now)
{
	u64 start = (u64)request->sector * DSS_DISK_SECTOR;
	u64 end = start + (u64)request->sectors * DSS_DISK_SECTOR;
	u64 told = now + s->m.p.overhead_ns, ready = told, last = 0, through;

	while (start < end) {
		u64 number = div64_u64(start, s->m.p.page_bytes), index;
		u64 bytes = min(end, (number + 1) * s->m.p.page_bytes) - start;
		struct channel *c;
		u64 at, ns;

		div64_u64_rem(number, s->m.p.channels, &index);
		c = &s->channels[index];
		ssd_program(s, c, told);
		at = max(told, c->free_ns);
		if (c->backlog_ns && (c->free_ns < told || ssd_waits(s))) {
			/* The page that is being programmed comes first. */
			div64_u64_rem(c->backlog_ns - 1, s->m.p.program_ns,
				      &ns);
			at = max(at, c->since_ns) + ns + 1;
			c->page_ns = at;
			c->backlog_ns -= ns + 1;
			s->m.counters.busy_ns += ns + 1;
		}
		ns = s->m.p.read_ns +
			dss_disk_transfer_ns(bytes, s->m.p.channel_rate);
		c->free_ns = at + ns;
		c->since_ns = max(c->since_ns, c->free_ns);
		s->m.counters.busy_ns += ns;
		ready = max(ready, c->free_ns);
		last = bytes;
		start += bytes;
	}
	through = ssd_interface(s, told, (u64)request->sectors *
				DSS_DISK_SECTOR);
	dss_disk_done(&s->m, request, max(through, ready + dss_disk_transfer_ns(
		last, s->m.p.interface_rate)));
}

static u64 ssd_program_ns(const struct ssd *s, u64 bytes)
{
	return DIV64_U64_ROUND_UP(bytes * s->m.p.program_ns,
				  s->m.p.page_bytes);
}

/* Whether a write begins where a stream ends, whose end it then is. */
static bool ssd_goes_on(struct ssd *s, const struct dss_disk_request *request)
{
	sector_t end = request->sector + request->sectors;
	unsigned int i;

	for (i = 0; i < STREAMS; i++) {
		if (s->ends[i] == request->sector) {
			s->ends[i] = end;
			return true;
		}
	}
	s->ends[s->oldest] = end;
	s->oldest = (s->oldest + 1) % STREAMS;
	return false;
}

/* False if the buffer has no room; an empty one takes anything. */
static bool ssd_write(struct ssd *s, struct dss_disk_request *request,
		      u64 now)
{
	u64 start = (u64)request->sector * DSS_DISK_SECTOR;
	u64 length = (u64)request->sectors * DSS_DISK_SECTOR;
	u64 end = start + length, backlog = ssd_backlog_ns(s, now), at;
	u64 extra;

	if (backlog && backlog + ssd_program_ns(s, length) > s->buffer_ns) {
		if (!request->stalled) {
			request->stalled = true;
			s->m.counters.cache_full++;
		}
		return false;
	}
	at = ssd_interface(s, now + s->m.p.overhead_ns, length);
	extra = ssd_goes_on(s, request) ? 0 : s->m.p.collect_ns;
	while (start < end) {
		u64 number = div64_u64(start, s->m.p.page_bytes), index;
		u64 bytes = min(end, (number + 1) * s->m.p.page_bytes) - start;
		u64 ns = ssd_program_ns(s, bytes) + extra;

		div64_u64_rem(number, s->m.p.channels, &index);
		s->channels[index].backlog_ns += ns;
		s->channels[index].since_ns =
			max(s->channels[index].since_ns, now);
		s->written_ns += ns;
		extra = 0;
		start += bytes;
	}
	dss_disk_done(&s->m, request, at + s->m.p.write_ns);
	return true;
}

/* Everything that is possible at that time. */
static void ssd_turn(struct ssd *s, u64 now)
{
	struct dss_disk_request *request, *next;

	while (s->m.inside < s->m.p.depth && !list_empty(&s->m.waiting)) {
		request = list_first_entry(&s->m.waiting,
					   struct dss_disk_request, list);
		if (request->write && !request->flush && !request->free) {
			/* Requests behind a full buffer wait too. */
			if (!ssd_write(s, request, now))
				break;
			list_del(&request->list);
		} else if (request->flush && s->m.p.volatile_cache) {
			request->drained_ns = s->written_ns;
			list_move_tail(&request->list, &s->flushes);
		} else {
			list_del(&request->list);
			if (request->flush)
				dss_disk_done(&s->m, request,
					      now + s->m.p.flush_ns);
			else if (request->free)
				dss_disk_done(&s->m, request,
					      now + s->m.p.overhead_ns);
			else
				ssd_read(s, request, now);
		}
		s->m.inside++;
	}
	if (list_empty(&s->flushes))
		return;
	list_for_each_entry_safe(request, next, &s->flushes, list) {
		if (s->written_ns - ssd_backlog_ns(s, now) <
		    request->drained_ns)
			break;
		list_del(&request->list);
		dss_disk_done(&s->m, request, now + s->m.p.flush_ns);
	}
}

/* When a request that waits for the buffer may go on. */
static u64 ssd_next(const struct ssd *s)
{
	return ssd_waits(s) ? ssd_next_page(s) : DSS_DISK_NEVER;
}

static u64 ssd_advance(struct dss_disk_model *model, u64 now)
{
	struct ssd *s = to_ssd(model);

	for (;;) {
		u64 at = ssd_next(s);
		struct dss_disk_request *request =
			dss_disk_first_inside(model, &at);

		if (at > now)
			break;
		if (request)
			dss_disk_leave(model, request);
		ssd_backlog_ns(s, at);
		ssd_turn(s, at);
	}
	ssd_turn(s, now);
	return min(ssd_next(s), dss_disk_first_done_ns(model));
}

static void ssd_arrive(struct dss_disk_model *model,
		       struct dss_disk_request *request, u64 now)
{
	ssd_advance(model, now);
	/*
	 * Without a waiting request the progress of programming was not
	 * updated: without this, the request would seem to wait for pages that
	 * ended before now, and it would be served before it arrived.
	 */
	ssd_backlog_ns(to_ssd(model), now);
	dss_disk_wait(model, request);
}

static u64 ssd_dirty_bytes(const struct dss_disk_model *model)
{
	const struct ssd *s = container_of(model, const struct ssd, m);
	u64 ns = 0;
	unsigned int i;

	for (i = 0; i < s->m.p.channels; i++)
		ns += s->channels[i].backlog_ns;
	return div64_u64(ns * s->m.p.page_bytes, s->m.p.program_ns);
}

static struct dss_disk_model *
ssd_create(const struct dss_disk_parameters *p, sector_t sectors,
	   char **error)
{
	struct ssd *s;

	if (!p->channels || p->channels > MAX_CHANNELS)
		*error = "channels is 1 to 256";
	else if (p->page_bytes < DSS_DISK_SECTOR || p->page_bytes > 1 << 20)
		*error = "page_bytes is 512 to 1048576";
	else if (!p->program_ns || p->program_ns > NSEC_PER_SEC ||
		 p->collect_ns > NSEC_PER_SEC)
		*error = "program_ns is 1 to 10^9, collect_ns not over 10^9";
	else if (p->cache_bytes > 1ULL << 32)
		*error = "cache_bytes is not over 4 GiB";
	else if (!p->interface_rate || !p->channel_rate || !p->depth)
		*error = "interface_rate, channel_rate, depth are 1 or more";
	else
		goto good;
	return NULL;

good:
	s = kvzalloc(sizeof(*s), GFP_KERNEL);
	if (!s) {
		*error = "no memory for the model";
		return NULL;
	}
	dss_disk_begin(&s->m, &dss_disk_ssd, p, sectors);
	INIT_LIST_HEAD(&s->flushes);
	s->buffer_ns = ssd_program_ns(s, p->cache_bytes);
	memset(s->ends, 0xff, sizeof(s->ends));
	return &s->m;
}

static void ssd_destroy(struct dss_disk_model *model)
{
	kvfree(to_ssd(model));
}

const struct dss_disk_model_type dss_disk_ssd = {
	.name = "ssd",
	.create = ssd_create,
	.destroy = ssd_destroy,
	.arrive = ssd_arrive,
	.advance = ssd_advance,
	.dirty_bytes = ssd_dirty_bytes,
};
