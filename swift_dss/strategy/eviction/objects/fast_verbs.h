/* SPDX-License-Identifier: Apache-2.0 */
/* The verbs of an order, whichever it is; class Order has their contracts. */
#ifndef FAST_VERBS_H
#define FAST_VERBS_H

#include "fast_orders.h"

static inline void order_touch(struct order *order, struct stock *stock,
			       uint32_t at)
{
	struct node *node = &stock->pool.nodes[at];
	struct rank *rank;

	switch (order->kind) {
	case LRU:
		if (order->queue.youngest != at) {
			list_drop(&stock->pool, &order->queue, at);
			list_push(&stock->pool, &order->queue, at);
		}
		break;
	case GDSF:
		rank = &stock->pool.ranks[at];
		rank->used_at = ++stock->turn;
		node->uses++;
		rank->priority = order->age + node->uses * rank->cost
						/ (double)node->size;
		break;
	default:
		if (node->uses < UINT32_MAX)
			node->uses++;
	}
}

/* Whether it may come in. */
static inline int order_miss(struct order *order, struct stock *stock,
			     int64_t key, int64_t size)
{
	return order->kind != S3FIFO ||
	       s3fifo_miss(order, &stock->pool, key, size);
}

static inline void order_insert(struct order *order, struct stock *stock,
				uint32_t at, double cost)
{
	struct node *node = &stock->pool.nodes[at];
	struct rank *rank;

	order->used += node->size;
	node->uses = 0;
	node->place = PLACE_ORDER;
	if (order->kind == S3FIFO) {
		s3fifo_insert(order, &stock->pool, at);
	} else if (order->kind == GDSF) {
		rank = &stock->pool.ranks[at];
		rank->cost = cost;
		rank->priority = order->age + cost / (double)node->size;
		rank->used_at = rank->entered_at = ++stock->turn;
		node->uses = 1;
		order->count++;
		if (heap_push(order, (struct entry){
				rank->priority, rank->used_at, at }))
			stock->has_failed = 1;
	} else {
		list_push(&stock->pool, &order->queue, at);
	}
}

/* The node that is no candidate now; the order MUST have one. */
static inline uint32_t order_evict(struct order *order, struct stock *stock)
{
	uint32_t at;

	switch (order->kind) {
	case SIEVE:
		at = sieve_evict(order, &stock->pool);
		break;
	case S3FIFO:
		at = s3fifo_evict(order, stock);
		break;
	case GDSF:
		at = gdsf_evict(order, stock);
		break;
	default:
		at = order->queue.oldest;
		list_drop(&stock->pool, &order->queue, at);
	}
	order->used -= stock->pool.nodes[at].size;
	return at;
}

static void order_remove(struct order *order, struct stock *stock,
			 uint32_t at)
{
	struct pool *pool = &stock->pool;
	struct node *node = &pool->nodes[at];

	order->used -= node->size;
	switch (order->kind) {
	case SIEVE:
		sieve_drop(order, pool, at);
		break;
	case S3FIFO:
		ghost_of(order, pool, node->key);
		if (node->place == PLACE_MAIN) {
			list_drop(pool, &order->main, at);
		} else {
			list_drop(pool, &order->queue, at);
			order->small_used -= node->size;
		}
		break;
	case GDSF:
		pool->ranks[at].entered_at = 0;
		order->count--;
		heap_clean(order, pool);
		break;
	default:
		list_drop(pool, &order->queue, at);
	}
}

static inline void order_free(struct order *order)
{
	free(order->ghost_of.slots);
	free(order->heap);
}

#endif
