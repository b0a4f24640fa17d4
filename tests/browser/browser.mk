# Tests in real browsers (tests/browser, docs/TESTING.md): Debian's Chromium, Firefox and WebKitGTK. Included by the Makefile.
# BROWSER_ONLY="WORD..." runs only the tests whose name contains one of the words.
BROWSERS      = chromium firefox webkit
BROWSER_ONLY ?=
BROWSER_RUN   = node tests/browser/run.mjs $(1) --build $(BUILD) $(BROWSER_ONLY)

.PHONY: screenshots browser-base browser-setup browser-test browser-check $(BROWSERS:%=browser-%) $(BROWSERS:%=leg-%) $(BROWSERS:%=leg-%-slow)
# In make test: what takes two minutes. All of it, in three engines, is make check.
BROWSER_QUICK = isolated 'harness: without' 'harness: the policy' kernels: numbers: package: page: page_offline: page_use: \
                'privacy: no request' refuse: 'store: import' 'stop: a' break: choice:
browser-test: ## the page, its engine, its store and its numbers, in Chromium (two minutes)
	@$(MAKE) --no-print-directory browser-chromium BROWSER_ONLY="$(BROWSER_QUICK)"
browser-check: $(BROWSERS:%=browser-%) ## the same in Chromium, Firefox and WebKitGTK

browser-base: $(BUILD)/slm2 $(BUILD)/tests/packets wasm web-files
$(BUILD)/tests/packets: tests/browser/packets.c
	@mkdir -p $(@D)
	@$(CC) $(FLAGS) -o $@ $<
browser-setup:
	@tools/setup browsers
browser-chromium:
	@tools/setup browser
	@$(MAKE) --no-print-directory browser-base
	@$(call BROWSER_RUN,chromium)
browser-firefox browser-webkit: browser-%: browser-setup
	@$(MAKE) --no-print-directory browser-base
	@$(call BROWSER_RUN,$*)

screenshots: ## the pictures of docs/screenshots, taken anew in Chromium
	@tools/setup browser
	@$(MAKE) --no-print-directory browser-base
	@node tests/browser/screenshots.mjs $(BUILD) docs/screenshots

# As legs of make check; in make full with the tests that take minutes.
CHECKS += $(BROWSERS)
FULL   += $(BROWSERS:%=%-slow)
check-setup: browser-setup
$(BROWSERS:%=leg-%): leg-%: browser-base
	$(LEG) '$(call BROWSER_RUN,$*)'
$(BROWSERS:%=leg-%-slow): leg-%-slow: browser-base
	$(LEG) '$(call BROWSER_RUN,$*) --slow'
