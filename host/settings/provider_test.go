//go:build unix

package settings

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stockade-dev/stockade/host/config"
	"github.com/stockade-dev/stockade/host/door"
	"github.com/stockade-dev/stockade/host/redact"
	"github.com/stockade-dev/stockade/host/secret"
)

func TestEveryProviderCanBeNamed(t *testing.T) {
	var names []string
	for _, k := range door.ProviderKinds() {
		names = append(names, k.Name)
		if k.Name != door.ProviderOffline && (k.Address == "" || k.Header == "") {
			t.Errorf("%s has no address or no header", k.Name)
		}
	}
	slices.Sort(names)
	if want := slices.Sorted(slices.Values(config.Providers)); !slices.Equal(names, want) {
		t.Errorf("the door has %q, the configuration %q", names, want)
	}
}

// The value of each key names its owner.
func TestAKeyGoesToNoServerThatItWasNotMeantFor(t *testing.T) {
	const corp = "[model]\nprovider = 'openai'\nname = 'm'\nbase_url = 'https://corp.example/v1'\napi_key_env = 'CORP_KEY'\n"
	for name, c := range map[string]struct {
		user    string
		env     string // NAME=VALUE, with blanks between
		flags   []Flag
		profile string
		want    string // address, key, where it is from; or an error
	}{
		"the usual key, to the usual address": {"", "OPENAI_API_KEY=openai", nil, "", " openai OPENAI_API_KEY"},
		"no key":                              {"", "", nil, "", "  OPENAI_API_KEY"},
		"with the address that goes with it":  {"", "OPENAI_API_KEY=openai OPENAI_BASE_URL=https://env.example", nil, "", "https://env.example openai OPENAI_API_KEY"},
		"[model] at an address of its own":    {"model.base_url = 'https://mine.example'", "OPENAI_API_KEY=openai OPENAI_BASE_URL=https://env.example", nil, "", "https://mine.example openai OPENAI_API_KEY"},
		"the key that [model] names":          {corp, "OPENAI_API_KEY=openai CORP_KEY=corp", nil, "", "https://corp.example/v1 corp CORP_KEY"},
		"not to where a variable says": {"model.api_key_env = 'CORP_KEY'", "CORP_KEY=corp OPENAI_BASE_URL=https://env.example", nil, "",
			"the server is named by OPENAI_BASE_URL in the environment, and such a server gets only the key in OPENAI_API_KEY; model.api_key_env names CORP_KEY"},
		"nor a secret": {"model.key = 'VAULT'", "OPENAI_BASE_URL=https://env.example", nil, "",
			"the server is named by OPENAI_BASE_URL in the environment, and such a server gets only the key in OPENAI_API_KEY; model.key names VAULT"},
		"another provider, by a flag": {corp, "CORP_KEY=corp ANTHROPIC_API_KEY=anthropic OPENAI_BASE_URL=https://env.example", []Flag{{"--provider", "model.provider", "anthropic"}}, "", " anthropic ANTHROPIC_API_KEY"},
		"another one, by a variable":  {corp, "CORP_KEY=corp XAI_API_KEY=xai STOCKADE_MODEL_PROVIDER=xai", nil, "", " xai XAI_API_KEY"},
		"another one that has no key": {corp, "CORP_KEY=corp OPENAI_API_KEY=openai", []Flag{{"--provider", "model.provider", "google"}}, "", "  GEMINI_API_KEY"},
		"the second of two variables": {"", "GOOGLE_API_KEY=google", []Flag{{"--provider", "model.provider", "google"}}, "", " google GOOGLE_API_KEY"},
		"the other wire of the same":  {corp, "CORP_KEY=corp", []Flag{{"--provider", "model.provider", "openai-responses"}}, "", "https://corp.example/v1 corp CORP_KEY"},
		"the offline model":           {corp, "CORP_KEY=corp", []Flag{{"--provider", "model.provider", "offline"}}, "", "https://corp.example/v1  "},

		"a profile at the usual address":           {"profiles.p.provider = 'xai'", "XAI_API_KEY=xai OPENAI_API_KEY=openai", nil, "p", " xai XAI_API_KEY"},
		"with what [model] names":                  {corp + "[profiles.p]\nprovider = 'openai'", "CORP_KEY=corp OPENAI_API_KEY=openai", nil, "p", " openai OPENAI_API_KEY"},
		"at where a variable says":                 {"profiles.p.provider = 'anthropic'", "ANTHROPIC_API_KEY=anthropic ANTHROPIC_BASE_URL=https://env.example", nil, "p", "https://env.example anthropic ANTHROPIC_API_KEY"},
		"at the usual address, in words":           {"[profiles.p]\nprovider = 'openai'\nbase_url = 'https://API.openai.com/v1/'", "OPENAI_API_KEY=openai", nil, "p", "https://API.openai.com/v1/ openai OPENAI_API_KEY"},
		"at the usual host without https":          {"[profiles.p]\nprovider = 'openai'\nbase_url = 'http://api.openai.com/v1'", "OPENAI_API_KEY=openai", nil, "p", "http://api.openai.com/v1  profiles.p.api_key_env or profiles.p.key"},
		"at an address of its own":                 {"[profiles.p]\nprovider = 'openai'\nbase_url = 'http://desk.example/v1'", "OPENAI_API_KEY=openai", nil, "p", "http://desk.example/v1  profiles.p.api_key_env or profiles.p.key"},
		"there, with the key that it names":        {"[profiles.p]\nprovider = 'openai'\nbase_url = 'http://desk.example/v1'\napi_key_env = 'OPENAI_API_KEY'", "OPENAI_API_KEY=openai", nil, "p", "http://desk.example/v1 openai OPENAI_API_KEY"},
		"with a key that it names, and no address": {"[profiles.p]\nprovider = 'openai'\napi_key_env = 'CORP_KEY'", "CORP_KEY=corp OPENAI_API_KEY=openai OPENAI_BASE_URL=https://env.example", nil, "p", " corp CORP_KEY"},
		"with a variable that is empty":            {"[profiles.p]\nprovider = 'openai'\napi_key_env = 'CORP_KEY'", "OPENAI_API_KEY=openai", nil, "p", "  CORP_KEY"},

		"Ollama where its variable says":   {"profiles.p.provider = 'ollama'", "OLLAMA_HOST=0.0.0.0:1234 OPENAI_API_KEY=openai", nil, "p", "http://127.0.0.1:1234  "},
		"Ollama as the provider by a flag": {corp, "CORP_KEY=corp OLLAMA_HOST=gpu.example", []Flag{{"--provider", "model.provider", "ollama"}}, "", "http://gpu.example:11434  "},

		"a secret, to the host that it is bound to":  {"[profiles.p]\nprovider = 'openai'\nbase_url = 'https://bound.example/v1'\nkey = 'BOUND'", "", nil, "p", "https://bound.example/v1 of-bound the secret BOUND"},
		"a secret, to another port of it":            {"[profiles.p]\nprovider = 'openai'\nbase_url = 'https://bound.example:8443/v1'\nkey = 'BOUND'", "", nil, "p", "the secret BOUND is not sent to bound.example:8443: it is bound to bound.example"},
		"a secret that is bound elsewhere":           {"[profiles.p]\nprovider = 'anthropic'\nkey = 'BOUND'", "", nil, "p", "the secret BOUND is not sent to api.anthropic.com: it is bound to bound.example"},
		"a secret that is bound to nothing":          {"[profiles.p]\nprovider = 'anthropic'\nkey = 'VAULT'", "ANTHROPIC_API_KEY=anthropic ANTHROPIC_BASE_URL=https://env.example", nil, "p", " of-vault the secret VAULT"},
		"a secret, over http":                        {"[profiles.p]\nprovider = 'openai'\nbase_url = 'http://desk.example/v1'\nkey = 'VAULT'", "", nil, "p", "the secret VAULT is not sent to http://desk.example/v1: anybody on the way could read it"},
		"a secret, over http to this machine":        {"[profiles.p]\nprovider = 'openai'\nbase_url = 'http://localhost:80/v1'\nkey = 'VAULT'", "", nil, "p", "http://localhost:80/v1 of-vault the secret VAULT"},
		"a secret that there is not":                 {"[profiles.p]\nprovider = 'openai'\nkey = 'NONE'", "OPENAI_API_KEY=openai", nil, "p", "the key for https://api.openai.com/v1 is the secret NONE, which does not exist"},
		"the profile that answers, with a key":       {"profile = 'p'\n[profiles.p]\nprovider = 'openai'\nkey = 'VAULT'", "OPENAI_API_KEY=openai", nil, "", " of-vault the secret VAULT"},
		"a flag that leaves it out, with its secret": {"profile = 'p'\n[profiles.p]\nprovider = 'openai'\nkey = 'VAULT'", "OPENAI_API_KEY=openai", []Flag{{"--provider", "model.provider", "openai"}}, "", " openai OPENAI_API_KEY"},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMachine(t)
			m.write(userFile, c.user)
			for pair := range strings.FieldsSeq(c.env) {
				name, value, _ := strings.Cut(pair, "=")
				m.env[name] = value
			}
			m.Flags = c.flags
			s := m.load()
			known := new(redact.Redactor)
			vault := secret.NewVault(secret.NewKeyring(filepath.Join(m.root, "names")), secret.NewFile(secret.FileOptions{Path: filepath.Join(m.root, "sealed"), KeyPath: filepath.Join(m.root, "sealed.key")}), known)
			if strings.Contains(c.user, "key = '") {
				keep(t, vault, secret.Record{Info: secret.Info{Name: "BOUND", Hosts: []string{"bound.example"}}, Value: secret.NewValue("of-bound")})
				keep(t, vault, secret.Record{Info: secret.Info{Name: "VAULT"}, Value: secret.NewValue("of-vault")})
			}
			p, err := s.Provider(t.Context(), c.profile, Keys{Env: m.Env, Secrets: vault}, nil)
			got := fmt.Sprint(err)
			if err == nil {
				got = strings.Join([]string{p.Client.BaseURL, p.Client.APIKey, p.Client.KeySource}, " ")
			}
			if got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

func keep(t *testing.T, v *secret.Vault, r secret.Record) {
	t.Helper()
	store, _, err := v.ChooseStore(t.Context(), "file")
	if err == nil {
		err = v.Set(t.Context(), store, r)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestVariablesThatChangeNothing(t *testing.T) {
	m := newMachine(t)
	m.write(userFile, "profile = 'p'\nprofiles.p.provider = 'offline'\n")
	m.env["STOCKADE_MODEL_NAME"], m.env["OPENAI_BASE_URL"] = "x", "https://env.example"
	for _, c := range []struct {
		env  string
		flag []Flag
		want string
	}{
		{"", nil, "STOCKADE_MODEL_NAME is not used: the profile p answers (user " + filepath.Join(m.root, userFile) + ":1)"},
		{"model", nil, ""}, // it is used
		{"p", nil, ""},     // who says so knows
		{"", []Flag{{"--profile", "profile", "p"}}, ""},
		{"", []Flag{{"--provider", "model.provider", "openai"}}, ""},
	} {
		m.env["STOCKADE_PROFILE"], m.Flags = c.env, c.flag
		m.load()
		if got := strings.Join(m.said, "\n"); got != c.want {
			t.Errorf("%q, %v: said %q", c.env, c.flag, got)
		}
	}
}

func TestWhatAProfileFallsBackOn(t *testing.T) {
	m := newMachine(t)
	m.write(userFile, "profile = 'a'\n[profiles.a]\nprovider = 'openai'\nmodel = 'x'\nfallback = ['b', 'c', 'model']\nmax_attempts = 2\n"+
		"[profiles.b]\nprovider = 'xai'\nkey = 'NONE'\n[profiles.c]\nprovider = 'xai'\nmodel = 'grok'\nfallback = ['a']\ncontext_tokens = 7\n[prices.gr]\ninput = 1\noutput = 2\n")
	m.env["XAI_API_KEY"] = "xai"
	s := m.load()
	vault := secret.NewVault(secret.NewKeyring(filepath.Join(m.root, "names")), secret.NewFile(secret.FileOptions{Path: filepath.Join(m.root, "sealed"), KeyPath: filepath.Join(m.root, "sealed.key")}), new(redact.Redactor))
	p, err := s.Provider(t.Context(), "", Keys{Env: m.Env, Secrets: vault}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if p.Profile != "a" || p.Attempts != 2 || p.Price != nil || len(p.Fallback) != 2 {
		t.Fatalf("got %+v", p)
	}
	c := p.Fallback[0]
	if c.Profile != "c" || c.Client.APIKey != "xai" || c.Client.ContextTokens != 7 || c.Attempts != 4 || c.Fallback != nil || c.Price == nil || c.Price.Output != 2 || p.Fallback[1].Profile != "model" {
		t.Errorf("got %+v", p.Fallback)
	}
	if len(m.said) != 1 || !strings.Contains(m.said[0], "b cannot be asked where a fails: the key for https://api.x.ai/v1 is the secret NONE") {
		t.Errorf("said %q", m.said)
	}
	if _, err := os.Stat(filepath.Join(m.root, "sealed")); err == nil {
		t.Error("a file of secrets was made")
	}
}
