// SPDX-License-Identifier: GPL-2.0
/*
 * /sys/block/dm-N/dss: the answers of the messages "stats" and "latency", in a
 * file for each class and one for the device, without device-mapper's lock and
 * for every user that may read.
 *
 * The folder is there while the device is not suspended: of two tables of a
 * device only one is live, and the old one is suspended first.
 *
 * Context: control, or a reader of a file. May sleep.
 */
#include "dss_top.h"

static struct dss *dss_of(struct kobject *kobj)
{
	return container_of(kobj, struct dss, kobj);
}

static ssize_t dss_class_show(struct kobject *kobj,
			      struct kobj_attribute *attribute, char *page);
static ssize_t dss_device_show(struct kobject *kobj,
			       struct kobj_attribute *attribute, char *page);

#define DSS_CLASS(n) __ATTR(class##n, 0444, dss_class_show, NULL)

static struct kobj_attribute dss_class_attributes[DSS_CLASSES] = {
	DSS_CLASS(0), DSS_CLASS(1), DSS_CLASS(2), DSS_CLASS(3),
	DSS_CLASS(4), DSS_CLASS(5), DSS_CLASS(6), DSS_CLASS(7),
	DSS_CLASS(8), DSS_CLASS(9), DSS_CLASS(10), DSS_CLASS(11),
	DSS_CLASS(12), DSS_CLASS(13), DSS_CLASS(14), DSS_CLASS(15),
	DSS_CLASS(16), DSS_CLASS(17), DSS_CLASS(18), DSS_CLASS(19),
	DSS_CLASS(20), DSS_CLASS(21), DSS_CLASS(22), DSS_CLASS(23),
	DSS_CLASS(24), DSS_CLASS(25), DSS_CLASS(26), DSS_CLASS(27),
	DSS_CLASS(28), DSS_CLASS(29), DSS_CLASS(30), DSS_CLASS(31),
};

static struct kobj_attribute dss_device_attribute =
	__ATTR(device, 0444, dss_device_show, NULL);

static ssize_t dss_class_show(struct kobject *kobj,
			      struct kobj_attribute *attribute, char *page)
{
	struct dss *d = dss_of(kobj);
	unsigned int class_id = attribute - dss_class_attributes;
	unsigned int sz;

	spin_lock_irq(&d->lock);
	sz = dss_tell_class(d, class_id, page, PAGE_SIZE);
	sz += dss_tell_class_latency(d, class_id, page + sz, PAGE_SIZE - sz);
	spin_unlock_irq(&d->lock);
	return sz;
}

static ssize_t dss_device_show(struct kobject *kobj,
			       struct kobj_attribute *attribute, char *page)
{
	struct dss *d = dss_of(kobj);
	unsigned int sz;

	spin_lock_irq(&d->lock);
	sz = dss_tell_device(d, page, PAGE_SIZE);
	spin_unlock_irq(&d->lock);
	return sz;
}

static void dss_kobj_release(struct kobject *kobj)
{
	complete(&dss_of(kobj)->kobj_gone);
}

static const struct kobj_type dss_kobj_type = {
	.sysfs_ops = &kobj_sysfs_ops,
	.release = dss_kobj_release,
};

static int dss_sysfs_files(struct dss *d)
{
	unsigned int i;
	int error = sysfs_create_file(&d->kobj, &dss_device_attribute.attr);

	for (i = 0; i < DSS_CLASSES && !error; i++)
		error = sysfs_create_file(&d->kobj,
					  &dss_class_attributes[i].attr);
	return error;
}

/* Counters that cannot be shown are no reason to stop. */
void dss_sysfs_add(struct dss *d)
{
	struct gendisk *disk = dm_disk(dm_table_get_md(d->ti->table));
	int error;

	init_completion(&d->kobj_gone);
	memset(&d->kobj, 0, sizeof(d->kobj));
	error = kobject_init_and_add(&d->kobj, &dss_kobj_type,
				     &disk_to_dev(disk)->kobj, "dss");
	error = error ?: dss_sysfs_files(d);
	d->in_sysfs = true;
	if (!error)
		return;
	DMWARN("%s: no counters in sysfs: error %d",
	       dm_table_device_name(d->ti->table), error);
	dss_sysfs_remove(d);
}

/* On return no thread reads there any more. */
void dss_sysfs_remove(struct dss *d)
{
	if (!d->in_sysfs)
		return;
	d->in_sysfs = false;
	kobject_del(&d->kobj);
	kobject_put(&d->kobj);
	wait_for_completion(&d->kobj_gone);
}
