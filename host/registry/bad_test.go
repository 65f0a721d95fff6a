package registry_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stockade-dev/stockade/guests/gueststest"
	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/registry"
	"github.com/stockade-dev/stockade/host/registry/sign"
	"github.com/stockade-dev/stockade/host/registry/source"
	"github.com/stockade-dev/stockade/host/registry/trust"
	"github.com/stockade-dev/stockade/host/wasm/wasmtest"
)

// bad is a case with one mistake in a module, its signature, its registry or its name.
type bad struct {
	what   string
	change func(x *thing)
	want   string // in the error
	// update is set if it is a mistake only in the place of an older version.
	update bool
}

// oneTool is the JSON of a tool; rest begins with a comma.
func oneTool(name, rest string) string {
	return fmt.Sprintf(`{"name":%q,"description":"It was made for a test.","parameters":{"type":"object"}%s}`, name, rest)
}

// imported returns the import of a function of a host module.
func imported(host, name string, params ...wasmtest.ValType) []wasmtest.Import {
	return []wasmtest.Import{{Module: "stockade:tool/" + host + "@0.1.0", Name: name, Params: params}}
}

// flipped returns data with one bit of the middle byte changed.
func flipped(data []byte) []byte {
	out := bytes.Clone(data)
	out[len(out)/2] ^= 1
	return out
}

// instead makes the registry answer requests for one kind of thing in another way.
func instead(kind string, answer http.HandlerFunc) func(x *thing) {
	return func(x *thing) {
		x.instead = func(w http.ResponseWriter, r *http.Request) bool {
			if !strings.Contains(r.URL.Path, "/"+kind+"/") {
				return false
			}
			answer(w, r)
			return true
		}
	}
}

func signedAs(change func(*sign.Statement)) func(x *thing) {
	return func(x *thing) { x.statement = change }
}

// other is a server that nobody has named.
func other(t *testing.T) (url string, asked *atomic.Int32) {
	asked = new(atomic.Int32)
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	t.Cleanup(s.Close)
	return s.URL, asked
}

func badInputs(w *world, elsewhere string) []bad {
	from := func(layer policy.Provenance, values ...string) []policy.List {
		return []policy.List{{Values: values, From: layer}}
	}
	admin := policy.Provenance{Source: policy.SourceAdmin}
	return []bad{
		// The signature is about something else.
		{"stripped of its signature", func(x *thing) { x.signers = nil }, "this module has none that counts", true},
		{"signed by a stranger instead", func(x *thing) { x.signers = []sign.PrivateKey{w.stranger} }, "this module has none that counts", true},
		{"unsigned where the administrator wants a signature", func(x *thing) {
			x.name, x.signers, x.ceiling.SignedOnly = "climate", nil, []policy.Setting{{From: admin}}
		}, "the module is not signed: administrator", false},
		{"signed by somebody whom the administrator does not know", func(x *thing) { x.ceiling.SignedOnly = []policy.Setting{{From: admin}} }, "nobody whom the administrator knows", false},
		{"swapped for another module, under the signature of the first", func(x *thing) {
			good := x.envelope(x.module())
			x.tools, x.envelopes = oneTool("now", `,"capabilities":{"files":"write"}`), func([][]byte) [][]byte { return [][]byte{good} }
		}, "it is for the module", false},
		{"replayed: the signature of the version before", func(x *thing) {
			old := w.honest("1.0.0").envelope(w.honest("1.0.0").module())
			x.envelopes = func([][]byte) [][]byte { return [][]byte{old} }
		}, `it is for the version "1.0.0"`, false},
		{"replayed: an older signature of the same version", signedAs(func(st *sign.Statement) { st.Issued = day0.AddDate(0, -1, 0) }), "it was issued on 2026-05-01", true},
		{"downgraded", func(x *thing) { x.version = "0.9.0" }, `version "0.9.0" is older than 1.0.0`, true},
		{"a version that is there, with other bytes", func(x *thing) { x.version, x.tools = "1.0.0", oneTool("now", "") }, "version 1.0.0 is there already", true},
		{"signed with a key that was revoked", func(x *thing) {
			x.revoked = func(string, string) trust.Revocation {
				return trust.Revocation{Key: w.first.Public().ID(), Why: "stolen"}
			}
		}, "is revoked by trust.toml: stolen", false},
		{"a module that was revoked", func(x *thing) {
			x.revoked = func(digest, _ string) trust.Revocation { return trust.Revocation{Digest: digest, Why: "mines coins"} }
		}, "mines coins", false},
		{"an OCI manifest that was revoked", func(x *thing) {
			x.revoked = func(_, manifest string) trust.Revocation { return trust.Revocation{Digest: manifest} }
		}, "is revoked by trust.toml", false},
		{"expired", signedAs(func(st *sign.Statement) { st.Expires = day0.Add(-time.Minute) }), "it expired on", false},
		{"signed in the future", signedAs(func(st *sign.Statement) { st.Issued = day0.AddDate(0, 0, 1) }), "which is still to come", false},
		{"of a publisher who is not trusted any more", func(x *thing) { x.publisher.Expires = day0 }, "trusts it until", false},
		{"signed for another repository", signedAs(func(st *sign.Statement) { st.Repository = "evil.example/tools/weather" }), "it is for the repository", false},
		{"moved to another repository", func(x *thing) {
			good := x.envelope(x.module())
			x.repository, x.envelopes = "tools/time", func([][]byte) [][]byte { return [][]byte{good} }
		}, "it is for the repository", false},
		{"signed as a file", signedAs(func(st *sign.Statement) { st.Repository = "" }), "it is for a file", false},
		{"outside of what its publisher may sign", func(x *thing) { x.publisher.Namespaces = []string{w.web.host + "/too"} }, "does not let it sign", false},
		{"signed under another name", signedAs(func(st *sign.Statement) { st.Name = "time" }), `it is for the name "time"`, false},
		{"signed for other needs", signedAs(func(st *sign.Statement) { st.Fingerprint.Needs = strings.Repeat("0", 64) }), "it is for other needs", false},
		{"signed for other descriptions", signedAs(func(st *sign.Statement) { st.Fingerprint.Description = strings.Repeat("0", 64) }), "it is for other descriptions", false},
		{"signed by one key where two have to", func(x *thing) { x.publisher.Threshold = 2 }, "2 of its keys have to sign, and 1 did", false},
		{"a signature that was damaged", func(x *thing) {
			x.envelopes = func(e [][]byte) [][]byte { return [][]byte{flipped(e[0])} }
		}, "signature: ", false},
		{"a signature that is no envelope", func(x *thing) {
			x.envelopes = func([][]byte) [][]byte { return [][]byte{[]byte("{}")} }
		}, "signature: ", false},
		{"a version that is not semantic, signed", func(x *thing) { x.version, x.statement = "1.1", func(st *sign.Statement) { st.Version = "1.1.0" } }, `it is for the version "1.1.0", and this module's is "1.1"`, false},

		// The registry lies.
		{"a tag that was moved: the pin names another manifest", func(x *thing) {
			_, digest := w.honest("1.0.0").publish()
			x.ref = "oci://HOST/tools/weather@" + digest
		}, "does not have it", false},
		{"a manifest that is not the pinned one", func(x *thing) {
			_, digest := w.honest("1.0.0").publish()
			x.ref, x.pages = "oci://HOST/tools/weather@"+digest, func(descriptor) {
				w.web.pages["tools/weather/manifests/"+digest] = w.web.pages["tools/weather/manifests/1"]
			}
		}, "sha256", false},
		{"a swapped layer", func(x *thing) {
			x.pages = func(descriptor) {
				for path, p := range w.web.pages {
					if strings.Contains(path, "/blobs/") && bytes.HasPrefix(p.body, []byte("\x00asm")) {
						w.web.pages[path] = page{p.mediaType, flipped(p.body)}
					}
				}
			}
		}, "what came has the SHA-256", false},
		{"two layers", func(x *thing) { x.layers = func(m *manifest) { m.Layers = append(m.Layers, m.Layers[0]) } }, "it holds 2 modules", false},
		{"no layer", func(x *thing) { x.layers = func(m *manifest) { m.Layers = []descriptor{} } }, "it has 0 layers", false},
		{"a layer that is compressed in another way", func(x *thing) {
			x.layers = func(m *manifest) { m.Layers[0].MediaType = "application/vnd.oci.image.layer.v1.tar+zstd" }
		}, "its layer is compressed", false},
		{"a layer whose digest holds ..", func(x *thing) {
			x.layers = func(m *manifest) { m.Layers[0].Digest = "sha256:../../../../etc/passwd" }
		}, "not the digest of a SHA-256", false},
		{"a layer that is no module", func(x *thing) { x.code = []byte("#!/bin/sh\n") }, "none of its 1 files is a WebAssembly module", false},
		{"a module that is cut off", func(x *thing) { x.code = x.module()[:200] }, "malformed module", false},
		{"a huge manifest", func(x *thing) {
			x.layers = func(m *manifest) { m.Annotations = map[string]string{"x": strings.Repeat("x", 300<<10)} }
		}, "its manifest: it has 30", false},
		{"a huge layer", func(x *thing) { x.layers = func(m *manifest) { m.Layers[0].Size = 64<<20 + 1 } }, "its module: it has 67108865 bytes", false},
		{"a layer that is longer than it says", func(x *thing) { x.layers = func(m *manifest) { m.Layers[0].Size -= 8 } }, "its module: ", false},
		{"a manifest that is an index", func(x *thing) {
			x.pages = func(descriptor) {
				index := page{indexType, []byte(`{"schemaVersion":2,"manifests":[]}`)}
				w.web.pages["tools/weather/manifests/1"], w.web.pages["tools/weather/manifests/sha256:"+hash(index.body)] = index, index
			}
		}, "an index of 0 images", false},
		{"a registry that hides its signatures", instead("referrers", func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "", http.StatusInternalServerError)
		}), "status 500", false},
		{"a signature of another artifact", func(x *thing) {
			x.pages = func(d descriptor) {
				list := w.web.pages["tools/weather/referrers/"+d.Digest]
				x.layers = nil
				again := w.honest("1.0.0").module()
				m := manifest{SchemaVersion: 2, MediaType: manifestType, Config: descriptor{"application/vnd.wasm.config.v0+json", "sha256:" + hash([]byte("{}")), 2, ""}, Layers: []descriptor{w.web.blob("tools/weather", "application/wasm", again)}}
				moved := w.web.manifest("tools/weather", m, "1")
				w.web.pages["tools/weather/referrers/"+moved.Digest] = list
			}
		}, "is about another artifact", false},
		{"a redirect to another host", instead("blobs", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, elsewhere, http.StatusTemporaryRedirect)
		}), "would allow it", false},
		{"a redirect to the metadata of a cloud", instead("blobs", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://169.254.169.254/latest", http.StatusFound)
		}), "169.254.169.254", false},
		{"a registry that wants a login", instead("manifests", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("WWW-Authenticate", `Basic realm="r"`)
			w.WriteHeader(http.StatusUnauthorized)
		}), "docker login", false},
		{"a registry that sends the login elsewhere", instead("manifests", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("WWW-Authenticate", `Bearer realm="`+elsewhere+`/token",service="r"`)
			w.WriteHeader(http.StatusUnauthorized)
		}), "would allow it", false},
		{"a registry that is slow", func(x *thing) {
			x.idle = 50 * time.Millisecond
			instead("blobs", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })(x)
		}, "has not answered or taken anything for 50ms", false},
		{"a registry that breaks off half-way", instead("blobs", func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte("\x00asm"))
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		}), "unexpected EOF", false},
		{"a person who stops it", func(x *thing) {
			ctx, stop := context.WithCancel(x.ctx)
			x.ctx = ctx
			instead("blobs", func(_ http.ResponseWriter, r *http.Request) { stop(); <-r.Context().Done() })(x)
		}, "context canceled", false},
		{"a name of a repository with ..", func(x *thing) { x.ref = "oci://HOST/tools/../weather:1" }, `"tools/../weather" is no repository`, false},
		{"a tag with ..", func(x *thing) { x.ref = "oci://HOST/tools/weather:../1" }, `"../1" is no tag`, false},
		{"no tag", func(x *thing) { x.ref = "oci://HOST/tools/weather" }, "names no version", false},
		{"another scheme", func(x *thing) { x.ref = "ftp://HOST/weather.wasm" }, "is none of these", false},
		{"http from elsewhere", func(x *thing) { x.ref = "http://r.example/weather.wasm" }, "use https://", false},
		{"bytes that changed after they were fetched", func(x *thing) {
			x.local = func(c *source.Candidate) { c.Code = flipped(c.Code) }
		}, "is not in the store", false},

		// The manifest or the name is wrong.
		{"the name of a built-in tool", func(x *thing) { x.name = "bash" }, `"bash" is the name of a built-in tool`, false},
		{"the name of a tool that is to come, by --as", func(x *thing) { x.as = "web_search" }, "is the name of a built-in tool", false},
		{"a name that looks like that of a built-in tool", func(x *thing) { x.name = "f1le_read" }, `looks like "file_read"`, false},
		{"a name that looks like that of another module, by --as", func(x *thing) { x.as = "c1ock" }, `looks like "clock"`, false},
		{"a name in another case", func(x *thing) { x.name = "Clock" }, `looks like "clock"`, false},
		{"a name with ..", func(x *thing) { x.name = "../../bin/sh" }, "module name", false},
		{"a name with .. by --as", func(x *thing) { x.as = "../weather" }, "is not 1 to 40 letters", false},
		{"a name like an option, by --as", func(x *thing) { x.as = "-weather" }, "begins with '-'", false},
		{"a name that is too long", func(x *thing) { x.name = strings.Repeat("w", 41) }, "is not 1 to 40 letters", false},
		{"a name with a colour of a terminal", func(x *thing) { x.name = "w\x1b[31m" }, "module name", false},
		{"a tool whose name holds ..", func(x *thing) { x.tools = oneTool("../now", "") }, "is not 1 to 64 letters", false},
		{"two tools of one name", func(x *thing) { x.tools = oneTool("now", "") + "," + oneTool("now", "") }, "two tools are named", false},
		{"no tool", func(x *thing) { x.tools = "" }, "holds no tool", false},
		{"129 tools", func(x *thing) {
			var all []string
			for i := range 129 {
				all = append(all, oneTool(fmt.Sprint("t", i), ""))
			}
			x.tools = strings.Join(all, ",")
		}, "129 tools, more than the limit of 128", false},
		{"a description that is too long", func(x *thing) {
			x.tools = strings.Replace(weatherTool, "The weather", strings.Repeat("x", 8<<10), 1)
		}, "description has 82", false},
		{"a manifest that is too long", func(x *thing) {
			x.tools = oneTool("now", `,"x":"`+strings.Repeat("x", 256<<10)+`"`)
		}, "more than the limit of 262144", false},
		{"a manifest that is nested too deep", func(x *thing) {
			x.tools = oneTool("now", `,"x":`+strings.Repeat("[", 10_000)+strings.Repeat("]", 10_000))
		}, "manifest: ", false},
		{"a need that is spelled twice", func(x *thing) {
			x.tools = oneTool("now", `,"capabilities":{"files":"read","Files":"write"}`)
		}, "manifest: ", false},
		{"a need that does not exist", func(x *thing) { x.tools = oneTool("now", `,"capabilities":{"root":"yes"}`) }, "manifest: ", false},
		{"a manifest of another ABI", func(x *thing) {
			x.code = bytes.Replace(x.module(), []byte(`"stockade:tool@0.1.0"`), []byte(`"stockade:tool@9.1.0"`), 2)
		}, "for the ABI", false},
		{"a module that imports more than it asks for", func(x *thing) {
			x.imports = imported("secrets", "placeholder", wasmtest.I32, wasmtest.I32, wasmtest.I32)
		}, "it imports secrets, which none of its tools asks for", false},
		{"a module that imports what there is not", func(x *thing) { x.imports = imported("kernel", "panic") }, "kernel", false},

		// A layer of the policy forbids it.
		{"from a registry that the administrator does not allow", func(x *thing) { x.ceiling.Registries = from(admin, "registry.corp.example") }, "modules are added from no place but", false},
		{"where the administrator has forbidden to add", func(x *thing) { x.ceiling.ModulesClosed = []policy.Setting{{From: admin}} }, "modules are not added", false},
		{"that is none of those that may run", func(x *thing) {
			x.ceiling.Modules = []policy.ModuleList{{From: admin, Digests: []string{strings.Repeat("0", 64)}}}
		}, "none of those that may run", false},
	}
}

// TestBadInputsAreRefusedAndLeaveNothing tries to add each bad module, as the first version
// and in the place of an older one. After that the store has the same bytes, its modules are
// offered as before, and the module without the mistake can be added.
func TestBadInputsAreRefusedAndLeaveNothing(t *testing.T) {
	elsewhere, asked := other(t)
	w := newWorld(t)
	w.addFile("clock", "1.0.0", oneTool("now", ""))
	seen := map[string]bool{}
	rows := badInputs(w, elsewhere)
	for _, tt := range rows {
		if seen[tt.what] {
			t.Fatalf("%s: twice", tt.what)
		}
		seen[tt.what] = true
	}
	tries := 0
	for _, update := range []bool{false, true} {
		want := []string{"clock_now 1.0.0"}
		if update {
			must(t, w.honest("1.0.0").add())
			want = append(want, "weather_now 1.0.0")
		}
		backup := t.TempDir()
		must(t, os.CopyFS(backup+"/m", os.DirFS(w.dir)))
		before := tree(t, w.dir)
		for _, tt := range rows {
			if tt.update && !update {
				continue
			}
			tries++
			x := w.honest("1.1.0")
			tt.change(x)
			err := x.add()
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%s (update: %v): %v", tt.what, update, err)
			}
			if now := tree(t, w.dir); !same(before, now) {
				t.Errorf("%s (update: %v): the store has changed", tt.what, update)
			}
			if got := w.names(); !slices.Equal(got, want) {
				t.Errorf("%s (update: %v): offered are %q", tt.what, update, got)
			}
			if err := w.honest("1.1.0").add(); err != nil {
				t.Errorf("%s (update: %v): the counter-proof: %v", tt.what, update, err)
			}
			if got := w.names(); !slices.Contains(got, "weather_now 1.1.0") {
				t.Errorf("%s (update: %v): the counter-proof: offered are %q", tt.what, update, got)
			}
			restore(t, w.dir, filepath.Join(backup, "m"), before)
		}
	}
	if n := asked.Load(); n != 0 {
		t.Errorf("a server that nobody has named was asked %d times", n)
	}
	t.Logf("%d bad inputs, %d tries", len(rows), tries)
}

// TestNamesThatLookAlikeAreOne: a person would confuse the names of each pair.
func TestNamesThatLookAlikeAreOne(t *testing.T) {
	for _, pair := range [][2]string{
		{"clock", "c1ock"}, {"clock", "CIock"}, {"clock", "dock"}, {"modern", "modem"}, {"web-view", "vveb_view"}, {"gooO5", "g00os"}, {"barn2", "bamz"}, {"8all", "ball"},
	} {
		for _, p := range [][2]string{pair, {pair[1], pair[0]}} {
			if err := registry.CheckName(p[0], []string{p[1]}); err == nil {
				t.Errorf("%s beside %s", p[0], p[1])
			}
		}
		if err := errors.Join(registry.CheckName(pair[0], nil), registry.CheckName(pair[1], []string{"weather"})); err != nil {
			t.Errorf("the counter-proof: %v", err)
		}
	}
}

// TestCollisionsSwitchOffTheStrangersTool: two modules have tools with the same full name,
// or a similar one, or one that is too long. The first tool stays, and so do all others.
func TestCollisionsSwitchOffTheStrangersTool(t *testing.T) {
	gueststest.Need(t)
	long := strings.Repeat("w", 60)
	for _, tt := range []struct {
		what          string
		module, tools string
		off, why      string
	}{
		{"the name of another's tool", "a_b", oneTool("c", "") + "," + oneTool("d", ""), "a_b_c", "a_b_c of the module a has that name"},
		{"a name that looks like that of another's tool", "a-b", oneTool("c", "") + "," + oneTool("d", ""), "a-b_c", "a_b_c of the module a has that name, or one that looks like it"},
		{"a name in another case", "A_B", oneTool("C", "") + "," + oneTool("d", ""), "A_B_C", "a_b_c of the module a has that name, or one that looks like it"},
		{"the name of a built-in tool", "file", oneTool("read", "") + "," + oneTool("d", ""), "file_read", `"file_read" is the name of a built-in tool`},
		{"a name that looks like that of a built-in tool", "FILE", oneTool("edlt", "") + "," + oneTool("d", ""), "FILE_edlt", `"file_edit" is the name of a built-in tool`},
		{"a name that is too long with that of its module", "weather", oneTool(long, "") + "," + oneTool("d", ""), "weather_" + long, "more than 64 characters"},
	} {
		w := newWorld(t)
		w.addFile("a", "1.0.0", oneTool("b_c", ""))
		later := w.honest("1.0.0")
		path := filepath.Join(t.TempDir(), "later.wasm")
		must(t, os.WriteFile(path, module(tt.module, "1.0.0", tt.tools), 0o600))
		later.ref, later.now = path, day0.Add(time.Hour)
		must(t, later.add())

		added, err := registry.Modules(w.store, registry.Scope{Project: &registry.Project{Workspace: t.TempDir()}, Trust: trust.Combine()})
		must(t, err)
		added = registry.ResolveNames(added)
		off := ""
		for _, m := range added {
			for _, tool := range m.Tools {
				if tool.OffReason != "" {
					off += tool.Name
					if !strings.Contains(tool.OffReason, tt.why) {
						t.Errorf("%s: it is off because %s", tt.what, tool.OffReason)
					}
				}
			}
		}
		if off != tt.off {
			t.Errorf("%s: switched off is %q", tt.what, off)
		}
		catalog, err := registry.OfferedTools(added)
		must(t, err)
		names := catalog.Names()
		for _, name := range []string{"a_b_c", "file_read", "file_edit", tt.module + "_d"} {
			if !slices.Contains(names, name) {
				t.Errorf("%s: %s is not offered", tt.what, name)
			}
		}
	}
}

// restore puts a store back to what it was.
func restore(t *testing.T, dir, backup string, want map[string]string) {
	t.Helper()
	for path := range tree(t, dir) {
		rel, err := filepath.Rel(dir, path)
		must(t, err)
		if _, had := want[path]; !had {
			must(t, os.Remove(path))
		} else if rel == "index.json" {
			data, err := os.ReadFile(filepath.Join(backup, rel))
			must(t, err, os.WriteFile(path, data, 0o600))
		}
	}
	if !same(tree(t, dir), want) {
		t.Fatal("the store could not be put back")
	}
}
