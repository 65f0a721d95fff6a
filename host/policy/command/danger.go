package command

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"

	"mvdan.cc/sh/v3/syntax"
)

// Dangerous commands ask even if a rule allows them. This helps people who have allowed
// more than they meant; it protects nothing. An interpreter or a program of the
// workspace can do the same unseen. The jail is the protection.
//
// One answer still counts: --allow with the whole literal command, on the command line
// of this run. Its author has read this command.

// dangerousPrograms maps a program to its danger, as words that follow its name.
var dangerousPrograms = sync.OnceValue(func() map[string]string {
	out := map[string]string{}
	for danger, programs := range map[string]string{
		"deletes files":               "rm unlink srm wipe rimraf trash",
		"overwrites what is in files": "shred truncate",
		"writes over whole disks":     "dd badblocks blkdiscard hdparm",
		"makes, changes or removes file systems": "mkfs mke2fs mkswap newfs wipefs fdisk sfdisk cfdisk gdisk sgdisk parted diskutil format " +
			"cryptsetup lvremove vgremove pvremove mdadm zpool zfs mount umount swapoff resize2fs",
		"runs a command with the rights of another user": "sudo sudoedit doas su pkexec runuser run0",
		"ends other programs":                            "kill killall pkill skill xkill",
		"stops or restarts the machine":                  "shutdown reboot halt poweroff init telinit kexec",
		"changes the accounts of the machine":            "useradd userdel usermod groupadd groupdel groupmod adduser deluser passwd chpasswd visudo vipw chsh",
		"changes the kernel":                             "insmod rmmod modprobe sysctl",
		"changes the firewall":                           "iptables ip6tables nft ufw firewall-cmd pfctl",
		"removes a database":                             "dropdb dropuser",
	} {
		for name := range strings.FieldsSeq(programs) {
			out[name] = danger
		}
	}
	return out
})

// dangerousArguments holds programs that are dangerous only with certain arguments: one of
// these words or, for a short option, a bundle of options with it.
var dangerousArguments = sync.OnceValue(func() map[string][]dangerousArgument {
	out := map[string][]dangerousArgument{}
	for _, r := range []struct{ programs, words, danger string }{
		{"chmod chown chgrp setfacl chattr", "-R --recursive", "changes the rights of all files below"},
		{"find fd fdfind", "-delete", "deletes files"},
		{"rsync", "--delete --delete-before --delete-during --delete-after --delete-excluded --remove-source-files", "deletes files"},
		{"git", "clean", "deletes files"},
		{"git", "--hard", "drops changes"},
		{"git", "--force -f --force-with-lease --mirror --delete", "overwrites or deletes what is not in a commit of yours"},
		{"docker podman", "prune rm rmi", "deletes containers, images or their files"},
		{"kubectl oc", "delete drain", "deletes what a cluster runs"},
		{"terraform tofu pulumi", "destroy", "deletes what it has set up"},
		{"systemctl", "stop disable mask kill isolate poweroff reboot halt kexec", "stops services or the machine"},
		{"crontab", "-r", "deletes all scheduled commands"},
		{"tar", "--remove-files", "deletes files"},
	} {
		for name := range strings.FieldsSeq(r.programs) {
			for word := range strings.FieldsSeq(r.words) {
				out[name] = append(out[name], dangerousArgument{word, r.danger})
			}
		}
	}
	return out
})

type dangerousArgument struct{ word, danger string }

// wrappers are programs that start the command in their arguments. The value is the number of
// operands before this command.
var wrappers = sync.OnceValue(func() map[string]int {
	out := map[string]int{
		"timeout": 1, "taskset": 1, "chrt": 1, "flock": 1, "chroot": 1, "ssh": 1, "setarch": 1, "perf": 1,
		"runcon": 1, "envdir": 1, "envuidgid": 1, "setuidgid": 1, "setlock": 1, "faketime": 1,
	}
	for name := range strings.FieldsSeq(`env command builtin exec eval trap nohup nice ionice setsid stdbuf time xargs parallel watch entr strace ltrace
		valgrind gdb unbuffer script hyperfine rlwrap busybox toybox systemd-run unshare nsenter setpriv capsh prlimit choom uclampset coresched pipesz
		enosys chronic ifne systemd-inhibit systemd-cat eatmydata cgexec fakeroot firejail
		dbus-run-session xvfb-run torsocks proxychains start-stop-daemon sudo doas pkexec su runuser run0`) {
		out[name] = 0
	}
	for _, name := range slices.Concat(shells, personalities[1:]) {
		out[name] = 0
	}
	return out
})

// shells run the command in an argument or, without arguments, what comes into standard input.
var shells = strings.Fields("sh bash rbash dash ash zsh ksh mksh fish csh tcsh")

// Dangers returns the dangers of a command, each once, such as "rm deletes files". It finds
// none in a line that cannot be parsed.
func (l Line) Dangers() []string {
	var s dangerScan
	if l.Literal {
		s.command(l.Commands[0], maxWithin)
	} else {
		s.file(l.file, maxWithin)
	}
	return s.found
}

const (
	maxWithin = 4    // levels of commands in texts of commands that are checked; deeper ones are not
	maxScan   = 1000 // words of one command that are checked; further ones are not
)

// dangerScan collects the dangers of a command.
type dangerScan struct{ found []string }

func (s *dangerScan) add(program, danger string) {
	if words := fmt.Sprintf("%s %s", program, danger); !slices.Contains(s.found, words) {
		s.found = append(s.found, words)
	}
}

// file checks every command in a line of bash. within is the number of further levels of
// nested texts to check.
func (s *dangerScan) file(f *syntax.File, within int) {
	if f == nil {
		return
	}
	syntax.Walk(f, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.CallExpr:
			if len(n.Args) > 0 {
				s.command(roughWords(n.Args), within)
			}
		case *syntax.Redirect:
			if name := roughWord(n.Word); n.Op != syntax.RdrIn && isDisk(name) {
				s.add("> "+name, "writes over a disk")
			}
		}
		return true
	})
}

// command checks a program and the programs that it starts. The program of a wrapper is not
// always certain, because any option of the wrapper may take an argument: all candidates are
// checked.
func (s *dangerScan) command(words []string, within int) {
	words = words[:min(len(words), maxScan)]
	starts := make([]bool, len(words))
	starts[0] = true
	wrapped := false
	for at := range words {
		if wrapped && within > 0 {
			s.argument(words[at], within-1)
		}
		if !starts[at] {
			continue
		}
		name, args := programName(words[at]), words[at+1:]
		s.program(name, args)
		if before, ok := wrappers()[name]; ok {
			wrapped = true
			startsBehind(before, args, starts[at+1:])
		}
		for i := range args {
			if i > 0 && slices.Contains(finders, name) && slices.Contains(findersStart, args[i-1]) {
				starts[at+1+i] = true
			}
		}
	}
}

var (
	finders      = []string{"find", "fd", "fdfind"}
	findersStart = []string{"-exec", "-execdir", "-ok", "-okdir", "-x", "-X", "--exec", "--exec-batch"}
)

// startsBehind marks the arguments of a wrapper that may be the program it starts. before is
// the number of operands in front of that program.
func startsBehind(before int, args []string, starts []bool) {
	operands, options := 0, 0
	for i, w := range args {
		switch {
		case strings.HasPrefix(w, "-"):
			if !strings.Contains(w, "=") {
				options++
			}
		case strings.Contains(w, "="): // env takes assignments
		default:
			if operands >= before && operands <= before+options {
				starts[i] = true
			}
			operands++
		}
	}
}

// argument checks an argument of a wrapper that may itself be a command line.
func (s *dangerScan) argument(w string, within int) {
	if !strings.ContainsAny(w, " \t\n;|&") {
		return
	}
	if _, command, ok := strings.Cut(w, "="); ok && strings.HasPrefix(w, "--") { // --split-string=COMMAND
		w = command
	}
	s.file(parse(w), within)
}

func (s *dangerScan) program(name string, args []string) {
	danger, ok := dangerousPrograms()[name]
	if !ok && strings.HasPrefix(name, "mkfs.") {
		danger, ok = dangerousPrograms()["mkfs"], true
	}
	if ok {
		s.add(name, danger)
	}
	for _, r := range dangerousArguments()[name] {
		if slices.ContainsFunc(args, func(arg string) bool { return matchesWord(arg, r.word) }) {
			s.add(name+" "+r.word, r.danger)
		}
	}
	switch {
	case slices.Contains([]string{"tee", "cp", "mv"}, name) && slices.ContainsFunc(args, isDisk):
		s.add(name, "writes over a disk")
	case slices.Contains(shells, name) && !slices.ContainsFunc(args, func(arg string) bool { return !strings.HasPrefix(arg, "-") }):
		s.add(name, "runs whatever comes into its standard input")
	}
}

// matchesWord reports whether an argument is the word, or a bundle of short options with it.
func matchesWord(arg, word string) bool {
	bundle := len(word) == 2 && word[0] == '-' && len(arg) > 2 && arg[0] == '-' && arg[1] != '-'
	return arg == word || bundle && strings.Contains(arg, word[1:])
}

func isDisk(name string) bool {
	rest, ok := strings.CutPrefix(path.Clean(name), "/dev/")
	return ok && slices.ContainsFunc([]string{"sd", "hd", "vd", "xvd", "nvme", "mmcblk", "disk", "rdisk", "mapper/", "dm-", "md", "mem", "kmem"},
		func(prefix string) bool { return strings.HasPrefix(rest, prefix) })
}

func programName(word string) string {
	return strings.TrimSuffix(strings.ToLower(path.Base(word)), ".exe")
}

// roughWords returns the words as if every expansion resulted in "x".
func roughWords(in []*syntax.Word) []string {
	out := make([]string, len(in))
	for i, w := range in {
		out[i] = roughWord(w)
	}
	return out
}

func roughWord(w *syntax.Word) string {
	if w == nil {
		return ""
	}
	if text, ok := literalWord(w); ok {
		return text
	}
	var b strings.Builder
	rough(&b, w.Parts)
	return b.String()
}

func rough(b *strings.Builder, parts []syntax.WordPart) {
	for _, part := range parts {
		switch part := part.(type) {
		case *syntax.Lit:
			b.WriteString(strings.ReplaceAll(part.Value, `\`, ""))
		case *syntax.SglQuoted:
			b.WriteString(part.Value)
		case *syntax.DblQuoted:
			rough(b, part.Parts)
		default:
			b.WriteByte('x')
		}
	}
}
