// SPDX-License-Identifier: GPL-2.0 OR Apache-2.0
/*
 * Sequential runs of requests, in the decision core.
 */
#include "dss_core_impl.h"

/* How long ago it was used; the difference holds over a wrap. */
static u32 staleness(const struct dss_core *core,
		     const struct dss_stream *stream)
{
	return stream->sectors ? core->stream_clock - stream->used_at :
		0xffffffffU;
}

static int stream_at(const struct dss_core *core, u64 sector)
{
	int i;

	for (i = 0; i < NR_STREAMS; i++)
		if (core->streams[i].sectors &&
		    core->streams[i].next_sector == sector)
			return i;
	return -1;
}

/* The stream that goes on at @sector, or the stalest one, restarted. */
static struct dss_stream *find_stream(struct dss_core *core, u64 sector)
{
	struct dss_stream *stale = &core->streams[0];
	int i = stream_at(core, sector);

	if (i >= 0)
		return &core->streams[i];
	for (i = 1; i < NR_STREAMS; i++)
		if (staleness(core, &core->streams[i]) >
		    staleness(core, stale))
			stale = &core->streams[i];
	stale->sectors = 0;
	return stale;
}

/* How long a stream is with @sectors more. */
static u32 longer(const struct dss_stream *stream, u32 sectors)
{
	return stream->sectors + sectors < sectors ? 0xffffffffU :
		stream->sectors + sectors;
}

bool dss_core_would_run(const struct dss_core *core, unsigned int class_id,
			u64 sector, u32 sectors)
{
	u32 cutoff;
	int i;

	DSS_FORBID(class_id >= DSS_CLASSES);
	cutoff = spec_of(core, class_id)->cutoff_sectors;
	if (!cutoff || !sectors)
		return false;
	i = stream_at(core, sector);
	return (i < 0 ? sectors : longer(&core->streams[i], sectors)) >=
		cutoff;
}

bool dss_core_run(struct dss_core *core, unsigned int class_id, u64 sector,
		  u32 sectors)
{
	struct dss_stream *stream;
	u32 cutoff;

	DSS_FORBID(class_id >= DSS_CLASSES);
	if (!core->cutoffs || !sectors)
		return false;
	core->stream_clock++;
	stream = find_stream(core, sector);
	stream->next_sector = sector + sectors;
	stream->sectors = longer(stream, sectors);
	stream->used_at = core->stream_clock;
	cutoff = spec_of(core, class_id)->cutoff_sectors;
	return cutoff && stream->sectors >= cutoff;
}
