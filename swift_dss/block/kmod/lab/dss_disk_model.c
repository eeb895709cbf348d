// SPDX-License-Identifier: GPL-2.0
/*
 * Common to both kinds of disk: a queue with so many places, and requests that
 * are done in the order of their times.
 */

#include "dss_disk.h"

void dss_disk_begin(struct dss_disk_model *model,
		    const struct dss_disk_model_type *type,
		    const struct dss_disk_parameters *p, sector_t sectors)
{
	model->type = type;
	model->p = *p;
	model->sectors = sectors;
	INIT_LIST_HEAD(&model->waiting);
	model->done = RB_ROOT;
}

void dss_disk_wait(struct dss_disk_model *model,
		   struct dss_disk_request *request)
{
	if (request->flush)
		model->counters.flushes++;
	else if (request->write)
		model->counters.writes++;
	else
		model->counters.reads++;
	list_add_tail(&request->list, &model->waiting);
}

void dss_disk_done(struct dss_disk_model *model,
		   struct dss_disk_request *request, u64 at)
{
	struct rb_node **link = &model->done.rb_node, *parent = NULL;

	request->done_ns = at;
	while (*link) {
		struct dss_disk_request *other;

		parent = *link;
		other = rb_entry(parent, struct dss_disk_request, node);
		link = at < other->done_ns ||
			(at == other->done_ns &&
			 request->number < other->number) ?
			&parent->rb_left : &parent->rb_right;
	}
	rb_link_node(&request->node, parent, link);
	rb_insert_color(&request->node, &model->done);
}

static struct dss_disk_request *first_done(const struct dss_disk_model *model)
{
	return rb_entry_safe(rb_first(&model->done), struct dss_disk_request,
			     node);
}

u64 dss_disk_first_done_ns(const struct dss_disk_model *model)
{
	const struct dss_disk_request *request = first_done(model);

	return request ? request->done_ns : DSS_DISK_NEVER;
}

struct dss_disk_request *
dss_disk_first_inside(const struct dss_disk_model *model, u64 *at)
{
	struct rb_node *node;

	for (node = rb_first(&model->done); node; node = rb_next(node)) {
		struct dss_disk_request *request =
			rb_entry(node, struct dss_disk_request, node);

		if (request->left)
			continue;
		if (request->done_ns > *at)
			return NULL;
		*at = request->done_ns;
		return request;
	}
	return NULL;
}

void dss_disk_leave(struct dss_disk_model *model,
		    struct dss_disk_request *request)
{
	request->left = true;
	model->inside--;
}

struct dss_disk_request *dss_disk_take(struct dss_disk_model *model, u64 now)
{
	struct dss_disk_request *request = first_done(model);

	if (!request || request->done_ns > now)
		return NULL;
	rb_erase(&request->node, &model->done);
	return request;
}
