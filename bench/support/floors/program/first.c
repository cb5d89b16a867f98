// A first backup: every byte is read and hashed, and as many are written as the store has afterwards. And the writing alone.
#include "floor.h"
#include <fcntl.h>
#include <unistd.h>

struct writing {
  const char *store;
  struct tree tree;
  int root;
  atomic_size_t next;
  /** How much of what was read is written. */
  double share;
  uint64_t bytes;
};

struct pack open_pack(const char *store, int index) {
  char *path;
  if (asprintf(&path, "%s/pack-%d", store, index) < 0) die("memory");
  return (struct pack){open_at(AT_FDCWD, path, O_WRONLY | O_CREAT | O_EXCL | O_DIRECT), 0};
}

void write_pack(struct pack *pack, const uint8_t *data, size_t bytes) {
  size_t whole = (bytes + SECTOR - 1) / SECTOR * SECTOR;
  if (whole == 0) return;
  write_all(pack->fd, data, whole, pack->written);
  pack->written += whole;
}

void close_pack(struct pack *pack) {
  if (fdatasync(pack->fd)) die("fdatasync");
  close(pack->fd);
}

void sync_store(const char *store) {
  int fd = open_at(AT_FDCWD, store, O_RDONLY | O_DIRECTORY);
  if (fsync(fd)) die(store);
  close(fd);
}

/** Files one after another into one buffer, which is written from where it is. */
static void back_up_some(void *context, int index) {
  struct writing *writing = context;
  struct pack pack = open_pack(writing->store, index);
  uint8_t *buffer = aligned(LARGE), names[STEP / BLOCK][32];
  size_t filled = 0, at;
  while ((at = atomic_fetch_add(&writing->next, 1)) < writing->tree.files.count) {
    struct file *file = &writing->tree.files.at[at];
    int fd = open_at(writing->root, file->path, O_RDONLY | O_NOFOLLOW);
    for (uint64_t done = 0; done < file->size;) {
      uint64_t left = file->size - done;
      size_t bytes = left < STEP ? left : STEP;
      if (filled + bytes > LARGE) {
        write_pack(&pack, buffer, filled * writing->share);
        filled = 0;
      }
      read_all(fd, buffer + filled, bytes, done);
      hash_blocks(buffer + filled, bytes, names);
      filled += bytes;
      done += bytes;
    }
    close(fd);
  }
  write_pack(&pack, buffer, filled * writing->share);
  close_pack(&pack);
}

int run_first(const char *root, const char *store, uint64_t bytes) {
  struct writing writing = {.store = store, .tree = walk(root, ALL), .bytes = bytes};
  writing.root = open_at(AT_FDCWD, root, O_RDONLY | O_DIRECTORY);
  writing.share = writing.tree.bytes ? (double)bytes / writing.tree.bytes : 0;
  if (writing.share > 1) writing.share = 1;
  on_threads(WRITERS, back_up_some, &writing);
  sync_store(store);
  report_times();
  printf(",\"entries\":%lu,\"bytes\":%lu}\n", writing.tree.entries, writing.tree.bytes);
  return 0;
}

static void write_some(void *context, int index) {
  struct writing *writing = context;
  struct pack pack = open_pack(writing->store, index);
  uint8_t *buffer = aligned(LARGE);
  memset(buffer, index + 1, LARGE);
  while (atomic_fetch_add(&writing->next, LARGE) < writing->bytes) write_pack(&pack, buffer, LARGE);
  close_pack(&pack);
}

int run_write(const char *store, uint64_t bytes) {
  struct writing writing = {.store = store, .bytes = bytes};
  on_threads(WRITERS, write_some, &writing);
  sync_store(store);
  report_times();
  printf("}\n");
  return 0;
}
