/* SPDX-License-Identifier: GPL-2.0 */
/*
 * dm-dss's format on the SSD. All numbers are little endian; sectors have 512
 * bytes. doc/source/reference/dm-dss.rst describes it field by field.
 *
 *   sector 0, 8     two copies of the superblock; the higher seq counts
 *   segment         table: for each region two blocks of 4 KiB, A and B
 *                   data: the slots, aligned to DSS_DATA_ALIGN sectors
 *   segment ...     one more for each time the SSD grew
 *
 * A region is the slots whose records share a table block. A region is
 * written to the copy that is not current, and only a whole, checked copy
 * with the highest seq is read back: no block that counts is ever written
 * over. A region that has not changed for a while is written once more, so
 * that its copies are twins: the same but for seq and recency, and one of
 * them can be lost. The superblock says how far that is true.
 */
#ifndef DSS_FORMAT_H
#define DSS_FORMAT_H

#include <linux/types.h>

#define DSS_BLOCK_BYTES		4096
#define DSS_BLOCK_SECTORS	8
#define DSS_SUPER_SECTORS	16	/* both copies */
#define DSS_DATA_ALIGN		2048	/* sectors; 1 MiB */
#define DSS_SEGMENTS		16

#define DSS_SUPER_MAGIC		0x316b6c6273736444ULL	/* "Ddssblk1" */
#define DSS_TABLE_MAGIC		0x62545344U		/* "DSTb" */
#define DSS_VERSION		2
#define DSS_VERSION_MIN		1	/* is read, and written as 2 */

/* dss_super.flags */
#define DSS_SUPER_CLEAN		(1U << 0)	/* table_sum holds */
#define DSS_SUPER_FAILED	(1U << 1)	/* the SSD was given up */
#define DSS_SUPER_ORIGIN_SUM	(1U << 2)	/* origin_sum holds, if clean */

/* The parts of origin_sum, in this order; see dss_origin_sum(). */
#define DSS_SAMPLE_FIRST	16	/* blocks at the beginning */
#define DSS_SAMPLE_SPREAD	16	/* one in each further 17th */

struct dss_disk_segment {
	__le64 table_sector;
	__le64 data_sector;
	__le32 first_slot;
	__le32 nr_slots;
	__le32 first_region;
	__le32 nr_regions;
} __packed;

/* A row of the class table, as it was loaded last. */
struct dss_disk_class {
	__le32 rank;
	__le32 floor_parts;
	__le32 cap_parts;
	__le32 weight;
	__le32 cutoff_sectors;
	__u8 allocate;
	__u8 write_mode;
	__u8 flags;
	__u8 present;		/* 1, and enum dss_inner above that bit; 0: none */
} __packed;

struct dss_super {
	__le32 csum;		/* CRC32C of all that follows, 4092 bytes */
	__le32 version;
	__le64 magic;
	__u8 uuid[16];
	__le64 generation;	/* random; that of every table block */
	__le64 seq;		/* of this superblock */
	__le64 commit_seq;	/* of the last table block when it was clean */
	__le32 flags;
	__le32 table_sum;	/* of the seqs of all regions, if clean */
	__le32 chunk_sectors;
	__le32 grain_sectors;
	__le32 record_bytes;
	__le32 nr_segments;
	__le64 origin_sectors;
	struct dss_disk_segment segments[DSS_SEGMENTS];
	__u8 meta_class;	/* 255: none */
	__u8 strategy;		/* enum dss_mode */
	__u8 mode;		/* enum dss_global_mode */
	__u8 reserved[5];
	struct dss_disk_class classes[32];
	/* From version 2 on: */
	__le64 twin_seq;	/* regions up to this one have twins */
	__u8 origin_id[16];	/* as the constructor said; zeroes: nothing */
	__le32 origin_sum;	/* CRC32C of parts of it at the clean stop */
	__le32 no_dirty_parts[32]; /* by class: 65536 - dirty_cap_parts */
} __packed;

struct dss_table_head {
	__le32 csum;		/* CRC32C of all that follows, 4092 bytes */
	__le32 magic;
	__le64 generation;
	__le64 seq;		/* of the commit that wrote it */
	__le32 region;
	__le16 nr_records;
	__le16 record_bytes;
} __packed;

#define DSS_NO_OBLOCK		(~0ULL)

/*
 * A write that a power cut ends leaves the first sector of a block as it was
 * or as it is to be: so the head of a block that is not whole can be believed
 * if head_check is right.  Version 1 has zeroes there.
 *
 * Followed by a bitmap of valid and one of dirty grains, each of
 * (grains + 7) / 8 bytes, padded with zeroes to record_bytes.
 */
struct dss_record {
	__le64 oblock;		/* DSS_NO_OBLOCK: the slot is free */
	__le32 recency;		/* order of use when it was written last */
	__u8 class_id;
	__u8 flags;		/* 0 */
	__le16 head_check;	/* in a block's first record: CRC32C of the */
				/* head but for csum, its lower half; else 0 */
	__u8 bits[];
} __packed;

#endif /* DSS_FORMAT_H */
