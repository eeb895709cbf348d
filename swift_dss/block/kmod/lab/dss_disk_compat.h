/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The differences of the kernels that the model is built for. The names
 * DSS_HAS_... are defined by Kbuild, and nothing else of the module looks at
 * them.
 */
#ifndef DSS_DISK_COMPAT_H
#define DSS_DISK_COMPAT_H

#include <linux/blkdev.h>
#include <linux/hrtimer.h>

static inline void
dss_disk_timer_setup(struct hrtimer *timer,
		     enum hrtimer_restart (*tick)(struct hrtimer *))
{
#ifdef DSS_HAS_HRTIMER_SETUP
	hrtimer_setup(timer, tick, CLOCK_MONOTONIC, HRTIMER_MODE_ABS);
#else
	hrtimer_init(timer, CLOCK_MONOTONIC, HRTIMER_MODE_ABS);
	timer->function = tick;
#endif
}

/* Before 6.11 a stacked device inherits this from the one below it. */
static inline void dss_disk_set_rotational(struct queue_limits *limits,
					   bool rotational)
{
#ifdef DSS_HAS_ROTATIONAL_LIMIT
	if (rotational)
		limits->features |= BLK_FEAT_ROTATIONAL;
	else
		limits->features &= ~BLK_FEAT_ROTATIONAL;
#endif
}

#endif /* DSS_DISK_COMPAT_H */
