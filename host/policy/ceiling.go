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
	Rules       []Rule // that deny or ask
	Modules     []ModuleList
	Directories []List // patterns of directories; each covers what is below
	Hosts       []List // hosts, or *.NAME
	Providers   []List // of models
	BaseURLs    []List // of providers, to the letter; "" is the provider's own
	Registries  []List // HOST or HOST/PATH: modules are added from there, or from below
	Hidden      []Line // paths that no guest sees
	Off         []Line // [ExecKey], [FilesKey], [NetworkKey] or [KeepingKey]: no tool that asks for it
	Without     []Line // tools, and modules with all of theirs, by their names: nobody calls them

	// Limits are the most that a setting can be, by its key in agent.toml;
	// durations in nanoseconds.
	Limits map[string]Most

	MinTier      *Most  // the least tier that a process may run in
	Changes      *Most  // the widest [Changes] of a process, as [Changes.rank]
	AskFirst     []Line // no process runs before it is asked about
	Signed       []Line
	Closed       []Line // no module is added
	Confirm      []Line // every call asks
	AuditExports []Line // directories into which each session is exported; "" asks for the log alone
}

// List is what one layer permits.
type List struct {
	Values []string // sorted
	From   From
}

// Line is one value of one layer.
type Line struct {
	Value string
	From  From
}

// Most is a number that one layer sets.
type Most struct {
	Value int64
	Text  string // the number with its unit, for a person; empty where it has none
	From  From
}

func (m Most) String() string { return cmp.Or(m.Text, strconv.FormatInt(m.Value, 10)) }

// ModuleList is which modules one layer lets run, beside the built-in ones: any
// that is in one of the lists.
type ModuleList struct {
	Digests, Signers, Namespaces []string // sorted; digests in hex
	From                         From
}

// From says where a bound is written.
type From struct {
	Source Source
	Origin string // FILE: KEY
}

// says is the bound that is written there, as one that decides.
func (f From) says(rule string) Decider {
	return Decider{Rule: rule, Source: f.Source, Origin: f.Origin}
}

func (f From) String() string { return strings.TrimSpace(string(f.Source) + " " + f.Origin) }

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
		c.Off = append(c.Off, o.Off...)
		c.Without = append(c.Without, o.Without...)
		for key, most := range o.Limits {
			if c.Limits == nil {
				c.Limits = map[string]Most{}
			}
			if old, ok := c.Limits[key]; !ok || compareMost(most, old) < 0 {
				c.Limits[key] = most
			}
		}
		c.MinTier = highest(c.MinTier, o.MinTier)
		if o.Changes != nil && (c.Changes == nil || compareMost(*o.Changes, *c.Changes) < 0) {
			c.Changes = o.Changes
		}
		c.AskFirst = append(c.AskFirst, o.AskFirst...)
		c.Signed = append(c.Signed, o.Signed...)
		c.Closed = append(c.Closed, o.Closed...)
		c.Confirm = append(c.Confirm, o.Confirm...)
		c.AuditExports = append(c.AuditExports, o.AuditExports...)
	}
	c.Rules = normal(c.Rules, Rule.identity)
	c.Modules = normal(c.Modules, func(l ModuleList) string {
		return texts("", l.Digests) + texts("", l.Signers) + texts("", l.Namespaces) + texts(l.From.String())
	})
	for _, lists := range []*[]List{&c.Directories, &c.Hosts, &c.Providers, &c.BaseURLs, &c.Registries} {
		*lists = normal(*lists, func(l List) string { return texts("", l.Values) + texts(l.From.String()) })
	}
	for _, lines := range []*[]Line{&c.Hidden, &c.Off, &c.Without, &c.AskFirst, &c.Signed, &c.Closed, &c.Confirm, &c.AuditExports} {
		*lines = normal(*lines, func(l Line) string { return texts(l.Value) + texts(l.From.String()) })
	}
	return c
}

// normal is sorted and holds nothing twice.
func normal[T any](values []T, identity func(T) string) []T {
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
	out := texts(r.Tool, r.Except, each(r.Where, match.Condition.String), r.Reads, r.Over) + texts(string(r.Source), []string{r.Secrets, r.Origin, r.Why, r.Project, r.Bound.Module, r.Bound.ABI,
		r.Bound.Description, r.Bound.Schema, r.Bound.Capabilities, string(r.Changes), r.Below, r.History, r.Opens})
	out += fmt.Sprintf("%d %d %d %d ", r.Effect, r.After, r.Turn, len(r.Callers))
	for _, risk := range r.Risks {
		out += strconv.Itoa(int(risk)) + " "
	}
	for _, c := range r.Callers {
		out += texts(string(c))
	}
	return out
}

// texts puts each text behind its length, so that no two lists read the same.
func texts(first string, lists ...[]string) string {
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

func highest(a, b *Most) *Most {
	if a == nil || b != nil && (b.Value > a.Value || b.Value == a.Value && compareMost(*b, *a) < 0) {
		return b
	}
	return a
}

func compareMost(a, b Most) int {
	return cmp.Or(cmp.Compare(a.Value, b.Value), cmp.Compare(a.From.String(), b.From.String()))
}

// Permits reports whether a value is in each of the lists, and which layer says
// no.
func Permits(lists []List, value string) (bool, From) {
	for _, l := range lists {
		if !slices.Contains(l.Values, value) {
			return false, l.From
		}
	}
	return true, From{}
}

// Narrows returns what is left of a network under the lists of hosts. In them a
// name means what it means in a [network.Rule], at any port and in any protocol:
// an address that is not public has to be listed itself, also for a name that leads
// to it. What cannot be the host of a connection is left out, and so permits
// nothing.
func (c Ceiling) Narrows(n *network.Network) *network.Network {
	for _, l := range c.Hosts {
		var rules []network.Rule
		for _, v := range l.Values {
			if r, err := network.ParseListed(v); err == nil {
				rules = append(rules, r)
			}
		}
		n = n.Under(string(l.From.Source), rules)
	}
	return n
}

// PermitsMount returns the widest form of a mount that is permitted, and which
// layer says no, to the mount or to changes in it.
func (c Ceiling) PermitsMount(m Mount) (_ Mount, ok bool, from From) {
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
func (c Ceiling) PermitsAdd(m *tool.Module, repository string) (ok bool, why string, from From) {
	if ok, why, from := c.PermitsFrom(repository); !ok {
		return false, why, from
	}
	return c.mayRun(m)
}

// PermitsFrom answers whether modules may be added from a place at all, before one is
// fetched. Repository is HOST/PATH if that is a place of the network; empty: a file on
// this machine, which is in no registry.
func (c Ceiling) PermitsFrom(repository string) (ok bool, why string, from From) {
	if len(c.Closed) > 0 {
		return false, "modules are not added", c.Closed[0].From
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
	return true, "", From{}
}

// ModuleError says why a module may not run, and which layer says so.
type ModuleError struct {
	Module, Why string
	From        From
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
func (c Ceiling) mayRun(m *tool.Module) (bool, string, From) {
	switch m.Origin {
	case tool.OriginBuiltin:
		return true, "", From{}
	case tool.OriginFile:
		if ok, why, from := c.PermitsFrom(""); !ok {
			return false, why + ", so none is run by its path", from
		}
	}
	// A user may give any name to any key, which signs nothing for the administrator.
	signed := func(from From) bool { return m.Signer != "" && (from.Source != SourceAdmin || m.ByAdministrator) }
	for _, l := range c.Signed {
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
	return true, "", From{}
}
