//go:build !wasip1

package main

import (
	"bytes"
	"compress/zlib"
	"crypto/sha1"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stockade-dev/stockade/guests/git/repo"
	"github.com/stockade-dev/stockade/host/githistory"
)

// object writes a loose object, valid or not, under the ID that git would give it.
func (f *fixture) object(kind string, data []byte) string {
	f.Helper()
	head := fmt.Appendf(nil, "%s %d\x00", kind, len(data))
	sum := sha1.Sum(append(slices.Clip(head), data...))
	id := hex.EncodeToString(sum[:])
	f.loose(id, func(w io.Writer) {
		_, _ = w.Write(head)
		_, _ = w.Write(data)
	})
	return id
}

func (f *fixture) loose(id string, write func(w io.Writer)) {
	f.Helper()
	var out bytes.Buffer
	z := zlib.NewWriter(&out)
	write(z)
	_ = z.Close()
	f.put(".git/objects/"+id[:2]+"/"+id[2:], out.String())
}

func (f *fixture) tree(entries ...string) string {
	var data []byte
	for i := 0; i < len(entries); i += 3 { // mode, name, id
		id, _ := hex.DecodeString(entries[i+2])
		data = append(fmt.Appendf(data, "%s %s\x00", entries[i], entries[i+1]), id...)
	}
	return f.object("tree", data)
}

func (f *fixture) commitOf(tree, message string, parents ...string) string {
	text := "tree " + tree + "\n"
	for _, p := range parents {
		text += "parent " + p + "\n"
	}
	return f.object("commit", []byte(text+"author A <a@b> 1700000000 +0000\ncommitter A <a@b> 1700000000 +0000\n\n"+message))
}

func (f *fixture) head(id string) { f.put(".git/refs/heads/main", id+"\n") }

// bounded runs a call, and checks that it takes at most so many bytes of memory.
func (f *fixture) bounded(in args, most uint64) (result, error) {
	f.Helper()
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	out, err := run(f.Context(), in)
	runtime.ReadMemStats(&after)
	if got := after.TotalAlloc - before.TotalAlloc; got > most {
		f.Errorf("%+v allocates %d MiB", in, got>>20)
	}
	if len(out.Output) > maxOutput+4096 {
		f.Errorf("%+v returns %d bytes", in, len(out.Output))
	}
	return out, err
}

const none = "0123456789012345678901234567890123456789"

func TestNothingThatARepositoryNamesIsRun(t *testing.T) {
	f := newFixture(t)
	f.put("a.txt", "one\n")
	f.put("b.psd", "one\n")
	f.commit("a")
	ran := filepath.Join(t.TempDir(), "ran")
	script := filepath.Join(t.TempDir(), "evil")
	if err := os.WriteFile(script, []byte("#!/bin/sh\necho ran >>"+ran+"\ncat\n"), 0o777); err != nil {
		t.Fatal(err)
	}
	config := fmt.Sprintf(`[core]
	repositoryformatversion = 0
	fsmonitor = %[1]s
	hooksPath = %[2]s
	pager = %[1]s
	sshCommand = %[1]s
	editor = %[1]s
	attributesFile = /etc/passwd
	excludesFile = /etc/passwd
	worktree = /
[diff]
	external = %[1]s
[diff "x"]
	textconv = %[1]s
	command = %[1]s
[filter "x"]
	clean = %[1]s
	smudge = %[1]s
	process = %[1]s
	required = true
[alias]
	status = !%[1]s
[include]
	path = /etc/passwd
[includeIf "gitdir:/"]
	path = /etc/shadow
[credential]
	helper = !%[1]s
[gpg]
	program = %[1]s
[log]
	showSignature = true
`, script, filepath.Dir(script))
	f.put(".git/config", config)
	f.put(".gitattributes", "* filter=x diff=x\n")
	for _, hook := range []string{"fsmonitor-watchman", "post-index-change", "post-checkout", "pre-commit"} {
		f.put(".git/hooks/"+hook, "#!/bin/sh\necho ran >>"+ran+"\n")
		if err := os.Chmod(".git/hooks/"+hook, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	f.put("a.txt", "two\n")
	for _, in := range []args{{Operation: "status"}, {Operation: "diff"}, {Operation: "log", Format: "patch"}, {Operation: "show"}, {Operation: "blame", Path: "a.txt"}, {Operation: "branches"}} {
		if out := f.works(in); strings.Contains(out.Output, "root:") || out.Output == "" {
			t.Errorf("%s says %q", in.Operation, out.Output)
		}
	}
	if text, err := os.ReadFile(ran); err == nil {
		t.Errorf("something was run: %s", text)
	}
}

func TestHostileRepositories(t *testing.T) {
	const small = 128 << 20
	for name, tt := range map[string]struct {
		make func(f *fixture)
		call args
		code string // "" works
		says string
	}{
		"a reference that leads to itself": {func(f *fixture) { f.put(".git/refs/heads/main", "ref: refs/heads/main\n") }, args{Operation: "log"}, "CORRUPT_REPOSITORY", "without end"},
		"two references that do": {func(f *fixture) {
			f.put(".git/HEAD", "ref: refs/x\n")
			f.put(".git/refs/x", "ref: refs/y\n")
			f.put(".git/refs/y", "ref: refs/x\n")
		}, args{Operation: "status"}, "CORRUPT_REPOSITORY", "without end"},
		"a reference that leads out":      {func(f *fixture) { f.put(".git/HEAD", "ref: refs/../../outside\n") }, args{Operation: "log"}, "CORRUPT_REPOSITORY", "neither"},
		"a reference of a megabyte":       {func(f *fixture) { f.put(".git/refs/heads/main", strings.Repeat("a", 1<<20)) }, args{Operation: "log"}, "CORRUPT_REPOSITORY", "too long"},
		"names by SHA-256":                {func(f *fixture) { f.head(strings.Repeat("ab", 32)) }, args{Operation: "log"}, "UNSUPPORTED", "SHA-256"},
		"reftable":                        {func(f *fixture) { f.put(".git/reftable/tables.list", "") }, args{Operation: "log"}, "UNSUPPORTED", "reftable"},
		"an object that is missing":       {func(f *fixture) { f.head(none) }, args{Operation: "log"}, "CORRUPT_REPOSITORY", "is missing"},
		"a partial clone":                 {func(f *fixture) { f.head(none); f.put(".git/objects/pack/p.promisor", "") }, args{Operation: "log"}, "UNSUPPORTED", "partial clone"},
		"objects borrowed from nowhere":   {func(f *fixture) { f.head(none); f.put(".git/objects/info/alternates", "/nowhere/objects\n") }, args{Operation: "log"}, "CORRUPT_REPOSITORY", "/nowhere/objects"},
		"a git directory that is nowhere": {func(f *fixture) { f.put("s/.git", "gitdir: /nowhere/.git\n") }, args{Operation: "log", Path: "s"}, "NOT_A_REPOSITORY", "/nowhere/.git"},
		"a git file without a directory":  {func(f *fixture) { f.put("s/.git", "hello\n") }, args{Operation: "log", Path: "s"}, "CORRUPT_REPOSITORY", "no git directory"},
		"a worktree of nowhere":           {func(f *fixture) { f.put(".git/commondir", "/nowhere\n") }, args{Operation: "log"}, "NOT_A_REPOSITORY", "/nowhere"},
		"an object that is no zlib":       {func(f *fixture) { f.put(".git/objects/01/"+none[2:], "hello"); f.head(none) }, args{Operation: "log"}, "CORRUPT_REPOSITORY", ""},
		"an object that is another":       {func(f *fixture) { f.head(f.object("blob", []byte("x"))) }, args{Operation: "log"}, "UNKNOWN_REVISION", "is a blob"},
		"a kind that is none":             {func(f *fixture) { f.head(f.object("virus", []byte("x"))) }, args{Operation: "log"}, "CORRUPT_REPOSITORY", "header"},
		"a size that does not fit": {func(f *fixture) {
			f.loose(none, func(w io.Writer) { fmt.Fprintf(w, "commit 99\x00short") })
			f.head(none)
		}, args{Operation: "log"}, "CORRUPT_REPOSITORY", ""},
		"4 GB that say what they are": {func(f *fixture) {
			f.bomb("blob 4294967296\x00")
			f.head(f.commitOf(f.tree("100644", "big", none), "m"))
		}, args{Operation: "show"}, "", "too large"},
		"4 GB that lie":           {func(f *fixture) { f.bomb("blob 7\x00"); f.head(f.commitOf(f.tree("100644", "big", none), "m")) }, args{Operation: "show"}, "CORRUPT_REPOSITORY", "longer than it says"},
		"a tree of 4 GB":          {func(f *fixture) { f.bomb("tree 4294967296\x00"); f.head(f.commitOf(none, "m")) }, args{Operation: "show"}, "TOO_LARGE", "8 MiB"},
		"a message of 10 MB":      {func(f *fixture) { f.head(f.commitOf(f.tree(), strings.Repeat("long message\n", 1<<20))) }, args{Operation: "log", Format: "full"}, "", "too long to be shown"},
		"a subject of a megabyte": {func(f *fixture) { f.head(f.commitOf(f.tree(), strings.Repeat("x", 1<<20))) }, args{Operation: "log"}, "", "line cut"},
		"a commit without a tree": {func(f *fixture) { f.head(f.object("commit", []byte("author A <a> 1 +0000\n\nx"))) }, args{Operation: "log"}, "CORRUPT_REPOSITORY", "no tree"},
		"dates that are none": {func(f *fixture) {
			f.head(f.object("commit", []byte("tree "+f.tree()+"\nauthor A <a> 99999999999999999999 +9999999\ncommitter > <\n\nx")))
		}, args{Operation: "log", Format: "full"}, "", "1970"},
		"A...B where a commit is missing": {func(f *fixture) {
			a := f.commitOf(f.tree(), "a", none)
			f.head(a)
			f.put(".git/refs/heads/other", f.commitOf(f.tree(), "b")+"\n")
		}, args{Operation: "diff", Revision: "other...main"}, "CORRUPT_REPOSITORY", "is missing"},
		"1 GB of what to ignore": {func(f *fixture) {
			f.put(".git/info/exclude", "*.o\n")
			if err := os.Truncate(".git/info/exclude", 1<<30); err != nil {
				f.Fatal(err)
			}
		}, args{Operation: "status"}, "", "## No commits"},
		"600 trees in each other":  {deep, args{Operation: "show"}, "CORRUPT_REPOSITORY", "nested deeper"},
		"2^60 trees in each other": {wide, args{Operation: "show"}, "TOO_LARGE", "directories"},
		"a tree that leads out": {func(f *fixture) {
			b := f.object("blob", []byte("evil\n"))
			f.head(f.commitOf(f.tree("100644", "..", b, "100644", ".git", b), "m"))
		}, args{Operation: "show"}, "", "evil"},
		"a name with slashes": {func(f *fixture) {
			b := f.object("blob", []byte("evil\n"))
			f.head(f.commitOf(f.tree("100644", "../../x", b), "m"))
		}, args{Operation: "show"}, "CORRUPT_REPOSITORY", ""},
		"a tree that is cut": {func(f *fixture) { f.head(f.commitOf(f.object("tree", []byte("100644 a\x00123")), "m")) }, args{Operation: "show"}, "CORRUPT_REPOSITORY", ""},
		"a tag of itself": {func(f *fixture) {
			f.loose(none, func(w io.Writer) {
				text := "object " + none + "\ntype tag\ntag x\n\nm"
				fmt.Fprintf(w, "tag %d\x00%s", len(text), text)
			})
			f.head(none)
		}, args{Operation: "log"}, "CORRUPT_REPOSITORY", "without end"},
		"an index with a way out":         {func(f *fixture) { f.index(2, "../x") }, args{Operation: "status"}, "CORRUPT_REPOSITORY", "../x"},
		"an index with a git directory":   {func(f *fixture) { f.index(2, ".git/config") }, args{Operation: "diff"}, "CORRUPT_REPOSITORY", ".git/config"},
		"an index with a disguised one":   {func(f *fixture) { f.index(2, "sub/.GIT./config") }, args{Operation: "status"}, "CORRUPT_REPOSITORY", ""},
		"an index with an absolute path":  {func(f *fixture) { f.index(2, "/etc/passwd") }, args{Operation: "status"}, "CORRUPT_REPOSITORY", "/etc/passwd"},
		"an index out of order":           {func(f *fixture) { f.index(2, "b", "a") }, args{Operation: "status"}, "CORRUPT_REPOSITORY", "order"},
		"an index of version 9":           {func(f *fixture) { f.index(9, "a") }, args{Operation: "status"}, "UNSUPPORTED", "version 9"},
		"an index that counts too far":    {func(f *fixture) { f.put(".git/index", "DIRC\x00\x00\x00\x02\x00\x00\xff\xff"+strings.Repeat("x", 90)) }, args{Operation: "status"}, "CORRUPT_REPOSITORY", "too short"},
		"an index that is split":          {func(f *fixture) { f.extension("link") }, args{Operation: "status"}, "UNSUPPORTED", "split"},
		"an index with what is not known": {func(f *fixture) { f.extension("xyzw") }, args{Operation: "status"}, "UNSUPPORTED", "xyzw"},
		"an index that can be left out":   {func(f *fixture) { f.extension("XYZW") }, args{Operation: "status"}, "", "## No commits"},
		"a delta that is a bomb":          {func(f *fixture) { f.pack(1<<32, 0) }, args{Operation: "log"}, "TOO_LARGE", "256 KiB"},
		"a delta that makes too much":     {func(f *fixture) { f.pack(100, 0) }, args{Operation: "log"}, "CORRUPT_REPOSITORY", "does not fit"},
		"a delta of itself":               {func(f *fixture) { f.pack(10, 1) }, args{Operation: "log"}, "CORRUPT_REPOSITORY", "deltas"},
		"a delta of nothing":              {func(f *fixture) { f.pack(10, 1<<40) }, args{Operation: "log"}, "CORRUPT_REPOSITORY", "no object at"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			tt.make(f)
			out, err := f.bounded(tt.call, small)
			if tt.code != "" {
				if err == nil {
					t.Fatalf("works: %q", out.Output)
				}
				f.fails(tt.call, tt.code, tt.says)
			} else if err != nil || !strings.Contains(out.Output, tt.says) {
				t.Errorf("%v, and %.500q does not say %q", err, out.Output, tt.says)
			}
			if err != nil && (len(err.Error()) > 1000 || strings.ContainsAny(err.Error(), "\x00\x1b\n")) {
				t.Errorf("the error is %.2000q", err)
			}
		})
	}
}

// bomb returns an object that would inflate to 4 GB, cut off behind the part that may be read.
func (f *fixture) bomb(head string) {
	f.loose(none, func(w io.Writer) {
		_, _ = io.WriteString(w, head)
		zeros := make([]byte, 1<<20)
		for range 32 {
			_, _ = w.Write(zeros)
		}
	})
}

func deep(f *fixture) {
	id := f.tree("100644", "f", f.object("blob", nil))
	for range 600 { // git takes more, and we are done before
		id = f.tree("40000", "d", id)
	}
	f.head(f.commitOf(id, "deep"))
}

func wide(f *fixture) {
	id := f.tree()
	id = f.tree("40000", "x", id)
	for range 60 {
		id = f.tree("40000", "a", id, "40000", "b", id)
	}
	f.head(f.commitOf(id, "wide"))
}

func (f *fixture) index(version uint32, paths ...string) {
	data := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32([]byte("DIRC"), version), uint32(len(paths)))
	for _, path := range paths {
		entry := make([]byte, 62)
		binary.BigEndian.PutUint32(entry[24:], repo.ModeFile)
		binary.BigEndian.PutUint16(entry[60:], uint16(len(path)))
		entry = append(entry, path...)
		data = append(data, append(entry, make([]byte, 8-len(entry)%8)...)...)
	}
	f.put(".git/index", string(data)+strings.Repeat("\x00", 20))
}

func (f *fixture) extension(name string) {
	f.put(".git/index", "DIRC\x00\x00\x00\x02\x00\x00\x00\x00"+name+"\x00\x00\x00\x04body"+strings.Repeat("\x00", 20))
}

// pack makes HEAD an object in a pack: a delta that claims to produce size bytes from the
// object that begins back bytes before it.
func (f *fixture) pack(size uint64, back int64) {
	deflate := func(data []byte) []byte {
		var out bytes.Buffer
		z := zlib.NewWriter(&out)
		_, _ = z.Write(data)
		_ = z.Close()
		return out.Bytes()
	}
	pack := []byte("PACK\x00\x00\x00\x02\x00\x00\x00\x02")
	blob := len(pack)
	pack = append(append(pack, 3<<4|10), deflate([]byte("0123456789"))...)
	at := len(pack)
	delta := []byte{10}
	for v := size; ; v >>= 7 {
		if v < 0x80 {
			delta = append(delta, byte(v))
			break
		}
		delta = append(delta, byte(v)|0x80)
	}
	for range 3 {
		delta = append(delta, 0x90, 10) // the base once more
	}
	if back == 1 { // a name instead: the delta's own
		id, _ := hex.DecodeString(none)
		pack = append(append(pack, 7<<4|byte(len(delta))), id...)
	} else {
		if back == 0 {
			back = int64(at - blob)
		}
		offset := []byte{byte(back & 0x7f)}
		for back >>= 7; back > 0; back >>= 7 {
			back--
			offset = append([]byte{byte(back&0x7f) | 0x80}, offset...)
		}
		pack = append(append(pack, 6<<4|byte(len(delta))), offset...)
	}
	pack = append(pack, deflate(delta)...)
	pack = append(pack, make([]byte, 20)...)
	idx := []byte("\xfftOc\x00\x00\x00\x02")
	for i := range 256 {
		n := uint32(0)
		if i >= 1 {
			n = 1
		}
		idx = binary.BigEndian.AppendUint32(idx, n)
	}
	id, _ := hex.DecodeString(none)
	idx = append(idx, id...)
	idx = binary.BigEndian.AppendUint32(idx, crc32.ChecksumIEEE(pack))
	idx = binary.BigEndian.AppendUint32(idx, uint32(at))
	idx = append(idx, make([]byte, 40)...)
	f.put(".git/objects/pack/pack-x.pack", string(pack))
	f.put(".git/objects/pack/pack-x.idx", string(idx))
	f.head(none)
}

func TestSecretsAreNotShown(t *testing.T) {
	f := newFixture(t)
	for _, name := range []string{".env", "conf/.aws/credentials", "server.key", "plain"} {
		f.put(name, "swordfish of "+name+"\n")
	}
	f.commit("a")
	for _, name := range []string{".env", "conf/.aws/credentials", "server.key", "plain"} {
		f.put(name, "swordfish again\n")
	}
	calls := []args{
		{Operation: "show"}, {Operation: "diff"}, {Operation: "diff", Revision: "HEAD"}, {Operation: "log", Format: "patch"},
		{Operation: "show", Revision: "HEAD:.env"}, {Operation: "show", Revision: "HEAD:./.env"}, {Operation: "show", Revision: ":.env"},
		{Operation: "show", Revision: "HEAD:conf/.aws/credentials"}, {Operation: "show", Path: ".env", Revision: "HEAD:server.key"},
	}
	for _, in := range calls {
		out := f.works(in)
		for line := range strings.SplitSeq(out.Output, "\n") {
			if strings.Contains(line, "swordfish") && !strings.Contains(line, "swordfish of plain") && !strings.Contains(line, "swordfish again") {
				t.Errorf("%+v shows %q", in, line)
			}
		}
		if n := strings.Count(out.Output, "swordfish again"); n > 1 || !strings.Contains(out.Output, "looks like a secret; not shown") {
			t.Errorf("%+v shows %d new texts:\n%s", in, n, out.Output)
		}
	}
	// The ID of its tree, or its own, does not tell its path.
	tree := strings.TrimSpace(f.run("rev-parse", "HEAD:conf/.aws"))
	f.fails(args{Operation: "show", Revision: tree + ":credentials"}, "UNKNOWN_REVISION", "commit")
	f.fails(args{Operation: "show", Revision: strings.TrimSpace(f.run("rev-parse", "HEAD:.env"))}, "invalid-input", "REV:PATH")
	f.fails(args{Operation: "blame", Path: "conf", Revision: "HEAD"}, "invalid-input")
	// The host has asked about a named file, and has opened it.
	if out := f.works(args{Operation: "diff", Path: ".env"}); !strings.Contains(out.Output, "+swordfish again") {
		t.Errorf("what was answered for is not shown: %q", out.Output)
	}
	// If a file cannot be opened, nobody has agreed to show it: the host keeps it from the
	// guest. The same holds if the file is gone.
	for _, make := range []string{"", "ln -s plain .env", "mkdir .env", "mv conf c2; ln -s c2 conf"} {
		if out, err := exec.Command("sh", "-c", "rm -rf .env; "+make).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		for _, name := range []string{".env", "conf/.aws/credentials"} {
			if name == ".env" || strings.HasPrefix(make, "mv") {
				f.fails(args{Operation: "blame", Path: name, Revision: "HEAD"}, "denied", "looks like a secret")
				if out := f.works(args{Operation: "show", Path: name}); strings.Contains(out.Output, "swordfish") {
					t.Errorf("%s: what nobody has answered for is shown: %q", make, out.Output)
				}
			}
		}
	}
}

// TestHiddenPathsAreInNoRevision: no operation shows a hidden file, under any name that a
// commit, an index or another worktree has for it.
func TestHiddenPathsAreInNoRevision(t *testing.T) {
	f := newFixture(t)
	f.put("pay/roll.csv", "swordfish\n")
	f.put("pay/open.txt", "hello\n")
	f.put("old.txt", "other\n")
	f.commit("one")
	f.put("pay/roll.csv", "swordfish again\n")
	f.put("pay/open.txt", "hello again\n")
	f.commit("two")
	f.run("worktree", "add", "-q", "linked")
	f.run("clone", "-q", "--shared", ".", "borrows")
	f.run("mv", "pay/roll.csv", "old2.txt")
	f.commit("three")
	f.put("pay/roll.csv", "swordfish in the file\n")
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	was := configValue
	t.Cleanup(func() { configValue = was })
	hide := func(hidden string) {
		configValue = func(name string) string { // as the host does
			question := strings.Split(name, "\n")
			if len(question) == 1 {
				return notKnown
			}
			found, known := githistory.HiddenPaths(question[1], question[2], question[3], strings.Split(hidden, "\n"))
			if !known {
				return notKnown
			}
			return strings.Join(found, "\n")
		}
	}
	for hidden, shown := range map[string]bool{dir + "/pay/roll.csv": true, dir + "/PAY": false, dir + "/linked/pay\n/x": false} {
		hide(hidden)
		for _, in := range []args{
			{Operation: "log", Format: "patch"}, {Operation: "log", Format: "numstat"}, {Operation: "log", Path: "pay", Format: "patch"}, {Operation: "status"},
			{Operation: "diff"}, {Operation: "diff", Revision: "HEAD~2"}, {Operation: "diff", Revision: "HEAD~2..HEAD~1"}, {Operation: "diff", Staged: true, Revision: "HEAD~1"},
			{Operation: "show", Revision: "HEAD~1"}, {Operation: "show", Revision: "HEAD~1:pay"}, {Operation: "show", Revision: "HEAD~1", Format: "numstat"},
			{Operation: "show", Revision: "HEAD~1", Path: "pay"}, {Operation: "show", Revision: "HEAD", Path: "linked"}, {Operation: "log", Path: "linked", Format: "patch"},
			{Operation: "diff", Path: "linked"},
		} {
			out, err := run(f.Context(), in)
			if strings.Contains(out.Output, "roll.csv") || strings.Contains(out.Output, "-swordfish\n") {
				t.Errorf("%s: %+v shows\n%s", hidden, in, out.Output)
			}
			if shown && err != nil && in.Path != "linked" {
				t.Errorf("%+v: %v", in, err)
			}
		}
		for _, in := range []args{{Operation: "show", Revision: "HEAD~1:pay/roll.csv"}, {Operation: "blame", Path: "pay/roll.csv", Revision: "HEAD~1"}, {Operation: "log", Path: "pay/roll.csv"}} {
			f.fails(in, "denied", "hides")
		}
	}
	// Another path to the repository shows no more, and a repository with unknown worktrees is
	// denied.
	hide(dir + "/pay")
	script := `set -e
ln -s . link; ln -s .git gitlink; mkdir -p .git/modules
git clone -q --bare . .git/modules/sub
mkdir y far; cp -r .git y/gd; echo gitdir: gd > y/.git; ln -s "$PWD/.git" far/.git
mkdir x z; cp -r .git x; git --git-dir x/.git config core.worktree ../..; cp -r .git z; git --git-dir z/.git config include.path more
`
	if out, err := exec.Command("sh", "-c", script).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for path, denied := range map[string]bool{"link": false, "gitlink": false, ".git": false, "far": false, ".git/modules/sub": true, "borrows": false, "y/gd": true, "x": false, "z": true} {
		in := args{Operation: "show", Revision: strings.TrimSpace(f.run("rev-parse", "HEAD~1")), Path: path}
		out, err := run(f.Context(), in)
		if strings.Contains(out.Output, "roll.csv") || strings.Contains(out.Output, "-swordfish\n") || (err != nil) != denied {
			t.Errorf("%s shows %v\n%s", path, err, out.Output)
		}
	}
	configValue = func(string) string { return notKnown }
	f.fails(args{Operation: "log"}, "denied", "files.hidden")
}

// TestSecretsHaveNoOtherName: an object is not shown under another name, which somebody who
// knows its id can give it in an index, or in a repository that borrows objects.
func TestSecretsHaveNoOtherName(t *testing.T) {
	f := newFixture(t)
	f.put(".env", "swordfish\n")
	f.put("a", "")
	f.put("b.env", "")
	f.commit("one")
	id := strings.TrimSpace(f.run("rev-parse", "HEAD:.env"))
	f.run("update-index", "--add", "--cacheinfo", "100644,"+id+",plain.txt")
	f.run("clone", "-q", "--shared", "--no-checkout", ".", "borrows")
	f.run("-C", "borrows", "update-index", "--add", "--cacheinfo", "100644,"+id+",plain.txt")
	f.run("-C", "borrows", "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "-m", "two")
	for _, in := range []args{
		{Operation: "show", Revision: ":plain.txt"}, {Operation: "show", Revision: ":0:plain.txt"}, {Operation: "diff", Staged: true}, {Operation: "show", Path: "borrows", Revision: "HEAD:plain.txt"},
		{Operation: "log", Path: "borrows", Format: "patch"}, {Operation: "show", Path: "borrows"},
	} {
		if out := f.works(in); strings.Contains(out.Output, "swordfish") || !strings.Contains(out.Output, "looks like a secret") {
			t.Errorf("%+v shows\n%s", in, out.Output)
		}
	}
	if out := f.works(args{Operation: "show", Revision: ":a"}); strings.Contains(out.Output, "secret") {
		t.Errorf("what is empty is no secret: %s", out.Output)
	}
}

// withLostSecret returns a repository whose first commit holds a file that looks like a secret,
// and whose second one removes it.
func withLostSecret(t *testing.T) *fixture {
	t.Helper()
	f := newFixture(t)
	f.put("x/.env", "s")
	f.commit("one")
	f.run("rm", "-q", "x/.env")
	f.put("a", "")
	f.commit("two")
	return f
}

// TestSearchForSecrets: the host learns which names look like secrets in any
// part of a history.
func TestSearchForSecrets(t *testing.T) {
	search := func(f *fixture, path, known string) (out struct {
		Names   []string
		Commits int
		Whole   bool
		Tips    []string
	}) {
		t.Helper()
		if err := json.Unmarshal([]byte(f.works(args{Operation: "secrets", Path: path, Revision: known}).Output), &out); err != nil {
			t.Fatal(err)
		}
		return out
	}
	for name, make := range map[string]func(*fixture){
		"the index":     func(f *fixture) { f.put("x/.env", "s"); f.run("add", ".") },
		"an old commit": func(f *fixture) { f.put("x/.env", "s"); f.commit("s"); f.run("rm", "-q", "x/.env"); f.commit("t") },
		"another branch": func(f *fixture) {
			f.run("checkout", "-q", "-b", "b")
			f.put("x/.env", "s")
			f.commit("s")
			f.run("checkout", "-q", "main")
		},
		"a packed tag": func(f *fixture) {
			f.put("x/.env", "s")
			f.commit("s")
			f.run("tag", "-a", "-m", "t", "t")
			f.run("reset", "-q", "--hard", "HEAD~1")
			f.run("pack-refs", "--all")
			f.run("reflog", "expire", "--expire=now", "--all")
			f.run("repack", "-qad")
		},
		"a stash": func(f *fixture) { f.put("x/.env", "s"); f.run("add", "."); f.run("stash", "-q") },
		"a log":   func(f *fixture) { f.put("x/.env", "s"); f.commit("s"); f.run("reset", "-q", "--hard", "HEAD~1") },
		"ORIG_HEAD": func(f *fixture) {
			f.put("x/.env", "s")
			f.commit("s")
			f.run("reset", "-q", "--hard", "HEAD~1")
			f.run("reflog", "expire", "--expire=now", "--all")
		},
		"a worktree": func(f *fixture) {
			f.run("worktree", "add", "-q", "--detach", "w")
			f.put("w/x/.env", "s")
			f.run("-C", "w", "add", ".")
		},
		"a tag of a tree": func(f *fixture) {
			f.put("x/.env", "s")
			f.run("add", ".")
			f.run("tag", "t", strings.TrimSpace(f.run("write-tree")))
			f.run("reset", "-q", "--hard")
		},
		"the side of a merge": func(f *fixture) {
			f.run("checkout", "-q", "-b", "b")
			f.put("x/.env", "s")
			f.commit("s")
			f.run("rm", "-q", "x/.env")
			f.put("y", "")
			f.commit("t")
			f.run("checkout", "-q", "main")
			f.put("z", "")
			f.commit("u")
			f.run("merge", "-q", "-m", "m", "b")
			f.run("branch", "-D", "b")
		},
		"what a merge has added": func(f *fixture) {
			f.run("checkout", "-q", "-b", "b")
			f.put("y", "")
			f.commit("t")
			f.run("checkout", "-q", "main")
			f.put("z", "")
			f.commit("u")
			f.run("merge", "-q", "--no-commit", "b")
			f.put("x/.env", "s")
			f.commit("m")
			f.run("rm", "-q", "x/.env")
			f.commit("n")
		},
		"a commit-graph": func(f *fixture) {
			f.put("x/.env", "s")
			f.commit("s")
			f.run("rm", "-q", "x/.env")
			f.commit("t")
			f.run("commit-graph", "write", "--reachable")
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.put("a", "")
			f.put(".env.example", "")
			f.commit("first")
			if out := search(f, ".git", ""); len(out.Names) > 0 || !out.Whole || len(out.Tips) != 1 {
				t.Errorf("before: %+v", out)
			}
			make(f)
			if out := search(f, ".git", ""); len(out.Names) != 1 || out.Names[0] != "x/.env" {
				t.Errorf("found %+v", out)
			}
		})
	}
	t.Run("it goes on where it was", func(t *testing.T) {
		f := withLostSecret(t)
		known := strings.TrimSpace(f.run("rev-parse", "HEAD"))
		f.put("b", "")
		f.commit("three")
		if out := search(f, ".git", known+" 1234567890123456789012345678901234567890"); len(out.Names) > 0 || out.Commits != 1 || !out.Whole {
			t.Errorf("found %+v", out)
		}
		f.put("id_rsa", "s")
		f.commit("four")
		if out := search(f, ".git", known); len(out.Names) != 1 || out.Names[0] != "id_rsa" {
			t.Errorf("found %+v", out)
		}
	})
	t.Run("a long log has few tips", func(t *testing.T) {
		f := newFixture(t)
		f.commit("one")
		head, log := strings.TrimSpace(f.run("rev-parse", "HEAD")), ""
		tree := strings.TrimSpace(f.run("rev-parse", "HEAD:"))
		for i := range maxTips + 10 {
			by := fmt.Sprintf("A <a@b> %d +0000", 1700100000+i)
			next := f.object("commit", []byte("tree "+tree+"\nparent "+head+"\nauthor "+by+"\ncommitter "+by+"\n\nm"))
			log += head + " " + next + " A <a@b> 1700000000 +0000\tm\n"
			head = next
		}
		f.head(head)
		f.put(".git/logs/refs/heads/main", log)
		out := search(f, ".git", "")
		if len(out.Tips) != 1 || out.Tips[0] != head || out.Commits != maxTips+11 {
			t.Errorf("found %+v", out)
		}
		side := f.commitOf(tree, "side", f.commitOf(tree, "before"))
		f.put(".git/refs/heads/side", side)
		if out = search(f, ".git", head); len(out.Tips) != 2 || !slices.Contains(out.Tips, head) || !slices.Contains(out.Tips, side) || out.Commits != 2 {
			t.Errorf("found %+v", out)
		}
	})
	t.Run("before a shallow commit it leaves off at none", func(t *testing.T) {
		f := withLostSecret(t)
		f.run("clone", "-q", "--depth", "1", "file://"+strings.TrimSpace(f.run("rev-parse", "--show-toplevel")), "shallow")
		if out := search(f, "shallow/.git", ""); len(out.Names)+len(out.Tips) > 0 || !out.Whole {
			t.Errorf("found %+v", out)
		}
	})
	t.Run("what cannot be read is not clean", func(t *testing.T) {
		f := newFixture(t)
		f.put("x/a", "s")
		f.commit("one")
		f.put(".git/refs/heads/gone", none+"\n")
		if out := search(f, ".git", ""); out.Whole {
			t.Errorf("a reference to what is missing: %+v", out)
		}
		if err := os.Remove(".git/refs/heads/gone"); err != nil {
			t.Fatal(err)
		}
		id := strings.TrimSpace(f.run("rev-parse", "HEAD:x"))
		if err := os.Remove(".git/objects/" + id[:2] + "/" + id[2:]); err != nil {
			t.Fatal(err)
		}
		if out := search(f, ".git", ""); out.Whole {
			t.Errorf("found %+v", out)
		}
		if err := os.WriteFile(".git/index", []byte("nonsense"), 0o600); err != nil {
			t.Fatal(err)
		}
		if out := search(f, ".git", ""); out.Whole {
			t.Errorf("found %+v", out)
		}
	})
	t.Run("it is no whole search that has an end", func(t *testing.T) {
		f := newFixture(t)
		for i := range 40 {
			f.put(fmt.Sprintf("%d/.env", i), "s")
		}
		f.commit("one")
		if out := search(f, ".git", ""); len(out.Names) != maxSecrets || out.Whole {
			t.Errorf("found %d names, %t", len(out.Names), out.Whole)
		}
	})
}
