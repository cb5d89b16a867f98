// What changed in place: a print of every sector was kept, so that only what has changed is hashed and written.
#include "floor.h"
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

/** In the state: how many files, one of these for each, by inode, and then the prints of all their sectors. */
struct known {
  uint64_t inode, first, sectors;
};

struct state {
  uint64_t count;
  const struct known *files;
  const uint64_t *prints;
};

#define STEP_SECTORS (STEP / SECTOR)

/** As fast as memory is read, and good enough to tell what a benchmark has changed. */
static uint64_t print_of(const uint8_t *data, size_t bytes) {
  uint64_t lanes[8] = {1, 2, 3, 4, 5, 6, 7, 8}, words[8];
  for (size_t at = 0; at < bytes; at += sizeof words) {
    size_t left = bytes - at;
    if (left < sizeof words) memset(words, 0, sizeof words);
    memcpy(words, data + at, left < sizeof words ? left : sizeof words);
    for (int i = 0; i < 8; i++) lanes[i] = (lanes[i] ^ words[i]) * 0x9e3779b97f4a7c15ull;
  }
  uint64_t print = bytes;
  for (int i = 0; i < 8; i++) print = (print ^ lanes[i] ^ lanes[i] >> 29) * 0xbf58476d1ce4e5b9ull;
  return print;
}

static int by_inode(const void *a, const void *b) {
  const struct known *left = a, *right = b;
  return left->inode < right->inode ? -1 : left->inode > right->inode;
}

static uint64_t units(uint64_t bytes, uint64_t unit) { return (bytes + unit - 1) / unit; }
static size_t least(uint64_t a, uint64_t b) { return a < b ? a : b; }

int run_prints(const char *root, const char *path) {
  struct tree tree = walk(root, ALL);
  int folder = open_at(AT_FDCWD, root, O_RDONLY | O_DIRECTORY);
  uint64_t count = tree.files.count, sectors = 0;
  int64_t newest_ns = 0;
  struct known *known = need(calloc(count + 1, sizeof *known));
  for (uint64_t i = 0; i < count; i++) {
    struct file *file = &tree.files.at[i];
    known[i] = (struct known){file->inode, sectors, units(file->size, SECTOR)};
    sectors += known[i].sectors;
    if (file->mtime_ns > newest_ns) newest_ns = file->mtime_ns;
  }
  uint64_t *prints = need(malloc((sectors + 1) * sizeof *prints)), at = 0;
  uint8_t *buffer = aligned(SECTOR);
  for (uint64_t i = 0; i < count; i++) {
    struct file *file = &tree.files.at[i];
    int fd = open_at(folder, file->path, O_RDONLY | O_NOFOLLOW);
    for (uint64_t done = 0; done < file->size; done += SECTOR) {
      size_t bytes = least(file->size - done, SECTOR);
      read_all(fd, buffer, bytes, done);
      prints[at++] = print_of(buffer, bytes);
    }
    close(fd);
  }
  qsort(known, count, sizeof *known, by_inode);
  FILE *out = need(fopen(path, "w"));
  fwrite(&count, sizeof count, 1, out);
  fwrite(known, sizeof *known, count, out);
  fwrite(prints, sizeof *prints, sectors, out);
  if (fclose(out)) die(path);
  report_times();
  printf(",\"newestNs\":\"%ld\"}\n", newest_ns);
  return 0;
}

static struct state open_state(const char *path) {
  int fd = open_at(AT_FDCWD, path, O_RDONLY);
  const uint64_t *all = mmap(NULL, lseek(fd, 0, SEEK_END), PROT_READ, MAP_PRIVATE, fd, 0);
  if (all == MAP_FAILED) die(path);
  close(fd);
  const struct known *files = (const struct known *)(all + 1);
  return (struct state){*all, files, (const uint64_t *)(files + *all)};
}

struct comparing {
  struct tree tree;
  struct state state;
  int root;
  atomic_size_t next;
  const char *store;
  atomic_ulong added;
};

static struct comparing begin(const char *root, const char *state, int64_t since_ns) {
  struct comparing comparing = {.tree = walk(root, since_ns), .state = open_state(state)};
  comparing.root = open_at(AT_FDCWD, root, O_RDONLY | O_DIRECTORY);
  return comparing;
}

/** What a file was, or nothing. */
static struct known find(const struct state *state, const struct file *file) {
  struct known wanted = {.inode = file->inode};
  const struct known *found = bsearch(&wanted, state->files, state->count, sizeof wanted, by_inode);
  return found ? *found : wanted;
}

/** Which sectors of a step are not what they were. */
static int differences(const struct state *state, struct known known, uint64_t first, const uint8_t *data, size_t bytes,
                       uint8_t *differs) {
  int count = 0;
  for (size_t i = 0; i * SECTOR < bytes; i++) {
    uint64_t print = print_of(data + i * SECTOR, least(bytes - i * SECTOR, SECTOR));
    differs[i] = first + i >= known.sectors || state->prints[known.first + first + i] != print;
    count += differs[i];
  }
  return count;
}

/** Without the zeros at its end, which need not be stored. */
static size_t kept(const uint8_t *data, size_t bytes) {
  while (bytes > 0 && data[bytes - 1] == 0) bytes--;
  return bytes;
}

struct added {
  struct pack pack;
  uint8_t *buffer;
  size_t filled;
  uint64_t total;
};

static void add_sectors(struct added *added, const uint8_t *data, size_t bytes, const uint8_t *differs) {
  for (size_t i = 0; i * SECTOR < bytes; i++) {
    if (!differs[i]) continue;
    size_t left = kept(data + i * SECTOR, least(bytes - i * SECTOR, SECTOR));
    if (added->filled + left > LARGE) {
      write_pack(&added->pack, added->buffer, added->filled);
      added->filled = 0;
    }
    memcpy(added->buffer + added->filled, data + i * SECTOR, left);
    added->filled += left;
    added->total += left;
  }
}

static void hash_changed(const uint8_t *data, size_t bytes, const uint8_t *differs) {
  uint8_t names[STEP / BLOCK][32];
  for (size_t at = 0; at < bytes;) {
    size_t end = at;
    while (end < bytes && memchr(differs + end / SECTOR, 1, least(units(bytes - end, SECTOR), BLOCK / SECTOR)))
      end += BLOCK;
    if (end > at) hash_blocks(data + at, least(end, bytes) - at, names);
    at = end + BLOCK;
  }
}

static void back_up_changed(void *context, int index) {
  struct comparing *comparing = context;
  struct added added = {open_pack(comparing->store, index), aligned(LARGE), 0, 0};
  uint8_t *data = aligned(STEP), differs[STEP_SECTORS];
  size_t at;
  while ((at = atomic_fetch_add(&comparing->next, 1)) < comparing->tree.files.count) {
    struct file *file = &comparing->tree.files.at[at];
    struct known known = find(&comparing->state, file);
    int fd = open_at(comparing->root, file->path, O_RDONLY | O_NOFOLLOW);
    for (uint64_t done = 0; done < file->size; done += STEP) {
      size_t bytes = least(file->size - done, STEP);
      read_all(fd, data, bytes, done);
      if (!differences(&comparing->state, known, done / SECTOR, data, bytes, differs)) continue;
      hash_changed(data, bytes, differs);
      add_sectors(&added, data, bytes, differs);
    }
    close(fd);
  }
  write_pack(&added.pack, added.buffer, added.filled);
  close_pack(&added.pack);
  atomic_fetch_add(&comparing->added, added.total);
}

int run_changed(const char *root, const char *state, int64_t since_ns, const char *store) {
  struct comparing comparing = begin(root, state, since_ns);
  comparing.store = store;
  on_threads(WRITERS, back_up_changed, &comparing);
  sync_store(store);
  report_times();
  printf(",\"files\":%lu,\"added\":%lu}\n", comparing.tree.files.count, comparing.added);
  return 0;
}

#define SIZES 5

/** What would be stored if blocks had 4, 8, 16, 32 or 64 KiB: all of each in which a sector has changed, without their zeros. */
int run_compare(const char *root, const char *state, int64_t since_ns) {
  struct comparing comparing = begin(root, state, since_ns);
  uint64_t stored[SIZES] = {0}, sectors = 0, file_bytes = 0;
  uint8_t *data = aligned(STEP), differs[STEP_SECTORS];
  for (size_t at = 0; at < comparing.tree.files.count; at++) {
    struct file *file = &comparing.tree.files.at[at];
    struct known known = find(&comparing.state, file);
    int fd = open_at(comparing.root, file->path, O_RDONLY | O_NOFOLLOW);
    file_bytes += file->size;
    for (uint64_t done = 0; done < file->size; done += STEP) {
      size_t bytes = least(file->size - done, STEP), count = units(bytes, SECTOR);
      read_all(fd, data, bytes, done);
      sectors += differences(&comparing.state, known, done / SECTOR, data, bytes, differs);
      for (int size = 0; size < SIZES; size++)
        for (size_t i = 0; i < count; i++) {
          size_t wide = 1 << size, from = i / wide * wide;
          if (memchr(differs + from, 1, least(count - from, wide)))
            stored[size] += kept(data + i * SECTOR, least(bytes - i * SECTOR, SECTOR));
        }
    }
    close(fd);
  }
  report_times();
  printf(",\"files\":%lu,\"fileBytes\":%lu,\"sectors\":%lu,\"stored\":[", comparing.tree.files.count, file_bytes, sectors);
  for (int size = 0; size < SIZES; size++) printf("%s%lu", size ? "," : "", stored[size]);
  printf("]}\n");
  return 0;
}
