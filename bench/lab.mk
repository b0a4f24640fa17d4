# The browser's laboratory: bench/README.md. Included by the Makefile.
.PHONY: lab
lab: ## speed, start, stops and memory in Chromium and Firefox, in turns with wllama (npm), against floors and goals
	@tools/setup browsers
	@$(MAKE) --no-print-directory $(BUILD)/slm2 web-files lab-read
	@COMPILER="$$($(WASM_CC) --version | head -n 1)" FLAGS="$(NUMERIC) $(WASM_OPT) $(WASM_relaxed)" \
	  node bench/lab.mjs $(BUILD)/slm2 $(BUILD)

# The plain reading that nothing in a browser can exceed.
LAB_READ = $(call wasm_objects,simd,bench/lab/read.c)
.PHONY: lab-read
lab-read: $(WASM)/simd/read.wasm
$(WASM)/simd/read.wasm: $(LAB_READ)
	@$(WASM_LD) $(WASM_LINK) -o $@ $^
-include $(LAB_READ:.o=.d)
