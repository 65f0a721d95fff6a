package policy

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"mvdan.cc/sh/v3/syntax"
)

// commandLine is what a rule sees of a command: the simple commands in it, as
// words, and whether that is all there is to know.
type commandLine struct {
	commands [][]string // the words that are literal, up to the first that is not
	// literal: it is one simple command of literal words. Everything else
	// (expansion, substitution, redirection, glob, assignment, pipeline, list,
	// keyword) is not.
	literal bool
}

// plain: the command starts the program that it names and, as far as anybody
// can tell from here, no other.
func (c commandLine) plain() bool { return c.literal && !RunsOthers(c.commands[0]) }

// Of a longer command, or one with more brackets, nothing is known: the
// parser's stack grows with each of them.
const (
	maxCommand  = 64 << 10 // bytes
	maxBrackets = 1000
)

// unlike reports whether bash and the parser may read a command differently. A
// carriage return is a letter to bash, and a blank or nothing to the parser, so
// that a backslash before the end of a line of Windows continues it for one and
// not for the other. Bash uses some control characters as marks of its own.
func unlike(s string) bool {
	control := func(r rune) bool { return r < ' ' && r != '\n' && r != '\t' || r == 0x7f }
	return !utf8.ValidString(s) || strings.ContainsFunc(s, control)
}

// parseCommand reads a command as bash does.
func parseCommand(s string) commandLine {
	if words, ok := simpleWords(s); ok {
		return commandLine{[][]string{words}, true}
	}
	if len(s) > maxCommand || strings.Count(s, "(") > maxBrackets || unlike(s) {
		return commandLine{}
	}
	f, err := syntax.NewParser(syntax.Variant(syntax.LangBash), syntax.KeepComments(true)).Parse(strings.NewReader(s), "")
	if err != nil {
		return commandLine{}
	}
	var c commandLine
	syntax.Walk(f, func(n syntax.Node) bool {
		if call, ok := n.(*syntax.CallExpr); ok {
			if words, _ := literalWords(call.Args); len(words) > 0 {
				c.commands = append(c.commands, words)
			}
		}
		return true
	})
	if len(f.Stmts) != 1 || len(f.Last) > 0 {
		return c
	}
	st := f.Stmts[0]
	call, ok := st.Cmd.(*syntax.CallExpr)
	if !ok || st.Negated || st.Semicolon.IsValid() || st.Coprocess || len(st.Redirs) > 0 || len(st.Comments) > 0 || len(call.Assigns) > 0 {
		return c
	}
	words, all := literalWords(call.Args)
	c.literal = all && len(words) > 0
	return c
}

// simpleWords splits a command in which nothing has a meaning for bash, which
// most are. That it agrees with the parser is a fuzz test.
func simpleWords(s string) ([]string, bool) {
	for i := range len(s) {
		switch c := s[i]; {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9':
		case c == ' ', c == '-', c == '_', c == '.', c == '/', c == ',', c == ':':
		default:
			return nil, false
		}
	}
	words := strings.Fields(s)
	if len(words) == 0 || len(s) > maxCommand || slices.Contains(keywords, words[0]) {
		return nil, false
	}
	return words, true
}

// keywords begin something else than a simple command, or declare variables
// that a later command reads.
var keywords = []string{
	"if", "then", "else", "elif", "fi", "for", "while", "until", "do", "done", "case", "esac", "in", "select", "function",
	"time", "coproc", "declare", "local", "export", "readonly", "typeset", "nameref", "let",
}

// literalWords returns the words up to the first that bash would change, and
// whether that is all of them.
func literalWords(in []*syntax.Word) (words []string, all bool) {
	for _, w := range in {
		text, ok := literalWord(w)
		if !ok {
			return words, false
		}
		words = append(words, text)
	}
	return words, true
}

func literalWord(w *syntax.Word) (string, bool) {
	var b strings.Builder
	for i, part := range w.Parts {
		switch part := part.(type) {
		case *syntax.Lit:
			text, ok := unescape(part.Value, i == 0)
			if !ok {
				return "", false
			}
			b.WriteString(text)
		case *syntax.SglQuoted:
			if part.Dollar {
				return "", false
			}
			b.WriteString(part.Value)
		case *syntax.DblQuoted:
			if part.Dollar {
				return "", false
			}
			for _, p := range part.Parts {
				lit, ok := p.(*syntax.Lit)
				if !ok || strings.ContainsAny(lit.Value, "\\`$!") { // escapes differ within quotes: rare, so it asks
					return "", false
				}
				b.WriteString(lit.Value)
			}
		default:
			return "", false
		}
	}
	return b.String(), true
}

// unescape takes the backslashes out of an unquoted literal. It fails where
// bash would expand the word: a glob, a tilde, braces.
func unescape(s string, first bool) (string, bool) {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '\\':
			if i++; i == len(s) || s[i] == '\n' {
				return "", false
			}
			b.WriteByte(s[i])
		case strings.IndexByte("*?[]{}~!^", c) >= 0 && (c != '~' || first && i == 0 || strings.ContainsAny(s, ":=")):
			return "", false
		case strings.IndexByte("+@", c) >= 0 && strings.Contains(s, "("): // extended globs
			return "", false
		default:
			b.WriteByte(c)
		}
	}
	return b.String(), true
}

// runners are programs that run what their arguments or a file beside them say,
// or load it as a library: ssh-keygen -D.
// A rule about one of them would be a rule about everything, so none is ever
// remembered. Builtins of bash are among them that evaluate the subscript in the
// name of a variable: test -v 'a[$(id)]'.
var runners = map[string]bool{}

func init() {
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
		runners[name] = true
	}
	for _, name := range personalities {
		runners[name] = true
	}
}

// personalities are the names of setarch, by each of which it runs a command as
// on that machine.
var personalities = strings.Fields(`setarch linux32 linux64 uname26 i386 i486 i586 i686 athlon x86_64 x32 ppc ppc32 ppc64 ppcle ppc32le ppc64le ppc64iseries
	s390 s390x sparc sparc32 sparc32bash sparc64 mips mips32 mips64 arm aarch64 armv7l armv8l alpha parisc parisc32 parisc64 ia64 riscv32 riscv64 loongarch loongarch64`)

// RunsOthers reports whether the program of a command is an interpreter, a
// wrapper or another program that runs what its arguments name: bash, env,
// timeout, python3.12, /usr/bin/git. An empty command is one too.
func RunsOthers(words []string) bool {
	if len(words) == 0 || words[0] == "" {
		return true
	}
	name := programName(words[0])
	if runners[name] || words[0] != name && runners[path.Base(words[0])] {
		return true
	}
	// The dynamic loader runs the program that it is given.
	if strings.HasPrefix(name, "ld-linux") || strings.HasPrefix(name, "ld-musl") {
		return true
	}
	// python3, python3.12, gcc-14, lua5.4
	return runners[strings.TrimRight(name, "0123456789.-")]
}

// written reports whether the program is a file that somebody may have written
// into a workspace: a rule about it would hold for whatever is written there
// next. Programs of the system are named without a directory, or by one of its.
func written(program string) bool {
	if !strings.Contains(program, "/") {
		return false
	}
	clean := path.Clean(program)
	return !slices.ContainsFunc([]string{"/bin/", "/sbin/", "/usr/"}, func(dir string) bool { return strings.HasPrefix(clean, dir) })
}

// wordsPattern is a command of a rule: words to the letter, "*" for one word
// whatever it is, and a last "..." for any more of them. The program is always
// to the letter.
type wordsPattern struct {
	words   []string
	any     []bool // of each word
	more    bool
	literal int // how many words come before the first star
}

func parseWordsPattern(s string) (wordsPattern, error) {
	var p wordsPattern
	f, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(s), "")
	if err != nil || len(f.Stmts) != 1 || len(f.Last) > 0 || len(s) > maxPattern || unlike(s) {
		return p, fmt.Errorf("%.80q is not one command", s)
	}
	st := f.Stmts[0]
	call, ok := st.Cmd.(*syntax.CallExpr)
	if !ok || st.Negated || st.Semicolon.IsValid() || st.Coprocess || len(st.Redirs) > 0 || len(call.Assigns) > 0 {
		return p, fmt.Errorf("%.80q is more than a program and its arguments", s)
	}
	for i, w := range call.Args {
		if w.Lit() == "..." && i == len(call.Args)-1 && i > 0 {
			p.more = true
			break
		}
		isAny := w.Lit() == "*"
		text, ok := literalWord(w)
		if !ok && !isAny {
			return p, fmt.Errorf("%.80q: word %d is not literal; * stands for a whole word, ... at the end for any more", s, i+1)
		}
		p.words, p.any = append(p.words, text), append(p.any, isAny)
		if p.literal == i && !isAny {
			p.literal++
		}
	}
	if p.literal == 0 || p.words[0] == "" {
		return p, errors.New("a command begins with its program, to the letter")
	}
	return p, nil
}

// match reports whether the pattern is about these words. The program may
// stand there with or without its directory where that widens nothing.
func (p wordsPattern) match(words []string, base bool) bool {
	if len(words) < len(p.words) || len(words) > len(p.words) && !p.more {
		return false
	}
	for i, w := range p.words {
		switch {
		case p.any[i], words[i] == w:
		case i == 0 && base && path.Base(words[0]) == w:
		default:
			return false
		}
	}
	return true
}

// literalCommand is the condition that a command is exactly these words.
func literalCommand(arg string, words []string) (Condition, error) {
	quoted := make([]string, len(words))
	for i, w := range words {
		if w == "..." || w == "*" {
			quoted[i] = "'" + w + "'"
			continue
		}
		q, err := syntax.Quote(w, syntax.LangPOSIX)
		if err != nil {
			return Condition{}, fmt.Errorf("word %d of the command cannot be written down: %w", i+1, err)
		}
		quoted[i] = q
	}
	c, err := NewCondition(Words, arg, strings.Join(quoted, " "), false)
	if err == nil && !slices.Equal(c.words.words, words) {
		err = errors.New("the command cannot be written down as a rule")
	}
	return c, err
}
