// A restore: every stored byte is read and summed up, every file is made, and all of it is on the disk at the end.
#include "floor.h"
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

/** Written around the page cache: what is synced anyway need not be copied there first. */
#define DIRECT_BYTES (1024 * 1024)
/** Of small files of one folder, made by one thread after another: two in one folder wait for each other. */
#define FILES_AT_ONCE 1000

/** What a store has: the bytes of all files one after another, and a list of what they are. */
int run_pack(const char *root, const char *pack_path, const char *list_path) {
  struct tree tree = walk(root, ALL);
  int folder = open_at(AT_FDCWD, root, O_RDONLY | O_DIRECTORY);
  int pack = open_at(AT_FDCWD, pack_path, O_WRONLY | O_CREAT | O_EXCL);
  FILE *list = need(fopen(list_path, "w"));
  qsort(tree.files.at, tree.files.count, sizeof *tree.files.at, by_path);
  for (size_t i = 0; i < tree.folders.count; i++) fprintf(list, "d 0 0 %s\n", tree.folders.at[i].path);
  uint8_t *data = aligned(LARGE);
  uint64_t at = 0;
  for (size_t i = 0; i < tree.files.count; i++) {
    struct file *file = &tree.files.at[i];
    int fd = open_at(folder, file->path, O_RDONLY | O_NOFOLLOW);
    for (uint64_t done = 0; done < file->size;) {
      size_t bytes = file->size - done < LARGE ? file->size - done : LARGE;
      read_all(fd, data, bytes, done);
      write_all(pack, data, bytes, at);
      done += bytes;
      at += bytes;
    }
    close(fd);
    fprintf(list, "f %lu %ld %s\n", file->size, file->mtime_ns, file->path);
  }
  if (fclose(list) || close(pack)) die(list_path);
  report_times();
  printf("}\n");
  return 0;
}

/** Files that one thread makes: one that is large, or some of one folder. */
struct unit {
  size_t first, count;
  uint64_t offset, bytes;
};

struct restoring {
  struct files folders, files;
  struct unit *units;
  size_t count;
  atomic_size_t next;
  int pack, target;
};

static char *read_text(const char *path) {
  int fd = open_at(AT_FDCWD, path, O_RDONLY);
  size_t bytes = lseek(fd, 0, SEEK_END);
  char *text = need(malloc(bytes + 1));
  read_all(fd, text, bytes, 0);
  text[bytes] = 0;
  close(fd);
  return text;
}

static size_t folder_length(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash ? slash - path : 0;
}

static int joins(const struct restoring *restoring, const struct unit *unit, const struct file *file) {
  if (!unit || unit->count == FILES_AT_ONCE || unit->bytes + file->size > LARGE) return 0;
  const char *path = restoring->files.at[unit->first].path;
  size_t length = folder_length(path);
  return length == folder_length(file->path) && !strncmp(path, file->path, length);
}

static void read_list(struct restoring *restoring, const char *path) {
  uint64_t offset = 0;
  char *at = read_text(path);
  for (char *end; (end = strchr(at, '\n')); at = end + 1) {
    *end = 0;
    char *rest;
    uint64_t size = strtoull(at + 2, &rest, 10);
    int64_t mtime_ns = strtoll(rest, &rest, 10);
    struct file file = {rest + 1, size, 0, mtime_ns};
    if (*at == 'd') {
      add_file(&restoring->folders, file);
      continue;
    }
    struct unit *last = restoring->count ? &restoring->units[restoring->count - 1] : NULL;
    if (joins(restoring, last, &file)) {
      last->count++;
      last->bytes += size;
    } else {
      restoring->units = need(realloc(restoring->units, (restoring->count + 1) * sizeof *last));
      restoring->units[restoring->count++] = (struct unit){restoring->files.count, 1, offset, size};
    }
    add_file(&restoring->files, file);
    offset += size;
  }
}

static void set_times(int fd, int64_t mtime_ns) {
  struct timespec time = {mtime_ns / 1000000000, mtime_ns % 1000000000};
  struct timespec both[2] = {time, time};
  if (futimens(fd, both)) die("futimens");
}

static int create(int folder, const struct file *file, int flags) {
  const char *slash = strrchr(file->path, '/');
  return open_at(folder, slash ? slash + 1 : file->path, O_WRONLY | O_CREAT | O_EXCL | flags);
}

static atomic_uint_fast64_t sums;

/** The least that could be called a check: whoever restores has looked at every byte. */
static void sum_up(const uint8_t *data, size_t bytes) {
  uint64_t sum = 0, word;
  size_t at = 0;
  for (; at + sizeof word <= bytes; at += sizeof word) {
    memcpy(&word, data + at, sizeof word);
    sum += word;
  }
  for (; at < bytes; at++) sum += data[at];
  atomic_fetch_add(&sums, sum);
}

static void restore_large(struct restoring *restoring, int folder, const struct unit *unit, uint8_t *buffer) {
  const struct file *file = &restoring->files.at[unit->first];
  int fd = create(folder, file, O_DIRECT);
  for (uint64_t done = 0; done < file->size;) {
    size_t bytes = file->size - done < LARGE ? file->size - done : LARGE;
    for (size_t at = 0; at < bytes; at += STEP) {
      size_t step = bytes - at < STEP ? bytes - at : STEP;
      read_all(restoring->pack, buffer + at, step, unit->offset + done + at);
      sum_up(buffer + at, step);
    }
    // The end of a file that is no whole number of sectors goes through the cache.
    size_t whole = bytes / SECTOR * SECTOR;
    write_all(fd, buffer, whole, done);
    if (whole < bytes) {
      if (fcntl(fd, F_SETFL, O_WRONLY)) die("fcntl");
      write_all(fd, buffer + whole, bytes - whole, done + whole);
    }
    done += bytes;
  }
  set_times(fd, file->mtime_ns);
  close(fd);
}

static void restore_small(struct restoring *restoring, int folder, const struct unit *unit, uint8_t *buffer) {
  read_all(restoring->pack, buffer, unit->bytes, unit->offset);
  uint64_t at = 0;
  for (size_t i = 0; i < unit->count; i++) {
    const struct file *file = &restoring->files.at[unit->first + i];
    sum_up(buffer + at, file->size);
    int fd = create(folder, file, 0);
    write_all(fd, buffer + at, file->size, 0);
    set_times(fd, file->mtime_ns);
    close(fd);
    at += file->size;
  }
}

static void restore_some(void *context, int index) {
  (void)index;
  struct restoring *restoring = context;
  uint8_t *buffer = aligned(LARGE);
  size_t at;
  while ((at = atomic_fetch_add(&restoring->next, 1)) < restoring->count) {
    struct unit *unit = &restoring->units[at];
    const char *path = restoring->files.at[unit->first].path;
    char *parent = need(strndup(path, folder_length(path)));
    int folder = open_at(restoring->target, *parent ? parent : ".", O_PATH | O_DIRECTORY);
    if (unit->bytes >= DIRECT_BYTES && unit->count == 1) restore_large(restoring, folder, unit, buffer);
    else restore_small(restoring, folder, unit, buffer);
    close(folder);
    free(parent);
  }
}

int run_restore(const char *pack, const char *list, const char *target) {
  struct restoring restoring = {.pack = open_at(AT_FDCWD, pack, O_RDONLY)};
  restoring.target = open_at(AT_FDCWD, target, O_RDONLY | O_DIRECTORY);
  read_list(&restoring, list);
  for (size_t i = 0; i < restoring.folders.count; i++)
    if (mkdirat(restoring.target, restoring.folders.at[i].path, 0755)) die(restoring.folders.at[i].path);
  on_threads(WRITERS, restore_some, &restoring);
  if (syncfs(restoring.target)) die("syncfs");
  report_times();
  printf(",\"files\":%lu,\"sum\":%lu}\n", restoring.files.count, (uint64_t)sums);
  return 0;
}
