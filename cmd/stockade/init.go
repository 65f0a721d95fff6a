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

// Values of --ask: the occasions on which a person is asked.
const (
	askChanges  = "changes"  // before something is changed
	askCommands = "commands" // before something is changed, and before each command
	askCalls    = "calls"    // before each call
)

type initOptions struct {
	provider, baseURL, model, ask string
	inWorkspace                   bool // write the file of the workspace instead of the user's
	yes                           bool

	defaultAddress bool          // an answer, not a flag, has chosen the provider's default address
	key            secret.Record // an API key to store as a secret; zero: there is none
	dropped        []initKey     // new values for settings in the file that belong to another provider
}

func newInitCmd(a *app) *cobra.Command {
	var o initOptions
	cmd := &cobra.Command{
		Use: "init", Short: "Ask a few questions, and write an agent.toml",
		Long: `Ask which model to use, when to ask you, and for which projects. Then write the
answers into your own agent.toml, or into that of the workspace. You see the
difference before an existing file is changed. Keys are never in a file: a key
that you type is kept as a secret for its server, as
` + "`stockade secret set`" + ` keeps it. The server is asked for its models.

With one of the first four flags, the only question is whether to change an
existing file.`,
		Example: "  stockade init\n  stockade init --base-url http://localhost:11434/v1 --model qwen3\n  stockade init --ask calls --here",
		Args:    cobra.NoArgs, Annotations: trustSkip.annotation(),
		RunE: func(cmd *cobra.Command, _ []string) error { return runInit(cmd.Context(), a, o) },
	}
	f := cmd.Flags()
	f.StringVar(&o.provider, "provider", "", "auto, "+strings.Join(config.Providers, ", "))
	f.StringVar(&o.baseURL, "base-url", "", "URL of a server with OpenAI's interface")
	f.StringVar(&o.model, "model", "", "name of the model")
	f.StringVar(&o.ask, "ask", "", "when you are asked: changes, commands (before each, too) or calls (before every call)")
	f.BoolVar(&o.inWorkspace, "here", false, "write ./agent.toml, for this workspace only")
	f.BoolVar(&o.yes, "yes", false, "change an existing file without a question")
	return cmd
}

// initKey is a key of agent.toml, with its value in TOML.
type initKey struct{ name, value string }

// keys returns the settings to write.
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
	case o.ask == "" || o.inWorkspace: // a file of a project cannot set it
	case o.ask == askCommands:
		set("bash.ask", `"always"`)
	default:
		set("bash.ask", `"changes"`)
	}
	return out
}

// dropOther stores in dropped new values for settings in the file that belong to another
// provider, such as its address or key. The new provider must not get them.
func (o *initOptions) dropOther(f *config.File) {
	was, _, err := config.Merge(f, nil, func(string) string { return "" })
	now := was
	if err != nil || o.provider == "" || now.Set("model.provider", o.provider, "") != nil {
		return
	}
	if o.defaultAddress {
		_ = now.Set("model.base_url", "", "") // the provider uses its usual address
	}
	for _, name := range config.Keys() {
		if name != "model.provider" && was.Value(name) != now.Value(name) {
			o.dropped = append(o.dropped, initKey{name, now.Value(name)})
		}
	}
}

// check returns a usage error if an option has a wrong value, or does not go with --here.
func (o initOptions) check() error {
	switch {
	case o.ask != "" && o.ask != askChanges && o.ask != askCommands && o.ask != askCalls:
		return usageError("", "--ask is changes, commands or calls, not %q", o.ask)
	case o.ask == askCommands && o.inWorkspace:
		return usageError("without --here it goes into your own file", "a project cannot set when commands are asked about")
	}
	for _, k := range []struct{ flag, key, value string }{{"--provider", "model.provider", o.provider}, {"--base-url", "model.base_url", o.baseURL}, {"--model", "model.name", o.model}} {
		if k.value == "" {
			continue
		}
		if err := checkValue(k.key, k.value); err != nil {
			return usageError("", "%s: %v", k.flag, err)
		}
	}
	return nil
}

// checkValue returns an error if a key of agent.toml cannot have the value, or if the value
// looks like an API key that was pasted into the wrong line.
func checkValue(key, value string) error {
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
			return &exitErr{code: exitNobodyToAsk, message: "there is no terminal to ask on",
				hint: "use flags: stockade init --base-url URL --model NAME --ask changes"}
		}
		if err := o.askAll(ctx, a, in, out); err != nil {
			return err
		}
	}
	path := a.Dirs.AgentTOML()
	if o.inWorkspace {
		path = settings.ProjectFile(a.Workspace)
	}
	old, err := os.ReadFile(path) // the settings were just read from this file
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	was := err == nil
	if f, err := config.Parse(path, config.User, old); err == nil { // a file with mistakes is not changed
		o.dropOther(f)
	}
	text := setKeys(old, o.keys())
	if err := checkKeysSet(path, text, o); err != nil {
		return &exitErr{code: exitError, message: fmt.Sprintf("%s is written in a way that init cannot change: %v", path, err),
			hint: "set in it by hand: " + strings.Join(keyLines(o.keys()), "; ")}
	}
	if bytes.Equal(old, text) {
		a.s.note("%s has these settings already", path)
		return nil
	}
	if was && !o.yes {
		change := diffText(path, old, text)
		if !tty {
			fmt.Fprint(a.s.err, change)
			return &exitErr{code: exitNobodyToAsk, message: path + " is there already, and is not changed: there is no terminal to ask on", hint: "--yes changes it without a question"}
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
		store, _, err := a.vault(false).ChooseStore(ctx, "")
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

// initNotes prints the path of the written file, and the steps that remain.
func (a *app) initNotes(path string, o initOptions) {
	fmt.Fprintf(a.s.out, "wrote %s\n", terminal.Line(path))
	if a.flags.quiet {
		return
	}
	if o.inWorkspace && (o.provider != "" || o.baseURL != "") {
		a.s.hint("this file selects the server only after you trust it: `stockade config trust`")
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
		a.s.hint("keys are never in a file: `export %s=...`%s", variables[0], needed)
	}
	a.s.hint("`stockade doctor` tries it")
}

var errNothingWritten = &exitErr{code: exitDenied, message: "nothing is written"}

func (o *initOptions) askAll(ctx context.Context, a *app, in *os.File, out io.Writer) error {
	// Each question can be left, also by the end of input.
	question := func(what string, answers ...prompt.Choice) (int, error) {
		i, err := a.choose(ctx, in, out, "", what, append(answers, prompt.Choice{Letter: 'n', Label: "leave"})...)
		if err == nil && i == len(answers) {
			err = errNothingWritten
		}
		return i, err
	}
	i, err := question("For which projects?", prompt.Choice{Letter: 'a', Label: "all: " + terminal.Line(a.tildePath(a.Dirs.AgentTOML()))}, prompt.Choice{Letter: 't', Label: "this one: ./agent.toml"})
	if err != nil {
		return err
	}
	o.inWorkspace = i == 1
	wheres := []prompt.Choice{
		{Letter: 'o', Label: "at OpenAI"}, {Letter: 'a', Label: "at Anthropic"}, {Letter: 'g', Label: "at Google"}, {Letter: 'x', Label: "at xAI"}, {Letter: 'm', Label: "at Meta"},
		{Letter: 'l', Label: "in Ollama, on this machine"}, {Letter: 's', Label: "at another server with OpenAI's interface, by its URL"}, {Letter: 'w', Label: "nowhere: use the offline model, a demonstration"},
	}
	if i, err = question("Where is the model?", wheres...); err != nil {
		return err
	}
	where := wheres[i].Letter
	o.defaultAddress = where != 's' && where != 'w'
	o.provider = map[rune]string{'o': "openai", 'a': "anthropic", 'g': "google", 'x': "xai", 'm': "meta", 'l': door.ProviderOllama, 's': "openai", 'w': door.ProviderOffline}[where]
	if where == 's' {
		o.baseURL, err = a.typedLine(ctx, in, out, "URL, such as http://localhost:11434/v1: ", func(line string) (string, error) { return line, checkValue("model.base_url", line) })
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
	asks := []prompt.Choice{{Letter: 'c', Label: "when something changes"}, {Letter: 'b', Label: "and before each command"}, {Letter: 'e', Label: "before every call"}}
	if o.inWorkspace {
		asks = []prompt.Choice{asks[0], asks[2]} // a project cannot set the other one
	}
	if i, err = question("When are you asked?", asks...); err != nil {
		return err
	}
	o.ask = map[rune]string{'c': askChanges, 'b': askCommands, 'e': askCalls}[asks[i].Letter]
	return o.check()
}

// takeKey returns the API key for a server: from the environment, or typed by the person. A
// typed key also goes into o.key, to be stored as a secret for that server. Empty: there is no
// key. The person is asked only if the address is https, and not with --here.
func (o *initOptions) takeKey(ctx context.Context, a *app, in *os.File, out io.Writer, p door.Provider) (string, error) {
	kind, _ := door.ProviderKindOf(p.Name)
	for _, name := range kind.KeyVariables {
		if key := a.s.env(name); key != "" {
			return key, nil
		}
	}
	address, found := strings.CutPrefix(p.Address(), "https://") // a secret is sent over https only
	if address, _, _ = strings.Cut(address, "/"); !found || o.inWorkspace || kind.KeyVariables == nil {
		return "", nil
	}
	host, err := tool.NormalHost(address)
	if err != nil {
		return "", err
	}
	key, err := readHidden(ctx, in, out, "  key for "+host+", which is not shown (Enter: no key): ")
	if key = strings.TrimSpace(key); err != nil || key == "" {
		return "", err
	}
	a.redactor.Add(key)
	name := "KEY_" + strings.ToUpper(regexp.MustCompile(`[^A-Za-z0-9]`).ReplaceAllString(host, "_"))
	o.key = secret.Record{Info: secret.Info{Name: name[:min(len(name), 64)], Hosts: []string{host}, Header: kind.Header, SetAt: time.Now().UTC().Truncate(time.Second)}, Value: secret.NewValue(key)}
	return key, o.key.Check()
}

// choose asks a question below text, and returns the index of the chosen answer.
func (a *app) choose(ctx context.Context, in *os.File, out io.Writer, text, what string, choices ...prompt.Choice) (int, error) {
	short := func() string { return text }
	long := func() string {
		return "  Nothing is written before the last question. You see the changes of an\n  existing file first. `stockade help config` says what each setting means."
	}
	letter, err := a.askChoice(ctx, in, out, prompt.New(what, choices, short, long))
	return max(slices.IndexFunc(choices, func(c prompt.Choice) bool { return c.Letter == letter }), 0), err
}

// typedLine asks for a line until means accepts it, and returns the value that means returned.
// The end of input is an error.
func (a *app) typedLine(ctx context.Context, in *os.File, out io.Writer, what string, means func(line string) (string, error)) (string, error) {
	terminal.FlushInput(in)
	for {
		fmt.Fprint(out, "  "+what)
		line, err := readLine(ctx, in)
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

func keyLines(keys []initKey) (out []string) {
	for _, k := range keys {
		out = append(out, k.name+" = "+k.value)
	}
	return out
}

// tableHead matches the head of a table in TOML, as agent.toml writes it.
var tableHead = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^\s*\[([\w.]+)\]\s*(#.*)?$`) })

// setKeys returns the file old with some keys set: each in its own line, even a commented-out
// one, or else at the end of its table, or else before the first table. The rest stays.
func setKeys(old []byte, set []initKey) []byte {
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

func setKey(rows []string, k initKey) []string {
	head, last := "", k.name
	if i := strings.LastIndexByte(k.name, '.'); i >= 0 {
		head, last = k.name[:i], k.name[i+1:]
	}
	at, end, commented := "", -1, -1 // table of the row; last line of the key's table; commented-out key
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
	// Before the first table, with the whole name of the key.
	first := len(rows)
	for i, row := range rows {
		if tableHead().MatchString(row) {
			for first = i; first > 0 && (strings.HasPrefix(rows[first-1], "#") || rows[first-1] == ""); first-- { // comments above the table belong to it
			}
			break
		}
	}
	return insert(rows, first, k.name+" = "+k.value)
}

func insert(rows []string, at int, row string) []string {
	return append(rows[:at:at], append([]string{row}, rows[at:]...)...)
}

// checkKeysSet returns an error if the new text of a file does not set all keys in o.
func checkKeysSet(path string, text []byte, o initOptions) error {
	layer := config.User
	if o.inWorkspace {
		layer = config.Project
	}
	f, err := config.Parse(path, layer, text)
	if err != nil {
		return err
	}
	none := func(string) string { return "" }
	user, project := f, (*config.File)(nil)
	if o.inWorkspace {
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

func diffText(path string, old, text []byte) string {
	version := func(data []byte) *tool.Version {
		return &tool.Version{Size: int64(len(data)), Mode: 0o600, Open: func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil }}
	}
	changes := []tool.Change{{Path: path, Kind: tool.Modified, Before: version(old), After: version(text)}}
	shown := diff.New(context.Background(), changes, "", nil)
	return strings.Join(terminal.Fold(strings.TrimRight(shown.String(), "\n"), "  | ", "  | ", 0), "\n") + "\n"
}
