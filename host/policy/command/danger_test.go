package command

import (
	"strings"
	"testing"
)

func TestWhatIsRegretted(t *testing.T) {
	for command, want := range map[string]string{ // what is found; "" is nothing
		// The program itself, in any spelling.
		"rm x": "rm deletes files", "/bin/rm -rf /": "rm", `\rm x`: "rm", `r\m x`: "rm", `"rm" x`: "rm", "'rm' x": "rm", "r''m x": "rm", "RM x": "rm", "./rm x": "rm", "rm": "rm",
		"rm $X": "rm", "X=1 rm x": "rm", "rm x > f": "rm", "rm *": "rm", "unlink x": "unlink", "shred x": "shred", "truncate -s0 x": "truncate",
		"dd if=a of=b": "dd", "mkfs /dev/sda1": "mkfs makes", "mkfs.ext4 /dev/sda1": "mkfs.ext4", "wipefs -a x": "wipefs", "fdisk x": "fdisk", "parted x": "parted",
		"sudo ls": "sudo runs a command", "su": "su", "doas ls": "doas", "pkexec ls": "pkexec", "kill -9 1": "kill", "pkill x": "pkill", "shutdown now": "shutdown", "reboot": "reboot",
		"useradd x": "useradd", "passwd": "passwd", "modprobe x": "modprobe", "iptables -F": "iptables", "dropdb x": "dropdb",
		// Programs with certain arguments.
		"chmod -R 777 .": "chmod -R", "chown --recursive a b": "chown --recursive", "chmod -vR a b": "chmod -R", "chmod +x a": "", "chown a b": "",
		"find . -delete": "find -delete", "find . -name rm": "", "rsync --delete a b": "rsync --delete", "rsync a b": "", "tar --remove-files cf x y": "tar",
		"git reset --hard": "git --hard", "git clean -xdf": "git clean", "git push -f": "git -f", "git push --force-with-lease": "git", "git status": "", "git commit -m 'rm old stuff'": "", "git log --grep=rm": "",
		"docker system prune": "docker prune", "docker ps": "", "kubectl delete pod x": "kubectl", "kubectl get pod": "", "terraform destroy": "terraform", "terraform plan": "",
		"systemctl stop x": "systemctl stop", "systemctl status x": "", "crontab -r": "crontab", "crontab -l": "",
		// Among other commands.
		"ls; rm x": "rm", "ls && rm x": "rm", "ls || rm x": "rm", "ls | rm x": "rm", "ls & rm x": "rm", "ls\nrm x": "rm", "(rm x)": "rm", "{ rm x; }": "rm", "! rm x": "rm", "time rm x": "rm",
		"if true; then rm x; fi": "rm", "for i in a b; do rm $i; done": "rm", "while :; do rm x; done": "rm", "case a in a) rm x;; esac": "rm", "f() { rm x; }; f": "rm", "coproc rm x": "rm",
		"ls $(rm x)": "rm", "ls `rm x`": "rm", `ls "$(rm x)"`: "rm", "cat <(rm x)": "rm", "X=$(rm x)": "rm", "export X=$(rm x)": "rm", "echo $((1 + $(rm x)))": "rm", "[[ -n $(rm x) ]]": "rm",
		"cat <<E\n$(rm x)\nE": "rm", "ls # rm x": "", "cat <<'E'\nrm x\nE": "",
		// Started by other programs.
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
		// Commands that only look dangerous.
		"echo rm": "", "echo 'rm -rf /'": "", "grep dd x": "", "grep -r 'rm x' .": "", "./rm-old-notes": "", "rm-old-notes": "", "rmdir x": "", "ls rm": "", "cat rm": "", "man rm": "", "which sudo": "", "type rm": "",
		"make rm": "", "go test -run rm": "", "echo a > rm": "", "farm x": "", "rmx y": "", "add x": "", "env": "", "env echo rm": "", "nice -n 5 echo rm": "", "timeout 5 echo rm": "", "xargs echo rm": "", "env rm=1 ls": "",
		"echo \"sudo\"": "", "echo $rm": "", "sort dd": "", "mkfs-notes": "", "format.sh": "", "command -v ls": "", "test -f rm": "", "printf 'rm x'": "", "ls -rm": "", "tee out": "", "cp rm x": "", "mv dd y": "",
		"": "", "   ": "", "rm 'x": "", "$X x": "", "r$M x": "",
	} {
		got := strings.Join(Parse(command).Dangers(), ", ")
		if want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("%q: %q, want %q", command, got, want)
		}
	}
	for _, command := range []string{ // each takes no time that matters, and no stack
		strings.Repeat("env ", maxCommand/4-2) + "x", strings.Repeat("env -a ", 5000), strings.Repeat("(", maxCommand), strings.Repeat("sh -c 'a ", 7000), strings.Repeat("a;", 30000), strings.Repeat("x", 2*maxCommand),
	} {
		Parse(command).Dangers()
	}
}
