// SPDX-License-Identifier: GPL-2.0
/*
 * The arguments of the constructor. doc/source/reference/dm-dss.rst has the grammar.
 *
 * Context: control; no other thread has the device.
 */
#include "dss_top.h"

static int dss_parse_devices(struct dss *d, struct dm_arg_set *as,
			     char **error)
{
	struct dm_target *ti = d->ti;

	if (dm_get_device(ti, dm_shift_arg(as), dm_table_get_mode(ti->table),
			  &d->ssd)) {
		d->ssd = NULL;
		*error = "Cannot open the SSD";
		return -EINVAL;
	}
	if (dm_get_device(ti, dm_shift_arg(as), dm_table_get_mode(ti->table),
			  &d->hdd)) {
		d->hdd = NULL;
		*error = "Cannot open the origin";
		return -EINVAL;
	}
	d->origin_sectors = ti->len;
	if (bdev_nr_sectors(d->hdd->bdev) < ti->len) {
		*error = "The origin is smaller than the target";
		return -EINVAL;
	}
	if (ti->begin & 7 || ti->len & 7) {
		*error = "Begin and length must be multiples of 8 sectors";
		return -EINVAL;
	}
	return 0;
}

static int dss_parse_chunk(struct dss *d, struct dm_arg_set *as, char **error)
{
	unsigned int sectors;

	if (kstrtouint(dm_shift_arg(as), 10, &sectors) ||
	    sectors < DSS_CHUNK_MIN || sectors > DSS_CHUNK_MAX ||
	    !is_power_of_2(sectors)) {
		*error = "Chunk: a power of two of sectors, 8..2048";
		return -EINVAL;
	}
	d->chunk_sectors = sectors;
	return 0;
}

static int dss_parse_number(struct dm_arg_set *as, unsigned int most,
			    unsigned int *number)
{
	if (!as->argc || kstrtouint(dm_shift_arg(as), 10, number) ||
	    *number > most)
		return -EINVAL;
	return 0;
}

static int dss_parse_origin_id(struct dss *d, struct dm_arg_set *as,
			       char **error)
{
	const char *digits = as->argc ? dm_shift_arg(as) : "";

	if (strlen(digits) == 2 * sizeof(d->origin_id) &&
	    !hex2bin(d->origin_id, digits, sizeof(d->origin_id)) &&
	    memchr_inv(d->origin_id, 0, sizeof(d->origin_id)))
		return 0;
	*error = "origin_id: 32 hexadecimal digits, not all of them 0";
	return -EINVAL;
}

/* One feature; those that are a word and a number take both. */
static int dss_parse_feature(struct dss *d, struct dm_arg_set *as,
			     char **error)
{
	const char *name = dm_shift_arg(as);
	int which = dss_parse_name(name, dss_mode_names, DSS_NR_GLOBAL);
	unsigned int number;

	if (which >= 0) {
		d->mode = which;
		return 0;
	}
	which = dss_parse_name(name, dss_strategy_names, DSS_NR_MODE);
	if (which >= 0) {
		d->strategy = which;
		return 0;
	}
	if (!strcasecmp(name, "format")) {
		d->format = true;
		return 0;
	}
	if (!strcasecmp(name, "rebind")) {
		d->rebind = true;
		return 0;
	}
	if (!strcasecmp(name, "origin_id"))
		return dss_parse_origin_id(d, as, error);
	*error = "Unknown feature, or a number out of range";
	if (dss_parse_number(as, UINT_MAX, &number))
		return -EINVAL;
	if (!strcasecmp(name, "grain") && is_power_of_2(number)) {
		d->grain_sectors = number;
		return 0;
	}
	if (!strcasecmp(name, "meta_class") && number < 256) {
		d->meta_class = number;
		return 0;
	}
	if (!strcasecmp(name, "high") && number <= 100) {
		d->high_parts = number * DSS_PARTS / 100;
		return 0;
	}
	if (!strcasecmp(name, "low") && number <= 100) {
		d->low_parts = number * DSS_PARTS / 100;
		return 0;
	}
	if (!strcasecmp(name, "stage") && number <= 100) {
		d->stage_parts = number * DSS_PARTS / 100;
		return 0;
	}
	if (!strcasecmp(name, "idle_ms") && number <= 3600000) {
		d->idle_ms = number;
		return 0;
	}
	if (!strcasecmp(name, "ahead") && number <= DSS_CHUNK_MAX) {
		d->ahead_sectors = number;
		return 0;
	}
	if (!strcasecmp(name, "after") && number <= DSS_CHUNK_MAX) {
		d->after_sectors = number;
		return 0;
	}
	return -EINVAL;
}

static int dss_parse_features(struct dss *d, struct dm_arg_set *as,
			      char **error)
{
	unsigned int left;
	int result;

	if (!as->argc)
		return 0;
	if (dss_parse_number(as, as->argc - 1, &left) || left != as->argc) {
		*error = "Number of feature arguments";
		return -EINVAL;
	}
	while (as->argc) {
		result = dss_parse_feature(d, as, error);
		if (result)
			return result;
	}
	return 0;
}

static int dss_check_sizes(struct dss *d, char **error)
{
	if (!d->grain_sectors)
		d->grain_sectors = 8;
	if (d->grain_sectors > 8 || d->grain_sectors > d->chunk_sectors ||
	    d->chunk_sectors / d->grain_sectors > DSS_GRAINS_MAX) {
		*error = "Grain: a power of two of sectors, 1..8, at most 256 in a chunk";
		return -EINVAL;
	}
	if (d->low_parts > d->high_parts) {
		*error = "The low watermark is above the high one";
		return -EINVAL;
	}
	d->chunk_shift = ilog2(d->chunk_sectors);
	d->grain_shift = ilog2(d->grain_sectors);
	d->grains = d->chunk_sectors >> d->grain_shift;
	d->span_shift = ilog2(dss_span_sectors(d)) - d->chunk_shift;
	return 0;
}

/**
 * dss_parse_table() - take the arguments of the constructor
 * @error: where to put what is wrong
 *
 * Return: 0 or -EINVAL; the caller lets go of devices that are open.
 */
int dss_parse_table(struct dss *d, unsigned int argc, char **argv,
		    char **error)
{
	struct dm_arg_set as = { .argc = argc, .argv = argv };
	int result = dss_parse_devices(d, &as, error);

	result = result ?: dss_parse_chunk(d, &as, error);
	result = result ?: dss_parse_features(d, &as, error);
	return result ?: dss_check_sizes(d, error);
}
