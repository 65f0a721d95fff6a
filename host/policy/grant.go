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

// Mount is a directory of the host that a guest sees under the same path, read-only unless
// Write is set.
type Mount struct {
	Host   string // absolute and clean
	Write  bool
	Origin string // place where it was opened, for a person, such as --mount DIR:ro; may be empty
}

// ErrChanged is wrapped by the error of a commit, or of listing the changes, that failed
// because the host's files have changed meanwhile. The commit has changed nothing, or its error
// names what it could not put back.
var ErrChanged = errors.New("changed meanwhile")

// ErrUntidy is wrapped by the error of a commit that has made all changes but could not clean
// up. The error names the files that are left over.
var ErrUntidy = errors.New("changed, and not tidied up")

// ErrAskFirst is wrapped by the error of a call that cannot run before the answer, with the
// reason. Its process has not run.
var ErrAskFirst = errors.New("it has to be asked about before it runs")

// ErrNoGrant is returned when something would run without a grant.
var ErrNoGrant = errors.New("no grant: nothing runs without a decision")

// Grant is the permission for one call. Its zero value grants nothing, and the sandbox and the
// jail refuse it. Copies share the permission to start a process, which the first start uses
// up.
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
	limitCaps            map[string]Limit  // highest values of limits in the ceiling, by key
	limitOrigins         map[string]string // places where limits are set, by key
	secrets              []tool.Secret
	hasStore             bool
	modes                map[string]bool

	rehearsal bool // set if changes must not be committed under this grant

	mayExec    bool
	exec       Exec
	execDigest [32]byte
	execUsed   atomic.Bool

	network *network.Network // hosts that the guest may reach; nil: none
	traffic traffic
}

// Check returns an error unless the grant is for this call, with these arguments, of this
// module.
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

// terms returns the terms of the grant. Those of the zero grant are empty.
func (g Grant) terms() *grant {
	if g.g == nil {
		return new(grant)
	}
	return g.g
}

// Mounts returns the directories that the guest may see.
func (g Grant) Mounts() []Mount { return slices.Clone(g.terms().mounts) }

// Masked returns the paths that the guest must not see even inside a mount.
func (g Grant) Masked() []string { return slices.Clone(g.terms().masked) }

// OpenedSecrets returns the secret-looking files that the guest may read.
func (g Grant) OpenedSecrets() paths.Opened { return slices.Clone(g.terms().opened) }

// Modes returns the modes that the call gives to files, see [tool.Content.Modes].
func (g Grant) Modes() map[string]bool { return maps.Clone(g.terms().modes) }

// Secrets returns the secrets for which the guest may get placeholders, as its tool asks for
// them.
func (g Grant) Secrets() []tool.Secret { return cloneSecrets(g.terms().secrets) }

func cloneSecrets(secrets []tool.Secret) []tool.Secret {
	out := slices.Clone(secrets)
	for i := range out {
		out[i].Hosts = slices.Clone(out[i].Hosts)
	}
	return out
}

// Limits returns the limits of the call. Those of the zero grant are zero.
func (g Grant) Limits() Limits { return g.terms().limits }

// LimitHint names the setting that raises a limit, or the layer that forbids more. Its
// words continue another hint. key is the limit's key in agent.toml, now its value.
func (g Grant) LimitHint(key string, now uint64) tool.Hint {
	if g.g == nil {
		return nil
	}
	if limit, ok := g.g.limitCaps[key]; ok && now >= uint64(limit.Value) {
		return tool.Advise("; no more than %s is permitted for %s: %s", limit, key, limit.From)
	}
	if from := g.g.limitOrigins[key]; from != "" {
		return tool.Advise(", or raise %s where it is set: %s", key, from)
	}
	return tool.Advise(", or raise %s in ", key).And(tool.ActionHint(tool.HintSettings, ""))
}

// WithBudgets returns the grant for a call that takes its fuel also from these budgets.
func (g Grant) WithBudgets(budgets ...*Budget) Grant {
	g.budgets = append(slices.Clone(g.budgets), budgets...)
	return g
}

// Budgets returns the budgets of [Grant.WithBudgets].
func (g Grant) Budgets() []*Budget { return slices.Clone(g.budgets) }

// Rehearsal reports whether the call runs before its answer. Its changes can be shown, and are
// dropped unless another grant for the same call lets them be committed.
func (g Grant) Rehearsal() bool { return g.terms().rehearsal }

// Exec holds the terms for the process of a call: its confinement, and what it may see and
// reach.
type Exec struct {
	// Tier is the tier for which the call was decided. The process never runs in a lower one.
	Tier Tier
	// Mounts holds the directories that the process sees: all mounts of the tool, even if the
	// tool itself sees no files.
	Mounts []Mount
	// Masked holds files and directories that the process does not see even inside a mount:
	// our own, and those in Hidden.
	Masked []string
	Hidden []string // the part of Masked that a layer of the policy hides
	// History decides whether the command may read the history of a repository that seems to
	// hold secrets. repository is its git directory. Ask: a person has to decide. History is
	// nil only if the call may start no process.
	History func(repository string) Effect
	Opened  paths.Opened     // secret-looking files that the process may read
	Network *network.Network // hosts that the process may reach; nil: none
	Changes ChangesMode      // mode for the files that the process changes
	secrets bool             // set if the call uses secrets
}

// IsPrivileged reports whether the process has more rights than a process without approval:
// the network, a secret, secret-looking files, changes to the host's files while it runs, or
// weak confinement. It must not see files that a process without approval has built.
func (e Exec) IsPrivileged() bool {
	return e.Network != nil || e.secrets || len(e.Opened) > 0 || e.Changes == ChangesDirect || e.Tier < TierConfined
}

// ReachesHosts reports whether the process can reach a host, which takes an answer, or a flag
// for exactly this command. Only such a process may add fetched packages to the shared caches.
func (e Exec) ReachesHosts() bool { return !e.Network.Closed() }

// MayExec reports whether the grant allows a process.
func (g Grant) MayExec() bool { return g.terms().mayExec }

// Exec returns the terms for the process of the call. ok is false if the call may start none.
func (g Grant) Exec() (e Exec, ok bool) {
	e = g.terms().exec
	e.Mounts, e.Masked, e.Hidden, e.Opened = slices.Clone(e.Mounts), slices.Clone(e.Masked), slices.Clone(e.Hidden), slices.Clone(e.Opened)
	return e, g.MayExec()
}

// TakeExec uses up the permission to start a process, and returns its terms. It fails unless
// the command and the directory are the approved ones, and on a second use without
// [Grant.ReturnExec].
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

// ReturnExec gives back the permission that TakeExec has used up. The caller must have started
// no process.
func (g Grant) ReturnExec() { g.terms().execUsed.Store(false) }

// Network returns the hosts that the guest may reach. Nil: none.
func (g Grant) Network() *network.Network { return g.terms().network }

// ExecNetwork returns the hosts that the process of the call may reach. Nil: none.
func (g Grant) ExecNetwork() *network.Network { return g.terms().exec.Network }

// NetworkRules returns the rules about the hosts that the guest, or else the process, may
// reach, as text.
func (g Grant) NetworkRules() []string {
	return cmp.Or(g.terms().network, g.terms().exec.Network).Rules()
}

func execDigest(argv []string, dir string) [32]byte {
	return sha256.Sum256([]byte(lengthPrefixed(dir, argv)))
}

// String returns PATH:ro or PATH:rw.
func (m Mount) String() string {
	if m.Write {
		return m.Host + ":rw"
	}
	return m.Host + ":ro"
}
