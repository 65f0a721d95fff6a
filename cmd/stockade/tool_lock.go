package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/stockade-dev/stockade/cmd/stockade/internal/humanize"
	"github.com/stockade-dev/stockade/cmd/stockade/internal/prompt"
	"github.com/stockade-dev/stockade/cmd/stockade/internal/terminal"
	"github.com/stockade-dev/stockade/host/registry"
	"github.com/stockade-dev/stockade/host/registry/lock"
	"github.com/stockade-dev/stockade/host/registry/source"
	"github.com/stockade-dev/stockade/host/registry/store"
	"github.com/stockade-dev/stockade/host/registry/trust"
)

func newToolLockCmds(a *app) []*cobra.Command {
	var remove bool
	lockCmd := &cobra.Command{
		Use: "lock [NAME...]", Short: "Write modules that you have into stockade.lock",
		Long: `Write modules that you have added into stockade.lock of the workspace: their names,
versions, sources and SHA-256. Commit the file. People who clone the project are
asked once about all modules in it, and get the same bytes. Without a name, the
modules in the file are updated to the ones that you have.

The file never says what a module may use: each person allows that.`,
		Example: "  stockade tool lock weather\n  stockade tool lock\n  stockade tool lock --remove weather",
		RunE:    func(_ *cobra.Command, args []string) error { return runToolLock(a, args, remove) },
	}
	lockCmd.Flags().BoolVar(&remove, "remove", false, "take the modules out of the file")
	var yes reviewedYes
	sync := &cobra.Command{
		Use: "sync", Short: "Show the modules of the project, and fetch them",
		Long: `Show the modules that stockade.lock names and those in .stockade/tools, with what is
new since you agreed the last time, and fetch them if you say yes. Nothing is
fetched before that, and nothing with your credentials. An address inside your
network, or your own machine, is reached only if your rules or --allow-net permit
it. Each module must have exactly the bytes that stockade.lock names. A module in
.stockade/tools is offered only with the bytes that you have seen.

--yes --sha256 HASH is for scripts: it agrees to the stockade.lock that was reviewed.

` + exitHelp,
		Example: "  stockade tool sync\n  stockade tool sync --yes --sha256 \"$(sha256sum <stockade.lock | cut -d' ' -f1)\"",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return runToolSync(cmd.Context(), a, yes) },
	}
	yes.add(sync, "agree without a question; needs --sha256", registry.LockName)
	sync.Flags().BoolVar(&a.flags.large, "large", false, "also fetch modules that are large or have large functions; compiling them takes long")
	addReachFlag(sync, a)
	return []*cobra.Command{lockCmd, sync}
}

func runToolLock(a *app, names []string, remove bool) error {
	project, err := registry.ReadProject(a.Workspace)
	if err != nil {
		return err
	}
	now := &lock.File{Modules: slices.Clone(lock.Modules(project.Lock))}
	if len(names) == 0 {
		for _, m := range now.Modules {
			names = append(names, m.Name)
		}
		if len(names) == 0 || remove {
			return usageError("stockade tool lock NAME", "name the modules")
		}
	}
	s := a.moduleStore()
	records, err := s.Records()
	if err != nil {
		return err
	}
	var chosen []store.Record
	for _, name := range names {
		at := slices.IndexFunc(now.Modules, func(m lock.Module) bool { return m.Name == name })
		if remove {
			if at < 0 {
				return usageError("", "%s does not name %q", registry.LockName, name)
			}
			now.Modules = slices.Delete(now.Modules, at, at+1)
			continue
		}
		i, inner, err := registry.Find(records, name, &registry.Project{Workspace: a.Workspace})
		if err != nil || inner != "" || records[i].System {
			return usageError("`stockade tool list` shows the modules that you have added", "%q is not a module that you have added", name)
		}
		m, err := registry.PinnedLockEntry(records[i], a.Workspace)
		if errors.Is(err, registry.ErrDescribed) {
			return usageError(fmt.Sprintf("stockade tool pack FILE.wasm --describe FILE.toml -o %s.wasm, and add that from where others find it", name), "%s is not written into %s: %v", name, registry.LockName, err)
		}
		if err != nil {
			return usageError("push it, add it from there, and lock it then: stockade tool push FILE.wasm oci://HOST/REPOSITORY:TAG", "%v", err)
		}
		chosen = append(chosen, records[i])
		if at >= 0 {
			now.Modules[at] = m
		} else {
			now.Modules = append(now.Modules, m)
		}
	}
	if err := registry.WriteLock(s, a.Workspace, now, chosen); err != nil {
		return err
	}
	fmt.Fprintf(a.s.out, "%s names %s\n", terminal.Line(filepath.Join(a.Workspace, registry.LockName)), humanize.Plural(len(now.Modules), "module"))
	return nil
}

// askProject asks about the modules of a project, unless the person has agreed to all of them
// as they are, if the command may ask. It fetches nothing before the yes, and adds the modules
// after it. Modules without a yes are not offered, which is no error.
func (a *app) askProject(ctx context.Context, p *registry.Project) error {
	if p.Empty() { // most projects are: this saves reading the records
		return nil
	}
	records, err := a.moduleStore().Records()
	if err != nil || p.IsAgreed(records) || a.flags.locked {
		return nil // listing the modules reports the errors
	}
	if err := a.checkMayAdd(); err != nil {
		a.warn("the modules of this project are not offered, because "+err.Error(), "")
		return nil
	}
	rules, err := a.trustRules()
	if err != nil {
		return err
	}
	if err := checkClaims(p, rules); err != nil { // the program continues without the modules
		reportError(a.s, ctx, err)
		a.warn("the modules of this project are not offered", "")
		return nil
	}
	in, out, done, ok := a.terminal()
	if a.trust != trustAsk || a.flags.json || !ok {
		if ok {
			done()
		}
		a.warn("the modules of this project are not offered, because you have not agreed to them as they are now", "`stockade tool sync` shows them, and asks")
		return nil
	}
	defer done()
	yes, err := a.askSync(ctx, in, out, p, records, rules)
	if err != nil || !yes {
		return err
	}
	if err := a.syncProject(ctx, p, rules); err != nil { // the program continues without the modules
		reportError(a.s, ctx, err)
		a.warn("the modules of this project are not offered", "")
	}
	return nil
}

func runToolSync(ctx context.Context, a *app, yes reviewedYes) error {
	p, err := registry.ReadProject(a.Workspace)
	if err != nil {
		return err
	}
	records, err := a.moduleStore().Records()
	if err != nil {
		return err
	}
	rules, err := a.trustRules()
	switch {
	case err != nil:
		return err
	case yes.isIncomplete():
		return usageError("stockade tool sync --yes --sha256 HASH", "--yes and --sha256 belong together")
	case p.Empty():
		a.s.note("the project names no modules: there is no %s, and nothing in .stockade/tools", registry.LockName)
		return nil
	case p.IsAgreed(records):
		a.s.note("all modules that the project names are here, unchanged")
		return nil
	case len(a.Ceiling.ModulesClosed) > 0:
		return a.checkMayAdd()
	case checkClaims(p, rules) != nil:
		return checkClaims(p, rules)
	case yes.yes && len(p.Files) > 0:
		return usageError("sync where you can be asked", "--sha256 covers %s only, and there are modules in .stockade/tools", registry.LockName)
	case yes.yes && !yes.matches(p.LockSHA256):
		return usageError("review the file again, and name its SHA-256", "%s has the SHA-256 %s, not that of --sha256; nothing is fetched", registry.LockName, p.LockSHA256)
	case yes.yes:
		return a.syncProject(ctx, p, rules)
	}
	in, out, done, ok := a.terminal()
	if !ok {
		fmt.Fprint(a.s.err, syncCard(p, records, rules, 80, true)) // nobody can ask for the rest
		hint := "to agree to exactly this file: stockade tool sync --yes --sha256 " + p.LockSHA256 + a.fetchFlags()
		if len(p.Files) > 0 {
			hint = "sync where you can be asked: a script cannot agree to what is in .stockade/tools"
		}
		return &exitErr{code: exitNobodyToAsk, message: "nothing is fetched: there is no terminal to ask on", hint: hint}
	}
	defer done()
	if yes, err := a.askSync(ctx, in, out, p, records, rules); err != nil || !yes {
		return cmp.Or(err, error(&exitErr{code: exitDenied, message: "nothing is fetched"}))
	}
	return a.syncProject(ctx, p, rules)
}

// checkClaims returns an error if the lockfile names a signer whom the person knows, or a
// similar name, but no key of that signer.
func checkClaims(p *registry.Project, rules *trust.Rules) error {
	if err := registry.CheckClaims(p.Lock, rules); err != nil {
		return &exitErr{code: exitDenied, message: err.Error() + "; nothing is fetched", hint: "ask whoever wrote the file; `stockade tool trust list` shows the keys that you know"}
	}
	return nil
}

func (a *app) askSync(ctx context.Context, in *os.File, out io.Writer, p *registry.Project, records []store.Record, rules *trust.Rules) (bool, error) {
	card := func(all bool) func() string {
		return func() string { return syncCard(p, records, rules, columnsOf(in), all) }
	}
	answer, err := a.askChoice(ctx, in, out, prompt.New("Get them?", yesOrNo, card(false), card(true)))
	return answer == 'y', err
}

// syncRows limits the modules, and the differences, that the question shows before "?"; the
// others are counted.
const syncRows = 4

// syncCard lists the modules of a project, after the differences from the modules that the
// person has agreed to. Texts of the project stand behind bars. With all, none of them is left
// out.
func syncCard(p *registry.Project, records []store.Record, rules *trust.Rules, width int, all bool) string {
	var b strings.Builder
	list := func(rows [][]string) {
		for i, texts := range rows {
			if left := len(rows) - i; !all && i >= syncRows && left > 1 {
				fmt.Fprintln(&b, noteRow(fmt.Sprintf("and %d more; ? shows all of it", left)))
				return
			}
			for _, text := range texts {
				if all {
					b.WriteString(prompt.View{Width: width}.Text(text, true))
					continue
				}
				fmt.Fprintln(&b, prompt.Bar+fit(text, prompt.Room(width)))
			}
		}
	}
	var rows [][]string
	if p.Lock != nil {
		for _, m := range p.Lock.Modules {
			texts := []string{
				fmt.Sprintf("%s %s, %s, from %s", m.Name, cmp.Or(m.Version, "(no version)"), humanize.Bytes(m.Bytes), m.Source),
				"  wants " + m.Wants,
			}
			if m.Signer != "" { // only the lockfile says so: no signature was checked yet
				texts = append(texts, "  names "+keyOwnersText(m, rules)+", and says that it is signed by "+m.Signer)
			}
			if all { // the title begins at the bar, to stay in one row
				texts = append(texts, "sha256 "+m.Digest)
				if len(m.Keys) > 0 {
					texts = append(texts, "keys "+strings.Join(m.Keys, ", "))
				}
			} else if len(p.Lock.Modules) > syncRows {
				texts = []string{fmt.Sprintf("%s %s wants %s; from %s", m.Name, m.Version, m.Wants, m.Source)}
			}
			rows = append(rows, texts)
		}
	}
	for _, f := range p.Files {
		texts := []string{fmt.Sprintf("%s, %s", f.Source, humanize.Bytes(f.Bytes)), "  its tools are not known before a yes: it has to be asked"}
		if m, ok := p.ReadManifest(f); ok {
			texts = []string{
				fmt.Sprintf("%s %s, %s, %s", m.Name, cmp.Or(m.Version, "(no version)"), humanize.Bytes(f.Bytes), f.Source),
				fmt.Sprintf("  wants %s", registry.WantsOf(m)),
			}
			for _, s := range m.Tools {
				if all {
					texts = append(texts, "  "+s.Name+": "+s.Description)
				}
			}
		}
		if all {
			texts = append(texts, "sha256 "+f.Digest)
		}
		rows = append(rows, texts)
	}
	fmt.Fprintf(&b, "\n  This project brings %s along. You are asked once for all of them.\n", humanize.Plural(len(rows), "module"))
	if hosts := hostsOf(p.Lock); len(hosts) > 0 { // also hosts of rows that are left out
		fmt.Fprintf(&b, "  A yes asks %s:\n%s%s\n", humanize.Plural(len(hosts), "host"), prompt.Bar, fit(strings.Join(hosts, ", "), prompt.Room(width)))
	}
	if before := p.AgreedLock(records); before != nil && p.Lock != nil {
		var differences [][]string
		for _, difference := range lock.Diff(before, p.Lock) {
			differences = append(differences, []string{difference})
		}
		if len(differences) > 0 { // otherwise it is a module in .stockade/tools
			fmt.Fprintf(&b, "  different from what you agreed to:\n")
			list(differences)
			fmt.Fprintf(&b, "  all modules that it names now:\n")
		}
	}
	list(rows)
	fmt.Fprintf(&b, "  Each must have the SHA-256 that ? shows. They only compute, until you allow\n  more: `stockade tool grant`.\n")
	return b.String()
}

// keyOwnersText names the publishers that own the keys in a lockfile entry, according to
// trust.toml, or says that no key is known.
func keyOwnersText(m lock.Module, rules *trust.Rules) string {
	if owners := rules.Owners(m.Keys...); len(owners) > 0 {
		return "a key of " + strings.Join(owners, " and of ") + ", whom you know"
	}
	return "no key that you know"
}

func hostsOf(f *lock.File) (out []string) {
	if f == nil {
		return nil
	}
	for _, m := range f.Modules {
		if _, rest, ok := strings.Cut(m.Source, "://"); ok {
			host, _, _ := strings.Cut(rest, "/")
			out = append(out, host)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// syncProject fetches all modules of a project, and adds either all of them or none.
func (a *app) syncProject(ctx context.Context, p *registry.Project, rules *trust.Rules) error {
	var reviews []*registry.Review
	claims := map[*registry.Review]string{}
	add := func(c *source.Candidate, name, lockSHA256 string) (*registry.Review, error) {
		r, err := a.review(ctx, registry.Request{Candidate: c, Name: name, Project: a.Workspace, LockSHA256: lockSHA256})
		if err == nil {
			reviews = append(reviews, r)
		}
		return r, err
	}
	if p.Lock != nil {
		for _, m := range p.Lock.Modules {
			c, err := a.fetchLocked(ctx, m)
			if err != nil {
				return err
			}
			r, err := add(c, m.Name, p.LockSHA256)
			if err != nil {
				return err
			}
			if err := registry.CheckLocked(m, r, rules); err != nil {
				return &exitErr{code: exitDenied, message: err.Error() + "; nothing is added"}
			}
			r.Record.Source, claims[r] = m.Source, m.Signer
		}
	}
	for _, f := range p.Files {
		c, err := a.fetch(ctx, filepath.Join(a.Workspace, filepath.FromSlash(f.Source)), true)
		if err != nil {
			return err
		}
		if c.Digest != f.Digest {
			return &exitErr{code: exitDenied, message: f.Source + " was changed meanwhile; nothing is added"}
		}
		r, err := add(c, "", "")
		if err != nil {
			return err
		}
		r.Record.Source = f.Source
	}
	if err := registry.SaveProject(a.moduleStore(), p, reviews); err != nil {
		return err
	}
	for _, r := range reviews {
		found := signedBy(r.Verdict)
		if claim := claims[r]; claim != "" && claim != r.Record.Signer {
			found += fmt.Sprintf("; %s says %s", registry.LockName, terminal.Line(claim))
		}
		a.s.note("%s %s is here: %s", r.Record.Name, displayVersion(r.Record.Manifest), strings.Join(toolNames(r), ", "))
		a.s.note("%s is signed by %s", r.Record.Name, found)
	}
	return nil
}

// fetchLocked fetches a module of a lockfile, unless the store has it already.
func (a *app) fetchLocked(ctx context.Context, m lock.Module) (*source.Candidate, error) {
	if c, ok := registry.CandidateFromStore(a.moduleStore(), m); ok {
		return c, nil
	}
	ref := m.Source
	if m.IsLocal() {
		ref = filepath.Join(a.Workspace, filepath.FromSlash(ref))
		// A link could lead out of the project.
		if real, err := filepath.EvalSymlinks(ref); err != nil || real != ref {
			return nil, &exitErr{code: exitDenied, message: fmt.Sprintf("%s: %s is not in the project, or is reached through a link; nothing is added", m.Name, m.Source)}
		}
	}
	c, err := a.fetch(ctx, ref, true)
	if err == nil && c.Digest != m.Digest {
		err = &exitErr{code: exitDenied, message: fmt.Sprintf("%s: %s has the SHA-256 %s, and %s says %s; nothing is added", m.Name, m.Source, c.Digest, registry.LockName, m.Digest)}
	}
	return c, err
}
