package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/mod/semver"

	"github.com/stockade-dev/stockade/cmd/stockade/internal/humanize"
	"github.com/stockade-dev/stockade/cmd/stockade/internal/terminal"
	"github.com/stockade-dev/stockade/host/registry"
	"github.com/stockade-dev/stockade/host/registry/oci"
	"github.com/stockade-dev/stockade/host/registry/sign"
	"github.com/stockade-dev/stockade/host/registry/source"
	"github.com/stockade-dev/stockade/host/shellword"
	"github.com/stockade-dev/stockade/host/tool"
)

// newToolShareCmds returns the commands with which authors share a module.
func newToolShareCmds(a *app) []*cobra.Command {
	var algorithm string
	key := &cobra.Command{
		Use: "key FILE", Short: "Make a key that signs modules",
		Long: `Make a key. FILE is the private key, which nobody else must have; FILE.pub is the
public key. People who add your modules trust it: ` + "`stockade tool trust add`" + `.
They can also trust keys of cosign.`,
		Example: "  stockade tool key ~/keys/tools.key", Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error { return runToolKey(a, args[0], sign.Algorithm(algorithm)) },
	}
	key.Flags().StringVar(&algorithm, "algorithm", string(sign.Ed25519), "ed25519 or ecdsa-p256")

	var (
		keyFile, repository string
		expires             time.Duration
	)
	signCmd := &cobra.Command{
		Use: "sign FILE.wasm --key KEY", Short: "Sign a module, into a file beside it",
		Long: `Sign a module: its bytes, name, version, description and requests. The
signature is written into FILE.wasm` + source.SignatureSuffix + `, to be shared with the module.
It holds for the repository that --repository names, or for the file itself.`,
		Example: "  stockade tool sign weather.wasm --key ~/keys/tools.key\n" +
			"  stockade tool sign weather.wasm --key ~/keys/tools.key --repository registry.example.org/tools/weather",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return runToolSign(cmd.Context(), a, args[0], keyFile, repository, expires)
		},
	}
	signCmd.Flags().StringVar(&keyFile, "key", "", "the file of the private key")
	signCmd.Flags().StringVar(&repository, "repository", "", "HOST/REPOSITORY from which people will add it; empty: they add the file")
	signCmd.Flags().DurationVar(&expires, "expires", 0, "how long the signature can be used to add the module, for example 8760h (default: for ever)")

	var pushKey string
	var force bool
	push := &cobra.Command{
		Use: "push FILE.wasm oci://HOST/REPOSITORY:TAG", Short: "Push a module to a registry, with its signature",
		Long: `Push a module to a registry, in the CNCF's layout for WebAssembly, and its
signature beside it: the one that --key makes, or that of
FILE.wasm` + source.SignatureSuffix + `. The default tag is the version. A path instead of oci://
is an OCI layout, for machines without a network.

A tag that is a version, such as 1.2.0, can only be pushed for that version, and
once; --force pushes all the same. Other tags, such as latest, may move.

Your credentials are those that docker has for the registry.`,
		Example: "  stockade tool push weather.wasm oci://registry.example.org/tools/weather:1.2.0 --key ~/keys/tools.key\n" +
			"  stockade tool push weather.wasm ./layout:1.2.0",
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			return runToolPush(cmd.Context(), a, args[0], args[1], pushKey, force)
		},
	}
	push.Flags().StringVar(&pushKey, "key", "", "sign it for this repository with the private key in this file")
	push.Flags().BoolVar(&force, "force", false, "push even if the tag names another version, or is published with other bytes")
	addReachFlag(push, a)
	return []*cobra.Command{key, signCmd, push}
}

func runToolKey(a *app, path string, algorithm sign.Algorithm) error {
	k, err := sign.Generate(algorithm)
	if err != nil {
		return usageError("--algorithm is ed25519 or ecdsa-p256", "%v", err)
	}
	private, err := k.PEM()
	if err != nil {
		return err
	}
	for _, f := range []struct {
		name string
		data []byte
		mode os.FileMode
	}{{path, private, 0o600}, {path + ".pub", k.Public().PEM(), 0o644}} {
		file, err := os.OpenFile(f.name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, f.mode)
		if errors.Is(err, fs.ErrExist) {
			return usageError("name another file; a key is never written over", "%s is there already", f.name)
		}
		if err != nil {
			return err
		}
		_, err = file.Write(f.data)
		if err := errors.Join(err, file.Close()); err != nil {
			return err
		}
	}
	fmt.Fprintf(a.s.out, "%s\n", k.Public())
	a.s.note("the key is in %s, and the public one, which others trust, in %s.pub", path, path)
	return nil
}

// readKey reads a private key from a file. It is an error if others have access to the file.
func readKey(path string) (sign.PrivateKey, error) {
	if path == "" {
		return sign.PrivateKey{}, usageError("stockade tool key FILE makes one", "--key names the file of a private key")
	}
	st, err := os.Stat(path)
	if err != nil {
		return sign.PrivateKey{}, usageError("stockade tool key FILE makes one", "%v", err)
	}
	if st.Mode().Perm()&0o077 != 0 {
		return sign.PrivateKey{}, usageError("chmod 600 "+path, "%s is not used: others can read it", path)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return sign.PrivateKey{}, err
	}
	k, err := sign.ParsePrivateKey(data)
	if err != nil {
		return k, usageError("", "%s: %v", path, err)
	}
	return k, nil
}

// readPacked reads a module that can be shared, and its manifest. A module whose version is no
// semantic version is a usage error.
func (a *app) readPacked(ctx context.Context, file string) (*tool.Module, tool.Manifest, error) {
	mod, err := registry.ReadModule(file)
	if err != nil {
		return nil, tool.Manifest{}, usageError("name the file of a module", "%v", err)
	}
	m, err := a.door().Sandbox().Describe(ctx, mod)
	if err != nil {
		return nil, m, err
	}
	if !sign.ValidVersion(m.Version) {
		if m.Kind() != "" {
			return nil, m, usageError("say version = \"0.1.0\" in a description: stockade tool pack "+file+" --describe FILE.toml", "%s has the version %q, which is no semantic version", file, m.Version)
		}
		return nil, m, usageError("the version is what tool.Module in the source of the module says, such as \"0.1.0\"; then build it again",
			"%s has the version %q, which is no semantic version", file, m.Version)
	}
	return mod, m, nil
}

// signModule returns a signature over a module. repository is HOST/REPOSITORY; empty: the file
// is signed. expires is the time for which the signature is valid; 0: forever.
func signModule(mod *tool.Module, m tool.Manifest, repository string, expires time.Duration, k sign.PrivateKey) ([]byte, error) {
	st := registry.Statement(mod, m, repository)
	st.Issued = time.Now()
	if expires > 0 {
		st.Expires = st.Issued.Add(expires)
	}
	return sign.Sign(st, k)
}

func runToolSign(ctx context.Context, a *app, file, keyFile, repository string, expires time.Duration) error {
	k, err := readKey(keyFile)
	if err != nil {
		return err
	}
	repository = strings.TrimPrefix(repository, "oci://")
	if repository != "" && !sign.ValidRepository(repository) {
		return usageError("for example --repository registry.example.org/tools/weather", "%q is not HOST/REPOSITORY", repository)
	}
	mod, m, err := a.readPacked(ctx, file)
	if err != nil {
		return err
	}
	data, err := signModule(mod, m, repository, expires, k)
	if err != nil {
		return err
	}
	if err := os.WriteFile(file+source.SignatureSuffix, data, 0o644); err != nil {
		return err
	}
	fmt.Fprintf(a.s.out, "signed %s %s, sha256 %s, by %s: %s\n", m.Name, m.Version, mod.Digest, k.Public().ID(), terminal.Line(file+source.SignatureSuffix))
	if repository == "" {
		a.s.note("the signature is for the file; one that is pushed is signed for its repository: stockade tool push %s oci://HOST/REPOSITORY --key %s", file, keyFile)
	}
	return nil
}

func runToolPush(ctx context.Context, a *app, file, ref, keyFile string, force bool) error {
	mod, m, err := a.readPacked(ctx, file)
	if err != nil {
		return err
	}
	repository, tag, push, err := a.pushTarget(file, ref, m.Version)
	if err != nil {
		return err
	}
	tagVersion := strings.TrimPrefix(tag, "v")
	once := !force && sign.ValidVersion(tagVersion)
	if once && semver.Compare("v"+tagVersion, "v"+m.Version) != 0 {
		return usageError("push it without a tag, or with a tag that is no version, such as latest; --force pushes it all the same", "the module has version %s, and the tag %s names another one", m.Version, tag)
	}
	var envelopes [][]byte
	beside, err := os.ReadFile(file + source.SignatureSuffix)
	switch {
	case keyFile != "":
		k, err := readKey(keyFile)
		if err != nil {
			return err
		}
		data, err := signModule(mod, m, repository, 0, k)
		if err != nil {
			return err
		}
		envelopes = append(envelopes, data)
	case errors.Is(err, fs.ErrNotExist):
		a.s.note("warning: it is not signed; --key signs it")
	case err != nil:
		return err
	default:
		if err := registry.CheckSignature(beside, mod, repository); err != nil {
			return usageError(fmt.Sprintf("stockade tool push %s %s --key KEY signs it for this repository", file, ref), "%s: %v", file+source.SignatureSuffix, err)
		}
		envelopes = append(envelopes, beside)
	}
	code, err := mod.Read()
	if err != nil {
		return err
	}
	digest, named, err := push(ctx, code, oci.Meta{Title: m.Name + ".wasm", Version: m.Version, Description: registryDescription(m), Created: time.Unix(0, 0), NoOverwrite: once}, envelopes)
	if errors.Is(err, oci.ErrPublished) {
		return usageError("give the module another version, and build it again; --force replaces this version, and `tool update` then asks about it, or refuses it", "%v", err)
	}
	if err != nil {
		return fetchError(ref, err)
	}
	fmt.Fprintf(a.s.out, "pushed %s %s to %s, %s\n", m.Name, m.Version, terminal.Line(named), digest)
	if word, ok := shellword.Quote(named); ok {
		a.s.hint("others add it: stockade tool add %s", word)
	}
	return nil
}

// pusher is a function that pushes a module. It returns the digest and the full name that the
// module has at its destination.
type pusher func(ctx context.Context, code []byte, meta oci.Meta, envelopes [][]byte) (digest, named string, err error)

// looksLikeHost reports whether the first part of a path could be the host of a registry.
func looksLikeHost(path string) bool {
	first, _, _ := strings.Cut(filepath.ToSlash(path), "/")
	return !filepath.IsAbs(path) && first != "." && first != ".." && (strings.ContainsAny(first, ".:") || strings.EqualFold(first, "localhost"))
}

// pushTarget returns the destination of a push: a registry or a layout. repository is the name
// that a signature covers; empty for a layout. tag is version if ref has no tag.
func (a *app) pushTarget(file, ref, version string) (repository, tag string, push pusher, err error) {
	usage := "stockade tool push FILE.wasm oci://HOST/REPOSITORY:TAG"
	if !strings.HasPrefix(ref, oci.Scheme) {
		if strings.Contains(ref, "://") {
			return "", "", nil, usageError(usage, "%q is neither oci:// nor a folder", ref)
		}
		l := oci.ParseLayout(ref)
		if looksLikeHost(l.Dir) {
			push, there := formatFlag("stockade tool push", file), oci.Scheme+ref
			if !strings.Contains(ref, "/") {
				there = oci.Scheme + "HOST/REPOSITORY:TAG"
			}
			return "", "", nil, usageError(fmt.Sprintf("a registry: %s; a folder: %s", formatFlag(push, there), formatFlag(push, "./"+ref)), "%q could be a registry or a folder", ref)
		}
		l.Tag = cmp.Or(l.Tag, version)
		return "", l.Tag, func(ctx context.Context, code []byte, meta oci.Meta, envelopes [][]byte) (string, string, error) {
			digest, err := l.Push(ctx, code, meta, envelopes)
			return digest, l.String(), err
		}, nil
	}
	if i := strings.LastIndexByte(ref, '/'); !strings.ContainsAny(ref[i:], ":@") {
		ref += ":" + version
	}
	target, err := oci.ParseReference(ref)
	if err != nil {
		return "", "", nil, usageError(usage, "%v", err)
	}
	out, rules, err := a.fetchEgress()
	if err != nil {
		return "", "", nil, err
	}
	client := oci.Client{Credentials: a.credentials}
	if client.HTTP, err = out.ClientFactory(rules, a.Ceiling, true)(target.Base()); err != nil {
		return "", "", nil, err
	}
	return target.Repository(), target.Tag, func(ctx context.Context, code []byte, meta oci.Meta, envelopes [][]byte) (string, string, error) {
		digest, err := client.Push(ctx, target, code, meta, envelopes)
		return digest, target.String(), err
	}, nil
}

// registryDescription returns a one-line description of a module for a registry.
func registryDescription(m tool.Manifest) string {
	var names []string
	for _, s := range m.Tools {
		names = append(names, s.Name)
	}
	return humanize.Clip(fmt.Sprintf("Tools for LLM agents: %s", strings.Join(names, ", ")), 200)
}
