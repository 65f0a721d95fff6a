package oci

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2"
	"oras.land/oras-go/v2/content"
	oraslayout "oras.land/oras-go/v2/content/oci"

	"github.com/stockade-dev/stockade/host/policy/network"
	"github.com/stockade-dev/stockade/host/registry/oci/credential"
	"github.com/stockade-dev/stockade/host/registry/sign"
	"github.com/stockade-dev/stockade/host/services"
)

// fake is a registry with one repository, notes. It is honest except for the changes of a
// test.
type fake struct {
	host      string
	tags      map[string]ocispec.Descriptor
	content   map[string][]byte // by digest
	types     map[string]string // of manifests, by digest
	referrers []ocispec.Descriptor
	// intercept answers a request, unless it returns false.
	intercept func(w http.ResponseWriter, r *http.Request) bool

	mu   sync.Mutex
	seen []*http.Request
}

func newFake(t *testing.T) *fake {
	f := &fake{tags: map[string]ocispec.Descriptor{}, content: map[string][]byte{}, types: map[string]string{}}
	f.host = serve(t, f)
	f.tags["1"] = f.manifest(nil)
	return f
}

func (f *fake) blob(mediaType string, data []byte) ocispec.Descriptor {
	d := content.NewDescriptorFromBytes(mediaType, data)
	f.content[string(d.Digest)] = data
	return d
}

// manifest adds a manifest: that of the module, with a change.
func (f *fake) manifest(change func(m *ocispec.Manifest)) ocispec.Descriptor {
	m := ocispec.Manifest{MediaType: ocispec.MediaTypeImageManifest, Config: f.blob(configType, []byte("{}")), Layers: []ocispec.Descriptor{f.blob(layerType, module)}}
	m.SchemaVersion = 2
	if change != nil {
		change(&m)
	}
	data, err := json.Marshal(m)
	if err != nil {
		panic(err)
	}
	return f.raw(ocispec.MediaTypeImageManifest, data)
}

// raw adds a manifest of any kind.
func (f *fake) raw(mediaType string, data []byte) ocispec.Descriptor {
	d := f.blob(mediaType, data)
	f.types[string(d.Digest)] = mediaType
	return d
}

// signature adds a referrer with a signature, with a change.
func (f *fake) signature(change func(m *ocispec.Manifest)) {
	subject := f.tags["1"]
	d := f.manifest(func(m *ocispec.Manifest) {
		m.ArtifactType, m.Config = SignatureType, f.blob(ocispec.MediaTypeEmptyJSON, []byte("{}"))
		m.Layers, m.Subject = []ocispec.Descriptor{f.blob(envelopeType, []byte(envelope))}, &subject
		if change != nil {
			change(m)
		}
	})
	d.ArtifactType = SignatureType
	f.referrers = append(f.referrers, d)
}

func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	f.seen = append(f.seen, r.Clone(r.Context()))
	f.mu.Unlock()
	if f.intercept != nil && f.intercept(w, r) {
		return
	}
	kind, name, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/v2/notes/"), "/")
	switch kind {
	case "referrers":
		index := ocispec.Index{MediaType: ocispec.MediaTypeImageIndex, Manifests: f.referrers}
		index.SchemaVersion = 2
		w.Header().Set("Content-Type", ocispec.MediaTypeImageIndex)
		_ = json.NewEncoder(w).Encode(index)
		return
	case "manifests":
		if d, ok := f.tags[name]; ok {
			name = string(d.Digest)
		}
		w.Header().Set("Content-Type", f.types[name])
		if f.types[name] == "" {
			http.NotFound(w, r)
			return
		}
	}
	data, ok := f.content[name]
	if !ok {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Docker-Content-Digest", name)
	w.Header().Set("Content-Length", strconv.Itoa(len(data)))
	if r.Method != http.MethodHead {
		_, _ = w.Write(data)
	}
}

// on answers requests for one kind of thing, but for HEAD.
func (f *fake) on(kind string, answer http.HandlerFunc) {
	f.intercept = func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodHead || !strings.Contains(r.URL.Path, "/"+kind+"/") {
			return false
		}
		answer(w, r)
		return true
	}
}

// one has the module's manifest changed.
func one(change func(f *fake, m *ocispec.Manifest)) func(*testing.T, *fake) {
	return func(_ *testing.T, f *fake) {
		f.tags["1"] = f.manifest(func(m *ocispec.Manifest) { change(f, m) })
	}
}

// raw has another manifest in the place of the module's.
func raw(mediaType, data string) func(*testing.T, *fake) {
	return func(_ *testing.T, f *fake) { f.tags["1"] = f.raw(mediaType, []byte(data)) }
}

// answers has requests for one kind of thing answered in another way.
func answers(kind string, answer http.HandlerFunc) func(*testing.T, *fake) {
	return func(_ *testing.T, f *fake) { f.on(kind, answer) }
}

// signed adds a signature with a change.
func signed(change func(f *fake, m *ocispec.Manifest)) func(*testing.T, *fake) {
	return func(_ *testing.T, f *fake) { f.signature(func(m *ocispec.Manifest) { change(f, m) }) }
}

func endless(w http.ResponseWriter, _ *http.Request) {
	for {
		if _, err := w.Write(bytes.Repeat(module, 1<<12)); err != nil {
			return
		}
	}
}

var nowhere = "sha256:" + strings.Repeat("0", 64)

func TestHostileRegistries(t *testing.T) {
	for _, tt := range []struct {
		what   string
		change func(*testing.T, *fake)
		want   string // in the error; empty: it is pulled
	}{
		{"an honest one", func(*testing.T, *fake) {}, ""},
		{"one with a signature", func(_ *testing.T, f *fake) { f.signature(nil) }, ""},

		{"a manifest that is huge", raw(ocispec.MediaTypeImageManifest, strings.Repeat(" ", 300<<10)), "its manifest: it has 307200 bytes"},
		{"a manifest that is another than its digest says", answers("manifests", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", ocispec.MediaTypeImageManifest)
			w.(http.Flusher).Flush() // no length
			fmt.Fprint(w, `{}`)
		}), "its manifest: 2 bytes came instead of"},
		{"a manifest without an end", answers("manifests", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", ocispec.MediaTypeImageManifest)
			endless(w, r)
		}), "its manifest: more bytes came instead of"},
		{"a manifest whose header has another digest", answers("manifests", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", ocispec.MediaTypeImageManifest)
			w.Header().Set("Docker-Content-Digest", nowhere)
			w.(http.Flusher).Flush()
		}), "its manifest: "},
		{"a tag that leads to another digest than is there", func(_ *testing.T, f *fake) {
			f.tags["1"] = f.manifest(nil)
			f.content[string(f.tags["1"].Digest)] = []byte(`{"schemaVersion":2}`)
		}, "its manifest: "},
		{"a manifest that is an index", raw(ocispec.MediaTypeImageIndex, `{"schemaVersion":2,"manifests":[]}`), "an index of 0 images; name one of them by its digest"},
		{"a manifest that is Docker's list", raw("application/vnd.docker.distribution.manifest.list.v2+json", `{"schemaVersion":2,"manifests":[]}`), "an index of 0 images"},
		{"a manifest of version 1", raw("application/vnd.docker.distribution.manifest.v1+prettyjws", `{"schemaVersion":1,"fsLayers":[]}`), "not the manifest of an image"},
		{"a manifest of version 1 that is called one of version 2", raw(ocispec.MediaTypeImageManifest, `{"schemaVersion":1,"fsLayers":[]}`), "of version 1"},
		{"a manifest that is an index, too", raw(ocispec.MediaTypeImageManifest, `{"schemaVersion":2,"manifests":[],"layers":[]}`), "other programs would take it for an index"},
		{"a manifest that says it is an index", raw(ocispec.MediaTypeImageManifest, `{"schemaVersion":2,"mediaType":"application/vnd.oci.image.index.v1+json","layers":[]}`), "it says that it is application/vnd.oci.image.index.v1+json"},
		{"a manifest that is a web page", raw("text/html", `<html>`), "it is text/html, and not the manifest of an image"},
		{"a manifest that is no JSON", raw(ocispec.MediaTypeImageManifest, `<html>`), "not the JSON of a manifest"},
		{"a manifest of wrong types", raw(ocispec.MediaTypeImageManifest, `{"schemaVersion":2,"layers":{}}`), "not the JSON of a manifest"},
		{"a manifest about another artifact", one(func(f *fake, m *ocispec.Manifest) { m.Subject = &m.Layers[0] }), "about another artifact"},

		{"no layer", one(func(_ *fake, m *ocispec.Manifest) { m.Layers = []ocispec.Descriptor{} }), "it has 0 layers"},
		{"33 layers", one(func(f *fake, m *ocispec.Manifest) { m.Layers = slices.Repeat(m.Layers, 33) }), "it has 33 layers"},
		{"two modules", one(func(f *fake, m *ocispec.Manifest) {
			m.Layers[0].Annotations = map[string]string{ocispec.AnnotationTitle: "a\x1b[2J.wasm"}
			m.Layers = append(m.Layers, f.blob(layerType, append(module, 0, 1, 0)))
		}), "it holds 2 modules: a [2J.wasm, sha256:"},
		{"bytes that are no module", one(func(f *fake, m *ocispec.Manifest) { m.Layers[0] = f.blob("text/html", []byte("<html>")) }), "none of its 1 files is a WebAssembly module: sha256:"},
		{"layers that are too large together", one(func(f *fake, m *ocispec.Manifest) {
			m.Layers = append(m.Layers, m.Layers[0])
			m.Layers[1].Size = 64<<20 - 4
		}), "its module: it has 67108860 bytes, and not between 1 and 67108856"},
		{"a layer that is too large", one(func(f *fake, m *ocispec.Manifest) { m.Layers[0].Size = 64<<20 + 1 }), "its module: it has 67108865 bytes"},
		{"a layer without bytes", one(func(f *fake, m *ocispec.Manifest) { m.Layers[0] = f.blob(layerType, nil) }), "its module: it has 0 bytes"},
		{"a layer of a negative size", one(func(f *fake, m *ocispec.Manifest) { m.Layers[0].Size = -8 }), "its module: it has -8 bytes"},
		{"a layer whose digest holds ..", one(func(f *fake, m *ocispec.Manifest) { m.Layers[0].Digest = "sha256:../../../../etc/passwd" }), "not the digest of a SHA-256"},
		{"a layer with the digest of another hash", one(func(f *fake, m *ocispec.Manifest) { m.Layers[0].Digest = "sha512:ab" }), "not the digest of a SHA-256"},
		{"a layer that is not there", one(func(f *fake, m *ocispec.Manifest) {
			m.Layers[0].Digest = ocispec.DescriptorEmptyJSON.Digest
			delete(f.content, string(m.Layers[0].Digest))
		}), "does not have it"},

		{"another module of the same size", answers("blobs", func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "\x00asm\x02\x00\x00\x00") }), "what came has the SHA-256"},
		{"a module that is longer than it should be", answers("blobs", func(w http.ResponseWriter, r *http.Request) { _, _ = w.Write(append(module, 0)) }), "mismatch Content-Length"},
		{"a module without an end", answers("blobs", endless), "more bytes came instead of 8"},
		{"a module that breaks off", answers("blobs", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", "8")
			_, _ = w.Write(module[:4])
		}), "unexpected EOF"},
		{"an error for the module", answers("blobs", func(w http.ResponseWriter, r *http.Request) { http.Error(w, "<html>", http.StatusInternalServerError) }), "the registry answers with status 500"},
		{"an error in the middle of the module", answers("blobs", func(w http.ResponseWriter, r *http.Request) {
			_, _ = w.Write(module[:4])
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		}), "unexpected EOF"},
		{"a part of the module", answers("blobs", func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(http.StatusPartialContent)
			_, _ = w.Write(module)
		}), "status 206"},
		{"redirects without an end", answers("blobs", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, r.URL.Path, http.StatusFound) }), "more than 5 redirects"},
		{"a redirect to the cloud's metadata", answers("blobs", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://169.254.169.254/", http.StatusFound)
		}), "169.254.169.254"},
		{"a redirect to a file", answers("blobs", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "file:///etc/passwd", http.StatusFound)
		}), "does not begin with http"},

		{"an error for the signatures", answers("referrers", func(w http.ResponseWriter, r *http.Request) { http.Error(w, "", http.StatusInternalServerError) }), "the registry answers with status 500"},
		{"a list of signatures that is no JSON", answers("referrers", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", ocispec.MediaTypeImageIndex)
			fmt.Fprint(w, "<html>")
		}), "its signatures: "},
		{"a list of signatures without an end", answers("referrers", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", ocispec.MediaTypeImageIndex)
			fmt.Fprint(w, `{"manifests":["`)
			endless(w, r)
		}), "its signatures: "},
		{"a list of signatures of pages without an end", answers("referrers", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", ocispec.MediaTypeImageIndex)
			w.Header().Set("Link", "<"+r.URL.Path+"?next>; rel=next")
			fmt.Fprint(w, `{"manifests":[]}`)
		}), "its signatures: referrer listing exceeded 4 pages"},
		{"a list of signatures that goes on elsewhere", answers("referrers", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", ocispec.MediaTypeImageIndex)
			w.Header().Set("Link", "<http://127.0.0.1:1/>; rel=next")
			fmt.Fprint(w, `{"manifests":[]}`)
		}), "its signatures: "},
		{"too many signatures", func(_ *testing.T, f *fake) {
			for i := range 65 {
				f.signature(func(m *ocispec.Manifest) { m.Annotations = map[string]string{"n": fmt.Sprint(i)} })
			}
		}, "its signatures: there are more than 64"},
		{"too many referrers that say nothing about what they are", func(_ *testing.T, f *fake) {
			for i := range 65 {
				d := f.manifest(func(m *ocispec.Manifest) { m.Annotations = map[string]string{"n": fmt.Sprint(i)} })
				f.referrers = append(f.referrers, d)
			}
		}, "its signatures: there are more than 64"},
		{"a signature of another artifact", signed(func(f *fake, m *ocispec.Manifest) { m.Subject.Digest = m.Layers[0].Digest }), "is about another artifact"},
		{"a signature of no artifact", signed(func(f *fake, m *ocispec.Manifest) { m.Subject = nil }), "is about another artifact"},
		{"a signature of two layers", signed(func(f *fake, m *ocispec.Manifest) { m.Layers = append(m.Layers, m.Layers[0]) }), "is not one layer of"},
		{"a signature of another type", signed(func(f *fake, m *ocispec.Manifest) { m.Layers[0].MediaType = "text/plain" }), "is not one layer of"},
		{"a signature that is too large", signed(func(f *fake, m *ocispec.Manifest) { m.Layers[0] = f.blob(envelopeType, make([]byte, 64<<10+1)) }), "its signatures: it has 65537 bytes"},
		{"a signature that is no JSON", signed(func(f *fake, m *ocispec.Manifest) { m.Layers[0] = f.blob(envelopeType, []byte("<html>")) }), "is not JSON"},
		{"a signature that is not there", func(_ *testing.T, f *fake) {
			f.signature(func(m *ocispec.Manifest) {
				m.Layers[0].Digest = ocispec.DescriptorEmptyJSON.Digest
				delete(f.content, string(m.Layers[0].Digest))
			})
		}, "does not have it"},
		{"a signature whose manifest is huge", func(_ *testing.T, f *fake) {
			f.signature(func(m *ocispec.Manifest) { m.Annotations = map[string]string{"x": strings.Repeat("x", 300<<10)} })
		}, "its signatures: it has"},
		{"signatures that are huge together", func(_ *testing.T, f *fake) {
			for i := range 20 {
				f.signature(func(m *ocispec.Manifest) {
					m.Annotations = map[string]string{"x": strings.Repeat("x", 250<<10), "n": fmt.Sprint(i)}
				})
			}
		}, "its signatures: they have more than 4194304 bytes"},
		{"a signature of cosign's that is a web page", func(_ *testing.T, f *fake) {
			f.tags[strings.Replace(string(f.tags["1"].Digest), ":", "-", 1)+".sig"] = f.raw("text/html", []byte("<html>"))
		}, "those of cosign: it is text/html"},
		{"a signature of cosign's without one", func(_ *testing.T, f *fake) {
			f.tags[strings.Replace(string(f.tags["1"].Digest), ":", "-", 1)+".sig"] = f.manifest(func(m *ocispec.Manifest) { m.Layers[0].MediaType = payloadType })
		}, "has no signature"},
		{"too many signatures of cosign's", func(_ *testing.T, f *fake) {
			f.tags[strings.Replace(string(f.tags["1"].Digest), ":", "-", 1)+".sig"] = f.manifest(func(m *ocispec.Manifest) {
				d := f.blob(payloadType, []byte("{}"))
				d.Annotations = map[string]string{cosignName: "c2ln"}
				m.Layers = make([]ocispec.Descriptor, 65)
				for i := range m.Layers {
					m.Layers[i] = d
				}
			})
		}, "there are more than 64"},
		{"a challenge of no kind", answers("blobs", func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusUnauthorized) }), "does not say which"},
		{"a login where there is none", answers("blobs", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("WWW-Authenticate", `Basic realm="r"`)
			w.WriteHeader(http.StatusUnauthorized)
		}), "make one with docker login"},
	} {
		f := newFake(t)
		tt.change(t, f)
		c := &Client{HTTP: reaching(t, 0, "http://"+f.host)}
		got, err := c.Pull(t.Context(), parse(t, "oci://"+f.host+"/notes:1"))
		if tt.want == "" {
			if err != nil || !bytes.Equal(got.Code, module) || len(got.Evidence.Envelopes) != len(f.referrers) {
				t.Errorf("%s: %v", tt.what, err)
			}
			continue
		}
		if got != nil || err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, %v", tt.what, got, err)
		}
	}
}

func TestSlowRegistries(t *testing.T) {
	for _, tt := range []struct {
		what           string
		kind           string
		idle, deadline time.Duration
		want           string
	}{
		{"no answer", "referrers", 50 * time.Millisecond, 0, "has not answered or taken anything for 50ms"},
		{"a module that stands still", "blobs", 50 * time.Millisecond, 0, "has not answered or taken anything for 50ms"},
		{"a module that never comes to its end", "blobs", 0, 200 * time.Millisecond, "it was not done within 200ms"},
	} {
		f := newFake(t)
		f.on(tt.kind, func(w http.ResponseWriter, r *http.Request) {
			if tt.kind == "blobs" {
				_, _ = w.Write(module[:4])
				w.(http.Flusher).Flush()
			}
			<-r.Context().Done()
		})
		c := &Client{HTTP: reaching(t, tt.idle, "http://"+f.host), deadline: tt.deadline}
		got, err := c.Pull(t.Context(), parse(t, "oci://"+f.host+"/notes:1"))
		if got != nil || services.KindOf(err) != services.Timeout || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, %v", tt.what, got, err)
		}
	}
}

// listener notes what it is asked.
type listener struct {
	host string
	mu   sync.Mutex
	seen []string // method, path, Authorization, and a form
}

func listen(t *testing.T, answer string) *listener {
	l := new(listener)
	l.host = serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = r.ParseForm()
		l.mu.Lock()
		l.seen = append(l.seen, strings.TrimSpace(fmt.Sprint(r.Method, " ", r.URL.Path, " ", r.Header.Get("Authorization"), " ", r.Header.Get("Cookie"), r.Form.Get("refresh_token"))))
		l.mu.Unlock()
		fmt.Fprint(w, answer)
	}))
	return l
}

// TestWhoGetsALogin tests a registry that wants a login, with a token service and a server
// for blobs that may be elsewhere.
func TestWhoGetsALogin(t *testing.T) {
	const basic = "Basic bWU6cHc="
	me := credential.Login{Username: "me", Password: "pw"}
	for _, tt := range []struct {
		what      string
		login     credential.Login
		anonymous bool
		realm     string // "" is Basic; "service" is that of the token service
		permitted bool   // the token service, and the place for blobs
		service   string // what the token service is asked
		registry  string // what the registry gets last
		err       string
	}{
		{what: "a login for the registry", login: me, permitted: true, registry: basic},
		{what: "one for the token service", login: me, realm: "service", permitted: true, service: "GET /token " + basic, registry: "Bearer token"},
		{what: "an identity token", login: credential.Login{IdentityToken: "id"}, realm: "service", permitted: true, service: "POST /token  id", registry: "Bearer token"},
		{what: "nobody", anonymous: true, realm: "service", permitted: true, service: "GET /token", registry: "Bearer token"},
		{what: "nobody, where a login is wanted", anonymous: true, permitted: true, err: "make one with docker login"},
		{what: "a token service that may not be reached", login: me, realm: "service", err: "would allow it"},
		{what: "a token service that is a file", login: me, realm: "file:///etc/passwd", permitted: true, err: "does not begin with http"},
		{what: "a token service with a user name", login: me, realm: "http://a:b@127.0.0.1/", permitted: true, err: "user name"},
		{what: "a token service elsewhere, without TLS", login: me, realm: "http://auth.example/token", permitted: true, err: "not reached by https"},
		{what: "no token service", login: me, realm: " ", permitted: true, err: "token service"},
		{what: "a place for blobs that may not be reached", login: me, err: "would allow it"},
	} {
		f := newFake(t)
		service, blobs := listen(t, `{"token":"token"}`), listen(t, string(module))
		challenge := `Basic realm="notes"`
		if tt.realm != "" {
			challenge = fmt.Sprintf(`Bearer realm=%q,service="notes",scope="repository:notes:pull"`, strings.Replace(tt.realm, "service", "http://"+service.host+"/token", 1))
		}
		f.intercept = func(w http.ResponseWriter, r *http.Request) bool {
			switch {
			case r.Header.Get("Authorization") == "":
				w.Header().Set("WWW-Authenticate", challenge)
				w.WriteHeader(http.StatusUnauthorized)
			case strings.Contains(r.URL.Path, "/blobs/"):
				w.Header().Set("Set-Cookie", "a=b")
				http.Redirect(w, r, "http://"+blobs.host+"/blob", http.StatusTemporaryRedirect)
			default:
				return false
			}
			return true
		}
		rules := []string{"http://" + f.host}
		if tt.permitted {
			rules = append(rules, "http://"+service.host, "http://"+blobs.host)
		}
		asked := ""
		c := &Client{HTTP: reaching(t, 0, rules...), Credentials: credentialsOf(tt.login, &asked)}
		if tt.anonymous {
			c.Credentials = nil
		}
		got, err := c.Pull(t.Context(), parse(t, "oci://"+f.host+"/notes:1"))
		if (err == nil) != (tt.err == "") || (got == nil) != (err != nil) || err != nil && !strings.Contains(err.Error(), tt.err) {
			t.Errorf("%s: %v, %v", tt.what, got, err)
		}
		if tt.err == "would allow it" {
			if _, ok := errors.AsType[*network.Denial](err); !ok {
				t.Errorf("%s: a denial is not found in %v", tt.what, err)
			}
		}
		if want := strings.Join(nonempty(tt.service), ","); strings.Join(service.seen, ",") != want {
			t.Errorf("%s: the token service was asked %q, want %q", tt.what, service.seen, want)
		}
		want := ""
		if tt.err == "" {
			want = "GET /blob"
			if last := f.seen[len(f.seen)-1].Header.Get("Authorization"); last != tt.registry {
				t.Errorf("%s: the registry got %q", tt.what, last)
			}
		}
		if got := strings.Join(blobs.seen, ","); got != want {
			t.Errorf("%s: the place for blobs was asked %q, want %q", tt.what, got, want)
		}
		if !tt.anonymous && asked != f.host {
			t.Errorf("%s: the login of %q was looked for", tt.what, asked)
		}
	}
}

func credentialsOf(login credential.Login, asked *string) Credentials {
	return func(_ context.Context, host string) (credential.Login, credential.Search) {
		*asked = host
		return login, credential.Search{Files: []string{"/home/me/auth.json"}}
	}
}

func nonempty(s string) []string {
	if s == "" {
		return nil
	}
	return []string{s}
}

// TestAChallengeFromElsewhereIsNotAnswered: the registry redirects to a server that
// wants a login, with a token service of its own.
func TestAChallengeFromElsewhereIsNotAnswered(t *testing.T) {
	f := newFake(t)
	service := listen(t, `{"token":"token"}`)
	var got []string
	elsewhere := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = append(got, r.Header.Get("Authorization"))
		w.Header().Set("WWW-Authenticate", fmt.Sprintf(`Bearer realm="http://%s/token"`, service.host))
		w.WriteHeader(http.StatusUnauthorized)
	}))
	f.on("blobs", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "http://"+elsewhere+"/", http.StatusFound)
	})
	asked := ""
	c := &Client{HTTP: reaching(t, 0, "http://"+f.host, "http://"+elsewhere, "http://"+service.host), Credentials: credentialsOf(credential.Login{Username: "me", Password: "pw"}, &asked)}
	a, err := c.Pull(t.Context(), parse(t, "oci://"+f.host+"/notes:1"))
	if a != nil || err == nil || !strings.Contains(err.Error(), "does not permit it (401") {
		t.Errorf("%v, %v", a, err)
	}
	if asked != "" || service.seen != nil || len(got) != 1 || got[0] != "" {
		t.Errorf("the login of %q was looked for, the token service was asked %q, and the server %q", asked, service.seen, got)
	}
}

// TestTheTokenServiceIsReachedByTLS: only a registry on this machine may have one
// that is not.
func TestTheTokenServiceIsReachedByTLS(t *testing.T) {
	service := listen(t, `{"token":"token"}`)
	for _, ref := range []string{"oci://r.example/notes:1", "oci://192.168.0.1/notes:1"} {
		s := &session{http: reaching(t, 0, "http://"+service.host), ref: parse(t, ref)}
		if token, err := s.token(t.Context(), map[string]string{"realm": "http://" + service.host}, credential.Login{Username: "me", Password: "pw"}); err == nil {
			t.Errorf("%s: %s", ref, token)
		}
	}
	if service.seen != nil {
		t.Errorf("it was asked: %q", service.seen)
	}
	for _, answer := range []string{"", "{}", `{"token":""}`, `{"token":"a\r\nX: y"}`, `{"token":1}`, `"` + strings.Repeat("x", 200<<10) + `"`} {
		service := listen(t, answer)
		s := &session{http: reaching(t, 0, "http://"+service.host), ref: parse(t, "oci://localhost/notes:1")}
		if token, err := s.token(t.Context(), map[string]string{"realm": "http://" + service.host}, credential.Login{}); err == nil || !strings.Contains(err.Error(), "is no token") {
			t.Errorf("%.20q: %q, %v", answer, token, err)
		}
	}
}

// TestAPublicPullNeedsNoLogin: a registry that gives to nobody, and a login that is missing
// or refused.
func TestAPublicPullNeedsNoLogin(t *testing.T) {
	me, id := credential.Login{Username: "me", Password: "pw"}, credential.Login{IdentityToken: "id"}
	for _, tt := range []struct {
		what    string
		login   credential.Login
		wrong   []string
		service int  // what the token service answers to a login; 0: with a token
		refuses int  // what the registry answers to the token of a login; 0: it takes it
		private bool // nobody gets a token
		short   bool // a token is good for one request
		warned  string
		err     string // of the pull
	}{
		{what: "a login that is taken", login: me},
		{what: "none"},
		{what: "a helper that fails", wrong: []string{"/f (its credential helper \"x\": exit status 1)"}, warned: `no login is used for HOST, and the pull goes on as nobody: /f (its credential helper "x": exit status 1)`},
		{what: "one that the token service refuses", login: me, service: 401, warned: "(status 401)"},
		{what: "one that it refuses, and tokens that expire", login: me, service: 401, short: true, warned: "(status 401)"},
		{what: "one that it forbids", login: me, service: 403, warned: "(status 403)"},
		{what: "an identity token that has expired", login: id, service: 400, warned: "answers with status 400"},
		{what: "one that the registry refuses", login: me, refuses: 401, warned: "the registry refuses it (status 401)"},
		{what: "one that it forbids the repository", login: me, refuses: 403, warned: "the registry refuses it (status 403)"},
		{what: "a token service that is broken for logins", login: me, service: 500, warned: "answers with status 500"},
		{what: "one that is refused, where nobody is, too", login: me, service: 401, private: true, err: "; a login was looked for in /home/me/auth.json"},
		{what: "one that is forbidden, where nobody gets a token", login: me, refuses: 403, private: true, err: "does not permit it (403, Forbidden); if it needs a login, or another one, make that with docker login; a login was looked for in /home/me/auth.json"},
		{what: "a helper that fails, where nobody gets a token", wrong: []string{"/f (x)"}, private: true, err: "(status 401); make one with docker login HOST; a login was looked for in /home/me/auth.json"},
	} {
		f := newFake(t)
		service := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_ = r.ParseForm()
			loggedIn := r.Header.Get("Authorization") != "" || r.Form.Get("refresh_token") != ""
			switch {
			case loggedIn && tt.service != 0:
				w.WriteHeader(tt.service)
			case !loggedIn && tt.private:
				w.WriteHeader(http.StatusUnauthorized)
			default:
				fmt.Fprintf(w, `{"token":"of-%v"}`, loggedIn)
			}
		}))
		used := 0
		f.intercept = func(w http.ResponseWriter, r *http.Request) bool {
			token := r.Header.Get("Authorization")
			if token != "" {
				used++
			}
			switch {
			case token == "", tt.short && used%2 == 0:
				w.Header().Set("WWW-Authenticate", fmt.Sprintf(`Bearer realm="http://%s/token",service="notes"`, service))
				w.WriteHeader(http.StatusUnauthorized)
			case token == "Bearer of-true" && tt.refuses != 0:
				w.WriteHeader(tt.refuses)
			default:
				return false
			}
			return true
		}
		var warned []string
		c := &Client{HTTP: reaching(t, 0, "http://"+f.host, "http://"+service), Warn: func(text string) { warned = append(warned, text) },
			Credentials: func(context.Context, string) (credential.Login, credential.Search) {
				return tt.login, credential.Search{Files: []string{"/home/me/auth.json"}, Unusable: tt.wrong}
			}}
		ref := parse(t, "oci://"+f.host+"/notes:1")
		got, err := c.Pull(t.Context(), ref)
		if (got == nil) != (tt.err != "") || err != nil && (tt.err == "" || !strings.Contains(err.Error(), strings.Replace(tt.err, "HOST", f.host, 1))) {
			t.Errorf("%s: %v, %v", tt.what, got, err)
		}
		if said, want := strings.Join(warned, "\n"), strings.Replace(tt.warned, "HOST", f.host, 1); !strings.Contains(said, want) || (said == "") != (want == "") || len(warned) > 1 {
			t.Errorf("%s: warned of %q, want %q", tt.what, said, want)
		}
		if tt.service+tt.refuses == 0 {
			continue
		}
		// A push does not go on as nobody.
		warned = nil
		if _, err := c.Push(t.Context(), ref, append(module, 0, 1, 0), Meta{}, nil); err == nil || warned != nil {
			t.Errorf("%s: a push: %v, warned of %q", tt.what, err, warned)
		}
	}
}

// tarOf makes a tar archive of files and other entries.
func tarOf(t *testing.T, entries ...tar.Header) []byte {
	t.Helper()
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, h := range entries {
		text := []byte(h.Uname) // which is what it holds
		h.Uname, h.Mode = "", 0o644
		if h.Typeflag == 0 {
			h.Typeflag = tar.TypeReg
			h.Size = int64(len(text))
		}
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(text); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func gzipped(t *testing.T, data []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	if _, err := w.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestImages(t *testing.T) {
	const dockerLayer = "application/vnd.docker.image.rootfs.diff.tar.gzip"
	file := func(name string, data []byte) tar.Header { return tar.Header{Name: name, Uname: string(data)} }
	other := append(bytes.Clone(module), 0, 1, 0)
	wasm := file("plugin.wasm", module)
	layers := func(mediaType string, data ...[]byte) func(*testing.T, *fake) {
		return one(func(f *fake, m *ocispec.Manifest) {
			m.Config, m.Layers = f.blob(ocispec.MediaTypeImageConfig, []byte("{}")), nil
			for _, d := range data {
				m.Layers = append(m.Layers, f.blob(mediaType, d))
			}
		})
	}
	image := func(entries ...tar.Header) func(*testing.T, *fake) {
		return func(t *testing.T, f *fake) {
			layers(ocispec.MediaTypeImageLayerGzip, gzipped(t, tarOf(t, entries...)))(t, f)
		}
	}
	// bomb is an archive of one file that begins so and goes on with zeros, in parts: to
	// compress all of it takes long.
	bomb := func(name, begins string, size int64) func(*testing.T, *fake) {
		return func(t *testing.T, f *fake) {
			var head bytes.Buffer
			if err := tar.NewWriter(&head).WriteHeader(&tar.Header{Name: name, Size: size}); err != nil {
				t.Fatal(err)
			}
			data, zeros := gzipped(t, append(head.Bytes(), begins...)), gzipped(t, make([]byte, 8<<20))
			for range size/(8<<20) + 1 {
				data = append(data, zeros...)
			}
			layers(ocispec.MediaTypeImageLayerGzip, data)(t, f)
		}
	}
	// entry is an image in an index, another one for each name.
	entry := func(f *fake, os, architecture, name string) ocispec.Descriptor {
		d := f.manifest(func(m *ocispec.Manifest) {
			m.Layers = []ocispec.Descriptor{f.blob(ocispec.MediaTypeImageLayerGzip, gzipped(t, tarOf(t, file(name, module))))}
		})
		if os != "" {
			d.Platform = &ocispec.Platform{OS: os, Architecture: architecture}
		}
		return d
	}
	index := func(mediaType string, of func(f *fake) []ocispec.Descriptor) func(*testing.T, *fake) {
		return func(t *testing.T, f *fake) {
			index := ocispec.Index{MediaType: mediaType, Manifests: of(f)}
			index.SchemaVersion = 2
			data, err := json.Marshal(index)
			if err != nil {
				t.Fatal(err)
			}
			f.tags["1"] = f.raw(mediaType, data)
		}
	}
	attestation := func(f *fake) ocispec.Descriptor {
		d := entry(f, "", "", "sbom.wasm")
		d.Annotations = map[string]string{attestationName: "attestation-manifest"}
		return d
	}
	for _, tt := range []struct {
		what   string
		change func(*testing.T, *fake)
		want   string // in the error; empty: its module is pulled
	}{
		{"FROM scratch", image(tar.Header{Name: "/", Typeflag: tar.TypeDir}, wasm), ""},
		{"by Docker", func(t *testing.T, f *fake) {
			layers(dockerLayer, gzipped(t, tarOf(t, wasm)))(t, f)
			data := bytes.Replace(f.content[string(f.tags["1"].Digest)], []byte(ocispec.MediaTypeImageManifest), []byte(dockerManifestType), 1)
			f.tags["1"] = f.raw(dockerManifestType, data)
		}, ""},
		{"not compressed", layers(ocispec.MediaTypeImageLayer, tarOf(t, wasm)), ""},
		{"in a folder, with a read-me", image(tar.Header{Name: "a/", Typeflag: tar.TypeDir}, file("./a/plugin.wasm", module), file("a/README.md", []byte("# me"))), ""},
		{"with another name", image(file("plugin", module)), ""},
		{"of two layers", layers(ocispec.MediaTypeImageLayerGzip, gzipped(t, tarOf(t, tar.Header{Name: "a/", Typeflag: tar.TypeDir})), gzipped(t, tarOf(t, tar.Header{Name: "a/", Typeflag: tar.TypeDir}, wasm))), ""},
		{"a file as oras pushes it", layers(ocispec.MediaTypeImageLayer, module), ""},
		{"a file of any type", layers("text/x-anything", module), ""},
		{"a file of no type", layers("", module), ""},
		{"a file and a read-me", layers(ocispec.MediaTypeImageLayer, []byte("# me"), module), ""},
		{"an index of one", index(ocispec.MediaTypeImageIndex, func(f *fake) []ocispec.Descriptor { return []ocispec.Descriptor{entry(f, "", "", "a")} }), ""},
		{"an index of one with attestations", index(ocispec.MediaTypeImageIndex, func(f *fake) []ocispec.Descriptor {
			return []ocispec.Descriptor{attestation(f), entry(f, "linux", "amd64", "a")}
		}), ""},
		{"Docker's list, without the annotation", index(dockerIndexType, func(f *fake) []ocispec.Descriptor {
			return []ocispec.Descriptor{entry(f, "linux", "amd64", "a"), entry(f, "unknown", "unknown", "b")}
		}), ""},
		{"an index that has one for WebAssembly", index(ocispec.MediaTypeImageIndex, func(f *fake) []ocispec.Descriptor {
			return []ocispec.Descriptor{f.raw("text/plain", []byte("x")), entry(f, "wasi", "wasm", "a"), entry(f, "linux", "arm64", "c"), attestation(f)}
		}), ""},

		{"an index of two", index(ocispec.MediaTypeImageIndex, func(f *fake) []ocispec.Descriptor {
			return []ocispec.Descriptor{entry(f, "linux", "amd64", "a"), entry(f, "linux", "arm64", "b")}
		}), "its index: it is an index of 2 images; name one of them by its digest, @sha256:HEX: sha256:"},
		{"an index of many for WebAssembly", index(ocispec.MediaTypeImageIndex, func(f *fake) (out []ocispec.Descriptor) {
			for i := range 20 {
				out = append(out, entry(f, "wasip1", "wasm", fmt.Sprint(i)))
			}
			return out
		}), "an index of 20 images; name one of them"},
		{"an index of attestations", index(ocispec.MediaTypeImageIndex, func(f *fake) []ocispec.Descriptor { return []ocispec.Descriptor{attestation(f)} }), "an index of 0 images"},
		{"an index of an index", index(ocispec.MediaTypeImageIndex, func(f *fake) []ocispec.Descriptor {
			index(ocispec.MediaTypeImageIndex, func(f *fake) []ocispec.Descriptor { return nil })(t, f)
			return []ocispec.Descriptor{f.tags["1"]}
		}), "and not the manifest of an image"},
		{"an index that is a manifest, too", raw(ocispec.MediaTypeImageIndex, `{"schemaVersion":2,"manifests":[],"Layers":[]}`), "other programs would take it"},
		{"an index that names .. as a digest", raw(ocispec.MediaTypeImageIndex, `{"schemaVersion":2,"manifests":[{"mediaType":"application/vnd.oci.image.manifest.v1+json","digest":"sha256:../x","size":2}]}`), "not the digest of a SHA-256"},
		{"an index that is huge", raw(ocispec.MediaTypeImageIndex, strings.Repeat(" ", 300<<10)), "its index: it has 307200 bytes"},

		{"two modules", image(wasm, file("a/other.wasm", other)), "it holds 2 modules: /plugin.wasm, /a/other.wasm; push the one that is meant by itself"},
		{"two modules in two layers", layers(ocispec.MediaTypeImageLayer, tarOf(t, wasm), tarOf(t, file("b.wasm", other))), "it holds 2 modules"},
		{"no module", image(file("bin/sh", []byte("\x7fELF")), file("a.wasm", nil)), "none of its 2 files is a WebAssembly module: /a.wasm, /bin/sh"},
		{"nothing", image(), "none of its 0 files is a WebAssembly module"},
		{"a link", image(wasm, tar.Header{Name: "a.wasm", Typeflag: tar.TypeSymlink, Linkname: "/etc/passwd"}), "a.wasm is a link"},
		{"a hard link", image(wasm, tar.Header{Name: "a.wasm", Typeflag: tar.TypeLink, Linkname: "plugin.wasm"}), "a.wasm is a link"},
		{"a device", image(wasm, tar.Header{Name: "dev/null", Typeflag: tar.TypeChar}), "dev/null is a link, a device or a whiteout"},
		{"a pipe", image(wasm, tar.Header{Name: "pipe", Typeflag: tar.TypeFifo}), "pipe is a link, a device"},
		{"a whiteout", image(wasm, file("a/.wh.b", nil)), "a/.wh.b is a link, a device or a whiteout"},
		{"a file twice", image(wasm, file("./x/../plugin.wasm", []byte("text"))), "plugin.wasm is in it twice"},
		{"a file over one of another layer", layers(ocispec.MediaTypeImageLayer, tarOf(t, wasm), tarOf(t, file("plugin.wasm", []byte("text")))), "plugin.wasm is in it twice"},
		{"a directory over a file", image(wasm, tar.Header{Name: "plugin.wasm/", Typeflag: tar.TypeDir}), "plugin.wasm/ is in it twice"},
		{"a module that is too large", bomb("a.wasm", string(module), 64<<20+512), "/a.wasm has more than the 67108864 bytes"},
		{"what is huge once it is unpacked", bomb("a.txt", "text", 80<<20+512), "more than 83886080 bytes"},
		{"an archive that is cut off", layers(ocispec.MediaTypeImageLayerGzip, gzipped(t, tarOf(t, wasm)[:515])), "unexpected EOF"},
		{"a compression that is cut off", layers(ocispec.MediaTypeImageLayerGzip, gzipped(t, tarOf(t, wasm))[:40]), "unexpected EOF"},
		{"a compressed text", layers(ocispec.MediaTypeImageLayerGzip, gzipped(t, bytes.Repeat([]byte("text"), 200))), "cannot be unpacked: archive/tar: invalid tar header"},
		{"zstd, by its type", layers(ocispec.MediaTypeImageLayerZstd, module), "its layer is compressed with zstd; push it with gzip"},
		{"zstd, by its bytes", layers(dockerLayer, []byte("\x28\xb5\x2f\xfdx")), "compressed with zstd"},
	} {
		f := newFake(t)
		tt.change(t, f)
		c := &Client{HTTP: reaching(t, 0, "http://"+f.host)}
		ref := parse(t, "oci://"+f.host+"/notes:1")
		got, err := c.Pull(t.Context(), ref)
		if tt.want != "" {
			if got != nil || err == nil || !strings.Contains(err.Error(), tt.want) || len(err.Error()) > 2000 {
				t.Errorf("%s: %v, %v", tt.what, got, err)
			}
			continue
		}
		if err != nil || !bytes.Equal(got.Code, module) || got.Digest != sum(module) || got.ManifestDigest != string(f.tags["1"].Digest) {
			t.Errorf("%s: %+v, %v", tt.what, got, err)
			continue
		}
		// The digest leads to the same artifact again, even if the tag moves.
		ref.Tag, ref.Digest = "", got.ManifestDigest
		again, err := c.Pull(t.Context(), ref)
		if diff := cmp.Diff(got, again); err != nil || diff != "" {
			t.Errorf("%s, by its digest: %v\n%s", tt.what, err, diff)
		}
		// And so it does in a layout.
		dir := filepath.Join(t.TempDir(), "layout")
		store, err := oraslayout.New(dir)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := oras.Copy(t.Context(), c.repository(ref), "1", store, "1", oras.CopyOptions{}); err != nil {
			t.Fatalf("%s: %v", tt.what, err)
		}
		again, err = Layout{Dir: dir, Tag: "1"}.Pull(t.Context())
		if diff := cmp.Diff(got, again); err != nil || diff != "" {
			t.Errorf("%s, in a layout: %v\n%s", tt.what, err, diff)
		}
	}
}

// TestFormsOfSignatures: what is found among the referrers.
func TestFormsOfSignatures(t *testing.T) {
	const bundle = `{"mediaType":"x"}`
	referrer := func(kind, layer, text string, annotations map[string]string) func(*testing.T, *fake) {
		return func(_ *testing.T, f *fake) {
			subject := f.tags["1"]
			d := f.manifest(func(m *ocispec.Manifest) {
				m.ArtifactType, m.Config, m.Subject, m.Annotations = kind, f.blob(ocispec.MediaTypeEmptyJSON, []byte("{}")), &subject, annotations
				m.Layers = []ocispec.Descriptor{f.blob(layer, []byte(text))}
			})
			d.ArtifactType = ocispec.MediaTypeEmptyJSON // as some registries say it
			f.referrers = append(f.referrers, d)
		}
	}
	says := func(kind string) func(*testing.T, *fake) { // in the list alone; there is nothing to fetch
		return func(_ *testing.T, f *fake) {
			f.referrers = append(f.referrers, ocispec.Descriptor{MediaType: ocispec.MediaTypeImageManifest, ArtifactType: kind, Digest: ocispec.DescriptorEmptyJSON.Digest, Size: 1 << 40})
		}
	}
	predicate := func(s string) map[string]string { return map[string]string{predicateName: s} }
	for _, tt := range []struct {
		what   string
		change func(*testing.T, *fake)
		want   sign.Evidence
		err    string
	}{
		{what: "a bundle of cosign", change: referrer(sign.BundleType, sign.BundleType, bundle, predicate(sign.CosignPredicate)), want: sign.Evidence{Bundles: [][]byte{[]byte(bundle)}}},
		{what: "one that does not say what it states", change: referrer(sign.BundleType, sign.BundleType, bundle, nil), want: sign.Evidence{Bundles: [][]byte{[]byte(bundle)}}},
		{what: "an attestation of any size", change: referrer(sign.BundleType, sign.BundleType, strings.Repeat("x", 100<<10), predicate("https://spdx.dev/\x1bDocument")), want: sign.Evidence{Unread: []string{"a sigstore attestation of https://spdx.dev/ Document"}}},
		{what: "a bundle that is huge", change: referrer(sign.BundleType, sign.BundleType, strings.Repeat("x", 100<<10), nil), err: "its signatures: it has 102400 bytes"},
		{what: "a bundle that is cut off", change: referrer(sign.BundleType, sign.BundleType, bundle[:9], nil), err: "is not JSON"},
		{what: "a bundle of another type", change: referrer(sign.BundleType, "text/plain", bundle, nil), err: "is not one layer of"},
		{what: "a bundle about another manifest", change: func(t *testing.T, f *fake) {
			before := f.tags["1"]
			f.tags["1"] = f.manifest(func(m *ocispec.Manifest) { m.Annotations = map[string]string{"another": ""} })
			referrer(sign.BundleType, sign.BundleType, bundle, nil)(t, f)
			f.tags["1"] = before
		}, err: "is about another artifact"},
		{what: "notation", change: referrer("application/vnd.cncf.notary.signature", "application/jose+json", "{}", nil), want: sign.Evidence{Unread: []string{"application/vnd.cncf.notary.signature"}}},
		{what: "notation, in the list", change: says("application/vnd.cncf.notary.signature"), want: sign.Evidence{Unread: []string{"application/vnd.cncf.notary.signature"}}},
		{what: "a bundle of another version", change: says("application/vnd.dev.sigstore.bundle.v0.4+json"), want: sign.Evidence{Unread: []string{"application/vnd.dev.sigstore.bundle.v0.4+json"}}},
		{what: "OpenPGP", change: says("application/pgp-keys"), want: sign.Evidence{Unread: []string{"application/pgp-keys"}}},
		{what: "one that nobody knows, twice", change: func(t *testing.T, f *fake) { says("x/Sig\n")(t, f); says("x/Sig\n")(t, f) }, want: sign.Evidence{Unread: []string{"x/Sig"}}},
		{what: "a list of parts", change: referrer("application/spdx+json", "application/spdx+json", "{}", nil)},
		{what: "a list of parts, in the list", change: says("application/spdx+json")},
		{what: "cosign with a certificate", change: func(_ *testing.T, f *fake) {
			f.tags[strings.Replace(string(f.tags["1"].Digest), ":", "-", 1)+".sig"] = f.manifest(func(m *ocispec.Manifest) {
				m.Layers = []ocispec.Descriptor{f.blob(payloadType, []byte("{}"))}
				m.Layers[0].Annotations = map[string]string{cosignName: "c2ln", certificateName: "x"}
			})
		}, want: sign.Evidence{Cosign: []sign.Cosign{{Payload: []byte("{}"), Signature: "c2ln"}}, Unread: []string{"cosign with a certificate"}}},
	} {
		f := newFake(t)
		tt.change(t, f)
		c := &Client{HTTP: reaching(t, 0, "http://"+f.host)}
		got, err := c.Pull(t.Context(), parse(t, "oci://"+f.host+"/notes:1"))
		if tt.err != "" {
			if err == nil || !strings.Contains(err.Error(), tt.err) {
				t.Errorf("%s: %+v, %v", tt.what, got, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", tt.what, err)
			continue
		}
		if diff := cmp.Diff(tt.want, got.Evidence); diff != "" {
			t.Errorf("%s:\n%s", tt.what, diff)
		}
	}
}
