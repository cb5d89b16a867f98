// The least that each step of a backup takes on this machine. Every step is a program of its own, as small as can be, that
// prints one line of JSON: how long it took, and how much processor time, in seconds.
#ifndef FLOOR_H
#define FLOOR_H
#define _GNU_SOURCE
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SECTOR 4096
#define BLOCK 65536
/** What is read and hashed at once: it stays in the cache of one core. */
#define STEP (256 * 1024)
/** What is written at once. */
#define LARGE (4 * 1024 * 1024)
/** While two wait for the disk, two have the cores. */
#define WRITERS 4
#define WALKERS 2

struct file {
  /** From the top of the tree. */
  char *path;
  uint64_t size, inode;
  int64_t mtime_ns;
};

struct files {
  struct file *at;
  size_t count, room;
};

struct tree {
  /** Only those whose time is `since` or later. */
  struct files files, folders;
  uint64_t entries, bytes;
};

#define ALL INT64_MIN
#define NONE INT64_MAX

void die(const char *what);
void *need(void *memory);
void *aligned(size_t bytes);
int open_at(int folder, const char *path, int flags);
void add_file(struct files *files, struct file file);
int by_path(const void *a, const void *b);

/** Reads every directory and looks at every entry. */
struct tree walk(const char *root, int64_t since_ns);

/** Runs `work(context, index)` on so many threads and waits for all. */
void on_threads(int count, void (*work)(void *context, int index), void *context);

/** "sha-256" or "blake2b-256" by OpenSSL, or "pairs": SHA-256 of two blocks at a time with the processor's instructions for it. */
void choose_hash(const char *name);
/** Names of the blocks of 64 KiB, the last of which may be shorter. Returns how many. */
size_t hash_blocks(const uint8_t *data, size_t bytes, uint8_t (*names)[32]);

/** Reads `bytes` from `offset`, or fails. */
void read_all(int fd, void *to, size_t bytes, uint64_t offset);
void write_all(int fd, const void *from, size_t bytes, uint64_t offset);

/** A file of a store, written around the page cache in whole sectors. */
struct pack {
  int fd;
  uint64_t written;
};
struct pack open_pack(const char *store, int index);
void write_pack(struct pack *pack, const uint8_t *data, size_t bytes);
void close_pack(struct pack *pack);
void sync_store(const char *store);

int run_first(const char *root, const char *store, uint64_t bytes);
int run_write(const char *store, uint64_t bytes);
int run_prints(const char *root, const char *state);
int run_compare(const char *root, const char *state, int64_t since_ns);
int run_changed(const char *root, const char *state, int64_t since_ns, const char *store);
int run_pack(const char *root, const char *pack, const char *list);
int run_restore(const char *pack, const char *list, const char *target);

/** From the start of the program; prints the beginning of the line. */
void report_times(void);

#endif
