/* SPDX-License-Identifier: Apache-2.0 */
/*
 * LRU, SIEVE, S3-FIFO and GDSF in C. Each decides as the file of its name in
 * Python does, which says what it is and where it is from.
 */
#ifndef FAST_ORDERS_H
#define FAST_ORDERS_H

#include "fast_nodes.h"

#define UNIT_COST 1.0e6
#define SMALL_SHARE 0.1
#define GHOST_SHARE 0.9
#define PROMOTE_HITS 2u
#define MAIN_HITS_MAX 3u
#define STALE_MIN 1000u

enum kind { LRU, SIEVE, S3FIFO, GDSF, KINDS };

/* An object in GDSF's heap, as it was when it came there. */
struct entry {
	double priority;
	uint64_t turn;
	uint32_t node;
};

/* Verbs of struct order; see class Order. */
struct order {
	enum kind kind;
	int64_t room, used;
	/* All; S3-FIFO: the small queue. */
	struct list queue;
	uint32_t hand;
	/* S3-FIFO */
	struct list main, ghosts;
	struct table ghost_of;
	int64_t small_used, ghost_used, back;
	int has_evicted, has_back;
	/* GDSF */
	struct entry *heap;
	uint32_t entries, entries_max, count;
	double age;
};

/* Shared by all orders of a cache. */
struct stock {
	struct pool pool;
	/* Of GDSF, over all orders: no two entries of a heap are alike. */
	uint64_t turn;
	int has_failed;
};

/* -- GDSF's heap ---------------------------------------------------------- */

static inline int is_before(const struct entry *entry,
			    const struct entry *other)
{
	return entry->priority < other->priority ||
	       (entry->priority == other->priority &&
		entry->turn < other->turn);
}

static void heap_sink(struct order *order, uint32_t at)
{
	struct entry moved = order->heap[at];

	for (;;) {
		uint32_t child = 2 * at + 1;

		if (child >= order->entries)
			break;
		if (child + 1 < order->entries &&
		    is_before(&order->heap[child + 1], &order->heap[child]))
			child++;
		if (!is_before(&order->heap[child], &moved))
			break;
		order->heap[at] = order->heap[child];
		at = child;
	}
	order->heap[at] = moved;
}

static int heap_push(struct order *order, struct entry moved)
{
	uint32_t at = order->entries;

	if (order->entries == order->entries_max) {
		uint32_t most = at ? 2 * at : FIRST_NODES;
		struct entry *heap = at > UINT32_MAX / 4 ? NULL : realloc(
			order->heap, most * sizeof(*heap));

		if (!heap)
			return -1;
		order->heap = heap;
		order->entries_max = most;
	}
	order->entries++;
	for (; at && is_before(&moved, &order->heap[(at - 1) / 2]);
	     at = (at - 1) / 2)
		order->heap[at] = order->heap[(at - 1) / 2];
	order->heap[at] = moved;
	return 0;
}

static void heap_pop(struct order *order)
{
	order->heap[0] = order->heap[--order->entries];
	if (order->entries)
		heap_sink(order, 0);
}

static inline int is_stale(const struct pool *pool, const struct entry *entry)
{
	return pool->ranks[entry->node].entered_at != entry->turn;
}

/* Entries of objects that were removed go, when they are the most. */
static void heap_clean(struct order *order, const struct pool *pool)
{
	uint32_t i, kept = 0;

	if (order->entries <= 2 * order->count + STALE_MIN)
		return;
	for (i = 0; i < order->entries; i++)
		if (!is_stale(pool, &order->heap[i]))
			order->heap[kept++] = order->heap[i];
	order->entries = kept;
	for (i = kept / 2; i-- > 0;)
		heap_sink(order, i);
}

static uint32_t gdsf_evict(struct order *order, struct stock *stock)
{
	for (;;) {
		struct entry *top = &order->heap[0];
		struct rank *rank = &stock->pool.ranks[top->node];
		uint32_t victim = top->node;

		if (is_stale(&stock->pool, top)) {
			heap_pop(order);
		} else if (rank->used_at > top->turn) {
			top->priority = rank->priority;
			top->turn = rank->entered_at = rank->used_at;
			heap_sink(order, 0);
		} else {
			order->age = rank->priority;
			rank->entered_at = 0;
			heap_pop(order);
			order->count--;
			return victim;
		}
	}
}

/* -- SIEVE ---------------------------------------------------------------- */

static void sieve_drop(struct order *order, struct pool *pool, uint32_t at)
{
	if (at == order->hand)
		order->hand = pool->nodes[at].younger;
	list_drop(pool, &order->queue, at);
}

static uint32_t sieve_evict(struct order *order, struct pool *pool)
{
	uint32_t at = order->hand ? order->hand : order->queue.oldest;

	while (pool->nodes[at].uses) {
		pool->nodes[at].uses = 0;
		at = pool->nodes[at].younger ? pool->nodes[at].younger
					     : order->queue.oldest;
	}
	order->hand = at;
	sieve_drop(order, pool, at);
	return at;
}

/* -- S3-FIFO -------------------------------------------------------------- */

/* Bytes of the ghost that is no more; 0: there was none. */
static int64_t ghost_forget(struct order *order, struct pool *pool,
			    uint32_t ghost)
{
	int64_t size;

	if (!ghost)
		return 0;
	size = pool->nodes[ghost].size;
	order->ghost_used -= size;
	table_drop(&order->ghost_of, pool, pool->nodes[ghost].key);
	list_drop(pool, &order->ghosts, ghost);
	pool_give(pool, ghost);
	return size;
}

static int64_t ghost_of(struct order *order, struct pool *pool, int64_t key)
{
	return ghost_forget(order, pool,
			    table_get(&order->ghost_of, pool, key));
}

static void ghost_remember(struct order *order, struct stock *stock,
			   int64_t key, int64_t size)
{
	struct pool *pool = &stock->pool;
	int64_t limit = (int64_t)((double)(order->room ? order->room
				  : order->used) * GHOST_SHARE);
	uint32_t ghost;

	ghost_of(order, pool, key);
	if (size > limit)
		return;
	while (order->ghost_used + size > limit)
		ghost_forget(order, pool, order->ghosts.oldest);
	ghost = pool_take(pool);
	if (!ghost) {
		stock->has_failed = 1;
		return;
	}
	pool->nodes[ghost].key = key;
	pool->nodes[ghost].size = size;
	list_push(pool, &order->ghosts, ghost);
	if (table_put(&order->ghost_of, pool, ghost))
		stock->has_failed = 1;
	order->ghost_used += size;
}

static int main_is_over(const struct order *order)
{
	int64_t room = order->room ? order->room : order->used;

	return order->used - order->small_used >
	       room - (int64_t)((double)room * SMALL_SHARE);
}

static uint32_t main_evict(struct order *order, struct pool *pool)
{
	for (;;) {
		uint32_t at = order->main.oldest;
		struct node *node = &pool->nodes[at];

		list_drop(pool, &order->main, at);
		if (!node->uses)
			return at;
		node->uses = (node->uses < MAIN_HITS_MAX ? node->uses
			      : MAIN_HITS_MAX) - 1;
		list_push(pool, &order->main, at);
	}
}

static uint32_t s3fifo_evict(struct order *order, struct stock *stock)
{
	struct pool *pool = &stock->pool;

	order->has_evicted = 1;
	for (;;) {
		if (!order->queue.oldest || main_is_over(order))
			return main_evict(order, pool);
		while (order->queue.oldest) {
			uint32_t at = order->queue.oldest;
			struct node *node = &pool->nodes[at];

			list_drop(pool, &order->queue, at);
			order->small_used -= node->size;
			if (node->uses < PROMOTE_HITS) {
				ghost_remember(order, stock, node->key,
					       node->size);
				return at;
			}
			node->uses = 0;
			node->place = PLACE_MAIN;
			list_push(pool, &order->main, at);
		}
	}
}

static int s3fifo_miss(struct order *order, struct pool *pool, int64_t key,
		       int64_t size)
{
	int64_t small_room = (int64_t)((double)order->room * SMALL_SHARE);
	int64_t ghost = ghost_of(order, pool, key);

	order->has_back = ghost > 0;
	order->back = key;
	return !order->room || size < small_room ||
	       (size == small_room && ghost > 0);
}

static void s3fifo_insert(struct order *order, struct pool *pool,
			  uint32_t at)
{
	struct node *node = &pool->nodes[at];
	int64_t small_room = (int64_t)((double)order->room * SMALL_SHARE);

	if ((order->has_back && order->back == node->key) ||
	    (order->room && !order->has_evicted &&
	     order->small_used >= small_room)) {
		node->place = PLACE_MAIN;
		list_push(pool, &order->main, at);
	} else {
		list_push(pool, &order->queue, at);
		order->small_used += node->size;
	}
	order->has_back = 0;
}

#endif
