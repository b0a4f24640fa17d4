/* tests/unit/test_serve.c: what `slm2 serve` makes of untrusted text: targets and paths (RFC 3986, 9112), hosts, ranges
 * (the RFC 9110, 14.1.2 examples among them), entity tags (8.8.3), types. tests/cli/serve.mjs asks the whole server.
 */
#include "cli/serve.h"
#include "tests/test.h"

static void test_targets(void) {
  static const struct {
    const char *text;
    bool good;
    const char *authority, *path, *rest;
  } cases[] = {
    {"/", true, NULL, "/", "/"},
    {"/a/b.js?x=1&y=/../", true, NULL, "/a/b.js", "/a/b.js?x=1&y=/../"},
    {"/?", true, NULL, "/", "/?"},
    {"//evil.example/x", true, NULL, "//evil.example/x", "//evil.example/x"},
    {"http://127.0.0.1:7562/a?b", true, "127.0.0.1:7562", "/a", "/a?b"},
    {"HTTPS://box.lan/", true, "box.lan", "/", "/"},
    {"http://u@h/", true, "u@h", "/", "/"},
    {"", false, 0, 0, 0}, {"*", false, 0, 0, 0}, {"a", false, 0, 0, 0}, {"?x", false, 0, 0, 0}, {"127.0.0.1:1", false, 0, 0, 0},
    {"http://", false, 0, 0, 0}, {"http:///a", false, 0, 0, 0}, {"http://h", false, 0, 0, 0}, {"http://h?x", false, 0, 0, 0},
    {"ftp://h/", false, 0, 0, 0}, {"/a b", false, 0, 0, 0}, {"/a#b", false, 0, 0, 0}, {"/\r\nX: y", false, 0, 0, 0},
    {"/\t", false, 0, 0, 0}, {"/\x7f", false, 0, 0, 0}, {"/\xc3\xa9", false, 0, 0, 0}, {"/?\xff", false, 0, 0, 0},
  };
  for (size_t i = 0; i < CLI_COUNT(cases); i++) {
    serve_target t = {0};
    bool good = serve_target_parse(cases[i].text, strlen(cases[i].text), &t);
    if (!CHECK_CASE(good == cases[i].good, cases[i].text) || !good) continue;
    CHECK_CASE(t.n_path == strlen(cases[i].path) && memcmp(t.path, cases[i].path, t.n_path) == 0, cases[i].text);
    CHECK_CASE(t.n_rest == strlen(cases[i].rest) && memcmp(t.rest, cases[i].rest, t.n_rest) == 0, cases[i].text);
    CHECK_CASE((t.authority == NULL) == (cases[i].authority == NULL), cases[i].text);
    if (t.authority != NULL && cases[i].authority != NULL)
      CHECK_CASE(t.n_authority == strlen(cases[i].authority) && memcmp(t.authority, cases[i].authority, t.n_authority) == 0,
                 cases[i].text);
  }
  serve_target t;
  CHECK(!serve_target_parse("/a\0b", 4, &t));
}

static void test_paths(void) {
  static const struct {
    const char *path;
    unsigned status;
    const char *name;
  } cases[] = {
    {"/", 200, ""}, {"/index.html", 200, "index.html"}, {"/engine/a.js", 200, "engine/a.js"}, {"/a/", 200, "a/"},
    {"/a%20b.txt", 200, "a b.txt"}, {"/%C3%a9", 200, "\xc3\xa9"}, {"/a%2Ejs", 200, "a.js"}, {"/a..b", 200, "a..b"},
    {"/a...", 200, "a..."}, {"/%7e", 200, "~"}, {"/a:b", 200, "a:b"}, {"/%25", 200, "%"}, {"/%252e%252e/a", 200, "%2e%2e/a"},
    {"", 400, 0}, {"a", 400, 0}, {"//", 400, 0}, {"//a", 400, 0}, {"/a//b", 400, 0}, {"/a//", 400, 0},
    {"/.", 400, 0}, {"/..", 400, 0}, {"/../", 400, 0}, {"/../a", 400, 0}, {"/a/../b", 400, 0}, {"/a/..", 400, 0},
    {"/a/.", 400, 0},
    {"/./a", 400, 0}, {"/%2e%2e/a", 400, 0}, {"/%2E%2E/a", 400, 0}, {"/.%2e/a", 400, 0}, {"/%2e./a", 400, 0}, {"/a/%2e", 400, 0},
    {"/..%2fa", 400, 0}, {"/..%2Fa", 400, 0}, {"/a%2fb", 400, 0}, {"/..\\a", 400, 0}, {"/..%5ca", 400, 0}, {"/%5C", 400, 0},
    {"/a%00", 400, 0}, {"/%00", 400, 0}, {"/a%00.html", 400, 0}, {"/%0a", 400, 0}, {"/%1f", 400, 0}, {"/%7f", 400, 0},
    {"/\n", 400, 0},
    {"/%", 400, 0}, {"/%2", 400, 0}, {"/%g0", 400, 0}, {"/%0g", 400, 0}, {"/%%30", 400, 0}, {"/%u002e", 400, 0}, {"/a%", 400, 0},
    {"/%c0%ae%c0%ae/a", 400, 0}, {"/%c0%af", 400, 0}, {"/%e0%80%ae", 400, 0}, {"/%ff", 400, 0}, {"/%ed%a0%80", 400, 0},
    {"/.git/config", 404, 0}, {"/a/.hidden", 404, 0}, {"/.well-known/x", 404, 0}, {"/...", 404, 0}, {"/%2egit", 404, 0},
    {"/.git/../a", 400, 0}, {"/.git/%zz", 400, 0}, {"/.a//b", 400, 0},
  };
  for (size_t i = 0; i < CLI_COUNT(cases); i++) {
    char name[SERVE_PATH_MAX] = "untouched";
    unsigned status = serve_path_decode(cases[i].path, strlen(cases[i].path), name);
    CHECK_CASE(status == cases[i].status, cases[i].path);
    CHECK_CASE(strcmp(name, status == 200 && cases[i].name != NULL ? cases[i].name : "untouched") == 0, cases[i].path);
  }
  char name[SERVE_PATH_MAX];
  CHECK(serve_path_decode("/a\0b", 4, name) == 400);
  CHECK(serve_path_decode("/ab", 2, name) == 200 && strcmp(name, "a") == 0); /* n counts, not a NUL */
  CHECK(serve_path_decode("/%41", 3, name) == 400);
  char longest[SERVE_PATH_MAX + 2];
  memset(longest, 'a', sizeof longest);
  longest[0] = '/';
  CHECK(serve_path_decode(longest, SERVE_PATH_MAX, name) == 200 && strlen(name) == SERVE_PATH_MAX - 1);
  CHECK(serve_path_decode(longest, SERVE_PATH_MAX + 1, name) == 400);
}

/* Random paths of dangerous pieces: what is accepted never leaves its folder. */
static void test_random_paths(void) {
  static const char *const pieces[] = {
    "/", ".", "..", "%2e", "%2E", "%2f", "%5c", "\\", "a", "%", "%00", "%41", "b.js", "%c0", "%ae"};
  uint64_t seed = 7562;
  unsigned bad = 0, good = 0;
  for (unsigned i = 0; i < 200000; i++) {
    char path[128] = "/", name[SERVE_PATH_MAX];
    for (unsigned n = (unsigned)(test_random(&seed) % 10); n > 0; n--)
      strcat(path, pieces[test_random(&seed) % CLI_COUNT(pieces)]);
    if (serve_path_decode(path, strlen(path), name) != 200) continue;
    good++;
    char whole[SERVE_PATH_MAX + 2];
    snprintf(whole, sizeof whole, "/%s/", name);
    bad += strstr(whole, "/../") != NULL || strstr(whole, "/./") != NULL || strchr(name, '\\') != NULL || name[0] == '/';
  }
  CHECK(bad == 0 && good > 1000);
}

static void test_hosts(void) {
  static const struct {
    const char *host;
    uint16_t port, scheme_port;
    serve_host expect;
  } cases[] = {
    {"127.0.0.1:7562", 7562, 80, SERVE_HOST_OURS}, {"[::1]:7562", 7562, 80, SERVE_HOST_OURS},
    {"box.lan:7562", 7562, 443, SERVE_HOST_OURS}, {"BOX.Lan:7562", 7562, 443, SERVE_HOST_OURS},
    {"127.0.0.1:7562 ", 7562, 80, SERVE_HOST_OURS}, {"127.0.0.1:07562", 7562, 80, SERVE_HOST_OURS},
    {"127.0.0.1", 80, 80, SERVE_HOST_OURS}, {"127.0.0.1:", 80, 80, SERVE_HOST_OURS}, {"box.lan", 443, 443, SERVE_HOST_OURS},
    {"localhost:7562", 7562, 80, SERVE_HOST_LOCALHOST}, {"LOCALHOST:7562", 7562, 80, SERVE_HOST_LOCALHOST},
    {"localhost", 80, 80, SERVE_HOST_LOCALHOST}, {"localhost:7563", 7562, 80, SERVE_HOST_FOREIGN},
    {"localhost", 7562, 80, SERVE_HOST_FOREIGN}, {"127.0.0.1", 7562, 80, SERVE_HOST_FOREIGN},
    {"127.0.0.1:", 7562, 80, SERVE_HOST_FOREIGN}, {"127.0.0.1:80", 7562, 80, SERVE_HOST_FOREIGN},
    {"127.0.0.1:73098", 7562, 80, SERVE_HOST_FOREIGN}, {"127.0.0.1:4294974858", 7562, 80, SERVE_HOST_FOREIGN},
    {"127.0.0.1:18446744073709559178", 7562, 80, SERVE_HOST_FOREIGN}, {"127.0.0.2:7562", 7562, 80, SERVE_HOST_FOREIGN},
    {"127.0.0.1.evil.example:7562", 7562, 80, SERVE_HOST_FOREIGN}, {"evil.example", 7562, 80, SERVE_HOST_FOREIGN},
    {"evil.example:7562", 7562, 80, SERVE_HOST_FOREIGN}, {"a.localhost:7562", 7562, 80, SERVE_HOST_FOREIGN},
    {"127.1:7562", 7562, 80, SERVE_HOST_FOREIGN}, {"2130706433:7562", 7562, 80, SERVE_HOST_FOREIGN},
    {"0.0.0.0:7562", 7562, 80, SERVE_HOST_FOREIGN}, {"[::ffff:127.0.0.1]:7562", 7562, 80, SERVE_HOST_FOREIGN},
    {"", 7562, 80, SERVE_HOST_BAD}, {" ", 7562, 80, SERVE_HOST_BAD}, {":7562", 7562, 80, SERVE_HOST_BAD},
    {"127.0.0.1:7562:7562", 7562, 80, SERVE_HOST_BAD}, {"::1", 7562, 80, SERVE_HOST_BAD}, {"[::1", 7562, 80, SERVE_HOST_BAD},
    {"[]:7562", 7562, 80, SERVE_HOST_BAD}, {"u@127.0.0.1:7562", 7562, 80, SERVE_HOST_BAD}, {"a/b", 7562, 80, SERVE_HOST_BAD},
    {"127.0.0.1:x", 7562, 80, SERVE_HOST_BAD}, {"127.0.0.1:-1", 7562, 80, SERVE_HOST_BAD}, {"a b:7562", 7562, 80, SERVE_HOST_BAD},
    {"127.0.0.1:7562,evil", 7562, 80, SERVE_HOST_BAD}, {"caf\xc3\xa9:7562", 7562, 80, SERVE_HOST_BAD},
  };
  static const char *const names[] = {"127.0.0.1", "[::1]", "box.lan"};
  for (size_t i = 0; i < CLI_COUNT(cases); i++)
    CHECK_CASE(serve_host_check(cases[i].host, strlen(cases[i].host), names, 3, cases[i].port, cases[i].scheme_port) ==
               cases[i].expect, cases[i].host);
}

static void test_ranges(void) {
  static const struct {
    const char *text;
    uint64_t size;
    serve_range expect;
    uint64_t first, count;
  } cases[] = {
    {"bytes=0-499", 10000, SERVE_PART, 0, 500}, {"bytes=500-999", 10000, SERVE_PART, 500, 500},
    {"bytes=-500", 10000, SERVE_PART, 9500, 500}, {"bytes=9500-", 10000, SERVE_PART, 9500, 500},
    {"bytes=0-0", 10000, SERVE_PART, 0, 1}, {"bytes=0-0,-1", 10000, SERVE_WHOLE, 0, 0},
    {"bytes= 0-999, 4500-5499, -1000", 10000, SERVE_WHOLE, 0, 0}, {"bytes=500-600,601-999", 10000, SERVE_WHOLE, 0, 0},
    {"bytes=0-", 1, SERVE_PART, 0, 1}, {"bytes=9999-9999", 10000, SERVE_PART, 9999, 1},
    {"bytes=9999-", 10000, SERVE_PART, 9999, 1},
    {"bytes=0-9999", 10000, SERVE_PART, 0, 10000}, {"bytes=0-10000", 10000, SERVE_PART, 0, 10000},
    {"bytes=1-18446744073709551615", 10000, SERVE_PART, 1, 9999}, {"bytes=1-99999999999999999999999", 10000, SERVE_PART, 1, 9999},
    {"bytes=-10000", 10000, SERVE_PART, 0, 10000}, {"bytes=-99999999999999999999999", 10000, SERVE_PART, 0, 10000},
    {"bytes=-1", 10000, SERVE_PART, 9999, 1}, {"BYTES=0-1", 10000, SERVE_PART, 0, 2}, {"bytes=007-0008", 10000, SERVE_PART, 7, 2},
    {"bytes=0-1 ", 10000, SERVE_PART, 0, 2}, {"bytes=\t0-1", 10000, SERVE_PART, 0, 2}, {"bytes=,0-1,, ", 10000, SERVE_PART, 0, 2},
    {"bytes=4831838208-", 4831838209, SERVE_PART, 4831838208, 1},
    {"bytes=18446744073709551614-18446744073709551614", UINT64_MAX, SERVE_PART, UINT64_MAX - 1, 1},
    {"bytes=10000-", 10000, SERVE_UNSATISFIABLE, 0, 0}, {"bytes=10000-10001", 10000, SERVE_UNSATISFIABLE, 0, 0},
    {"bytes=-0", 10000, SERVE_UNSATISFIABLE, 0, 0}, {"bytes=99999999999999999999999-", 10000, SERVE_UNSATISFIABLE, 0, 0},
    {"bytes=18446744073709551615-", UINT64_MAX, SERVE_UNSATISFIABLE, 0, 0},
    {"bytes=0-", 0, SERVE_UNSATISFIABLE, 0, 0}, {"bytes=-0", 0, SERVE_UNSATISFIABLE, 0, 0}, {"bytes=-5", 0, SERVE_WHOLE, 0, 0},
    {"", 10000, SERVE_WHOLE, 0, 0}, {"bytes", 10000, SERVE_WHOLE, 0, 0}, {"bytes=", 10000, SERVE_WHOLE, 0, 0},
    {"bytes=-", 10000, SERVE_WHOLE, 0, 0}, {"bytes=1", 10000, SERVE_WHOLE, 0, 0}, {"bytes=2-1", 10000, SERVE_WHOLE, 0, 0},
    {"bytes=a-b", 10000, SERVE_WHOLE, 0, 0}, {"bytes=1-b", 10000, SERVE_WHOLE, 0, 0}, {"bytes=--1", 10000, SERVE_WHOLE, 0, 0},
    {"bytes=+1-2", 10000, SERVE_WHOLE, 0, 0}, {"bytes=1 -2", 10000, SERVE_WHOLE, 0, 0}, {"bytes=1- 2", 10000, SERVE_WHOLE, 0, 0},
    {"bytes =0-1", 10000, SERVE_WHOLE, 0, 0}, {"lines=0-1", 10000, SERVE_WHOLE, 0, 0}, {"bytes=0-1;x", 10000, SERVE_WHOLE, 0, 0},
    {"bytes=0-1 2-3", 10000, SERVE_WHOLE, 0, 0}, {"bytes=0x1-2", 10000, SERVE_WHOLE, 0, 0},
    {"bytes=0-1,x", 10000, SERVE_WHOLE, 0, 0},
    {"bytes=20000-,0-1", 10000, SERVE_WHOLE, 0, 0},
  };
  for (size_t i = 0; i < CLI_COUNT(cases); i++) {
    uint64_t first = 111, count = 222;
    serve_range range = serve_range_parse(cases[i].text, strlen(cases[i].text), cases[i].size, &first, &count);
    CHECK_CASE(range == cases[i].expect, cases[i].text);
    if (range == SERVE_PART) CHECK_CASE(first == cases[i].first && count == cases[i].count, cases[i].text);
    else CHECK_CASE(first == 111 && count == 222, cases[i].text);
  }
}

static void test_etags(void) {
  static const struct {
    const char *list;
    bool strong, weak;
  } cases[] = {
    {"\"abc\"", true, true}, {"W/\"abc\"", false, true}, {"*", true, true}, {" * ", true, true}, {"\"x\", \"abc\"", true, true},
    {"\"x\" ,\t\"abc\" , \"y\"", true, true}, {"W/\"x\",W/\"abc\"", false, true}, {"\"a,b\", \"abc\"", true, true},
    {",,\"abc\",", true, true}, {" \"abc\" ", true, true}, {"\"ab\"", false, false}, {"\"abcd\"", false, false},
    {"\"ABC\"", false, false}, {"w/\"abc\"", false, false}, {"abc", false, false}, {"", false, false}, {"\"", false, false},
    {"\"abc", false, false}, {"\"x\" \"abc\"", false, false}, {"\"abc\" x", false, false}, {"W/", false, false},
    {"W/abc", false, false},
    {"\"x,\"abc\"", false, false}, {"*, \"abc\"", false, false}, {"\"abc\", *", false, false},
    {"Tue, 15 Nov 1994 08:12:31 GMT", false, false},
  };
  for (size_t i = 0; i < CLI_COUNT(cases); i++) {
    size_t n = strlen(cases[i].list);
    CHECK_CASE(serve_etag_listed(cases[i].list, n, "\"abc\"", false) == cases[i].strong, cases[i].list);
    CHECK_CASE(serve_etag_listed(cases[i].list, n, "\"abc\"", true) == cases[i].weak, cases[i].list);
  }
}

static void test_types(void) {
  static const struct {
    const char *name, *type;
  } cases[] = {
    {"index.html", "text/html; charset=utf-8"}, {"a/b.js", "text/javascript; charset=utf-8"},
    {"INDEX.HTML", "text/html; charset=utf-8"},
    {"x.mjs", "text/javascript; charset=utf-8"}, {"x.wasm", "application/wasm"}, {"x.css", "text/css; charset=utf-8"},
    {"x.json", "application/json"}, {"x.js.map", "application/json"}, {"app.webmanifest", "application/manifest+json"},
    {"x.svg", "image/svg+xml"}, {"x.png", "image/png"}, {"x.txt", "text/plain; charset=utf-8"},
    {".js", "text/javascript; charset=utf-8"},
    {"x.slm2", "application/octet-stream"}, {"x.gguf", "application/octet-stream"}, {"x", "application/octet-stream"},
    {"x.", "application/octet-stream"}, {"", "application/octet-stream"}, {"x.html.bin", "application/octet-stream"},
    {"a.js/b", "application/octet-stream"}, {"xjs", "application/octet-stream"}, {"x.jsx", "application/octet-stream"},
  };
  for (size_t i = 0; i < CLI_COUNT(cases); i++) CHECK_CASE(strcmp(serve_mime(cases[i].name), cases[i].type) == 0, cases[i].name);
}

int main(void) {
  test_targets();
  test_paths();
  test_random_paths();
  test_hosts();
  test_ranges();
  test_etags();
  test_types();
  return test_end("serve");
}
