/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/*
 * The decision core's environment: fixed-width integers, errno names, memset
 * and an assertion. The same source is built into the kernel module and into a
 * shared library.
 *
 * DSS_FORBID() states what a caller of dss_core.h must not do. Going on
 * with lists that are wrong would hand out slots that hold dirty data, so
 * it ends in a BUG() in the kernel; in the library it aborts, so that a
 * test sees it.
 */
#ifndef DSS_ENV_H
#define DSS_ENV_H

#ifdef __KERNEL__

#include <linux/bits.h>
#include <linux/bug.h>
#include <linux/compiler.h>
#include <linux/errno.h>
#include <linux/string.h>
#include <linux/types.h>

#define DSS_FORBID(condition) BUG_ON(condition)

#else

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BIT(number) (1U << (number))
#define BIT_ULL(number) (1ULL << (number))

#define u8 uint8_t
#define u16 uint16_t
#define u32 uint32_t
#define u64 uint64_t

#ifdef __CHECKER__
#define __bitwise __attribute__((bitwise))
#define __force __attribute__((force))
#else
#define __bitwise
#define __force
#endif

#define DSS_FORBID(condition) do {					\
	if (__builtin_expect(!!(condition), 0)) {			\
		fprintf(stderr, "dss_core: %s:%d: %s\n",		\
			__FILE__, __LINE__, #condition);		\
		abort();						\
	}								\
} while (0)

#endif /* __KERNEL__ */

#endif /* DSS_ENV_H */
