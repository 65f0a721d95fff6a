package selftest

import (
	"fmt"
	"os"
	"strings"

	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/tool"
)

// nameAttacks use names that mean something else than they seem to.
func nameAttacks() []fileAttack {
	const leads, odd = "a name that leads outside", "a name that is none"
	return []fileAttack{
		{name: "dotdot-read", description: "Read a file beside the workspace by a name with \"..\".", refusedBy: leads, build: func(x *fileTrial) {
			for _, n := range dotdots {
				x.tryRead(n, outside)
			}
		}},
		{name: "dotdot-create", description: "Make a file and a directory beside the workspace by a name with \"..\".", refusedBy: leads, build: func(x *fileTrial) {
			for _, n := range dotdots {
				x.tryWrite(n, oTruncate, outside)
			}
			x.tryWrite("ws/../out/made", oCreate, outside)
			x.expect(x.mkdir(x.scratchPlace("ws/../out/made")), "mkdir ws/../out/made", outside)
		}},
		{name: "dotdot-rename", description: "Move a file out of the workspace, and one in.", refusedBy: leads, build: func(x *fileTrial) {
			x.expect(x.rename(x.scratchPlace("ws/inside"), x.scratchPlace("ws/../out/moved")), "move a file out", outside, "EPERM EROFS", outside)
			x.expect(x.rename(x.scratchPlace("ws/../out/secret"), x.scratchPlace("ws/moved")), "move a file in", outside)
			x.expect(x.rename(x.scratchPlace("ws/d"), x.scratchPlace("ws/../out/dir")), "move a directory out", outside, "EPERM EROFS", outside)
		}},
		{name: "dotdot-remove", description: "Remove what lies beside the workspace.", refusedBy: leads, build: func(x *fileTrial) {
			x.expect(x.unlink(x.scratchPlace("ws/../out/secret")), "unlink ws/../out/secret", outside)
			x.expect(x.rmdir(x.scratchPlace("ws/../out/dir")), "rmdir ws/../out/dir", outside)
		}},
		{name: "dotdot-beyond-root", description: "Climb above the root with more \"..\" than there are directories.", refusedBy: leads, build: func(x *fileTrial) {
			x.tryReadAt(x.place(strings.Repeat("../", 64)+x.guestPath("out/secret")), "open ../../...", outside)
			x.expect(x.stat(x.place(".."), followLinks), "stat ..", outside)
		}},
		{name: "dotdot-from-directory", description: "Open the workspace as a directory and climb out of that.", refusedBy: leads, build: func(x *fileTrial) {
			d := x.openDir(x.scratchPlace("ws"))
			x.expect(d.call, "open the workspace", "ok", "ok", outside)
			own, _ := x.read(x.open(place{d.fd, x.text("inside")}, 0, rightsRead, 0).fd, 4)
			x.expect(own, "read a file below it", "ok", "ok", "EBADF")
			for _, n := range []string{"../out/secret", "./../out/secret", "d/../../out/secret", "./.."} {
				x.tryReadAt(place{d.fd, x.text(n)}, "open "+n+" from the workspace", outside, outside, "EBADF")
			}
			x.expect(x.mkdir(place{d.fd, x.text("../out/made")}), "mkdir ../out/made", outside, outside, "EBADF")
		}},
		{name: "absolute-path", description: "Read files of the system and of the user by their absolute names.", refusedBy: leads, build: func(x *fileTrial) {
			for _, n := range []string{"/etc/passwd", "//etc/passwd", "etc/passwd", "/proc/self/environ", "/dev/zero", "/" + x.guestPath("out/secret")} {
				x.tryReadAt(x.place(n), "read "+n, outside)
				x.expect(x.open(x.place(n), 0, rightsRead|rightsWrite, 0).call, "open for writing "+n, outside)
			}
			x.tryWriteAt(x.place("/"+x.guestPath("out/made")), oCreate, "make a file by its absolute name", outside)
			d := x.openDir(x.scratchPlace("else"))
			x.tryReadAt(place{d.fd, x.text("/" + x.guestPath("out/secret"))}, "an absolute name from a directory", outside)
		}},
		{name: "sibling-prefix", description: "Read a directory whose name begins with that of the workspace.", refusedBy: leads, build: func(x *fileTrial) {
			x.tryRead("ws2/secret", outside)
			x.tryRead("ws/../ws2/secret", outside)
		}},
		{name: "existence-oracle", description: "Find out by the answer whether a file outside exists.", refusedBy: "the same answer for both", sameAnswer: true, build: func(x *fileTrial) {
			x.expect(x.stat(x.scratchPlace("out/secret"), followLinks), "stat out/secret", outside)
			x.expect(x.stat(x.scratchPlace("out/none"), followLinks), "stat out/none", outside)
		}},
		{name: "listed-above", description: "List the directory above the workspace, and read what another session has there.", refusedBy: leads, build: func(x *fileTrial) {
			x.plant(os.Mkdir(x.hostPath("out/stockade-session"), 0o700), x.write("out/stockade-session/notes", x.canary))
			x.tryRead("out/stockade-session/notes", outside)
			x.tryOpen("out", oDirectory, rightsList, 0, "list", outside)
			x.tryWrite("made", oCreate, outside)
			// The directories above a mount can be listed, and show nothing but the way
			// to it.
			up := x.open(x.scratchPlace("."), oDirectory, rightsList, 0)
			x.expect(up.call, "open the directory above", "ok")
			entries, used := x.reserve(512), x.reserve(4)
			x.expect(x.add("fd_readdir", up.fd, entries.at, entries.n, int64(0), used.at), "list the directory above", "ok")
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
		{name: "name-with-nul", description: "Cut a name short with a NUL byte.", refusedBy: odd, build: func(x *fileTrial) {
			for _, n := range []string{"ws/inside\x00", "ws/inside\x00/x", "ws/made\x00.txt", "\x00", "ws/../out/secret\x00"} {
				x.tryRead(n, "EINVAL")
				x.tryWrite(n, oCreate, "EINVAL")
			}
			x.expect(x.rename(x.scratchPlace("ws/inside"), x.scratchPlace("ws/\x00")), "rename to NUL", "EINVAL", "EINVAL EROFS", "EINVAL EPERM")
		}},
		{name: "name-not-utf8", description: "Use names that are not UTF-8.", refusedBy: odd, build: func(x *fileTrial) {
			for _, n := range []string{"ws/\xff\xfe", "ws/\xc0\xae\xc0\xae/out/secret", "ws/\xed\xa0\x80"} {
				x.tryRead(n, "EILSEQ")
				x.tryWrite(n, oCreate, "EILSEQ")
			}
		}},
		{name: "name-of-windows", description: "Leave the workspace by the separators and devices of Windows.", refusedBy: "no such file", build: func(x *fileTrial) {
			for _, n := range []string{
				`..\out\secret`, `d\..\..\out\secret`, `C:\out`, `C:out`, `\\?\C:\out`, `\\srv\share\x`, `\\.\PhysicalDrive0`, "NUL", "CON", "COM1.txt",
				"inside:stream", "inside::$DATA", "inside.", "inside ", "inside. ", "d./deep", "d /deep",
			} {
				x.tryRead("ws/"+n, "ENOENT", "ENOENT", outside)
			}
			// Making one makes a file with this odd name, or nothing.
			x.allowChanges("ws")
			for _, n := range []string{`ws/..\out\made`, "ws/made:stream"} {
				x.tryWrite(n, oCreate, "ok EINVAL ENOENT EPERM", "EROFS", outside)
			}
			x.holds("out/made", "-")
			x.holds("ws/made", "-")
		}},
		{name: "name-odd", description: "Use empty names, files as directories, and directories as files.", refusedBy: odd, build: func(x *fileTrial) {
			x.expect(x.stat(x.place(""), followLinks), "the empty name", "EINVAL")
			x.tryReadAt(x.place(""), "open the empty name", "EINVAL")
			x.expect(x.rename(x.scratchPlace("ws/inside"), x.place("")), "rename to the empty name", "EINVAL", "EINVAL EROFS", "EINVAL EPERM")
			x.tryRead("ws/inside/", "ENOTDIR", "ENOTDIR", outside)
			x.tryRead("ws/inside/../../out/secret", "EPERM ENOTDIR", "EPERM ENOTDIR", outside)
			x.tryWrite("ws/d", 0, "EISDIR", "EISDIR EROFS", outside)
			x.expect(x.unlink(x.scratchPlace("ws/d")), "unlink ws/d", "EISDIR", "EISDIR EROFS", outside)
			x.expect(x.rmdir(x.scratchPlace("ws/inside")), "rmdir ws/inside", "ENOTDIR", "ENOTDIR EROFS", outside)
			x.expect(x.mkdir(x.scratchPlace("ws/.")), "mkdir .", "EEXIST", "EEXIST EROFS", outside)
			x.expect(x.rmdir(x.scratchPlace("ws/.")), "rmdir .", "EINVAL EPERM EBUSY", "EINVAL EPERM EROFS EBUSY", outside)
			x.expect(x.unlink(x.scratchPlace("ws/./.")), "unlink ./.", "EISDIR EPERM", "EISDIR EROFS EPERM", outside)
			x.expect(x.stat(x.place("./././."), followLinks), "dots only", "ok")
		}},
		{name: "name-too-long", description: "Use a name of 300 and a path of 9000 bytes.", refusedBy: "a name that is too long", build: func(x *fileTrial) {
			x.allowChanges("ws")
			x.tryWrite("ws/"+strings.Repeat("x", 255), oCreate, "ok ENAMETOOLONG", "EROFS", outside)
			for _, n := range []int{256, 300} {
				x.tryWrite("ws/"+strings.Repeat("x", n), oCreate, "ENAMETOOLONG", "ENAMETOOLONG EROFS", outside)
			}
			x.tryRead("ws/"+strings.Repeat("x/../", 1800)+"inside", "ENAMETOOLONG")
			x.tryRead("ws/"+strings.Repeat("x/../", 1800)+"../out/secret", "ENAMETOOLONG")
			x.tryRead("ws/"+strings.Repeat("d/../", 700)+"inside", "ok", "ok", outside)
		}},
	}
}

// dotdots are names of the file outside.
var dotdots = []string{"ws/../out/secret", "ws/d/../../out/secret", "ws/none/../../out/secret", "ws//d//..//..//out///secret", "ws/./../out/./secret"}

// closedAttacks use masked paths, and paths that no tool may change or read.
func closedAttacks() []fileAttack {
	const masked, closed = "masked", "a path that no tool changes"
	own := []string{"ws/.config/stockade", "ws/.local/share/stockade", "ws/.cache/stockade"} // the last does not exist
	mask := func(x *fileTrial, names ...string) {
		for _, n := range names {
			x.grant.Masked = append(x.grant.Masked, x.hostPath(n))
		}
	}
	plant := func(x *fileTrial) {
		for _, m := range own[:2] {
			x.plant(os.MkdirAll(x.hostPath(m), 0o700), x.write(m+"/agent.toml", x.canary))
		}
		x.plant(os.Mkdir(x.hostPath("ws/.cache"), 0o700))
		mask(x, own...)
	}
	const changed = "EPERM EROFS"
	return []fileAttack{
		{name: "git-hook-planted", description: "Make a git hook, git configuration and the steps of a rebase, also by another name, and in a repository of another name.", refusedBy: closed, build: func(x *fileTrial) {
			x.plant(os.MkdirAll(x.hostPath("ws/.git/hooks"), 0o700), x.write("ws/.git/config", "[core]"), x.link(".git", "ws/l"),
				os.MkdirAll(x.hostPath("ws/bare/rebase-apply"), 0o700), os.Mkdir(x.hostPath("ws/.git/rebase-merge"), 0o700),
				x.write("ws/bare/HEAD", "ref: refs/heads/main"), x.write("ws/bare/config", "[core]"))
			x.expectLink("ws/l")
			for _, n := range []string{".git/hooks/pre-commit", ".GIT/hooks/pre-commit", "l/hooks/pre-commit", "d/.git", ".gitmodules", "bare/config", ".git/rebase-merge/git-rebase-todo", "bare/rebase-apply/next"} {
				x.tryWrite("ws/"+n, oCreate, outside, changed, outside)
			}
			x.expect(x.mkdir(x.scratchPlace("ws/d/.git")), "mkdir ws/d/.git", outside, changed, outside)
			x.expect(x.mkdir(x.scratchPlace("ws/.git/sequencer")), "mkdir ws/.git/sequencer", outside, changed, outside)
			x.expect(x.rename(x.scratchPlace("ws/inside"), x.scratchPlace("ws/.git/hooks/pre-commit")), "move a file to a hook", outside, changed, outside)
			x.expect(x.rename(x.scratchPlace("ws/.git"), x.scratchPlace("ws/moved")), "move ws/.git away", outside, changed, outside)
			x.expect(x.unlink(x.scratchPlace("ws/.git/config")), "unlink ws/.git/config", outside, changed, outside)
		}},
		{name: "own-configuration-planted", description: "Make our own configuration in the workspace, where there is none.", refusedBy: closed, build: func(x *fileTrial) {
			for _, n := range []string{"agent.toml", "Agent.TOML", "d/agent.toml"} {
				x.tryWrite("ws/"+n, oCreate, outside, changed, outside)
				x.expect(x.rename(x.scratchPlace("ws/inside"), x.scratchPlace("ws/"+n)), "move a file to ws/"+n, outside, changed, outside)
			}
			x.expect(x.mkdir(x.scratchPlace("ws/.stockade")), "mkdir ws/.stockade", outside, changed, outside)
			x.expect(x.rename(x.scratchPlace("ws/d"), x.scratchPlace("ws/.stockade")), "move a directory to ws/.stockade", outside, changed, outside)
		}},
		{name: "secret-file-read", description: "Read files of the workspace that look like secrets, also through a symbolic link and by another name.", refusedBy: "a file that looks like a secret", build: func(x *fileTrial) {
			x.plant(x.write("ws/.env", x.canary), x.write("ws/d/id_rsa", x.canary), x.write("ws/d/x.key.bak", x.canary), x.link("../.env", "ws/d/l"))
			x.expectLink("ws/d/l")
			for _, n := range []string{"ws/.env", "ws/d/id_rsa", "ws/d/x.key.bak", "ws/d/l"} {
				x.tryRead(n, outside)
			}
			x.expect(x.rename(x.scratchPlace("ws/.env"), x.scratchPlace("ws/moved")), "move ws/.env", outside, changed, outside)
			x.tryRead("ws/moved", "ENOENT", "ENOENT", outside)
		}},
		{name: "masked-read", description: "Read the program's own configuration where the workspace holds it.", refusedBy: masked, build: func(x *fileTrial) {
			plant(x)
			for _, m := range own[:2] {
				x.tryRead(m+"/agent.toml", outside)
				x.tryOpen(m, oDirectory, rightsList, 0, "list", outside)
			}
			x.tryRead("ws/d/../.config/stockade/agent.toml", outside)
			x.tryRead("ws/.CONFIG/Stockade/agent.toml", "EPERM ENOENT", "EPERM ENOENT", outside)
		}},
		{name: "masked-write", description: "Change, replace and plant the program's own configuration and cache.", refusedBy: masked, build: func(x *fileTrial) {
			plant(x)
			for _, m := range own[:2] {
				x.tryWrite(m+"/agent.toml", 0, outside, changed, outside)
				x.tryWrite(m+"/agent.toml", oTruncate, outside, changed, outside)
				x.tryWrite(m+"/trust.key", oCreate, outside, changed, outside)
				x.expect(x.unlink(x.scratchPlace(m+"/agent.toml")), "unlink "+m, outside, changed, outside)
			}
			x.expect(x.mkdir(x.scratchPlace(own[2])), "make what is masked", outside, changed, outside)
			x.expect(x.rename(x.scratchPlace("ws/d"), x.scratchPlace(own[2])), "move a directory there", outside, changed, outside)
		}},
		{name: "masked-moved", description: "Move away the directory that holds what is masked.", refusedBy: masked, build: func(x *fileTrial) {
			plant(x)
			for _, m := range own[:2] {
				x.expect(x.rename(x.scratchPlace(m), x.scratchPlace("ws/moved")), "move "+m, outside, changed, outside)
				x.expect(x.rename(x.scratchPlace(m[:strings.LastIndexByte(m, '/')]), x.scratchPlace("ws/moved")), "move what holds "+m, outside, changed, outside)
				x.tryRead("ws/moved/stockade/agent.toml", "ENOENT", "ENOENT", outside)
				x.tryRead("ws/moved/agent.toml", "ENOENT", "ENOENT", outside)
			}
		}},
		{name: "masked-link", description: "Reach what is masked through a symbolic link inside the workspace.", refusedBy: masked, build: func(x *fileTrial) {
			plant(x)
			x.plant(x.link(".config/stockade", "ws/l"))
			x.expectLink("ws/l")
			x.tryRead("ws/l/agent.toml", outside)
			x.tryWrite("ws/l/made", oCreate, outside, changed, outside)
		}},
		{name: "masked-hard-link", description: "Reach a masked file by another name that it has in the workspace.", refusedBy: masked, build: func(x *fileTrial) {
			x.plant(x.write("ws/d/masked", x.canary), os.Link(x.hostPath("ws/d/masked"), x.hostPath("ws/l")))
			mask(x, "ws/d/masked")
			x.tryRead("ws/d/masked", outside)
			x.tryRead("ws/l", outside)
		}},
		{name: "masked-mounted", description: "Have a directory mounted that is masked.", refusedBy: masked, build: func(x *fileTrial) {
			plant(x)
			x.tryRead(own[0]+"/agent.toml", outside)
			for _, dir := range own[:2] {
				g := Guest{Masked: x.grant.Masked, Files: tool.FilesWrite, Mounts: []policy.Mount{{Host: x.hostPath(dir), Write: x.kind == writable}}}
				x.finally(func(report) error {
					if o := x.target.Run(x.ctx, x.trial.withModule(g.withScript(&script{}))); o.Err == nil || !strings.Contains(o.Err.Error(), "mask") {
						return fmt.Errorf("a call with %s mounted: %w, %s", dir, o.Err, o.Result.Summary())
					}
					return nil
				})
			}
		}},
		{name: "masked-other-case", description: "Reach what is masked, and make it where it is not there yet, in other case.", refusedBy: masked, build: func(x *fileTrial) {
			x.plant(os.MkdirAll(x.hostPath("ws/.git/hooks"), 0o700), x.write("ws/.git/config", x.canary))
			mask(x, "ws/.git/hooks", "ws/.git/config", "ws/.vscode/tasks.json")
			for _, n := range []string{".git/config", ".GIT/config", ".Git/Config", ".git/CONFIG"} {
				x.tryRead("ws/"+n, "EPERM ENOENT", "EPERM ENOENT", outside)
			}
			x.tryRead("ws/.git/CONFIG", outside)
			for _, n := range []string{".git/hooks/post-commit", ".git/HOOKS/post-commit", ".git/Config"} {
				x.tryWrite("ws/"+n, oCreate, outside, changed, outside)
			}
			x.allowChanges("ws")
			x.expect(x.mkdir(x.scratchPlace("ws/.VsCode")), "mkdir .VsCode", "ok", "EROFS", outside)
			x.tryWrite("ws/.VsCode/Tasks.JSON", oCreate, outside, "EPERM EROFS ENOENT", outside)
			x.expect(x.rename(x.scratchPlace("ws/inside"), x.scratchPlace("ws/.VsCode/TASKS.json")), "rename to it", outside, "EPERM EROFS ENOENT", outside)
			x.holds("ws/.git/hooks/post-commit", "-")
			x.holds("ws/.git/config", x.canary)
			x.holds("ws/.VsCode/TASKS.json", "-")
		}},
		{name: "masked-other-unicode", description: "Reach what is masked, and make it, by names that some file systems take for the same.", refusedBy: masked, build: func(x *fileTrial) {
			const composed, decomposed = "caf\u00e9", "cafe\u0301"
			x.plant(os.MkdirAll(x.hostPath("ws/"+composed), 0o700), x.write("ws/"+composed+"/keys", x.canary))
			mask(x, "ws/"+composed, "ws/stockade", "ws/r\u00e9sum\u00e9", "ws/\u1e69")
			x.tryRead("ws/"+composed+"/keys", outside)
			x.tryRead("ws/"+decomposed+"/keys", "EPERM ENOENT", "EPERM ENOENT", outside)
			x.allowChanges("ws")
			for _, n := range []string{
				"re\u0301sume\u0301", "R\u00c9SUM\u00c9", "RE\u0301SUME\u0301", "s\u0307\u0323", "s\u0323\u0307", // composed or not, in any order
				"stoc\u212aade", "\u017ftockade", // the Kelvin sign is a K, a long s an s
				"stock\u200cade", "\ufeffstockade", "sto\u200d\u200ecKade", // characters that some file systems ignore
			} {
				x.expect(x.mkdir(x.scratchPlace("ws/"+n)), fmt.Sprintf("mkdir %+q", n), outside, changed, outside)
				x.holds("ws/"+n, "-")
			}
			// Look-alikes that no file system takes for the name are other names.
			x.expect(x.mkdir(x.scratchPlace("ws/st\u043eckade")), "mkdir with a Cyrillic o", "ok", "EROFS", outside)
		}},
	}
}
