# `make check` and `make full`: everything that can differ between compilers, processors and byte orders, and long searches.
# Included by the Makefile. A leg is one target and one line of output with its time; its log is $(CHECK)/LEG.log. Every leg
# runs, then the command fails if one did. `make leg-s390x` runs one.
CHECK   = $(BUILD)/check
LEG     = @tests/leg.sh $(CHECK) $(@:leg-%=%)
HERE    = $(CHECK)/$(@:leg-%=%)
SUBMAKE = MAKEFLAGS= $(MAKE) --no-print-directory
GOLDEN  = tests/golden/run.sh

NATIVE  = gcc-O2 gcc-O3-native gcc-O0 clang-O2 clang-O3-native clang-O0
CROSS   = nehalem haswell aarch64 dotprod s390x i686 win-x64
KERNELS = nehalem haswell aarch64 dotprod win-x64
CHECKS  = sanitizers tsan bits $(NATIVE) $(CROSS) $(KERNELS:%=kernels-%) wasm32 math readers fuzz
UNITS   = aarch64 s390x i686
FULL    = sanitizers tsan bits $(NATIVE) $(CROSS) $(KERNELS:%=kernels-%) wasm32-all math-full readers-long fuzz-long $(UNITS:%=unit-%)

.PHONY: check full check-setup check-base $(addprefix leg-,$(CHECKS) $(FULL)) fuzz-programs
check: check-setup ## sanitizers, compilers, cross targets, math sample, fuzzing, three browsers: half an hour of two cores
	@$(MAKE) --no-print-directory --keep-going -j2 $(addprefix leg-,$(CHECKS))
	@echo "ok: all of make check"
full: check-setup ## the same with nothing left out: exhaustive math, long fuzzing, emulated unit tests (hours)
	@$(MAKE) --no-print-directory --keep-going -j2 $(addprefix leg-,$(FULL))
	@echo "ok: all of make full"
check-setup:
	@tools/setup test check math cross

# What several legs use: the command and mathcheck by gcc -O2.
BASE = BUILD=$(CHECK)/gcc-O2 CC=gcc OPT="-O2"
check-base:
	@$(SUBMAKE) -s $(BASE) all $(CHECK)/gcc-O2/mathcheck

# native: compiler, options. All digests, all unit tests. QUIET: at -O3 GCC takes bounded loops for overflows (base/decimal.c).
QUIET  = -Wno-stringop-overflow
native = $(LEG) '$(SUBMAKE) BUILD=$(HERE) CC=$(1) OPT="$(2)" all unit && $(GOLDEN) $(HERE)'
leg-gcc-O2: check-base
leg-gcc-O2:          ; $(call native,gcc,-O2)
leg-gcc-O0:          ; $(call native,gcc,-O0)
leg-gcc-O3-native:   ; $(call native,gcc,-O3 -march=native $(QUIET))
leg-clang-O2:        ; $(call native,clang-19,-O2)
leg-clang-O0:        ; $(call native,clang-19,-O0)
leg-clang-O3-native: ; $(call native,clang-19,-O3 -march=native)
leg-sanitizers:      ; $(LEG) '$(SUBMAKE) BUILD=$(HERE) CFLAGS="-O1 -g" \
                         EXTRA="-fsanitize=address,undefined -fno-sanitize-recover=all" unit'

# Threads under ThreadSanitizer; and every way of computing the demo model against the oracle.
leg-tsan:            ; $(LEG) '$(SUBMAKE) BUILD=$(HERE) CC=clang-19 CFLAGS="-O1 -g" EXTRA="-fsanitize=thread" \
                         TEST_SRC="tests/unit/test_pool.c tests/unit/test_forward.c tests/unit/test_session.c" all unit && \
                         $(HERE)/slm2 run $${DEMO:-models/demo.slm2} -p Hello --threads 4 --max-tokens 16 --seed 1 --json >/dev/null'
leg-bits: check-base ; $(LEG) '$(CHECK)/gcc-O2/slm2 check $${DEMO:-models/demo.slm2}'

# What each cross target is compiled with, and what runs it. On s390x GCC's standard mode computes f32 in f64, to suit the C
# library's float_t; -fexcess-precision=fast is its plain arithmetic, every operation rounded to its type [D1]. A processor
# with fused multiply-add (haswell, aarch64, s390x) must not use it.
BUILD_nehalem = CC=x86_64-linux-gnu-gcc AR=x86_64-linux-gnu-ar EXTRA="-static -march=nehalem"
RUN_nehalem   = qemu-x86_64-static -cpu Nehalem
BUILD_haswell = CC=x86_64-linux-gnu-gcc AR=x86_64-linux-gnu-ar EXTRA="-static -O3 -march=haswell $(QUIET)"
RUN_haswell   = qemu-x86_64-static -cpu Haswell
BUILD_aarch64 = CC=aarch64-linux-gnu-gcc AR=aarch64-linux-gnu-ar EXTRA=-static
RUN_aarch64   = qemu-aarch64-static
BUILD_dotprod = CC=aarch64-linux-gnu-gcc AR=aarch64-linux-gnu-ar EXTRA="-static -march=armv8.2-a+dotprod"
RUN_dotprod   = qemu-aarch64-static
BUILD_s390x   = CC=s390x-linux-gnu-gcc AR=s390x-linux-gnu-ar EXTRA="-static -fexcess-precision=fast"
RUN_s390x     = qemu-s390x-static
BUILD_i686    = CC=i686-linux-gnu-gcc AR=i686-linux-gnu-ar EXTRA="-static -msse2 -mfpmath=sse"
RUN_i686      = qemu-i386-static
BUILD_win-x64 = CC=x86_64-w64-mingw32-gcc AR=x86_64-w64-mingw32-ar EXTRA=-static
RUN_win-x64   = env WINEDEBUG=-all WINEPREFIX=$(abspath $(CHECK))/wine wine
$(CROSS:%=leg-%): leg-%:
	$(LEG) '$(SUBMAKE) BUILD=$(HERE) $(BUILD_$*) all && RUN="$(RUN_$*)" $(GOLDEN) $(HERE) --short'
# Every slot of every twin that this target has, against the oracle.
$(KERNELS:%=leg-kernels-%): leg-kernels-%: leg-%
	$(LEG) '$(SUBMAKE) BUILD=$(CHECK)/$* $(BUILD_$*) $(CHECK)/$*/tests/kernelcheck && p=$(CHECK)/$*/tests/kernelcheck && \
	  if [ ! -e $$p ]; then p=$$p.exe; fi && $(RUN_$*) $$p $${DEMO:-models/demo.slm2}'
$(UNITS:%=leg-unit-%): leg-unit-%: leg-%
	$(LEG) '$(SUBMAKE) BUILD=$(CHECK)/$* $(BUILD_$*) RUN="$(RUN_$*)" unit'

# The browser's modules in node (wasm/wasm.mk).
leg-wasm32:     ; $(LEG) '$(SUBMAKE) BUILD=$(HERE) wasm-test'
leg-wasm32-all: ; $(LEG) '$(SUBMAKE) BUILD=$(HERE) wasm-test-all'

leg-math: check-base
	$(LEG) 'tests/exhaustive/run.sh $(CHECK)/gcc-O2 sample'
leg-math-full: check-base
	$(LEG) 'tests/exhaustive/run.sh $(CHECK)/gcc-O2 full'

# Two readers of docs/FORMAT.md; ours on edited files.
readers = $(LEG) 'command -v python3 >/dev/null || { echo "SKIP: python3 is not installed"; exit 0; }; \
  python3 -B tests/gen/read_slm2.py $${DEMO:-models/demo.slm2} && \
  python3 -B tests/fault/format_differential.py $(CHECK)/gcc-O2/slm2 $(1)'
leg-readers: check-base      ; $(call readers,150)
leg-readers-long: check-base ; $(call readers,5000)

# libFuzzer targets under both sanitizers; tests/fuzz/run.sh replays what was found before, then searches.
FUZZ_BUILD = BUILD=$(CHECK)/fuzz CC=clang-19 CFLAGS="-O1 -g" EXTRA="-D_POSIX_C_SOURCE=200809L \
               -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all"
FUZZ_PROGRAMS = $(patsubst tests/fuzz/%.c,$(BUILD)/fuzz/%,$(wildcard tests/fuzz/*.c))
$(BUILD)/fuzz/%: tests/fuzz/%.c $(LIB)
	@mkdir -p $(@D)
	@$(CC) $(FLAGS) -fsanitize=fuzzer -o $@ $< $(LIB)
fuzz-programs: $(FUZZ_PROGRAMS)
FUZZ = $(LEG) '$(SUBMAKE) $(FUZZ_BUILD) fuzz-programs && tests/fuzz/run.sh $(CHECK)/fuzz/fuzz $(CHECK)/gcc-O2/slm2 $(1)'
leg-fuzz: check-base      ; $(call FUZZ,30)
leg-fuzz-long: check-base ; $(call FUZZ,1200)

-include $(FUZZ_PROGRAMS:=.d)
