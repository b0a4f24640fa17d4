# `make check` and `make full`: everything that can differ between compilers, processors and byte orders, and long searches.
# Included by the Makefile. A leg is one line of output with its time, its log is $(BUILD)/check/LEG.log; every leg runs,
# then the command fails if one did. Legs are independent targets: `make leg-s390x` runs one.
CHECK   = $(BUILD)/check
LEG     = @tests/leg.sh $(CHECK) $(@:leg-%=%)
SUBMAKE = $(MAKE) --no-print-directory -j1
# All digests natively; emulated processors make the short part of the file.
GOLDEN  = tests/golden/run.sh

NATIVE   = gcc-O0 gcc-O2 gcc-O3-native clang-O0 clang-O2 clang-O3-native
EMULATED = nehalem haswell aarch64 win-x64 s390x i686 wasm32
CHECKS   = sanitizers $(NATIVE) $(EMULATED) math-sample readers fuzz-replay fuzz-short
FULL     = $(filter-out math-sample fuzz-short,$(CHECKS)) math-full wasm32-all readers-long fuzz-long cross-unit conformance-full

.PHONY: check full check-setup $(addprefix leg-,$(CHECKS) $(FULL))
check: check-setup ## sanitizers, compilers, cross and emulated targets, math sample, fuzzing: up to 15 minutes on two cores
	@$(MAKE) --no-print-directory --keep-going -j2 $(addprefix leg-,$(CHECKS))
	@echo "ok: all of make check"
full: check-setup ## all of check with nothing left out: exhaustive math, long fuzzing (hours)
	@$(MAKE) --no-print-directory --keep-going -j2 $(addprefix leg-,$(FULL))
	@echo "ok: all of make full"
check-setup:
	@tools/setup test check math cross

# native: compiler, options
native = $(LEG) '$(SUBMAKE) BUILD=$(CHECK)/$(@:leg-%=%) CC=$(1) OPT="$(2)" all unit && $(GOLDEN) $(CHECK)/$(@:leg-%=%)'
leg-gcc-O0:         ; $(call native,gcc,-O0)
leg-gcc-O2:         ; $(call native,gcc,-O2)
leg-gcc-O3-native:  ; $(call native,gcc,-O3 -march=native)
leg-clang-O0:       ; $(call native,clang-19,-O0)
leg-clang-O2:       ; $(call native,clang-19,-O2)
leg-clang-O3-native: ; $(call native,clang-19,-O3 -march=native)
leg-sanitizers:     ; $(LEG) '$(SUBMAKE) BUILD=$(CHECK)/sanitizers CFLAGS="-O1 -g" \
                        EXTRA="-fsanitize=address,undefined -fno-sanitize-recover=all" unit'

# cross: tool prefix, EXTRA, what runs its programs. On s390x, GCC's standard mode computes f32 in f64 for the C library's sake;
# -fexcess-precision=fast is its plain arithmetic, every operation rounded to its type [D1].
cross = $(LEG) '$(SUBMAKE) BUILD=$(CHECK)/$(@:leg-%=%) CC=$(1)gcc AR=$(1)ar EXTRA="-static $(2)" all && \
          RUN="$(3)" $(GOLDEN) $(CHECK)/$(@:leg-%=%) --short'
leg-nehalem:  ; $(call cross,x86_64-linux-gnu-,-march=nehalem,qemu-x86_64-static -cpu Nehalem)
leg-haswell:  ; $(call cross,x86_64-linux-gnu-,-O3 -march=haswell,qemu-x86_64-static -cpu Haswell)
leg-aarch64:  ; $(call cross,aarch64-linux-gnu-,,qemu-aarch64-static)
leg-s390x:    ; $(call cross,s390x-linux-gnu-,-fexcess-precision=fast,qemu-s390x-static)
leg-i686:     ; $(call cross,i686-linux-gnu-,-msse2 -mfpmath=sse,)
leg-win-x64:  ; $(call cross,x86_64-w64-mingw32-,,env WINEDEBUG=-all WINEPREFIX=$(abspath $(CHECK))/wine wine)

# wasm32 without a libc: the core and tests/wasm/digest.c, in node.
WASM_CORE = $(filter-out src/platform/%,$(CORE_SRC))
WASM_OBJ  = $(WASM_CORE:%.c=$(CHECK)/wasm32/%.o) $(CHECK)/wasm32/tests/wasm/digest.o
$(CHECK)/wasm32/%.o: %.c
	@mkdir -p $(@D)
	@clang-19 --target=wasm32 $(NUMERIC) $(WARN) -O2 -ffreestanding -nostdlibinc -Iinclude -Isrc -I. -MMD -MP -c -o $@ $<
$(CHECK)/wasm32/digest.wasm: $(WASM_OBJ)
	@wasm-ld-19 --no-entry --stack-first -z stack-size=1048576 -o $@ $^
leg-wasm32:     ; $(LEG) '$(SUBMAKE) $(CHECK)/wasm32/digest.wasm && node tests/wasm/digest.mjs $(CHECK)/wasm32/digest.wasm'
leg-wasm32-all: ; $(LEG) '$(SUBMAKE) $(CHECK)/wasm32/digest.wasm && node tests/wasm/digest.mjs $(CHECK)/wasm32/digest.wasm --all'
-include $(WASM_OBJ:.o=.d)

# Every greedy prompt of the comparison with PyTorch; `make test` runs one of twenty.
leg-conformance-full: ; $(LEG) '$(SUBMAKE) conformance-full'

# Fuzzing: libFuzzer targets of tests/fuzz under both sanitizers. What was found once is replayed from tests/data/fuzz.
FUZZ_FLAGS = BUILD=$(CHECK)/fuzz CC=clang-19 CFLAGS="-O1 -g" EXTRA="-D_POSIX_C_SOURCE=200809L -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all"
FUZZ_TARGETS = $(patsubst tests/fuzz/%.c,%,$(wildcard tests/fuzz/*.c))
FUZZ_PROGRAMS = $(FUZZ_TARGETS:%=$(BUILD)/fuzz/%)
$(BUILD)/fuzz/%: tests/fuzz/%.c $(LIB)
	@mkdir -p $(@D)
	@$(CC) $(FLAGS) -fsanitize=fuzzer -o $@ $< $(LIB)
fuzz-programs: $(FUZZ_PROGRAMS)
.PHONY: fuzz-programs
-include $(FUZZ_PROGRAMS:=.d)
FUZZ = $(SUBMAKE) $(FUZZ_FLAGS) fuzz-programs && $(SUBMAKE) BUILD=$(CHECK)/gcc-O2 CC=gcc OPT="-O2" all && \
       tests/fuzz/run.sh $(CHECK)/fuzz/fuzz $(CHECK)/gcc-O2/slm2
leg-fuzz-short: ; $(LEG) '$(FUZZ) 20'
leg-fuzz-long:  ; $(LEG) '$(FUZZ) 1800'
