//go:build unix

package config

import (
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stockade-dev/stockade/host/config/keys"
)

// What a project file may set is decided here once for every key: "own" without
// a question, "trust" once a person has trusted the file, "never" at all. A new
// key fails until somebody has decided, and can say why its value is no command
// that anything here would run.
var decided = map[string]struct{ may, value string }{
	"max_tool_turns":          {"own", "a number"},
	"max_tool_calls_per_turn": {"own", "a number"},
	"repeated_calls":          {"own", "a number"},
	"max_output_size":         {"own", "a number"},
	"tool_timeout":            {"own", "a time"},
	"tool_memory":             {"own", "a number"},
	"tool_memory_total":       {"own", "a number"},
	"tool_fuel":               {"own", "a number"},
	"tool_fuel_total":         {"own", "a number"},
	"session_fuel":            {"own", "a number"},
	"history_char_budget":     {"own", "a number"},
	"require_confirmation":    {"own", "a switch"},
	"system_prompt":           {"trust", "text for the model"},
	"mounts":                  {"trust", "directories that are shown"},
	"model.provider":          {"trust", "one of three words"},
	"model.name":              {"own", "a word for the provider"},
	"model.base_url":          {"trust", "an address"},
	"model.api_key_env":       {"never", "which secret is used"},
	"model.stall_timeout":     {"own", "a time"},
	"model.max_attempts":      {"own", "a number"},
	"tools.fs":                {"own", "a switch"},
	"tools.exec":              {"own", "a switch"},
	"tools.web":               {"own", "a switch"},
	"bash.timeout":            {"own", "a time"},
	"bash.max_output":         {"own", "a number"},
	"network.allow":           {"trust", "hosts"},
	"network.deny":            {"never", "what the user refuses"},
	"network.proxy":           {"never", "who sees all traffic"},
	"network.proxy_resolves":  {"never", "who checks addresses"},
	"network.ca_files":        {"never", "who is believed"},
	"network.timeout":         {"own", "a time"},
	"network.max_requests":    {"own", "a number"},
	"network.max_response":    {"own", "a number"},
}

// CVE-2025-61260 (Codex) and CVE-2026-21852 (Claude Code): a file of the
// repository named programs that were started. No key of ours names one.
func TestNoProjectKeyStartsAProcess(t *testing.T) {
	for i := range table {
		k := &table[i]
		d, ok := decided[k.Name]
		if !ok {
			t.Errorf("%s: nobody has decided whether a project may set it, and with which trust", k.Name)
			continue
		}
		may := "never"
		switch {
		case projectSets(k.class):
			may = "own"
		case k.class.byTrust():
			may = "trust"
		}
		if may != d.may {
			t.Errorf("%s: a project may %q, decided was %q", k.Name, may, d.may)
		}
		if may == "never" {
			continue
		}
		// The kinds in which no command fits, and the texts that were looked at.
		switch kind, _, _ := strings.Cut(k.Kind.String(), ","); kind {
		case "integer", "duration", "boolean", `one of "auto"`, "URL", mounts.String():
		case "string", rules("").String():
			if k.Name != "model.name" && k.Name != "system_prompt" && k.Name != "network.allow" {
				t.Errorf("%s: %s could name a command", k.Name, k.Kind)
			}
		default:
			t.Errorf("%s: nobody has looked at the kind %s", k.Name, k.Kind)
		}
		for _, word := range []string{"command", "cmd", "exec", "program", "binary", "script", "hook", "plugin", "module", "server", "shell", "run", "start", "env", "helper", "pager", "editor"} {
			last := k.Name[strings.LastIndexByte(k.Name, '.')+1:]
			for part := range strings.SplitSeq(last, "_") {
				if part == word && k.Name != "tools.exec" { // a switch
					t.Errorf("%s: a project may set what is called %q", k.Name, word)
				}
			}
		}
	}
	if len(decided) != len(table) {
		t.Errorf("%d keys are decided, there are %d", len(decided), len(table))
	}
}

// values of a key as a file can have them, strict and generous ones.
func values(k *key) []string {
	switch kind := k.Kind.(type) {
	case keys.Integer:
		return []string{strconv.FormatInt(kind.Min, 10), strconv.FormatInt(kind.Max, 10), k.Example}
	case keys.Duration:
		return []string{strconv.Quote(keys.Short(kind.Min)), strconv.Quote(keys.Short(kind.Max)), k.Example}
	case keys.Boolean:
		return []string{"true", "false"}
	}
	for _, s := range samples {
		if s.key == k.Name {
			c := Default()
			return []string{s.toml, keys.Format(k.get(&c))}
		}
	}
	return nil
}

// With trust a project sets what waits for it, and beside that exactly what it
// would set without: no limit is raised, no switch is turned back, and what is
// the user's alone stays as the user has it.
func TestTrustOpensOnlyWhatWaitsForIt(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	random := func() string {
		var b strings.Builder
		for i := range table {
			k := &table[i]
			if v := values(k); r.IntN(3) > 0 {
				fmt.Fprintf(&b, "%s = %s\n", k.Name, v[r.IntN(len(v))])
			}
		}
		return b.String()
	}
	opened := map[string]int{}
	for range 500 {
		user, project := mustLoad(t, User, random()), mustLoad(t, Project, random())
		alone, _ := mustMerge(t, user, nil, nil)
		without, waiting := mustMerge(t, user, project, nil)
		project.Trusted = true
		with, refused := mustMerge(t, user, project, nil)
		for i := range table {
			k := &table[i]
			before, after := k.get(&without), k.get(&with)
			set, sets := project.settings[k.Name]
			switch {
			case !k.class.byTrust():
				if !cmp.Equal(before, after) {
					t.Fatalf("trust changed %s from %v to %v", k.Name, before, after)
				}
			case sets:
				opened[k.Name]++
				if !cmp.Equal(after, set.value) || !strings.HasSuffix(with.Source(k.Name), ", trusted") {
					t.Fatalf("%s is %v from %s, want %v", k.Name, after, with.Source(k.Name), set.value)
				}
				if !cmp.Equal(before, k.get(&alone)) {
					t.Fatalf("without trust %s was set to %v", k.Name, before)
				}
			}
			switch mine := k.get(&alone); k.class {
			case Limit:
				if number(after) > number(mine) {
					t.Fatalf("%s was raised from %v to %v", k.Name, mine, after)
				}
			case SwitchOff:
				if after == true && mine == false {
					t.Fatalf("%s was turned on again", k.Name)
				}
			case SwitchOn:
				if after == false && mine == true {
					t.Fatalf("%s was turned off", k.Name)
				}
			case Private, UserOnly:
				if !cmp.Equal(after, mine) {
					t.Fatalf("%s was set to %v", k.Name, after)
				}
			}
		}
		for _, w := range refused {
			if w.Untrusted {
				t.Fatalf("a trusted file still waits: %s", w)
			}
		}
		n := 0
		for _, w := range waiting {
			if w.Untrusted {
				n++
			}
		}
		if asks := project.Asks(); n != len(asks) {
			t.Fatalf("%d settings wait, %d are asked for", n, len(asks))
		}
	}
	for i := range table {
		if table[i].class.byTrust() && opened[table[i].Name] == 0 {
			t.Errorf("%s was never set", table[i].Name)
		}
	}
}

// "Approve once, exploit forever": trust in a folder outlived what was in it.
func TestTrustIsInOneContent(t *testing.T) {
	const src = "model.base_url = 'https://a.example'\n"
	f := mustLoad(t, Project, src)
	trust := TrustIn(f, f.Path, added)
	if !trust.Covers(mustLoad(t, Project, src)) {
		t.Error("it does not cover what was trusted")
	}
	for name, other := range map[string]string{
		"another value":      "model.base_url = 'https://b.example'\n",
		"one more setting":   src + "mounts = ['/']\n",
		"one less":           "",
		"a harmless setting": src + "max_tool_turns = 1\n",
		"a comment":          src + "#",
		"a line end":         src + "\n",
		"a byte order mark":  "\ufeff" + src,
	} {
		if trust.Covers(mustLoad(t, Project, other)) {
			t.Errorf("%s: it is covered, too", name)
		}
	}
	// A later version of the program may find more in the same bytes.
	more := trust
	more.Asks = nil
	if more.Covers(f) {
		t.Error("what was never shown is covered")
	}
	if (Trust{}).Covers(&File{}) || (Trust{}).Covers(f) {
		t.Error("no trust covers something")
	}
}

// The digest is of the bytes that were parsed: the file is read once, so one that
// is exchanged meanwhile is either the old one or the new one in both.
func TestWhatIsHashedIsWhatIsParsed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "agent.toml")
	contents := []string{"model.name = 'a'\n", "model.name = 'b'\n"}
	names := map[string]string{}
	for _, src := range contents {
		f := mustLoad(t, Project, src)
		names[f.SHA256] = f.settings["model.name"].value.(string)
	}
	put := func(i int) {
		tmp := fmt.Sprintf("%s.%d", path, i%2)
		if err := os.WriteFile(tmp, []byte(contents[i%2]), 0o600); err != nil {
			t.Error(err)
		}
		if err := os.Rename(tmp, path); err != nil {
			t.Error(err)
		}
	}
	put(0)
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := range 500 {
			put(i)
		}
	})
	for range 500 {
		f, err := Load(path, Project)
		if err != nil {
			t.Fatal(err)
		}
		if got := f.settings["model.name"].value; got != names[f.SHA256] {
			t.Fatalf("%v was parsed under the digest of %q", got, names[f.SHA256])
		}
	}
	wg.Wait()
}

func TestChangesAreSaidInWords(t *testing.T) {
	trust := TrustIn(mustLoad(t, Project, "model.base_url = 'https://a.example'\nmounts = ['/data']\n"), "/p/agent.toml", added)
	now := mustLoad(t, Project, "model.base_url = 'https://b.example'\nsystem_prompt = \"\"\"\nBe brief.\nOr not.\"\"\"\n")
	want := []string{
		"system_prompt was not asked for", "system_prompt is: Be brief.\nOr not.",
		`mounts was: ["/data"]`, "mounts is no longer asked for",
		`model.base_url was: "https://a.example"`, `model.base_url is: "https://b.example"`,
	}
	if diff := cmp.Diff(want, trust.Changes(now.Asks())); diff != "" {
		t.Error(diff)
	}
	if got := trust.Changes(trust.Asks); got != nil {
		t.Errorf("the same changed: %q", got)
	}
}

func TestTrustComesBackAsItWasGiven(t *testing.T) {
	path := filepath.Join(t.TempDir(), "new", "trust.toml")
	var want []Trust
	for i, prompt := range []string{"", "one line", "two\nlines", "\t\x1b[2K\u202e\r", `"""'''\`, "é😀", "[[trust]]\npath = '/evil'"} {
		f := mustLoad(t, Project, "system_prompt = "+keys.Quote(prompt)+"\nmounts = ['/data:ro']\n")
		trust := TrustIn(f, fmt.Sprintf("/ws%d/a \"b'\\c/agent.toml", i), added)
		if err := AddTrust(path, trust); err != nil {
			t.Fatalf("%q: %v", prompt, err)
		}
		want = append(want, trust)
		got, err := loadTrust(path)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("after %q: %s", prompt, diff)
		}
		if !got[i].Covers(f) {
			t.Errorf("%q is not covered any more", prompt)
		}
	}
	for name, mode := range map[string]fs.FileMode{path: 0o600, filepath.Dir(path): fs.ModeDir | 0o700} {
		if st, err := os.Stat(name); err != nil || st.Mode() != mode {
			t.Errorf("%s: mode %v, %v; want %v", name, st.Mode(), err, mode)
		}
	}

	// At one place one content is trusted.
	again := want[0]
	again.SHA256 = strings.Repeat("0", 64)
	if err := AddTrust(path, again); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(append(want[1:], again), must(loadTrust(path))); diff != "" {
		t.Error(diff)
	}
	if found, err := RemoveTrust(path, again.Path); !found || err != nil {
		t.Errorf("remove: %v, %v", found, err)
	}
	if found, err := RemoveTrust(path, again.Path); found || err != nil {
		t.Errorf("remove once more: %v, %v", found, err)
	}
	if diff := cmp.Diff(want[1:], must(loadTrust(path))); diff != "" {
		t.Error(diff)
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func TestTrustThatIsNotUnderstoodIsRefusedAndKept(t *testing.T) {
	sum := strings.Repeat("0a", 32)
	entry := "[[trust]]\npath = \"/a/agent.toml\"\nsha256 = \"" + sum + "\"\nadded = 2026-01-02T03:04:05Z\n"
	for name, text := range map[string]string{
		"garbage":           "\x00\xff",
		"an unknown key":    entry + "always = true\n",
		"a relative path":   strings.Replace(entry, "/a/", "a/", 1),
		"no path":           strings.Replace(entry, "/a/agent.toml", "", 1),
		"no digest":         strings.Replace(entry, sum, "", 1),
		"half a digest":     strings.Replace(entry, sum, sum[:32], 1),
		"something else":    strings.Replace(entry, sum, strings.Repeat("*", 64), 1),
		"an ask without it": entry + "[[trust.asks]]\nname = \"x\"\n",
		"too much":          entry + strings.Repeat("#", keys.MaxFileBytes),
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "trust.toml")
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			if got, err := loadTrust(path); err == nil || got != nil || !strings.Contains(err.Error(), path) {
				t.Errorf("got %v, %v", got, err)
			}
			if err := AddTrust(path, Trust{Path: "/b/agent.toml", SHA256: sum, Added: added}); err == nil {
				t.Error("trust was added")
			}
			if _, err := RemoveTrust(path, "/a/agent.toml"); err == nil {
				t.Error("trust was removed")
			}
			if after, _ := os.ReadFile(path); string(after) != text {
				t.Error("the file was changed")
			}
		})
	}
}

func TestTrustAddedAtOnceIsAllKept(t *testing.T) {
	path := filepath.Join(t.TempDir(), "trust.toml")
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			trust := Trust{Path: fmt.Sprintf("/%d/agent.toml", i), SHA256: strings.Repeat("0", 64), Added: time.Unix(0, 0).UTC()}
			if err := AddTrust(path, trust); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if got, err := loadTrust(path); err != nil || len(got) != 8 {
		t.Errorf("%d are trusted, %v", len(got), err)
	}
}

func number(v any) int64 {
	if d, ok := v.(time.Duration); ok {
		return int64(d)
	}
	return int64(v.(int))
}
