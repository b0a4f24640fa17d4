/* platform/posix.c: platform.h for Linux, macOS and the BSDs. Owns file descriptors, mappings and signal handlers;
 * knows nothing of models. Standards: POSIX.1-2008 and MAP_ANONYMOUS.
 *
 * Signals: one handler serves SIGINT, SIGTERM and SIGHUP. It calls the user's interrupt function when there is
 * one; otherwise it removes the temporary files of unfinished outputs and lets the signal end the program.
 * Another one serves SIGBUS, which is how a mapped file that lost its end makes itself known.
 */
#define _POSIX_C_SOURCE 200809L
#define _DEFAULT_SOURCE   /* MAP_ANONYMOUS on glibc */
#define _DARWIN_C_SOURCE  /* the same on macOS */
#define _FILE_OFFSET_BITS 64

#include "platform/platform.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h> /* rename */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"

#define IO_PIECE ((size_t)1 << 30) /* one read or write call: some systems refuse more than 2^31 bytes */

static slm2_status io_fail(slm2_error *error, const char *operation, const char *path, int code) {
  return slm2_fail(error, code == ENOMEM ? SLM2_E_MEMORY : SLM2_E_IO, operation, path, SLM2_NO_OFFSET, "%s", strerror(code));
}

static slm2_status refuse_kind(const char *operation, const char *path, mode_t mode, slm2_error *error) {
  return slm2_fail(error, SLM2_E_IO, operation, path, SLM2_NO_OFFSET, "%s",
                   S_ISDIR(mode) ? "is a folder, not a file" : "is not a regular file");
}

/* --- reading -------------------------------------------------------------- */

/* O_NONBLOCK: opening a named pipe must refuse it, not wait for its writer. */
static slm2_status open_regular(const char *path, int *out, uint64_t *n_bytes, slm2_error *error) {
  int fd;
  do fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  while (fd < 0 && errno == EINTR);
  if (fd < 0) return io_fail(error, "open", path, errno);
  struct stat st;
  if (fstat(fd, &st) != 0) {
    int code = errno;
    close(fd);
    return io_fail(error, "open", path, code);
  }
  if (!S_ISREG(st.st_mode)) {
    close(fd);
    return refuse_kind("open", path, st.st_mode, error);
  }
  *out = fd;
  *n_bytes = (uint64_t)st.st_size;
  return SLM2_OK;
}

slm2_status slm2_map(const char *path, slm2_mapping *out, slm2_error *error) {
  int fd;
  uint64_t n;
  SLM2_TRY(open_regular(path, &fd, &n, error));
  void *p = NULL;
  int code = 0;
  if (n > SIZE_MAX) code = EFBIG;
  else if (n > 0) {
    p = mmap(NULL, (size_t)n, PROT_READ, MAP_PRIVATE, fd, 0);
    if (p == MAP_FAILED) code = errno;
  }
  close(fd);
  if (code != 0) return io_fail(error, "map", path, code);
  *out = (slm2_mapping){p, n, NULL};
  return SLM2_OK;
}

void slm2_unmap(slm2_mapping *mapping) {
  /* munmap takes a pointer to non-const; the bytes themselves stay untouched. */
  if (mapping->bytes != NULL) munmap((void *)(uintptr_t)mapping->bytes, (size_t)mapping->n);
  *mapping = (slm2_mapping){NULL, 0, NULL};
}

struct slm2_file {
  int fd;
  char path[];
};

slm2_status slm2_file_open(const char *path, slm2_file **out, uint64_t *n_bytes, slm2_error *error) {
  int fd;
  uint64_t n;
  SLM2_TRY(open_regular(path, &fd, &n, error));
  size_t length = strlen(path) + 1;
  slm2_file *file = malloc(sizeof *file + length);
  if (file == NULL) {
    close(fd);
    return io_fail(error, "open", path, ENOMEM);
  }
  file->fd = fd;
  memcpy(file->path, path, length);
  *out = file;
  *n_bytes = n;
  return SLM2_OK;
}

slm2_status slm2_file_read(slm2_file *file, uint64_t offset, void *buffer, size_t n, slm2_error *error) {
  if (offset > INT64_MAX || n > (uint64_t)INT64_MAX - offset)
    return slm2_fail(error, SLM2_E_ARGUMENT, "read", file->path, offset, "%u bytes reach beyond 64-bit file offsets",
                     (uint64_t)n);
  uint8_t *p = buffer;
  while (n > 0) {
    ssize_t got = pread(file->fd, p, n < IO_PIECE ? n : IO_PIECE, (off_t)offset);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return io_fail(error, "read", file->path, errno);
    if (got == 0) return slm2_fail(error, SLM2_E_IO, "read", file->path, offset, "the file ends %u bytes too early", (uint64_t)n);
    p += got;
    offset += (uint64_t)got;
    n -= (size_t)got;
  }
  return SLM2_OK;
}

void slm2_file_close(slm2_file *file) {
  if (file == NULL) return;
  close(file->fd);
  free(file);
}

/* --- signals and unfinished outputs --------------------------------------- */

struct slm2_output {
  slm2_output *next; /* in the list of unfinished outputs */
  int fd;
  char *path;
  char *temporary;
  char *folder;
};

struct slm2_folder {
  slm2_folder *next; /* in the list of unfinished folders */
  char *path;
  char *temporary;
  char *parent;
  char *files[SLM2_FOLDER_FILES]; /* paths in the temporary */
  size_t n_files;
};

/* The handler walks these lists, so they change only while the signals are blocked. */
static slm2_output *volatile unfinished;
static slm2_folder *volatile unfinished_folders;
static _Atomic(uintptr_t) interrupt_handler; /* the user's function; atomic because the handler reads it */

static const int ending_signals[] = {SIGINT, SIGTERM, SIGHUP};
#define N_ENDING (sizeof ending_signals / sizeof ending_signals[0])

static void remove_unfinished(void) {
  for (slm2_output *o = unfinished; o != NULL; o = o->next) unlink(o->temporary);
  for (slm2_folder *f = unfinished_folders; f != NULL; f = f->next) {
    for (size_t i = 0; i < f->n_files; i++) unlink(f->files[i]);
    rmdir(f->temporary);
  }
}

static void on_signal(int number) {
  int saved = errno;
  uintptr_t handler = atomic_load(&interrupt_handler);
  if (number == SIGINT && handler != 0) {
    ((void (*)(void))handler)();
  } else {
    remove_unfinished();
    signal(number, SIG_DFL);
    raise(number); /* delivered when this handler returns */
  }
  errno = saved;
}

/* A mapped file that somebody cuts short, or whose disk fails: the read that meets it cannot go on, so the program ends
 * as after any other failure, with one line, exit code 1 and nothing left. */
static void on_bus_error(int number) {
  static const char line[] = "slm2: read: a file was cut short, or its disk failed, while it was in use\n";
  (void)number;
  remove_unfinished();
  ssize_t written = write(2, line, sizeof line - 1);
  (void)written;
  _exit(1);
}

/* No SA_RESTART: a Ctrl-C must end a blocking read of the terminal. A signal that the parent
 * told us to ignore (nohup) stays ignored. */
static void install_handlers(void) {
  for (size_t i = 0; i < N_ENDING; i++) {
    struct sigaction old;
    if (sigaction(ending_signals[i], NULL, &old) != 0 || old.sa_handler != SIG_DFL) continue;
    struct sigaction action = {.sa_handler = on_signal};
    sigemptyset(&action.sa_mask);
    sigaction(ending_signals[i], &action, NULL);
  }
}

static void block_signals(sigset_t *old) {
  sigset_t set;
  sigemptyset(&set);
  for (size_t i = 0; i < N_ENDING; i++) sigaddset(&set, ending_signals[i]);
  sigprocmask(SIG_BLOCK, &set, old);
}

void slm2_on_interrupt(void (*handler)(void)) {
  atomic_store(&interrupt_handler, (uintptr_t)handler);
  if (handler != NULL) install_handlers();
}

/* --- output --------------------------------------------------------------- */

/* The folder of path, "." when it names none: the temporary must be on the same file system. */
static char *folder_of(const char *path) {
  const char *slash = strrchr(path, '/');
  if (slash == NULL) return strdup(".");
  size_t n = slash == path ? 1 : (size_t)(slash - path);
  char *folder = malloc(n + 1);
  if (folder == NULL) return NULL;
  memcpy(folder, path, n);
  folder[n] = 0;
  return folder;
}

/* "<folder>/.slm2-<16 hex digits>.tmp": its length does not depend on the name being made. */
static char *temporary_name(const char *folder, uint64_t random) {
  static const char digits[] = "0123456789abcdef";
  size_t n = strlen(folder);
  char *name = malloc(n + 32);
  if (name == NULL) return NULL;
  memcpy(name, folder, n);
  memcpy(name + n, "/.slm2-", 7);
  for (int i = 0; i < 16; i++) name[n + 7 + (size_t)i] = digits[random >> (60 - 4 * i) & 15];
  memcpy(name + n + 23, ".tmp", 5);
  return name;
}

static void free_output(slm2_output *o) {
  if (o == NULL) return;
  free(o->path);
  free(o->temporary);
  free(o->folder);
  free(o);
}

/* Opens a new temporary and lists it, with the signals blocked so that none is ever left unlisted. */
static slm2_status open_temporary(slm2_output *o, slm2_error *error) {
  for (int attempt = 0; attempt < 16; attempt++) {
    uint64_t random;
    SLM2_TRY(slm2_random_seed(&random, error));
    free(o->temporary);
    o->temporary = temporary_name(o->folder, random);
    if (o->temporary == NULL) return io_fail(error, "create", o->path, ENOMEM);
    sigset_t old;
    block_signals(&old);
    o->fd = open(o->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    int code = errno;
    if (o->fd >= 0) {
      o->next = unfinished;
      unfinished = o;
    }
    sigprocmask(SIG_SETMASK, &old, NULL);
    if (o->fd >= 0) return SLM2_OK;
    if (code != EEXIST && code != EINTR) return io_fail(error, "create", o->path, code);
  }
  return slm2_fail(error, SLM2_E_IO, "create", o->path, SLM2_NO_OFFSET, "16 temporary names in its folder are all taken");
}

static void register_cleaning(void) {
  static bool registered;
  install_handlers();
  if (!registered) registered = atexit(remove_unfinished) == 0;
}

slm2_status slm2_output_create(const char *path, slm2_output **out, slm2_error *error) {
  struct stat st;
  if (path[0] == 0) return io_fail(error, "create", "output", ENOENT);
  if (stat(path, &st) == 0 && !S_ISREG(st.st_mode)) return refuse_kind("create", path, st.st_mode, error);
  register_cleaning();
  slm2_output *o = calloc(1, sizeof *o);
  if (o != NULL) {
    o->path = strdup(path);
    o->folder = folder_of(path);
  }
  if (o == NULL || o->path == NULL || o->folder == NULL) {
    free_output(o);
    return io_fail(error, "create", path, ENOMEM);
  }
  slm2_status status = open_temporary(o, error);
  if (status != SLM2_OK) {
    free_output(o);
    return status;
  }
  *out = o;
  return SLM2_OK;
}

slm2_status slm2_output_write(slm2_output *o, uint64_t offset, const void *bytes, size_t n, slm2_error *error) {
  if (offset > INT64_MAX || n > (uint64_t)INT64_MAX - offset)
    return slm2_fail(error, SLM2_E_ARGUMENT, "write", o->path, offset, "%u bytes reach beyond 64-bit file offsets", (uint64_t)n);
  const uint8_t *p = bytes;
  while (n > 0) {
    ssize_t put = pwrite(o->fd, p, n < IO_PIECE ? n : IO_PIECE, (off_t)offset);
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return io_fail(error, "write", o->path, errno);
    if (put == 0) return io_fail(error, "write", o->path, ENOSPC);
    p += put;
    offset += (uint64_t)put;
    n -= (size_t)put;
  }
  return SLM2_OK;
}

/* Takes o off the list and removes or renames its temporary, all between two signals. Returns 0 or errno. */
static int settle(slm2_output *o, bool keep) {
  sigset_t old;
  block_signals(&old);
  int code = 0;
  if (!keep || rename(o->temporary, o->path) != 0) {
    code = keep ? errno : 0;
    unlink(o->temporary);
  }
  slm2_output *volatile *at = &unfinished;
  while (*at != o) at = &(*at)->next;
  *at = o->next;
  sigprocmask(SIG_SETMASK, &old, NULL);
  return code;
}

/* The rename is durable once its folder is synced. Some file systems cannot sync a folder: EINVAL is no failure. */
static int sync_folder(const char *folder) {
  int fd = open(folder, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return errno == EACCES ? 0 : errno;
  int code = fsync(fd) == 0 || errno == EINVAL || errno == ENOTSUP ? 0 : errno;
  close(fd);
  return code;
}

slm2_status slm2_output_commit(slm2_output *o, slm2_error *error) {
  int code = 0;
  while (fsync(o->fd) != 0) {
    if (errno == EINTR) continue;
    code = errno;
    break;
  }
  if (close(o->fd) != 0 && code == 0 && errno != EINTR) code = errno;
  int settled = settle(o, code == 0);
  if (code == 0) code = settled;
  if (code == 0) code = sync_folder(o->folder);
  slm2_status status = code == 0 ? SLM2_OK : io_fail(error, "commit", o->path, code);
  free_output(o);
  return status;
}

void slm2_output_abandon(slm2_output *o) {
  if (o == NULL) return;
  close(o->fd);
  settle(o, false);
  free_output(o);
}

/* --- folders -------------------------------------------------------------- */

static void free_folder(slm2_folder *f) {
  if (f == NULL) return;
  for (size_t i = 0; i < f->n_files; i++) free(f->files[i]);
  free(f->path);
  free(f->temporary);
  free(f->parent);
  free(f);
}

/* Makes the temporary and lists it, as open_temporary does. */
static slm2_status make_temporary(slm2_folder *f, slm2_error *error) {
  for (int attempt = 0; attempt < 16; attempt++) {
    uint64_t random;
    SLM2_TRY(slm2_random_seed(&random, error));
    free(f->temporary);
    f->temporary = temporary_name(f->parent, random);
    if (f->temporary == NULL) return io_fail(error, "create", f->path, ENOMEM);
    sigset_t old;
    block_signals(&old);
    int code = mkdir(f->temporary, 0777) == 0 ? 0 : errno;
    if (code == 0) {
      f->next = unfinished_folders;
      unfinished_folders = f;
    }
    sigprocmask(SIG_SETMASK, &old, NULL);
    if (code == 0) return SLM2_OK;
    if (code != EEXIST) return io_fail(error, "create", f->path, code);
  }
  return slm2_fail(error, SLM2_E_IO, "create", f->path, SLM2_NO_OFFSET, "16 temporary names in its folder are all taken");
}

slm2_status slm2_folder_create(const char *path, slm2_folder **out, slm2_error *error) {
  struct stat st;
  size_t n = strlen(path);
  while (n > 1 && path[n - 1] == '/') n--;
  if (n == 0) return io_fail(error, "create", "folder", ENOENT);
  if (lstat(path, &st) == 0)
    return slm2_fail(error, SLM2_E_IO, "create", path, SLM2_NO_OFFSET, "exists already; a folder is only made new");
  register_cleaning();
  slm2_folder *f = calloc(1, sizeof *f);
  if (f != NULL) f->path = strndup(path, n);
  if (f != NULL && f->path != NULL) f->parent = folder_of(f->path);
  slm2_status status = f == NULL || f->parent == NULL ? io_fail(error, "create", path, ENOMEM) : make_temporary(f, error);
  if (status != SLM2_OK) {
    free_folder(f);
    return status;
  }
  *out = f;
  return SLM2_OK;
}

slm2_status slm2_folder_file(slm2_folder *f, const char *name, slm2_output **out, slm2_error *error) {
  size_t n = strlen(f->temporary), n_name = strlen(name);
  if (f->n_files == SLM2_FOLDER_FILES)
    return slm2_fail(error, SLM2_E_ARGUMENT, "create", name, SLM2_NO_OFFSET, "more than %u files", (uint64_t)SLM2_FOLDER_FILES);
  char *path = malloc(n + n_name + 2);
  if (path == NULL) return io_fail(error, "create", name, ENOMEM);
  memcpy(path, f->temporary, n);
  path[n] = '/';
  memcpy(path + n + 1, name, n_name + 1);
  sigset_t old;
  block_signals(&old);
  f->files[f->n_files++] = path;
  sigprocmask(SIG_SETMASK, &old, NULL);
  return slm2_output_create(path, out, error);
}

/* Takes f off the list and renames its temporary or removes it. Returns 0 or errno. */
static int settle_folder(slm2_folder *f, bool keep) {
  sigset_t old;
  block_signals(&old);
  int code = 0;
  if (!keep || rename(f->temporary, f->path) != 0) {
    code = keep ? errno : 0;
    for (size_t i = 0; i < f->n_files; i++) unlink(f->files[i]);
    rmdir(f->temporary);
  }
  slm2_folder *volatile *at = &unfinished_folders;
  while (*at != f) at = &(*at)->next;
  *at = f->next;
  sigprocmask(SIG_SETMASK, &old, NULL);
  return code;
}

slm2_status slm2_folder_commit(slm2_folder *f, slm2_error *error) {
  int code = settle_folder(f, true);
  if (code == 0) code = sync_folder(f->parent);
  slm2_status status = code == 0 ? SLM2_OK : io_fail(error, "commit", f->path, code);
  free_folder(f);
  return status;
}

void slm2_folder_abandon(slm2_folder *f) {
  if (f == NULL) return;
  settle_folder(f, false);
  free_folder(f);
}

/* --- names ---------------------------------------------------------------- */

bool slm2_is_directory(const char *path) {
  struct stat st;
  return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

bool slm2_file_exists(const char *path) {
  struct stat st;
  return stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

bool slm2_is_inside(const char *dir, const char *name) {
  if (name[0] == 0 || strchr(name, '/') != NULL || strcmp(name, ".") == 0 || strcmp(name, "..") == 0) return false;
  char *root = realpath(dir, NULL);
  if (root == NULL) return false;
  size_t n = strlen(root), n_name = strlen(name);
  bool inside = false;
  char *joined = malloc(n + n_name + 2);
  if (joined != NULL) {
    memcpy(joined, root, n);
    joined[n] = '/';
    memcpy(joined + n + 1, name, n_name + 1);
    char *real = realpath(joined, NULL);
    if (real != NULL) {
      size_t at = n == 1 ? 0 : n; /* the root of the file system ends with its slash */
      inside = strncmp(real, root, n) == 0 && real[at] == '/' && strchr(real + at + 1, '/') == NULL;
      free(real);
    }
    free(joined);
  }
  free(root);
  return inside;
}

bool slm2_same_file(const char *a, const char *b) {
  struct stat x, y;
  return stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

/* --- memory, time, randomness, terminal ----------------------------------- */

/* Without MAP_NORESERVE, so that a size the machine cannot hold is refused here and not at some later touch. */
slm2_status slm2_memory_reserve(uint64_t bytes, void **out, slm2_error *error) {
  if (bytes == 0 || bytes > SIZE_MAX)
    return slm2_fail(error, bytes == 0 ? SLM2_E_ARGUMENT : SLM2_E_MEMORY, "reserve", "memory", SLM2_NO_OFFSET,
                     "%u bytes cannot be addressed", bytes);
  void *p = mmap(NULL, (size_t)bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (p == MAP_FAILED)
    return slm2_fail(error, SLM2_E_MEMORY, "reserve", "memory", SLM2_NO_OFFSET, "the system refuses %u bytes: %s", bytes,
                     strerror(errno));
  *out = p;
  return SLM2_OK;
}

void slm2_memory_release(void *mem, uint64_t bytes) {
  if (mem != NULL) munmap(mem, (size_t)bytes);
}

uint64_t slm2_clock_ns(void) {
  struct timespec t = {0, 0};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

slm2_status slm2_random_seed(uint64_t *seed, slm2_error *error) {
  static const char path[] = "/dev/urandom";
  int fd;
  do fd = open(path, O_RDONLY | O_CLOEXEC);
  while (fd < 0 && errno == EINTR);
  if (fd < 0) return io_fail(error, "random seed", path, errno);
  uint64_t value;
  ssize_t got;
  do got = read(fd, &value, sizeof value);
  while (got < 0 && errno == EINTR);
  int code = errno;
  close(fd);
  if (got != (ssize_t)sizeof value) return io_fail(error, "random seed", path, got < 0 ? code : EIO);
  *seed = value;
  return SLM2_OK;
}

bool slm2_is_terminal(int fd) { return isatty(fd) == 1; }

/* A closed pipe and a file size limit are reported by write, not by a death in the middle of cleaning up. */
void slm2_platform_start(int *argc, char ***argv) {
  (void)argc;
  (void)argv;
  signal(SIGPIPE, SIG_IGN);
  signal(SIGXFSZ, SIG_IGN);
  struct sigaction bus = {.sa_handler = on_bus_error};
  sigemptyset(&bus.sa_mask);
  sigaction(SIGBUS, &bus, NULL);
}
