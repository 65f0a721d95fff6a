package git

import (
	"bytes"
	"compress/zlib"
	"context"
	"crypto/sha1"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stockade-dev/stockade/host/git/format"
	"github.com/stockade-dev/stockade/host/tool"
)

// sh runs a command in a directory.
func sh(t testing.TB, dir, command string) string {
	t.Helper()
	cmd := exec.Command("sh", "-ec", "umask 022; "+command)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1", "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v: %s", command, err, out)
	}
	return string(out)
}

// templates holds the directories that commands have made, by the commands.
var (
	templates   sync.Map
	templateDir string
)

func TestMain(m *testing.M) {
	var err error
	if templateDir, err = os.MkdirTemp("", "git-test-*"); err != nil {
		panic(err)
	}
	code := m.Run()
	_ = os.RemoveAll(templateDir)
	os.Exit(code)
}

// made returns the changes of a command to files in a directory that another command has
// made. The command runs in a copy of the directory, and forge after it.
func made(t testing.TB, before, command string, forge func(dir string)) []tool.Change {
	t.Helper()
	top := t.TempDir()
	was, is := filepath.Join(top, "ws"), filepath.Join(top, "after")
	made, _ := templates.LoadOrStore(before, sync.OnceValue(func() string {
		dir, err := os.MkdirTemp(templateDir, "")
		if err != nil {
			t.Error(err)
		}
		sh(t, dir, before)
		return dir
	}))
	template := made.(func() string)()
	sh(t, top, "cp -a "+template+" ws; cp -a ws after")
	sh(t, is, command)
	if forge != nil {
		forge(is)
	}
	return between(t, was, is)
}

// between returns the changes from one directory to another, as if both had the name of the
// first.
func between(t testing.TB, was, is string) (changes []tool.Change) {
	t.Helper()
	read := func(dir string) map[string]*tool.Version {
		found := map[string]*tool.Version{}
		err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
			if err != nil || name == dir {
				return err
			}
			info, err := d.Info()
			v := &tool.Version{Mode: info.Mode(), Size: info.Size(), Open: func() (io.ReadCloser, error) { return os.Open(name) }}
			if v.Mode&fs.ModeSymlink != 0 {
				v.Target, _ = os.Readlink(name)
			}
			found[strings.TrimPrefix(name, dir)] = v
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	same := func(a, b *tool.Version) bool {
		if a.Mode != b.Mode || a.Target != b.Target || a.Mode.IsRegular() && a.Size != b.Size {
			return false
		}
		x, err := a.Content(1 << 30)
		y, err2 := b.Content(1 << 30)
		return !a.Mode.IsRegular() || err == nil && err2 == nil && bytes.Equal(x, y)
	}
	old, now := read(was), read(is)
	for name, v := range old {
		if n := now[name]; n == nil || n.Mode.Type() != v.Mode.Type() {
			kind := tool.Removed
			if v.Mode.IsDir() {
				kind = tool.DirectoryRemoved
			}
			changes = append(changes, tool.Change{Path: was + name, Kind: kind, Before: v})
		} else if !same(v, n) {
			changes = append(changes, tool.Change{Path: was + name, Kind: tool.Modified, Before: v, After: n})
		}
	}
	for name, v := range now {
		if o := old[name]; o == nil || o.Mode.Type() != v.Mode.Type() {
			kind := tool.Created
			if v.Mode.IsDir() {
				kind = tool.DirectoryCreated
			}
			changes = append(changes, tool.Change{Path: was + name, Kind: kind, After: v})
		}
	}
	slices.SortFunc(changes, func(a, b tool.Change) int { return strings.Compare(a.Path, b.Path) })
	return changes
}

const packIt = "git repack -qad"

// start makes a repository with some commits.
const start = "git init -q -b main; for i in 1 2 3; do seq $i 400 > a; echo $i > b; git add .; git commit -qm c$i; done; "

// glob returns the only file that matches a pattern.
func glob(t *testing.T, dir, pattern string) string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, pattern))
	if err != nil || len(names) != 1 {
		t.Fatalf("%s: %q %v", pattern, names, err)
	}
	return names[0]
}

// rewrite changes a file that ends in a SHA-1 sum, and adds its new sum.
func rewrite(t *testing.T, name string, change func(data []byte) []byte) {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	_ = os.Chmod(name, 0o644)
	data = change(data[:len(data)-20])
	sum := sha1.Sum(data)
	if err := os.WriteFile(name, append(data, sum[:]...), 0o444); err != nil {
		t.Fatal(err)
	}
}

// pair writes a pack of some encoded objects, and its index.
func pair(t *testing.T, dir string, objects map[string][]byte, order ...string) {
	t.Helper()
	data := binary.BigEndian.AppendUint32([]byte("PACK\x00\x00\x00\x02"), uint32(len(order)))
	at := map[string]int{}
	for _, id := range order {
		at[id] = len(data)
		data = append(data, objects[id]...)
	}
	sum := sha1.Sum(data)
	data = append(data, sum[:]...)
	idx := []byte("\xfftOc\x00\x00\x00\x02")
	names := slices.Sorted(slices.Values(order))
	for b := range 256 {
		n := 0
		for _, id := range names {
			if int(id[0]) <= b {
				n++
			}
		}
		idx = binary.BigEndian.AppendUint32(idx, uint32(n))
	}
	for _, id := range names {
		idx = append(idx, id...)
	}
	idx = append(idx, make([]byte, 4*len(names))...)
	for _, id := range names {
		idx = binary.BigEndian.AppendUint32(idx, uint32(at[id]))
	}
	idx = append(idx, sum[:]...)
	last := sha1.Sum(idx)
	base := filepath.Join(dir, ".git/objects/pack/pack-"+hex.EncodeToString(sum[:]))
	for end, data := range map[string][]byte{".pack": data, ".idx": append(idx, last[:]...)} {
		if err := os.WriteFile(base+end, data, 0o444); err != nil {
			t.Fatal(err)
		}
	}
}

// packed encodes an object for a pack, or a delta of the object with the id base.
func packed(kind int, base string, data []byte) []byte {
	var out bytes.Buffer
	n := len(data)
	c := byte(kind<<4 | n&15)
	for n >>= 4; n > 0; n >>= 7 {
		out.WriteByte(c | 0x80)
		c = byte(n & 0x7f)
	}
	out.WriteByte(c)
	out.WriteString(base)
	z := zlib.NewWriter(&out)
	_, _ = z.Write(data)
	_ = z.Close()
	return out.Bytes()
}

// An object is never used under an id that is not its hash, whichever file is wrong.
func TestLies(t *testing.T) {
	blob := func(text string) string { return hashObject(20, format.Blob, []byte(text)) }
	overIdx := func(change func(t *testing.T, data []byte)) func(*testing.T, string) {
		return func(t *testing.T, dir string) {
			rewrite(t, glob(t, dir, ".git/objects/pack/*.idx"), func(data []byte) []byte { change(t, data); return data })
		}
	}
	count := func(data []byte) int { return int(binary.BigEndian.Uint32(data[8+255*4:])) }
	for _, test := range []struct {
		name, before, command string
		forge                 func(t *testing.T, dir string)
		want                  string
	}{
		{"two offsets exchanged", start, packIt, overIdx(func(t *testing.T, data []byte) {
			offs := data[8+1024+count(data)*24:]
			a, b := bytes.Clone(offs[:4]), bytes.Clone(offs[4:8])
			copy(offs, b)
			copy(offs[4:], a)
		}), "has another hash"},
		{"two names in one place", start, packIt, overIdx(func(t *testing.T, data []byte) {
			offs := data[8+1024+count(data)*24:]
			copy(offs, offs[4:8])
		}), "two objects at the same offset"},
		{"an offset that is large and leads elsewhere", start, packIt, overIdx(func(t *testing.T, data []byte) {
			copy(data[8+1024+count(data)*24:], "\x80\x00\x00\x09")
		}), ""},
		{"another table of first bytes", start, packIt, overIdx(func(t *testing.T, data []byte) {
			binary.BigEndian.PutUint32(data[8:], uint32(count(data)))
		}), "out of order"},
		{"an existing name for another object", start, "", func(t *testing.T, dir string) {
			id, _ := parseID(strings.TrimSpace(sh(t, dir, "git rev-parse HEAD:b")))
			pair(t, dir, map[string][]byte{id: packed(format.Blob, "", []byte("evil\n"))}, id)
		}, "has another hash"},
		{"an object that the index does not list", start, "", func(t *testing.T, dir string) {
			a, b := blob("a"), blob("b")
			pair(t, dir, map[string][]byte{a: packed(format.Blob, "", []byte("a")), b: packed(format.Blob, "", []byte("b"))}, a, b)
			rewrite(t, glob(t, dir, ".git/objects/pack/*.pack"), func(data []byte) []byte { data[11]++; return data })
			rewrite(t, glob(t, dir, ".git/objects/pack/*.idx"), func(data []byte) []byte { return data })
		}, "it does not list all"},
		{"bytes behind an object", start, "", func(t *testing.T, dir string) {
			a := blob("a")
			pair(t, dir, map[string][]byte{a: append(packed(format.Blob, "", []byte("a")), "more"...)}, a)
		}, "cannot be read"},
		{"a delta of what is not in the pack", start, "", func(t *testing.T, dir string) {
			a := blob("ab")
			pair(t, dir, map[string][]byte{a: packed(format.RefDelta, blob("1\n"), []byte("\x02\x02\x02ab"))}, a)
		}, "a delta whose base is not in it"},
		{"deltas of one another", start, "", func(t *testing.T, dir string) {
			a, b := blob("aa"), blob("bb")
			pair(t, dir, map[string][]byte{a: packed(format.RefDelta, b, []byte("\x02\x02\x02aa")), b: packed(format.RefDelta, a, []byte("\x02\x02\x02bb"))}, a, b)
		}, "deltas are based on each other"},
		{"a delta that makes another object", start, "", func(t *testing.T, dir string) {
			a, b := blob("aa"), blob("bb")
			pair(t, dir, map[string][]byte{a: packed(format.Blob, "", []byte("aa")), b: packed(format.RefDelta, a, []byte("\x02\x02\x02xx"))}, a, b)
		}, "has another hash"},
		{"a size of gigabytes", start, "", func(t *testing.T, dir string) {
			a := blob("a")
			pair(t, dir, map[string][]byte{a: append([]byte("\xb0\xff\xff\xff\x7f"), packed(format.Blob, "", []byte("a"))[1:]...)}, a)
		}, "the size of an object is wrong"},
		{"the index of another pack", start, packIt, func(t *testing.T, dir string) {
			rewrite(t, glob(t, dir, ".git/objects/pack/*.idx"), func(data []byte) []byte { data[len(data)-1]++; return data })
		}, "the index of another pack"},
		{"another pack of the same name", start + packIt, "", func(t *testing.T, dir string) {
			rewrite(t, glob(t, dir, ".git/objects/pack/*.idx"), func(data []byte) []byte {
				return append(data[:len(data)-20:len(data)-20], append(make([]byte, 8), data[len(data)-20:]...)...)
			})
		}, "replaced by another file"},
		{"a reverse index that waits for its pack", start + packIt + "; cd .git/objects/pack; n=$(basename *.pack .pack); echo > $n.rev; mv *.idx *.pack ..", "cd .git/objects; mv *.idx *.pack pack", nil, "before its pack"},
		{"a list of packs that waits for one", start + packIt + "; git multi-pack-index write; cd .git/objects/pack; mv *.idx *.pack ..", "cd .git/objects; mv *.idx *.pack pack", nil, "before the pack was there"},
		{"a loose object that is another one", start, "", func(t *testing.T, dir string) {
			id := strings.TrimSpace(sh(t, dir, "git rev-parse HEAD:b"))
			var out bytes.Buffer
			z := zlib.NewWriter(&out)
			_, _ = z.Write([]byte("blob 5\x00evil\n"))
			_ = z.Close()
			name := filepath.Join(dir, ".git/objects", id[:2], id[2:])
			_ = os.Remove(name)
			_ = os.WriteFile(name, out.Bytes(), 0o444)
		}, "it is another object"},
		{"a loose object that has no end", start, "f=$(find .git/objects/?? -type f | head -1); chmod u+w $f; echo > $f", nil, "it is no object"},
		{"a link for an object", start, "f=$(find .git/objects/?? -type f | head -1); mv $f x; ln -s ../../../x $f", nil, "symbolic link"},
		{"a link for the packs", start, "rmdir .git/objects/pack; mkdir p; ln -s ../../p .git/objects/pack", nil, "symbolic link"},
		{"a directory that the index has noted down", start + "mkdir -p s/t; echo > s/t/x; git add .; git commit -qm s", "", func(t *testing.T, dir string) {
			id, _ := parseID(strings.TrimSpace(sh(t, dir, "git rev-parse HEAD:s/t")))
			evil, _ := parseID(strings.TrimSpace(sh(t, dir, "echo evil > b; git mktree < /dev/null")))
			rewrite(t, filepath.Join(dir, ".git/index"), func(data []byte) []byte {
				return bytes.Replace(data, []byte(id), []byte(evil), 1)
			})
		}, "cached tree of a directory"},
		{"in a repository that has no worktree", "git init -q --bare x.git", "echo > x.git/objects/12; mkdir x.git/objects/34; echo > x.git/objects/34/" + strings.Repeat("5", 38), nil, "it is no object"},
		{"in a submodule", start + "git init -q s; git -C s commit -q --allow-empty -m s; git -c protocol.file.allow=always submodule -q add ./s t; git commit -qm sub", "mkdir -p .git/modules/t/objects/34; echo > .git/modules/t/objects/34/" + strings.Repeat("5", 38), nil, "it is no object"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			var forge func(string)
			if test.forge != nil {
				forge = func(dir string) { test.forge(t, dir) }
			}
			_, err := Check(t.Context(), made(t, test.before, test.command, forge))
			if _, lie := errors.AsType[*IntegrityError](err); !lie || !strings.Contains(err.Error(), test.want) {
				t.Errorf("it is told as %v, want %q", err, test.want)
			}
		})
	}
}

// A repository that git has made is accepted, and examined completely.
func TestSoundRepositories(t *testing.T) {
	big := start + "for i in $(seq 12); do seq $i 5000 > a; mkdir -p d/$i; echo $i > d/$i/x; git add .; git commit -qm $i; git tag -m t t$i; done; "
	for _, test := range []struct{ name, before, command string }{
		{"packed", big, "git repack -qad"},
		{"collected", big, "git gc -q --prune=now"},
		{"packed again", big + "git gc -q; seq 1 4000 > c; git add .; git commit -qm c", "git repack -qad --depth=250 --window=50 -f"},
		{"deltas by name", big, "git -c repack.useDeltaBaseOffset=false repack -qadf"},
		{"cloned", big, "git clone -q --no-hardlinks . c"},
		{"fetched, with a file", big + "git clone -q --no-hardlinks . c; cd c; echo x > x; git add x; git commit -qm x", "git -c fetch.unpackLimit=1 fetch -q ./c main:x"},
		{"packed as before", start + packIt, "touch .git/objects/pack/*; git repack -qad; touch .git/objects/pack/*"},
		{"an empty pack", "git init -q", ": | git pack-objects -q .git/objects/pack/pack"},
		{"SHA-256", strings.Replace(big, "init", "init --object-format=sha256", 1), "git gc -q --prune=now; echo 2 > b; git commit -qam x"},
		{"directories in an index", start + "mkdir -p a-b a.b/longer/c a.b/d; for f in a-b/x a.b/longer/c/x a.b/d/x a.b/x 'a.b/ü x'; do echo > $f; done; chmod +x a-b/x; ln -s x a.b/l; git add .; git commit -qm d", "git rm -q a.b/d/x; echo 3 > new; git add -N new; git write-tree; git update-index --index-version 4"},
		{"large objects", start, "head -c 40000000 /dev/zero > z; git add z; git commit -qm z; git repack -qad"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			dirs, err := Check(t.Context(), made(t, test.before, test.command, nil))
			if err != nil {
				t.Fatal(err)
			}
			for _, d := range dirs {
				if !d.IsComplete() || len(d.Mismatches) > 0 && test.name != "cloned" && test.name != "fetched, with a file" {
					t.Errorf("not looked at: %q, more %t, older %t, held %d", d.Unseen, d.Incomplete, d.MoreCommits, len(d.Mismatches))
				}
				for _, r := range d.Refs {
					if len(r.LostCommits) > 0 || r.MayHaveLostMore {
						t.Errorf("lost of %s: %q", r.Name, r.LostCommits)
					}
				}
			}
		})
	}
}

// Data beyond a limit is reported.
func TestBounds(t *testing.T) {
	for _, test := range []struct {
		name, before, command string
		left                  budget
		unseen                int
		more, older           bool
	}{
		{"objects of too many bytes", start, "git repack -qad", budget{bytes: 100, files: 1 << 20, index: 1 << 20, commits: 100, trees: 100, blobs: 1 << 20}, 1, false, false},
		{"a large index", start, "echo 4 > b; git add b", budget{bytes: 1 << 20, files: 1 << 20, index: 10, commits: 100, trees: 100, blobs: 1 << 20}, 0, true, false},
		{"many trees", start, "echo 4 > b; git commit -qam 4", budget{bytes: 1 << 20, files: 1 << 20, index: 1 << 20, commits: 100, blobs: 1 << 20}, 0, true, false},
		{"many commits", start, "echo 4 > b; git commit -qam 4", budget{bytes: 1 << 20, files: 1 << 20, index: 1 << 20, trees: 100, blobs: 1 << 20}, 0, true, false},
		{"a large file", start, "echo 4 > b; git commit -qam 4", budget{bytes: 1 << 20, index: 1 << 20, commits: 100, trees: 100, blobs: 1 << 20}, 0, true, false},
		{"a large content", start, "git update-index --add --cacheinfo 100644,$(seq 99 | git hash-object -w --stdin),x", budget{bytes: 1 << 20, files: 1 << 20, index: 1 << 20, commits: 100, trees: 100, blobs: 10}, 0, true, false},
		{"201 commits", start, "for i in $(seq 201); do echo commit refs/heads/main; echo 'committer a <a> 1 +0000'; echo data 2; echo x; [ $i != 1 ] || echo from refs/heads/main^0; done | git fast-import --quiet", *newBudget(), 0, false, true},
		{"an index in two files", start, "git update-index --split-index", *newBudget(), 0, true, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			dirs, err := check(t.Context(), made(t, test.before, test.command, nil), &test.left, nil)
			if err != nil || len(dirs) != 1 {
				t.Fatal(dirs, err)
			}
			if d := dirs[0]; len(d.Unseen) != test.unseen || d.Incomplete != test.more || d.MoreCommits != test.older {
				t.Errorf("not looked at: %q, more %t, older %t", d.Unseen, d.Incomplete, d.MoreCommits)
			}
		})
	}
}

func TestTheEndOfTime(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Check(ctx, made(t, start, "git repack -qad", nil)); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

// BenchmarkCheck measures the check of a commit of one file, and of a pack.
func BenchmarkCheck(b *testing.B) {
	for _, c := range []struct{ name, before, command string }{
		{"commit", start + "git gc -q", "echo 4 > b; git commit -qam 4"},
		{"pack", start + "for i in $(seq 40); do seq $i 100000 > a; git commit -qam $i; done", "git repack -qad"},
	} {
		b.Run(c.name, func(b *testing.B) {
			changes := made(b, c.before, c.command, nil)
			for b.Loop() {
				if _, err := Check(b.Context(), changes); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func TestMentioned(t *testing.T) {
	a, b := strings.Repeat("a1", 20), strings.Repeat("b2", 32)
	got := idsIn(a + " " + b + "\nx" + a + " " + a + "_ " + a[:39] + " " + strings.Repeat("0", 40) + "\t" + strings.ToUpper(a))
	want, _ := parseID(a)
	want2, _ := parseID(b)
	if len(got) != 2 || !got[want] || !got[want2] {
		t.Errorf("%v", got)
	}
}
