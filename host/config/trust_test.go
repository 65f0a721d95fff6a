//go:build unix

package config

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stockade-dev/stockade/host/config/keys"
)

// This table decides once for every key whether a project file may set it: "own" without
// a question, "trust" once a person has trusted the file, or "never". A new key fails
// until somebody has decided, and can explain why its value is no command that anything
// here would run.
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
	"tool_store":              {"own", "a number"},
	"session_store":           {"own", "a number"},
	"history_char_budget":     {"own", "a number"},
	"tool_token_limit":        {"own", "a number"},
	"compaction":              {"never", "whether a model is asked once more"},
	"compaction_profile":      {"never", "who gets the conversation"},
	"turn_calls":              {"own", "a number"},
	"turn_tokens":             {"own", "a number"},
	"session_tokens":          {"own", "a number"},
	"turn_time":               {"own", "a time"},
	"max_cost":                {"never", "what may be spent"},
	"require_confirmation":    {"own", "a switch"},
	"auto":                    {"never", "a switch"},
	"system_prompt":           {"trust", "text for the model"},
	"agents_md":               {"own", "a switch"},
	"mounts":                  {"trust", "directories that are shown"},
	"model.provider":          {"trust", "one of three words"},
	"model.name":              {"own", "a word for the provider"},
	"profile":                 {"trust", "a name of a profile"},
	"model.base_url":          {"trust", "an address"},
	"model.key":               {"never", "which secret is sent"},
	"model.reasoning":         {"own", "one of four words"},
	"model.fallback":          {"trust", "names of profiles"},
	"model.api_key_env":       {"never", "which secret is used"},
	"model.stall_timeout":     {"own", "a time"},
	"model.max_attempts":      {"own", "a number"},
	"model.context_tokens":    {"own", "a number, to be shown"},
	"model.input_price":       {"own", "a number, to be shown"},
	"model.output_price":      {"own", "a number, to be shown"},
	"tools.fs":                {"own", "a switch"},
	"tools.exec":              {"own", "a switch"},
	"tools.web":               {"own", "a switch"},
	"tools.off":               {"own", "what is not called"},
	"tools.store":             {"own", "a switch"},
	"tools.system_info":       {"never", "what is told of the machine"},
	"bash.timeout":            {"own", "a time"},
	"bash.max_output":         {"own", "a number"},
	"bash.caches":             {"never", "what of the home commands see"},
	"bash.min_tier":           {"never", "how commands are confined"},
	"bash.changes":            {"never", "whether changes of commands are shown"},
	"bash.ask":                {"never", "whether commands run before a question"},
	"ui.plain":                {"own", "a switch"},
	"network.allow":           {"trust", "hosts"},
	"network.deny":            {"never", "what the user refuses"},
	"network.proxy":           {"never", "who sees all traffic"},
	"network.proxy_resolves":  {"never", "who checks addresses"},
	"network.ca_files":        {"never", "who is believed"},
	"network.timeout":         {"own", "a time"},
	"network.max_requests":    {"own", "a number"},
	"network.max_response":    {"own", "a number"},
	"web.search":              {"trust", "one of three words"},
	"web.duckduckgo_url":      {"trust", "an address"},
	"web.brave_url":           {"trust", "an address"},
	"web.google_url":          {"trust", "an address"},
	"web.google_cx":           {"trust", "a word for Google"},
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
		case k.class.needsTrust():
			may = "trust"
		}
		if may != d.may {
			t.Errorf("%s: a project may %q, decided was %q", k.Name, may, d.may)
		}
		if may == "never" {
			continue
		}
		// The kinds in which no command fits, and the texts that were looked at.
		switch kind, _, _ := strings.Cut(k.Kind.Summary, ","); kind {
		case "integer", "number", "duration", "boolean", `one of "auto"`, `one of ""`, profileName.Summary, profileNames.Summary, `one of "duckduckgo"`, "URL", mounts.Summary, toolNames.Summary:
		case "string", rules("").Summary:
			if k.Name != "model.name" && k.Name != "system_prompt" && k.Name != "network.allow" && k.Name != "web.google_cx" {
				t.Errorf("%s: %s could name a command", k.Name, k.Kind.Summary)
			}
		default:
			t.Errorf("%s: nobody has looked at the kind %s", k.Name, k.Kind.Summary)
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
	kind, bounds, _ := strings.Cut(k.Kind.Summary, ", ")
	least, most, _ := strings.Cut(bounds, " to ")
	most, _, _ = strings.Cut(most, " ")
	switch kind {
	case "integer", "number":
		return []string{least, most, k.Example}
	case "duration":
		return []string{strconv.Quote(least), strconv.Quote(most), k.Example}
	case "boolean":
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

// With trust a project sets the keys that need trust, and beside them exactly the keys
// that it could set without: no limit is raised, no switch is turned back, and keys that
// only the user may set keep the user's values.
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
			case !k.class.needsTrust():
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
			case limit:
				if number(after) > number(mine) {
					t.Fatalf("%s was raised from %v to %v", k.Name, mine, after)
				}
			case switchOff:
				if after == true && mine == false {
					t.Fatalf("%s was turned on again", k.Name)
				}
			case switchOn:
				if after == false && mine == true {
					t.Fatalf("%s was turned off", k.Name)
				}
			case addOnly:
				for _, name := range mine.([]string) {
					if !slices.Contains(after.([]string), name) {
						t.Fatalf("%s lost %q", k.Name, name)
					}
				}
			case private, userOnly:
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
		if asks := project.TrustRequests(); n != len(asks) {
			t.Fatalf("%d settings wait, %d are asked for", n, len(asks))
		}
	}
	for i := range table {
		if table[i].class.needsTrust() && opened[table[i].Name] == 0 {
			t.Errorf("%s was never set", table[i].Name)
		}
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

func number(v any) int64 {
	if d, ok := v.(time.Duration); ok {
		return int64(d)
	}
	return int64(v.(int))
}
