/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The floor of the copies between the devices: fills bring bytes to the SSD,
 * the cleaner takes them to the HDD.
 */
#ifndef DSS_COPY_H
#define DSS_COPY_H

#include "dss_table.h"

/* ---- dss_move.c. Context: any; waits for memory only if @gfp may ---- */
struct dss_move *dss_move_alloc(struct dss *d, const struct dss_io *like,
				gfp_t gfp);
void dss_move_aim(struct dss_move *move, bool ssd, blk_opf_t opf,
		  bio_end_io_t *end);
struct bio *dss_row_bio(struct dss_move *first, bool ssd, blk_opf_t opf,
			bio_end_io_t *end);
void dss_row_submit(struct dss_move *first, bool ssd, blk_opf_t opf,
		    bio_end_io_t *end);
struct dss_move *dss_row_end(struct bio *bio);
void dss_move_free(struct dss_move *move);

/* ---- dss_keep.c. Context: worker ---- */
void dss_keep_read(struct dss_move *first);
void dss_keep_row(struct dss_move *move);
void dss_keep_done(struct dss_move *move);

/* ---- dss_after.c. Context: worker ---- */
void dss_after(struct dss_move *first);

/* ---- dss_fill.c. Context: map or worker; never waits for memory ---- */
int dss_fill(struct dss_io *user);
void dss_fill_hold(struct dss_io *fill)
	__must_hold(&fill->d->lock);
void dss_fill_give(struct dss_io *fill, struct dss_io *user);

/* ---- dss_sweep.c. Context: the cleaner's worker ---- */
struct dss_sweep *dss_sweep_create(struct dss *d);	/* control */
void dss_sweep_renew(struct dss_sweep *sweep);
bool dss_sweep_next(struct dss_sweep *sweep, bool fresh, u64 *oblock);

/* The HDD's other users decide how much of it the cleaner takes. */
enum dss_clean {
	DSS_CLEAN_IDLE,		/* none: takes much, and flushes nothing */
	DSS_CLEAN_WRITES,	/* not readers: some, and one flush */
	DSS_CLEAN_READS,	/* readers: a row at a time */
};

struct dss_batch {
	struct dss *d;
	dss_slot_t slots[DSS_BATCH_SLOTS];
	u64 oblocks[DSS_BATCH_SLOTS];
	u32 order[DSS_BATCH_SLOTS];
	struct dss_move *moves[DSS_BATCH_SLOTS];
	u32 nr_slots;
	u32 nr_rows;	/* on the HDD; 0: nobody counted */
	u32 nr_moves;
	unsigned int nr_pages;
	atomic_t pending;
	struct completion done;
	u32 failed_flushes;	/* before it was written */
	enum dss_clean how;
	bool ahead;		/* another one is still to be written */
	bool failed;
};

struct dss_cleaner {
	struct dss_sweep *sweep;	/* NULL: there was no stage yet */
	struct dss_batch batches[2];	/* one is written, the next is read */
	unsigned int turn;		/* to be written next */
};

/* ---- dss_pull.c. Context: the cleaner's worker ---- */
bool dss_pull_lowest(struct dss_batch *batch, u32 most, enum dss_clean how);
bool dss_pull_sweep(struct dss_batch *batch, struct dss_sweep *sweep,
		    enum dss_clean how);

/* ---- dss_batch.c. Context: the cleaner's worker ---- */
void dss_batch_init(struct dss_batch *batch, struct dss *d);	/* control */
bool dss_batch_read(struct dss_batch *batch, u32 most, enum dss_clean how,
		    struct dss_sweep *sweep);
bool dss_batch_write(struct dss_batch *batch);

/* ---- dss_clean.c ---- */
struct dss_cleaner *dss_cleaner_create(struct dss *d);	/* control */
int dss_cleaner_stage(struct dss *d);			/* control */
void dss_cleaner_destroy(struct dss_cleaner *cleaner);	/* control */
void dss_clean_work(struct work_struct *work);

#endif /* DSS_COPY_H */
