package oci

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/content"

	"github.com/stockade-dev/stockade/host/effect"
	"github.com/stockade-dev/stockade/host/policy/network"
	"github.com/stockade-dev/stockade/host/registry/oci/credential"
)

// fake is a registry that holds one repository, notes, and is honest but for what
// a test changes.
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
		{"a manifest that is an index", raw(ocispec.MediaTypeImageIndex, `{"schemaVersion":2,"manifests":[]}`), "index of several artifacts; name one of them by its digest"},
		{"a manifest that is Docker's list", raw("application/vnd.docker.distribution.manifest.list.v2+json", `{"schemaVersion":2,"manifests":[]}`), "index of several artifacts"},
		{"a manifest of version 1", raw("application/vnd.docker.distribution.manifest.v1+prettyjws", `{"schemaVersion":1,"fsLayers":[]}`), "not an OCI image manifest"},
		{"a manifest of version 1 that is called one of version 2", raw(ocispec.MediaTypeImageManifest, `{"schemaVersion":1,"fsLayers":[]}`), "of version 1"},
		{"a manifest that is an index, too", raw(ocispec.MediaTypeImageManifest, `{"schemaVersion":2,"manifests":[],"layers":[]}`), "other programs would take it for an index"},
		{"a manifest that says it is an index", raw(ocispec.MediaTypeImageManifest, `{"schemaVersion":2,"mediaType":"application/vnd.oci.image.index.v1+json","layers":[]}`), "it says that it is application/vnd.oci.image.index.v1+json"},
		{"a manifest that is a web page", raw("text/html", `<html>`), "it is text/html, and not an OCI image manifest"},
		{"a manifest that is no JSON", raw(ocispec.MediaTypeImageManifest, `<html>`), "not the JSON of a manifest"},
		{"a manifest of wrong types", raw(ocispec.MediaTypeImageManifest, `{"schemaVersion":2,"layers":{}}`), "not the JSON of a manifest"},
		{"a manifest about another artifact", one(func(f *fake, m *ocispec.Manifest) { m.Subject = &m.Layers[0] }), "about another artifact"},

		{"no layer", one(func(_ *fake, m *ocispec.Manifest) { m.Layers = []ocispec.Descriptor{} }), "it has 0 layers"},
		{"two layers", one(func(f *fake, m *ocispec.Manifest) {
			m.Layers = append(m.Layers, f.blob(layerType, append(module, 0, 1, 0)))
		}), "it has 2 layers"},
		{"a module and a read-me", one(func(f *fake, m *ocispec.Manifest) {
			m.Layers = append(m.Layers, f.blob("text/markdown", []byte("# me")))
		}), "it has 2 layers"},
		{"a layer of another type", one(func(f *fake, m *ocispec.Manifest) { m.Layers[0].MediaType = "text/html" }), "its layer is text/html"},
		{"a layer of no type", one(func(f *fake, m *ocispec.Manifest) { m.Layers[0].MediaType = "" }), "its layer is "},
		{"a compressed layer", one(func(f *fake, m *ocispec.Manifest) { m.Layers[0].MediaType = "application/wasm+gzip" }), "its layer is compressed"},
		{"bytes that are no module", one(func(f *fake, m *ocispec.Manifest) { m.Layers[0] = f.blob(streamType, []byte("#!/bin/sh")) }), "no WebAssembly module"},
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
		if got != nil || effect.KindOf(err) != effect.Timeout || !strings.Contains(err.Error(), tt.want) {
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

// TestWhoGetsALogin: a registry that wants a login, with a token service and a place
// for blobs, of which each may be somewhere else.
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
	return func(_ context.Context, host string) (credential.Login, error) {
		*asked = host
		return login, nil
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
