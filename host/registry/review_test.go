package registry

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stockade-dev/stockade/host/registry/lock"
	"github.com/stockade-dev/stockade/host/registry/sign"
	"github.com/stockade-dev/stockade/host/registry/source"
	"github.com/stockade-dev/stockade/host/registry/store"
	"github.com/stockade-dev/stockade/host/registry/trust"
	"github.com/stockade-dev/stockade/host/tool"
)

// said is a sandbox for modules whose bytes are their manifest.
type said struct{}

func (said) Describe(_ context.Context, mod *tool.Module) (tool.Manifest, error) {
	code, err := mod.Read()
	if err != nil {
		return tool.Manifest{}, err
	}
	return tool.ParseManifest(code)
}

func (said) Compile(context.Context, *tool.Module) error { return nil }

// code returns the bytes of a module. They differ for each version.
func code(name, version string) []byte {
	return fmt.Appendf(nil, `{"abi": "stockade:tool@0.1.0", "name": %q, "version": %q, "tools": [{"name": "count", "description": "Counts.",
		"parameters": {"type": "object", "properties": {}}, "capabilities": {"files": "read", "network": "http"}}]}`, name, version)
}

func newReviewer(t *testing.T) *Reviewer {
	return &Reviewer{Store: store.Open(filepath.Join(t.TempDir(), "modules")), Sandbox: said{}, Trust: trust.Combine(), Now: time.Now}
}

func (r *Reviewer) must(t *testing.T, q Request, code []byte) *Review {
	t.Helper()
	q.Candidate = &source.Candidate{Code: code, Digest: tool.SHA256(code), Source: "/made/here.wasm"}
	review, err := r.Review(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	return review
}

// A change that a person makes while another command waits for an answer stays.
func TestNothingComesBackThatWasTakenBackMeanwhile(t *testing.T) {
	work := t.TempDir()
	for _, c := range []struct {
		it   string
		q    Request
		keep func(*Reviewer, *Review) error
	}{
		{"of the person", Request{}, func(r *Reviewer, v *Review) error { return Save(r.Store, v) }},
		{"of a project", Request{Project: work}, func(r *Reviewer, v *Review) error {
			return SaveProject(r.Store, &Project{Workspace: work}, []*Review{v})
		}},
	} {
		for _, meanwhile := range []struct {
			it string
			do func(*store.Record)
		}{
			{"revoked", func(r *store.Record) { r.Allowances = nil }},
			{"granted more", func(r *store.Record) { r.Allowances[""] = tool.Allowance{Write: []string{"/data"}} }},
			{"one tool off", func(r *store.Record) { r.OffTools = []string{"count"} }},
		} {
			t.Run(c.it+", "+meanwhile.it, func(t *testing.T) {
				r := newReviewer(t)
				first := r.must(t, c.q, code("count", "1.0.0"))
				first.Record.Allowances = map[string]tool.Allowance{"": {Read: []string{"/data"}}}
				if err := c.keep(r, first); err != nil {
					t.Fatal(err)
				}
				again := r.must(t, c.q, code("count", "1.0.0"))
				if len(again.Record.Allowances) != 1 {
					t.Fatalf("the same module loses what it was allowed: %+v", again.Record.Allowances)
				}
				if err := r.Store.Change(nil, func(records []store.Record) ([]store.Record, error) {
					meanwhile.do(&records[0])
					return records, nil
				}); err != nil {
					t.Fatal(err)
				}
				if err := c.keep(r, again); err == nil || !strings.Contains(err.Error(), "meanwhile") {
					t.Errorf("kept: %v", err)
				}
			})
		}
	}
}

// A file of the administrator's that was replaced by one that is refused is offered
// in neither form.
func TestReplacedFileOfTheAdministrator(t *testing.T) {
	r, dir := newReviewer(t), t.TempDir()
	file := filepath.Join(dir, "count.wasm")
	offered := func(content string) int {
		t.Helper()
		if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
		files, err := SystemFiles(dir)
		if err != nil {
			t.Fatal(err)
		}
		if _, err = r.SyncSystem(t.Context(), files, os.ReadFile); err != nil {
			t.Fatal(err)
		}
		modules, err := Modules(r.Store, Scope{Project: &Project{}, System: files, Trust: r.Trust})
		if err != nil {
			t.Fatal(err)
		}
		return len(modules)
	}
	if n := offered(string(code("count", "1.0.0"))); n != 1 {
		t.Errorf("%d modules are offered of one", n)
	}
	if n := offered("this is none"); n != 0 {
		t.Errorf("%d modules are offered of a file that is refused", n)
	}
}

// counts is a sandbox that counts its calls.
type counts struct {
	said
	n *atomic.Int32
}

func (c counts) Describe(ctx context.Context, mod *tool.Module) (tool.Manifest, error) {
	c.n.Add(1)
	return c.said.Describe(ctx, mod)
}

// A bad file in the administrator's folder is reviewed once, and reported at each start.
func TestAFileThatIsRefusedIsNotAskedAgain(t *testing.T) {
	r, dir := newReviewer(t), t.TempDir()
	var n atomic.Int32
	r.Sandbox = counts{n: &n}
	write := func(name string, content []byte) {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	closed := errors.New("others may write to it")
	write("a.wasm", code("count", "1.0.0"))
	write("bad.wasm", []byte("this is none"))
	write("closed.wasm", code("closed", "1.0.0"))
	write("second.wasm", code("count", "1.0.1"))
	for _, step := range []struct {
		it    string
		do    func()
		asked int32
		notes string
	}{
		{"the first start", func() {}, 3, "bad closed second"},
		{"the second start", func() {}, 0, "bad closed second"},
		{"a start that looks again", func() { r.RetryRefused = true }, 2, "bad closed second"},
		{"the start after it", func() { r.RetryRefused = false }, 0, "bad closed second"},
		{"a start after one was changed", func() { write("bad.wasm", code("mended", "1.0.0")) }, 2, "closed second"},
		{"the start after that", func() {}, 0, "closed second"},
		{"a start after what it could not read became readable", func() { closed = nil }, 1, "second"},
		{"a start after the other one of its name has gone", func() { _ = os.Remove(filepath.Join(dir, "a.wasm")) }, 1, ""},
		{"the last start", func() {}, 0, ""},
	} {
		step.do()
		n.Store(0)
		files, err := SystemFiles(dir)
		if err != nil {
			t.Fatal(err)
		}
		notes, err := r.SyncSystem(t.Context(), files, func(path string) ([]byte, error) {
			if filepath.Base(path) == "closed.wasm" && closed != nil {
				return nil, closed
			}
			return os.ReadFile(path)
		})
		if err != nil {
			t.Fatal(err)
		}
		var about []string
		for _, note := range notes {
			about = append(about, strings.TrimSuffix(filepath.Base(strings.Fields(note)[0]), ".wasm"))
		}
		if got := strings.Join(about, " "); n.Load() != step.asked || got != step.notes {
			t.Errorf("%s: %d modules were asked, want %d; the notes are about %q, want %q", step.it, n.Load(), step.asked, got, step.notes)
		}
	}
}

// If two modules have a tool of the same full name, the module that was added first keeps
// it, even if both came within a second, and if the first is updated later.
func TestWhoWasThereFirstHasTheName(t *testing.T) {
	r := newReviewer(t)
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	r.Now = func() time.Time { now = now.Add(time.Millisecond); return now }
	of := func(name, inner, version string) []byte {
		return []byte(strings.Replace(string(code(name, version)), `"count"`, `"`+inner+`"`, 1))
	}
	for _, step := range []struct {
		it   string
		code []byte
		has  string // which module has a_b_c then
	}{
		{"the first one", of("a_b", "c", "1.0.0"), "a_b"},
		{"another one", of("a", "b_c", "1.0.0"), "a_b"},
		{"a newer version of the first one", of("a_b", "c", "1.0.1"), "a_b"},
		{"a newer version of the other one", of("a", "b_c", "1.0.1"), "a_b"},
	} {
		if err := Save(r.Store, r.must(t, Request{}, step.code)); err != nil {
			t.Fatal(err)
		}
		modules, err := Modules(r.Store, Scope{Project: &Project{}, Trust: r.Trust})
		if err != nil {
			t.Fatal(err)
		}
		var has []string
		for _, m := range ResolveNames(modules) {
			if m.Tools[0].OffReason == "" {
				has = append(has, m.Record.Name)
			}
		}
		if len(has) != 1 || has[0] != step.has {
			t.Errorf("after %s, a_b_c is that of %q", step.it, has)
		}
	}
}

// A module of the store stands in for the one that a lockfile names only if that comes
// from the same repository.
func TestWhatOfTheStoreALockfileMeans(t *testing.T) {
	r := newReviewer(t)
	for name, source := range map[string]string{"remote": "oci://r.example/tools/x:1", "near": "/made/near.wasm"} {
		review := r.must(t, Request{Name: name}, code(name, "1.0.0"))
		if review.Record.Source = source; name == "remote" {
			review.Record.Repository, review.Record.ManifestDigest = "r.example/tools/x", "sha256:"+tool.SHA256(nil)
		}
		if err := Save(r.Store, review); err != nil {
			t.Fatal(err)
		}
	}
	remote, near := tool.SHA256(code("remote", "1.0.0")), tool.SHA256(code("near", "1.0.0"))
	for _, c := range []struct {
		it string
		m  lock.Module
		ok bool
	}{
		{"the same repository, by its digest", lock.Module{Source: "oci://r.example/tools/x@sha256:" + tool.SHA256(nil), ManifestDigest: "sha256:" + tool.SHA256(nil), Digest: remote}, true},
		{"another repository", lock.Module{Source: "oci://r.example/tools/y@sha256:" + tool.SHA256(nil), ManifestDigest: "sha256:" + tool.SHA256(nil), Digest: remote}, false},
		{"another host", lock.Module{Source: "oci://evil.example/tools/x@sha256:" + tool.SHA256(nil), ManifestDigest: "sha256:" + tool.SHA256(nil), Digest: remote}, false},
		{"a download of what came from a registry", lock.Module{Source: "https://r.example/tools/x", ManifestDigest: "sha256:" + tool.SHA256(nil), Digest: remote}, false},
		{"another manifest", lock.Module{Source: "oci://r.example/tools/x:1", Digest: remote}, false},
		{"a repository of what came as a file", lock.Module{Source: "oci://r.example/tools/x:1", Digest: near}, false},
		{"a file of the project that the person has from elsewhere", lock.Module{Source: "tools/near.wasm", Digest: near}, true},
		{"other bytes", lock.Module{Source: "tools/near.wasm", Digest: tool.SHA256(nil)}, false},
	} {
		if found, ok := CandidateFromStore(r.Store, c.m); ok != c.ok || ok && found.Source != c.m.Source {
			t.Errorf("%s: it is the same: %v", c.it, ok)
		}
	}
}

// All files of a project are hashed at every start.
func TestFilesOfAProjectAreBoundedTogether(t *testing.T) {
	work := t.TempDir()
	dir := filepath.Join(work, toolsFolder)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for i := range 2 {
		f, err := os.Create(filepath.Join(dir, fmt.Sprintf("m%d.wasm", i)))
		if err != nil {
			t.Fatal(err)
		}
		size := int64(1 << 20)
		if i == 1 {
			size = maxProjectBytes - size + 1
		}
		if err := f.Truncate(size); err != nil {
			t.Fatal(err)
		}
		f.Close()
	}
	if _, err := ReadProject(work); err == nil || !strings.Contains(err.Error(), "together") {
		t.Errorf("read: %v", err)
	}
}

// The signer in a lockfile counts for nothing if the person does not know the key, and has
// to be true if the person does.
func TestLockedSigner(t *testing.T) {
	k, err := sign.Generate(sign.Ed25519)
	if err != nil {
		t.Fatal(err)
	}
	known := trust.Combine(&trust.File{Name: "trust.toml", Publishers: []trust.Publisher{{Name: "ada", Namespaces: []string{"*"}, Keys: []sign.PublicKey{k.Public()}, Threshold: 1}}})
	id := []string{k.Public().ID()}
	for _, c := range []struct {
		it     string
		rules  *trust.Rules
		locked lock.Module
		is     store.Record
		ok     bool
	}{
		{"nobody, and nobody did", known, lock.Module{}, store.Record{}, true},
		{"a key that the person does not know", trust.Combine(), lock.Module{Signer: "ada", Keys: id}, store.Record{}, true},
		{"a key that the person knows, and it did not", known, lock.Module{Signer: "ada", Keys: id}, store.Record{}, false},
		{"a key that the person knows, and it did", known, lock.Module{Signer: "ada", Keys: id}, store.Record{Signer: "ada", Keys: id}, true},
		{"a key that the person knows by another name", known, lock.Module{Signer: "ada.example", Keys: id}, store.Record{Signer: "ada", Keys: id}, true},
		{"nobody, and somebody did whom the person knows", known, lock.Module{}, store.Record{Signer: "ada", Keys: id}, false},
		{"two keys, of which the person knows the one that it has", known, lock.Module{Signer: "ada", Keys: append([]string{"ed25519:00"}, id...)}, store.Record{Signer: "ada", Keys: id}, true},
		{"two keys, of which the person knows one, and it has none", known, lock.Module{Signer: "ada", Keys: append([]string{"ed25519:00"}, id...)}, store.Record{}, false},
		{"another key", known, lock.Module{Signer: "ada", Keys: []string{"ed25519:00"}}, store.Record{Signer: "ada", Keys: id}, false},
	} {
		t.Run(c.it, func(t *testing.T) {
			c.locked.Wants = WantsOf(c.is.Manifest).String()
			if err := CheckLocked(c.locked, &Review{Record: c.is}, c.rules); (err == nil) != c.ok {
				t.Error(err)
			}
		})
	}
}

// An entry with the name of a known publisher, or a similar one, must have a key of that
// publisher. Any other name is the file's own claim.
func TestClaimedSigners(t *testing.T) {
	var ids []string
	var publishers []trust.Publisher
	for _, name := range []string{"acme.example", "ada"} {
		k, err := sign.Generate(sign.Ed25519)
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, k.Public().ID())
		publishers = append(publishers, trust.Publisher{Name: name, Namespaces: []string{"*"}, Keys: []sign.PublicKey{k.Public()}, Threshold: 1})
	}
	known := trust.Combine(&trust.File{Name: "trust.toml", Publishers: publishers})
	for _, c := range []struct {
		signer string
		keys   []string
		ok     bool
	}{
		{"", nil, true},
		{"acme.example", ids[:1], true},
		{"acme.example", []string{"ed25519:00", ids[0]}, true}, // the module has to be signed with both
		{"acme.example", []string{"ed25519:00"}, false},
		{"acme.example", ids[1:], false},
		{"acrne.example", []string{"ed25519:00"}, false},
		{"acme_.example", []string{"ed25519:00"}, false},
		{"ACME.example", ids[:1], false},
		{"\u0430cme.example", ids[:1], false},
		{"acme.example ", ids[:1], false},
		{"somebody", []string{"ed25519:00"}, true},
		{"somebody", ids[:1], true}, // whose signature has to be there
	} {
		f := &lock.File{Modules: []lock.Module{{Name: "plain"}, {Name: "m", Signer: c.signer, Keys: c.keys}}}
		if err := CheckClaims(f, known); (err == nil) != c.ok {
			t.Errorf("%q with %q: %v", c.signer, c.keys, err)
		}
	}
}

// Allowances stay only with the module that they were given to.
func TestWhatKeepsWhatWasAllowed(t *testing.T) {
	was := store.Record{Digest: "a", Fingerprint: tool.Fingerprint{Description: "d", Schema: "s", Needs: "n"}}
	signed := func(r *store.Record) { r.Signer, r.Issued = "ada", time.Now() }
	for _, c := range []struct {
		it     string
		before func(*store.Record)
		do     func(*store.Record)
		keeps  bool
	}{
		{"the same bytes that nobody has signed", nil, func(*store.Record) {}, true},
		{"other bytes that nobody has signed", nil, func(r *store.Record) { r.Digest = "b" }, false},
		{"other bytes by the same signer", signed, func(r *store.Record) { r.Digest = "b" }, true},
		{"other bytes by the same signer, who does not say when, with a version", signed, func(r *store.Record) { r.Digest, r.Issued, r.Manifest.Version = "b", time.Time{}, "1.0.0" }, true},
		{"other bytes by the same signer, which nothing tells from older ones", signed, func(r *store.Record) { r.Digest, r.Issued = "b", time.Time{} }, false},
		{"another signer", signed, func(r *store.Record) { r.Digest, r.Signer = "b", "eve" }, false},
		{"the same bytes by another signer", signed, func(r *store.Record) { r.Signer = "eve" }, false},
		{"nobody's signature", signed, func(r *store.Record) { r.Signer = "" }, false},
		{"a first signature", nil, signed, false},
		{"another description", signed, func(r *store.Record) { r.Fingerprint.Description = "x" }, false},
		{"another schema", signed, func(r *store.Record) { r.Fingerprint.Schema = "x" }, false},
		{"other needs", signed, func(r *store.Record) { r.Fingerprint.Needs = "x" }, false},
	} {
		t.Run(c.it, func(t *testing.T) {
			was := was
			if c.before != nil {
				c.before(&was)
			}
			is := was
			c.do(&is)
			if got := (&Review{Previous: &was, Record: is}).KeepsAllowance(); got != c.keeps {
				t.Errorf("keeps: %v", got)
			}
		})
	}
	if (&Review{Record: was}).KeepsAllowance() {
		t.Error("a new module keeps something")
	}
}

func TestWantsNameEachThingOnce(t *testing.T) {
	var m tool.Manifest
	for _, names := range [][]string{{"b", "a"}, {"c", "a", "b"}} {
		c := tool.Capabilities{Network: tool.NetworkHTTP}
		for _, name := range names {
			c.Hosts = append(c.Hosts, name+".example.com")
			c.Secrets = append(c.Secrets, tool.Secret{Name: name, Hosts: []string{"b.example.com"}})
		}
		m.Tools = append(m.Tools, tool.Spec{Capabilities: c})
	}
	m.Tools[1].Capabilities.Secrets[1].Hosts = []string{"a.example.com"} // which is another thing
	const want = "hosts a.example.com, b.example.com, c.example.com; the secret b for b.example.com; the secret a for b.example.com; " +
		"the secret c for b.example.com; the secret a for a.example.com"
	if got := WantsOf(m).String(); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// One tool may read files and another send them, if both have the store.
func TestAStoreIsAWayFromOneToolToAnother(t *testing.T) {
	reads, sends := tool.Capabilities{Files: tool.FilesRead}, tool.Capabilities{Network: tool.NetworkHTTP}
	keeping := func(c tool.Capabilities) tool.Capabilities { c.Store = true; return c }
	for what, c := range map[string]struct {
		tools []tool.Capabilities
		sends bool
		words string
	}{
		"one that reads, and one that sends":    {[]tool.Capabilities{reads, sends}, false, "to read files; hosts that you name"},
		"with a store":                          {[]tool.Capabilities{keeping(sends), keeping(reads)}, true, "to read files; hosts that you name; to keep things in a session"},
		"which only one of them has":            {[]tool.Capabilities{keeping(reads), sends}, false, "to read files; hosts that you name; to keep things in a session"},
		"one that does both":                    {[]tool.Capabilities{{Files: tool.FilesRead, Network: tool.NetworkHTTP}}, true, "to read files; hosts that you name"},
		"one that keeps things and has no more": {[]tool.Capabilities{keeping(tool.Capabilities{})}, false, "to keep things in a session"},
	} {
		var m tool.Manifest
		for _, caps := range c.tools {
			m.Tools = append(m.Tools, tool.Spec{Capabilities: caps})
		}
		if w := WantsOf(m); w.CanSendFiles != c.sends || w.String() != c.words || w.Nothing() {
			t.Errorf("%s: %+v, %q", what, w, w.String())
		}
	}
	if err := (Wants{}).CheckAllowance(tool.Allowance{Store: true}); err == nil {
		t.Error("a store can be given to who does not ask for one")
	}
}

func TestWhatAYesGives(t *testing.T) {
	had := &store.Record{Allowances: map[string]tool.Allowance{"": {Read: []string{"/r"}, Secrets: []string{"old"}}, "t": {Write: []string{"/w"}, Hosts: []string{"old.example"}, Exec: true}}}
	named := Wants{Hosts: []string{"a.example"}, Secrets: []tool.Secret{{Name: "s"}}, Exec: true, Store: true}
	for what, c := range map[string]struct {
		wants Wants
		was   *store.Record
		want  tool.Allowance
	}{
		"who asks for nothing gets nothing, whatever was there": {Wants{}, had, tool.Allowance{}},
		"what is named": {named, nil, tool.Allowance{Hosts: []string{"a.example"}, Secrets: []string{"s"}, Exec: true, Store: true}},
		"what is named, and no host or secret of before":                    {named, had, tool.Allowance{Hosts: []string{"a.example"}, Secrets: []string{"s"}, Exec: true, Store: true}},
		"the workspace to read":                                             {Wants{Files: tool.FilesRead}, nil, tool.Allowance{Read: []string{"/work"}}},
		"the workspace to change":                                           {Wants{Files: tool.FilesWrite}, nil, tool.Allowance{Write: []string{"/work"}}},
		"the directories of before, and none to change for one that reads":  {Wants{Files: tool.FilesRead}, had, tool.Allowance{Read: []string{"/r"}}},
		"the directories of before for one that changes":                    {Wants{Files: tool.FilesWrite}, had, tool.Allowance{Read: []string{"/r"}, Write: []string{"/w"}}},
		"the hosts of before for one that names none":                       {Wants{AnyHost: true}, had, tool.Allowance{Hosts: []string{"old.example"}}},
		"no host for a new one that names none, which a person has to name": {Wants{AnyHost: true}, nil, tool.Allowance{}},
	} {
		got := c.wants.DefaultAllowance("/work", c.was)
		if !got.Equal(c.want) {
			t.Errorf("%s: %+v, not %+v", what, got, c.want)
		}
		if err := c.wants.CheckAllowance(got); err != nil {
			t.Errorf("%s: it %v", what, err)
		}
	}
}
