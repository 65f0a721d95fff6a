package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stockade-dev/stockade/host/config/keys"
)

func TestLoadNamesTheFileTheLineAndTheKey(t *testing.T) {
	tests := []struct {
		name, src, want string
	}{
		{"unknown table", "# one\n\n[modle]\nname = 'x'", `agent.toml:4: unknown key "modle.name" (did you mean "model.name"?)`},
		{"unknown key in a table", "[model]\nnaem = 'x'", `agent.toml:2: unknown key "model.naem" (did you mean "model.name"?)`},
		{"unknown key at the top", "max_tool_turn = 1", `agent.toml:1: unknown key "max_tool_turn" (did you mean "max_tool_turns"?)`},
		{"key of a table at the top", "stall_timeout = '5s'", `agent.toml:1: unknown key "stall_timeout" (did you mean "model.stall_timeout"?)`},
		{"key under the wrong table", "[bash]\nmax_tool_calls_per_turn = 1", `agent.toml:2: unknown key "bash.max_tool_calls_per_turn" (did you mean "max_tool_calls_per_turn"?)`},
		{"nothing like it", "zzz = 1", `agent.toml:1: unknown key "zzz"`},
		{"quoted name of a key", `"model.name" = 'x'`, `agent.toml:1: unknown key "\"model.name\"" (did you mean "model.name"?)`},
		{"another case", "Max_Tool_Turns = 1", `agent.toml:1: unknown key "Max_Tool_Turns" (did you mean "max_tool_turns"?)`},
		{"empty unknown table", "\n[zzz]", `agent.toml:2: unknown key "zzz"`},
		{"array of unknown tables", "[[zzz]]\na = 1\n[[zzz]]\na = 2", `agent.toml:3: unknown key "zzz"`},
		{"long key", strings.Repeat("z", 100) + " = 1", `agent.toml:1: unknown key "` + strings.Repeat("z", 80) + `"...`},

		{"value for a table", "model = 'x'", "agent.toml:1: model: it is a string; write a table: [model] and its keys below it"},
		{"array for a table", "[[model]]\nname = 'x'", "agent.toml:1: model: it is an array; write a table: [model] and its keys below it"},
		{"table for a value", "[max_tool_turns]\nx = 1", "agent.toml:1: max_tool_turns: it is a table; write a whole number from 1 to 10000"},
		{"string for a number", "max_tool_turns = '5'", "agent.toml:1: max_tool_turns: it is a string; write a whole number from 1 to 10000"},
		{"float for a number", "max_tool_turns = 5.0", "agent.toml:1: max_tool_turns: it is a float; write a whole number from 1 to 10000"},
		{"date for a number", "max_tool_turns = 2024-01-01", "agent.toml:1: max_tool_turns: it is a date or time; write a whole number from 1 to 10000"},
		{"number too small", "max_tool_turns = 0", "agent.toml:1: max_tool_turns: 0 is out of range; write a whole number from 1 to 10000"},
		{"unknown cache", "bash.caches = [\"gopher\"]", `agent.toml:1: bash.caches: "gopher" is not one of "go", "npm", "cargo", "pip"`},
		{"number too large", "[bash]\n\nmax_output = 67108865", "agent.toml:3: bash.max_output: 67108865 is out of range; write a whole number from 1024 to 67108864 (bytes)"},
		{"number for a duration", "tool_timeout = 30", `agent.toml:1: tool_timeout: it is an integer; write a duration from 1s to 1h, such as "30s" or "2m"`},
		{"duration without a unit", "tool_timeout = '30'", `agent.toml:1: tool_timeout: "30" is not a duration from 1s to 1h, such as "30s" or "2m"`},
		{"duration too long", "bash.timeout = '301s'", `agent.toml:1: bash.timeout: 301s is out of range; write a duration from 1s to 300s, such as "30s" or "2m"`},
		{"negative duration", "tool_timeout = '-1s'", `agent.toml:1: tool_timeout: -1s is out of range; write a duration from 1s to 1h, such as "30s" or "2m"`},
		{"string for a boolean", "tools.fs = 'false'", "agent.toml:1: tools.fs: it is a string; write true or false, without quotes"},
		{"boolean for a string", "model.name = true", "agent.toml:1: model.name: it is a boolean; write a string in quotes"},
		{"model of two lines", "model.name = '''\na\nb'''", "agent.toml:1: model.name: it holds a line break or another control character; write one line"},
		{"prompt that is too long", "# x\nsystem_prompt = '''\n" + strings.Repeat("a\n", 33<<10) + "'''", "agent.toml:2: system_prompt: it has 67584 bytes; at most 65536 are accepted"},
		{"price below nothing", "model.input_price = -0.5", "agent.toml:1: model.input_price: -0.5 is out of range; write a number from 0 to 1000000 (US dollars)"},
		{"price that is no number", "model.input_price = nan", "agent.toml:1: model.input_price: NaN is out of range; write a number from 0 to 1000000 (US dollars)"},
		{"price in quotes", "model.input_price = '2'", "agent.toml:1: model.input_price: it is a string; write a number from 0 to 1000000 (US dollars)"},
		{"unknown provider", "model.provider = 'openia'", `agent.toml:1: model.provider: "openia" is not one of "auto", "` + strings.Join(Providers, `", "`) + `"`},
		{"number for a provider", "model.provider = 1", `agent.toml:1: model.provider: it is an integer; write one of "auto", "` + strings.Join(Providers, `", "`) + `"`},
		{"address without a scheme", "model.base_url = 'localhost:80'", `agent.toml:1: model.base_url: it is not an http or https URL; write an address such as "https://host/v1"`},
		{"address of a file", "model.base_url = 'file:///etc'", `agent.toml:1: model.base_url: it is not an http or https URL; write an address such as "https://host/v1"`},
		{"address with a password", "model.base_url = 'https://a:b@host'", "agent.toml:1: model.base_url: it holds a user name or a password; a key belongs into the environment variable that model.api_key_env names"},
		{"address with a query", "model.base_url = 'https://host?key=1'", `agent.toml:1: model.base_url: it has a query with more than api-version; write an address such as "https://host/v1"`},
		{"address with a query that hides a key", "model.base_url = 'https://host?api-version=1&k%zz'", `agent.toml:1: model.base_url: it has a query with more than api-version; write an address such as "https://host/v1"`},
		{"key for the name of a variable", "model.api_key_env = 'sk-123'", `agent.toml:1: model.api_key_env: it is not the name of an environment variable; write a name such as "OPENAI_API_KEY", never the key itself`},
		{"mounts that are no list", "mounts = '/a'", `agent.toml:1: mounts: it is a string; write a list such as ["/data", "~/notes:ro"]`},
		{"mount that is no string", "mounts = [\n'/a',\n 1]", `agent.toml:1: mounts: entry 2 is an integer; write a list such as ["/data", "~/notes:ro"]`},
		{"mount that is a table", "mounts = [{path = '/a'}]", `agent.toml:1: mounts: entry 1 is a table; write a list such as ["/data", "~/notes:ro"]`},
		{"mount that is relative", "mounts = ['a:ro']", `agent.toml:1: mounts: "a:ro" is not an absolute path; write one, or one that begins with "~/"`},
		{"mount that is empty", "mounts = ['']", `agent.toml:1: mounts: "" is not an absolute path; write one, or one that begins with "~/"`},
		{"mount of another home", "mounts = ['~root']", `agent.toml:1: mounts: "~root" is not an absolute path; write one, or one that begins with "~/"`},
		{"mount with a superfluous suffix", "mounts = ['/a:rw']", `agent.toml:1: mounts: "/a:rw": the only suffix is ":ro"; a mount without it can be written to`},
		{"mount with a control character", `mounts = ["/a\u001b"]`, `agent.toml:1: mounts: "/a\x1b" holds a control character`},
		{"too many mounts", "mounts = [" + strings.Repeat("'/a',", 65) + "]", "agent.toml:1: mounts: it has 65 entries; at most 64 are accepted"},
		{"tables for mounts", "[[mounts]]\npath = 1", "agent.toml:1: mounts: it is an array; write " + `a list such as ["/data", "~/notes:ro"]`},

		{"no value", "\nmax_tool_turns =", "agent.toml:2: unexpected EOF; expected value"},
		{"a key twice", "tools.fs = true\ntools.fs = true", "agent.toml:2: Key 'tools.fs' has already been defined."},
		{"not UTF-8", "# fine\nmodel.name = \"\xff\"", "agent.toml:2: it is not valid UTF-8"},
		{"a file of zeros", "\x00\x00\x00", "agent.toml:1: files cannot contain NULL bytes; probably using UTF-16; TOML files must be UTF-8"},
		{"a key that is too deep", "# a.b\n" + strings.Repeat("a.", 9) + "a = 1", "agent.toml:2: more than 8 dots on a line; no key is nested so deep"},
		{"a list that is too deep", "x = '''\n[[[[[[[[[[['''\ny = " + strings.Repeat("[", 9), "agent.toml:3: more than 8 brackets within each other; no value is nested so deep"},
		{"after a byte order mark", "\ufeff# x\nzzz = 1", `agent.toml:2: unknown key "zzz"`},
		{"with the line ends of Windows", "# x\r\nsystem_prompt = \"\"\"\r\n\r\nx\"\"\"\r\nzzz = 1\r\n", `agent.toml:5: unknown key "zzz"`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			f, err := Parse("agent.toml", Project, []byte(test.src))
			if f != nil || err == nil {
				t.Fatalf("got %v, %v", f, err)
			}
			if err.Error() != test.want {
				t.Errorf("got  %s\nwant %s", err, test.want)
			}
			if _, ok := errors.AsType[*keys.Error](err); !ok {
				t.Errorf("%T is not a *keys.Error", err)
			}
		})
	}
}

func TestLoadReportsAllMistakesInTheOrderOfLines(t *testing.T) {
	src := `zzz = 1
max_tool_turns = 0
[tools]
exec = 1
fs = true
[bash]
timeout = "never"
[model]
name = 5
`
	_, err := Parse("a", User, []byte(src))
	want := `a:1: unknown key "zzz"
a:2: max_tool_turns: 0 is out of range; write a whole number from 1 to 10000
a:4: tools.exec: it is an integer; write true or false, without quotes
a:7: bash.timeout: "never" is not a duration from 1s to 300s, such as "30s" or "2m"
a:9: model.name: it is an integer; write a string in quotes`
	if err == nil {
		t.Fatal("no error")
	}
	if diff := cmp.Diff(want, err.Error()); diff != "" {
		t.Errorf("error (-want +got):\n%s", diff)
	}
}

func TestLoadReportsAtMostTenMistakes(t *testing.T) {
	var src strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&src, "unknown_%d = 1\n", i)
	}
	_, err := Parse("a", User, []byte(src.String()))
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok || len(joined.Unwrap()) != 10 {
		t.Errorf("got %v", err)
	}
}

func TestLoadKnowsTheLineOfEveryForm(t *testing.T) {
	src := `mounts = [
  "/a",
  "/b:ro",
]
system_prompt = """
One.
Two."""
tools = { fs = false,
  exec = false }
model.name = """x"""
[bash]
max_output = 1024
`
	f, err := Parse("a", User, []byte(src))
	if err != nil {
		t.Fatal(err)
	}
	got := make(map[string]int)
	for name, s := range f.settings {
		got[name] = s.line
	}
	want := map[string]int{"mounts": 1, "system_prompt": 5, "tools.fs": 8, "tools.exec": 9, "model.name": 10, "bash.max_output": 12}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("lines (-want +got):\n%s", diff)
	}
}

func TestStringsThatLookDeepAreNot(t *testing.T) {
	for _, src := range []string{
		`system_prompt = "[[[[[[[[[[[[[[ ............ \" .........."`,
		`system_prompt = '[[[[[[[[[[[[[[ ............ \'`,
		"system_prompt = \"\"\"\n[[[[[[[[[[[[ \" \"\" ............\"\"\"\"\" # .........",
		"system_prompt = '''\n[[[[[[[[[[[[ ' '' ............''''' # [[[[[[[[[[[",
		"# ................. [[[[[[[[[[[[[[\nmax_tool_turns = 1",
	} {
		if _, err := Parse("a", User, []byte(src)); err != nil {
			t.Errorf("%s: %v", src, err)
		}
	}
}

func TestLoadReadsAFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "agent.toml")
	if f, err := Load(path, User); f != nil || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("missing file: %v, %v", f, err)
	}
	if f, err := Load(dir, User); f != nil || err == nil || !strings.HasSuffix(err.Error(), ": it is not a regular file") {
		t.Errorf("directory: %v, %v", f, err)
	}
	write := func(content string) {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("model.name = 'x'")
	f, err := Load(path, Project)
	if err != nil {
		t.Fatal(err)
	}
	c, _ := mustMerge(t, nil, f, nil)
	if got, want := c.Source("model.name"), "project "+path+":1"; c.Model.Name != "x" || got != want {
		t.Errorf("got %q from %q, want it from %q", c.Model.Name, got, want)
	}
	write("#" + strings.Repeat("x", keys.MaxFileBytes-1))
	if _, err := Load(path, User); err != nil {
		t.Errorf("file of the largest size: %v", err)
	}
	write("#" + strings.Repeat("x", keys.MaxFileBytes))
	if _, err := Load(path, User); err == nil || !strings.Contains(err.Error(), "more than 1048576 bytes") {
		t.Errorf("file that is too large: %v", err)
	}
}

func FuzzLoad(f *testing.F) {
	f.Add([]byte(Annotated()))
	for _, s := range samples {
		f.Add([]byte(s.key + " = " + s.toml))
	}
	f.Add([]byte(twoProfiles))
	f.Add([]byte("prices.\"a.b\" = {input = 1, output = 2}\nprofiles.\"\" = {}\n[profiles.x.y]\nz = 1"))
	f.Add([]byte("[[mounts]]\na=1\n[[mounts]]\n[model]\nname='''\nx'''"))
	f.Add([]byte("tools = {fs = true, x = [{}, [[]]]}\n\"\" = 1\n[a.b.\"c.d\"]"))
	f.Fuzz(func(t *testing.T, data []byte) {
		file, err := Parse("agent.toml", Project, data)
		if err != nil {
			if file != nil {
				t.Error("a file and an error")
			}
			if joined, ok := err.(interface{ Unwrap() []error }); ok && len(joined.Unwrap()) > 10 {
				t.Errorf("%d errors", len(joined.Unwrap()))
			}
			return
		}
		for name, s := range file.settings {
			if s.line < 1 {
				t.Errorf("%s has no line", name)
			}
		}
		c, _, err := Merge(nil, file, func(string) string { return "" })
		if err != nil {
			t.Fatal(err)
		}
		if c.Model.BaseURL != "" || c.Model.Provider != "auto" || c.Mounts != nil || c.Profile != "" || c.Profiles != nil || c.Model.Fallback != nil || c.MaxToolTurns > 50 {
			t.Errorf("a project widened the configuration: %+v", c)
		}
	})
}
