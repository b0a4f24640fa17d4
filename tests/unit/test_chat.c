/* The chat template: prompts that Hugging Face rendered (tests/gen/random_chat.py), the mask, JSON as Python prints
 * it, every refusal, and memory.
 */
#include "slm2/chat.h"
#include "tests/vectors.h"

typedef struct prompt {
  slm2_status status;
  char *text;
  uint8_t *mask;
  size_t n;
  slm2_error error;
} prompt;

/* JSON, scratch, text and mask lie in blocks of exactly their size. */
static prompt render(const char *json, size_t n, const slm2_chat_options *options) {
  prompt p = {SLM2_OK, NULL, NULL, 0, {0}};
  size_t scratch_bytes;
  if (slm2_chat_scratch_bytes(n, &scratch_bytes) != SLM2_OK) exit(1);
  char *copy = malloc(n + 1);
  void *scratch = malloc(scratch_bytes);
  memcpy(copy, json, n);
  p.status = slm2_chat_render(SLM2_CHAT_QWEN3, copy, n, options, scratch, scratch_bytes, NULL, NULL, 0, &p.n, &p.error);
  if (p.status == SLM2_E_MEMORY) {
    size_t need = (size_t)p.error.offset;
    p.text = malloc(need + 1);
    p.mask = malloc(need + 1);
    memset(p.text, '#', need + 1);
    p.n = 12345;
    CHECK(slm2_chat_render(SLM2_CHAT_QWEN3, copy, n, options, scratch, scratch_bytes, p.text, p.mask, need - 1, &p.n, &p.error) ==
          SLM2_E_MEMORY);
    CHECK(p.error.offset == need && p.n == 12345 && p.text[0] == '#');
    p.status = slm2_chat_render(SLM2_CHAT_QWEN3, copy, n, options, scratch, scratch_bytes, p.text, p.mask, need, &p.n, &p.error);
    CHECK(p.n == need && p.text[need] == '#');
    p.text[need] = '\0';
  }
  free(copy), free(scratch);
  return p;
}
static void drop(prompt *p) { free(p->text), free(p->mask); }

static void expect(const char *json, size_t n, const char *want, size_t n_want, const char *label) {
  prompt p = render(json, n, NULL);
  if (!CHECK_CASE(p.status == SLM2_OK && p.n == n_want && memcmp(p.text, want, n_want) == 0, label))
    printf("  %s\n  got %s\n", p.status == SLM2_OK ? "other text" : p.error.message, p.status == SLM2_OK ? p.text : "");
  drop(&p);
}

/* name, arguments and prompt: members of each element. */
static void check_file(const char *path, const char *name, const char *arguments, const char *text) {
  vector_value file = vector_file(path), element;
  size_t before = test_checks, at = 0;
  while (vector_next(file, &at, &element)) {
    size_t n_want, n_json;
    char *want = vector_string(vector_get(element, text), &n_want);
    vector_value label = name == NULL ? (vector_value){element.text, 40} : vector_get(element, name);
    char title[64];
    snprintf(title, sizeof title, "%.*s", (int)(label.n < 60 ? label.n : 60), label.text);
    vector_value json = vector_get(element, arguments);
    if (json.text[0] == '"') {
      char *inner = vector_string(json, &n_json);
      expect(inner, n_json, want, n_want, title);
      free(inner);
    } else {
      expect(json.text, json.n, want, n_want, title);
    }
    free(want);
  }
  CHECK_CASE(test_checks > before, path);
  vector_close(file);
}

/* Content is written Z, Y or in JSON of digits and brackets that the template's own text lacks; everything else
 * must be marked as template. */
static void check_mask(void) {
  static const struct {
    const char *json, *content;
  } cases[] = {
      {"[{\"role\":\"system\",\"content\":\"ZZ\"},{\"role\":\"user\",\"content\":\"Z\"},{\"role\":\"assistant\",\"content\":"
       "\"ZZZ\"}]",
       "Z"},
      {"[{\"role\":\"user\",\"content\":\"Z\"},{\"role\":\"assistant\",\"content\":\"<think>Z</think>\\nZ\"}]", "Z"},
      {"[{\"role\":\"user\",\"content\":\"Z\"},{\"role\":\"assistant\",\"content\":\"Z\",\"reasoning_content\":\"\\nZ\\n\"}]",
       "Z"},
      {"[{\"role\":\"assistant\",\"content\":\"Z\"},{\"role\":\"tool\",\"content\":\"Z\"},{\"role\":\"tool\",\"content\":\"Z\"}]",
       "Z"},
      {"[{\"role\":\"assistant\",\"tool_calls\":[{\"name\":\"Z\",\"arguments\":\"ZZ\"},{\"name\":\"Z\",\"arguments\":[1,2]}]}]",
       "Z[12]"},
      {"[{\"role\":\"assistant\",\"tool_calls\":[{\"function\":{\"name\":\"Z\",\"arguments\":12}}]}]", "Z12"},
      {"{\"messages\":[{\"role\":\"user\",\"content\":\"Z\"}],\"enable_thinking\":false}", "Z"},
      {"[{\"role\":\"user\",\"content\":\"<|im_end|>\"}]", NULL},
      {"{\"messages\":[{\"role\":\"user\",\"content\":\"\"}],\"tools\":[{\"<|im_end|>\":\"</tool_call>\"}]}", NULL},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    prompt p = render(cases[i].json, strlen(cases[i].json), NULL);
    CHECK_CASE(p.status == SLM2_OK, cases[i].json);
    for (size_t at = 0; cases[i].content != NULL && at < p.n; at++) {
      bool inside_list = p.text[at] == ',' && p.text[at + 1] == ' ' && p.text[at + 2] == '2';
      bool space_in_list = at != 0 && p.text[at] == ' ' && p.text[at - 1] == ',' && p.text[at + 1] == '2';
      bool content = strchr(cases[i].content, p.text[at]) != NULL || inside_list || space_in_list;
      CHECK_CASE(p.mask[at] == !content, cases[i].json);
    }
    drop(&p);
  }
  const char *json = cases[7].json;
  prompt p = render(json, strlen(json), NULL);
  static const char *const marks = "11111111111111111" "0000000000" "11111111111" "1111111111111111111111";
  CHECK(p.n == strlen(marks));
  for (size_t at = 0; at < p.n; at++) CHECK(p.mask[at] == (marks[at] == '1'));
  drop(&p);
  json = cases[8].json;
  p = render(json, strlen(json), NULL);
  const char *tool = strstr(p.text, "{\"<|im_end|>\": \"</tool_call>\"}");
  CHECK(tool != NULL);
  for (size_t at = 0; tool != NULL && at < p.n; at++) {
    size_t from = (size_t)(tool - p.text);
    CHECK(p.mask[at] == !(at >= from && at < from + 30));
  }
  drop(&p);
}

/* JSON in, json.dumps(json.loads(x), ensure_ascii=False) out: Python 3.11. */
static void check_json(void) {
  static const char *const cases[][2] = {
      {"-0", "0"},
      {"-0.0", "-0.0"},
      {"1E5", "100000.0"},
      {"1e16", "1e+16"},
      {"1e15", "1000000000000000.0"},
      {"1e-5", "1e-05"},
      {"0.0001", "0.0001"},
      {"123456789012345678901234567890", "123456789012345678901234567890"},
      {"1.10", "1.1"},
      {"1e400", "Infinity"},
      {"-1e400", "-Infinity"},
      {"1e-400", "0.0"},
      {"5e-324", "5e-324"},
      {"9007199254740993.0", "9007199254740992.0"},
      {"[]", "[]"},
      {"{}", "{}"},
      {"[ [ ] , { } ]", "[[], {}]"},
      {"{\"a\":1,\"b\":2,\"a\":3}", "{\"a\": 3, \"b\": 2}"},
      {"{\"b\":{\"x\":1,\"x\":{\"y\":0,\"y\":[]}},\"b\":{\"z\":1,\"\\u007a\":null},\"a\":true}",
       "{\"b\": {\"z\": null}, \"a\": true}"},
      {"{\"\":0,\"a\":1,\"\":2,\"ab\":3,\"a\":4,\"ab\":5,\"\":6}", "{\"\": 6, \"a\": 4, \"ab\": 5}"},
      {"[\"\\u00e9\\ud83d\\ude00\\/\\b\\f\\n\\r\\t\\u0001\\u007f\\\\\\\"\"]",
       "[\"\xc3\xa9\xf0\x9f\x98\x80/\\b\\f\\n\\r\\t\\u0001\x7f\\\\\\\"\"]"},
      {"[true,false,null,\"\"]", "[true, false, null, \"\"]"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char json[512], want[512];
    snprintf(json, sizeof json,
             "{\"messages\":[{\"role\":\"assistant\",\"tool_calls\":[{\"name\":\"f\",\"arguments\":%s}]}],\"add_generation_"
             "prompt\":false}",
             cases[i][0]);
    snprintf(want, sizeof want,
             "<|im_start|>assistant\n<tool_call>\n{\"name\": \"f\", \"arguments\": %s}\n</tool_call><|im_end|>\n", cases[i][1]);
    expect(json, strlen(json), want, strlen(want), cases[i][0]);
  }
}

#define USER "{\"role\":\"user\",\"content\":\"x\"}"
static const struct {
  const char *json;
  slm2_status status;
  const char *message;
} refused[] = {
    {"", SLM2_E_JSON, ""},
    {"[" USER, SLM2_E_JSON, ""},
    {"[" USER ",]", SLM2_E_JSON, ""},
    {"[" USER "] x", SLM2_E_JSON, ""},
    {"[{\"role\":\"user\",\"content\":\"\\ud800\"}]", SLM2_E_JSON, ""},
    {"[{\"role\":\"user\",\"content\":\"\xff\"}]", SLM2_E_JSON, ""},
    {"3", SLM2_E_CHAT, "a conversation is an array"},
    {"\"x\"", SLM2_E_CHAT, "a conversation is an array"},
    {"null", SLM2_E_CHAT, "a conversation is an array"},
    {"[]", SLM2_E_CHAT, "0 messages"},
    {"{}", SLM2_E_CHAT, "\"messages\" is missing"},
    {"{\"messages\":[]}", SLM2_E_CHAT, "0 messages"},
    {"{\"messages\":{}}", SLM2_E_CHAT, "a conversation is an array"},
    {"{\"messages\":null}", SLM2_E_CHAT, "a conversation is an array"},
    {"{\"messages\":[" USER "],\"Tools\":[]}", SLM2_E_CHAT, "unknown key"},
    {"{\"messages\":[" USER "],\"tools\":{}}", SLM2_E_CHAT, "\"tools\" must be an array or null"},
    {"{\"messages\":[" USER "],\"tools\":[{},1]}", SLM2_E_CHAT, "tool 1 is not an object"},
    {"{\"messages\":[" USER "],\"enable_thinking\":null}", SLM2_E_CHAT, "\"enable_thinking\" must be true or false"},
    {"{\"messages\":[" USER "],\"add_generation_prompt\":1}", SLM2_E_CHAT, "\"add_generation_prompt\" must be true or false"},
    {"[" USER ",3]", SLM2_E_CHAT, "message 1: it is not an object"},
    {"[{}]", SLM2_E_CHAT, "message 0: \"role\" is missing"},
    {"[{\"role\":null,\"content\":\"x\"}]", SLM2_E_CHAT, "message 0: \"role\" is missing"},
    {"[" USER ",{\"role\":\"developer\",\"content\":\"x\"}]", SLM2_E_CHAT, "message 1: its role is none of"},
    {"[{\"role\":\"use\",\"content\":\"x\"}]", SLM2_E_CHAT, "message 0: its role is none of"},
    {"[{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"x\"}]}]", SLM2_E_CHAT,
     "message 0: \"content\" must be a string or null"},
    {"[" USER ",{\"role\":\"tool\",\"content\":{}}]", SLM2_E_CHAT, "message 1: \"content\" must be a string or null"},
    {"[{\"role\":\"user\",\"content\":1}]", SLM2_E_CHAT, "message 0: \"content\" must be a string or null"},
    {"[{\"role\":\"system\",\"content\":null}]", SLM2_E_CHAT, "message 0: a first system message needs \"content\""},
    {"[{\"role\":\"system\"}]", SLM2_E_CHAT, "message 0: a first system message needs \"content\""},
    {"[{\"role\":\"assistant\",\"reasoning_content\":[]}]", SLM2_E_CHAT, "message 0: \"reasoning_content\" must be"},
    {"[{\"role\":\"assistant\",\"tool_calls\":{}}]", SLM2_E_CHAT, "message 0: \"tool_calls\" must be"},
    {"[{\"role\":\"assistant\",\"tool_calls\":[1]}]", SLM2_E_CHAT, "message 0: a tool call is not an object"},
    {"[{\"role\":\"assistant\",\"tool_calls\":[{\"function\":\"f\"}]}]", SLM2_E_CHAT,
     "message 0: a tool call's \"function\" is not an object"},
    {"[{\"role\":\"assistant\",\"tool_calls\":[{\"arguments\":1}]}]", SLM2_E_CHAT,
     "message 0: a tool call's \"name\" is missing"},
    {"[{\"role\":\"assistant\",\"tool_calls\":[{\"name\":null,\"arguments\":1}]}]", SLM2_E_CHAT,
     "message 0: a tool call's \"name\" is missing"},
    {"[{\"role\":\"assistant\",\"tool_calls\":[{\"function\":{\"name\":\"f\"},\"arguments\":1}]}]", SLM2_E_CHAT,
     "message 0: a tool call has no \"arguments\""},
};

static void check_refusals(void) {
  for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
    prompt p = render(refused[i].json, strlen(refused[i].json), NULL);
    CHECK_CASE(p.status == refused[i].status && p.error.code == p.status && p.n == 0, refused[i].json);
    if (!CHECK_CASE(strstr(p.error.message, refused[i].message) != NULL, refused[i].json))
      printf("  said: %s\n", p.error.message);
    drop(&p);
  }
  char deep[300] = "";
  for (int i = 0; i < 65; i++) strcat(deep, "[");
  for (int i = 0; i < 65; i++) strcat(deep, "]");
  prompt p = render(deep, strlen(deep), NULL);
  CHECK(p.status == SLM2_E_JSON);
}

static void check_options(void) {
  static const struct {
    bool prompt, thinking;
    const char *json, *tail;
  } cases[] = {
      {true, true, "[" USER "]", "x<|im_end|>\n<|im_start|>assistant\n"},
      {true, false, "[" USER "]", "x<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n"},
      {false, true, "[" USER "]", "x<|im_end|>\n"},
      {false, false, "[" USER "]", "x<|im_end|>\n"},
      {false, true, "{\"messages\":[" USER "],\"add_generation_prompt\":true,\"enable_thinking\":false}",
       "x<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n"},
      {true, false, "{\"enable_thinking\":true,\"messages\":[" USER "]}", "x<|im_end|>\n<|im_start|>assistant\n"},
      {true, true, "{\"add_generation_prompt\":true,\"messages\":[" USER "],\"add_generation_prompt\":false}", "x<|im_end|>\n"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    slm2_chat_options options = {cases[i].prompt, cases[i].thinking};
    prompt p = render(cases[i].json, strlen(cases[i].json), &options);
    CHECK_CASE(p.status == SLM2_OK && strcmp(p.text + strlen("<|im_start|>user\n"), cases[i].tail) == 0, cases[i].json);
    drop(&p);
  }
}

static void check_arguments(void) {
  slm2_error error = {0};
  _Alignas(16) uint8_t scratch[4096];
  char text[256];
  uint8_t mask[256];
  const char *json = "[" USER "]";
  size_t n = strlen(json), n_text = 7, need = 3;
  CHECK(slm2_chat_scratch_bytes(n, NULL) == SLM2_E_ARGUMENT);
  CHECK(slm2_chat_scratch_bytes(SIZE_MAX, &need) == SLM2_E_ARGUMENT && need == 3);
  CHECK(slm2_chat_scratch_bytes(n, &need) == SLM2_OK && need <= sizeof scratch);
  CHECK(slm2_chat_render(SLM2_CHAT_NONE, json, n, NULL, scratch, need, text, mask, 256, &n_text, &error) == SLM2_E_UNSUPPORTED);
  CHECK(slm2_chat_render((slm2_chat_format)9, json, n, NULL, scratch, need, text, mask, 256, &n_text, &error) ==
        SLM2_E_UNSUPPORTED);
  CHECK(slm2_chat_render(SLM2_CHAT_QWEN3, NULL, n, NULL, scratch, need, text, mask, 256, &n_text, &error) == SLM2_E_ARGUMENT);
  CHECK(slm2_chat_render(SLM2_CHAT_QWEN3, json, n, NULL, NULL, need, text, mask, 256, &n_text, &error) == SLM2_E_ARGUMENT);
  CHECK(slm2_chat_render(SLM2_CHAT_QWEN3, json, n, NULL, scratch + 1, need, text, mask, 256, &n_text, &error) == SLM2_E_ARGUMENT);
  CHECK(slm2_chat_render(SLM2_CHAT_QWEN3, json, n, NULL, scratch, need, NULL, mask, 256, &n_text, &error) == SLM2_E_ARGUMENT);
  CHECK(slm2_chat_render(SLM2_CHAT_QWEN3, json, n, NULL, scratch, need, text, NULL, 256, &n_text, &error) == SLM2_E_ARGUMENT);
  CHECK(slm2_chat_render(SLM2_CHAT_QWEN3, json, n, NULL, scratch, need, text, mask, 256, NULL, &error) == SLM2_E_ARGUMENT);
  CHECK(slm2_chat_render(SLM2_CHAT_QWEN3, json, n, NULL, scratch, need - 1, text, mask, 256, &n_text, &error) == SLM2_E_MEMORY);
  CHECK(error.offset == UINT64_MAX && n_text == 7);
  CHECK(slm2_chat_render(SLM2_CHAT_QWEN3, json, n, NULL, scratch, need, text, mask, 256, &n_text, NULL) == SLM2_OK &&
        n_text != 7);
}

/* Every cut of a conversation is refused as JSON, and stays inside its memory. */
static void check_cuts(void) {
  const char *json =
      "{\"messages\":[" USER
      ",{\"role\":\"assistant\",\"content\":null,\"tool_calls\":[{\"function\":{\"name\":\"\\u00e9\",\"arguments\":"
      "{\"a\":[1,-2.5e3,true,false,null,{}],\"a\":\"\\ud83d\\ude00\"}}}]},{\"role\":\"tool\",\"content\":\"y\"}],\"tools\":[{"
      "\"t\":[[]]}]}";
  size_t n = strlen(json);
  for (size_t cut = 0; cut < n; cut++) {
    prompt p = render(json, cut, NULL);
    CHECK(p.status == SLM2_E_JSON);
  }
  prompt p = render(json, n, NULL);
  CHECK(p.status == SLM2_OK);
  drop(&p);
}

/* Large inputs whose cost would show if anything were quadratic; and the densest JSON, which fills the scratch. */
static void check_large(void) {
  size_t capacity = 1u << 22, at = 0;
  char *json = malloc(capacity);
  at += (size_t)sprintf(json, "[" USER);
  for (int i = 0; i < 40000; i++) at += (size_t)sprintf(json + at, ",{\"role\":\"tool\",\"content\":\"%d\"}", i);
  at += (size_t)sprintf(json + at, "]");
  prompt p = render(json, at, NULL);
  CHECK(p.status == SLM2_OK && p.n > 1000000);
  drop(&p);
  static const char head[] = "[{\"role\":\"assistant\",\"content\":\"x\",\"tool_calls\":[{\"name\":\"f\",\"arguments\":";
  at = (size_t)sprintf(json, "%s{", head);
  for (int i = 0; i < 60000; i++)
    at += (size_t)sprintf(json + at, "%s\"the same long beginning %d\":1", i == 0 ? "" : ",", i * 7 % 50000);
  at += (size_t)sprintf(json + at, "}}]}]");
  p = render(json, at, NULL);
  CHECK(p.status == SLM2_OK && strstr(p.text, "\"the same long beginning 0\": 1, \"the same long beginning 7\": 1") != NULL);
  size_t keys = 0;
  for (size_t i = 0; i + 9 <= p.n; i++) keys += memcmp(p.text + i, "beginning", 9) == 0;
  CHECK(keys == 50000);
  drop(&p);
  static const char *const dense[] = {"1", "[]", "{}", "\"\"", "{\"\":1}", "{\"\":{}}", "[[],[]]"};
  for (size_t i = 0; i < sizeof dense / sizeof *dense; i++) {
    at = (size_t)sprintf(json, "%s[", head);
    for (int k = 0; k < 30000; k++) at += (size_t)sprintf(json + at, "%s%s", k == 0 ? "" : ",", dense[i]);
    at += (size_t)sprintf(json + at, "]}]}]");
    p = render(json, at, NULL);
    CHECK_CASE(p.status == SLM2_OK, dense[i]);
    drop(&p);
  }
  for (size_t i = 0; i < capacity; i++) json[i] = '[';
  p = render(json, capacity, NULL);
  CHECK(p.status == SLM2_E_JSON);
  free(json);
}

int main(void) {
  check_file("tests/data/chat/chat_goldens.json", "name", "args", "text");
  check_file("tests/data/chat/qwen3_chat_vectors.jsonl", "id", "args", "prompt");
  check_file("tests/data/chat/random_vectors.jsonl", NULL, "json", "prompt");
  check_mask();
  check_json();
  check_refusals();
  check_options();
  check_arguments();
  check_cuts();
  check_large();
  return test_end("chat");
}
