package paths

import "slices"

// gitDir is where git keeps a repository, usually.
const gitDir = ".git"

// Why entries are on the list.
const (
	gitRuns    = "git runs what it names, as you"
	hgRuns     = "the program runs what it names, as you"
	ours       = "it decides what tools may do"
	editorRuns = "the editor can run what it says"
	agentRuns  = "an agent can run what it says"
	agentReads = "agents do what it says"
	shellRuns  = "every new shell runs it"
	loginRuns  = "it is run when you log in"
	toolRuns   = "a tool that you use runs what it names"
	isKey      = "whoever has it can be you elsewhere"
	hasTokens  = "it can hold passwords and tokens"
	ofSystem   = "it holds passwords, keys or rights of this machine"
)

const foundByName = "a program that is found by its name"

// specials is the one list of paths that need care. A pattern with a star at
// its beginning has one name. For what is not here see RATIONALE, "Why are some
// paths closed, and others asked about each time?"
var specials = slices.Concat(
	// What git runs, or reads what to run from. The rest of .git is what a
	// commit has to write.
	those(Closed, "a git repository, or what leads to one", gitRuns, gitDir),
	those(Closed, "git hooks", gitRuns, ".git/hooks/**"),
	those(Closed, "the git configuration of a repository", gitRuns, ".git/config"),
	those(Closed, "the git configuration of a worktree", gitRuns, ".git/config.worktree"),
	those(Closed, "what leads to a git repository", gitRuns, ".git/commondir", ".git/gitdir"),
	those(Closed, "the git attributes of a repository", gitRuns, ".git/info/attributes"),
	those(Closed, "what git does next in a rebase", gitRuns, ".git/rebase-merge/**", ".git/rebase-apply/**"),
	those(Closed, "what git does next", gitRuns, ".git/sequencer/**"),
	those(Closed, "git hooks of a submodule", gitRuns, ".git/modules/**/hooks/**"),
	those(Closed, "the git configuration of a submodule", gitRuns, ".git/modules/**/config", ".git/modules/**/config.worktree"),
	those(Closed, "what leads to a git repository", gitRuns, ".git/modules/**/commondir", ".git/modules/**/gitdir"),
	those(Closed, "the git attributes of a submodule", gitRuns, ".git/modules/**/info/attributes"),
	those(Closed, "what git does next in a rebase", gitRuns, ".git/modules/**/rebase-merge/**", ".git/modules/**/rebase-apply/**"),
	those(Closed, "what git does next", gitRuns, ".git/modules/**/sequencer/**"),
	those(Closed, "what git does next in a rebase", gitRuns, ".git/worktrees/*/rebase-merge/**", ".git/worktrees/*/rebase-apply/**"),
	those(Closed, "what git does next", gitRuns, ".git/worktrees/*/sequencer/**"),
	those(Closed, "the git configuration of a worktree", gitRuns, ".git/worktrees/*/config.worktree"),
	those(Closed, "what leads to a git repository", gitRuns, ".git/worktrees/*/commondir", ".git/worktrees/*/gitdir"),
	those(Closed, "the list of submodules", "git gets and checks out what it names", ".gitmodules"),

	// The same of others that keep the history of files.
	those(Closed, "the configuration of a Mercurial repository", hgRuns, ".hg/hgrc", ".hg/hgrc-not-shared"),
	those(Closed, "what leads to a Mercurial repository", hgRuns, ".hg/sharedpath"),
	those(Closed, "the configuration of a Sapling repository", hgRuns, ".sl/config"),
	those(Closed, "the configuration of a Jujutsu repository", hgRuns, ".jj/repo/config.toml", ".jj/repo/workspace-config.toml"),

	// Our own, in any workspace.
	those(Closed, "our own configuration", ours, "agent.toml", "stockade.lock", ".stockade/**"),

	// With one, a directory is a git repository, with hooks and configuration.
	those(Asked, "what makes a directory a git repository", gitRuns, headFile),
	those(Asked, "your git configuration", gitRuns, ".gitconfig", ".config/git/**"),
	those(Asked, "your Mercurial configuration", hgRuns, ".hgrc", ".config/hg/**"),
	those(Asked, "your Jujutsu configuration", hgRuns, ".jjconfig.toml", ".config/jj/**"),
	those(Asked, "your Subversion configuration", hgRuns, ".subversion/**"),
	those(Asked, "git hooks", gitRuns, ".husky/**", ".githooks/**", ".pre-commit-config.yaml", "lefthook.yml", ".lefthook.yml"),

	those(Asked, "editor configuration", editorRuns,
		".vscode/**", "*.code-workspace", ".idea/**", ".zed/**", ".fleet/**", ".helix/**", ".nova/**", ".vs/**", "*.sublime-project"),
	those(Asked, "the configuration of a container for development", editorRuns, ".devcontainer/**", ".devcontainer.json"),
	those(Asked, "editor configuration", editorRuns,
		".vimrc", ".exrc", ".nvimrc", ".nvim.lua", ".config/nvim/**", ".vim/**", ".gvimrc", ".lazy.lua", ".config/emacs/**", ".config/helix/**",
		".config/kak/**", ".config/zed/**", ".config/Code/**", ".config/Code - OSS/**", ".config/VSCodium/**", ".config/Cursor/**",
		".config/JetBrains/**", ".config/sublime-text/**", ".spacemacs", ".doom.d/**", ".emacs", ".emacs.d/**", ".dir-locals.el",
		".dir-locals-2.el"),

	those(Asked, "agent configuration", agentRuns,
		".mcp.json", ".cursor/**", ".codex/**", ".gemini/**", ".opencode/**", "opencode.json", ".continue/**", ".windsurf/**", ".roo/**",
		".kiro/**", ".amazonq/**", ".junie/**", ".qwen/**", ".trae/**", ".crush.json", "crush.json", ".config/opencode/**", ".config/goose/**",
		".aider.conf.yml"),
	those(Asked, "instructions for agents", agentReads,
		"AGENTS.md", "AGENTS.override.md", "AGENT.md", "CLAUDE.md", "CLAUDE.local.md", "GEMINI.md", "QWEN.md", ".cursorrules", ".windsurfrules", ".clinerules/**",
		".roorules", ".goosehints", ".github/copilot-instructions.md", ".github/instructions/**", ".github/prompts/**", ".github/agents/**",
		".github/chatmodes/**", ".rules"),
	// Not all of it: worktrees are kept in there.
	those(Asked, "agent configuration", agentRuns,
		".claude.json", ".claude/settings*", ".claude/hooks/**", ".claude/rules/**", ".claude/commands/**", ".claude/agents/**", ".claude/skills/**",
		".claude/plugins/**"),

	those(Asked, "shell configuration", shellRuns,
		".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".bash_aliases", ".profile", ".zshrc", ".zshenv", ".zprofile", ".zlogin",
		".zlogout", ".kshrc", ".cshrc", ".tcshrc", ".login", ".bash_completion", ".local/share/bash-completion/**", ".inputrc", ".oh-my-zsh/**",
		".config/zsh/**", ".config/fish/**", ".config/nushell/**", ".config/powershell/**", ".config/starship.toml", ".cargo/env",
		"Microsoft.PowerShell_profile.ps1"),
	those(Asked, "terminal configuration", shellRuns,
		".tmux.conf", ".config/tmux/**", ".screenrc", ".wezterm.lua", ".config/wezterm/**", ".config/kitty/**", ".config/alacritty/**",
		".config/ghostty/**"),
	those(Asked, "what direnv runs in a directory", shellRuns, ".envrc"),
	those(Asked, "what rvm runs in a directory", shellRuns, ".rvmrc"),
	those(Asked, "what mise runs in a directory", shellRuns,
		"mise.toml", ".mise.toml", "mise.local.toml", ".mise.local.toml", "mise/config.toml", ".mise/**", ".config/mise/**"),
	those(Asked, "what direnv runs in a directory", shellRuns, ".config/direnv/**"),
	those(Asked, "a program of your session", loginRuns, ".xinitrc", ".xprofile", ".xsessionrc"),
	those(Asked, "the environment of your session", loginRuns, ".pam_environment"),
	those(Asked, "programs of your session", loginRuns, ".config/autostart/**"),
	those(Asked, "services of your session", loginRuns, ".config/systemd/**"),
	those(Asked, "the environment of your session", loginRuns, ".config/environment.d/**"),
	those(Asked, "programs of your session", loginRuns,
		".config/plasma-workspace/**", ".config/i3/**", ".i3/**", ".config/sway/**", ".config/hypr/**", ".config/awesome/**", ".config/bspwm/**",
		".config/sxhkd/**", ".config/openbox/**", ".config/qtile/**", ".config/xmonad/**", ".xmonad/**", ".config/herbstluftwm/**",
		".config/river/**", ".config/labwc/**", ".config/niri/**", ".config/wayfire.ini", ".config/leftwm/**", ".config/polybar/**",
		".config/waybar/**", ".fluxbox/**", ".fvwm/**", ".fvwm2rc", ".icewm/**", ".stumpwmrc", ".stumpwm.d/**", ".ratpoisonrc", ".twmrc",
		".xbindkeysrc", ".xbindkeysrc.scm", ".skhdrc", ".yabairc", ".config/skhd/**", ".config/yabai/**", ".hammerspoon/**"),
	those(Asked, "a program of your session", loginRuns, ".xsession"),
	those(Asked, "services of your session", loginRuns, ".local/share/systemd/**", ".local/share/dbus-1/**"),
	those(Asked, "a program of your menu", loginRuns, ".local/share/applications/**"),
	those(Asked, "services of your session", loginRuns, "LaunchAgents/**"),
	// For bin of a home that is elsewhere see [HomeBin].
	those(Asked, foundByName, shellRuns,
		".local/bin/**", ".cargo/bin/**", "go/bin/**", "home/*/bin/**", "Users/*/bin/**", "root/bin/**", ".bun/bin/**", ".deno/bin/**",
		".dotnet/tools/**", ".volta/bin/**", ".pyenv/shims/**", ".rbenv/shims/**", ".nodenv/shims/**", ".jenv/shims/**", ".goenv/shims/**",
		".asdf/shims/**", ".local/share/mise/shims/**"),
	those(Asked, "what chooses the versions of programs", shellRuns, ".nvm/**", ".sdkman/**"),
	those(Asked, "what a virtual environment runs in your shell", shellRuns, ".venv/bin/activate*", "venv/bin/activate*", ".venv/Scripts/activate*", "venv/Scripts/activate*"),
	those(Asked, "a filter that less runs", toolRuns, ".lessfilter"),
	those(Asked, "plugins of Docker", toolRuns, ".docker/cli-plugins/**"),
	those(Asked, "configuration or tokens of a forge", toolRuns, ".config/gh/**", ".config/glab-cli/**"),
	those(Asked, "the configuration of a build", toolRuns, ".bazelrc", "user.bazelrc", ".bazeliskrc"),
	those(Asked, "a program that Bazel starts", toolRuns, "tools/bazel"),
	those(Asked, "what a tool runs first", toolRuns, ".pylintrc", "pylintrc", ".ycm_extra_conf.py"),
	those(Asked, "configuration or keys of ssh", toolRuns, ".ssh/**"),
	those(Asked, "configuration or keys of GnuPG", toolRuns, ".gnupg/**"),
	those(Asked, "configuration or keys of a cloud", toolRuns, ".aws/**"),
	those(Asked, "configuration or keys of a cluster", toolRuns, ".kube/config"),
	those(Asked, "configuration or passwords of registries", toolRuns, ".docker/config.json"),
	those(Asked, "programs for the types of files", toolRuns, ".mailcap"),
	those(Asked, "what becomes of your mail", toolRuns, ".forward"),

	// What interpreters and debuggers run when they start, often from the
	// directory where that is.
	those(Asked, "what an interpreter runs first", toolRuns, ".irbrc", ".pryrc", ".Rprofile"),
	those(Asked, "the environment of an interpreter", toolRuns, ".Renviron"),
	those(Asked, "what an interpreter runs first", toolRuns, ".ghci", ".iex.exs", ".erlang", ".ocamlinit", ".octaverc", ".julia/config/startup.jl"),
	those(Asked, "what a debugger runs first", toolRuns, ".gdbinit", ".lldbinit", ".pdbrc"),
	those(Asked, "what a client of a database runs first", toolRuns, ".psqlrc", ".sqliterc"),

	those(Asked, "the configuration of a package manager", toolRuns, ".npmrc", ".yarnrc", ".yarnrc.yml"),
	those(Asked, "a program of a package manager", toolRuns, ".yarn/releases/**", ".yarn/plugins/**"),
	those(Asked, "a program that editors run", editorRuns, ".yarn/sdks/**"),
	those(Asked, "a program of a package manager", toolRuns, ".pnp.cjs", ".pnp.loader.mjs"),
	those(Asked, "the configuration of a package manager", toolRuns,
		".pnpmfile.cjs", ".pnpmfile.mjs", "bunfig.toml", ".bunfig.toml", ".mvn/**", ".m2/settings.xml", ".gradle/init.gradle",
		".gradle/init.gradle.kts", ".gradle/init.d/**", ".gradle/gradle.properties", ".bundle/config", ".gemrc", ".condarc", "pip.conf",
		".cargo/config", ".cargo/config.toml"),

	// What looks like a secret. The name is enough: nothing is looked into. What
	// looks like a backup of one is one, see [component.original].
	those(Secret, "an environment file", hasTokens,
		".env", ".env.*", ".env~*", ".env-*", ".env_*", "env.local", "env.dev", "env.development", "env.staging", "env.prod", "env.production",
		"*.env", ".envrc", ".dev.vars"),

	those(Secret, "configuration or keys of ssh", isKey, ".ssh/**"),
	those(Secret, "keys of GnuPG", isKey, ".gnupg/**"),
	those(Secret, "a private key", isKey, "id_rsa*", "id_dsa*", "id_ecdsa*", "id_ed25519*"),
	those(Secret, "a key or certificate", isKey, "*.pem"),
	those(Secret, "a private key", isKey, "*.key", "*.p12", "*.pfx", "*.ppk"),
	those(Secret, "a store of keys", isKey, "*.jks", "*.keystore"),
	those(Secret, "a private key", isKey, "*.ovpn"),
	those(Secret, "a store of keys", isKey, "*.keytab"),
	those(Secret, "a store of passwords", isKey, "*.kdbx", ".local/share/keyrings/**", "Library/Keychains/**"),
	those(Secret, "passwords and cookies of a browser", isKey, ".mozilla/**", ".config/google-chrome/**", ".config/chromium/**"),
	those(Secret, "a store of passwords", isKey, ".password-store/**"),

	those(Secret, "the git configuration of a repository", hasTokens, ".git/config"),
	those(Secret, "the git configuration of a worktree", hasTokens, ".git/config.worktree", ".git/worktrees/*/config.worktree"),
	those(Secret, "the git configuration of a submodule", hasTokens, ".git/modules/**/config", ".git/modules/**/config.worktree"),
	those(Secret, "the configuration of a Mercurial repository", hasTokens, ".hg/hgrc"),
	those(Secret, "your Mercurial configuration", hasTokens, ".hgrc"),
	those(Secret, "passwords of git", hasTokens, ".config/git/credentials", ".git-credentials"),
	those(Secret, "passwords of servers", hasTokens, ".netrc", "_netrc"),
	those(Secret, "passwords of databases", hasTokens, ".pgpass", ".my.cnf"),
	those(Secret, "passwords of a server", hasTokens, ".htpasswd"),
	those(Secret, "the configuration of a package manager", hasTokens,
		".npmrc", ".yarnrc.yml", ".pypirc", "pip.conf", ".gem/credentials", ".cargo/credentials", ".cargo/credentials.toml",
		".composer/auth.json", ".m2/settings.xml", ".gradle/gradle.properties"),
	those(Secret, "passwords of registries", hasTokens, ".docker/config.json", ".dockercfg", ".dockerconfigjson"),
	those(Secret, "keys of a cluster", isKey, ".kube/config", "kubeconfig"),
	those(Secret, "keys of a cloud", isKey, ".aws/**", ".azure/**", ".config/gcloud/**"),
	those(Secret, "tokens of a forge", isKey, ".config/gh/**"),
	those(Secret, "keys of a cloud", isKey, "service-account*"),
	those(Secret, "the state of Terraform", hasTokens, "*.tfstate", "*.tfstate.backup"),
	those(Secret, "values for Terraform", hasTokens, "*.tfvars"),
	those(Secret, "tokens for Terraform", hasTokens, ".terraformrc"),
	those(Secret, "tokens for Terraform", isKey, ".terraform.d/credentials.tfrc.json"),
	those(Secret, "keys of a cloud", isKey, ".config/rclone/**", ".s3cfg", ".boto"),
	those(Secret, "tokens of a forge", isKey, ".config/glab-cli/**"),
	those(Secret, "passwords of registries", hasTokens, ".config/containers/auth.json"),
	those(Secret, "passwords of servers", hasTokens, ".smbcredentials"),
	those(Secret, "a token", isKey, ".vault-token"),
	those(Secret, "a file of credentials", isKey, "credentials.json"),
	those(Secret, "a file of secrets", hasTokens, "secrets.json", "secrets.toml", "secrets.yaml", "secrets.yml", ".secrets"),
	those(Secret, "tokens of an agent", isKey, ".codex/auth.json", ".gemini/oauth_creds.json", ".claude/.credentials.json"),
	those(Secret, "configuration of an agent", hasTokens, ".claude.json", ".mcp.json", "mcp.json"),
	those(Secret, "what was typed in a shell", hasTokens, ".bash_history", ".zsh_history", ".sh_history", "fish_history"),
	those(Secret, "what was typed in a client of a database", hasTokens, ".psql_history", ".mysql_history"),
	those(Secret, "what was typed in an interpreter", hasTokens, ".python_history", ".node_repl_history"),

	// The system's own, also in an image of one.
	those(Secret, "passwords of accounts", ofSystem, "etc/shadow"),
	those(Secret, "passwords of groups", ofSystem, "etc/gshadow"),
	those(Secret, "passwords of accounts", ofSystem, "etc/master.passwd", "etc/spwd.db", "etc/security/opasswd"),
	those(Secret, "rights of accounts", ofSystem, "etc/sudoers", "etc/sudoers.d/**"),
	those(Secret, "a key of a server", ofSystem, "etc/ssh/ssh_host_*", "etc/ssl/private/**", "etc/pki/tls/private/**", "etc/letsencrypt/accounts/**"),
	those(Secret, "passwords of networks", ofSystem,
		"etc/NetworkManager/system-connections/**", "etc/netplan/**", "etc/wpa_supplicant/**", "wpa_supplicant.conf", "var/lib/iwd/**"),
	those(Secret, "keys of networks", ofSystem, "etc/wireguard/**", "etc/swanctl/private/**", "ipsec.secrets"),
	those(Secret, "passwords of networks", ofSystem, "chap-secrets", "pap-secrets"),
	those(Secret, "passwords of databases", ofSystem, "etc/mysql/debian.cnf"),
	those(Secret, "passwords of servers", ofSystem, "sasl_passwd", "etc/exim4/passwd.client", "sssd.conf", "var/lib/samba/private/**"),
	those(Secret, "keys of a cluster", ofSystem, "etc/kubernetes/**", "etc/rancher/**", "secrets/kubernetes.io/**"),
	those(Secret, "secrets of services", ofSystem, "etc/credstore/**"),
)

// those are paths that need the same care for the same reason.
func those(care Care, what, why string, patterns ...string) []Special {
	out := make([]Special, len(patterns))
	for i, pattern := range patterns {
		out[i] = Special{pattern, care, what, why}
	}
	return out
}
