package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/stockade-dev/stockade/cmd/stockade/internal/humanize"
	"github.com/stockade-dev/stockade/cmd/stockade/internal/terminal"
	"github.com/stockade-dev/stockade/host/config"
	"github.com/stockade-dev/stockade/host/door"
	"github.com/stockade-dev/stockade/host/egress"
	"github.com/stockade-dev/stockade/host/llm"
	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/registry"
	"github.com/stockade-dev/stockade/host/registry/store"
	"github.com/stockade-dev/stockade/host/sandbox"
	"github.com/stockade-dev/stockade/host/secret"
	"github.com/stockade-dev/stockade/host/session"
	"github.com/stockade-dev/stockade/host/session/sqlite"
	"github.com/stockade-dev/stockade/host/settings"
	"github.com/stockade-dev/stockade/host/tool"
)

// checkTimeout limits the wait for a provider or the keyring, and the reading of the log. A log
// that takes longer is not read to its end.
const checkTimeout = 5 * time.Second

func newDoctorCmd(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use: "doctor", Short: "Check what works on this machine, and show how to mend the rest",
		Long: `Look at everything that Stockade needs: the settings, the sandbox, the jail of
commands, the provider, the store of secrets, the folders, the network, the policy,
the log, the cache, the tools, the terminal. The remedy stands below each thing
that does not work, or could work better. Nothing is changed; the test files that
it writes are removed. The provider gets one request, for the list of its models.

It ends with exit code 0 if all that is needed works, and with 1 otherwise.`,
		Example: "  stockade doctor\n  stockade doctor --json | jq '.[] | select(.state != \"ok\")'",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return runDoctor(cmd.Context(), a) },
	}
	cmd.Flags().BoolVar(&a.flags.json, "json", false, "print JSON")
	return cmd
}

// finding is the result of one check. Its JSON in the output of `doctor --json` is a
// documented contract.
type finding struct {
	Name  string   `json:"name"`
	State state    `json:"state"`
	Says  string   `json:"says"`
	Mend  []string `json:"mend,omitempty"` // commands and advice, one per element
}

type state string

const (
	stateOK     state = "ok"
	stateNote   state = "note"   // what is needed works; something could work better
	stateBroken state = "broken" // something that is needed does not work
)

// okFinding, noteFinding and brokenFinding return a finding without a name; the check
// fills in its name.
func okFinding(format string, args ...any) finding {
	return finding{State: stateOK, Says: fmt.Sprintf(format, args...)}
}

func noteFinding(mend, format string, args ...any) finding {
	return newFinding(stateNote, mend, format, args...)
}

func brokenFinding(mend, format string, args ...any) finding {
	return newFinding(stateBroken, mend, format, args...)
}

func newFinding(s state, mend, format string, args ...any) finding {
	f := finding{State: s, Says: fmt.Sprintf(format, args...)}
	if mend != "" {
		f.Mend = strings.Split(mend, "\n")
	}
	return f
}

// errorFinding returns a broken finding about an error, with the program's hint if it has one.
func errorFinding(err error) finding {
	hint := ""
	if e, ok := errors.AsType[*exitErr](explainError(err)); ok {
		hint = e.hint
	}
	if e, ok := errors.AsType[*sqlite.OpenError](err); ok {
		hint = e.Hint
	}
	return brokenFinding(hint, "%v", err)
}

type doctorCheck struct {
	name string
	run  func(context.Context, *app) finding
}

// The other checks run only if none of firstChecks is broken. slowChecks run concurrently.
// quickChecks run one after the other, because some of them print notes.
var (
	firstChecks = []doctorCheck{{"program", checkProgram}, {"settings", checkSettings}}
	slowChecks  = []doctorCheck{{"sandbox", checkSandbox}, {"jail", checkJail}, {"provider", checkProvider}, {"secrets", checkSecrets}, {"log", checkLog}}
	quickChecks = []doctorCheck{{"folders", checkFolders}, {"network", checkNetwork}, {"policy", checkPolicy}, {"tools", checkTools}, {"cache", checkCache}, {"terminal", checkTerminal}}
)

func runDoctor(ctx context.Context, a *app) error {
	a.trust = trustSkip
	found := runInOrder(ctx, a, firstChecks)
	if !slices.ContainsFunc(found, func(f finding) bool { return f.State == stateBroken }) {
		// The checks share the door and the vault, which are created before they run at
		// the same time.
		a.noPassphrase.Store(true) // checks do not ask for a passphrase
		a.compilingForReview.Store(true)
		a.door()
		a.vault(false)
		found = append(append(found, runConcurrently(ctx, a, slowChecks)...), runInOrder(ctx, a, quickChecks)...)
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	bad, notes := 0, 0
	for _, f := range found {
		switch f.State {
		case stateBroken:
			bad++
		case stateNote:
			notes++
		}
	}
	err := error(nil)
	if a.flags.json {
		err = printJSON(a.s, found)
	} else {
		_, err = fmt.Fprint(a.s.out, a.findingsTable(found, bad, notes))
	}
	if err == nil && bad > 0 {
		return &exitErr{code: exitError} // everything has been printed
	}
	return err
}

func runInOrder(ctx context.Context, a *app, checks []doctorCheck) (found []finding) {
	for _, c := range checks {
		f := c.run(ctx, a)
		f.Name = c.name
		found = append(found, f)
	}
	return found
}

// runConcurrently runs checks concurrently, and returns their findings in the order of checks.
// After a second it prints a note with the names of those that still run.
func runConcurrently(ctx context.Context, a *app, checks []doctorCheck) []finding {
	found := make([]finding, len(checks))
	var mu sync.Mutex
	slow := time.AfterFunc(time.Second, func() {
		mu.Lock()
		defer mu.Unlock()
		var names []string
		for i, c := range checks {
			if found[i].Name == "" {
				names = append(names, c.name)
			}
		}
		if len(names) > 0 && !a.flags.quiet {
			a.s.note("still looking at: %s ...", strings.Join(names, ", "))
		}
	})
	defer slow.Stop()
	var group sync.WaitGroup
	for i, c := range checks {
		group.Go(func() {
			f := c.run(ctx, a)
			f.Name = c.name
			mu.Lock()
			defer mu.Unlock()
			found[i] = f
		})
	}
	group.Wait()
	return found
}

const nameColumns = 10

// findingsTable returns the findings as a table, and below it their numbers. bad and notes are
// the numbers of findings that are broken or notes.
func (a *app) findingsTable(found []finding, bad, notes int) string {
	var b strings.Builder
	width := a.s.width()
	before := strings.Repeat(" ", nameColumns+5)
	for _, f := range found {
		first := fmt.Sprintf("%s %-*s  ", map[state]string{stateOK: "  ", stateNote: " -", stateBroken: " !"}[f.State], nameColumns, f.Name)
		style := map[state]string{stateNote: terminal.Yellow, stateBroken: terminal.Red}[f.State]
		for _, row := range terminal.Wrap(terminal.Line(a.s.redactor.Text(f.Says)), width-len(before)-1) {
			b.WriteString(terminal.Style(a.s.outColor() && style != "", style, first+row) + "\n")
			first = before
		}
		arrow := "→ "
		for _, line := range f.Mend { // not wrapped: it may be a command to copy
			b.WriteString(before + arrow + terminal.Line(a.s.redactor.Text(line)) + "\n")
			arrow = "  "
		}
	}
	b.WriteByte('\n')
	switch {
	case bad > 0:
		fmt.Fprintf(&b, "%s to be mended (!)", humanize.Plural(bad, "thing"))
		if notes > 0 {
			fmt.Fprintf(&b, ", %d could be better (-)", notes)
		}
		b.WriteString("\n")
	case notes > 0:
		fmt.Fprintf(&b, "all that is needed works; %s could be better (-)\n", humanize.Plural(notes, "thing"))
	default:
		b.WriteString("all of it works\n")
	}
	return b.String()
}

func checkProgram(context.Context, *app) finding {
	text := fmt.Sprintf("%s, %s/%s", strings.TrimPrefix(version(), "stockade "), runtime.GOOS, runtime.GOARCH)
	if data, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil && runtime.GOOS == "linux" {
		text += ", kernel " + string(bytes.TrimSpace(data))
	}
	if runtime.GOOS != "linux" {
		return noteFinding("", "%s, where it was never tried", text)
	}
	return okFinding("%s", text)
}

func checkSettings(ctx context.Context, a *app) finding {
	if err := a.open(ctx); err != nil {
		hint := ""
		if e, ok := errors.AsType[*exitErr](explainError(err)); ok {
			hint = e.hint
		}
		return brokenFinding(hint, "%s", a.tildePath(err.Error()))
	}
	var files []string
	for _, name := range []string{a.Dirs.AgentTOML(), settings.ProjectFile(a.Workspace)} {
		if _, err := os.Stat(name); err == nil {
			files = append(files, a.tildePath(name))
		}
	}
	if len(a.UntrustedWarnings) > 0 {
		var keys []string
		for _, w := range a.UntrustedWarnings {
			keys = append(keys, w.Key)
		}
		return noteFinding("stockade config trust", "%s asks for what waits for your trust: %s", a.tildePath(settings.ProjectFile(a.Workspace)), strings.Join(keys, ", "))
	}
	if files == nil {
		return okFinding("the defaults; `stockade init` writes an agent.toml")
	}
	return okFinding("%s", strings.Join(files, ", "))
}

// checkSandbox calls a built-in tool through a door of its own, which logs nothing.
func checkSandbox(ctx context.Context, a *app) finding {
	dir, err := os.MkdirTemp("", "stockade-doctor-")
	if err != nil {
		return errorFinding(err)
	}
	defer os.RemoveAll(dir)
	const text = "hello from outside of the sandbox"
	if err := os.WriteFile(filepath.Join(dir, "a.txt"), []byte(text), 0o600); err != nil {
		return errorFinding(err)
	}
	options := a.sandboxOptions()
	options.OnCompile, options.OnCompiled = nil, nil
	d := door.New(door.Options{Program: version(), Sandbox: options})
	defer func() { _ = d.Close() }() // no data is kept
	m, err := door.ParseMount(dir + ":ro")
	if err != nil {
		return errorFinding(err)
	}
	s, err := d.Open(ctx, door.SessionOptions{Workspace: m.Host, Policy: policy.Options{Mounts: []policy.Mount{m}}})
	if err != nil {
		return errorFinding(err)
	}
	start := time.Now()
	r, err := s.Call(ctx, tool.Call{ID: "doctor", Tool: "file_read", Args: []byte(`{"path":"a.txt"}`), Caller: tool.CallerPerson, Cwd: m.Host})
	took := time.Since(start)
	switch {
	case err != nil:
		return errorFinding(err)
	case r.Err != nil:
		return brokenFinding("stockade selftest", "a call of a built-in tool fails: %s", r.Err.Message)
	case !bytes.Contains(r.Output, []byte(text)):
		return brokenFinding("stockade selftest", "a built-in tool has read another file than there is")
	}
	if missing := sandbox.MissingLimits(); missing != "" {
		return noteFinding("", "a call works, %d ms; not on this system: limits on %s of the process that compiles", took.Milliseconds(), missing)
	}
	return okFinding("a call works, %d ms; `stockade selftest` attacks it", took.Milliseconds())
}

func checkJail(_ context.Context, a *app) finding {
	t := a.door().Tiers()
	text := fmt.Sprintf("commands run in %s of %d", t.Tier, policy.MaxTier)
	var mend []string
	for _, l := range t.Unavailable {
		if l.Tier > t.Tier || l.Tier == policy.TierNone {
			for line := range strings.SplitSeq(cmp.Or(remedies[l.Cause], "`stockade tool info bash` says why"), "\n") {
				if !slices.Contains(mend, line) {
					mend = append(mend, line)
				}
			}
		}
	}
	f := finding{State: stateOK, Says: text}
	switch why := a.door().WhyNotStaged([]policy.Mount{{Host: a.Workspace, Write: true}}); {
	case a.Ceiling.MinTier != nil && int64(t.Tier) < a.Ceiling.MinTier.Value:
		f.Says = fmt.Sprintf("bash is refused: %s is what confines a command here, and tier %d is asked for (%s)", t.Tier, a.Ceiling.MinTier.Value, a.Ceiling.MinTier.From)
		f.State = stateBroken
	case t.Tier == policy.TierNone:
		f.Says, f.State = "nothing confines a command here, and you allow that", stateNote
	case why != "":
		f.Says, f.State = text+"; they are asked about before they run: "+why, stateNote
	case len(mend) > 0:
		f.State = stateNote
	default:
		f.Says += "; what they change is kept apart until you have seen it"
	}
	if f.State != stateOK {
		f.Mend = mend
	}
	return f
}

func checkProvider(ctx context.Context, a *app) finding {
	p, err := a.provider(ctx, "")
	if err != nil {
		return errorFinding(err)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, checkTimeout, fmt.Errorf("no answer for %s", checkTimeout))
	defer cancel()
	start := time.Now()
	found, err := a.door().Probe(ctx, *p)
	took := time.Since(start)
	key := "no key"
	if p.Client.APIKey != "" {
		key = "key from " + p.Client.KeySource
	}
	where := fmt.Sprintf("%s at %s, %s", found.Name, found.URL, key)
	if p.Profile != config.ModelProfile {
		where = p.Profile + ": " + where
	}
	if e, ok := errors.AsType[*llm.ProviderError](err); ok {
		return brokenFinding(e.Hint, "%s: %s", where, e.Message)
	}
	switch {
	case err != nil && found.URL == "":
		return errorFinding(a.modelError(p, err))
	case err != nil:
		return brokenFinding("check the network, and model.base_url; `stockade config` shows where it comes from", "%s: %v", where, err)
	case found.URL == "" && p.Name == door.ProviderAuto:
		text, mend := "none is set: the offline model answers, which is a small planner for demonstrations", "stockade init"
		if found, ok := a.findOllama(ctx); ok && len(found.Models) > 0 {
			text += fmt.Sprintf("; an Ollama runs at %s, with %s", found.URL, firstFew(found.Models))
			mend = "stockade init --provider ollama --model NAME"
		}
		return noteFinding(mend, "%s", text)
	case found.URL == "":
		return okFinding("the offline model, a small planner for demonstrations")
	case found.Models == nil:
		return noteFinding(found.Hint, "%s answers in %d ms, and lists no models; model %s", where, took.Milliseconds(), p.Client.Model)
	case !slices.Contains(found.Models, p.Client.Model):
		return noteFinding("stockade config", "%s answers in %d ms, and does not list the model %q", where, took.Milliseconds(), p.Client.Model)
	}
	return okFinding("%s answers in %d ms; model %s", where, took.Milliseconds(), p.Client.Model)
}

// checkNetwork reports the route to the internet (a proxy or none). It sends no request.
func checkNetwork(_ context.Context, a *app) finding {
	variable := settings.UnreadProxy(a.s.env)
	switch {
	case a.Config.Network.Proxy != "":
		return okFinding("the internet is reached through %s (network.proxy)", a.Config.Network.Proxy)
	case variable != "":
		return noteFinding(egress.IgnoredProxyHint(variable), "the internet is reached without a proxy")
	}
	return okFinding("the internet is reached without a proxy")
}

// checkSecrets counts the names of secrets. It reads no value, and asks for no passphrase.
func checkSecrets(ctx context.Context, a *app) finding {
	ctx, cancel := context.WithTimeoutCause(ctx, checkTimeout, errors.New("it does not answer"))
	defer cancel()
	keyring, file := secret.NewKeyring(a.Dirs.KeyringNames()), a.secretsFile(false)
	why := keyring.Available(ctx)
	kept, err := keyring.Names(ctx)
	if err != nil {
		return brokenFinding("stockade secret list", "%v", err)
	}
	inFile, err := file.Names(ctx)
	switch {
	case errors.Is(err, secret.ErrUnavailable):
		return okFinding("in an encrypted file under a passphrase, which was not asked for")
	case err != nil:
		return errorFinding(secretError(a, err))
	case why != nil && len(kept) > 0:
		return brokenFinding("unlock the keyring, or start the one that has them", "%s in the keyring, which cannot be used: %v", humanize.Plural(len(kept), "secret"), why)
	case why != nil:
		return okFinding("%s; they go to an encrypted file: %v", noneOr(len(inFile)), why)
	}
	return okFinding("%s; they go to the system's keyring", noneOr(len(kept)+len(inFile)))
}

func noneOr(secrets int) string {
	if secrets == 0 {
		return "none"
	}
	return fmt.Sprint(secrets)
}

// tildePath replaces the home directory at the beginning of a text by ~.
func (a *app) tildePath(text string) string {
	if rest, ok := strings.CutPrefix(text, a.s.env("HOME")+"/"); ok && rest != text[1:] {
		return "~/" + rest
	}
	return text
}

func checkPolicy(_ context.Context, a *app) finding {
	var parts []string
	for _, l := range []struct {
		source policy.Source
		none   string
	}{
		{policy.SourceAdmin, "no administrator's"}, {policy.SourceUser, "none of yours"}, {policy.SourceProject, "none of the workspace"},
	} {
		i := slices.IndexFunc(a.Layers, func(layer policy.Layer) bool { return layer.Source == l.source })
		if i < 0 {
			parts = append(parts, l.none)
			continue
		}
		parts = append(parts, fmt.Sprintf("%s in force (%s)", a.tildePath(a.Layers[i].Path), humanize.Plural(len(a.Layers[i].Describe()), "rule")))
	}
	text := strings.Join(parts, ", ")
	if inside := namespaceWarning(); inside != "" {
		return noteFinding("stockade help policy", "%s; %s", text, inside)
	}
	if unbound := a.Ceiling.UnconfinedWarning(a.tier); unbound != "" {
		return noteFinding("stockade policy show", "%s; %s", text, unbound)
	}
	answers, err := a.Dirs.Answers()
	if err != nil {
		return errorFinding(err)
	}
	if len(answers) > 0 {
		text += fmt.Sprintf("; %s kept (stockade policy show)", humanize.Plural(len(answers), "answer"))
	}
	return okFinding("%s", text)
}

func checkLog(ctx context.Context, a *app) finding {
	path := a.Dirs.Sessions()
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		if len(a.Ceiling.AuditExports) > 0 {
			if _, err := a.door().Store(ctx); err != nil {
				return errorFinding(err)
			}
		}
		return okFinding("nothing is recorded yet; it will be in %s", a.tildePath(path))
	}
	if err != nil {
		return errorFinding(err)
	}
	if _, err := a.door().Store(ctx); err != nil {
		return errorFinding(err)
	}
	at, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	v, err := sqlite.Verify(at, path, "")
	size := info.Size()
	if info, err := os.Stat(path + "-wal"); err == nil { // recent events may not be in the database file yet
		size += info.Size()
	}
	what := fmt.Sprintf("%s, %s", a.tildePath(path), humanize.Bytes(size))
	broke, chain := errors.AsType[*session.ChainError](err)
	switch {
	case at.Err() != nil:
		return okFinding("%s, can be opened; `stockade audit verify` reads all of it", what)
	case chain:
		return brokenFinding("stockade audit verify", "%s: the chain is broken: %v", what, broke)
	case len(v.Problems) > 0:
		return brokenFinding("stockade audit verify", "%s: it is damaged or was tampered with: %s", what, v.Problems[0])
	case err != nil:
		return errorFinding(err)
	}
	return okFinding("chain intact, %s; %s", humanize.Plural(int(v.Events), "event"), what)
}

// checkFolders tries to write a file into each folder of the program, or into the nearest one
// above that exists, and removes the file.
func checkFolders(_ context.Context, a *app) finding {
	f := okFinding("all of them can be written to")
	for _, folder := range []struct {
		dir, variable string
		fault         state
	}{
		{a.Dirs.Cache, "XDG_CACHE_HOME", stateNote}, // compiled modules can be made again
		{a.Dirs.Config, "XDG_CONFIG_HOME", stateNote},
		{a.Dirs.State, "XDG_STATE_HOME", stateBroken},
		{a.Dirs.Data, "XDG_DATA_HOME", stateBroken},
	} {
		at := folder.dir // or the nearest existing directory above it
		for _, err := os.Stat(at); errors.Is(err, fs.ErrNotExist) && at != filepath.Dir(at); _, err = os.Stat(at) {
			at = filepath.Dir(at)
		}
		file, err := os.CreateTemp(at, ".stockade-doctor-")
		if err == nil {
			_, err = file.Write(make([]byte, 64<<10)) // a full disk still has room for an empty file
			err = cmp.Or(err, file.Close(), os.Remove(file.Name()))
		}
		if err != nil { // a *fs.PathError
			f = newFinding(folder.fault, "set "+folder.variable+" to a directory that can be written to, with room", "%s cannot be written to: %v", a.tildePath(folder.dir), errors.Unwrap(err))
		}
	}
	return f
}

// maxEntries limits the entries of the cache, and the files of each, whose sizes are added up;
// the sizes of further ones are ignored.
const maxEntries = 1000

func checkCache(_ context.Context, a *app) finding {
	dir := a.Dirs.Compiled()
	builtin, err := registry.Builtin()
	if err != nil {
		return errorFinding(err)
	}
	seen := map[*tool.Module]bool{}
	var slow []string
	for _, e := range builtin.Entries() {
		if !seen[e.Module] && !a.door().Sandbox().Ready(e.Module) {
			slow = append(slow, e.Module.Name)
		}
		seen[e.Module] = true
	}
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return brokenFinding(formatFlag("rm -r", dir), "%v", err)
	}
	var size int64
	for _, e := range entries[:min(len(entries), maxEntries)] {
		files, err := os.ReadDir(filepath.Join(dir, e.Name()))
		if err != nil {
			continue // another process is removing it
		}
		for _, f := range files[:min(len(files), maxEntries)] {
			if info, err := f.Info(); err == nil {
				size += info.Size()
			}
		}
	}
	text := fmt.Sprintf("%s in %s, %s", humanize.Plural(len(entries), "compiled module"), a.tildePath(dir), humanize.Bytes(size))
	if len(slow) > 0 {
		return noteFinding("", "%s; to be compiled when first called: %s", text, strings.Join(slow, ", "))
	}
	return okFinding("%s; the built-in tools are ready", text)
}

func checkTools(ctx context.Context, a *app) finding {
	h, err := newToolset(ctx, a)
	if err != nil {
		return errorFinding(err)
	}
	counts := map[tool.Origin]int{}
	var denied []string
	for _, e := range h.enabled() {
		if h.denialReason(e) != "" {
			denied = append(denied, e.Name)
		}
		counts[e.Module.Origin]++
	}
	for _, e := range h.Entries() {
		if h.ceiling.SwitchedOff(e) != "" {
			denied = append(denied, e.Name)
		}
	}
	text := fmt.Sprintf("%d built in, %d added", counts[tool.OriginBuiltin], counts[tool.OriginAdded])
	if denied != nil {
		text += ", switched off or denied: " + strings.Join(denied, ", ")
	}
	var off, mend []string
	for _, m := range h.added {
		if why := m.OffReason(); why != "" && why != store.OffByPerson {
			off = append(off, fmt.Sprintf("%s (%s)", m.Record.Name, why))
			mend = append(mend, formatFlag("stockade tool info", m.Record.Name))
		}
	}
	if off != nil {
		return noteFinding(strings.Join(mend, "\n"), "%s, switched off: %s", text, strings.Join(off, ", "))
	}
	return okFinding("%s", text)
}

func checkTerminal(_ context.Context, a *app) finding {
	if !a.s.interactive() {
		return okFinding("none here: nobody can be asked, see `stockade help output`")
	}
	text := "TERM=" + cmp.Or(a.s.env("TERM"), "(none)")
	if columns, rows, err := term.GetSize(int(os.Stderr.Fd())); err == nil {
		text = fmt.Sprintf("%d×%d, %s", columns, rows, text)
	}
	if a.s.colors() {
		text += ", colours"
	} else {
		text += ", no colours"
	}
	locale := cmp.Or(a.s.env("LC_ALL"), a.s.env("LC_CTYPE"), a.s.env("LANG"))
	if l := strings.ToLower(strings.ReplaceAll(locale, "-", "")); !strings.Contains(l, "utf8") {
		return noteFinding("export LC_ALL=C.UTF-8", "%s; the locale %q is not UTF-8, which is what is printed", text, locale)
	}
	return okFinding("%s, UTF-8", text)
}
