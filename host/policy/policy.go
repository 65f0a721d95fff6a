package policy

import (
	"cmp"
	"maps"
	"slices"
	"sync"

	"github.com/stockade-dev/stockade/host/policy/match"
	"github.com/stockade-dev/stockade/host/policy/network"
	"github.com/stockade-dev/stockade/host/tool"
)

// Options holds what the user has opened and answered, and what each layer permits. The zero
// value opens nothing and has no ceiling.
type Options struct {
	Mounts []Mount // directories that tools see, unless they have an allowance
	// Masked holds paths that no guest sees, even inside a mount: our own
	// configuration, data, state and cache.
	Masked []string
	Rules  []Rule // rules of the user, besides those in Layers
	Limits Limits // zero fields: the defaults
	// LimitOrigins names the place where a limit is set, for messages, by the limit's key in
	// agent.toml. It has no entry for a default.
	LimitOrigins map[string]string
	Network      *network.Network // hosts that tools may reach if they ask for the network; nil: none
	// CanAsk is set if a person can be asked about two things: a built-in tool's call to an
	// internet host that no rule opens or denies, and commands that could read repository
	// histories with secrets. Otherwise the call is denied, and the command runs without
	// these histories.
	CanAsk     bool
	ConfirmAll bool // makes every call ask that no rule allows, safe ones too
	// Layers holds the layers that set something, such as the administrator or the flags.
	// Together they form the ceiling, which limits Mounts, Limits, Network and Rules.
	Layers []Layer
	// Project is the directory of the workspace. Answers of scope "project" hold in it. Empty:
	// there is no workspace, and no such answer can be given.
	Project string
	// Home is the user's home directory. Shells look for programs in its directory bin, so
	// that changes there ask. Empty: unknown.
	Home string
	// Changes selects what happens to the changes of commands; default: [ChangesStaged]. It
	// becomes [ChangesDirect] for a command that cannot be staged.
	Changes ChangesMode
	// AskFirst makes a command that asks do so before it runs, even if its changes are staged.
	AskFirst bool
	// WhyNotStaged returns the reason why commands with these mounts cannot be staged, or ""
	// if they can. It is called when a decision first needs it, once for the default mounts
	// and once for each tool with mounts of its own. Nil: no command can be staged.
	WhyNotStaged func([]Mount) string
	// Tier returns the tier in which processes run. It is called once, when it is first
	// needed. Nil: [TierNone].
	Tier func() Tier
	// LikelyTier returns a quick guess at Tier. It selects the tools that are shown, and
	// decides nothing. Nil: Tier.
	LikelyTier func() Tier
}

// Policy decides calls. It is safe for concurrent use.
type Policy struct {
	defaultAccess *access // the access of tools without an allowance
	masked        []string
	limits        Limits
	limitOrigins  map[string]string
	confirmAll    bool
	canAsk        bool
	ceiling       Ceiling
	project       string
	home          string
	tier          func() Tier
	likelyTier    func() Tier
	changes       ChangesMode
	askFirst      bool
	whyNotStaged  func([]Mount) string
	bindings      sync.Map // *tool.Entry to Binding
	accessOfEntry sync.Map // *tool.Entry to *access
	freedom       *Freedom

	mu           sync.RWMutex
	rules        []Rule
	index        *match.Index // index of rules, without those in historyRules
	historyRules []int        // positions in rules of the rules about histories
}

// New returns a policy with these options. It copies them.
func New(opts Options) *Policy {
	ceiling := Combine(opts.Layers)
	p := &Policy{
		masked:       slices.Clone(opts.Masked),
		limits:       opts.Limits.withDefaults().under(ceiling.Limits),
		limitOrigins: maps.Clone(opts.LimitOrigins),
		confirmAll:   opts.ConfirmAll,
		canAsk:       opts.CanAsk,
		ceiling:      ceiling,
		project:      opts.Project,
		home:         opts.Home,
		tier:         func() Tier { return TierNone },
		changes:      cmp.Or(opts.Changes, ChangesStaged).under(ceiling.Changes),
		askFirst:     opts.AskFirst || len(ceiling.AskFirst) > 0,
		whyNotStaged: func([]Mount) string { return "nothing here keeps changes apart" },
		index:        match.NewIndex(),
		freedom:      new(Freedom),
	}
	if opts.Tier != nil {
		p.tier = sync.OnceValue(opts.Tier)
	}
	if p.likelyTier = opts.LikelyTier; p.likelyTier == nil {
		p.likelyTier = p.tier
	}
	if opts.WhyNotStaged != nil {
		p.whyNotStaged = opts.WhyNotStaged
	}
	for _, h := range ceiling.Hidden {
		p.masked = append(p.masked, h.Value)
	}
	open := opts.Network
	if open == nil {
		open = network.New(nil) // its denials name the rule that would open it; those of nil do not
	}
	p.defaultAccess = p.newAccess(MergeMounts(opts.Mounts), open)
	for _, r := range slices.Concat(ceiling.Rules, opts.Rules, answers(opts.Layers)) {
		p.Add(r)
	}
	return p
}

// Limits returns the limits of calls, with defaults filled in and lowered to the ceiling.
func (p *Policy) Limits() Limits { return p.limits }

// Hides reports whether every call of the tool by this caller would be denied, whatever its
// arguments, as far as is known without a call. Such a tool need not be shown to the caller.
func (p *Policy) Hides(entry *tool.Entry, by tool.Caller) bool {
	d := Decision{policy: p, call: tool.Call{Caller: by}, entry: entry, access: p.accessOf(entry), work: match.NewWork(), risk: RiskOf(entry)}
	if len(p.applyCeiling(&d, p.likelyTier)) > 0 || d.forbiddenByPlan(p.likelyTier) != "" {
		return true
	}
	if !isThirdParty(entry) && d.reachesNetwork() && d.access.network.Closed() && !p.hasHostToAsk(&d) { // a third-party tool may work without the network, too
		return true
	}
	p.mu.RLock()
	defer p.mu.RUnlock()
	for _, of := range []string{entry.Name, AnyTool} {
		for _, i := range p.index.Unkeyed(of) {
			r := &p.rules[i]
			if r.Effect == Deny && len(r.Where) == 0 && r.AfterCalls == 0 && r.Turn == 0 && p.holds(&r.Binding, entry) &&
				r.matches(&d, d.args()) == match.Yes {
				return true
			}
		}
	}
	return false
}

// Rules returns the rules in force, the newest last.
func (p *Policy) Rules() []Rule {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return slices.Clone(p.rules)
}

// Add adds a rule, which holds from now on.
func (p *Policy) Add(r Rule) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if r.HistoryDir != "" {
		p.historyRules = append(p.historyRules, len(p.rules))
	} else {
		p.index.Add(len(p.rules), r.Tool, r.Where)
	}
	p.rules = append(p.rules, r)
}

// Freedom returns the freedom of the chat.
func (p *Policy) Freedom() *Freedom { return p.freedom }

// Revoke removes the rules that allow and were answered in this session, and sets ModeAsk. A call
// that has been decided about goes on.
func (p *Policy) Revoke() {
	p.freedom.SetMode(ModeAsk, "")
	p.mu.Lock()
	defer p.mu.Unlock()
	kept := Policy{index: match.NewIndex()}
	for _, r := range p.rules {
		if r.Effect != Allow || r.Source != SourceSession {
			kept.Add(r)
		}
	}
	p.rules, p.historyRules, p.index = kept.rules, kept.historyRules, kept.index
}

// holds reports whether the tool is still as it was when the binding was made. A binding
// without a module, such as the zero one, holds for every tool.
func (p *Policy) holds(b *Binding, e *tool.Entry) bool {
	if b.Module == "" {
		return true
	}
	now, ok := p.bindings.Load(e)
	if !ok {
		now, _ = p.bindings.LoadOrStore(e, bind(e))
	}
	return b.changed(now.(Binding)) == nil
}
