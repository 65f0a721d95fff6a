package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/stockade-dev/stockade/cmd/stockade/internal/prompt"
	"github.com/stockade-dev/stockade/cmd/stockade/internal/terminal"
	"github.com/stockade-dev/stockade/host/config"
	"github.com/stockade-dev/stockade/host/diff"
	"github.com/stockade-dev/stockade/host/door"
	"github.com/stockade-dev/stockade/host/llm/provider"
	"github.com/stockade-dev/stockade/host/secret"
	"github.com/stockade-dev/stockade/host/settings"
	"github.com/stockade-dev/stockade/host/tool"
)

// When a person is asked.
const (
	askChanges  = "changes"  // when something is to be changed
	askCommands = "commands" // and before each command
	askCalls    = "calls"    // before every call
)

// initOptions are the answers to the questions of init.
type initOptions struct {
	provider, baseURL, model, ask string
	here                          bool // in the file of the workspace, and not in the user's
	yes                           bool

	own     bool          // the provider is at its own address
	key     secret.Record // is kept as a secret; the zero Record: there is none
	dropped []initKey     // what the file says of another provider
}

func newInitCmd(a *app) *cobra.Command {
	var o initOptions
	cmd := &cobra.Command{
		Use: "init", Short: "Ask a few questions, and write an agent.toml",
		Long: `Ask which model answers, when you want to be asked, and for which projects that
holds. Then write it into your own agent.toml, or into that of the workspace. A
file that is there is changed after you have seen the difference. Keys are never
in a file: a key that you type is kept as a secret for its server, as
` + "`stockade secret set`" + ` keeps it. The server is asked for its models.

With one of the first four flags nothing is asked but whether to change a file.`,
		Example: "  stockade init\n  stockade init --base-url http://localhost:11434/v1 --model qwen3\n  stockade init --ask calls --here",
		Args:    cobra.NoArgs, Annotations: trustLeave.annotation(),
		RunE: func(cmd *cobra.Command, _ []string) error { return runInit(cmd.Context(), a, o) },
	}
	f := cmd.Flags()
	f.StringVar(&o.provider, "provider", "", "auto, "+strings.Join(config.Providers, ", "))
	f.StringVar(&o.baseURL, "base-url", "", "where a server with OpenAI's interface is")
	f.StringVar(&o.model, "model", "", "name of the model")
	f.StringVar(&o.ask, "ask", "", "when you are asked: changes, commands (before each, too) or calls (before every call)")
	f.BoolVar(&o.here, "here", false, "write ./agent.toml, for this workspace only")
	f.BoolVar(&o.yes, "yes", false, "change a file that is there without a question")
	return cmd
}

// initKey is a key of agent.toml with a value as it is written there.
type initKey struct{ name, value string }

// keys are what the options set, in the order of agent.toml.
func (o initOptions) keys() (out []initKey) {
	set := func(name, value string) { out = append(out, initKey{name, value}) }
	if o.ask != "" {
		set("require_confirmation", strconv.FormatBool(o.ask == askCalls))
	}
	for _, k := range []initKey{{"model.provider", o.provider}, {"model.name", o.model}, {"model.base_url", o.baseURL}, {"model.key", o.key.Name}} {
		if k.value != "" {
			set(k.name, strconv.Quote(k.value))
		}
	}
	for _, k := range o.dropped {
		if !slices.ContainsFunc(out, func(set initKey) bool { return set.name == k.name }) {
			out = append(out, k)
		}
	}
	switch {
	case o.ask == "" || o.here: // a project's file never has a say
	case o.ask == askCommands:
		set("bash.ask", `"always"`)
	default:
		set("bash.ask", `"changes"`)
	}
	return out
}

// drop notes what a file says of another provider than the one that is chosen: an
// address, a key or a price that would be taken for those of the new one.
func (o *initOptions) drop(f *config.File) {
	was, _, err := config.Merge(f, nil, func(string) string { return "" })
	now := was
	if err != nil || o.provider == "" || now.Set("model.provider", o.provider, "") != nil {
		return
	}
	if o.own {
		_ = now.Set("model.base_url", "", "") // which it takes
	}
	for _, name := range config.Keys() {
		if name != "model.provider" && was.Value(name) != now.Value(name) {
			o.dropped = append(o.dropped, initKey{name, now.Value(name)})
		}
	}
}

// check looks for mistakes before anything is asked.
func (o initOptions) check() error {
	switch {
	case o.ask != "" && o.ask != askChanges && o.ask != askCommands && o.ask != askCalls:
		return usageError("", "--ask is changes, commands or calls, not %q", o.ask)
	case o.ask == askCommands && o.here:
		return usageError("without --here it goes into your own file", "when commands ask is never for a project to say")
	}
	for _, k := range []struct{ flag, key, value string }{{"--provider", "model.provider", o.provider}, {"--base-url", "model.base_url", o.baseURL}, {"--model", "model.name", o.model}} {
		if k.value == "" {
			continue
		}
		if err := fits(k.key, k.value); err != nil {
			return usageError("", "%s: %v", k.flag, err)
		}
	}
	return nil
}

// fits reports whether a key of agent.toml can have a value. What people paste into
// the wrong line is recognized.
func fits(key, value string) error {
	if config.LooksLikeKey(value) {
		return errors.New("that looks like a key, and keys are never in a file; put it into a variable: export OPENAI_API_KEY=...")
	}
	c := config.Default()
	return c.Set(key, value, "")
}

func runInit(ctx context.Context, a *app, o initOptions) error {
	if err := o.check(); err != nil {
		return err
	}
	in, out, done, tty := a.terminal()
	if tty {
		defer done()
	}
	if o.provider == "" && o.baseURL == "" && o.model == "" && o.ask == "" {
		if !tty {
			return &exitErr{code: exitUnasked, message: "there is no terminal to ask on",
				hint: "say it with flags: stockade init --base-url URL --model NAME --ask changes"}
		}
		if err := o.fill(ctx, a, in, out); err != nil {
			return err
		}
	}
	path := a.Dirs.AgentTOML()
	if o.here {
		path = settings.ProjectFile(a.Work)
	}
	old, err := os.ReadFile(path) // the settings were read from it a moment ago
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	was := err == nil
	if f, err := config.Parse(path, config.User, old); err == nil { // or else it is not changed
		o.drop(f)
	}
	text := edited(old, o.keys())
	if err := holds(path, text, o); err != nil {
		return &exitErr{code: exitError, message: fmt.Sprintf("%s is written in a way that init cannot change: %v", path, err),
			hint: "set in it by hand: " + strings.Join(lines(o.keys()), "; ")}
	}
	if bytes.Equal(old, text) {
		a.s.note("%s says so already", path)
		return nil
	}
	if was && !o.yes {
		change := changeOf(path, old, text)
		if !tty {
			fmt.Fprint(a.s.err, change)
			return &exitErr{code: exitUnasked, message: path + " is there already, and is not changed: there is no terminal to ask on", hint: "--yes changes it without a question"}
		}
		i, err := a.choose(ctx, in, out, change, "Change it?", yesOrNo...)
		if err != nil {
			return err
		}
		if i != 0 {
			return &exitErr{code: exitDenied, message: path + " is not changed"}
		}
	}
	if o.key.Name != "" {
		store, _, err := a.vault(false).Pick(ctx, "")
		if err == nil {
			err = a.vault(false).Set(ctx, store, o.key)
		}
		if err != nil {
			return secretError(a, err)
		}
		a.s.note("the key is kept as the secret %s in the %s", o.key.Name, store.Name())
	}
	if err := a.Dirs.WriteAgentTOML(path, text); err != nil {
		return err
	}
	a.initNotes(path, o)
	return nil
}

// initNotes says what was written, and what is still to be done.
func (a *app) initNotes(path string, o initOptions) {
	fmt.Fprintf(a.s.out, "wrote %s\n", terminal.Line(path))
	if a.flags.quiet {
		return
	}
	if o.here && (o.provider != "" || o.baseURL != "") {
		a.s.hint("which server is asked counts from this file when you trust it: `stockade config trust`")
	}
	kind, _ := door.ProviderKindOf(o.provider)
	variables := kind.KeyVariables
	dropped := slices.ContainsFunc(o.dropped, func(k initKey) bool { return k.name == "model.api_key_env" })
	if named := a.Config.Model.APIKeyEnv; named != "" && !dropped {
		variables = []string{named}
	}
	if o.key.Name == "" && kind.KeyVariables != nil && !slices.ContainsFunc(variables, func(name string) bool { return a.s.env(name) != "" }) {
		needed := ""
		if o.baseURL != "" {
			needed = ", if the server wants a key"
		}
		a.s.hint("the key is in no file: `export %s=...`%s", variables[0], needed)
	}
	a.s.hint("`stockade doctor` tries it")
}

var errNothingWritten = &exitErr{code: exitDenied, message: "nothing is written"}

// fill asks the three questions.
func (o *initOptions) fill(ctx context.Context, a *app, in *os.File, out io.Writer) error {
	// Each question can be left, which is what the end of input does.
	question := func(what string, answers ...prompt.Choice) (int, error) {
		i, err := a.choose(ctx, in, out, "", what, append(answers, prompt.Choice{Letter: 'n', Words: "leave"})...)
		if err == nil && i == len(answers) {
			err = errNothingWritten
		}
		return i, err
	}
	i, err := question("For which projects?", prompt.Choice{Letter: 'a', Words: "all: " + terminal.Line(a.home(a.Dirs.AgentTOML()))}, prompt.Choice{Letter: 't', Words: "this one: ./agent.toml"})
	if err != nil {
		return err
	}
	o.here = i == 1
	wheres := []prompt.Choice{
		{Letter: 'o', Words: "at OpenAI"}, {Letter: 'a', Words: "at Anthropic"}, {Letter: 'g', Words: "at Google"}, {Letter: 'x', Words: "at xAI"}, {Letter: 'm', Words: "at Meta"},
		{Letter: 'l', Words: "in Ollama, on this machine"}, {Letter: 's', Words: "at another server with OpenAI's interface, by its URL"}, {Letter: 'w', Words: "without: the offline model, a demonstration"},
	}
	if i, err = question("Where is the model?", wheres...); err != nil {
		return err
	}
	where := wheres[i].Letter
	o.own = where != 's' && where != 'w'
	o.provider = map[rune]string{'o': "openai", 'a': "anthropic", 'g': "google", 'x': "xai", 'm': "meta", 'l': door.ProviderOllama, 's': "openai", 'w': door.ProviderOffline}[where]
	if where == 's' {
		o.baseURL, err = a.typedLine(ctx, in, out, "URL, such as http://localhost:11434/v1: ", func(line string) (string, error) { return line, fits("model.base_url", line) })
		if err != nil {
			return err
		}
	}
	if where != 'w' {
		p := door.Provider{Name: o.provider, Client: provider.Options{BaseURL: o.baseURL}}
		if p.Client.APIKey, err = o.takeKey(ctx, a, in, out, p); err != nil {
			return err
		}
		if p.Rules, err = a.NetRules(nil); err != nil {
			return err
		}
		if o.model, err = a.pickModel(ctx, in, out, p); err != nil {
			return err
		}
	}
	asks := []prompt.Choice{{Letter: 'c', Words: "when something changes"}, {Letter: 'b', Words: "and before each command"}, {Letter: 'e', Words: "before every call"}}
	if o.here {
		asks = []prompt.Choice{asks[0], asks[2]} // the other is never for a project to say
	}
	if i, err = question("When are you asked?", asks...); err != nil {
		return err
	}
	o.ask = map[rune]string{'c': askChanges, 'b': askCommands, 'e': askCalls}[asks[i].Letter]
	return o.check()
}

// takeKey returns the key for a server from the environment, or asks the person for a key. The
// caller keeps an answer as a secret for the server. Empty: the server has no key.
func (o *initOptions) takeKey(ctx context.Context, a *app, in *os.File, out io.Writer, p door.Provider) (string, error) {
	kind, _ := door.ProviderKindOf(p.Name)
	for _, name := range kind.KeyVariables {
		if key := a.s.env(name); key != "" {
			return key, nil
		}
	}
	address, found := strings.CutPrefix(p.Where(), "https://") // a secret is sent over https only
	if address, _, _ = strings.Cut(address, "/"); !found || o.here || kind.KeyVariables == nil {
		return "", nil
	}
	host, err := tool.NormalHost(address)
	if err != nil {
		return "", err
	}
	key, err := readHidden(ctx, in, out, "  key for "+host+", which is not shown (Enter: none): ")
	if key = strings.TrimSpace(key); err != nil || key == "" {
		return "", err
	}
	a.known.Add(key)
	name := "KEY_" + strings.ToUpper(regexp.MustCompile(`[^A-Za-z0-9]`).ReplaceAllString(host, "_"))
	o.key = secret.Record{Info: secret.Info{Name: name[:min(len(name), 64)], Hosts: []string{host}, Header: kind.Header, Set: time.Now().UTC().Truncate(time.Second)}, Value: secret.NewValue(key)}
	return key, o.key.Check()
}

// choose asks a question below a text, and returns which answer was given.
func (a *app) choose(ctx context.Context, in *os.File, out io.Writer, text, what string, choices ...prompt.Choice) (int, error) {
	short := func() string { return text }
	long := func() string {
		return "  Nothing is written before the last question, and a file that is there is\n  shown first. `stockade help config` says what each setting means."
	}
	letter, err := a.put(ctx, in, out, prompt.New(what, choices, short, long))
	return max(slices.IndexFunc(choices, func(c prompt.Choice) bool { return c.Letter == letter }), 0), err
}

// typedLine asks for a line until means returns no error, and returns the value of the line.
func (a *app) typedLine(ctx context.Context, in *os.File, out io.Writer, what string, means func(line string) (string, error)) (string, error) {
	terminal.FlushInput(in)
	for {
		fmt.Fprint(out, "  "+what)
		line, err := readShown(ctx, in)
		if err != nil {
			if errors.Is(err, io.EOF) {
				err = errNothingWritten
			}
			return "", err
		}
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		value, err := means(line)
		if err != nil {
			for _, row := range terminal.Wrap(terminal.Line(err.Error()), a.s.width()-3) {
				fmt.Fprintf(out, "  %s\n", row)
			}
			continue
		}
		return value, nil
	}
}

func lines(of []initKey) (out []string) {
	for _, k := range of {
		out = append(out, k.name+" = "+k.value)
	}
	return out
}

// tableHead is the head of a table of TOML, as agent.toml has them.
var tableHead = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^\s*\[([\w.]+)\]\s*(#.*)?$`) })

// edited is a file in which the keys are set: in their lines, where it has them, also
// commented out, or else at the end of their table. What else it says stays.
func edited(old []byte, set []initKey) []byte {
	var rows []string
	if len(old) == 0 {
		rows = []string{"# Written by `stockade init`. `stockade config --defaults` prints every key.", ""}
	} else {
		rows = strings.Split(strings.TrimSuffix(string(old), "\n"), "\n")
	}
	for _, k := range set {
		rows = setKey(rows, k)
	}
	return []byte(strings.Join(rows, "\n") + "\n")
}

// setKey sets one key in the lines of a file.
func setKey(rows []string, k initKey) []string {
	head, last := "", k.name
	if i := strings.LastIndexByte(k.name, '.'); i >= 0 {
		head, last = k.name[:i], k.name[i+1:]
	}
	at, end, commented := "", -1, -1 // where a line of the table ends, and one that is commented out
	dotted := regexp.MustCompile(`^\s*` + regexp.QuoteMeta(k.name) + `\s*=`)
	plain := regexp.MustCompile(`^\s*` + regexp.QuoteMeta(last) + `\s*=`)
	sample := regexp.MustCompile(`^#` + regexp.QuoteMeta(last) + `\s*=`)
	for i, row := range rows {
		if m := tableHead().FindStringSubmatch(row); m != nil {
			at = m[1]
		}
		switch {
		case at == "" && dotted.MatchString(row):
			rows[i] = k.name + " = " + k.value
			return rows
		case at == head && plain.MatchString(row):
			rows[i] = last + " = " + k.value
			return rows
		case at == head && sample.MatchString(row):
			commented = i
		}
		if at == head && strings.TrimSpace(row) != "" {
			end = i
		}
	}
	line := last + " = " + k.value
	if commented >= 0 {
		rows[commented] = line
		return rows
	}
	if end >= 0 && head != "" {
		return insert(rows, end+1, line)
	}
	// Before the first table, with its whole name.
	first := len(rows)
	for i, row := range rows {
		if tableHead().MatchString(row) {
			for first = i; first > 0 && (strings.HasPrefix(rows[first-1], "#") || rows[first-1] == ""); first-- { // what is said of it
			}
			break
		}
	}
	return insert(rows, first, k.name+" = "+k.value)
}

func insert(rows []string, at int, row string) []string {
	return append(rows[:at:at], append([]string{row}, rows[at:]...)...)
}

// holds reports whether a file sets what it is to set.
func holds(path string, text []byte, o initOptions) error {
	layer := config.User
	if o.here {
		layer = config.Project
	}
	f, err := config.Parse(path, layer, text)
	if err != nil {
		return err
	}
	none := func(string) string { return "" }
	user, project := f, (*config.File)(nil)
	if o.here {
		f.Trusted, user, project = true, nil, f
	}
	c, _, err := config.Merge(user, project, none)
	if err != nil {
		return err
	}
	for _, k := range o.keys() {
		want := config.Default()
		value := k.value
		if s, err := strconv.Unquote(k.value); err == nil {
			value = s
		}
		if value == "[]" {
			value = ""
		}
		if err := want.Set(k.name, value, ""); err != nil {
			return err
		}
		if c.Value(k.name) != want.Value(k.name) {
			return fmt.Errorf("%s would still be %s", k.name, c.Value(k.name))
		}
	}
	return nil
}

// changeOf shows what a file would become.
func changeOf(path string, old, text []byte) string {
	version := func(data []byte) *tool.Version {
		return &tool.Version{Size: int64(len(data)), Mode: 0o600, Open: func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil }}
	}
	changes := []tool.Change{{Path: path, Kind: tool.Modified, Before: version(old), After: version(text)}}
	shown := diff.New(context.Background(), changes, "", nil)
	return strings.Join(terminal.Fold(strings.TrimRight(shown.String(), "\n"), "  | ", "  | ", 0), "\n") + "\n"
}
