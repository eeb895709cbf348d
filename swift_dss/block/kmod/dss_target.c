// SPDX-License-Identifier: GPL-2.0
/*
 * The target: constructor, life and limits.
 *
 * Context: control; device-mapper has one caller at a time.
 */
#include <linux/module.h>
#include <linux/random.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "dss_top.h"

static unsigned long *dss_bitmap(u64 bits)
{
	return vzalloc(BITS_TO_LONGS(bits) * sizeof(long));
}

static int dss_create_planes(struct dss *d)
{
	u64 grains = (u64)d->nr_slots * d->grains;

	d->valid = dss_bitmap(grains);
	d->dirty = dss_bitmap(grains);
	d->unsettled = dss_bitmap(grains);
	d->stale = dss_bitmap(d->nr_slots);
	d->stale_old = dss_bitmap(d->nr_slots);
	d->copy = dss_bitmap(d->nr_regions);
	d->pending = dss_bitmap(d->nr_regions);
	d->writing = dss_bitmap(d->nr_regions);
	d->lagging = dss_bitmap(d->nr_regions);
	d->unsettled_regions = dss_bitmap(d->nr_regions);
	d->unsettled_new = dss_bitmap(d->nr_regions);
	d->evicted = dss_bitmap(DSS_HASH_BITS);
	d->evicted_old = dss_bitmap(DSS_HASH_BITS);
	d->volatile_new = dss_bitmap(DSS_HASH_BITS);
	d->volatile_old = dss_bitmap(DSS_HASH_BITS);
	d->region_seq = vzalloc(array_size(d->nr_regions, sizeof(u64)));
	d->counts = vzalloc(array_size(DSS_CLASSES, sizeof(*d->counts)));
	if (!d->valid || !d->dirty || !d->unsettled || !d->stale ||
	    !d->stale_old || !d->copy || !d->pending || !d->writing ||
	    !d->lagging || !d->unsettled_regions || !d->unsettled_new ||
	    !d->evicted || !d->evicted_old || !d->volatile_new ||
	    !d->volatile_old || !d->region_seq || !d->counts)
		return -ENOMEM;
	return 0;
}

static int dss_create_core(struct dss *d, char **error)
{
	u64 bytes = dss_core_bytes(d->nr_slots);
	void *memory = bytes ? vmalloc(bytes) : NULL;

	if (!memory) {
		*error = "No memory for the chunk table";
		return -ENOMEM;
	}
	d->core = dss_core_init(memory, bytes, d->nr_slots, get_random_u64());
	if (!d->core) {
		vfree(memory);
		*error = "The chunk table cannot be";
		return -EINVAL;
	}
	if (dss_core_set_mode(d->core, d->strategy) ||
	    dss_core_set_watermarks(d->core, d->high_parts, d->low_parts) ||
	    dss_core_set_stage(d->core, d->stage_parts)) {
		*error = "Strategy, watermarks or stage";
		return -EINVAL;
	}
	return 0;
}

static int dss_create_commit(struct dss *d)
{
	unsigned int i;

	init_completion(&d->commit.done);
	for (i = 0; i < DSS_COMMIT_REGIONS; i++) {
		d->commit.pages[i] = alloc_page(GFP_KERNEL);
		if (!d->commit.pages[i])
			return -ENOMEM;
	}
	return 0;
}

static int dss_create_pools(struct dss *d)
{
	int error;

	error = bioset_init(&d->pieces, 32, offsetof(struct dss_piece, bio),
			    0);
	error = error ?: bioset_init(&d->doubles, 64, 0, 0);
	error = error ?: bioset_init(&d->moves, DSS_POOL_MOVES,
				     offsetof(struct dss_move, bio),
				     BIOSET_NEED_BVECS);
	error = error ?: bioset_init(&d->meta_bios, DSS_COMMIT_REGIONS + 2,
				     offsetof(struct dss_meta_bio, bio),
				     BIOSET_NEED_BVECS);
	error = error ?: mempool_init_page_pool(&d->pages, DSS_POOL_PAGES, 0);
	return error ?: dss_create_commit(d);
}

static int dss_create_workers(struct dss *d)
{
	d->wq = alloc_workqueue("dss-io", WQ_MEM_RECLAIM | WQ_HIGHPRI |
				WQ_UNBOUND, 1);
	d->commit_wq = alloc_workqueue("dss-commit", WQ_MEM_RECLAIM |
				       WQ_HIGHPRI | WQ_UNBOUND, 1);
	d->clean_wq = alloc_workqueue("dss-clean", WQ_MEM_RECLAIM |
				      WQ_UNBOUND, 3);
	d->group_wq = alloc_workqueue("dss-group", WQ_MEM_RECLAIM |
				      WQ_HIGHPRI | WQ_UNBOUND, 1);
	d->send_wq = alloc_workqueue("dss-send", WQ_MEM_RECLAIM |
				     WQ_HIGHPRI | WQ_UNBOUND, 1);
	d->cleaner = dss_cleaner_create(d);
	return d->wq && d->commit_wq && d->clean_wq && d->group_wq &&
	       d->send_wq && d->cleaner &&
	       (!d->stage_parts || !dss_cleaner_stage(d)) ? 0 : -ENOMEM;
}

static void dss_destroy(struct dss *d)
{
	unsigned int i;

	if (d->send_wq)
		destroy_workqueue(d->send_wq);
	if (d->group_wq)
		destroy_workqueue(d->group_wq);
	if (d->clean_wq)
		destroy_workqueue(d->clean_wq);
	if (d->commit_wq)
		destroy_workqueue(d->commit_wq);
	if (d->wq)
		destroy_workqueue(d->wq);
	dss_cleaner_destroy(d->cleaner);
	for (i = 0; i < DSS_COMMIT_REGIONS; i++)
		if (d->commit.pages[i])
			__free_page(d->commit.pages[i]);
	mempool_exit(&d->pages);
	bioset_exit(&d->meta_bios);
	bioset_exit(&d->moves);
	bioset_exit(&d->doubles);
	bioset_exit(&d->pieces);
	vfree(d->core);
	vfree(d->counts);
	vfree(d->region_seq);
	vfree(d->volatile_old);
	vfree(d->volatile_new);
	vfree(d->evicted_old);
	vfree(d->evicted);
	vfree(d->unsettled_new);
	vfree(d->unsettled_regions);
	vfree(d->lagging);
	vfree(d->writing);
	vfree(d->pending);
	vfree(d->copy);
	vfree(d->stale_old);
	vfree(d->stale);
	vfree(d->unsettled);
	vfree(d->dirty);
	vfree(d->valid);
	dss_unclaim(d);
	if (d->hdd)
		dm_put_device(d->ti, d->hdd);
	if (d->ssd)
		dm_put_device(d->ti, d->ssd);
	kvfree(d);
}

static struct dss *dss_alloc(struct dm_target *ti)
{
	struct dss *d = kvzalloc(sizeof(*d), GFP_KERNEL);
	unsigned int i;

	if (!d)
		return NULL;
	d->ti = ti;
	INIT_LIST_HEAD(&d->claim);
	d->meta_class = 1;
	d->high_parts = DSS_PARTS / 2;
	d->low_parts = DSS_PARTS / 4;
	d->idle_ms = 1000;
	d->suspended = true;
	spin_lock_init(&d->lock);
	mutex_init(&d->meta_mutex);
	mutex_init(&d->hdd_mutex);
	mutex_init(&d->message_mutex);
	for (i = 0; i < DSS_BUCKETS; i++) {
		INIT_HLIST_HEAD(&d->inflight[i]);
		INIT_LIST_HEAD(&d->deferred[i]);
	}
	INIT_LIST_HEAD(&d->ready);
	INIT_LIST_HEAD(&d->starved);
	INIT_LIST_HEAD(&d->committing);
	INIT_LIST_HEAD(&d->unpictured);
	dss_held_init(&d->reads);
	dss_held_init(&d->held);
	dss_held_init(&d->staged);
	INIT_LIST_HEAD(&d->gathered);
	bio_list_init(&d->sending);
	INIT_WORK(&d->work, dss_work);
	INIT_WORK(&d->send_work, dss_send_work);
	INIT_WORK(&d->commit_work, dss_commit_work);
	INIT_WORK(&d->group_work, dss_group_work);
	INIT_WORK(&d->fail_work, dss_fail_work);
	INIT_DELAYED_WORK(&d->starved_work, dss_starved_work);
	INIT_DELAYED_WORK(&d->clean_work, dss_clean_work);
	INIT_DELAYED_WORK(&d->tick_work, dss_tick_work);
	init_waitqueue_head(&d->idle);
	d->last_request = jiffies;
	return d;
}

/* ---- the verbs of a target ---- */

static void dss_announce(struct dm_target *ti)
{
	ti->num_flush_bios = 1;
	ti->num_discard_bios = 1;
	ti->flush_supported = true;
	ti->discards_supported = true;
	ti->per_io_data_size = sizeof(struct dss_io);
	dss_split_discards(ti);
}

static int dss_ctr(struct dm_target *ti, unsigned int argc, char **argv)
{
	struct dss *d;
	int error;

	if (argc < 3) {
		ti->error = "Needs <SSD> <origin> <chunk sectors>";
		return -EINVAL;
	}
	d = dss_alloc(ti);
	if (!d) {
		ti->error = "No memory";
		return -ENOMEM;
	}
	error = dss_parse_table(d, argc, argv, &ti->error);
	error = error ?: dss_claim(d, &ti->error);
	error = error ?: dss_meta_probe(d, &ti->error);
	error = error ?: dss_create_core(d, &ti->error);
	if (!error) {
		ti->error = "No memory for planes, pools or workers";
		error = dss_create_planes(d);
		error = error ?: dss_create_pools(d);
		error = error ?: dss_create_workers(d);
	}
	error = error ?: dm_set_target_max_io_len(ti, dss_span_sectors(d));
	if (error) {
		dss_destroy(d);
		return error;
	}
	ti->error = NULL;
	dss_announce(ti);
	ti->private = d;
	return 0;
}

static void dss_dtr(struct dm_target *ti)
{
	struct dss *d = ti->private;

	d->stopping = true;
	dss_sysfs_remove(d);
	cancel_delayed_work_sync(&d->tick_work);
	cancel_delayed_work_sync(&d->clean_work);
	cancel_delayed_work_sync(&d->starved_work);
	dss_destroy(d);
}

/*
 * Resume after a suspension. If the SSD failed, only memory knows the place of
 * bytes, and the mark on the SSD has to stay: no device may start from it.
 */
static void dss_go_on(struct dss *d)
{
	if (d->health == DSS_OK)
		dss_meta_mark_or_fail(d, 0);
}

/*
 * The first time, the cache is read back; then requests may come.
 *
 * While the device stands still, to wait for memory may be to wait for its own
 * requests. So suspension and resume run as with GFP_NOIO.
 */
static int dss_preresume(struct dm_target *ti)
{
	struct dss *d = ti->private;
	unsigned int noio = memalloc_noio_save();
	int error = 0;

	if (d->loaded)
		dss_go_on(d);
	else
		error = dss_meta_load(d);
	memalloc_noio_restore(noio);
	if (error) {
		DMERR("%s: cannot start from the SSD %s: error %d",
		      dm_table_device_name(ti->table), d->ssd->name, error);
		return error;
	}
	d->suspended = false;
	return 0;
}

static void dss_resume(struct dm_target *ti)
{
	struct dss *d = ti->private;
	unsigned int noio = memalloc_noio_save();

	d->last_request = jiffies;
	dss_sysfs_add(d);
	memalloc_noio_restore(noio);
	queue_delayed_work(d->clean_wq, &d->tick_work, DSS_TICK);
}

/* All requests have ended. So do our own, and the table is made whole. */
static void dss_postsuspend(struct dm_target *ti)
{
	struct dss *d = ti->private;
	unsigned int noio = memalloc_noio_save();

	d->suspended = true;
	dss_sysfs_remove(d);
	cancel_delayed_work_sync(&d->tick_work);
	cancel_delayed_work_sync(&d->clean_work);
	wait_event(d->idle, !atomic_read(&d->nr_moves));
	flush_workqueue(d->group_wq);
	flush_workqueue(d->clean_wq);
	flush_workqueue(d->wq);
	if (d->loaded && dss_meta_stop(d))
		DMWARN("%s: the next start is one after a crash",
		       dm_table_device_name(ti->table));
	memalloc_noio_restore(noio);
}

static int dss_iterate_devices(struct dm_target *ti,
			       iterate_devices_callout_fn fn, void *data)
{
	struct dss *d = ti->private;
	int result = fn(ti, d->ssd, 0, bdev_nr_sectors(d->ssd->bdev), data);

	return result ?: fn(ti, d->hdd, 0, ti->len, data);
}

static void dss_io_hints(struct dm_target *ti, struct queue_limits *limits)
{
	struct dss *d = ti->private;

	limits->io_min = max_t(unsigned int, limits->logical_block_size,
			       d->grain_sectors << SECTOR_SHIFT);
	/* Twice that is read ahead: about as long as a way of the arm. */
	limits->io_opt = max_t(sector_t, d->chunk_sectors,
			       DSS_STREAM_SECTORS) << SECTOR_SHIFT;
	dss_discard_limits(limits, d->hdd->bdev, dss_span_sectors(d),
			   d->grain_sectors);
	dss_stable_writes(limits);
}

static struct target_type dss_target = {
	.name = "dss",
	.version = DSS_TARGET_VERSION,
	.module = THIS_MODULE,
	.ctr = dss_ctr,
	.dtr = dss_dtr,
	.map = dss_map,
	.end_io = dss_end_io,
	.preresume = dss_preresume,
	.resume = dss_resume,
	.postsuspend = dss_postsuspend,
	.status = dss_status,
	.message = dss_message,
	.iterate_devices = dss_iterate_devices,
	.io_hints = dss_io_hints,
};

static int __init dss_init(void)
{
	return dm_register_target(&dss_target);
}

static void __exit dss_exit(void)
{
	dm_unregister_target(&dss_target);
}

module_init(dss_init);
module_exit(dss_exit);

MODULE_DESCRIPTION("device-mapper: SSD in front of an HDD, by class");
MODULE_AUTHOR("The swift-dss project");
MODULE_VERSION(DSS_MODULE_VERSION);
MODULE_LICENSE("GPL");
