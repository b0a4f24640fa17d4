# Speed against llama.cpp on the same weights: bench/README.md. Included by the Makefile.
.PHONY: bench
bench: $(BUILD)/slm2 ## speed and memory, in turns with llama.cpp (node-llama-cpp by npm), against floors and goals
	@if command -v node >/dev/null 2>&1; then \
	  COMPILER="$$($(CC) --version | head -n 1)" FLAGS="$(strip $(NUMERIC) $(CFLAGS) $(EXTRA))" node bench/bench.mjs $(BUILD)/slm2 $(BUILD); \
	else \
	  echo "llama.cpp is left out: its runner needs node and npm (Debian: apt-get install nodejs npm)"; \
	  mkdir -p $(BUILD)/bench && $(BUILD)/slm2 synth $(BUILD)/bench/qwen3-0.6b.slm2 --shape qwen3-0.6b --seed 1 >/dev/null && \
	  $(BUILD)/slm2 bench $(BUILD)/bench/qwen3-0.6b.slm2; \
	fi
