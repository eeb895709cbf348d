/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What differs between the kernels that the model is built for.  Nothing
 * else of the module looks at LINUX_VERSION_CODE.
 */
#ifndef DSS_DISK_COMPAT_H
#define DSS_DISK_COMPAT_H

#include <linux/blkdev.h>
#include <linux/hrtimer.h>
#include <linux/version.h>

static inline void
dss_disk_timer_setup(struct hrtimer *timer,
		     enum hrtimer_restart (*tick)(struct hrtimer *))
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 13, 0)
	hrtimer_setup(timer, tick, CLOCK_MONOTONIC, HRTIMER_MODE_ABS);
#else
	hrtimer_init(timer, CLOCK_MONOTONIC, HRTIMER_MODE_ABS);
	timer->function = tick;
#endif
}

/* Before 6.11 a stacked device is what the one below it is. */
static inline void dss_disk_set_rotational(struct queue_limits *limits,
					   bool rotational)
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 11, 0)
	if (rotational)
		limits->features |= BLK_FEAT_ROTATIONAL;
	else
		limits->features &= ~BLK_FEAT_ROTATIONAL;
#endif
}

#endif /* DSS_DISK_COMPAT_H */
