// SPDX-License-Identifier: Apache-2.0
/*
 * Preloaded into stress-ng in a guest in virtual time.
 *
 * There the clock stands while anything computes, so nobody is ever
 * preempted: who reads a directory over and over until another has done
 * something, or spins on a lock, is alone on the processor for ever. Here both
 * rest, so that the disks that the other waits for get on.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static void rest(long nanoseconds)
{
	struct timespec span = { 0, nanoseconds };

	syscall(SYS_nanosleep, &span, NULL);
}

int closedir(DIR *dir)
{
	int (*libc_closedir)(DIR *dir) = dlsym(RTLD_NEXT, "closedir");
	int ret = libc_closedir(dir);

	rest(50000);
	return ret;
}

int pthread_spin_lock(pthread_spinlock_t *lock)
{
	while (pthread_spin_trylock(lock))
		rest(10000);
	return 0;
}
