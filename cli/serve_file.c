/* cli/serve_file.c: what `slm2 serve` serves: the folder of the web app and the models. POSIX only, as the server is.
 *
 * The root is resolved once; a name below it must resolve to a regular file inside it, so no link leads out. A model
 * stays open from the start: a file that takes its name later is not what was checked.
 */
#define _POSIX_C_SOURCE 200809L
#define _XOPEN_SOURCE 700 /* realpath */
#define _DARWIN_C_SOURCE
#define _FILE_OFFSET_BITS 64

#include "cli/serve.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#ifdef __APPLE__
#include <mach-o/dyld.h>
#define st_mtim st_mtimespec
#define st_ctim st_ctimespec
#endif

#include "base/sha256.h"

/* Stored by the page itself, where it is checked: a browser's cache would keep a second copy of a model. */
static const char cache_model[] = "no-store";
/* Asked for again each time, and answered by 304. */
static const char cache_page[] = "no-cache";

typedef struct served_model {
  const char *path, *name;
  int fd;
  uint64_t n;
  struct timespec modified;
  char identity[65];
} served_model;

struct serve_files {
  char *root; /* resolved */
  served_model models[CLI_MAX_STRINGS + 1]; /* those given, and the root's demo model */
  uint32_t n_models;
  char *demo;     /* the path of the demo model */
  cli_text index; /* models/index.json */
  char index_etag[SERVE_ETAG_MAX];
};

/* --- files ---------------------------------------------------------------------- */

/* O_NONBLOCK: a named pipe must be refused, not waited for. -1 with errno. */
static int open_regular(const char *path, struct stat *st) {
  int fd;
  do fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  while (fd < 0 && errno == EINTR);
  if (fd < 0) return -1;
  if (fstat(fd, st) == 0 && S_ISREG(st->st_mode)) return fd;
  bool folder = S_ISDIR(st->st_mode);
  close(fd);
  errno = folder ? EISDIR : EINVAL;
  return -1;
}

static bool read_at(int fd, uint64_t offset, uint8_t *out, size_t n) {
  while (n > 0) {
    ssize_t got = pread(fd, out, n, (off_t)offset);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) {
      if (got == 0) errno = EIO;
      return false;
    }
    out += got;
    offset += (uint64_t)got;
    n -= (size_t)got;
  }
  return true;
}

static char *joined(const char *a, const char *b, const char *c) {
  size_t n = strlen(a) + strlen(b) + strlen(c) + 1;
  char *path = cli_alloc(n, 1);
  snprintf(path, n, "%s%s%s", a, b, c);
  return path;
}

/* realpath of a folder; NULL when it is none. */
static char *folder_at(const char *a, const char *b) {
  char *path = joined(a, b, ""), *real = realpath(path, NULL);
  struct stat st;
  free(path);
  if (real != NULL && stat(real, &st) == 0 && S_ISDIR(st.st_mode)) return real;
  free(real);
  return NULL;
}

static bool file_at(const char *folder, const char *name) {
  char *path = joined(folder, "/", name);
  bool there = slm2_file_exists(path);
  free(path);
  return there;
}

static void etag_of(const uint8_t digest[32], char out[SERVE_ETAG_MAX]) {
  out[0] = '"';
  slm2_hex(digest, 32, out + 1);
  out[65] = '"';
  out[66] = 0;
}

/* Whatever changes a file changes one of these; ctime cannot be set. Hashed, to tell nothing about the machine. */
static void etag_of_stat(const struct stat *st, char out[SERVE_ETAG_MAX]) {
  const uint64_t state[] = {
    (uint64_t)st->st_dev,          (uint64_t)st->st_ino,          (uint64_t)st->st_size,        (uint64_t)st->st_mtim.tv_sec,
    (uint64_t)st->st_mtim.tv_nsec, (uint64_t)st->st_ctim.tv_sec, (uint64_t)st->st_ctim.tv_nsec,
  };
  uint8_t digest[32];
  slm2_sha256_of(state, sizeof state, digest);
  etag_of(digest, out);
}

static bool ends_with(const char *s, const char *ending) {
  size_t n = strlen(s), m = strlen(ending);
  return n >= m && strcmp(s + n - m, ending) == 0;
}

/* --- the root ---------------------------------------------------------------------- */

/* The folder of the running program, links resolved; NULL where the system does not say. */
static char *program_folder(void) {
  char *path = NULL;
#if defined(__linux__)
  path = realpath("/proc/self/exe", NULL);
#elif defined(__APPLE__)
  char name[PATH_MAX];
  uint32_t n = sizeof name;
  if (_NSGetExecutablePath(name, &n) == 0) path = realpath(name, NULL);
#endif
  char *slash = path != NULL ? strrchr(path, '/') : NULL;
  if (slash != NULL) *slash = 0;
  return path;
}

/* Beside a built program BUILD/web, beside an installed one PREFIX/share/slm2/web. */
static int default_root(serve_files *f) {
  char *program = program_folder();
  if (program != NULL) f->root = folder_at(program, "/web");
  if (program != NULL && f->root == NULL) f->root = folder_at(program, "/../share/slm2/web");
  int code = CLI_OK;
  if (f->root == NULL)
    code = cli_complain(CLI_FAILED, "serve", "there is no web app at %.300s/web: make web builds it; or give --root DIR",
                        program != NULL ? program : ".");
  free(program);
  return code;
}

static int open_root(serve_files *f, const char *given) {
  if (given == NULL) {
    int code = default_root(f);
    if (code != CLI_OK) return code;
  } else if ((f->root = folder_at(given, "")) == NULL) {
    return cli_complain(CLI_FAILED, given, "is not a folder that can be read");
  }
  return file_at(f->root, "index.html") ? CLI_OK : cli_complain(CLI_FAILED, f->root, "has no index.html");
}

/* --- the models ---------------------------------------------------------------------- */

static slm2_status io_fail(slm2_error *error) {
  *error = (slm2_error){.code = SLM2_E_IO, .operation = "read", .offset = UINT64_MAX};
  snprintf(error->message, sizeof error->message, "%s", strerror(errno));
  return SLM2_E_IO;
}

/* Header and length are checked, as `slm2 inspect` does; the data is for the receiver to verify. */
static slm2_status check_model(served_model *m, slm2_error *error) {
  uint8_t first[8] = {0}, digest[32];
  uint64_t n;
  slm2_header header;
  if (!read_at(m->fd, 0, first, m->n < 8 ? (size_t)m->n : 8)) return io_fail(error);
  slm2_status status = slm2_header_length(first, m->n, &n, error);
  if (status != SLM2_OK) return status;
  uint8_t *json = cli_alloc((size_t)n, 1);
  status = read_at(m->fd, 8, json, (size_t)n) ? slm2_header_parse(json, (size_t)n, m->n, &header, error) : io_fail(error);
  if (status == SLM2_OK) {
    slm2_header_identity(json, (size_t)n, digest);
    slm2_hex(digest, sizeof digest, m->identity);
  }
  free(json);
  return status;
}

/* In URL form: everything but unreserved characters as %XX. */
static void add_encoded(cli_text *t, const char *name) {
  for (const char *p = name; *p != 0; p++) {
    unsigned char c = (unsigned char)*p;
    bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || strchr("-._~", c) != NULL;
    cli_text_print(t, plain ? "%c" : "%%%02X", c);
  }
}

static int check_name(const serve_files *f, const served_model *m) {
  cli_text url = {0};
  char decoded[SERVE_PATH_MAX];
  cli_text_puts(&url, "/models/");
  add_encoded(&url, m->name);
  unsigned status = serve_path_decode(url.bytes, url.n, decoded);
  cli_text_free(&url);
  if (status != 200 || strcmp(m->name, "index.json") == 0)
    return cli_complain(CLI_FAILED, m->path, "a model cannot be served under this name; rename it");
  for (uint32_t i = 0; i < f->n_models; i++)
    if (strcmp(f->models[i].name, m->name) == 0)
      return cli_complain(CLI_USAGE, m->path, "is called %.200s, as %.300s is: both would have one address", m->name,
                          f->models[i].path);
  return CLI_OK;
}

static int add_model(serve_files *f, const char *path) {
  const char *slash = strrchr(path, '/');
  served_model *m = &f->models[f->n_models];
  *m = (served_model){.path = path, .name = slash != NULL ? slash + 1 : path, .fd = -1};
  int code = check_name(f, m);
  if (code != CLI_OK) return code;
  struct stat st;
  m->fd = open_regular(path, &st);
  if (m->fd < 0 && errno == EISDIR) return cli_complain(CLI_FAILED, path, "is a folder, not a file");
  if (m->fd < 0) return cli_complain(CLI_FAILED, path, "%s", errno == EINVAL ? "is not a regular file" : strerror(errno));
  f->n_models++; /* closed with the others from here on */
  m->n = (uint64_t)st.st_size;
  m->modified = st.st_mtim;
  slm2_error error = {0};
  return check_model(m, &error) == SLM2_OK ? CLI_OK : cli_fail_in(path, &error);
}

/* The root's own model is served as one, unless another was given by its name. */
static int add_demo(serve_files *f) {
  for (uint32_t i = 0; i < f->n_models; i++)
    if (strcmp(f->models[i].name, "demo.slm2") == 0) return CLI_OK;
  f->demo = joined(f->root, "/models/demo.slm2", "");
  return slm2_file_exists(f->demo) ? add_model(f, f->demo) : CLI_OK;
}

static void write_index(serve_files *f) {
  cli_text *t = &f->index;
  cli_text_puts(t, "{\"models\":[");
  for (uint32_t i = 0; i < f->n_models; i++) {
    const served_model *m = &f->models[i];
    cli_text_puts(t, i > 0 ? ",{\"name\":" : "{\"name\":");
    cli_text_json(t, m->name, strlen(m->name));
    cli_text_print(t, ",\"bytes\":%llu,\"identity\":\"%s\",\"url\":\"", (unsigned long long)m->n, m->identity);
    add_encoded(t, m->name);
    cli_text_puts(t, "\"}");
  }
  cli_text_puts(t, "]}\n");
  uint8_t digest[32];
  slm2_sha256_of(t->bytes, t->n, digest);
  etag_of(digest, f->index_etag);
}

/* --- opening and finding ---------------------------------------------------------------- */

int serve_files_open(const char *root, const cli_strings *models, serve_files **out) {
  serve_files *f = cli_alloc(1, sizeof *f);
  int code = open_root(f, root);
  for (uint32_t i = 0; code == CLI_OK && i < models->n; i++) code = add_model(f, models->at[i]);
  if (code == CLI_OK) code = add_demo(f);
  if (code == CLI_OK) {
    write_index(f);
    *out = f;
  } else {
    serve_files_close(f);
  }
  return code;
}

void serve_files_close(serve_files *f) {
  for (uint32_t i = 0; i < f->n_models; i++) close(f->models[i].fd);
  cli_text_free(&f->index);
  free(f->demo);
  free(f->root);
  free(f);
}

uint32_t serve_files_models(const serve_files *f) { return f->n_models; }

void serve_entity_close(const serve_entity *entity) {
  if (entity->fd >= 0) close(entity->fd);
}

/* A model's bytes are those of its identity, or nothing. */
static unsigned find_model(const served_model *m, serve_entity *out) {
  struct stat st;
  if (fstat(m->fd, &st) != 0 || (uint64_t)st.st_size != m->n || st.st_mtim.tv_sec != m->modified.tv_sec ||
      st.st_mtim.tv_nsec != m->modified.tv_nsec)
    return 500;
  *out = (serve_entity){.fd = fcntl(m->fd, F_DUPFD_CLOEXEC, 0), .n = m->n, .cache = cache_model};
  out->type = "application/octet-stream";
  snprintf(out->etag, sizeof out->etag, "\"%s\"", m->identity);
  return out->fd < 0 ? 500 : 200;
}

/* name below folder, when it resolves to a regular file inside it. */
static unsigned find_file(const char *folder, const char *name, serve_entity *out) {
  size_t n = strlen(name), n_folder = strlen(folder);
  char *path = joined(folder, "/", name);
  if (n == 0 || name[n - 1] == '/') {
    char *index = joined(path, "index.html", "");
    free(path);
    path = index;
  }
  char *real = realpath(path, NULL);
  struct stat st;
  int fd = -1;
  errno = 0;
  bool inside = real != NULL && strncmp(real, folder, n_folder) == 0 && (real[n_folder] == '/' || n_folder == 1);
  if (inside) fd = open_regular(real, &st);
  int code = errno;
  if (fd >= 0) {
    *out = (serve_entity){.fd = fd, .n = (uint64_t)st.st_size, .type = serve_mime(path)};
    out->cache = ends_with(path, ".slm2") ? cache_model : cache_page;
    etag_of_stat(&st, out->etag);
  }
  free(real);
  free(path);
  if (fd >= 0) return 200;
  return inside && (code == EMFILE || code == ENFILE || code == EIO || code == ENOMEM) ? 500 : 404;
}

unsigned serve_files_find(const serve_files *f, const char *name, serve_entity *out) {
  if (strcmp(name, "models/index.json") == 0) {
    *out = (serve_entity){.fd = -1, .bytes = f->index.bytes, .n = f->index.n, .type = serve_mime(name), .cache = cache_page};
    memcpy(out->etag, f->index_etag, sizeof out->etag);
    return 200;
  }
  for (uint32_t i = 0; strncmp(name, "models/", 7) == 0 && i < f->n_models; i++)
    if (strcmp(name + 7, f->models[i].name) == 0) return find_model(&f->models[i], out);
  return find_file(f->root, name, out);
}
