/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The steps of MD5 over whole blocks, RFC 1321 step for step: of up to FEW
 * streams in plain registers, of up to LANES streams in vector registers. Only
 * md5_lanes.c includes it.
 */
#ifndef DSS_MD5_STEPS_H
#define DSS_MD5_STEPS_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "lanes are loaded as little endian; hashlib does it elsewhere"
#endif

/* Streams of one vector, and vectors that take turns. */
#define WIDTH 8
#define VECTORS 2
#define LANES (VECTORS * WIDTH)
/* Streams that take turns in plain registers; more would not fit there. */
#define FEW 3
#define BLOCK 64

typedef uint32_t lanes __attribute__((vector_size(4 * WIDTH)));
typedef uint32_t loose __attribute__((vector_size(4 * WIDTH), aligned(1),
				      may_alias));

#define INLINE static inline __attribute__((always_inline))

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
	lanes row[WIDTH], two[WIDTH], four[WIDTH];
	int i;

#pragma GCC unroll 8
	for (i = 0; i < WIDTH; i++)
		row[i] = *(const loose *)(from[i] + at);
#pragma GCC unroll 8
	for (i = 0; i < WIDTH; i += 2) {
		two[i] = LOW(row[i], row[i + 1]);
		two[i + 1] = HIGH(row[i], row[i + 1]);
	}
#pragma GCC unroll 8
	for (i = 0; i < WIDTH; i += 4) {
		four[i] = LOW2(two[i], two[i + 2]);
		four[i + 1] = HIGH2(two[i], two[i + 2]);
		four[i + 2] = LOW2(two[i + 1], two[i + 3]);
		four[i + 3] = HIGH2(two[i + 1], two[i + 3]);
	}
#pragma GCC unroll 8
	for (i = 0; i < WIDTH / 2; i++) {
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

/*
 * A step of each of `count` streams, or vectors of them. Each waits for the
 * step before of its own stream; the others fill the time.
 */
#define STEP(f, a, b, c, d, k, s, t) do { \
	_Pragma("GCC unroll 3") \
	for (n = 0; n < count; n++) { \
		a[n] += word[n][k] + (t); \
		a[n] += f(b[n], c[n], d[n]); \
		a[n] = ((a[n] << (s)) | (a[n] >> (32 - (s)))) + b[n]; \
	} \
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

/* `count` is a constant, or nothing would stay in registers. */
INLINE void few(uint32_t *const *state, const uint8_t *const *from,
		size_t blocks, size_t count)
{
	size_t at, n;

	for (at = 0; at < blocks * BLOCK; at += BLOCK) {
		uint32_t a[FEW], b[FEW], c[FEW], d[FEW], word[FEW][16];

#pragma GCC unroll 3
		for (n = 0; n < count; n++) {
			a[n] = state[n][0];
			b[n] = state[n][1];
			c[n] = state[n][2];
			d[n] = state[n][3];
			memcpy(word[n], from[n] + at, BLOCK);
		}
		STEPS(F1, G1, H, I);
#pragma GCC unroll 3
		for (n = 0; n < count; n++) {
			state[n][0] += a[n];
			state[n][1] += b[n];
			state[n][2] += c[n];
			state[n][3] += d[n];
		}
	}
}

/* Go on with up to FEW streams. */
static void compress_few(uint32_t *const *state, const uint8_t *const *from,
			 size_t blocks, size_t count)
{
	switch (count) {
	case 1:
		few(state, from, blocks, 1);
		break;
	case 2:
		few(state, from, blocks, 2);
		break;
	default:
		few(state, from, blocks, FEW);
	}
}

INLINE void many(lanes (*state)[4], const uint8_t *const *from,
		 size_t blocks, size_t count)
{
	size_t at, n;

	for (at = 0; at < blocks * BLOCK; at += BLOCK) {
		lanes a[VECTORS], b[VECTORS], c[VECTORS], d[VECTORS];
		lanes word[VECTORS][16];

#pragma GCC unroll 2
		for (n = 0; n < count; n++) {
			a[n] = state[n][0];
			b[n] = state[n][1];
			c[n] = state[n][2];
			d[n] = state[n][3];
			turn(from + n * WIDTH, at, word[n]);
			turn(from + n * WIDTH, at + BLOCK / 2, word[n] + 8);
		}
		STEPS(F, G, H, I);
#pragma GCC unroll 2
		for (n = 0; n < count; n++) {
			state[n][0] += a[n];
			state[n][1] += b[n];
			state[n][2] += c[n];
			state[n][3] += d[n];
		}
	}
}

/* Go on with all lanes of one vector or of two. */
INLINE void compress(lanes (*state)[4], const uint8_t *const *from,
		     size_t blocks, size_t vectors)
{
	if (vectors == 1)
		many(state, from, blocks, 1);
	else
		many(state, from, blocks, VECTORS);
}

typedef void compressor(lanes (*state)[4], const uint8_t *const *from,
			size_t blocks, size_t vectors);

#if defined(__x86_64__)
__attribute__((target("avx2")))
static void compress_avx2(lanes (*state)[4], const uint8_t *const *from,
			  size_t blocks, size_t vectors)
{
	compress(state, from, blocks, vectors);
}

__attribute__((target("avx2,avx512f,avx512vl,prefer-vector-width=256")))
static void compress_avx512(lanes (*state)[4], const uint8_t *const *from,
			    size_t blocks, size_t vectors)
{
	compress(state, from, blocks, vectors);
}
#endif

/* Fastest first; extensions that a processor lacks are skipped. */
static const struct kernel {
	const char *name;
	/* NULL: a few at a time are faster than the vectors there are. */
	compressor *compress;
} kernels[] = {
#if defined(__x86_64__)
	{ "avx512vl", compress_avx512 },
	{ "avx2", compress_avx2 },
#endif
	{ "plain", NULL },
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
	return !kernel->compress;
}

#endif
