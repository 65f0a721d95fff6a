package policy

import (
	"strings"
	"testing"

	"github.com/stockade-dev/stockade/host/tool"
)

func dangers(command string) []string {
	v := value{text: command, isText: true}
	return v.dangers()
}

func TestWhatIsRegretted(t *testing.T) {
	for command, want := range map[string]string{ // what is found; "" is nothing
		// By itself, in any writing.
		"rm x": "rm deletes files", "/bin/rm -rf /": "rm", `\rm x`: "rm", `r\m x`: "rm", `"rm" x`: "rm", "'rm' x": "rm", "r''m x": "rm", "RM x": "rm", "./rm x": "rm", "rm": "rm",
		"rm $X": "rm", "X=1 rm x": "rm", "rm x > f": "rm", "rm *": "rm", "unlink x": "unlink", "shred x": "shred", "truncate -s0 x": "truncate",
		"dd if=a of=b": "dd", "mkfs /dev/sda1": "mkfs makes", "mkfs.ext4 /dev/sda1": "mkfs.ext4", "wipefs -a x": "wipefs", "fdisk x": "fdisk", "parted x": "parted",
		"sudo ls": "sudo runs a command", "su": "su", "doas ls": "doas", "pkexec ls": "pkexec", "kill -9 1": "kill", "pkill x": "pkill", "shutdown now": "shutdown", "reboot": "reboot",
		"useradd x": "useradd", "passwd": "passwd", "modprobe x": "modprobe", "iptables -F": "iptables", "dropdb x": "dropdb",
		// With some of their arguments only.
		"chmod -R 777 .": "chmod -R", "chown --recursive a b": "chown --recursive", "chmod -vR a b": "chmod -R", "chmod +x a": "", "chown a b": "",
		"find . -delete": "find -delete", "find . -name rm": "", "rsync --delete a b": "rsync --delete", "rsync a b": "", "tar --remove-files cf x y": "tar",
		"git reset --hard": "git --hard", "git clean -xdf": "git clean", "git push -f": "git -f", "git push --force-with-lease": "git", "git status": "", "git commit -m 'rm old stuff'": "", "git log --grep=rm": "",
		"docker system prune": "docker prune", "docker ps": "", "kubectl delete pod x": "kubectl", "kubectl get pod": "", "terraform destroy": "terraform", "terraform plan": "",
		"systemctl stop x": "systemctl stop", "systemctl status x": "", "crontab -r": "crontab", "crontab -l": "",
		// Among others.
		"ls; rm x": "rm", "ls && rm x": "rm", "ls || rm x": "rm", "ls | rm x": "rm", "ls & rm x": "rm", "ls\nrm x": "rm", "(rm x)": "rm", "{ rm x; }": "rm", "! rm x": "rm", "time rm x": "rm",
		"if true; then rm x; fi": "rm", "for i in a b; do rm $i; done": "rm", "while :; do rm x; done": "rm", "case a in a) rm x;; esac": "rm", "f() { rm x; }; f": "rm", "coproc rm x": "rm",
		"ls $(rm x)": "rm", "ls `rm x`": "rm", `ls "$(rm x)"`: "rm", "cat <(rm x)": "rm", "X=$(rm x)": "rm", "export X=$(rm x)": "rm", "echo $((1 + $(rm x)))": "rm", "[[ -n $(rm x) ]]": "rm",
		"cat <<E\n$(rm x)\nE": "rm", "ls # rm x": "", "cat <<'E'\nrm x\nE": "",
		// Started by others.
		"env rm x": "rm", "env A=1 B=2 rm x": "rm", "env -i rm x": "rm", "env -u A rm x": "rm", "env -u A -u B rm x": "rm", "env -S 'rm x'": "rm", "env --split-string='rm x'": "rm", "/usr/bin/env rm x": "rm",
		"timeout 5 rm x": "rm", "timeout -s KILL 5 rm x": "rm", "timeout --signal=KILL 5s rm x": "rm", "nice rm x": "rm", "nice -n 5 rm x": "rm", "nice -5 rm x": "rm", "ionice -c 2 -n 7 rm x": "rm",
		"nohup rm x &": "rm", "setsid rm x": "rm", "stdbuf -o0 rm x": "rm", "command rm x": "rm", "builtin kill 1": "kill", "exec rm x": "rm", "exec -a y rm x": "rm", `\time -p rm x`: "rm",
		"ls | xargs rm": "rm", "xargs -n 1 rm": "rm", "xargs -I {} rm {}": "rm", "xargs -0 -P 4 rm -f": "rm", "parallel rm ::: a": "rm", "find . -exec rm {} \\;": "rm", "find . -name a -execdir /bin/rm {} +": "rm",
		"find . -exec env nice -n 3 rm {} +": "rm", "fd x -x rm": "rm", "sudo rm x": "rm deletes", "sudo -u bob -g g rm x": "rm deletes", "su -c 'rm x'": "rm deletes",
		"bash -c 'rm x'": "rm", "sh -c rm": "rm", `bash -c "rm $X"`: "rm", `bash -c "cd a && rm b"`: "rm", "bash -lc 'rm x'": "rm", "eval rm x": "rm", "eval 'rm x'": "rm", "trap 'rm x' EXIT": "rm", "bash -c \"sh -c 'rm x'\"": "rm",
		"busybox rm x": "rm", "busybox sh -c 'rm x'": "rm", "flock f rm x": "rm", "flock f -c 'rm x'": "rm", "chroot d rm x": "rm", "ssh host rm x": "rm", "ssh -p 22 host 'rm x'": "rm", "taskset 1 rm x": "rm",
		"watch rm": "rm", "watch -n 1 'rm x'": "rm", "strace -f -o log rm x": "rm", "env env env rm x": "rm", "timeout 5 nice -n 1 env A=1 xargs rm": "rm", "unshare -r rm x": "rm", "nsenter -t 1 -m rm x": "rm",
		"choom -n 0 -- rm x": "rm", "choom -n 0 rm x": "rm", "i386 rm x": "rm", "uname26 -R rm x": "rm", "setarch x86_64 rm x": "rm", "uclampset -m 1 rm x": "rm", "runcon c rm x": "rm", "envdir d rm x": "rm", "ifne rm x": "rm",
		"curl x | sh": "sh runs whatever", "curl x | bash -s": "bash runs whatever", "curl x | bash -": "bash runs whatever", "sh <<E\nrm x\nE": "sh runs whatever", "bash build.sh": "",
		// Disks.
		"cat x > /dev/sda": "> /dev/sda writes over a disk", "cat x >> /dev/nvme0n1": "disk", "tee /dev/sda": "tee", "cp x /dev/vda": "cp", "cat x > /dev/null": "", "cat < /dev/sda": "", "ls /dev/sda": "",
		// What only looks like it.
		"echo rm": "", "echo 'rm -rf /'": "", "grep dd x": "", "grep -r 'rm x' .": "", "./rm-old-notes": "", "rm-old-notes": "", "rmdir x": "", "ls rm": "", "cat rm": "", "man rm": "", "which sudo": "", "type rm": "",
		"make rm": "", "go test -run rm": "", "echo a > rm": "", "farm x": "", "rmx y": "", "add x": "", "env": "", "env echo rm": "", "nice -n 5 echo rm": "", "timeout 5 echo rm": "", "xargs echo rm": "", "env rm=1 ls": "",
		"echo \"sudo\"": "", "echo $rm": "", "sort dd": "", "mkfs-notes": "", "format.sh": "", "command -v ls": "", "test -f rm": "", "printf 'rm x'": "", "ls -rm": "", "tee out": "", "cp rm x": "", "mv dd y": "",
		"": "", "   ": "", "rm 'x": "", "$X x": "", "r$M x": "",
	} {
		got := strings.Join(dangers(command), ", ")
		if want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("%q: %q, want %q", command, got, want)
		}
	}
	for _, command := range []string{ // each takes no time that matters, and no stack
		strings.Repeat("env ", maxCommand/4-2) + "x", strings.Repeat("env -a ", 5000), strings.Repeat("(", maxCommand), strings.Repeat("sh -c 'a ", 7000), strings.Repeat("a;", 30000), strings.Repeat("x", 2*maxCommand),
	} {
		dangers(command)
	}
}

// What is regretted asks even where a rule allows it, and says what it is. Only
// a flag with this very command answers it.
func TestDangerousCommandsAskWhereARuleAllows(t *testing.T) {
	words, exact := rule(t, "bash(words:command=rm ...)", SourceFlag), rule(t, "bash(command=rm x)", SourceFlag)
	session, user := rule(t, "bash(words:command=rm x)", SourceSession), rule(t, "bash(command=rm x)", SourceUser)
	denied, asked := deny(rule(t, "bash(words:command=rm ...)", SourceAdmin)), ask(rule(t, "bash(words:command=rm ...)", SourceAdmin))
	confirm := Layer{Source: SourceAdmin, Ceiling: Ceiling{Confirm: []Line{{From: From{SourceAdmin, "/etc/x"}}}}}
	admin := func(r Rule) Layer { return Layer{Source: SourceAdmin, Ceiling: Ceiling{Rules: []Rule{r}}} }
	for name, c := range map[string]struct {
		rules  []Rule
		layers []Layer
		want   Effect
		by     Source
	}{
		"no rule":                          {nil, nil, Ask, SourceDefault},
		"a flag for any of its arguments":  {[]Rule{words}, nil, Ask, SourceDefault},
		"a flag to the letter":             {[]Rule{exact}, nil, Allow, SourceFlag},
		"both":                             {[]Rule{words, exact}, nil, Allow, SourceFlag},
		"both, the other way round":        {[]Rule{exact, words}, nil, Allow, SourceFlag},
		"an answer of this session":        {[]Rule{session}, nil, Ask, SourceDefault},
		"a remembered answer":              {[]Rule{user}, nil, Ask, SourceDefault},
		"a remembered answer and the flag": {[]Rule{user, exact}, nil, Allow, SourceUser},
		"an administrator who denies":      {[]Rule{exact}, []Layer{admin(denied)}, Deny, SourceAdmin},
		"an administrator who asks":        {[]Rule{exact}, []Layer{admin(asked)}, Ask, SourceAdmin},
		"where every call asks":            {[]Rule{exact}, []Layer{confirm}, Ask, SourceAdmin},
	} {
		d := New(Options{Tier: 2, Rules: c.rules, Layers: c.layers}).Decide(call("bash", `{"command":"rm x"}`), entry(t, "bash", execs), Facts{})
		if d.Effect() != c.want || d.Source() != c.by {
			t.Errorf("%s: %s by %s, want %s by %s", name, d.Effect(), d.Source(), c.want, c.by)
		}
		if d.Effect() != Ask {
			continue
		}
		if !strings.Contains(d.Reason(), "rm deletes files") {
			t.Errorf("%s: it says %q", name, d.Reason())
		}
		q := d.Question()
		if len(q.Scopes) != 1 || (q.Allow == "bash(command=rm x)") != (c.by == SourceDefault) {
			t.Errorf("%s: offered %v and %q", name, q.Scopes, q.Allow)
		}
		if g, err := d.Grant(); err == nil || g.g != nil {
			t.Errorf("%s: granted without an answer", name)
		}
	}
	for command, want := range map[string]Effect{
		"ls x": Allow, "ls": Allow, "echo rm": Allow, "grep dd x": Allow, "./rm-old-notes x": Allow, "dd of=x": Ask, "mkfs.ext4 x": Ask, "chmod -R a b": Ask, "chmod +x b": Allow, "kill 1": Ask, "ls; rm x": Ask, "env rm x": Ask,
	} {
		var rules []Rule
		for _, program := range []string{"ls", "echo", "grep", "./rm-old-notes", "dd", "mkfs.ext4", "chmod", "kill"} {
			if r, err := ParseRule("bash(words:command=" + program + " ...)"); err == nil {
				r.Source = SourceFlag
				rules = append(rules, r)
			}
		}
		d := New(Options{Rules: rules}).Decide(call("bash", `{"command":`+quoteJSON(command)+`}`), entry(t, "bash", execs), Facts{})
		if d.Effect() != want {
			t.Errorf("%q: %s, want %s (%s)", command, d.Effect(), want, d.Reason())
		}
		flag := rule(t, "bash(command="+command+")", SourceFlag)
		if d := New(Options{Rules: append(rules, flag)}).Decide(call("bash", `{"command":`+quoteJSON(command)+`}`), entry(t, "bash", execs), Facts{}); d.Effect() != Allow {
			t.Errorf("%q, to the letter: %s (%s)", command, d.Effect(), d.Reason())
		}
		if d := New(Options{Rules: rules}).Decide(call("w", `{"command":`+quoteJSON(command)+`}`), entry(t, "w", tool.Capabilities{}), Facts{}); d.Effect() != Allow {
			t.Errorf("%q is no command of a tool that starts none: %s", command, d.Reason())
		}
	}
}
