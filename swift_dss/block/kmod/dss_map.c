// SPDX-License-Identifier: GPL-2.0
/*
 * The way of a request: its class, the place of its grains, its device.
 *
 * dss_map() cuts requests at chunks, but for those that are spans
 * (dss_span.c), and further where grains that are here meet grains that are
 * not. A request that had to wait is judged again in the worker, which cuts it
 * into pieces instead. dss_end.c issues and ends requests.
 */
/* long: all that is decided of one chunk's request, from map to cut */
#include "dss_way.h"

/* The carrier of the class: swift_dss/io/carriers/ioprio.py */
#define DSS_HINT_SHIFT	3
#define DSS_HINT_MASK	0x3ff
#define DSS_HINT_BASE	32
#define DSS_BEST_EFFORT	(2 << 13)
#define DSS_LEVEL	4

unsigned short dss_priority_of(unsigned int class_id)
{
	if (!class_id)
		return 0;
	return DSS_BEST_EFFORT | (DSS_HINT_BASE + class_id) << DSS_HINT_SHIFT |
	       DSS_LEVEL;
}

/*
 * A file system's metadata has the metadata class, whichever thread asks for
 * it; else the class of the I/O priority; else that of the inode's write hint.
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
void dss_place(struct dss_io *io)
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

/*
 * Limits the request to its first @nr grains, if that is possible here.
 *
 * Return: false if it has to be cut in the worker; io->nr is set for that.
 */
bool dss_limit(struct dss_io *io, unsigned int nr, bool in_map)
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

/* ---- decisions, under the lock ---- */

void dss_count_hit(struct dss_io *io)
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
bool dss_allocate(struct dss_io *io, bool dirty)
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

enum dss_next dss_to_hdd(struct dss_io *io, enum dss_kind kind)
{
	dss_hash(io, kind);
	dss_aim_hdd(io);
	return DSS_NEXT_SUBMIT;
}

static void dss_submit(struct dss_io *io)
{
	submit_bio_noacct(io->bio);
}

/* A read with a waiting reader. */
enum dss_next dss_read_hdd(struct dss_io *io)
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
 * A read miss also fetches missing grains on both sides, in its window of
 * ahead_sectors: if positioning is the cost, neighbouring bytes cost next to
 * nothing. io->iter still covers only the reader's bytes.
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

/* Whether a write may leave its grains dirty. */
static bool dss_may_dirty(const struct dss_io *io)
{
	struct dss *d = io->d;

	return io->slot == DSS_NO_SLOT ||
	       dss_core_slot_state(d->core, io->slot, NULL, NULL) &
	       DSS_SLOT_DIRTY || dss_core_may_dirty(d->core, io->class_id);
}

/* The stricter write mode of device and class. */
enum dss_global_mode dss_asked_mode(const struct dss_io *io)
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
enum dss_global_mode dss_write_mode(const struct dss_io *io)
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
bool dss_intend(struct dss_io *io, bool through)
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
 * A grain that is dirty or unsettled needs no new intent: the request that
 * marked it held its range until that was durable, or the table does not name
 * it.
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

enum dss_next dss_admit(struct dss_io *io)
{
	return !(io->flags & DSS_IO_GROUPED) || dss_group_admit(io) ?
		DSS_NEXT_SUBMIT : DSS_NEXT_WAIT;
}

/* Write the origin; first forget the SSD's copy of it, durably. */
static enum dss_next dss_write_around(struct dss_io *io, enum dss_kind kind)
{
	struct dss *d = io->d;
	bool commit = dss_was_evicted(d, io->oblock);

	if (io->slot != DSS_NO_SLOT)
		commit |= dss_invalidate(d, io->slot, io->first, io->nr);
	if (d->health != DSS_OK)
		commit = false;
	dss_to_hdd(io, kind);
	if (kind == DSS_WRITE_HDD)
		dss_group_ask(io);
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

/*
 * A read whose range overlaps held grains. It does not wait for its free
 * grains, nor for grains whose bytes a fill has.
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
		if (next == DSS_NEXT_WAIT)
			dss_defer(io);
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
 * Return: true if io->bio is aimed and the caller MUST submit it; else do not
 * touch it any more.
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
		/*
		 * Ignore the cleaner's writes: the SSD still has those bytes.
		 */
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

/* ---- cutting in the worker ---- */

void dss_piece_end(struct bio *bio)
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
