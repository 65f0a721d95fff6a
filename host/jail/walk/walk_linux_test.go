package walk

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stockade-dev/stockade/host/stage"
)

// workspace makes files from lines: a name, and after "=" its content or after "->" its
// target. A name that ends with a slash is a directory.
func workspace(t *testing.T, lines ...string) string {
	t.Helper()
	ws := t.TempDir()
	change(t, ws, lines...)
	return ws
}

// change makes files in the same way. A "-" before a name removes it, and "a => b" renames a.
// "_" in content is a new line.
func change(t *testing.T, ws string, lines ...string) {
	t.Helper()
	for _, line := range lines {
		name, target, isLink := strings.Cut(line, "->")
		name, content, _ := strings.Cut(name, "=")
		from, to, renames := strings.Cut(line, " => ")
		host := filepath.Join(ws, name)
		var err error
		if !renames && line[0] != '-' {
			err = os.MkdirAll(filepath.Dir(host), 0o755)
		}
		switch {
		case renames:
			err = os.Rename(filepath.Join(ws, from), filepath.Join(ws, to))
		case line[0] == '-':
			err = os.RemoveAll(filepath.Join(ws, line[1:]))
		case isLink:
			_ = os.Remove(host)
			err = errors.Join(err, os.Symlink(strings.ReplaceAll(target, "WS", ws), host))
		case strings.HasSuffix(name, "/"):
			err = os.MkdirAll(host, 0o755)
		default:
			err = errors.Join(err, os.WriteFile(host, []byte(strings.ReplaceAll(content, "_", "\n")), 0o644))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// old makes all files older than the clock at the start of a command.
func old() {
	for start := time.Now(); !stage.FileClockNow().After(start); {
		runtime.Gosched()
	}
}

// ample is the budget of tests that are not about time.
var ample = Budget{Time: time.Minute}

func look(t *testing.T, ws string, masked ...string) *Snapshot {
	t.Helper()
	s, err := Scan(t.Context(), []Root{{ws, true}}, masked, ample)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func changes(t *testing.T, s *Snapshot, do func()) Changes {
	t.Helper()
	old()
	t0 := stage.FileClockNow()
	do()
	c, err := s.Changes(t.Context(), t0, ample)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func below(ws string, names []string) string {
	out := make([]string, len(names))
	for i, name := range names {
		out[i] = strings.TrimPrefix(strings.TrimPrefix(name, ws), "/")
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

func found(ws string, list []Found) string {
	var names []string
	for _, f := range list {
		name := f.Path
		if f.Dir {
			name += "/"
		}
		names = append(names, name)
	}
	return below(ws, names)
}

func listed(ws string, l List) string {
	var names []string
	for _, e := range l.Entries {
		name := e.Path
		if e.Dir {
			name += "/" + strconv.Itoa(e.Files)
		}
		names = append(names, name)
	}
	return below(ws, names)
}

func noted(ws string, n Notes) string {
	var names []string
	for _, note := range n.Notes {
		names = append(names, note.Path)
	}
	return below(ws, names)
}

func TestWhatIsFoundBeforeACommand(t *testing.T) {
	for name, test := range map[string]struct {
		tree                           []string
		secrets, closed, pinned, links string
	}{
		"nothing special": {tree: []string{"main.go", "env/x", "hooks/pre-commit", "config"}},
		"secrets":         {tree: []string{".env", "a/b/.ENV", "id.key.bak", ".env.example", "k.pub"}, secrets: ".env a/b/.ENV id.key.bak"},
		"a directory of secrets is enough": {
			tree: []string{".ssh/id_rsa", ".ssh/d/x.pem", "a.aws/x"}, secrets: ".ssh/", closed: ".ssh/",
		},
		"an environment of Python is no environment file": {tree: []string{".env/lib/site.py"}},
		"a repository": {
			tree:   []string{".git/config", ".git/HEAD", ".git/hooks/pre-commit.sample", ".git/hooks/d/x", ".git/objects/", ".git/refs/heads/main", ".gitmodules"},
			closed: ".git/config .git/hooks/ .gitmodules", pinned: ".git",
		},
		"submodules and worktrees": {
			tree:   []string{".git/modules/a/b/config", ".git/modules/a/b/hooks/x", ".git/modules/a/b/objects/", ".git/worktrees/w/gitdir", ".git/worktrees/w/HEAD", "w/.git"},
			closed: ".git/modules/a/b/config .git/modules/a/b/hooks/ .git/worktrees/w/gitdir w/.git",
			pinned: ".git .git/modules .git/modules/a .git/modules/a/b .git/worktrees .git/worktrees/w",
		},
		"a bare repository": {
			tree: []string{"x/HEAD", "x/objects/", "x/refs/", "x/config", "x/hooks/post-update", "y/HEAD", "y/config"}, closed: "x/config x/hooks/", pinned: "x",
		},
		"others": {tree: []string{".hg/hgrc", ".stockade/policy.toml", "agent.toml", ".jj/repo/config.toml"}, secrets: ".hg/hgrc", closed: ".hg/hgrc .jj/repo/config.toml .stockade/ agent.toml", pinned: ".hg .jj .jj/repo"},
		"links": {
			tree:  []string{".git->elsewhere", "elsewhere/config", "a/.git/hooks->../../elsewhere", ".env->main.go", "loop->loop", "up->..", ".ssh->/root/.ssh"},
			links: ".env .git .ssh .ssh a/.git/hooks", pinned: "a/.git",
		},
	} {
		t.Run(name, func(t *testing.T) {
			ws := workspace(t, test.tree...)
			s := look(t, ws)
			if !s.Complete || len(s.Unread) > 0 {
				t.Errorf("not complete: %q", s.Unread)
			}
			for _, r := range [][3]string{
				{"secrets", found(ws, s.Secrets), test.secrets},
				{"closed", found(ws, s.Closed), test.closed},
				{"pinned", below(ws, s.Pinned), test.pinned},
				{"links", found(ws, s.Links), test.links},
			} {
				if r[1] != r[2] {
					t.Errorf("%s: %q, want %q", r[0], r[1], r[2])
				}
			}
		})
	}
}

func TestMountsAndMasks(t *testing.T) {
	ws := workspace(t, "rw/.env", "rw/.git/config", "rw/masked/.env", "rw/masked/.git/config", "rw/ro/.env", "rw/ro/.git/config", ".env")
	roots := []Root{{ws + "/rw", true}, {ws + "/rw/ro", false}}
	s, err := Scan(t.Context(), roots, []string{ws + "/rw/masked"}, ample)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := found(ws, s.Secrets), "rw/.env rw/ro/.env"; got != want {
		t.Errorf("secrets: %q, want %q", got, want)
	}
	if got, want := found(ws, s.Closed), "rw/.git/config"; got != want {
		t.Errorf("closed: %q, want %q", got, want)
	}
	c := changes(t, s, func() { change(t, ws, "rw/masked/x", "rw/ro/x", "rw/x") })
	if got := listed(ws, c.Created); got != "rw/x" || !c.Complete {
		t.Errorf("created %q", got)
	}
	// A mount can be special itself, by its name.
	s = look(t, workspaceAt(t, ".ssh"))
	if len(s.Secrets) != 1 || !s.Secrets[0].Dir {
		t.Errorf("a mount of secrets: %+v", s.Secrets)
	}
	for _, root := range []string{"rel", ws + "/", ws + "/missing", ws + "/.env", "/proc"} {
		if _, err := Scan(t.Context(), []Root{{root, true}}, nil, Budget{}); err == nil {
			t.Errorf("%s is a root", root)
		}
	}
}

func workspaceAt(t *testing.T, name string) string {
	ws := workspace(t, name+"/x")
	return filepath.Join(ws, name)
}

func TestChanges(t *testing.T) {
	tree := []string{"a.txt=1", "dir/b.txt=2", "dir/sub/c.txt", "other/d", "link->a.txt", ".git/config", ".git/hooks/x", ".git/objects/1", ".env"}
	for name, test := range map[string]struct {
		change                                      []string
		created, modified, removed, closed, secrets string
	}{
		"nothing":                  {},
		"a file":                   {change: []string{"new.txt", "a.txt=3", "-dir/b.txt"}, created: "new.txt", modified: "a.txt", removed: "dir/b.txt"},
		"directories":              {change: []string{"n/1", "n/m/2", "-dir"}, created: "n/2", removed: "dir/2"},
		"a directory for a file":   {change: []string{"-a.txt", "a.txt/x"}, created: "a.txt/1", removed: "a.txt"},
		"a file for a directory":   {change: []string{"-dir", "dir=x"}, created: "dir", removed: "dir/2"},
		"a file that was replaced": {change: []string{"other/n=x", "other/n => a.txt"}, modified: "a.txt"},
		"a link that was changed":  {change: []string{"link->dir"}, modified: "link"},
		"directories that are exchanged": {
			change: []string{"dir => t", "other => dir", "t => other"}, created: "dir/1 other/2", removed: "dir/2 other/1",
		},
		"closed": {
			change:  []string{".git/hooks/pre-push", "agent.toml", ".stockade/policy.toml", ".GIT/config", "s/.git->.."},
			created: ".GIT/1 .git/hooks/pre-push .stockade/1 agent.toml s/1", closed: ".GIT/ .GIT/config .git/hooks/pre-push .stockade/ .stockade/policy.toml agent.toml s/.git",
		},
		"secrets":    {change: []string{"x.pem", ".ssh/a", ".ssh/b"}, created: ".ssh/2 x.pem", secrets: ".ssh/ x.pem", closed: ".ssh/ .ssh/a .ssh/b"},
		"moved away": {change: []string{".git => old"}, created: "old/3", removed: ".git/3"},
		// It is the same repository under another name, and nothing in it is new.
		"moved along": {change: []string{"m/", ".git => m/.git"}, created: "m/3", removed: ".git/3", closed: "m/.git/"},
		"another repository in its place": {
			change: []string{".git => old", ".git/config=y", ".git/hooks/x"}, created: ".git/2 old/3", removed: ".git/3", closed: ".git/ .git/config .git/hooks/ .git/hooks/x",
		},
		"a name that was harmless": {change: []string{".git/objects => .git/sequencer"}, created: ".git/sequencer/1", removed: ".git/objects/1", closed: ".git/sequencer/ .git/sequencer/1"},
		"a bare repository around what was there": {
			change: []string{"dir/HEAD", "dir/objects/", "dir/refs/", "dir/config"}, created: "dir/HEAD dir/config dir/objects/0 dir/refs/0", closed: "dir/config",
		},
	} {
		t.Run(name, func(t *testing.T) {
			ws := workspace(t, tree...)
			c := changes(t, look(t, ws), func() { change(t, ws, test.change...) })
			for _, r := range [][3]string{
				{"created", listed(ws, c.Created), test.created},
				{"modified", listed(ws, c.Modified), test.modified},
				{"removed", listed(ws, c.Removed), test.removed},
				{"closed", found(ws, c.Closed.Found), test.closed},
				{"secrets", found(ws, c.Secrets.Found), test.secrets},
			} {
				if r[1] != r[2] {
					t.Errorf("%s: %q, want %q", r[0], r[1], r[2])
				}
			}
			if !c.Complete {
				t.Error("not complete")
			}
		})
	}
}

// Removals are listed however much was made.
func TestListsAreBounded(t *testing.T) {
	ws := workspace(t, "z/gone")
	s := look(t, ws)
	c := changes(t, s, func() {
		names(t, ws, maxListed+5, "a")
		change(t, ws, "-z/gone")
	})
	if c.Created.Count != maxListed+5 || c.Created.Files != maxListed+5 || len(c.Created.Entries) != maxListed || !slices.IsSortedFunc(c.Created.Entries, func(a, b Entry) int { return strings.Compare(a.Path, b.Path) }) {
		t.Errorf("%d created, %d listed", c.Created.Count, len(c.Created.Entries))
	}
	if got := listed(ws, c.Removed); got != "z/gone" {
		t.Errorf("removed %q", got)
	}
}

func TestBudgets(t *testing.T) {
	ws := workspace(t, "a/.git/config", "b/.git/config", "b/.git/hooks/x", "c/.git/config")
	s, err := Scan(t.Context(), []Root{{ws, true}}, nil, Budget{Names: 3, Time: time.Minute})
	if err != nil || s.Complete || s.Names != 3 {
		t.Fatalf("%v %+v", err, s)
	}
	// What nobody had looked at is not taken for new.
	c := changes(t, s, func() { change(t, ws, "-c/.git/config") })
	if c.Complete || c.Closed.Count+c.Created.Count+c.Removed.Count != 0 {
		t.Errorf("%+v", c)
	}
	if r := s.Restore(c); r.Removed.Count != 0 {
		t.Errorf("%+v", r)
	}
	c = changes(t, s, func() { change(t, ws, "a/.git/config=x", "b/.git/config=x") })
	if found(ws, c.Unsure.Found) != "a/.git/config b/.git/config" || c.Closed.Count != 0 {
		t.Errorf("unsure: %+v, closed %+v", c.Unsure, c.Closed)
	}
	// Nor is what was not looked at afterwards taken for gone.
	s = look(t, ws)
	c, err = s.Changes(t.Context(), stage.FileClockNow(), Budget{Names: 3, Time: time.Minute})
	if err != nil || c.Complete || c.Removed.Count != 0 {
		t.Errorf("%v %+v", err, c)
	}
	if s, err := Scan(t.Context(), []Root{{ws, true}}, nil, Budget{Time: 1}); err != nil || s.Complete {
		t.Errorf("complete in a nanosecond: %v", err)
	}
}

// names makes many files: names of the same file, which is quicker.
func names(t *testing.T, dir string, n int, suffix string) {
	t.Helper()
	first := filepath.Join(dir, "0"+suffix)
	err := os.WriteFile(first, nil, 0o600)
	for i := range n - 1 {
		err = errors.Join(err, os.Link(first, filepath.Join(dir, strconv.Itoa(i+1)+suffix)))
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestHostileTrees(t *testing.T) {
	t.Run("odd names", func(t *testing.T) {
		long := strings.Repeat("é", 127) + "x"
		ws := workspace(t, "a\nb/.env", "a\nb/.git/hooks/\x1b[2J", long+"/"+long+"/.env", "\xff\xfe", " ", "./-rf")
		s := look(t, ws)
		if !s.Complete || len(s.Secrets) != 2 || len(s.Closed) != 1 {
			t.Errorf("%+v", s)
		}
		for _, f := range append(s.Secrets, s.Closed...) {
			if _, err := os.Lstat(f.Path); err != nil {
				t.Error(err)
			}
		}
	})
	t.Run("depth", func(t *testing.T) {
		ws := workspace(t)
		s := look(t, ws)
		var limit unix.Rlimit
		if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
			t.Fatal(err)
		}
		c := changes(t, s, func() {
			fd, err := unix.Open(ws, unix.O_RDONLY, 0)
			for range maxPath/2 + 100 {
				if err = errors.Join(err, unix.Mkdirat(fd, "d", 0o755)); err != nil {
					t.Fatal(err)
				}
				next, _ := unix.Openat(fd, "d", unix.O_RDONLY, 0)
				unix.Close(fd)
				fd = next
			}
			unix.Close(fd)
			few := limit
			few.Cur = 40
			if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &few); err != nil {
				t.Fatal(err)
			}
		})
		if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
			t.Fatal(err)
		}
		if c.Complete || len(c.Unread) != 1 || c.now.Names > maxPath/2 {
			t.Errorf("%d names, unread %d", c.now.Names, len(c.Unread))
		}
	})
	t.Run("many files", func(t *testing.T) {
		ws := workspace(t)
		s := look(t, ws)
		c := changes(t, s, func() {
			for i := range 100 {
				dir := filepath.Join(ws, strconv.Itoa(i))
				os.Mkdir(dir, 0o755)
				names(t, dir, 200, "")
			}
		})
		if !c.Complete || c.Created.Files != 20_000 || c.Created.Count != 100 {
			t.Errorf("complete: %v, %+v", c.Complete, c.Created)
		}
	})
	t.Run("too many secrets", func(t *testing.T) {
		ws := workspace(t)
		names(t, ws, maxFound+1, ".pem")
		if _, err := Scan(t.Context(), []Root{{ws, true}}, nil, ample); !errors.Is(err, errTooManyFound) {
			t.Error(err)
		}
	})
	t.Run("FIFOs, sockets and loops of links", func(t *testing.T) {
		ws := workspace(t, "l/loop->..", "l/a->b", "l/b->a", "proc->/proc", "l/file", "to->l/file")
		for _, name := range []string{"fifo", ".env", "agent.toml"} {
			if err := unix.Mkfifo(filepath.Join(ws, name), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		s := look(t, ws)
		if err := s.SaveContent(0); err != nil { // and does not wait
			t.Fatal(err)
		}
		top, err := os.Open(ws)
		if err != nil {
			t.Fatal(err)
		}
		defer top.Close()
		for _, name := range []string{"fifo", "to"} {
			if _, err := read(int(top.Fd()), name, unix.DT_REG, 1); err == nil {
				t.Errorf("%s was read", name)
			}
		}
		if !s.Complete || found(ws, s.Secrets) != ".env" || found(ws, s.Closed) != "agent.toml" || s.Names != 10 {
			t.Errorf("%+v", s)
		}
	})
	t.Run("a directory that nobody may read", func(t *testing.T) {
		ws := workspace(t, "no/.git/config", "yes/x")
		for _, dir := range []string{ws, filepath.Dir(ws)} {
			if err := os.Chmod(dir, 0o755); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Chmod(ws+"/no", 0); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = os.Chmod(ws+"/no", 0o755) })
		// As another user: only this thread, which is thrown away.
		done := make(chan *Snapshot)
		go func() {
			runtime.LockOSThread()
			if os.Geteuid() == 0 {
				if _, err := unix.SetfsuidRetUid(65534); err != nil {
					t.Error(err)
				}
			}
			s, err := Scan(t.Context(), []Root{{ws, true}}, nil, ample)
			if err != nil {
				t.Error(err)
			}
			done <- s
		}()
		if s := <-done; s == nil || s.Complete || below(ws, s.Unread) != "no" {
			t.Errorf("%+v", s)
		}
	})
	t.Run("things that come and go", func(t *testing.T) {
		ws := workspace(t, "a/b/c/.git/config", "x/.env")
		stop, stopped := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(stopped)
			for {
				select {
				case <-stop:
					return
				default:
				}
				os.Rename(ws+"/a", ws+"/x/a")
				os.Symlink("x", ws+"/a")
				os.Remove(ws + "/a")
				os.Rename(ws+"/x/a", ws+"/a")
			}
		}()
		for range 200 {
			s := look(t, ws)
			if _, err := s.Changes(t.Context(), stage.FileClockNow(), ample); err != nil {
				t.Error(err)
			}
		}
		close(stop)
		<-stopped
	})
}

// Mounted file systems below are walked, except for those of the kernel.
func TestMountsBelow(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root mounts")
	}
	ws := workspace(t, "m/", "p/")
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // a name space of its own, which goes with the thread
		if err := errors.Join(
			unix.Unshare(unix.CLONE_NEWNS|unix.CLONE_FS),
			unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""),
			unix.Mount("tmpfs", ws+"/m", "tmpfs", 0, ""),
			unix.Mount("proc", ws+"/p", "proc", 0, ""),
			os.WriteFile(ws+"/m/.env", nil, 0o600),
			os.MkdirAll(ws+"/m/sub", 0o700),
			os.WriteFile(ws+"/m/sub/.env", nil, 0o600),
		); err != nil {
			t.Error(err)
		}
		s, err := Scan(t.Context(), []Root{{ws, true}}, nil, ample)
		if err != nil || s.Complete || found(ws, s.Secrets) != "m/.env m/sub/.env" || below(ws, s.Unread) != "p" {
			t.Errorf("%v %+v", err, s)
		}
	}()
	<-done
}

// No link leads a walk to another place.
func TestLinksAreNotFollowed(t *testing.T) {
	outside := workspace(t, ".env", ".git/config")
	ws := workspace(t, "a->"+outside, "b/c->"+outside)
	if s := look(t, ws); len(s.Secrets)+len(s.Closed) != 0 || s.Names != 3 {
		t.Errorf("%+v", s)
	}
	// Nor where one has just taken the place of a directory.
	top, err := os.Open(ws)
	if err != nil {
		t.Fatal(err)
	}
	defer top.Close()
	for _, open := range []func(int, string) (int, error){
		func(top int, rel string) (int, error) { fd, _, err := openDir(top, rel); return fd, err },
		stepDown,
	} {
		for _, rel := range []string{"a", "a/.git", "b/c", "b/c/.git", "..", "b/../..", "a/../x"} {
			if fd, err := open(int(top.Fd()), rel); err == nil {
				unix.Close(fd)
				t.Errorf("%s was opened", rel)
			}
		}
		fd, err := open(int(top.Fd()), "b")
		if err != nil {
			t.Fatal(err)
		}
		unix.Close(fd)
	}
}
