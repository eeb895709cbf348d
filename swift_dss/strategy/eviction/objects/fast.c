// SPDX-License-Identifier: Apache-2.0
/*
 * Caches of whole objects in C: swift_dss.strategy.eviction.objects.fast, for
 * replays of many requests. fast_cache.h has the decisions.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include "fast_cache.h"

typedef struct {
	PyObject_HEAD
	struct cache cache;
} Cache;

/* -- Python ---------------------------------------------------------------- */

PyDoc_STRVAR(play_doc,
"play(keys, sizes, class_ids, verbs, results, came, begin)\n--\n\n"
"Play accesses; see fast.pyi.");

enum column { KEYS, SIZES, CLASS_IDS, VERBS_OF, RESULTS, CAME, COLUMNS };

static int play_rows(struct cache *self, Py_buffer *columns, Py_ssize_t rows,
		     uint32_t begin)
{
	const int64_t *keys = columns[KEYS].buf, *sizes = columns[SIZES].buf;
	const uint8_t *class_ids = columns[CLASS_IDS].buf;
	const uint8_t *verbs = columns[VERBS_OF].buf;
	uint8_t *results = columns[RESULTS].buf;
	uint32_t *came = columns[CAME].buf;
	Py_ssize_t i;

	for (i = 0; i < rows && !self->stock.has_failed; i++) {
		uint8_t verb = columns[VERBS_OF].len ? verbs[i] : ACCESS;

		if (sizes[i] < 1 || class_ids[i] >= CLASSES || verb >= VERBS)
			return -1;
		if (verb != ACCESS && verb != WRITE)
			drop(self, keys[i]);
		came[i] = begin + (uint32_t)i;
		results[i] = verb == REMOVE ? NOT_ASKED : (uint8_t)ask(
			self, keys[i], sizes[i], class_ids[i],
			verb >= WRITE, begin + (uint32_t)i, &came[i]);
	}
	return 0;
}

static PyObject *play(Cache *self, PyObject *args)
{
	static const Py_ssize_t widths[COLUMNS] = { 8, 8, 1, 1, 1, 4 };
	Py_buffer columns[COLUMNS];
	Py_ssize_t rows;
	unsigned int begin;
	int i, is_bad = 0, is_read = 0;

	if (!PyArg_ParseTuple(args, "y*y*y*y*w*w*I", &columns[KEYS],
			      &columns[SIZES], &columns[CLASS_IDS],
			      &columns[VERBS_OF], &columns[RESULTS],
			      &columns[CAME], &begin))
		return NULL;
	rows = columns[KEYS].len / 8;
	for (i = 0; i < COLUMNS; i++)
		is_bad |= columns[i].len != rows * widths[i] &&
			  !(i == VERBS_OF && !columns[i].len);
	if (!is_bad)
		is_read = !play_rows(&self->cache, columns, rows, begin);
	for (i = 0; i < COLUMNS; i++)
		PyBuffer_Release(&columns[i]);
	if (is_bad)
		return PyErr_Format(PyExc_ValueError, "columns differ in "
				    "length");
	if (!is_read)
		return PyErr_Format(PyExc_ValueError, "a size, class id or "
				    "verb is out of bounds");
	if (self->cache.stock.has_failed)
		return PyErr_NoMemory();
	Py_RETURN_NONE;
}

static int rank_order(const void *one, const void *other)
{
	const struct part *part = *(struct part *const *)one;
	const struct part *next = *(struct part *const *)other;

	if (part->rank != next->rank)
		return part->rank < next->rank ? -1 : 1;
	return part->class_id - next->class_id;
}

static int take_part(struct cache *self, int class_id, PyObject *row)
{
	struct part *part = &self->parts[class_id];
	long long floor, cap;
	int kind;

	if (!PyArg_ParseTuple(row, "iiLLdiid", &kind, &part->rank, &floor,
			      &cap, &part->weight, &part->allocate,
			      &part->pin, &part->cost_weight))
		return -1;
	if (kind < 0 || kind >= KINDS) {
		PyErr_Format(PyExc_ValueError, "no order %d", kind);
		return -1;
	}
	part->class_id = class_id;
	part->floor = floor;
	part->cap = cap;
	part->order.kind = (enum kind)kind;
	part->order.room = self->is_plain ? self->capacity : 0;
	self->ranked[class_id] = part;
	if (kind == GDSF && !self->stock.pool.ranks)
		self->stock.pool.ranks = malloc(1);
	return 0;
}

static int cache_init(Cache *self, PyObject *args, PyObject *kwargs)
{
	struct cache *cache = &self->cache;
	PyObject *rows;
	long long capacity, window;
	int i;

	(void)kwargs;
	if (cache->stock.pool.made) {
		PyErr_SetString(PyExc_ValueError, "made before");
		return -1;
	}
	if (!PyArg_ParseTuple(args, "LppddO!L", &capacity, &cache->is_plain,
			      &cache->is_weighted, &cache->cost, &cache->rate,
			      &PyTuple_Type, &rows, &window))
		return -1;
	cache->capacity = capacity;
	cache->door.window = window;
	if (capacity < 1 || window < 0 || PyTuple_GET_SIZE(rows) != CLASSES) {
		PyErr_SetString(PyExc_ValueError,
				"capacity, window or classes");
		return -1;
	}
	for (i = 0; i < CLASSES; i++)
		if (take_part(cache, i, PyTuple_GET_ITEM(rows, i)))
			return -1;
	qsort(cache->ranked, CLASSES, sizeof(cache->ranked[0]), rank_order);
	cache->stock.pool.made = 1;
	if (pool_grow(&cache->stock.pool)) {
		PyErr_NoMemory();
		return -1;
	}
	return 0;
}

static void cache_free(Cache *self)
{
	int i;

	for (i = 0; i < CLASSES; i++)
		order_free(&self->cache.parts[i].order);
	free(self->cache.where.slots);
	free(self->cache.door.of.slots);
	free(self->cache.stock.pool.nodes);
	free(self->cache.stock.pool.ranks);
	Py_TYPE(self)->tp_free((PyObject *)self);
}

static PyObject *used_bytes(Cache *self, void *closure)
{
	(void)closure;
	return PyLong_FromLongLong(self->cache.used);
}

static PyObject *remembered(Cache *self, void *closure)
{
	(void)closure;
	return PyLong_FromUnsignedLong(self->cache.stock.pool.made - 1);
}

static PyMethodDef cache_methods[] = {
	{ "play", (PyCFunction)play, METH_VARARGS, play_doc },
	{ NULL, NULL, 0, NULL },
};

static PyGetSetDef cache_members[] = {
	{ "used_bytes", (getter)used_bytes, NULL, "of all objects", NULL },
	{ "remembered", (getter)remembered, NULL, "objects at most", NULL },
	{ NULL, NULL, NULL, NULL, NULL },
};

static PyTypeObject CacheType = {
	PyVarObject_HEAD_INIT(NULL, 0)
	.tp_name = "swift_dss.strategy.eviction.objects.fast.Cache",
	.tp_basicsize = sizeof(Cache),
	.tp_flags = Py_TPFLAGS_DEFAULT,
	.tp_doc = "A cache of whole objects; see fast.pyi.",
	.tp_new = PyType_GenericNew,
	.tp_init = (initproc)cache_init,
	.tp_dealloc = (destructor)cache_free,
	.tp_methods = cache_methods,
	.tp_getset = cache_members,
};

static struct PyModuleDef module = {
	PyModuleDef_HEAD_INIT,
	.m_name = "swift_dss.strategy.eviction.objects.fast",
	.m_doc = "Caches of whole objects in C.",
	.m_size = -1,
};

PyMODINIT_FUNC PyInit_fast(void)
{
	PyObject *made;

	if (PyType_Ready(&CacheType))
		return NULL;
	made = PyModule_Create(&module);
	if (!made)
		return NULL;
	Py_INCREF(&CacheType);
	if (PyModule_AddObject(made, "Cache", (PyObject *)&CacheType)) {
		Py_DECREF(&CacheType);
		Py_DECREF(made);
		return NULL;
	}
	return made;
}
