// Every directory is read and every entry is looked at, by two threads that take whole directories.
#include "floor.h"
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

struct walking {
  const char *root;
  int64_t since_ns;
  pthread_mutex_t lock;
  pthread_cond_t changed;
  /** Directories that nobody has read yet, and how many are being read. */
  char **waiting;
  size_t count, room, busy;
  struct tree found[WALKERS];
};

void add_file(struct files *files, struct file file) {
  if (files->count == files->room) {
    files->room = files->room ? files->room * 2 : 256;
    files->at = need(realloc(files->at, files->room * sizeof file));
  }
  files->at[files->count++] = file;
}

static void add_folder(struct walking *walking, char *path) {
  pthread_mutex_lock(&walking->lock);
  if (walking->count == walking->room) {
    walking->room = walking->room ? walking->room * 2 : 256;
    walking->waiting = need(realloc(walking->waiting, walking->room * sizeof path));
  }
  walking->waiting[walking->count++] = path;
  pthread_cond_signal(&walking->changed);
  pthread_mutex_unlock(&walking->lock);
}

/** NULL once there is none left and nobody can find another. */
static char *take_folder(struct walking *walking, int is_done_with_one) {
  pthread_mutex_lock(&walking->lock);
  if (is_done_with_one && --walking->busy == 0) pthread_cond_broadcast(&walking->changed);
  while (walking->count == 0 && walking->busy > 0) pthread_cond_wait(&walking->changed, &walking->lock);
  char *path = walking->count > 0 ? walking->waiting[--walking->count] : NULL;
  if (path) walking->busy++;
  pthread_mutex_unlock(&walking->lock);
  return path;
}

static char *join(const char *folder, const char *name) {
  char *path;
  if (asprintf(&path, "%s%s%s", folder, *folder ? "/" : "", name) < 0) die("memory");
  return path;
}

static void look(struct walking *walking, struct tree *found, int fd, const char *folder, const char *name) {
  struct statx stats;
  unsigned asked = STATX_TYPE | STATX_MODE | STATX_SIZE | STATX_MTIME | STATX_CTIME | STATX_INO;
  if (statx(fd, name, AT_SYMLINK_NOFOLLOW | AT_STATX_DONT_SYNC, asked, &stats)) die(name);
  int64_t mtime_ns = stats.stx_mtime.tv_sec * 1000000000ll + stats.stx_mtime.tv_nsec;
  found->entries++;
  if (S_ISDIR(stats.stx_mode)) {
    char *path = join(folder, name);
    add_file(&found->folders, (struct file){path, 0, stats.stx_ino, mtime_ns});
    add_folder(walking, path);
  } else if (S_ISREG(stats.stx_mode)) {
    found->bytes += stats.stx_size;
    if (mtime_ns >= walking->since_ns && walking->since_ns != NONE)
      add_file(&found->files, (struct file){join(folder, name), stats.stx_size, stats.stx_ino, mtime_ns});
  }
}

static void read_folder(struct walking *walking, struct tree *found, int root, const char *folder) {
  char buffer[65536];
  int fd = open_at(root, *folder ? folder : ".", O_RDONLY | O_DIRECTORY);
  long bytes;
  while ((bytes = syscall(SYS_getdents64, fd, buffer, sizeof buffer)) > 0)
    for (long at = 0; at < bytes;) {
      struct dirent64 *entry = (struct dirent64 *)(buffer + at);
      at += entry->d_reclen;
      const char *name = entry->d_name;
      if (strcmp(name, ".") && strcmp(name, "..")) look(walking, found, fd, folder, name);
    }
  if (bytes < 0) die(folder);
  close(fd);
}

static void walk_some(void *context, int index) {
  struct walking *walking = context;
  int root = open_at(AT_FDCWD, walking->root, O_RDONLY | O_DIRECTORY);
  char *folder = take_folder(walking, 0);
  for (; folder; folder = take_folder(walking, 1)) read_folder(walking, &walking->found[index], root, folder);
  close(root);
}

int by_path(const void *a, const void *b) {
  return strcmp(((const struct file *)a)->path, ((const struct file *)b)->path);
}

struct tree walk(const char *root, int64_t since_ns) {
  struct walking walking = {.root = root, .since_ns = since_ns};
  pthread_mutex_init(&walking.lock, NULL);
  pthread_cond_init(&walking.changed, NULL);
  add_folder(&walking, "");
  on_threads(WALKERS, walk_some, &walking);
  struct tree all = walking.found[0];
  for (int i = 1; i < WALKERS; i++) {
    struct tree *other = &walking.found[i];
    all.entries += other->entries;
    all.bytes += other->bytes;
    for (size_t at = 0; at < other->files.count; at++) add_file(&all.files, other->files.at[at]);
    for (size_t at = 0; at < other->folders.count; at++) add_file(&all.folders, other->folders.at[at]);
  }
  // A folder before what it holds.
  qsort(all.folders.at, all.folders.count, sizeof *all.folders.at, by_path);
  return all;
}
