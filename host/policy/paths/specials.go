package paths

import "slices"

// gitDir is the usual name of the directory of a git repository.
const gitDir = ".git"

// The dangers of entries, for [Special.Why].
const (
	gitRuns      = "git runs what it names, as you"
	hgRuns       = "the program runs what it names, as you"
	governsTools = "it decides what tools may do"
	editorRuns   = "the editor can run what it says"
	agentRuns    = "an agent can run what it says"
	agentReads   = "agents do what it says"
	shellRuns    = "every new shell runs it"
	loginRuns    = "it is run when you log in"
	toolRuns     = "a tool that you use runs what it names"
	isKey        = "whoever has it can be you elsewhere"
	hasTokens    = "it can hold passwords and tokens"
	ofSystem     = "it holds passwords, keys or rights of this machine"
)

const foundByName = "a program that is found by its name"

// specials is the list of special paths. A pattern with a star at its beginning consists of
// one name. For the paths that are missing here see RATIONALE, "Why are some paths closed, and
// others asked about each time?"
var specials = slices.Concat(
	// Programs that git runs, and files that name them. A commit has to write the rest
	// of .git.
	group(Closed, "a git repository, or a pointer to one", gitRuns, gitDir),
	group(Closed, "git hooks", gitRuns, ".git/hooks/**"),
	group(Closed, "the git configuration of a repository", gitRuns, ".git/config"),
	group(Closed, "the git configuration of a worktree", gitRuns, ".git/config.worktree"),
	group(Closed, "a pointer to a git repository", gitRuns, ".git/commondir", ".git/gitdir"),
	group(Closed, "the git attributes of a repository", gitRuns, ".git/info/attributes"),
	group(Closed, "the remaining steps of a rebase", gitRuns, ".git/rebase-merge/**", ".git/rebase-apply/**"),
	group(Closed, "the remaining steps of a git command", gitRuns, ".git/sequencer/**"),
	group(Closed, "git hooks of a submodule", gitRuns, ".git/modules/**/hooks/**"),
	group(Closed, "the git configuration of a submodule", gitRuns, ".git/modules/**/config", ".git/modules/**/config.worktree"),
	group(Closed, "a pointer to a git repository", gitRuns, ".git/modules/**/commondir", ".git/modules/**/gitdir"),
	group(Closed, "the git attributes of a submodule", gitRuns, ".git/modules/**/info/attributes"),
	group(Closed, "the remaining steps of a rebase", gitRuns, ".git/modules/**/rebase-merge/**", ".git/modules/**/rebase-apply/**"),
	group(Closed, "the remaining steps of a git command", gitRuns, ".git/modules/**/sequencer/**"),
	group(Closed, "the remaining steps of a rebase", gitRuns, ".git/worktrees/*/rebase-merge/**", ".git/worktrees/*/rebase-apply/**"),
	group(Closed, "the remaining steps of a git command", gitRuns, ".git/worktrees/*/sequencer/**"),
	group(Closed, "the git configuration of a worktree", gitRuns, ".git/worktrees/*/config.worktree"),
	group(Closed, "a pointer to a git repository", gitRuns, ".git/worktrees/*/commondir", ".git/worktrees/*/gitdir"),
	group(Closed, "the list of submodules", "git gets and checks out what it names", ".gitmodules"),

	// The same for other version control systems.
	group(Closed, "the configuration of a Mercurial repository", hgRuns, ".hg/hgrc", ".hg/hgrc-not-shared"),
	group(Closed, "a pointer to a Mercurial repository", hgRuns, ".hg/sharedpath"),
	group(Closed, "the configuration of a Sapling repository", hgRuns, ".sl/config"),
	group(Closed, "the configuration of a Jujutsu repository", hgRuns, ".jj/repo/config.toml", ".jj/repo/workspace-config.toml"),

	// Our own, in any workspace.
	group(Closed, "our own configuration", governsTools, "agent.toml", "stockade.lock", ".stockade/**"),

	// A HEAD makes a directory a git repository, with hooks and configuration.
	group(Asked, "the file that makes a directory a git repository", gitRuns, headFile),
	group(Asked, "your git configuration", gitRuns, ".gitconfig", ".config/git/**"),
	group(Asked, "your Mercurial configuration", hgRuns, ".hgrc", ".config/hg/**"),
	group(Asked, "your Jujutsu configuration", hgRuns, ".jjconfig.toml", ".config/jj/**"),
	group(Asked, "your Subversion configuration", hgRuns, ".subversion/**"),
	group(Asked, "git hooks", gitRuns, ".husky/**", ".githooks/**", ".pre-commit-config.yaml", "lefthook.yml", ".lefthook.yml"),

	group(Asked, "editor configuration", editorRuns,
		".vscode/**", "*.code-workspace", ".idea/**", ".zed/**", ".fleet/**", ".helix/**", ".nova/**", ".vs/**", "*.sublime-project"),
	group(Asked, "the configuration of a container for development", editorRuns, ".devcontainer/**", ".devcontainer.json"),
	group(Asked, "editor configuration", editorRuns,
		".vimrc", ".exrc", ".nvimrc", ".nvim.lua", ".config/nvim/**", ".vim/**", ".gvimrc", ".lazy.lua", ".config/emacs/**", ".config/helix/**",
		".config/kak/**", ".config/zed/**", ".config/Code/**", ".config/Code - OSS/**", ".config/VSCodium/**", ".config/Cursor/**",
		".config/JetBrains/**", ".config/sublime-text/**", ".spacemacs", ".doom.d/**", ".emacs", ".emacs.d/**", ".dir-locals.el",
		".dir-locals-2.el"),

	group(Asked, "agent configuration", agentRuns,
		".mcp.json", ".cursor/**", ".codex/**", ".gemini/**", ".opencode/**", "opencode.json", ".continue/**", ".windsurf/**", ".roo/**",
		".kiro/**", ".amazonq/**", ".junie/**", ".qwen/**", ".trae/**", ".crush.json", "crush.json", ".config/opencode/**", ".config/goose/**",
		".aider.conf.yml"),
	group(Asked, "instructions for agents", agentReads,
		"AGENTS.md", "AGENTS.override.md", "AGENT.md", "CLAUDE.md", "CLAUDE.local.md", "GEMINI.md", "QWEN.md", ".cursorrules", ".windsurfrules", ".clinerules/**",
		".roorules", ".goosehints", ".github/copilot-instructions.md", ".github/instructions/**", ".github/prompts/**", ".github/agents/**",
		".github/chatmodes/**", ".rules"),
	// Not all of .claude: it also holds worktrees.
	group(Asked, "agent configuration", agentRuns,
		".claude.json", ".claude/settings*", ".claude/hooks/**", ".claude/rules/**", ".claude/commands/**", ".claude/agents/**", ".claude/skills/**",
		".claude/plugins/**"),

	group(Asked, "shell configuration", shellRuns,
		".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".bash_aliases", ".profile", ".zshrc", ".zshenv", ".zprofile", ".zlogin",
		".zlogout", ".kshrc", ".cshrc", ".tcshrc", ".login", ".bash_completion", ".local/share/bash-completion/**", ".inputrc", ".oh-my-zsh/**",
		".config/zsh/**", ".config/fish/**", ".config/nushell/**", ".config/powershell/**", ".config/starship.toml", ".cargo/env",
		"Microsoft.PowerShell_profile.ps1"),
	group(Asked, "terminal configuration", shellRuns,
		".tmux.conf", ".config/tmux/**", ".screenrc", ".wezterm.lua", ".config/wezterm/**", ".config/kitty/**", ".config/alacritty/**",
		".config/ghostty/**"),
	group(Asked, "commands that direnv runs in a directory", shellRuns, ".envrc"),
	group(Asked, "commands that rvm runs in a directory", shellRuns, ".rvmrc"),
	group(Asked, "commands that mise runs in a directory", shellRuns,
		"mise.toml", ".mise.toml", "mise.local.toml", ".mise.local.toml", "mise/config.toml", ".mise/**", ".config/mise/**"),
	group(Asked, "commands that direnv runs in a directory", shellRuns, ".config/direnv/**"),
	group(Asked, "a program of your session", loginRuns, ".xinitrc", ".xprofile", ".xsessionrc"),
	group(Asked, "the environment of your session", loginRuns, ".pam_environment"),
	group(Asked, "programs of your session", loginRuns, ".config/autostart/**"),
	group(Asked, "services of your session", loginRuns, ".config/systemd/**"),
	group(Asked, "the environment of your session", loginRuns, ".config/environment.d/**"),
	group(Asked, "programs of your session", loginRuns,
		".config/plasma-workspace/**", ".config/i3/**", ".i3/**", ".config/sway/**", ".config/hypr/**", ".config/awesome/**", ".config/bspwm/**",
		".config/sxhkd/**", ".config/openbox/**", ".config/qtile/**", ".config/xmonad/**", ".xmonad/**", ".config/herbstluftwm/**",
		".config/river/**", ".config/labwc/**", ".config/niri/**", ".config/wayfire.ini", ".config/leftwm/**", ".config/polybar/**",
		".config/waybar/**", ".fluxbox/**", ".fvwm/**", ".fvwm2rc", ".icewm/**", ".stumpwmrc", ".stumpwm.d/**", ".ratpoisonrc", ".twmrc",
		".xbindkeysrc", ".xbindkeysrc.scm", ".skhdrc", ".yabairc", ".config/skhd/**", ".config/yabai/**", ".hammerspoon/**"),
	group(Asked, "a program of your session", loginRuns, ".xsession"),
	group(Asked, "services of your session", loginRuns, ".local/share/systemd/**", ".local/share/dbus-1/**"),
	group(Asked, "a program of your menu", loginRuns, ".local/share/applications/**"),
	group(Asked, "services of your session", loginRuns, "LaunchAgents/**"),
	// For the bin of a home directory elsewhere see [HomeBin].
	group(Asked, foundByName, shellRuns,
		".local/bin/**", ".cargo/bin/**", "go/bin/**", "home/*/bin/**", "Users/*/bin/**", "root/bin/**", ".bun/bin/**", ".deno/bin/**",
		".dotnet/tools/**", ".volta/bin/**", ".pyenv/shims/**", ".rbenv/shims/**", ".nodenv/shims/**", ".jenv/shims/**", ".goenv/shims/**",
		".asdf/shims/**", ".local/share/mise/shims/**"),
	group(Asked, "scripts that choose the versions of programs", shellRuns, ".nvm/**", ".sdkman/**"),
	group(Asked, "a script of a virtual environment, for your shell", shellRuns, ".venv/bin/activate*", "venv/bin/activate*", ".venv/Scripts/activate*", "venv/Scripts/activate*"),
	group(Asked, "a filter that less runs", toolRuns, ".lessfilter"),
	group(Asked, "plugins of Docker", toolRuns, ".docker/cli-plugins/**"),
	group(Asked, "configuration or tokens of a forge", toolRuns, ".config/gh/**", ".config/glab-cli/**"),
	group(Asked, "the configuration of a build", toolRuns, ".bazelrc", "user.bazelrc", ".bazeliskrc"),
	group(Asked, "a program that Bazel starts", toolRuns, "tools/bazel"),
	group(Asked, "code that a tool runs first", toolRuns, ".pylintrc", "pylintrc", ".ycm_extra_conf.py"),
	group(Asked, "configuration or keys of ssh", toolRuns, ".ssh/**"),
	group(Asked, "configuration or keys of GnuPG", toolRuns, ".gnupg/**"),
	group(Asked, "configuration or keys of a cloud", toolRuns, ".aws/**"),
	group(Asked, "configuration or keys of a cluster", toolRuns, ".kube/config"),
	group(Asked, "configuration or passwords of registries", toolRuns, ".docker/config.json"),
	group(Asked, "programs for the types of files", toolRuns, ".mailcap"),
	group(Asked, "the forwarding of your mail", toolRuns, ".forward"),

	// Files that interpreters and debuggers run at their start, often from the working
	// directory.
	group(Asked, "code that an interpreter runs first", toolRuns, ".irbrc", ".pryrc", ".Rprofile"),
	group(Asked, "the environment of an interpreter", toolRuns, ".Renviron"),
	group(Asked, "code that an interpreter runs first", toolRuns, ".ghci", ".iex.exs", ".erlang", ".ocamlinit", ".octaverc", ".julia/config/startup.jl"),
	group(Asked, "commands that a debugger runs first", toolRuns, ".gdbinit", ".lldbinit", ".pdbrc"),
	group(Asked, "commands that a client of a database runs first", toolRuns, ".psqlrc", ".sqliterc"),

	group(Asked, "the configuration of a package manager", toolRuns, ".npmrc", ".yarnrc", ".yarnrc.yml"),
	group(Asked, "a program of a package manager", toolRuns, ".yarn/releases/**", ".yarn/plugins/**"),
	group(Asked, "a program that editors run", editorRuns, ".yarn/sdks/**"),
	group(Asked, "a program of a package manager", toolRuns, ".pnp.cjs", ".pnp.loader.mjs"),
	group(Asked, "the configuration of a package manager", toolRuns,
		".pnpmfile.cjs", ".pnpmfile.mjs", "bunfig.toml", ".bunfig.toml", ".mvn/**", ".m2/settings.xml", ".gradle/init.gradle",
		".gradle/init.gradle.kts", ".gradle/init.d/**", ".gradle/gradle.properties", ".bundle/config", ".gemrc", ".condarc", "pip.conf",
		".cargo/config", ".cargo/config.toml"),

	// Files that look like secrets by their names: no content is read. A backup of such
	// a file is one, too, see [component.original].
	group(Secret, "an environment file", hasTokens,
		".env", ".env.*", ".env~*", ".env-*", ".env_*", "env.local", "env.dev", "env.development", "env.staging", "env.prod", "env.production",
		"*.env", ".envrc", ".dev.vars"),

	group(Secret, "configuration or keys of ssh", isKey, ".ssh/**"),
	group(Secret, "keys of GnuPG", isKey, ".gnupg/**"),
	group(Secret, "a private key", isKey, "id_rsa*", "id_dsa*", "id_ecdsa*", "id_ed25519*"),
	group(Secret, "a key or certificate", isKey, "*.pem"),
	group(Secret, "a private key", isKey, "*.key", "*.p12", "*.pfx", "*.ppk"),
	group(Secret, "a store of keys", isKey, "*.jks", "*.keystore"),
	group(Secret, "a private key", isKey, "*.ovpn"),
	group(Secret, "a store of keys", isKey, "*.keytab"),
	group(Secret, "a store of passwords", isKey, "*.kdbx", ".local/share/keyrings/**", "Library/Keychains/**"),
	group(Secret, "passwords and cookies of a browser", isKey, ".mozilla/**", ".config/google-chrome/**", ".config/chromium/**"),
	group(Secret, "a store of passwords", isKey, ".password-store/**"),

	group(Secret, "the git configuration of a repository", hasTokens, ".git/config"),
	group(Secret, "the git configuration of a worktree", hasTokens, ".git/config.worktree", ".git/worktrees/*/config.worktree"),
	group(Secret, "the git configuration of a submodule", hasTokens, ".git/modules/**/config", ".git/modules/**/config.worktree"),
	group(Secret, "the configuration of a Mercurial repository", hasTokens, ".hg/hgrc"),
	group(Secret, "your Mercurial configuration", hasTokens, ".hgrc"),
	group(Secret, "passwords of git", hasTokens, ".config/git/credentials", ".git-credentials"),
	group(Secret, "passwords of servers", hasTokens, ".netrc", "_netrc"),
	group(Secret, "passwords of databases", hasTokens, ".pgpass", ".my.cnf"),
	group(Secret, "passwords of a server", hasTokens, ".htpasswd"),
	group(Secret, "the configuration of a package manager", hasTokens,
		".npmrc", ".yarnrc.yml", ".pypirc", "pip.conf", ".gem/credentials", ".cargo/credentials", ".cargo/credentials.toml",
		".composer/auth.json", ".m2/settings.xml", ".gradle/gradle.properties"),
	group(Secret, "passwords of registries", hasTokens, ".docker/config.json", ".dockercfg", ".dockerconfigjson"),
	group(Secret, "keys of a cluster", isKey, ".kube/config", "kubeconfig"),
	group(Secret, "keys of a cloud", isKey, ".aws/**", ".azure/**", ".config/gcloud/**"),
	group(Secret, "tokens of a forge", isKey, ".config/gh/**"),
	group(Secret, "keys of a cloud", isKey, "service-account*"),
	group(Secret, "the state of Terraform", hasTokens, "*.tfstate", "*.tfstate.backup"),
	group(Secret, "values for Terraform", hasTokens, "*.tfvars"),
	group(Secret, "tokens for Terraform", hasTokens, ".terraformrc"),
	group(Secret, "tokens for Terraform", isKey, ".terraform.d/credentials.tfrc.json"),
	group(Secret, "keys of a cloud", isKey, ".config/rclone/**", ".s3cfg", ".boto"),
	group(Secret, "tokens of a forge", isKey, ".config/glab-cli/**"),
	group(Secret, "passwords of registries", hasTokens, ".config/containers/auth.json"),
	group(Secret, "passwords of servers", hasTokens, ".smbcredentials"),
	group(Secret, "a token", isKey, ".vault-token"),
	group(Secret, "a file of credentials", isKey, "credentials.json"),
	group(Secret, "a file of secrets", hasTokens, "secrets.json", "secrets.toml", "secrets.yaml", "secrets.yml", ".secrets"),
	group(Secret, "tokens of an agent", isKey, ".codex/auth.json", ".gemini/oauth_creds.json", ".claude/.credentials.json"),
	group(Secret, "configuration of an agent", hasTokens, ".claude.json", ".mcp.json", "mcp.json"),
	group(Secret, "the history of a shell", hasTokens, ".bash_history", ".zsh_history", ".sh_history", "fish_history"),
	group(Secret, "the history of a client of a database", hasTokens, ".psql_history", ".mysql_history"),
	group(Secret, "the history of an interpreter", hasTokens, ".python_history", ".node_repl_history"),

	// Files of the system, also in an image of one.
	group(Secret, "passwords of accounts", ofSystem, "etc/shadow"),
	group(Secret, "passwords of groups", ofSystem, "etc/gshadow"),
	group(Secret, "passwords of accounts", ofSystem, "etc/master.passwd", "etc/spwd.db", "etc/security/opasswd"),
	group(Secret, "rights of accounts", ofSystem, "etc/sudoers", "etc/sudoers.d/**"),
	group(Secret, "a key of a server", ofSystem, "etc/ssh/ssh_host_*", "etc/ssl/private/**", "etc/pki/tls/private/**", "etc/letsencrypt/accounts/**"),
	group(Secret, "passwords of networks", ofSystem,
		"etc/NetworkManager/system-connections/**", "etc/netplan/**", "etc/wpa_supplicant/**", "wpa_supplicant.conf", "var/lib/iwd/**"),
	group(Secret, "keys of networks", ofSystem, "etc/wireguard/**", "etc/swanctl/private/**", "ipsec.secrets"),
	group(Secret, "passwords of networks", ofSystem, "chap-secrets", "pap-secrets"),
	group(Secret, "passwords of databases", ofSystem, "etc/mysql/debian.cnf"),
	group(Secret, "passwords of servers", ofSystem, "sasl_passwd", "etc/exim4/passwd.client", "sssd.conf", "var/lib/samba/private/**"),
	group(Secret, "keys of a cluster", ofSystem, "etc/kubernetes/**", "etc/rancher/**", "secrets/kubernetes.io/**"),
	group(Secret, "secrets of services", ofSystem, "etc/credstore/**"),
)

func group(care Care, what, why string, patterns ...string) []Special {
	out := make([]Special, len(patterns))
	for i, pattern := range patterns {
		out[i] = Special{pattern, care, what, why}
	}
	return out
}
