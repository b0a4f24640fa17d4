/* cli/serve_path.c: request targets, paths, hosts, ranges and entity tags, as text only (RFC 9110, 9112, 3986). Everything
 * here comes from the network; nothing here knows the file system. tests/unit/test_serve.c has the tables.
 */
#include "cli/serve.h"

#include <string.h>

#include "base/utf8.h"

static char lower(char c) { return c >= 'A' && c <= 'Z' ? (char)(c + ('a' - 'A')) : c; }

static bool same(const char *a, size_t n, const char *b) {
  if (strlen(b) != n) return false;
  for (size_t i = 0; i < n; i++)
    if (lower(a[i]) != lower(b[i])) return false;
  return true;
}

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

static int hex_digit(char c) {
  c = lower(c);
  return is_digit(c) ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* --- target and path --------------------------------------------------------- */

bool serve_target_parse(const char *text, size_t n, serve_target *out) {
  for (size_t i = 0; i < n; i++)
    if (text[i] <= ' ' || text[i] > '~' || text[i] == '#') return false; /* char may be signed: bytes from 0x80 fail too */
  serve_target t = {0};
  size_t scheme = n > 7 && same(text, 7, "http://") ? 7 : n > 8 && same(text, 8, "https://") ? 8 : 0;
  t.rest = text;
  t.n_rest = n;
  if (scheme != 0) {
    t.authority = text + scheme;
    while (scheme + t.n_authority < n && t.authority[t.n_authority] != '/' && t.authority[t.n_authority] != '?') t.n_authority++;
    t.rest = t.authority + t.n_authority;
    t.n_rest = n - scheme - t.n_authority;
    if (t.n_authority == 0) return false;
  }
  if (t.n_rest == 0 || t.rest[0] != '/') return false;
  t.path = t.rest;
  while (t.n_path < t.n_rest && t.path[t.n_path] != '?') t.n_path++;
  *out = t;
  return true;
}

/* One byte of a path, escaped or not; false for what may not stand there. */
static bool next_byte(const char *path, size_t n, size_t *at, char *out) {
  unsigned c = (unsigned char)path[*at];
  bool escaped = c == '%';
  if (escaped) {
    if (n - *at < 3) return false;
    int high = hex_digit(path[*at + 1]), low = hex_digit(path[*at + 2]);
    if (high < 0 || low < 0) return false;
    c = (unsigned)high << 4 | (unsigned)low;
  }
  if (c < 0x20 || c == 0x7f || c == '\\' || (escaped && c == '/')) return false;
  *at += escaped ? 3 : 1;
  *out = (char)c;
  return true;
}

/* Of the segment name[0..n): 200, 400 or 404; last: nothing follows it. */
static unsigned segment_status(const char *name, size_t n, bool last) {
  if (n == 0) return last ? 200 : 400;
  if (name[0] != '.') return 200;
  return n == 1 || (n == 2 && name[1] == '.') ? 400 : 404;
}

unsigned serve_path_decode(const char *path, size_t n, char out[SERVE_PATH_MAX]) {
  char name[SERVE_PATH_MAX];
  size_t length = 0, segment = 0;
  unsigned status = 200;
  if (n == 0 || path[0] != '/') return 400;
  for (size_t at = 1; at <= n;) {
    bool end = at == n;
    if (end || path[at] == '/') {
      unsigned found = segment_status(name + segment, length - segment, end);
      if (found == 400) return 400;
      if (found == 404) status = 404;
    }
    if (end) break;
    if (length + 1 >= sizeof name || !next_byte(path, n, &at, &name[length])) return 400;
    if (name[length++] == '/') segment = length;
  }
  if (!slm2_utf8_valid((const uint8_t *)name, length)) return 400;
  if (status != 200) return status;
  memcpy(out, name, length);
  out[length] = 0;
  return 200;
}

/* --- host ------------------------------------------------------------------------ */

/* reg-name, IPv4address or "[" IPv6address "]" by their characters; user information is none of them. */
static bool host_characters(const char *s, size_t n) {
  bool bracket = n >= 2 && s[0] == '[' && s[n - 1] == ']';
  for (size_t i = bracket; i < n - bracket; i++) {
    char c = lower(s[i]);
    bool word = is_digit(c) || (c >= 'a' && c <= 'z');
    if (bracket ? !(hex_digit(c) >= 0 || c == ':' || c == '.') : !(word || (c != 0 && strchr("-._~%!$&'()*+,;=", c) != NULL)))
      return false;
  }
  return n > (bracket ? 2u : 0u);
}

serve_host serve_host_check(const char *host, size_t n, const char *const *names, size_t n_names, uint16_t port,
                            uint16_t scheme_port) {
  while (n > 0 && (host[n - 1] == ' ' || host[n - 1] == '\t')) n--;
  size_t name = n, digits = 0;
  while (digits < n && is_digit(host[n - 1 - digits])) digits++;
  uint32_t number = scheme_port;
  if (digits < n && host[n - 1 - digits] == ':') {
    name = n - 1 - digits;
    if (digits > 0) number = 0;
    for (size_t i = name + 1; i < n && number <= UINT16_MAX; i++) number = number * 10 + (uint32_t)(host[i] - '0');
  }
  if (!host_characters(host, name)) return SERVE_HOST_BAD;
  if (number != port) return SERVE_HOST_FOREIGN;
  for (size_t i = 0; i < n_names; i++)
    if (same(host, name, names[i])) return SERVE_HOST_OURS;
  return same(host, name, "localhost") ? SERVE_HOST_LOCALHOST : SERVE_HOST_FOREIGN;
}

/* --- ranges --------------------------------------------------------------------------- */

/* Digits at *at, saturating; false when there are none. */
static bool number_at(const char *text, size_t n, size_t *at, uint64_t *out) {
  size_t start = *at;
  uint64_t value = 0;
  for (; *at < n && is_digit(text[*at]); ++*at) {
    unsigned digit = (unsigned)(text[*at] - '0');
    value = value > (UINT64_MAX - digit) / 10 ? UINT64_MAX : value * 10 + digit;
  }
  *out = value;
  return *at > start;
}

typedef struct range_spec {
  bool has_first, has_last;
  uint64_t first, last; /* without first: last is the length of a suffix */
} range_spec;

static bool spec_at(const char *text, size_t n, size_t *at, range_spec *r) {
  r->has_first = number_at(text, n, at, &r->first);
  if (*at == n || text[*at] != '-') return false;
  ++*at;
  r->has_last = number_at(text, n, at, &r->last);
  if (r->has_first && r->has_last) return r->first <= r->last;
  return r->has_first || r->has_last;
}

static serve_range apply(const range_spec *r, uint64_t size, uint64_t *first, uint64_t *count) {
  if (!r->has_first) {
    if (r->last == 0) return SERVE_UNSATISFIABLE;
    if (size == 0) return SERVE_WHOLE; /* satisfiable by the RFC, but no Content-Range can say it */
    *count = r->last < size ? r->last : size;
    *first = size - *count;
    return SERVE_PART;
  }
  if (r->first >= size) return SERVE_UNSATISFIABLE;
  *first = r->first;
  *count = (r->has_last && r->last < size ? r->last : size - 1) - r->first + 1;
  return SERVE_PART;
}

serve_range serve_range_parse(const char *text, size_t n, uint64_t size, uint64_t *first, uint64_t *count) {
  if (n < 6 || !same(text, 6, "bytes=")) return SERVE_WHOLE;
  range_spec range = {0};
  size_t found = 0;
  for (size_t at = 6; at < n;) {
    if (text[at] == ' ' || text[at] == '\t' || text[at] == ',') {
      at++;
      continue;
    }
    if (++found > 1 || !spec_at(text, n, &at, &range)) return SERVE_WHOLE;
    while (at < n && (text[at] == ' ' || text[at] == '\t')) at++;
    if (at < n && text[at] != ',') return SERVE_WHOLE;
  }
  return found == 1 ? apply(&range, size, first, count) : SERVE_WHOLE;
}

/* --- entity tags ------------------------------------------------------------------------ */

bool serve_etag_listed(const char *list, size_t n, const char *etag, bool weak) {
  bool found = false, separated = true;
  size_t length = strlen(etag);
  while (n > 0 && (list[n - 1] == ' ' || list[n - 1] == '\t')) n--;
  while (n > 0 && (list[0] == ' ' || list[0] == '\t')) list++, n--;
  if (n == 1 && list[0] == '*') return true;
  for (size_t at = 0; at < n;) {
    if (list[at] == ' ' || list[at] == '\t' || list[at] == ',') {
      separated |= list[at++] == ',';
      continue;
    }
    bool is_weak = n - at > 2 && list[at] == 'W' && list[at + 1] == '/';
    size_t start = at + (is_weak ? 2u : 0u), end = start + 1;
    if (!separated || start >= n || list[start] != '"') return false;
    while (end < n && list[end] != '"') end++;
    if (end == n) return false;
    at = end + 1;
    separated = false;
    if ((weak || !is_weak) && at - start == length && memcmp(list + start, etag, length) == 0) found = true;
  }
  return found;
}

/* --- types ---------------------------------------------------------------------------------- */

const char *serve_mime(const char *name) {
  static const struct {
    const char *ending, *type;
  } types[] = {
    {".html", "text/html; charset=utf-8"},
    {".js", "text/javascript; charset=utf-8"},
    {".mjs", "text/javascript; charset=utf-8"},
    {".css", "text/css; charset=utf-8"},
    {".wasm", "application/wasm"}, /* without parameters, or browsers refuse to compile it while it comes */
    {".json", "application/json"},
    {".map", "application/json"},
    {".webmanifest", "application/manifest+json"},
    {".svg", "image/svg+xml"},
    {".png", "image/png"},
    {".jpg", "image/jpeg"},
    {".webp", "image/webp"},
    {".ico", "image/x-icon"},
    {".woff2", "font/woff2"},
    {".txt", "text/plain; charset=utf-8"},
    {".md", "text/plain; charset=utf-8"},
    {".csv", "text/csv; charset=utf-8"},
  };
  const char *slash = strrchr(name, '/'), *dot = strrchr(slash != NULL ? slash : name, '.');
  for (size_t i = 0; dot != NULL && i < CLI_COUNT(types); i++)
    if (same(dot, strlen(dot), types[i].ending)) return types[i].type;
  return "application/octet-stream";
}
