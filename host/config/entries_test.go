package config

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const twoProfiles = `profile = "work"
[model]
stall_timeout = "30s"
[profiles.work]
provider = "openai"
model = "gpt-5"
api_key_env = "WORK_KEY"
fallback = ["model", "on.this-machine"]
[profiles."on.this-machine"]
provider = "openai"
base_url = "http://127.0.0.1:8080/v1"
key = "LOCAL"
max_attempts = 1
`

func TestProfilesAreReadByTheirNames(t *testing.T) {
	c, warnings := mustMerge(t, mustLoad(t, User, twoProfiles), nil, nil)
	if err := c.Check(); err != nil || len(warnings) > 0 {
		t.Fatal(err, warnings)
	}
	want := map[string]Profile{
		"work":            {Provider: "openai", Name: "gpt-5", APIKeyEnv: "WORK_KEY", Fallback: []string{"model", "on.this-machine"}, StallTimeout: 30 * time.Second, MaxAttempts: 4},
		"on.this-machine": {Provider: "openai", BaseURL: "http://127.0.0.1:8080/v1", Key: "LOCAL", StallTimeout: 30 * time.Second, MaxAttempts: 1},
		"model":           {Provider: "auto", StallTimeout: 30 * time.Second, MaxAttempts: 4},
	}
	if diff := cmp.Diff([]string{"model", "on.this-machine", "work"}, c.ProfileNames()); diff != "" {
		t.Error(diff)
	}
	for name, p := range want {
		got, err := c.ResolveProfile(name)
		if diff := cmp.Diff(p, got); diff != "" || err != nil {
			t.Errorf("%s: %v\n%s", name, err, diff)
		}
	}
	if _, err := c.ResolveProfile("wrk"); err == nil || err.Error() != `there is no profile "wrk" (did you mean "work"?); there is model, on.this-machine, work` {
		t.Error(err)
	}
	var below []string
	for _, key := range c.Keys()[len(Keys()):] {
		below = append(below, fmt.Sprintf("%s = %s (%s)", key, c.Value(key), c.Source(key)))
	}
	if diff := cmp.Diff([]string{
		`profiles."on.this-machine".provider = "openai" (user /user/agent.toml:10)`,
		`profiles."on.this-machine".base_url = "http://127.0.0.1:8080/v1" (user /user/agent.toml:11)`,
		`profiles."on.this-machine".key = "LOCAL" (user /user/agent.toml:12)`,
		`profiles."on.this-machine".max_attempts = 1 (user /user/agent.toml:13)`,
		`profiles.work.provider = "openai" (user /user/agent.toml:5)`,
		`profiles.work.model = "gpt-5" (user /user/agent.toml:6)`,
		`profiles.work.api_key_env = "WORK_KEY" (user /user/agent.toml:7)`,
		`profiles.work.fallback = ["model", "on.this-machine"] (user /user/agent.toml:8)`,
	}, below); diff != "" {
		t.Error(diff)
	}
}

func TestMistakesInNamedTables(t *testing.T) {
	for name, c := range map[string]struct{ src, want string }{
		"a key that no profile has": {"[profiles.work]\nprovider = 'openai'\nmodle = 'x'", `/user/agent.toml:3: unknown key "profiles.work.modle" (did you mean "profiles.work.model"?)`},
		"a provider that nobody knows": {"[profiles.work]\nprovider = 'openia'", `/user/agent.toml:2: profiles.work.provider: "openia" is not one of ` +
			`"` + strings.Join(Providers, `", "`) + `"`},
		"a profile that is left to chance":    {"[profiles.work]\nprovider = 'auto'", `/user/agent.toml:2: profiles.work.provider: "auto" is not one of "`},
		"a profile without a provider":        {"[profiles.work]\nmodel = 'x'", "/user/agent.toml:1: profiles.work: provider is missing"},
		"an empty profile":                    {"\n[profiles.work]", "/user/agent.toml:2: profiles.work: provider is missing"},
		"a value in place of a profile":       {"profiles.work = 'x'", "/user/agent.toml:1: profiles.work: it is a string; write a table: [profiles.work] and its keys below it"},
		"a name with a blank":                 {"[profiles.'my work']\nprovider = 'offline'", `/user/agent.toml:1: profiles."my work": "my work" is no name of a profile: write letters, digits`},
		"a name that does not show":           {"[profiles.\"a\\u200b\"]\nprovider = 'offline'", `is no name of a profile`},
		"the name of what [model] says":       {"[profiles.model]\nprovider = 'offline'", `/user/agent.toml:1: profiles.model: "model" is the name of what [model] says; write another`},
		"a key in a file":                     {"[profiles.work]\nprovider = 'openai'\nkey = 'sk-0123456789abcdef01234567'", "/user/agent.toml:3: profiles.work.key: that looks like a key, and keys are never in a file"},
		"a key under its own name":            {"[profiles.work]\napi_key = 'x'", `/user/agent.toml:2: unknown key "profiles.work.api_key"; secrets are never in a file`},
		"a price of requests alone":           {"[prices.x]\ninput = 1", "/user/agent.toml:1: prices.x: output is missing"},
		"a price of a model without a name":   {"[prices.\"\"]\ninput = 1\noutput = 1", `/user/agent.toml:1: prices."": "" is no name of a model`},
		"a price of a name that breaks lines": {"[prices.\"a\\nb\"]\ninput = 1\noutput = 1", `is no name of a model`},
		"a price below nothing":               {"[prices.x]\ninput = -1\noutput = 1", "/user/agent.toml:2: prices.x.input: -1 is out of range; write a number from 0 to 1000000 (US dollars)"},
	} {
		_, err := Parse("/user/agent.toml", User, []byte(c.src))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v\nwant %s", name, err, c.want)
		}
		if err != nil && strings.Contains(err.Error(), "sk-0123") {
			t.Errorf("%s: a key is repeated in %v", name, err)
		}
	}
	var many strings.Builder
	for i := range maxProfiles + 1 {
		fmt.Fprintf(&many, "[profiles.p%d]\nprovider = 'offline'\n", i)
	}
	if _, err := Parse("a", User, []byte(many.String())); err == nil || !strings.Contains(err.Error(), "there are 65 names below profiles; at most 64 are accepted") {
		t.Error(err)
	}
}

func TestNamesOfProfilesThatThereAreNot(t *testing.T) {
	const work = "[profiles.work]\nprovider = 'openai'\n"
	for name, c := range map[string]struct{ src, want string }{
		"none is there":         {"profile = 'work'", `/user/agent.toml:1: profile: there is no profile "work"; there is model`},
		"a typing mistake":      {"profile = 'wrk'\n" + work, `/user/agent.toml:1: profile: there is no profile "wrk" (did you mean "work"?); there is model, work`},
		"to fall back on":       {work + "fallback = ['locl', 'model']\n[profiles.local]\nprovider = 'offline'", `/user/agent.toml:3: profiles.work.fallback: there is no profile "locl" (did you mean "local"?); there is model, local, work`},
		"of [model]":            {"model.fallback = ['x']", `/user/agent.toml:1: model.fallback: there is no profile "x"; there is model`},
		"the profile itself":    {work + "fallback = ['work']", `/user/agent.toml:3: profiles.work.fallback: it names the profile itself`},
		"what [model] says, by": {"profile = 'model'\nmodel.fallback = ['model']", `/user/agent.toml:2: model.fallback: it names the profile itself`},
	} {
		got, _ := mustMerge(t, mustLoad(t, User, c.src), nil, nil)
		if err := got.Check(); err == nil || err.Error() != c.want {
			t.Errorf("%s: got %v\nwant %s", name, err, c.want)
		}
	}
}

func TestAProjectsProfiles(t *testing.T) {
	user := mustLoad(t, User, twoProfiles)
	for name, c := range map[string]struct {
		project       string
		trusted       bool
		profile, want string
		ignored       []string
	}{
		"one of its own, untrusted": {"[profiles.own]\nprovider = 'openai'\nbase_url = 'https://evil.example'", false, "own", "none", []string{"profiles.own.provider", "profiles.own.base_url"}},
		"one of its own, trusted":   {"[profiles.own]\nprovider = 'openai'\nbase_url = 'https://evil.example'", true, "own", "openai https://evil.example  ", nil},
		"with a key, trusted": {"[profiles.own]\nprovider = 'openai'\napi_key_env = 'AWS_KEY'\nkey = 'LOCAL'", true, "own", "openai   ",
			[]string{"profiles.own.api_key_env", "profiles.own.key"}},
		"a table of its own below the user's name": {"[profiles.work]\nmodel = 'gpt-6'", true, "work", "openai  WORK_KEY ", nil},
		"another address of the user's, untrusted": {"profiles.work.base_url = 'https://evil.example'", false, "work", "openai  WORK_KEY ", []string{"profiles.work.base_url"}},
		// What the user's key was meant for is another server.
		"another address of the user's, trusted":  {"profiles.work.base_url = 'https://evil.example'", true, "work", "openai https://evil.example  ", nil},
		"another provider of the user's, trusted": {"profiles.'on.this-machine'.provider = 'xai'", true, "on.this-machine", "xai http://127.0.0.1:8080/v1  ", nil},
		"the same address, trusted":               {"profiles.'on.this-machine'.base_url = 'http://127.0.0.1:8080/v1'", true, "on.this-machine", "openai http://127.0.0.1:8080/v1  LOCAL", nil},
		"another model, trusted":                  {"profiles.work.model = 'gpt-6'", true, "work", "openai  WORK_KEY ", nil},
		"which one answers, untrusted":            {"profile = 'on.this-machine'", false, "", "openai  WORK_KEY ", []string{"profile"}},
		"which one answers, trusted":              {"profile = 'on.this-machine'", true, "", "openai http://127.0.0.1:8080/v1  LOCAL", nil},
		"what comes instead, untrusted":           {"model.fallback = ['work']", false, "work", "openai  WORK_KEY ", []string{"model.fallback"}},
	} {
		project := mustLoad(t, Project, c.project)
		project.Trusted = c.trusted
		got, warnings := mustMerge(t, user, project, nil)
		var ignored []string
		for _, w := range warnings {
			ignored = append(ignored, w.Key)
		}
		said := "none"
		if c.profile == "" {
			c.profile = got.Profile
		}
		if p, err := got.ResolveProfile(c.profile); err == nil {
			said = strings.Join([]string{p.Provider, p.BaseURL, p.APIKeyEnv, p.Key}, " ")
		}
		if said != c.want || !slices.Equal(ignored, c.ignored) {
			t.Errorf("%s: got %q, and %q are ignored", name, said, ignored)
		}
	}
	// What is ignored is not asked for either where it never counts.
	asks := mustLoad(t, Project, "[profiles.own]\nprovider = 'openai'\nkey = 'LOCAL'").TrustRequests()
	if diff := cmp.Diff([]TrustRequest{{"profiles.own.provider", `"openai"`}}, asks); diff != "" {
		t.Error(diff)
	}
}

func TestAnotherProviderHasNothingOfTheOneBefore(t *testing.T) {
	user := mustLoad(t, User, "[model]\nprovider = 'openai'\nname = 'gpt-5'\nbase_url = 'https://llm.example/v1'\napi_key_env = 'CORP'\ncontext_tokens = 9\ninput_price = 1\noutput_price = 1\nmax_attempts = 2")
	for name, c := range map[string]struct {
		env  map[string]string
		flag string
		want string
	}{
		"the same":                     {nil, "openai", "openai gpt-5 https://llm.example/v1 CORP 9 1 2"},
		"the offline model":            {nil, "offline", "offline gpt-5 https://llm.example/v1 CORP 9 1 2"},
		"another":                      {nil, "xai", "xai    0 0 2"},
		"another by a variable":        {map[string]string{"STOCKADE_MODEL_PROVIDER": "xai"}, "", "xai    0 0 2"},
		"another with its own address": {map[string]string{"STOCKADE_MODEL_PROVIDER": "xai", "STOCKADE_MODEL_BASE_URL": "https://x.example", "STOCKADE_MODEL_NAME": "grok"}, "", "xai grok https://x.example  0 0 2"},
	} {
		got, _ := mustMerge(t, user, nil, c.env)
		if c.flag != "" {
			if err := got.Set("model.provider", c.flag, "flag --provider"); err != nil {
				t.Fatal(err)
			}
		}
		m := got.Model
		if said := fmt.Sprint(m.Provider, " ", m.Name, " ", m.BaseURL, " ", m.APIKeyEnv, " ", m.ContextTokens, " ", m.InputPrice, " ", m.MaxAttempts); said != c.want {
			t.Errorf("%s: got %q, want %q", name, said, c.want)
		}
	}
}

func TestPricesAreFoundByTheNameOfTheModel(t *testing.T) {
	c, warnings := mustMerge(t, mustLoad(t, User, `
model = { name = "mine", input_price = 7, output_price = 8 }
[prices.gpt-5]
input = 1.25
output = 10
cached_input = 0.125
[prices.gpt]
input = 9
output = 9
cache_write = 11
[prices."gpt-4.1"]
input = 2
output = 8
[prices.free]
input = 0
output = 0
`), mustLoad(t, Project, "prices.free.input = 0\nprices.free.output = 5"), nil)
	if len(warnings) > 0 {
		t.Error(warnings)
	}
	for model, want := range map[string]string{
		"gpt-5":            "{1.25 10 0.125 0} true",
		"gpt-5-2025-08-07": "{1.25 10 0.125 0} true",
		"gpt-4.1":          "{2 8 0 0} true",
		"gpt-4o":           "{9 9 0 11} true",
		"free":             "{0 5 0 0} true", // a project may say it
		"mine":             "{7 8 0 0} true",
		"mine-too":         "{0 0 0 0} false",
		"":                 "{0 0 0 0} false",
	} {
		p, known := c.Price(model)
		if got := fmt.Sprint(p, known); got != want {
			t.Errorf("%s: got %s, want %s", model, got, want)
		}
	}
}

func TestAdministratorsLimitsHoldForProfiles(t *testing.T) {
	c, _ := mustMerge(t, mustLoad(t, User, "[profiles.a]\nprovider = 'offline'\nmax_attempts = 9\n[profiles.b]\nprovider = 'offline'\n"), nil, nil)
	copied := c
	if !c.Cap("model.max_attempts", 2, "administrator") {
		t.Error("[model] is as before")
	}
	for _, name := range c.ProfileNames() {
		if p, _ := c.ResolveProfile(name); p.MaxAttempts != 2 {
			t.Errorf("%s: %d", name, p.MaxAttempts)
		}
	}
	if got := copied.Profiles["a"].MaxAttempts; got != 9 {
		t.Errorf("the copy has %d", got)
	}
	if err := c.Set("profiles.a.model", "x", "flag --model"); err != nil || c.Profiles["a"].Name != "x" || copied.Profiles["a"].Name != "" || c.Source("profiles.a.model") != "flag --model" {
		t.Error(err, c.Profiles, copied.Profiles, c.Source("profiles.a.model"))
	}
	if err := c.Set("profiles.c.model", "x", "flag --model"); err == nil {
		t.Error("a profile was made")
	}
}

func TestTheSampleShowsNamedTables(t *testing.T) {
	_, below, _ := strings.Cut(Annotated(), "\n#[profiles.work]")
	var src strings.Builder
	for line := range strings.Lines("#[profiles.work]" + below) {
		if len(line) > 1 && line[0] == '#' && line[1] != ' ' {
			line = line[1:]
		}
		src.WriteString(line)
	}
	c, _ := mustMerge(t, mustLoad(t, User, src.String()), nil, nil)
	if err := c.Check(); err != nil {
		t.Fatal(err)
	}
	if got, want := len(c.Keys())-len(Keys()), len(entryTable); got != want {
		t.Errorf("%d keys are shown of %d", got, want)
	}
	for _, key := range c.Keys() {
		if c.Source(key) == "" {
			t.Errorf("%s comes from nowhere", key)
		}
	}
}
