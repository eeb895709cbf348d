/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Put into a twin of dm-dss: the kernel complains of each allocation that may
 * wait for a device while one of ours stands still.
 */
#ifndef DSS_WATCHED_H
#define DSS_WATCHED_H

#include <linux/atomic.h>
#include <linux/blkdev.h>
#include <linux/gfp.h>
#include <linux/kobject.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <linux/sysfs.h>
#include <linux/vmalloc.h>

extern atomic_t dss_standing, dss_asked;

#define DSS_WATCH(gfp) do {						\
	atomic_inc(&dss_asked);						\
	WARN_ONCE(atomic_read(&dss_standing) &&				\
		  (current_gfp_context(gfp) & __GFP_IO),		\
		  "a standing device may wait for itself\n");		\
} while (0)

#undef vzalloc
#define vzalloc(n) ({ DSS_WATCH(GFP_KERNEL); vzalloc_noprof(n); })
#undef kzalloc
#define kzalloc(n, gfp) ({ DSS_WATCH(gfp); kzalloc_noprof(n, gfp); })
#undef alloc_page
#define alloc_page(gfp) ({ DSS_WATCH(gfp); alloc_pages_noprof(gfp, 0); })
#undef kvmalloc_array
#define kvmalloc_array(n, size, gfp) \
	({ DSS_WATCH(gfp); kvmalloc_array_noprof(n, size, gfp); })
#define blkdev_issue_zeroout(bdev, sector, nr, gfp, flags) \
	({ DSS_WATCH(gfp); (blkdev_issue_zeroout)(bdev, sector, nr, gfp, flags); })
#define kobject_init_and_add(kobj, type, parent, name) \
	({ DSS_WATCH(GFP_KERNEL); (kobject_init_and_add)(kobj, type, parent, name); })

#endif /* DSS_WATCHED_H */
