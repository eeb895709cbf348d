/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Put into a twin of dm-dss: how long each place of it held its lock, with
 * interrupts off. The parameter "held" has for each place how often it did so
 * for 0 to 9 us, for 10 to 19 us and so on; writing it begins anew.
 */
#ifndef DSS_TIMED_H
#define DSS_TIMED_H

#include <linux/ktime.h>
#include <linux/spinlock.h>

#define DSS_TIMED_STEPS 100
#define DSS_TIMED_NS 10000

struct dss_timed {
	const char *function;
	u32 times[DSS_TIMED_STEPS];
	struct dss_timed *next;
};

extern struct dss_timed *dss_timed_first, *dss_timed_now;
extern u64 dss_timed_since;

static inline void dss_timed_begin(struct dss_timed *site)
{
	if (!site->next) {
		site->next = dss_timed_first;
		dss_timed_first = site;
	}
	dss_timed_now = site;
	dss_timed_since = ktime_get_ns();
}

static inline void dss_timed_end(void)
{
	u64 held = (ktime_get_ns() - dss_timed_since) / DSS_TIMED_NS;

	dss_timed_now->times[min_t(u64, held, DSS_TIMED_STEPS - 1)]++;
}

#define DSS_TIMED() do {						\
	static struct dss_timed here = { __func__ };		\
									\
	dss_timed_begin(&here);						\
} while (0)

#define spin_lock_irq(lock) \
	do { (spin_lock_irq)(lock); DSS_TIMED(); } while (0)
#define spin_unlock_irq(lock) \
	do { dss_timed_end(); (spin_unlock_irq)(lock); } while (0)
#undef spin_lock_irqsave
#define spin_lock_irqsave(lock, irq) do {				\
	raw_spin_lock_irqsave(spinlock_check(lock), irq);		\
	DSS_TIMED();							\
} while (0)
#define spin_unlock_irqrestore(lock, irq) \
	do { dss_timed_end(); (spin_unlock_irqrestore)(lock, irq); } while (0)

#ifdef DSS_TIMED_HERE
#include <linux/moduleparam.h>
struct dss_timed dss_timed_last;
struct dss_timed *dss_timed_first = &dss_timed_last, *dss_timed_now;
u64 dss_timed_since;

static int dss_held_get(char *page, const struct kernel_param *kp)
{
	struct dss_timed *site;
	int bytes = 0, i;

	for (site = dss_timed_first; site != &dss_timed_last;
	     site = site->next) {
		bytes += scnprintf(page + bytes, PAGE_SIZE - bytes, "%s",
				   site->function);
		for (i = 0; i < DSS_TIMED_STEPS; i++)
			if (site->times[i])
				bytes += scnprintf(page + bytes,
						   PAGE_SIZE - bytes,
						   " %d:%u", i * 10,
						   site->times[i]);
		bytes += scnprintf(page + bytes, PAGE_SIZE - bytes, "\n");
	}
	return bytes;
}

static int dss_held_set(const char *text, const struct kernel_param *kp)
{
	struct dss_timed *site;

	for (site = dss_timed_first; site != &dss_timed_last;
	     site = site->next)
		memset(site->times, 0, sizeof(site->times));
	return 0;
}

static const struct kernel_param_ops dss_held_ops = {
	.set = dss_held_set,
	.get = dss_held_get,
};
module_param_cb(held, &dss_held_ops, NULL, 0644);
#endif

#endif /* DSS_TIMED_H */
