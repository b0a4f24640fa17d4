/* tests/conformance/conformance.c: the program of `make conformance` (conformance.h).
 *
 *   conformance check  GOLDENS MODELS tokenizer.json     everything; 50 of the 1,000 greedy prompts
 *   conformance full   GOLDENS MODELS tokenizer.json     everything; all of them
 *   conformance greedy GOLDENS MODELS                    all greedy prompts, nothing else
 *   conformance print  tokenizer.json SET FIRST COUNT    inputs and results of a set, for refresh.py
 */
#include "tests/conformance/conformance.h"

bool expect(bool holds, const char *what) {
  test_checks++;
  if (!holds) printf("FAIL %s\n", what);
  test_failures += !holds;
  return holds;
}

int main(int argc, char **argv) {
  const char *command = argc > 1 ? argv[1] : "";
  bool full = strcmp(command, "full") == 0;
  if (argc == 6 && strcmp(command, "print") == 0) {
    print_set(open_tokenizer(argv[2]), argv[3], (uint32_t)strtoul(argv[4], NULL, 10), (uint32_t)strtoul(argv[5], NULL, 10));
    close_tokenizer();
    return 0;
  }
  if (argc == 5 && (full || strcmp(command, "check") == 0)) {
    check_logits(argv[2], argv[3]);
    check_greedy(argv[2], argv[3], full ? 1 : 20);
    check_text(argv[2], open_tokenizer(argv[4]));
    close_tokenizer();
    return test_end("conformance");
  }
  if (argc == 4 && strcmp(command, "greedy") == 0) {
    check_greedy(argv[2], argv[3], 1);
    return test_end("conformance");
  }
  fprintf(stderr, "usage: conformance check|full GOLDENS MODELS tokenizer.json\n"
                  "       conformance greedy GOLDENS MODELS\n"
                  "       conformance print tokenizer.json SET FIRST COUNT\n");
  return 2;
}
