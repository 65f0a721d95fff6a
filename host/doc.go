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
// Two promises are kept by the structure: no guest runs without a decision,
// and no call goes unrecorded. Only policy can make a Grant; sandbox and jail
// refuse to run without one for exactly this call; dispatch is the only
// caller of both, and its call.go reads from top to bottom as the security story.
// A call that only changes files is rehearsed: its first Grant lets it run on a
// stage, and commits nothing.
//
// # The packages
//
//	door                    one constructor for everything that makes calls: options in; tools, calls and turns out
//	registry                where modules come from: built in, added, named by a path; what is offered under which name
//	registry/author         a new tool: its project, its build, its tests, its manifest in a custom section
//	registry/author/toolchain  the Go toolchain of an author, found at fixed places and run
//	registry/description    what a person says of a command or a plugin that does not say it itself
//	registry/lock           stockade.lock, the modules of a project
//	registry/oci            modules and their signatures in OCI registries and layouts
//	registry/oci/credential logins of registries, from the files of Docker and podman, and Docker's helpers
//	registry/sign           DSSE and cosign: who has signed a module
//	registry/source         the bytes of a module and its signatures, from where a person says they are
//	registry/store          the modules that were added, by their SHA-256, and what they were approved with
//	registry/trust          trust.toml: which keys sign for which publisher
//	tool                    the vocabulary: Definition, Manifest, Call, Result and its envelope, Catalog
//	llm                     canonical messages, their entries, deltas, the Model interface, retries
//	llm/provider            what providers share: options, one HTTP exchange with its bounds, errors
//	llm/openai              OpenAI's chat completions, with the types of go-openai
//	llm/ollama              Ollama's own API; how large the context of a model is
//	llm/anthropic           Anthropic's messages, in its own small wire
//	llm/openai/responses    OpenAI's Responses API, with the types of go-openai
//	llm/google              Google's Gemini API, in its own small wire
//	llm/offline             the offline model: a planner and a scripted model, served over OpenAI's two wire formats
//	llm/foreign             tests of the providers with servers, clients and types of others
//	llm/llmtest             the suite that every Model passes
//	policy                  pure rules → Decision; layers and their ceiling; the only code that makes a Grant; default limits
//	policy/command          a command line in words, as bash reads it; what runs others; what is easily regretted
//	policy/gitconfig        which keys of a configuration of git have it run something
//	policy/match            the arguments of a call, and what rules say about them; the work that it takes to compare
//	policy/network          hosts, addresses, and who may be reached
//	policy/paths            paths by their names: the list of those that need care, and patterns
//	services                the vocabulary of what is done outside of the sandbox: a process, a request, a secret that is used; and how each fails
//	egress                  the one way out to the network: decide, resolve once, dial what was checked; the proxy of a command
//	diff                    what a call changes, as people read it
//	git                     what a change set does to repositories of git: objects that are what their names say, commits that come and go
//	git/format              the formats of git: packs, trees, references, indexes; pure functions, which guests/git has, too
//	visible                 which characters show, JSON in which each does, what a terminal shows of a text
//	shellword               text as one word of a command line, to be copied
//	secret                  named secrets: keyring or encrypted file; placeholders of a call
//	instructions            what a project says to agents: AGENTS.md, read as the file of a stranger
//	rootedfs                what is below a directory of the host, and nothing else, on openat2 or os.Root
//	stage                   what a call changes: the change set, what others have changed meanwhile, commit all or nothing, put back
//	redact                  takes secrets out of what leaves the process
//	dispatch                one call: find → check → decide → approve → record → run → commit → record
//	agent                   the loop; history assembly
//	wasm                    the module binary: decode, walk the code, classify, custom sections, merge data; what a component is; no engine
//	wasm/fuel               the instrumentation pass: costs, where charges and checks stand, rewriting
//	wasm/wasmtest           an assembler for tests and for selftest, and a list of hostile modules
//	sandbox                 the only importer of wazero; its stages are its files
//	sandbox/admit           may this module be compiled? static checks on its bytes, limits on its size, and the limits that the engine lacks added
//	sandbox/abi             lowering and lifting; the only code that touches linear memory
//	sandbox/dialect         what is known of a kind of module: its imports and exports, how it is initialised, asked and called
//	sandbox/dialect/command WASI commands: as they were described, or as ikigai's tools speak
//	sandbox/dialect/extism  Extism plugins, servlets of mcp.run, plugins of hyper-mcp
//	sandbox/dialect/tools   the native kind
//	sandbox/hostmod         host functions, one file for each WIT interface
//	sandbox/search          many files listed or searched in one go, for a guest
//	sandbox/wasi            the guest's files: names, masks, limits, and what is written on a stage
//	sandbox/wasi/preview1   the functions of WASI preview 1 and of wasi_unstable before it, with the state of one call
//	sandbox/codecache       native code on disk, and whether to believe it
//	sandbox/linear          linear memory that can be put back to an image
//	sandbox/native          native code in files that are mapped
//	sandbox/mapped          which files may be mapped
//	sandbox/meter           the fuel account of a call: slices, budgets, deadline
//	selftest                attacks on the sandbox of this program, on the machine of its user
//	selftest/machine        the guest that carries out most attacks, as scripts
//	jail                    processes for bash: the approved command, in a world of its own, with a deadline; and our own helpers
//	jail/helper             a program: makes that world, confines itself to it, runs the command
//	jail/wire               what the jail and that program say to each other
//	jail/probe              attacks on the jail from inside, and their victim outside
//	jail/seccomp            which system calls a jailed command may make
//	jail/walk               what is secret and what is closed below the mounts of a command, what it changed, and taking back what it must not
//	githistory              which histories of git were searched for secrets, what was found, and where a repository has contents
//	toolstore               what tools keep beyond a call, in one session, as its log says it
//	undo                    the way back from what a turn has changed, by the log and the images of its store
//	session                 events, the hash chain, the Store interface, the lock of a session
//	session/sqlite          the Store on SQLite, with group commit
//	session/stats           what sessions have used: calls by tool, tokens and cost by model
//	session/export          a Store whose events also go to the directories that an administrator requires
//	session/sessiontest     the suite that every Store passes
//	config                  agent.toml → typed values with source positions
//	config/keys             a file of TOML read by one table of its keys, and its sample written from it
//	config/policyfile       policy.toml → a layer of the ceiling; who may have written it
//	settings                what holds in a run: files, environment, flags; layers and their ceiling; which server gets which key; trust, answers, our folders; imported by cmd only
//	internal/archtest       the import table, this list and the links of the documents, as tests
//	internal/hosttest       a workspace for tests of files, and the tests again without openat2
//	internal/private        files that belong to the user alone: whose they are, and replacing one as a whole
//	internal/regular        opening a regular file, and never a named pipe
//
// Three folders are modules of their own, because of what they require:
// internal/fueltest has the specification suites and the interpreter with which
// instrumented code is compared, internal/foreign the modules of others that run
// here, and what came of each, internal/peers the benchmarks next to other
// runtimes.
//
// Beside host: cmd/stockade is parsing, terminal and wiring, without logic, with
// internal/tui, the terminal that is drawn on, internal/editor, in which a person
// types, internal/transcript, which shows what was done, internal/prompt, the
// questions and their queue, internal/markdown, which shows answers, internal/table,
// which fits tables to the screen, internal/toolpage, which shows what a manifest says
// of a tool, internal/pager, which shows what is longer than
// that, internal/humanize, which says numbers and names, and internal/terminal, which makes text
// of others harmless. guests are the built-in tools. sdk is what a tool's author
// imports; the host imports six packages of it, sdk/go/lines, which finds lines that
// match, sdk/go/nearest, which finds the name that was probably meant, sdk/go/picture,
// which tells what image some bytes are, sdk/go/patch, which reads patches,
// sdk/go/charset, which tells how text is encoded, and sdk/go/filename, which writes names as text. wit is the source of truth of the
// ABI.
//
// # Words
//
// A turn is prompt to answer; a step is one reply of the model. A message is
// canonical and has a kind. A session is a list of events. A door is what the
// sessions of a process share.
//
// A tool.Definition is what the model sees, a tool.Manifest what a package asks
// for, a capability one thing that it asks for. A tool.Call is what a caller wants;
// dispatch carries it out, and a call on its way is pending. To repair a call is to
// write it as the model means it, before it is recorded. A tool.Hint says what
// can be done about a failure, as data.
//
// A policy.Decision is the answer, a policy.Grant what the guest gets. A layer is
// what one place (administrator, user, project, environment, flags) says; the
// ceiling is what all layers permit together. A rule has conditions; an answer is a
// rule that allows. A trust is a yes to one content of one project file. A path is
// special if it is on the list of those that need care: closed, asked about, or
// secret. A host is a name or an address; a Network is the rules that say which
// hosts may be reached; the route is the proxy and the certificate authorities to
// which the administrator binds everybody.
//
// Module, compiled and instance are the phases of the WebAssembly specification. To
// admit is to say that a module may be compiled; prebuilt is native code that came
// with the program. Fuel is what a guest consumes, in units of about one
// instruction; a budget is what it may. A host function lives in a host module; an
// effect is what it has done outside of the sandbox. A mount is configuration, a
// preopen is WASI.
//
// An added module is one that a person has added, from elsewhere; a record is what it
// was approved with. An allowance is what it was given of what it asks for. A
// publisher is a name with keys in trust.toml; a signer is the publisher whose
// signature over a module was verified. A lockfile names the modules of a project,
// and to agree is to say yes to exactly its bytes. A review is a module as it would
// be kept, before anybody has said yes. A description is what a person says of a
// module that does not say it itself; its base is the module as it came.
//
// A stage is where the changes of a call wait for the answer; a change set is the
// list of them. A history is closed if commands find no contents in its repository. A
// secret has a value, which guests never see, and in each call
// placeholders; to redact is to take values out. A tier says how far the jail
// confines a process.
//
// # Imports
//
// A package imports only what the table in internal/archtest allows. Of that
// table, these rules carry the promises above:
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
// A package in this list stands for all below it. Nothing of host imports door. Guests and sdk import nothing of host and cmd,
// but for guests/git, which has the list of policy/paths and git/format.
// Only egress opens connections or asks a resolver, and only jail starts
// processes, but for three exceptions: registry/oci/credential, for Docker's credential
// helpers, registry/author/toolchain, for the Go toolchain of an author, and
// cmd/stockade/internal/pager, for less.
//
// # Where new things go
//
// Every new package: a row in the table of internal/archtest, with what it imports,
// its name in the rows of those who import it, and a line in the list above.
//
// A provider: a package below llm, such as llm/openai, that makes an llm.Model. It
// translates to the provider's wire format and nothing else. Its tests run
// llmtest.Run, for which it plays scripts of llm/offline in its own format.
// door/provider.go has a row for it: its name, its address, the variables with its
// key and its address, the header that carries the key, and what makes its client.
// The name goes into config.Providers, too, and its family there if it shares keys
// with another one. What people read of it: help/models.md, and the question of
// `stockade init`.
//
// A host function: its interface in wit first, with its row in wit/README.md. Then
// sandbox/hostmod, a file and a line in its table; a test compares names and
// signatures. Where it needs something outside of the sandbox, an interface in
// services.Set, met by a package of its own and filled in by door. Then sdk/go,
// and guests/tck and selftest/machine, which call it; an attack in selftest shows
// that it refuses whom nothing was granted. If a tool has to ask for it, that is one
// more field of tool.Capabilities: policy/risk.go says how much is at stake,
// policy/binding.go that an answer ends when it changes, and the Grant carries it.
//
// A kind of module: wasm.Classify tells it by imports and exports; a package below
// sandbox/dialect says which of these it may have, how it is initialised, how it is
// asked what it is, and how it is called; a line in the table of sandbox/compile.go
// names it. dispatch and policy never learn the kind: they see a tool.Manifest.
// What `tool info` and a refusal say of a kind, and what would make it run, is in
// cmd/stockade, tool_file.go and words.go.
//
// A front end: a command of cmd/stockade, or a program of its own such as the
// example of door. It opens a door.Session, names itself as the tool.Caller, calls
// tools or runs turns, and answers questions as a dispatch.Approver. Events come
// from Session.Run and from the log. One that compiles modules of others hands over
// to sandbox.CompileChild first thing in main. A server of HTTP is a package below
// host, because cmd may not import net/http. No front end reaches the sandbox by
// another way.
//
// An attack: a row in the list of its area in selftest, with the kinds of module
// that it is for, and in the counter-proofs of its tests a weak target on which it
// succeeds. One of a command: jail/probe, and in the tests of jail the layer
// without which it succeeds.
//
// A store: a package below session that passes session/sessiontest.
//
// A place where modules come from: a kind of reference in registry/source, which
// makes a Candidate of it with the signatures that lie beside it; its own package
// below registry, such as registry/oci, where it has a protocol. What it reaches goes
// through egress. Everything behind it (registry.Reviewer) stays as it is: it sees
// bytes, evidence, a source, and the repository that signatures are bound to.
//
// A format of signatures: registry/sign, which says what it covers and verifies it
// with keys, and nothing else; a field of sign.Evidence; registry/trust, which
// judges. registry/oci finds it where its makers put it.
//
// What an added module can be given: a field of tool.Allowance, its part in
// tool.Capabilities.Under, a flag of `tool grant`, and a line on the question.
//
// A rule of the policy: policy, and its words in config/policyfile. A setting: the
// table of keys in config. A limit: a key there, and a field of policy.Limits,
// which the Grant carries.
//
// What a user sees of any of these: its topic in cmd/stockade/help.
//
// Why things are as they are is in RATIONALE.md. Comments refer to its
// questions.
package host
