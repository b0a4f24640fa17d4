# The browser's three modules, without Emscripten, a libc, or an import but memory. Included by the Makefile.
#   slm2-scalar.wasm   threads and bulk memory: engines since 2021
#   slm2-simd.wasm     and 128-bit vectors
#   slm2-relaxed.wasm  and relaxed vectors, of which one instruction is used (src/kernel/wasm128/relaxed.c)
# clang compiles and wasm-ld links: clang's driver would run whatever wasm-opt it finds, and give other bytes.
WASM      = $(BUILD)/wasm
WASM_CC  ?= clang-19
WASM_LD  ?= wasm-ld-19
WASM_OPT ?= -O3
WASM_KINDS   = scalar simd relaxed
WASM_scalar  =
WASM_simd    = -msimd128 -mnontrapping-fptoint
WASM_relaxed = $(WASM_simd) -mrelaxed-simd
# No path and no debugging section gets into a module: the same source and compiler give the same bytes everywhere.
WASM_FLAGS = --target=wasm32-unknown-unknown $(NUMERIC) $(WARN) $(WASM_OPT) -matomics -mbulk-memory -ffreestanding \
               -nostdlibinc -ffile-prefix-map=$(CURDIR)=. -Iinclude -Isrc -I. -MMD -MP
# Memory is the host's: any shared one of at least 1 MiB whose maximum is at most 4 GiB less 1 MiB, so that a first stack that
# runs over address 0 meets no memory at the upper end either. The first stack lies below the data.
WASM_LINK  = --no-entry --import-memory --shared-memory --initial-memory=1048576 --max-memory=4293918720 \
               --stack-first -z stack-size=262144 --export=__stack_pointer --export=__heap_base --gc-sections --strip-all

WASM_THREADS = src/platform/pool.c wasm/gate.c wasm/pool.c
WASM_CORE = $(sort $(filter-out $(foreach isa,$(ISAS),src/kernel/$(isa)/%),$(CORE_SRC)) $(wildcard src/kernel/wasm128/*.c)) \
              $(WASM_THREADS) wasm/mem.c wasm/probe.c
WASM_SRC  = $(WASM_CORE) $(sort $(filter-out $(WASM_CORE),$(wildcard wasm/*.c)))
KERNELCHECK_SRC = $(wildcard tests/kernelcheck/*.c) tests/wasm/hosted/hosted.c
wasm_objects = $(patsubst %.c,$(WASM)/$(1)/%.o,$(2))

.PHONY: wasm wasm-heads wasm-again wasm-test wasm-test-all
wasm: $(WASM_KINDS:%=$(WASM)/slm2-%.wasm) ## the browser's three modules: scalar, SIMD128, relaxed SIMD (build/wasm)
	@wc -c $^ | sed '/total/d'

wasm-heads: $(WASM_KINDS:%=$(WASM)/%/digest.wasm) $(WASM_KINDS:%=$(WASM)/%/kernelcheck.wasm)
wasm-again: wasm ## the modules once more, from a copy of the source in another folder: the same bytes
	@rm -rf $(WASM)/again && mkdir -p $(WASM)/again/a/deeper/folder
	@find Makefile tools/setup src include convert wasm web tests bench -type f \( -path '*.[ch]' -o -name '*.mk' -o ! -path '*/*.*' \) | \
	  tar cf - -T - | tar xf - -C $(WASM)/again/a/deeper/folder
	@MAKEFLAGS= $(MAKE) -s -C $(WASM)/again/a/deeper/folder BUILD=out wasm >/dev/null
	@set -e; cd $(WASM); for module in slm2-*.wasm; do cmp $$module again/a/deeper/folder/out/wasm/$$module; done; rm -rf again
	@echo "ok wasm: the same bytes from two folders"
wasm-test: wasm wasm-heads wasm-again ## the modules in node: digests by 1, 2 and 3 threads, every kernel against the oracle
	@tests/wasm/run.sh $(WASM)
wasm-test-all: wasm wasm-heads wasm-again
	@tests/wasm/run.sh $(WASM) --all

$(WASM)/tools:
	@tools/setup wasm
	@mkdir -p $(@D) && touch $@
# The browsers' tests use these too.
browser-base: wasm-heads

define WASM_RULES
$(WASM)/$(1)/%.o: %.c wasm/wasm.mk | $(WASM)/tools
	@mkdir -p $$(@D)
	@$(WASM_CC) $(WASM_FLAGS) $(WASM_$(1)) $$(WASM_HOSTED) -c -o $$@ $$<
$(WASM)/slm2-$(1).wasm: $(call wasm_objects,$(1),$(WASM_SRC))
	@$(WASM_LD) $(WASM_LINK) -o $$@ $$^
# Test heads on the same core.
$(WASM)/$(1)/digest.wasm: $(call wasm_objects,$(1),$(WASM_CORE) tests/wasm/digest.c)
	@$(WASM_LD) $(WASM_LINK) -o $$@ $$^
$(call wasm_objects,$(1),$(KERNELCHECK_SRC)): WASM_HOSTED = -Itests/wasm/hosted
$(WASM)/$(1)/kernelcheck.wasm: $(call wasm_objects,$(1),$(filter-out $(WASM_THREADS),$(WASM_CORE)) $(KERNELCHECK_SRC))
	@$(WASM_LD) $(WASM_LINK) -o $$@ $$^
-include $(patsubst %.o,%.d,$(call wasm_objects,$(1),$(WASM_SRC) tests/wasm/digest.c $(KERNELCHECK_SRC)))
endef
$(foreach kind,$(WASM_KINDS),$(eval $(call WASM_RULES,$(kind))))
