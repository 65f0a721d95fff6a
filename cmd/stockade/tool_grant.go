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

// allowFlags holds the flags that make up the allowance of an added module.
type allowFlags struct {
	read, write, hosts, secrets []string
	exec, store                 bool
}

func (o *allowFlags) add(cmd *cobra.Command) {
	f := cmd.Flags()
	f.Var((*stringsFlag)(&o.read), "read", "a directory that it may read; may be repeated")
	f.Var((*stringsFlag)(&o.write), "write", "a directory that it may read and change; may be repeated")
	f.Var((*stringsFlag)(&o.hosts), "host", "a host that it may reach: HOST, HOST:PORT or http://HOST:PORT; may be repeated")
	f.Var((*stringsFlag)(&o.secrets), "secret", "a secret that it may use, by its name; may be repeated")
	f.BoolVar(&o.exec, "exec", false, "let it ask to run commands; you are asked about each")
	f.BoolVar(&o.store, "store", false, "let it store data in a session, shared with its other tools that may, too")
}

func (o allowFlags) isSet() bool {
	return o.exec || o.store || len(o.read)+len(o.write)+len(o.hosts)+len(o.secrets) > 0
}

// String returns the flags as a part of a command line, each after a blank.
func (o allowFlags) String() (out string) {
	for _, f := range []struct {
		name   string
		values []string
	}{{"--read", o.read}, {"--write", o.write}, {"--host", o.hosts}, {"--secret", o.secrets}} {
		for _, value := range f.values {
			out += " " + formatFlag(f.name, value)
		}
	}
	if o.exec {
		out += " --exec"
	}
	if o.store {
		out += " --store"
	}
	return out
}

// allowance converts the flags to an allowance. masked lists the paths that no tool may see.
func (o allowFlags) allowance(masked []string) (a tool.Allowance, err error) {
	for _, d := range []struct {
		names []string
		into  *[]string
	}{{o.read, &a.Read}, {o.write, &a.Write}} {
		for _, name := range d.names {
			dir, err := door.Directory(name)
			if err != nil {
				return a, usageError("name a directory that exists", "%v", err)
			}
			for _, m := range masked {
				if rel, err := filepath.Rel(settings.Resolve(m), dir); err == nil && filepath.IsLocal(rel) {
					return a, usageError("name another directory", "no tool sees %s: it belongs to Stockade", dir)
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
		a.Secrets = append(a.Secrets, s)
	}
	a.Exec, a.Store = o.exec, o.store
	return a, nil
}

// subtractFrom returns an allowance without everything that the flags name; the zero allowance
// if no flag is set. Paths need not exist.
func (o allowFlags) subtractFrom(from tool.Allowance) tool.Allowance {
	if !o.isSet() {
		return tool.Allowance{}
	}
	a := tool.Allowance{Hosts: slices.Clone(o.hosts), Secrets: o.secrets, Exec: o.exec, Store: o.store}
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
			if abs, err := filepath.Abs(name); err == nil { // the name at that time, or its present target
				*d.into = append(*d.into, abs, settings.Resolve(abs))
			}
		}
	}
	return from.Without(a)
}

// grantTo adds the allowance in the flags to a record. inner is the name of a tool in the
// module; empty: the allowance is for all its tools. Access that these do not ask for is a
// usage error.
func (o allowFlags) grantTo(app *app, r *store.Record, inner string) error {
	if !o.isSet() {
		return nil
	}
	a, err := o.allowance(app.Masked())
	if err != nil {
		return err
	}
	name, asks := r.Name+prefixIfSet(":", inner), registry.WantsOf(onlyTool(r.Manifest, inner))
	if err := asks.CheckAllowance(a); err != nil { // it would have no effect
		return usageError(name+" asks for: "+asks.String(), "%s %v", name, err)
	}
	if r.Allowances == nil {
		r.Allowances = map[string]tool.Allowance{}
	}
	r.Allowances[inner] = r.Allowances[inner].With(a)
	return nil
}

// onlyTool returns the manifest with the tool inner only; with all tools if inner is empty.
func onlyTool(m tool.Manifest, inner string) tool.Manifest {
	if inner != "" {
		m.Tools = slices.DeleteFunc(slices.Clone(m.Tools), func(s tool.Spec) bool { return s.Name != inner })
	}
	return m
}

func newToolGrantCmd(a *app) *cobra.Command {
	var (
		o      allowFlags
		revoke bool
	)
	cmd := &cobra.Command{
		Use: "grant NAME[:TOOL]", Short: "Let a module use files, hosts, secrets, commands or a store",
		Long: `Let a module that you have added, or one of its tools, use what it asks for, and no
more than you name. Only you can grant it: a project cannot. A grant holds for this
version, and for later ones of the same publisher with the same description and
requests. Every layer of the policy can narrow it further, and calls that ask a
question still ask it.

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
	s := a.moduleStore()
	var shown tool.Allowance
	change := func(records []store.Record) ([]store.Record, error) {
		i, inner, err := registry.Find(records, name, a.project())
		if err != nil {
			return nil, usageError("`stockade tool list` shows what was added", "%v", err)
		}
		r := &records[i]
		switch {
		case revoke:
			changed := false
			for toolName, allowed := range r.Allowances {
				if inner == "" || toolName == inner {
					left := o.subtractFrom(allowed)
					r.Allowances[toolName], changed = left, changed || !left.Equal(allowed)
				}
			}
			if !changed {
				return nil, usageError(fmt.Sprintf("stockade tool grant %s shows what is", r.Name), "nothing of that is granted to %s itself", name)
			}
		default:
			if err := o.grantTo(a, r, inner); err != nil {
				return nil, err
			}
		}
		for of, allowed := range r.Allowances {
			if allowed.IsZero() {
				delete(r.Allowances, of)
			}
		}
		shown = registry.AllowanceOf(*r, inner)
		return records, nil
	}
	var err error
	if o.isSet() || revoke {
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
	fmt.Fprintf(a.s.out, "%s may use: %s\n", terminal.Line(name), terminal.Line(allowanceText(shown)))
	return nil
}

// grantExample returns flags that would allow a module everything that it asks for. HOST and
// DIR in them stand for a choice of the person.
func grantExample(w registry.Wants, work string) string {
	o := allowFlags{hosts: slices.Clone(w.Hosts), exec: w.Exec, store: w.Store}
	if _, ok := shellword.Quote(work); !ok {
		work = "DIR"
	}
	switch w.Files {
	case tool.FilesRead:
		o.read = []string{work}
	case tool.FilesWrite:
		o.write = []string{work}
	}
	if w.AnyHost {
		o.hosts = append(o.hosts, "HOST")
	}
	for _, s := range w.Secrets {
		o.secrets = append(o.secrets, s.Name)
	}
	return strings.TrimSpace(o.String())
}
