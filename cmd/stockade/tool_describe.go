package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/stockade-dev/stockade/cmd/stockade/internal/terminal"
	"github.com/stockade-dev/stockade/host/config/keys"
	"github.com/stockade-dev/stockade/host/registry"
	"github.com/stockade-dev/stockade/host/registry/description"
	"github.com/stockade-dev/stockade/host/registry/source"
	"github.com/stockade-dev/stockade/host/registry/store"
	"github.com/stockade-dev/stockade/host/sandbox/admit"
	"github.com/stockade-dev/stockade/host/shellword"
	"github.com/stockade-dev/stockade/host/tool"
)

type describer = func(context.Context, *tool.Module) (*tool.Module, error)

// loadDescriber reads a description file, and returns a describer that adds the description to
// a module. It returns nil if file is empty.
func (a *app) loadDescriber(file string) (describer, error) {
	if file == "" {
		return nil, nil
	}
	d, err := description.Read(file)
	if _, says := errors.AsType[*keys.Error](err); err != nil && !says {
		return nil, usageError("`stockade tool describe FILE.wasm` writes one to begin with", "--describe: %v", err)
	}
	if err != nil {
		return nil, descriptionError(err)
	}
	return func(ctx context.Context, mod *tool.Module) (*tool.Module, error) {
		mod, err := d.Add(ctx, a.door().Sandbox(), mod)
		return mod, descriptionError(err)
	}, nil
}

// keepDescription returns a describer that copies the description of a module to its next
// version.
func (a *app) keepDescription(r store.Record) describer {
	return func(_ context.Context, mod *tool.Module) (*tool.Module, error) {
		code, err := a.moduleStore().Module(r).Read()
		if err != nil {
			return nil, err
		}
		out, err := description.Copy(code, mod)
		if err != nil {
			return nil, &exitErr{code: exitError, message: fmt.Sprintf("the description of %s does not fit any more: %v", r.Name, err),
				hint: "to accept the new version, add it again from its source, with another description or none"}
		}
		return out, nil
	}
}

// descriptionError adds a hint, which names examples, to an error in a description file. It
// returns other errors unchanged.
func descriptionError(err error) error {
	if _, ok := errors.AsType[*keys.Error](err); ok {
		return usageError("`stockade help plugins` has examples", "%v", err)
	}
	return err
}

// undescribedError handles the error of a module that was not added because it has no
// description: it prints a sample description to start with. It returns other errors
// unchanged.
func (a *app) undescribedError(c *source.Candidate, ref string, err error) error {
	if _, ok := errors.AsType[*admit.UndescribedError](err); !ok {
		return err
	}
	mod := tool.NewModule(registry.NameOf(c.Source), tool.OriginAdded, c.Source, c.Code)
	sample, sampleErr := description.Sample(mod)
	if sampleErr != nil {
		return err
	}
	file := tool.NameOf(mod.Name) + ".toml"
	a.s.note("%v", err)
	fmt.Fprintf(a.s.err, "\n# %s, to begin with. Change what is not true.\n%s\n", file, terminal.Visible(sample))
	hint := "then: stockade tool add --describe " + file
	if word, ok := shellword.Quote(ref); ok {
		hint += " " + word
	}
	return &exitErr{code: exitError, message: "it is not added", hint: hint + "; `stockade help plugins` has examples"}
}

func newToolDescribeCmd(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use: "describe FILE.wasm|REF", Short: "Write a first description of a command or a plugin",
		Long: `Print a few lines of TOML that describe the tools of a command of WASI or a plugin of
Extism. Nothing is run. Correct them, and add the module with them:
` + "`stockade tool add FILE.wasm --describe FILE.toml`" + `.`,
		Example: "  stockade tool describe php.wasm >php.toml",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			mod, _, err := a.loadModule(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			sample, err := description.Sample(mod)
			if err != nil {
				return err
			}
			_, err = fmt.Fprint(a.s.out, terminal.Visible(sample))
			return err
		},
	}
	addReachFlag(cmd, a)
	return cmd
}
