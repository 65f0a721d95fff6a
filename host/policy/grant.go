package policy

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"

	"github.com/stockade-dev/stockade/host/policy/network"
	"github.com/stockade-dev/stockade/host/policy/paths"
	"github.com/stockade-dev/stockade/host/tool"
)

// Mount is a directory of the host that a guest sees under the same name.
// The zero value of Write mounts it read-only.
type Mount struct {
	Host   string // absolute and clean
	Write  bool
	Origin string // where, for a person: --mount DIR:ro
}

// ErrChanged is wrapped by the error of a commit that was refused, and has
// changed nothing, because files are not any more what the call has seen.
var ErrChanged = errors.New("changed meanwhile")

// ErrUntidy is wrapped by the error of a commit that has made all changes and
// could not clean up after them. The error says what is left.
var ErrUntidy = errors.New("changed, and not tidied up")

// ErrAskFirst is wrapped by the error of a call that was tried before anybody was
// asked, and cannot be: it says why, and nothing has run.
var ErrAskFirst = errors.New("it has to be asked about before it runs")

// ErrNoGrant is returned to whoever tries to run something without a grant.
var ErrNoGrant = errors.New("no grant: nothing runs without a decision")

// Grant is what one call may do. Its zero value grants nothing and is refused
// by whoever runs things. Copies share the permission to start a process,
// which is used up by the first start.
type Grant struct {
	g       *grant
	budgets []*Budget
	store   Store
}

type grant struct {
	callID, tool, digest string
	args                 [32]byte
	cwd                  string
	mounts               []Mount
	masked               []string
	opened               paths.Opened
	limits               Limits
	limitCaps            map[string]Limit  // by key, of these limits
	limitOrigins         map[string]string // where each is set
	secrets              []tool.Secret
	hasStore             bool
	modes                map[string]bool

	rehearsal bool // whatever it changes is not to be kept

	mayExec    bool
	exec       Exec
	execDigest [32]byte
	execUsed   atomic.Bool

	network *network.Network // nil: none
	traffic traffic
}

// Check returns nil if the grant is for this call of this module with these
// arguments.
func (g Grant) Check(call tool.Call, moduleDigest string) error {
	switch {
	case g.g == nil:
		return ErrNoGrant
	case g.g.callID != call.ID || g.g.tool != call.Tool || g.g.args != call.ArgsDigest() || g.g.cwd != call.Cwd:
		return fmt.Errorf("the grant is for another call than %s of %s", call.ID, call.Tool)
	case g.g.digest != moduleDigest:
		return fmt.Errorf("the grant is for the module %.12s, not for %.12s", g.g.digest, moduleDigest)
	}
	return nil
}

// terms are what is granted; those of the zero grant are nothing.
func (g Grant) terms() *grant {
	if g.g == nil {
		return new(grant)
	}
	return g.g
}

// Mounts lists what the guest may see of the file system.
func (g Grant) Mounts() []Mount { return slices.Clone(g.terms().mounts) }

// Masked lists directories that the guest must not see even inside a mount.
func (g Grant) Masked() []string { return slices.Clone(g.terms().masked) }

// OpenedSecrets are the secret files that the guest may read.
func (g Grant) OpenedSecrets() paths.Opened { return slices.Clone(g.terms().opened) }

// Modes returns the modes that the call gives to files, as [tool.Content.Modes].
func (g Grant) Modes() map[string]bool { return maps.Clone(g.terms().modes) }

// Secrets lists the secrets that the guest may have placeholders of, as its
// tool asks for them.
func (g Grant) Secrets() []tool.Secret { return cloneSecrets(g.terms().secrets) }

func cloneSecrets(secrets []tool.Secret) []tool.Secret {
	out := slices.Clone(secrets)
	for i := range out {
		out[i].Hosts = slices.Clone(out[i].Hosts)
	}
	return out
}

// Limits bounds the call. The limits of the zero grant are zero.
func (g Grant) Limits() Limits { return g.terms().limits }

// LimitHint goes on with a hint about a limit, which is so much now: where more can be
// had, or who permits no more. The key is that of the limit in the settings.
func (g Grant) LimitHint(key string, now uint64) tool.Hint {
	if g.g == nil {
		return nil
	}
	if most, ok := g.g.limitCaps[key]; ok && now >= uint64(most.Value) {
		return tool.Advise("; no more than %s is permitted for %s: %s", most, key, most.From)
	}
	if from := g.g.limitOrigins[key]; from != "" {
		return tool.Advise(", or raise %s where it is set: %s", key, from)
	}
	return tool.Advise(", or raise %s in ", key).And(tool.ActionHint(tool.HintSettings, ""))
}

// WithBudgets returns the grant for a call whose fuel comes out of these budgets
// too, beside its own limit.
func (g Grant) WithBudgets(budgets ...*Budget) Grant {
	g.budgets = append(slices.Clone(g.budgets), budgets...)
	return g
}

// Budgets are what the fuel of the call is drawn from, beside its own limit.
func (g Grant) Budgets() []*Budget { return slices.Clone(g.budgets) }

// Rehearsal reports whether the call may only be tried: what it changes can be
// looked at, and is dropped unless another grant for the same call lets it be
// committed.
func (g Grant) Rehearsal() bool { return g.terms().rehearsal }

// Exec is how the process of a call is confined: what it may see and reach.
type Exec struct {
	// Tier is the one under which it was decided. It never runs in a lower one.
	Tier Tier
	// Mounts are all that tools may be shown, whatever files the call itself sees.
	Mounts []Mount
	// Masked are files and directories that it does not see, also inside of a
	// mount: our own, and what is hidden.
	Masked []string
	// Hidden are those of Masked that a layer of the policy hides.
	Hidden []string
	// History returns whether the command may read the history of a repository, given by its
	// git directory, that seems to hold secrets; Ask if a person has to decide. Nil is Deny.
	History func(repository string) Effect
	// Opened are the files that look like secrets and that it may read.
	Opened paths.Opened
	// Network is whom it may talk to; nil is nobody.
	Network *network.Network
	// Changes is what becomes of what it changes.
	Changes ChangesMode
	secrets bool // the call uses secrets
}

// IsPrivileged reports whether the process has more rights than one without approval: the
// network, a secret, the host's files, or weak confinement. It must not see what such a
// process has built.
func (e Exec) IsPrivileged() bool {
	return e.Network != nil || e.secrets || len(e.Opened) > 0 || e.Changes == ChangesDirect || e.Tier < TierConfined
}

// ReachesHosts reports whether the process reaches hosts that rules name. It does after an
// answer, or under a rule that allows exactly this command. What it adds to caches of
// registries is kept.
func (e Exec) ReachesHosts() bool { return !e.Network.Closed() }

// MayExec reports whether the grant allows a process.
func (g Grant) MayExec() bool { return g.terms().mayExec }

// Exec says how the process of the call is confined, if it may start one.
func (g Grant) Exec() (e Exec, ok bool) {
	e = g.terms().exec
	e.Mounts, e.Masked, e.Hidden, e.Opened = slices.Clone(e.Mounts), slices.Clone(e.Masked), slices.Clone(e.Hidden), slices.Clone(e.Opened)
	return e, g.MayExec()
}

// TakeExec allows the start of exactly the approved command in the approved
// directory, once, and says how it is confined.
func (g Grant) TakeExec(argv []string, dir string) (Exec, error) {
	switch {
	case g.g == nil:
		return Exec{}, ErrNoGrant
	case !g.g.mayExec:
		return Exec{}, errors.New("this call may not start a process")
	case execDigest(argv, dir) != g.g.execDigest:
		return Exec{}, errors.New("this is not the command that was approved")
	case g.g.execUsed.Swap(true):
		return Exec{}, errors.New("the approved command has run already; one approval is one run")
	}
	e, _ := g.Exec()
	return e, nil
}

// ReturnExec gives the permission of TakeExec back, if no process was started.
func (g Grant) ReturnExec() { g.terms().execUsed.Store(false) }

// Network says whom the guest may talk to; nil is nobody.
func (g Grant) Network() *network.Network { return g.terms().network }

// ExecNetwork says whom the process of the call may talk to; nil is nobody.
func (g Grant) ExecNetwork() *network.Network { return g.terms().exec.Network }

// NetworkRules are the rules about whom the call may talk to, the guest or its process.
func (g Grant) NetworkRules() []string {
	return cmp.Or(g.terms().network, g.terms().exec.Network).Rules()
}

// execDigest identifies a command and its directory.
func execDigest(argv []string, dir string) [32]byte {
	return sha256.Sum256([]byte(lengthPrefixed(dir, argv)))
}

// String is PATH:ro or PATH:rw.
func (m Mount) String() string {
	if m.Write {
		return m.Host + ":rw"
	}
	return m.Host + ":ro"
}
