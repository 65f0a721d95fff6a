package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/stockade-dev/stockade/host/config/policyfile"
	"github.com/stockade-dev/stockade/host/registry"
	"github.com/stockade-dev/stockade/host/registry/store"
	"github.com/stockade-dev/stockade/host/registry/trust"
	"github.com/stockade-dev/stockade/host/sandbox/admit"
	"github.com/stockade-dev/stockade/host/tool"
)

func (a *app) moduleStore() *store.Store { return store.Open(a.Dirs.Modules()) }

// systemTools returns the administrator's folder of modules, which is beside the policy.
func systemTools() policyfile.Place { return adminPolicyPlace().Sibling("tools") }

func administratorTrust() string { return adminPolicyPlace().Sibling("trust.toml").Path }

// addReachFlag adds the flag --allow-net to a command that fetches or pushes modules, for
// hosts to which a registry or a server redirects.
func addReachFlag(cmd *cobra.Command, a *app) {
	cmd.Flags().Var((*stringsFlag)(&a.flags.allowNet), "allow-net", "reach this host, too, if a registry or a server redirects to it: [http://]HOST[:PORT]; may be repeated")
}

// project returns the lockfile and the modules of the workspace. If they cannot be read, it
// returns an empty project.
func (a *app) project() *registry.Project {
	if p, err := registry.ReadProject(a.Workspace); err == nil {
		return p
	}
	return &registry.Project{Workspace: a.Workspace}
}

func (a *app) trustRules() (*trust.Rules, error) {
	files, err := a.TrustFiles(adminPolicyPlace())
	if err != nil {
		return nil, err
	}
	return trust.Combine(files...), nil
}

// reviewer returns a reviewer for modules, which trusts the publishers that the administrator
// and the person trust.
func (a *app) reviewer() (*registry.Reviewer, error) {
	rules, err := a.trustRules()
	if err != nil {
		return nil, err
	}
	return &registry.Reviewer{
		Store: a.moduleStore(), Sandbox: a.door().Sandbox(), Trust: rules, Ceiling: a.Ceiling, Administrator: administratorTrust(), Now: time.Now,
	}, nil
}

// checkMayAdd returns an error if the policy permits no added modules. It is called before
// anything is fetched.
func (a *app) checkMayAdd() error {
	if no := a.Ceiling.ModulesClosed; len(no) > 0 {
		return &exitErr{code: exitDenied, message: "no module may be added here: " + no[0].From.String()}
	}
	return nil
}

// availableTools holds the catalog of all tools that are offered, and the modules that were
// added, even those that are off.
type availableTools struct {
	*tool.Catalog
	added []registry.AddedModule
}

// module returns the added module with a name; false: there is none.
func (h availableTools) module(name string) (registry.AddedModule, bool) {
	for _, m := range h.added {
		if m.Record.Name == name {
			return m, true
		}
	}
	return registry.AddedModule{}, false
}

// findTools returns the tools: built-in tools, those of --tool, those added by the person or
// the administrator, and those of the project that the person has agreed to. A broken module is
// switched off, and does not stop the program; it is an error if --locked or --tool asks
// for it.
func (a *app) findTools(ctx context.Context) (availableTools, error) {
	builtin, err := registry.Builtin()
	if err != nil {
		return availableTools{}, err
	}
	h := availableTools{Catalog: builtin}
	project, err := registry.ReadProject(a.Workspace)
	if err != nil {
		if a.flags.locked {
			return h, &exitErr{code: exitError, message: err.Error()}
		}
		a.warn(fmt.Sprintf("the modules of this project are not offered: %v", err), "")
		project = &registry.Project{Workspace: a.Workspace}
	}
	if err := a.askProject(ctx, project); err != nil {
		return h, err
	}
	system := a.scanSystem(ctx, false)
	h.added, err = a.addedModules(project, system)
	if err != nil {
		if a.flags.locked {
			return h, err
		}
		a.warn(fmt.Sprintf("no added tool is offered: %v", err), "`stockade tool verify` says more")
		h.added = nil
	}
	if a.flags.locked {
		var hint string
		if h.added, hint, err = registry.OnlyLocked(h.added, project); err != nil {
			return h, &exitErr{code: exitError, message: err.Error(), hint: hint}
		}
	}
	for _, file := range a.flags.try {
		m, err := a.loadTrial(ctx, file)
		if err != nil {
			return h, err
		}
		h.added = append(h.added, m)
	}
	h.added = registry.ResolveNames(h.added)
	if h.Catalog, err = registry.OfferedTools(h.added); err != nil {
		return h, err
	}
	h.Catalog = h.Catalog.WithConfig(a.ModuleConfig())
	return h, nil
}

// addedModules returns the modules that the person, the project (p) or the administrator
// (system) has added, each with its state.
func (a *app) addedModules(p *registry.Project, system []registry.SystemFile) ([]registry.AddedModule, error) {
	rules, err := a.trustRules()
	if err != nil {
		return nil, err
	}
	return registry.Modules(a.moduleStore(), registry.Scope{
		Project: p, System: system, Trust: rules,
		NeedsSigners: len(a.Ceiling.SignedOnly)+len(a.Ceiling.Modules) > 0, Administrator: administratorTrust(),
	})
}

// loadTrial loads the module in a file of the flag --tool. Its allowance has the directories
// of --mount, the hosts of --allow-net, and always commands and a store.
func (a *app) loadTrial(ctx context.Context, file string) (registry.AddedModule, error) {
	mod, err := registry.ReadModule(file)
	if err != nil {
		return registry.AddedModule{}, usageError("--tool names the file of a module", "--tool: %v", err)
	}
	if err := a.Ceiling.PermitsRun(mod); err != nil {
		return registry.AddedModule{}, err
	}
	m, err := a.door().Sandbox().Describe(ctx, mod)
	if err != nil {
		return registry.AddedModule{}, err
	}
	if err := registry.CheckName(m.Name, nil); err != nil {
		return registry.AddedModule{}, usageError("stockade tool add --as NAME "+file+" offers it under another name", "--tool %s: %v", file, err)
	}
	mounts, err := a.flagMounts()
	if err != nil {
		return registry.AddedModule{}, err
	}
	allowed := tool.Allowance{Hosts: a.flags.allowNet, Exec: true, Store: true}
	for _, d := range mounts {
		if d.Write {
			allowed.Write = append(allowed.Write, d.Host)
		} else {
			allowed.Read = append(allowed.Read, d.Host)
		}
	}
	return registry.TrialModule(mod, m, allowed), nil
}

// scanSystem returns the files in the administrator's folder, and takes over new and changed
// modules. If the folder is empty, its former modules are not offered; their records are only
// removed if free is set, which frees their names.
func (a *app) scanSystem(ctx context.Context, free bool) []registry.SystemFile {
	place := systemTools()
	files, err := registry.SystemFiles(place.Path)
	if err == nil && (free || len(files) > 0) {
		var r *registry.Reviewer
		var notes []string
		if r, err = a.reviewer(); err == nil {
			r.RetryRefused = a.rescanSystem
			notes, err = r.SyncSystem(ctx, files, func(path string) ([]byte, error) { return place.WithPath(path).BytesUpTo(admit.MaxBytes) })
		}
		for _, n := range notes {
			a.warn(n, "")
		}
	}
	if err != nil {
		a.warn(fmt.Sprintf("not all of the administrator's tools are offered: %v", err), "")
	}
	return files
}

// noteSwitchedOff prints a note for each added module or tool that is off for another reason
// than a person's choice, with the reason.
func (a *app) noteSwitchedOff(h availableTools) {
	for _, m := range h.added {
		if why := m.OffReason(); why != "" && why != store.OffByPerson {
			a.s.note("%s is switched off: %s", m.Record.Name, why)
			continue
		}
		for _, t := range m.Tools {
			if t.OffReason != "" && t.OffReason != store.OffByPerson {
				a.s.note("%s is switched off: %s", t.Name, t.OffReason)
			}
		}
	}
}
