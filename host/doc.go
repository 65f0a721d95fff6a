// Package host holds no code. It is the map of the program, in the order in
// which a call flows through it; `go doc ./host` is where to begin.
//
// # The flow
//
//	prompt ─► agent ─► llm ─► llm/openai ─► egress ─► network
//	            │ tool.Call
//	            ▼
//	         dispatch ─► policy ─► Decision{Allow|Ask|Deny} ─► Grant      ◄─ stockade call (the same door)
//	            │            └ Ask ─► Approver: terminal, or no
//	            ├─► session: call intended (durable before the effect)
//	            ▼
//	         sandbox ─ cache | prebuilt | admit → wasm/fuel → compile (a child) → snapshot → instance (wasi, hostmod, meter) → call → fault
//	            │                                 hostmod.exec ─► jail ─► bash      hostmod.http ─► egress ─► network
//	            │ tool.Result, policy.Staged
//	            │            └ a call that only changes files is decided here, with a diff
//	            ├─► session: call changes (durable before the commit) ─► commit
//	            ├─► session: result
//	            ▼
//	         agent (next step) ─► answer
//
// Two promises are kept by the structure: no guest runs without a decision,
// and no call goes unrecorded. Only policy can make a Grant; sandbox and jail
// refuse to run without one for exactly this call; dispatch.Call is the only
// caller of both, and reads from top to bottom as the security story. The Grant
// of a rehearsal lets a call run on a stage, and commits nothing.
//
// # The packages
//
//	tool             the vocabulary: Definition, Manifest, Call, Result and its envelope, Catalog
//	llm              canonical messages, deltas, the Model interface, retries
//	llm/openai       the OpenAI wire format, over go-openai
//	llm/offline      the offline model: a planner and a scripted model, served over that wire format
//	llm/llmtest      the suite that every Model passes
//	policy           pure rules → Decision; layers and their ceiling; the only code that makes a Grant; default limits; hosts, addresses and who may be reached; the paths that need care
//	egress           the one way out to the network: decide, resolve once, dial what was checked
//	diff             what a call changes, as people read it
//	shellword        text as one word of a command line, to be copied
//	secret           named secrets: keyring or encrypted file; placeholders of a call; the redactor
//	dispatch         one call: find → check → decide → approve → record → run → commit → record
//	agent            the loop; history assembly
//	wasm             the module binary: decode, walk the code, classify, custom sections, merge data; no engine
//	wasm/fuel        the instrumentation pass: costs, where charges and checks stand, rewriting
//	wasm/wasmtest    an assembler for tests and for selftest, and a list of hostile modules
//	sandbox          the only importer of wazero; its stages are its files
//	sandbox/abi      lowering and lifting; the only code that touches linear memory
//	sandbox/hostmod  host functions, one file for each WIT interface
//	sandbox/search   many files listed or searched in one go, for a guest
//	sandbox/wasi     the guest's files, on openat2 or os.Root, and the stage on which what it writes waits
//	sandbox/wasi/preview1  the functions of WASI preview 1, with the state of one call
//	sandbox/linear   linear memory that can be put back to an image
//	sandbox/native   native code in files that are mapped
//	sandbox/mapped   which files may be mapped
//	sandbox/meter    the fuel account of a call: slices, budgets, deadline
//	selftest         attacks on the sandbox of this program, on the machine of its user
//	selftest/machine the guest that carries out most attacks, as scripts
//	jail             processes for bash: approved command, fixed environment, deadline (not confined yet); and our own helpers
//	session          events, the hash chain, the Store interface
//	session/sqlite   the Store on SQLite, with group commit
//	session/sessiontest  the suite that every Store passes
//	config           agent.toml → typed values with source positions; which project's is trusted; imported by cmd only
//	config/policyfile  policy.toml → a layer of the ceiling; who may have written it
//	internal         archtest (the import table as a test), nearest
//	internal/fueltest  a module of its own: the specification suites and fuzz tests of instrumented code, and the interpreter that they compare with
//	internal/peers   a module of its own: benchmarks next to other runtimes
//
// Beside host: cmd/stockade is parsing, terminal and wiring, without logic, with
// internal/prompt, the questions and their queue, and internal/terminal, which
// makes text of others harmless;
// guests are the built-in tools; sdk is what a tool's author imports, and of
// it sdk/go/lines, which finds lines that match, is the host's too; wit is the
// source of truth of the ABI.
//
// # Words
//
// A turn is prompt to answer; a step is one reply of the model. A message is
// canonical and has a kind. A tool.Definition is what the model sees, a
// tool.Manifest what a package asks for, a capability one thing that it asks
// for. A policy.Decision is the answer, a policy.Grant what the guest gets.
// Dispatch is carrying out one call. Module, compiled and instance are the
// phases of the WebAssembly specification. Fuel is what a guest consumes, in
// units of about one instruction; a budget is what it may. To admit is to say that a module
// may be compiled; prebuilt is native code that came with the program. A host
// function lives in a host module. A mount is
// configuration, a preopen is WASI. A secret has a value, which guests never
// see, and in each call placeholders; to redact is to take values out. A
// session is a list of events. A tier says how far the jail confines a process.
// A host is a name or an address; a Network is the rules that say which hosts
// may be reached. A layer is what one place (administrator, user, project,
// environment, flags) says; the ceiling is what all layers permit together; the
// route is the proxy and the certificate authorities to which the administrator
// binds everybody. A rule has conditions; an answer is a rule that allows. A
// trust is a yes to one content of one project file. A path is special if it is
// on the list of those that need care: closed, asked about, or secret.
//
// # Imports
//
// A package imports only what host/internal/archtest allows, which is also
// where a new package is entered. agent and dispatch never import sandbox,
// jail, sqlite or a provider; guests and sdk import nothing below host. Only
// egress opens connections or asks a resolver.
//
// Why things are as they are is in RATIONALE.md.
package host
