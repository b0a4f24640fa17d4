# The browser engine's C as it is tested natively (tests/unit/test_web_*.c): without the threads, which are wasm's own.
WEB_SRC = $(filter-out $(WASM_CORE),$(wildcard wasm/*.c))
WEB_OBJ = $(WEB_SRC:%.c=$(BUILD)/obj/%.o)
$(WEB_OBJ): FREESTANDING = -ffreestanding
$(BUILD)/tests/test_web_%: tests/unit/test_web_%.c $(WEB_OBJ) $(LIB)
	@mkdir -p $(@D)
	@$(CC) $(FLAGS) -o $@ $< $(WEB_OBJ) $(LIB)
-include $(WEB_OBJ:.o=.d)

# And as it runs: the three modules in node, against the command. For the flags see tests/wasm/run.sh.
.PHONY: wasm-engine
wasm-test wasm-test-all: wasm-engine
wasm-engine: wasm $(BUILD)/slm2 ## the browser engine in node: answers, stops, refusals, conversions (two minutes)
	@set -e; for kind in $(WASM_KINDS); do \
	  flags=; \
	  if [ $$kind = relaxed ] && node --experimental-wasm-relaxed-simd -e 0 2>/dev/null; then \
	    flags="--experimental-wasm-relaxed-simd --no-liftoff"; fi; \
	  node $$flags tests/wasm/engine.mjs $(WASM)/slm2-$$kind.wasm $(BUILD); \
	done
