package registry_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stockade-dev/stockade/host/egress"
	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/registry"
	"github.com/stockade-dev/stockade/host/registry/oci"
	"github.com/stockade-dev/stockade/host/registry/sign"
	"github.com/stockade-dev/stockade/host/registry/source"
	"github.com/stockade-dev/stockade/host/registry/store"
	"github.com/stockade-dev/stockade/host/registry/trust"
	"github.com/stockade-dev/stockade/host/sandbox"
	"github.com/stockade-dev/stockade/host/tool"
	"github.com/stockade-dev/stockade/host/wasm/wasmtest"
)

func must(t testing.TB, errs ...error) {
	t.Helper()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
}

func hash(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// page is the answer of a registry to requests for one path.
type page struct {
	mediaType string
	body      []byte
}

// web is a registry that answers what a test puts there, true or not.
type web struct {
	host string

	mu    sync.Mutex
	pages map[string]page // by the path behind /v2/
	// instead answers a request in another way, unless it returns false.
	instead func(w http.ResponseWriter, r *http.Request) bool
	asked   int
}

func newWeb(t testing.TB) *web {
	w := &web{pages: map[string]page{}}
	s := httptest.NewServer(w)
	t.Cleanup(s.Close)
	w.host = strings.Replace(s.URL, "http://127.0.0.1:", "localhost:", 1)
	return w
}

func (w *web) ServeHTTP(out http.ResponseWriter, r *http.Request) {
	w.mu.Lock()
	w.asked++
	p, ok := w.pages[strings.TrimPrefix(r.URL.Path, "/v2/")]
	instead := w.instead
	w.mu.Unlock()
	switch {
	case instead != nil && r.Method != http.MethodHead && instead(out, r):
		return
	case !ok:
		http.NotFound(out, r)
		return
	}
	out.Header().Set("Content-Type", p.mediaType)
	out.Header().Set("Content-Length", strconv.Itoa(len(p.body)))
	if strings.Contains(r.URL.Path, "/manifests/") {
		out.Header().Set("Docker-Content-Digest", "sha256:"+hash(p.body))
	}
	if r.Method != http.MethodHead {
		_, _ = out.Write(p.body)
	}
}

const (
	manifestType = "application/vnd.oci.image.manifest.v1+json"
	indexType    = "application/vnd.oci.image.index.v1+json"
)

// descriptor and manifest are those of an OCI registry.
type descriptor struct {
	MediaType    string `json:"mediaType"`
	Digest       string `json:"digest"`
	Size         int    `json:"size"`
	ArtifactType string `json:"artifactType,omitempty"`
}

type manifest struct {
	SchemaVersion int               `json:"schemaVersion"`
	MediaType     string            `json:"mediaType"`
	ArtifactType  string            `json:"artifactType,omitempty"`
	Config        descriptor        `json:"config"`
	Layers        []descriptor      `json:"layers"`
	Subject       *descriptor       `json:"subject,omitempty"`
	Annotations   map[string]string `json:"annotations,omitempty"`
}

func (w *web) blob(repo, mediaType string, data []byte) descriptor {
	d := descriptor{MediaType: mediaType, Digest: "sha256:" + hash(data), Size: len(data)}
	w.pages[repo+"/blobs/"+d.Digest] = page{"application/octet-stream", data}
	return d
}

// manifest puts a manifest into the registry, under its digest and some names.
func (w *web) manifest(repo string, m manifest, names ...string) descriptor {
	data, err := json.Marshal(m)
	if err != nil {
		panic(err)
	}
	d := descriptor{MediaType: manifestType, Digest: "sha256:" + hash(data), Size: len(data), ArtifactType: m.ArtifactType}
	for _, name := range append(names, d.Digest) {
		w.pages[repo+"/manifests/"+name] = page{manifestType, data}
	}
	return d
}

// asks is the real sandbox without its compiler.
type asks struct{ *sandbox.Sandbox }

func (asks) Compile(context.Context, *tool.Module) error { return nil }

// world is a person with a store, and with the keys of others.
type world struct {
	t       testing.TB
	dir     string
	store   *store.Store
	sandbox registry.Sandbox
	web     *web
	egress  *egress.Egress

	first, second, stranger sign.PrivateKey // of example.org, and of nobody
}

func newWorld(t testing.TB) *world {
	t.Helper()
	w := &world{t: t, dir: filepath.Join(t.TempDir(), "modules"), web: newWeb(t), first: key(t, sign.ECDSAP256), second: key(t, sign.Ed25519), stranger: key(t, sign.Ed25519)}
	w.store = store.Open(w.dir)
	box := sandbox.New(sandbox.Options{})
	t.Cleanup(func() { _ = box.Close() })
	w.sandbox = asks{box}
	var err error
	w.egress, err = egress.New(egress.Options{})
	must(t, err)
	return w
}

func key(t testing.TB, a sign.Algorithm) sign.PrivateKey {
	t.Helper()
	k, err := sign.Generate(a)
	must(t, err)
	return k
}

// thing is a module in a registry, with its signature, and the person who adds it. Each
// case changes something in it.
type thing struct {
	w *world

	name, version string
	tools         string // of its manifest, in JSON
	imports       []wasmtest.Import
	code          []byte // the module; nil: made of the fields above

	repository, tag string
	layers          func(m *manifest)        // a change of its OCI manifest
	statement       func(st *sign.Statement) // a change of what is signed
	signers         []sign.PrivateKey
	envelopes       func([][]byte) [][]byte
	pages           func(module descriptor) // a change of what the registry has
	instead         func(w http.ResponseWriter, r *http.Request) bool

	ref, as   string
	publisher trust.Publisher
	revoked   func(digest, manifest string) trust.Revocation
	now       time.Time
	ceiling   policy.Ceiling
	ctx       context.Context
	idle      time.Duration
	local     func(c *source.Candidate) // changes the fetched module
}

var day0 = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)

const weatherTool = `{"name":"now","description":"The weather of a place.","parameters":{"type":"object","properties":{"place":{"type":"string"}}}}`

// honest returns a module without a mistake.
func (w *world) honest(version string) *thing {
	return &thing{
		w: w, name: "weather", version: version, tools: weatherTool, repository: "tools/weather", tag: "1", signers: []sign.PrivateKey{w.first},
		publisher: trust.Publisher{Name: "example.org", Namespaces: []string{w.web.host + "/tools"}, Keys: []sign.PublicKey{w.first.Public(), w.second.Public()}, Threshold: 1},
		now:       day0, ctx: w.t.Context(),
	}
}

// module returns the module that is pushed.
func (x *thing) module() []byte {
	if x.code != nil {
		return x.code
	}
	return module(x.name, x.version, x.tools, x.imports...)
}

func module(name, version, tools string, imports ...wasmtest.Import) []byte {
	quoted, err := json.Marshal(name)
	if err != nil {
		panic(err)
	}
	return wasmtest.Tool(wasmtest.ToolOptions{
		Call: wasmtest.EchoArgs(), Imports: imports, Manifest: fmt.Sprintf(`{"abi":"stockade:tool@0.1.0","name":%s,"version":%q,"tools":[%s]}`, quoted, version, tools),
	})
}

// envelope returns the signature over the module. If the module cannot be described, it
// is the signature of the honest module.
func (x *thing) envelope(code []byte) []byte {
	m, err := x.w.sandbox.Describe(x.w.t.Context(), tool.NewModule("m", tool.OriginAdded, "m", code))
	if err != nil {
		return x.w.honest("1.1.0").envelope(x.w.honest("1.1.0").module())
	}
	st := sign.Statement{
		Repository: x.w.web.host + "/" + x.repository, Name: m.Name, Version: m.Version, Digest: "sha256:" + hash(code),
		Fingerprint: sign.Fingerprint(m.Fingerprint()), Issued: day0.AddDate(0, 0, -1),
	}
	if x.statement != nil {
		x.statement(&st)
	}
	e, err := sign.Sign(st, x.signers...)
	must(x.w.t, err)
	return e
}

// publish makes the registry hold this module and nothing else.
func (x *thing) publish() (digest, manifestDigest string) {
	w, repo := x.w.web, x.repository
	code := x.module()
	var envelopes [][]byte
	if len(x.signers) > 0 {
		envelopes = [][]byte{x.envelope(code)}
	}
	if x.envelopes != nil {
		envelopes = x.envelopes(envelopes)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.pages, w.instead = map[string]page{}, x.instead
	empty := w.blob(repo, "application/vnd.oci.empty.v1+json", []byte("{}"))
	config := empty
	config.MediaType = "application/vnd.wasm.config.v0+json"
	m := manifest{SchemaVersion: 2, MediaType: manifestType, Config: config, Layers: []descriptor{w.blob(repo, "application/wasm", code)}}
	if x.layers != nil {
		x.layers(&m)
	}
	d := w.manifest(repo, m, x.tag)
	index := struct {
		SchemaVersion int          `json:"schemaVersion"`
		MediaType     string       `json:"mediaType"`
		Manifests     []descriptor `json:"manifests"`
	}{2, indexType, []descriptor{}}
	for _, e := range envelopes {
		index.Manifests = append(index.Manifests, w.manifest(repo, manifest{
			SchemaVersion: 2, MediaType: manifestType, ArtifactType: oci.SignatureType, Config: empty,
			Layers: []descriptor{w.blob(repo, "application/vnd.dsse.envelope.v1+json", e)}, Subject: &d,
		}))
	}
	list, err := json.Marshal(index)
	must(x.w.t, err)
	w.pages[repo+"/referrers/"+d.Digest] = page{indexType, list}
	if x.pages != nil {
		x.pages(d)
	}
	return "sha256:" + hash(code), d.Digest
}

// reference returns the reference by which the person names the module.
func (x *thing) reference() string {
	if x.ref != "" {
		return strings.ReplaceAll(x.ref, "HOST", x.w.web.host)
	}
	return "oci://" + x.w.web.host + "/" + x.repository + ":" + x.tag
}

func (x *thing) client(base string) (*http.Client, error) {
	to, err := egress.FetchNetwork(base, nil, true)
	if err != nil {
		return nil, err
	}
	return x.w.egress.FollowingClient(to, x.idle), nil
}

// fetch, review: what `stockade tool add` does before it asks.
func (x *thing) fetch() (*source.Candidate, error) {
	return source.Fetch(x.ctx, x.reference(), source.Options{Client: x.client})
}

func (x *thing) reviewer(digest, manifestDigest string) *registry.Reviewer {
	rules := &trust.File{Name: "trust.toml", Publishers: []trust.Publisher{x.publisher}}
	if x.revoked != nil {
		rules.Revoked = []trust.Revocation{x.revoked(digest, manifestDigest)}
	}
	return &registry.Reviewer{Store: x.w.store, Sandbox: x.w.sandbox, Trust: trust.Combine(rules), Ceiling: x.ceiling, Now: func() time.Time { return x.now }}
}

// add publishes it and adds it, as a person who says yes to everything.
func (x *thing) add() error {
	digest, manifestDigest := x.publish()
	c, err := x.fetch()
	if err != nil {
		return err
	}
	if x.local != nil {
		x.local(c)
	}
	r, err := x.reviewer(digest, manifestDigest).Review(x.ctx, registry.Request{Candidate: c, Name: x.as})
	if err != nil {
		return err
	}
	return registry.Save(x.w.store, r)
}

// addFile adds a module from a file, unsigned.
func (w *world) addFile(name, version, tools string) {
	w.t.Helper()
	path := filepath.Join(w.t.TempDir(), name+".wasm")
	must(w.t, os.WriteFile(path, module(name, version, tools), 0o600))
	x := w.honest(version)
	x.ref = path
	must(w.t, x.add())
}

// tree is all that there is below a folder: names, modes and contents.
func tree(t testing.TB, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	must(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		content := ""
		if info.Mode().IsRegular() {
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			content = hash(data)
		}
		out[path] = info.Mode().String() + " " + content
		return nil
	}))
	return out
}

func same(a, b map[string]string) bool { return maps.Equal(a, b) }

// names are the tools that are offered, of the modules that were added.
func (w *world) names() (out []string) {
	w.t.Helper()
	added, err := registry.Modules(w.store, registry.Scope{Project: &registry.Project{Workspace: w.t.TempDir()}, Trust: trust.Combine()})
	must(w.t, err)
	for _, m := range registry.ResolveNames(added) {
		for _, t := range m.Tools {
			if t.OffReason == "" {
				out = append(out, t.Name+" "+m.Record.Manifest.Version)
			}
		}
	}
	return out
}
