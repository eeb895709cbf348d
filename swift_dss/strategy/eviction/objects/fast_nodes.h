/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The objects of fast.c: nodes in one array, found by key through tables, and
 * linked in lists. Node 0 is none.
 */
#ifndef FAST_NODES_H
#define FAST_NODES_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define NONE 0u
#define FIRST_NODES 1024u
#define FIRST_SLOTS 2048u

/* Where the object of a node is. */
enum place { PLACE_ORDER, PLACE_MAIN, PLACE_HELD };

struct node {
	int64_t key;
	int64_t size;
	uint32_t older, younger;
	/* The access that brought it in. */
	uint32_t came;
	/* GDSF: accesses; S3-FIFO: hits; SIEVE: the mark. */
	uint32_t uses;
	uint8_t class_id, place;
};

/* GDSF's side of a node. */
struct rank {
	double priority, cost;
	uint64_t used_at;
	/* The turn of its entry in the heap; 0: it has none. */
	uint64_t entered_at;
};

struct pool {
	struct node *nodes;
	/* NULL: no order is GDSF. */
	struct rank *ranks;
	uint32_t size, made, free;
};

static inline int pool_grow(struct pool *pool)
{
	uint32_t size = pool->size ? 2 * pool->size : FIRST_NODES;
	struct node *nodes;
	struct rank *ranks;

	if (pool->size > UINT32_MAX / 4)
		return -1;
	nodes = realloc(pool->nodes, size * sizeof(*nodes));
	if (!nodes)
		return -1;
	pool->nodes = nodes;
	if (pool->ranks) {
		ranks = realloc(pool->ranks, size * sizeof(*ranks));
		if (!ranks)
			return -1;
		pool->ranks = ranks;
	}
	pool->size = size;
	return 0;
}

/* NONE: there is no memory. */
static inline uint32_t pool_take(struct pool *pool)
{
	uint32_t at = pool->free;

	if (at) {
		pool->free = pool->nodes[at].younger;
		return at;
	}
	if (pool->made >= pool->size && pool_grow(pool))
		return NONE;
	return pool->made++;
}

static inline void pool_give(struct pool *pool, uint32_t at)
{
	pool->nodes[at].younger = pool->free;
	pool->free = at;
	if (pool->ranks)
		pool->ranks[at].entered_at = 0;
}

/* -- lists in order of arrival ------------------------------------------ */

struct list {
	uint32_t oldest, youngest, count;
};

static inline void list_push(struct pool *pool, struct list *list,
			     uint32_t at)
{
	struct node *node = &pool->nodes[at];

	node->older = list->youngest;
	node->younger = NONE;
	if (list->youngest)
		pool->nodes[list->youngest].younger = at;
	else
		list->oldest = at;
	list->youngest = at;
	list->count++;
}

static inline void list_drop(struct pool *pool, struct list *list,
			     uint32_t at)
{
	struct node *node = &pool->nodes[at];

	if (node->older)
		pool->nodes[node->older].younger = node->younger;
	else
		list->oldest = node->younger;
	if (node->younger)
		pool->nodes[node->younger].older = node->older;
	else
		list->youngest = node->older;
	list->count--;
}

/* -- tables by key ------------------------------------------------------- */

/* A slot has the upper half of the key's hash, and its node. */
struct table {
	uint64_t *slots;
	uint32_t mask, count;
};

static inline uint64_t hash_of(int64_t key)
{
	uint64_t hash = (uint64_t)key * 0x9E3779B97F4A7C15ull;

	return hash ^ (hash >> 32);
}

static inline int is_slot_of(const struct pool *pool, uint64_t slot,
			     uint64_t hash, int64_t key)
{
	return slot >> 32 == hash >> 32 &&
	       pool->nodes[(uint32_t)slot].key == key;
}

static inline uint32_t table_get(const struct table *table,
				 const struct pool *pool, int64_t key)
{
	uint64_t hash = hash_of(key);
	uint32_t at = (uint32_t)hash & table->mask;

	if (!table->slots)
		return NONE;
	while (table->slots[at]) {
		if (is_slot_of(pool, table->slots[at], hash, key))
			return (uint32_t)table->slots[at];
		at = (at + 1) & table->mask;
	}
	return NONE;
}

static inline void table_place(struct table *table, uint64_t hash,
			       uint32_t node)
{
	uint32_t at = (uint32_t)hash & table->mask;

	while (table->slots[at])
		at = (at + 1) & table->mask;
	table->slots[at] = (hash & 0xFFFFFFFF00000000ull) | node;
}

static inline int table_grow(struct table *table, const struct pool *pool)
{
	struct table larger = { NULL, 0, table->count };
	uint64_t size = table->slots ? 2 * ((uint64_t)table->mask + 1)
				     : FIRST_SLOTS;
	uint64_t i;

	if (size > 1ull << 32)
		return -1;
	larger.slots = calloc(size, sizeof(*larger.slots));
	if (!larger.slots)
		return -1;
	larger.mask = (uint32_t)(size - 1);
	for (i = 0; table->slots && i <= table->mask; i++) {
		uint32_t node = (uint32_t)table->slots[i];

		if (node)
			table_place(&larger, hash_of(pool->nodes[node].key),
				    node);
	}
	free(table->slots);
	*table = larger;
	return 0;
}

/* The key of the node MUST NOT be there. */
static inline int table_put(struct table *table, const struct pool *pool,
			    uint32_t node)
{
	if ((!table->slots || table->count > table->mask / 2) &&
	    table_grow(table, pool))
		return -1;
	table_place(table, hash_of(pool->nodes[node].key), node);
	table->count++;
	return 0;
}

/* The key MUST be there. Those behind it move up, so no slot is a grave. */
static inline void table_drop(struct table *table, const struct pool *pool,
			      int64_t key)
{
	uint64_t hash = hash_of(key);
	uint32_t hole = (uint32_t)hash & table->mask, at;

	while (!is_slot_of(pool, table->slots[hole], hash, key))
		hole = (hole + 1) & table->mask;
	for (at = (hole + 1) & table->mask; table->slots[at];
	     at = (at + 1) & table->mask) {
		uint32_t node = (uint32_t)table->slots[at];
		uint32_t home = (uint32_t)hash_of(pool->nodes[node].key) &
				table->mask;

		if (((at - home) & table->mask) < ((at - hole) & table->mask))
			continue;
		table->slots[hole] = table->slots[at];
		hole = at;
	}
	table->slots[hole] = 0;
	table->count--;
}

#endif
