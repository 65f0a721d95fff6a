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

// AddedModule is a module that was added, with its tools.
type AddedModule struct {
	Record store.Record
	Tools  []AddedTool
}

// OffReason returns the reason why no tool of the module is offered; empty: the module is
// not switched off.
func (a AddedModule) OffReason() string { return a.Record.OffReason }

// Names returns the names under which its tools are offered.
func (a AddedModule) Names() (out []string) {
	for _, t := range a.Tools {
		out = append(out, t.Name)
	}
	return out
}

// AddedTool is one tool of an added module.
type AddedTool struct {
	Name         string // name under which the tool is offered: MODULE_tool
	NameInModule string // the tool's name in its own module
	OffReason    string // the reason why it is not offered; empty: it is offered
	Entry        *tool.Entry
}

// Scope holds everything besides the store that decides which modules a run offers.
type Scope struct {
	Project *Project
	System  []SystemFile
	Trust   *trust.Rules
	// NeedsSigners is set when a layer of the policy decides by signers. Administrator is
	// the name of the trust file whose publishers are the administrator's.
	NeedsSigners  bool
	Administrator string
}

// applyTrust switches off a module that has been revoked. If the policy decides by signers, it
// also verifies the signatures again, and sets the signer of mod.
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
		r.OffReason = fmt.Sprintf("%s has signed it, and its signature does not count by what you trust now", r.Signer)
	}
}

// AllowanceOf returns the allowance of a tool in a record: the allowance of the whole
// module with that of the tool inner.
func AllowanceOf(r store.Record, inner string) tool.Allowance {
	return r.Allowances[""].With(r.Allowances[inner])
}

// TotalAllowance returns the sum of all allowances in a record.
func TotalAllowance(r store.Record) (out tool.Allowance) {
	for _, a := range r.Allowances {
		out = out.With(a)
	}
	return out
}

// Modules returns the added modules that count in a workspace, each with the reason why it is
// not offered, if there is one. If two tools would have the same name, the tool of the module
// that was added first is offered, and the person's own modules come before those of a
// project. If two modules have the same name, the module of the lockfile is offered.
//
// A module that has been revoked since it was added is not offered. If a layer of the
// policy decides by signers, the signatures are verified again: the signer in the user's
// own files is not enough.
func Modules(s *store.Store, h Scope) ([]AddedModule, error) {
	records, err := s.Records()
	if err != nil {
		return nil, err
	}
	p := h.Project
	records = slices.DeleteFunc(records, func(r store.Record) bool {
		return r.Project != "" && (r.Project != p.Workspace || r.LockSHA256 != "" && p.Empty()) // no lockfile names it any more
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
			continue // the person has it already, with its allowances
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

// TrialModule returns a module for this run only, which is not stored. allowed is from the
// command line.
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

// OnlyLocked returns the modules that the lockfile of a project names. It is an error if one
// of them is missing, has another digest, or is switched off. hint belongs to the error.
func OnlyLocked(modules []AddedModule, p *Project) (out []AddedModule, hint string, err error) {
	if p.Lock == nil {
		return nil, "`stockade tool lock NAME` writes one, with modules that you have added", fmt.Errorf("there is no %s", LockName)
	}
	hint = "`stockade tool sync` compares what is here with " + LockName + ", and asks"
	for _, m := range lock.Modules(p.Lock) {
		i := slices.IndexFunc(modules, func(a AddedModule) bool { return a.Record.Name == m.Name && a.Record.Digest == m.Digest })
		switch {
		case i < 0:
			return nil, hint, fmt.Errorf("%s of %s has not been added with the digest in that file, or you have not agreed to it", m.Name, LockName)
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

// ResolveNames decides between tools with equal or similar names: the first tool is offered,
// and the others get an OffReason. No module may use the name of a built-in tool.
func ResolveNames(modules []AddedModule) []AddedModule {
	taken := map[string]string{} // skeleton of a name → the reason why it is taken
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

// tool returns one tool of the module, with its allowance in the record.
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

// OfferedTools returns the catalog of the built-in tools and the offered added tools.
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
