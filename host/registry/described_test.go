package registry_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stockade-dev/stockade/host/registry"
	"github.com/stockade-dev/stockade/host/registry/description"
	"github.com/stockade-dev/stockade/host/registry/lock"
	"github.com/stockade-dev/stockade/host/registry/sign"
	"github.com/stockade-dev/stockade/host/registry/source"
	"github.com/stockade-dev/stockade/host/registry/store"
	"github.com/stockade-dev/stockade/host/registry/trust"
	"github.com/stockade-dev/stockade/host/tool"
	"github.com/stockade-dev/stockade/host/wasm/wasmtest"
)

// command is a program for WASI that does nothing. No two versions are the same.
func command(version string) []byte {
	b := wasmtest.New()
	b.Memory(1, 1)
	b.ExportMemory("memory")
	b.Data(0, []byte(version))
	b.Func("_start", nil, nil, nil)
	return b.Bytes()
}

// plugin is one of Extism's, with a function run.
func plugin() []byte {
	b := wasmtest.New()
	b.ImportFunc("extism:host/env", "input_length", nil, []wasmtest.ValType{wasmtest.I64})
	b.Memory(1, 1)
	b.ExportMemory("memory")
	b.Func("run", nil, []wasmtest.ValType{wasmtest.I32}, nil, wasmtest.I32Const(0))
	return b.Bytes()
}

const describedText = "name = \"jq\"\n[tools.run]\ndescription = \"Runs a filter.\"\nargs = [\"{filter}\"]\nfiles = \"read\"\nparameters.filter.type = \"string\"\n"

// describing puts what a text says into a module.
func (w *world) describing(text string) func(context.Context, *tool.Module) (*tool.Module, error) {
	return func(ctx context.Context, mod *tool.Module) (*tool.Module, error) {
		d, err := description.Parse("d.toml", []byte(text))
		if err != nil {
			return nil, err
		}
		return d.Add(ctx, w.sandbox, mod)
	}
}

// A signature that cosign made with a key, over an OCI manifest.
const (
	cosignKey = `-----BEGIN PUBLIC KEY-----
MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAELKhD7F5OKy77Z582Y6h0u1J3GNA+
kvUsh4eKpd1lwkDAzfFDs7yXEExsEkPPuiQJBelDT68n7PDIWB/QEY7mrA==
-----END PUBLIC KEY-----
`
	cosignPlace     = "registry-testing.svc.lan/busybox"
	cosignManifest  = "sha256:f3cfc9d0dbf931d3db4685ec659b7ac68e2a578219da4aae65427886e649b06b"
	cosignPayload   = `{"critical":{"identity":{"docker-reference":"registry-testing.svc.lan/busybox"},"image":{"docker-manifest-digest":"sha256:f3cfc9d0dbf931d3db4685ec659b7ac68e2a578219da4aae65427886e649b06b"},"type":"cosign container image signature"},"optional":null}`
	cosignSignature = "MEYCIQDWWxPQa3XFUsPbyTY+n+bZu/6Pwhg5WwyYDQtEfQho9wIhAPkKW7eub8b7BX+YbbRac8TwwIrK5KxvdtQ6NuoD+ivW"
)

// signed is a module as it comes from a registry, signed by ada.
func signedByAda(code []byte) *source.Candidate {
	return &source.Candidate{
		Code: code, Digest: hash(code), Source: "oci://" + cosignPlace + ":1", Repository: cosignPlace, ManifestDigest: cosignManifest,
		Evidence: sign.Evidence{Cosign: []sign.Cosign{{Payload: []byte(cosignPayload), Signature: cosignSignature}}},
	}
}

func ada(t testing.TB, revoked ...trust.Revocation) *trust.Rules {
	t.Helper()
	k, err := sign.ParsePublicKeyPEM([]byte(cosignKey))
	must(t, err)
	return trust.Combine(&trust.File{Name: "trust.toml", Publishers: []trust.Publisher{{Name: "ada", Namespaces: []string{cosignPlace}, Keys: []sign.PublicKey{k}, Threshold: 1}}, Revoked: revoked})
}

func (w *world) review(c *source.Candidate, text string) (*registry.Review, error) {
	r := &registry.Reviewer{Store: w.store, Sandbox: w.sandbox, Trust: ada(w.t), Now: func() time.Time { return day0 }}
	return r.Review(w.t.Context(), registry.Request{Candidate: c, Describe: w.describing(text)})
}

// TestADescribedModuleIsSignedAsItCame: signatures and revocations are about the module
// without the person's description, and nobody can pretend that it was another module.
func TestADescribedModuleIsSignedAsItCame(t *testing.T) {
	w := newWorld(t)
	code := command("1")
	review, err := w.review(signedByAda(code), describedText)
	must(t, err)
	r := review.Record
	if r.Signer != "ada" || r.BaseDigest != hash(code) || r.Digest == r.BaseDigest || r.OriginalDigest() != r.BaseDigest {
		t.Fatalf("signed by %q, base %s, digest %s", r.Signer, r.BaseDigest, r.Digest)
	}
	must(t, registry.Save(w.store, review), registry.Verify(w.store, ada(t), r))
	off := func(rules *trust.Rules) string {
		added, err := registry.Modules(w.store, registry.Scope{Project: &registry.Project{Workspace: t.TempDir()}, Trust: rules, NeedsSigners: true})
		must(t, err)
		return added[0].OffReason()
	}
	for _, tt := range []struct {
		what  string
		rules *trust.Rules
		want  string
	}{
		{"as it is", ada(t), ""},
		{"revoked as it came", ada(t, trust.Revocation{Digest: "sha256:" + r.BaseDigest}), "is revoked"},
		{"revoked with its description", ada(t, trust.Revocation{Digest: "sha256:" + r.Digest}), "is revoked"},
		{"of somebody who is not known any more", trust.Combine(), "does not count by what you trust now"},
	} {
		if got := off(tt.rules); tt.want == "" && got != "" || !strings.Contains(got, tt.want) {
			t.Errorf("%s: it is off because %q", tt.what, got)
		}
	}
	if _, err := registry.PinnedLockEntry(r, t.TempDir()); !errors.Is(err, registry.ErrDescribed) {
		t.Errorf("it can be locked: %v", err)
	}
	if _, ok := registry.CandidateFromStore(w.store, lock.Module{Source: r.Source, Digest: r.Digest, ManifestDigest: r.ManifestDigest}); ok {
		t.Error("a lockfile that names it gets it, with the signatures of what it was")
	}

	// Another module, of which the index says that it was the signed one.
	evil, err := w.describing(describedText)(t.Context(), tool.NewModule("jq", tool.OriginFile, "", command("evil")))
	must(t, err)
	bytes, err := evil.Read()
	must(t, err, w.store.Change([][]byte{bytes}, func(records []store.Record) ([]store.Record, error) {
		records[0].Digest, records[0].Bytes = evil.Digest, evil.Bytes
		return records, nil
	}))
	if got := off(ada(t)); !strings.Contains(got, "it is not the module that was signed") {
		t.Errorf("another module counts as signed: %q", got)
	}
	records, err := w.store.Records()
	must(t, err)
	if err := registry.Verify(w.store, ada(t), records[0]); err == nil || !strings.Contains(err.Error(), "it is not the module that was signed") {
		t.Errorf("it is verified: %v", err)
	}
}

// TestWhatIsKeptOfADescribedModule: allowances stay as long as neither the module nor its
// description changes.
func TestWhatIsKeptOfADescribedModule(t *testing.T) {
	changed := func(old, new string) string { return strings.Replace(describedText, old, new, 1) }
	for _, tt := range []struct {
		what  string
		code  []byte
		text  string
		keeps bool
		says  string
	}{
		{"nothing", command("1"), describedText, true, "[]"},
		{"other bytes, of which nothing says that they are no older ones", command("2"), describedText, false, "[]"},
		{"how it is run", command("1"), changed("[\"{filter}\"]", "[\"-r\", \"{filter}\"]"), false, "run is run in another way"},
		{"what it asks for", command("1"), changed("read", "write"), false, "run asks for something else"},
		{"its name for the model", command("1"), changed("Runs a filter.", "Runs it."), false, "changed description: run"},
		{"a parameter", command("1"), changed("string", "integer"), false, "changed arguments: run"},
	} {
		t.Run(tt.what, func(t *testing.T) {
			w := newWorld(t)
			first, err := w.review(signedByAda(command("1")), describedText)
			must(t, err)
			first.Record.Allowances = map[string]tool.Allowance{"": {Read: []string{"/data"}}}
			must(t, registry.Save(w.store, first))
			again, err := w.review(signedByAda(tt.code), tt.text)
			must(t, err)
			if again.KeepsAllowance() != tt.keeps || (len(again.Record.Allowances) > 0) != tt.keeps || !strings.Contains(fmt.Sprint(again.Changes), tt.says) {
				t.Errorf("keeps %v, allowed %v, changes %v", again.KeepsAllowance(), again.Record.Allowances, again.Changes)
			}
		})
	}
}

// TestBadDescriptionsLeaveNothing tries to add a module with each bad description. After
// that the store has the same bytes, and the module can be added with the right one.
func TestBadDescriptionsLeaveNothing(t *testing.T) {
	run := "[tools.run]\ndescription = \"Runs.\"\n"
	packed := func(w *world) []byte {
		mod, err := w.describing(describedText)(t.Context(), tool.NewModule("jq", tool.OriginFile, "", command("1")))
		must(t, err)
		code, err := mod.Read()
		must(t, err)
		return code
	}
	w := newWorld(t)
	w.addFile("clock", "1.0.0", oneTool("now", ""))
	before := tree(t, w.dir)
	for what, e := range map[string]sign.Evidence{"cosign": signedByAda(nil).Evidence, "cosign 3": {Bundles: [][]byte{[]byte("{}")}}, "ours": {Envelopes: [][]byte{[]byte("{}")}}} {
		c := signedByAda(packed(w))
		c.Evidence = e
		if _, err := w.review(c, describedText); err == nil || !strings.Contains(err.Error(), "yours would take the place of that") {
			t.Errorf("over a description that is signed by %s: %v", what, err)
		}
	}
	for _, tt := range []struct {
		what string
		code []byte
		text string
		want string
	}{
		{"an unknown key", command("1"), run + "arg = []", "did you mean"},
		{"a text that names no parameter", command("1"), run + "args = [\"{x}\"]", "{x} is not a parameter"},
		{"a parameter of which nothing comes", command("1"), run + "parameters.x.type = \"string\"", "it is not used"},
		{"10 MB", command("1"), run + strings.Repeat("# x\n", 5<<19), "more than 1048576 bytes"},
		{"deep", command("1"), run + "args = " + strings.Repeat("[", 1<<19), "brackets within each other"},
		{"a NUL", command("1"), run + "stdin = \"\\u0000\"", "NUL"},
		{"a huge array", command("1"), run + "args = [" + strings.Repeat("\"a\",", 1<<17) + "]", "at most 64"},
		{"a huge description", command("1"), "[tools.run]\ndescription = \"" + strings.Repeat("x", 9<<10) + "\"", "description has 9216 bytes"},
		{"the name of a built-in tool", command("1"), "name = \"bash\"\n" + run, "is the name of a built-in tool"},
		{"a name that looks like another module's", command("1"), "name = \"c1ock\"\n" + run, `looks like "clock"`},
		{"what only plugins have", command("1"), run + "function = \"run\"", "has no meaning for a WASI command"},
		{"the network, for a command", command("1"), run + "network = true", "asks for more than files"},
		{"secrets, for a command", command("1"), run + "secrets = [\"KEY\"]", "asks for more than files"},
		{"what only commands have", plugin(), run + "args = [\"x\"]", "has no meaning for an Extism plugin"},
		{"a function that is not exported", plugin(), run + "function = \"walk\"", `it does not export the function "walk"`},
		{"a native module", module("weather", "1.0.0", weatherTool), run, "it describes itself"},
		{"a command that does not say its tools, with a file that says none", command("1"), "name = \"x\"", "names no tools"},
		{"a module that is cut off", command("1")[:20], run, "describe "},
	} {
		t.Run(tt.what, func(t *testing.T) {
			c := &source.Candidate{Code: tt.code, Digest: hash(tt.code), Source: "/made/here.wasm"}
			if review, err := w.review(c, tt.text); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%v, %.300v", review, err)
			}
			if !same(before, tree(t, w.dir)) {
				t.Fatal("the store has changed")
			}
		})
	}
	stays := func(what string, c *source.Candidate, want string) {
		t.Helper()
		if _, err := w.review(c, describedText); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", what, err)
		}
	}
	changed := signedByAda(command("1"))
	changed.Code = command("2")
	stays("bytes that changed after they were fetched", changed, "has changed since")
	stays("what was signed with a description of its own", signedByAda(packed(w)), "signed with a description of its own")
	enveloped := signedByAda(command("1"))
	enveloped.Evidence = sign.Evidence{Envelopes: [][]byte{[]byte("{}")}}
	stays("what a statement about a description was signed for", enveloped, "signed with a description of its own")
	if !same(before, tree(t, w.dir)) {
		t.Fatal("the store has changed")
	}
	unsigned := signedByAda(packed(w))
	unsigned.Evidence = sign.Evidence{}
	for what, c := range map[string]*source.Candidate{"as it should be": signedByAda(command("1")), "a description in the place of another": unsigned} {
		review, err := w.review(c, describedText)
		must(t, err)
		if err := registry.Save(w.store, review); err != nil {
			t.Errorf("the counter-proof: %s: %v", what, err)
		}
		must(t, w.store.Change(nil, func([]store.Record) ([]store.Record, error) { return nil, nil }))
	}
}

// TestABaseIsAHash: what of the index is no digest is not read.
func TestABaseIsAHash(t *testing.T) {
	w := newWorld(t)
	review, err := w.review(signedByAda(command("1")), describedText)
	must(t, err)
	data, err := json.Marshal(review.Record)
	must(t, err)
	if !strings.Contains(string(data), `"base":"`+review.Record.BaseDigest) {
		t.Errorf("the record does not keep it: %s", data)
	}
	review.Record.BaseDigest = "../" + review.Record.BaseDigest
	if err := registry.Save(w.store, review); err == nil || !strings.Contains(err.Error(), "is not a SHA-256") {
		t.Errorf("kept: %v", err)
	}
}
