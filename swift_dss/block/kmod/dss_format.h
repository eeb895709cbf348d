/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What dm-dss keeps on the SSD. All numbers are little endian; sectors have
 * 512 bytes. doc/source/dm-dss.rst tells it field by field.
 *
 *   sector 0, 8     two copies of the superblock; the higher seq counts
 *   segment         table: for each region two blocks of 4 KiB, A and B
 *                   data: the slots, aligned to DSS_DATA_ALIGN sectors
 *   segment ...     one more for each time the SSD grew
 *
 * A region is the slots whose records share a table block. A region is
 * written to the copy that is not current, and only a whole, checked copy
 * with the highest seq is read back: no block that counts is ever written
 * over.
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
#define DSS_VERSION		1

/* dss_super.flags */
#define DSS_SUPER_CLEAN		(1U << 0)	/* table_sum holds */
#define DSS_SUPER_FAILED	(1U << 1)	/* the SSD was given up */

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
	__u8 present;
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
 * Followed by a bitmap of valid and one of dirty grains, each of
 * (grains + 7) / 8 bytes, padded with zeroes to record_bytes.
 */
struct dss_record {
	__le64 oblock;		/* DSS_NO_OBLOCK: the slot is free */
	__le32 recency;		/* order of use when it was written last */
	__u8 class_id;
	__u8 flags;		/* 0 */
	__le16 reserved;
	__u8 bits[];
} __packed;

#endif /* DSS_FORMAT_H */
