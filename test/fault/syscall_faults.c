// SPDX-License-Identifier: Apache-2.0
/*
 * Stands between a process and libc (LD_PRELOAD) and lets the n-th call on
 * files under one folder fail, or move fewer bytes than asked, once or from
 * then on. fail_each_system_call.py arms it. Calls on anything else pass untouched, and so
 * does close(): what it says cannot be acted on.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))
#define MAX_FDS 4096
#define SHORT (-1)

enum kind {
	OPENS = 1,
	WRITES = 2,
	READS = 4,
	SYNCS = 8,
	NAMES = 16,
	MARKS = 32,
};

static char root[PATH_MAX];
static size_t root_length;
static bool watched[MAX_FDS];
static long seen, fired, nth;
static int error_number, kinds;
static bool for_ever;

/* Which calls an error can come from, and whether it goes on for ever. */
EXPORT void faults_arm(const char *under, long at, int error, int of_kinds,
		       int ever)
{
	snprintf(root, sizeof(root), "%s", under);
	root_length = strlen(root);
	seen = fired = 0;
	error_number = error;
	kinds = of_kinds;
	for_ever = ever;
	nth = at;
}

EXPORT long faults_seen(void) { return seen; }
EXPORT long faults_fired(void) { return fired; }

/* Files that were open when it was armed. */
EXPORT void faults_watch(int fd)
{
	if (fd >= 0 && fd < MAX_FDS)
		watched[fd] = true;
}

static bool of_path(const char *path)
{
	return root_length && path && !strncmp(path, root, root_length);
}

static bool of_fd(int fd)
{
	return root_length && fd >= 0 && fd < MAX_FDS && watched[fd];
}

/* True if this call is to be spoiled; counts it. */
static bool due(bool ours, enum kind kind)
{
	if (!ours || !nth)
		return false;
	seen++;
	if (seen != nth && !(for_ever && seen > nth))
		return false;
	if (!(kinds & kind))
		return false;
	fired++;
	return true;
}

static int failed(void)
{
	errno = error_number;
	return -1;
}

#define REAL(name) \
	static __typeof__(&name) real; \
	if (!real) \
		real = (__typeof__(&name))dlsym(RTLD_NEXT, #name)

#define FAILS(ours, kind) \
	do { \
		if (due(ours, kind)) \
			return failed(); \
	} while (0)

#define OPEN(name) \
EXPORT int name(const char *path, int flags, ...) \
{ \
	REAL(name); \
	va_list more; \
	int fd; \
	va_start(more, flags); \
	mode_t mode = va_arg(more, mode_t); \
	va_end(more); \
	FAILS(of_path(path), OPENS); \
	fd = real(path, flags, mode); \
	if (fd >= 0 && fd < MAX_FDS) \
		watched[fd] = of_path(path); \
	return fd; \
}
OPEN(open)
OPEN(open64)

#define OPENAT(name) \
EXPORT int name(int at, const char *path, int flags, ...) \
{ \
	REAL(name); \
	va_list more; \
	int fd; \
	bool ours = of_path(path) || (path[0] != '/' && of_fd(at)); \
	va_start(more, flags); \
	mode_t mode = va_arg(more, mode_t); \
	va_end(more); \
	FAILS(ours, OPENS); \
	fd = real(at, path, flags, mode); \
	if (fd >= 0 && fd < MAX_FDS) \
		watched[fd] = ours; \
	return fd; \
}
OPENAT(openat)
OPENAT(openat64)

EXPORT int close(int fd)
{
	REAL(close);
	if (fd >= 0 && fd < MAX_FDS)
		watched[fd] = false;
	return real(fd);
}

/* Moves half of what was asked, if there is a half. */
#define MOVES(kind, whole, ...) \
	do { \
		if (error_number == SHORT) { \
			if ((whole) > 1 && due(of_fd(fd), kind)) \
				return __VA_ARGS__; \
			else if ((whole) <= 1) \
				(void)due(of_fd(fd), 0); \
		} else { \
			FAILS(of_fd(fd), kind); \
		} \
	} while (0)

EXPORT ssize_t read(int fd, void *into, size_t length)
{
	REAL(read);
	MOVES(READS, length, real(fd, into, length / 2));
	return real(fd, into, length);
}

EXPORT ssize_t write(int fd, const void *from, size_t length)
{
	REAL(write);
	MOVES(WRITES, length, real(fd, from, length / 2));
	return real(fd, from, length);
}

#define PREAD(name, off) \
EXPORT ssize_t name(int fd, void *into, size_t length, off at) \
{ \
	REAL(name); \
	MOVES(READS, length, real(fd, into, length / 2, at)); \
	return real(fd, into, length, at); \
}
PREAD(pread, off_t)
PREAD(pread64, off64_t)

#define PWRITE(name, off) \
EXPORT ssize_t name(int fd, const void *from, size_t length, off at) \
{ \
	REAL(name); \
	MOVES(WRITES, length, real(fd, from, length / 2, at)); \
	return real(fd, from, length, at); \
}
PWRITE(pwrite, off_t)
PWRITE(pwrite64, off64_t)

/* Of several buffers, half of the first. */
#define VECTOR(name, kind, scalar, off) \
EXPORT ssize_t name(int fd, const struct iovec *parts, int count, off at) \
{ \
	REAL(name); \
	struct iovec half = count ? parts[0] : (struct iovec){0}; \
	half.iov_len /= 2; \
	MOVES(kind, half.iov_len ? 2 : 0, real(fd, &half, 1, at)); \
	return real(fd, parts, count, at); \
}
VECTOR(preadv, READS, pread, off_t)
VECTOR(preadv64, READS, pread, off64_t)
VECTOR(pwritev, WRITES, pwrite, off_t)
VECTOR(pwritev64, WRITES, pwrite, off64_t)

#define VECTOR2(name, kind, off) \
EXPORT ssize_t name(int fd, const struct iovec *parts, int count, off at, \
		    int flags) \
{ \
	REAL(name); \
	struct iovec half = count ? parts[0] : (struct iovec){0}; \
	half.iov_len /= 2; \
	MOVES(kind, half.iov_len ? 2 : 0, real(fd, &half, 1, at, flags)); \
	return real(fd, parts, count, at, flags); \
}
VECTOR2(preadv2, READS, off_t)
VECTOR2(preadv64v2, READS, off64_t)
VECTOR2(pwritev2, WRITES, off_t)
VECTOR2(pwritev64v2, WRITES, off64_t)

#define ON_FD(name, kind, list, ...) \
EXPORT int name list \
{ \
	REAL(name); \
	FAILS(of_fd(fd), kind); \
	return real(__VA_ARGS__); \
}
ON_FD(fsync, SYNCS, (int fd), fd)
ON_FD(fdatasync, SYNCS, (int fd), fd)
ON_FD(ftruncate, WRITES, (int fd, off_t to), fd, to)
ON_FD(ftruncate64, WRITES, (int fd, off64_t to), fd, to)
ON_FD(fallocate, WRITES, (int fd, int how, off_t at, off_t to), fd, how, at, to)

EXPORT int posix_fallocate(int fd, off_t at, off_t to)
{
	REAL(posix_fallocate);
	if (due(of_fd(fd), WRITES))
		return error_number;
	return real(fd, at, to);
}

#define ON_PATH(name, list, ...) \
EXPORT int name list \
{ \
	REAL(name); \
	FAILS(of_path(path), NAMES); \
	return real(__VA_ARGS__); \
}
ON_PATH(unlink, (const char *path), path)
ON_PATH(unlinkat, (int at, const char *path, int flags), at, path, flags)
ON_PATH(mkdir, (const char *path, mode_t mode), path, mode)
ON_PATH(mkdirat, (int at, const char *path, mode_t mode), at, path, mode)
ON_PATH(rmdir, (const char *path), path)
ON_PATH(rename, (const char *path, const char *to), path, to)
ON_PATH(renameat, (int at, const char *path, int into, const char *to), at,
	path, into, to)
ON_PATH(renameat2, (int at, const char *path, int into, const char *to,
		    unsigned int flags), at, path, into, to, flags)
ON_PATH(link, (const char *path, const char *to), path, to)
ON_PATH(linkat, (int at, const char *path, int into, const char *to,
		 int flags), at, path, into, to, flags)

extern ssize_t fgetxattr(int fd, const char *name, void *into, size_t size);
extern ssize_t getxattr(const char *path, const char *name, void *into,
			size_t size);
extern int fsetxattr(int fd, const char *name, const void *from, size_t size,
		     int flags);
extern int setxattr(const char *path, const char *name, const void *from,
		    size_t size, int flags);
extern int fremovexattr(int fd, const char *name);

EXPORT ssize_t fgetxattr(int fd, const char *name, void *into, size_t size)
{
	REAL(fgetxattr);
	FAILS(of_fd(fd), READS);
	return real(fd, name, into, size);
}

EXPORT ssize_t getxattr(const char *path, const char *name, void *into,
			size_t size)
{
	REAL(getxattr);
	FAILS(of_path(path), READS);
	return real(path, name, into, size);
}

EXPORT int fsetxattr(int fd, const char *name, const void *from, size_t size,
		     int flags)
{
	REAL(fsetxattr);
	FAILS(of_fd(fd), MARKS);
	return real(fd, name, from, size, flags);
}

EXPORT int setxattr(const char *path, const char *name, const void *from,
		    size_t size, int flags)
{
	REAL(setxattr);
	FAILS(of_path(path), MARKS);
	return real(path, name, from, size, flags);
}

EXPORT int fremovexattr(int fd, const char *name)
{
	REAL(fremovexattr);
	FAILS(of_fd(fd), MARKS);
	return real(fd, name);
}
