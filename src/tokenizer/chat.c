/* tokenizer/chat.c: Qwen3's chat template (revision c1899de), in C. Its Jinja text, 4,168 bytes, is
 * tests/data/chat/chat_template_c1899de.jinja.
 *
 * What the template would drop in silence or die on (unknown roles, content that is not text, tool calls
 * without a name) is refused with the message's index; everything else gives exactly its bytes. A first run
 * only counts, so nothing is written unless all of it fits. Bytes from the JSON are marked as content, the
 * template's own as template, and so a role's name.
 */
#include "slm2/chat.h"
#include "base/bytes.h"
#include "base/error.h"
#include "tokenizer/json_tree.h"

enum { CONTENT = 0, TEMPLATE = 1 };
typedef enum role { SYSTEM, USER, ASSISTANT, TOOL, N_ROLES } role;
static const char role_names[N_ROLES][12] = {"system", "user", "assistant", "tool"};

typedef struct span {
  const char *p;
  size_t n;
} span;

typedef struct message {
  uint64_t index;
  uint32_t node;
  role role;
  bool has_content; /* "content" is a string; else it is absent or null, and empty here */
  span content;
  bool has_reasoning;
  span reasoning;
  uint32_t tool_calls; /* first of them, or 0 */
} message;

typedef struct conversation {
  const slm2_json_tree *tree;
  uint32_t first, first_tool; /* nodes; 0 = none */
  uint64_t last_query;        /* index of the last user message that is not a tool's response */
  bool generation_prompt, thinking;
} conversation;

#define SPAN(literal) ((span){(literal), sizeof(literal) - 1})

/* --- text ------------------------------------------------------------------------ */

static void put(slm2_marked_text *out, uint8_t mark, span s) { slm2_marked_put(out, mark, s.p, s.n); }

static span from(span s, size_t at) { return (span){s.p + at, s.n - at}; }
static bool starts_with(span s, span head) { return s.n >= head.n && memcmp(s.p, head.p, head.n) == 0; }
static bool ends_with(span s, span tail) { return s.n >= tail.n && memcmp(s.p + (s.n - tail.n), tail.p, tail.n) == 0; }
static bool is(span s, const char *name) {
  size_t n = 0;
  while (name[n] != '\0') n++;
  return n == s.n && memcmp(s.p, name, n) == 0;
}
static span strip_front(span s) {
  while (s.n != 0 && *s.p == '\n') s = from(s, 1);
  return s;
}
static span strip_back(span s) {
  while (s.n != 0 && s.p[s.n - 1] == '\n') s.n--;
  return s;
}
/* Offset of the first or last occurrence, or s.n. */
static size_t find(span s, span what, bool last) {
  size_t found = s.n;
  for (size_t at = 0; at + what.n <= s.n; at++) {
    if (!starts_with(from(s, at), what)) continue;
    found = at;
    if (!last) break;
  }
  return found;
}

/* --- reading --------------------------------------------------------------------- */

static slm2_status refuse(slm2_error *error, uint64_t index, const char *why) {
  return slm2_fail(error, SLM2_E_CHAT, "chat", "messages", SLM2_NO_OFFSET, "message %u: %s", index, why);
}

static slm2_json_type type_of(const slm2_json_tree *tree, uint32_t node) { return (slm2_json_type)tree->nodes[node].type; }
static bool is_text(const slm2_json_tree *tree, uint32_t node) { return node != 0 && type_of(tree, node) == SLM2_JSON_STRING; }
static bool is_null(const slm2_json_tree *tree, uint32_t node) { return node == 0 || type_of(tree, node) == SLM2_JSON_NULL; }
static span text_of(const slm2_json_tree *tree, uint32_t node) {
  return (span){tree->text + tree->nodes[node].text, tree->nodes[node].n};
}

static slm2_status read_role(const slm2_json_tree *tree, message *m, slm2_error *error) {
  uint32_t node = slm2_json_get(tree, m->node, "role");
  if (!is_text(tree, node)) return refuse(error, m->index, "\"role\" is missing or not a string");
  span name = text_of(tree, node);
  for (int r = 0; r < N_ROLES; r++) {
    if (!is(name, role_names[r])) continue;
    m->role = (role)r;
    return SLM2_OK;
  }
  return slm2_fail_n(error, SLM2_E_CHAT, "chat", name.p, name.n, SLM2_NO_OFFSET,
                     "message %u: its role is none of system, user, assistant, tool", m->index);
}

static slm2_status read_message(const slm2_json_tree *tree, uint32_t node, uint64_t index, message *m, slm2_error *error) {
  *m = (message){.node = node, .index = index, .content = SPAN("")};
  if (type_of(tree, node) != SLM2_JSON_OBJECT) return refuse(error, index, "it is not an object");
  SLM2_TRY(read_role(tree, m, error));
  uint32_t content = slm2_json_get(tree, node, "content");
  m->has_content = is_text(tree, content);
  if (m->has_content) m->content = text_of(tree, content);
  else if (!is_null(tree, content))
    return refuse(error, index, "\"content\" must be a string or null; lists of parts are not supported");
  if (m->role == SYSTEM && index == 0 && !m->has_content) return refuse(error, index, "a first system message needs \"content\"");
  if (m->role != ASSISTANT) return SLM2_OK;
  uint32_t reasoning = slm2_json_get(tree, node, "reasoning_content"), calls = slm2_json_get(tree, node, "tool_calls");
  m->has_reasoning = is_text(tree, reasoning);
  if (m->has_reasoning) m->reasoning = text_of(tree, reasoning);
  else if (!is_null(tree, reasoning)) return refuse(error, index, "\"reasoning_content\" must be a string or null");
  if (!is_null(tree, calls)) {
    if (type_of(tree, calls) != SLM2_JSON_ARRAY) return refuse(error, index, "\"tool_calls\" must be an array or null");
    m->tool_calls = tree->nodes[calls].child;
  }
  return SLM2_OK;
}

/* --- the template ------------------------------------------------------------------ */

static slm2_status put_system(const conversation *c, slm2_marked_text *out, slm2_error *error) {
  message first;
  SLM2_TRY(read_message(c->tree, c->first, 0, &first, error));
  if (first.role != SYSTEM && c->first_tool == 0) return SLM2_OK;
  put(out, TEMPLATE, SPAN("<|im_start|>system\n"));
  if (first.role == SYSTEM) put(out, CONTENT, first.content);
  if (c->first_tool != 0) {
    if (first.role == SYSTEM) put(out, TEMPLATE, SPAN("\n\n"));
    put(out, TEMPLATE, SPAN("# Tools\n\nYou may call one or more functions to assist with the user query.\n\n"
                            "You are provided with function signatures within <tools></tools> XML tags:\n<tools>"));
    for (uint32_t tool = c->first_tool; tool != 0; tool = c->tree->nodes[tool].next) {
      put(out, TEMPLATE, SPAN("\n"));
      slm2_json_dump(c->tree, tool, CONTENT, out);
    }
    put(out, TEMPLATE, SPAN("\n</tools>\n\nFor each function call, return a json object with function name and arguments within "
                            "<tool_call></tool_call> XML tags:\n<tool_call>\n"
                            "{\"name\": <function-name>, \"arguments\": <args-json-object>}\n</tool_call>"));
  }
  put(out, TEMPLATE, SPAN("<|im_end|>\n"));
  return SLM2_OK;
}

static slm2_status put_tool_calls(const slm2_json_tree *tree, const message *m, bool after_text, slm2_marked_text *out,
                                  slm2_error *error) {
  for (uint32_t call = m->tool_calls; call != 0; call = tree->nodes[call].next, after_text = true) {
    if (type_of(tree, call) != SLM2_JSON_OBJECT) return refuse(error, m->index, "a tool call is not an object");
    uint32_t body = call, function = slm2_json_get(tree, call, "function");
    if (!is_null(tree, function)) {
      if (type_of(tree, function) != SLM2_JSON_OBJECT)
        return refuse(error, m->index, "a tool call's \"function\" is not an object");
      if (tree->nodes[function].child != 0) body = function;
    }
    uint32_t name = slm2_json_get(tree, body, "name"), arguments = slm2_json_get(tree, body, "arguments");
    if (!is_text(tree, name)) return refuse(error, m->index, "a tool call's \"name\" is missing or not a string");
    if (arguments == 0) return refuse(error, m->index, "a tool call has no \"arguments\"");
    if (after_text) put(out, TEMPLATE, SPAN("\n"));
    put(out, TEMPLATE, SPAN("<tool_call>\n{\"name\": \""));
    put(out, CONTENT, text_of(tree, name));
    put(out, TEMPLATE, SPAN("\", \"arguments\": "));
    if (is_text(tree, arguments)) put(out, CONTENT, text_of(tree, arguments));
    else slm2_json_dump(tree, arguments, CONTENT, out);
    put(out, TEMPLATE, SPAN("}\n</tool_call>"));
  }
  return SLM2_OK;
}

/* Thinking is kept in the turns after the last query only: always in the last message, and before it where
 * there is some. Elsewhere a closed think block is removed from the text; an unclosed one stays. */
static slm2_status put_assistant(const conversation *c, const message *m, slm2_marked_text *out, slm2_error *error) {
  span reasoning = m->has_reasoning ? m->reasoning : SPAN(""), content = m->content;
  span close = SPAN("</think>"), open = SPAN("<think>");
  size_t first_close = find(content, close, false);
  if (!m->has_reasoning && first_close != content.n) {
    reasoning = strip_back((span){content.p, first_close});
    size_t last_open = find(reasoning, open, true);
    if (last_open != reasoning.n) reasoning = from(reasoning, last_open + open.n);
    reasoning = strip_front(reasoning);
    content = strip_front(from(content, find(content, close, true) + close.n));
  }
  put(out, TEMPLATE, SPAN("<|im_start|>assistant\n"));
  bool is_last = c->tree->nodes[m->node].next == 0;
  if (m->index > c->last_query && (is_last || reasoning.n != 0)) {
    put(out, TEMPLATE, SPAN("<think>\n"));
    put(out, CONTENT, strip_front(strip_back(reasoning)));
    put(out, TEMPLATE, SPAN("\n</think>\n\n"));
    put(out, CONTENT, strip_front(content));
  } else {
    put(out, CONTENT, content);
  }
  SLM2_TRY(put_tool_calls(c->tree, m, content.n != 0, out, error));
  put(out, TEMPLATE, SPAN("<|im_end|>\n"));
  return SLM2_OK;
}

/* Neighbouring tool messages share one user turn. */
static slm2_status put_tool(const conversation *c, const message *m, bool after_tool, slm2_marked_text *out, slm2_error *error) {
  uint32_t next = c->tree->nodes[m->node].next;
  message following = {.role = N_ROLES};
  if (next != 0) SLM2_TRY(read_message(c->tree, next, m->index + 1, &following, error));
  if (!after_tool) put(out, TEMPLATE, SPAN("<|im_start|>user"));
  put(out, TEMPLATE, SPAN("\n<tool_response>\n"));
  put(out, CONTENT, m->content);
  put(out, TEMPLATE, SPAN("\n</tool_response>"));
  if (following.role != TOOL) put(out, TEMPLATE, SPAN("<|im_end|>\n"));
  return SLM2_OK;
}

static slm2_status put_messages(const conversation *c, slm2_marked_text *out, slm2_error *error) {
  uint64_t index = 0;
  role before = N_ROLES;
  for (uint32_t node = c->first; node != 0; node = c->tree->nodes[node].next, index++) {
    message m;
    SLM2_TRY(read_message(c->tree, node, index, &m, error));
    if (m.role == USER || (m.role == SYSTEM && index != 0)) {
      put(out, TEMPLATE, m.role == USER ? SPAN("<|im_start|>user\n") : SPAN("<|im_start|>system\n"));
      put(out, CONTENT, m.content);
      put(out, TEMPLATE, SPAN("<|im_end|>\n"));
    } else if (m.role == ASSISTANT) {
      SLM2_TRY(put_assistant(c, &m, out, error));
    } else if (m.role == TOOL) {
      SLM2_TRY(put_tool(c, &m, before == TOOL, out, error));
    }
    before = m.role;
  }
  return SLM2_OK;
}

static slm2_status render(const conversation *c, slm2_marked_text *out, slm2_error *error) {
  SLM2_TRY(put_system(c, out, error));
  SLM2_TRY(put_messages(c, out, error));
  if (c->generation_prompt) {
    put(out, TEMPLATE, SPAN("<|im_start|>assistant\n"));
    if (!c->thinking) put(out, TEMPLATE, SPAN("<think>\n\n</think>\n\n"));
  }
  return SLM2_OK;
}

/* --- the conversation --------------------------------------------------------------- */

static slm2_status read_flag(const slm2_json_tree *tree, const char *key, bool *flag, slm2_error *error) {
  uint32_t node = slm2_json_get(tree, 0, key);
  if (node == 0) return SLM2_OK;
  if (type_of(tree, node) != SLM2_JSON_TRUE && type_of(tree, node) != SLM2_JSON_FALSE)
    return slm2_fail(error, SLM2_E_CHAT, "chat", key, SLM2_NO_OFFSET, "\"%s\" must be true or false", key);
  *flag = type_of(tree, node) == SLM2_JSON_TRUE;
  return SLM2_OK;
}

static slm2_status check_keys(const slm2_json_tree *tree, slm2_error *error) {
  static const char known[][24] = {"messages", "tools", "add_generation_prompt", "enable_thinking"};
  for (uint32_t key = tree->nodes[0].child; key != 0; key = tree->nodes[key].next) {
    span name = text_of(tree, key);
    bool found = false;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) found |= is(name, known[i]);
    if (!found)
      return slm2_fail_n(error, SLM2_E_CHAT, "chat", name.p, name.n, SLM2_NO_OFFSET,
                         "unknown key; known are messages, tools, add_generation_prompt, enable_thinking");
  }
  return SLM2_OK;
}

static slm2_status read_tools(conversation *c, slm2_error *error) {
  uint32_t tools = slm2_json_get(c->tree, 0, "tools");
  if (is_null(c->tree, tools)) return SLM2_OK;
  if (type_of(c->tree, tools) != SLM2_JSON_ARRAY)
    return slm2_fail(error, SLM2_E_CHAT, "chat", "tools", SLM2_NO_OFFSET, "\"tools\" must be an array or null");
  c->first_tool = c->tree->nodes[tools].child;
  uint64_t i = 0;
  for (uint32_t tool = c->first_tool; tool != 0; tool = c->tree->nodes[tool].next, i++) {
    if (type_of(c->tree, tool) != SLM2_JSON_OBJECT)
      return slm2_fail(error, SLM2_E_CHAT, "chat", "tools", SLM2_NO_OFFSET, "tool %u is not an object", i);
  }
  return SLM2_OK;
}

static slm2_status read_conversation(conversation *c, slm2_error *error) {
  const slm2_json_tree *tree = c->tree;
  uint32_t messages = 0;
  if (type_of(tree, 0) == SLM2_JSON_OBJECT) {
    SLM2_TRY(check_keys(tree, error));
    SLM2_TRY(read_flag(tree, "add_generation_prompt", &c->generation_prompt, error));
    SLM2_TRY(read_flag(tree, "enable_thinking", &c->thinking, error));
    SLM2_TRY(read_tools(c, error));
    messages = slm2_json_get(tree, 0, "messages");
    if (messages == 0) return slm2_fail(error, SLM2_E_CHAT, "chat", "messages", SLM2_NO_OFFSET, "\"messages\" is missing");
  }
  if (type_of(tree, messages) != SLM2_JSON_ARRAY)
    return slm2_fail(error, SLM2_E_CHAT, "chat", "messages", SLM2_NO_OFFSET,
                     "a conversation is an array of messages, or an object with \"messages\"");
  c->first = tree->nodes[messages].child;
  if (c->first == 0)
    return slm2_fail(error, SLM2_E_CHAT, "chat", "messages", SLM2_NO_OFFSET, "there are 0 messages; at least 1 is needed");
  uint64_t index = 0;
  bool found = false;
  for (uint32_t node = c->first; node != 0; node = tree->nodes[node].next, index++) {
    message m;
    SLM2_TRY(read_message(tree, node, index, &m, error));
    if (m.role != USER || !m.has_content) continue;
    if (starts_with(m.content, SPAN("<tool_response>")) && ends_with(m.content, SPAN("</tool_response>"))) continue;
    c->last_query = index;
    found = true;
  }
  if (!found) c->last_query = index - 1;
  return SLM2_OK;
}

slm2_status slm2_chat_scratch_bytes(size_t n, size_t *bytes) { return slm2_json_tree_bytes(n, bytes); }

slm2_status slm2_chat_render(slm2_chat_format format, const char *json, size_t n, const slm2_chat_options *options,
                             void *scratch, size_t scratch_bytes, char *text, uint8_t *mask, size_t capacity,
                             size_t *n_text, slm2_error *error) {
  if (format != SLM2_CHAT_QWEN3)
    return slm2_fail(error, SLM2_E_UNSUPPORTED, "chat", "chat_format", SLM2_NO_OFFSET,
                     "the model has no known chat template (format %u)", (uint64_t)format);
  if ((json == NULL && n != 0) || scratch == NULL || (uintptr_t)scratch % 16 != 0 ||
      (capacity != 0 && (text == NULL || mask == NULL)) || n_text == NULL)
    return slm2_fail(error, SLM2_E_ARGUMENT, "chat", NULL, SLM2_NO_OFFSET, "a required pointer is NULL or not 16-byte aligned");
  slm2_json_tree tree;
  SLM2_TRY(slm2_json_tree_build(&tree, json, n, "conversation", scratch, scratch_bytes, error));
  conversation c = {.tree = &tree,
                    .generation_prompt = options == NULL || options->generation_prompt,
                    .thinking = options == NULL || options->thinking};
  SLM2_TRY(read_conversation(&c, error));
  slm2_marked_text out = {0};
  SLM2_TRY(render(&c, &out, error));
  if (out.n > capacity)
    return slm2_fail(error, SLM2_E_MEMORY, "chat", "text", out.n, "the prompt has %u bytes, room was lent for %u",
                     (uint64_t)out.n, (uint64_t)capacity);
  *n_text = out.n;
  out = (slm2_marked_text){text, mask, capacity, 0};
  return render(&c, &out, error);
}
