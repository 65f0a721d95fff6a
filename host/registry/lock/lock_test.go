package lock

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stockade-dev/stockade/host/tool"
)

func sum(digit string) string { return strings.Repeat(digit, 64) }

// sample is one module of each kind.
func sample() *File {
	approved := tool.Fingerprint{Description: sum("1"), Schema: sum("2"), Needs: sum("3")}
	return &File{[]Module{
		{Name: "dates", Version: "1.0.0", Source: "tools/dates.wasm", Digest: sum("a"), Bytes: 10, Fingerprint: approved},
		{Name: "units", Version: "2.1.0", Source: "oci://registry.example.com:5000/tools/units:2.1.0@sha256:" + sum("d"), ManifestDigest: "sha256:" + sum("d"),
			Digest: sum("b"), Bytes: 2_000_000, Fingerprint: approved, Signer: `The "Example" team`, Keys: []string{"SHA256:abc", "SHA256:def"}},
		{Name: "web", Source: "https://example.com/a%20b/web.wasm?download=1", Digest: sum("c"), Bytes: 1, Fingerprint: approved},
	}}
}

const written = `version = 1

[[module]]
name = "dates"
version = "1.0.0"
source = "tools/dates.wasm"
digest = "sha256:AAAA"
bytes = 10
description = "sha256:1111"
schema = "sha256:2222"
needs = "sha256:3333"

[[module]]
name = "units"
version = "2.1.0"
source = "oci://registry.example.com:5000/tools/units:2.1.0@sha256:dddd"
manifest = "sha256:dddd"
digest = "sha256:bbbb"
bytes = 2000000
description = "sha256:1111"
schema = "sha256:2222"
needs = "sha256:3333"
signer = "The \"Example\" team"
keys = ["SHA256:abc", "SHA256:def"]

[[module]]
name = "web"
source = "https://example.com/a%20b/web.wasm?download=1"
digest = "sha256:cccc"
bytes = 1
description = "sha256:1111"
schema = "sha256:2222"
needs = "sha256:3333"
`

// long writes each hash of four digits in full.
func long(text string) string {
	for _, d := range strings.Split("AbcD123", "") {
		d = strings.ToLower(d)
		text = strings.ReplaceAll(text, "sha256:"+strings.Repeat(d, 4), "sha256:"+sum(d))
	}
	return strings.ReplaceAll(text, "sha256:AAAA", "sha256:"+sum("a"))
}

func TestAFileIsWrittenInOneFormAndReadBack(t *testing.T) {
	f := sample()
	data := Format(f)
	if diff := cmp.Diff(head+strings.TrimPrefix(long(written), "version = 1\n"), string(data)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	got, err := Parse("f", data)
	if diff := cmp.Diff(f, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got)\n%s", err, diff)
	}
	mixed := sample()
	m := mixed.Modules
	m[0], m[2] = m[2], m[0]
	m[1].Keys[0], m[1].Keys[1] = m[1].Keys[1], m[1].Keys[0]
	if !bytes.Equal(Format(mixed), data) || m[0].Name != "web" || m[1].Keys[0] != "SHA256:def" {
		t.Error("the order counts, or was changed")
	}
	// A merge leaves another order, and Windows other ends of lines.
	text := strings.ReplaceAll("\ufeff"+long(written), "\n", "\r\n") + "# a comment\n"
	first, second := strings.Index(text, "[[module]]"), strings.LastIndex(text, "[[module]]")
	got, err = Parse("f", []byte(text[:first]+text[second:]+text[first:second]))
	if diff := cmp.Diff(f, got); diff != "" || err != nil {
		t.Errorf("after a merge: %v (-want +got)\n%s", err, diff)
	}
	if got, err := Parse("f", Format(&File{})); err != nil || len(got.Modules) != 0 {
		t.Errorf("of none: %v, %v", got, err)
	}
}

func TestWhatALockFileMustNotSay(t *testing.T) {
	many := &File{}
	for i := range maxModules + 1 {
		m := sample().Modules[0]
		m.Name = fmt.Sprint("m", i)
		many.Modules = append(many.Modules, m)
	}
	large := &File{}
	for i := range maxTotalBytes/maxBytes + 1 {
		m := sample().Modules[0]
		m.Name, m.Bytes = fmt.Sprint("m", i), maxBytes
		large.Modules = append(large.Modules, m)
	}
	tooLarge := string(Format(large))
	tooMany, tooLong := string(Format(many)), long(written)+"#"+strings.Repeat("x", 1<<20)
	for name, c := range map[string]struct{ old, new, err string }{
		"a key that is mistyped":              {`digest = "sha256:bbbb"`, `digset = "sha256:bbbb"`, `f:13: unknown key "module.digset" (did you mean "module.digest"?)`},
		"a table that is not known":           {"version = 1\n", "version = 1\n[grants]\nread = true\n", `unknown key "grants.read"`},
		"no version":                          {"version = 1\n", "", `"version" is missing`},
		"a newer version":                     {"version = 1\n", "version = 2\n", "newer stockade"},
		"a version below one":                 {"version = 1\n", "version = 0\n", "out of range"},
		"a key twice":                         {`bytes = 10`, "bytes = 10\nbytes = 10", "f:9"},
		"no digest":                           {`digest = "sha256:bbbb"`, ``, `f:13: [[module]] 2: the key "digest" is missing`},
		"no needs":                            {`needs = "sha256:3333"`, ``, `the key "needs" is missing`},
		"a name that is taken":                {`"web"`, `"units"`, "two modules"},
		"a name in another case":              {`"web"`, `"Units"`, "two modules"},
		"a name with ..":                      {`"web"`, `"../web"`, "name: "},
		"a name that looks like another":      {`"web"`, `"wеb"`, "name: "},
		"a digest of another kind":            {`digest = "sha256:bbbb"`, `digest = "md5:bbbb"`, "digest: "},
		"a digest that is too short":          {`digest = "sha256:bbbb"`, `digest = "sha256:b"`, "digest: "},
		"a digest in upper case":              {`digest = "sha256:bbbb"`, `digest = "sha256:` + sum("B") + `"`, "digest: "},
		"a digest that is a number":           {`digest = "sha256:bbbb"`, `digest = 5`, "it is an integer"},
		"no bytes":                            {`bytes = 10`, `bytes = 0`, "out of range"},
		"too many bytes":                      {`bytes = 10`, `bytes = 67108865`, "out of range"},
		"an empty version":                    {`version = "1.0.0"`, `version = ""`, "leave the key out"},
		"a version that moves the cursor":     {`version = "1.0.0"`, `version = "\u001b[2J"`, "do not show"},
		"a version of two lines":              {`version = "1.0.0"`, `version = "1\nsigned"`, "do not show"},
		"a signer that reads backwards":       {`"The \"Example\" team"`, `"\u202Eelpmaxe"`, "do not show"},
		"a signer without keys":               {`keys = ["SHA256:abc", "SHA256:def"]`, ``, "go together"},
		"keys without a signer":               {`signer = "The \"Example\" team"`, ``, "go together"},
		"too many keys":                       {`keys = [`, `keys = [` + strings.Repeat(`"x", `, maxKeys), "at most 16"},
		"another manifest than the source":    {`manifest = "sha256:dddd"`, `manifest = "sha256:cccc"`, "have to be the same"},
		"a registry without a manifest":       {`manifest = "sha256:dddd"`, ``, "have to be the same"},
		"a file with a manifest":              {`bytes = 10`, "bytes = 10\nmanifest = \"sha256:dddd\"", "only what comes from a registry"},
		"too many modules":                    {long(written), tooMany, "201 modules"},
		"modules that are too large together": {long(written), tooLarge, "more than 536870912 bytes together"},
		"a file without end":                  {long(written), tooLong, "more than 1048576 bytes"},
		"no TOML":                             {"[[module]]", "[[module", "f:4"},
		"no text":                             {`"web"`, "\"\xff\"", "f"},
	} {
		text := long(strings.Replace(written, c.old, c.new, 1))
		if c.old == long(written) {
			text = c.new
		}
		if text == long(written) {
			t.Errorf("%s changes nothing", name)
		}
		if f, err := Parse("f", []byte(text)); err == nil || f != nil || !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestSources(t *testing.T) {
	d := "@sha256:" + sum("d")
	for source, ok := range map[string]bool{
		"oci://example.com/units" + d:                true,
		"oci://localhost:5000/a/b-c/d_e.f:1.0.0" + d: true,
		"oci://[::1]:5000/a" + d:                     true,
		"https://example.com/units.wasm":             true,
		"units.wasm":                                 true,
		".stockade/tools/units.wasm":                 true,
		"a b/ü.wasm":                                 true,

		"":                                     false,
		"oci://example.com/units":              false,
		"oci://example.com/units:1.0.0":        false,
		"oci://example.com/units@sha256:dd":    false,
		"oci://example.com/units" + d + d:      false,
		"oci://example.com/../units" + d:       false,
		"oci://example.com/a//units" + d:       false,
		"oci://example.com/Units" + d:          false,
		"oci://example.com/units:-" + d:        false,
		"oci://example.com/units:a:b" + d:      false,
		"oci://example.com/units?a" + d:        false,
		"oci://example.com" + d:                false,
		"oci:///units" + d:                     false,
		"oci://me:secret@example.com/units":    false,
		"oci://EXAMPLE.com/units" + d:          false,
		"oci://example.com:443/units" + d:      false,
		"OCI://example.com/units" + d:          false,
		"http://example.com/units.wasm":        false,
		"https://me:secret@example.com/u.wasm": false,
		"https://me@example.com/u.wasm":        false,
		"https://EXAMPLE.com/u.wasm":           false,
		"https://example.com":                  false,
		"https://example.com/":                 false,
		"https://example.com/a/../u.wasm":      false,
		"https://example.com/%2e%2e/u.wasm":    false,
		"https://example.com//u.wasm":          false,
		"https://example.com/u.wasm#x":         false,
		"https://example.com/u\n.wasm":         false,
		"https://exаmple.com/u.wasm":           false, // a Cyrillic letter
		"https:///u.wasm":                      false,
		"https:example.com/u.wasm":             false,
		"file:///etc/passwd":                   false,
		"git+ssh://example.com/u":              false,
		"/etc/passwd":                          false,
		"../units.wasm":                        false,
		"tools/../../units.wasm":               false,
		"./units.wasm":                         false,
		"tools//units.wasm":                    false,
		"tools/":                               false,
		"..":                                   false,
		".":                                    false,
		`tools\units.wasm`:                     false,
		`C:\units.wasm`:                        false,
		"C:/units.wasm":                        false,
		"~:/units.wasm":                        false,
		"units\u200b.wasm":                     false,
		strings.Repeat("x", maxSource+1):       false,
	} {
		if err := checkSource(source); (err == nil) != ok {
			t.Errorf("%.100q: %v", source, err)
		}
	}
}

// Trust is bound to the bytes of the file, so a flip takes it away in any case.
// This is about what a flip could hide from a reader: none changes what the file
// looks like and not what it says, but for comments and white space.
func TestAFlipOfAnyByteIsRefusedOrChangesWhatTheFileSays(t *testing.T) {
	f := &File{sample().Modules[1:2]}
	data := Format(f)
	try := func(i int, b byte) {
		bad := bytes.Clone(data)
		bad[i] = b
		got, err := Parse("f", bad)
		if err != nil || b == data[i] || len(Diff(f, got)) > 0 {
			return
		}
		if old := data[i]; old != ' ' && old != '\n' {
			t.Errorf("byte %d, %q, became %q, and the file says the same: %s", i, old, b, bad[max(0, i-20):i+1])
		}
	}
	for i := bytes.Index(data, []byte("\nversion")) + 1; i < len(data); i++ {
		if bytes.Count(data[i-2:min(i+3, len(data))], data[i:i+1]) == 5 {
			continue // within a hash the first and last digits stand for all
		}
		for bit := range 8 {
			try(i, data[i]^1<<bit)
		}
		for _, b := range []byte("\"'#=+-_.,[] \n\t\r\\0") { // what means something in TOML
			try(i, b)
		}
	}
}

func TestADifferenceIsInWords(t *testing.T) {
	was, now := sample(), sample()
	added := now.Modules[0]
	added.Name, added.Version = "another", ""
	u := &now.Modules[1]
	u.Version, u.Bytes, u.Keys, u.Signer = "2.2.0", 5, nil, ""
	u.Digest = u.Digest[:60] + "eeee"
	u.Fingerprint.Needs = sum("4")
	u.Source, u.ManifestDigest = strings.ReplaceAll(u.Source, sum("d"), sum("e")), "sha256:"+sum("e")
	now.Modules = []Module{added, now.Modules[0], *u}
	want := []string{
		"new: another",
		"units, version: was 2.1.0, now 2.2.0",
		"units, what its tools ask for: was sha256:333333333333..., now sha256:444444444444...",
		`units, claimed signer: was The "Example" team, now none`,
		"units, claimed keys: was SHA256:abc, SHA256:def, now none",
		"units, source: was oci://registry.example.com:5000/tools/units:2.1.0@sha256:dddddddddddd..., now oci://registry.example.com:5000/tools/units:2.1.0@sha256:eeeeeeeeeeee...",
		"units, manifest: was sha256:dddddddddddd..., now sha256:eeeeeeeeeeee...",
		"units, the module itself: was sha256:" + sum("b") + ", now sha256:" + sum("b")[:60] + "eeee",
		"units, bytes: was 2000000, now 5",
		"gone: web",
	}
	if diff := cmp.Diff(want, Diff(was, now)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if n := len(Diff(nil, was)); n != 3 || len(Diff(was, nil)) != 3 || Diff(was, sample()) != nil || Diff(nil, nil) != nil {
		t.Errorf("%d were added to none", n)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(long(written)))
	f.Add(Format(&File{}))
	f.Add([]byte("version = 1\nmodule = [{name = 'a', keys = []}]\n"))
	f.Add([]byte("version = 1\n[[module]]\n[module.x]\ny = 1\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		file, err := Parse("f", data)
		if err != nil {
			return
		}
		again, err := Parse("f", Format(file))
		if err != nil {
			t.Fatalf("what was read is not written in a form that is read: %v\n%s", err, Format(file))
		}
		if diff := Diff(file, again); diff != nil || !bytes.Equal(Format(file), Format(again)) {
			t.Errorf("%v", diff)
		}
	})
}
