// SPDX-License-Identifier: GPL-2.0
/*
 * One owner for each SSD and each HDD: two devices with one SSD would write
 * one table, and two caches of one HDD would each have bytes that the other
 * does not know. Device-mapper lets all its targets share a device, so the
 * module keeps a list of its own.
 *
 * Another table of the same mapped device is no second owner: it waits until
 * the first one has stopped.
 *
 * Context: control.
 */
#include "dss_top.h"

static DEFINE_MUTEX(dss_claims_mutex);
static LIST_HEAD(dss_claims);		/* under it */

static bool dss_shares(const struct dss *a, const struct dss *b)
{
	return a->ssd->bdev == b->ssd->bdev || a->hdd->bdev == b->hdd->bdev ||
	       a->ssd->bdev == b->hdd->bdev || a->hdd->bdev == b->ssd->bdev;
}

static bool dss_is_successor(const struct dss *a, const struct dss *b)
{
	return a->ti->table != b->ti->table &&
	       dm_table_get_md(a->ti->table) == dm_table_get_md(b->ti->table);
}

/**
 * dss_claim() - take SSD and HDD for this target
 * @error: where to put what is wrong
 *
 * Return: 0; -EBUSY if another device, or another target of this table, has
 * one of them.
 */
int dss_claim(struct dss *d, char **error)
{
	struct dss *other;
	int result = 0;

	mutex_lock(&dss_claims_mutex);
	list_for_each_entry(other, &dss_claims, claim)
		if (dss_shares(d, other) && !dss_is_successor(d, other))
			result = -EBUSY;
	if (!result)
		list_add(&d->claim, &dss_claims);
	mutex_unlock(&dss_claims_mutex);
	if (result)
		*error = "SSD or origin is in use by another dss device";
	return result;
}

/* Gives them back, if they were taken. */
void dss_unclaim(struct dss *d)
{
	mutex_lock(&dss_claims_mutex);
	list_del_init(&d->claim);
	mutex_unlock(&dss_claims_mutex);
}
