/* platform/posix.c: mapping, positioned reads, outputs that appear whole or not at all, links, memory. */
#define _POSIX_C_SOURCE 200809L
#define _DEFAULT_SOURCE
#define _FILE_OFFSET_BITS 64

#include "platform/platform.h"

#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/test.h"

static char folder[128];

static const char *at(const char *name) { /* one path at a time per call site */
  static char paths[4][256];
  static unsigned next;
  char *path = paths[next++ % 4];
  snprintf(path, sizeof paths[0], "%s/%s", folder, name);
  return path;
}

static void write_text(const char *path, const char *text) {
  FILE *f = fopen(path, "wb");
  if (f == NULL || fwrite(text, 1, strlen(text), f) != strlen(text) || fclose(f) != 0) {
    printf("FAIL cannot write %s\n", path);
    exit(1);
  }
}

/* Names in the folder that begin with ".slm2-": the unfinished outputs. */
static int count_temporaries(void) {
  int n = 0;
  DIR *d = opendir(folder);
  for (struct dirent *e; d != NULL && (e = readdir(d)) != NULL;) n += strncmp(e->d_name, ".slm2-", 6) == 0;
  if (d != NULL) closedir(d);
  return n;
}

static void test_reading(void) {
  slm2_error e;
  slm2_mapping m;
  slm2_file *f;
  uint64_t n = 7;
  uint8_t buffer[8] = {0};
  write_text(at("text"), "0123456789");
  write_text(at("empty"), "");
  CHECK(slm2_map(at("text"), &m, &e) == SLM2_OK && m.n == 10 && memcmp(m.bytes, "0123456789", 10) == 0);
  slm2_unmap(&m);
  CHECK(m.bytes == NULL && m.n == 0);
  CHECK(slm2_map(at("empty"), &m, &e) == SLM2_OK && m.bytes == NULL && m.n == 0);
  slm2_unmap(&m);
  CHECK(slm2_map(at("none"), &m, &e) == SLM2_E_IO && strstr(e.message, "No such file") != NULL && strstr(e.name, "none") != NULL);
  CHECK(slm2_map(folder, &m, &e) == SLM2_E_IO && strstr(e.message, "folder") != NULL);
  CHECK(slm2_map("/dev/null", &m, &e) == SLM2_E_IO && strstr(e.message, "regular") != NULL);
  CHECK(mkfifo(at("pipe"), 0600) == 0);
  CHECK(slm2_map(at("pipe"), &m, NULL) == SLM2_E_IO); /* and does not wait for a writer */

  CHECK(slm2_file_open(at("none"), &f, &n, &e) == SLM2_E_IO && n == 7);
  CHECK(slm2_file_open(at("text"), &f, &n, &e) == SLM2_OK && n == 10);
  CHECK(slm2_file_read(f, 3, buffer, 4, &e) == SLM2_OK && memcmp(buffer, "3456", 4) == 0);
  CHECK(slm2_file_read(f, 10, buffer, 0, &e) == SLM2_OK);
  CHECK(slm2_file_read(f, 8, buffer, 3, &e) == SLM2_E_IO && e.offset == 10 && strstr(e.message, "1 bytes too early") != NULL);
  CHECK(slm2_file_read(f, (uint64_t)1 << 40, buffer, 1, &e) == SLM2_E_IO);
  CHECK(slm2_file_read(f, UINT64_MAX, buffer, 1, &e) == SLM2_E_ARGUMENT);
  CHECK(slm2_file_read(f, INT64_MAX, buffer, 2, &e) == SLM2_E_ARGUMENT);
  slm2_file_close(f);
  slm2_file_close(NULL);
}

static void test_output(void) {
  slm2_error e;
  slm2_output *o, *other;
  size_t n;
  CHECK(slm2_output_create(at("out"), &o, &e) == SLM2_OK);
  CHECK(!slm2_file_exists(at("out")) && count_temporaries() == 1);
  CHECK(slm2_output_write(o, 4, "4567", 4, &e) == SLM2_OK && slm2_output_write(o, 0, "0123", 4, &e) == SLM2_OK);
  CHECK(slm2_output_write(o, UINT64_MAX, "x", 1, &e) == SLM2_E_ARGUMENT);
  CHECK(slm2_output_create(at("other"), &other, &e) == SLM2_OK && count_temporaries() == 2);
  CHECK(slm2_output_commit(o, &e) == SLM2_OK && count_temporaries() == 1);
  char *text = test_read_file(at("out"), &n);
  CHECK(n == 8 && strcmp(text, "01234567") == 0);
  free(text);
  slm2_output_abandon(other);
  slm2_output_abandon(NULL);
  CHECK(count_temporaries() == 0 && !slm2_file_exists(at("other")));

  CHECK(slm2_output_create(at("out"), &o, &e) == SLM2_OK); /* an older file stays until the commit, and replaces it then */
  CHECK(slm2_output_write(o, 0, "new", 3, &e) == SLM2_OK);
  text = test_read_file(at("out"), &n);
  CHECK(n == 8);
  free(text);
  CHECK(slm2_output_commit(o, &e) == SLM2_OK);
  text = test_read_file(at("out"), &n);
  CHECK(n == 3);
  free(text);

  CHECK(slm2_output_create(folder, &o, &e) == SLM2_E_IO && strstr(e.message, "folder") != NULL);
  CHECK(slm2_output_create("/dev/null", &o, &e) == SLM2_E_IO);
  CHECK(slm2_output_create(at("no/where"), &o, &e) == SLM2_E_IO);
  CHECK(slm2_output_create("", &o, &e) == SLM2_E_IO);
  CHECK(mkdir(at("late"), 0700) == 0 && rmdir(at("late")) == 0);
  CHECK(slm2_output_create(at("late"), &o, &e) == SLM2_OK && mkdir(at("late"), 0700) == 0);
  CHECK(slm2_output_commit(o, &e) == SLM2_E_IO && count_temporaries() == 0); /* the rename fails: nothing stays */
}

static void test_folder(void) {
  slm2_error e;
  slm2_folder *f, *g;
  slm2_output *o;
  char slash[256];
  snprintf(slash, sizeof slash, "%s/made/", folder);
  CHECK(slm2_folder_create(slash, &f, &e) == SLM2_OK && count_temporaries() == 1 && !slm2_is_directory(at("made")));
  CHECK(slm2_folder_file(f, "a", &o, &e) == SLM2_OK && slm2_output_write(o, 0, "1", 1, &e) == SLM2_OK);
  CHECK(slm2_output_commit(o, &e) == SLM2_OK);
  CHECK(slm2_folder_file(f, "b", &o, &e) == SLM2_OK && slm2_output_commit(o, &e) == SLM2_OK);
  CHECK(slm2_folder_commit(f, &e) == SLM2_OK && count_temporaries() == 0);
  CHECK(slm2_file_exists(at("made/a")) && slm2_file_exists(at("made/b")));

  CHECK(slm2_folder_create(at("made"), &f, &e) == SLM2_E_IO && strstr(e.message, "exists already") != NULL);
  CHECK(slm2_folder_create(at("text"), &f, &e) == SLM2_E_IO && strstr(e.message, "exists already") != NULL);
  CHECK(slm2_folder_create(at("no/where"), &f, &e) == SLM2_E_IO);
  CHECK(slm2_folder_create("", &f, &e) == SLM2_E_IO && slm2_folder_create("/", &f, &e) == SLM2_E_IO);

  CHECK(slm2_folder_create(at("left"), &f, &e) == SLM2_OK && slm2_folder_create(at("left"), &g, &e) == SLM2_OK);
  for (unsigned i = 0; i < SLM2_FOLDER_FILES; i++) {
    char name[2] = {(char)('0' + i), 0};
    CHECK(slm2_folder_file(f, name, &o, &e) == SLM2_OK);
    if (i % 2 == 0) CHECK(slm2_output_commit(o, &e) == SLM2_OK);
    else slm2_output_abandon(o);
  }
  CHECK(slm2_folder_file(f, "more", &o, &e) == SLM2_E_ARGUMENT);
  slm2_folder_abandon(f);
  slm2_folder_abandon(NULL);
  CHECK(count_temporaries() == 1 && !slm2_is_directory(at("left")));
  CHECK(mkdir(at("left"), 0700) == 0);
  write_text(at("left/kept"), "");
  CHECK(slm2_folder_file(g, "a", &o, &e) == SLM2_OK && slm2_output_commit(o, &e) == SLM2_OK);
  CHECK(slm2_folder_commit(g, &e) == SLM2_E_IO && count_temporaries() == 0); /* somebody was faster: theirs stays */
  CHECK(slm2_file_exists(at("left/kept")) && !slm2_file_exists(at("left/a")));
}

static void test_names(void) {
  char inner[256], outer[256];
  snprintf(inner, sizeof inner, "%s/in", folder);
  snprintf(outer, sizeof outer, "%s/text", folder);
  CHECK(mkdir(inner, 0700) == 0);
  write_text(at("in/a"), "a");
  CHECK(symlink("../text", at("in/leads_out")) == 0 && symlink("a", at("in/alias")) == 0 && symlink("in", at("door")) == 0);
  static const struct { const char *name; bool inside; } cases[] = {
    {"a", true}, {"alias", true}, {"leads_out", false}, {"none", false}, {"", false}, {".", false}, {"..", false},
    {"../text", false}, {"./a", false}, {"/etc/passwd", false},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
    CHECK_CASE(slm2_is_inside(inner, cases[i].name) == cases[i].inside, cases[i].name);
  CHECK(slm2_is_inside(at("door"), "a"));
  CHECK(!slm2_is_inside(at("none"), "a"));
  CHECK(slm2_same_file(at("in/a"), at("in/alias")) && slm2_same_file(at("in/a"), at("door/a")));
  CHECK(!slm2_same_file(at("in/a"), outer) && !slm2_same_file(at("none"), at("none")));
  CHECK(slm2_is_directory(folder) && !slm2_is_directory(outer) && !slm2_is_directory(at("none")));
  CHECK(slm2_file_exists(outer) && !slm2_file_exists(folder) && !slm2_file_exists(at("none")) && !slm2_file_exists(at("pipe")));
}

static void test_memory(void) {
  slm2_error e;
  void *p = NULL;
  CHECK(slm2_memory_reserve(1000000, &p, &e) == SLM2_OK && ((uintptr_t)p & 63) == 0);
  uint8_t *bytes = p;
  CHECK(bytes != NULL && bytes[0] == 0 && bytes[999999] == 0);
  slm2_memory_release(p, 1000000);
  slm2_memory_release(NULL, 1);
  p = &e;
  CHECK(slm2_memory_reserve(0, &p, &e) == SLM2_E_ARGUMENT);
  CHECK(slm2_memory_reserve((uint64_t)1 << 60, &p, &e) == SLM2_E_MEMORY && strstr(e.message, "1152921504606846976") != NULL);
  CHECK(p == &e);
  uint64_t a = 0, b = 0, start = slm2_clock_ns();
  CHECK(slm2_random_seed(&a, &e) == SLM2_OK && slm2_random_seed(&b, &e) == SLM2_OK && a != b);
  CHECK(slm2_clock_ns() >= start);
}

static void remove_all(const char *path) {
  DIR *d = opendir(path);
  for (struct dirent *e; d != NULL && (e = readdir(d)) != NULL;) {
    char name[512];
    if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0) continue;
    snprintf(name, sizeof name, "%s/%s", path, e->d_name);
    if (unlink(name) != 0) remove_all(name);
  }
  if (d != NULL) closedir(d);
  rmdir(path);
}

int main(int argc, char **argv) {
  (void)argc;
  snprintf(folder, sizeof folder, "%.100s-XXXXXX", argv[0]); /* beside the program, in the build folder */
  if (mkdtemp(folder) == NULL) {
    printf("FAIL cannot make %s\n", folder);
    return 1;
  }
  test_reading();
  test_output();
  test_folder();
  test_names();
  test_memory();
  remove_all(folder);
  return test_end("platform");
}
