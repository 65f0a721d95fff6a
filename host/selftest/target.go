package selftest

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"

	"github.com/stockade-dev/stockade/host/dispatch"
	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/policy/match"
	"github.com/stockade-dev/stockade/host/policy/network"
	"github.com/stockade-dev/stockade/host/sandbox"
	"github.com/stockade-dev/stockade/host/sandbox/abi"
	"github.com/stockade-dev/stockade/host/secret"
	"github.com/stockade-dev/stockade/host/selftest/machine"
	"github.com/stockade-dev/stockade/host/services"
	"github.com/stockade-dev/stockade/host/session"
	"github.com/stockade-dev/stockade/host/tool"
)

// Kind is the kind of host that a module is built for. The zero value is a native module.
type Kind = machine.Kind

// Target runs guests and is the object of the attacks. It is safe for concurrent use.
type Target interface {
	// Run executes one call of a guest. It returns soon after ctx has ended.
	Run(ctx context.Context, g Guest) Outcome
}

// Guest is a module, a call of it, and the grants of the call. The zero values grant
// nothing, and set the default limits.
type Guest struct {
	Kind           Kind
	Code           []byte
	machineOptions *machine.Options // if Code is nil: options of the machine; nil: the plain one of its kind
	Args           json.RawMessage
	Cwd            string
	Files          tool.Files     // the access that the tool asks for
	Mounts         []policy.Mount // directories that the tool can then see
	// Allowance holds the grants of a person to an added tool; Mounts are those of other
	// tools. Nil: the tool is not an added one.
	Allowance *tool.Allowance
	Masked    []string
	// HiddenPath is a path that a policy hides; empty: none. ReadsHistory is set if a
	// rule lets commands read the history of repositories.
	HiddenPath   string
	ReadsHistory bool
	Limits       policy.Limits
	// Hosts are the servers that the guest may reach, in the form of network.ParseRule.
	// None: the tool asks for no network.
	Hosts []string
	// HasSecret grants the secret of selftest.
	HasSecret bool
	// WantsStore is set if the tool asks for a store. Guests with the same Session are
	// calls of one session, with the policy of its first call; empty: a session of its
	// own.
	WantsStore bool
	Session    string
	// Command is the command that is approved; the tool asks to run its argument
	// "command". Empty: it asks for none.
	Command string
	// Answer answers each question about the command, which then runs on a stage. Nil:
	// the command is not staged, and every question is answered yes.
	Answer func(policy.Question) bool
	// DeniedPaths are patterns of paths that a rule denies to every tool.
	DeniedPaths []string
	// SharedMemoryBytes limits the memory of all guests with the same value together. 0
	// is the default.
	SharedMemoryBytes uint64
	// CacheDir is a directory for compiled code that no other guest uses: the guest is
	// loaded from there even if the target has it in memory. Empty is the target's own.
	CacheDir string
	// OnProgress is called with the messages of the guest, which waits meanwhile. It may
	// be nil.
	OnProgress func(tool.Progress)
}

// Outcome is the result of running a guest.
type Outcome struct {
	Result     tool.Result
	Transcript Transcript
	// Err is a failure of the host.
	Err error
}

// Transcript holds the messages and progress reports of a guest.
type Transcript struct {
	Messages, Reports int
	Bytes             int    // of all messages
	Text              string // the first 256 KiB of all messages
}

// maxTranscript limits the size of Transcript.Text, in bytes.
const maxTranscript = 256 << 10

func (s *Transcript) add(p tool.Progress) {
	s.Bytes += len(p.Message)
	if p.Level == "" {
		s.Reports++
	} else {
		s.Messages++
	}
	if room := maxTranscript - len(s.Text); room > 0 && p.Message != "" {
		s.Text += p.Message[:min(room, len(p.Message))] + "\n"
	}
}

// Sandbox is the target of the program: a call goes through dispatch, policy and the
// sandbox like any other, with a recorder that stores nothing.
type Sandbox struct {
	// Tier returns the tier of the jail in which commands run. Nil: there are no
	// commands.
	Tier func() policy.Tier
	// Staging is the option WhyNotStaged of [policy.Options]. Nil: no command is staged.
	Staging func([]policy.Mount) string

	opts  sandbox.Options
	calls atomic.Uint64

	mu       sync.Mutex
	sessions map[string]*dispatch.Dispatcher // by Guest.Session
	boxes    map[uint64]*sandbox.Sandbox     // by Guest.SharedMemoryBytes

	probeOnce   sync.Once
	probeResult probes // results of the probes of the jail
	probeErr    error
}

// NewSandbox returns a target that makes its sandboxes with these options, and stores
// compiled code in the directory cache, which the caller removes.
func NewSandbox(opts sandbox.Options, cache string) *Sandbox {
	opts.CacheDir, opts.Services.Secrets = cache, secretService{}
	return &Sandbox{opts: opts, boxes: map[uint64]*sandbox.Sandbox{}}
}

// Close frees the sandboxes. No guest may be running.
func (s *Sandbox) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var first error
	for _, b := range s.boxes {
		if err := b.Close(); err != nil && first == nil {
			first = err
		}
	}
	return first
}

func (s *Sandbox) box(together uint64) *sandbox.Sandbox {
	s.mu.Lock()
	defer s.mu.Unlock()
	b, ok := s.boxes[together]
	if !ok {
		opts := s.opts
		opts.MemoryBytes = together
		b = sandbox.New(opts)
		s.boxes[together] = b
	}
	return b
}

// toolName is the name of the tool of every guest.
const toolName = "probe"

// abis maps each kind to its name in a manifest.
var abis = map[Kind]string{machine.Native: abi.ManifestABI, machine.Command: tool.ABICommand, machine.Plugin: tool.ABIExtism}

// The secret of selftest. The person's own secrets are not used.
const (
	secretName  = "TOKEN"
	secretValue = "the-value-of-a-secret-that-no-guest-sees"
)

// secretService is a service with the secret of selftest only.
type secretService struct{}

// Placeholders implements services.Secrets.
func (secretService) Placeholders(granted []tool.Secret) services.Placeholders {
	return secret.NewTable(granted, func(context.Context, string) (secret.Record, error) {
		return secret.Record{Info: secret.Info{Name: secretName}, Value: secret.NewValue(secretValue)}, nil
	})
}

// catalog returns a catalog with the tool of the guest, and the network it may reach.
func (g Guest) catalog() (*tool.Catalog, *network.Network, error) {
	spec := tool.Spec{
		Definition:   tool.Definition{Name: toolName, Description: "An attack.", Parameters: json.RawMessage(`{"type":"object"}`)},
		Capabilities: tool.Capabilities{Files: g.Files},
	}
	var reach []network.Rule
	for _, host := range g.Hosts {
		rule, err := network.ParseRule(host)
		if err != nil {
			return nil, nil, err
		}
		reach, spec.Capabilities.Network = append(reach, rule), tool.NetworkHTTP
	}
	spec.Capabilities.Store = g.WantsStore
	if g.HasSecret {
		spec.Capabilities.Secrets = []tool.Secret{{Name: secretName}}
	}
	if g.Command != "" {
		spec.Parameters = json.RawMessage(`{"type":"object","properties":{"command":{"type":"string"}}}`)
		spec.Capabilities.Exec = "command"
	}
	mod := tool.NewModule(toolName, tool.OriginFile, toolName+".wasm", g.Code)
	catalog, err := tool.NewCatalog(map[*tool.Module]tool.Manifest{mod: {
		ABI: abis[g.Kind], Name: toolName, Tools: []tool.Spec{spec},
	}})
	if err != nil {
		return nil, nil, err
	}
	if g.Allowance != nil {
		entry, _ := catalog.Find(toolName)
		mod.Origin, entry.Allowed, entry.Capabilities = tool.OriginAdded, g.Allowance, spec.Capabilities.Restrict(*g.Allowance)
	}
	return catalog, network.New(reach), nil
}

// Run implements [Target].
func (s *Sandbox) Run(ctx context.Context, g Guest) Outcome {
	catalog, reach, err := g.catalog()
	if err != nil {
		return Outcome{Err: err}
	}
	box := s.box(g.SharedMemoryBytes)
	if g.CacheDir != "" {
		own := s.opts
		own.CacheDir = g.CacheDir
		box = sandbox.New(own)
		defer box.Close()
	}
	r := &recorder{onProgress: g.OnProgress}
	var rules []policy.Rule
	if g.Command == "" {
		// Otherwise messages of the guest would be delayed until it has ended.
		rules = []policy.Rule{{Effect: policy.Allow, Tool: toolName, Source: policy.SourceFlag}}
	}
	for _, pattern := range g.DeniedPaths {
		c, err := match.NewCondition(match.Path, tool.PatchPath, pattern, false)
		if err != nil {
			return Outcome{Err: err}
		}
		rules = append(rules, policy.Rule{Effect: policy.Deny, Tool: policy.AnyTool, Where: []match.Condition{c}, Source: policy.SourceAdmin})
	}
	opts := policy.Options{Mounts: g.Mounts, Masked: g.Masked, Limits: g.Limits, Rules: rules, Network: reach}
	if g.HiddenPath != "" {
		opts.Layers = []policy.Layer{{Source: policy.SourceAdmin, Ceiling: policy.Ceiling{Hidden: []policy.Setting{{Value: g.HiddenPath}}}}}
	}
	if g.ReadsHistory {
		opts.Rules = append(opts.Rules, policy.Rule{Effect: policy.Allow, Tool: toolName, HistoryDir: g.Cwd, Source: policy.SourceFlag})
	}
	if g.Answer != nil {
		opts.Tier, opts.WhyNotStaged = s.Tier, s.Staging
	}
	d := s.session(g.Session, dispatch.Options{Catalog: catalog, Approver: approver{g.Answer}, Runner: box, Log: r, Policy: policy.New(opts)})
	if g.Cwd == "" {
		g.Cwd = filepath.VolumeName(s.opts.CacheDir) + string(filepath.Separator)
	}
	call := tool.Call{
		ID: fmt.Sprintf("selftest_%d", s.calls.Add(1)), Tool: toolName, Args: g.Args, Caller: tool.CallerPerson, Cwd: g.Cwd,
	}
	result, err := d.Call(ctx, call)
	r.mu.Lock()
	defer r.mu.Unlock()
	return Outcome{Result: result, Transcript: r.transcript, Err: err}
}

// session returns the session with a name, made by the first call, or a new one if the
// name is empty.
func (s *Sandbox) session(name string, opts dispatch.Options) *dispatch.Dispatcher {
	d := dispatch.New(opts)
	if name == "" {
		return d
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if old := s.sessions[name]; old != nil {
		old.SetCatalog(opts.Catalog)
		return old
	}
	if s.sessions == nil {
		s.sessions = map[string]*dispatch.Dispatcher{}
	}
	s.sessions[name] = d
	return d
}

// approver approves every question, because the attack is meant to have the grant, unless
// the attack answers itself.
type approver struct{ answer func(policy.Question) bool }

// Approve implements dispatch.Approver.
func (a approver) Approve(_ context.Context, q policy.Question) func() (policy.Answer, error) {
	return func() (policy.Answer, error) {
		allow := a.answer == nil || a.answer(q)
		return policy.Answer{Question: q.ID, Allow: allow, Scope: policy.ScopeOnce, By: "selftest"}, nil
	}
}

// recorder is a log that numbers events, stores none, and collects progress.
type recorder struct {
	onProgress func(tool.Progress)

	mu         sync.Mutex
	seq        uint64
	transcript Transcript
}

// Append implements dispatch.Recorder.
func (r *recorder) Append(_ context.Context, drafts ...session.Draft) ([]session.Event, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	events := make([]session.Event, len(drafts))
	for i, d := range drafts {
		r.seq++
		events[i] = session.Event{Header: session.Header{Seq: r.seq, Type: d.Type, Call: d.Call}, Body: d.Body}
	}
	return events, nil
}

// Emit implements dispatch.Recorder.
func (r *recorder) Emit(d session.Draft) {
	var p tool.Progress
	if d.Type != session.TypeProgress || json.Unmarshal(d.Body, &p) != nil {
		return
	}
	r.mu.Lock()
	r.transcript.add(p)
	r.mu.Unlock()
	if r.onProgress != nil {
		r.onProgress(p)
	}
}
