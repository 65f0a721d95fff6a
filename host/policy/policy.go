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

// Options says what the user has opened and answered, and what each layer
// permits. Its zero value opens nothing, and has no ceiling.
type Options struct {
	Mounts []Mount
	// Masked names directories that no guest sees, also where a mount holds
	// them: our own configuration, data, state and cache.
	Masked []string
	Rules  []Rule
	Limits Limits
	// LimitOrigins says where limits are set, by their key in agent.toml, for a person; not
	// there: nowhere.
	LimitOrigins map[string]string
	// Network is whom tools that ask for the network may talk to; nil is nobody.
	Network *network.Network
	// CanAsk says that a person can be asked: about a call of a built-in tool to a host of
	// the internet that no rule opens or denies, and about what commands may read of the
	// histories of repositories. Otherwise both are denied.
	CanAsk bool
	// ConfirmAll asks before every call, safe ones too.
	ConfirmAll bool
	// Layers are what the administrator, the user, the project, the environment
	// and the flags say. Together they are the ceiling: Mounts, Limits, Network
	// and Rules count as far as it permits.
	Layers []Layer
	// Project is the directory of the workspace, in which answers of scope
	// "project" hold. Empty: there are none.
	Project string
	// Home is the home directory of the user: shells look for programs in its bin.
	// Empty: there is none.
	Home string
	// Changes is what becomes of what commands change, where they can be staged.
	// Default: [ChangesStaged].
	Changes ChangesMode
	// AskFirst has every command wait for its answer, also one whose changes are
	// staged.
	AskFirst bool
	// WhyNotStaged says why commands with these mounts cannot be staged; empty if they
	// can. It is called when a decision needs it first, and once for each tool that was
	// given directories of its own. Nil: they cannot.
	WhyNotStaged func([]Mount) string
	// Tier finds out how far a process is confined. It is called when a decision
	// needs it first, and once. Nil: [TierNone].
	Tier func() Tier
	// LikelyTier is what Tier will probably be, and takes no time to tell. It says which
	// tools are shown, and decides nothing. Nil: Tier.
	LikelyTier func() Tier
}

// Policy decides calls. It is safe for concurrent use.
type Policy struct {
	defaultAccess *access // what tools are shown that were given nothing of their own
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
	accessOfEntry sync.Map // *tool.Entry to *share

	mu    sync.RWMutex
	rules []Rule
	index *match.Index // of rules
	// historyRules are the indexes in rules of those about histories.
	historyRules []int
}

// New returns a policy with these options, which it copies.
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
		open = network.New(nil) // whose denials say what would open it
	}
	p.defaultAccess = p.newAccess(MergeMounts(opts.Mounts), open)
	for _, r := range slices.Concat(ceiling.Rules, opts.Rules, answers(opts.Layers)) {
		p.Add(r)
	}
	return p
}

// Limits are those of every call, the defaults filled in.
func (p *Policy) Limits() Limits { return p.limits }

// Hides reports whether no call of a tool by this caller can come to anything,
// whatever its arguments, as far as is known without trying: such a tool need not be
// shown.
func (p *Policy) Hides(entry *tool.Entry, by tool.Caller) bool {
	d := Decision{policy: p, call: tool.Call{Caller: by}, entry: entry, access: p.accessOf(entry), work: match.NewWork(), risk: RiskOf(entry)}
	if len(p.applyCeiling(&d, p.likelyTier)) > 0 {
		return true
	}
	if !isThirdParty(entry) && d.reachesNetwork() && d.access.network.Closed() && !p.hasHostToAsk(&d) { // those of others may do something without it, too
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

// Rules lists the rules in force, the newest last.
func (p *Policy) Rules() []Rule {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return slices.Clone(p.rules)
}

// Add makes a rule hold from now on.
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

// holds reports whether the tool is as it was when the rule was made.
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
