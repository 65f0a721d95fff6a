package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/stockade-dev/stockade/cmd/stockade/internal/table"
	"github.com/stockade-dev/stockade/host/secret"
)

type secretOptions struct {
	hosts      []string
	header     string
	store      string
	passphrase bool
}

func newSecretCmd(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use: "secret", Short: "Keep tokens and passwords that tools may use and never see",
		Long: `Keep secrets by name. A tool that asks for one, and that you allow, gets a
placeholder. Stockade puts the value in its place in the approved header of a
request to the approved host, and nowhere else. Values are kept in the keyring of
the system, or in an encrypted file if no keyring answers.

What that protects from is in ` + "`stockade help secrets`" + `.`,
	}
	cmd.AddCommand(newSecretSetCmd(a), newSecretListCmd(a), newSecretRemoveCmd(a))
	return cmd
}

func newSecretSetCmd(a *app) *cobra.Command {
	var opts secretOptions
	cmd := &cobra.Command{
		Use: "set NAME", Short: "Keep a secret, or change its value",
		Long: `Keep a secret. Its value is typed in without being shown, or read from standard
input; a line end behind it is left out. It is never an argument, because
arguments are in the history of the shell and in the list of processes.

--host binds the secret: it is sent to these hosts only, each NAME or NAME:PORT
(443 if there is none). Without --host it goes to the hosts that a tool names and
that you allow. --header names the one header that may carry it. Without --header
that is the header that the tool names, or else ` + secret.DefaultHeader + `.

A name is 1 to 64 letters, digits, '_' or '-', the first a letter. A value is
text of ` + fmt.Sprint(secret.MinValueBytes) + ` to ` + fmt.Sprint(secret.MaxValueBytes) + ` bytes.`,
		Example: `  stockade secret set GITHUB_TOKEN --host api.github.com
  pass show api/key | stockade secret set API_KEY --host api.example.com --header X-Api-Key
  stockade secret set DEPLOY_KEY --host deploy.example.com:8443 --store file`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usageError("for example: stockade secret set GITHUB_TOKEN --host api.github.com", "set: it takes one name; the value is typed in or piped in, and is never an argument")
			}
			return cobra.ExactArgs(1)(nil, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error { return runSecretSet(cmd.Context(), a, args[0], opts) },
	}
	f := cmd.Flags()
	f.Var((*stringsFlag)(&opts.hosts), "host", "a host that it may be sent to: NAME or NAME:PORT; may be repeated")
	f.StringVar(&opts.header, "header", "", "the header that may carry it")
	f.StringVar(&opts.store, "store", "", "keyring or file (default: the keyring if it answers)")
	f.BoolVar(&opts.passphrase, "passphrase", false, "protect the file with a passphrase, if it is new")
	return cmd
}

func runSecretSet(ctx context.Context, a *app, name string, opts secretOptions) error {
	r := secret.Record{Info: secret.Info{Name: name, Hosts: opts.hosts, Header: opts.header, SetAt: time.Now().UTC().Truncate(time.Second)}}
	r.Value = secret.NewValue(strings.Repeat("x", secret.MinValueBytes))
	if err := r.Check(); err != nil { // before the value is asked for
		return usageError("`stockade secret set --help` shows what can be kept", "%v", err)
	}
	if opts.passphrase && opts.store == "keyring" {
		return usageError("", "--passphrase is for the file; the keyring has its own")
	}
	if opts.passphrase {
		opts.store = "file"
	}
	vault := a.vault(opts.passphrase)
	store, why, err := vault.ChooseStore(ctx, opts.store)
	switch {
	case errors.Is(err, secret.ErrUnavailable):
		return &exitErr{code: exitError, message: err.Error(), hint: "--store file keeps it in an encrypted file"}
	case err != nil:
		return usageError("", "--store: %v", err)
	case opts.passphrase && a.secretsFile(false).Exists():
		return usageError("without --passphrase it is added to that file, under the key or the passphrase that it has",
			"there is a file of secrets already: %s", a.Dirs.Secrets())
	}
	text, err := a.readSecret(ctx, name)
	if err != nil {
		return err
	}
	a.redactor.Add(text) // before it can be part of an error
	r.Value = secret.NewValue(text)
	if err := r.Check(); err != nil {
		return usageError("`stockade secret set --help` shows what can be kept", "%v", err)
	}
	if err := vault.Set(ctx, store, r); err != nil {
		return secretError(a, err)
	}
	if a.flags.quiet {
		return nil
	}
	if why != nil {
		a.s.note("kept in an encrypted file, because %v", why)
	}
	a.s.note("%s is kept in the %s", name, store.Name())
	if len(r.Hosts) == 0 {
		a.s.hint("it is bound to no host: a tool that you allow decides where it goes. --host NAME binds it")
	}
	return nil
}

// readSecret reads a value from a pipe, or from a terminal without showing it.
func (a *app) readSecret(ctx context.Context, name string) (string, error) {
	if a.s.inTTY {
		return readHidden(ctx, a.s.in, a.s.err, "value of "+name+", which is not shown: ")
	}
	data, err := io.ReadAll(io.LimitReader(a.s.in, secret.MaxValueBytes+3))
	if err != nil {
		return "", fmt.Errorf("read standard input: %w", err)
	}
	if len(data) == 0 {
		return "", usageError("type it on a terminal, or pipe it: pass show api/key | stockade secret set "+name, "no value: standard input is empty")
	}
	return strings.TrimSuffix(strings.TrimSuffix(string(data), "\n"), "\r"), nil
}

func secretError(a *app, err error) error {
	exit := &exitErr{code: exitError, message: err.Error()}
	switch {
	case errors.Is(err, secret.ErrNotFound):
		exit.hint = "`stockade secret list` shows the secrets"
	case errors.Is(err, secret.ErrWrongKey):
		exit.hint = "nothing was changed; try again, or move " + a.Dirs.Secrets() + " away and set the secrets anew"
	case errors.Is(err, secret.ErrDamaged), errors.Is(err, secret.ErrFormat):
		exit.hint = "nothing was changed; put a copy of it back, or move it away and set the secrets anew"
	case errors.Is(err, secret.ErrUnavailable):
		exit.hint = "unlock the keyring, or type the passphrase on a terminal"
	}
	return exit
}

func newSecretListCmd(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use: "list", Short: "List the secrets: names, what each is for, where it is kept; never a value", Args: cobra.NoArgs,
		Example: "  stockade secret list\n  stockade secret list --json | jq -r '.[].name'",
		RunE:    func(cmd *cobra.Command, _ []string) error { return runSecretList(cmd.Context(), a) },
	}
	cmd.Flags().BoolVar(&a.flags.json, "json", false, "print JSON: a list of objects with name, hosts, header, set, store, problem")
	return cmd
}

func runSecretList(ctx context.Context, a *app) error {
	list, err := a.vault(false).List(ctx)
	if err != nil {
		return secretError(a, err)
	}
	if done, err := printedList(a, list, "there are no secrets; `stockade secret set NAME` keeps one"); done {
		return err
	}
	w := table.New(table.Fixed("NAME"), table.Text("HOSTS"), table.Text("HEADER"), table.Fixed("KEPT IN"), table.Fixed("SET"))
	for _, l := range list {
		hosts, header, set := strings.Join(l.Hosts, ", "), l.Header, l.SetAt.Local().Format("2006-01-02 15:04")
		if l.Problem != "" {
			hosts, header, set = "?", "?", "?"
		}
		if hosts == "" {
			hosts = "as the tool says"
		}
		if header == "" {
			header = "as the tool says"
		}
		w.Row(l.Name, hosts, header, l.Store, set)
	}
	if err := a.s.table(w); err != nil {
		return err
	}
	for _, l := range list {
		if l.Problem != "" {
			a.s.note("%s: %s", l.Name, l.Problem)
		}
	}
	return nil
}

func newSecretRemoveCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "remove NAME", Short: "Forget a secret", Args: cobra.ExactArgs(1),
		Long: `Remove a secret from the keyring or the file. If somebody else may know it,
revoke it at its issuer, too.`,
		Example: "  stockade secret remove GITHUB_TOKEN",
		RunE: func(cmd *cobra.Command, args []string) error {
			from, err := a.vault(false).Remove(cmd.Context(), args[0])
			if err != nil {
				return secretError(a, err)
			}
			if !a.flags.quiet {
				a.s.note("%s is removed from the %s", args[0], from)
			}
			return nil
		},
	}
}
