// SPDX-License-Identifier: GPL-2.0
/*
 * The class of a request, and the I/O priority that carries it.
 *
 * Context: any.
 */
#include "dss_ground.h"

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
unsigned int dss_class_of(const struct dss *d, const struct bio *bio)
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
