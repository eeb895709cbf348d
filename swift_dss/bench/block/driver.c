// SPDX-License-Identifier: Apache-2.0
/*
 * Replays a list of requests on a block device and writes down how long
 * each took. driver.py writes the list, reads the answers, and documents the
 * fields.
 *
 *   block_driver DEVICE LIST TIMES STATE THREADS SECONDS
 *
 * Requests are O_DIRECT, one system call each. A thread takes the next
 * *job* of the list: a request and those that are chained to it. The class
 * is the thread's I/O priority, set before the request if it changes.
 *
 * Every 4 KiB block that is written says its place and its version at both
 * ends. A read must find a version that was there at some moment of the
 * read: not an older one (stale), not a newer one, no other block's, and
 * the same at both ends. Blocks never written must be zeros. STATE keeps
 * the versions from one run to the next.
 *
 * The clock is CLOCK_MONOTONIC, read once before and once after a request:
 * nothing spins, so it runs in a guest whose clock only devices advance.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include <linux/fs.h>

#define BLOCK 4096u
#define MAX_LENGTH (1u << 20)
#define MAX_THREADS 256
#define WHO_PROCESS 1
#define NS 1000000000ull

#define F_WRITE 1
#define F_CHAINED 2	/* same thread as the request before, after it */
#define F_FLUSH 4	/* fdatasync after the write, within its time */
#define F_DUE 8		/* wait_ns counts from the start of the run */

struct request {
	uint64_t offset;
	uint32_t length;
	uint8_t class_id;	/* for the reader of the times only */
	uint8_t flags;
	uint16_t ioprio;
	uint64_t wait_ns;
};

/*
 * In the order of the list; taken_ns is 0 for requests that were not issued.
 */
struct answer {
	uint64_t begin_ns;
	uint64_t taken_ns;
};

/*
 * A block's versions: the oldest that a read beginning now may return; the
 * last one issued; the number of writes under way; the lowest version among
 * those.
 */
struct block {
	uint32_t least;
	uint32_t issued;
	uint32_t writers;
	uint32_t group;
};

static struct request *requests;
static struct answer *answers;
static size_t nr_requests;
static struct block *blocks;
static uint64_t nr_blocks;
static int device;
static uint64_t start_ns, stop_ns;
static size_t next_request;
static uint64_t nr_wrong, nr_failed;
static char first_trouble[256];
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static void die(const char *what)
{
	fprintf(stderr, "block_driver: %s: %s\n", what, strerror(errno));
	exit(2);
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * NS + now.tv_nsec;
}

static void sleep_until(uint64_t when_ns)
{
	struct timespec when = { when_ns / NS, when_ns % NS };

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &when, NULL) ==
	       EINTR)
		;
}

static void trouble(uint64_t *count, const char *what, uint64_t place,
		    uint64_t found, uint64_t wanted)
{
	if (!(*count)++ && !first_trouble[0])
		snprintf(first_trouble, sizeof(first_trouble),
			 "%s at byte %llu: %llu, not %llu", what,
			 (unsigned long long)place, (unsigned long long)found,
			 (unsigned long long)wanted);
}

/* A block's first and last 16 bytes: number plus one, version. */
static void stamp(char *data, uint64_t number, uint32_t version)
{
	uint64_t mark[2] = { number + 1, version };

	memcpy(data, mark, sizeof(mark));
	memcpy(data + BLOCK - sizeof(mark), mark, sizeof(mark));
}

static void check(const char *data, uint64_t number, uint32_t least)
{
	uint64_t head[2], tail[2];

	memcpy(head, data, sizeof(head));
	memcpy(tail, data + BLOCK - sizeof(tail), sizeof(tail));
	if (head[1] != tail[1] || head[0] != tail[0])
		trouble(&nr_wrong, "torn block", number * BLOCK, tail[1],
			head[1]);
	else if (head[0] != (head[1] ? number + 1 : 0))
		trouble(&nr_wrong, "another block's bytes", number * BLOCK,
			head[0], number + 1);
	else if (head[1] < least)
		trouble(&nr_wrong, "stale version", number * BLOCK, head[1],
			least);
	else if (head[1] > blocks[number].issued)
		trouble(&nr_wrong, "version never written", number * BLOCK,
			head[1], blocks[number].issued);
}

/* Under the mutex: what the request needs to know and to announce. */
static void announce(const struct request *request, char *buffer,
		     uint32_t *least)
{
	uint64_t first = request->offset / BLOCK, i;

	for (i = 0; i < request->length / BLOCK; i++) {
		struct block *block = &blocks[first + i];

		if (!(request->flags & F_WRITE)) {
			least[i] = block->least;
			continue;
		}
		block->issued++;
		if (!block->writers++)
			block->group = block->issued;
		stamp(buffer + i * BLOCK, first + i, block->issued);
	}
}

/* Under the mutex. A failed write leaves the old bytes allowed. */
static void conclude(const struct request *request, const char *buffer,
		     const uint32_t *least, int failed)
{
	uint64_t first = request->offset / BLOCK, i;

	for (i = 0; i < request->length / BLOCK; i++) {
		struct block *block = &blocks[first + i];

		if (!(request->flags & F_WRITE)) {
			if (!failed)
				check(buffer + i * BLOCK, first + i, least[i]);
			continue;
		}
		if (!--block->writers && !failed)
			block->least = block->group;
	}
	if (failed)
		trouble(&nr_failed, "errno of a request", request->offset,
			failed, 0);
}

static int transfer(const struct request *request, char *buffer)
{
	ssize_t done = request->flags & F_WRITE ?
		pwrite(device, buffer, request->length, request->offset) :
		pread(device, buffer, request->length, request->offset);

	if (done != (ssize_t)request->length)
		return done < 0 ? errno : EIO;
	if ((request->flags & F_FLUSH) && fdatasync(device))
		return errno;
	return 0;
}

/*
 * Takes a job. Its end is where the next request is not chained.
 *
 * Return: the index of its first request, or nr_requests.
 */
static size_t take_job(size_t *end)
{
	size_t first;

	pthread_mutex_lock(&mutex);
	first = next_request;
	if (stop_ns && now_ns() >= stop_ns)
		first = nr_requests;
	*end = first;
	if (first < nr_requests) {
		do {
			++*end;
		} while (*end < nr_requests &&
			 (requests[*end].flags & F_CHAINED));
		next_request = *end;
	}
	pthread_mutex_unlock(&mutex);
	return first;
}

/* A thread's buffer, and the priority that it set last. */
struct worker {
	char *buffer;
	uint32_t least[MAX_LENGTH / BLOCK];
	int ioprio;
};

static void serve(struct worker *worker, size_t index)
{
	const struct request *request = &requests[index];
	uint64_t begin;
	int failed;

	if (request->wait_ns)
		sleep_until(request->wait_ns + (request->flags & F_DUE ?
						start_ns : now_ns()));
	if (request->ioprio != worker->ioprio) {
		if (syscall(SYS_ioprio_set, WHO_PROCESS, 0, request->ioprio))
			die("ioprio_set");
		worker->ioprio = request->ioprio;
	}
	pthread_mutex_lock(&mutex);
	announce(request, worker->buffer, worker->least);
	pthread_mutex_unlock(&mutex);
	/* A request that is late was waiting since it was due. */
	begin = request->flags & F_DUE ? start_ns + request->wait_ns :
		now_ns();
	failed = transfer(request, worker->buffer);
	answers[index].begin_ns = begin - start_ns;
	answers[index].taken_ns = now_ns() - begin;
	if (!answers[index].taken_ns)
		answers[index].taken_ns = 1;
	pthread_mutex_lock(&mutex);
	conclude(request, worker->buffer, worker->least, failed);
	pthread_mutex_unlock(&mutex);
}

static void *work(void *argument)
{
	struct worker *worker = calloc(1, sizeof(*worker));
	size_t index, end;

	(void)argument;
	if (!worker || posix_memalign((void **)&worker->buffer, BLOCK,
				      MAX_LENGTH))
		die("memory");
	memset(worker->buffer, 0x5a, MAX_LENGTH);
	worker->ioprio = -1;
	while ((index = take_job(&end)) < nr_requests)
		for (; index < end; index++)
			serve(worker, index);
	free(worker->buffer);
	free(worker);
	return NULL;
}

static void *slurp(const char *path, size_t *length, int must)
{
	FILE *file = fopen(path, "rb");
	struct stat info;
	void *data;

	*length = 0;
	if (!file && !must && errno == ENOENT)
		return NULL;
	if (!file || fstat(fileno(file), &info))
		die(path);
	data = malloc(info.st_size + 1);
	if (!data || fread(data, 1, info.st_size, file) !=
	    (size_t)info.st_size)
		die(path);
	fclose(file);
	*length = info.st_size;
	return data;
}

static void spill(const char *path, const void *data, size_t length)
{
	FILE *file = fopen(path, "wb");

	if (!file || fwrite(data, 1, length, file) != length || fclose(file))
		die(path);
}

static void load(const char *list, const char *state)
{
	uint64_t bytes;
	size_t length, i;

	if (ioctl(device, BLKGETSIZE64, &bytes))
		die("size of the device");
	nr_blocks = bytes / BLOCK;
	requests = slurp(list, &length, 1);
	nr_requests = length / sizeof(*requests);
	answers = calloc(nr_requests + 1, sizeof(*answers));
	blocks = slurp(state, &length, 0);
	if (!blocks)
		blocks = calloc(nr_blocks, sizeof(*blocks));
	else if (length != nr_blocks * sizeof(*blocks)) {
		errno = EINVAL;
		die(state);
	}
	if (!answers || !blocks)
		die("memory");
	for (i = 0; i < nr_requests; i++) {
		const struct request *one = &requests[i];

		if (one->length && one->length <= MAX_LENGTH &&
		    one->length % BLOCK == 0 && one->offset % BLOCK == 0 &&
		    one->offset <= bytes && one->length <= bytes - one->offset)
			continue;
		fprintf(stderr, "block_driver: request %zu: %u bytes at %llu "
			"do not fit the device of %llu\n", i, one->length,
			(unsigned long long)one->offset,
			(unsigned long long)bytes);
		exit(2);
	}
}

int main(int argc, char **argv)
{
	pthread_t threads[MAX_THREADS];
	int nr_threads, i;

	if (argc != 7) {
		fprintf(stderr, "usage: block_driver DEVICE LIST TIMES STATE "
			"THREADS SECONDS\n");
		return 2;
	}
	nr_threads = atoi(argv[5]);
	if (nr_threads < 1 || nr_threads > MAX_THREADS) {
		fprintf(stderr, "block_driver: threads: 1..%d\n", MAX_THREADS);
		return 2;
	}
	device = open(argv[1], O_RDWR | O_DIRECT | O_CLOEXEC);
	if (device < 0)
		die(argv[1]);
	load(argv[2], argv[4]);
	start_ns = now_ns();
	if (atof(argv[6]) > 0)
		stop_ns = start_ns + (uint64_t)(atof(argv[6]) * 1e9);
	for (i = 0; i < nr_threads; i++) {
		errno = pthread_create(&threads[i], NULL, work, NULL);
		if (errno)
			die("thread");
	}
	for (i = 0; i < nr_threads; i++)
		pthread_join(threads[i], NULL);
	printf("{\"seconds\": %.9f, \"wrong\": %llu, \"failed\": %llu, "
	       "\"trouble\": \"%s\"}\n", (now_ns() - start_ns) / 1e9,
	       (unsigned long long)nr_wrong, (unsigned long long)nr_failed,
	       first_trouble);
	spill(argv[3], answers, nr_requests * sizeof(*answers));
	spill(argv[4], blocks, nr_blocks * sizeof(*blocks));
	return nr_wrong || nr_failed ? 1 : 0;
}
