/* cli/line.c: one line from the user: with libedit (history, editing) on a terminal when it was built in, else plain. */
#include "cli/cli.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef SLM2_HAVE_LIBEDIT
#include <histedit.h>
#include <locale.h>
#endif

struct cli_lines {
  bool interactive;
#ifdef SLM2_HAVE_LIBEDIT
  EditLine *editor;
  History *history;
#endif
};

static const char prompt[] = "> ";

#ifdef SLM2_HAVE_LIBEDIT
#define HISTORY_LINES 1000

static char *edit_prompt(EditLine *editor) {
  static char text[sizeof prompt]; /* libedit wants a pointer to non-const */
  (void)editor;
  return memcpy(text, prompt, sizeof prompt);
}

/* libedit decodes keys by LC_CTYPE; where the user's locale is not UTF-8, C.UTF-8 is. */
static void open_editor(cli_lines *l) {
  HistEvent event;
  const char *locale = setlocale(LC_CTYPE, "");
  if (locale == NULL || (strstr(locale, "UTF-8") == NULL && strstr(locale, "utf8") == NULL)) setlocale(LC_CTYPE, "C.UTF-8");
  l->history = history_init();
  if (l->history != NULL) history(l->history, &event, H_SETSIZE, HISTORY_LINES);
  l->editor = el_init("slm2", stdin, stdout, stderr);
  if (l->editor == NULL) return;
  el_set(l->editor, EL_PROMPT, edit_prompt);
  el_set(l->editor, EL_EDITOR, "emacs");
  el_set(l->editor, EL_SIGNAL, 0); /* Ctrl-C is ours */
  if (l->history != NULL) el_set(l->editor, EL_HIST, history, l->history);
}

static cli_line_result edit_line(cli_lines *l, cli_text *line) {
  int n = 0;
  el_resize(l->editor); /* the window may have changed its size */
  const char *text = el_gets(l->editor, &n);
  if (cli_cancelled()) {
    fputs("\n", stdout);
    el_reset(l->editor);
    return CLI_LINE_INTERRUPTED;
  }
  if (text == NULL || n <= 0) return CLI_LINE_END;
  cli_text_add(line, text, (size_t)n);
  if (line->bytes[line->n - 1] == '\n') line->bytes[--line->n] = 0;
  HistEvent event;
  if (l->history != NULL && line->n > 0) history(l->history, &event, H_ENTER, line->bytes);
  return CLI_LINE;
}
#endif

cli_lines *cli_lines_open(bool interactive) {
  cli_lines *l = cli_alloc(1, sizeof *l);
  l->interactive = interactive;
#ifdef SLM2_HAVE_LIBEDIT
  if (interactive) open_editor(l);
#endif
  return l;
}

void cli_lines_close(cli_lines *l) {
#ifdef SLM2_HAVE_LIBEDIT
  if (l->editor != NULL) el_end(l->editor);
  if (l->history != NULL) history_end(l->history);
#endif
  free(l);
}

cli_line_result cli_lines_next(cli_lines *l, cli_text *line) {
  line->n = 0;
  cli_text_add(line, "", 0);
#ifdef SLM2_HAVE_LIBEDIT
  if (l->editor != NULL) return edit_line(l, line);
#endif
  if (l->interactive) (void)cli_out(prompt, sizeof prompt - 1);
  for (;;) {
    int c = getc(stdin);
    if (c == EOF && ferror(stdin) && errno == EINTR && cli_cancelled()) {
      clearerr(stdin);
      if (l->interactive) (void)cli_out("\n", 1);
      return CLI_LINE_INTERRUPTED;
    }
    if (c == EOF && ferror(stdin)) {
      cli_complain(CLI_FAILED, "stdin", "%s", strerror(errno));
      return CLI_LINE_FAILED;
    }
    if (c == EOF) return line->n > 0 ? CLI_LINE : CLI_LINE_END;
    if (c == '\n') return CLI_LINE;
    char byte = (char)c;
    cli_text_add(line, &byte, 1);
  }
}
