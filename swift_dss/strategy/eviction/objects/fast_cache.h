/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A cache of whole objects: the decisions of plain.py and classes.py, under
 * the class rule of rule.py, for all that a trace alone asks: accesses and
 * removals. Nothing is dirty, prefetched or asked a last time; that is for the
 * Python forms.
 */
#ifndef FAST_CACHE_H
#define FAST_CACHE_H

#include "fast_door.h"
#include "fast_verbs.h"

#define CLASSES 32
#define UNCLASSIFIED 0

/* The verbs and results of play(); a write passes the doorkeeper. */
enum { ACCESS, RENEW, REMOVE, WRITE, RENEW_WRITE, VERBS };
enum { MISS, HIT, BYPASS, NOT_ASKED };
enum { ALWAYS, ROOM, NEVER };

/* Account of rule.py, and the order of the class. */
struct part {
	int rank, class_id, allocate, pin;
	int64_t floor, cap, used, loose;
	double weight, cost_weight;
	struct order order;
};

struct cache {
	int64_t capacity, used;
	/* One order for all classes; shares of classes by weight. */
	int is_plain, is_weighted;
	/* Of a miss, in microseconds, and bytes a second after it. */
	double cost, rate;
	struct part parts[CLASSES];
	/* Lowest rank first. */
	struct part *ranked[CLASSES];
	struct door door;
	struct table where;
	struct stock stock;
};

/* Entry of rule.py. */
struct newcomer {
	struct part *own;
	int64_t size, over_cap, over;
	int claims, is_strict;
};

static double cost_of(const struct cache *self, int64_t size,
		      int class_id)
{
	if (!self->rate)
		return UNIT_COST;
	return self->parts[class_id].cost_weight *
	       (self->cost + (double)size / self->rate * 1e6);
}

static int64_t least(int64_t number, int64_t other)
{
	return number < other ? number : other;
}

static int64_t above_floor(const struct part *part)
{
	int64_t spare = least(part->loose, part->used - part->floor);

	return spare > 0 ? spare : 0;
}

static int may_give(const struct part *giver, const struct part *own)
{
	return giver->loose > 0 && (giver == own || giver->used > giver->floor);
}

static int outweighs(const struct part *giver, const struct newcomer *come)
{
	return giver == come->own ||
	       (double)(come->own->used + come->size) * giver->weight <=
	       (double)giver->used * come->own->weight;
}

static int64_t givable(const struct newcomer *come, const struct part *part)
{
	double lightest;

	if (part == come->own)
		return part->loose;
	if (come->is_strict)
		return above_floor(part);
	if (!outweighs(part, come))
		return 0;
	lightest = (double)(come->own->used + come->size) * part->weight /
		   come->own->weight;
	return least(above_floor(part),
		     (int64_t)((double)part->used - lightest) + 1);
}

static int is_enough(const struct cache *self, const struct newcomer *come)
{
	int64_t could = 0;
	int i;

	if (come->over <= come->own->loose)
		return 1;
	for (i = 0; i < CLASSES; i++) {
		const struct part *part = self->ranked[i];

		if (come->is_strict && !come->claims &&
		    part->rank > come->own->rank)
			break;
		could += givable(come, part);
		if (could >= come->over)
			return 1;
	}
	return 0;
}

static struct part *strict_giver(const struct cache *self,
				 const struct newcomer *come)
{
	int i;

	for (i = 0; i < CLASSES; i++) {
		struct part *part = self->ranked[i];

		if (come->claims && part == come->own)
			continue;
		if (part->rank > come->own->rank && !come->claims)
			return NULL;
		if (may_give(part, come->own))
			return part;
	}
	return come->claims && come->own->loose ? come->own : NULL;
}

static struct part *weighted_giver(const struct cache *self,
				   const struct newcomer *come)
{
	struct part *best = NULL;
	int i;

	for (i = 0; i < CLASSES; i++) {
		struct part *part = self->ranked[i];

		if (outweighs(part, come) && may_give(part, come->own) &&
		    (!best || (double)part->used * best->weight >
			      (double)best->used * part->weight))
			best = part;
	}
	return best;
}

static struct part *next_giver(const struct cache *self, const struct newcomer *come)
{
	if (come->over_cap > 0 && come->own->loose > 0)
		return come->own;
	if (come->over <= 0)
		return NULL;
	return come->is_strict ? strict_giver(self, come)
			       : weighted_giver(self, come);
}

static void leave(struct cache *self, uint32_t at)
{
	table_drop(&self->where, &self->stock.pool,
		   self->stock.pool.nodes[at].key);
	pool_give(&self->stock.pool, at);
}

/* All that is needed, or nothing. */
static int make_room(struct cache *self, struct part *own, int64_t size, int64_t over)
{
	struct newcomer come = {
		.own = own, .size = size, .over = over,
		.over_cap = own->used + size - own->cap,
		.claims = own->used + size <= own->floor,
	};
	struct part *giver;

	come.is_strict = come.claims || !self->is_weighted;
	if (own->allocate == ROOM || come.over_cap > own->loose ||
	    !is_enough(self, &come))
		return 0;
	while ((giver = next_giver(self, &come)) != NULL) {
		uint32_t at = order_evict(&giver->order, &self->stock);
		int64_t left = self->stock.pool.nodes[at].size;

		leave(self, at);
		giver->used -= left;
		giver->loose -= left;
		self->used -= left;
		if (giver == own)
			come.over_cap -= left;
		come.over -= left;
	}
	return 1;
}

static int make_plain_room(struct cache *self, struct order *order, int64_t over)
{
	if (over > order->used)
		return 0;
	while (over > 0) {
		uint32_t at = order_evict(order, &self->stock);
		int64_t left = self->stock.pool.nodes[at].size;

		leave(self, at);
		self->used -= left;
		over -= left;
	}
	return 1;
}

static void join(struct cache *self, uint32_t at, struct part *into, int class_id)
{
	struct node *node = &self->stock.pool.nodes[at];

	node->class_id = (uint8_t)into->class_id;
	if (into->pin) {
		node->place = PLACE_HELD;
		return;
	}
	order_insert(&into->order, &self->stock, at,
		     cost_of(self, node->size, class_id));
	into->loose += node->size;
}

static int bring_in(struct cache *self, int64_t key, int64_t size, int class_id,
		    uint32_t turn)
{
	struct part *own = &self->parts[self->is_plain ? 0 : class_id];
	int wanted = order_miss(&own->order, &self->stock, key, size);
	int64_t over = self->used + size - self->capacity;
	struct node *node;
	uint32_t at;

	if (!wanted || own->allocate == NEVER)
		return BYPASS;
	if (self->is_plain) {
		if (!make_plain_room(self, &own->order, over))
			return BYPASS;
	} else if ((over > 0 || own->used + size > own->cap) &&
		   !make_room(self, own, size, over)) {
		return BYPASS;
	}
	at = pool_take(&self->stock.pool);
	if (!at) {
		self->stock.has_failed = 1;
		return BYPASS;
	}
	node = &self->stock.pool.nodes[at];
	node->key = key;
	node->size = size;
	node->came = turn;
	if (table_put(&self->where, &self->stock.pool, at))
		self->stock.has_failed = 1;
	own->used += size;
	self->used += size;
	join(self, at, own, self->is_plain ? class_id : own->class_id);
	return MISS;
}

static void reclass(struct cache *self, uint32_t at, int class_id)
{
	struct node *node = &self->stock.pool.nodes[at];
	struct part *old = &self->parts[node->class_id];
	struct part *wanted = &self->parts[class_id];

	order_touch(&old->order, &self->stock, at);
	order_remove(&old->order, &self->stock, at);
	old->loose -= node->size;
	if (wanted->used + node->size > wanted->cap)
		wanted = old;
	old->used -= node->size;
	wanted->used += node->size;
	join(self, at, wanted, wanted->class_id);
}

static void drop(struct cache *self, int64_t key)
{
	uint32_t at = table_get(&self->where, &self->stock.pool, key);
	struct node *node = &self->stock.pool.nodes[at];
	struct part *part = &self->parts[at ? node->class_id : 0];

	if (!at) {
		/* One order forgets what it knew of those that left, too. */
		if (self->is_plain)
			ghost_of(&part->order, &self->stock.pool, key);
		return;
	}
	if (node->place != PLACE_HELD) {
		order_remove(&part->order, &self->stock, at);
		part->loose -= node->size;
	}
	part->used -= node->size;
	self->used -= node->size;
	leave(self, at);
}

static int ask(struct cache *self, int64_t key, int64_t size, int class_id,
	       int is_written, uint32_t turn, uint32_t *came)
{
	uint32_t at = table_get(&self->where, &self->stock.pool, key);
	struct node *node = &self->stock.pool.nodes[at];

	*came = turn;
	if (!at) {
		if (self->door.window && !is_written &&
		    !door_admits(&self->door, &self->stock, key, size,
				 self->capacity - self->used))
			return BYPASS;
		return bring_in(self, key, size, class_id, turn);
	}
	*came = node->came;
	if (node->place == PLACE_HELD)
		return HIT;
	if (self->is_plain || class_id == node->class_id ||
	    class_id == UNCLASSIFIED)
		order_touch(&self->parts[node->class_id].order, &self->stock,
			    at);
	else
		reclass(self, at, class_id);
	return HIT;
}

#endif
