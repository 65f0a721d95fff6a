# Pinned versions of tools that are no dependencies.
jco           := @bytecodealliance/jco-transpile@0.15.0 @bytecodealliance/preview2-shim@0.26.0
aimock        := @copilotkit/aimock@1.43.0
codex         := @openai/codex@0.171.0
opencode      := opencode-ai@1.18.33
gemini        := @google/gemini-cli@0.61.0
vendors       := 'litellm[proxy]==1.108.7' openai==3.57.0 anthropic==2.14.0 google-genai==3.6.1 ollama==0.6.3
cosign        := github.com/sigstore/cosign/v3/cmd/cosign@v3.1.3
oras          := oras.land/oras/cmd/oras@v1.3.6
golangci_lint := github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0

GO      ?= go
GUESTS  := files git shell tasks web
SAMPLE  := bin/sample

.DEFAULT_GOAL := help

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: build
build: bin/stockade ## build the guests and the program into bin/stockade

.PHONY: guests
guests: guests/dist/index.json ## build the built-in tools to WebAssembly, and that to native code

guest_sources := $(shell find guests sdk/go host/git/format host/policy/paths host/wasm host/sandbox host/tool cmd/stockade/internal/packguests -name '*.go' ! -name '*_test.go') wit go.mod

# The manifest of each module is written into it; index.json lists them. Their
# native code, for this platform, is made beside them.
guests/dist/index.json: $(guest_sources)
	@rm -rf guests/wasm guests/dist/*
	@for g in $(GUESTS); do echo "guest $$g"; \
	  GOOS=wasip1 GOARCH=wasm $(GO) build -buildvcs=false -buildmode=c-shared -trimpath -ldflags='-s -w' -o guests/wasm/$$g.wasm ./guests/$$g || exit 1; done
	@$(GO) run -trimpath ./cmd/stockade/internal/packguests guests

# The helper of the jail, for this platform. It is static, and embedded.
helper := host/jail/dist/$(shell $(GO) env GOOS)_$(shell $(GO) env GOARCH)
$(helper): $(shell find host/rootedfs host/jail/helper host/jail/seccomp host/jail/wire -name '*.go' ! -name '*_test.go') go.mod
	CGO_ENABLED=0 $(GO) build -buildvcs=false -trimpath -ldflags='-s -w' -o $@ ./host/jail/helper

.PHONY: helper
ifneq ($(filter linux_%,$(notdir $(helper))),)
helper: $(helper)
endif
helper: ## build the helper of the jail, where there is one

.PHONY: bin/stockade
bin/stockade: guests/dist/index.json helper
	$(GO) build -trimpath -ldflags='-s -w' -o bin/stockade ./cmd/stockade

.PHONY: install
PREFIX ?= $(HOME)/.local
install: build ## build the program and copy it to PREFIX/bin (~/.local/bin)
	mkdir -p $(DESTDIR)$(PREFIX)/bin
	install -m 755 bin/stockade $(DESTDIR)$(PREFIX)/bin/stockade

.PHONY: run
run: build ## run the main job: a turn of the agent on the sample workspace
	@rm -rf $(SAMPLE) && cp -R cmd/stockade/sample $(SAMPLE)
	bin/stockade -C $(SAMPLE) run --provider offline --allow file_edit --allow 'bash(command=wc -l notes.md)' \
	  "list files then read notes.md then find TODO in *.md then replace 'teh' with 'the' in notes.md then run wc -l notes.md"

# go vet has a target of its own. What was compiled for the program is used again: it has
# no paths of this machine either. Modules of others are a Go module of their own, and run
# beside the rest.
.PHONY: test
test: export REQUIRE_GUESTS := 1
test: guests helper ## run the tests, in five minutes on two cores; what takes longer has targets of its own
	@(cd host/internal/foreign && exec $(GO) test -trimpath -vet=off .) & foreign=$$!; \
	  $(GO) test -trimpath -vet=off ./...; rest=$$?; wait $$foreign && exit $$rest

# Each of these repeats itself: make test runs one round of each kind.
.PHONY: test-whole
WHOLE := $(addprefix ./host/,beneath sandbox sandbox/wasi selftest stage) ./cmd/stockade
test-whole: guests helper ## run all rounds of the tests of which make test runs one of each kind (WHOLE)
	$(GO) test -trimpath -vet=off -count 1 -timeout 30m $(WHOLE) -whole

.PHONY: test-fuel
test-fuel: ## run the specification suites and other programs with code that counts, next to code that does not
	cd host/internal/fueltest && $(GO) test ./...

# The packages with goroutines of their own, or with state that those of others
# share. selftest and the scripts of cmd/stockade go through all of these again,
# slowly: make test-race RACED=./... runs them, too. Of sandbox there are the tests
# of calls beside each other: under the race detector children compile for minutes.
# Of jail there are those that do not run the others again, or attack it.
RACED ?= $(addprefix ./host/,agent dispatch door egress kept llm/... policy redact registry registry/oci registry/source secret session/... stage sandbox/hostmod sandbox/linear \
  sandbox/meter sandbox/native sandbox/search) ./cmd/stockade/internal/...
.PHONY: test-race
test-race: guests helper ## run the tests of what runs at the same time (RACED) under the race detector
	$(GO) test -race $(RACED)
	$(GO) test -race -skip 'Tiers|Attacks|Mutants|Cases|Everyday|Reading' ./host/jail
	$(GO) test -race -run 'Concurrent|AtATime|Deadline|Cancel|Close|Nobody|TakeTurns|Idle|FreshInstance|SharedBudget|ManyCompile' ./host/sandbox

# Each loop runs for a third of a second, and for LOOP (2s) if that took 8 MiB more; the
# twenty that took most run in six calls at once, too. LOOP=20s takes a quarter of an hour.
.PHONY: test-engine-memory
LOOP ?= 2s
test-engine-memory: helper ## run each instruction and each function of the host in a loop, and measure how much memory the process takes
	$(GO) test -trimpath -vet=off -count 1 -timeout 60m -run TestLoopsAreBounded ./host/sandbox -loops -loop-long $(LOOP)

.PHONY: test-jail
test-jail: helper ## run the tests of the jail at all tiers, with all attacks, as two users, and without each of its layers
	$(GO) test -count 1 ./host/jail -all

# At tier 3 they run on a stage, and what they leave is compared, too. At tier 1 there
# is none.
.PHONY: test-everyday
EVERYDAY_TIERS ?= 3 1
test-everyday: helper ## run a hundred everyday commands plainly and in the jail, at tiers 3 and 1 (EVERYDAY_TIERS), which takes minutes
	for tier in $(EVERYDAY_TIERS); do $(GO) test -count 1 -run 'TestEverydayCommands|TestReadingCommands' ./host/jail -tier $$tier -everyday || exit 1; done

.PHONY: test-questions
test-questions: guests helper ## count the questions of 60 everyday commands at tiers 3 and 1, and compare them with cmd/stockade/testdata/questions.txt (a minute; UPDATE_QUESTIONS=1 writes it)
	$(GO) test -count 1 -run TestTheQuestionsOfEverydayCommands ./cmd/stockade -questions

.PHONY: test-programs
PROGRAMS ?= 10000
test-programs: helper ## run PROGRAMS (10000) random programs plainly and on a stage, and compare what they leave
	$(GO) test -count 1 -v -timeout 0 -run TestRandomPrograms ./host/jail -programs $(PROGRAMS)

.PHONY: test-git
REPOSITORIES ?= 1000
test-git: ## compare the tool git with git in REPOSITORIES (1000) random repositories (needs git)
	$(GO) test -count 1 -timeout 0 -run TestRandomRepositories ./guests/git -repositories $(REPOSITORIES)

.PHONY: test-screens
SCENARIO ?=
test-screens: build ## look at the program in tmux, at 80x24 and 200x50 (needs tmux, git; SCENARIO=NAME; UPDATE_SCREENS=1 writes what it compares with)
	$(GO) test -count 1 -v -tags screens -parallel 1 -timeout 10m ./cmd/stockade/internal/screens -scenario '$(SCENARIO)'

.PHONY: picture
picture: build ## play the session of the README's picture, and write .github/session.svg (needs tmux, git)
	$(GO) test -count 1 -v -tags screens -run '^TestPicture$$' ./cmd/stockade/internal/screens -picture '$(CURDIR)/.github/session.svg'

.PHONY: bench
bench: guests helper ## run the benchmarks of the stages
	$(GO) test -tags bench -run '^$$' -bench . -benchmem ./host/sandbox/... ./host/session/... ./host/policy/... ./host/dispatch/... ./cmd/stockade/...

.PHONY: bench-fuel
ROUNDS ?= 7
bench-fuel: ## what fuel costs, next to wazero's deadline and wasmtime's fuel (needs clang, lld, wasi-libc, libclang-rt-dev-wasm32)
	cd host/internal/peers && $(GO) run . -rounds $(ROUNDS)

.PHONY: bench-call
bench-call: build ## what a call costs, next to a process of its own, Extism and wasmtime (ROUNDS=7)
	cd host/internal/peers && $(GO) run -tags bench ./call -rounds $(ROUNDS)

.PHONY: bench-foreign
PLUGINS ?=
bench-foreign: build ## what a call of a command or a plugin costs, next to wazero's WASI and Extism's host (needs npm, pip; PLUGINS=DIR adds hyper-mcp's; ROUNDS=7)
	cd host/internal/peers && $(GO) run -tags bench ./foreign -rounds $(ROUNDS) -plugins '$(if $(PLUGINS),$(abspath $(PLUGINS)))'

.PHONY: bench-steps
bench-steps: build ## what a step of a turn costs at its beginning and after 400 others, on a scripted model (ROUNDS=7)
	cd host/internal/peers && $(GO) run -tags bench ./steps -rounds $(ROUNDS)

# Where it runs, nothing but this machine can be reached.
.PHONY: bench-agents
bench-agents: build ## what a turn costs, next to codex, opencode and gemini-cli on the same scripted model (needs npm; 800 MB; ROUNDS=7)
	npm install --prefix bin/agents --no-audit --no-fund --ignore-scripts --prefer-offline --loglevel error $(codex) $(opencode) $(gemini)
	cd host/internal/peers && $(GO) build -tags bench -o ../../../bin/bench-agents ./agents
	cd host/internal/peers && unshare -rn ../../../bin/bench-agents -rounds $(ROUNDS)

.PHONY: bench-grep
bench-grep: build ## what a search of 20,000 files takes, next to ripgrep and a native program (needs ripgrep; ROUNDS=7)
	cd host/internal/peers && $(GO) run -tags bench ./grep -rounds $(ROUNDS)

.PHONY: bench-web
bench-web: build ## what http_fetch of a page of 1 and of 8 MB takes, next to curl (needed), lynx and w3m (ROUNDS=7)
	cd host/internal/peers && $(GO) run -tags bench ./web -rounds $(ROUNDS)

.PHONY: bench-files
bench-files: build ## what the tools for files take on large inputs, next to sed, ls, git apply and patch (needed; ROUNDS=7)
	cd host/internal/peers && $(GO) run -tags bench ./files -rounds $(ROUNDS)

.PHONY: bench-git
bench-git: build ## what the tool git takes on 10,000 files, 600 commits and 60,000, next to git (needed) and a native program (ROUNDS=7)
	cd host/internal/peers && $(GO) run -tags bench ./git -rounds $(ROUNDS)

.PHONY: bench-jail
bench-jail: build ## what a command costs, next to plain bash and bubblewrap (needed; ROUNDS=7), then without namespaces
	cd host/internal/peers && $(GO) build -tags bench -o ../../../bin/bench-jail ./jail
	cd host/internal/peers && ../../../bin/bench-jail -rounds $(ROUNDS)
	cd host/internal/peers && unshare -Ur sh -c 'echo 0 > /proc/sys/user/max_user_namespaces && exec ../../../bin/bench-jail -rounds $(ROUNDS)'

.PHONY: bench-cost
bench-cost: ## nanoseconds for each unit of fuel, by instruction
	cd host/internal/fueltest && $(GO) test -run '^$$' -bench Cost -benchtime 100ms .

.PHONY: bench-fair
bench-fair: ## how long a short call takes among ten and a thousand that never end
	$(GO) test -run '^$$' -bench AmongHogs -benchtime 200x ./host/sandbox

.PHONY: test-bombs
test-bombs: ## compile every hostile module, without and with --large, which takes an hour
	$(GO) test -run TestBombs -v -timeout 120m ./host/sandbox -bombs

.PHONY: soak
SOAK ?= 1h
soak: guests ## calls of all built-in tools for an hour (SOAK=1h), and nothing that grows
	$(GO) test -run TestSoak -v -timeout 0 ./cmd/stockade -soak $(SOAK)

.PHONY: test-wit
test-wit: ## read wit/ with jco's parser and compare what it finds with the host (needs npm)
	@dir=$$(mktemp -d) && trap 'rm -rf "$$dir"' EXIT && \
	  npm install --prefix "$$dir" --no-audit --no-fund --ignore-scripts --loglevel error $(jco) && \
	  (cd "$$dir" && node --input-type=module - "$(CURDIR)/wit" dummy.wasm) <host/sandbox/hostmod/testdata/dummy.mjs && \
	  $(GO) test -count 1 -tags jco -run TestJco ./host/sandbox/hostmod -dummy "$$dir/dummy.wasm"

# The commands are those of sdk/README.md, word for word. What cargo needs is in its home.
.PHONY: test-languages
test-languages: export CARGO_HOME ?= $(HOME)/.cargo
test-languages: export RUSTUP_HOME ?= $(HOME)/.rustup
test-languages: guests ## copy the modules of sdk/rust and sdk/c, build and call them, and a command in Zig (needs cargo, clang, wit-bindgen, see sdk/README.md, and pip)
	test -x bin/zig/bin/python3 || python3 -m venv bin/zig
	bin/zig/bin/python3 -m pip install --quiet --disable-pip-version-check ziglang==0.17.1
	$(GO) test -count 1 -run TestScripts ./cmd/stockade -scripts testdata/languages

# What is downloaded and compiled stays in the user's cache.
.PHONY: test-foreign
test-foreign: build ## run what npm, PyPI and Go programs have for WASI, and all plugins of Extism's SDK on its own host too (needs npm, pip; 400 MB)
	cd host/internal/foreign && $(GO) test -count 1 -timeout 1h . -all

.PHONY: try-plugins
try-plugins: ## say what each PLUGINS=DIR/*.wasm is, and call its tools, with what stands in NAME.json
	@cd host/internal/foreign && $(GO) run ./try '$(if $(PLUGINS),$(abspath $(PLUGINS)))'

.PHONY: test-layers
COMBINATIONS ?= 1000000
test-layers: ## COMBINATIONS (a million) random layers, rules and calls, none wider than the administrator's
	$(GO) test -count 1 -v -run TestNoLayerWidens -timeout 1h ./host/policy -combinations $(COMBINATIONS)

.PHONY: test-races
RACES ?= 10000000
test-races: ## exchange names while guests use them, RACES times (10000000) with openat2 and as often without
	$(GO) test -count 1 -v -run TestExchangeOfDirectoryAndLink -timeout 12h ./host/sandbox/wasi -races $(RACES)

.PHONY: test-kills
KILLS ?= 2000
test-kills: helper ## end KILLS (2000) trees of processes in jails of tier 3, a fifth as many hosts that stage, and as many trees at tier 1; find nothing left; a tenth as many programs that undo
	$(GO) test -count 1 -v -run TestKills -timeout 1h ./host/jail -kills $(KILLS) -tier 3
	$(GO) test -count 1 -v -run TestKills -timeout 1h ./host/jail -kills $(KILLS) -tier 1
	$(GO) test -count 1 -v -run TestKilledUndos -timeout 1h ./host/undo -kills $$(($(KILLS) / 10))

.PHONY: test-add-kills
ADD_KILLS ?= 500
test-add-kills: guests helper ## kill the program ADD_KILLS (500) times while it adds, updates or removes a module; find the old state or the new one
	$(GO) test -count 1 -v -run TestKilledPrograms -timeout 1h ./cmd/stockade -add-kills $(ADD_KILLS)

# The program is started and ended by the tests.
.PHONY: test-registry
REGISTRY ?= /usr/bin/docker-registry
test-registry: guests helper ## push to, add from and pull from a real registry, REGISTRY (needs docker-registry and git)
	$(GO) test -count 1 ./host/registry/oci -registry $(REGISTRY)
	$(GO) test -count 1 -v -run '^TestShare$$' ./cmd/stockade -registry $(REGISTRY)

# What is installed stays in bin. To compile cosign takes three minutes on two cores, so CI
# does not; what cosign 3.1.3 has left in a registry is in the tests of host/registry/sign.
.PHONY: test-cosign
test-cosign: guests helper ## add what oras has pushed and cosign has signed in a real registry (needs docker-registry; compiles both)
	GOBIN='$(CURDIR)/bin/others' $(GO) install $(cosign)
	GOBIN='$(CURDIR)/bin/others' $(GO) install $(oras)
	$(GO) test -count 1 -v -run '^TestShare$$/^others$$' ./cmd/stockade -registry $(REGISTRY) -others '$(CURDIR)/bin/others'

# What is installed stays in bin.
.PHONY: test-providers
test-providers: ## prove the wire formats against LiteLLM's proxy, aimock, the vendors' types and clients of others (needs npm, pip; 1.6 GB; UPDATE_TABLE=1 writes TABLE.md)
	npm install --prefix bin/providers --no-audit --no-fund --ignore-scripts --prefer-offline --loglevel error $(aimock) $(codex) $(opencode)
	test -x bin/providers/python/bin/python3 || python3 -m venv bin/providers/python
	bin/providers/python/bin/python3 -m pip install --quiet --disable-pip-version-check $(vendors)
	$(GO) test -count 1 -tags providers -timeout 20m ./host/llm/foreign -python '$(CURDIR)/bin/providers/python/bin/python3' -programs '$(CURDIR)/bin/providers'

# A session and a keyring of their own, in a home that is removed.
.PHONY: test-keyring
test-keyring: ## run the tests of secrets on a real Secret Service (needs dbus and gnome-keyring)
	@$(GO) test -c -tags keyring -o bin/keyring.test ./host/secret
	@home=$$(mktemp -d) && trap 'rm -rf "$$home"' EXIT && cd host/secret && HOME=$$home XDG_DATA_HOME=$$home dbus-run-session -- sh -c \
	  'printf test | gnome-keyring-daemon --unlock --components=secrets >/dev/null && ../../bin/keyring.test -test.v -test.run TestRealKeyring'

# Each chunk is a process of its own, in memory where the system has a place
# for that: what the time goes to is the file system.
.PHONY: test-sequences
SEQUENCES ?= 1000000
CHUNK     := 5000
test-sequences: ## compare staged writes with the model in SEQUENCES (a million) random sequences of operations, which takes hours
	$(GO) test -c -o bin/sequences.test ./host/sandbox/wasi
	@if test -d /dev/shm; then export TMPDIR=/dev/shm; fi; \
	  seq 0 $(CHUNK) $$(( $(SEQUENCES) - 1 )) | xargs -P "$$(getconf _NPROCESSORS_ONLN)" -I FIRST sh -c \
	  'out=$$(bin/sequences.test -test.run "^TestAStagedGuestSeesWhatAnyOtherSees$$" -test.timeout 0 -first-sequence FIRST -sequences $(CHUNK)) \
	  || { echo "$$out"; exit 255; }; echo "$$(( FIRST + $(CHUNK) )) sequences"'

# Until version 1.27 Go may end a target with "context deadline exceeded" that has
# found nothing (go.dev/issue/75804): it runs again.
.PHONY: fuzz
FUZZTIME ?= 30s
fuzz: ## run each fuzz target for FUZZTIME (30s)
	@out=$$(mktemp) && trap 'rm -f "$$out"' EXIT && \
	grep -r '^func Fuzz' --include='*_test.go' ./cmd ./host ./guests ./sdk | sed -E 's|(.*)/[^/]*:func (Fuzz[^(]*).*|\1 \2|' | sort | while read -r pkg f; do \
	  echo "$$pkg $$f"; \
	  for try in 1 2 3; do \
	    (cd $$pkg && $(GO) test -run '^$$' -fuzz "^$$f$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 2s .) </dev/null >"$$out" 2>&1 && { tail -n 1 "$$out"; continue 2; }; \
	    cat "$$out"; \
	    { grep -q 'context deadline exceeded' "$$out" && ! grep -q 'Failing input' "$$out"; } || break; \
	  done; exit 1; done

# For all systems: on macOS and Windows nothing is run.
.PHONY: vet
vet: ## vet the code for all systems, with all tags, and the modules inside of this one
	$(GO) vet ./...
	$(GO) vet -tags bench,jco,keyring ./host/sandbox/... ./host/secret
	$(GO) vet -tags screens ./cmd/stockade/internal/screens
	$(GO) vet -tags providers ./host/llm/foreign
	GOOS=linux $(GO) vet -tags mutants ./host/jail/helper
	GOOS=wasip1 GOARCH=wasm $(GO) vet ./guests/... ./sdk/...
	CGO_ENABLED=0 GOOS=windows $(GO) vet ./...
	CGO_ENABLED=0 GOOS=darwin $(GO) vet ./...
	cd host/internal/fueltest && $(GO) vet ./...
	cd host/internal/foreign && $(GO) vet ./...
	cd host/internal/peers && $(GO) vet -tags bench ./...

.PHONY: lint
lint: ## run the linters
	$(GO) run $(golangci_lint) run
	cd host/internal/fueltest && $(GO) run $(golangci_lint) run
	cd host/internal/foreign && $(GO) run $(golangci_lint) run

.PHONY: tidy
tidy: ## see that go.mod lists what is needed, in all modules
	$(GO) mod tidy -diff
	cd host/internal/fueltest && $(GO) mod tidy -diff
	cd host/internal/foreign && $(GO) mod tidy -diff
	cd host/internal/peers && $(GO) mod tidy -diff

.PHONY: fmt
fmt: ## format the code
	gofmt -w cmd host guests sdk

.PHONY: generate
generate: guests ## write the generated files again: agent.toml, policy.toml, what is said of the tools
	$(GO) test ./host/config ./host/config/policyfile -update
	UPDATE_PAGES=1 $(GO) test -run 'TestToolPages|TestWhatAModelReads' ./cmd/stockade

# That the generated files are up to date is a test.
.PHONY: check
check: ## everything that a change has to pass: format, vet, lint, tests, a clean tree
	@test -z "$$(gofmt -l cmd host guests sdk)" || { gofmt -l cmd host guests sdk; echo 'not formatted: run make fmt'; exit 1; }
	$(MAKE) tidy vet lint test
	@test -z "$$(git status --porcelain)" || { git status --short; echo 'the tree is not clean'; exit 1; }

.PHONY: clean
clean: ## remove what was built
	rm -rf bin guests/wasm guests/dist/* guests/native/*/*
