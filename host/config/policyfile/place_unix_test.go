//go:build unix

package policyfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/stockade-dev/stockade/host/policy"
)

const good = "[tools.bash]\nallow = false\n"

// at makes DIR/etc/stockade/policy.toml below a root of the test's own. What is
// root's there belongs to whoever runs the test.
func at(t *testing.T) Place {
	t.Helper()
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "etc/stockade"), 0o755); err != nil {
		t.Fatal(err)
	}
	p := Place{Path: filepath.Join(dir, "etc/stockade/policy.toml"), Root: filepath.Join(dir, "etc"), Owner: os.Getuid()}
	if err := os.WriteFile(p.Path, []byte(good), 0o644); err != nil {
		t.Fatal(err)
	}
	return p
}

func TestAGoodPolicyIsRead(t *testing.T) {
	l, _, err := at(t).Read(policy.SourceAdmin)
	if err != nil || len(l.Ceiling.Rules) != 1 {
		t.Errorf("got %+v, %v", l, err)
	}
}

// P03 and P04: a file that anybody else could have put there, or that leads
// elsewhere, stops everything and says why.
func TestAFileThatOthersCouldHaveWrittenIsRefused(t *testing.T) {
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range map[string]struct {
		change func(p *Place)
		want   string
	}{
		"writable by all":        {func(p *Place) { must(os.Chmod(p.Path, 0o646)) }, "write to it"},
		"writable by the group":  {func(p *Place) { must(os.Chmod(p.Path, 0o664)) }, "write to it"},
		"a directory above that": {func(p *Place) { must(os.Chmod(filepath.Dir(p.Path), 0o777)) }, "write to it"},
		"a sticky one above":     {func(p *Place) { must(os.Chmod(filepath.Dir(p.Path), 0o777|os.ModeSticky)) }, "write to it"},
		"the root itself":        {func(p *Place) { must(os.Chmod(p.Root, 0o775)) }, "write to it"},
		"another name":           {func(p *Place) { must(os.Link(p.Path, p.Path+".old")) }, "2 names"},
		"a symbolic link": {func(p *Place) {
			must(os.Rename(p.Path, p.Path+".real"))
			must(os.Symlink(p.Path+".real", p.Path))
		}, "symbolic link"},
		"a link to nothing": {func(p *Place) {
			must(os.Remove(p.Path))
			must(os.Symlink("/nowhere", p.Path))
		}, "symbolic link"},
		"a link in place of the directory": {func(p *Place) {
			dir := filepath.Dir(p.Path)
			must(os.Rename(dir, dir+".real"))
			must(os.Symlink(dir+".real", dir))
		}, ""},
		"a directory": {func(p *Place) {
			must(os.Remove(p.Path))
			must(os.Mkdir(p.Path, 0o755))
		}, "not a regular file"},
		"a pipe that nobody writes to": {func(p *Place) {
			must(os.Remove(p.Path))
			must(syscall.Mkfifo(p.Path, 0o644))
		}, "not a regular file"},
		"a file in place of the directory": {func(p *Place) {
			must(os.RemoveAll(filepath.Dir(p.Path)))
			must(os.WriteFile(filepath.Dir(p.Path), nil, 0o644))
		}, ""},
		"empty":  {func(p *Place) { must(os.WriteFile(p.Path, nil, 0o644)) }, "empty"},
		"broken": {func(p *Place) { must(os.WriteFile(p.Path, []byte("[tools.bash"), 0o644)) }, ""},
		"somebody else's": {func(p *Place) {
			if os.Getuid() == 0 {
				must(os.Chown(p.Path, 65534, 0))
			} else {
				p.Owner = 65533 // the file of whoever runs the test is somebody else's then
			}
		}, "belongs to user"},
		"in somebody else's directory": {func(p *Place) {
			if os.Getuid() == 0 {
				must(os.Chown(filepath.Dir(p.Path), 65534, 0))
			} else {
				p.Owner = 65533
			}
		}, "belongs to user"},
		"outside of its root": {func(p *Place) { p.Root = "/nowhere" }, "absolute"},
	} {
		t.Run(name, func(t *testing.T) {
			p := at(t)
			c.change(&p)
			l, _, err := p.Read(policy.SourceAdmin)
			if err == nil || errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
			if len(l.Describe()) > 0 {
				t.Errorf("it says %v", l.Describe())
			}
		})
	}
}

func TestNoFileIsNoPolicy(t *testing.T) {
	for name, remove := range map[string]func(Place) string{
		"no file":      func(p Place) string { return p.Path },
		"no directory": func(p Place) string { return filepath.Dir(p.Path) },
	} {
		p := at(t)
		if err := os.RemoveAll(remove(p)); err != nil {
			t.Fatal(err)
		}
		if _, _, err := p.Read(policy.SourceAdmin); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// If others can remove a file, its absence proves nothing; nor does a link to nothing. A
// missing file must not permit what the file has forbidden.
func TestAFileThatOthersCouldHaveTakenAwayIsNotMissing(t *testing.T) {
	for name, c := range map[string]struct {
		mode fs.FileMode // of the directory
		link string      // in place of the file
		up   string      // in place of the directory
		own  bool        // whether an own file stops
		all  bool        // whether the administrator's does
	}{
		"nothing":                        {0o755, "", "", false, false},
		"a directory that all can write": {0o777, "", "", true, true},
		"one of a group":                 {0o775, "", "", true, true},
		"a sticky one":                   {0o777 | fs.ModeSticky, "", "", false, true},
		"a link to nothing":              {0o755, "/nowhere/policy.toml", "", true, true},
		"a directory that leads nowhere": {0o755, "", "/nowhere", true, true},
	} {
		p := at(t)
		dir := filepath.Dir(p.Path)
		if err := errors.Join(os.Remove(p.Path), os.Chmod(dir, c.mode)); err != nil {
			t.Fatal(err)
		}
		if c.link != "" {
			if err := os.Symlink(c.link, p.Path); err != nil {
				t.Fatal(err)
			}
		}
		if c.up != "" {
			if err := errors.Join(os.Remove(dir), os.Symlink(c.up, dir)); err != nil {
				t.Fatal(err)
			}
		}
		for kind, try := range map[string]struct {
			place Place
			stops bool
		}{"administrator's": {p, c.all}, "own": {User(p.Path), c.own}, "project's": {Place{Path: p.Path, Owner: Anybody}, c.link+c.up != ""}} {
			if _, _, err := try.place.Read(policy.SourceUser); err == nil || errors.Is(err, fs.ErrNotExist) == try.stops {
				t.Errorf("%s, %s: %v", name, kind, err)
			}
		}
	}
	// Through a link that leads somewhere there may be nothing.
	dir := t.TempDir()
	if err := errors.Join(os.Mkdir(filepath.Join(dir, "real"), 0o700), os.Symlink("real", filepath.Join(dir, "link"))); err != nil {
		t.Fatal(err)
	}
	if _, _, err := User(filepath.Join(dir, "link", "policy.toml")).Read(policy.SourceUser); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	// A good file in a directory that others can write to could be another one soon.
	p := at(t)
	if err := os.Chmod(filepath.Dir(p.Path), 0o777); err != nil {
		t.Fatal(err)
	}
	if _, _, err := User(p.Path).Read(policy.SourceUser); err == nil {
		t.Error("an own file was read from a directory that others can write to")
	}
}

// An own file can be a link, as in a collection of settings; who may write to
// what it leads to still counts.
func TestAnOwnFileCanBeALink(t *testing.T) {
	dir := t.TempDir()
	file, link := filepath.Join(dir, "real"), filepath.Join(dir, "policy.toml")
	if err := errors.Join(os.WriteFile(file, []byte(good), 0o600), os.Symlink(file, link)); err != nil {
		t.Fatal(err)
	}
	if _, _, err := User(link).Read(policy.SourceUser); err != nil {
		t.Error(err)
	}
	if err := os.Chmod(file, 0o602); err != nil {
		t.Fatal(err)
	}
	if _, _, err := User(link).Read(policy.SourceUser); err == nil {
		t.Error("it was read while others may write to it")
	}
}

// P04 and P05: nothing that a user sets moves the place, and replacing the file
// between the check and the read changes nothing, because both are of one
// descriptor.
func TestTheAdministratorsPlaceIsFixed(t *testing.T) {
	want := Administrator()
	dir := t.TempDir()
	for _, name := range []string{"HOME", "XDG_CONFIG_HOME", "XDG_CONFIG_DIRS", "STOCKADE_POLICY", "STOCKADE_CONFIG", "ProgramData", "ALLUSERSPROFILE", "PWD", "TMPDIR", "PREFIX", "SNAP", "APPDIR"} {
		t.Setenv(name, dir)
	}
	t.Chdir(dir)
	if got := Administrator(); got != want || got.Owner != rootUID || got.Root != "/" || !filepath.IsAbs(got.Path) {
		t.Errorf("got %+v, was %+v", got, want)
	}
	if runtime.GOOS == "linux" && want.Path != "/etc/stockade/policy.toml" {
		t.Errorf("it is %s", want.Path)
	}
}

func TestReplacingTheFileAfterItsCheckChangesNothing(t *testing.T) {
	p := at(t)
	f, err := p.open()
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := errors.Join(os.WriteFile(p.Path+".new", []byte("[tools.ls]\nallow = true\n"), 0o666), os.Rename(p.Path+".new", p.Path)); err != nil {
		t.Fatal(err)
	}
	data := make([]byte, 100)
	n, _ := f.Read(data)
	if string(data[:n]) != good {
		t.Errorf("read %q", data[:n])
	}
}

// A user's own files are often writable by a group that the user has alone. No
// other group is one.
func TestAGroupOfOneIsNobodyElse(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can give files away")
	}
	const me = 4242
	for name, c := range map[string]struct {
		uid, gid  int
		file, dir fs.FileMode
		root, ok  bool
	}{
		"umask 002":              {me, me, 0o664, 0o775, false, true},
		"all may write":          {me, me, 0o666, 0o775, false, false},
		"all may replace it":     {me, me, 0o664, 0o777, false, false},
		"another group":          {me, 100, 0o664, 0o755, false, false},
		"another group's folder": {me, 100, 0o644, 0o775, false, false},
		"another user's":         {me + 1, me + 1, 0o664, 0o755, false, false},
		"root's":                 {0, 0, 0o664, 0o755, false, false},
		"the administrator's":    {me, me, 0o664, 0o755, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			p := at(t)
			dir := filepath.Dir(p.Path)
			p.Owner = me
			if !c.root {
				p.Root = ""
			} else if err := os.Chown(p.Root, me, me); err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(os.Chown(p.Path, c.uid, c.gid), os.Chown(dir, me, c.gid), os.Chmod(p.Path, c.file), os.Chmod(dir, c.dir)); err != nil {
				t.Fatal(err)
			}
			if _, _, err := p.Read(policy.SourceUser); (err == nil) != c.ok {
				t.Errorf("got %v", err)
			}
		})
	}
}
