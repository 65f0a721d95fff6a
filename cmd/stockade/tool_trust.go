package main

import (
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/stockade-dev/stockade/cmd/stockade/internal/terminal"
	"github.com/stockade-dev/stockade/host/registry/sign"
	"github.com/stockade-dev/stockade/host/registry/trust"
)

func newToolTrustCmd(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use: "trust", Short: "List, add and remove trusted publishers of modules",
		Long: "List, add and remove the publishers whose signatures count, and revoke keys and\nmodules. They are in trust.toml beside your agent.toml: see `stockade help trust`.",
	}
	list := &cobra.Command{
		Use: "list", Short: "List the publishers that you know, and what is revoked", Example: "  stockade tool trust list", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return runTrustList(a) },
	}
	var (
		p       trust.Publisher
		expires string
	)
	add := &cobra.Command{
		Use: "add NAME KEY...", Short: "Let the signatures of a publisher count",
		Long: `Let the signatures of a publisher count. NAME is shown as the signer. KEY is a
file with a public key, as ` + "`stockade tool key`" + ` and cosign write it, or the key
itself, such as ed25519:... A namespace is a repository with all below it, a host,
or file:NAME for the module of that name that comes as a file.`,
		Example: "  stockade tool trust add example.org tools.pub --namespace registry.example.org/tools\n" +
			"  stockade tool trust add ada ada.pub --namespace 'file:*'",
		Args: cobra.MinimumNArgs(2),
		RunE: func(_ *cobra.Command, args []string) error {
			p.Name = args[0]
			for _, word := range args[1:] {
				k, err := publicKey(word)
				if err != nil {
					return err
				}
				p.Keys = append(p.Keys, k)
			}
			if expires != "" {
				at, err := time.Parse(time.DateOnly, expires)
				if err != nil {
					return usageError("for example --expires 2028-01-01", "--expires: %v", err)
				}
				p.Expires = at
			}
			if len(p.Namespaces) == 0 {
				return usageError("for example --namespace registry.example.org/tools, or --namespace 'file:*' for files", "--namespace says what %s may sign", p.Name)
			}
			if err := a.Dirs.ChangePublishers(func(data []byte) ([]byte, error) { return trust.AddPublisher(data, p) }); err != nil {
				return trustError(err)
			}
			for _, k := range p.Keys {
				fmt.Fprintf(a.s.out, "trusted: %s of %s\n", k.ID(), p.Name)
			}
			return nil
		},
	}
	add.Flags().Var((*stringsFlag)(&p.Namespaces), "namespace", "what the publisher may sign; may be repeated")
	add.Flags().IntVar(&p.Threshold, "threshold", 1, "how many of the keys have to sign")
	add.Flags().StringVar(&expires, "expires", "", "the day from which on nothing new of the publisher is accepted, such as 2028-01-01 (default: never)")
	remove := &cobra.Command{
		Use: "remove NAME", Short: "Forget a publisher", Example: "  stockade tool trust remove example.org", Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			if err := a.Dirs.ChangePublishers(func(data []byte) ([]byte, error) { return trust.RemovePublisher(data, args[0]) }); err != nil {
				return trustError(err)
			}
			fmt.Fprintf(a.s.out, "removed: %s\n", terminal.Line(args[0]))
			return nil
		},
	}
	var why string
	revoke := &cobra.Command{
		Use: "revoke KEY|sha256:HEX", Short: "Reject modules that a key has signed, or that have this digest",
		Long: `Revoke a key, by its file, its text or its ID, or a module, by its SHA-256 or that of
its manifest. ` + "`stockade tool verify`" + ` then names the affected modules that you have.`,
		Example: "  stockade tool trust revoke ed25519:3bf0a9e1c2d4f5061728394a5b6c7d8e --why stolen", Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			v := trust.Revocation{Digest: args[0], Why: why}
			if !strings.HasPrefix(args[0], "sha256:") {
				v = trust.Revocation{Key: args[0], Why: why}
				if !sign.ValidID(args[0]) {
					k, err := publicKey(args[0])
					if err != nil {
						return err
					}
					v.Key = k.ID()
				}
			}
			if err := a.Dirs.ChangePublishers(func(data []byte) ([]byte, error) { return trust.Revoke(data, v) }); err != nil {
				return trustError(err)
			}
			fmt.Fprintf(a.s.out, "revoked: %s\n", terminal.Line(v.Key+v.Digest))
			return nil
		},
	}
	revoke.Flags().StringVar(&why, "why", "", "the reason, for others to read")
	cmd.AddCommand(list, add, remove, revoke)
	return cmd
}

func trustError(err error) error {
	if errors.As(err, new(*exitErr)) {
		return err
	}
	return usageError("`stockade tool trust list` shows what is there", "%v", err)
}

// publicKey returns the key that a word on the command line names: the word is the key itself,
// or the path of a file.
func publicKey(word string) (sign.PublicKey, error) {
	if k, err := sign.ParsePublicKey(word); err == nil {
		return k, nil
	}
	data, err := os.ReadFile(word)
	if errors.Is(err, fs.ErrNotExist) {
		return sign.PublicKey{}, usageError("name the file of a public key, or the key itself, such as ed25519:...", "%q is neither a file nor a key", word)
	}
	if err != nil {
		return sign.PublicKey{}, err
	}
	if b, _ := pem.Decode(data); b != nil && strings.Contains(b.Type, "PRIVATE") {
		return sign.PublicKey{}, usageError("name "+word+".pub", "%s holds a private key; name the public one", word)
	}
	k, err := sign.ParsePublicKeyPEM(data)
	if err != nil {
		k, err = sign.ParsePublicKey(strings.TrimSpace(string(data)))
	}
	if err != nil {
		return k, usageError("it is a file as `stockade tool key` and cosign write it", "%s: %v", word, err)
	}
	return k, nil
}

func runTrustList(a *app) error {
	files, err := a.TrustFiles(adminPolicyPlace())
	if err != nil {
		return err
	}
	width, rows := a.s.width(), 0
	line := func(indent, text string) {
		for _, row := range terminal.Wrap(terminal.Line(text), width-len(indent)-1) {
			fmt.Fprintln(a.s.out, indent+row)
		}
	}
	for _, f := range files {
		for _, p := range f.Publishers {
			rows++
			until := ""
			if !p.Expires.IsZero() {
				until = ", until " + p.Expires.Format(time.DateOnly)
			}
			line("", p.Name+until)
			line("  ", "may sign "+strings.Join(p.Namespaces, ", "))
			title := "key"
			if p.Threshold > 1 {
				title = fmt.Sprintf("%d of %d keys needed:", p.Threshold, len(p.Keys))
			}
			for _, k := range p.Keys {
				line("  ", title+" "+k.ID())
				title = "key"
			}
			line("  ", "in "+f.Name)
		}
	}
	for _, f := range files {
		for _, v := range f.Revoked {
			rows++
			line("", "revoked: "+v.Key+v.Digest)
			if v.Why != "" {
				line("  ", "because "+v.Why)
			}
			line("  ", "in "+f.Name)
		}
	}
	if rows == 0 {
		a.s.note("nobody's signatures count yet")
		a.s.hint("stockade tool trust add NAME KEY --namespace HOST/REPOSITORY")
	}
	return nil
}
