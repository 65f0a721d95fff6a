package paths

import (
	"strings"
	"testing"
	"testing/quick"
)

// The care that each path needs, for changing and for reading.
func TestSpecialPaths(t *testing.T) {
	for name, want := range map[string]struct{ change, read Care }{
		"/ws/.git":                              {Closed, ""},
		"/ws/sub/.git":                          {Closed, ""},
		"/ws/.git/hooks":                        {Closed, ""},
		"/ws/.git/hooks/pre-commit":             {Closed, ""},
		"/ws/.git/hooks/d/e":                    {Closed, ""},
		"/ws/a/b/c/d/e/f/.git/hooks/pre-push":   {Closed, ""},
		"/ws/.git/config":                       {Closed, Secret},
		"/ws/.git/config.worktree":              {Closed, Secret},
		"/ws/.git/info/attributes":              {Closed, ""},
		"/ws/.git/modules/a/hooks/pre-commit":   {Closed, ""},
		"/ws/.git/modules/a/b/hooks/pre-commit": {Closed, ""},
		"/ws/.git/modules/a/config":             {Closed, Secret},
		"/ws/.git/worktrees/a/gitdir":           {Closed, ""},
		"/ws/.git/worktrees/a/config.worktree":  {Closed, Secret},
		"/ws/.gitmodules":                       {Closed, ""},
		"/ws/agent.toml":                        {Closed, ""},
		"/ws/sub/agent.toml":                    {Closed, ""},
		"/ws/.stockade":                         {Closed, ""},
		"/ws/.stockade/policy.toml":             {Closed, ""},
		"/ws/.stockade/not/there/yet":           {Closed, ""},
		"/ws/HEAD":                              {Asked, ""},
		"/ws/.vscode":                           {Asked, ""},
		"/ws/.vscode/settings.json":             {Asked, ""},
		"/ws/pkg/.vscode/tasks.json":            {Asked, ""},
		"/ws/x.code-workspace":                  {Asked, ""},
		"/ws/.mcp.json":                         {Asked, Secret},
		"/ws/.claude/settings.local.json":       {Asked, ""},
		"/ws/.claude/hooks/x.sh":                {Asked, ""},
		"/ws/.husky/pre-commit":                 {Asked, ""},
		"/ws/.bashrc":                           {Asked, ""},
		"/ws/.envrc":                            {Asked, Secret},
		"/ws/.npmrc":                            {Asked, Secret},
		"/ws/.config/git/config":                {Asked, ""},
		"/home/u/.local/bin/ls":                 {Asked, ""},
		"/home/u/.ssh/config":                   {Asked, Secret},
		"/home/u/.ssh/any":                      {Asked, Secret},
		"/ws/.env":                              {"", Secret},
		"/ws/deep/er/.env":                      {"", Secret},
		"/ws/.env.local":                        {"", Secret},
		"/ws/.env.production":                   {"", Secret},
		"/ws/.env~":                             {"", Secret},
		"/ws/prod.env":                          {"", Secret},
		"/ws/id_rsa":                            {"", Secret},
		"/ws/id_ed25519_work":                   {"", Secret},
		"/ws/tls/server.key":                    {"", Secret},
		"/ws/tls/server.pem":                    {"", Secret},
		"/ws/.netrc":                            {"", Secret},
		"/ws/_netrc":                            {"", Secret},
		"/ws/.aws/credentials":                  {Asked, Secret},
		"/ws/.kube/config":                      {Asked, Secret},
		"/ws/config/secrets.yml":                {"", Secret},
		"/ws/terraform.tfstate":                 {"", Secret},
		"/ws/.git-credentials":                  {"", Secret},
		"/ws/.env.example.bak":                  {"", Secret},

		// The remaining steps of a rebase, which can hold commands.
		"/ws/.git/rebase-merge":                             {Closed, ""},
		"/ws/.git/rebase-merge/git-rebase-todo":             {Closed, ""},
		"/ws/.git/rebase-apply/0001":                        {Closed, ""},
		"/ws/.git/sequencer/opts":                           {Closed, ""},
		"/ws/.git/worktrees/a/rebase-merge/git-rebase-todo": {Closed, ""},
		"/ws/.git/worktrees/a/sequencer/todo":               {Closed, ""},
		"/ws/.git/modules/a/b/rebase-merge/git-rebase-todo": {Closed, ""},
		"/ws/.git/modules/a/rebase-apply/next":              {Closed, ""},
		"/ws/.git/modules/a/worktrees/w/rebase-merge/done":  {Closed, ""},
		"/ws/.git/modules/a/worktrees/w/config.worktree":    {Closed, Secret},
		"/ws/.git/modules/a/info/attributes":                {Closed, ""},
		"/ws/.git/REBASE~1/git-rebase-todo":                 {Closed, ""},
		"/ws/.hg/hgrc":                                      {Closed, Secret},
		"/ws/.jj/repo/config.toml":                          {Closed, ""},

		"/ws/.yarn/releases/yarn-4.cjs":                 {Asked, ""},
		"/ws/.yarn/plugins/x.cjs":                       {Asked, ""},
		"/ws/.pnp.cjs":                                  {Asked, ""},
		"/ws/.mvn/extensions.xml":                       {Asked, ""},
		"/ws/mise.toml":                                 {Asked, ""},
		"/ws/.mise/config.toml":                         {Asked, ""},
		"/ws/.irbrc":                                    {Asked, ""},
		"/ws/.Rprofile":                                 {Asked, ""},
		"/ws/.gdbinit":                                  {Asked, ""},
		"/ws/.helix/languages.toml":                     {Asked, ""},
		"/ws/.kiro/hooks/x":                             {Asked, ""},
		"/home/u/.config/environment.d/x.conf":          {Asked, ""},
		"/home/u/.local/share/systemd/user/x.service":   {Asked, ""},
		"/home/u/.config/emacs/init.el":                 {Asked, ""},
		"/home/u/.config/zed/settings.json":             {Asked, ""},
		"/home/u/.config/Code/User/settings.json":       {Asked, ""},
		"/home/u/.config/nushell/config.nu":             {Asked, ""},
		"/home/u/.config/powershell/profile.ps1":        {Asked, ""},
		"/home/u/.bash_completion":                      {Asked, ""},
		"/home/u/.gnupg/gpg-agent.conf":                 {Asked, Secret},
		"/home/u/.aws/config":                           {Asked, Secret},
		"/home/u/.kube/config":                          {Asked, Secret},
		"/home/u/.docker/config.json":                   {Asked, Secret},
		"/ws/.env-prod":                                 {"", Secret},
		"/ws/.env_prod":                                 {"", Secret},
		"/ws/env.local":                                 {"", Secret},
		"/home/u/.config/git/credentials":               {Asked, Secret},
		"/etc/shadow":                                   {"", Secret},
		"/etc/shadow-":                                  {"", Secret},
		"/etc/gshadow":                                  {"", Secret},
		"/etc/sudoers":                                  {"", Secret},
		"/etc/sudoers.d/10-ada":                         {"", Secret},
		"/etc/ssh/ssh_host_ed25519_key":                 {"", Secret},
		"/etc/ssl/private/x":                            {"", Secret},
		"/etc/krb5.keytab":                              {"", Secret},
		"/etc/NetworkManager/system-connections/x":      {"", Secret},
		"/etc/wpa_supplicant/wpa_supplicant-wlan0.conf": {"", Secret},
		"/etc/wireguard/wg0.conf":                       {"", Secret},
		"/etc/ppp/chap-secrets":                         {"", Secret},
		"/srv/image/etc/shadow":                         {"", Secret},

		// Backups of secret-looking files.
		"/ws/.git-credentials~":       {"", Secret},
		"/ws/.netrc.bak":              {"", Secret},
		"/ws/id.key.bak":              {"", Secret},
		"/ws/id.key.BAK":              {"", Secret},
		"/ws/id.key.old":              {"", Secret},
		"/ws/id.key_old":              {"", Secret},
		"/ws/id.key.orig":             {"", Secret},
		"/ws/id.key.save":             {"", Secret},
		"/ws/id.key.tmp":              {"", Secret},
		"/ws/id.key.1":                {"", Secret},
		"/ws/id.key.~1~":              {"", Secret},
		"/ws/id.key.2024-01-31":       {"", Secret},
		"/ws/id.key-20240131T101112Z": {"", Secret},
		"/ws/id.key.bak.2":            {"", Secret},
		"/ws/id.key (1)":              {"", Secret},
		"/ws/id.key copy":             {"", Secret},
		"/ws/.id.key.swp":             {"", Secret},
		"/ws/.netrc.swp":              {"", Secret},
		"/ws/.credentials.json.swo":   {"", Secret},
		"/ws/#secrets.json#":          {"", Secret},
		"/ws/.#secrets.json":          {"", Secret},
		"/ws/.netrc.dpkg-old":         {"", Secret},
		"/ws/.aws.old/credentials~":   {"", Secret},
		"/ws/.git/config~":            {"", Secret},
		"/etc/shadow.bak":             {"", Secret},
		"/ws/id.key.bak:stream":       {"", Secret},

		"/ws/.env-example":              {},
		"/ws/.env_sample":               {},
		"/ws/server.key.pub~":           {},
		"/ws/main.go~":                  {},
		"/ws/key.bak":                   {},
		"/ws/bak":                       {},
		"/ws/.bak":                      {},
		"/ws/~":                         {},
		"/ws/#":                         {},
		"/ws/##":                        {},
		"/ws/.#":                        {},
		"/ws/2024-01-31":                {},
		"/ws/env.go":                    {},
		"/ws/env.d.ts":                  {},
		"/ws/internal/shadow":           {},
		"/ws/css/shadow.css":            {},
		"/etc/passwd":                   {},
		"/etc/hosts":                    {},
		"/etc/ssh/ssh_config":           {},
		"/etc/ssh/ssh_host_rsa_key.pub": {},
		"/etc/ssl/certs/x":              {},
		"/etc/NetworkManager/NetworkManager.conf": {},
		"/ws/.yarn/cache/x.zip":                   {},
		"/ws/.git/rebase":                         {},
		"/ws/.git/MERGE_MSG":                      {},
		"/ws/.git/refs/remotes/origin/main":       {},
		"/ws/.hgignore":                           {},
		"/ws/.mvn/wrapper/x.txt":                  {Asked, ""},
		"/home/u/.config/code.md":                 {},
		"/ws/.env.example":                        {},
		"/ws/.env.sample":                         {},
		"/ws/.env.template":                       {},
		"/ws/id_rsa.pub":                          {},
		"/home/u/.ssh.d/x":                        {},
		"/ws/.env/lib/python3/site.py":            {}, // a directory of Python
		"/ws/environment":                         {},
		"/ws/envrc":                               {},
		"/ws/key":                                 {},
		"/ws/monkey":                              {},
		"/ws/hooks/pre-commit":                    {},
		"/ws/config":                              {},
		"/ws/.git/index":                          {},
		"/ws/.git/objects/ab/cd":                  {},
		"/ws/.git/refs/heads/main":                {},
		"/ws/.git/COMMIT_EDITMSG":                 {},
		"/ws/.gitignore":                          {},
		"/ws/.gitattributes":                      {},
		"/ws/.github/workflows/ci.yml":            {},
		"/ws/Makefile":                            {},
		"/ws/AGENTS.md":                           {Asked, ""},
		"/ws/sub/claude.md":                       {Asked, ""},
		"/ws/GEMINI.md":                           {Asked, ""},
		"/ws/.cursorrules":                        {Asked, ""},
		"/ws/.windsurfrules":                      {Asked, ""},
		"/ws/.clinerules":                         {Asked, ""},
		"/ws/.clinerules/a.md":                    {Asked, ""},
		"/ws/.github/copilot-instructions.md":     {Asked, ""},
		"/ws/.docker/cli-plugins/docker-x":        {Asked, ""},
		"/ws/go/bin/gopls":                        {Asked, ""},
		"/ws/go/pkg/x":                            {},
		"/ws/.nvm/versions/node/v20/bin/node":     {Asked, ""},
		"/ws/.pyenv/shims/python":                 {Asked, ""},
		"/ws/.rbenv/shims/ruby":                   {Asked, ""},
		"/ws/.asdf/shims/node":                    {Asked, ""},
		"/ws/.config/gh/config.yml":               {Asked, Secret},
		"/ws/.bazelrc":                            {Asked, ""},
		"/ws/tools/bazel":                         {Asked, ""},
		"/ws/tools/bazel.sh":                      {},
		"/ws/.venv/bin/activate":                  {Asked, ""},
		"/ws/.venv/bin/activate.fish":             {Asked, ""},
		"/ws/.venv/bin/python":                    {},
		"/ws/.lessfilter":                         {Asked, ""},
		"/ws/.sdkman/bin/sdkman-init.sh":          {Asked, ""},
		"/ws/.pylintrc":                           {Asked, ""},
		"/ws/.ycm_extra_conf.py":                  {Asked, ""},
		"/ws/.xbindkeysrc":                        {Asked, ""},
		"/ws/.config/awesome/rc.lua":              {Asked, ""},
		"/home/ada/bin/ls":                        {Asked, ""},
		"/root/bin/ls":                            {Asked, ""},
		"/ws/bin/ls":                              {},
		"/ws/my-agent.toml":                       {},
		"/ws/.stockade-abc.tmp":                   {},
		"/ws/.claude/worktrees/a/main.go":         {},
		"/ws/modules/a/hooks/x":                   {},
		"/":                                       {},
		"":                                        {},
		"/ws/overhead":                            {},
		"/ws/docs/HEADER":                         {},
		"/ws/secrets/readme.md":                   {},
		"/ws/.aws.md":                             {},
		"/ws/src/credentials.go":                  {},
		"/ws/cmd/stockade/agent.toml.tmpl":        {},

		// Other spellings that some file system treats as the same name (F36, F37).
		"/ws/.GIT/hooks/pre-commit":          {Closed, ""},
		"/ws/.Git/Config":                    {Closed, Secret},
		"/ws/.gIt":                           {Closed, ""},
		"/ws/AGENT.TOML":                     {Closed, ""},
		"/ws/.Stockade/x":                    {Closed, ""},
		"/ws/.g\u200cit/hooks/x":             {Closed, ""},
		"/ws/.git\ufeff/hooks/x":             {Closed, ""},
		"/ws/\uff0egit/hooks/x":              {Closed, ""},
		"/ws/.\uff47\uff49\uff54/config":     {Closed, Secret},
		"/ws/.git/hoo\u212as/x":              {Closed, ""}, // the sign of Kelvin
		"/ws/.git/hook\u017f/x":              {Closed, ""}, // a long s
		"/ws/.git./hooks/x":                  {Closed, ""},
		"/ws/.git /hooks/x":                  {Closed, ""},
		"/ws/.git . ./config":                {Closed, Secret},
		"/ws/.git::$INDEX_ALLOCATION/config": {Closed, Secret},
		"/ws/.git/config::$DATA":             {Closed, Secret},
		"/ws/agent.toml:stream":              {Closed, ""},
		"/ws/GIT~1/config":                   {Closed, Secret},
		"/ws/git~27/hooks/x":                 {Closed, ""},
		"/ws/GITMOD~1":                       {Closed, ""},
		"/ws/AGENT~1.TOM":                    {Closed, ""},
		"/ws/STOCKA~1/policy.toml":           {Closed, ""},
		"/ws/VSCODE~1/settings.json":         {Asked, ""},
		"/ws/.ENV":                           {"", Secret},
		"/ws/.Env.Local":                     {"", Secret},
		"/ws/.env.":                          {"", Secret},
		"/ws/.env::$DATA":                    {"", Secret},
		"/ws/.env:x.example":                 {"", Secret},
		"/ws/ENV~1":                          {"", Secret},
		"/ws/ENV~1.LOC":                      {"", Secret},
		"/ws/SERVER.KEY":                     {"", Secret},
		"/ws/ID_RSA":                         {"", Secret},
		"/ws/.env.EXAMPLE":                   {},
		"/ws/~1":                             {},
		"/ws/a~1":                            {},
		"/ws/:":                              {},
		"/ws/...":                            {},
	} {
		sameOnAWalk(t, name)
		change, _ := SpecialForChange(name)
		read, _ := SpecialForRead(name)
		if change.Care != want.change || read.Care != want.read {
			t.Errorf("%q: changed %q (%s) and read %q (%s); want %q and %q", name, change.Care, change.Pattern, read.Care, read.Pattern, want.change, want.read)
		}
	}
}

func TestWhatLeadsToSpecialPathsIsNotMoved(t *testing.T) {
	for name, want := range map[string]struct{ move, hold Care }{
		"/ws/.git":            {Closed, Secret},
		"/ws/.git/hooks":      {Closed, ""},
		"/ws/.git/info":       {Closed, ""},
		"/ws/.git/modules":    {Closed, Secret},
		"/ws/.git/modules/a":  {Closed, Secret},
		"/ws/.git/worktrees":  {Closed, Secret},
		"/ws/.git/objects":    {},
		"/ws/.config":         {Asked, Secret},
		"/ws/.claude":         {Asked, Secret},
		"/ws/.vscode/x":       {Asked, ""},
		"/ws/.ssh":            {Asked, Secret},
		"/ws/.AWS":            {Asked, Secret},
		"/ws/.env":            {}, // as a directory it holds nothing special
		"/ws/sub":             {},
		"/ws/.CLAUDE/plugins": {Asked, ""},
	} {
		move, _ := SpecialForMove(name)
		hold, _ := SpecialInside(name)
		if move.Care != want.move || hold.Care != want.hold {
			t.Errorf("%q: moved %q and held %q, want %q and %q", name, move.Care, hold.Care, want.move, want.hold)
		}
	}
}

func TestDirectoriesThatMayBeRepositories(t *testing.T) {
	for name, want := range map[string]string{
		"/ws/bare/config":           "/ws/bare",
		"/ws/bare/HOOKS/pre-commit": "/ws/bare",
		"/ws/hooks/d/config":        "/ws /ws/hooks/d",
		"/ws/x/modules/a/hooks/y":   "/ws/x /ws/x/modules/a",
		"/ws/a/b":                   "",
		"/ws/x/info":                "",
		"/config":                   "",
	} {
		if got := strings.Join(PossibleRepositories(name, false), " "); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

func TestOnlyTheFileThatWasAnsweredForIsRead(t *testing.T) {
	p := Opened{"/ws/.env"}
	if _, care := p.SpecialForRead("/ws/.env"); care {
		t.Error("/ws/.env is not readable")
	}
	for _, name := range []string{"/ws/.ENV", "/ws/.env.local", "/ws/sub/.env", "/ws/.env/.env", "/.env"} {
		if _, care := p.SpecialForRead(name); !care {
			t.Errorf("%s is readable", name)
		}
	}
}

// Each entry applies to its own pattern, and has its texts.
func TestSpecialsMeetThemselves(t *testing.T) {
	for _, s := range specials {
		name := "/ws/" + strings.ReplaceAll(strings.TrimSuffix(s.Pattern, "/**"), "*", "x")
		found := SpecialForChange
		if s.Care == Secret {
			found = SpecialForRead
			if strings.HasSuffix(s.Pattern, "/**") {
				name += "/x"
			}
		}
		if got, ok := found(name); !ok || got.Care != s.Care && got.Care != Closed {
			t.Errorf("%s: %s is %+v", s.Pattern, name, got)
		}
		if first, _, more := strings.Cut(s.Pattern, "/"); more && strings.Contains(first, "*") || s.What == "" || s.Why == "" {
			t.Errorf("%+v", s)
		}
	}
}

// FuzzSpecialPaths looks for a spelling of a special path that is not recognized.
func FuzzSpecialPaths(f *testing.F) {
	for _, name := range []string{".git/hooks/x", "id.key.~1~", "#.netrc#", ".x.key.swp", ".aws.old/x-1", ".GIT/config", "a/.env", ".g\u200cit", "git~1/config", ".git::$DATA/config", "x.pem", "\uff0egit", ".env.example", "İ/ſ", "\xff/.git"} {
		f.Add(name, "sub")
	}
	f.Fuzz(func(t *testing.T, name, prefix string) {
		check := func(name string) [4]Care {
			var out [4]Care
			for i, find := range []func(string) (Special, bool){SpecialForChange, SpecialForMove, SpecialForRead, SpecialInside} {
				s, ok := find(name)
				if ok != (s.Care != "") {
					t.Fatalf("%q: %v and %+v", name, ok, s)
				}
				out[i] = s.Care
			}
			return out
		}
		sameOnAWalk(t, name)
		got := check(name)
		if got[0] == Closed && got[1] != Closed {
			t.Errorf("%q is closed and can be moved: %v", name, got)
		}
		// Case, directories above, and additional slashes make no difference.
		ascii := strings.Map(func(r rune) rune {
			if 'a' <= r && r <= 'z' {
				return r - 'a' + 'A'
			}
			return r
		}, name)
		if upper := check(ascii); upper != got && strings.ToValidUTF8(name, "") == name {
			t.Errorf("%q: %v, and %q: %v", name, got, ascii, upper)
		}
		if slashes := check("/" + strings.ReplaceAll(name, "/", "//") + "/"); slashes != got {
			t.Errorf("%q: %v, with more slashes %v", name, got, slashes)
		}
		deeper := check("/x/" + prefix + "/" + name)
		for i, care := range got {
			if care == Closed && deeper[i] != Closed || care != "" && deeper[i] == "" {
				t.Errorf("%q: %v, below %q %v", name, got, prefix, deeper)
			}
		}
		if len(PossibleRepositories(name, false)) > len(PossibleRepositories(name, true)) {
			t.Errorf("%q: fewer repositories for a move", name)
		}
	})
}

// A simple name is its own folded form.
func TestSimpleNamesAreFolded(t *testing.T) {
	if err := quick.Check(func(name string) bool { return !simple(name) || fold(name) == name }, nil); err != nil {
		t.Error(err)
	}
}
