/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The doorkeeper that lets in what was missed before: doorkeeper.py. It
 * remembers them as nodes of the cache's pool, with a key and a size.
 */
#ifndef FAST_DOOR_H
#define FAST_DOOR_H

#include "fast_orders.h"

struct door {
	/* Bytes that it remembers at most; 0: it lets all in. */
	int64_t window;
	int64_t used;
	struct list kept_out;
	struct table of;
};

static inline void door_forget(struct door *door, struct pool *pool,
			       uint32_t at)
{
	door->used -= pool->nodes[at].size;
	list_drop(pool, &door->kept_out, at);
	table_drop(&door->of, pool, pool->nodes[at].key);
	pool_give(pool, at);
}

/* Judge a miss, and remember it. */
static inline int door_admits(struct door *door, struct stock *stock,
			      int64_t key, int64_t size, int64_t room)
{
	struct pool *pool = &stock->pool;
	uint32_t at = table_get(&door->of, pool, key);

	if (at)
		door_forget(door, pool, at);
	if (at || size <= room)
		return 1;
	at = pool_take(pool);
	if (!at) {
		stock->has_failed = 1;
		return 0;
	}
	pool->nodes[at].key = key;
	pool->nodes[at].size = size;
	list_push(pool, &door->kept_out, at);
	if (table_put(&door->of, pool, at))
		stock->has_failed = 1;
	door->used += size;
	while (door->used > door->window)
		door_forget(door, pool, door->kept_out.oldest);
	return 0;
}

#endif
