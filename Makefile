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
actionlint    := github.com/rhysd/actionlint/cmd/actionlint@v1.7.12

GO     ?= go
GUESTS := files git shell tasks web
SAMPLE := bin/sample
npm    := npm install --no-audit --no-fund --ignore-scripts --prefer-offline --loglevel error
# go test as the program is built: it has no paths of this machine, and what was compiled is used again.
TEST   := $(GO) test -trimpath -vet=off
# SQLite compiles a quarter faster without the debug information, which is stripped anyway.
export CGO_CFLAGS := -O2
# A quarter of the compiler's time is the collection of garbage, though it ends soon.
BUILD  := GOGC=400 $(GO) build -buildvcs=false -trimpath -ldflags='-s -w'
LONG   := $(TEST) -count 1 -v -timeout 0

# Tests that need the guests or the helper fail where these were not built, and are not skipped.
export REQUIRE_GUESTS := 1

.DEFAULT_GOAL := help
.PHONY: help build guests helper bin/stockade install run test test-race long bench check vet lint tidy fmt generate fuzz picture try-plugins clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  %-20s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
	@awk -F ' # ' '/^(long|bench)-[a-z-]+ *=.* # / {sub(/ *=.*/, "", $$1); sub(/^long/, "test", $$1); printf "  %-20s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

build: bin/stockade ## build the guests and the program into bin/stockade

guests: guests/dist/index.json ## build the built-in tools to WebAssembly, and that to native code

guest_sources := $(shell find guests sdk/go host/git/format host/git/ignore host/policy/paths host/wasm host/sandbox host/tool cmd/stockade/internal/packguests -name '*.go' ! -name '*_test.go') wit go.mod

# The manifest of each module is written into it; dist has them compressed, and a list of them.
# Their native code, for this platform, is made beside it.
guests/dist/index.json: $(guest_sources)
	@rm -rf guests/wasm guests/dist/*
	@for g in $(GUESTS); do echo "guest $$g"; \
	  GOOS=wasip1 GOARCH=wasm $(BUILD) -buildmode=c-shared -o guests/wasm/$$g.wasm ./guests/$$g || exit 1; done
	@GOGC=400 $(GO) run -trimpath -ldflags='-s -w' ./cmd/stockade/internal/packguests guests

# The helper of the jail, for this platform. It is static, and embedded.
helper := host/jail/dist/$(shell $(GO) env GOOS)_$(shell $(GO) env GOARCH)
$(helper): $(shell find host/rootedfs host/jail/helper host/jail/seccomp host/jail/wire -name '*.go' ! -name '*_test.go') go.mod
	CGO_ENABLED=0 $(BUILD) -o $@ ./host/jail/helper

ifneq ($(filter linux_%,$(notdir $(helper))),)
helper: $(helper)
endif
helper: ## build the helper of the jail, where there is one

bin/stockade: guests/dist/index.json helper
	GOGC=400 $(GO) build -trimpath -ldflags='-s -w' -o bin/stockade ./cmd/stockade

PREFIX ?= $(HOME)/.local
install: build ## build the program and copy it to PREFIX/bin (~/.local/bin)
	mkdir -p $(DESTDIR)$(PREFIX)/bin
	install -m 755 bin/stockade $(DESTDIR)$(PREFIX)/bin/stockade

run: build ## run the main job: a turn of the agent on the sample workspace
	@rm -rf $(SAMPLE) && cp -R cmd/stockade/sample $(SAMPLE)
	bin/stockade -C $(SAMPLE) run --provider offline --allow file_edit --allow 'bash(command=wc -l notes.md)' \
	  "list files then read notes.md then find TODO in *.md then replace 'teh' with 'the' in notes.md then run wc -l notes.md"

# go vet has a target of its own. Modules of others are a Go module of their own, and run
# beside the rest.
test: guests helper ## run the tests, in five minutes on two cores; make long has what takes longer
	@(cd host/internal/foreign && exec $(TEST) .) & foreign=$$!; \
	  $(TEST) ./...; rest=$$?; wait $$foreign && exit $$rest

# The packages with goroutines of their own, or with state that those of others
# share. selftest and the scripts of cmd/stockade go through all of these again,
# slowly: make test-race RACED=./... runs them, too. Of sandbox there are the tests
# of calls beside each other: under the race detector children compile for minutes.
# Of jail there are those that do not run the others again, or attack it.
RACED ?= $(addprefix ./host/,agent dispatch door egress llm/... policy redact registry registry/oci registry/source secret session/... stage toolstore sandbox/hostmod sandbox/linear \
  sandbox/meter sandbox/native sandbox/search) ./cmd/stockade/internal/...
test-race: guests helper ## run the tests of what runs at the same time (RACED) under the race detector
	$(GO) test -race $(RACED)
	$(GO) test -race -skip 'Tiers|Attacks|Mutants|Cases|Everyday|Reading' ./host/jail
	$(GO) test -race -run 'Concurrent|AtATime|Deadline|Cancel|Close|Nobody|TakeTurns|Idle|FreshInstance|SharedBudget|ManyCompile' ./host/sandbox

# Long tests: make long NAME=git and make test-git are the same. N says how often, for how
# long or where a test does something; each line has its default.
long: $(if $(NAME),test-$(NAME),help) ## run the long test NAME
test-%: build
	@test -n "$(if $(value long-$*),yes)" || { echo 'there is no test $*: make lists them'; exit 2; }
	$(long-$*)

long-clone = dir=$$(mktemp -d) && trap 'rm -rf "$$dir"' EXIT && git clone -q . "$$dir" && cd "$$dir" && $(GO) build -trimpath ./cmd/stockade && ./stockade --version 2>&1 | head -n 1 | grep -F 'Run `make build`' && $(GO) vet ./... && REQUIRE_GUESTS= $(TEST) ./... # build, vet and test a clone with Go alone
long-whole = $(TEST) -count 1 -timeout 30m $(addprefix ./host/,rootedfs sandbox sandbox/wasi selftest stage) ./cmd/stockade -whole # run all rounds of what make test runs a round of
long-fuel = cd host/internal/fueltest && $(GO) test ./... # run the specification suites with code that counts, next to code that does not
long-engine-memory = $(TEST) -count 1 -timeout 60m -run TestLoopsAreBounded ./host/sandbox -loops -loop-long $(or $(N),2s) # measure the memory of each instruction and host function in a loop (N=2s)
long-jail = $(GO) test -count 1 ./host/jail -all # run the jail at all tiers, with all attacks, as two users, and without each of its layers
long-everyday = for tier in $(or $(N),3 1); do $(GO) test -count 1 -run 'TestEverydayCommands|TestReadingCommands' ./host/jail -tier $$tier -everyday || exit 1; done # run a hundred everyday commands plainly and in the jail (N='3 1': tiers)
long-day = $(LONG) -run '^TestADay$$' ./cmd/stockade -day # work for a day of 60 steps in repositories of Go, Python and TypeScript, and count the questions (git, python3, node)
long-questions = $(GO) test -count 1 -run TestTheQuestionsOfEverydayCommands ./cmd/stockade -questions # count the questions of 60 everyday commands (UPDATE_QUESTIONS=1)
long-programs = $(LONG) -run TestRandomPrograms ./host/jail -programs $(or $(N),10000) # run random programs plainly and on a stage, and compare what they leave (N=10000)
long-histories = $(LONG) -run TestRandomHistories ./host/agent -histories $(or $(N),10000) # run random sessions, and find no request too large and nothing pinned missing (N=10000)
long-git = $(LONG) -run TestRandomRepositories ./guests/git -repositories $(or $(N),1000) # compare the tool git with git in random repositories (N=1000)
long-kills = $(LONG) -run TestKills ./host/jail -kills $(or $(N),2000) -tier 3 && $(LONG) -run TestKills ./host/jail -kills $(or $(N),2000) -tier 1 && $(LONG) -run TestKilledUndos ./host/undo -kills $$(($(or $(N),2000) / 10)) # kill trees of processes in jails, hosts that stage and programs that undo, and find nothing left (N=2000)
long-add-kills = $(LONG) -run TestKilledPrograms ./cmd/stockade -add-kills $(or $(N),500) # kill the program while it adds, updates or removes a module; find the old state or the new one (N=500)
long-layers = $(LONG) -run TestNoLayerWidens ./host/policy -combinations $(or $(N),1000000) # compare random policies with what the administrator permits (N=1000000)
long-races = $(LONG) -run TestExchangeOfDirectoryAndLink ./host/sandbox/wasi -races $(or $(N),10000000) # exchange directories for links while guests use them (N=10000000)
long-bombs = $(LONG) -run TestBombs ./host/sandbox -bombs # compile every hostile module, without and with --large, which takes an hour
long-soak = $(LONG) -run TestSoak ./cmd/stockade -soak $(or $(N),1h) # call all built-in tools, and see that nothing grows (N=1h)
long-screens = $(GO) test -count 1 -v -tags screens -parallel 1 -timeout 10m ./cmd/stockade/internal/screens -scenario '$(N)' # look at the program in tmux, at 80x24 and 200x50 (tmux; N=SCENARIO; UPDATE_SCREENS=1)
long-registry = $(GO) test -count 1 ./host/registry/oci -registry $(REGISTRY) && $(LONG) -run '^TestShare$$' ./cmd/stockade -registry $(REGISTRY) # push to, add from and pull from a real registry (docker-registry)
long-foreign = cd host/internal/foreign && $(GO) test -count 1 -timeout 1h . -all # run what npm, PyPI and Go programs have for WASI, and Extism's plugins on its own host, too (npm, pip; 400 MB)
# A session and a keyring of their own, in a home that is removed.
long-keyring = $(GO) test -c -tags keyring -o bin/keyring.test ./host/secret && home=$$(mktemp -d) && trap 'rm -rf "$$home"' EXIT && cd host/secret && HOME=$$home XDG_DATA_HOME=$$home dbus-run-session -- sh -c 'printf test | gnome-keyring-daemon --unlock --components=secrets >/dev/null && ../../bin/keyring.test -test.v -test.run TestRealKeyring' # test secrets on a real Secret Service (dbus, gnome-keyring)
long-wit = dir=$$(mktemp -d) && trap 'rm -rf "$$dir"' EXIT && $(npm) --prefix "$$dir" $(jco) && (cd "$$dir" && node --input-type=module - "$(CURDIR)/wit" dummy.wasm) <host/sandbox/hostmod/testdata/dummy.mjs && $(GO) test -count 1 -tags jco -run TestJco ./host/sandbox/hostmod -dummy "$$dir/dummy.wasm" # read wit/ with jco's parser (npm)
# The commands are those of sdk/README.md, word for word. What cargo needs is in its home.
long-languages = $(call venv,zig,ziglang==0.17.1) && export CARGO_HOME="$${CARGO_HOME:-$$HOME/.cargo}" RUSTUP_HOME="$${RUSTUP_HOME:-$$HOME/.rustup}" && $(GO) test -count 1 -run TestScripts ./cmd/stockade -scripts testdata/languages # build the tools of sdk/rust and sdk/c, and a command in Zig, and call them (cargo, clang, wit-bindgen, pip)
long-providers = $(npm) --prefix bin/providers $(aimock) $(codex) $(opencode) && $(call venv,providers/python,$(vendors)) && $(GO) test -count 1 -tags providers -timeout 20m ./host/llm/foreign -python '$(CURDIR)/bin/providers/python/bin/python3' -programs '$(CURDIR)/bin/providers' # prove the wire formats against LiteLLM, aimock, the vendors' types and clients of others (npm, pip; 1.6 GB; UPDATE_TABLE=1)
# To compile cosign takes three minutes on two cores, so CI does not; what cosign 3.1.3 has left in a registry is in the tests of host/registry/sign.
long-cosign = export GOBIN='$(CURDIR)/bin/others' && $(GO) install $(cosign) && $(GO) install $(oras) && $(LONG) -run '^TestShare$$/^others$$' ./cmd/stockade -registry $(REGISTRY) -others '$(CURDIR)/bin/others' # add what oras has pushed and cosign has signed (docker-registry; compiles both)
# Each chunk is a process of its own, in memory where the system has a place for that: the time goes to the file system.
long-sequences = $(GO) test -c -o bin/sequences.test ./host/sandbox/wasi && if test -d /dev/shm; then export TMPDIR=/dev/shm; fi; seq 0 5000 $$(($(or $(N),1000000) - 1)) | xargs -P "$$(getconf _NPROCESSORS_ONLN)" -I FIRST sh -c 'out=$$(bin/sequences.test -test.run "^TestAStagedGuestSeesWhatAnyOtherSees$$" -test.timeout 0 -first-sequence FIRST -sequences 5000) || { echo "$$out"; exit 255; }; echo "$$((FIRST + 5000)) sequences"' # compare staged writes with a model in random sequences, which takes hours (N=1000000)

REGISTRY ?= /usr/bin/docker-registry
# An environment of Python in bin, and the packages in it.
venv = (test -x bin/$(1)/bin/python3 || python3 -m venv bin/$(1)) && bin/$(1)/bin/python3 -m pip install --quiet --disable-pip-version-check $(2)

# Benchmarks, next to what else a user would take: make bench NAME=grep and make bench-grep
# are the same.
bench: bench-$(or $(NAME),stages) ## run the benchmark NAME, or those of the stages of a call
bench-%: build
	@test -n "$(if $(value bench-$*),yes)" || { echo 'there is no benchmark $*: make lists them'; exit 2; }
	$(bench-$*)

ROUNDS ?= 7
peers = cd host/internal/peers && $(GO) run -tags bench
bench-stages = $(GO) test -tags bench -run '^$$' -bench . -benchmem ./host/sandbox/... ./host/session/... ./host/policy/... ./host/dispatch/... ./cmd/stockade/... # each stage of a call
bench-call = $(peers) ./call -rounds $(ROUNDS) # a call, next to a process of its own, Extism and wasmtime (ROUNDS=7)
bench-foreign = $(peers) ./foreign -rounds $(ROUNDS) -plugins '$(if $(PLUGINS),$(abspath $(PLUGINS)))' # a call of a command or a plugin, next to wazero's WASI and Extism's host (npm, pip; PLUGINS=DIR adds hyper-mcp's)
bench-steps = $(peers) ./steps -rounds $(ROUNDS) # a step of a turn, at its beginning and after 400 others, on a scripted model
# Where it runs, nothing but this machine can be reached.
bench-agents = $(npm) --prefix bin/agents $(codex) $(opencode) $(gemini) && cd host/internal/peers && $(GO) build -tags bench -o ../../../bin/bench-agents ./agents && unshare -rn ../../../bin/bench-agents -rounds $(ROUNDS) # a turn, next to codex, opencode and gemini-cli on the same scripted model (npm; 800 MB)
# Run it where nothing but this machine can be reached: sudo unshare -n.
bench-day = $(npm) --prefix bin/agents $(codex) $(opencode) && cd host/internal/peers && $(GO) test -c -tags bench -o ../../../bin/day.test ./agents && ../../../bin/day.test -test.v -test.run '^TestDay$$' # a day's work, next to codex and opencode on the same scripted model (npm; 500 MB)
bench-grep = $(peers) ./grep -rounds $(ROUNDS) # a search of 20,000 files, next to ripgrep (needed) and a native program
bench-web = $(peers) ./web -rounds $(ROUNDS) # http_fetch of a page of 1 and of 8 MB, next to curl (needed), lynx and w3m
bench-files = $(peers) ./files -rounds $(ROUNDS) # the tools for files on large inputs, next to sed, ls, git apply and patch (needed)
bench-git = $(peers) ./git -rounds $(ROUNDS) # the tool git on 10,000 files, 600 commits and 60,000, next to git (needed) and a native program
bench-jail = cd host/internal/peers && $(GO) build -tags bench -o ../../../bin/bench-jail ./jail && ../../../bin/bench-jail -rounds $(ROUNDS) && unshare -Ur sh -c 'echo 0 > /proc/sys/user/max_user_namespaces && exec ../../../bin/bench-jail -rounds $(ROUNDS)' # a command, next to plain bash and bubblewrap (needed), then without namespaces
bench-fuel = cd host/internal/peers && $(GO) run . -rounds $(ROUNDS) # fuel, next to wazero's deadline and wasmtime's fuel (clang, lld, wasi-libc, libclang-rt-dev-wasm32)
bench-cost = cd host/internal/fueltest && $(GO) test -run '^$$' -bench Cost -benchtime 100ms . # nanoseconds for each unit of fuel, by instruction
bench-fair = $(GO) test -run '^$$' -bench AmongHogs -benchtime 200x ./host/sandbox # a short call among ten and a thousand that never end

picture: build ## play the session of the README's picture, and write .github/session.svg (needs tmux, git)
	$(GO) test -count 1 -v -tags screens -run '^TestPicture$$' ./cmd/stockade/internal/screens -picture '$(CURDIR)/.github/session.svg'

try-plugins: ## say what each PLUGINS=DIR/*.wasm is, and call its tools, with what stands in NAME.json
	@cd host/internal/foreign && $(GO) run ./try '$(if $(PLUGINS),$(abspath $(PLUGINS)))'

# Until version 1.27 Go may end a target with "context deadline exceeded" that has
# found nothing (go.dev/issue/75804): it runs again.
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

lint: ## run the linters
	$(GO) run $(golangci_lint) run
	$(GO) run $(actionlint)
	cd host/internal/fueltest && $(GO) run $(golangci_lint) run
	cd host/internal/foreign && $(GO) run $(golangci_lint) run

tidy: ## see that go.mod lists what is needed, in all modules
	$(GO) mod tidy -diff
	cd host/internal/fueltest && $(GO) mod tidy -diff
	cd host/internal/foreign && $(GO) mod tidy -diff
	cd host/internal/peers && $(GO) mod tidy -diff

fmt: ## format the code
	gofmt -w cmd host guests sdk

generate: guests ## write the generated files again: agent.toml, policy.toml, what is said of the tools
	$(GO) test ./host/config ./host/config/policyfile -update
	UPDATE_PAGES=1 $(GO) test -run 'TestToolPages|TestWhatAModelReads' ./cmd/stockade

# That the generated files are up to date is a test.
check: ## everything that a change has to pass: format, vet, lint, tests, a clean tree
	@test -z "$$(gofmt -l cmd host guests sdk)" || { gofmt -l cmd host guests sdk; echo 'not formatted: run make fmt'; exit 1; }
	$(MAKE) tidy vet lint test
	@test -z "$$(git status --porcelain)" || { git status --short; echo 'the tree is not clean'; exit 1; }

clean: ## remove what was built
	rm -rf bin guests/wasm guests/dist/* guests/native/*/*
