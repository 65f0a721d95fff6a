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

// Kind is what a module was built for. The zero value is a native one.
type Kind = machine.Kind

// Target is what is attacked: it runs guests. It is safe for concurrent use.
type Target interface {
	// Run carries out one call of a guest. It returns soon after ctx has ended.
	Run(ctx context.Context, g Guest) Outcome
}

// Guest is a module, its call, and what that is granted. The zero values grant
// nothing, and limit what the program limits when nobody says otherwise.
type Guest struct {
	Kind           Kind
	Code           []byte
	machineOptions *machine.Options // a machine that is not the plain one of its kind, if there is no code
	Args           json.RawMessage
	Cwd            string
	Files          tool.Files     // what the tool asks for
	Mounts         []policy.Mount // what it then sees
	// Allowance says that the tool is one that a person has added, and what it was given;
	// Mounts are what others are shown. Nil: it is not.
	Allowance *tool.Allowance
	Masked    []string
	// HiddenPath is a path that a policy hides; empty: there is none. Histories says that a rule
	// lets commands read the history of repositories.
	HiddenPath   string
	ReadsHistory bool
	Limits       policy.Limits
	// Hosts are whom it may reach, each as in network.ParseRule. None: it asks for no
	// network.
	Hosts []string
	// HasSecret says that it was granted the secret of selftest.
	HasSecret bool
	// WantsStore says that the tool asks for a store. Guests with the same Session are calls of
	// one session, whose policy is that of its first; empty: of none that others are in.
	WantsStore bool
	Session    string
	// Command is the one that is approved; the tool asks to run its argument
	// "command". Empty: it asks for none.
	Command string
	// Answer has the command run on a stage. It is told of each question about it,
	// and answers that. Nil: it is not staged, and every question is answered yes.
	Answer func(policy.Question) bool
	// DeniedPaths are patterns of paths that a rule for every tool denies.
	DeniedPaths []string
	// SharedMemoryBytes is the memory that all guests with the same number may have
	// together. 0 is the default.
	SharedMemoryBytes uint64
	// CacheDir is a directory for compiled code that no other guest uses: the
	// guest is loaded from there even if the target has it in memory. Empty is
	// the target's own.
	CacheDir string
	// OnProgress is told what the guest says, while it waits. May be nil.
	OnProgress func(tool.Progress)
}

// Outcome is what became of a guest.
type Outcome struct {
	Result     tool.Result
	Transcript Transcript
	// Err says that the host was at fault.
	Err error
}

// Transcript is what a guest said while it ran.
type Transcript struct {
	Messages, Reports int
	Bytes             int    // of all messages
	Text              string // the beginning of it all
}

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

// Sandbox is the target of the program: a call goes through dispatch, policy
// and the sandbox like any other, with a recorder that keeps nothing.
type Sandbox struct {
	// Tier is that of the commands that the options' services start. Nil: there
	// are none.
	Tier func() policy.Tier
	// Staging is that of [policy.Options]. Nil: no command is staged.
	Staging func([]policy.Mount) string

	opts  sandbox.Options
	calls atomic.Uint64

	mu       sync.Mutex
	sessions map[string]*dispatch.Dispatcher // by Guest.Session
	boxes    map[uint64]*sandbox.Sandbox     // by Guest.Together

	probeOnce   sync.Once
	probeResult probes // of the jail
	probeErr    error
}

// NewSandbox returns a target that makes its sandboxes with these options, and
// keeps compiled code in a directory, which the caller removes.
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

// toolName is the name of the tool that every guest is.
const toolName = "probe"

// abis are what the kinds are called in a manifest.
var abis = map[Kind]string{machine.Native: abi.ManifestABI, machine.Command: tool.ABICommand, machine.Plugin: tool.ABIExtism}

// The secret of selftest. The person's own are not looked at.
const (
	secretName  = "TOKEN"
	secretValue = "the-value-of-a-secret-that-no-guest-sees"
)

// secretService is the service that has that secret only.
type secretService struct{}

// Placeholders implements services.Secrets.
func (secretService) Placeholders(granted []tool.Secret) services.Placeholders {
	return secret.NewTable(granted, func(context.Context, string) (secret.Record, error) {
		return secret.Record{Info: secret.Info{Name: secretName}, Value: secret.NewValue(secretValue)}, nil
	})
}

// catalog lists the tool that the guest is, and whom it may reach.
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
		// Not asked about, or what the guest says would be told when it has ended.
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

// session returns a new session, or that with a name, for a tool.
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

// approver approves what is asked for, as that is what the attack is to have, unless
// the attack answers.
type approver struct{ answer func(policy.Question) bool }

// Approve implements dispatch.Approver.
func (a approver) Approve(_ context.Context, q policy.Question) func() (policy.Answer, error) {
	return func() (policy.Answer, error) {
		allow := a.answer == nil || a.answer(q)
		return policy.Answer{Question: q.ID, Allow: allow, Scope: policy.ScopeOnce, By: "selftest"}, nil
	}
}

// recorder is a log that numbers what it is given, and listens.
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
