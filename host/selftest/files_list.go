package selftest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

func fileAttacks() []Attack {
	const (
		outside = "a name that leads outside"
		links   = "a symbolic link that leads outside"
		odd     = "a name that is none"
		ro      = "mounted read-only"
		masked  = "masked"
		nothing = "nothing is mounted"
		closed  = "a path that no tool changes"
	)
	at := func(t *trial, s *script, name string) place { return s.at(t.guest(name)) }
	link := func(target, name string) func(*trial) error {
		return func(t *trial) error {
			return t.link(strings.ReplaceAll(target, "BASE", filepath.ToSlash(t.base)), name)
		}
	}
	stealing := func(names ...string) func(*trial, *script) {
		return func(t *trial, s *script) {
			for _, n := range names {
				s.steal(at(t, s, n), "open "+n)
			}
		}
	}
	secret := func(t *trial) error { // what is masked: one that exists, and one that does not
		return errors.Join(os.MkdirAll(t.host("ws/.config/stockade"), 0o700), os.Mkdir(t.host("ws/.cache"), 0o700),
			t.write("ws/.config/stockade/agent.toml", t.canary))
	}
	repositories := func(t *trial) error {
		return errors.Join(os.MkdirAll(t.host("ws/.git/hooks"), 0o700), t.write("ws/.git/config", "[core]"), t.link(".git", "ws/l"),
			os.MkdirAll(t.host("ws/bare/rebase-apply"), 0o700), os.Mkdir(t.host("ws/.git/rebase-merge"), 0o700), t.write("ws/bare/HEAD", "ref: refs/heads/main"), t.write("ws/bare/config", "[core]"))
	}
	maskedDirs := []string{"ws/.config/stockade", "ws/.cache/stockade"}

	list := []fileAttack{
		{name: "dotdot-read", tries: "Read a file beside the workspace by a name with \"..\".", by: outside,
			try: stealing("ws/../out/secret", "ws/d/../../out/secret", "ws/none/../../out/secret", "ws//d//..//..//out///secret", "ws/./../out/./secret")},
		{name: "dotdot-create", tries: "Make a file and a directory beside the workspace by a name with \"..\".", by: outside,
			try: func(t *trial, s *script) {
				s.overwrite(at(t, s, "ws/../out/made"), oCreate, "create ws/../out/made")
				s.overwrite(at(t, s, "ws/../out/secret"), oTruncate, "truncate ws/../out/secret")
				s.mkdir(at(t, s, "ws/../out/made")).refused("mkdir ws/../out/made")
			}},
		{name: "dotdot-rename", tries: "Move a file out of the workspace, and one in.", by: outside,
			try: func(t *trial, s *script) {
				s.rename(at(t, s, "ws/inside"), at(t, s, "ws/../out/moved")).refused("move a file out")
				s.rename(at(t, s, "ws/../out/secret"), at(t, s, "ws/moved")).refused("move a file in")
				s.rename(at(t, s, "ws/d"), at(t, s, "ws/../out/dir")).refused("move a directory out")
			}},
		{name: "dotdot-remove", tries: "Remove what lies beside the workspace.", by: outside,
			try: func(t *trial, s *script) {
				s.unlink(at(t, s, "ws/../out/secret")).refused("unlink ws/../out/secret")
				s.rmdir(at(t, s, "ws/../out/dir")).refused("rmdir ws/../out/dir")
			}},
		{name: "dotdot-beyond-root", tries: "Climb above the root with more \"..\" than there are directories.", by: outside,
			try: func(t *trial, s *script) {
				s.steal(s.at(strings.Repeat("../", 64)+t.guest("out/secret")), "open ../../...")
				s.stat(s.at(".."), followLinks).refused("stat ..")
			}},
		{name: "dotdot-from-directory", tries: "Open the workspace as a directory and climb out of that.", by: outside,
			try: func(t *trial, s *script) {
				d := s.openDir(at(t, s, "ws"))
				d.must("open the workspace")
				own, _ := s.read(s.open(place{d.fd, s.text("inside")}, 0, mayRead, 0).fd, 4)
				own.must("read a file below it")
				for _, n := range []string{"../out/secret", "d/../../out/secret"} {
					s.steal(place{d.fd, s.text(n)}, "open "+n)
				}
				s.mkdir(place{d.fd, s.text("../out/made")}).refused("mkdir ../out/made")
			}},
		{name: "absolute-path", tries: "Read files of the system and of the user by their absolute names.", by: outside,
			try: func(t *trial, s *script) {
				for _, n := range []string{"/etc/passwd", "/proc/self/environ", "/dev/zero", "/" + t.guest("out/secret")} {
					s.steal(s.at(n), "open "+n)
				}
			}},
		{name: "sibling-prefix", tries: "Read a directory whose name begins with that of the workspace.", by: outside,
			try: stealing("ws2/secret", "ws/../ws2/secret")},
		{name: "existence-oracle", tries: "Find out by the answer whether a file outside exists.", by: "the same answer for both", same: true,
			try: func(t *trial, s *script) {
				s.stat(at(t, s, "out/secret"), followLinks).refused("stat out/secret")
				s.stat(at(t, s, "out/none"), followLinks).refused("stat out/none")
			}},
		{name: "name-with-nul", tries: "Cut a name short with a NUL byte.", by: odd,
			try: func(t *trial, s *script) {
				s.overwrite(at(t, s, "ws/made\x00.txt"), oCreate, "create ws/made NUL .txt")
				s.steal(at(t, s, "ws/../out/secret\x00"), "open ws/../out/secret NUL")
				s.steal(at(t, s, "ws/inside\x00/x"), "open ws/inside NUL /x")
				s.rename(at(t, s, "ws/inside"), at(t, s, "ws/\x00")).refused("rename to NUL")
			}},
		{name: "name-not-utf8", tries: "Use names that are not UTF-8.", by: odd,
			try: func(t *trial, s *script) {
				s.overwrite(at(t, s, "ws/\xff\xfe"), oCreate, "create ws/ff fe")
				s.steal(at(t, s, "ws/\xc0\xae\xc0\xae/out/secret"), "open an overlong ..")
			}},
		{name: "name-of-windows", tries: "Leave the workspace by the separators and devices of Windows.", by: "no such file",
			try: stealing(`ws/..\out\secret`, `ws/C:\out`, `ws/\\?\C:\out`, "ws/CON", "ws/inside:stream", "ws/inside. ", "ws/inside::$DATA")},
		{name: "name-odd", tries: "Use empty names, files as directories, and directories as files.", by: odd,
			try: func(t *trial, s *script) {
				s.steal(s.at(""), "open the empty name")
				s.steal(at(t, s, "ws/inside/"), "open ws/inside/")
				s.steal(at(t, s, "ws/inside/../../out/secret"), "open ws/inside/../..")
				s.overwrite(at(t, s, "ws/d"), 0, "open ws/d for writing")
				s.unlink(at(t, s, "ws/d")).refused("unlink ws/d")
				s.rmdir(at(t, s, "ws/inside")).refused("rmdir ws/inside")
			}},
		{name: "name-too-long", tries: "Use a name of 300 and a path of 9000 bytes.", by: "a name that is too long",
			try: func(t *trial, s *script) {
				s.overwrite(at(t, s, "ws/"+strings.Repeat("x", 300)), oCreate, "create a name of 300 bytes")
				s.steal(at(t, s, "ws/"+strings.Repeat("x/../", 1800)+"../out/secret"), "open a path of 9000 bytes")
			}},
		{name: "symlink-absolute", tries: "Read through an absolute symbolic link in the workspace.", by: links,
			plant: link("BASE/out/secret", "ws/l"),
			try: func(t *trial, s *script) {
				s.stat(at(t, s, "ws/l"), 0).must("see the link")
				s.steal(at(t, s, "ws/l"), "open ws/l")
				s.stat(at(t, s, "ws/l"), followLinks).refused("stat behind ws/l")
			}},
		{name: "symlink-relative", tries: "Read through a relative symbolic link in the workspace.", by: links,
			plant: link("../out/secret", "ws/l"),
			try: func(t *trial, s *script) {
				s.stat(at(t, s, "ws/l"), 0).must("see the link")
				s.steal(at(t, s, "ws/l"), "open ws/l")
			}},
		{name: "symlink-directory", tries: "Read and list through a symbolic link to a directory outside.", by: links,
			plant: link("../out", "ws/l"),
			try: func(t *trial, s *script) {
				s.stat(at(t, s, "ws/l"), 0).must("see the link")
				s.steal(at(t, s, "ws/l/secret"), "open ws/l/secret")
				d := s.open(at(t, s, "ws/l"), oDirectory, mayList, 0)
				d.refused("open ws/l as a directory")
				s.add("fd_readdir", d.fd, s.room(512).at, 512, 0, s.room(4).at)
			}},
		{name: "symlink-directory-write", tries: "Make, change, move and remove things behind a symbolic link to a directory outside.", by: links,
			plant: link("../out", "ws/l"),
			try: func(t *trial, s *script) {
				s.stat(at(t, s, "ws/l"), 0).must("see the link")
				s.overwrite(at(t, s, "ws/l/made"), oCreate, "create ws/l/made")
				s.mkdir(at(t, s, "ws/l/made")).refused("mkdir ws/l/made")
				s.rename(at(t, s, "ws/l/secret"), at(t, s, "ws/moved")).refused("move ws/l/secret in")
				s.rename(at(t, s, "ws/inside"), at(t, s, "ws/l/moved")).refused("move ws/inside out")
				s.unlink(at(t, s, "ws/l/secret")).refused("unlink ws/l/secret")
				s.rmdir(at(t, s, "ws/l/dir")).refused("rmdir ws/l/dir")
			}},
		{name: "symlink-write", tries: "Write to a file outside through a symbolic link.", by: links,
			plant: link("../out/secret", "ws/l"),
			try: func(t *trial, s *script) {
				s.stat(at(t, s, "ws/l"), 0).must("see the link")
				s.overwrite(at(t, s, "ws/l"), 0, "open ws/l for writing")
				f := s.open(at(t, s, "ws/l"), 0, mayWrite, fdAppend)
				f.refused("open ws/l for appending")
				s.put(f.fd, "appended")
			}},
		{name: "symlink-truncate", tries: "Empty a file outside through a symbolic link, with the right to read only.", by: links,
			plant: link("../out/secret", "ws/l"),
			try: func(t *trial, s *script) {
				s.stat(at(t, s, "ws/l"), 0).must("see the link")
				s.open(at(t, s, "ws/l"), oTruncate, mayRead, 0).refused("truncate ws/l")
			}},
		{name: "symlink-times", tries: "Change the times of a file outside through a symbolic link.", by: links,
			plant: link("../out/secret", "ws/l"),
			try: func(t *trial, s *script) {
				s.stat(at(t, s, "ws/l"), 0).must("see the link")
				s.utimes(at(t, s, "ws/l")).refused("set the times of ws/l")
			}},
		{name: "symlink-dangling", tries: "Make a file outside by creating what a symbolic link points to.", by: links,
			plant: link("../out/made", "ws/l"),
			try: func(t *trial, s *script) {
				s.stat(at(t, s, "ws/l"), 0).must("see the link")
				s.overwrite(at(t, s, "ws/l"), oCreate, "create ws/l")
				s.overwrite(at(t, s, "ws/l"), oCreate|oTruncate, "create or truncate ws/l")
			}},
		{name: "symlink-chain", tries: "Read through a chain of symbolic links whose last one leads outside.", by: "a chain of symbolic links that leads outside",
			plant: func(t *trial) error {
				err := errors.Join(t.link("../out/secret", "ws/l0"), t.link("l39", "ws/d/l"))
				for i := range 40 {
					err = errors.Join(err, t.link(fmt.Sprint("l", i), fmt.Sprint("ws/l", i+1)))
				}
				return err
			},
			try: stealing("ws/l1", "ws/l3", "ws/l40")},
		{name: "symlink-loop", tries: "Hang the host on symbolic links that lead to each other.", by: "symbolic links that do not end",
			plant: func(t *trial) error {
				return errors.Join(t.link("b", "ws/a"), t.link("a", "ws/b"), t.link("self/self", "ws/self"))
			},
			try: stealing("ws/a", "ws/b/x", "ws/self/x")},
		{name: "symlink-proc", tries: "Read the environment of this process through a symbolic link to /proc/self.", by: links,
			plant: link("/proc/self", "ws/l"),
			try: func(t *trial, s *script) {
				s.stat(at(t, s, "ws/l"), 0).must("see the link")
				s.steal(at(t, s, "ws/l/environ"), "open ws/l/environ")
				s.steal(at(t, s, "ws/l/root/"+t.guest("out/secret")), "open ws/l/root/...")
			}},
		{name: "symlink-device", tries: "Read without end from a device through a symbolic link.", by: links,
			plant: link("/dev/zero", "ws/l"),
			try: func(t *trial, s *script) {
				s.stat(at(t, s, "ws/l"), 0).must("see the link")
				s.steal(at(t, s, "ws/l"), "open ws/l")
			}},
		{name: "symlink-target", tries: "Learn names of the host from where symbolic links point.", by: "a target outside is not told",
			plant: func(t *trial) error {
				return errors.Join(t.link(t.host("out/secret"), "ws/l"), t.link("../../out", "ws/d/l"))
			},
			try: func(t *trial, s *script) {
				for _, n := range []string{"ws/l", "ws/d/l"} {
					s.stat(at(t, s, n), 0).must("see the link")
					read, _ := s.readlink(at(t, s, n))
					read.refused("read the link " + n)
				}
			}},
		{name: "symlink-made", tries: "Make symbolic links that lead outside, and read through them.", by: "a guest makes no links",
			try: func(t *trial, s *script) {
				for i, target := range []string{"../out/secret", t.host("out/secret"), "d/../../out/secret"} {
					name := fmt.Sprint("ws/l", i)
					s.symlink(target, at(t, s, name)).refused("link to " + target)
					s.steal(at(t, s, name), "open "+name)
				}
			}},
		{name: "symlink-moved", tries: "Move a directory with a symbolic link in it so that the link leads outside.", by: links, changes: true,
			plant: func(t *trial) error {
				return errors.Join(os.MkdirAll(t.host("ws/a/b"), 0o700), t.link("../../out/secret", "ws/a/b/l"))
			},
			try: func(t *trial, s *script) {
				s.rename(at(t, s, "ws/a/b"), at(t, s, "ws/b")).must("move ws/a/b")
				s.stat(at(t, s, "ws/b/l"), 0).must("see the link")
				s.steal(at(t, s, "ws/b/l"), "open ws/b/l")
			}},
		{name: "hard-link-made", tries: "Make hard links to files outside, and of own files there.", by: "a guest makes no links",
			try: func(t *trial, s *script) {
				s.hardLink(at(t, s, "ws/../out/secret"), at(t, s, "ws/l")).refused("link out/secret into ws")
				s.hardLink(at(t, s, "ws/inside"), at(t, s, "ws/../out/l")).refused("link ws/inside to out")
				s.steal(at(t, s, "ws/l"), "open ws/l")
			}},
		{name: "hard-link-write", tries: "Change a file outside that has a second name in the workspace.", by: "a file with several names",
			plant: func(t *trial) error { return os.Link(t.host("out/secret"), t.host("ws/l")) },
			try: func(t *trial, s *script) {
				s.stat(at(t, s, "ws/l"), 0).must("see the file")
				s.overwrite(at(t, s, "ws/l"), 0, "open ws/l for writing")
				s.open(at(t, s, "ws/l"), oTruncate, mayRead, 0).refused("truncate ws/l")
				s.utimes(at(t, s, "ws/l")).refused("set the times of ws/l")
			}},
		{name: "git-hook-planted", tries: "Make a git hook, git configuration and the steps of a rebase, also by another name, and in a repository of another name.", by: closed,
			plant: repositories,
			try: func(t *trial, s *script) {
				s.stat(at(t, s, "ws/l"), 0).must("see the link")
				for _, n := range []string{".git/hooks/pre-commit", ".GIT/hooks/pre-commit", "l/hooks/pre-commit", "d/.git", ".gitmodules", "bare/config", ".git/rebase-merge/git-rebase-todo", "bare/rebase-apply/next"} {
					s.overwrite(at(t, s, "ws/"+n), oCreate, "create ws/"+n)
				}
				s.mkdir(at(t, s, "ws/d/.git")).refused("mkdir ws/d/.git")
				s.mkdir(at(t, s, "ws/.git/sequencer")).refused("mkdir ws/.git/sequencer")
				s.rename(at(t, s, "ws/inside"), at(t, s, "ws/.git/hooks/pre-commit")).refused("move a file to a hook")
				s.rename(at(t, s, "ws/.git"), at(t, s, "ws/moved")).refused("move ws/.git away")
				s.unlink(at(t, s, "ws/.git/config")).refused("unlink ws/.git/config")
			}},
		{name: "own-configuration-planted", tries: "Make our own configuration in the workspace, where there is none.", by: closed,
			try: func(t *trial, s *script) {
				for _, n := range []string{"agent.toml", "Agent.TOML", "d/agent.toml"} {
					s.overwrite(at(t, s, "ws/"+n), oCreate, "create ws/"+n)
					s.rename(at(t, s, "ws/inside"), at(t, s, "ws/"+n)).refused("move a file to ws/" + n)
				}
				s.mkdir(at(t, s, "ws/.stockade")).refused("mkdir ws/.stockade")
				s.rename(at(t, s, "ws/d"), at(t, s, "ws/.stockade")).refused("move a directory to ws/.stockade")
			}},
		{name: "secret-file-read", tries: "Read files of the workspace that look like secrets, also through a symbolic link and by another name.", by: "a file that looks like a secret",
			plant: func(t *trial) error {
				return errors.Join(t.write("ws/.env", t.canary), t.write("ws/d/id_rsa", t.canary), t.write("ws/d/x.key.bak", t.canary), t.link("../.env", "ws/d/l"))
			},
			try: func(t *trial, s *script) {
				s.stat(at(t, s, "ws/d/l"), 0).must("see the link")
				for _, n := range []string{"ws/.env", "ws/d/id_rsa", "ws/d/x.key.bak", "ws/d/l"} {
					s.steal(at(t, s, n), "open "+n)
				}
				s.rename(at(t, s, "ws/.env"), at(t, s, "ws/moved")).refused("move ws/.env")
				s.steal(at(t, s, "ws/moved"), "open ws/moved")
			}},
		{name: "preopen-replaced", tries: "Put another directory in the place of the root and open names below it.", by: outside,
			try: func(t *trial, s *script) {
				d := s.openDir(at(t, s, "ws/d"))
				d.must("open ws/d")
				s.add("fd_renumber", d.fd, root)
				for _, n := range []string{"../../out/secret", "../" + t.guest("out/secret")} {
					f := s.open(place{root, s.text(n)}, 0, mayRead, 0)
					f.refusedBadF("open " + n + " below the new root")
					s.read(f.fd, 48)
				}
			}},

		{name: "read-only-create", tries: "Make a file in a read-only mount, also with the right to read only.", by: ro, grant: grantRead,
			try: func(t *trial, s *script) {
				s.overwrite(at(t, s, "ws/made"), oCreate, "create ws/made")
				s.open(at(t, s, "ws/made2"), oCreate, mayRead, 0).refused("create with the right to read")
				s.open(at(t, s, "ws/d/made"), oCreate|oExclusive, 0, 0).refused("create with no right")
			}},
		{name: "read-only-truncate", tries: "Empty a file in a read-only mount with the right to read only.", by: ro, grant: grantRead,
			try: func(t *trial, s *script) {
				s.open(at(t, s, "ws/inside"), oTruncate, mayRead, 0).refused("truncate with the right to read")
				s.open(at(t, s, "ws/inside"), oTruncate, 0, 0).refused("truncate with no right")
				s.open(at(t, s, "ws/inside"), oTruncate, mayRead|mayWrite, 0).refused("truncate")
			}},
		{name: "read-only-write", tries: "Write and append to a file in a read-only mount.", by: ro, grant: grantRead,
			try: func(t *trial, s *script) {
				s.overwrite(at(t, s, "ws/inside"), 0, "open for writing")
				f := s.open(at(t, s, "ws/inside"), 0, mayRead, fdAppend)
				f.refused("open for appending")
				s.put(f.fd, "appended")
			}},
		{name: "read-only-descriptor", tries: "Write to a file of a read-only mount through a descriptor that was opened for reading.", by: "opened for reading", grant: grantRead,
			try: func(t *trial, s *script) {
				f := s.open(at(t, s, "ws/inside"), 0, mayRead, 0)
				f.must("open for reading")
				s.put(f.fd, "overwritten").refusedBadF("write")
				s.add("fd_filestat_set_size", f.fd, 0).refusedBadF("set the size")
				s.add("fd_filestat_set_times", f.fd, 1, 1, setTimes).refusedBadF("set the times")
			}},
		{name: "read-only-remove", tries: "Remove files and directories of a read-only mount.", by: ro, grant: grantRead,
			plant: func(t *trial) error { return os.Mkdir(t.host("ws/empty"), 0o700) },
			try: func(t *trial, s *script) {
				s.unlink(at(t, s, "ws/inside")).refused("unlink ws/inside")
				s.rmdir(at(t, s, "ws/empty")).refused("rmdir ws/empty")
			}},
		{name: "read-only-rename", tries: "Move files in a read-only mount.", by: ro, grant: grantRead,
			try: func(t *trial, s *script) {
				s.rename(at(t, s, "ws/inside"), at(t, s, "ws/moved")).refused("move a file")
				s.rename(at(t, s, "ws/d"), at(t, s, "ws/moved")).refused("move a directory")
				s.rename(at(t, s, "ws/d/deep"), at(t, s, "ws/inside")).refused("replace a file")
			}},
		{name: "read-only-make", tries: "Make directories and links in a read-only mount.", by: ro, grant: grantRead,
			try: func(t *trial, s *script) {
				s.mkdir(at(t, s, "ws/made")).refused("mkdir ws/made")
				s.symlink("inside", at(t, s, "ws/l")).refused("symbolic link ws/l")
				s.hardLink(at(t, s, "ws/inside"), at(t, s, "ws/l2")).refused("hard link ws/l2")
			}},
		{name: "read-only-times", tries: "Change the times of files in a read-only mount.", by: ro, grant: grantRead,
			try: func(t *trial, s *script) {
				s.utimes(at(t, s, "ws/inside")).refused("set the times of ws/inside")
				s.utimes(at(t, s, "ws/d")).refused("set the times of ws/d")
			}},
		{name: "reader-writes", tries: "Write as a tool that asked to read only, in a workspace that is mounted with write.", by: "the tool asked to read only", grant: grantReader,
			try: func(t *trial, s *script) {
				s.overwrite(at(t, s, "ws/inside"), 0, "open for writing")
				s.overwrite(at(t, s, "ws/made"), oCreate, "create ws/made")
				s.unlink(at(t, s, "ws/inside")).refused("unlink ws/inside")
				s.mkdir(at(t, s, "ws/made")).refused("mkdir ws/made")
			}},

		{name: "nothing-mounted-read", tries: "Read files as a tool that asked for none.", by: nothing, grant: grantNone,
			try: func(t *trial, s *script) {
				for _, n := range []string{t.guest("ws/inside"), "inside", "etc/passwd", "proc/self/environ", "../" + t.guest("ws/inside")} {
					s.steal(s.at(n), "open "+n)
				}
			}},
		{name: "nothing-mounted-write", tries: "Make files as a tool that asked for none.", by: nothing, grant: grantNone,
			try: func(t *trial, s *script) {
				s.overwrite(at(t, s, "ws/made"), oCreate, "create ws/made")
				s.mkdir(at(t, s, "ws/made")).refused("mkdir ws/made")
			}},

		{name: "masked-read", tries: "Read the program's own configuration where the workspace holds it.", by: masked, mask: maskedDirs, plant: secret,
			try: func(t *trial, s *script) {
				stealing("ws/.config/stockade/agent.toml", "ws/d/../.config/stockade/agent.toml", "ws/.CONFIG/Stockade/agent.toml")(t, s)
				d := s.open(at(t, s, "ws/.config/stockade"), oDirectory, mayList, 0)
				d.refused("open ws/.config/stockade")
				s.add("fd_readdir", d.fd, s.room(512).at, 512, 0, s.room(4).at)
			}},
		{name: "masked-write", tries: "Change, replace and plant the program's own configuration and cache.", by: masked, mask: maskedDirs, plant: secret,
			try: func(t *trial, s *script) {
				s.overwrite(at(t, s, "ws/.config/stockade/agent.toml"), 0, "open agent.toml for writing")
				s.overwrite(at(t, s, "ws/.config/stockade/allow.toml"), oCreate, "create allow.toml")
				s.mkdir(at(t, s, "ws/.cache/stockade")).refused("mkdir .cache/stockade")
				s.rename(at(t, s, "ws/d"), at(t, s, "ws/.cache/stockade")).refused("move ws/d to .cache/stockade")
				s.unlink(at(t, s, "ws/.config/stockade/agent.toml")).refused("unlink agent.toml")
			}},
		{name: "masked-moved", tries: "Move away the directory that holds what is masked.", by: masked, mask: maskedDirs, plant: secret,
			try: func(t *trial, s *script) {
				s.rename(at(t, s, "ws/.config"), at(t, s, "ws/moved")).refused("move ws/.config")
				s.steal(at(t, s, "ws/moved/stockade/agent.toml"), "open ws/moved/stockade/agent.toml")
				s.rename(at(t, s, "ws/.config/stockade"), at(t, s, "ws/moved")).refused("move ws/.config/stockade")
			}},
		{name: "masked-link", tries: "Reach what is masked through a symbolic link inside the workspace.", by: masked, mask: maskedDirs,
			plant: func(t *trial) error { return errors.Join(secret(t), t.link(".config/stockade", "ws/l")) },
			try: func(t *trial, s *script) {
				s.stat(at(t, s, "ws/l"), 0).must("see the link")
				s.steal(at(t, s, "ws/l/agent.toml"), "open ws/l/agent.toml")
				s.overwrite(at(t, s, "ws/l/made"), oCreate, "create ws/l/made")
			}},
		{name: "masked-hard-link", tries: "Reach a masked file by another name that it has in the workspace.", by: masked,
			mask: []string{"ws/.config/stockade/agent.toml"},
			plant: func(t *trial) error {
				return errors.Join(secret(t), os.Link(t.host("ws/.config/stockade/agent.toml"), t.host("ws/l")))
			},
			try: func(t *trial, s *script) {
				s.steal(at(t, s, "ws/.config/stockade/agent.toml"), "open the file")
				s.steal(at(t, s, "ws/l"), "open ws/l")
			}},
	}
	list = append(list, specialFileAttacks()...)
	var out []Attack
	for _, a := range list {
		out = append(out, Attack{Name: a.name, Area: Files, Tries: a.tries, run: a.run})
	}
	return append(out,
		Attack{Name: "nested-read-only", Area: Files, Tries: "Change a read-only mount that lies inside one with write.", run: nestedReadOnly},
		Attack{Name: "other-mount", Area: Files, Tries: "Reach the directory of another tool, which runs at the same time.", run: otherMount},
		Attack{Name: "moved-directory", Area: Files, Tries: "Use an open directory that somebody has moved out of the workspace meanwhile.", run: movedDirectory},
		Attack{Name: "symlink-exchanged", Area: Files, Tries: "Open a file in a directory that is exchanged for a symbolic link again and again.", run: exchanged},
		Attack{Name: "descriptor-flood", Area: Files, Tries: "Open files until the host has no descriptors left.", run: descriptorFlood},
		Attack{Name: "disk-quota", Area: Files, Tries: "Let files grow to 1.2 GiB together.", run: diskQuota},
		Attack{Name: "huge-file", Area: Files, Tries: "Make a file of a tebibyte by its size, and by writing at its end.", run: hugeFile},
		Attack{Name: "deep-directories", Area: Files, Tries: "Nest directories deeper than any program can name them.", run: deepDirectories},
	)
}
