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

// Ceiling is what a layer permits at most. Its zero value permits everything.
// Ceilings meet with [Narrow]; there is no operation that widens one.
//
// A list of lists is one list for each layer that has any, and whatever is
// asked for has to be in all of them. An empty list permits nothing: "nobody
// said anything" is having no list.
type Ceiling struct {
	Rules                []Rule // that deny or ask
	Modules              []ModuleList
	Directories          []List    // patterns of directories; each covers what is below
	Hosts                []List    // hosts, or *.NAME
	Providers            []List    // of models
	BaseURLs             []List    // of providers, to the letter; "" is the provider's own
	Registries           []List    // HOST or HOST/PATH: modules are added from there, or from below
	Hidden               []Setting // paths that no guest sees
	DisabledCapabilities []Setting // [ExecKey], [FilesKey], [NetworkKey] or [StoreSwitchKey]: no tool that asks for it
	DisabledNames        []Setting // tools, and modules with all of theirs, by their names: nobody calls them

	// Limits are the most that a setting can be, by its key in agent.toml;
	// durations in nanoseconds.
	Limits map[string]Limit

	MinTier       *Limit    // the least tier that a process may run in
	Changes       *Limit    // the widest [ChangesMode] of a process, as [ChangesMode.rank]
	AskFirst      []Setting // no process runs before it is asked about
	SignedOnly    []Setting
	ModulesClosed []Setting // no module is added
	Confirm       []Setting // every call asks
	AuditExports  []Setting // directories into which each session is exported; "" asks for the log alone
}

// List is what one layer permits.
type List struct {
	Values []string // sorted
	From   Provenance
}

// Setting is one value of one layer.
type Setting struct {
	Value string
	From  Provenance
}

// Limit is a number that one layer sets.
type Limit struct {
	Value int64
	Text  string // the number with its unit, for a person; empty where it has none
	From  Provenance
}

func (m Limit) String() string { return cmp.Or(m.Text, strconv.FormatInt(m.Value, 10)) }

// ModuleList is which modules one layer lets run, beside the built-in ones: any
// that is in one of the lists.
type ModuleList struct {
	Digests, Signers, Namespaces []string // sorted; digests in hex
	From                         Provenance
}

// Provenance says where a bound is written.
type Provenance struct {
	Source Source
	Origin string // FILE: KEY
}

// decider is the bound that is written there, as one that decides.
func (f Provenance) decider(rule string) Decider {
	return Decider{Rule: rule, Source: f.Source, Origin: f.Origin}
}

func (f Provenance) String() string { return strings.TrimSpace(string(f.Source) + " " + f.Origin) }

// Narrow returns what all ceilings permit. It is commutative, associative and
// idempotent, and its result permits nothing that one of them does not.
func Narrow(all ...Ceiling) Ceiling {
	var c Ceiling
	for _, o := range all {
		c.Rules = append(c.Rules, o.Rules...)
		c.Modules = append(c.Modules, o.Modules...)
		c.Directories = append(c.Directories, o.Directories...)
		c.Hosts = append(c.Hosts, o.Hosts...)
		c.Providers = append(c.Providers, o.Providers...)
		c.BaseURLs = append(c.BaseURLs, o.BaseURLs...)
		c.Registries = append(c.Registries, o.Registries...)
		c.Hidden = append(c.Hidden, o.Hidden...)
		c.DisabledCapabilities = append(c.DisabledCapabilities, o.DisabledCapabilities...)
		c.DisabledNames = append(c.DisabledNames, o.DisabledNames...)
		for key, most := range o.Limits {
			if c.Limits == nil {
				c.Limits = map[string]Limit{}
			}
			if old, ok := c.Limits[key]; !ok || compareLimits(most, old) < 0 {
				c.Limits[key] = most
			}
		}
		c.MinTier = highest(c.MinTier, o.MinTier)
		if o.Changes != nil && (c.Changes == nil || compareLimits(*o.Changes, *c.Changes) < 0) {
			c.Changes = o.Changes
		}
		c.AskFirst = append(c.AskFirst, o.AskFirst...)
		c.SignedOnly = append(c.SignedOnly, o.SignedOnly...)
		c.ModulesClosed = append(c.ModulesClosed, o.ModulesClosed...)
		c.Confirm = append(c.Confirm, o.Confirm...)
		c.AuditExports = append(c.AuditExports, o.AuditExports...)
	}
	c.Rules = sortUnique(c.Rules, Rule.identity)
	c.Modules = sortUnique(c.Modules, func(l ModuleList) string {
		return lengthPrefixed("", l.Digests) + lengthPrefixed("", l.Signers) + lengthPrefixed("", l.Namespaces) + lengthPrefixed(l.From.String())
	})
	for _, lists := range []*[]List{&c.Directories, &c.Hosts, &c.Providers, &c.BaseURLs, &c.Registries} {
		*lists = sortUnique(*lists, func(l List) string { return lengthPrefixed("", l.Values) + lengthPrefixed(l.From.String()) })
	}
	for _, lines := range []*[]Setting{&c.Hidden, &c.DisabledCapabilities, &c.DisabledNames, &c.AskFirst, &c.SignedOnly, &c.ModulesClosed, &c.Confirm, &c.AuditExports} {
		*lines = sortUnique(*lines, func(l Setting) string { return lengthPrefixed(l.Value) + lengthPrefixed(l.From.String()) })
	}
	return c
}

// sortUnique is sorted and holds nothing twice.
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

// identity tells two rules apart.
func (r Rule) identity() string {
	out := lengthPrefixed(r.Tool, r.Except, each(r.Where, match.Condition.String), r.Reads, r.Overrides) + lengthPrefixed(string(r.Source), []string{r.Secrets, r.Origin, r.Why, r.Project, r.Binding.Module, r.Binding.ABI,
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

// lengthPrefixed puts each text behind its length, so that no two lists read the same.
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

// Permits reports whether a value is in each of the lists, and which layer says
// no.
func Permits(lists []List, value string) (bool, Provenance) {
	for _, l := range lists {
		if !slices.Contains(l.Values, value) {
			return false, l.From
		}
	}
	return true, Provenance{}
}

// RestrictNetwork returns what is left of a network under the lists of hosts. In them a
// name means what it means in a [network.Rule], at any port and in any protocol:
// an address that is not public has to be listed itself, also for a name that leads
// to it. What cannot be the host of a connection is left out, and so permits
// nothing.
func (c Ceiling) RestrictNetwork(n *network.Network) *network.Network {
	for _, l := range c.Hosts {
		var rules []network.Rule
		for _, v := range l.Values {
			if r, err := network.ParseListed(v); err == nil {
				rules = append(rules, r)
			}
		}
		n = n.Restrict(string(l.From.Source), rules)
	}
	return n
}

// PermitsMount returns the widest form of a mount that is permitted, and which
// layer says no, to the mount or to changes in it.
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

// PermitsAdd answers whether a module may be added, why not, and which layer says so.
// Repository is that of [Ceiling.PermitsFrom]. What may not run is not added either.
func (c Ceiling) PermitsAdd(m *tool.Module, repository string) (ok bool, why string, from Provenance) {
	if ok, why, from := c.PermitsFrom(repository); !ok {
		return false, why, from
	}
	return c.mayRun(m)
}

// PermitsFrom answers whether modules may be added from a place at all, before one is
// fetched. Repository is HOST/PATH if that is a place of the network; empty: a file on
// this machine, which is in no registry.
func (c Ceiling) PermitsFrom(repository string) (ok bool, why string, from Provenance) {
	if len(c.ModulesClosed) > 0 {
		return false, "modules are not added", c.ModulesClosed[0].From
	}
	for _, l := range c.Registries {
		if !slices.ContainsFunc(l.Values, func(v string) bool { return repository == v || strings.HasPrefix(repository, v+"/") }) {
			what := "the module comes from a file"
			if repository != "" {
				what = fmt.Sprintf("the module comes from %q", repository)
			}
			return false, fmt.Sprintf("%s, and modules are added from no place but %s", what, quoted(l.Values)), l.From
		}
	}
	return true, "", Provenance{}
}

// ModuleError says why a module may not run, and which layer says so.
type ModuleError struct {
	Module, Why string
	From        Provenance
}

func (e *ModuleError) Error() string { return fmt.Sprintf("%s: %s: %s", e.Module, e.Why, e.From) }

// PermitsRun returns a *[ModuleError] if no part of a module may be compiled or run, and nil
// if it may. The signer of the module has to be known before.
func (c Ceiling) PermitsRun(m *tool.Module) error {
	if ok, why, from := c.mayRun(m); !ok {
		return &ModuleError{m.Name, why, from}
	}
	return nil
}

// mayRun reports whether a module may run at all. Running it by its path is no way around a
// rule against adding it.
func (c Ceiling) mayRun(m *tool.Module) (bool, string, Provenance) {
	switch m.Origin {
	case tool.OriginBuiltin:
		return true, "", Provenance{}
	case tool.OriginFile:
		if ok, why, from := c.PermitsFrom(""); !ok {
			return false, why + ", so none is run by its path", from
		}
	}
	// A user may give any name to any key, which signs nothing for the administrator.
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
