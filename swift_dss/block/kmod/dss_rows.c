// SPDX-License-Identifier: GPL-2.0
/*
 * The class table. One message loads it, as a whole or not at all.
 *
 * Context: control, with message_mutex held, unless a function says otherwise.
 */
#include "dss_top.h"

struct dss_rows {
	struct dss_class_spec specs[DSS_CLASSES];
	bool present[DSS_CLASSES];
};

/* "-", or names joined by "+". */
static int dss_parse_flags(char *text, u8 *flags)
{
	char *name;
	int bit;

	*flags = 0;
	if (!strcmp(text, "-"))
		return 0;
	while ((name = strsep(&text, "+"))) {
		bit = dss_parse_name(name, dss_flag_names, DSS_NR_FLAGS);
		if (bit < 0)
			return bit;
		*flags |= 1 << bit;
	}
	return 0;
}

/*
 * One row: nine fields, joined by commas; the tenth and eleventh may be
 * left out.
 */
static int dss_parse_row(const char *word, unsigned int *class_id,
			 struct dss_class_spec *spec)
{
	char *copy = kstrdup(word, GFP_KERNEL);
	char *rest = copy, *field[9], *dirty_cap, *order;
	int i, allocate, write_mode, inner = DSS_INNER_LRU, error = -EINVAL;

	if (!copy)
		return -ENOMEM;
	for (i = 0; i < 9; i++) {
		field[i] = strsep(&rest, ",");
		if (!field[i])
			goto out;
	}
	dirty_cap = strsep(&rest, ",");
	order = strsep(&rest, ",");
	if (order)
		inner = dss_parse_name(order, dss_inner_names, DSS_NR_INNER);
	memset(spec, 0, sizeof(*spec));
	spec->dirty_cap_parts = DSS_PARTS;
	allocate = dss_parse_name(field[2], dss_allocate_names,
				  DSS_NR_ALLOCATE);
	write_mode = dss_parse_name(field[3], dss_write_names,
				    DSS_NR_WRITE_MODE);
	if (rest || allocate < 0 || write_mode < 0 || inner < 0 ||
	    kstrtouint(field[0], 10, class_id) || *class_id >= DSS_CLASSES ||
	    kstrtou32(field[1], 10, &spec->rank) ||
	    kstrtou32(field[4], 10, &spec->floor_parts) ||
	    kstrtou32(field[5], 10, &spec->cap_parts) ||
	    kstrtou32(field[6], 10, &spec->weight) ||
	    kstrtou32(field[7], 10, &spec->cutoff_sectors) ||
	    dss_parse_flags(field[8], &spec->flags) ||
	    (dirty_cap && kstrtou32(dirty_cap, 10, &spec->dirty_cap_parts)))
		goto out;
	spec->allocate = allocate;
	spec->write_mode = write_mode;
	spec->inner = inner;
	error = 0;
out:
	kfree(copy);
	return error;
}

static int dss_set_rows(struct dss *d, const struct dss_rows *rows)
	__must_hold(&d->lock)
{
	unsigned int i;
	int error;

	for (i = 0; i < DSS_CLASSES; i++) {
		error = dss_core_set_class(d->core, i, rows->present[i] ?
					   &rows->specs[i] : NULL);
		if (error)
			return error;
	}
	return 0;
}

/* All of the new table, or all of the old one. */
static int dss_swap_rows(struct dss *d, const struct dss_rows *rows,
			 struct dss_rows *old)
	__must_hold(&d->lock)
{
	unsigned int i;
	int error;

	for (i = 0; i < DSS_CLASSES; i++) {
		old->present[i] = dss_core_has_class(d->core, i);
		dss_core_get_class(d->core, i, &old->specs[i]);
	}
	error = dss_set_rows(d, rows);
	if (error)
		dss_set_rows(d, old);
	return error;
}

/* Classes over a cap that shrank give their surplus. */
static void dss_reclaim(struct dss *d)
	__must_hold(&d->lock)
{
	dss_oblock_t oblock;
	dss_slot_t slot;

	while ((slot = dss_core_reclaim(d->core)) != DSS_NO_SLOT) {
		dss_core_slot_state(d->core, slot, &oblock, NULL);
		if (dss_in_flight(d, dss_from_oblock(oblock)))
			break;
		dss_evict(d, slot, DSS_EVICT_CAP);
	}
}

/* classes <row>...: the whole table; class <row>: one row of it. */
int dss_message_classes(struct dss *d, unsigned int argc, char **argv,
			       bool all)
{
	struct dss_rows *rows = kcalloc(2, sizeof(*rows), GFP_KERNEL);
	struct dss_class_spec spec;
	unsigned int i, class_id;
	int error = 0;

	if (!rows)
		return -ENOMEM;
	spin_lock_irq(&d->lock);
	for (i = 0; i < DSS_CLASSES && !all; i++) {
		rows->present[i] = dss_core_has_class(d->core, i);
		dss_core_get_class(d->core, i, &rows->specs[i]);
	}
	spin_unlock_irq(&d->lock);
	for (i = 0; i < argc && !error; i++) {
		error = dss_parse_row(argv[i], &class_id, &spec);
		if (error || (all && rows->present[class_id])) {
			DMERR("row %u of the class table: \"%s\"", i,
			      argv[i]);
			error = error ?: -EINVAL;
			break;
		}
		rows->present[class_id] = true;
		rows->specs[class_id] = spec;
	}
	if (!error) {
		spin_lock_irq(&d->lock);
		error = dss_swap_rows(d, rows, rows + 1);
		if (!error)
			dss_reclaim(d);
		spin_unlock_irq(&d->lock);
		if (error)
			DMERR("class table: a field is out of range, or flags exclude one another");
	}
	kfree(rows);
	return error;
}

int dss_tell_classes(struct dss *d, char *result, unsigned int maxlen)
	__must_hold(&d->lock)
{
	struct dss_class_spec spec;
	unsigned int i, bit, sz = 0;

	for (i = 0; i < DSS_CLASSES; i++) {
		const char *sep = "";

		if (!dss_core_has_class(d->core, i))
			continue;
		dss_core_get_class(d->core, i, &spec);
		DMEMIT("%u,%u,%s,%s,%u,%u,%u,%u,", i, spec.rank,
		       dss_allocate_names[spec.allocate],
		       dss_write_names[spec.write_mode], spec.floor_parts,
		       spec.cap_parts, spec.weight, spec.cutoff_sectors);
		for (bit = 0; bit < DSS_NR_FLAGS; bit++) {
			if (!(spec.flags & 1 << bit))
				continue;
			DMEMIT("%s%s", sep, dss_flag_names[bit]);
			sep = "+";
		}
		DMEMIT("%s,%u", spec.flags ? "" : "-", spec.dirty_cap_parts);
		if (spec.inner != DSS_INNER_LRU)
			DMEMIT(",%s", dss_inner_names[spec.inner]);
		DMEMIT("\n");
	}
	return 1;
}
