package trust

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stockade-dev/stockade/host/registry/sign"
)

// Two keys for files, and the ID of the first.
const (
	keyA = "ed25519:11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=" // of RFC 8032, test 1
	keyB = "ed25519:PUAXw+hDiVqStwqnTRt+vJyYLM8uxJaMwM1V8Sr0Zgw=" // test 2
)

func mustKey(t testing.TB, text string) sign.PublicKey {
	t.Helper()
	k, err := sign.ParsePublicKey(text)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func TestAFileIsRead(t *testing.T) {
	a, b := mustKey(t, keyA), mustKey(t, keyB)
	got, err := Parse("trust.toml", []byte(`# Ours.
[[publisher]]
name = "example.org"
namespaces = ["registry.example.org/tools", "localhost:5000", "file:weather"]
keys = ["`+keyA+`", "`+keyB+`"]
threshold = 2
expires = 2027-01-01T02:00:00+02:00

[[revoked]]
key = "`+keyB+`"
why = "stolen"
[[revoked]]
digest = "sha256:`+hash("a")+`"

[[publisher]]
name = "ada@example.com"
namespaces = ["*"]
keys = ["ecdsa-p256:BCyoQ+xeTisu+2efNmOodLtSdxjQPpL1LIeHiqXdZcJAwM3xQ7O8lxBMbBJDz7okCQXpQ0+vJ+zwyFgf0GGO5qw="]
`))
	if err == nil || !strings.Contains(err.Error(), "no point of P-256") || !strings.HasPrefix(err.Error(), "trust.toml:15: [[publisher]] 2: keys: ") {
		t.Errorf("a key with a wrong byte: %+v, %v", got, err)
	}
	got, err = Parse("trust.toml", []byte(`[[publisher]]
name = "example.org"
namespaces = ["registry.example.org/tools", "localhost:5000", "file:weather"]
keys = ["`+keyA+`", "`+keyB+`"]
threshold = 2
expires = 2027-01-01T02:00:00+02:00
[[revoked]]
key = "`+keyB+`"
why = "stolen"
[[revoked]]
key = "`+a.ID()+`"
[[revoked]]
digest = "sha256:`+hash("a")+`"
`))
	want := &File{
		Name: "trust.toml",
		Publishers: []Publisher{{
			Name: "example.org", Namespaces: []string{"registry.example.org/tools", "localhost:5000", "file:weather"},
			Keys: []sign.PublicKey{a, b}, Threshold: 2, Expires: time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC),
		}},
		Revoked: []Revocation{{Key: b.ID(), Why: "stolen"}, {Key: a.ID()}, {Digest: "sha256:" + hash("a")}},
	}
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got, cmp.Comparer(func(a, b sign.PublicKey) bool { return a == b })); diff != "" {
		t.Error(diff)
	}
	if f, err := Parse("f", nil); err != nil || len(f.Publishers)+len(f.Revoked) > 0 {
		t.Errorf("an empty file: %+v, %v", f, err)
	}
}

func TestMistakesInAFileAreErrors(t *testing.T) {
	// One has the three keys that a publisher needs, but those that a case gives.
	one := func(lines ...string) string {
		src := "[[publisher]]\n"
		for key, value := range map[string]string{"name": `"a"`, "namespaces": `["a.example"]`, "keys": `["` + keyA + `"]`} {
			given := false
			for _, l := range lines {
				given = given || strings.HasPrefix(l, key+" ") || l == "no "+key
			}
			if !given {
				src += key + " = " + value + "\n"
			}
		}
		for _, l := range lines {
			if !strings.HasPrefix(l, "no ") {
				src += l + "\n"
			}
		}
		return src
	}
	if _, err := Parse("f", []byte(one())); err != nil {
		t.Fatalf("the counter-proof: %v", err)
	}
	for name, c := range map[string]struct{ src, says string }{
		"an unknown key":               {one(`treshold = 1`), `f:1: unknown key "publisher.treshold" (did you mean "publisher.threshold"?)`},
		"an unknown table":             {"\n[[publishers]]\nname = 'a'", `f:2: unknown key "publishers" (did you mean "publisher"?)`},
		"one table, not a list":        {"[publisher]\nname = 'a'", "write [[publisher]]"},
		"a key twice":                  {one("threshold = 1", "threshold = 1"), "f:"},
		"no name":                      {one("no name"), "f:1: [[publisher]] 1: it has no name"},
		"no namespaces":                {one("no namespaces"), "it has no namespaces"},
		"an empty list of namespaces":  {one("namespaces = []"), "it has no namespaces"},
		"no keys":                      {one("no keys"), "it has no keys"},
		"a threshold above the keys":   {one("threshold = 2"), "threshold = 2, and it has 1 of keys"},
		"a threshold of 0":             {one("threshold = 0"), "out of range"},
		"a threshold as text":          {one(`threshold = "1"`), "it is a string"},
		"the same key twice":           {one("keys = ['" + keyA + "', '" + keyA + "']"), keyA + " is already in [[publisher]] 1"},
		"a key of two publishers":      {one() + one("name = 'b'"), keyA + " is already in [[publisher]] 1"},
		"two publishers of a name":     {one() + one("keys = ['"+keyB+"']"), "a is already in [[publisher]] 1"},
		"an ID as key":                 {one("keys = ['ed25519:" + strings.Repeat("a", 32) + "']"), "an ed25519 key has 32"},
		"a key of another algorithm":   {one("keys = ['ecdsa-p256" + strings.TrimPrefix(keyA, "ed25519") + "']"), "no point of P-256"},
		"a key of nothing but 0":       {one("keys = ['ed25519:" + strings.Repeat("A", 43) + "=']"), "anybody can sign"},
		"a name of two words":          {one("name = 'a b'"), "is not 1 to 128 of"},
		"a name that looks like ours":  {one("name = 'exаmple.org'"), "is not 1 to 128 of"},
		"a namespace with a slash":     {one("namespaces = ['a.example/']"), "is not HOST"},
		"a namespace above":            {one("namespaces = ['a.example/../b']"), "is not HOST"},
		"a namespace with a scheme":    {one("namespaces = ['https://a.example']"), "is not HOST"},
		"a pattern as namespace":       {one("namespaces = ['*.example']"), "is not HOST"},
		"an empty namespace":           {one("namespaces = ['']"), "is not HOST"},
		"a path as file":               {one("namespaces = ['file:../x']"), "is not HOST"},
		"a namespace twice":            {one("namespaces = ['*', '*']"), `"*" is there twice`},
		"an end without a zone":        {one("expires = 2027-01-01T00:00:00"), "with its zone"},
		"a day as end":                 {one("expires = 2027-01-01"), "with its zone"},
		"an end at the zero time":      {one("expires = 0001-01-01T00:00:00Z"), "1970"},
		"an end as text":               {one("expires = '2027-01-01T00:00:00Z'"), "it is a string"},
		"a revocation of nothing":      {"[[revoked]]\nwhy = 'x'", "f:1: [[revoked]] 1: it needs a key or a digest"},
		"a revocation of both":         {"[[revoked]]\nkey = '" + keyA + "'\ndigest = 'sha256:" + hash("a") + "'", "and not both"},
		"a digest without algorithm":   {"[[revoked]]\ndigest = '" + hash("a") + "'", `is not "sha256:"`},
		"a digest in upper case":       {"[[revoked]]\ndigest = 'sha256:" + hash("A") + "'", `is not "sha256:"`},
		"a short ID":                   {"[[revoked]]\nkey = 'ed25519:abcd'", "an ed25519 key has 32"},
		"a key revoked twice":          {"[[revoked]]\nkey = '" + keyA + "'\n[[revoked]]\nkey = '" + mustKey(t, keyA).ID() + "'", "is already in [[revoked]] 1"},
		"a reason of two lines":        {"[[revoked]]\nkey = '" + keyA + "'\nwhy = \"a\\nb\"", "one line"},
		"65 namespaces":                {one("namespaces = [" + strings.Repeat("'a.example',", 65) + "]"), "at most 64"},
		"a megabyte":                   {strings.Repeat("#", 1<<20+1), "more than 1048576 bytes"},
		"no TOML":                      {"publisher", "f:1: "},
		"4097 revocations":             {revocations(maxRevoked + 1), "more than 4096"},
		"129 keys of three publishers": {many(t, 129), "more than 128 keys"},
	} {
		if f, err := Parse("f", []byte(c.src)); err == nil || f != nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, %v", name, f, err)
		}
	}
	for name, src := range map[string]string{"4096 revocations": revocations(maxRevoked), "128 keys": many(t, 128)} {
		if _, err := Parse("f", []byte(src)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func revocations(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "[[revoked]]\ndigest = 'sha256:%064x'\n", i)
	}
	return b.String()
}

func many(t *testing.T, n int) string {
	var b strings.Builder
	for i := 0; i < n; i++ {
		if i%50 == 0 {
			fmt.Fprintf(&b, "[[publisher]]\nname = 'p%d'\nnamespaces = ['*']\nkeys = [", i)
		}
		k, err := sign.Generate(sign.Ed25519)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "'%s',", k.Public())
		if i%50 == 49 || i == n-1 {
			b.WriteString("]\n")
		}
	}
	return b.String()
}

func TestAFileIsEdited(t *testing.T) {
	a, b := mustKey(t, keyA), mustKey(t, keyB)
	step := func(data []byte, err error) []byte {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	data := step(AddPublisher([]byte("# mine\n"), Publisher{Name: "zoe", Namespaces: []string{"*"}, Keys: []sign.PublicKey{a}}))
	data = step(AddPublisher(data, Publisher{
		Name: "ada", Namespaces: []string{"a.example/x", "file:y"}, Keys: []sign.PublicKey{b}, Threshold: 1, Expires: time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC),
	}))
	data = step(Revoke(data, Revocation{Key: b.ID(), Why: `it is "lost"`}))
	want := `# mine

[[publisher]]
name = "zoe"
namespaces = ["*"]
keys = ["` + keyA + `"]

[[publisher]]
name = "ada"
namespaces = ["a.example/x", "file:y"]
keys = ["` + keyB + `"]
expires = 2027-01-01T00:00:00Z

[[revoked]]
key = "` + b.ID() + `"
why = "it is \"lost\""
`
	if diff := cmp.Diff(want, string(data)); diff != "" {
		t.Error(diff)
	}
	for name, edit := range map[string]func() ([]byte, error){
		"the name again": func() ([]byte, error) { return AddPublisher(data, Publisher{Name: "zoe", Namespaces: []string{"*"}}) },
		"the key again": func() ([]byte, error) {
			return AddPublisher(data, Publisher{Name: "x", Namespaces: []string{"*"}, Keys: []sign.PublicKey{a}})
		},
		"a publisher of nothing": func() ([]byte, error) { return AddPublisher(data, Publisher{}) },
		"a revocation again":     func() ([]byte, error) { return Revoke(data, Revocation{Key: b.ID()}) },
		"a revocation as text":   func() ([]byte, error) { return Revoke(data, Revocation{Key: "x\"\n[[publisher]]"}) },
		"nobody removed":         func() ([]byte, error) { return RemovePublisher(data, "bob") },
		"a broken file":          func() ([]byte, error) { return RemovePublisher([]byte("x = 1"), "zoe") },
		"a broken file, added":   func() ([]byte, error) { return Revoke([]byte("x = 1"), Revocation{Key: b.ID()}) },
	} {
		if got, err := edit(); err == nil || got != nil {
			t.Errorf("%s: %s, %v", name, got, err)
		}
	}
	data = step(RemovePublisher(data, "zoe"))
	if want := want[strings.Index(want, "[[publisher]]\nname = \"ada\""):]; string(data) != want {
		t.Errorf("after Remove: %s", data)
	}
	if data = step(RemovePublisher(data, "ada")); strings.Contains(string(data), "publisher") || !strings.Contains(string(data), b.ID()) {
		t.Errorf("after Remove: %s", data)
	}
}

func FuzzParse(f *testing.F) {
	f.Add("[[publisher]]\nname = 'a'\nnamespaces = ['*', 'a.example:1/b', 'file:c']\nkeys = ['" + keyA + "', '" + keyB + "']\nthreshold = 2\nexpires = 2027-01-01T00:00:00.5Z\n")
	f.Add("revoked = [{key = '" + keyA + "', why = \"\\u0085\"}, {digest = 'sha256:" + hash("a") + "'}]")
	f.Fuzz(func(t *testing.T, src string) {
		file, err := Parse("f", []byte(src))
		if err != nil {
			return
		}
		Combine(file)
		again, err := Parse("f", file.toml()) // which sorts it
		if err != nil {
			t.Fatalf("%s\n%v", file.toml(), err)
		}
		if diff := cmp.Diff(file, again, cmp.Comparer(func(a, b sign.PublicKey) bool { return a == b })); diff != "" {
			t.Error(diff)
		}
	})
}
