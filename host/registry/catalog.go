package registry

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/stockade-dev/stockade/host/registry/lock"
	"github.com/stockade-dev/stockade/host/registry/store"
	"github.com/stockade-dev/stockade/host/registry/trust"
	"github.com/stockade-dev/stockade/host/tool"
)

// AddedModule is a module that was added, and what becomes of its tools.
type AddedModule struct {
	Record store.Record
	Tools  []AddedTool
}

// OffReason says why none of the module's tools is offered; empty if one may be.
func (a AddedModule) OffReason() string { return a.Record.OffReason }

// Names are the names of its tools, as they are offered.
func (a AddedModule) Names() (out []string) {
	for _, t := range a.Tools {
		out = append(out, t.Name)
	}
	return out
}

// AddedTool is one tool of a module that was added.
type AddedTool struct {
	Name         string // as it is offered: MODULE_tool
	NameInModule string // the module's own name of it
	OffReason    string // why it is not offered; empty: it is
	Entry        *tool.Entry
}

// Scope is what decides about modules in a run, beside the store.
type Scope struct {
	Project *Project
	System  []SystemFile
	Trust   *trust.Rules
	// NeedsSigners: the layers of the policy ask who has signed. Administrator is the name of
	// the file whose publishers are the administrator's.
	NeedsSigners  bool
	Administrator string
}

// applyTrust switches a module off that has been revoked and, where that matters, finds
// out again who has signed it.
func (h Scope) applyTrust(s *store.Store, a *AddedModule, mod *tool.Module) {
	r := &a.Record
	if !h.NeedsSigners && !h.Trust.Revokes(append([]string{"sha256:" + r.Digest, "sha256:" + r.OriginalDigest(), r.ManifestDigest}, r.Keys...)...) {
		return
	}
	v, err := verdict(h.Trust, *r)
	if err == nil && h.NeedsSigners {
		if err = checkBase(s, *r); err != nil {
			v = trust.Verdict{}
		}
	}
	mod.Signer, mod.Namespace, mod.AdminKnowsSigner = v.Signer, v.Namespace, v.Signer != "" && v.File == h.Administrator
	switch {
	case r.OffReason != "":
	case err != nil:
		r.OffReason = err.Error()
	case v.Signer != r.Signer:
		r.OffReason = fmt.Sprintf("%s has signed it, and by what you trust now that does not count", r.Signer)
	}
}

// AllowanceOf is what a record lets a tool have: what all tools of the module may, and
// what this one may.
func AllowanceOf(r store.Record, inner string) tool.Allowance {
	return r.Allowances[""].With(r.Allowances[inner])
}

// TotalAllowance is all that a record lets any of its tools have.
func TotalAllowance(r store.Record) (out tool.Allowance) {
	for _, a := range r.Allowances {
		out = out.With(a)
	}
	return out
}

// Modules says what becomes of the modules that count in a workspace, with what that
// brings along. Where two tools would have one name, that of the module which was
// there first is offered, and the person's own modules come before those of a
// project. Of two modules with one name that of the lockfile is offered.
//
// A module that has been revoked since it was added is not offered. Where the layers
// of the policy ask who has signed, the signatures are verified anew: what the user's
// own files say of that is not enough.
func Modules(s *store.Store, h Scope) ([]AddedModule, error) {
	records, err := s.Records()
	if err != nil {
		return nil, err
	}
	p := h.Project
	records = slices.DeleteFunc(records, func(r store.Record) bool {
		return r.Project != "" && (r.Project != p.Workspace || r.LockSHA256 != "" && p.Empty()) // nothing names it any more
	})
	all := slices.Clone(records)
	rank := func(r store.Record) int {
		if p.replaces(all, r) {
			return 2
		}
		return min(len(r.Project), 1)
	}
	slices.SortStableFunc(records, func(a, b store.Record) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), a.FirstAdded.Compare(b.FirstAdded), cmp.Compare(a.Name, b.Name))
	})
	named := map[string]bool{}
	var out []AddedModule
	for _, r := range records {
		i := slices.IndexFunc(out, func(o AddedModule) bool { return o.Record.Name == r.Name })
		if i >= 0 && out[i].Record.Digest == r.Digest {
			continue // the person has it already, with what is allowed
		}
		a := AddedModule{Record: r}
		if r.Project != "" && r.OffReason == "" {
			a.Record.OffReason = p.WhyStale(r)
		}
		if r.System && !slices.ContainsFunc(h.System, func(f SystemFile) bool { return f.isSourceOf(r) && f.Stamp == r.Stamp }) {
			continue
		}
		if p.replaces(all, r) && a.Record.OffReason == "" {
			a.Record.OffReason = fmt.Sprintf("%s names another %s, which counts in this project; `stockade tool lock %[2]s` writes this one into the file", LockName, r.Name)
		}
		if named[skeleton(r.Name)] && a.Record.OffReason == "" {
			a.Record.OffReason = fmt.Sprintf("another module is called %s", r.Name)
		}
		named[skeleton(r.Name)] = true
		mod := s.Module(r)
		h.applyTrust(s, &a, mod)
		for _, spec := range r.Manifest.Tools {
			a.Tools = append(a.Tools, a.tool(mod, spec))
		}
		out = append(out, a)
	}
	return out, nil
}

// TrialModule is a module that is not kept: it is offered in this run, with what is allowed
// on its command line.
func TrialModule(mod *tool.Module, m tool.Manifest, allowed tool.Allowance) AddedModule {
	a := AddedModule{Record: store.Record{
		Name: m.Name, Source: mod.Path, Digest: mod.Digest, Bytes: mod.Bytes, Manifest: m, Fingerprint: m.Fingerprint(), Allowances: map[string]tool.Allowance{"": allowed},
	}}
	mod.Prefix, mod.Version, mod.Config = m.Name+"_", m.Version, m.Config
	for _, spec := range m.Tools {
		a.Tools = append(a.Tools, a.tool(mod, spec))
	}
	return a
}

// OnlyLocked leaves the modules that the lockfile of a project names, which have to be
// there, as it says, and offered. The hint goes with the error.
func OnlyLocked(modules []AddedModule, p *Project) (out []AddedModule, hint string, err error) {
	if p.Lock == nil {
		return nil, "`stockade tool lock NAME` writes one, with modules that you have added", fmt.Errorf("there is no %s", LockName)
	}
	hint = "`stockade tool sync` compares what is here with " + LockName + ", and asks"
	for _, m := range lock.Modules(p.Lock) {
		i := slices.IndexFunc(modules, func(a AddedModule) bool { return a.Record.Name == m.Name && a.Record.Digest == m.Digest })
		switch {
		case i < 0:
			return nil, hint, fmt.Errorf("%s of %s is not here as that says, or not agreed to", m.Name, LockName)
		case modules[i].OffReason() == store.OffByPerson:
			hint = "stockade tool enable " + m.Name
			fallthrough
		case modules[i].OffReason() != "":
			return nil, hint, fmt.Errorf("%s is switched off: %s", m.Name, modules[i].OffReason())
		}
		out = append(out, modules[i])
	}
	return out, "", nil
}

// ResolveNames decides about names: where two tools would have the same, or one that looks
// like it, the first one is offered. No module takes the name of a built-in tool.
func ResolveNames(modules []AddedModule) []AddedModule {
	taken := map[string]string{} // by skeleton: who has it
	for _, name := range reservedNames() {
		taken[skeleton(name)] = fmt.Sprintf("%q is the name of a built-in tool", name)
	}
	for _, m := range modules {
		for i := range m.Tools {
			t := &m.Tools[i]
			near := checkLookalike(t.Name, t.NameInModule)
			switch key := skeleton(t.Name); {
			case t.OffReason != "":
			case !tool.ValidName(t.Name):
				t.OffReason = "its name has more than 64 characters"
			case taken[key] != "":
				t.OffReason = taken[key]
			case near != nil:
				t.OffReason = near.Error()
			default:
				taken[key] = fmt.Sprintf("%s of the module %s has that name, or one that looks like it", t.Name, m.Record.Name)
			}
		}
	}
	return modules
}

// tool makes one tool of a module.
func (a *AddedModule) tool(mod *tool.Module, spec tool.Spec) AddedTool {
	allowed := AllowanceOf(a.Record, spec.Name)
	t := AddedTool{Name: mod.Prefix + spec.Name, NameInModule: spec.Name, OffReason: a.Record.OffReason}
	if t.OffReason == "" && slices.Contains(a.Record.OffTools, spec.Name) {
		t.OffReason = store.OffByPerson
	}
	t.Entry = tool.NewEntry(spec, mod, a.Record.Manifest.ABI)
	t.Entry.Name, t.Entry.Capabilities, t.Entry.Allowed = t.Name, t.Entry.Capabilities.Restrict(allowed), &allowed
	return t
}

// OfferedTools is the built-in tools and those that were added and are offered.
func OfferedTools(modules []AddedModule) (*tool.Catalog, error) {
	builtin, err := Builtin()
	if err != nil {
		return nil, err
	}
	entries := builtin.Entries()
	for _, a := range modules {
		for _, t := range a.Tools {
			if t.OffReason == "" {
				entries = append(entries, t.Entry)
			}
		}
	}
	return tool.NewCatalogOf(entries)
}
