package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/stockade-dev/stockade/cmd/stockade/internal/humanize"
	"github.com/stockade-dev/stockade/cmd/stockade/internal/terminal"
	"github.com/stockade-dev/stockade/host/config"
	"github.com/stockade-dev/stockade/host/door"
	"github.com/stockade-dev/stockade/host/llm"
	"github.com/stockade-dev/stockade/host/llm/offline"
	"github.com/stockade-dev/stockade/host/settings"
	"github.com/stockade-dev/stockade/sdk/go/nearest"
)

// provider returns the provider of a profile, as the configuration describes it. An empty
// profile means the profile in use.
func (a *app) provider(ctx context.Context, profile string) (*door.Provider, error) {
	rules, err := a.NetRules(a.flags.allowNet)
	if err != nil {
		return nil, err
	}
	return a.Provider(ctx, profile, settings.Keys{Env: a.s.env, Secrets: a.vault(false)}, rules)
}

// price returns the price of a model; nil if the configuration has none.
func (a *app) price(model string) *llm.Price {
	p, known := a.Config.Price(model)
	if !known {
		return nil
	}
	return (*llm.Price)(&p)
}

// redactKeys makes d remove the API keys in the environment, but none under 12 bytes, from logs,
// output and requests.
func (a *app) redactKeys(d *door.Door) {
	for _, k := range door.ProviderKinds() {
		for _, name := range k.KeyVariables {
			d.AddSecret(a.s.env(name))
		}
	}
	for _, name := range a.Config.ProfileNames() {
		if p, err := a.Config.ResolveProfile(name); err == nil && p.APIKeyEnv != "" {
			d.AddSecret(a.s.env(p.APIKeyEnv))
		}
	}
}

// modelError adds a hint to the error of a model that cannot be asked: the flag or setting to
// change. It returns other errors unchanged.
func (a *app) modelError(p *door.Provider, err error) error {
	e, ok := errors.AsType[*door.ModelError](err)
	if !ok {
		return err
	}
	exit := &exitErr{code: exitUsage, message: e.What}
	permitted := func(before string) {
		if exit.code = exitDenied; len(e.Permitted) > 0 {
			exit.hint = "permitted: " + before + strings.Join(e.Permitted, ", "+before)
		}
	}
	switch e.Fault {
	case door.FaultProvider:
		exit.hint = "the providers are: auto, " + strings.Join(config.Providers, ", ")
	case door.FaultKey:
		exit.hint = a.keyHint(p)
	case door.FaultName:
		exit.hint = "name one with --model, STOCKADE_MODEL_NAME or model.name in " + a.Dirs.AgentTOML()
		if p.Profile != config.ModelProfile {
			exit.hint = fmt.Sprintf("name one with --model, or as %s in %s", config.ProfileKey(p.Profile, "model"), a.Dirs.AgentTOML())
		}
		list := "--profile " + p.Profile
		if a.flags.provider != "" {
			list = "--provider " + p.Name
		}
		exit.hint += "; `stockade model list " + list + "` shows what there is"
	case door.FaultAddress:
		exit.hint = "check model.base_url; `stockade config` shows where it comes from"
	case door.FaultDenied:
		permitted("--provider ")
	case door.FaultDeniedURL:
		permitted("model.base_url = ")
	}
	return exit
}

// ensureModel asks the person for a model and sets it in p, if p needs a model and names none.
// Without a terminal, or with --json, it returns an error, which names some models of the
// server if it lists any. Other faults of p are no error here.
func (a *app) ensureModel(ctx context.Context, p *door.Provider) error {
	_, err := a.door().ResolveProvider(*p)
	if e, ok := errors.AsType[*door.ModelError](err); !ok || e.Fault != door.FaultName {
		return nil // other errors are reported later
	}
	in, out, done, tty := a.terminal()
	defer done()
	if tty && !a.flags.json {
		p.Client.Model, err = a.pickModel(ctx, in, out, *p)
		p.Price = a.price(p.Client.Model)
		return err
	}
	found, _ := a.serverModels(ctx, *p) // the call fails anyway
	err = a.modelError(p, err)
	if e, ok := errors.AsType[*exitErr](err); ok && len(found.Models) > 0 {
		e.hint += "; it has " + firstFew(found.Models)
	}
	return err
}

// pickModel asks for a model of a server: for its name, or its number in the list.
func (a *app) pickModel(ctx context.Context, in *os.File, out io.Writer, p door.Provider) (string, error) {
	const most = 60
	found, err := a.serverModels(ctx, p)
	switch {
	case err != nil:
		fmt.Fprintf(out, "  the models of %s are not known (%s)\n", p.Address(), terminal.Line(err.Error()))
	case found.Models == nil:
		fmt.Fprintf(out, "  %s lists no models: %s\n", p.Address(), terminal.Line(found.Hint))
	default:
		fmt.Fprintf(out, "  %s has %s\n", p.Address(), humanize.Plural(len(found.Models), "model"))
	}
	for i, name := range found.Models[:min(len(found.Models), most)] {
		fmt.Fprintf(out, "  %3d  %s\n", i+1, terminal.Line(name))
	}
	return a.typedLine(ctx, in, out, "name of the model: ", func(line string) (string, error) {
		if n, err := strconv.Atoi(line); err == nil && n > 0 && n <= min(len(found.Models), most) {
			line = found.Models[n-1]
		}
		if len(found.Models) > 0 && !slices.Contains(found.Models, line) {
			return "", fmt.Errorf("the server does not list it%s; --model takes any name", nearest.Hint(line, found.Models))
		}
		return line, checkValue("model.name", line)
	})
}

// keyHint returns a text that tells the person how to give a provider its key.
func (a *app) keyHint(p *door.Provider) string {
	kind, _ := door.ProviderKindOf(p.Name)
	secret, key := strings.ToUpper(strings.ReplaceAll(kind.Name, "-", "_"))+"_KEY", "model.key"
	if p.Profile != config.ModelProfile {
		key = config.ProfileKey(p.Profile, "key")
	}
	return fmt.Sprintf("export %s=..., or keep it with `stockade secret set %s` and set %s = %q; without a key: --provider offline", p.Client.KeySource, secret, key, secret)
}

func newModelCmd(a *app) *cobra.Command {
	cmd := &cobra.Command{Use: "model", Short: "List profiles and models, and serve a model for demonstrations and tests"}
	cmd.AddCommand(newModelListCmd(a), newModelServeCmd(a))
	return cmd
}

func newModelServeCmd(a *app) *cobra.Command {
	var opts modelServeOptions
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Serve the offline model, or a script, as an OpenAI-compatible API",
		Long: `Serve the offline model as an OpenAI-compatible API on this machine, for any
client: chat completions, and responses. With --script, answer with the lines of a
file instead, for demonstrations and tests of agents. Each line is one JSON object
and answers one request:

  reasoning, text, tool_calls [{id, name, arguments}], finish,
  usage {input_tokens, output_tokens, cached_tokens, reasoning_tokens},
  chunk_bytes              stream the answer in pieces of so many bytes
  status, headers, error {message, type, code}   an HTTP error instead
  cut_after_bytes          close the connection in the middle
  stall, empty, flood      be silent; send nothing; send one line without an end
  raw                      send this text as the body
  expect, expect_not       lists of texts that the request must, or must not, hold

With STOCKADE_MODEL_TOKEN set, clients have to send it as their key.

The base URL is printed on stdout when the server listens. Only loopback
addresses are accepted. The server runs until it is interrupted.`,
		Example: `  stockade model serve
  stockade model serve --addr 127.0.0.1:8080 --script demo.jsonl
  OPENAI_BASE_URL=http://127.0.0.1:8080/v1 stockade run --model offline "list files"

  A script:
  {"text":"I look.","tool_calls":[{"name":"file_read","arguments":{"path":"x"}}],"chunk_bytes":3}
  {"text":"Done."}`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return runModelServe(cmd.Context(), a, opts) },
	}
	cmd.Flags().StringVar(&opts.addr, "addr", "127.0.0.1:0", "address to listen on; port 0 takes a free one")
	cmd.Flags().StringVar(&opts.script, "script", "", "answer with the lines of this file")
	return cmd
}

type modelServeOptions struct{ addr, script string }

func runModelServe(ctx context.Context, a *app, opts modelServeOptions) error {
	var responder offline.Responder = offline.Planner{}
	if opts.script != "" {
		f, err := os.Open(opts.script)
		if err != nil {
			return err
		}
		script, err := offline.ParseScript(opts.script, f)
		_ = f.Close() // the file was only read
		if err != nil {
			return err
		}
		responder = script
	}
	server := offline.NewServer(responder, a.s.env("STOCKADE_MODEL_TOKEN"))
	url, err := server.Start(opts.addr)
	if err != nil {
		return err
	}
	fmt.Fprintln(a.s.out, strings.TrimRight(url, "/"))
	a.s.note("serving until interrupted; use it with OPENAI_BASE_URL=%s", url)
	<-ctx.Done()
	return server.Close(context.WithoutCancel(ctx))
}
