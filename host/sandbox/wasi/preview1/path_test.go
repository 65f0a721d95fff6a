//go:build unix

package preview1_test

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/sandbox/wasi"
)

// plant makes the files of the host that the rows of TestPaths need.
func plant(h *host) {
	h.Dir("ws/empty")
	h.Link("ws/l", "f.txt")
	h.Link("ws/dl", "d")
	h.Link("ws/loop", "loop")
	h.Link("ws/dangling", "nothing")
	h.Link("ws/abs", "out/secret")
	h.Link("ws/rel", "../out/secret")
	h.Link("ws/up", "../out")
	h.File("out/shared", "shared")
	h.HardLink("ws/hard", "out/shared")
	h.File("ws/masked/key", canary)
	h.Link("ws/ml", "masked")
	h.File("ro/x", "x")
	if err := unix.Mkfifo(h.Path("ws/fifo"), 0o666); err != nil {
		h.T.Fatal(err)
	}
}

// Each row runs with a workspace that is mounted with write, without, and not at all.
// Only the change that the row names may have happened afterwards: a row whose result is
// an error changes nothing.
func TestPaths(t *testing.T) {
	// Each of hundreds of cases has a tree of its own; on a disk that takes longer than
	// the case. The cases of TestPathsWork are on the disk.
	if _, err := os.Stat("/dev/shm"); err == nil {
		t.Setenv("TMPDIR", "/dev/shm")
	}
	const (
		ok    = wasi.Errno(0)
		noent = wasi.ENOENT
		perm  = wasi.EPERM
		rofs  = wasi.EROFS
		inval = wasi.EINVAL
	)
	long := "ws/" + strings.Repeat("x", 300)
	veryLong := "ws/" + strings.Repeat("x/", 4000)
	open := func(p string, o openOptions) func(*host, *guest) wasi.Errno {
		return func(h *host, g *guest) wasi.Errno {
			fd, errno := g.open(preopen, h.name("")+"/"+p, o)
			if errno == 0 {
				if o.base&rFDRead != 0 {
					g.read(fd, 100) // fails the test if it is the canary
				}
				g.call("fd_close", fd)
			}
			return errno
		}
	}
	at := func(name string, extra ...any) func(p string) func(*host, *guest) wasi.Errno {
		return func(p string) func(*host, *guest) wasi.Errno {
			return func(h *host, g *guest) wasi.Errno {
				return g.call(name, append([]any{preopen, h.name("") + "/" + p}, extra...)...)
			}
		}
	}
	mkdir, rmdir, unlink := at("path_create_directory"), at("path_remove_directory"), at("path_unlink_file")
	readlink := at("path_readlink", 8192, 100, resultAt)
	stat := func(follow int, p string) func(*host, *guest) wasi.Errno {
		return func(h *host, g *guest) wasi.Errno {
			_, errno := g.pathStat(preopen, follow, h.name("")+"/"+p)
			return errno
		}
	}
	times := func(follow int, p string, flags int) func(*host, *guest) wasi.Errno {
		return func(h *host, g *guest) wasi.Errno {
			return g.call("path_filestat_set_times", preopen, follow, h.name("")+"/"+p, 1_000_000_000, 2_000_000_000, flags)
		}
	}
	rename := func(a, b string) func(*host, *guest) wasi.Errno {
		return func(h *host, g *guest) wasi.Errno {
			return g.call("path_rename", preopen, h.name("")+"/"+a, preopen, h.name("")+"/"+b)
		}
	}
	link := func(follow int, a, b string) func(*host, *guest) wasi.Errno {
		return func(h *host, g *guest) wasi.Errno {
			return g.call("path_link", preopen, follow, h.name("")+"/"+a, preopen, h.name("")+"/"+b)
		}
	}
	symlink := func(target, p string) func(*host, *guest) wasi.Errno {
		return func(h *host, g *guest) wasi.Errno {
			return g.call("path_symlink", target, preopen, h.name("")+"/"+p)
		}
	}
	read, rw := openOptions{base: rFDRead, follow: 1}, openOptions{base: rFDRead | rFDWrite, follow: 1}
	with := func(o openOptions, oflags, fdflags int) openOptions {
		o.oflags |= oflags
		o.fdflags |= fdflags
		return o
	}

	for _, tc := range []struct {
		name   string
		do     func(*host, *guest) wasi.Errno
		rw, ro wasi.Errno
		none   wasi.Errno // zero: EPERM
	}{
		{"path_open: a file", open("ws/f.txt", read), ok, ok, 0},
		{"path_open: to write", open("ws/f.txt", rw), ok, rofs, 0},
		{"path_open: no rights", open("ws/f.txt", openOptions{}), ok, ok, 0},
		{"path_open: a directory", open("ws/d", read), ok, ok, 0},
		{"path_open: a directory with a slash", open("ws/d/", read), ok, ok, 0},
		{"path_open: a directory, to write", open("ws/d", rw), wasi.EISDIR, rofs, 0},
		{"path_open: directory", open("ws/d", with(read, oDirectory, 0)), ok, ok, 0},
		{"path_open: directory that is a file", open("ws/f.txt", with(read, oDirectory, 0)), wasi.ENOTDIR, wasi.ENOTDIR, 0},
		{"path_open: nothing", open("ws/no", read), noent, noent, 0},
		{"path_open: below nothing", open("ws/no/x", read), noent, noent, 0},
		{"path_open: below a file", open("ws/f.txt/x", read), wasi.ENOTDIR, wasi.ENOTDIR, 0},
		{"path_open: a file with a slash", open("ws/f.txt/", read), wasi.ENOTDIR, wasi.ENOTDIR, 0},
		{"path_open: create", open("ws/new", with(rw, oCreat, 0)), ok, rofs, 0},
		{"path_open: create without rights", open("ws/new", openOptions{oflags: oCreat}), ok, rofs, 0},
		{"path_open: create what is there", open("ws/f.txt", with(read, oCreat, 0)), ok, rofs, 0},
		{"path_open: create exclusively", open("ws/f.txt", with(rw, oCreat|oExcl, 0)), wasi.EEXIST, rofs, 0},
		{"path_open: create exclusively over a link", open("ws/dangling", with(rw, oCreat|oExcl, 0)), wasi.EEXIST, rofs, 0},
		{"path_open: create with a slash", open("ws/new/", with(rw, oCreat, 0)), wasi.EISDIR, rofs, 0},
		{"path_open: create a directory", open("ws/new", with(read, oCreat|oDirectory, 0)), inval, inval, inval},
		{"path_open: create behind a dangling link", open("ws/dangling", with(rw, oCreat, 0)), noent, rofs, 0},
		{"path_open: truncate without a right", open("ws/f.txt", openOptions{oflags: oTrunc}), ok, rofs, 0},
		{"path_open: truncate with the right to read", open("ws/f.txt", with(read, oTrunc, 0)), ok, rofs, 0},
		{"path_open: append", open("ws/f.txt", with(rw, 0, fAppend)), ok, rofs, 0},
		{"path_open: append with the right to read", open("ws/f.txt", with(read, 0, fAppend)), ok, rofs, 0},
		{"path_open: synchronous", open("ws/f.txt", with(rw, 0, fSync|fDsync|fRsync|fNonblock)), ok, rofs, 0},
		{"path_open: unknown oflags", open("ws/f.txt", openOptions{oflags: 16}), inval, inval, inval},
		{"path_open: unknown fdflags", open("ws/f.txt", openOptions{fdflags: 32}), inval, inval, inval},
		{"path_open: unknown lookup flags", open("ws/f.txt", openOptions{follow: 2}), inval, inval, inval},
		{"path_open: a link, followed", open("ws/l", read), ok, ok, 0},
		{"path_open: a link, not followed", open("ws/l", openOptions{base: rFDRead}), wasi.ELOOP, wasi.ELOOP, 0},
		{"path_open: a link to a directory, not followed", open("ws/dl", openOptions{base: rFDRead, oflags: oDirectory}), wasi.ELOOP, wasi.ELOOP, 0},
		{"path_open: through a link", open("ws/dl/g.txt", openOptions{base: rFDRead}), ok, ok, 0},
		{"path_open: a loop", open("ws/loop", read), wasi.ELOOP, wasi.ELOOP, 0},
		{"path_open: a dangling link", open("ws/dangling", read), noent, noent, 0},
		{"path_open: a long name", open(long, read), wasi.ENAMETOOLONG, wasi.ENAMETOOLONG, 0},
		{"path_open: a very long name", open(veryLong, read), wasi.ENAMETOOLONG, wasi.ENAMETOOLONG, wasi.ENAMETOOLONG},
		{"path_open: a NUL", open("ws/f.txt\x00", read), inval, inval, inval},
		{"path_open: not UTF-8", open("ws/\xff", with(rw, oCreat, 0)), wasi.EILSEQ, wasi.EILSEQ, wasi.EILSEQ},
		{"path_open: a FIFO", open("ws/fifo", read), wasi.EACCES, wasi.EACCES, 0},
		{"path_open: a FIFO, to write", open("ws/fifo", rw), wasi.EACCES, rofs, 0},
		{"path_open: a file with two names", open("ws/hard", read), ok, ok, 0},
		{"path_open: a file with two names, to write", open("ws/hard", rw), wasi.EACCES, rofs, 0},
		{"path_open: a file with two names, to truncate", open("ws/hard", with(read, oTrunc, 0)), wasi.EACCES, rofs, 0},
		{"path_open: an absolute link out", open("ws/abs", read), perm, perm, 0},
		{"path_open: a relative link out", open("ws/rel", read), perm, perm, 0},
		{"path_open: a relative link out, to write", open("ws/rel", rw), perm, rofs, 0},
		{"path_open: a relative link out, to truncate", open("ws/rel", with(read, oTrunc, 0)), perm, rofs, 0},
		{"path_open: below a link out", open("ws/up/secret", read), perm, perm, 0},
		{"path_open: create below a link out", open("ws/up/new", with(rw, oCreat, 0)), perm, rofs, 0},
		{"path_open: beside the mount", open("out/secret", read), perm, perm, 0},
		{"path_open: beside the mount, nothing", open("out/nothing", read), perm, perm, 0},
		{"path_open: beside the mount by dots", open("ws/../out/secret", read), perm, perm, 0},
		{"path_open: beyond the preopen", open(strings.Repeat("../", 50)+"etc/passwd", read), perm, perm, 0},
		{"path_open: masked", open("ws/masked/key", read), perm, perm, 0},
		{"path_open: masked, by a link", open("ws/ml/key", read), perm, perm, 0},
		{"path_open: created where it is masked", open("ws/later", with(rw, oCreat, 0)), perm, perm, 0},

		{"path_create_directory", mkdir("ws/new"), ok, rofs, 0},
		{"path_create_directory: with a slash", mkdir("ws/new/"), ok, rofs, 0},
		{"path_create_directory: again", mkdir("ws/d"), wasi.EEXIST, rofs, 0},
		{"path_create_directory: over a file", mkdir("ws/f.txt"), wasi.EEXIST, rofs, 0},
		{"path_create_directory: over a link", mkdir("ws/dangling"), wasi.EEXIST, rofs, 0},
		{"path_create_directory: below nothing", mkdir("ws/no/new"), noent, rofs, 0},
		{"path_create_directory: below a file", mkdir("ws/f.txt/new"), wasi.ENOTDIR, rofs, 0},
		{"path_create_directory: a long name", mkdir(long), wasi.ENAMETOOLONG, rofs, 0},
		{"path_create_directory: beside the mount", mkdir("new"), perm, perm, 0},
		{"path_create_directory: below a link out", mkdir("ws/up/new"), perm, rofs, 0},
		{"path_create_directory: masked", mkdir("ws/later"), perm, perm, 0},

		{"path_remove_directory", rmdir("ws/empty"), ok, rofs, 0},
		{"path_remove_directory: with a slash", rmdir("ws/empty/"), ok, rofs, 0},
		{"path_remove_directory: not empty", rmdir("ws/d"), wasi.ENOTEMPTY, rofs, 0},
		{"path_remove_directory: a file", rmdir("ws/f.txt"), wasi.ENOTDIR, rofs, 0},
		{"path_remove_directory: a link to one", rmdir("ws/dl"), wasi.ENOTDIR, rofs, 0},
		{"path_remove_directory: nothing", rmdir("ws/no"), noent, rofs, 0},
		{"path_remove_directory: the mount", rmdir("ws"), perm, rofs, 0},
		{"path_remove_directory: above the mount", rmdir("."), rofs, rofs, 0},
		{"path_remove_directory: beside the mount", rmdir("out/dir"), perm, perm, 0},
		{"path_remove_directory: below a link out", rmdir("ws/up/dir"), perm, rofs, 0},

		{"path_unlink_file", unlink("ws/f.txt"), ok, rofs, 0},
		{"path_unlink_file: a link", unlink("ws/rel"), ok, rofs, 0},
		{"path_unlink_file: one of two names", unlink("ws/hard"), ok, rofs, 0},
		{"path_unlink_file: a directory", unlink("ws/empty"), wasi.EISDIR, rofs, 0},
		{"path_unlink_file: with a slash", unlink("ws/f.txt/"), wasi.ENOTDIR, rofs, 0},
		{"path_unlink_file: nothing", unlink("ws/no"), noent, rofs, 0},
		{"path_unlink_file: beside the mount", unlink("out/secret"), perm, perm, 0},
		{"path_unlink_file: below a link out", unlink("ws/up/secret"), perm, rofs, 0},
		{"path_unlink_file: masked", unlink("ws/masked/key"), perm, perm, 0},

		{"path_filestat_get", stat(0, "ws/f.txt"), ok, ok, 0},
		{"path_filestat_get: a directory", stat(1, "ws/d/"), ok, ok, 0},
		{"path_filestat_get: a directory above the mount", stat(1, "."), ok, ok, 0},
		{"path_filestat_get: nothing", stat(0, "ws/no"), noent, noent, 0},
		{"path_filestat_get: a file with a slash", stat(0, "ws/f.txt/"), wasi.ENOTDIR, wasi.ENOTDIR, 0},
		{"path_filestat_get: a dangling link", stat(0, "ws/dangling"), ok, ok, 0},
		{"path_filestat_get: behind a dangling link", stat(1, "ws/dangling"), noent, noent, 0},
		{"path_filestat_get: a loop", stat(1, "ws/loop"), wasi.ELOOP, wasi.ELOOP, 0},
		{"path_filestat_get: a link out", stat(0, "ws/rel"), ok, ok, 0},
		{"path_filestat_get: behind a link out", stat(1, "ws/rel"), perm, perm, 0},
		{"path_filestat_get: beside the mount", stat(0, "out/secret"), perm, perm, 0},
		{"path_filestat_get: masked", stat(0, "ws/masked"), perm, perm, 0},
		{"path_filestat_get: a FIFO", stat(0, "ws/fifo"), ok, ok, 0},
		{"path_filestat_get: unknown lookup flags", stat(4, "ws/f.txt"), inval, inval, inval},

		{"path_filestat_set_times", times(0, "ws/f.txt", sAtim|sMtim), ok, rofs, 0},
		{"path_filestat_set_times: now", times(1, "ws/f.txt", sAtimNow|sMtimNow), ok, rofs, 0},
		{"path_filestat_set_times: a directory", times(1, "ws/d", sMtim), ok, rofs, 0},
		{"path_filestat_set_times: above the mount", times(1, ".", sMtim), rofs, rofs, 0},
		{"path_filestat_set_times: nothing", times(1, "ws/no", sMtim), noent, rofs, 0},
		{"path_filestat_set_times: nothing, not followed", times(0, "ws/no", sMtim), noent, rofs, 0},
		{"path_filestat_set_times: behind a link", times(1, "ws/l", sMtim), ok, rofs, 0},
		{"path_filestat_set_times: behind a link out", times(1, "ws/rel", sMtim), perm, rofs, 0},
		{"path_filestat_set_times: two names", times(1, "ws/hard", sMtim), wasi.EACCES, rofs, 0},
		{"path_filestat_set_times: a FIFO", times(1, "ws/fifo", sMtim), wasi.EACCES, rofs, 0},
		{"path_filestat_set_times: beside the mount", times(1, "out/secret", sMtim), perm, perm, 0},
		{"path_filestat_set_times: masked", times(0, "ws/masked/key", sMtim), perm, perm, 0},
		{"path_filestat_set_times: both", times(0, "ws/f.txt", sMtim|sMtimNow), inval, inval, inval},
		{"path_filestat_set_times: both of the other", times(0, "ws/f.txt", sAtim|sAtimNow), inval, inval, inval},
		{"path_filestat_set_times: unknown flags", times(0, "ws/f.txt", 16), inval, inval, inval},
		{"path_filestat_set_times: unknown lookup flags", times(2, "ws/f.txt", sMtim), inval, inval, inval},

		{"path_rename", rename("ws/f.txt", "ws/d/new"), ok, rofs, 0},
		{"path_rename: a directory", rename("ws/d", "ws/new"), ok, rofs, 0},
		{"path_rename: onto a file", rename("ws/f.txt", "ws/d/g.txt"), ok, rofs, 0},
		{"path_rename: onto an empty directory", rename("ws/d", "ws/empty"), ok, rofs, 0},
		{"path_rename: to itself", rename("ws/f.txt", "ws/f.txt"), ok, rofs, 0},
		{"path_rename: nothing", rename("ws/no", "ws/new"), noent, rofs, 0},
		{"path_rename: below nothing", rename("ws/f.txt", "ws/no/x"), noent, rofs, 0},
		{"path_rename: a file onto a directory", rename("ws/f.txt", "ws/empty"), wasi.EISDIR, rofs, 0},
		{"path_rename: a directory onto a file", rename("ws/empty", "ws/f.txt"), wasi.ENOTDIR, rofs, 0},
		{"path_rename: onto a full directory", rename("ws/empty", "ws/d"), wasi.ENOTEMPTY, rofs, 0},
		{"path_rename: into itself", rename("ws/d", "ws/d/x"), inval, rofs, 0},
		{"path_rename: a file with a slash", rename("ws/f.txt/", "ws/new"), wasi.ENOTDIR, rofs, 0},
		{"path_rename: out", rename("ws/f.txt", "out/new"), perm, anyErrno, 0},
		{"path_rename: in", rename("out/secret", "ws/new"), perm, perm, 0},
		{"path_rename: out by a link", rename("ws/f.txt", "ws/up/new"), perm, rofs, 0},
		{"path_rename: in by a link", rename("ws/up/secret", "ws/new"), perm, rofs, 0},
		{"path_rename: to another mount", rename("ws/f.txt", "rw/new"), wasi.EXDEV, rofs, 0},
		{"path_rename: to a read-only mount", rename("ws/f.txt", "ro/new"), rofs, rofs, 0},
		{"path_rename: from a read-only mount", rename("ro/x", "ws/new"), rofs, rofs, rofs},
		{"path_rename: what is masked", rename("ws/masked", "ws/new"), perm, anyErrno, 0},
		{"path_rename: the mount", rename("ws", "ws/new"), perm, rofs, 0},

		{"path_link", link(0, "ws/f.txt", "ws/new"), perm, rofs, 0},
		{"path_link: from outside", link(0, "out/secret", "ws/new"), perm, perm, 0},
		{"path_link: to outside", link(0, "ws/f.txt", "out/new"), perm, perm, 0},
		{"path_link: to another mount", link(0, "ws/f.txt", "rw/new"), perm, perm, 0},
		{"path_link: from a read-only mount", link(0, "ro/x", "ws/new"), perm, rofs, 0},
		{"path_link: unknown lookup flags", link(2, "ws/f.txt", "ws/new"), inval, inval, inval},
		{"path_symlink", symlink("f.txt", "ws/new"), perm, rofs, 0},
		{"path_symlink: out", symlink("../out/secret", "ws/new"), perm, rofs, 0},
		{"path_symlink: absolute", symlink("/etc/passwd", "ws/new"), perm, rofs, 0},
		{"path_symlink: beside the mount", symlink("x", "out/new"), perm, perm, 0},
		{"path_symlink: a very long target", symlink(veryLong, "ws/new"), wasi.ENAMETOOLONG, wasi.ENAMETOOLONG, wasi.ENAMETOOLONG},

		{"path_readlink", readlink("ws/l"), ok, ok, 0},
		{"path_readlink: a dangling link", readlink("ws/dangling"), ok, ok, 0},
		{"path_readlink: a file", readlink("ws/f.txt"), inval, inval, 0},
		{"path_readlink: a directory", readlink("ws/d"), inval, inval, 0},
		{"path_readlink: nothing", readlink("ws/no"), noent, noent, 0},
		{"path_readlink: an absolute link", readlink("ws/abs"), perm, perm, 0},
		{"path_readlink: a link out", readlink("ws/rel"), perm, perm, 0},
		{"path_readlink: beside the mount", readlink("out/secret"), perm, perm, 0},
		{"path_readlink: above the mount", readlink("."), inval, inval, 0},
	} {
		for _, mode := range []string{"rw", "ro", "none"} {
			t.Run(tc.name+"/"+mode, func(t *testing.T) {
				h := newHost(t)
				plant(h)
				h.Dir("rw")
				want := tc.none
				mounts := []policy.Mount{h.ro("ro"), h.rw("rw")}
				masked := []string{"ws/masked", "ws/later"}
				switch mode {
				case "rw":
					want, mounts = tc.rw, append(mounts, h.rw("ws"))
				case "ro":
					want, mounts = tc.ro, append(mounts, h.ro("ws"))
				default:
					masked = nil
					switch {
					case tc.name == "path_remove_directory: above the mount", tc.name == "path_filestat_set_times: above the mount",
						tc.name == "path_filestat_get: a directory above the mount", tc.name == "path_readlink: above the mount":
						want = tc.ro // as with any mount
					case want == 0:
						want = perm
					}
				}
				g := newGuest(t, h.options(masked, mounts...))
				before := h.State()
				got := tc.do(h, g)
				switch {
				case want == anyErrno && got != 0, got == want:
				case mode == "ro" && want == rofs && got == tc.rw && got != 0:
					// With something masked inside, the name is looked up first.
				default:
					t.Errorf("got %v, want %v", got, want)
				}
				if want != 0 {
					h.CheckUnchanged(before)
				}
				for _, p := range []string{"out/secret", "ws/masked/key"} {
					if h.Content(p) != canary {
						t.Errorf("%s was changed", p)
					}
				}
				if h.Content("out/shared") != "shared" {
					t.Error("the other name of a file was changed")
				}
				for _, p := range []string{"out/new", "ws/later", "out/dir/new", "new"} {
					if _, err := os.Lstat(h.Path(p)); err == nil {
						t.Errorf("%s was made", p)
					}
				}
			})
		}
	}
}

// anyErrno stands for any error.
const anyErrno = wasi.Errno(0xffff)

// The results of the functions when they succeed.
func TestPathsWork(t *testing.T) {
	h := newHost(t)
	plant(h)
	g := h.mounted(h.rw("ws"))
	ws := g.directory(h, "ws")
	exists := func(p string, want bool) {
		t.Helper()
		if _, err := os.Lstat(h.Path(p)); (err == nil) != want {
			t.Errorf("%s exists: %v", p, err == nil)
		}
	}
	g.must("path_create_directory", ws, "new")
	exists("ws/new", true)
	g.must("path_remove_directory", ws, "new/")
	exists("ws/new", false)
	g.must("path_rename", ws, "f.txt", g.directory(h, "ws/d"), "moved")
	exists("ws/f.txt", false)
	if got := h.Content("ws/d/moved"); got != "inside" {
		t.Errorf("moved %q", got)
	}
	g.must("path_rename", ws, "d/moved", ws, "f.txt")
	g.must("path_unlink_file", ws, "l")
	exists("ws/l", false)
	exists("ws/f.txt", true)

	st, errno := g.pathStat(ws, 0, "f.txt")
	fi, err := os.Lstat(h.Path("ws/f.txt"))
	if err != nil {
		t.Fatal(err)
	}
	if errno != 0 || st.size != 6 || st.typ != tRegular || st.nlink != 1 || st.mtim != uint64(fi.ModTime().UnixNano()) {
		t.Errorf("stat: %+v, %v", st, errno)
	}
	for p, want := range map[string]int{"d": tDirectory, "rel": tSymlink, "dl": tSymlink, "fifo": tUnknown} {
		if st, errno := g.pathStat(ws, 0, p); st.typ != want || errno != 0 {
			t.Errorf("type of %s is %d, %v", p, st.typ, errno)
		}
	}
	if st, errno := g.pathStat(ws, 0, "rel"); st.size != 0 || errno != 0 {
		t.Errorf("a link out has size %d, %v", st.size, errno)
	}
	g.must("path_filestat_set_times", ws, 1, "f.txt", 3_000_000_000, 4_000_000_000, sAtim|sMtim)
	if st, _ := g.pathStat(ws, 0, "f.txt"); st.atim != 3_000_000_000 || st.mtim != 4_000_000_000 {
		t.Errorf("times: %+v", st)
	}
	g.must("path_filestat_set_times", ws, 1, "f.txt", 5_000_000_000, 6_000_000_000, sMtim)
	if st, _ := g.pathStat(ws, 0, "f.txt"); st.atim != 3_000_000_000 || st.mtim != 6_000_000_000 {
		t.Errorf("times: %+v", st)
	}
	g.want(wasi.EINVAL, "path_filestat_set_times", ws, 1, "f.txt", uint64(1)<<63, 0, sAtim)

	fd := g.opened(ws, "f.txt", openOptions{base: rFDRead})
	if s, errno := g.read(fd, 100); s != "inside" || errno != 0 {
		t.Errorf("read %q, %v", s, errno)
	}
	for p, want := range map[string]string{"dl": "d", "dangling": "nothing"} {
		buf := g.room(20)
		g.must("path_readlink", ws, p, buf, 20, resultAt)
		if got := string(g.bytes(buf, int(g.u32(resultAt)))); got != want {
			t.Errorf("readlink %s: %q", p, got)
		}
	}
}

func TestPathsAreRelativeToTheirDirectory(t *testing.T) {
	h := newHost(t)
	plant(h)
	g := h.mounted(h.rw("ws"))
	d := g.directory(h, "ws/d")
	before := h.State()
	for p, want := range map[string]wasi.Errno{
		"g.txt":               0,
		".":                   0,
		"./x/../g.txt":        0,
		"":                    wasi.EINVAL,
		"..":                  wasi.EPERM,
		"../f.txt":            wasi.EPERM,
		"x/../../f.txt":       wasi.EPERM,
		"/":                   wasi.EPERM,
		"/etc/passwd":         wasi.EPERM,
		h.Path("ws/d/g.txt"):  wasi.EPERM,
		"../../out/secret":    wasi.EPERM,
		"../../../etc/passwd": wasi.EPERM,
	} {
		_, errno := g.open(d, p, openOptions{base: rFDRead, follow: 1})
		wantErrno(t, "open "+p, errno, want)
		_, errno = g.pathStat(d, 1, p)
		wantErrno(t, "stat "+p, errno, want)
		if want != 0 {
			g.want(want, "path_create_directory", d, p)
			g.want(want, "path_unlink_file", d, p)
			g.want(want, "path_remove_directory", d, p)
			g.want(want, "path_rename", d, p, d, "new")
			g.want(want, "path_rename", d, "g.txt", d, p)
			g.want(want, "path_readlink", d, p, 8192, 10, resultAt)
			g.want(want, "path_filestat_set_times", d, 1, p, 0, 0, sMtim)
			g.want(want, "path_link", d, 0, p, d, "new")
			g.want(want, "path_symlink", "x", d, p)
		}
	}
	h.CheckUnchanged(before)
}

// A directory that is moved while a guest has it open, and one that takes its
// place, give no access beyond the mounts.
func TestDirectoryThatIsMoved(t *testing.T) {
	h := newHost(t)
	g := h.mounted(h.rw("ws"))
	d := g.directory(h, "ws/d")
	if err := os.Rename(h.Path("ws/d"), h.Path("out/d")); err != nil {
		t.Fatal(err)
	}
	h.File("out/d/secret", canary)
	h.File("out/x/secret", canary)
	before := h.State()
	try := func(want wasi.Errno) {
		t.Helper()
		_, errno := g.open(d, "secret", openOptions{base: rFDRead, follow: 1})
		wantErrno(t, "open", errno, want)
		_, errno = g.open(d, "new", openOptions{base: rFDRead | rFDWrite, oflags: oCreat})
		wantErrno(t, "create", errno, want)
		g.want(want, "path_create_directory", d, "new")
		g.want(want, "path_unlink_file", d, "secret")
		g.want(want, "path_filestat_set_times", d, 1, "secret", 0, 0, sMtim)
		h.CheckUnchanged(before)
	}
	try(wasi.ENOENT)
	h.Link("ws/d", "../out/x")
	before = h.State()
	try(wasi.EPERM)
}

func TestSpecialFiles(t *testing.T) {
	h := newHost(t)
	base, err := os.MkdirTemp("", "sock") // a short name, for the socket
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(base)
	l, err := net.Listen("unix", filepath.Join(base, "s"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	real, err := filepath.EvalSymlinks(base)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.Mkfifo(filepath.Join(real, "f"), 0o666); err != nil {
		t.Fatal(err)
	}
	g := h.mounted(policy.Mount{Host: real, Write: true})
	for _, p := range []string{real[1:] + "/s", real[1:] + "/f"} {
		for _, base := range []uint64{0, rFDRead, rFDWrite, rAll} {
			for _, oflags := range []int{0, oCreat, oTrunc, oDirectory} {
				_, errno := g.open(preopen, p, openOptions{base: base, oflags: oflags, follow: 1})
				wantErrno(t, fmt.Sprintf("open %s with rights %#x, flags %d", p, base, oflags), errno, wasi.EACCES)
			}
		}
	}
}
