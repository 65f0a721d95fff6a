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

// modules is where the modules are that were added.
func (a *app) modules() *store.Store { return store.Open(a.Dirs.Modules()) }

// systemTools is the administrator's folder of modules, beside the policy.
func systemTools() policyfile.Place { return administrator().Beside("tools") }

// administratorTrust is the name of the administrator's trust.toml.
func administratorTrust() string { return administrator().Beside("trust.toml").Path }

// addReachFlag is for commands that fetch or push modules: a registry or a server can
// send them to another host.
func addReachFlag(cmd *cobra.Command, a *app) {
	cmd.Flags().Var((*repeated)(&a.flags.allowNet), "allow-net", "reach another host for this, where a registry or a server sends there: [http://]HOST[:PORT]; may be repeated")
}

// project returns what the workspace brings along; nothing if that cannot be read.
func (a *app) project() *registry.Project {
	if p, err := registry.ReadProject(a.Work); err == nil {
		return p
	}
	return &registry.Project{Work: a.Work}
}

// rules say whose signatures over modules count.
func (a *app) rules() (*trust.Rules, error) {
	files, err := a.TrustFiles(administrator())
	if err != nil {
		return nil, err
	}
	return trust.Combine(files...), nil
}

// reviewer looks at modules before they are kept.
func (a *app) reviewer() (*registry.Reviewer, error) {
	rules, err := a.rules()
	if err != nil {
		return nil, err
	}
	return &registry.Reviewer{
		Store: a.modules(), Sandbox: a.door().Sandbox(), Trust: rules, Ceiling: a.Ceiling, Administrator: administratorTrust(), Now: time.Now,
	}, nil
}

// mayAdd says, before anything is fetched, whether modules may be added.
func (a *app) mayAdd() error {
	if no := a.Ceiling.Closed; len(no) > 0 {
		return &exitErr{code: exitDenied, message: "no module may be added here: " + no[0].From.String()}
	}
	return nil
}

// here is every tool that there is for this run, by where its module came from.
type here struct {
	*tool.Catalog
	added []registry.Added
}

// module returns a module that was added, by its name.
func (h here) module(name string) (registry.Added, bool) {
	for _, m := range h.added {
		if m.Record.Name == name {
			return m, true
		}
	}
	return registry.Added{}, false
}

// tools finds the tools: the built-in ones, those that the person and the
// administrator have added, and those of the project that the person has agreed to.
// What is wrong with an added one switches that off, with a message, and never the
// program.
func (a *app) tools(ctx context.Context) (here, error) {
	builtin, err := registry.Builtin()
	if err != nil {
		return here{}, err
	}
	h := here{Catalog: builtin}
	project, err := registry.ReadProject(a.Work)
	if err != nil {
		if a.flags.locked {
			return h, &exitErr{code: exitError, message: err.Error()}
		}
		a.warn(fmt.Sprintf("the modules of this project do not count: %v", err), "")
		project = &registry.Project{Work: a.Work}
	}
	if err := a.agree(ctx, project); err != nil {
		return h, err
	}
	system := a.scanSystem(ctx, false)
	h.added, err = a.added(project, system)
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
		m, err := a.tried(ctx, file)
		if err != nil {
			return h, err
		}
		h.added = append(h.added, m)
	}
	h.added = registry.Settle(h.added)
	if h.Catalog, err = registry.Offered(h.added); err != nil {
		return h, err
	}
	h.Catalog = h.Catalog.Configured(a.ModuleConfig())
	return h, nil
}

// added says what becomes of the modules that were added, with what a workspace brings
// along and what the administrator has.
func (a *app) added(p *registry.Project, system []registry.SystemFile) ([]registry.Added, error) {
	rules, err := a.rules()
	if err != nil {
		return nil, err
	}
	return registry.Modules(a.modules(), registry.Here{
		Project: p, System: system, Trust: rules,
		Signed: len(a.Ceiling.Signed)+len(a.Ceiling.Modules) > 0, Administrator: administratorTrust(),
	})
}

// tried is a module that the command line names to be tried, with what its flags
// give: it sees the directories of --mount, reaches the hosts of --allow-net and has a store.
func (a *app) tried(ctx context.Context, file string) (registry.Added, error) {
	mod, err := registry.File(file)
	if err != nil {
		return registry.Added{}, usageError("--tool names the file of a module", "--tool: %v", err)
	}
	if err := a.Ceiling.PermitsRun(mod); err != nil {
		return registry.Added{}, err
	}
	m, err := a.door().Sandbox().Describe(ctx, mod)
	if err != nil {
		return registry.Added{}, err
	}
	if err := registry.CheckName(m.Name, nil); err != nil {
		return registry.Added{}, usageError("stockade tool add --as NAME "+file+" offers it under another name", "--tool %s: %v", file, err)
	}
	mounts, err := a.flagMounts()
	if err != nil {
		return registry.Added{}, err
	}
	allowed := tool.Allowance{Hosts: a.flags.allowNet, Exec: true, Store: true}
	for _, d := range mounts {
		if d.Write {
			allowed.Write = append(allowed.Write, d.Host)
		} else {
			allowed.Read = append(allowed.Read, d.Host)
		}
	}
	return registry.Trying(mod, m, allowed), nil
}

// scanSystem lists the administrator's folder, and takes over what is new or has
// changed there. If it is empty, what it held is not offered; only where a name has to
// be free is it worth reading the index to drop that, too.
func (a *app) scanSystem(ctx context.Context, free bool) []registry.SystemFile {
	place := systemTools()
	files, err := registry.SystemFiles(place.Path)
	if err == nil && (free || len(files) > 0) {
		var r *registry.Reviewer
		var notes []string
		if r, err = a.reviewer(); err == nil {
			r.Again = a.again
			notes, err = r.TakeSystem(ctx, files, func(path string) ([]byte, error) { return place.At(path).UpTo(admit.MaxBytes) })
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

// offNotes says which added tools are not offered, and why, in one line for each
// module.
func (a *app) offNotes(h here) {
	for _, m := range h.added {
		if why := m.Off(); why != "" && why != store.OffByPerson {
			a.s.note("%s is switched off: %s", m.Record.Name, why)
			continue
		}
		for _, t := range m.Tools {
			if t.Off != "" && t.Off != store.OffByPerson {
				a.s.note("%s is switched off: %s", t.Name, t.Off)
			}
		}
	}
}
