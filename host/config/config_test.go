package config

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// sample is a key with a value that differs from the default and that a
// project may set, if it may set the key at all.
type sample struct {
	key  string
	toml string // the value in a file
	env  string // the same value in the environment
	want func(*Config)
}

var samples = []sample{
	{"max_tool_turns", "7", "7", func(c *Config) { c.MaxToolTurns = 7 }},
	{"max_tool_calls_per_turn", "3", "3", func(c *Config) { c.MaxToolCallsPerTurn = 3 }},
	{"repeated_calls", "3", "3", func(c *Config) { c.RepeatedCalls = 3 }},
	{"max_output_size", "4_096", "4096", func(c *Config) { c.MaxOutputSize = 4096 }},
	{"tool_timeout", `"1500ms"`, "1500ms", func(c *Config) { c.ToolTimeout = 1500 * time.Millisecond }},
	{"tool_memory", "0x100000", "1048576", func(c *Config) { c.ToolMemory = 1 << 20 }},
	{"tool_memory_total", "0x100000", "1048576", func(c *Config) { c.ToolMemoryTotal = 1 << 20 }},
	{"tool_fuel", "1_000_000", "1000000", func(c *Config) { c.ToolFuel = 1_000_000 }},
	{"tool_fuel_total", "2_000_000", "2000000", func(c *Config) { c.ToolFuelTotal = 2_000_000 }},
	{"session_fuel", "3_000_000", "3000000", func(c *Config) { c.SessionFuel = 3_000_000 }},
	{"tool_store", "8192", "8192", func(c *Config) { c.ToolStore = 8192 }},
	{"session_store", "16_384", "16384", func(c *Config) { c.SessionStore = 16384 }},
	{"tool_token_limit", "500", "500", func(c *Config) { c.ToolTokenLimit = 500 }},
	{"history_char_budget", "1000", "1000", func(c *Config) { c.HistoryCharBudget = 1000 }},
	{"compaction", `"off"`, "off", func(c *Config) { c.Compaction = "off" }},
	{"compaction_profile", `"small"`, "small", func(c *Config) { c.CompactionProfile = "small" }},
	{"turn_calls", "7", "7", func(c *Config) { c.TurnCalls = 7 }},
	{"turn_tokens", "7000", "7000", func(c *Config) { c.TurnTokens = 7000 }},
	{"session_tokens", "8000", "8000", func(c *Config) { c.SessionTokens = 8000 }},
	{"turn_time", `"10m"`, "10m", func(c *Config) { c.TurnTime = 10 * time.Minute }},
	{"max_cost", "0.5", "0.5", func(c *Config) { c.MaxCost = 0.5 }},
	{"require_confirmation", "true", "true", func(c *Config) { c.RequireConfirmation = true }},
	{"auto", "true", "true", func(c *Config) { c.Auto = true }},
	{"system_prompt", `"Be brief.\nBe kind."`, "Be brief.\nBe kind.", func(c *Config) { c.SystemPrompt = "Be brief.\nBe kind." }},
	{"agents_md", "false", "false", func(c *Config) { c.AgentsMD = false }},
	{"mounts", `["/data:ro", "~/notes", "~"]`, "/data:ro,~/notes,~", func(c *Config) {
		c.Mounts = []Mount{{Path: "/data", ReadOnly: true}, {Path: "~/notes"}, {Path: "~"}}
	}},
	{"profile", `"work"`, "work", func(c *Config) { c.Profile = "work" }},
	{"model.provider", `"offline"`, "offline", func(c *Config) { c.Model.Provider = "offline" }},
	{"model.name", `"gpt-9"`, "gpt-9", func(c *Config) { c.Model.Name = "gpt-9" }},
	{"model.base_url", `"https://host/v1?api-version=1#top"`, "https://host/v1?api-version=1#top", func(c *Config) { c.Model.BaseURL = "https://host/v1?api-version=1#top" }},
	{"model.api_key_env", `"MY_KEY"`, "MY_KEY", func(c *Config) { c.Model.APIKeyEnv = "MY_KEY" }},
	{"model.key", `"OPENAI"`, "OPENAI", func(c *Config) { c.Model.Key = "OPENAI" }},
	{"model.stall_timeout", `"5s"`, "5s", func(c *Config) { c.Model.StallTimeout = 5 * time.Second }},
	{"model.max_attempts", "1", "1", func(c *Config) { c.Model.MaxAttempts = 1 }},
	{"model.context_tokens", "128_000", "128000", func(c *Config) { c.Model.ContextTokens = 128_000 }},
	{"model.reasoning", `"low"`, "low", func(c *Config) { c.Model.Reasoning = "low" }},
	{"model.fallback", `["work", "local"]`, "work,local", func(c *Config) { c.Model.Fallback = []string{"work", "local"} }},
	{"model.input_price", "2", "2", func(c *Config) { c.Model.InputPrice = 2 }},
	{"model.output_price", "0.25", "0.25", func(c *Config) { c.Model.OutputPrice = 0.25 }},
	{"tools.fs", "false", "false", func(c *Config) { c.Tools.FS = false }},
	{"tools.exec", "false", "0", func(c *Config) { c.Tools.Exec = false }},
	{"tools.web", "false", "0", func(c *Config) { c.Tools.Web = false }},
	{"tools.store", "false", "0", func(c *Config) { c.Tools.Store = false }},
	{"tools.system_info", `["os", "cpus"]`, "os,cpus", func(c *Config) { c.Tools.SystemInfo = []string{"os", "cpus"} }},
	{"tools.off", `["git", "web_search"]`, "git,web_search", func(c *Config) { c.Tools.Off = []string{"git", "web_search"} }},
	{"bash.timeout", `"2s"`, "2s", func(c *Config) { c.Bash.Timeout = 2 * time.Second }},
	{"bash.max_output", "2048", "2048", func(c *Config) { c.Bash.MaxOutput = 2048 }},
	{"bash.caches", `["go", "pip"]`, "go,pip", func(c *Config) { c.Bash.Caches = []string{"go", "pip"} }},
	{"bash.min_tier", "0", "0", func(c *Config) { c.Bash.MinTier = 0 }},
	{"bash.changes", `"none"`, "none", func(c *Config) { c.Bash.Changes = "none" }},
	{"bash.ask", `"always"`, "always", func(c *Config) { c.Bash.Ask = "always" }},
	{"ui.plain", "true", "true", func(c *Config) { c.UI.Plain = true }},
	{"network.allow", `["a.example", "http://[::1]:80"]`, "a.example,http://[::1]:80", func(c *Config) { c.Network.Allow = []string{"a.example", "http://[::1]:80"} }},
	{"network.deny", `["*.b.example"]`, "*.b.example", func(c *Config) { c.Network.Deny = []string{"*.b.example"} }},
	{"network.proxy", `"http://proxy.example:3128"`, "http://proxy.example:3128", func(c *Config) { c.Network.Proxy = "http://proxy.example:3128" }},
	{"network.proxy_resolves", "true", "1", func(c *Config) { c.Network.ProxyResolves = true }},
	{"network.ca_files", `["/ca.pem", "~/ca.pem"]`, "/ca.pem,~/ca.pem", func(c *Config) { c.Network.CAFiles = []string{"/ca.pem", "~/ca.pem"} }},
	{"network.timeout", `"5s"`, "5s", func(c *Config) { c.Network.Timeout = 5 * time.Second }},
	{"network.max_requests", "7", "7", func(c *Config) { c.Network.MaxRequests = 7 }},
	{"network.max_response", "2048", "2048", func(c *Config) { c.Network.MaxResponse = 2048 }},
	{"web.search", `"brave"`, "brave", func(c *Config) { c.Web.Search = "brave" }},
	{"web.duckduckgo_url", `"https://a.example/q"`, "https://a.example/q", func(c *Config) { c.Web.DuckDuckGoURL = "https://a.example/q" }},
	{"web.brave_url", `"http://127.0.0.1:8080"`, "http://127.0.0.1:8080", func(c *Config) { c.Web.BraveURL = "http://127.0.0.1:8080" }},
	{"web.google_url", `"https://b.example/q"`, "https://b.example/q", func(c *Config) { c.Web.GoogleURL = "https://b.example/q" }},
	{"web.google_cx", `"0123:abc"`, "0123:abc", func(c *Config) { c.Web.GoogleCX = "0123:abc" }},
}

var ignoreSources = cmpopts.IgnoreUnexported(Config{})

func mustLoad(t *testing.T, layer Layer, src string) *File {
	t.Helper()
	f, err := Parse("/"+string(layer)+"/agent.toml", layer, []byte(src))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func mustMerge(t *testing.T, user, project *File, env map[string]string) (Config, []Warning) {
	t.Helper()
	c, warnings, err := Merge(user, project, func(name string) string { return env[name] })
	if err != nil {
		t.Fatal(err)
	}
	return c, warnings
}

func TestEveryKeyReachesItsField(t *testing.T) {
	var named []string
	for _, s := range samples {
		named = append(named, s.key)
	}
	if diff := cmp.Diff(Keys(), named); diff != "" {
		t.Fatalf("samples are not the keys (-keys +samples):\n%s", diff)
	}
	if fields := countFields(reflect.TypeFor[Config]()); fields != len(table)+len([]string{"Profiles", "Prices"}) {
		t.Errorf("Config has %d fields for %d keys", fields, len(table))
	}
	for _, s := range samples {
		k := find(s.key)
		want := Default()
		s.want(&want)
		if cmp.Equal(want, Default(), ignoreSources) {
			t.Errorf("%s: the sample is the default", s.key)
		}
		check := func(t *testing.T, got Config, warnings []Warning, source string) {
			t.Helper()
			if diff := cmp.Diff(want, got, ignoreSources); diff != "" {
				t.Errorf("configuration (-want +got):\n%s", diff)
			}
			for _, name := range Keys() {
				expect := "default"
				if name == s.key {
					expect = source
				}
				if got := got.Source(name); got != expect {
					t.Errorf("%s comes from %q, want %q", name, got, expect)
				}
			}
			if len(warnings) > 0 {
				t.Errorf("warnings: %v", warnings)
			}
		}
		src := "# a comment\n" + s.key + " = " + s.toml + "\n"
		if table, word, ok := strings.Cut(s.key, "."); ok {
			src = "[" + table + "]\n" + word + " = " + s.toml + "\n"
		}
		t.Run(s.key+" from the user's file", func(t *testing.T) {
			c, warnings := mustMerge(t, mustLoad(t, User, src), nil, nil)
			check(t, c, warnings, "user /user/agent.toml:2")
		})
		t.Run(s.key+" as a dotted key", func(t *testing.T) {
			c, warnings := mustMerge(t, mustLoad(t, User, "\n\n"+s.key+" = "+s.toml), nil, nil)
			check(t, c, warnings, "user /user/agent.toml:3")
		})
		t.Run(s.key+" from the environment", func(t *testing.T) {
			c, warnings := mustMerge(t, nil, nil, map[string]string{k.env(): s.env})
			if !k.class.fileOnly() {
				check(t, c, warnings, "environment "+k.env())
				return
			}
			if diff := cmp.Diff(Default(), c, ignoreSources); diff != "" {
				t.Errorf("the environment set it (-want +got):\n%s", diff)
			}
			if len(warnings) != 1 || !strings.Contains(warnings[0].String(), "environment: "+k.env()+" is ignored") ||
				!strings.Contains(warnings[0].String(), "set "+s.key+" in your own agent.toml") {
				t.Errorf("warnings: %v", warnings)
			}
		})
		t.Run(s.key+" from the project's file", func(t *testing.T) {
			c, warnings := mustMerge(t, nil, mustLoad(t, Project, src), nil)
			if projectSets(k.class) {
				check(t, c, warnings, "project /project/agent.toml:2")
				return
			}
			if diff := cmp.Diff(Default(), c, ignoreSources); diff != "" {
				t.Errorf("a project set authority (-want +got):\n%s", diff)
			}
			if len(warnings) != 1 {
				t.Fatalf("warnings: %v", warnings)
			}
			text := warnings[0].String()
			parts := []string{"/project/agent.toml:2: " + s.key + " is ignored"}
			switch {
			case k.class.needsTrust():
				parts = append(parts, "you have not trusted this file as it is now", "`stockade config trust`")
			case k.class.fileOnly():
				parts = append(parts, "your own agent.toml", "only a person")
			default:
				parts = append(parts, "your own agent.toml", k.env())
			}
			for _, part := range parts {
				if !strings.Contains(text, part) {
					t.Errorf("warning %q does not hold %q", text, part)
				}
			}
		})
	}
}

// projectSets reports whether an untrusted project file may set a key to
// something stricter or different.
func projectSets(c class) bool {
	return c == preference || c == limit || c == switchOff || c == switchOn || c == addOnly
}

func countFields(typ reflect.Type) int {
	n := 0
	for f := range typ.Fields() {
		switch {
		case !f.IsExported():
		case f.Type.Kind() == reflect.Struct:
			n += countFields(f.Type)
		default:
			n++
		}
	}
	return n
}

func TestClassesAreAsDocumented(t *testing.T) {
	want := map[class][]string{
		authority:  {"system_prompt", "profile", "model.provider", "model.base_url", "model.fallback"},
		reach:      {"mounts", "network.allow", "web.search", "web.duckduckgo_url", "web.brave_url", "web.google_url", "web.google_cx"},
		private:    {"model.api_key_env", "model.key"},
		preference: {"model.name", "model.context_tokens", "model.reasoning", "model.input_price", "model.output_price", "ui.plain"},
		switchOff:  {"agents_md", "tools.fs", "tools.exec", "tools.web", "tools.store"},
		addOnly:    {"tools.off"},
		userOnly:   {"compaction", "compaction_profile", "max_cost", "auto", "tools.system_info", "bash.caches", "bash.min_tier", "bash.changes", "bash.ask", "network.deny", "network.proxy", "network.proxy_resolves", "network.ca_files"},
		switchOn:   {"require_confirmation"},
		limit: {"max_tool_turns", "max_tool_calls_per_turn", "repeated_calls", "max_output_size", "tool_timeout", "tool_memory",
			"tool_memory_total", "tool_fuel", "tool_fuel_total", "session_fuel", "tool_store", "session_store",
			"tool_token_limit", "history_char_budget", "turn_calls", "turn_tokens", "session_tokens", "turn_time", "model.stall_timeout", "model.max_attempts", "bash.timeout", "bash.max_output",
			"network.timeout", "network.max_requests", "network.max_response"},
	}
	got := make(map[class][]string)
	for _, k := range table {
		got[k.class] = append(got[k.class], k.Name)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("classes (-want +got):\n%s", diff)
	}
}

func TestDefaultsAreAsDocumented(t *testing.T) {
	want := Config{
		Model:        Model{Profile: Profile{Provider: "auto", StallTimeout: 5 * time.Minute, MaxAttempts: 4}},
		MaxToolTurns: 50, MaxToolCallsPerTurn: 15, RepeatedCalls: 4, MaxOutputSize: 1048576, ToolTimeout: 30 * time.Second,
		ToolMemory: 268435456, ToolMemoryTotal: 2147483648,
		ToolFuel: 50_000_000_000, ToolFuelTotal: 2_000_000_000_000, SessionFuel: 10_000_000_000_000, ToolStore: 262144, SessionStore: 1048576, ToolTokenLimit: 20_000, HistoryCharBudget: 100_000_000,
		Compaction: "auto", TurnCalls: 1_000_000, TurnTokens: 1 << 50, SessionTokens: 1 << 50, TurnTime: 1000 * time.Hour,
		AgentsMD: true,
		Tools:    Tools{FS: true, Exec: true, Web: true, Store: true, SystemInfo: []string{"os", "distribution", "arch", "cpus", "memory", "timezone", "tier", "version"}},
		Bash:     Bash{Timeout: 30 * time.Second, MaxOutput: 262144, MinTier: 1, Caches: []string{"go", "npm", "cargo", "pip"}, Changes: "staged", Ask: "changes"},
		Network:  Network{Timeout: 30 * time.Second, MaxRequests: 100, MaxResponse: 8 << 20},
		Web: Web{
			Search: "duckduckgo", DuckDuckGoURL: "https://html.duckduckgo.com/html/", BraveURL: "https://api.search.brave.com/res/v1/web/search",
			GoogleURL: "https://customsearch.googleapis.com/customsearch/v1",
		},
	}
	got, warnings := mustMerge(t, nil, nil, nil)
	if diff := cmp.Diff(want, got, ignoreSources); diff != "" || len(warnings) > 0 {
		t.Errorf("defaults (-want +got):\n%s\nwarnings: %v", diff, warnings)
	}
	if diff := cmp.Diff(want, Default(), ignoreSources); diff != "" {
		t.Errorf("Default (-want +got):\n%s", diff)
	}
}

func TestLaterLayersWin(t *testing.T) {
	user := mustLoad(t, User, "model.name = 'user'\ntool_timeout = '20s'\nmounts = ['/a', '/b']")
	project := mustLoad(t, Project, "model.name = 'project'\ntool_timeout = '10s'")
	env := map[string]string{"STOCKADE_MODEL_NAME": "environment", "STOCKADE_TOOL_TIMEOUT": "40s"}

	tests := []struct {
		name          string
		user, project *File
		env           map[string]string
		model         string
		timeout       time.Duration
		mounts        []Mount
	}{
		{"no layer", nil, nil, nil, "", 30 * time.Second, nil},
		{"user", user, nil, nil, "user", 20 * time.Second, []Mount{{Path: "/a"}, {Path: "/b"}}},
		{"user and project", user, project, nil, "project", 10 * time.Second, []Mount{{Path: "/a"}, {Path: "/b"}}},
		{"all", user, project, env, "environment", 40 * time.Second, []Mount{{Path: "/a"}, {Path: "/b"}}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			c, warnings := mustMerge(t, test.user, test.project, test.env)
			if c.Model.Name != test.model || c.ToolTimeout != test.timeout || !slices.Equal(c.Mounts, test.mounts) {
				t.Errorf("got %q, %s, %v", c.Model.Name, c.ToolTimeout, c.Mounts)
			}
			if len(warnings) > 0 {
				t.Errorf("warnings: %v", warnings)
			}
		})
	}
}

func TestAProjectCanOnlyNarrow(t *testing.T) {
	tests := []struct {
		name, user, project string
		key                 string
		want                any    // the value after both
		warning             string // "" for none
	}{
		{"raise a number", "", "max_tool_turns = 51", "max_tool_turns", 50,
			"/project/agent.toml:1: max_tool_turns is ignored: a project can only lower it, and it is 50 (default); set it in /user/agent.toml or with STOCKADE_MAX_TOOL_TURNS"},
		{"keep a number", "", "max_tool_turns = 50", "max_tool_turns", 50, ""},
		{"lower below the user", "max_tool_turns = 80", "max_tool_turns = 70", "max_tool_turns", 70, ""},
		{"raise above the user", "max_tool_turns = 10", "max_tool_turns = 20", "max_tool_turns", 10,
			"/project/agent.toml:1: max_tool_turns is ignored: a project can only lower it, and it is 10 (user /user/agent.toml:1); set it in /user/agent.toml or with STOCKADE_MAX_TOOL_TURNS"},
		{"raise a duration", "", "tool_timeout = '31s'", "tool_timeout", 30 * time.Second, `it is "30s" (default)`},
		{"raise a size", "", "bash.max_output = 262145", "bash.max_output", 262144, "only lower"},
		{"switch tools on again", "tools.exec = false", "tools.exec = true", "tools.exec", false, "only switch it off, and it is off (user /user/agent.toml:1)"},
		{"leave tools on", "", "tools.exec = true", "tools.exec", true, ""},
		{"leave tools off", "tools.exec = false", "tools.exec = false", "tools.exec", false, ""},
		{"switch questions off", "require_confirmation = true", "require_confirmation = false", "require_confirmation", true, "only switch it on, and it is on"},
		{"leave questions off", "", "require_confirmation = false", "require_confirmation", false, ""},
		{"switch another tool off", "tools.off = ['git']", "tools.off = ['web_search', 'git']", "tools.off", []string{"git", "web_search"}, ""},
		{"switch a tool on again", "tools.off = ['git']", "tools.off = []", "tools.off", []string{"git"}, ""},
		{"point to another server", "", "model.base_url = 'https://evil.example'", "model.base_url", "", "model.base_url is ignored: you have not trusted this file"},
		{"take another key", "model.api_key_env = 'A'", "model.api_key_env = 'GITHUB_TOKEN'", "model.api_key_env", "A", "which key is used; set model.api_key_env in /user/agent.toml"},
		{"mount the home directory", "", "mounts = ['~']", "mounts", []string(nil), "mounts is ignored"},
		{"repeat authority", "", "model.provider = 'auto'", "model.provider", "auto", "model.provider is ignored"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			c, warnings := mustMerge(t, mustLoad(t, User, test.user), mustLoad(t, Project, test.project), nil)
			if got := find(test.key).get(&c); !cmp.Equal(got, test.want) {
				t.Errorf("%s is %v, want %v", test.key, got, test.want)
			}
			var text string
			for _, w := range warnings {
				text += w.String()
			}
			if (text == "") != (test.warning == "") || !strings.Contains(text, test.warning) {
				t.Errorf("warned %q, want %q", text, test.warning)
			}
		})
	}
}

func TestTheEnvironmentIsChecked(t *testing.T) {
	bad := map[string]string{
		"STOCKADE_TOOL_TIMEOUT":        "soon",
		"STOCKADE_MAX_TOOL_TURNS":      "99999999999999999999",
		"STOCKADE_TOOLS_FS":            "yes",
		"STOCKADE_BASH_TIMEOUT":        "301s",
		"STOCKADE_MODEL_PROVIDER":      "opnai",
		"STOCKADE_MODEL_BASE_URL":      "https://me:sk-secret@host/",
		"STOCKADE_MODEL_NAME":          "two\nlines",
		"STOCKADE_TOOL_MEMORY":         "256MiB",
		"STOCKADE_HISTORY_CHAR_BUDGET": "", // unset
	}
	_, _, err := Merge(nil, nil, func(name string) string { return bad[name] })
	if err == nil {
		t.Fatal("no error")
	}
	for name, value := range bad {
		if reported := strings.Contains(err.Error(), "environment variable "+name+": "); reported != (value != "") {
			t.Errorf("%s: reported %v in\n%v", name, reported, err)
		}
	}
	if strings.Contains(err.Error(), "sk-secret") {
		t.Errorf("a key is repeated in\n%v", err)
	}
	for _, part := range []string{`"soon" is not a duration from 1s to 1h`, "out of range; write a whole number from 1 to 10000", "301s is out of range; write a duration from 1s to 300s",
		`"opnai" is not one of "auto", "openai", `} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q is missing in\n%v", part, err)
		}
	}
}

func TestTheKeyOfTheProviderIsNoSetting(t *testing.T) {
	Merge(nil, nil, func(name string) string {
		if !strings.HasPrefix(name, "STOCKADE_") {
			t.Errorf("%s was read", name)
		}
		return ""
	})
	for _, src := range []string{"OPENAI_API_KEY = 'x'", "openai_api_key = 'x'", "model.api_key = 'x'", "[model]\ntoken = 'x'"} {
		if _, err := Parse("agent.toml", User, []byte(src)); err == nil || !strings.Contains(err.Error(), "secrets are never in a file") {
			t.Errorf("%s: %v", src, err)
		}
	}
}

func TestSetLeavesCopiesAlone(t *testing.T) {
	a := Default()
	if err := a.Set("model.name", "a", "flag --model"); err != nil {
		t.Fatal(err)
	}
	b := a
	if err := b.Set("bash.timeout", "1s", "flag --bash-timeout"); err != nil {
		t.Fatal(err)
	}
	if got := a.Source("bash.timeout"); got != "default" || a.Bash.Timeout != 30*time.Second {
		t.Errorf("the original has %q, %s", got, a.Bash.Timeout)
	}
	if got := b.Source("model.name"); got != "flag --model" {
		t.Errorf("the copy lost its source: %q", got)
	}
	if err := a.Set("modle.name", "x", "flag"); err == nil || a.Source("modle.name") != "" {
		t.Errorf("an unknown key was set (%v)", err)
	}
	if err := a.Set("bash.timeout", "1h", "flag"); err == nil || a.Source("bash.timeout") != "default" {
		t.Errorf("a bad value was set (%v)", err)
	}
}
