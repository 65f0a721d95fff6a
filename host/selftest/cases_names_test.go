package selftest

import (
	"fmt"
	"os"
	"strings"
)

// nameCases are on names that say one thing and mean another.
func nameCases() []numbered {
	const outside = "EPERM"
	return []numbered{
		{id: "F01", title: `names with ".."`, files: func(x *onMount) {
			for _, n := range []string{
				"ws/../out/secret", "ws/d/../../out/secret", "ws/none/../../out/secret", "ws//d//..//..//out//secret", "ws/./../out/./secret",
			} {
				x.reads(n, outside)
				x.writes(n, oTruncate, outside)
			}
			x.writes("ws/../out/made", oCreate, outside)
			x.want(x.mkdir(x.in("ws/../out/made")), "mkdir", outside)
			x.want(x.unlink(x.in("ws/../out/secret")), "unlink", outside)
			x.want(x.rmdir(x.in("ws/../out/dir")), "rmdir", outside)
			x.want(x.rename(x.in("ws/inside"), x.in("ws/../out/moved")), "move out", outside, "EPERM EROFS", outside)
			x.want(x.rename(x.in("ws/../out/secret"), x.in("ws/moved")), "move in", outside)
			x.readsAt(x.at(strings.Repeat("../", 64)+x.trial.guest("out/secret")), "climb above the root", outside)
			// From an open directory nothing above that can be named.
			d := x.openDir(x.in("ws"))
			x.want(d.call, "open the workspace", "ok", "ok", outside)
			for _, n := range []string{"../out/secret", "./../out/secret", "d/../../out/secret", "./.."} {
				x.readsAt(place{d.fd, x.text(n)}, "open "+n+" from the workspace", outside, outside, "EBADF")
			}
		}},
		{id: "F02", title: "absolute names", files: func(x *onMount) {
			for _, n := range []string{"/etc/passwd", "//etc/passwd", "etc/passwd", "/proc/self/environ", "/dev/zero", "/" + x.trial.guest("out/secret")} {
				x.readsAt(x.at(n), "read "+n, outside)
				f := x.open(x.at(n), oCreate, mayRead|mayWrite, 0)
				x.want(f.call, "write to "+n, outside)
			}
			// An absolute name of one's own is refused from a directory, too.
			d := x.openDir(x.in("else"))
			x.readsAt(place{d.fd, x.text("/" + x.trial.guest("out/secret"))}, "an absolute name from a directory", outside)
		}},
		{id: "F03", title: "separators, devices and streams of Windows", files: func(x *onMount) {
			for _, n := range []string{
				`..\out\secret`, `d\..\..\out\secret`, `C:\out`, `C:out`, `\\?\C:\out`, `\\srv\share\x`, `\\.\PhysicalDrive0`, "NUL", "CON", "COM1.txt", "inside:stream",
				"inside::$DATA", "inside.", "inside ", "d./deep", "d /deep",
			} {
				x.reads("ws/"+n, "ENOENT", "ENOENT", outside)
			}
			// To make one is to make a file of this odd name, or nothing.
			x.may("ws")
			x.writes(`ws/..\out\made`, oCreate, "ok", "EROFS", outside)
			x.writes("ws/made:stream", oCreate, "ok", "EROFS", outside)
			x.holds("out/made", "-")
			x.holds("ws/made", "-")
		}, open: "on Windows itself the suite has not been run: there such names are refused as text (wasi.foreign)"},
		{id: "F04", title: "names that are none", files: func(x *onMount) {
			for _, n := range []string{"ws/inside\x00", "ws/made\x00.txt", "\x00", "ws/../out/secret\x00"} {
				x.reads(n, "EINVAL")
				x.writes(n, oCreate, "EINVAL")
			}
			for _, n := range []string{"ws/\xff\xfe", "ws/\xc0\xae\xc0\xae/out/secret", "ws/\xed\xa0\x80"} {
				x.reads(n, "EILSEQ")
				x.writes(n, oCreate, "EILSEQ")
			}
			x.want(x.stat(x.at(""), followLinks), "the empty name", "EINVAL")
			x.want(x.rename(x.in("ws/inside"), x.at("")), "rename to the empty name", "EINVAL", "EINVAL EROFS", "EINVAL EPERM")
			x.want(x.mkdir(x.in("ws/.")), "mkdir .", "EEXIST", "EEXIST EROFS", outside)
			x.want(x.rmdir(x.in("ws/.")), "rmdir .", "EINVAL EPERM EBUSY", "EINVAL EPERM EROFS EBUSY", outside)
			x.want(x.unlink(x.in("ws/./.")), "unlink ./.", "EISDIR EPERM", "EISDIR EROFS EPERM", outside)
			x.want(x.stat(x.at("./././."), followLinks), "dots only", "ok")
		}},
		{id: "F33", title: "long names and deep directories", inMemory: true, files: func(x *onMount) {
			x.may("ws")
			x.writes("ws/"+strings.Repeat("x", 255), oCreate, "ok", "EROFS", outside)
			x.writes("ws/"+strings.Repeat("x", 256), oCreate, "ENAMETOOLONG", "ENAMETOOLONG EROFS", outside)
			x.reads("ws/"+strings.Repeat("x/../", 1800)+"inside", "ENAMETOOLONG")
			x.reads("ws/"+strings.Repeat("d/../", 700)+"inside", "ok", "ok", outside)
			// Ten thousand directories, one in the other: until they have no name.
			const tries, step = 10_000, "/directory"
			base := x.trial.guest("ws")
			name := x.text(base + strings.Repeat(step, tries))
			length := x.words(uint32(len(base)))
			longer := x.add("add", length.at, len(step))
			mkdir := x.add("path_create_directory", root, name.at, cell(length.at))
			x.again(longer, tries-1)
			x.want(mkdir, "nest one more directory", "ENAMETOOLONG", "EROFS", outside)
			x.checks = append(x.checks, func(r report) error {
				if n, most := r.times(mkdir), 1+4096/len(step); n > most {
					return fmt.Errorf("%d directories were nested", n-1)
				}
				return nil
			})
		}},
		{id: "F36", title: "protected names in other case", files: func(x *onMount) {
			x.must(os.MkdirAll(x.host("ws/.git/hooks"), 0o700), x.write("ws/.git/config", x.canary))
			x.guest.Masked = []string{x.host("ws/.git/hooks"), x.host("ws/.git/config"), x.host("ws/.vscode/tasks.json")}
			for _, n := range []string{".git/config", ".GIT/config", ".Git/Config", ".git/CONFIG"} {
				x.reads("ws/"+n, "EPERM ENOENT", "EPERM ENOENT", outside)
			}
			x.reads("ws/.git/CONFIG", outside)
			for _, n := range []string{".git/hooks/post-commit", ".git/HOOKS/post-commit", ".git/Config"} {
				x.writes("ws/"+n, oCreate, outside, "EPERM EROFS", outside)
			}
			// What is protected and not there yet cannot be made, in no case.
			x.may("ws")
			x.want(x.mkdir(x.in("ws/.VsCode")), "mkdir .VsCode", "ok", "EROFS", outside)
			x.writes("ws/.VsCode/Tasks.JSON", oCreate, outside, "EPERM EROFS ENOENT", outside)
			x.want(x.rename(x.in("ws/inside"), x.in("ws/.VsCode/TASKS.json")), "rename to it", outside, "EPERM EROFS ENOENT", outside)
			x.holds("ws/.git/hooks/post-commit", "-")
			x.holds("ws/.git/Config", "-")
			x.holds("ws/.VsCode/TASKS.json", "-")
		}},
		{id: "F37", title: "protected names in other Unicode", files: func(x *onMount) {
			const composed, decomposed = "caf\u00e9", "cafe\u0301"
			x.must(os.MkdirAll(x.host("ws/"+composed), 0o700), x.write("ws/"+composed+"/keys", x.canary))
			x.guest.Masked = []string{
				x.host("ws/" + composed), x.host("ws/stockade"), x.host("ws/r\u00e9sum\u00e9"), x.host("ws/\u1e69"),
			}
			x.reads("ws/"+composed+"/keys", outside)
			x.reads("ws/"+decomposed+"/keys", "EPERM ENOENT", "EPERM ENOENT", outside)
			// File systems that take these for the same name would.
			x.may("ws")
			for _, n := range []string{
				"re\u0301sume\u0301", "R\u00c9SUM\u00c9", "RE\u0301SUME\u0301", "s\u0307\u0323", "s\u0323\u0307", // composed or not, in any order
				"stoc\u212aade", "\u017ftockade", // the Kelvin sign is a K, a long s an s
				"stock\u200cade", "\ufeffstockade", "sto\u200d\u200ecKade", // what some ignore
			} {
				x.want(x.mkdir(x.in("ws/"+n)), fmt.Sprintf("mkdir %+q", n), outside, "EPERM EROFS", outside)
				x.holds("ws/"+n, "-")
			}
			// Look-alikes that no file system takes for the name are other names.
			x.want(x.mkdir(x.in("ws/st\u043eckade")), "mkdir with a Cyrillic o", "ok", "EROFS", outside)
		}, open: "case folding that is longer than a character, such as \u00df for ss, which ext4 and APFS know, and case that depends on the language"},
	}
}
