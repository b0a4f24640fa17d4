/* tokenizer/json_tree.c: see the header. The pull reader of base/json.h is the only parser; this keeps what it
 * reads, and prints it again.
 */
#include "tokenizer/json_tree.h"
#include "base/arena.h"
#include "base/bytes.h"
#include "base/decimal.h"
#include "base/error.h"

/* The densest texts: a value and its comma are two bytes, a key with its value at least five. Opening brackets
 * that are never closed are one byte each, but few. */
static uint64_t most_nodes(uint64_t n) { return n / 2 + SLM2_JSON_DEPTH + 1; }
static uint64_t most_keys(uint64_t n) { return n / 4 + 1; }

static void place(slm2_arena *a, uint64_t n, slm2_json_tree *tree) {
  tree->max_nodes = (size_t)most_nodes(n);
  tree->max_keys = (size_t)most_keys(n);
  tree->nodes = slm2_arena_take(a, tree->max_nodes, sizeof *tree->nodes);
  tree->keys = slm2_arena_take(a, 2 * (uint64_t)tree->max_keys, sizeof *tree->keys);
  tree->text = slm2_arena_take(a, n, 1);
}

slm2_status slm2_json_tree_bytes(size_t n, size_t *bytes) {
  if (bytes == NULL || n > UINT32_MAX / 2) return SLM2_E_ARGUMENT;
  slm2_arena a;
  slm2_json_tree tree;
  slm2_arena_init(&a, NULL, 0);
  place(&a, n, &tree);
  if (a.failed || a.used > SIZE_MAX) return SLM2_E_ARGUMENT;
  *bytes = (size_t)a.used;
  return SLM2_OK;
}

/* --- building -------------------------------------------------------------------- */

static int compare_keys(const slm2_json_tree *tree, uint32_t a, uint32_t b) {
  const slm2_json_node *x = &tree->nodes[a], *y = &tree->nodes[b];
  int order = memcmp(tree->text + x->text, tree->text + y->text, x->n < y->n ? x->n : y->n);
  return order != 0 ? order : (x->n > y->n) - (x->n < y->n);
}

/* Stable merge sort of from[0..n) by key text, with to[0..n) as the other buffer; returns the sorted one. */
static uint32_t *sort_keys(const slm2_json_tree *tree, uint32_t *from, uint32_t *to, size_t n) {
  for (size_t width = 1; width < n; width *= 2) {
    for (size_t begin = 0; begin < n; begin += 2 * width) {
      size_t middle = begin + width < n ? begin + width : n, end = begin + 2 * width < n ? begin + 2 * width : n;
      size_t a = begin, b = middle;
      for (size_t at = begin; at < end; at++) {
        bool left = b == end || (a < middle && compare_keys(tree, from[a], from[b]) <= 0);
        to[at] = left ? from[a++] : from[b++];
      }
    }
    uint32_t *other = from;
    from = to;
    to = other;
  }
  return from;
}

/* A repeated key keeps its first place and takes its last value; the later keys leave the list. */
static void join_repeated_keys(slm2_json_tree *tree, uint32_t object) {
  size_t n = 0;
  for (uint32_t key = tree->nodes[object].child; key != 0; key = tree->nodes[key].next) tree->keys[n++] = key;
  if (n < 2) return;
  const uint32_t *sorted = sort_keys(tree, tree->keys, tree->keys + tree->max_keys, n);
  bool repeated = false;
  for (size_t first = 0, i = 1; i < n; i++) {
    if (compare_keys(tree, sorted[first], sorted[i]) != 0) {
      first = i;
      continue;
    }
    tree->nodes[sorted[first]].child = tree->nodes[sorted[i]].child;
    tree->nodes[sorted[i]].type = SLM2_JSON_END; /* marks it as gone */
    repeated = true;
  }
  for (uint32_t key = tree->nodes[object].child; repeated && key != 0; key = tree->nodes[key].next) {
    uint32_t next = tree->nodes[key].next;
    while (next != 0 && tree->nodes[next].type == SLM2_JSON_END) next = tree->nodes[next].next;
    tree->nodes[key].next = next;
  }
}

/* An open container: its node, its last element or key so far, and whether that key still lacks its value. */
typedef struct level {
  uint32_t node, last;
  bool wants_value;
} level;

static slm2_status append(slm2_json_tree *tree, const slm2_json_token *token, level *parent, slm2_error *error) {
  if (tree->n_nodes == tree->max_nodes)
    return slm2_fail(error, SLM2_E_INTERNAL_INVARIANT, "json", NULL, token->offset, "more than %u values",
                     (uint64_t)tree->max_nodes);
  uint32_t at = (uint32_t)tree->n_nodes++;
  slm2_json_node *node = &tree->nodes[at];
  *node = (slm2_json_node){.text = (uint32_t)tree->n_text, .type = (uint8_t)token->type};
  if (token->type == SLM2_JSON_KEY || token->type == SLM2_JSON_STRING) {
    node->n = (uint32_t)slm2_json_decode(token, tree->text + tree->n_text);
  } else if (token->type == SLM2_JSON_NUMBER) {
    node->n = (uint32_t)token->n_raw;
    memcpy(tree->text + tree->n_text, token->raw, token->n_raw);
  }
  tree->n_text += node->n;
  if (parent == NULL) return SLM2_OK;
  if (parent->wants_value) {
    tree->nodes[parent->last].child = at;
    parent->wants_value = false;
    return SLM2_OK;
  }
  if (parent->last == 0) tree->nodes[parent->node].child = at;
  else tree->nodes[parent->last].next = at;
  parent->last = at;
  parent->wants_value = token->type == SLM2_JSON_KEY;
  return SLM2_OK;
}

slm2_status slm2_json_tree_build(slm2_json_tree *tree, const char *json, size_t n, const char *what,
                                 void *scratch, size_t scratch_bytes, slm2_error *error) {
  size_t need;
  if (slm2_json_tree_bytes(n, &need) != SLM2_OK)
    return slm2_fail(error, SLM2_E_ARGUMENT, "json", what, SLM2_NO_OFFSET, "%u bytes are too many", (uint64_t)n);
  if (scratch_bytes < need)
    return slm2_fail(error, SLM2_E_MEMORY, "json", what, SLM2_NO_OFFSET, "%u bytes need %u of scratch, %u were lent", (uint64_t)n,
                     (uint64_t)need, (uint64_t)scratch_bytes);
  slm2_arena a;
  slm2_arena_init(&a, scratch, scratch_bytes);
  *tree = (slm2_json_tree){0};
  place(&a, n, tree);
  slm2_json reader;
  slm2_json_init(&reader, json, n, what);
  level open[SLM2_JSON_DEPTH + 1];
  size_t depth = 0;
  for (;;) {
    slm2_json_token token;
    SLM2_TRY(slm2_json_next(&reader, &token, error));
    if (token.type == SLM2_JSON_END) return SLM2_OK;
    if (token.type == SLM2_JSON_OBJECT_END || token.type == SLM2_JSON_ARRAY_END) {
      depth--;
      if (token.type == SLM2_JSON_OBJECT_END) join_repeated_keys(tree, open[depth].node);
      continue;
    }
    uint32_t at = (uint32_t)tree->n_nodes;
    SLM2_TRY(append(tree, &token, depth == 0 ? NULL : &open[depth - 1], error));
    if (token.type == SLM2_JSON_OBJECT || token.type == SLM2_JSON_ARRAY) open[depth++] = (level){at, 0, false};
  }
}

uint32_t slm2_json_get(const slm2_json_tree *tree, uint32_t node, const char *key) {
  if (tree->nodes[node].type != SLM2_JSON_OBJECT) return 0;
  size_t n = 0;
  while (key[n] != '\0') n++;
  for (uint32_t at = tree->nodes[node].child; at != 0; at = tree->nodes[at].next) {
    if (tree->nodes[at].n == n && memcmp(tree->text + tree->nodes[at].text, key, n) == 0) return tree->nodes[at].child;
  }
  return 0;
}

/* --- printing -------------------------------------------------------------------- */

void slm2_marked_put(slm2_marked_text *out, uint8_t mark, const char *bytes, size_t n) {
  size_t room = out->n < out->capacity ? out->capacity - out->n : 0, stored = n < room ? n : room;
  if (stored != 0) {
    memcpy(out->text + out->n, bytes, stored);
    memset(out->mask + out->n, mark, stored);
  }
  out->n += n;
}

static void put_string(const char *bytes, size_t n, uint8_t mark, slm2_marked_text *out) {
  slm2_marked_put(out, mark, "\"", 1);
  size_t room = out->n < out->capacity ? out->capacity - out->n : 0;
  char *to = room == 0 ? NULL : out->text + out->n;
  size_t length = slm2_json_escape(bytes, n, to, room);
  if (room != 0) memset(out->mask + out->n, mark, length < room ? length : room);
  out->n += length;
  slm2_marked_put(out, mark, "\"", 1);
}

/* Python: an integer keeps its digits (and -0 is 0); anything with a point or an exponent is a float. */
static void put_number(const char *bytes, size_t n, uint8_t mark, slm2_marked_text *out) {
  bool is_float = false;
  for (size_t i = 0; i < n; i++) is_float |= bytes[i] == '.' || bytes[i] == 'e' || bytes[i] == 'E';
  if (!is_float) {
    bool minus_zero = n == 2 && bytes[0] == '-' && bytes[1] == '0';
    slm2_marked_put(out, mark, bytes + minus_zero, n - minus_zero);
    return;
  }
  double x = 0;
  char text[SLM2_DECIMAL_MAX];
  (void)slm2_decimal_to_f64(bytes, n, &x); /* the reader has checked the grammar */
  if (x - x != 0) slm2_marked_put(out, mark, x > 0 ? "Infinity" : "-Infinity", x > 0 ? 8 : 9);
  else slm2_marked_put(out, mark, text, slm2_f64_to_decimal(x, text));
}

/* Writes a value's beginning; true when it has something inside to go on with. */
static bool put_opening(const slm2_json_tree *tree, const slm2_json_node *node, uint8_t mark, slm2_marked_text *out) {
  const char *text = tree->text + node->text;
  switch ((slm2_json_type)node->type) {
  case SLM2_JSON_OBJECT: slm2_marked_put(out, mark, node->child != 0 ? "{" : "{}", node->child != 0 ? 1 : 2); break;
  case SLM2_JSON_ARRAY: slm2_marked_put(out, mark, node->child != 0 ? "[" : "[]", node->child != 0 ? 1 : 2); break;
  case SLM2_JSON_KEY:
    put_string(text, node->n, mark, out);
    slm2_marked_put(out, mark, ": ", 2);
    break;
  case SLM2_JSON_STRING: put_string(text, node->n, mark, out); break;
  case SLM2_JSON_NUMBER: put_number(text, node->n, mark, out); break;
  case SLM2_JSON_TRUE: slm2_marked_put(out, mark, "true", 4); break;
  case SLM2_JSON_FALSE: slm2_marked_put(out, mark, "false", 5); break;
  default: slm2_marked_put(out, mark, "null", 4); break;
  }
  return node->child != 0;
}

void slm2_json_dump(const slm2_json_tree *tree, uint32_t node, uint8_t mark, slm2_marked_text *out) {
  uint32_t above[2 * SLM2_JSON_DEPTH + 1]; /* open containers and keys, outermost first */
  size_t depth = 0;
  for (;;) {
    if (put_opening(tree, &tree->nodes[node], mark, out)) {
      above[depth++] = node;
      node = tree->nodes[node].child;
      continue;
    }
    while (depth != 0) { /* node is complete: go to what follows it, or close what it completes */
      const slm2_json_node *parent = &tree->nodes[above[depth - 1]];
      if (parent->type != SLM2_JSON_KEY) {
        if (tree->nodes[node].next != 0) break;
        slm2_marked_put(out, mark, parent->type == SLM2_JSON_OBJECT ? "}" : "]", 1);
      }
      node = above[--depth];
    }
    if (depth == 0) return;
    slm2_marked_put(out, mark, ", ", 2);
    node = tree->nodes[node].next;
  }
}
