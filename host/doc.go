// Package host holds no code. It is the map of the program, in the order in
// which a call flows through it; `go doc ./host` is where to begin.
//
// # The flow
//
//	run, chat, call, and programs that embed us ─► door: opens all of this
//
//	prompt ─► agent ─► llm ─► llm/<provider> ─► egress ─► network
//	            │ tool.Call                                    ◄─ a call without a model begins here
//	            ▼
//	         dispatch ─► policy ─► Decision{Allow|Ask|Deny} ─► Grant
//	            │            └ Ask ─► Approver: terminal, or no
//	            ├─► session: call intended (durable before the effect)
//	            ▼
//	         sandbox ─ codecache | prebuilt | admit → wasm/fuel → compile (a child) → snapshot → instance (wasi, hostmod, meter) → call → fault
//	            │                    wasi ─► stage ─► rootedfs     hostmod ─► services: jail ─► bash, egress ─► network, secret
//	            │ tool.Result, policy.Staged
//	            │            └ a call that only changes files is decided here, with a diff
//	            ├─► session: call changes (durable before the commit) ─► stage: commit
//	            ├─► session: result
//	            ▼
//	         agent (next step) ─► answer
//
// The structure keeps two promises: no guest runs without a decision, and no call
// goes unrecorded. Only policy can make a Grant. Sandbox and jail refuse to run
// without a Grant for exactly this call. Only dispatch calls both, and its call.go
// reads from top to bottom as the security story. A call that only changes files is
// rehearsed: its first Grant lets it run on a stage, and commits nothing.
//
// # The packages
//
//	door                    the one constructor for everything that makes calls: options in; tools, calls and turns out
//	registry                the modules that hold tools: built in, added, or named by a path; decides what is offered under which name
//	registry/author         new tools: their project, build and tests, and the manifest in a custom section
//	registry/author/toolchain  runs the Go toolchain of an author, found at fixed places
//	registry/description    a person's description of a command or a plugin that does not describe itself
//	registry/lock           stockade.lock, the modules of a project
//	registry/oci            modules and their signatures in OCI registries and layouts
//	registry/oci/credential logins of registries, from the files of Docker and podman, and Docker's helpers
//	registry/sign           DSSE and cosign: makes and verifies signatures of modules
//	registry/source         fetches a module and its signatures from the place that a person names
//	registry/store          the added modules, by their SHA-256, with all that was approved
//	registry/trust          trust.toml: which keys sign for which publisher
//	tool                    the shared types: Definition, Manifest, Call, Result and its envelope, Catalog
//	llm                     canonical messages, their entries, deltas, the Model interface, retries
//	llm/provider            code that all providers share: options, one HTTP exchange with its limits, errors
//	llm/openai              OpenAI's chat completions, with the types of go-openai
//	llm/ollama              Ollama's own API, and the size of a model's context
//	llm/anthropic           Anthropic's messages, with its own small wire types
//	llm/openai/responses    OpenAI's Responses API, with the types of go-openai
//	llm/google              Google's Gemini API, with its own small wire types
//	llm/offline             the offline model: a planner and a scripted model, served over OpenAI's two wire formats
//	llm/foreign             tests of the providers with servers, clients and types that others wrote
//	llm/llmtest             the test suite for every Model
//	policy                  pure rules → Decision; layers and their ceiling; the only code that makes a Grant; default limits
//	policy/command          splits a command line into words, as bash does; programs that run others; commands that are easily regretted
//	policy/gitconfig        the keys of git's configuration that make git run something
//	policy/match            compares the arguments of a call with the conditions of rules, and counts the work
//	policy/network          hosts, addresses, and the rules that open them
//	policy/paths            judges paths by their names: the list of special paths, and patterns
//	services                the interfaces to the world outside of the sandbox: processes, requests, secrets; and the kinds of their errors
//	egress                  the only way out to the network: decide, resolve once, dial the checked address; the proxy of a command
//	diff                    describes the changes of a call to people
//	git                     the effects of a change set on git repositories: objects that match their hashes, commits that are added and lost
//	git/format              the formats of git: packs, trees, references, indexes; pure functions, which guests/git uses, too
//	git/ignore              matches paths with the patterns of .gitignore files; for guests, too
//	visible                 characters that show as themselves, JSON of such characters, and the text that a terminal shows
//	shellword               text as one word of a command line, to be copied
//	secret                  named secrets, in a keyring or an encrypted file; placeholders of a call
//	instructions            a project's instructions for agents: AGENTS.md, read as the file of a stranger
//	rootedfs                opens the files below a directory of the host, and no others, with openat2 or os.Root
//	stage                   the changes of a call until they are decided about: the change set, changes by others, commit all or nothing, undo
//	redact                  removes secrets from everything that leaves the process
//	dispatch                one call: find → check → decide → approve → record → run → commit → record
//	agent                   the loop; history assembly
//	wasm                    reads the binary form of modules: decode, walk the code, classify, custom sections, merge data, components; no engine
//	wasm/fuel               instruments code: costs, places of charges and checks, rewriting
//	wasm/wasmtest           an assembler for tests and for selftest, and a list of hostile modules
//	sandbox                 the only importer of wazero; its stages are its files
//	sandbox/admit           decides whether a module may be compiled: static checks of its bytes, limits of its size, and limits that the engine lacks
//	sandbox/abi             lowering and lifting; the only code that touches linear memory
//	sandbox/dialect         the kinds of modules: their imports and exports, and how to initialise, describe and call them
//	sandbox/dialect/command WASI commands: with a description, or with ikigai's protocol
//	sandbox/dialect/extism  Extism plugins, servlets of mcp.run, plugins of hyper-mcp
//	sandbox/dialect/tools   the native kind
//	sandbox/hostmod         host functions, one file for each WIT interface
//	sandbox/search          lists and searches many files at once, for a guest
//	sandbox/wasi            the file system of a guest: names, masks, limits, and writes on a stage
//	sandbox/wasi/preview1   the functions of WASI preview 1 and of wasi_unstable before it, with the state of one call
//	sandbox/codecache       native code on disk, checked before use
//	sandbox/linear          linear memories that can be reset to an image
//	sandbox/native          native code in files that are mapped
//	sandbox/mapped          decides which files may be mapped
//	sandbox/meter           the fuel account of a call: slices, budgets, deadline
//	selftest                attacks on the sandbox of this program, on the machine of its user
//	selftest/machine        the guest that carries out most attacks, as scripts
//	jail                    runs the approved command of bash in a world of its own, with a deadline; also starts our own helpers
//	jail/helper             a program: builds that world, confines itself to it, runs the command
//	jail/wire               the messages between the jail and its helper
//	jail/probe              attacks on the jail from inside, and their victim outside
//	jail/seccomp            the filter of system calls for a jailed command
//	jail/walk               examines the files below the mounts of a command: secret and closed files, changes, and undoing forbidden changes
//	githistory              searches of git histories for secrets: their results, and the paths with contents of a repository
//	toolstore               the data that tools keep beyond a call, in one session
//	undo                    undoes the changes of a turn, from the log and the preimages of its store
//	session                 events, the hash chain, the Store interface, the lock of a session
//	session/sqlite          the Store on SQLite, with group commit
//	session/stats           counts what sessions have used: calls by tool, tokens and cost by model
//	session/export          a Store that also writes events to the directories that an administrator requires
//	session/sessiontest     the test suite for every Store
//	config                  agent.toml → typed values with source positions
//	config/keys             reads a TOML file by one table of its keys, and writes its sample from the same table
//	config/policyfile       policy.toml → a layer of the ceiling; checks who may have written the file
//	settings                merges the settings of a run: files, environment, flags; layers and their ceiling; keys for servers; trusts, answers, our folders; imported by cmd only
//	internal/archtest       tests of the import table, of this list and of links in documents
//	internal/hosttest       a workspace for tests of files, and a way to run them again without openat2
//	internal/private        files that belong to the user alone: checks their owner, and replaces a file as a whole
//	internal/regular        opens regular files, and never a named pipe
//
// Three folders are modules of their own, because of their dependencies.
// internal/fueltest runs the specification suites and compares instrumented code
// with an interpreter. internal/foreign runs modules that others wrote, and records
// the results. internal/peers compares benchmarks with other runtimes.
//
// Beside host, cmd/stockade is parsing, terminal and wiring, without logic. Below
// it, internal/tui draws the terminal; in internal/editor a person types;
// internal/transcript shows the events of a session; internal/prompt asks the
// questions, one at a time; internal/markdown shows answers; internal/table fits
// tables to the screen; internal/toolpage shows the manifest of a tool;
// internal/pager shows long texts in less; internal/humanize writes numbers and
// names; internal/terminal makes text of others harmless. internal/packguests
// finishes the built-in modules, and internal/screens tests what a person sees.
//
// guests holds the built-in tools. sdk is what the author of a tool imports. The
// host imports six packages of it: sdk/go/lines finds matching lines, sdk/go/nearest
// finds the name that was probably meant, sdk/go/picture finds the format of an
// image, sdk/go/patch reads patches, sdk/go/charset finds the encoding of text, and
// sdk/go/filename writes names as text. wit is the source of truth of the ABI.
//
// # Public packages
//
// A program that embeds Stockade imports these packages. Their exported declarations change
// with a line in the changelog. All other packages are parts of the program, and may
// change in any commit: do not import them.
//
//	door               opens sessions, makes calls and runs turns
//	agent              the use of models in a turn, and the content of the model's context
//	dispatch           the Approver, which answers questions
//	egress             the way out to the network, if it is not the usual one
//	instructions       a project's instructions for agents
//	jail               the confinement of commands
//	llm                messages and the Model interface, for a model of your own
//	llm/provider       the options of a provider
//	policy             rules, limits, questions and answers
//	policy/network     rules about hosts
//	redact             removes texts from everything that leaves the process
//	sandbox            options of the sandbox, and its child process
//	secret             the stores of secrets
//	services           secrets, requests and processes of your own
//	session            events and the log
//	tool               definitions, calls and results of tools
//	undo               the outcome of undoing a turn
//
// # Words
//
// A turn goes from a prompt to its answer; a step is one reply of the model. A
// message is canonical and has a kind. A session is a list of events. A door holds
// the things that the sessions of a process share.
//
// A tool.Definition describes a tool to the model. A tool.Manifest lists the tools
// of a module with their capabilities; a capability is one thing that a tool asks
// for. A tool.Call is the request of a caller; a call that dispatch is carrying out
// is pending. To repair a call is to correct its arguments to the meaning of the
// model, before it is recorded. A tool.Hint holds ways to mend a failure, as data.
//
// A policy.Decision is the policy's answer to a call; a policy.Grant holds the
// permissions of its guest. A layer holds the settings of one source: administrator,
// user, project, environment or flags. The ceiling is the most that all layers
// permit together. A rule has conditions; an answer is a rule that allows. A binding
// is the state for which an answer was remembered; when it changes, the answer ends.
// A trust is a yes to one content of one project file. A special path is on the list
// of paths that need care: closed, asked about, or secret. A host is a name or an
// address; a network holds the rules about reachable hosts. The route is the proxy
// and the certificate authorities that the administrator prescribes to everybody.
//
// Module, compiled and instance are the phases of the WebAssembly specification. To
// admit a module is to allow its compilation; prebuilt native code comes with the
// program. Fuel is the unit of a guest's work, about one instruction; a budget
// limits it. A host function lives in a host module; a service does its work outside
// of the sandbox. A mount is configuration, a preopen is WASI.
//
// An added module was added by a person, from elsewhere; its record holds everything
// that was approved. An allowance is the part of its capabilities that the person
// granted. A publisher is a name with keys in trust.toml; a signer is the publisher
// whose signature over a module was verified. A lockfile names the modules of a
// project; to agree is to say yes to exactly its bytes. A review describes a module
// before anybody has said yes. A person's description stands in for a manifest that
// a module lacks; its base is the module without the description.
//
// A stage holds the changes of a call until they are decided about; a change set is
// the list of them. A store holds the data that the tools of a module keep in a
// session. A history is closed if commands find no contents in its repository. A
// secret has a value, which guests never see, and a placeholder in each call; to
// redact is to remove values. A tier is a degree of confinement by the jail.
//
// # Imports
//
// A package imports only the packages that the table in internal/archtest allows.
// These rules of the table carry the promises above:
//
//	agent, dispatch   never   sandbox, jail, session/sqlite, llm/provider, llm/openai, llm/anthropic, llm/google, llm/ollama, llm/offline
//	policy            never   sandbox, jail, session, config
//	config            never   dispatch, agent, sandbox
//	door              never   config, config/policyfile, settings
//	wazero            only    sandbox
//	net/http          only    llm, egress, registry/oci, registry/source
//	os/exec           only    jail, registry/author/toolchain, registry/oci/credential, cmd/stockade/internal/pager, internal/hosttest
//	go-sqlite3        only    session/sqlite
//	go-openai         only    llm
//	toml              only    config, registry, settings
//
// A package in this list stands for all packages below it. Nothing in host imports
// door. Guests and sdk import nothing of host and cmd, except guests/git, which
// imports policy/paths and git/format. Only egress opens connections or asks a
// resolver. Only jail starts processes, with three exceptions:
// registry/oci/credential starts Docker's credential helpers,
// registry/author/toolchain starts the Go toolchain of an author, and
// cmd/stockade/internal/pager starts less.
//
// # Where new things go
//
// Every new package: a row in the table of internal/archtest, with its imports; its
// name in the rows of its importers; and a line in the list above.
//
// A provider: a package below llm, such as llm/openai, that makes an llm.Model. It
// only translates to the provider's wire format. Its tests run llmtest.Run, for
// which it plays scripts of llm/offline in its own format. providerKinds in
// door/provider.go has a row for it: its name, its address, the variables with its
// address and its key, the header of the key, and the constructor of its client. Its
// name also goes into config.Providers, and its family there if it shares keys with
// another provider. For people: help/models.md, and the question of `stockade init`.
//
// A host function: first its interface in wit, with its row in wit/README.md. Then
// sandbox/hostmod, a file and a line in its table; a test compares names and
// signatures. If it acts outside of the sandbox, it needs an interface in
// services.Set, implemented by a package of its own and filled in by door. Then
// sdk/go, and guests/tck and selftest/machine, which call it. An attack in selftest
// shows that it refuses guests without a grant. If a tool has to ask for it, it is
// one more field of tool.Capabilities: policy/risk.go gives its risk,
// policy/binding.go ends an answer when it changes, and the Grant carries it.
//
// A kind of module: wasm.Classify recognizes it by imports and exports. A package
// below sandbox/dialect lists the imports and exports that it may have, and
// initialises, describes and calls it. A line in the table of sandbox/compile.go
// names it. dispatch and policy never learn the kind: they see a tool.Manifest. The
// texts about a kind in `tool info` and in refusals are in cmd/stockade,
// tool_file.go and words.go.
//
// A front end: a command of cmd/stockade, or a program of its own such as the
// example of door. It opens a door.Session, names itself as the tool.Caller, calls
// tools or runs turns, and answers questions as a dispatch.Approver. Events come
// from Session.Run and from the log. If it compiles modules of others, its main
// first calls sandbox.CompileChild. An HTTP server is a package below host, because
// cmd may not import net/http. No front end reaches the sandbox in another way.
//
// An attack: a row in the list of its area in selftest, with its kinds of module.
// The counter-proofs in its tests have a weak target on which it succeeds. An attack
// of a command: jail/probe, and in the tests of jail the layer without which it
// succeeds.
//
// A store of sessions: a package below session that passes session/sessiontest.
//
// A source of modules: a kind of reference in registry/source, which makes a
// Candidate of it with its signatures. If it has a protocol, it has its own package
// below registry, such as registry/oci. It reaches the network through egress.
// Everything after it (registry.Reviewer) stays as it is and sees bytes, evidence, a
// source, and the repository to which signatures are bound.
//
// A format of signatures: registry/sign, which reads what a signature covers and
// verifies it with keys, and nothing else; a field of sign.Evidence; registry/trust,
// which judges it. registry/oci finds it where its makers put it.
//
// A permission for added modules: a field of tool.Allowance, its part in
// tool.Capabilities.Restrict, a flag of `tool grant`, and a line of the question.
//
// A rule of the policy: policy, and its words in config/policyfile. A setting: the
// table of keys in config. A limit: a key there, and a field of policy.Limits, which
// the Grant carries.
//
// If a user sees any of these: its topic in cmd/stockade/help.
//
// RATIONALE.md has the reasons for decisions. Comments refer to its questions.
package host
