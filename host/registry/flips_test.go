package registry_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stockade-dev/stockade/host/registry"
	"github.com/stockade-dev/stockade/host/registry/lock"
	"github.com/stockade-dev/stockade/host/registry/oci"
	"github.com/stockade-dev/stockade/host/registry/sign"
	"github.com/stockade-dev/stockade/host/registry/source"
	"github.com/stockade-dev/stockade/host/registry/store"
	"github.com/stockade-dev/stockade/host/registry/trust"
	"github.com/stockade-dev/stockade/host/wasm"
)

var allFlips = flag.Bool("flips", false, "flip each of the eight bits of every byte, and not one")

// flips calls f with data in which one bit is another, for every byte.
func flips(data []byte, f func(at int, flipped []byte)) (n int) {
	for i := range data {
		for bit := range 8 {
			if !*allFlips && bit != i%8 {
				continue
			}
			out := bytes.Clone(data)
			out[i] ^= 1 << bit
			f(i, out)
			n++
		}
	}
	return n
}

// outcome is the part of a review's result that decides something.
type outcome struct {
	record store.Record
	keeps  bool
}

func outcomeOf(r *registry.Review) outcome {
	out := outcome{r.Record, r.KeepsAllowance()}
	out.record.Source, out.record.ManifestDigest, out.record.Evidence = "", "", nil
	return out
}

// tally counts the flips that were refused, and those without an effect.
type tally struct{ refused, without int }

// judge expects that a review has failed, or has the same outcome as without the flip.
func (c *tally) judge(t *testing.T, what string, at int, r *registry.Review, err error, want outcome) {
	t.Helper()
	switch {
	case err != nil:
		c.refused++
	case reflect.DeepEqual(outcomeOf(r), want):
		c.without++
	default:
		t.Errorf("%s, byte %d: another module: %+v", what, at, outcomeOf(r))
	}
}

func (x *thing) review(c *source.Candidate) (*registry.Review, error) {
	return x.reviewer("", "").Review(x.ctx, registry.Request{Candidate: c, Name: x.as})
}

// TestAFlippedBitIsRefusedOrHasNoEffect flips bits of every part of a signed module, in the
// place of an older version by the same publisher: in the files of an OCI layout, as a disk
// or an editor would; and again with all digests corrected, as an attacker would.
func TestAFlippedBitIsRefusedOrHasNoEffect(t *testing.T) {
	w := newWorld(t)
	must(t, w.honest("1.0.0").add())
	x := w.honest("1.1.0")
	code := x.module()
	envelope := x.envelope(code)
	dir := filepath.Join(t.TempDir(), "layout")
	layout := oci.Layout{Dir: dir, Tag: "1.1.0"}
	_, err := layout.Push(t.Context(), code, oci.Meta{Title: "weather.wasm", Version: "1.1.0"}, [][]byte{envelope})
	must(t, err)
	x.ref = layout.String()
	c, err := x.fetch()
	must(t, err)
	r, err := x.review(c)
	must(t, err)
	want := outcomeOf(r)
	if want.record.Signer != "example.org" || !want.keeps {
		t.Fatalf("the counter-proof: %+v", want)
	}
	before := tree(t, w.dir)

	must(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		must(t, err, os.Chmod(path, 0o600))
		what := strings.TrimPrefix(path, dir+"/")
		switch {
		case bytes.Equal(data, code):
			what = "the module"
		case bytes.Equal(data, envelope):
			what = "the envelope"
		case bytes.Contains(data, []byte("weather.wasm")) && what != "index.json":
			what = "the OCI manifest"
		}
		var count tally
		n := flips(data, func(at int, flipped []byte) {
			must(t, os.WriteFile(path, flipped, 0o600))
			c, err := x.fetch()
			var r *registry.Review
			if err == nil {
				r, err = x.review(c)
			}
			count.judge(t, what, at, r, err, want)
		})
		must(t, os.WriteFile(path, data, 0o600))
		t.Logf("in the layout, %s: %d bytes, %d flips: %d refused, %d without effect", what, len(data), n, count.refused, count.without)
		return nil
	}))

	var count tally
	n := flips(envelope, func(at int, flipped []byte) {
		r, err := x.review(&source.Candidate{Code: code, Digest: hash(code), Source: x.ref, Evidence: sign.Evidence{Envelopes: [][]byte{flipped}}})
		count.judge(t, "the envelope", at, r, err, want)
	})
	t.Logf("made right again, the envelope: %d flips: %d refused, %d without effect", n, count.refused, count.without)

	count = tally{}
	i := bytes.Index(code, []byte(wasm.ManifestSection))
	n = flips(code[i:], func(at int, flipped []byte) {
		module := slices.Concat(code[:i], flipped)
		r, err := x.review(&source.Candidate{Code: module, Digest: hash(module), Source: x.ref, Evidence: sign.Evidence{Envelopes: [][]byte{envelope}}})
		count.judge(t, "the section with the manifest", at, r, err, want)
	})
	t.Logf("made right again, the section with the manifest: %d flips: %d refused, %d without effect", n, count.refused, count.without)

	count = tally{}
	x.ref = ""
	_, digest := x.publish()
	x.pages = nil
	good := w.web.pages["tools/weather/manifests/"+digest].body
	c, err = x.fetch()
	must(t, err)
	r, err = x.review(c)
	must(t, err)
	want = outcomeOf(r)
	n = flips(good, func(at int, flipped []byte) {
		x.publish()
		moved := descriptor{MediaType: manifestType, Digest: "sha256:" + hash(flipped), Size: len(flipped)}
		w.web.pages["tools/weather/manifests/1"] = page{manifestType, flipped}
		w.web.pages["tools/weather/manifests/"+moved.Digest] = page{manifestType, flipped}
		signature := w.web.manifest("tools/weather", manifest{
			SchemaVersion: 2, MediaType: manifestType, ArtifactType: oci.SignatureType, Config: w.web.blob("tools/weather", "application/vnd.oci.empty.v1+json", []byte("{}")),
			Layers: []descriptor{w.web.blob("tools/weather", "application/vnd.dsse.envelope.v1+json", envelope)}, Subject: &moved,
		})
		list, err := json.Marshal(map[string]any{"schemaVersion": 2, "mediaType": indexType, "manifests": []descriptor{signature}})
		must(t, err)
		w.web.pages["tools/weather/referrers/"+moved.Digest] = page{indexType, list}
		c, err := x.fetch()
		var r *registry.Review
		if err == nil {
			r, err = x.review(c)
		}
		count.judge(t, "the OCI manifest", at, r, err, want)
	})
	t.Logf("made right again, the OCI manifest: %d bytes, %d flips: %d refused, %d without effect", len(good), n, count.refused, count.without)
	if !same(before, tree(t, w.dir)) {
		t.Error("the store has changed")
	}
}

// TestAFlippedBitOfALockfileAsksAgain flips bits of a lockfile that was agreed to: one
// module is from a registry and signed, the other lies in the project. Then either the
// file is no lockfile, or none of its modules is offered until the person says yes again.
// If the person says yes blindly, each module is the same as before, or is refused.
func TestAFlippedBitOfALockfileAsksAgain(t *testing.T) {
	w := newWorld(t)
	x := w.honest("1.0.0")
	must(t, x.add())
	work := t.TempDir()
	must(t, os.WriteFile(filepath.Join(work, "clock.wasm"), module("clock", "1.0.0", oneTool("now", "")), 0o600))
	y := w.honest("1.0.0")
	y.ref = filepath.Join(work, "clock.wasm")
	must(t, func() error { // without a server, so that the registry keeps what it has
		c, err := y.fetch()
		if err != nil {
			return err
		}
		r, err := y.review(c)
		if err != nil {
			return err
		}
		return registry.Save(w.store, r)
	}())

	records, err := w.store.Records()
	must(t, err)
	f := &lock.File{}
	for _, r := range records {
		m, err := registry.PinnedLockEntry(r, work)
		must(t, err)
		f.Modules = append(f.Modules, m)
	}
	must(t, registry.WriteLock(w.store, work, f, records))
	path := filepath.Join(work, registry.LockName)
	text, err := os.ReadFile(path)
	must(t, err)
	// The person has them for this project only.
	must(t, w.store.Change(nil, func(all []store.Record) ([]store.Record, error) {
		return slices.DeleteFunc(all, func(r store.Record) bool { return r.Project == "" }), nil
	}))
	records, err = w.store.Records()
	must(t, err)

	offered := func(p *registry.Project) (names []string) {
		added, err := registry.Modules(w.store, registry.Scope{Project: p, Trust: trust.Combine()})
		must(t, err)
		for _, m := range registry.ResolveNames(added) {
			for _, tool := range m.Tools {
				if tool.OffReason == "" {
					names = append(names, tool.Name)
				}
			}
		}
		if _, _, err := registry.OnlyLocked(added, p); (err == nil) != (len(names) == 2) {
			t.Errorf("only what is locked: %v, and %q are offered", err, names)
		}
		return names
	}
	p, err := registry.ReadProject(work)
	must(t, err)
	if got := offered(p); len(got) != 2 || !p.IsAgreed(records) {
		t.Fatalf("the counter-proof: offered are %q", got)
	}

	// sync does what `tool sync` does after a yes.
	elsewhere := errors.New("another server")
	sync := func(m lock.Module, sum string) error {
		ref := m.Source
		if m.IsLocal() {
			ref = filepath.Join(work, filepath.FromSlash(ref))
		}
		c, err := source.Fetch(t.Context(), ref, source.Options{Client: func(base string) (*http.Client, error) {
			if base != "http://"+w.web.host {
				return nil, elsewhere
			}
			return x.client(base)
		}})
		if err != nil {
			return err
		}
		r, err := x.reviewer("", "").Review(t.Context(), registry.Request{Candidate: c, Name: m.Name, Project: work, LockSHA256: sum})
		if err != nil {
			return err
		}
		return registry.CheckLocked(m, r, trust.Combine())
	}
	for _, m := range f.Modules {
		must(t, sync(m, p.LockSHA256))
	}

	unreadable, comments, refused, renamed := 0, 0, 0, 0
	n := flips(text, func(at int, flipped []byte) {
		must(t, os.WriteFile(path, flipped, 0o600))
		p, err := registry.ReadProject(work)
		if err != nil {
			unreadable++
			return
		}
		if got := offered(p); len(got) > 0 || p.IsAgreed(records) {
			t.Errorf("byte %d, %q: offered are %q", at, flipped[max(0, at-10):min(at+10, len(flipped))], got)
		}
		if len(lock.Diff(f, p.Lock)) == 0 {
			comments++
			return
		}
		for _, m := range p.Lock.Modules {
			if slices.ContainsFunc(f.Modules, func(o lock.Module) bool { return reflect.DeepEqual(o, m) }) {
				continue
			}
			if err := sync(m, p.LockSHA256); err != nil {
				refused++
				continue
			}
			// It is the same module, under the name that was shown. What the file calls
			// whoever has the keys is no more than that: the person's own name of it is kept.
			i := slices.IndexFunc(f.Modules, func(o lock.Module) bool { return o.Digest == m.Digest })
			if i < 0 {
				t.Errorf("byte %d: another module: %+v", at, m)
				continue
			}
			o := f.Modules[i]
			o.Name, o.Source, o.Signer = m.Name, m.Source, m.Signer
			if renamed++; !reflect.DeepEqual(o, m) {
				t.Errorf("byte %d: it is taken, and it is not as the file says: %+v", at, m)
			}
		}
	})
	t.Logf("%d bytes, %d flips: %d are no lockfile, %d are comments and ask again, %d ask again and are refused then, %d ask again for the same module under another name",
		len(text), n, unreadable, comments, refused, renamed)
	if unreadable+comments+refused+renamed != n {
		t.Errorf("of %d flips %d are accounted for", n, unreadable+comments+refused+renamed)
	}
}
