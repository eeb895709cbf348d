/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The top floor: the target that device-mapper sees, and what operators see
 * of it. Context: control, unless a line says otherwise.
 */
#ifndef DSS_TOP_H
#define DSS_TOP_H

#include "dss_way.h"

/* ---- dss_names.c ---- */
#define DSS_NR_FLAGS 6

extern const char *const dss_mode_names[DSS_NR_GLOBAL];
extern const char *const dss_strategy_names[DSS_NR_MODE];
extern const char *const dss_health_names[DSS_NR_HEALTH];
extern const char *const dss_allocate_names[DSS_NR_ALLOCATE];
extern const char *const dss_write_names[DSS_NR_WRITE_MODE];
extern const char *const dss_inner_names[DSS_NR_INNER];
extern const char *const dss_flag_names[DSS_NR_FLAGS];
extern const char *const dss_bypass_names[DSS_NR_BYPASS];
extern const char *const dss_evict_names[DSS_NR_EVICT];

int dss_parse_name(const char *name, const char *const *names,
		   unsigned int nr);

/* ---- dss_args.c ---- */
int dss_parse_table(struct dss *d, unsigned int argc, char **argv,
		    char **error);

/* ---- dss_claim.c: whose SSD and HDD are ---- */
int dss_claim(struct dss *d, char **error);
void dss_unclaim(struct dss *d);

/* ---- dss_rows.c ---- */
int dss_message_classes(struct dss *d, unsigned int argc, char **argv,
			bool all);
int dss_tell_classes(struct dss *d, char *result, unsigned int maxlen)
	__must_hold(&d->lock);

/* ---- dss_tell.c: lines of counters; return their length ---- */
unsigned int dss_tell_class(const struct dss *d, unsigned int class_id,
			    char *result, unsigned int maxlen)
	__must_hold(&d->lock);
unsigned int dss_tell_class_latency(const struct dss *d, unsigned int class_id,
				    char *result, unsigned int maxlen)
	__must_hold(&d->lock);
unsigned int dss_tell_device(const struct dss *d, char *result,
			     unsigned int maxlen)
	__must_hold(&d->lock);
int dss_tell_stats(struct dss *d, char *result, unsigned int maxlen)
	__must_hold(&d->lock);
int dss_tell_latency(struct dss *d, char *result, unsigned int maxlen)
	__must_hold(&d->lock);
void dss_status(struct dm_target *ti, status_type_t type,
		unsigned int status_flags, char *result, unsigned int maxlen);

/* ---- dss_message.c; takes message_mutex ---- */
int dss_message(struct dm_target *ti, unsigned int argc, char **argv,
		char *result, unsigned int maxlen);

/* ---- dss_sysfs.c ---- */
void dss_sysfs_add(struct dss *d);
void dss_sysfs_remove(struct dss *d);

#endif /* DSS_TOP_H */
