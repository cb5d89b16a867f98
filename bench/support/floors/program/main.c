#include "floor.h"
#include <fcntl.h>
#include <pthread.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

static double begun;

static double now(void) {
  struct timespec at;
  clock_gettime(CLOCK_MONOTONIC, &at);
  return at.tv_sec + at.tv_nsec / 1e9;
}

static double seconds(struct timeval time) { return time.tv_sec + time.tv_usec / 1e6; }

void report_times(void) {
  double wall = now() - begun;
  struct rusage used;
  getrusage(RUSAGE_SELF, &used);
  printf("{\"seconds\":%.6f,\"processor\":%.6f", wall, seconds(used.ru_utime) + seconds(used.ru_stime));
}

void die(const char *what) {
  perror(what);
  exit(1);
}

void *need(void *memory) {
  if (!memory) die("memory");
  return memory;
}

void *aligned(size_t bytes) {
  void *memory;
  if (posix_memalign(&memory, SECTOR, bytes)) die("memory");
  return memory;
}

int open_at(int folder, const char *path, int flags) {
  int fd = openat(folder, path, flags | O_CLOEXEC, 0644);
  if (fd < 0) die(path);
  return fd;
}

void read_all(int fd, void *to, size_t bytes, uint64_t offset) {
  for (size_t done = 0; done < bytes;) {
    ssize_t got = pread(fd, (char *)to + done, bytes - done, offset + done);
    if (got <= 0) die("read");
    done += got;
  }
}

void write_all(int fd, const void *from, size_t bytes, uint64_t offset) {
  for (size_t done = 0; done < bytes;) {
    ssize_t put = pwrite(fd, (const char *)from + done, bytes - done, offset + done);
    if (put <= 0) die("write");
    done += put;
  }
}

struct call {
  void (*work)(void *, int);
  void *context;
  int index;
};

static void *run_call(void *given) {
  struct call *call = given;
  call->work(call->context, call->index);
  return NULL;
}

void on_threads(int count, void (*work)(void *context, int index), void *context) {
  pthread_t threads[count];
  struct call calls[count];
  for (int i = 0; i < count; i++) {
    calls[i] = (struct call){work, context, i};
    if (pthread_create(&threads[i], NULL, run_call, &calls[i])) die("thread");
  }
  for (int i = 0; i < count; i++) pthread_join(threads[i], NULL);
}

/** Names of a file's blocks, for a test of the hash itself. */
static int run_hash(const char *path) {
  int fd = open_at(AT_FDCWD, path, O_RDONLY);
  size_t bytes = lseek(fd, 0, SEEK_END);
  uint8_t *data = need(malloc(bytes + 1));
  read_all(fd, data, bytes, 0);
  uint8_t(*names)[32] = need(malloc((bytes / BLOCK + 1) * 32));
  size_t count = hash_blocks(data, bytes, names);
  for (size_t i = 0; i < count; i++) {
    for (int at = 0; at < 32; at++) printf("%02x", names[i][at]);
    printf("\n");
  }
  return 0;
}

static int run_walk(const char *root) {
  struct tree tree = walk(root, NONE);
  report_times();
  printf(",\"entries\":%lu}\n", tree.entries);
  return 0;
}

int main(int count, char **args) {
  begun = now();
  if (count < 4) {
    fprintf(stderr, "floor HASH STEP ARGUMENTS...\n");
    return 2;
  }
  choose_hash(args[1]);
  const char *step = args[2];
  char **given = args + 3;
  int left = count - 3;
#define IS(name, arguments) (!strcmp(step, name) && left == (arguments))
  if (IS("hash", 1)) return run_hash(given[0]);
  if (IS("walk", 1)) return run_walk(given[0]);
  if (IS("first", 3)) return run_first(given[0], given[1], strtoull(given[2], NULL, 10));
  if (IS("write", 2)) return run_write(given[0], strtoull(given[1], NULL, 10));
  if (IS("prints", 2)) return run_prints(given[0], given[1]);
  if (IS("compare", 3)) return run_compare(given[0], given[1], strtoll(given[2], NULL, 10));
  if (IS("changed", 4)) return run_changed(given[0], given[1], strtoll(given[2], NULL, 10), given[3]);
  if (IS("pack", 3)) return run_pack(given[0], given[1], given[2]);
  if (IS("restore", 3)) return run_restore(given[0], given[1], given[2]);
  fprintf(stderr, "no such step: %s\n", step);
  return 2;
}
