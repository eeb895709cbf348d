// SPDX-License-Identifier: Apache-2.0
/*
 * MD5 of several streams at once: swift_dss.io.md5_lanes.
 *
 * Each step of MD5 waits for the one before it, so one stream leaves most of
 * a processor idle, and a core does no more of one than some 500 MB/s. Here
 * streams take turns in the plain registers, or up to LANES of them share the
 * vector registers, one a lane, each stream with its own state, data and
 * length; md5_steps.h has the steps. The result is the MD5 of each stream, bit
 * for bit.
 *
 * The caller's lock (the GIL) is let go while blocks are hashed. A Digest
 * belongs to one thread at a time; a second one is refused.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include "md5_steps.h"

/* -- one stream -------------------------------------------------------- */

typedef struct {
	PyObject_HEAD
	uint32_t state[4];
	uint64_t length;
	/* The incomplete last block: length % BLOCK bytes. */
	uint8_t rest[BLOCK];
	int busy;
} Digest;

static void begin(Digest *self)
{
	static const uint32_t first[4] = {
		0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476 };

	memcpy(self->state, first, sizeof(first));
	self->length = 0;
	self->busy = 0;
}

/* One lane's way through its data. */
struct run {
	Digest *digest;
	const uint8_t *data;
	size_t left;
	Py_buffer view;
};

/* Where the next whole blocks of a run are, and how many; 0: it is done. */
static size_t next_blocks(struct run *run, const uint8_t **from)
{
	Digest *digest = run->digest;
	size_t kept = digest->length % BLOCK;

	if (!kept && run->left >= BLOCK) {
		*from = run->data;
		return run->left / BLOCK;
	}
	if (run->left < BLOCK - kept) {
		memcpy(digest->rest + kept, run->data, run->left);
		digest->length += run->left;
		run->left = 0;
		return 0;
	}
	memcpy(digest->rest + kept, run->data, BLOCK - kept);
	*from = digest->rest;
	return 1;
}

static void move_on(struct run *run, const uint8_t *from, size_t blocks)
{
	size_t bytes = blocks * BLOCK;

	if (from == run->digest->rest)
		bytes -= run->digest->length % BLOCK;
	run->data += bytes;
	run->left -= bytes;
	run->digest->length += bytes;
}

/* As many blocks of each stream, a few streams at a time. */
static void hash_few(struct run *const *in, const uint8_t *const *from,
		     size_t used, size_t blocks)
{
	size_t at, i;

	for (at = 0; at < used; at += FEW) {
		size_t count = used - at < FEW ? used - at : FEW;
		uint32_t *state[FEW];

		for (i = 0; i < count; i++)
			state[i] = in[at + i]->digest->state;
		compress_few(state, from + at, blocks, count);
	}
}

/* As many blocks of each stream, all of them in vectors. */
static void hash_many(struct run *const *in, const uint8_t **from,
		      size_t used, size_t blocks)
{
	size_t vectors = (used + WIDTH - 1) / WIDTH, i, j;
	lanes state[VECTORS][4];

	for (i = 0; i < vectors * WIDTH; i++) {
		/* A lane without a stream hashes another lane's bytes. */
		size_t lane = i < used ? i : 0;

		from[i] = from[lane];
		for (j = 0; j < 4; j++)
			state[i / WIDTH][j][i % WIDTH] =
				in[lane]->digest->state[j];
	}
	kernel_here->compress(state, from, blocks, vectors);
	for (i = 0; i < used; i++)
		for (j = 0; j < 4; j++)
			in[i]->digest->state[j] =
				state[i / WIDTH][j][i % WIDTH];
}

/* Hash all runs to their ends; no Python in here. */
static void hash_runs(struct run *runs, size_t count)
{
	for (;;) {
		const uint8_t *from[LANES];
		struct run *in[LANES];
		size_t used = 0, blocks = 0, i;

		for (i = 0; i < count; i++) {
			size_t found = 0;

			if (runs[i].left)
				found = next_blocks(&runs[i], &from[used]);
			if (!found)
				continue;
			if (!used || found < blocks)
				blocks = found;
			in[used++] = &runs[i];
		}
		if (!used)
			return;
		if (used <= FEW || !kernel_here->compress)
			hash_few(in, from, used, blocks);
		else
			hash_many(in, from, used, blocks);
		for (i = 0; i < used; i++)
			move_on(in[i], from[i], blocks);
	}
}

/* -- for Python -------------------------------------------------------- */

static PyObject *digest_new(PyTypeObject *type, PyObject *args,
			    PyObject *kwargs)
{
	static char *names[] = { NULL };
	Digest *self;

	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "", names))
		return NULL;
	self = (Digest *)type->tp_alloc(type, 0);
	if (self)
		begin(self);
	return (PyObject *)self;
}

static void digest_dealloc(PyObject *self)
{
	Py_TYPE(self)->tp_free(self);
}

PyDoc_STRVAR(hexdigest_doc,
"hexdigest()\n--\n\nMD5 of all bytes so far, as hashlib says it.");

static PyObject *digest_hexdigest(PyObject *object, PyObject *unused)
{
	static const char digits[] = "0123456789abcdef";
	Digest *self = (Digest *)object;
	uint8_t tail[2 * BLOCK] = { 0 }, sum[16];
	size_t kept = self->length % BLOCK;
	size_t blocks = kept + 9 > BLOCK ? 2 : 1;
	uint64_t bits = self->length * 8;
	uint32_t state[4];
	char text[32];
	int i;

	(void)unused;
	if (self->busy) {
		PyErr_SetString(PyExc_RuntimeError, "the digest is in use");
		return NULL;
	}
	memcpy(tail, self->rest, kept);
	tail[kept] = 0x80;
	memcpy(tail + blocks * BLOCK - 8, &bits, 8);
	memcpy(state, self->state, sizeof(state));
	few(&(uint32_t *){ state }, &(const uint8_t *){ tail }, blocks, 1);
	memcpy(sum, state, sizeof(sum));
	for (i = 0; i < 16; i++) {
		text[2 * i] = digits[sum[i] >> 4];
		text[2 * i + 1] = digits[sum[i] & 15];
	}
	return PyUnicode_FromStringAndSize(text, 32);
}

static PyMethodDef digest_methods[] = {
	{ "hexdigest", digest_hexdigest, METH_NOARGS, hexdigest_doc },
	{ NULL, NULL, 0, NULL },
};

PyDoc_STRVAR(digest_doc, "Digest()\n--\n\nMD5 of one stream of bytes.");

static PyTypeObject DigestType = {
	PyVarObject_HEAD_INIT(NULL, 0)
	.tp_name = "swift_dss.io.md5_lanes.Digest",
	.tp_basicsize = sizeof(Digest),
	.tp_dealloc = digest_dealloc,
	.tp_flags = Py_TPFLAGS_DEFAULT,
	.tp_doc = digest_doc,
	.tp_methods = digest_methods,
	.tp_new = digest_new,
};

/* One (digest, data, start, stop) -> a run that holds both. */
static int take(PyObject *item, struct run *run)
{
	PyObject *digest, *data;
	Py_ssize_t start, stop;

	if (!PyArg_ParseTuple(item, "O!Onn;a run is (digest, data, start, "
			      "stop)", &DigestType, &digest, &data, &start,
			      &stop))
		return -1;
	if (((Digest *)digest)->busy) {
		PyErr_SetString(PyExc_RuntimeError, "the digest is in use");
		return -1;
	}
	if (PyObject_GetBuffer(data, &run->view, PyBUF_SIMPLE))
		return -1;
	if (start < 0 || stop < start || stop > run->view.len) {
		PyErr_Format(PyExc_ValueError, "run of %zd to %zd in %zd "
			     "bytes", start, stop, run->view.len);
		PyBuffer_Release(&run->view);
		return -1;
	}
	Py_INCREF(digest);
	run->digest = (Digest *)digest;
	run->digest->busy = 1;
	run->data = (const uint8_t *)run->view.buf + start;
	run->left = stop - start;
	return 0;
}

PyDoc_STRVAR(update_doc,
"update(runs)\n--\n\n"
"Go on with up to LANES streams at once.\n\n"
":param runs: sequence of (digest, data, start, stop); no digest twice\n"
":raises ValueError: too many, or a range that its data does not have\n"
":raises RuntimeError: a digest is in use");

static PyObject *update(PyObject *module, PyObject *argument)
{
	struct run runs[LANES];
	Py_ssize_t count, taken, i;
	PyObject *items;

	(void)module;
	items = PySequence_Tuple(argument);
	if (!items)
		return NULL;
	count = PyTuple_GET_SIZE(items);
	if (count > LANES) {
		Py_DECREF(items);
		return PyErr_Format(PyExc_ValueError, "%zd runs, and %d "
				    "lanes", count, LANES);
	}
	for (taken = 0; taken < count; taken++)
		if (take(PyTuple_GET_ITEM(items, taken), &runs[taken]))
			break;
	if (taken == count) {
		Py_BEGIN_ALLOW_THREADS
		hash_runs(runs, count);
		Py_END_ALLOW_THREADS
	}
	for (i = 0; i < taken; i++) {
		runs[i].digest->busy = 0;
		Py_DECREF(runs[i].digest);
		PyBuffer_Release(&runs[i].view);
	}
	Py_DECREF(items);
	if (taken < count)
		return NULL;
	Py_RETURN_NONE;
}

PyDoc_STRVAR(use_doc,
"use(kernel)\n--\n\n"
"Hash with another of KERNELS from now on, for tests.\n\n"
":raises ValueError: there is none of that name here");

static PyObject *use(PyObject *module, PyObject *argument)
{
	const char *name = PyUnicode_AsUTF8(argument);
	size_t i;

	(void)module;
	if (!name)
		return NULL;
	for (i = 0; i < NR_KERNELS; i++)
		if (!strcmp(name, kernels[i].name) &&
		    runs_here(&kernels[i])) {
			kernel_here = &kernels[i];
			Py_RETURN_NONE;
		}
	return PyErr_Format(PyExc_ValueError, "no kernel %s", name);
}

static PyMethodDef methods[] = {
	{ "update", update, METH_O, update_doc },
	{ "use", use, METH_O, use_doc },
	{ NULL, NULL, 0, NULL },
};

static struct PyModuleDef module = {
	PyModuleDef_HEAD_INIT,
	.m_name = "swift_dss.io.md5_lanes",
	.m_doc = "MD5 of several streams at once.",
	.m_size = -1,
	.m_methods = methods,
};

/* Their names, fastest first; the first of them is chosen. */
static PyObject *find_kernels(void)
{
	PyObject *names = PyList_New(0), *found;
	size_t i;

	if (!names)
		return NULL;
	for (i = NR_KERNELS; i-- > 0;) {
		PyObject *name;

		if (!runs_here(&kernels[i]))
			continue;
		kernel_here = &kernels[i];
		name = PyUnicode_FromString(kernels[i].name);
		if (!name || PyList_Insert(names, 0, name)) {
			Py_XDECREF(name);
			Py_DECREF(names);
			return NULL;
		}
		Py_DECREF(name);
	}
	found = PyList_AsTuple(names);
	Py_DECREF(names);
	return found;
}

PyMODINIT_FUNC PyInit_md5_lanes(void)
{
	PyObject *made, *found;

	if (PyType_Ready(&DigestType))
		return NULL;
	made = PyModule_Create(&module);
	if (!made)
		return NULL;
	found = find_kernels();
	if (!found || PyModule_AddObject(made, "KERNELS", found)) {
		Py_XDECREF(found);
		Py_DECREF(made);
		return NULL;
	}
	Py_INCREF(&DigestType);
	if (PyModule_AddObject(made, "Digest", (PyObject *)&DigestType) ||
	    PyModule_AddIntConstant(made, "LANES", LANES)) {
		Py_DECREF(made);
		return NULL;
	}
	return made;
}
