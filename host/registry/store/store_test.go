package store

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stockade-dev/stockade/host/tool"
)

// sample is a module of one tool, and what a person approves of it.
func sample(name, version string) (code []byte, r Record) {
	code = []byte("the module " + name + " " + version)
	manifest, err := tool.ParseManifest(fmt.Appendf(nil, `{"abi": "stockade:tool@0.1.0", "name": %q, "version": %q, "tools": [{
		"name": "convert", "description": "Converts <one> & another, version %s.",
		"parameters": {"type": "object", "properties": {"from": {"type": "string", "pattern": "^[a-z]{1,40}$"}}, "required": ["from"]},
		"capabilities": {"files": "read", "network": "http", "hosts": ["API.example.com"],
			"secrets": [{"name": "token", "hosts": ["api.example.com"], "header": "X-Token"}]}}]}`, name, version, version))
	if err != nil {
		panic(err)
	}
	return code, Record{
		Name: name, Source: "oci://registry.example.com/tools/" + name + ":" + version, Repository: "registry.example.com/tools/" + name,
		ManifestDigest: "sha256:" + tool.SHA256([]byte("manifest")), Digest: tool.SHA256(code), Bytes: int64(len(code)),
		Manifest: manifest, Fingerprint: manifest.Fingerprint(),
		Signer: "Example", Namespace: "example", Keys: []string{"SHA256:abc"}, Evidence: json.RawMessage(`{"Envelopes":["e30="]}`),
		Added:      time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
		Allowances: map[string]tool.Allowance{"convert": {Read: []string{"/home/me/data"}, Secrets: []string{"token"}}},
	}
}

// add adds or replaces samples of one version.
func add(s *Store, version string, names ...string) error {
	var codes [][]byte
	var added []Record
	for _, name := range names {
		code, r := sample(name, version)
		codes, added = append(codes, code), append(added, r)
	}
	return s.Change(codes, func(all []Record) ([]Record, error) {
		all = slices.DeleteFunc(all, func(r Record) bool { return slices.Contains(names, r.Name) })
		return append(all, added...), nil
	})
}

// filled is a store of two modules.
func filled(t *testing.T) *Store {
	t.Helper()
	s := Open(filepath.Join(t.TempDir(), "data", "modules"))
	if err := add(s, "1.0.0", "units", "dates"); err != nil {
		t.Fatal(err)
	}
	return s
}

// must ends the test where something went wrong.
func must(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

func records(t *testing.T, s *Store) []Record {
	t.Helper()
	all, err := s.Records()
	must(t, err)
	return all
}

func TestWhatWasAddedIsThere(t *testing.T) {
	s := filled(t)
	all := records(t, Open(s.dir))
	for i, name := range []string{"dates", "units"} {
		code, want := sample(name, "1.0.0")
		if diff := cmp.Diff(want, all[i], cmp.Transformer("json", func(raw json.RawMessage) (v any) { _ = json.Unmarshal(raw, &v); return v })); diff != "" {
			t.Errorf("record of %s (-want +got):\n%s", name, diff)
		}
		m := s.Module(all[i])
		if got, err := m.Read(); err != nil || !bytes.Equal(got, code) {
			t.Errorf("%s holds %q, %v", name, got, err)
		}
		if m.Prefix != name+"_" || m.Version != "1.0.0" || m.Signer != "Example" || m.Namespace != "example" || m.Origin != tool.OriginAdded || m.Digest != tool.SHA256(code) {
			t.Errorf("module %+v", m)
		}
	}
	if found := s.Verify(); found != nil {
		t.Errorf("found %v", found)
	}
	for name, mode := range map[string]os.FileMode{"": 0o700, "sha256": 0o700, "index.json": 0o600, "lock": 0o600, "sha256/" + all[0].Digest + ".wasm": 0o444} {
		if st, err := os.Stat(filepath.Join(s.dir, name)); err != nil || st.Mode().Perm() != mode {
			t.Errorf("%q has mode %v, %v", name, st.Mode(), err)
		}
	}
}

func TestNothingIsMadeBeforeSomethingIsAdded(t *testing.T) {
	s := Open(filepath.Join(t.TempDir(), "modules"))
	all, err := s.Records()
	if all != nil || err != nil || s.Verify() != nil || s.Sweep() != nil {
		t.Errorf("%v, %v", all, err)
	}
	if _, err := os.Stat(s.dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the folder was made: %v", err)
	}
}

func TestAnUpdateKeepsTheOldModuleUntilItIsSwept(t *testing.T) {
	s := filled(t)
	old := s.Module(records(t, s)[1])
	must(t, add(s, "1.1.0", "units"))
	if _, err := old.Read(); err != nil {
		t.Errorf("a process that runs lost its module: %v", err)
	}
	if found := s.Verify(); len(found) != 1 || !found[0].Unneeded {
		t.Errorf("found %v", found)
	}
	must(t, os.WriteFile(filepath.Join(s.dir, ".index.json-123"), nil, 0o600), os.WriteFile(filepath.Join(s.moduleDir(), "."+old.Digest+".wasm-9"), nil, 0o600),
		os.WriteFile(filepath.Join(s.dir, "note"), nil, 0o600), s.Sweep())
	if found := s.Verify(); len(found) != 1 || !strings.Contains(found[0].Message, "note was not put there") {
		t.Errorf("after the sweep: %v", found)
	}
	_, brought := sample("units", "0.9.0")
	brought.Project, brought.Source = "/work", "https://example.com/$(reboot)"
	if _, err := s.Module(brought).Read(); err == nil || strings.Contains(err.Error(), "reboot") || !strings.Contains(err.Error(), "stockade tool sync") {
		t.Errorf("of a project: %v", err)
	}
	if _, err := old.Read(); err == nil || !strings.Contains(err.Error(), "add it again: stockade tool add oci://registry.example.com/tools/units:1.0.0") {
		t.Errorf("the swept module: %v", err)
	}
	must(t, s.Change(nil, func([]Record) ([]Record, error) { return nil, nil }), s.Sweep())
	if files, err := os.ReadDir(s.moduleDir()); err != nil || len(files) != 0 || len(records(t, s)) != 0 {
		t.Errorf("after all were removed: %v, %v", files, err)
	}
}

// A module that was replaced is there for a day for the programs that run, however long
// ago it came, and no longer.
func TestAModuleThatWasReplacedGoesAfterADay(t *testing.T) {
	s := filled(t)
	old := s.Module(records(t, s)[1])
	age := func(path string, by time.Duration) { must(t, os.Chtimes(path, time.Time{}, time.Now().Add(-by))) }
	there := func(when string, want bool) {
		t.Helper()
		if _, err := old.Read(); (err == nil) != want {
			t.Errorf("%s: %v", when, err)
		}
	}
	left := filepath.Join(s.dir, ".index.json-123")
	must(t, os.WriteFile(left, nil, 0o600))
	age(left, 25*time.Hour)
	age(old.Path, 1000*time.Hour)
	must(t, add(s, "1.1.0", "units"))
	there("after the update", true)
	must(t, add(s, "1.2.0", "units"))
	there("after another one", true)
	age(old.Path, 23*time.Hour)
	must(t, add(s, "1.1.0", "dates"))
	there("within a day", true)
	age(old.Path, 25*time.Hour)
	must(t, add(s, "1.2.0", "dates"))
	there("after a day", false)
	if _, err := os.Stat(left); err == nil {
		t.Error("what somebody who was killed has left is still there")
	}
	if _, err := s.Module(records(t, s)[0]).Read(); err != nil {
		t.Error(err)
	}
	if found := s.Verify(); len(found) != 3 || !found[0].Unneeded { // 1.1.0 of both, and the first dates
		t.Errorf("found %v", found)
	}
}

func TestARefusedChangeChangesNothing(t *testing.T) {
	other := errors.New("the person said no")
	for name, c := range map[string]struct {
		change func(*Record)
		err    string
	}{
		"f fails":                         {nil, "the person said no"},
		"a name with ..":                  {func(r *Record) { r.Name = "../x" }, "name is not"},
		"no source":                       {func(r *Record) { r.Source = "" }, "no source"},
		"a source that moves the cursor":  {func(r *Record) { r.Source = "a\x1b[2J" }, "does not show"},
		"a signer that reads backwards":   {func(r *Record) { r.Signer = "\u202eelpmaxE" }, "does not show"},
		"a text of megabytes":             {func(r *Record) { r.OffReason = strings.Repeat("x", 1<<20) }, "too long"},
		"a manifest digest without HEX":   {func(r *Record) { r.ManifestDigest = "sha256:../../x" }, "sha256:HEX"},
		"a digest that is a path":         {func(r *Record) { r.Digest = "../../../../etc/passwd" }, "not a SHA-256"},
		"a digest in upper case":          {func(r *Record) { r.Digest = strings.ToUpper(r.Digest) }, "not a SHA-256"},
		"a module that is not there":      {func(r *Record) { r.Digest = tool.SHA256([]byte("x")) }, "is not in the store"},
		"another size":                    {func(r *Record) { r.Bytes++ }, "record says"},
		"no size":                         {func(r *Record) { r.Bytes = 0 }, "size"},
		"another fingerprint":             {func(r *Record) { r.Fingerprint.Needs = tool.SHA256(nil) }, "not the one that was approved"},
		"a manifest that asks for more":   {func(r *Record) { r.Manifest.Tools[0].Capabilities.Files = tool.FilesWrite }, "not the one that was approved"},
		"a manifest that cannot be":       {func(r *Record) { r.Manifest.Tools[0].Parameters = json.RawMessage(`{"type":"array"}`) }, "arguments are"},
		"a manifest that is no JSON":      {func(r *Record) { r.Manifest.Tools[0].Parameters = json.RawMessage(`{`) }, "unexpected end"},
		"a manifest without tools":        {func(r *Record) { r.Manifest.Tools = nil }, "holds no tool"},
		"keys without a signer":           {func(r *Record) { r.Signer, r.Namespace = "", "" }, "does not go with"},
		"a namespace without a signer":    {func(r *Record) { r.Signer, r.Keys = "", nil }, "does not go with"},
		"a relative project":              {func(r *Record) { r.Project = "project" }, "absolute"},
		"a grant of a relative directory": {func(r *Record) { r.Allowances = map[string]tool.Allowance{"": {Read: []string{"."}}} }, "absolute"},
		"a grant of a directory with ..":  {func(r *Record) { r.Allowances = map[string]tool.Allowance{"": {Write: []string{"/a/../b"}}} }, "absolute"},
		"a grant to no tool":              {func(r *Record) { r.Allowances = map[string]tool.Allowance{"a b": {}} }, "no tool"},
		"a name that is taken":            {func(r *Record) { r.Name = "units" }, "twice"},
	} {
		t.Run(name, func(t *testing.T) {
			s := filled(t)
			before, err := os.ReadFile(s.indexPath())
			must(t, err)
			code, r := sample("new", "1.0.0")
			err = s.Change([][]byte{code}, func(all []Record) ([]Record, error) {
				all[0].Name = "changed in place"
				all[0] = records(t, s)[0]
				if c.change == nil {
					return nil, other
				}
				c.change(&r)
				return append(all, r), nil
			})
			if err == nil || !strings.Contains(err.Error(), c.err) {
				t.Errorf("got %v", err)
			}
			if after, err := os.ReadFile(s.indexPath()); err != nil || !bytes.Equal(before, after) {
				t.Errorf("the index was changed: %v", err)
			}
			if found := s.Verify(); found != nil {
				t.Errorf("found %v", found)
			}
		})
	}
}

// forge writes an index whose checksum fits.
func forge(list string) []byte {
	return []byte(head + tool.SHA256([]byte(list)) + afterSum + list + end)
}

func TestAnIndexThatCannotBeBelievedIsRefused(t *testing.T) {
	_, r := sample("units", "1.0.0")
	line, err := json.Marshal(r)
	must(t, err)
	write := func(data []byte) func(*Store) error {
		return func(s *Store) error { return os.WriteFile(s.indexPath(), data, 0o600) }
	}
	for name, c := range map[string]struct {
		damage func(*Store) error
		err    string
	}{
		"an empty file":                    {write(nil), "damaged"},
		"other JSON":                       {write([]byte(`{"version":1,"records":[]}`)), "damaged"},
		"a newer form":                     {write([]byte(`{"version":2,"modules":[]}`)), "newer stockade (version 2"},
		"a key that is not known":          {write(forge(strings.Replace("["+string(line)+"]", `"name"`, `"naem":1,"name"`, 1))), "naem"},
		"a record twice":                   {write(forge("[" + string(line) + "," + string(line) + "]")), "twice"},
		"a name with a path":               {write(forge(strings.Replace("["+string(line)+"]", `"units"`, `"a/b"`, 1))), "name is not"},
		"no list":                          {write(forge("{}")), "damaged"},
		"a list that does not end":         {write(forge("[" + string(line))), "without an end"},
		"more after the list":              {write(forge("[] []")), "damaged"},
		"nesting without end":              {write(forge(strings.Repeat("[", 1<<20))), "cannot be read"},
		"a huge file":                      {func(s *Store) error { return os.Truncate(s.indexPath(), maxIndexBytes+1) }, "more than the limit"},
		"a file that others write":         {func(s *Store) error { return os.Chmod(s.indexPath(), 0o622) }, "others may write"},
		"a folder that others write":       {func(s *Store) error { return os.Chmod(s.dir, 0o770) }, "others may write"},
		"a folder above that others write": {func(s *Store) error { return os.Chmod(filepath.Dir(s.dir), 0o777) }, "others may write"},
		"a link": {func(s *Store) error {
			return errors.Join(os.Rename(s.indexPath(), s.indexPath()+"x"), os.Symlink("index.jsonx", s.indexPath()))
		}, "not a regular file"},
		"a folder":                     {func(s *Store) error { return errors.Join(os.Remove(s.indexPath()), os.Mkdir(s.indexPath(), 0o700)) }, "not a regular file"},
		"a file in the folder's place": {func(s *Store) error { return errors.Join(os.RemoveAll(s.dir), os.WriteFile(s.dir, nil, 0o600)) }, "not a"},
	} {
		t.Run(name, func(t *testing.T) {
			s := filled(t)
			must(t, c.damage(s))
			files, _ := os.ReadDir(s.moduleDir())
			if _, err := s.Records(); err == nil || !strings.Contains(err.Error(), c.err) {
				t.Errorf("got %v", err)
			}
			if add(s, "1", "other") == nil || s.Sweep() == nil {
				t.Error("it was changed, or swept")
			}
			if found := s.Verify(); len(found) != 1 || found[0].Unneeded {
				t.Errorf("found %v", found)
			}
			if after, _ := os.ReadDir(s.moduleDir()); len(after) != len(files) {
				t.Error("modules were removed")
			}
		})
	}
}

func TestAnIndexOfAnotherFormIsNotBuiltUpon(t *testing.T) {
	_, r := sample("units", "1.0.0")
	line, err := json.Marshal(r)
	must(t, err)
	for name, list := range map[string]string{
		"white space":      "[ " + string(line) + "]",
		"a key twice":      "[\n" + strings.Replace(string(line), `"source"`, `"source":"a","source"`, 1) + "\n]",
		"a key in capital": "[\n" + strings.Replace(string(line), `"source"`, `"Source"`, 1) + "\n]",
	} {
		s := filled(t)
		must(t, os.WriteFile(s.indexPath(), forge(list), 0o600))
		if err := add(s, "1", "other"); !errors.Is(err, errDamaged) {
			t.Errorf("%s: %v", name, err)
		}
		if found := s.Verify(); len(found) != 1 || found[0].Unneeded || s.Sweep() == nil {
			t.Errorf("%s: found %v", name, found)
		}
	}
}

func TestAFlipOfAnyByteOfTheIndexIsRefused(t *testing.T) {
	data, err := os.ReadFile(filled(t).indexPath())
	must(t, err)
	if _, err := decode(data); err != nil {
		t.Fatal(err)
	}
	for i := range data {
		for _, bits := range []byte{1, 0x20, 0x80} {
			bad := bytes.Clone(data)
			bad[i] ^= bits
			if _, err := decode(bad); err == nil {
				t.Fatalf("byte %d became %q and was read: %s", i, bad[i], bad[max(0, i-20):i+1])
			}
		}
		if _, err := decode(data[:i]); err == nil {
			t.Fatalf("it ended after %d bytes and was read", i)
		}
	}
}

func TestADamagedModuleIsNotReadAndIsMended(t *testing.T) {
	for name, damage := range map[string]func(path string) error{
		"a byte is another": func(path string) error { return os.WriteFile(path, []byte("the module units 1.0.1"), 0o600) },
		"it is shorter":     func(path string) error { return os.WriteFile(path, []byte("the"), 0o600) },
		"it is missing":     func(string) error { return nil },
		"it is a folder":    func(path string) error { return os.Mkdir(path, 0o700) },
		"it is a link to the same": func(path string) error {
			return errors.Join(os.WriteFile(path+"x", []byte("the module units 1.0.0"), 0o600), os.Symlink(path+"x", path))
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := filled(t)
			m := s.Module(records(t, s)[1])
			must(t, os.Remove(m.Path), damage(m.Path))
			if code, err := m.Read(); err == nil {
				t.Errorf("read %q", code)
			}
			if found := s.Verify(); len(found) == 0 || found[0].Name != "units" || found[0].Unneeded || !strings.Contains(found[0].Message, "add it again") {
				t.Errorf("found %v", found)
			}
			must(t, s.Change(nil, func(all []Record) ([]Record, error) {
				all[1].OffReason = "it is damaged"
				return all, nil
			}))
			must(t, add(s, "1.0.0", "units"), os.RemoveAll(m.Path+"x"))
			if _, err := m.Read(); err != nil {
				t.Error(err)
			}
			if found := s.Verify(); found != nil {
				t.Errorf("after it was added again: %v", found)
			}
		})
	}
}

func TestVerifyComparesTheManifestWithItsFingerprint(t *testing.T) {
	s := filled(t)
	all := records(t, s)
	all[1].Manifest.Tools[0].Description = "Something else."
	data, _, err := encode(all)
	must(t, err, os.WriteFile(s.indexPath(), data, 0o600))
	if found := s.Verify(); len(found) != 1 || found[0].Name != "units" || !strings.Contains(found[0].Message, "not the one that was approved") {
		t.Errorf("found %v", found)
	}
}

func FuzzRecords(f *testing.F) {
	_, r := sample("units", "1.0.0")
	line, _ := json.Marshal(r)
	f.Add("[" + string(line) + "]")
	f.Add("[]")
	f.Add("[{}]")
	f.Fuzz(func(t *testing.T, list string) {
		all, err := decode(forge(list))
		if err != nil {
			return
		}
		again, _, err := encode(all)
		if err != nil {
			t.Fatal(err)
		}
		same, err := decode(again)
		if err != nil {
			t.Fatalf("what was read is not written in a form that is read: %v", err)
		}
		third, _, err := encode(same)
		if err != nil || !bytes.Equal(again, third) {
			t.Errorf("%v\n%s\n%s", err, again, third)
		}
	})
}

// BenchmarkStart is what a start does with the modules that were added.
func BenchmarkStart(b *testing.B) {
	for _, n := range []int{0, 50, 500} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			s := Open(filepath.Join(b.TempDir(), "modules"))
			var names []string
			for i := range n {
				names = append(names, fmt.Sprintf("module%d", i))
			}
			if err := add(s, "1.0.0", names...); err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				all, err := s.Records()
				if err != nil || len(all) != n {
					b.Fatal(err)
				}
				modules := map[*tool.Module]tool.Manifest{}
				for _, r := range all {
					m := s.Module(r)
					for i := range r.Manifest.Tools {
						r.Manifest.Tools[i].Name = m.Prefix + r.Manifest.Tools[i].Name
					}
					modules[m] = r.Manifest
				}
				if _, err := tool.NewCatalog(modules); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
