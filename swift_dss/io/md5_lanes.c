// SPDX-License-Identifier: Apache-2.0
/*
 * MD5 of several streams at once: swift_dss.io.md5_lanes.
 *
 * Each step of MD5 waits for the one before it, so one stream leaves most of
 * a processor idle, and a core does no more of one than some 500 MB/s. Here
 * up to LANES streams share the vector registers, one a lane: RFC 1321 step
 * for step, each stream with its own state, data and length. The result is the
 * MD5 of each stream, bit for bit.
 *
 * The caller's lock (the GIL) is let go while blocks are hashed. A Digest
 * belongs to one thread at a time; a second one is refused.
 */
/* long: the steps of MD5, and a type and two functions for Python. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <string.h>

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "lanes are loaded as little endian; hashlib does it elsewhere"
#endif

#define LANES 8
#define BLOCK 64

typedef uint32_t lanes __attribute__((vector_size(4 * LANES)));
typedef uint32_t loose __attribute__((vector_size(4 * LANES), aligned(1),
				      may_alias));

#define INLINE static inline __attribute__((always_inline))

/* -- blocks ------------------------------------------------------------ */

#define LOW(a, b) __builtin_shuffle(a, b, \
	(lanes){ 0, 8, 1, 9, 4, 12, 5, 13 })
#define HIGH(a, b) __builtin_shuffle(a, b, \
	(lanes){ 2, 10, 3, 11, 6, 14, 7, 15 })
#define LOW2(a, b) __builtin_shuffle(a, b, \
	(lanes){ 0, 1, 8, 9, 4, 5, 12, 13 })
#define HIGH2(a, b) __builtin_shuffle(a, b, \
	(lanes){ 2, 3, 10, 11, 6, 7, 14, 15 })
#define FRONT(a, b) __builtin_shuffle(a, b, \
	(lanes){ 0, 1, 2, 3, 8, 9, 10, 11 })
#define BACK(a, b) __builtin_shuffle(a, b, \
	(lanes){ 4, 5, 6, 7, 12, 13, 14, 15 })

/* Half a block of each stream -> eight words, each of all streams. */
INLINE void turn(const uint8_t *const *from, size_t at, lanes *word)
{
	lanes row[LANES], two[LANES], four[LANES];
	int i;

#pragma GCC unroll 8
	for (i = 0; i < LANES; i++)
		row[i] = *(const loose *)(from[i] + at);
#pragma GCC unroll 8
	for (i = 0; i < LANES; i += 2) {
		two[i] = LOW(row[i], row[i + 1]);
		two[i + 1] = HIGH(row[i], row[i + 1]);
	}
#pragma GCC unroll 8
	for (i = 0; i < LANES; i += 4) {
		four[i] = LOW2(two[i], two[i + 2]);
		four[i + 1] = HIGH2(two[i], two[i + 2]);
		four[i + 2] = LOW2(two[i + 1], two[i + 3]);
		four[i + 3] = HIGH2(two[i + 1], two[i + 3]);
	}
#pragma GCC unroll 8
	for (i = 0; i < LANES / 2; i++) {
		word[i] = FRONT(four[i], four[i + 4]);
		word[i + 4] = BACK(four[i], four[i + 4]);
	}
}

#define F(b, c, d) (((b) & (c)) | (~(b) & (d)))
#define G(b, c, d) (((b) & (d)) | ((c) & ~(d)))
#define H(b, c, d) ((b) ^ (c) ^ (d))
/* The same where no instruction does all of one: b comes last. */
#define F1(b, c, d) ((((c) ^ (d)) & (b)) ^ (d))
#define G1(b, c, d) (((c) & ~(d)) + ((b) & (d)))
#define I(b, c, d) ((c) ^ ((b) | ~(d)))

#define STEP(f, a, b, c, d, k, s, t) do { \
	a += word[k] + (t); \
	a += f(b, c, d); \
	a = ((a << (s)) | (a >> (32 - (s)))) + (b); \
} while (0)

#define FOUR(f, k0, k1, k2, k3, s0, s1, s2, s3, t0, t1, t2, t3) do { \
	STEP(f, a, b, c, d, k0, s0, t0); \
	STEP(f, d, a, b, c, k1, s1, t1); \
	STEP(f, c, d, a, b, k2, s2, t2); \
	STEP(f, b, c, d, a, k3, s3, t3); \
} while (0)

/* RFC 1321, section 3.4: 64 steps over word[16]. */
#define STEPS(F, G, H, I) do { \
	FOUR(F, 0, 1, 2, 3, 7, 12, 17, 22, \
	     0xd76aa478, 0xe8c7b756, 0x242070db, 0xc1bdceee); \
	FOUR(F, 4, 5, 6, 7, 7, 12, 17, 22, \
	     0xf57c0faf, 0x4787c62a, 0xa8304613, 0xfd469501); \
	FOUR(F, 8, 9, 10, 11, 7, 12, 17, 22, \
	     0x698098d8, 0x8b44f7af, 0xffff5bb1, 0x895cd7be); \
	FOUR(F, 12, 13, 14, 15, 7, 12, 17, 22, \
	     0x6b901122, 0xfd987193, 0xa679438e, 0x49b40821); \
	FOUR(G, 1, 6, 11, 0, 5, 9, 14, 20, \
	     0xf61e2562, 0xc040b340, 0x265e5a51, 0xe9b6c7aa); \
	FOUR(G, 5, 10, 15, 4, 5, 9, 14, 20, \
	     0xd62f105d, 0x02441453, 0xd8a1e681, 0xe7d3fbc8); \
	FOUR(G, 9, 14, 3, 8, 5, 9, 14, 20, \
	     0x21e1cde6, 0xc33707d6, 0xf4d50d87, 0x455a14ed); \
	FOUR(G, 13, 2, 7, 12, 5, 9, 14, 20, \
	     0xa9e3e905, 0xfcefa3f8, 0x676f02d9, 0x8d2a4c8a); \
	FOUR(H, 5, 8, 11, 14, 4, 11, 16, 23, \
	     0xfffa3942, 0x8771f681, 0x6d9d6122, 0xfde5380c); \
	FOUR(H, 1, 4, 7, 10, 4, 11, 16, 23, \
	     0xa4beea44, 0x4bdecfa9, 0xf6bb4b60, 0xbebfbc70); \
	FOUR(H, 13, 0, 3, 6, 4, 11, 16, 23, \
	     0x289b7ec6, 0xeaa127fa, 0xd4ef3085, 0x04881d05); \
	FOUR(H, 9, 12, 15, 2, 4, 11, 16, 23, \
	     0xd9d4d039, 0xe6db99e5, 0x1fa27cf8, 0xc4ac5665); \
	FOUR(I, 0, 7, 14, 5, 6, 10, 15, 21, \
	     0xf4292244, 0x432aff97, 0xab9423a7, 0xfc93a039); \
	FOUR(I, 12, 3, 10, 1, 6, 10, 15, 21, \
	     0x655b59c3, 0x8f0ccc92, 0xffeff47d, 0x85845dd1); \
	FOUR(I, 8, 15, 6, 13, 6, 10, 15, 21, \
	     0x6fa87e4f, 0xfe2ce6e0, 0xa3014314, 0x4e0811a1); \
	FOUR(I, 4, 11, 2, 9, 6, 10, 15, 21, \
	     0xf7537e82, 0xbd3af235, 0x2ad7d2bb, 0xeb86d391); \
} while (0)

/* One stream alone: faster in plain registers than in a lane. */
static void compress_one(uint32_t *state, const uint8_t *from, size_t blocks)
{
	for (; blocks; blocks--, from += BLOCK) {
		uint32_t a = state[0], b = state[1], c = state[2];
		uint32_t d = state[3], word[16];

		memcpy(word, from, BLOCK);
		STEPS(F1, G1, H, I);
		state[0] += a;
		state[1] += b;
		state[2] += c;
		state[3] += d;
	}
}

INLINE void compress(lanes *state, const uint8_t **from, size_t blocks)
{
	size_t at;

	for (at = 0; at < blocks * BLOCK; at += BLOCK) {
		lanes a = state[0], b = state[1], c = state[2], d = state[3];
		lanes word[16];

		turn(from, at, word);
		turn(from, at + BLOCK / 2, word + 8);
		STEPS(F, G, H, I);
		state[0] += a;
		state[1] += b;
		state[2] += c;
		state[3] += d;
	}
}

typedef void compressor(lanes *state, const uint8_t **from, size_t blocks);

static void compress_plain(lanes *state, const uint8_t **from, size_t blocks)
{
	compress(state, from, blocks);
}

#if defined(__x86_64__)
__attribute__((target("avx2")))
static void compress_avx2(lanes *state, const uint8_t **from, size_t blocks)
{
	compress(state, from, blocks);
}

__attribute__((target("avx2,avx512f,avx512vl,prefer-vector-width=256")))
static void compress_avx512(lanes *state, const uint8_t **from,
			    size_t blocks)
{
	compress(state, from, blocks);
}
#endif

/* Fastest first; extensions that a processor lacks are skipped. */
static const struct kernel {
	const char *name;
	compressor *compress;
	/* Fewer streams are faster one after the other. */
	size_t least;
} kernels[] = {
#if defined(__x86_64__)
	{ "avx512vl", compress_avx512, 2 },
	{ "avx2", compress_avx2, 3 },
#endif
	{ "plain", compress_plain, 4 },
};

#define NR_KERNELS (sizeof(kernels) / sizeof(kernels[0]))

static const struct kernel *kernel_here;

static int runs_here(const struct kernel *kernel)
{
#if defined(__x86_64__)
	__builtin_cpu_init();
	if (kernel->compress == compress_avx512)
		return __builtin_cpu_supports("avx512vl") != 0;
	if (kernel->compress == compress_avx2)
		return __builtin_cpu_supports("avx2") != 0;
#endif
	return kernel->compress == compress_plain;
}

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

/* Hash all runs to their ends; no Python in here. */
static void hash_runs(struct run *runs, size_t count)
{
	for (;;) {
		/* A lane without a stream hashes another lane's bytes. */
		const uint8_t *from[LANES];
		struct run *in[LANES];
		lanes state[4];
		size_t used = 0, blocks = 0, i, j;

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
		if (used < kernel_here->least) {
			for (i = 0; i < used; i++) {
				compress_one(in[i]->digest->state, from[i],
					     blocks);
				move_on(in[i], from[i], blocks);
			}
			continue;
		}
		for (i = 0; i < LANES; i++) {
			size_t lane = i < used ? i : 0;

			from[i] = from[lane];
			for (j = 0; j < 4; j++)
				state[j][i] = in[lane]->digest->state[j];
		}
		kernel_here->compress(state, from, blocks);
		for (i = 0; i < used; i++) {
			for (j = 0; j < 4; j++)
				in[i]->digest->state[j] = state[j][i];
			move_on(in[i], from[i], blocks);
		}
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
	compress_one(state, tail, blocks);
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
