// SPDX-License-Identifier: GPL-2.0
/*
 * dss-disk: a device-mapper target that is as slow as a disk.
 *
 *	dss-disk <device> hdd|ssd [<parameter>=<value>]...
 *
 * The data is the device's; this target decides when a request is done.
 * A request goes to the device at that moment, in the order of completion.
 * Status: the counters by name.  Message "reset": counters to zero.
 */

#include <linux/device-mapper.h>
#include <linux/hrtimer.h>
#include <linux/kthread.h>
#include <linux/module.h>
#include <linux/slab.h>

#include "dss_disk.h"
#include "dss_disk_compat.h"

#define DM_MSG_PREFIX "dss-disk"

struct dss_disk {
	struct dm_target *ti;
	struct dm_dev *dev;
	struct dss_disk_model *model;
	char *words;			/* the parameters as they were given */

	spinlock_t lock;		/* the model and what follows */
	u64 number;
	struct bio_list done;

	struct hrtimer timer;
	struct kthread_worker *worker;	/* a pool would grow in its own time */
	struct kthread_work submit;
};

static const struct {
	const char *name;
	size_t offset;
} dss_disk_names[] = {
#define NAME(field) { #field, offsetof(struct dss_disk_parameters, field) }
	NAME(rotation_ns), NAME(outer_rate), NAME(inner_rate), NAME(zones),
	NAME(seek_base_ns), NAME(seek_sqrt_ns), NAME(seek_linear_ns),
	NAME(write_settle_ns), NAME(switch_ns), NAME(ahead_bytes),
	NAME(channels), NAME(page_bytes), NAME(read_ns), NAME(program_ns),
	NAME(collect_ns), NAME(channel_rate), NAME(write_ns), NAME(flush_ns),
	NAME(overhead_ns), NAME(interface_rate), NAME(depth),
	NAME(cache_bytes),
#undef NAME
	{ "volatile", offsetof(struct dss_disk_parameters, volatile_cache) },
};

static u64 *dss_disk_parameter(struct dss_disk_parameters *p,
			       const char *word, const char *equals)
{
	size_t length = equals - word;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(dss_disk_names); i++)
		if (strlen(dss_disk_names[i].name) == length &&
		    !strncmp(dss_disk_names[i].name, word, length))
			return (u64 *)((char *)p + dss_disk_names[i].offset);
	return NULL;
}

static struct bio *dss_disk_bio(struct dss_disk_request *request)
{
	return dm_bio_from_per_bio_data(request, sizeof(*request));
}

/* With the lock held: let the model work, and come back when it wants. */
static void dss_disk_turn(struct dss_disk *disk, u64 now)
{
	struct dss_disk_request *request;
	u64 next = disk->model->type->advance(disk->model, now);
	bool any = false;

	while ((request = dss_disk_take(disk->model, now))) {
		bio_list_add(&disk->done, dss_disk_bio(request));
		any = true;
	}
	if (any)
		kthread_queue_work(disk->worker, &disk->submit);
	if (next != DSS_DISK_NEVER)
		hrtimer_start(&disk->timer, ns_to_ktime(next),
			      HRTIMER_MODE_ABS);
}

static enum hrtimer_restart dss_disk_tick(struct hrtimer *timer)
{
	struct dss_disk *disk = container_of(timer, struct dss_disk, timer);
	unsigned long flags;

	spin_lock_irqsave(&disk->lock, flags);
	dss_disk_turn(disk, ktime_get_ns());
	spin_unlock_irqrestore(&disk->lock, flags);
	return HRTIMER_NORESTART;
}

static void dss_disk_submit(struct kthread_work *work)
{
	struct dss_disk *disk = container_of(work, struct dss_disk, submit);
	struct bio_list done;
	struct bio *bio;

	spin_lock_irq(&disk->lock);
	done = disk->done;
	bio_list_init(&disk->done);
	spin_unlock_irq(&disk->lock);
	while ((bio = bio_list_pop(&done)))
		dm_submit_bio_remap(bio, NULL);
}

static int dss_disk_map(struct dm_target *ti, struct bio *bio)
{
	struct dss_disk *disk = ti->private;
	struct dss_disk_request *request =
		dm_per_bio_data(bio, sizeof(*request));
	unsigned long flags;
	u64 now;

	bio_set_dev(bio, disk->dev->bdev);
	bio->bi_iter.bi_sector =
		dm_target_offset(ti, bio->bi_iter.bi_sector);

	memset(request, 0, sizeof(*request));
	request->sector = bio->bi_iter.bi_sector;
	request->sectors = bio_sectors(bio);
	request->write = op_is_write(bio_op(bio));
	request->fua = request->write && (bio->bi_opf & REQ_FUA);
	request->flush = bio->bi_opf & REQ_PREFLUSH;
	request->free = bio_op(bio) != REQ_OP_READ &&
			bio_op(bio) != REQ_OP_WRITE;

	spin_lock_irqsave(&disk->lock, flags);
	now = ktime_get_ns();
	request->number = ++disk->number;
	request->arrived_ns = now;
	disk->model->type->arrive(disk->model, request, now);
	dss_disk_turn(disk, now);
	spin_unlock_irqrestore(&disk->lock, flags);
	return DM_MAPIO_SUBMITTED;
}

static int dss_disk_parse(struct dss_disk *disk, unsigned int argc,
			  char **argv, struct dss_disk_parameters *p)
{
	size_t length = 1;
	unsigned int i;

	for (i = 0; i < argc; i++)
		length += strlen(argv[i]) + 1;
	disk->words = kzalloc(length, GFP_KERNEL);
	if (!disk->words) {
		disk->ti->error = "no memory for the parameters";
		return -ENOMEM;
	}
	for (i = 0; i < argc; i++) {
		char *equals = strchr(argv[i], '=');
		u64 *field;

		strlcat(disk->words, i ? " " : "", length);
		strlcat(disk->words, argv[i], length);
		field = equals ? dss_disk_parameter(p, argv[i], equals) : NULL;
		if (!field) {
			disk->ti->error = "unknown parameter";
			return -EINVAL;
		}
		if (kstrtou64(equals + 1, 10, field)) {
			disk->ti->error = "a parameter's value is no number";
			return -EINVAL;
		}
	}
	return 0;
}

static void dss_disk_free(struct dss_disk *disk)
{
	if (disk->worker)
		kthread_destroy_worker(disk->worker);
	if (disk->model)
		disk->model->type->destroy(disk->model);
	if (disk->dev)
		dm_put_device(disk->ti, disk->dev);
	kfree(disk->words);
	kfree(disk);
}

static int dss_disk_ctr(struct dm_target *ti, unsigned int argc, char **argv)
{
	const struct dss_disk_model_type *type;
	struct dss_disk_parameters p = {};
	struct dss_disk *disk;
	int r;

	if (argc < 2) {
		ti->error = "wanted: <device> hdd|ssd [<parameter>=<value>]...";
		return -EINVAL;
	}
	if (!strcmp(argv[1], dss_disk_hdd.name)) {
		type = &dss_disk_hdd;
	} else if (!strcmp(argv[1], dss_disk_ssd.name)) {
		type = &dss_disk_ssd;
	} else {
		ti->error = "the model is hdd or ssd";
		return -EINVAL;
	}

	disk = kzalloc(sizeof(*disk), GFP_KERNEL);
	if (!disk) {
		ti->error = "no memory";
		return -ENOMEM;
	}
	disk->ti = ti;
	spin_lock_init(&disk->lock);
	bio_list_init(&disk->done);
	kthread_init_work(&disk->submit, dss_disk_submit);
	dss_disk_timer_setup(&disk->timer, dss_disk_tick);

	r = dss_disk_parse(disk, argc - 2, argv + 2, &p);
	if (r)
		goto bad;
	r = dm_get_device(ti, argv[0], dm_table_get_mode(ti->table),
			  &disk->dev);
	if (r) {
		ti->error = "the device cannot be opened";
		goto bad;
	}
	r = -EINVAL;
	disk->model = type->create(&p, ti->len, &ti->error);
	if (!disk->model)
		goto bad;
	disk->worker = kthread_create_worker(0, "dss-disk");
	if (IS_ERR(disk->worker)) {
		r = PTR_ERR(disk->worker);
		disk->worker = NULL;
		ti->error = "no thread";
		goto bad;
	}

	/* With a cache there are flushes, as the real ones ask for them. */
	ti->num_flush_bios = 1;
	ti->flush_supported = disk->model->p.cache_bytes != 0;
	ti->num_discard_bios = 1;
	ti->per_io_data_size = sizeof(struct dss_disk_request);
	ti->private = disk;
	return 0;

bad:
	dss_disk_free(disk);
	return r;
}

static void dss_disk_dtr(struct dm_target *ti)
{
	struct dss_disk *disk = ti->private;

	/* No request is left; the write cache's own work may be. */
	hrtimer_cancel(&disk->timer);
	dss_disk_free(disk);
}

static void dss_disk_status(struct dm_target *ti, status_type_t type,
			    unsigned int status_flags, char *result,
			    unsigned int maxlen)
{
	struct dss_disk *disk = ti->private;
	struct dss_disk_counters c;
	unsigned long flags;
	unsigned int sz = 0;
	u64 dirty;

	switch (type) {
	case STATUSTYPE_INFO:
		spin_lock_irqsave(&disk->lock, flags);
		c = disk->model->counters;
		dirty = disk->model->type->dirty_bytes(disk->model);
		spin_unlock_irqrestore(&disk->lock, flags);
		DMEMIT("reads=%llu writes=%llu flushes=%llu seeks=%llu ",
		       c.reads, c.writes, c.flushes, c.seeks);
		DMEMIT("ahead_hits=%llu cache_hits=%llu cache_full=%llu ",
		       c.ahead_hits, c.cache_hits, c.cache_full);
		DMEMIT("busy_ns=%llu small=%llu small_ns=%llu ",
		       c.busy_ns, c.small, c.small_ns);
		DMEMIT("dirty_bytes=%llu", dirty);
		break;
	case STATUSTYPE_TABLE:
		DMEMIT("%s %s %s", disk->dev->name, disk->model->type->name,
		       disk->words);
		break;
	case STATUSTYPE_IMA:
		*result = '\0';
		break;
	}
}

static int dss_disk_message(struct dm_target *ti, unsigned int argc,
			    char **argv, char *result, unsigned int maxlen)
{
	struct dss_disk *disk = ti->private;
	unsigned long flags;

	if (argc != 1 || strcasecmp(argv[0], "reset")) {
		DMWARN("the one message is reset");
		return -EINVAL;
	}
	spin_lock_irqsave(&disk->lock, flags);
	memset(&disk->model->counters, 0, sizeof(disk->model->counters));
	spin_unlock_irqrestore(&disk->lock, flags);
	return 0;
}

static int dss_disk_iterate_devices(struct dm_target *ti,
				    iterate_devices_callout_fn fn, void *data)
{
	struct dss_disk *disk = ti->private;

	return fn(ti, disk->dev, 0, ti->len, data);
}

static void dss_disk_io_hints(struct dm_target *ti,
			      struct queue_limits *limits)
{
	struct dss_disk *disk = ti->private;

	dss_disk_set_rotational(limits, disk->model->type == &dss_disk_hdd);
}

static struct target_type dss_disk_target = {
	.name = "dss-disk",
	.version = { 1, 0, 0 },
	.module = THIS_MODULE,
	.ctr = dss_disk_ctr,
	.dtr = dss_disk_dtr,
	.map = dss_disk_map,
	.status = dss_disk_status,
	.message = dss_disk_message,
	.iterate_devices = dss_disk_iterate_devices,
	.io_hints = dss_disk_io_hints,
};

static int __init dss_disk_init(void)
{
	return dm_register_target(&dss_disk_target);
}
module_init(dss_disk_init);

static void __exit dss_disk_exit(void)
{
	dm_unregister_target(&dss_disk_target);
}
module_exit(dss_disk_exit);

MODULE_DESCRIPTION(DM_NAME " target that is as slow as a disk");
MODULE_AUTHOR("swift-dss");
MODULE_LICENSE("GPL");
