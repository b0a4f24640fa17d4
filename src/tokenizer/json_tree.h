/* tokenizer/json_tree.h: a JSON text as Python's json.loads holds it and json.dumps(ensure_ascii=False) prints
 * it: keys in the order of their first appearance with the last value given, integers of any length, floats as
 * repr. Lives in lent scratch; nothing recurses; time is n log n in the worst case (sorting the keys of an object).
 */
#ifndef SLM2_TOKENIZER_JSON_TREE_H
#define SLM2_TOKENIZER_JSON_TREE_H

#include "base/json.h"

/* Node 0 is the whole text, so 0 as a link means none. */
typedef struct slm2_json_node {
  uint32_t text, n; /* KEY, STRING: decoded bytes; NUMBER: as written; at tree->text */
  uint32_t next;    /* the next element of an array or key of an object */
  uint32_t child;   /* ARRAY: first element; OBJECT: first key; KEY: its value */
  uint8_t type;     /* slm2_json_type */
} slm2_json_node;

typedef struct slm2_json_tree {
  slm2_json_node *nodes;
  uint32_t *keys; /* work space: two arrays of max_keys */
  char *text;
  size_t n_nodes, n_text, max_nodes, max_keys;
} slm2_json_tree;

/* Scratch (16-byte aligned) for n bytes; SLM2_E_ARGUMENT when n is too large. */
SLM2_NODISCARD slm2_status slm2_json_tree_bytes(size_t n, size_t *bytes);
SLM2_NODISCARD slm2_status slm2_json_tree_build(slm2_json_tree *tree, const char *json, size_t n, const char *what,
                                                void *scratch, size_t scratch_bytes, slm2_error *error);

/* Value of a key, or 0; node may be of any type. */
uint32_t slm2_json_get(const slm2_json_tree *tree, uint32_t node, const char *key);

/* Text with one mark per byte. Counts all of it, stores what fits. */
typedef struct slm2_marked_text {
  char *text;
  uint8_t *mask;
  size_t capacity, n;
} slm2_marked_text;
void slm2_marked_put(slm2_marked_text *out, uint8_t mark, const char *bytes, size_t n);
/* json.dumps(value, ensure_ascii=False), every byte with this mark. */
void slm2_json_dump(const slm2_json_tree *tree, uint32_t node, uint8_t mark, slm2_marked_text *out);

#endif
