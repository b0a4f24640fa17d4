/* cli/report.c: how the command line speaks: results to stdout, reasons and progress to stderr, and Ctrl-C. */
#include "cli/cli.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

slm2_cancel cli_cancel;

static void on_interrupt(void) { atomic_store(&cli_cancel, 1); }

void cli_catch_interrupts(void) { slm2_on_interrupt(on_interrupt); }

bool cli_cancelled(void) { return atomic_load(&cli_cancel) != 0; }

bool cli_out(const char *bytes, size_t n) {
  if (ferror(stdout)) return false;
  errno = 0;
  if (fwrite(bytes, 1, n, stdout) == n && fflush(stdout) == 0) return true;
  if (errno != EPIPE) cli_complain(CLI_FAILED, "stdout", "%s", strerror(errno));
  return false;
}

int cli_out_text(const cli_text *t) { return cli_out(t->bytes, t->n) ? CLI_OK : CLI_FAILED; }

/* One line, whatever bytes a file name or an argument holds. */
static void print_line(char *line) {
  for (char *p = line; *p != 0; p++)
    if ((unsigned char)*p < 0x20 || *p == 0x7f) *p = '?';
  fprintf(stderr, "slm2: %s\n", line);
  fflush(stderr);
}

int cli_complain(int code, const char *what, const char *fmt, ...) {
  char line[1024];
  int n = snprintf(line, sizeof line, "%.600s: ", what);
  va_list args;
  va_start(args, fmt);
  vsnprintf(line + n, sizeof line - (size_t)n, fmt, args);
  va_end(args);
  print_line(line);
  return code;
}

/* "path: operation: name: message (at byte N)", without what would be said twice. */
int cli_fail_in(const char *path, const slm2_error *e) {
  char line[1024], where[48];
  snprintf(where, sizeof where, "byte %llu", (unsigned long long)e->offset);
  bool has_path = path[0] != 0 && strcmp(path, e->name) != 0;
  bool has_name = e->name[0] != 0 && strncmp(e->message, e->name, strlen(e->name)) != 0;
  bool has_offset = e->offset != UINT64_MAX && strstr(e->message, where) == NULL;
  snprintf(line, sizeof line, "%.500s%s%s%s%s%s%s%s%s%s", has_path ? path : "", has_path ? ": " : "", e->operation,
           e->operation[0] != 0 ? ": " : "", has_name ? e->name : "", has_name ? ": " : "", e->message, has_offset ? " (at " : "",
           has_offset ? where : "", has_offset ? ")" : "");
  print_line(line);
  return e->code == SLM2_E_CANCELLED ? CLI_CANCELLED : CLI_FAILED;
}

int cli_fail(const slm2_error *e) { return cli_fail_in("", e); }

#define BAR_CELLS 24
#define PROGRESS_NS 100000000u

void cli_progress_begin(cli_progress *p) { *p = (cli_progress){false, slm2_is_terminal(2), slm2_clock_ns()}; }

void cli_progress_show(cli_progress *p, const char *phase, uint64_t done, uint64_t total) {
  if (!p->enabled) return;
  uint64_t now = slm2_clock_ns();
  if (now - p->last_ns < PROGRESS_NS) return;
  p->last_ns = now;
  p->shown = true;
  double share = total == 0 ? 1.0 : (double)done / (double)total;
  if (share > 1.0) share = 1.0;
  char bar[BAR_CELLS + 1];
  memset(bar, ' ', BAR_CELLS);
  memset(bar, '#', (size_t)(share * BAR_CELLS));
  bar[BAR_CELLS] = 0;
  bool large = total >= 1 << 20; /* bytes; otherwise tokens */
  fprintf(stderr, "\r%-10.10s [%s] %3d%%  %llu of %llu%s", phase, bar, (int)(share * 100.0),
          (unsigned long long)(large ? done >> 20 : done), (unsigned long long)(large ? total >> 20 : total),
          large ? " MiB" : "");
  fflush(stderr);
}

void cli_progress_end(cli_progress *p) {
  if (!p->shown) return;
  p->shown = false;
  fputs("\r\033[K", stderr);
  fflush(stderr);
}
