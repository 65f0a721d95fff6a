package oci

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2"
	"oras.land/oras-go/v2/content"
	oraslayout "oras.land/oras-go/v2/content/oci"
	"oras.land/oras-go/v2/errdef"

	"github.com/stockade-dev/stockade/host/registry/sign"
)

func TestReferences(t *testing.T) {
	d := "sha256:" + strings.Repeat("ab", 32)
	for in, want := range map[string]string{
		"oci://r.example/notes:1.0.0":                              "oci://r.example/notes:1.0.0",
		"oci://R.EXAMPLE./a/b_c/d--e:latest":                       "oci://r.example/a/b_c/d--e:latest",
		"oci://r.example:443/notes:1":                              "oci://r.example/notes:1",
		"oci://r.example:5000/notes@" + d:                          "oci://r.example:5000/notes@" + d,
		"oci://r.example/notes:1@" + d:                             "oci://r.example/notes:1@" + d,
		"oci://localhost:80/notes:1":                               "oci://localhost/notes:1",
		"oci://[::1]:5000/notes:1":                                 "oci://[::1]:5000/notes:1",
		"oci://docker.io/me/notes:1":                               "oci://docker.io/me/notes:1",
		"r.example/notes:1":                                        "it does not begin with oci://",
		"oci://r.example/notes":                                    "it names no version; add a tag",
		"oci://r.example":                                          "no repository follows the host",
		"oci://r.example/:1":                                       "no repository",
		"oci:///notes:1":                                           "host",
		"oci://me:pw@r.example/notes:1":                            "user name",
		"oci://r.example/Notes:1":                                  "no repository",
		"oci://r.example/../etc:1":                                 "no repository",
		"oci://r.example/a/../b:1":                                 "no repository",
		"oci://r.example/a//b:1":                                   "no repository",
		"oci://r.example/a?x=/b:1":                                 "no repository",
		"oci://r.example/a%2e:1":                                   "no repository",
		"oci://r.example/" + strings.Repeat("a", 256) + ":1":       "no repository",
		"oci://r.example/notes:a/b":                                "no tag",
		"oci://r.example/notes:":                                   "no tag",
		"oci://r.example/notes:-1":                                 "no tag",
		"oci://r.example/notes:" + strings.Repeat("a", 129):        "no tag",
		"oci://r.example/notes@sha256:abc":                         "64 hexadecimal digits",
		"oci://r.example/notes@sha512:" + strings.Repeat("ab", 64): "64 hexadecimal digits",
		"oci://r.example/notes@" + strings.ToUpper(d):              "64 hexadecimal digits",
		"oci://127.1/notes:1":                                      "host",
		"oci://r.example:99999/notes:1":                            "port",
		"oci://r.example\\@evil/notes:1":                           "user name",
		"oci://r.example/" + strings.Repeat("a/", 600) + ":1":      "more than 1024",
	} {
		ref, err := ParseReference(in)
		if strings.HasPrefix(want, "oci://") {
			if err != nil || ref.String() != want {
				t.Errorf("%s: %s, %v", in, ref, err)
			}
			if again, err := ParseReference(ref.String()); err != nil || again != ref {
				t.Errorf("%s: its one form is read as %v, %v", in, again, err)
			}
		} else if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, %v", in, ref, err)
		}
	}
	for in, want := range map[string]string{
		"oci://r.example/notes:1":         "https://r.example",
		"oci://docker.io/me/notes:1":      "https://registry-1.docker.io",
		"oci://localhost:5000/notes:1":    "http://localhost:5000",
		"oci://127.0.0.7/notes:1":         "http://127.0.0.7",
		"oci://[::1]:5000/notes:1":        "http://[::1]:5000",
		"oci://localhost.example/notes:1": "https://localhost.example",
		"oci://192.168.0.1:5000/notes:1":  "https://192.168.0.1:5000",
	} {
		if got := parse(t, in).Base(); got != want {
			t.Errorf("%s is reached at %s, want %s", in, got, want)
		}
	}
}

func sum(data []byte) string {
	s := sha256.Sum256(data)
	return hex.EncodeToString(s[:])
}

func TestPushAndPull(t *testing.T) {
	meta := Meta{Title: "notes.wasm", Version: "1.0.0", Description: "keeps notes", Created: time.Unix(1e9, 0)}
	for name, host := range registries(t) {
		t.Run(name, func(t *testing.T) {
			c := &Client{HTTP: reaching(t, 0, "http://"+host)}
			ref := parse(t, "oci://"+host+"/tools/notes:1.0.0")
			digest, err := c.Push(t.Context(), ref, module, meta, [][]byte{[]byte(envelope)})
			if err != nil {
				t.Fatal(err)
			}
			if again, err := c.Push(t.Context(), ref, module, meta, [][]byte{[]byte(envelope)}); err != nil || again != digest {
				t.Errorf("pushed again: %s, %v; was %s", again, err, digest)
			}
			want := &Artifact{ManifestDigest: digest, Code: module, Digest: sum(module), Evidence: sign.Evidence{Envelopes: [][]byte{[]byte(envelope)}}}
			pinned := ref
			pinned.Tag, pinned.Digest = "", digest
			var done, total int64
			c.Progress = func(d, n int64) { done, total = d, n }
			for _, ref := range []Reference{ref, pinned} {
				got, err := c.Pull(t.Context(), ref)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("%s:\n%s", ref, diff)
				}
			}
			if done != 8 || total != 8 {
				t.Errorf("progress ends at %d of %d", done, total)
			}
			repository := c.repository(ref)
			d, err := repository.Resolve(t.Context(), digest)
			if err != nil {
				t.Fatal(err)
			}
			m, err := fetchManifest(t.Context(), repository, d)
			if err != nil {
				t.Fatal(err)
			}
			const words = "org.opencontainers.image."
			if diff := cmp.Diff(map[string]string{words + "version": "1.0.0", words + "description": "keeps notes", words + "created": "2001-09-09T01:46:40Z"}, m.Annotations); diff != "" {
				t.Errorf("the manifest says in words:\n%s", diff)
			}
			if got := m.Layers[0].Annotations[words+"title"]; got != "notes.wasm" {
				t.Errorf("the title is %q", got)
			}
			if again, err := c.Push(t.Context(), ref, module, meta, [][]byte{[]byte(`{"second":true}`)}); err != nil || again != digest {
				t.Errorf("pushed with another signature: %s, %v; was %s", again, err, digest)
			}
			if got, err := c.Pull(t.Context(), ref); err != nil || len(got.Evidence.Envelopes) != 2 {
				t.Errorf("with both signatures: %+v, %v", got, err)
			}
			// The tag moves; the digest does not.
			other := append(bytes.Clone(module), 0, 1, 0)
			moved, err := c.Push(t.Context(), ref, other, meta, nil)
			if err != nil {
				t.Fatal(err)
			}
			if got, err := c.Pull(t.Context(), ref); err != nil || got.ManifestDigest != moved || len(got.Evidence.Envelopes) != 0 {
				t.Errorf("by the tag that has moved: %+v, %v", got, err)
			}
			both := ref
			both.Digest = digest
			if got, err := c.Pull(t.Context(), both); err != nil || got.Digest != sum(module) {
				t.Errorf("by the tag that has moved, with the digest: %+v, %v", got, err)
			}
			// Neither is there.
			for _, s := range []string{":2.0.0", "@sha256:" + strings.Repeat("0", 64)} {
				if got, err := c.Pull(t.Context(), parse(t, "oci://"+host+"/tools/notes"+s)); got != nil || err == nil || !strings.Contains(err.Error(), "does not have it") {
					t.Errorf("%s: %v, %v", s, got, err)
				}
			}
		})
	}
}

// artifact pushes an artifact of others to a place.
type artifact struct {
	what         string
	artifactType string
	config       string // its media type; empty: the empty one
	layer        string
	refused      string // why; empty: it is accepted
}

var artifacts = []artifact{
	{"as wkg does it", "", configType, layerType, ""},
	{"with an artifact type and no configuration", "application/vnd.example.tool", "", layerType, ""},
	{"in the layout before the CNCF's", "", "application/vnd.module.wasm.config.v1+json", "application/vnd.module.wasm.content.layer.v1+wasm", ""},
	{"in another of these", "", "application/vnd.wasm.config.v1+json", "application/vnd.wasm.content.layer.v1+wasm", ""},
	{"as oras does it for any file", "application/vnd.unknown.artifact.v1", "", "application/octet-stream", ""},
	{"as oras does it if nobody says what it is", "application/vnd.unknown.artifact.v1", "", ocispec.MediaTypeImageLayer, ""},
	{"compressed in another way", "", ocispec.MediaTypeImageConfig, ocispec.MediaTypeImageLayerZstd, "its layer is compressed"},
}

// bytesTo pushes a blob, which may be there.
func bytesTo(ctx context.Context, to oras.Target, mediaType string, data []byte) (ocispec.Descriptor, error) {
	d, err := oras.PushBytes(ctx, to, mediaType, data)
	if errors.Is(err, errdef.ErrAlreadyExists) {
		return content.NewDescriptorFromBytes(mediaType, data), nil
	}
	return d, err
}

func (a artifact) push(ctx context.Context, to oras.Target, tag string) error {
	layer, err := bytesTo(ctx, to, a.layer, module)
	if err != nil {
		return err
	}
	opts := oras.PackManifestOptions{Layers: []ocispec.Descriptor{layer}}
	if a.config != "" {
		config, err := bytesTo(ctx, to, a.config, []byte("{}"))
		if err != nil {
			return err
		}
		opts.ConfigDescriptor = &config
	}
	m, err := oras.PackManifest(ctx, to, oras.PackManifestVersion1_1, a.artifactType, opts)
	if err != nil {
		return err
	}
	return to.Tag(ctx, m, tag)
}

func TestArtifactsOfOthers(t *testing.T) {
	for name, host := range registries(t) {
		c := &Client{HTTP: reaching(t, 0, "http://"+host)}
		ref := parse(t, "oci://"+host+"/others:1")
		for _, a := range artifacts {
			if err := a.push(t.Context(), c.repository(ref), "1"); err != nil {
				t.Fatalf("%s, %s: %v", name, a.what, err)
			}
			got, err := c.Pull(t.Context(), ref)
			if a.refused != "" {
				if got != nil || err == nil || !strings.Contains(err.Error(), a.refused) {
					t.Errorf("%s, %s: %v", name, a.what, err)
				}
			} else if err != nil || !bytes.Equal(got.Code, module) {
				t.Errorf("%s, %s: %v", name, a.what, err)
			}
		}
	}
}

// cosign pushes a signature as cosign does.
func cosign(ctx context.Context, to oras.Target, subject ocispec.Descriptor, referrer bool) error {
	layer := content.NewDescriptorFromBytes(payloadType, []byte(`{"critical":{}}`))
	if err := to.Push(ctx, layer, strings.NewReader(`{"critical":{}}`)); err != nil {
		return err
	}
	layer.Annotations = map[string]string{cosignName: "c2lnbmF0dXJl"}
	config, err := bytesTo(ctx, to, ocispec.MediaTypeImageConfig, []byte("{}"))
	if err != nil {
		return err
	}
	opts := oras.PackManifestOptions{Layers: []ocispec.Descriptor{layer}, ConfigDescriptor: &config}
	if referrer {
		opts.Subject = &subject
		_, err = oras.PackManifest(ctx, to, oras.PackManifestVersion1_1, cosignType, opts)
		return err
	}
	m, err := oras.PackManifest(ctx, to, oras.PackManifestVersion1_1, "", opts)
	if err != nil {
		return err
	}
	return to.Tag(ctx, m, strings.Replace(string(subject.Digest), ":", "-", 1)+".sig")
}

func TestSignaturesOfCosign(t *testing.T) {
	want := sign.Cosign{Payload: []byte(`{"critical":{}}`), Signature: "c2lnbmF0dXJl"}
	for name, host := range registries(t) {
		for _, referrer := range []bool{false, true} {
			if referrer && name == "one with a list of referrers" {
				continue // which takes the type of the configuration for that of the artifact
			}
			c := &Client{HTTP: reaching(t, 0, "http://"+host)}
			ref := parse(t, fmt.Sprintf("oci://%s/cosigned-%v:1", host, referrer))
			to := c.repository(ref)
			if err := artifacts[0].push(t.Context(), to, "1"); err != nil {
				t.Fatal(err)
			}
			subject, err := to.Resolve(t.Context(), "1")
			if err == nil {
				err = cosign(t.Context(), to, subject, referrer)
			}
			if err != nil {
				t.Fatal(err)
			}
			got, err := c.Pull(t.Context(), ref)
			if err != nil {
				t.Fatalf("%s, referrer %v: %v", name, referrer, err)
			}
			if diff := cmp.Diff([]sign.Cosign{want}, got.Evidence.Cosign); diff != "" {
				t.Errorf("%s, referrer %v:\n%s", name, referrer, diff)
			}
		}
	}
}

// tree lists the files below a folder with what they hold.
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		out[path] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestLayouts(t *testing.T) {
	ctx := t.Context()
	dir := filepath.Join(t.TempDir(), "air:gap")
	l := ParseLayout(dir + ":1.0.0")
	if l.Dir != dir || l.Tag != "1.0.0" {
		t.Fatalf("%+v", l)
	}
	digest, err := l.Push(ctx, module, Meta{Title: "notes.wasm", Created: time.Unix(1e9, 0)}, [][]byte{[]byte(envelope)})
	if err != nil {
		t.Fatal(err)
	}
	if !IsLayout(dir) || IsLayout(t.TempDir()) {
		t.Error("what is a layout and what is none")
	}
	before := tree(t, dir)
	for _, s := range []string{dir, dir + ":1.0.0", dir + "@" + digest, dir + ":2@" + digest} {
		a, err := ParseLayout(s).Pull(ctx)
		if err != nil {
			t.Fatalf("%s: %v", s, err)
		}
		if a.ManifestDigest != digest || a.Digest != sum(module) || len(a.Evidence.Envelopes) != 1 || string(a.Evidence.Envelopes[0]) != envelope {
			t.Errorf("%s: %+v", s, a)
		}
	}
	if diff := cmp.Diff(before, tree(t, dir)); diff != "" {
		t.Errorf("reading has changed it:\n%s", diff)
	}
	if a, err := ParseLayout(dir + ":2").Pull(ctx); a != nil || err == nil || !strings.Contains(err.Error(), "it has 1.0.0") {
		t.Errorf("a tag that is not there: %v", err)
	}

	// Others read it, and what they add is read.
	store, err := oraslayout.New(dir)
	if err != nil {
		t.Fatal(err)
	}
	subject, err := store.Resolve(ctx, "1.0.0")
	if err != nil || string(subject.Digest) != digest {
		t.Fatalf("oras finds %v, %v", subject, err)
	}
	if err := cosign(ctx, store, subject, false); err != nil {
		t.Fatal(err)
	}
	const notation = "application/vnd.cncf.notary.signature"
	if _, err := oras.PackManifest(ctx, store, oras.PackManifestVersion1_1, notation, oras.PackManifestOptions{Subject: &subject}); err != nil {
		t.Fatal(err)
	}
	for _, a := range artifacts[:2] {
		if err := a.push(ctx, store, "2"); err != nil {
			t.Fatal(err)
		}
	}
	if a, err := ParseLayout(dir + ":1.0.0").Pull(ctx); err != nil || len(a.Evidence.Cosign) != 1 || len(a.Evidence.Envelopes) != 1 || !slices.Contains(a.Evidence.Unread, notation) {
		t.Errorf("with a signature of cosign and one of notation: %+v, %v", a, err)
	}
	if a, err := ParseLayout(dir + ":2").Pull(ctx); err != nil || len(a.Evidence.Envelopes) != 0 {
		t.Errorf("the artifact of others: %+v, %v", a, err)
	}
	if _, err := ParseLayout(dir).Pull(ctx); err == nil || !strings.Contains(err.Error(), "name one by its tag or digest") {
		t.Errorf("without a name, of several: %v", err)
	}

	// From a registry into a folder and back, by oras.
	host := registries(t)["one without"]
	c := &Client{HTTP: reaching(t, 0, "http://"+host)}
	ref := parse(t, "oci://"+host+"/notes:1.0.0")
	if _, err := oras.ExtendedCopy(ctx, store, "1.0.0", c.repository(ref), "1.0.0", oras.ExtendedCopyOptions{}); err != nil {
		t.Fatal(err)
	}
	if a, err := c.Pull(ctx, ref); err != nil || a.ManifestDigest != digest || len(a.Evidence.Envelopes) != 1 {
		t.Errorf("copied to a registry: %+v, %v", a, err)
	}
	back := filepath.Join(t.TempDir(), "layout")
	store, err = oraslayout.New(back)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := oras.ExtendedCopy(ctx, c.repository(ref), "1.0.0", store, "1.0.0", oras.ExtendedCopyOptions{}); err != nil {
		t.Fatal(err)
	}
	if a, err := ParseLayout(back).Pull(ctx); err != nil || a.ManifestDigest != digest || len(a.Evidence.Envelopes) != 1 {
		t.Errorf("copied to a folder: %+v, %v", a, err)
	}
}

// TestHostileLayouts: each case changes a layout that is in order.
func TestHostileLayouts(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "outside")
	if err := os.WriteFile(outside, module, 0o600); err != nil {
		t.Fatal(err)
	}
	blob := "blobs/sha256/" + sum(module)
	replace := func(name string, do func(path string) error) func(*testing.T, string) {
		return func(t *testing.T, dir string) {
			path := filepath.Join(dir, name)
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
			if err := do(path); err != nil {
				t.Fatal(err)
			}
		}
	}
	holds := func(text string) func(string) error {
		return func(path string) error { return os.WriteFile(path, []byte(text), 0o600) }
	}
	for _, tt := range []struct {
		what   string
		change func(t *testing.T, dir string)
		want   string
	}{
		{"nothing", func(*testing.T, string) {}, ""},
		{"the module is another", replace(blob, holds("\x00asm\x02\x00\x00\x00")), "what came has the SHA-256"},
		{"the module is longer", replace(blob, holds(string(module)+"0")), "more bytes came instead of 8"},
		{"the module is shorter", replace(blob, holds("\x00asm")), "4 bytes came instead of 8"},
		{"the module is not there", replace(blob, func(string) error { return nil }), "no such file"},
		{"the module is a link to the outside", replace(blob, func(path string) error { return os.Symlink(outside, path) }), "escapes"},
		{"the module is a folder", replace(blob, func(path string) error { return os.Mkdir(path, 0o700) }), "not a regular file"},
		{"the index is a link to the outside", replace("index.json", func(path string) error { return os.Symlink(outside, path) }), "escapes"},
		{"the index is huge", replace("index.json", holds(strings.Repeat(" ", 5<<20))), "more than 4194304 bytes"},
		{"the index is not JSON", replace("index.json", holds("{")), "no OCI image index"},
		{"the index has too many entries", replace("index.json", holds(`{"schemaVersion":2,"manifests":[`+strings.Repeat("{},", 4096)+`{}]}`)), "4097 entries"},
		{"the index names a digest with ..", replace("index.json", holds(`{"schemaVersion":2,"manifests":[{"mediaType":"application/vnd.oci.image.manifest.v1+json","digest":"sha256:../../../outside","size":8,"annotations":{"org.opencontainers.image.ref.name":"1"}}]}`)), "not the digest of a SHA-256"},
		{"the index names a manifest of a negative size", replace("index.json", holds(`{"schemaVersion":2,"manifests":[{"mediaType":"application/vnd.oci.image.manifest.v1+json","digest":"sha256:`+sum(module)+`","size":-1,"annotations":{"org.opencontainers.image.ref.name":"1"}}]}`)), "it has -1 bytes"},
		{"it is a layout of another version", replace("oci-layout", holds(`{"imageLayoutVersion":"2.0.0"}`)), "does not say that it is a layout"},
	} {
		dir := t.TempDir()
		l := ParseLayout(filepath.Join(dir, "layout") + ":1")
		if _, err := l.Push(t.Context(), module, Meta{}, nil); err != nil {
			t.Fatal(err)
		}
		tt.change(t, l.Dir)
		got, err := l.Pull(t.Context())
		if tt.want == "" {
			if err != nil {
				t.Errorf("%s: %v", tt.what, err)
			}
		} else if got != nil || err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, %v", tt.what, got, err)
		}
	}
	// Nothing is written through a link either.
	dir := t.TempDir()
	l := ParseLayout(dir + "/layout:1")
	if _, err := l.Push(t.Context(), module, Meta{}, nil); err != nil {
		t.Fatal(err)
	}
	replace("index.json", func(path string) error { return os.Symlink(outside, path) })(t, l.Dir)
	if _, err := l.Push(t.Context(), module, Meta{Version: "2"}, nil); err == nil {
		t.Error("it was pushed into a layout whose index is elsewhere")
	}
	if data, err := os.ReadFile(outside); err != nil || !bytes.Equal(data, module) {
		t.Errorf("the outside has changed: %q, %v", data, err)
	}
	if err := os.WriteFile(filepath.Join(dir, "notes.txt"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := ParseLayout(dir+":1").Push(t.Context(), module, Meta{}, nil); err == nil || !strings.Contains(err.Error(), "no OCI image layout") {
		t.Errorf("a folder of other things: %v", err)
	}
}
