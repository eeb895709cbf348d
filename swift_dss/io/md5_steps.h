/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The steps of MD5 over whole blocks: of one stream in plain registers, of up
 * to LANES streams in vector registers, RFC 1321 step for step. Only
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

#define LANES 8
#define BLOCK 64

typedef uint32_t lanes __attribute__((vector_size(4 * LANES)));
typedef uint32_t loose __attribute__((vector_size(4 * LANES), aligned(1),
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

#endif
