# The browser's part: the engine package (web/engine), the page (web/app, when it is there) and the core's modules, put side
# by side in BUILD/web as they are served, and in BUILD/npm as they are packed. Included by the Makefile.
WEB      = $(BUILD)/web
NPM      = $(BUILD)/npm
NODE    ?= node
TSC      = $(NODE) build/node/node_modules/typescript/bin/tsc
WEB_JS   = $(wildcard web/engine/*.js)
WEB_APP  = $(shell find web/app -type f 2>/dev/null)
WASM_FILES = $(WASM_KINDS:%=$(WASM)/slm2-%.wasm)

.PHONY: web site web-files web-unit web-lint web-types engine-pack

# What the page checks each module against.
$(WASM)/modules.json: $(WASM_FILES)
	@begin='{'; for f in $^; do \
	  printf '%s\n  "%s": {"sha256": "%s", "bytes": %s}' "$$begin" "$${f##*/}" "$$(sha256sum < $$f | cut -d' ' -f1)" "$$(wc -c < $$f)"; \
	  begin=,; done > $@; printf '\n}\n' >> $@

wasm: $(WASM)/modules.json

web-files: $(WASM)/modules.json ## the files of the page, as they are served (build/web)
	@tools/setup page
	@rm -rf $(WEB)
	@mkdir -p $(WEB)/engine $(WEB)/wasm $(WEB)/vendor $(WEB)/models
	@cp $(WEB_JS) $(WEB)/engine
	@cp $(WASM_FILES) $(WASM)/modules.json $(WEB)/wasm
	@cp -R web/app/. $(WEB)
	@sed '/^\/\/# sourceMappingURL/d' build/node/node_modules/marked/lib/marked.esm.js > $(WEB)/vendor/marked.js
	@cp build/node/node_modules/marked/LICENSE* $(WEB)/vendor/marked.LICENSE.txt
	@cp LICENSE $(WEB)/LICENSE.txt
	@cp tests/golden/digests.txt models/demo.slm2 $(WEB)/models
	@mv $(WEB)/models/digests.txt $(WEB)
	@$(NODE) tools/web_site.mjs $(WEB)

web: ## build the page, serve it with the demo model, print its URL; Ctrl-C ends it
	@tools/setup page web
	@$(MAKE) --no-print-directory $(BUILD)/slm2 web-files
	@$(BUILD)/slm2 serve models/demo.slm2 --root $(WEB)

# The app for any static https host, under any path: dist/site. Its service worker supplies the headers where the host cannot.
SITE = dist/site
site: web-files ## the page for a static host (dist/site)
	@rm -rf $(SITE)
	@mkdir -p $(dir $(SITE))
	@cp -R $(WEB) $(SITE)
	@cp web/app/sw.js $(SITE)/sw.js
	@$(NODE) tools/web_site.mjs $(SITE) --site

web-unit: ## unit tests of the browser engine's JavaScript
	@$(NODE) --test --test-reporter=dot tests/web/*.test.mjs

web-lint: ## types of the JavaScript of the browser engine and of the page
	@tools/setup types
	@$(TSC) -p web/engine
	@$(TSC) -p web

web-types: ## its type declarations, from the comments (build/types)
	@tools/setup types
	@rm -rf $(BUILD)/types
	@$(TSC) -p web/engine --noEmit false --declaration --emitDeclarationOnly --outDir $(BUILD)/types

engine-pack: web-types $(WASM)/modules.json ## the npm package with the modules (build/npm/slm2-VERSION.tgz)
	@rm -rf $(NPM)
	@mkdir -p $(NPM)/engine $(NPM)/wasm
	@cp $(WEB_JS) $(BUILD)/types/*.d.ts $(NPM)/engine
	@cp $(WASM_FILES) $(WASM)/modules.json $(NPM)/wasm
	@cp web/engine/package.json web/engine/README.md LICENSE $(NPM)
	@cd $(NPM) && npm pack --silent

# A browser test runs the packed package.
browser-base: engine-pack
