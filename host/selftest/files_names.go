package selftest

import (
	"fmt"
	"os"
	"strings"

	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/tool"
)

// nameAttacks are on names that say one thing and mean another.
func nameAttacks() []fileAttack {
	const leads, odd = "a name that leads outside", "a name that is none"
	return []fileAttack{
		{name: "dotdot-read", tries: "Read a file beside the workspace by a name with \"..\".", by: leads, build: func(x *onMount) {
			for _, n := range dotdots {
				x.reads(n, outside)
			}
		}},
		{name: "dotdot-create", tries: "Make a file and a directory beside the workspace by a name with \"..\".", by: leads, build: func(x *onMount) {
			for _, n := range dotdots {
				x.writes(n, oTruncate, outside)
			}
			x.writes("ws/../out/made", oCreate, outside)
			x.want(x.mkdir(x.in("ws/../out/made")), "mkdir ws/../out/made", outside)
		}},
		{name: "dotdot-rename", tries: "Move a file out of the workspace, and one in.", by: leads, build: func(x *onMount) {
			x.want(x.rename(x.in("ws/inside"), x.in("ws/../out/moved")), "move a file out", outside, "EPERM EROFS", outside)
			x.want(x.rename(x.in("ws/../out/secret"), x.in("ws/moved")), "move a file in", outside)
			x.want(x.rename(x.in("ws/d"), x.in("ws/../out/dir")), "move a directory out", outside, "EPERM EROFS", outside)
		}},
		{name: "dotdot-remove", tries: "Remove what lies beside the workspace.", by: leads, build: func(x *onMount) {
			x.want(x.unlink(x.in("ws/../out/secret")), "unlink ws/../out/secret", outside)
			x.want(x.rmdir(x.in("ws/../out/dir")), "rmdir ws/../out/dir", outside)
		}},
		{name: "dotdot-beyond-root", tries: "Climb above the root with more \"..\" than there are directories.", by: leads, build: func(x *onMount) {
			x.readsAt(x.at(strings.Repeat("../", 64)+x.guest("out/secret")), "open ../../...", outside)
			x.want(x.stat(x.at(".."), followLinks), "stat ..", outside)
		}},
		{name: "dotdot-from-directory", tries: "Open the workspace as a directory and climb out of that.", by: leads, build: func(x *onMount) {
			d := x.openDir(x.in("ws"))
			x.want(d.call, "open the workspace", "ok", "ok", outside)
			own, _ := x.read(x.open(place{d.fd, x.text("inside")}, 0, mayRead, 0).fd, 4)
			x.want(own, "read a file below it", "ok", "ok", "EBADF")
			for _, n := range []string{"../out/secret", "./../out/secret", "d/../../out/secret", "./.."} {
				x.readsAt(place{d.fd, x.text(n)}, "open "+n+" from the workspace", outside, outside, "EBADF")
			}
			x.want(x.mkdir(place{d.fd, x.text("../out/made")}), "mkdir ../out/made", outside, outside, "EBADF")
		}},
		{name: "absolute-path", tries: "Read files of the system and of the user by their absolute names.", by: leads, build: func(x *onMount) {
			for _, n := range []string{"/etc/passwd", "//etc/passwd", "etc/passwd", "/proc/self/environ", "/dev/zero", "/" + x.guest("out/secret")} {
				x.readsAt(x.at(n), "read "+n, outside)
				x.want(x.open(x.at(n), 0, mayRead|mayWrite, 0).call, "open for writing "+n, outside)
			}
			x.writesAt(x.at("/"+x.guest("out/made")), oCreate, "make a file by its absolute name", outside)
			d := x.openDir(x.in("else"))
			x.readsAt(place{d.fd, x.text("/" + x.guest("out/secret"))}, "an absolute name from a directory", outside)
		}},
		{name: "sibling-prefix", tries: "Read a directory whose name begins with that of the workspace.", by: leads, build: func(x *onMount) {
			x.reads("ws2/secret", outside)
			x.reads("ws/../ws2/secret", outside)
		}},
		{name: "existence-oracle", tries: "Find out by the answer whether a file outside exists.", by: "the same answer for both", same: true, build: func(x *onMount) {
			x.want(x.stat(x.in("out/secret"), followLinks), "stat out/secret", outside)
			x.want(x.stat(x.in("out/none"), followLinks), "stat out/none", outside)
		}},
		{name: "listed-above", tries: "List the directory above the workspace, and read what another session has there.", by: leads, build: func(x *onMount) {
			x.plant(os.Mkdir(x.host("out/stockade-session"), 0o700), x.write("out/stockade-session/notes", x.canary))
			x.reads("out/stockade-session/notes", outside)
			x.opens("out", oDirectory, mayList, 0, "list", outside)
			x.writes("made", oCreate, outside)
			// What leads to a mount can be listed, and shows nothing else.
			up := x.open(x.in("."), oDirectory, mayList, 0)
			x.want(up.call, "open the directory above", "ok")
			entries, used := x.room(512), x.room(4)
			x.want(x.add("fd_readdir", up.fd, entries.at, entries.n, int64(0), used.at), "list the directory above", "ok")
			x.finally(func(r report) error {
				names := string(r.span(entries)[:min(r.u32(used.at), entries.n)])
				for _, n := range []string{"out", "ws2", "secret"} {
					if strings.Contains(names, n) {
						return fmt.Errorf("the guest sees %s", n)
					}
				}
				if strings.Contains(names, "ws") == (x.kind == absent) || !strings.Contains(names, "else") {
					return fmt.Errorf("the guest does not see what is mounted, or more: %q", names)
				}
				return nil
			})
		}},
		{name: "name-with-nul", tries: "Cut a name short with a NUL byte.", by: odd, build: func(x *onMount) {
			for _, n := range []string{"ws/inside\x00", "ws/inside\x00/x", "ws/made\x00.txt", "\x00", "ws/../out/secret\x00"} {
				x.reads(n, "EINVAL")
				x.writes(n, oCreate, "EINVAL")
			}
			x.want(x.rename(x.in("ws/inside"), x.in("ws/\x00")), "rename to NUL", "EINVAL", "EINVAL EROFS", "EINVAL EPERM")
		}},
		{name: "name-not-utf8", tries: "Use names that are not UTF-8.", by: odd, build: func(x *onMount) {
			for _, n := range []string{"ws/\xff\xfe", "ws/\xc0\xae\xc0\xae/out/secret", "ws/\xed\xa0\x80"} {
				x.reads(n, "EILSEQ")
				x.writes(n, oCreate, "EILSEQ")
			}
		}},
		{name: "name-of-windows", tries: "Leave the workspace by the separators and devices of Windows.", by: "no such file", build: func(x *onMount) {
			for _, n := range []string{
				`..\out\secret`, `d\..\..\out\secret`, `C:\out`, `C:out`, `\\?\C:\out`, `\\srv\share\x`, `\\.\PhysicalDrive0`, "NUL", "CON", "COM1.txt",
				"inside:stream", "inside::$DATA", "inside.", "inside ", "inside. ", "d./deep", "d /deep",
			} {
				x.reads("ws/"+n, "ENOENT", "ENOENT", outside)
			}
			// To make one is to make a file of this odd name, or nothing.
			x.may("ws")
			for _, n := range []string{`ws/..\out\made`, "ws/made:stream"} {
				x.writes(n, oCreate, "ok EINVAL ENOENT EPERM", "EROFS", outside)
			}
			x.holds("out/made", "-")
			x.holds("ws/made", "-")
		}},
		{name: "name-odd", tries: "Use empty names, files as directories, and directories as files.", by: odd, build: func(x *onMount) {
			x.want(x.stat(x.at(""), followLinks), "the empty name", "EINVAL")
			x.readsAt(x.at(""), "open the empty name", "EINVAL")
			x.want(x.rename(x.in("ws/inside"), x.at("")), "rename to the empty name", "EINVAL", "EINVAL EROFS", "EINVAL EPERM")
			x.reads("ws/inside/", "ENOTDIR", "ENOTDIR", outside)
			x.reads("ws/inside/../../out/secret", "EPERM ENOTDIR", "EPERM ENOTDIR", outside)
			x.writes("ws/d", 0, "EISDIR", "EISDIR EROFS", outside)
			x.want(x.unlink(x.in("ws/d")), "unlink ws/d", "EISDIR", "EISDIR EROFS", outside)
			x.want(x.rmdir(x.in("ws/inside")), "rmdir ws/inside", "ENOTDIR", "ENOTDIR EROFS", outside)
			x.want(x.mkdir(x.in("ws/.")), "mkdir .", "EEXIST", "EEXIST EROFS", outside)
			x.want(x.rmdir(x.in("ws/.")), "rmdir .", "EINVAL EPERM EBUSY", "EINVAL EPERM EROFS EBUSY", outside)
			x.want(x.unlink(x.in("ws/./.")), "unlink ./.", "EISDIR EPERM", "EISDIR EROFS EPERM", outside)
			x.want(x.stat(x.at("./././."), followLinks), "dots only", "ok")
		}},
		{name: "name-too-long", tries: "Use a name of 300 and a path of 9000 bytes.", by: "a name that is too long", build: func(x *onMount) {
			x.may("ws")
			x.writes("ws/"+strings.Repeat("x", 255), oCreate, "ok ENAMETOOLONG", "EROFS", outside)
			for _, n := range []int{256, 300} {
				x.writes("ws/"+strings.Repeat("x", n), oCreate, "ENAMETOOLONG", "ENAMETOOLONG EROFS", outside)
			}
			x.reads("ws/"+strings.Repeat("x/../", 1800)+"inside", "ENAMETOOLONG")
			x.reads("ws/"+strings.Repeat("x/../", 1800)+"../out/secret", "ENAMETOOLONG")
			x.reads("ws/"+strings.Repeat("d/../", 700)+"inside", "ok", "ok", outside)
		}},
	}
}

// dotdots are names of the file outside.
var dotdots = []string{"ws/../out/secret", "ws/d/../../out/secret", "ws/none/../../out/secret", "ws//d//..//..//out///secret", "ws/./../out/./secret"}

// closedAttacks are on what is masked, and on what no tool changes or reads.
func closedAttacks() []fileAttack {
	const masked, closed = "masked", "a path that no tool changes"
	own := []string{"ws/.config/stockade", "ws/.local/share/stockade", "ws/.cache/stockade"} // the last is not there
	mask := func(x *onMount, names ...string) {
		for _, n := range names {
			x.grant.Masked = append(x.grant.Masked, x.host(n))
		}
	}
	plant := func(x *onMount) {
		for _, m := range own[:2] {
			x.plant(os.MkdirAll(x.host(m), 0o700), x.write(m+"/agent.toml", x.canary))
		}
		x.plant(os.Mkdir(x.host("ws/.cache"), 0o700))
		mask(x, own...)
	}
	const changed = "EPERM EROFS"
	return []fileAttack{
		{name: "git-hook-planted", tries: "Make a git hook, git configuration and the steps of a rebase, also by another name, and in a repository of another name.", by: closed, build: func(x *onMount) {
			x.plant(os.MkdirAll(x.host("ws/.git/hooks"), 0o700), x.write("ws/.git/config", "[core]"), x.link(".git", "ws/l"),
				os.MkdirAll(x.host("ws/bare/rebase-apply"), 0o700), os.Mkdir(x.host("ws/.git/rebase-merge"), 0o700),
				x.write("ws/bare/HEAD", "ref: refs/heads/main"), x.write("ws/bare/config", "[core]"))
			x.seesLink("ws/l")
			for _, n := range []string{".git/hooks/pre-commit", ".GIT/hooks/pre-commit", "l/hooks/pre-commit", "d/.git", ".gitmodules", "bare/config", ".git/rebase-merge/git-rebase-todo", "bare/rebase-apply/next"} {
				x.writes("ws/"+n, oCreate, outside, changed, outside)
			}
			x.want(x.mkdir(x.in("ws/d/.git")), "mkdir ws/d/.git", outside, changed, outside)
			x.want(x.mkdir(x.in("ws/.git/sequencer")), "mkdir ws/.git/sequencer", outside, changed, outside)
			x.want(x.rename(x.in("ws/inside"), x.in("ws/.git/hooks/pre-commit")), "move a file to a hook", outside, changed, outside)
			x.want(x.rename(x.in("ws/.git"), x.in("ws/moved")), "move ws/.git away", outside, changed, outside)
			x.want(x.unlink(x.in("ws/.git/config")), "unlink ws/.git/config", outside, changed, outside)
		}},
		{name: "own-configuration-planted", tries: "Make our own configuration in the workspace, where there is none.", by: closed, build: func(x *onMount) {
			for _, n := range []string{"agent.toml", "Agent.TOML", "d/agent.toml"} {
				x.writes("ws/"+n, oCreate, outside, changed, outside)
				x.want(x.rename(x.in("ws/inside"), x.in("ws/"+n)), "move a file to ws/"+n, outside, changed, outside)
			}
			x.want(x.mkdir(x.in("ws/.stockade")), "mkdir ws/.stockade", outside, changed, outside)
			x.want(x.rename(x.in("ws/d"), x.in("ws/.stockade")), "move a directory to ws/.stockade", outside, changed, outside)
		}},
		{name: "secret-file-read", tries: "Read files of the workspace that look like secrets, also through a symbolic link and by another name.", by: "a file that looks like a secret", build: func(x *onMount) {
			x.plant(x.write("ws/.env", x.canary), x.write("ws/d/id_rsa", x.canary), x.write("ws/d/x.key.bak", x.canary), x.link("../.env", "ws/d/l"))
			x.seesLink("ws/d/l")
			for _, n := range []string{"ws/.env", "ws/d/id_rsa", "ws/d/x.key.bak", "ws/d/l"} {
				x.reads(n, outside)
			}
			x.want(x.rename(x.in("ws/.env"), x.in("ws/moved")), "move ws/.env", outside, changed, outside)
			x.reads("ws/moved", "ENOENT", "ENOENT", outside)
		}},
		{name: "masked-read", tries: "Read the program's own configuration where the workspace holds it.", by: masked, build: func(x *onMount) {
			plant(x)
			for _, m := range own[:2] {
				x.reads(m+"/agent.toml", outside)
				x.opens(m, oDirectory, mayList, 0, "list", outside)
			}
			x.reads("ws/d/../.config/stockade/agent.toml", outside)
			x.reads("ws/.CONFIG/Stockade/agent.toml", "EPERM ENOENT", "EPERM ENOENT", outside)
		}},
		{name: "masked-write", tries: "Change, replace and plant the program's own configuration and cache.", by: masked, build: func(x *onMount) {
			plant(x)
			for _, m := range own[:2] {
				x.writes(m+"/agent.toml", 0, outside, changed, outside)
				x.writes(m+"/agent.toml", oTruncate, outside, changed, outside)
				x.writes(m+"/trust.key", oCreate, outside, changed, outside)
				x.want(x.unlink(x.in(m+"/agent.toml")), "unlink "+m, outside, changed, outside)
			}
			x.want(x.mkdir(x.in(own[2])), "make what is masked", outside, changed, outside)
			x.want(x.rename(x.in("ws/d"), x.in(own[2])), "move a directory there", outside, changed, outside)
		}},
		{name: "masked-moved", tries: "Move away the directory that holds what is masked.", by: masked, build: func(x *onMount) {
			plant(x)
			for _, m := range own[:2] {
				x.want(x.rename(x.in(m), x.in("ws/moved")), "move "+m, outside, changed, outside)
				x.want(x.rename(x.in(m[:strings.LastIndexByte(m, '/')]), x.in("ws/moved")), "move what holds "+m, outside, changed, outside)
				x.reads("ws/moved/stockade/agent.toml", "ENOENT", "ENOENT", outside)
				x.reads("ws/moved/agent.toml", "ENOENT", "ENOENT", outside)
			}
		}},
		{name: "masked-link", tries: "Reach what is masked through a symbolic link inside the workspace.", by: masked, build: func(x *onMount) {
			plant(x)
			x.plant(x.link(".config/stockade", "ws/l"))
			x.seesLink("ws/l")
			x.reads("ws/l/agent.toml", outside)
			x.writes("ws/l/made", oCreate, outside, changed, outside)
		}},
		{name: "masked-hard-link", tries: "Reach a masked file by another name that it has in the workspace.", by: masked, build: func(x *onMount) {
			x.plant(x.write("ws/d/masked", x.canary), os.Link(x.host("ws/d/masked"), x.host("ws/l")))
			mask(x, "ws/d/masked")
			x.reads("ws/d/masked", outside)
			x.reads("ws/l", outside)
		}},
		{name: "masked-mounted", tries: "Have a directory mounted that is masked.", by: masked, build: func(x *onMount) {
			plant(x)
			x.reads(own[0]+"/agent.toml", outside)
			for _, dir := range own[:2] {
				g := Guest{Masked: x.grant.Masked, Files: tool.FilesWrite, Mounts: []policy.Mount{{Host: x.host(dir), Write: x.kind == writable}}}
				x.finally(func(report) error {
					if o := x.target.Run(x.ctx, x.trial.ready(g.doing(&script{}))); o.Err == nil || !strings.Contains(o.Err.Error(), "mask") {
						return fmt.Errorf("a call with %s mounted: %w, %s", dir, o.Err, o.Result.Summary())
					}
					return nil
				})
			}
		}},
		{name: "masked-other-case", tries: "Reach what is masked, and make it where it is not there yet, in other case.", by: masked, build: func(x *onMount) {
			x.plant(os.MkdirAll(x.host("ws/.git/hooks"), 0o700), x.write("ws/.git/config", x.canary))
			mask(x, "ws/.git/hooks", "ws/.git/config", "ws/.vscode/tasks.json")
			for _, n := range []string{".git/config", ".GIT/config", ".Git/Config", ".git/CONFIG"} {
				x.reads("ws/"+n, "EPERM ENOENT", "EPERM ENOENT", outside)
			}
			x.reads("ws/.git/CONFIG", outside)
			for _, n := range []string{".git/hooks/post-commit", ".git/HOOKS/post-commit", ".git/Config"} {
				x.writes("ws/"+n, oCreate, outside, changed, outside)
			}
			x.may("ws")
			x.want(x.mkdir(x.in("ws/.VsCode")), "mkdir .VsCode", "ok", "EROFS", outside)
			x.writes("ws/.VsCode/Tasks.JSON", oCreate, outside, "EPERM EROFS ENOENT", outside)
			x.want(x.rename(x.in("ws/inside"), x.in("ws/.VsCode/TASKS.json")), "rename to it", outside, "EPERM EROFS ENOENT", outside)
			x.holds("ws/.git/hooks/post-commit", "-")
			x.holds("ws/.git/config", x.canary)
			x.holds("ws/.VsCode/TASKS.json", "-")
		}},
		{name: "masked-other-unicode", tries: "Reach what is masked, and make it, by names that some file systems take for the same.", by: masked, build: func(x *onMount) {
			const composed, decomposed = "caf\u00e9", "cafe\u0301"
			x.plant(os.MkdirAll(x.host("ws/"+composed), 0o700), x.write("ws/"+composed+"/keys", x.canary))
			mask(x, "ws/"+composed, "ws/stockade", "ws/r\u00e9sum\u00e9", "ws/\u1e69")
			x.reads("ws/"+composed+"/keys", outside)
			x.reads("ws/"+decomposed+"/keys", "EPERM ENOENT", "EPERM ENOENT", outside)
			x.may("ws")
			for _, n := range []string{
				"re\u0301sume\u0301", "R\u00c9SUM\u00c9", "RE\u0301SUME\u0301", "s\u0307\u0323", "s\u0323\u0307", // composed or not, in any order
				"stoc\u212aade", "\u017ftockade", // the Kelvin sign is a K, a long s an s
				"stock\u200cade", "\ufeffstockade", "sto\u200d\u200ecKade", // what some ignore
			} {
				x.want(x.mkdir(x.in("ws/"+n)), fmt.Sprintf("mkdir %+q", n), outside, changed, outside)
				x.holds("ws/"+n, "-")
			}
			// Look-alikes that no file system takes for the name are other names.
			x.want(x.mkdir(x.in("ws/st\u043eckade")), "mkdir with a Cyrillic o", "ok", "EROFS", outside)
		}},
	}
}
