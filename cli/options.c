/* cli/options.c: the command line's grammar: --name value, --name=value, flags, operands, "--" before operands that
 * begin with '-'. Every value is checked here and refused by the name of its option.
 */
#include "cli/cli.h"

#include <stdio.h>
#include <string.h>

#include "base/decimal.h"

bool cli_number(const char *text, size_t n, uint64_t low, uint64_t high, uint64_t *out) {
  uint64_t value = 0;
  if (n == 0) return false;
  for (size_t i = 0; i < n; i++) {
    unsigned digit = (unsigned)(unsigned char)text[i] - '0';
    if (digit > 9 || value > (UINT64_MAX - digit) / 10) return false;
    value = value * 10 + digit;
  }
  if (value < low || value > high) return false;
  *out = value;
  return true;
}

static int set_number(const cli_option *o, const char *value) {
  uint64_t number;
  if (o->kind == CLI_AUTO_U32 && (strcmp(value, "off") == 0 || strcmp(value, "auto") == 0)) {
    *(uint32_t *)o->target = *value == 'o' ? 0 : CLI_AUTO;
    return CLI_CONTINUE;
  }
  if (!cli_number(value, strlen(value), o->low, o->high, &number) && o->kind == CLI_AUTO_U32)
    return cli_complain(CLI_USAGE, o->name, "\"%.200s\" is neither auto nor off nor a whole number from %llu to %llu", value,
                        (unsigned long long)o->low, (unsigned long long)o->high);
  if (!cli_number(value, strlen(value), o->low, o->high, &number))
    return cli_complain(CLI_USAGE, o->name, "\"%.200s\" is not a whole number from %llu to %llu", value,
                        (unsigned long long)o->low, (unsigned long long)o->high);
  if (o->kind == CLI_U64) *(uint64_t *)o->target = number;
  else *(uint32_t *)o->target = (uint32_t)number;
  return CLI_CONTINUE;
}

/* Decimal text to the nearest f64, then f32 [D19]. The comparisons refuse infinities. */
static int set_f32(const cli_option *o, const char *value) {
  float x;
  if (!slm2_decimal_to_f32(value, strlen(value), &x) || !(x >= o->low_f32 && x <= o->high_f32))
    return cli_complain(CLI_USAGE, o->name, "\"%.200s\" is not %s", value, o->expects);
  *(float *)o->target = x;
  return CLI_CONTINUE;
}

static int set_choice(const cli_option *o, const char *value) {
  size_t n = strlen(value);
  const char *name = o->expects;
  for (unsigned i = 0; *name != 0; i++) {
    size_t length = strcspn(name, "|");
    if (length == n && memcmp(name, value, n) == 0) {
      *(unsigned *)o->target = i;
      return CLI_CONTINUE;
    }
    name += length + (name[length] == '|');
  }
  return cli_complain(CLI_USAGE, o->name, "\"%.200s\" is none of %s", value, o->expects);
}

static int set_value(const cli_option *o, const char *value) {
  if (o->given != NULL) *o->given = true;
  switch (o->kind) {
    case CLI_FLAG: *(bool *)o->target = true; return CLI_CONTINUE;
    case CLI_STRING: *(const char **)o->target = value; return CLI_CONTINUE;
    case CLI_STRINGS: {
      cli_strings *list = o->target;
      if (list->n == CLI_MAX_STRINGS) return cli_complain(CLI_USAGE, o->name, "given more than %u times", CLI_MAX_STRINGS);
      list->at[list->n++] = value;
      return CLI_CONTINUE;
    }
    case CLI_U32:
    case CLI_AUTO_U32:
    case CLI_U64: return set_number(o, value);
    case CLI_F32: return set_f32(o, value);
    case CLI_CHOICE: break;
  }
  return set_choice(o, value);
}

/* The option at argv[*i], whose value may be argv[*i + 1]. */
static int parse_option(int argc, char **argv, int *i, const cli_option *options, size_t n_options) {
  const char *text = argv[*i];
  const char *equals = text[1] == '-' ? strchr(text, '=') : NULL;
  size_t n = equals != NULL ? (size_t)(equals - text) : strlen(text);
  for (size_t k = 0; k < n_options; k++) {
    const cli_option *o = &options[k];
    if (strlen(o->name) != n || memcmp(o->name, text, n) != 0) continue;
    if (o->kind == CLI_FLAG)
      return equals == NULL ? set_value(o, NULL) : cli_complain(CLI_USAGE, o->name, "takes no value");
    if (equals != NULL) return set_value(o, equals + 1);
    if (*i + 1 >= argc) return cli_complain(CLI_USAGE, o->name, "needs a value");
    return set_value(o, argv[++*i]);
  }
  return cli_complain(CLI_USAGE, argv[0], "unknown option \"%.*s\"; try slm2 %s --help", (int)(n < 200 ? n : 200), text, argv[0]);
}

/* Up to n_most operands; n_given of them came. */
static int parse(int argc, char **argv, const char *help, const cli_option *options, size_t n_options, const char **operands,
                 const char *const *operand_names, size_t n_most, size_t *n_given) {
  size_t n = 0;
  bool only_operands = false;
  for (int i = 1; i < argc; i++) {
    const char *text = argv[i];
    if (!only_operands && strcmp(text, "--") == 0) {
      only_operands = true;
    } else if (!only_operands && (strcmp(text, "--help") == 0 || strcmp(text, "-h") == 0)) {
      return cli_out(help, strlen(help)) ? CLI_OK : CLI_FAILED;
    } else if (!only_operands && text[0] == '-' && text[1] != 0) {
      int code = parse_option(argc, argv, &i, options, n_options);
      if (code != CLI_CONTINUE) return code;
    } else if (n == n_most) {
      return cli_complain(CLI_USAGE, argv[0], "unexpected argument \"%.200s\"; try slm2 %s --help", text, argv[0]);
    } else if (text[0] == 0) {
      return cli_complain(CLI_USAGE, argv[0], "%s is empty", operand_names[n]);
    } else {
      operands[n++] = text;
    }
  }
  *n_given = n;
  return CLI_CONTINUE;
}

int cli_parse(int argc, char **argv, const char *help, const cli_option *options, size_t n_options,
              const char **operands, const char *const *operand_names, size_t n_operands) {
  size_t n;
  int code = parse(argc, argv, help, options, n_options, operands, operand_names, n_operands, &n);
  if (code == CLI_CONTINUE && n < n_operands)
    return cli_complain(CLI_USAGE, argv[0], "needs %s; try slm2 %s --help", operand_names[n], argv[0]);
  return code;
}

int cli_parse_list(int argc, char **argv, const char *help, const cli_option *options, size_t n_options, cli_strings *operands,
                   const char *operand_name) {
  const char *names[CLI_MAX_STRINGS];
  size_t n = 0;
  for (size_t i = 0; i < CLI_MAX_STRINGS; i++) names[i] = operand_name;
  int code = parse(argc, argv, help, options, n_options, operands->at, names, CLI_MAX_STRINGS, &n);
  operands->n = (uint32_t)n;
  return code;
}

int cli_parse_ids(const char *what, const char *text, cli_ids *ids) {
  for (const char *at = text;;) {
    size_t n = strcspn(at, ",");
    uint64_t id;
    if (!cli_number(at, n, 0, SLM2_NO_TOKEN - 1, &id))
      return cli_complain(CLI_USAGE, what, "\"%.*s\" (number %zu of the list) is not a token id; write ids like 1,2,3",
                          (int)(n < 100 ? n : 100), at, ids->n + 1);
    cli_ids_add(ids, (uint32_t)id);
    if (at[n] == 0) return CLI_OK;
    at += n + 1;
  }
}

int cli_setup_finish(cli_setup *s) {
  slm2_error error = {0};
  if (s->threads == 0) s->threads = slm2_count_cpus().cores;
  if (slm2_backend_find(s->backend_name, &s->backend, &error) == SLM2_OK) return CLI_OK;
  return cli_complain(CLI_USAGE, "--backend", "%s", error.message);
}
