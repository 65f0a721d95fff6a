package command

import (
	"path"
	"slices"
	"strings"
	"sync"
)

// runners are programs that run commands or code which their arguments or a file next to them
// name, or load a library (ssh-keygen -D). A rule about one of them would allow everything, so
// no such rule is ever remembered. Some are builtins of bash that evaluate the subscript of a
// variable's name: test -v 'a[$(id)]'.
var runners = sync.OnceValue(func() map[string]bool {
	out := map[string]bool{}
	for name := range strings.FieldsSeq(`
		sh bash rbash dash ash zsh ksh mksh fish csh tcsh busybox toybox pwsh powershell cmd
		env command builtin exec eval source . time timeout nice ionice nohup setsid stdbuf chrt taskset numactl choom uclampset coresched pipesz enosys runcon
		xargs parallel find fd fdfind watch entr strace ltrace gdb lldb valgrind perf script expect unbuffer hyperfine rlwrap
		chronic ifne lckdo mispipe pee envdir envuidgid setuidgid setlock pgrphack fghack tini dumb-init catatonit gosu su-exec faketime eatmydata cgexec
		systemd-inhibit systemd-cat systemd-nspawn systemd-socket-activate run0 scriptlive slogin autossh sshpass mosh dbus-launch direnv fzf
		sudo doas su sg newgrp login getty agetty sulogin switch_root runuser pkexec chroot unshare nsenter setpriv capsh prlimit systemd-run start-stop-daemon run-parts flock at batch crontab
		bwrap firejail fakeroot proot dbus-run-session xvfb-run tmux screen ssh-agent chpst softlimit torsocks proxychains
		python pypy ipython perl ruby irb node nodejs ts-node tsx deno bun php lua luajit tclsh wish awk gawk mawk nawk sed ed ex vi vim nvim view emacs nano
		R Rscript julia ghc ghci runghc java jshell scala kotlin groovy erl elixir iex mix swift osascript dotnet mono go cargo rustc rustup
		guile racket sbcl clisp ocaml clojure swipl octave gnuplot m4 dc zig nim dart crystal
		git hg svn make gmake bmake cmake ninja meson just task rake gradle gradlew mvn mvnw ant bazel sbt lein npm npx yarn pnpm pip pipx pytest tox nox uv uvx poetry conda
		gem bundle rails composer phpunit rspec jest mocha eslint prettier vite webpack rollup tsc pre-commit docker podman kubectl helm terraform ansible vagrant nix nix-shell
		apt apt-get dpkg rpm yum dnf brew snap
		ssh-keygen ssh-add ssh-argv0 ssh-copy-id sshfs pkcs11-tool p11tool p11-kit modutil keytool jarsigner gpg gpgsm gpg-agent ar nm ranlib ldd sprof sotruss latrace
		sdiff diff3 patch pcregrep pcre2grep bsdtar exiftool convert magick gh glab jj
		ssh scp rsync sftp ftp telnet nc ncat socat curl wget tar cpio zip rg sort split tcpdump nmap openssl sqlite3 psql mysql mail mailx
		man less more most tee dd ld ld.so gcc g++ cc c++ clang clang++ tcc as tex latex pdflatex gs ip install systemctl
		trap export declare typeset local readonly let test printf read mapfile readarray unset wait getopts enable hash bind complete compgen fc alias
		stockade wasmtime wasmer`) {
		out[name] = true
	}
	for _, name := range personalities {
		out[name] = true
	}
	return out
})

// personalities are the names under which setarch is installed. Under each name it runs a
// command as on that machine.
var personalities = strings.Fields(`setarch linux32 linux64 uname26 i386 i486 i586 i686 athlon x86_64 x32 ppc ppc32 ppc64 ppcle ppc32le ppc64le ppc64iseries
	s390 s390x sparc sparc32 sparc32bash sparc64 mips mips32 mips64 arm aarch64 armv7l armv8l alpha parisc parisc32 parisc64 ia64 riscv32 riscv64 loongarch loongarch64`)

// RunsOthers reports whether the program of a command is an interpreter, a wrapper or another
// program that runs commands in its arguments: bash, env, timeout, python3.12, /usr/bin/git.
// It is also true for an empty command.
func RunsOthers(words []string) bool {
	if len(words) == 0 || words[0] == "" {
		return true
	}
	name := programName(words[0])
	if runners()[name] || words[0] != name && runners()[path.Base(words[0])] {
		return true
	}
	// The dynamic loader runs the program that it is given.
	if strings.HasPrefix(name, "ld-linux") || strings.HasPrefix(name, "ld-musl") {
		return true
	}
	// python3, python3.12, gcc-14, lua5.4
	return runners()[strings.TrimRight(name, "0123456789.-")]
}

// MayBeWritten reports whether the program is a file that may have been written into a
// workspace: a rule about it would also allow the next content of that file. Programs of the
// system have no directory in their names, or one of the system.
func MayBeWritten(program string) bool {
	if !strings.Contains(program, "/") {
		return false
	}
	clean := path.Clean(program)
	return !slices.ContainsFunc([]string{"/bin/", "/sbin/", "/usr/"}, func(dir string) bool { return strings.HasPrefix(clean, dir) })
}
