package jail

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stockade-dev/stockade/host/jail/probe"
	"github.com/stockade-dev/stockade/host/policy"
)

// The cases have the numbers of the threat model: S for the shell, and the cases of E
// (environment) and N (network) that are about commands.

// numbered is one case.
type numbered struct {
	id, title string
	probes    string // of TestAttacks, with commas
	tests     string // others that show it: of this package, or package.Test
	// command is a script of attacks, each of which prints what it got. {home} is
	// the user's, {outside} another directory, {programs} is mounted to be read,
	// {port} somebody listens on.
	command string
	// alone says that nothing of the command works without a jail either, or must
	// not be tried there.
	alone bool
}

const script = `try() { "$@" < /dev/null > /dev/null 2>&1 && echo "got: $*"; }
put() { { echo planted >> "$1"; } 2> /dev/null && echo "got: $1"; }
`

var cases = []numbered{
	{id: "S01", title: "what is left in the background", tests: "TestWhatACommandLeavesBehindDiesWithIt"},
	{id: "S02", title: "daemons, and who ignores signals", tests: "TestTheDeadlineEndsEverything"},
	{id: "S03", title: "our own end", tests: "TestKills"},
	{id: "S04", title: "a fork bomb", tests: "TestAForkBomb"},
	{id: "S05", title: "much memory, and full temporary files", tests: "TestLimits"},
	{id: "S06", title: "much output", tests: "TestMuchOutputDoesNotGrowMemory, TestOutputKeepsItsHeadAndItsTail"},
	{id: "S07", title: "programs that ask", tests: "TestStandardInputIsEmpty, TestThereIsNoTerminal", alone: true,
		command: `read -r line && echo got: $line; try bash -c ': < /dev/tty'; try ssh 127.0.0.1 true; try su -c true; git init -q r && cd r && try git commit --allow-empty`},
	{id: "S08", title: "change files outside", probes: "create, truncate, open and truncate, append, unlink, move in, move out, hard link, write through symlink",
		command: `put {outside}/secret; put {outside}/new; try rm {outside}/secret; try ln {outside}/secret hard`},
	{id: "S09", title: "change the attributes of files outside", probes: "chmod, utimes, setxattr"},
	{id: "S10", title: "read what is the user's", probes: "read, read through symlink",
		command: `for f in .ssh/id_rsa .aws/credentials .config/stockade/agent.toml .local/state/stockade/sessions.db .mozilla/cookies .netrc; do try cat {home}/$f; done
			try ls {home}/.ssh; try cat {outside}/secret; ln -s {home}/.ssh/id_rsa link; try cat link; try cat /etc/shadow`},
	{id: "S11", title: "what others run", tests: "TestSpecialPathsOfAWorkspace"},
	{id: "S12", title: "what others would run, exchanged", tests: "TestSpecialPathsOfAWorkspace"},
	{id: "S13", title: "what the user or the machine runs later",
		command: `put {home}/.bashrc; put {home}/.profile; put {home}/.local/bin/git; put {home}/.config/systemd/user/x.service; put {home}/.config/autostart/x.desktop`},
	{id: "S13", title: "what the machine runs later", alone: true,
		command: `for d in /etc/cron.d /etc/systemd/system /etc/profile.d /usr/local/bin /usr/bin /var/spool/cron; do put $d/stockade-test && rm $d/stockade-test; done`},
	{id: "S14", title: "networks", probes: "tcp, udp, mptcp, tcp fast open, tcp listen, vsock, packet socket, netlink, raw socket", tests: "seccomp.TestNoNetworkIsSaid"},
	{id: "S15", title: "programs for networks", command: `try bash -c ': < /dev/tcp/127.0.0.1/{port}'; try bash -c ': < /dev/udp/127.0.0.1/53'; try bash -c 'curl --noproxy "*" -m 5 telnet://127.0.0.1:{port}'`},
	{id: "S16", title: "sockets of other programs", probes: "unix socket, abstract socket"},
	{id: "S17", title: "other processes", probes: "signal victim, signal program, ptrace, process_vm_readv, pidfd_getfd, prlimit, setpriority, sched_setaffinity"},
	{id: "S18", title: "/proc of other processes", probes: "process root, process cwd, process fd, process mem, process environ, process cmdline",
		command: `for p in $PPID {pid}; do for f in root/ cwd/ fd/0 mem environ; do try head -c 1 /proc/$p/$f; done; try ls /proc/$p/root/; done; try ls {proc}/task`},
	{id: "S19", title: "parts of the kernel", probes: "io_uring, bpf, perf, userfaultfd, add_key, lease, directory notification, keys of others, mount table, inotify instances", tests: "seccomp.TestCalls"},
	{id: "S20", title: "namespaces and mounts", probes: "user namespace, mount in user namespace, mount, remount, chroot", tests: "seccomp.TestCalls",
		command: `try unshare -r true; try unshare -m true; try nsenter -t 1 -a true; try chroot / /bin/true; try mount -t tmpfs x .; try mount -o remount,rw /`, alone: true},
	{id: "S21", title: "other numbers of calls, and terminals", probes: "x32, TIOCSTI", tests: "seccomp.TestForeignCallsKill, seccomp.TestCalls", command: `try setarch -R true`},
	{id: "S22", title: "programs with more rights", probes: "set-uid program, su", command: `try sudo -n true; try pkexec true; cp /bin/true t; chmod u+s t 2> /dev/null; try [ -u t ]`},
	{id: "S23", title: "nodes in the workspace", probes: "device", command: `try mkfifo pipe; try mknod dev c 1 3`},
	{id: "S23", title: "a huge file", alone: true, command: `try truncate -s 17G huge`},
	{id: "S24", title: "programs and settings in the workspace", tests: "TestTheEnvironmentIsFixed, TestProgramsAreFoundInTheFixedPathOnly", alone: true,
		command: `for p in git ls bash python3; do printf '#!/bin/sh\necho got: %s\n' $p > $p; chmod +x $p; done; echo 'echo got: rc' | tee .bashrc .profile .bash_profile > .env.sh
			git --version; ls > /dev/null; bash -lc true; bash -ic true; env | grep -E 'PRELOAD|BASH_ENV|STARTUP|NODE_OPTIONS' && echo got: environment; true`},
	{id: "S25", title: "our own git", tests: "archtest.TestOnlyTheJailStartsProcesses"},
	{id: "S26", title: "our open files", tests: "TestTheParentsFilesAreNotPassedOn"},
	{id: "S27", title: "a set-up that fails", tests: "TestASetUpThatFailsRefuses, TestWhereNamespacesAreForbidden"},
	{id: "S28", title: "long and odd arguments", tests: "TestWhatAShellCanBeGiven"},
	{id: "S29", title: "the deadline", tests: "TestTheDeadlineEndsEverything"}, // of the monotonic clock: context.WithTimeout
	{id: "S30", title: "our own programs", command: `put {programs}/probe; try rm {programs}/probe; try mv {programs} away`},
	{id: "S30", title: "the helper", command: `for p in 1 $PPID; do put /proc/$p/exe; put /proc/$p/mem; put /proc/$p/comm; done`, alone: true},

	{id: "E02", title: "the environment", tests: "TestTheEnvironmentIsFixed"},
	{id: "E04", title: "the environment of others, and core dumps", probes: "process environ",
		command: `try grep -q {secret} /proc/[0-9]*/environ; ulimit -c unlimited 2> /dev/null && echo got: core dumps`},
	{id: "N12", title: "another proxy in the environment", tests: "egress.TestN12AProxiedCommandAndTheEnvironment"},
	{id: "N15", title: "data that leaves by the proxy", tests: "egress.TestN15DataThatACommandSends"},
	{id: "N19", title: "other protocols through the proxy", tests: "egress.TestN19WhatTheProxyDoesNotPassOn, egress.TestN19AServerThatChangesTheProtocol"},
}

// TestCases runs the commands of the cases in jails of the first kind and, with -all,
// of the last, where nothing may be got, and without a jail, where something has to be.
func TestCases(t *testing.T) {
	needHelper(t)
	asNobody(t)
	for _, c := range cases {
		if c.command == "" {
			continue
		}
		for _, k := range []mechanism{mechanisms[0], mechanisms[3], {description: "nothing"}} {
			if c.alone && k.tier == 0 || !*all && k == mechanisms[3] {
				continue
			}
			t.Run(fmt.Sprintf("%s, %s/tier %d", c.id, c.title, k.tier), func(t *testing.T) {
				got := got(t, k, c.command)
				if k.tier == 0 && got == "" {
					t.Error("even without a jail nothing is got")
				} else if k.tier > 0 && got != "" {
					t.Errorf("the command says\n%s", got)
				}
			})
		}
	}
}

// got runs a script of attacks, and returns its loot.
func got(t *testing.T, k mechanism, command string) string {
	base := shortDir(t)
	secret := "hunter-" + filepath.Base(base)
	t.Setenv("STOCKADE_TEST_SECRET", secret)
	for name, content := range map[string]string{
		"outside/secret": secret, "programs/probe": "program", "home/.ssh/id_rsa": secret, "home/.aws/credentials": secret,
		"home/.config/stockade/agent.toml": secret, "home/.local/state/stockade/sessions.db": secret, "home/.mozilla/cookies": secret,
		"home/.netrc": secret, "home/.bashrc": "", "home/.local/bin/git": "", "home/.config/systemd/user/x": "", "home/.config/autostart/x": "",
		"workspace/file": "",
	} {
		name = filepath.Join(base, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			c.Close()
		}
	}()
	command = strings.NewReplacer(
		"{home}", base+"/home", "{outside}", base+"/outside", "{programs}", base+"/programs", "{port}", port, "{secret}", secret,
		"{pid}", fmt.Sprint(os.Getpid()), "{proc}", fmt.Sprintf("/proc/%d", os.Getppid()),
	).Replace(command)

	j := New(Options{}) // whose commands have another home
	j.tiers = func() (Tiers, mechanism) { return Tiers{Tier: k.tier}, k }
	defer j.Close()
	before := tree(t, base)
	out := runIn(t, j, script+command+"\necho end", policy.Options{Mounts: []policy.Mount{{Host: base + "/workspace", Write: true}, {Host: base + "/programs"}}})
	if !strings.HasSuffix(string(out.Stdout), "end\n") {
		t.Errorf("it does not come to its end: %s", describe(out))
	}
	if after := tree(t, base); k.tier > 0 && !slices.Equal(before, after) {
		t.Errorf("the files outside were\n%q\nand are\n%q", before, after)
	}
	var found []string
	for line := range strings.Lines(string(out.Stdout)) {
		if strings.HasPrefix(line, "got:") {
			found = append(found, line)
		}
	}
	return strings.Join(found, "")
}

// tree lists the files below a directory, except for those of the workspace, with their
// content.
func tree(t *testing.T, base string) (all []string) {
	t.Helper()
	err := filepath.WalkDir(base, func(name string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() && d.Name() == "workspace" {
			return filepath.SkipDir
		}
		content, _ := os.ReadFile(name)
		all = append(all, fmt.Sprintf("%s %s %s", name, d.Type(), content))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestTheListOfCasesIsComplete checks the list against the numbers of the threat model, and
// checks that the named tests exist.
func TestTheListOfCasesIsComplete(t *testing.T) {
	var sources strings.Builder
	for _, pattern := range []string{"*_test.go", "seccomp/*_test.go", "../egress/*_test.go", "../internal/archtest/*_test.go"} {
		names, err := filepath.Glob(pattern)
		if err != nil || names == nil {
			t.Fatal(pattern, err)
		}
		for _, name := range names {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			sources.Write(text)
		}
	}
	seen := map[string]bool{}
	for _, c := range cases {
		seen[c.id] = true
		if c.probes == "" && c.tests == "" && c.command == "" {
			t.Errorf("nothing shows %s", c.id)
		}
		for name := range strings.SplitSeq(c.probes, ", ") {
			if name != "" && (!slices.Contains(probe.Attacks(), name) || slices.Contains(succeed(mechanisms[0]), name)) {
				t.Errorf("%s: no probe %q is stopped", c.id, name)
			}
		}
		for name := range strings.SplitSeq(c.tests, ", ") {
			name = name[strings.LastIndex(name, ".")+1:]
			if name != "" && !strings.Contains(sources.String(), "\nfunc "+name+"(") {
				t.Errorf("%s: there is no %s", c.id, name)
			}
		}
	}
	// What survives, what is bounded, and how a set-up fails are tests of their own.
	for i := range 30 {
		if id := fmt.Sprintf("S%02d", i+1); !seen[id] {
			t.Errorf("%s is missing, or is there and should not be", id)
		}
	}
}
