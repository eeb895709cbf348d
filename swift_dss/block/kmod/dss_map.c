// SPDX-License-Identifier: GPL-2.0
/*
 * The way of a request: which class, where its grains are, where it goes,
 * and what is true when it is done.
 *
 * dss_map() cuts requests at chunks, but for those that are spans (below),
 * and further where grains that are here meet grains that are not. A request
 * that had to wait is looked at again in the worker, where it is cut into
 * pieces instead.
 */
/* long: one request's way from map to end is read best in one file */
#include "dss.h"

/* The carrier of the class: swift_dss/io/carriers/ioprio.py */
#define DSS_HINT_SHIFT	3
#define DSS_HINT_MASK	0x3ff
#define DSS_HINT_BASE	32
#define DSS_BEST_EFFORT	(2 << 13)
#define DSS_LEVEL	4

/* What dss_process() found out under the lock. */
enum dss_next {
	DSS_NEXT_SUBMIT,	/* the bio is aimed; submit it */
	DSS_NEXT_FILL,		/* read through pages of our own */
	DSS_NEXT_BOTH,		/* write to both devices */
	DSS_NEXT_CUT,		/* cut after io->nr grains */
	DSS_NEXT_GIVE,		/* from the pages of a fill, io->fill */
	DSS_NEXT_REFUSE,
	DSS_NEXT_WAIT,		/* it is in some list */
	DSS_NEXT_FREE,		/* of others; goes on */
};

unsigned short dss_priority_of(unsigned int class_id)
{
	if (!class_id)
		return 0;
	return DSS_BEST_EFFORT | (DSS_HINT_BASE + class_id) << DSS_HINT_SHIFT |
	       DSS_LEVEL;
}

/*
 * Metadata of a file system is metadata whoever asks for it; else what the
 * I/O priority carries; else what the inode's write hint stands for.
 */
static unsigned int dss_class_of(const struct dss *d, const struct bio *bio)
{
	unsigned int hint = bio->bi_ioprio >> DSS_HINT_SHIFT & DSS_HINT_MASK;

	if ((bio->bi_opf & REQ_META) && d->meta_class < DSS_CLASSES)
		return d->meta_class;
	if (hint > DSS_HINT_BASE && hint < DSS_HINT_BASE + DSS_CLASSES)
		return hint - DSS_HINT_BASE;
	hint = dss_bio_write_hint(bio);
	if (hint && hint < DSS_WRITE_HINTS)
		return d->hint_class[hint];
	return DSS_UNCLASSIFIED;
}

static bool dss_is_write(const struct dss_io *io)
{
	return io->bio && op_is_write(bio_op(io->bio));
}

/* ---- the worker ---- */

void dss_ready(struct dss_io *io, void (*then)(struct dss_io *io))
{
	struct dss *d = io->d;
	unsigned long irq;

	io->then = then;
	spin_lock_irqsave(&d->lock, irq);
	list_add_tail(&io->list, &d->ready);
	spin_unlock_irqrestore(&d->lock, irq);
	queue_work(d->wq, &d->work);
}

void dss_work(struct work_struct *work)
{
	struct dss *d = container_of(work, struct dss, work);
	struct dss_io *io, *next;
	struct blk_plug plug;
	LIST_HEAD(ready);

	spin_lock_irq(&d->lock);
	list_splice_init(&d->ready, &ready);
	spin_unlock_irq(&d->lock);
	blk_start_plug(&plug);
	list_for_each_entry_safe(io, next, &ready, list)
		io->then(io);
	blk_finish_plug(&plug);
}

/* Waits for a table commit, then goes on. Under the lock. */
void dss_wait_commit(struct dss_io *io, void (*then)(struct dss_io *io))
{
	struct dss *d = io->d;

	io->then = then;
	list_add_tail(&io->list, &d->committing);
	dss_kick_commit(d);
}

/* ---- ranges ---- */

/* Works out chunk and grains from the bio. */
static void dss_place(struct dss_io *io)
{
	struct dss *d = io->d;
	sector_t sector = io->bio->bi_iter.bi_sector;
	sector_t offset = sector & (d->chunk_sectors - 1);
	sector_t end = offset + max(bio_sectors(io->bio), 1U);

	io->iter = io->bio->bi_iter;
	io->oblock = sector >> d->chunk_shift;
	io->first = offset >> d->grain_shift;
	io->nr = DIV_ROUND_UP(end, d->grain_sectors) - io->first;
}

static sector_t dss_io_begin(const struct dss_io *io)
{
	return io->iter.bi_sector;
}

static sector_t dss_io_end(const struct dss_io *io)
{
	return io->iter.bi_sector + (io->iter.bi_size >> SECTOR_SHIFT);
}

/* Whether the request covers only a part of its first or last grain. */
static bool dss_part_first(const struct dss_io *io)
{
	return dss_io_begin(io) & (io->d->grain_sectors - 1);
}

static bool dss_part_last(const struct dss_io *io)
{
	return dss_io_end(io) & (io->d->grain_sectors - 1) &&
	       dss_io_end(io) != io->d->origin_sectors;
}

/*
 * Limits the request to its first @nr grains, if that is possible here.
 *
 * Return: false if it has to be cut in the worker; io->nr is set for that.
 */
static bool dss_limit(struct dss_io *io, unsigned int nr, bool in_map)
{
	struct dss *d = io->d;
	sector_t sectors;

	if (nr == io->nr)
		return true;
	io->nr = nr;
	if (!in_map)
		return false;
	sectors = ((sector_t)(io->first + nr) << d->grain_shift) -
		  (dss_io_begin(io) & (d->chunk_sectors - 1));
	dm_accept_partial_bio(io->bio, sectors);
	io->iter = io->bio->bi_iter;
	return true;
}

static void dss_aim_ssd(struct dss_io *io)
{
	struct dss *d = io->d;

	bio_set_dev(io->bio, d->ssd->bdev);
	io->bio->bi_iter.bi_sector = dss_slot_sector(d, io->slot) +
		(dss_io_begin(io) & (d->chunk_sectors - 1));
}

static void dss_aim_hdd(struct dss_io *io)
{
	bio_set_dev(io->bio, io->d->hdd->bdev);
	io->bio->bi_iter.bi_sector = dss_io_begin(io);
}

/* ---- decisions, under the lock ---- */

static void dss_count_hit(struct dss_io *io)
{
	if (io->flags & DSS_IO_COUNTED)
		return;
	io->flags |= DSS_IO_COUNTED;
	if (dss_core_touch(io->d->core, io->slot, io->class_id,
			   dss_is_write(io)) == DSS_GIVE_UP)
		io->flags |= DSS_IO_GIVE_UP;
}

/*
 * A miss: asks the core for a slot.
 *
 * Return: whether the chunk has one now, at io->slot.
 */
static bool dss_allocate(struct dss_io *io, bool dirty)
{
	struct dss *d = io->d;
	unsigned int how = dirty ? DSS_MISS_DIRTY : 0;
	struct dss_verdict verdict;

	if (io->flags & DSS_IO_COUNTED)
		return false;
	io->flags |= DSS_IO_COUNTED;
	if (io->flags & DSS_IO_RUN)
		how |= DSS_MISS_SEQUENTIAL;
	dss_core_miss(d->core, io->class_id, how, &verdict);
	if (verdict.want_clean)
		dss_kick_cleaner(d, 0);
	if (verdict.kind == DSS_VERDICT_BYPASS)
		return false;
	if (verdict.kind == DSS_VERDICT_VICTIM) {
		u64 victim = dss_from_oblock(verdict.victim);

		if (dss_in_flight(d, victim)) {
			dss_core_decline(d->core, &verdict);
			return false;
		}
		dss_forget(d, verdict.slot, victim);
	}
	io->slot = dss_core_take(d->core, &verdict, dss_to_oblock(io->oblock));
	dss_core_commit(d->core, io->slot, false);
	return true;
}

static bool dss_may_fill(const struct dss_io *io)
{
	struct dss *d = io->d;
	struct dss_class_spec spec;

	if (d->mode == DSS_GLOBAL_PASS || d->health != DSS_OK ||
	    d->suspended || (io->flags & (DSS_IO_RUN | DSS_IO_HDD_ONLY)))
		return false;
	dss_core_get_class(d->core, io->class_id, &spec);
	return !(spec.flags & (DSS_EVICT_ON_HIT | DSS_NO_ALLOCATE |
			       DSS_DIRECT_HDD)) &&
	       spec.allocate != DSS_ALLOCATE_NEVER;
}

static enum dss_next dss_to_hdd(struct dss_io *io, enum dss_kind kind)
{
	dss_hash(io, kind);
	dss_aim_hdd(io);
	return DSS_NEXT_SUBMIT;
}

static void dss_submit(struct dss_io *io)
{
	submit_bio_noacct(io->bio);
}

/* A read that somebody waits for. */
static enum dss_next dss_read_hdd(struct dss_io *io)
{
	dss_to_hdd(io, DSS_READ_HDD);
	return dss_turn_begin(io, dss_submit) ? DSS_NEXT_SUBMIT :
						DSS_NEXT_WAIT;
}

/* Whether a grain beside a read can be fetched with it. */
static bool dss_is_missing(const struct dss_io *io, unsigned int grain)
{
	struct dss_io one = { .oblock = io->oblock, .first = grain, .nr = 1 };

	return !dss_grain(io->d, io->d->valid, io->slot, grain) &&
	       !dss_conflict(io->d, &one, false);
}

/*
 * A read that missed also fetches what is missing on both sides of it, in
 * its window of ahead_sectors: where positioning is what costs, the bytes
 * beside cost next to nothing. io->iter goes on to say what the reader
 * wants.
 */
static void dss_widen(struct dss_io *io)
{
	struct dss *d = io->d;
	unsigned int window = min(d->grains, READ_ONCE(d->ahead_sectors) >>
				  d->grain_shift);
	sector_t last = d->origin_sectors - (io->oblock << d->chunk_shift);
	unsigned int begin, end;

	if (window < 2)
		return;
	begin = rounddown(io->first, window);
	end = min_t(u64, min_t(u64, d->grains, last >> d->grain_shift),
		    roundup(io->first + io->nr, window));
	while (io->first > begin && dss_is_missing(io, io->first - 1)) {
		io->first--;
		io->nr++;
	}
	while (io->first + io->nr < end &&
	       dss_is_missing(io, io->first + io->nr))
		io->nr++;
}

static enum dss_next dss_fill_or_not(struct dss_io *io)
{
	struct dss *d = io->d;

	dss_widen(io);
	if (dss_is_volatile(d, io->oblock))
		io->flags |= DSS_IO_UNSETTLED;
	dss_hash(io, DSS_FILL);
	return DSS_NEXT_FILL;
}

static enum dss_next dss_read(struct dss_io *io, bool in_map)
{
	struct dss *d = io->d;
	bool avoid_ssd = d->mode == DSS_GLOBAL_PASS || d->health != DSS_OK ||
			 (io->flags & DSS_IO_HDD_ONLY);
	unsigned int nr;

	if (io->slot == DSS_NO_SLOT) {
		if (avoid_ssd || d->suspended || !dss_allocate(io, false))
			return dss_read_hdd(io);
		return dss_fill_or_not(io);
	}
	nr = dss_alike(d, d->valid, io->slot, io->first, io->nr);
	if (avoid_ssd)
		nr = dss_alike(d, d->dirty, io->slot, io->first, nr);
	if (!dss_limit(io, nr, in_map))
		return DSS_NEXT_CUT;
	dss_count_hit(io);
	if (dss_grain(d, d->valid, io->slot, io->first)) {
		if (avoid_ssd && !dss_grain(d, d->dirty, io->slot, io->first))
			return dss_read_hdd(io);
		dss_hash(io, DSS_READ_SSD);
		dss_aim_ssd(io);
		return DSS_NEXT_SUBMIT;
	}
	d->counts[io->class_id].grain_misses++;
	if (!dss_may_fill(io))
		return dss_read_hdd(io);
	return dss_fill_or_not(io);
}

/* Whether a write that the origin does not get changes what is dirty. */
static bool dss_may_dirty(const struct dss_io *io)
{
	struct dss *d = io->d;

	return io->slot == DSS_NO_SLOT ||
	       dss_core_slot_state(d->core, io->slot, NULL, NULL) &
	       DSS_SLOT_DIRTY || dss_core_may_dirty(d->core, io->class_id);
}

/* What device and class say of writes, whatever the SSD has: the stricter. */
static enum dss_global_mode dss_asked_mode(const struct dss_io *io)
{
	struct dss *d = io->d;
	struct dss_class_spec spec;
	enum dss_global_mode mode = d->mode;

	/* The SSD becomes smaller: nothing gets dirty again. */
	if (d->shrinking)
		mode = max(mode, DSS_GLOBAL_THROUGH);
	if (d->health != DSS_OK || (io->flags & DSS_IO_HDD_ONLY))
		return DSS_GLOBAL_PASS;
	dss_core_get_class(d->core, io->class_id, &spec);
	if (spec.flags & DSS_DIRECT_HDD)
		return max(mode, DSS_GLOBAL_AROUND);
	return max_t(enum dss_global_mode, mode, spec.write_mode);
}

/*
 * How the write is done. A clean chunk that must not become dirty is written
 * on both devices.
 */
static enum dss_global_mode dss_write_mode(const struct dss_io *io)
{
	enum dss_global_mode mode = dss_asked_mode(io);

	return mode == DSS_GLOBAL_BACK && !dss_may_dirty(io) ?
		DSS_GLOBAL_THROUGH : mode;
}

/*
 * Marks what the table must say before the bytes on the SSD change, and
 * while they do: valid clean grains become dirty (or unsettled, if the
 * origin gets the bytes at the same time). Grains that are not valid yet
 * are named only when the bytes are there.
 *
 * Return: whether a commit has to come first.
 */
static bool dss_intend(struct dss_io *io, bool through)
{
	struct dss *d = io->d;
	bool commit = dss_is_stale(d, io->slot);
	unsigned int grain;

	if (dss_any(d, d->dirty, io->slot, io->first, io->nr))
		io->flags |= DSS_IO_HAD_DIRTY;
	for (grain = io->first; grain < io->first + io->nr; grain++) {
		if (!dss_grain(d, d->valid, io->slot, grain) ||
		    dss_grain(d, d->dirty, io->slot, grain))
			continue;
		if (!dss_grain(d, d->unsettled, io->slot, grain)) {
			commit = true;
			d->nr_intents++;
		}
		if (through)
			dss_set_unsettled(d, io->slot, grain, 1);
		else
			dss_set_dirty(d, io->slot, grain, 1);
	}
	return commit;
}

/*
 * A grain that is dirty or unsettled needs no new intent: whoever marked it
 * had its range until that was durable, or the table does not name it.
 */
static enum dss_next dss_write_here(struct dss_io *io, bool through)
{
	struct dss *d = io->d;
	bool commit = dss_intend(io, through);

	if (through) {
		commit |= dss_was_evicted(d, io->oblock);
		dss_hash(io, DSS_WRITE_BOTH);
	} else {
		dss_core_set_dirty(d->core, io->slot);
		if (dss_core_cleaning_goal(d->core))
			dss_kick_cleaner(d, 0);
		dss_tell_cleaner(io);
		dss_hash(io, DSS_WRITE_SSD);
		dss_aim_ssd(io);
	}
	if (commit) {
		dss_wait_commit(io, dss_issue);
		return DSS_NEXT_WAIT;
	}
	return through ? DSS_NEXT_BOTH : DSS_NEXT_SUBMIT;
}

static enum dss_next dss_admit(struct dss_io *io)
{
	return !(io->flags & DSS_IO_GROUPED) || dss_group_admit(io) ?
		DSS_NEXT_SUBMIT : DSS_NEXT_WAIT;
}

/* Writes the origin; what the SSD has of it is forgotten first, durably. */
static enum dss_next dss_write_around(struct dss_io *io, enum dss_kind kind)
{
	struct dss *d = io->d;
	bool commit = dss_was_evicted(d, io->oblock);

	if (io->slot != DSS_NO_SLOT)
		commit |= dss_invalidate(d, io->slot, io->first, io->nr);
	if (d->health != DSS_OK)
		commit = false;
	dss_to_hdd(io, kind);
	if (kind == DSS_WRITE_HDD && dss_group_wants(io)) {
		/* It ends after its pieces: no group can wait for it. */
		if (io->flags & DSS_IO_CUT)
			io->bio->bi_opf |= REQ_FUA;
		else
			io->flags |= DSS_IO_GROUPED;
	}
	if (!commit)
		return dss_admit(io);
	dss_wait_commit(io, dss_issue);
	return DSS_NEXT_WAIT;
}

/*
 * A write's first grains that are treated alike. A grain that is written
 * in part and is not here goes to the origin: filling it up would need a
 * read of the HDD first.
 */
static unsigned int dss_write_run(struct dss_io *io,
				  enum dss_global_mode mode, bool *around)
{
	struct dss *d = io->d;
	bool here = io->slot != DSS_NO_SLOT;
	unsigned int last = io->first + io->nr - 1;
	unsigned int nr = io->nr;

	*around = mode >= DSS_GLOBAL_AROUND;
	if (*around) {
		if (here) {
			nr = dss_alike(d, d->dirty, io->slot, io->first, nr);
			*around = !dss_grain(d, d->dirty, io->slot,
					     io->first);
		}
		return nr;
	}
	if (dss_part_first(io) &&
	    !(here && dss_grain(d, d->valid, io->slot, io->first))) {
		*around = true;
		return 1;
	}
	if (dss_part_last(io) &&
	    !(here && dss_grain(d, d->valid, io->slot, last))) {
		*around = nr == 1;
		return max(nr - 1, 1U);
	}
	return nr;
}

static enum dss_next dss_write(struct dss_io *io, bool in_map)
{
	struct dss *d = io->d;
	enum dss_global_mode mode = dss_write_mode(io);
	bool around;

	if (d->health == DSS_REFUSING) {
		d->counts[io->class_id].refused++;
		return DSS_NEXT_REFUSE;
	}
	if (!dss_limit(io, dss_write_run(io, mode, &around), in_map))
		return DSS_NEXT_CUT;
	if (io->slot != DSS_NO_SLOT)
		dss_count_hit(io);
	if (around || (io->slot == DSS_NO_SLOT &&
		       (d->suspended ||
			!dss_allocate(io, mode == DSS_GLOBAL_BACK))))
		return dss_write_around(io, DSS_WRITE_HDD);
	return dss_write_here(io, mode == DSS_GLOBAL_THROUGH);
}

/* Only whole grains are forgotten; the origin is told of all of it. */
static enum dss_next dss_discard(struct dss_io *io)
{
	struct dss *d = io->d;

	if (d->health == DSS_REFUSING)
		return DSS_NEXT_REFUSE;
	if (io->slot != DSS_NO_SLOT &&
	    (dss_part_first(io) || dss_part_last(io)) &&
	    dss_any(d, d->dirty, io->slot, io->first, io->nr)) {
		/* A discard is a hint: this one is not taken. */
		dss_hash(io, DSS_NOTHING);
		return DSS_NEXT_REFUSE;
	}
	return dss_write_around(io, DSS_DISCARD);
}

static void dss_cut(struct dss_io *io);
static enum dss_next dss_span(struct dss_io *io, bool in_map);

/*
 * A read where somebody holds grains of its range: what is free of it, and
 * what a fill has, it need not wait for.
 *
 * Return: DSS_NEXT_FREE: io->nr grains are free; DSS_NEXT_WAIT: none is.
 */
static enum dss_next dss_read_busy(struct dss_io *io, bool in_map)
{
	struct dss *d = io->d;
	unsigned int nr = dss_free_grains(d, io);

	io->fill = nr ? NULL : dss_filled(d, io, &nr);
	if (nr) {
		if (!dss_limit(io, nr, in_map))
			return DSS_NEXT_CUT;
		if (!io->fill)
			return DSS_NEXT_FREE;
		dss_count_hit(io);
		dss_fill_hold(io->fill);
		return DSS_NEXT_GIVE;
	}
	if (!dss_only_behind(d, io))
		return DSS_NEXT_WAIT;
	dss_count_hit(io);
	d->counts[io->class_id].grain_misses++;
	return dss_read_hdd(io);
}

static enum dss_next dss_decide(struct dss_io *io, bool in_map)
{
	struct dss *d = io->d;
	bool write = dss_is_write(io);
	enum dss_next next;

	if (d->health == DSS_GIVEN_UP)
		return dss_to_hdd(io, write ? DSS_WRITE_HDD : DSS_READ_HDD);
	if (write && d->nr_after)
		dss_overtake(d, io);
	io->slot = dss_core_lookup(d->core, dss_to_oblock(io->oblock));
	if (dss_conflict(d, io, write && (bio_op(io->bio) == REQ_OP_DISCARD ||
				       dss_write_mode(io) !=
				       DSS_GLOBAL_BACK))) {
		next = write ? DSS_NEXT_WAIT : dss_read_busy(io, in_map);
		if (next == DSS_NEXT_WAIT) {
			list_add_tail(&io->list, &d->deferred);
			d->nr_deferred++;
		}
		if (next != DSS_NEXT_FREE)
			return next;
	}
	if (d->shrinking && io->slot != DSS_NO_SLOT &&
	    dss_from_slot(io->slot) >= d->limit &&
	    dss_give_up_slot(d, io->slot))
		io->slot = DSS_NO_SLOT;
	if (bio_op(io->bio) == REQ_OP_DISCARD)
		return dss_discard(io);
	if (!(io->flags & DSS_IO_COUNTED) &&
	    dss_core_run(d->core, io->class_id, dss_io_begin(io),
			 bio_sectors(io->bio)))
		io->flags |= DSS_IO_RUN;
	return write ? dss_write(io, in_map) : dss_read(io, in_map);
}

/* Without pages for a fill: the read alone. It holds its range as before. */
static enum dss_next dss_no_memory(struct dss_io *io)
{
	struct dss *d = io->d;
	unsigned long irq;

	spin_lock_irqsave(&d->lock, irq);
	d->counts[io->class_id].no_memory++;
	io->kind = DSS_READ_HDD;
	spin_unlock_irqrestore(&d->lock, irq);
	dss_aim_hdd(io);
	return DSS_NEXT_SUBMIT;
}

/*
 * Return: whether io->bio is aimed and to be submitted by the caller; else
 * somebody else has it now.
 */
static bool dss_process(struct dss_io *io, bool in_map)
{
	struct dss *d = io->d;
	enum dss_next next;
	unsigned long irq;

	if (!in_map && io->first + io->nr > d->grains) {
		/* A span that had to wait, or failed. */
		next = io->flags & DSS_IO_HDD_ONLY ? DSS_NEXT_CUT :
						     dss_span(io, false);
		if (next == DSS_NEXT_CUT) {
			/* Now each of its chunks goes its own way. */
			io->nr = d->grains - io->first;
			dss_cut(io);
		} else if (next == DSS_NEXT_BOTH) {
			dss_issue(io);
		}
		return next == DSS_NEXT_SUBMIT;
	}
	spin_lock_irqsave(&d->lock, irq);
	d->last_request = jiffies;
	next = dss_decide(io, in_map);
	spin_unlock_irqrestore(&d->lock, irq);
	switch (next) {
	case DSS_NEXT_SUBMIT:
		return true;
	case DSS_NEXT_FILL:
		if (!dss_fill(io))
			return false;
		dss_no_memory(io);
		return true;
	case DSS_NEXT_BOTH:
		dss_issue(io);
		return false;
	case DSS_NEXT_GIVE:
		dss_fill_give(io->fill, io);
		return false;
	case DSS_NEXT_CUT:
		dss_cut(io);
		return false;
	case DSS_NEXT_REFUSE:
		io->bio->bi_status = bio_op(io->bio) == REQ_OP_DISCARD ?
				     BLK_STS_OK : BLK_STS_IOERR;
		bio_endio(io->bio);
		return false;
	case DSS_NEXT_WAIT:
	case DSS_NEXT_FREE:
		break;
	}
	return false;
}

/* Looks at a request that had to wait, or a rest of one, in the worker. */
void dss_reprocess(struct dss_io *io)
{
	if (dss_process(io, false))
		submit_bio_noacct(io->bio);
}

static void dss_io_init(struct dss *d, struct dss_io *io, struct bio *bio)
{
	memset(io, 0, sizeof(*io));
	INIT_HLIST_NODE(&io->node);
	INIT_LIST_HEAD(&io->list);
	io->d = d;
	io->bio = bio;
	io->slot = DSS_NO_SLOT;
	io->start_ns = ktime_get_ns();
	io->class_id = dss_class_of(d, bio);
}

/* ---- spans: requests of several chunks ---- */

/* Whether a hit of this class has to be looked at by itself. */
static bool dss_hits_alone(const struct dss *d, unsigned int class_id)
{
	struct dss_class_spec spec;

	dss_core_get_class(d->core, class_id, &spec);
	return spec.flags & (DSS_EVICT_ON_HIT | DSS_NO_ALLOCATE |
			     DSS_DIRECT_HDD);
}

/*
 * From where on the grains of a request, counted from its first chunk, are
 * not all here, one behind the other on the SSD and not being changed. In
 * whole chunks, but for the last. Under the lock.
 */
static unsigned int dss_span_end(struct dss_io *io)
{
	struct dss *d = io->d;
	struct dss_io one = { .oblock = io->oblock, .first = io->first };
	unsigned int end = io->first + io->nr, grain = io->first;
	dss_slot_t slot = io->slot;
	sector_t sector = dss_slot_sector(d, slot);
	unsigned int class_id;

	while (grain < end) {
		one.nr = min(end - grain, d->grains - one.first);
		if (dss_core_lookup(d->core, dss_to_oblock(one.oblock)) !=
		    slot || dss_slot_sector(d, slot) != sector ||
		    !dss_all(d, d->valid, slot, one.first, one.nr) ||
		    dss_conflict(d, &one, false))
			break;
		dss_core_slot_state(d->core, slot, NULL, &class_id);
		if (dss_hits_alone(d, class_id))
			break;
		grain += one.nr;
		one.first = 0;
		one.oblock++;
		sector += d->chunk_sectors;
		if (grain == end ||
		    dss_from_slot(slot) + 1 == d->nr_slots)
			break;
		slot = dss_to_slot(dss_from_slot(slot) + 1);
	}
	return grain;
}

static void dss_span_begin(struct dss_io *io)
{
	struct dss *d = io->d;
	u32 slot = dss_from_slot(io->slot);
	u32 last = slot + (io->first + io->nr - 1U) / d->grains;

	d->last_request = jiffies;
	dss_core_run(d->core, io->class_id, dss_io_begin(io),
		     bio_sectors(io->bio));
	for (; slot <= last; slot++)
		dss_core_touch(d->core, dss_to_slot(slot), io->class_id,
			       false);
	io->flags |= DSS_IO_COUNTED;
	dss_hash(io, DSS_READ_SSD);
}

/* Several chunks that lie on the SSD in a row are read together. */
static enum dss_next dss_span_here(struct dss_io *io)
{
	struct dss *d = io->d;
	unsigned int end;

	if (dss_is_write(io) || dss_hits_alone(d, io->class_id))
		return DSS_NEXT_CUT;
	end = dss_span_end(io);
	if (end <= d->grains)
		return DSS_NEXT_CUT;
	dss_limit(io, end - io->first, true);
	dss_span_begin(io);
	dss_aim_ssd(io);
	return DSS_NEXT_SUBMIT;
}

/* How a miss of the request is told to the core; -1: it is not. */
static int dss_miss_of(const struct dss_io *io)
{
	enum dss_global_mode mode;

	if (!dss_is_write(io))
		return 0;
	if (bio_op(io->bio) == REQ_OP_DISCARD)
		return -1;
	mode = dss_write_mode(io);
	if (mode >= DSS_GLOBAL_AROUND)
		return -1;
	return mode == DSS_GLOBAL_BACK ? DSS_MISS_DIRTY : 0;
}

/* Whether a chunk that a request is for has nothing to do with the SSD. */
static bool dss_is_past(const struct dss_io *io, const struct dss_io *one,
			sector_t begin, sector_t end, int how)
{
	struct dss *d = io->d;

	if (how >= 0 && dss_core_would_run(d->core, io->class_id, begin,
					   end - begin))
		how |= DSS_MISS_SEQUENTIAL;
	return dss_core_lookup(d->core, dss_to_oblock(one->oblock)) ==
	       DSS_NO_SLOT && !dss_conflict(d, one, dss_is_write(io)) &&
	       !(dss_is_write(io) && dss_was_evicted(d, one->oblock)) &&
	       (how < 0 || dss_core_passes(d->core, io->class_id, how));
}

/* The core is told of a miss that passes, as if it were by itself. */
static void dss_tell_past(struct dss_io *io, sector_t begin, sector_t end,
			  int how)
{
	struct dss *d = io->d;
	struct dss_verdict verdict;
	bool run;

	if (bio_op(io->bio) == REQ_OP_DISCARD)
		return;
	run = dss_core_run(d->core, io->class_id, begin, end - begin);
	if (how < 0)
		return;
	dss_core_miss(d->core, io->class_id,
		      how | (run ? DSS_MISS_SEQUENTIAL : 0), &verdict);
	if (verdict.want_clean)
		dss_kick_cleaner(d, 0);
}

/* How many grains, in whole chunks but for the last, pass the SSD. */
static unsigned int dss_past_grains(struct dss_io *io)
{
	struct dss *d = io->d;
	struct dss_io one = { .oblock = io->oblock, .first = io->first };
	sector_t at = dss_io_begin(io), next;
	int how = dss_miss_of(io);
	unsigned int grains = 0;

	while (grains < io->nr) {
		one.nr = min(io->nr - grains, d->grains - one.first);
		next = min((one.oblock + 1) << d->chunk_shift, dss_io_end(io));
		if (!dss_is_past(io, &one, at, next, how))
			break;
		dss_tell_past(io, at, next, how);
		at = next;
		grains += one.nr;
		one.first = 0;
		one.oblock++;
	}
	return grains;
}

/* A write of which the SSD gets nothing, perhaps after a commit. */
static enum dss_next dss_write_past(struct dss_io *io, bool commit)
{
	dss_to_hdd(io, DSS_WRITE_HDD);
	if (dss_group_wants(io))
		io->flags |= DSS_IO_GROUPED;
	if (!commit)
		return dss_admit(io);
	dss_wait_commit(io, dss_issue);
	return DSS_NEXT_WAIT;
}

/* So are chunks read, written or discarded that the SSD has nothing of. */
static enum dss_next dss_span_past(struct dss_io *io)
{
	unsigned int grains;

	if (dss_is_write(io) && (dss_part_first(io) || dss_part_last(io)))
		return DSS_NEXT_CUT;
	grains = dss_past_grains(io);
	if (!grains)
		return DSS_NEXT_CUT;
	dss_limit(io, grains, true);
	io->d->last_request = jiffies;
	io->flags |= DSS_IO_COUNTED;
	if (!dss_is_write(io))
		return dss_read_hdd(io);
	if (bio_op(io->bio) == REQ_OP_DISCARD)
		return dss_to_hdd(io, DSS_DISCARD);
	return dss_write_past(io, false);
}

/* How many grains, in whole chunks but for the last, can be read at once. */
static unsigned int dss_missing_grains(struct dss_io *io)
{
	struct dss *d = io->d;
	struct dss_io one = { .oblock = io->oblock, .first = io->first };
	unsigned int grains = 0;

	while (grains < io->nr) {
		one.nr = min(io->nr - grains, d->grains - one.first);
		if (dss_core_lookup(d->core, dss_to_oblock(one.oblock)) !=
		    DSS_NO_SLOT || dss_conflict(d, &one, false))
			break;
		grains += one.nr;
		one.first = 0;
		one.oblock++;
	}
	return grains;
}

/* dss_widen() at both ends of several chunks of which nothing is here. */
static void dss_span_widen(struct dss_io *io, unsigned int last)
{
	struct dss *d = io->d;
	unsigned int window = min(d->grains, READ_ONCE(d->ahead_sectors) >>
				  d->grain_shift);
	struct dss_io one = { .oblock = io->oblock };
	u64 end;

	if (window < 2)
		return;
	one.first = rounddown(io->first, window);
	one.nr = io->first - one.first;
	if (one.nr && test_bit(0, io->here) && !dss_conflict(d, &one, false)) {
		io->first -= one.nr;
		io->nr += one.nr;
	}
	one.oblock += last;
	one.first = io->first + io->nr - last * d->grains;
	end = min_t(u64, roundup(one.first, window),
		    (d->origin_sectors - (one.oblock << d->chunk_shift)) >>
		    d->grain_shift);
	if (end <= one.first || !test_bit(last, io->here))
		return;
	one.nr = end - one.first;
	if (!dss_conflict(d, &one, false))
		io->nr += one.nr;
}

/* Chunks of which nothing is here are read at once, also if some pass. */
static enum dss_next dss_span_fill(struct dss_io *io)
{
	struct dss *d = io->d;
	struct dss_io one = { .d = d, .bio = io->bio, .oblock = io->oblock,
			      .class_id = io->class_id };
	unsigned int grains = dss_missing_grains(io), chunk, last;
	sector_t at = dss_io_begin(io), next;

	if (grains <= d->grains - io->first)
		return DSS_NEXT_CUT;
	dss_limit(io, grains, true);
	d->last_request = jiffies;
	io->flags |= DSS_IO_COUNTED;
	dss_hash(io, DSS_FILL);
	last = (io->first + io->nr - 1U) / d->grains;
	for (chunk = 0; chunk <= last; chunk++, one.oblock++, at = next) {
		next = min((one.oblock + 1) << d->chunk_shift, dss_io_end(io));
		one.flags = dss_core_run(d->core, io->class_id, at,
					 next - at) ? DSS_IO_RUN : 0;
		if (dss_allocate(&one, false))
			__set_bit(chunk, io->here);
	}
	if (bitmap_empty(io->here, last + 1))
		return dss_read_hdd(io);
	dss_span_widen(io, last);
	return DSS_NEXT_FILL;
}

/* How many grains, in whole chunks but for the last, can be doubled. */
static unsigned int dss_through_grains(struct dss_io *io)
{
	struct dss *d = io->d;
	struct dss_io one = { .oblock = io->oblock, .first = io->first };
	unsigned int grains = 0, class_id;

	while (grains < io->nr) {
		one.nr = min(io->nr - grains, d->grains - one.first);
		one.slot = dss_core_lookup(d->core, dss_to_oblock(one.oblock));
		if (one.slot != DSS_NO_SLOT) {
			dss_core_slot_state(d->core, one.slot, NULL,
					    &class_id);
			if (dss_hits_alone(d, class_id) ||
			    dss_any(d, d->dirty, one.slot, one.first, one.nr))
				break;
		}
		grains += one.nr;
		one.first = 0;
		one.oblock++;
	}
	return grains;
}

/*
 * One chunk of a doubled write: it gets a slot, or has one, or passes.
 *
 * Return: whether a commit has to come before the write.
 */
static bool dss_through_one(struct dss_io *io, struct dss_io *one,
			    unsigned int chunk)
{
	struct dss *d = io->d;
	bool commit = dss_was_evicted(d, one->oblock);
	sector_t begin = max(dss_io_begin(io), one->oblock << d->chunk_shift);
	sector_t end = min(dss_io_end(io),
			   (one->oblock + 1) << d->chunk_shift);

	one->slot = dss_core_lookup(d->core, dss_to_oblock(one->oblock));
	one->flags = dss_core_run(d->core, io->class_id, begin, end - begin) ?
		DSS_IO_RUN : 0;
	if (one->slot != DSS_NO_SLOT)
		dss_count_hit(one);
	else if (!dss_allocate(one, false))
		return commit;
	__set_bit(chunk, io->here);
	return dss_intend(one, true) || commit;
}

/*
 * Chunks that both devices get are one write of the HDD: cut, they would be
 * one for each, and who reads meanwhile might wait for all of them.
 */
static enum dss_next dss_span_through(struct dss_io *io, bool in_map)
{
	struct dss *d = io->d;
	struct dss_io one = { .d = d, .bio = io->bio, .oblock = io->oblock,
			      .first = io->first, .class_id = io->class_id };
	unsigned int grains, left, chunk;
	bool commit = false;

	if (dss_part_first(io) || dss_part_last(io) ||
	    dss_hits_alone(d, io->class_id))
		return DSS_NEXT_CUT;
	if (d->nr_after)
		dss_overtake(d, io);
	grains = dss_through_grains(io);
	if (grains <= d->grains - io->first || (!in_map && grains < io->nr))
		return DSS_NEXT_CUT;
	dss_limit(io, grains, true);
	if (dss_conflict(d, io, true)) {
		list_add_tail(&io->list, &d->deferred);
		d->nr_deferred++;
		return DSS_NEXT_WAIT;
	}
	d->last_request = jiffies;
	io->flags |= DSS_IO_COUNTED | DSS_IO_ROWS;
	/* First: what it needs a slot for must not take that of its own. */
	dss_to_hdd(io, DSS_WRITE_BOTH);
	for (chunk = 0, left = io->nr; left; chunk++, left -= one.nr) {
		one.nr = min(left, d->grains - one.first);
		commit |= dss_through_one(io, &one, chunk);
		one.first = 0;
		one.oblock++;
	}
	if (bitmap_empty(io->here, chunk)) {
		io->flags &= ~DSS_IO_ROWS;
		return dss_write_past(io, commit);
	}
	if (!commit)
		return DSS_NEXT_BOTH;
	dss_wait_commit(io, dss_issue);
	return DSS_NEXT_WAIT;
}

/*
 * A read of several chunks that are all here, one behind the other, is one
 * read of the SSD: cut at every chunk, it would be one for each. So is a
 * read of chunks of which the SSD has nothing one of the HDD, a write of
 * which it gets nothing, and one that both get. If only its beginning is so,
 * that is, and the rest is looked at again.
 *
 * In the worker, where only a doubled write comes back to, it is all or
 * nothing.
 *
 * Return: DSS_NEXT_CUT, and nothing has happened; or what follows.
 */
static enum dss_next dss_span(struct dss_io *io, bool in_map)
{
	enum dss_next next = DSS_NEXT_CUT;
	enum req_op op = bio_op(io->bio);
	struct dss *d = io->d;
	unsigned long irq;

	if (op != REQ_OP_READ && op != REQ_OP_WRITE && op != REQ_OP_DISCARD)
		return next;
	dss_place(io);
	spin_lock_irqsave(&d->lock, irq);
	if (d->health == DSS_OK && d->mode != DSS_GLOBAL_PASS &&
	    !d->suspended && !d->shrinking) {
		io->slot = dss_core_lookup(d->core, dss_to_oblock(io->oblock));
		if (op == REQ_OP_WRITE &&
		    dss_asked_mode(io) == DSS_GLOBAL_THROUGH)
			next = dss_span_through(io, in_map);
		else if (!in_map)
			next = DSS_NEXT_CUT;
		else if (io->slot == DSS_NO_SLOT)
			next = dss_span_past(io);
		else
			next = dss_span_here(io);
		if (next == DSS_NEXT_CUT && in_map && op == REQ_OP_READ &&
		    io->slot == DSS_NO_SLOT)
			next = dss_span_fill(io);
	}
	spin_unlock_irqrestore(&d->lock, irq);
	return next;
}

int dss_map(struct dm_target *ti, struct bio *bio)
{
	struct dss *d = ti->private;
	struct dss_io *io = dm_per_bio_data(bio, sizeof(*io));
	enum dss_next next;
	unsigned long irq;
	sector_t room;

	dss_io_init(d, io, bio);
	if (bio->bi_opf & REQ_PREFLUSH) {
		/* Empty: the mapper sends the data of one by itself. */
		io->kind = DSS_FLUSH;
		spin_lock_irqsave(&d->lock, irq);
		d->last_flush = jiffies;
		d->want_ssd_flush = true;
		/* What the cleaner wrote the SSD still has. */
		d->want_hdd_flush |= d->hdd_owes || d->hdd_owed ||
				     d->health != DSS_OK;
		dss_wait_commit(io, dss_issue);
		spin_unlock_irqrestore(&d->lock, irq);
		return DM_MAPIO_SUBMITTED;
	}
	bio->bi_iter.bi_sector = dm_target_offset(ti, bio->bi_iter.bi_sector);
	room = d->chunk_sectors -
		(bio->bi_iter.bi_sector & (d->chunk_sectors - 1));
	if (bio_sectors(bio) > room) {
		next = dss_span(io, true);
		if (next == DSS_NEXT_BOTH)
			dss_issue(io);
		else if (next == DSS_NEXT_FILL && dss_fill_span(io))
			next = dss_no_memory(io);
		if (next != DSS_NEXT_CUT)
			return next == DSS_NEXT_SUBMIT ? DM_MAPIO_REMAPPED :
				DM_MAPIO_SUBMITTED;
		dm_accept_partial_bio(bio, room);
	}
	dss_place(io);
	return dss_process(io, true) ? DM_MAPIO_REMAPPED : DM_MAPIO_SUBMITTED;
}

/* ---- issue, in any context; after a commit, in the commit's worker ---- */

static void dss_double_end(struct bio *bio)
{
	struct dss_io *io = bio->bi_private;

	if (bio->bi_status)
		io->status = bio->bi_status;
	bio_put(bio);
	if (atomic_dec_and_test(&io->left))
		bio_endio(io->bio);
}

/* Where the SSD has a part of a doubled write: two ends of the bytes. */
struct dss_row {
	sector_t begin;		/* on the origin */
	sector_t end;
	sector_t sector;	/* on the SSD */
};

static void dss_row_of(const struct dss_io *io, const struct dss_io *part,
		       struct dss_row *row)
{
	struct dss *d = io->d;
	sector_t chunk = part->oblock << d->chunk_shift;

	row->begin = max(dss_io_begin(io), chunk);
	row->end = min(dss_io_end(io), chunk + d->chunk_sectors);
	row->sector = dss_slot_sector(d, part->slot) + row->begin - chunk;
}

/* The next chunks that lie in a row there, too. */
static bool dss_next_row(struct dss_io *io, unsigned int *chunk,
			 struct dss_row *row)
{
	unsigned int behind;
	struct dss_row next;
	struct dss_io part;
	unsigned long irq;
	bool found;

	spin_lock_irqsave(&io->d->lock, irq);
	found = dss_next_part(io, chunk, &part);
	if (found)
		dss_row_of(io, &part, row);
	for (behind = *chunk; found && dss_next_part(io, &behind, &part);
	     *chunk = behind) {
		dss_row_of(io, &part, &next);
		if (next.begin != row->end || next.sector - row->sector !=
		    row->end - row->begin)
			break;
		row->end = next.end;
	}
	spin_unlock_irqrestore(&io->d->lock, irq);
	return found;
}

static struct bio *dss_row_copy(struct dss_io *io, const struct dss_row *row)
{
	struct bio *copy = bio_alloc_clone(io->d->ssd->bdev, io->bio,
					   GFP_NOWAIT, &io->d->doubles);

	if (!copy)
		return NULL;
	bio_trim(copy, row->begin - dss_io_begin(io), row->end - row->begin);
	copy->bi_iter.bi_sector = row->sector;
	copy->bi_private = io;
	copy->bi_end_io = dss_double_end;
	return copy;
}

static int dss_retry(struct dss_io *io);

/* No memory: later, or without the SSD if it may never be enough. */
static void dss_both_later(struct dss_io *io)
{
	unsigned long irq;

	if (!(io->flags & DSS_IO_ROWS)) {
		dss_ready(io, dss_issue);
		return;
	}
	spin_lock_irqsave(&io->d->lock, irq);
	dss_retry(io);
	spin_unlock_irqrestore(&io->d->lock, irq);
}

/* Gives the same pages to both devices. */
static void dss_issue_both(struct dss_io *io)
{
	struct bio_list copies = BIO_EMPTY_LIST;
	unsigned int chunk = 0, nr = 0;
	struct bio *copy = NULL;
	struct dss_row row;

	while (dss_next_row(io, &chunk, &row)) {
		copy = dss_row_copy(io, &row);
		if (!copy)
			break;
		bio_list_add(&copies, copy);
		nr++;
	}
	if (!copy) {
		while ((copy = bio_list_pop(&copies)))
			bio_put(copy);
		dss_both_later(io);
		return;
	}
	atomic_set(&io->left, nr + 1);
	dss_aim_hdd(io);
	while ((copy = bio_list_pop(&copies)))
		submit_bio_noacct(copy);
	submit_bio_noacct(io->bio);
}

/* Looks at the request again, as it was before it was issued. */
static int dss_retry(struct dss_io *io)
{
	io->flags |= DSS_IO_HDD_ONLY;
	io->flags &= ~(DSS_IO_HAD_DIRTY | DSS_IO_ENDED | DSS_IO_GROUPED |
		       DSS_IO_ROWS);
	io->status = BLK_STS_OK;
	io->kind = DSS_NOTHING;
	io->bio->bi_status = BLK_STS_OK;
	io->bio->bi_iter = io->iter;
	dss_unhash(io);
	io->then = dss_reprocess;
	list_add_tail(&io->list, &io->d->ready);
	queue_work(io->d->wq, &io->d->work);
	return DM_ENDIO_INCOMPLETE;
}

void dss_end_again(struct dss_io *io)
{
	io->bio->bi_status = io->status;
	bio_endio(io->bio);
}

/* Goes on after a commit; io->status says how that ended. */
void dss_issue(struct dss_io *io)
{
	unsigned long irq;

	if (io->kind == DSS_FLUSH) {
		io->bio->bi_status = io->status;
		bio_endio(io->bio);
		return;
	}
	if (io->status && (io->flags & DSS_IO_HDD_ONLY)) {
		io->kind = DSS_NOTHING;
		dss_end_again(io);
		return;
	}
	if (io->status) {
		/* Nothing was written. Without the SSD there may be a way. */
		spin_lock_irqsave(&io->d->lock, irq);
		dss_retry(io);
		spin_unlock_irqrestore(&io->d->lock, irq);
		return;
	}
	if (io->kind == DSS_WRITE_BOTH)
		dss_issue_both(io);
	else if (io->flags & DSS_IO_GROUPED)
		dss_group_issue(io);
	else
		submit_bio_noacct(io->bio);
}

/* ---- cutting in the worker ---- */

static void dss_piece_end(struct bio *bio)
{
	struct dss_piece *piece = container_of(bio, struct dss_piece, bio);
	struct bio *parent = piece->io.parent->bio;
	blk_status_t status = bio->bi_status;
	struct dm_target *ti = piece->io.d->ti;

	if (dss_end_io(ti, bio, &status) == DM_ENDIO_INCOMPLETE)
		return;
	if (status)
		piece->io.parent->piece_status = status;
	bio_put(bio);
	bio_endio(parent);
}

/* The first io->nr grains become a piece; the rest is looked at again. */
static void dss_cut(struct dss_io *io)
{
	struct dss *d = io->d;
	sector_t sectors = ((sector_t)(io->first + io->nr) << d->grain_shift) -
			   (dss_io_begin(io) & (d->chunk_sectors - 1));
	struct dss_piece *piece;
	struct bio *bio;

	bio = bio_alloc_clone(d->hdd->bdev, io->bio, GFP_NOWAIT, &d->pieces);
	if (!bio) {
		/* Pieces end in this worker: it must not wait for one. */
		dss_place(io);
		dss_ready(io, dss_reprocess);
		return;
	}
	piece = container_of(bio, struct dss_piece, bio);
	bio->bi_iter.bi_size = sectors << SECTOR_SHIFT;
	bio->bi_end_io = dss_piece_end;
	dss_io_init(d, &piece->io, bio);
	piece->io.class_id = io->class_id;
	piece->io.flags = io->flags & DSS_IO_HDD_ONLY;
	piece->io.parent = io;
	dss_place(&piece->io);
	bio_inc_remaining(io->bio);
	bio_advance(io->bio, sectors << SECTOR_SHIFT);
	io->flags &= ~(DSS_IO_COUNTED | DSS_IO_RUN);
	io->flags |= DSS_IO_CUT;
	dss_place(io);
	dss_ready(&piece->io, dss_reprocess);
	dss_ready(io, dss_reprocess);
}

/* ---- the end ---- */

static struct dss_io *dss_io_of(struct bio *bio, struct dss *d)
{
	if (bio->bi_end_io == dss_piece_end)
		return &container_of(bio, struct dss_piece, bio)->io;
	return dm_per_bio_data(bio, sizeof(struct dss_io));
}

/* The bytes are on the SSD. Under the lock, as all that follow. */
static int dss_wrote_ssd(struct dss_io *io, blk_status_t *error)
{
	struct dss *d = io->d;
	u32 region;

	d->ssd_wrote = true;
	if (*error) {
		d->ssd_errors++;
		dss_ssd_failed(d);
		if (io->flags & DSS_IO_HAD_DIRTY)
			return DM_ENDIO_DONE;
		/* The origin still has what was there before. */
		dss_invalidate(d, io->slot, io->first, io->nr);
		return dss_retry(io);
	}
	if (d->health == DSS_GIVEN_UP) {
		/* Written, but nobody looks there any more. */
		dss_invalidate(d, io->slot, io->first, io->nr);
		return dss_retry(io);
	}
	dss_set_valid(d, io->slot, io->first, io->nr);
	dss_set_dirty(d, io->slot, io->first, io->nr);
	/* Again: the cleaner may have seen the slot before the bytes came. */
	dss_core_set_dirty(d->core, io->slot);
	region = dss_region_of(d, io->slot);
	if ((io->bio->bi_opf & REQ_FUA) &&
	    (test_bit(region, d->pending) || test_bit(region, d->writing))) {
		/* Durable only when the table says so. */
		io->flags |= DSS_IO_ENDED;
		dss_wait_commit(io, dss_end_again);
		return DM_ENDIO_INCOMPLETE;
	}
	return DM_ENDIO_DONE;
}

/* One chunk of a write that the SSD has, and the HDD unless it @failed. */
static void dss_wrote_part(struct dss_io *io, const struct dss_io *part,
			   bool failed)
{
	struct dss *d = io->d;
	unsigned int first = part->first;
	unsigned int nr = part->nr;

	dss_set_valid(d, part->slot, first, nr);
	if (failed) {
		/* The cleaner will try again. */
		if (d->health == DSS_GIVEN_UP)
			return;
		dss_set_dirty(d, part->slot, first, nr);
		dss_core_set_dirty(d->core, part->slot);
		return;
	}
	dss_set_unsettled(d, part->slot, first, nr);
	/* Clears the dirty mark of grains that the origin now has whole. */
	if (dss_part_first(io)) {
		first++;
		nr--;
	}
	if (nr && dss_part_last(io))
		nr--;
	if (nr)
		dss_clear_dirty(d, part->slot, first, nr);
}

static void dss_wrote_both(struct dss_io *io, blk_status_t *error)
{
	struct dss *d = io->d;
	bool failed = *error;
	unsigned int chunk = 0;
	struct dss_io part;

	dss_wrote_chunks(io);
	d->hdd_owes = true;
	d->ssd_wrote = true;
	if (io->status) {
		d->ssd_errors++;
		dss_ssd_failed(d);
		if (!(io->flags & DSS_IO_HAD_DIRTY))
			dss_invalidate_parts(io);
		else
			*error = io->status;
		return;
	}
	d->hdd_errors += failed;
	while (dss_next_part(io, &chunk, &part))
		dss_wrote_part(io, &part, failed);
}

static int dss_read_ssd_failed(struct dss_io *io)
{
	unsigned int grain, nr, end = io->first + io->nr;
	u32 slot = dss_from_slot(io->slot);
	struct dss *d = io->d;

	d->ssd_errors++;
	if (dss_any(d, d->dirty, io->slot, io->first, io->nr)) {
		dss_ssd_failed(d);
		return DM_ENDIO_DONE;
	}
	for (grain = io->first; grain < end; grain += nr) {
		nr = min(end - grain, d->grains - grain % d->grains);
		dss_invalidate(d, dss_to_slot(slot + grain / d->grains),
			       grain % d->grains, nr);
	}
	return dss_retry(io);
}

static void dss_record_latency(struct dss_io *io)
{
	struct dss_class_count *count = &io->d->counts[io->class_id];
	bool write = dss_is_write(io);
	struct dss_latency *latency = &count->latency[write];
	u64 us = div_u64(ktime_get_ns() - io->start_ns, NSEC_PER_USEC);

	latency->count++;
	latency->total_us += us;
	latency->max_us = max(latency->max_us, us);
	latency->buckets[min(fls64(us), DSS_LATENCY_BUCKETS - 1)]++;
	count->sectors[write] += io->iter.bi_size >> SECTOR_SHIFT;
}

/* A chunk that is read once and dead, or does not belong here. */
static void dss_give_up(struct dss_io *io)
{
	struct dss *d = io->d;
	unsigned int state;
	dss_oblock_t oblock;

	if (!(io->flags & DSS_IO_GIVE_UP) || d->health != DSS_OK)
		return;
	state = dss_core_slot_state(d->core, io->slot, &oblock, NULL);
	if (state != DSS_SLOT_USED || dss_from_oblock(oblock) != io->oblock ||
	    dss_in_flight(d, io->oblock))
		return;
	dss_evict(d, io->slot, DSS_EVICT_HIT);
}

static int dss_finish(struct dss_io *io, blk_status_t *error)
{
	struct dss *d = io->d;
	int result = DM_ENDIO_DONE;

	switch (io->kind) {
	case DSS_READ_SSD:
		if (*error)
			result = dss_read_ssd_failed(io);
		break;
	case DSS_READ_HDD:
		dss_turn_end(io);
		d->hdd_errors += *error != BLK_STS_OK;
		break;
	case DSS_WRITE_SSD:
		if (!(io->flags & DSS_IO_ENDED))
			result = dss_wrote_ssd(io, error);
		break;
	case DSS_WRITE_BOTH:
		dss_wrote_both(io, error);
		break;
	case DSS_WRITE_HDD:
	case DSS_DISCARD:
		if (io->flags & DSS_IO_GROUPED && !(io->flags & DSS_IO_ENDED))
			result = dss_group_arrived(io, *error);
		if (result == DM_ENDIO_INCOMPLETE)
			break;
		d->hdd_errors += *error != BLK_STS_OK;
		if (*error || !(io->bio->bi_opf & REQ_FUA ||
				io->flags & DSS_IO_GROUPED)) {
			dss_wrote_chunks(io);
			d->hdd_owes = true;
		}
		break;
	default:
		break;
	}
	if (result == DM_ENDIO_INCOMPLETE)
		return result;
	dss_unhash(io);
	if (io->kind != DSS_FLUSH)
		dss_record_latency(io);
	dss_give_up(io);
	if (!*error)
		*error = io->piece_status;
	return result;
}

int dss_end_io(struct dm_target *ti, struct bio *bio, blk_status_t *error)
{
	struct dss *d = ti->private;
	struct dss_io *io = dss_io_of(bio, d);
	unsigned long irq;
	int result;

	if (io->kind == DSS_WRITE_BOTH && !(io->flags & DSS_IO_ENDED) &&
	    atomic_read(&io->left)) {
		io->flags |= DSS_IO_ENDED;
		if (!atomic_dec_and_test(&io->left))
			return DM_ENDIO_INCOMPLETE;
	}
	spin_lock_irqsave(&d->lock, irq);
	result = dss_finish(io, error);
	spin_unlock_irqrestore(&d->lock, irq);
	return result;
}
