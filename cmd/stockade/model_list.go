package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/stockade-dev/stockade/cmd/stockade/internal/humanize"
	"github.com/stockade-dev/stockade/cmd/stockade/internal/table"
	"github.com/stockade-dev/stockade/cmd/stockade/internal/terminal"
	"github.com/stockade-dev/stockade/host/config"
	"github.com/stockade-dev/stockade/host/door"
	"github.com/stockade-dev/stockade/host/llm"
	"github.com/stockade-dev/stockade/host/settings"
	"github.com/stockade-dev/stockade/host/shellword"
)

// listTimeout limits the wait for a server's list of models; after it, the list is an error.
const listTimeout = 10 * time.Second

func newModelListCmd(a *app) *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use: "list", Short: "List the profiles, and with --profile or --all the models that their servers have",
		Long: `List the profiles of the configuration, and [model] under the name "model". The
one in use is marked. --profile and --all ask their servers for their models;
--provider asks the server of a provider that has no profile. See ` + "`stockade help models`" + `.`,
		Example: "  stockade model list\n  stockade model list --profile work\n  stockade model list --provider anthropic\n  stockade model list --all --json | jq '.[].models'",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return runModelList(cmd.Context(), a, all) },
	}
	cmd.Flags().StringVar(&a.flags.profile, "profile", "", "list this profile alone, with the models of its server")
	a.completeProfiles(cmd)
	cmd.Flags().StringVar(&a.flags.provider, "provider", "", "list the models of this provider: "+strings.Join(config.Providers, ", "))
	cmd.Flags().BoolVar(&all, "all", false, "ask the servers of all profiles for their models")
	cmd.Flags().BoolVar(&a.flags.json, "json", false, "print JSON")
	return cmd
}

// profileJSON is a profile in the output of `model list --json`, a documented contract.
type profileJSON struct {
	Name     string   `json:"name"`
	Answers  bool     `json:"answers"`  // the profile is used unless another is named
	Provider string   `json:"provider"` // provider of the profile; for auto, the one that it stands for
	Model    string   `json:"model"`
	Address  string   `json:"address,omitempty"` // address of the server; empty: unknown, or in this process
	Key      string   `json:"key,omitempty"`     // source of the API key, even without a value; empty: no key is sent
	HasKey   bool     `json:"has_key"`
	Fallback []string `json:"fallback,omitempty"`
	Problem  string   `json:"problem,omitempty"` // reason why the model cannot be asked, or Models is unknown
	// Models are the models of the server. Empty: the server was not asked, or gave no list.
	Models []string `json:"models,omitempty"`

	provider *door.Provider // provider to ask for Models; nil: Problem has the reason
	hint     string         // hint about Problem
}

// profileStatus returns the state of a profile, without asking its server.
func (a *app) profileStatus(ctx context.Context, name string) profileJSON {
	profile, _ := a.Config.ResolveProfile(name) // the name is in the list of names
	w := profileJSON{Name: name, Answers: name == cmp.Or(a.Config.Profile, config.ModelProfile), Provider: profile.Provider, Model: profile.Name, Fallback: profile.Fallback}
	p, err := a.provider(ctx, name)
	if err != nil {
		w.fail(err)
		return w
	}
	chosen, err := a.door().ResolveProvider(*p)
	if err != nil {
		w.fail(a.modelError(p, err))
	}
	w.Provider, w.Address, w.Key, w.HasKey = chosen.Name, chosen.Client.BaseURL, chosen.Client.KeySource, chosen.Client.APIKey != ""
	if w.Address == "" && chosen.Name != door.ProviderOffline {
		w.Address = chosen.Address()
	}
	w.provider = p
	return w
}

func (w *profileJSON) fail(err error) {
	w.Problem = err.Error()
	if e, ok := errors.AsType[*exitErr](explainError(err)); ok {
		w.Problem, w.hint = e.message, e.hint
	}
}

// keyText returns the cell of the table about the key.
func (w *profileJSON) keyText() string {
	switch {
	case w.Address == "":
		return "none needed"
	case w.HasKey:
		return w.Key
	case strings.HasPrefix(w.Key, "the secret"):
		return w.Key + ", which cannot be read"
	case w.Key == "" || strings.Contains(w.Key, " "):
		return "none"
	}
	return w.Key + ", which is not set"
}

func runModelList(ctx context.Context, a *app, all bool) error {
	a.noPassphrase.Store(true) // the command does not ask for a passphrase
	names := a.Config.ProfileNames()
	if a.flags.profile != "" {
		names, all = []string{a.flags.profile}, true
	} else if a.flags.provider != "" {
		names, all = []string{config.ModelProfile}, true
	}
	ways := []profileJSON{}
	for _, name := range names {
		w := a.profileStatus(ctx, name)
		if all {
			a.listModels(ctx, &w)
		}
		ways = append(ways, w)
	}
	if a.flags.json {
		return printJSON(a.s, ways)
	}
	w := table.New(table.Fixed(""), table.Fixed("PROFILE"), table.Fixed("PROVIDER"), table.Fixed("MODEL"), table.Text("ADDRESS"), table.Text("KEY"))
	for _, way := range ways {
		mark := ""
		if way.Answers {
			mark = "*"
		}
		w.Row(mark, way.Name, way.Provider, cmp.Or(way.Model, "-"), cmp.Or(way.Address, "-"), way.keyText())
	}
	if err := a.s.table(w); err != nil {
		return err
	}
	if all {
		for _, way := range ways {
			if way.Models != nil {
				fmt.Fprintf(a.s.out, "\n%s has %s:\n", terminal.Line(way.Name), humanize.Plural(len(way.Models), "model"))
			}
			for _, name := range way.Models {
				fmt.Fprintln(a.s.out, "  "+terminal.Line(name))
			}
		}
	}
	for _, way := range ways {
		unused := way.Name == config.ModelProfile && !way.Answers && a.Config.Model.Provider == door.ProviderAuto
		if way.Problem != "" && !unused {
			a.s.note("%s: %s", way.Name, way.Problem)
			if way.hint != "" {
				a.s.hint("%s", way.hint)
			}
		}
	}
	if !a.flags.quiet && !all && ways[0].Provider == door.ProviderOffline && a.Config.Model.Provider == door.ProviderAuto {
		a.suggestOllama(a.findOllama(ctx))
	}
	if len(names) == 1 && all && ways[0].Problem != "" {
		return &exitErr{code: exitProvider}
	}
	return nil
}

// serverModels asks a server for its models. It prints a note if that takes more than a
// second.
func (a *app) serverModels(ctx context.Context, p door.Provider) (door.ProviderInfo, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, listTimeout, fmt.Errorf("no answer for %s", listTimeout))
	defer cancel()
	defer a.noteIfSlow(fmt.Sprintf("asking %s at %s ...", cmp.Or(p.Profile, p.Name), p.Address()))()
	return a.door().Models(ctx, p)
}

// listModels adds the models of the server to a profile, or the problem of getting them.
func (a *app) listModels(ctx context.Context, w *profileJSON) {
	if w.provider == nil || w.Address == "" {
		return
	}
	found, err := a.serverModels(ctx, *w.provider)
	if e, ok := errors.AsType[*llm.ProviderError](err); ok {
		w.Problem, w.hint = e.Error(), e.Hint
		return
	}
	if err != nil {
		w.fail(a.modelError(w.provider, err))
		return
	}
	if w.Models = slices.Sorted(slices.Values(found.Models)); len(w.Models) == 0 && w.Problem == "" {
		w.Problem = "the server does not say which models it has"
	} else if w.Model == "" {
		w.Problem, w.hint = "", "" // a missing model name is the reason to list models
	}
}

// completeProfiles adds completion of the flag --profile. Completing only reads the user's own
// file, and reports no errors.
func (a *app) completeProfiles(cmd *cobra.Command) {
	_ = cmd.RegisterFlagCompletionFunc("profile", func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
		var names []string
		if dirs, err := settings.FindDirs(a.s.env); err == nil {
			if f, err := config.Load(dirs.AgentTOML(), config.User); err == nil {
				if c, _, err := config.Merge(f, nil, func(string) string { return "" }); err == nil {
					names = c.ProfileNames()
				}
			}
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}) // an error means that the flag does not exist
}

// ollamaTimeout limits the wait for an Ollama that is not configured, which answers at once if
// it runs on this machine.
const ollamaTimeout = 250 * time.Millisecond

// findOllama searches for a running Ollama where OLLAMA_HOST or its default address leads;
// false: none was found.
func (a *app) findOllama(ctx context.Context) (found door.ProviderInfo, ok bool) {
	rules, err := a.NetRules(a.flags.allowNet)
	if err != nil {
		return door.ProviderInfo{}, false
	}
	ctx, cancel := context.WithTimeout(ctx, ollamaTimeout)
	defer cancel()
	return a.door().FindOllama(ctx, a.s.env, rules)
}

// suggestKeys prints a note that the environment has a key for some provider, although no
// provider is set. It names only the first one.
func (a *app) suggestKeys() {
	for _, k := range door.ProviderKinds() {
		i := slices.IndexFunc(k.KeyVariables, func(name string) bool { return a.s.env(name) != "" })
		if i < 0 {
			continue
		}
		a.s.note("%s is set, but no provider is", k.KeyVariables[i])
		a.s.hint("ask it with `stockade --provider %s --model NAME`; `stockade model list --provider %s` lists the names", k.Name, k.Name)
		return
	}
}

// suggestOllama prints a note with the command that asks the found Ollama. The program itself
// never asks it: a person decides which model gets a conversation.
func (a *app) suggestOllama(found door.ProviderInfo, ok bool) {
	switch {
	case !ok:
		return
	case len(found.Models) == 0:
		a.s.note("an Ollama runs at %s, and has no model yet", found.URL)
		a.s.hint("`ollama pull NAME` gets one")
		return
	}
	a.s.note("an Ollama runs at %s, with %s", found.URL, firstFew(found.Models))
	if name, ok := shellword.Quote(found.Models[0]); ok {
		a.s.hint("ask it with `stockade --provider ollama --model %s`; `stockade init --provider ollama --model %s` does so for good", name, name)
	}
}

// firstFew lists the first few models, and the number of the others.
func firstFew(models []string) string {
	const most = 4
	var names []string
	for _, name := range models[:min(len(models), most)] {
		names = append(names, humanize.Clip(name, maxShownName))
	}
	list := strings.Join(names, ", ")
	if n := len(models) - len(names); n > 0 {
		list += fmt.Sprintf(" and %d more", n)
	}
	return list
}
