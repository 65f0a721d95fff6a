package selftest

import (
	"fmt"
	"os"
	"runtime"
	"testing"

	"github.com/stockade-dev/stockade/host/selftest/machine"
	w "github.com/stockade-dev/stockade/host/wasm/wasmtest"
)

// fileCases concern files.
func fileCases() []testCase {
	return []testCase{
		{id: "F01", title: `names with ".."`, attacks: "dotdot-read dotdot-create dotdot-rename dotdot-remove dotdot-beyond-root dotdot-from-directory"},
		{id: "F02", title: "absolute names", attacks: "absolute-path"},
		{id: "F03", title: "separators, devices and streams of Windows", attacks: "name-of-windows",
			open: "on Windows itself the suite has not been run: there such names are refused as text (wasi.foreign)"},
		{id: "F04", title: "names that are none", attacks: "name-with-nul name-not-utf8 name-odd"},
		{id: "F05", title: "symbolic link with an absolute name outside", attacks: "symlink-absolute symlink-write"},
		{id: "F06", title: "symbolic link with a relative name outside", attacks: "symlink-relative symlink-write symlink-truncate"},
		{id: "F07", title: "symbolic link to a directory outside, and names below it", attacks: "symlink-directory symlink-directory-write symlink-dangling"},
		{id: "F08", title: "symbolic link to /proc/self", attacks: "symlink-proc"},
		{id: "F09", title: "symbolic link that the guest makes, with a relative name", attacks: "symlink-made"},
		{id: "F10", title: "symbolic link that the guest makes, with an absolute name", attacks: "symlink-made"},
		{id: "F11", title: "chains and loops of symbolic links", attacks: "symlink-chain symlink-loop"},
		{id: "F12", title: "symbolic links that stay inside work", files: []fileAttack{linksInside()}},
		{id: "F13", title: "symbolic link whose directory is moved so that it leads outside", attacks: "symlink-moved"},
		{id: "F14", title: "a directory that is exchanged for a symbolic link meanwhile", attacks: "symlink-exchanged", files: []fileAttack{exchangeAttack(10_000, false), exchangeAttack(10_000, true)}},
		{id: "F15", title: "hard links", attacks: "hard-link-made"},
		{id: "F16", title: "writing through a second name of a file", attacks: "hard-link-write",
			open: "the refusal is an answer to the guest and no event of its own in the record"},
		{id: "F17", title: "reading through a second name of a file: allowed, because nothing tells it from any other", files: []fileAttack{secondName()}},
		{id: "F18", title: "times of a file outside", attacks: "symlink-times"},
		{id: "F19", title: "names of the host in symbolic links", attacks: "symlink-target"},
		{id: "F20", title: "the root directory is closed, or another one put in its place", attacks: "preopen-replaced"},
		{id: "F21", title: "an open directory that the host moves outside", attacks: "moved-directory"},
		{id: "F22", title: "read-only mount: truncate with the right to read", attacks: "read-only-truncate"},
		{id: "F23", title: "read-only mount: create with the right to read", attacks: "read-only-create"},
		{id: "F24", title: "read-only mount: append, write, allocate and set the size", attacks: "read-only-write read-only-descriptor reader-writes"},
		{id: "F25", title: "read-only mount: remove, make and move", attacks: "read-only-remove read-only-rename read-only-make"},
		{id: "F26", title: "read-only mount: times", attacks: "read-only-times",
			open: "WASI has no function for modes, owners and extended attributes; bash is not confined yet"},
		{id: "F27", title: "named pipe", attacks: "named-pipe"},
		{id: "F28", title: "socket and devices", attacks: "socket device block-device"},
		{id: "F29", title: "files without an end, and the host's own memory, by a mount that holds everything", attacks: "mounted-proc symlink-device"},
		{id: "F30", title: "sparse files: an exbibyte by size, and a byte at its end", attacks: "huge-file"},
		{id: "F31", title: "write until the quota is used up", attacks: "disk-quota rewrite-flood",
			open: "the quota is that of a call: a workspace has none that outlives it"},
		{id: "F32", title: "a million small files", files: []fileAttack{manyFiles()}},
		{id: "F33", title: "long names and deep directories", attacks: "name-too-long deep-directories"},
		{id: "F34", title: "thousands of open files, while another module opens one", attacks: "descriptor-flood"},
		{id: "F35", title: "list thousands of names with a buffer of one byte", files: []fileAttack{manyNames()}},
		{id: "F36", title: "protected names in other case", attacks: "masked-other-case"},
		{id: "F37", title: "protected names in other Unicode", attacks: "masked-other-unicode",
			open: "case folding that is longer than a character, such as \u00df for ss, which ext4 and APFS know, and case that depends on the language"},
		{id: "F38", title: "nested mounts: rw in ro, ro in rw, and only the inner one", attacks: "nested-read-only"},
		{id: "F39", title: "the mounted directory is replaced while the guest runs", attacks: "mount-replaced"},
		{id: "F40", title: "two modules at the same time with mounts of their own", attacks: "other-mount sibling-prefix", also: otherModule},
		{id: "F41", title: "the temporary directory of another session", attacks: "listed-above existence-oracle nothing-mounted-read nothing-mounted-write"},
		{id: "F42", title: "our own configuration, keys and records inside the workspace, and what looks like a secret or is run by other programs",
			attacks: "masked-read masked-write masked-moved masked-link masked-hard-link masked-mounted git-hook-planted own-configuration-planted secret-file-read"},
	}
}

func linksInside() fileAttack {
	return fileAttack{name: "links-inside", build: func(x *fileTrial) {
		x.plant(x.link("inside", "ws/l"), x.link("../inside", "ws/d/l"), x.link("d/l", "ws/ll"), x.link("d", "ws/dl"), x.link("../ws/../ws/inside", "ws/home"))
		x.allowChanges("ws")
		for _, n := range []string{"l", "d/l", "ll", "dl/l"} {
			c, content := x.readInto("ws/"+n, len(insideText))
			x.expect(c, "read "+n, "ok", "ok", outside)
			x.expectContent(content, insideText, insideText, "")
		}
		x.expect(x.stat(x.scratchPlace("ws/dl/deep"), followLinks), "look through a directory", "ok", "ok", outside)
		x.tryRead("ws/home", outside) // leaves the mount on its way
		x.tryWrite("ws/ll", 0, "ok", "EROFS", outside)
		x.holds("ws/inside", "overwritten"+insideText[len("overwritten"):], insideText, insideText)
		x.tryWrite("ws/dl/made", oCreate, "ok", "EROFS", outside)
		x.holds("ws/d/made", "overwritten", "-", "-")
	}}
}

func secondName() fileAttack {
	return fileAttack{name: "second-name", build: func(x *fileTrial) {
		const shared = "shared with the guest"
		x.plant(x.write("out/shared", shared), os.Link(x.hostPath("out/shared"), x.hostPath("ws/l")))
		c, content := x.readInto("ws/l", len(shared))
		x.expect(c, "read it", "ok", "ok", outside)
		x.expectContent(content, shared, shared, "")
		x.tryRead("out/shared", outside)
	}}
}

func manyFiles() fileAttack {
	return fileAttack{name: "many-files", build: func(x *fileTrial) {
		// A directory that is removed again counts, too.
		x.allowChanges("ws")
		const most = 1 << 16
		made := x.mkdir(x.scratchPlace("ws/made"))
		x.rmdir(x.scratchPlace("ws/made"))
		x.repeatWhileZero(made, 1_000_000)
		last := x.mkdir(x.scratchPlace("ws/last"))
		x.expect(last, "make one more", "ENOSPC", "EROFS", outside)
		x.finally(func(r report) error {
			if n := r.callCount(made); n > most+1 || x.kind == writable && n < most {
				return fmt.Errorf("%d directories were made", n)
			}
			return nil
		})
		x.tryWrite("ws/more", oCreate, "ENOSPC", "EROFS", outside)
		x.holds("ws/more", "-")
	}}
}

func manyNames() fileAttack {
	return fileAttack{name: "many-names", build: func(x *fileTrial) {
		const names = 5000
		x.plant(os.Mkdir(x.hostPath("ws/many"), 0o700), x.write("ws/many/0", ""))
		for i := range names - 1 {
			x.plant(os.Mkdir(x.hostPath(fmt.Sprint("ws/many/", i+1)), 0o700))
		}
		d := x.openDir(x.scratchPlace("ws/many"))
		x.expect(d.call, "open the directory", "ok", "ok", outside)
		// From every position in the directory, whose cookies are in the memory.
		place, used := x.words(0), x.words(0)
		list := x.add("fd_readdir", d.fd, machine.BufferBase, 1, cell(place.at), used.at)
		x.add("add", place.at, 1)
		x.repeatWhileZero(list, names)
		x.expect(list, "list it", "ok", "ok", "EBADF")
		end := x.add("fd_readdir", d.fd, machine.BufferBase, 1, int64(1)<<62, used.at)
		x.expect(end, "list from a place that is not there", "ok EINVAL", "ok EINVAL", "EBADF")
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		x.whileGuestWaits(func() error {
			runtime.GC()
			runtime.ReadMemStats(&after)
			if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 64<<20 {
				return fmt.Errorf("the host keeps %d MiB for it", grown>>20)
			}
			return nil
		})
		// Each read costs the same: the directory is not read from its beginning every
		// time.
		x.grant.Limits.Fuel = names * 20_000
	}}
}

// otherModule is other-mount with a second guest of another module.
func otherModule(t *testing.T, target *Sandbox) {
	try(func(t *trial) error {
		_, err := otherMountOf(t, &machine.Options{Initialize: func(*machine.Machine) []byte { return w.Nop() }})
		return err
	})(t, target)
}
