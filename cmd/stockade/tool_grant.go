package main

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/stockade-dev/stockade/cmd/stockade/internal/terminal"
	"github.com/stockade-dev/stockade/host/door"
	"github.com/stockade-dev/stockade/host/policy/network"
	"github.com/stockade-dev/stockade/host/registry"
	"github.com/stockade-dev/stockade/host/registry/store"
	"github.com/stockade-dev/stockade/host/settings"
	"github.com/stockade-dev/stockade/host/shellword"
	"github.com/stockade-dev/stockade/host/tool"
)

// allowFlags say what an added module may have.
type allowFlags struct {
	read, write, hosts, secrets []string
	exec                        bool
}

func (o *allowFlags) add(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringArrayVar(&o.read, "read", nil, "a directory that it may read; may be repeated")
	f.StringArrayVar(&o.write, "write", nil, "a directory that it may read and change; may be repeated")
	f.StringArrayVar(&o.hosts, "host", nil, "a host that it may reach: HOST, HOST:PORT or http://HOST:PORT; may be repeated")
	f.StringArrayVar(&o.secrets, "secret", nil, "a secret that it may use, by its name; may be repeated")
	f.BoolVar(&o.exec, "exec", false, "let it ask to run commands, each of which you are asked about")
}

func (o allowFlags) any() bool {
	return o.exec || len(o.read)+len(o.write)+len(o.hosts)+len(o.secrets) > 0
}

// String is the flags as they follow a command.
func (o allowFlags) String() (out string) {
	for _, f := range []struct {
		name   string
		values []string
	}{{"--read", o.read}, {"--write", o.write}, {"--host", o.hosts}, {"--secret", o.secrets}} {
		for _, value := range f.values {
			out += " " + asFlag(f.name, value)
		}
	}
	if o.exec {
		out += " --exec"
	}
	return out
}

// allowance puts the flags into the form in which they are kept, and holds them
// against what the tools ask for: what none of them asks for would mean nothing.
func (o allowFlags) allowance(masked []string, name string, asks registry.Wants) (a tool.Allowance, err error) {
	for _, d := range []struct {
		names []string
		into  *[]string
	}{{o.read, &a.Read}, {o.write, &a.Write}} {
		for _, name := range d.names {
			dir, err := door.Directory(name)
			if err != nil {
				return a, usageError("name a directory that is there", "%v", err)
			}
			for _, m := range masked {
				if rel, err := filepath.Rel(settings.Resolve(m), dir); err == nil && filepath.IsLocal(rel) {
					return a, usageError("name another directory", "%s is in what no tool sees, such as our own configuration", dir)
				}
			}
			*d.into = append(*d.into, dir)
		}
	}
	for _, h := range o.hosts {
		r, err := network.ParseRule(h)
		if err != nil {
			return a, usageError("for example --host api.example.com", "%v", err)
		}
		a.Hosts = append(a.Hosts, r.String())
	}
	for _, s := range o.secrets {
		if !tool.ValidSecretName(s) {
			return a, usageError("`stockade secret list` shows the names", "%q cannot be the name of a secret", s)
		}
		if !slices.ContainsFunc(asks.Secrets, func(w tool.Secret) bool { return w.Name == s }) {
			return a, usageError(name+" asks for: "+asks.String(), "%s does not ask for the secret %s", name, s)
		}
		a.Secrets = append(a.Secrets, s)
	}
	a.Exec = o.exec
	switch {
	case len(a.Read)+len(a.Write) > 0 && asks.Files == tool.FilesNone:
		err = fmt.Errorf("%s does not ask for files", name)
	case len(a.Write) > 0 && asks.Files == tool.FilesRead:
		err = fmt.Errorf("%s asks to read files and not to change them", name)
	case len(a.Hosts) > 0 && len(asks.Hosts) == 0 && !asks.AnyHost:
		err = fmt.Errorf("%s does not ask for the network", name)
	case a.Exec && !asks.Exec:
		err = fmt.Errorf("%s does not ask to run commands", name)
	}
	if err != nil {
		return a, usageError(name+" asks for: "+asks.String(), "%v", err)
	}
	return a, nil
}

// taken is what the flags take back. It need not be there any more, or be asked for.
func (o allowFlags) taken() tool.Allowance {
	a := tool.Allowance{Hosts: slices.Clone(o.hosts), Secrets: o.secrets, Exec: o.exec}
	for _, h := range o.hosts {
		if r, err := network.ParseRule(h); err == nil {
			a.Hosts = append(a.Hosts, r.String())
		}
	}
	for _, d := range []struct {
		names []string
		into  *[]string
	}{{o.read, &a.Read}, {o.write, &a.Write}} {
		for _, name := range d.names {
			if abs, err := filepath.Abs(name); err == nil { // what it was called then, or what that leads to now
				*d.into = append(*d.into, abs, settings.Resolve(abs))
			}
		}
	}
	return a
}

// into adds what the flags say to what a record allows.
func (o allowFlags) into(app *app, m tool.Manifest, r *store.Record, inner string) error {
	if !o.any() {
		return nil
	}
	asks := registry.WantsOf(onlyTool(m, inner))
	a, err := o.allowance(app.Masked(), r.Name+suffix(":", inner), asks)
	if err != nil {
		return err
	}
	if r.Allowed == nil {
		r.Allowed = map[string]tool.Allowance{}
	}
	r.Allowed[inner] = tidy(merged(r.Allowed[inner], a))
	return nil
}

// onlyTool is a manifest with one tool; inner empty: with all.
func onlyTool(m tool.Manifest, inner string) tool.Manifest {
	if inner != "" {
		m.Tools = slices.DeleteFunc(slices.Clone(m.Tools), func(s tool.Spec) bool { return s.Name != inner })
	}
	return m
}

// tidy sorts an allowance and names nothing twice.
func tidy(a tool.Allowance) tool.Allowance {
	for _, l := range []*[]string{&a.Read, &a.Write, &a.Hosts, &a.Secrets} {
		slices.Sort(*l)
		*l = slices.Compact(*l)
	}
	return a
}

// lessened takes out of an allowance what the flags name; all of it if that is nothing.
func lessened(a tool.Allowance, o allowFlags) tool.Allowance {
	if !o.any() {
		return tool.Allowance{}
	}
	gone := o.taken()
	for _, l := range []struct {
		of   *[]string
		gone []string
	}{{&a.Read, gone.Read}, {&a.Write, gone.Write}, {&a.Hosts, gone.Hosts}, {&a.Secrets, gone.Secrets}} {
		*l.of = slices.DeleteFunc(slices.Clone(*l.of), func(s string) bool { return slices.Contains(l.gone, s) })
	}
	a.Exec = a.Exec && !gone.Exec
	return a
}

func newToolGrantCmd(a *app) *cobra.Command {
	var (
		o      allowFlags
		revoke bool
	)
	cmd := &cobra.Command{
		Use: "grant NAME[:TOOL]", Short: "Let a module use files, hosts, secrets or commands",
		Long: `Let a module that you have added, or one of its tools, use what it asks for, and no
more than you name. What you grant is yours: no project can grant anything. It
holds for this version and for later ones of the same publisher that say and ask
the same. Every layer of the policy narrows it further, and what asks a question
asks it as before.

Without flags it shows what is granted. --revoke takes back what the flags name,
or everything.`,
		Example: "  stockade tool grant weather --host api.open-meteo.com\n  stockade tool grant count:words --read ~/notes\n" +
			"  stockade tool grant weather --revoke",
		Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error { return runToolGrant(a, args[0], o, revoke) },
	}
	o.add(cmd)
	cmd.Flags().BoolVar(&revoke, "revoke", false, "take it back")
	return cmd
}

func runToolGrant(a *app, name string, o allowFlags, revoke bool) error {
	s := a.modules()
	var shown tool.Allowance
	change := func(records []store.Record) ([]store.Record, error) {
		i, inner, err := registry.Find(records, name, a.Work)
		if err != nil {
			return nil, usageError("`stockade tool list` shows what was added", "%v", err)
		}
		r := &records[i]
		switch {
		case revoke:
			changed := false
			for of, allowed := range r.Allowed {
				if inner == "" || of == inner {
					left := lessened(allowed, o)
					r.Allowed[of], changed = left, changed || !left.Equal(allowed)
				}
			}
			if !changed {
				return nil, usageError(fmt.Sprintf("stockade tool grant %s shows what is", r.Name), "nothing of that is granted to %s itself", name)
			}
		default:
			if err := o.into(a, r.Manifest, r, inner); err != nil {
				return nil, err
			}
		}
		for of, allowed := range r.Allowed {
			if allowed.Equal(tool.Allowance{}) {
				delete(r.Allowed, of)
			}
		}
		shown = registry.Allowed(*r, inner)
		return records, nil
	}
	var err error
	if o.any() || revoke {
		err = s.Change(nil, change)
	} else {
		var records []store.Record
		if records, err = s.Records(); err == nil {
			_, err = change(records)
		}
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(a.s.out, "%s may use: %s\n", terminal.Line(name), terminal.Line(allowedWords(shown)))
	return nil
}

// grantExample is the flags that would give a module what it asks for.
func grantExample(w registry.Wants, work string) string {
	var out []string
	dir, ok := shellword.Quote(work)
	if !ok {
		dir = "DIR"
	}
	switch w.Files {
	case tool.FilesRead:
		out = append(out, "--read "+dir)
	case tool.FilesWrite:
		out = append(out, "--write "+dir)
	}
	for _, h := range w.Hosts {
		out = append(out, asFlag("--host", h))
	}
	if w.AnyHost {
		out = append(out, "--host HOST")
	}
	for _, s := range w.Secrets {
		out = append(out, "--secret "+s.Name)
	}
	if w.Exec {
		out = append(out, "--exec")
	}
	return strings.Join(out, " ")
}

func newToolSwitchCmds(a *app) []*cobra.Command {
	run := func(names []string, on bool) error {
		err := a.modules().Change(nil, func(records []store.Record) ([]store.Record, error) {
			for _, name := range names {
				i, inner, err := registry.Find(records, name, a.Work)
				if err != nil {
					return nil, usageError("`stockade tool list` shows what was added; built-in tools are switched off in the settings and the policy, see `stockade help policy`", "%v", err)
				}
				r := &records[i]
				switch {
				case on && inner == "" && r.Off != "" && r.Off != store.OffByPerson:
					return nil, usageError("", "%s cannot be switched on like this: %s", name, r.Off)
				case inner == "" && on:
					r.Off, r.OffTools = "", nil
				case inner == "" && r.Off == "":
					r.Off = store.OffByPerson
				case inner != "" && on:
					r.OffTools = slices.DeleteFunc(r.OffTools, func(t string) bool { return t == inner })
				case inner != "" && !slices.Contains(r.OffTools, inner):
					r.OffTools = append(r.OffTools, inner)
				}
			}
			return records, nil
		})
		if err != nil {
			return err
		}
		if on {
			return a.switchedOn(names)
		}
		for _, name := range names {
			fmt.Fprintf(a.s.out, "%s is switched off\n", terminal.Line(name))
		}
		return nil
	}
	var out []*cobra.Command
	for _, c := range []struct {
		use, short string
		on         bool
	}{
		{"enable", "Offer a module, or one of its tools, again", true},
		{"disable", "Offer a module, or one of its tools, no more", false},
	} {
		out = append(out, &cobra.Command{
			Use: c.use + " NAME[:TOOL]...", Short: c.short,
			Example: fmt.Sprintf("  stockade tool %s weather\n  stockade tool %s weather:week", c.use, c.use),
			Args:    cobra.MinimumNArgs(1),
			RunE:    func(_ *cobra.Command, args []string) error { return run(args, c.on) },
		})
	}
	return out
}

// switchedOn says which modules and tools are offered after a person has switched them
// on, and why the others are not all the same.
func (a *app) switchedOn(names []string) (err error) {
	project, readErr := registry.ReadProject(a.Work)
	if readErr != nil {
		project = &registry.Project{Work: a.Work}
	}
	system, _ := registry.SystemFiles(systemTools().Path)
	modules, err := a.added(project, system)
	if err != nil {
		return err
	}
	h := here{added: registry.Settle(modules)}
	for _, name := range names {
		module, inner, _ := strings.Cut(name, ":")
		m, _ := h.find(module)
		why, hint := m.Off(), fmt.Sprintf("`stockade tool update %s` looks for another version; `stockade tool verify` and `stockade tool trust list` say more", module)
		switch {
		case why == store.OffByPerson:
			why, hint = "the whole module is switched off", "stockade tool enable "+module
		case strings.Contains(why, "`stockade "):
			hint = ""
		}
		for _, t := range m.Tools {
			switch {
			case why != "" || t.Off == "" || t.Off == store.OffByPerson:
			case inner == "":
				a.s.note("%s is switched off: %s", t.Name, t.Off)
			case t.Inner == strings.TrimPrefix(inner, module+"_"):
				why, hint = t.Off, "only one tool can have a name: switch the other one off with `stockade tool disable`, or add this module under another name with --as"
			}
		}
		if why == "" {
			fmt.Fprintf(a.s.out, "%s is switched on\n", terminal.Line(name))
		} else if err == nil {
			err = usageError(hint, "%s is not offered: %s", name, why)
		}
	}
	return err
}
