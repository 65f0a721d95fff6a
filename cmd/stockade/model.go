package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/stockade-dev/stockade/host/door"
	"github.com/stockade-dev/stockade/host/llm"
	"github.com/stockade-dev/stockade/host/llm/offline"

	"github.com/stockade-dev/stockade/host/llm/provider"
)

// providersKey is the variable for the provider's key that every client of it
// reads. It goes with OPENAI_BASE_URL; any other variable was not meant for a
// server that the environment names.
const providersKey = "OPENAI_API_KEY"

// provider is where the model is, by the configuration.
func (a *app) provider() (*door.Provider, error) {
	m := a.Config.Model
	key := a.s.env(m.APIKeyEnv)
	if from, ok := strings.CutPrefix(a.Config.Source("model.base_url"), "environment "); ok && m.Provider != door.ProviderOffline && key != "" && m.APIKeyEnv != providersKey {
		return nil, &exitErr{code: exitUsage,
			message: fmt.Sprintf("the server is named by %s in the environment, and such a server gets no key but that of %s; model.api_key_env names %s", from, providersKey, m.APIKeyEnv),
			hint:    fmt.Sprintf("set model.base_url in %s, or unset %s", a.Dirs.AgentTOML(), from)}
	}
	rules, err := a.NetRules(a.flags.allowNet)
	return &door.Provider{
		Name: m.Provider, Rules: rules, Attempts: m.MaxAttempts,
		Client: provider.Options{APIKey: key, KeySource: "the environment variable " + m.APIKeyEnv, BaseURL: m.BaseURL, Model: m.Name, StallTimeout: m.StallTimeout},
	}, err
}

// price is what the model costs; nil where the configuration does not say both.
func (a *app) price() *llm.Price {
	m := a.Config.Model
	if m.InputPrice <= 0 || m.OutputPrice <= 0 {
		return nil
	}
	return &llm.Price{Input: m.InputPrice, Output: m.OutputPrice}
}

// modelError says which flag or setting is to be changed where no model can be
// asked.
func (a *app) modelError(err error) error {
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
		exit.hint = "the providers are: auto, openai, offline"
	case door.FaultKey:
		exit.hint = fmt.Sprintf("export %s=..., or try it without a model: --provider offline", a.Config.Model.APIKeyEnv)
	case door.FaultName:
		exit.hint = "name one with --model, STOCKADE_MODEL_NAME or model.name in " + a.Dirs.AgentTOML()
	case door.FaultAddress:
		exit.hint = "check model.base_url; `stockade config` shows where it comes from"
	case door.FaultDenied:
		permitted("--provider ")
	case door.FaultDeniedURL:
		permitted("model.base_url = ")
	}
	return exit
}

func newModelCmd(a *app) *cobra.Command {
	cmd := &cobra.Command{Use: "model", Short: "Model servers for demonstrations and tests"}
	cmd.AddCommand(newModelServeCmd(a))
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

  reasoning, text, tool_calls [{id, name, arguments}], finish, usage {input_tokens,
  output_tokens, cached_tokens, reasoning_tokens},
  chunk_bytes              what the model says, streamed in pieces of so many bytes
  status, headers, error {message, type, code}   an HTTP error instead
  cut_after_bytes          close the connection in the middle
  stall, empty, flood      be silent; send nothing; send one line without an end
  raw                      this body, whatever it is
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
		_ = f.Close() // only read
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
