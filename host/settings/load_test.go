//go:build unix

package settings

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stockade-dev/stockade/host/config"
	"github.com/stockade-dev/stockade/host/config/policyfile"
	"github.com/stockade-dev/stockade/host/policy"
)

// machine holds a home, a workspace and an administrator's directory.
type machine struct {
	t    *testing.T
	root string
	env  map[string]string
	said []string
	Options
}

func newMachine(t *testing.T) *machine {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	m := &machine{t: t, root: root, env: map[string]string{"HOME": filepath.Join(root, "home")}}
	m.Options = Options{
		Env: func(name string) string { return m.env[name] }, Workspace: filepath.Join(root, "work"),
		Warn:          func(text, _ string) { m.said = append(m.said, text) },
		Administrator: policyfile.Place{Path: filepath.Join(root, "etc/policy.toml"), Root: filepath.Join(root, "etc"), Owner: os.Getuid()},
		AccountHome:   func() string { return filepath.Join(root, "home") },
	}
	for _, dir := range []string{"home", "work", "etc"} {
		if err := os.Mkdir(filepath.Join(root, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return m
}

const (
	userFile   = "home/.config/stockade/agent.toml"
	userPolicy = "home/.config/stockade/policy.toml"
)

func (m *machine) write(name, text string) {
	m.t.Helper()
	name = filepath.Join(m.root, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o700), os.WriteFile(name, []byte(text), 0o600)); err != nil {
		m.t.Fatal(err)
	}
}

func (m *machine) load() *Settings {
	m.t.Helper()
	m.said = nil
	s, err := Load(m.t.Context(), m.Options)
	if err != nil {
		m.t.Fatal(err)
	}
	return s
}

func TestMistakesStopEverythingAndSayWhatToDo(t *testing.T) {
	for name, c := range map[string]struct {
		make       func(*machine)
		want, hint string
	}{
		"the user's file":         {func(m *machine) { m.write(userFile, "x = 1") }, `agent.toml:1: unknown key "x"`, "mend the file, or move it away"},
		"the workspace's file":    {func(m *machine) { m.write("work/agent.toml", "x = 1") }, `agent.toml:1: unknown key "x"`, "mend the file, or move it away"},
		"a file that others made": {func(m *machine) { m.write(userFile, ""); os.Chmod(filepath.Join(m.root, userFile), 0o602) }, "others than its owner may write to it", "mend the file"},
		"a variable":              {func(m *machine) { m.env["STOCKADE_TOOL_TIMEOUT"] = "soon" }, "environment variable STOCKADE_TOOL_TIMEOUT: ", ""},
		"a variable of others":    {func(m *machine) { m.env["OPENAI_BASE_URL"] = "x" }, "OPENAI_BASE_URL: it is not an http or https URL", ""},
		"a flag":                  {func(m *machine) { m.Flags = []Flag{{"--max-turns", "max_tool_turns", "0"}} }, `--max-turns "0": 0 is out of range`, ""},
		"the administrator's":     {func(m *machine) { m.write("etc/policy.toml", "") }, "the policy of the administrator: ", "an administrator has mended it"},
		"the user's policy":       {func(m *machine) { m.write(userPolicy, "x = 1") }, "the policy of the user: ", "stockade policy check"},
		"the workspace's policy":  {func(m *machine) { m.write("work/.stockade/policy.toml", "x = 1") }, "the policy of the project: ", "mend the file"},
		"a rule of a variable":    {func(m *machine) { m.env["STOCKADE_DENY"] = "bash\n(" }, "STOCKADE_DENY: ", ""},
		"a rule of a flag":        {func(m *machine) { m.Deny = []string{"("} }, "--deny: ", ""},
		"what was trusted": {func(m *machine) {
			m.write("work/agent.toml", "mounts = ['/']")
			m.write("home/.local/state/stockade/trust.toml", "always = true")
		}, `trust.toml: unknown key "always"`, "remove it to be asked again"},
		"a folder in the workspace": {func(m *machine) { m.env["XDG_CONFIG_HOME"] = filepath.Join(m.Workspace, "x") }, "XDG_CONFIG_HOME puts a folder of stockade into the workspace", "echo $XDG_CONFIG_HOME"},
		"a home in the workspace":   {func(m *machine) { m.env["HOME"] = m.Workspace }, "HOME puts a folder of stockade into the workspace", "echo $HOME"},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMachine(t)
			c.make(m)
			s, err := Load(t.Context(), m.Options)
			e, ok := errors.AsType[*Error](err)
			if !ok || !strings.Contains(e.What, c.want) || !strings.Contains(e.Hint, c.hint) || c.hint == "" && e.Hint != "" {
				t.Errorf("got %v, %#v", s, err)
			}
		})
	}
	_, err := Load(t.Context(), Options{Env: func(string) string { return "" }, Workspace: t.TempDir()})
	if e, ok := errors.AsType[*NoPlaceError](err); !ok || e.Variable != "XDG_CONFIG_HOME" {
		t.Errorf("without a home: %v", err)
	}
}

func TestTheHomeOfTheAccountMayBeTheWorkspace(t *testing.T) {
	m := newMachine(t)
	m.Workspace = filepath.Join(m.root, "home")
	s := m.load()
	for _, dir := range []string{s.Dirs.Config, s.Dirs.AgentTOML(), ProjectPolicy(m.Workspace)} {
		if !strings.Contains(strings.Join(s.Masked(), "\n"), dir) {
			t.Errorf("%s is shown to guests", dir)
		}
	}
}

func TestLaterSettingsWinUpToTheCeiling(t *testing.T) {
	m := newMachine(t)
	m.write(userFile, "model.name = 'user'\ntool_timeout = '50s'\ntools.web = false\nnetwork.proxy = 'http://mine.example'\n")
	m.write("work/agent.toml", "model.name = 'project'\ntool_timeout = '40s'\n")
	m.write("etc/policy.toml", "limits.tool_timeout = '30s'\nlimits.max_tool_turns = 9\n[network]\nproxy = 'http://theirs.example'\n")
	m.write(userPolicy, "tools.ls.allow = false\n")
	m.write("work/.stockade/policy.toml", "[[rules]]\neffect = 'allow'\ntool = 'ls'\n")
	m.env["STOCKADE_MODEL_MAX_ATTEMPTS"] = "2"
	m.env["STOCKADE_DENY"] = "bash\r\n\nfile_write\n"
	m.env["OPENAI_BASE_URL"] = "http://env.example/v1"
	m.Deny = []string{"grep"}
	m.Flags = []Flag{{"--model", "model.name", "flag"}, {"--max-turns", "max_tool_turns", "20"}, {"--provider", "model.provider", ""}}
	s := m.load()
	admin := " " + m.Administrator.Path + ": "
	for key, want := range map[string][2]string{
		"model.name":         {`"flag"`, "flag --model"},
		"tool_timeout":       {`"30s"`, "administrator" + admin + "limits.tool_timeout"},
		"max_tool_turns":     {"9", "administrator" + admin + "limits.max_tool_turns"},
		"model.max_attempts": {"2", "environment STOCKADE_MODEL_MAX_ATTEMPTS"},
		"model.base_url":     {`"http://env.example/v1"`, "environment OPENAI_BASE_URL"},
		"model.provider":     {`"auto"`, "default"},
		"network.proxy":      {`"http://theirs.example"`, "administrator" + admin + "network.proxy"},
	} {
		if got := [2]string{s.Config.Value(key), s.Config.Source(key)}; got != want {
			t.Errorf("%s: %q, want %q", key, got, want)
		}
	}
	var layers []string
	for _, l := range s.Layers {
		layers = append(layers, string(l.Source))
	}
	want := []policy.Source{policy.SourceSettings, policy.SourceAdmin, policy.SourceUser, policy.SourceProject, policy.SourceEnv, policy.SourceFlag}
	for i, source := range want {
		if i >= len(layers) || layers[i] != string(source) {
			t.Fatalf("layers are %q, want %q", layers, want)
		}
	}
	for _, part := range []string{
		"--max-turns is lowered to 9", `network.proxy = "http://mine.example" (user `, "is ignored: only you can allow",
	} {
		if !strings.Contains(strings.Join(m.said, "\n"), part) {
			t.Errorf("no warning of %q in %q", part, m.said)
		}
	}
}

// The higher of the user's and the administrator's lowest tiers counts. A workspace or a
// variable can set neither.
func TestTheHigherLeastTierCounts(t *testing.T) {
	for name, c := range map[string]struct {
		user, admin string
		want        int64 // 0: none
		source      policy.Source
	}{
		"nobody's":               {"", "", 1, policy.SourceSettings},
		"the user's":             {"bash.min_tier = 2", "", 2, policy.SourceSettings},
		"given up":               {"bash.min_tier = 0", "", 0, ""},
		"the administrator's":    {"bash.min_tier = 0", "bash.min_tier = 2", 2, policy.SourceAdmin},
		"the user's is higher":   {"bash.min_tier = 3", "bash.min_tier = 2", 3, policy.SourceSettings},
		"the administrator's, 0": {"", "bash.min_tier = 0", 1, policy.SourceSettings},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMachine(t)
			m.env["STOCKADE_BASH_MIN_TIER"] = "0"
			m.write("work/agent.toml", "bash.min_tier = 0")
			for file, text := range map[string]string{userFile: c.user, "etc/policy.toml": c.admin} {
				if text != "" {
					m.write(file, text)
				}
			}
			got := m.load().Ceiling.MinTier
			if c.want == 0 && got != nil || c.want > 0 && (got == nil || got.Value != c.want || got.From.Source != c.source) {
				t.Errorf("it is %+v", got)
			}
		})
	}
}

func TestAPersonIsAskedOnceAboutOneContent(t *testing.T) {
	m := newMachine(t)
	var asked []Trust
	answer := false
	ask := func(_ context.Context, f *config.File, was Trust) (bool, error) {
		asked = append(asked, was)
		return answer, nil
	}
	step := func(name string, questions int, trusted bool, warnings int) {
		t.Helper()
		asked = nil
		s := m.load()
		if len(asked) != questions || (len(s.Config.Mounts) > 0) != trusted || (len(s.UntrustedWarnings) == 0) != trusted || len(m.said) != warnings {
			t.Errorf("%s: asked %v, %v is mounted, %v waits, said %q", name, asked, s.Config.Mounts, s.UntrustedWarnings, m.said)
		}
	}
	m.write("work/agent.toml", "mounts = ['/data']\n")
	step("nobody can be asked", 0, false, 1)
	m.SkipTrustWarning = true
	step("the command is about it", 0, false, 0)
	m.SkipTrustWarning, m.Ask = false, ask
	step("a no", 1, false, 1)
	answer = true
	step("a yes", 1, true, 0)
	m.Ask = nil
	step("it is kept", 0, true, 0)
	m.write("work/agent.toml", "mounts = ['/data']\n#")
	step("another content", 0, false, 1)
	m.Ask = ask
	step("it is asked again", 1, true, 0)
	if len(asked) != 1 || asked[0].Path != ProjectFile(m.Workspace) {
		t.Errorf("what was trusted is not told: %v", asked)
	}
	m.write("work/agent.toml", "max_tool_turns = 1\n")
	asked = nil
	if m.load(); asked != nil {
		t.Error("it was asked about a file that asks for nothing")
	}
	cause := errors.New("interrupted")
	m.write("work/agent.toml", "mounts = ['/other']\n")
	m.Ask = func(context.Context, *config.File, Trust) (bool, error) { return true, cause }
	if _, err := Load(t.Context(), m.Options); !errors.Is(err, cause) {
		t.Errorf("got %v", err)
	}
	if was, err := (Dirs{State: filepath.Join(m.root, "home/.local/state/stockade")}).FindTrust(ProjectFile(m.Workspace)); err != nil || len(was.Asks) != 1 || was.Asks[0].Value != `["/data"]` {
		t.Errorf("a question without an answer changed what is trusted: %v, %v", was, err)
	}
}
