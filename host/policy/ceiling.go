package policy

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/stockade-dev/stockade/host/policy/match"
	"github.com/stockade-dev/stockade/host/policy/network"
	"github.com/stockade-dev/stockade/host/policy/paths"
	"github.com/stockade-dev/stockade/host/tool"
)

// Ceiling limits what may be permitted. Its zero value permits everything. [Narrow] combines
// ceilings; no operation widens one.
//
// A field of type []List or []ModuleList has one list for each layer that restricts it, and a
// value has to be in all lists. A list without values permits nothing, except built-in
// modules; without any list, everything is permitted.
type Ceiling struct {
	Rules                []Rule       // rules that deny or ask
	Modules              []ModuleList // modules that may run
	Directories          []List       // directories that may be mounted, and all below: PATTERN, PATTERN:ro
	Hosts                []List       // hosts that may be reached: a name, an address or *.NAME
	Providers            []List       // names of the model providers that may be used
	BaseURLs             []List       // literal base URLs of providers; "" is the provider's own
	Registries           []List       // HOST or HOST/PATH: modules may be added from there and below, not from files
	Hidden               []Setting    // absolute paths that no guest sees
	DisabledCapabilities []Setting    // [ExecKey] or a similar key: tools that ask for the capability are off
	DisabledNames        []Setting    // names of tools and modules that are off

	Limits map[string]Limit // highest values of settings, by key in agent.toml; durations in nanoseconds

	MinTier       *Limit    // lowest tier in which a process may run; nil: any
	Changes       *Limit    // widest [ChangesMode] of a process, as position in changesModes; nil: any
	AskFirst      []Setting // not empty: a process that asks does so before it runs
	SignedOnly    []Setting // not empty: besides built-in modules, only signed ones run, see mayRun
	ModulesClosed []Setting // not empty: no module is added, or run by its path
	Confirm       []Setting // not empty: every call asks, even if a rule allows it; but see Rule.Overrides
	NoAuto        []Setting // not empty: no answer and no setting lets changes be made without a question
	AuditExports  []Setting // directories to export each session to; "" asks for the log alone
}

// List holds the values that one layer permits.
type List struct {
	Values []string // sorted
	From   Provenance
}

// Setting is one value that one layer sets.
type Setting struct {
	Value string // empty where only the presence of the setting counts
	From  Provenance
}

// Limit is a number that one layer sets.
type Limit struct {
	Value int64
	Text  string // the number with its unit, for a person; empty if it has no unit
	From  Provenance
}

func (m Limit) String() string { return cmp.Or(m.Text, strconv.FormatInt(m.Value, 10)) }

// ModuleList holds the modules that one layer permits besides the built-in ones. A module
// that is in any of the three lists is permitted by this layer. Signers and Namespaces count
// only for signed modules, see mayRun.
type ModuleList struct {
	Digests, Signers, Namespaces []string // sorted; digests in hex
	From                         Provenance
}

// Provenance is the place where a bound or a value is written.
type Provenance struct {
	Source Source
	Origin string // such as FILE: KEY
}

// decider returns the decider for a bound that is written at this place; rule names the bound.
func (f Provenance) decider(rule string) Decider {
	return Decider{Rule: rule, Source: f.Source, Origin: f.Origin}
}

func (f Provenance) String() string { return strings.TrimSpace(string(f.Source) + " " + f.Origin) }

// Narrow returns the ceiling that permits only what all of these ceilings permit. It is
// commutative, associative and idempotent.
func Narrow(all ...Ceiling) Ceiling {
	var c Ceiling
	lists, settings := c.lists(), c.settings()
	for _, o := range all {
		c.Rules = append(c.Rules, o.Rules...)
		c.Modules = append(c.Modules, o.Modules...)
		for i, l := range o.lists() {
			*lists[i] = append(*lists[i], *l...)
		}
		for i, s := range o.settings() {
			*settings[i] = append(*settings[i], *s...)
		}
		for key, limit := range o.Limits {
			if c.Limits == nil {
				c.Limits = map[string]Limit{}
			}
			if old, ok := c.Limits[key]; !ok || compareLimits(limit, old) < 0 {
				c.Limits[key] = limit
			}
		}
		c.MinTier = highest(c.MinTier, o.MinTier)
		if o.Changes != nil && (c.Changes == nil || compareLimits(*o.Changes, *c.Changes) < 0) {
			c.Changes = o.Changes
		}
	}
	c.Rules = sortUnique(c.Rules, Rule.identity)
	c.Modules = sortUnique(c.Modules, func(l ModuleList) string {
		return lengthPrefixed("", l.Digests) + lengthPrefixed("", l.Signers) + lengthPrefixed("", l.Namespaces) + lengthPrefixed(l.From.String())
	})
	for _, l := range lists {
		*l = sortUnique(*l, func(l List) string { return lengthPrefixed("", l.Values) + lengthPrefixed(l.From.String()) })
	}
	for _, s := range settings {
		*s = sortUnique(*s, func(s Setting) string { return lengthPrefixed(s.Value) + lengthPrefixed(s.From.String()) })
	}
	return c
}

func (c *Ceiling) lists() []*[]List {
	return []*[]List{&c.Directories, &c.Hosts, &c.Providers, &c.BaseURLs, &c.Registries}
}

func (c *Ceiling) settings() []*[]Setting {
	return []*[]Setting{&c.Hidden, &c.DisabledCapabilities, &c.DisabledNames, &c.AskFirst, &c.SignedOnly, &c.ModulesClosed, &c.Confirm, &c.NoAuto, &c.AuditExports}
}

// sortUnique returns the values sorted by their identities, without duplicates.
func sortUnique[T any](values []T, identity func(T) string) []T {
	if len(values) < 2 {
		return values
	}
	byKey := map[string]T{}
	for _, v := range values {
		key := identity(v)
		if _, twice := byKey[key]; !twice {
			byKey[key] = v
		}
	}
	out := make([]T, 0, len(byKey))
	for _, key := range slices.Sorted(maps.Keys(byKey)) {
		out = append(out, byKey[key])
	}
	return out
}

// identity returns a text that differs for different rules. Binding.Texts does not count.
func (r Rule) identity() string {
	out := lengthPrefixed(r.Tool, r.Except, each(r.Where, match.Condition.String), r.Reads, r.Overrides, r.FirstWords) + lengthPrefixed(string(r.Source), []string{r.Secrets, r.Origin, r.Why, r.Project, r.Binding.Module, r.Binding.ABI,
		r.Binding.Description, r.Binding.Schema, r.Binding.Capabilities, string(r.Changes), r.Below, r.HistoryDir, r.OpensHost})
	out += fmt.Sprintf("%d %d %d %d ", r.Effect, r.AfterCalls, r.Turn, len(r.Callers))
	for _, risk := range r.Risks {
		out += strconv.Itoa(int(risk)) + " "
	}
	for _, c := range r.Callers {
		out += lengthPrefixed(string(c))
	}
	return out
}

// lengthPrefixed encodes texts, each after its length. Different texts or lists have different
// encodings.
func lengthPrefixed(first string, lists ...[]string) string {
	var b strings.Builder
	put := func(s string) {
		b.WriteString(strconv.Itoa(len(s)))
		b.WriteByte(':')
		b.WriteString(s)
	}
	put(first)
	for _, l := range lists {
		b.WriteString(strconv.Itoa(len(l)))
		b.WriteByte('[')
		for _, s := range l {
			put(s)
		}
	}
	return b.String()
}

func highest(a, b *Limit) *Limit {
	if a == nil || b != nil && (b.Value > a.Value || b.Value == a.Value && compareLimits(*b, *a) < 0) {
		return b
	}
	return a
}

func compareLimits(a, b Limit) int {
	return cmp.Or(cmp.Compare(a.Value, b.Value), cmp.Compare(a.From.String(), b.From.String()))
}

// Permits reports whether a value is in each of the lists. If not, it returns the first layer
// that does not permit the value.
func Permits(lists []List, value string) (bool, Provenance) {
	for _, l := range lists {
		if !slices.Contains(l.Values, value) {
			return false, l.From
		}
	}
	return true, Provenance{}
}

// RestrictNetwork returns the network restricted to c.Hosts: a host must be in each of these
// lists, too. A name in a list stands for any port and any protocol, as in
// [network.ParseListed]. An address that is not public has to be listed itself, even if it
// belongs to a listed name. An entry that cannot be the host of a connection permits nothing.
// Nil stays nil.
func (c Ceiling) RestrictNetwork(n *network.Network) *network.Network {
	for _, l := range c.Hosts {
		n = n.Restrict(string(l.From.Source), hostRules(l.Values, network.ParseListed))
	}
	return n
}

// PermitsMount returns the mount, read-only if a layer forbids changes in it. ok is false if a
// layer forbids the mount. from is the layer that forbids the mount or the changes; zero:
// none.
func (c Ceiling) PermitsMount(m Mount) (_ Mount, ok bool, from Provenance) {
	for _, l := range c.Directories {
		seen, write := false, false
		for _, v := range l.Values {
			dir, readOnly := strings.CutSuffix(v, ":ro")
			p, err := paths.ParsePattern(dir)
			if err != nil || !p.Covers(m.Host) {
				continue
			}
			seen, write = true, write || !readOnly
		}
		if !seen {
			return Mount{}, false, l.From
		}
		if m.Write && !write {
			m.Write, from = false, l.From
		}
	}
	return m, true, from
}

// PermitsAdd reports whether a module may be added. If not, it returns the reason and the
// layer. repository is as in [Ceiling.PermitsFrom]. A module that may not run may not be added
// either.
func (c Ceiling) PermitsAdd(m *tool.Module, repository string) (ok bool, reason string, from Provenance) {
	if ok, reason, from := c.PermitsFrom(repository); !ok {
		return false, reason, from
	}
	return c.mayRun(m)
}

// PermitsFrom reports whether modules may be added from a place at all, before one is fetched.
// If not, it returns the reason and the layer. repository is HOST/PATH for a registry, and
// empty for a file on this machine.
func (c Ceiling) PermitsFrom(repository string) (ok bool, reason string, from Provenance) {
	if len(c.ModulesClosed) > 0 {
		return false, "modules are not added", c.ModulesClosed[0].From
	}
	for _, l := range c.Registries {
		if !slices.ContainsFunc(l.Values, func(v string) bool { return repository == v || strings.HasPrefix(repository, v+"/") }) {
			origin := "the module comes from a file"
			if repository != "" {
				origin = fmt.Sprintf("the module comes from %q", repository)
			}
			return false, fmt.Sprintf("%s, and modules are added from no place but %s", origin, quoted(l.Values)), l.From
		}
	}
	return true, "", Provenance{}
}

// ModuleError is the error for a module that may not run, with the reason and the layer.
type ModuleError struct {
	Module, Why string
	From        Provenance
}

func (e *ModuleError) Error() string { return fmt.Sprintf("%s: %s: %s", e.Module, e.Why, e.From) }

// PermitsRun returns a *[ModuleError] if a module may not be compiled or run. The signer of
// the module must already be set.
func (c Ceiling) PermitsRun(m *tool.Module) error {
	if ok, reason, from := c.mayRun(m); !ok {
		return &ModuleError{m.Name, reason, from}
	}
	return nil
}

// mayRun reports whether a module may run. If not, it returns the reason and the layer. Where
// no module may be added from a file, none may be run by its path either. In the bounds of the
// administrator, only a signer whom the administrator has named counts as one.
func (c Ceiling) mayRun(m *tool.Module) (bool, string, Provenance) {
	switch m.Origin {
	case tool.OriginBuiltin:
		return true, "", Provenance{}
	case tool.OriginFile:
		if ok, reason, from := c.PermitsFrom(""); !ok {
			return false, reason + ", so none is run by its path", from
		}
	}
	// For the administrator's lists only keys that the administrator knows count: a user
	// can give any name to any key.
	signed := func(from Provenance) bool {
		return m.Signer != "" && (from.Source != SourceAdmin || m.AdminKnowsSigner)
	}
	for _, l := range c.SignedOnly {
		switch {
		case m.Signer == "":
			return false, "the module is not signed", l.From
		case !signed(l.From):
			return false, "the module is signed by nobody whom the administrator knows", l.From
		}
	}
	for _, l := range c.Modules {
		if slices.Contains(l.Digests, m.Digest) ||
			signed(l.From) && (slices.Contains(l.Signers, m.Signer) || m.Namespace != "" && slices.Contains(l.Namespaces, m.Namespace)) {
			continue
		}
		return false, "the module is none of those that may run", l.From
	}
	return true, "", Provenance{}
}
