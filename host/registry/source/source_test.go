package source

import (
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/registry"

	"github.com/stockade-dev/stockade/host/egress"
	"github.com/stockade-dev/stockade/host/registry/oci"
	"github.com/stockade-dev/stockade/host/registry/sign"
)

const (
	module   = "\x00asm\x01\x00\x00\x00"
	digest   = "93a44bbb96c751218e4c00d479e4c14358122a389acca16205b1e4d0dc5f9476"
	envelope = `{"payloadType":"text/plain","payload":"","signatures":[]}`
)

// reaching gives clients that reach the host which is named, and no other.
func reaching(t *testing.T, asked *[]string) func(base string) (*http.Client, error) {
	t.Helper()
	out, err := egress.New(egress.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return func(base string) (*http.Client, error) {
		*asked = append(*asked, base)
		to, err := egress.FetchNetwork(base, nil, true)
		if err != nil {
			return nil, err
		}
		client := out.FollowingClient(to, 0)
		t.Cleanup(client.CloseIdleConnections)
		return client, nil
	}
}

// put writes files below a new folder, which it returns. A name that ends in a slash
// is a folder.
func put(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		path := filepath.Join(dir, name)
		err := os.MkdirAll(filepath.Dir(path), 0o700)
		if strings.HasSuffix(name, "/") {
			err = errors.Join(err, os.MkdirAll(path, 0o700))
		} else {
			err = errors.Join(err, os.WriteFile(path, []byte(content), 0o600))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func large(t *testing.T, dir string) {
	t.Helper()
	f, err := os.Create(filepath.Join(dir, "large.wasm"))
	if err == nil {
		_, err = f.WriteString(module)
		err = errors.Join(err, f.Truncate(64<<20+1), f.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestFilesAndFolders(t *testing.T) {
	signed := sign.Evidence{Envelopes: [][]byte{[]byte(envelope)}}
	dir := put(t, map[string]string{
		"a.wasm": module, "a.wasm.dsse.json": envelope + "\n", "b.wasm": module, "b.wasm.dsse.json": "[" + envelope + ",\n" + envelope + "]",
		"one/c.wasm": module, "one/notes.txt": "", "one/sub.wasm/": "", "none/notes.txt": "",
		"text.wasm": "#!/bin/sh", "empty.wasm": "",
		"s1.wasm": module, "s1.wasm.dsse.json": "<html>", "s2.wasm": module, "s2.wasm.dsse.json": "[]", "s3.wasm": module, "s3.wasm.dsse.json": "[1]",
		"s4.wasm": module, "s4.wasm.dsse.json": "[" + strings.Repeat("{},", 64) + "{}]", "s5.wasm": module, "s5.wasm.dsse.json": `{"a":"` + strings.Repeat("a", 64<<10) + `"}`,
		"s6.wasm": module, "s6.wasm.dsse.json": "[" + strings.Repeat(" ", 1<<20) + "{}]", "s7.wasm": module, "s7.wasm.dsse.json/": "", "s8.wasm": module, "s8.wasm.dsse.json": "",
	})
	large(t, dir)
	for name, want := range map[string]*Candidate{
		"a.wasm": {Source: "a.wasm", Evidence: signed},
		"b.wasm": {Source: "b.wasm", Evidence: sign.Evidence{Envelopes: [][]byte{[]byte(envelope), []byte(envelope)}}},
		"one":    {Source: "one/c.wasm"},
	} {
		want.Code, want.Digest, want.Source = []byte(module), digest, filepath.Join(dir, want.Source)
		got, err := Fetch(t.Context(), filepath.Join(dir, name), Options{})
		if err != nil {
			t.Errorf("%s: %v", name, err)
		} else if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s:\n%s", name, diff)
		}
	}
	for name, want := range map[string]string{
		"other.wasm": "no such file or folder", "none": "no file NAME.wasm", ".": "NAME.wasm; name one of them", "one/sub.wasm": "no file NAME.wasm",
		"text.wasm": "no WebAssembly module", "empty.wasm": "no WebAssembly module", "large.wasm": "it has 67108865 bytes",
		"s1.wasm": "something else than a DSSE envelope", "s2.wasm": "neither a DSSE envelope nor", "s3.wasm": "something else", "s4.wasm": "neither", "s5.wasm": "something else",
		"s6.wasm": "more than 1048576 bytes", "s7.wasm": "not a regular file", "s8.wasm": "something else",
	} {
		if got, err := Fetch(t.Context(), filepath.Join(dir, name), Options{}); got != nil || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
	for ref, want := range map[string]string{
		"": "no file is named", "a\x00b": "no file is named", os.DevNull: "not a regular file",
		"ftp://r.example/a.wasm": "oci://HOST/REPOSITORY:TAG", "file:///etc/passwd": "is none of these", "HTTPS://r.example/a.wasm": "is none of these",
		"oci://r.example/notes": "names no version", "oci://r.example/notes:1": "the network is not used here", "https://r.example/a.wasm": "the network is not used here",
		"http://r.example/a.wasm": "use https://", "http://192.168.0.1/a.wasm": "use https://", "https://me:pw@r.example/a.wasm": "user name",
		"https://r.example/": "not the address of a file", "https://r.example": "not the address of a file", "https://r.example/a.wasm#b": "not the address of a file",
	} {
		if got, err := Fetch(t.Context(), ref, Options{}); got != nil || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, %v", ref, got, err)
		}
	}
}

func TestArtifacts(t *testing.T) {
	s := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(s.Close)
	host := strings.Replace(s.URL, "http://127.0.0.1:", "localhost:", 1)
	var asked []string
	opts := Options{Client: reaching(t, &asked)}

	ref, err := oci.ParseReference("oci://" + host + "/tools/notes:1")
	if err != nil {
		t.Fatal(err)
	}
	client, err := opts.Client(ref.Base())
	if err != nil {
		t.Fatal(err)
	}
	layout := oci.Layout{Dir: filepath.Join(t.TempDir(), "layout"), Tag: "1"}
	manifest, err := (&oci.Client{HTTP: client}).Push(t.Context(), ref, []byte(module), oci.Meta{Version: "1"}, [][]byte{[]byte(envelope)})
	if err != nil {
		t.Fatal(err)
	}
	if again, err := layout.Push(t.Context(), []byte(module), oci.Meta{Version: "1"}, [][]byte{[]byte(envelope)}); err != nil || again != manifest {
		t.Fatalf("in a layout it is %s, and not %s; %v", again, manifest, err)
	}
	asked = nil
	for in, want := range map[string]Candidate{
		ref.String(): {Source: ref.String(), Repository: host + "/tools/notes"},
		"oci://" + host + "/tools/notes@" + manifest: {Source: "oci://" + host + "/tools/notes@" + manifest, Repository: host + "/tools/notes"},
		layout.Dir:      {Source: layout.Dir},
		layout.String(): {Source: layout.String()},
	} {
		got, err := Fetch(t.Context(), in, opts)
		if err != nil {
			t.Errorf("%s: %v", in, err)
			continue
		}
		want.Code, want.Digest, want.ManifestDigest, want.Evidence = []byte(module), digest, manifest, sign.Evidence{Envelopes: [][]byte{[]byte(envelope)}}
		if diff := cmp.Diff(&want, got); diff != "" {
			t.Errorf("%s:\n%s", in, diff)
		}
	}
	if want := []string{"http://" + host, "http://" + host}; !cmp.Equal(asked, want) {
		t.Errorf("the network was asked for %q", asked)
	}
}

func TestWebServers(t *testing.T) {
	var mu sync.Mutex
	var elsewhere []string
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		elsewhere = append(elsewhere, r.URL.Path)
	}))
	t.Cleanup(other.Close)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name, isSignature := strings.CutSuffix(r.URL.Path, SignatureSuffix)
		if r.Header.Get("Authorization")+r.Header.Get("Cookie") != "" || r.Header.Get("Accept-Encoding") != "identity" {
			http.Error(w, "", http.StatusTeapot)
		}
		switch name {
		case "/missing.wasm":
			http.NotFound(w, r)
		case "/error.wasm":
			http.Error(w, "", http.StatusInternalServerError)
		case "/page.wasm":
			fmt.Fprint(w, "<html>")
		case "/large.wasm":
			w.Header().Set("Content-Length", fmt.Sprint(64<<20+1))
		case "/endless.wasm":
			_, err := fmt.Fprint(w, module)
			for chunk := make([]byte, 1<<20); err == nil; {
				_, err = w.Write(chunk)
			}
		case "/short.wasm":
			w.Header().Set("Content-Length", "100")
			fmt.Fprint(w, module)
		case "/compressed.wasm":
			w.Header().Set("Content-Encoding", "gzip")
			fmt.Fprint(w, module)
		case "/away.wasm":
			http.Redirect(w, r, other.URL+"/stolen", http.StatusFound)
		case "/unsigned.wasm":
			if isSignature {
				w.WriteHeader(http.StatusGone)
				return
			}
			fmt.Fprint(w, module)
		case "/hidden.wasm":
			if isSignature {
				w.WriteHeader(http.StatusForbidden)
				return
			}
			fmt.Fprint(w, module)
		case "/odd.wasm":
			if isSignature {
				fmt.Fprint(w, "<html>")
				return
			}
			fmt.Fprint(w, module)
		case "/a b/signed.wasm":
			if isSignature {
				fmt.Fprint(w, envelope)
				return
			}
			w.Header().Set("Content-Type", "text/html") // which says nothing
			fmt.Fprint(w, module)
		}
	}))
	t.Cleanup(s.Close)
	var asked []string
	var done, total int64
	opts := Options{Client: reaching(t, &asked), Progress: func(d, n int64) { done, total = d, n }}
	for path, want := range map[string]string{
		"/a%20b/signed.wasm?v=1": "", "/unsigned.wasm": "",
		"/missing.wasm": "does not have it", "/error.wasm": "status 500", "/page.wasm": "no WebAssembly module", "/large.wasm": "it has 67108865 bytes",
		"/endless.wasm": "more than the 67108864 bytes", "/short.wasm": "unexpected EOF", "/compressed.wasm": "compressed it", "/away.wasm": "would allow it",
		"/hidden.wasm": "status 403", "/odd.wasm": "something else than a DSSE envelope",
	} {
		got, err := Fetch(t.Context(), s.URL+path, opts)
		if want != "" {
			if got != nil || err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, %v", path, got, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		signatures := 0
		if strings.Contains(path, "/signed") {
			signatures = 1
		}
		if got.Digest != digest || got.Source != s.URL+path || len(got.Evidence.Envelopes) != signatures || done != 8 || total != 8 {
			t.Errorf("%s: %+v, %d of %d", path, got, done, total)
		}
	}
	if elsewhere != nil {
		t.Errorf("another host was asked for %q", elsewhere)
	}
	for _, base := range asked {
		if base != s.URL {
			t.Errorf("the network was asked for %s", base)
		}
	}
}
