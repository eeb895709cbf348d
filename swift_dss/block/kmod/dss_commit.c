// SPDX-License-Identifier: GPL-2.0
/*
 * Commits: write the state in memory to the table on the SSD. One pass at a
 * time, in a worker, for all requests that wait for one.
 *
 * A pass
 *  1. takes a picture of regions that differ from the table, up to
 *     DSS_COMMIT_REGIONS of them at once;
 *  2. flushes the SSD if the picture may name new bytes, or for a requested
 *     flush; flushes the HDD if the picture forgets bytes that the HDD might
 *     still lose, or for a requested flush that must cover bytes there;
 *  3. writes each region over its older copy, durably.
 * After 3 the newer copies count, region by region: a power cut in between
 * leaves each region as it was or as it is to be, and rules 1 to 4 of dss_state.h
 * hold for each of the mixtures, because a chunk that two regions name is
 * the one of the newer commit.
 *
 * A committed region that did not change for a tick is committed once more,
 * into the other copy: from then on either copy may be lost. The superblock
 * names the seq up to which that is true of all regions.
 *
 * Context: the worker "dss-commit", unless a function says otherwise.
 */
#include "dss_table.h"

/* ---- I/O of a commit ---- */

static void dss_meta_end(struct bio *bio)
{
	struct dss_meta_bio *meta = container_of(bio, struct dss_meta_bio,
						 bio);
	struct dss_commit *commit = meta->commit;

	if (bio->bi_status)
		commit->error = -EIO;
	bio_put(bio);
	if (atomic_dec_and_test(&commit->left))
		complete(&commit->done);
}

static struct bio *dss_meta_bio(struct dss *d, struct block_device *bdev,
				blk_opf_t opf, unsigned int nr_vecs)
{
	struct bio *bio = bio_alloc_bioset(bdev, nr_vecs, opf, GFP_NOIO,
					   &d->meta_bios);

	container_of(bio, struct dss_meta_bio, bio)->commit = &d->commit;
	bio->bi_end_io = dss_meta_end;
	if (d->meta_class < DSS_CLASSES)
		bio->bi_ioprio = dss_priority_of(d->meta_class);
	atomic_inc(&d->commit.left);
	return bio;
}

static void dss_commit_begin(struct dss_commit *commit)
{
	reinit_completion(&commit->done);
	atomic_set(&commit->left, 1);
	commit->error = 0;
}

static int dss_commit_wait(struct dss_commit *commit)
{
	if (!atomic_dec_and_test(&commit->left))
		wait_for_completion_io(&commit->done);
	return commit->error;
}

static void dss_submit_flush(struct dss *d, struct block_device *bdev)
{
	submit_bio_noacct(dss_meta_bio(d, bdev, REQ_OP_WRITE | REQ_PREFLUSH |
				       REQ_SYNC, 0));
}

static int dss_write_regions(struct dss *d, u32 nr)
{
	struct dss_commit *commit = &d->commit;
	blk_opf_t opf = REQ_OP_WRITE | REQ_META | REQ_PRIO | REQ_SYNC;
	struct dss_table_head *head;
	struct blk_plug plug;
	struct bio *bio;
	u32 i;
	int error;

	/* One alone is made durable by itself, several by one flush. */
	if (nr == 1)
		opf |= REQ_FUA;
	dss_commit_begin(commit);
	blk_start_plug(&plug);
	for (i = 0; i < nr; i++) {
		u32 region = commit->regions[i];

		head = page_address(commit->pages[i]);
		head->csum = cpu_to_le32(dss_crc(head));
		bio = dss_meta_bio(d, d->ssd->bdev, opf, 1);
		bio->bi_iter.bi_sector =
			dss_region_sector(d, region,
					  !test_bit(region, d->copy));
		__bio_add_page(bio, commit->pages[i], DSS_BLOCK_BYTES, 0);
		submit_bio_noacct(bio);
	}
	blk_finish_plug(&plug);
	error = dss_commit_wait(commit);
	if (error || nr == 1)
		return error;
	dss_commit_begin(commit);
	dss_submit_flush(d, d->ssd->bdev);
	return dss_commit_wait(commit);
}

/* ---- a pass ---- */

struct dss_pass {
	struct list_head waiters;
	u32 cursor;
	bool twins;	/* of regions that have not changed */
	bool ssd;	/* the SSD is to be flushed, and may be */
	bool hdd;
	int ssd_error;
	int hdd_error;
};

/* Step 2. */
static void dss_flush_devices(struct dss *d, struct dss_pass *pass)
{
	dss_commit_begin(&d->commit);
	if (pass->ssd)
		dss_submit_flush(d, d->ssd->bdev);
	if (pass->hdd)
		pass->hdd_error = dss_flush_hdd(d);
	pass->ssd_error = dss_commit_wait(&d->commit);
}

/* Step 1, and the work of step 2. */
static u32 dss_pass_picture(struct dss *d, struct dss_pass *pass)
{
	u32 nr = 0;

	spin_lock_irq(&d->lock);
	dss_picture_begin(d);
	while (d->health == DSS_OK &&
	       dss_picture(d, &pass->cursor, pass->twins, &nr)) {
		spin_unlock_irq(&d->lock);
		cond_resched();
		spin_lock_irq(&d->lock);
	}
	dss_picture_end(d);
	/* Only now: these cover all that was drawn. */
	pass->hdd |= d->want_hdd_flush;
	d->want_hdd_flush = false;
	pass->ssd = d->health == DSS_OK &&
		    ((d->ssd_wrote && d->want_ssd_flush) ||
		     (d->ssd_named && nr));
	d->want_ssd_flush = false;
	if (pass->ssd) {
		d->ssd_wrote = false;
		d->ssd_named = false;
	}
	spin_unlock_irq(&d->lock);
	return nr;
}

/* Note the outcome for the pictured regions. */
static void dss_pass_told(struct dss *d, struct dss_pass *pass, u32 nr)
{
	u32 i, first, slots, slot;
	int error = pass->ssd_error ?: pass->hdd_error;

	spin_lock_irq(&d->lock);
	if (pass->hdd_error)
		d->want_hdd_flush = true;
	if (pass->ssd_error) {
		d->ssd_errors++;
		dss_ssd_failed(d);
	}
	for (i = 0; i < nr; i++) {
		u32 region = d->commit.regions[i];

		__clear_bit(region, d->writing);
		slots = dss_region_slots(d, region, &first);
		if (error) {
			if (!__test_and_set_bit(region, d->pending))
				d->nr_pending++;
			for (slot = first; slot < first + slots; slot++)
				if (test_bit(slot, d->stale_old))
					__set_bit(slot, d->stale);
		} else {
			__change_bit(region, d->copy);
			d->region_seq[region] = d->commit_seq;
			d->nr_table_writes++;
		}
		bitmap_clear(d->stale_old + BIT_WORD(first),
			     first % BITS_PER_LONG, slots);
	}
	spin_unlock_irq(&d->lock);
	pass->hdd = false;
}

/* Gives the waiters their outcome and lets them go on. */
static void dss_pass_release(struct dss *d, struct dss_pass *pass)
{
	struct dss_io *io, *next;
	int error = pass->ssd_error ?: pass->hdd_error;

	spin_lock_irq(&d->lock);
	if (!error)
		bitmap_zero(d->evicted_old, DSS_HASH_BITS);
	if (d->health != DSS_OK)
		error = -EIO;
	list_for_each_entry(io, &pass->waiters, list) {
		if (!error)
			break;
		io->status = BLK_STS_IOERR;
		/* Marked, but not written: the origin is as good. */
		if ((io->kind == DSS_WRITE_SSD ||
		     io->kind == DSS_WRITE_BOTH) &&
		    !(io->flags & (DSS_IO_HAD_DIRTY | DSS_IO_ENDED)))
			dss_invalidate_parts(io);
	}
	list_for_each_entry(io, &pass->waiters, list) {
		if (d->health != DSS_GIVEN_UP)
			break;
		if (io->kind == DSS_FLUSH)
			io->status = errno_to_blk_status(pass->hdd_error);
	}
	d->nr_commits++;
	spin_unlock_irq(&d->lock);
	list_for_each_entry_safe(io, next, &pass->waiters, list) {
		list_del_init(&io->list);
		io->then(io);
	}
}

/* Return: whether there may be more regions to write. */
static bool dss_commit_regions(struct dss *d, struct dss_pass *pass)
{
	u32 nr = dss_pass_picture(d, pass);

	dss_flush_devices(d, pass);
	if (nr && !pass->ssd_error && !pass->hdd_error)
		pass->ssd_error = dss_write_regions(d, nr);
	dss_pass_told(d, pass, nr);
	return nr == DSS_COMMIT_REGIONS && !pass->ssd_error &&
	       !pass->hdd_error;
}

/* Write a second copy of quiet regions, and note the progress. */
static void dss_write_twins(struct dss *d, struct dss_pass *waited)
{
	struct dss_pass pass = { .twins = true };
	bool wanted;
	u64 seq;

	spin_lock_irq(&d->lock);
	wanted = d->want_twins;
	d->want_twins = false;
	spin_unlock_irq(&d->lock);
	if (!wanted || waited->ssd_error || waited->hdd_error)
		return;
	if (dss_commit_regions(d, &pass)) {
		/* Requests that wait for a commit come first. */
		d->want_twins = true;
		dss_kick_commit(d);
		return;
	}
	seq = dss_twin_seq(d);
	spin_lock_irq(&d->lock);
	if (pass.ssd_error || pass.hdd_error || d->health != DSS_OK ||
	    seq <= d->twin_seq) {
		spin_unlock_irq(&d->lock);
		return;
	}
	d->twin_seq = seq;
	spin_unlock_irq(&d->lock);
	dss_meta_mark_or_fail(d, d->super_flags);
}

void dss_commit_work(struct work_struct *work)
{
	struct dss *d = container_of(work, struct dss, commit_work);
	struct dss_pass pass = { .cursor = 0 };
	struct blk_plug plug;

	INIT_LIST_HEAD(&pass.waiters);
	mutex_lock(&d->meta_mutex);
	spin_lock_irq(&d->lock);
	list_splice_init(&d->committing, &pass.waiters);
	bitmap_or(d->evicted_old, d->evicted_old, d->evicted,
		  DSS_HASH_BITS);
	bitmap_zero(d->evicted, DSS_HASH_BITS);
	spin_unlock_irq(&d->lock);
	while (dss_commit_regions(d, &pass))
		;
	blk_start_plug(&plug);
	dss_pass_release(d, &pass);
	blk_finish_plug(&plug);
	dss_write_twins(d, &pass);
	mutex_unlock(&d->meta_mutex);
}

/* A pass of one's own. May sleep; not from the commit's worker. */
int dss_commit_all(struct dss *d)
{
	dss_kick_commit(d);
	flush_work(&d->commit_work);
	return READ_ONCE(d->health) == DSS_OK ? 0 : -EIO;
}

/* Commit and settle by and by what no request waits for. */
void dss_tick_work(struct work_struct *work)
{
	struct dss *d = container_of(to_delayed_work(work), struct dss,
				     tick_work);
	bool settle, commit;

	spin_lock_irq(&d->lock);
	settle = !bitmap_empty(d->unsettled_regions, d->nr_regions);
	spin_unlock_irq(&d->lock);
	/* Here, so that no commit has to wait for the HDD. */
	if (settle)
		dss_flush_hdd(d);
	spin_lock_irq(&d->lock);
	d->want_twins = !bitmap_empty(d->lagging, d->nr_regions);
	commit = d->want_hdd_flush || d->nr_pending || d->want_twins;
	spin_unlock_irq(&d->lock);
	if (commit)
		dss_kick_commit(d);
	dss_kick_cleaner(d, 0);
	if (!d->stopping)
		queue_delayed_work(d->clean_wq, &d->tick_work, DSS_TICK);
}
