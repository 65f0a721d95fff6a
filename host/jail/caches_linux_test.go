package jail

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stockade-dev/stockade/host/jail/wire"
	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/rootedfs"
	"github.com/stockade-dev/stockade/host/services"
)

// files writes files below dir; those with "#!" can be run.
func files(t testing.TB, dir string, contents map[string]string) {
	t.Helper()
	for name, text := range contents {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		mode := fs.FileMode(0o644)
		if strings.HasPrefix(text, "#!") {
			mode = 0o755
		}
		if err := os.WriteFile(file, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
	}
}

// treeOf returns the files below dir: names, contents and modes. Landlock does not cover
// modes.
func treeOf(t testing.TB, dir string, modes bool) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		var text []byte
		if info.Mode().IsRegular() {
			if text, err = os.ReadFile(name); err != nil {
				return err
			}
		}
		mode := info.Mode()
		if !modes {
			mode = mode.Type()
		}
		out[strings.TrimPrefix(name, dir)] = fmt.Sprint(mode, " ", string(text))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// newLayers returns a directory for layers, in which other directories may be that nobody can
// read.
func newLayers(t testing.TB) string {
	dir := t.TempDir()
	t.Cleanup(func() { removeTree(dir) })
	return dir
}

// newHome returns a home with caches, toolchains and credentials, and a workspace in it.
func newHome(t testing.TB) (home, workspace string) {
	t.Helper()
	home = t.TempDir()
	files(t, home, map[string]string{
		"go/pkg/mod/example.com/m@v1.0.0/m.go": "package m",
		"go/bin/sum":                           "#!/bin/sh\necho sum of go/bin",
		"sdk/go1.20/bin/go":                    "#!/bin/sh\necho go1.20",
		".cache/go-build/00/00-d":              "object",
		".cache/pip/http/a":                    "page",
		".cache/other/a":                       "mine",
		".cargo/registry/index/a":              "index",
		".cargo/git/db/a":                      "db",
		".cargo/bin/cargo":                     "#!/bin/sh\necho cargo of the home",
		".cargo/credentials.toml":              "token = 'hunter2'",
		".cargo/config.toml":                   "token = 'hunter2'",
		".rustup/settings.toml":                "version = '12'",
		".npm/_cacache/index-v5/a":             "entry",
		".npm/_logs/log":                       "hunter2",
		".npmrc":                               "_authToken=hunter2",
		".nvm/alias/default":                   "lts/new\n",
		".nvm/alias/lts/new":                   "v20.9\n",
		".nvm/versions/node/v20.9.1/bin/node":  "#!/bin/sh\necho node 20.9.1",
		".nvm/versions/node/v20.9.10/bin/node": "#!/bin/sh\necho node 20.9.10",
		".nvm/versions/node/v20.11.0/bin/node": "#!/bin/sh\necho node 20.11.0",
		".pyenv/shims/python3":                 "#!/bin/sh\necho python of pyenv",
		".pypirc":                              "password: hunter2",
		".netrc":                               "password hunter2",
		".git-credentials":                     "https://me:hunter2@example.com",
		".ssh/id_ed25519":                      "hunter2",
		".gitconfig":                           "[user]\n\tname = Ada\n\temail = ada@example.com\n[credential]\n\thelper = !echo hunter2\n",
		"src/project/README":                   "a project",
	})
	return home, filepath.Join(home, "src/project")
}

// in runs a command in a jail with the caches of a home.
func in(t *testing.T, j *Jail, dir, command string) services.CommandResult {
	t.Helper()
	out, err := j.Run(t.Context(), grantFor(t, dir, command, policy.Limits{}), bash(dir, command))
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func (j *Jail) layered() bool {
	_, k := j.tiers()
	return k.newRoot
}

const spoil = `cd ~
for d in go/pkg/mod .cache/go-build .cache/pip .cargo/registry .cargo/git .npm/_cacache; do
	touch $d/new; find $d/ -type f -exec sh -c 'echo poison >"$0"; chmod 777 "$0"' {} \; ; chmod 777 $d
	find $d/ -type f -name '[a-m]*' -delete; rm -rf $d/*
	touch $d/new
done
for d in go/bin .cargo/bin .rustup .pyenv .nvm sdk; do find $d/ -exec touch {} \; ; rm -rf $d/*; touch $d/new; done
true`

// Nothing that a command writes to a cache or a toolchain reaches the user's, or
// commands in other directories.
func TestCachesAndToolchainsStayAsTheyAre(t *testing.T) {
	if *tier < 1 {
		return // there are no caches
	}
	home, dir := newHome(t)
	other := t.TempDir()
	j := newJail(t, Options{Home: home, LayersDir: newLayers(t), Caches: CacheNames})
	before := treeOf(t, home, j.layered())
	ended(t, in(t, j, dir, spoil), 0)
	if after := treeOf(t, home, j.layered()); !maps.Equal(before, after) {
		for name := range after {
			if before[name] != after[name] {
				t.Errorf("%s was %q, and is %q", name, before[name], after[name])
			}
		}
		t.Fatalf("there were %d names, and are %d", len(before), len(after))
	}
	const look = "cat ~/go/pkg/mod/*/m@v1.0.0/m.go 2>&1; ls ~/.cargo/registry ~/.cache/go-build"
	if out := in(t, j, other, look); !strings.Contains(string(out.Stdout), "package m") || strings.Contains(string(out.Stdout), "new") {
		t.Errorf("another directory has what that one wrote: %s", describe(out))
	}
	// The same directory has the files of the build.
	out := in(t, j, dir, look)
	if got := strings.Count(string(out.Stdout), "new"); got != 1 || !strings.Contains(string(out.Stdout), "package m") {
		t.Errorf("what the command built was not kept, or what it did to sources was: %s", describe(out))
	}
}

func TestWhatIsShownOfTheHome(t *testing.T) {
	if *tier < 1 {
		return // there are no caches
	}
	home, dir := newHome(t)
	j := newJail(t, Options{Home: home, LayersDir: newLayers(t), Caches: CacheNames})
	out := in(t, j, dir, "grep -rs hunter2 ~ "+home+`; ls -d ~/.ssh ~/.cargo/cr* ~/.cargo/config* ~/.npm/_logs ~/.cache/other; sum; cargo; python3; node; cat ~/sdk/go*/bin/go | tail -1; echo
git config --get-regexp '.*'; git init -q && git commit -q --allow-empty -m x && git log --format='%an <%ae>'; git config credential.helper`)
	ended(t, out, 1)
	want := "sum of go/bin\ncargo of the home\npython of pyenv\nnode 20.9.10\necho go1.20\nuser.name Ada\nuser.email ada@example.com\nAda <ada@example.com>\n"
	if got := string(out.Stdout); got != want {
		t.Errorf("%q\nwant %q: %s", got, want, describe(out))
	}
	// A cache that was not asked for is not there, nor are its programs.
	j = newJail(t, Options{Home: home, LayersDir: newLayers(t), Caches: []string{"cargo"}})
	out = in(t, j, dir, "ls -d ~/go ~/.npm ~/.pyenv ~/.cache; cargo; env | grep -c GOPROXY")
	if got := string(out.Stdout); got != "cargo of the home\n0\n" {
		t.Errorf("with the cache of cargo alone: %s", describe(out))
	}
}

// A mount of the grant works as granted, even if it overlaps with a cache.
func TestMountsComeBeforeCaches(t *testing.T) {
	home, _ := newHome(t)
	j := newJail(t, Options{Home: home, LayersDir: newLayers(t), Caches: CacheNames})
	module := filepath.Join(home, "go/pkg/mod/example.com/m@v1.0.0")
	for _, dir := range []string{module, filepath.Join(home, "go"), home} {
		ended(t, in(t, j, dir, "echo changed > "+module+"/m.go"), 0)
		if text, _ := os.ReadFile(module + "/m.go"); string(text) != "changed\n" {
			t.Errorf("in %s it was written elsewhere: %q", dir, text)
		}
		if err := os.WriteFile(module+"/m.go", []byte("package m"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	// What a rule hides is not shown by a cache.
	p := plan{home: home, links: map[string]string{}, world: wire.World{UID: os.Getuid(), NewRoot: true, Home: home}}
	p.addCaches(j, policy.Exec{Masked: []string{module, filepath.Join(home, ".rustup")}})
	for _, l := range p.layers {
		if strings.HasSuffix(l.path, "/mod") {
			t.Errorf("%s is shown", l.path)
		}
	}
	for _, b := range p.world.Binds {
		if strings.HasSuffix(b.Path, ".rustup") {
			t.Errorf("%s is shown", b.Path)
		}
	}
	// Nor is another user's home.
	p = plan{home: home, world: wire.World{UID: os.Getuid() + 1}}
	if p.addCaches(j, policy.Exec{}); len(p.world.Binds)+len(p.layers)+len(p.env) > 0 {
		t.Errorf("somebody else sees %+v", p.world)
	}
}

func TestLayersAreKeptOfEachCommand(t *testing.T) {
	lower, parent := t.TempDir(), filepath.Join(t.TempDir(), "layers")
	store := layerStore(parent, "/home", "/work", true)
	hold := func() *layerSet {
		t.Helper()
		h, err := newLayerSet(store, []layer{{path: lower, group: "them", mayAdd: true}})
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
	has := func(h *layerSet, name string) bool {
		_, err := os.Stat(filepath.Join(h.layers[0].Lower[0], name))
		return err == nil
	}
	first, second, third := hold(), hold(), hold() // at the same time
	for name, h := range map[string]*layerSet{"1": first, "2": second, "3": third} {
		files(t, h.layers[0].Upper, map[string]string{name: "", "all/" + name: "", "d/" + name: ""})
	}
	// A directory without write permission can be moved.
	if err := os.Chmod(filepath.Join(first.layers[0].Upper, "d"), 0o500); err != nil {
		t.Fatal(err)
	}
	first.end(true)
	third.end(false)
	second.end(true)
	for _, h := range []*layerSet{first, second, third} {
		h.release()
	}
	again := hold()
	for name, want := range map[string]bool{"1": true, "all/1": true, "d/1": true, "2": true, "all/2": true, "d/2": true, "3": false, "all/3": false, "d/3": false} {
		if has(again, name) != want {
			t.Errorf("%s is there: %t", name, !want)
		}
	}
	if had := again.layers[0].initialSize; had.Names < 8 {
		t.Errorf("the layer is said to have %+v", had)
	}
	// A link in the place of a directory leads nowhere.
	outside := t.TempDir()
	if err := os.Symlink(outside, filepath.Join(again.layers[0].Upper, "d")); err != nil {
		t.Fatal(err)
	}
	again.end(true)
	again.release()
	again = hold()
	files(t, again.layers[0].Upper, map[string]string{"d/4": ""})
	again.end(true)
	again.release()
	if entries, err := os.ReadDir(outside); err != nil || len(entries) > 0 {
		t.Errorf("a link was followed: %v, %v", entries, err)
	}

	// Not after another boot.
	files(t, store, map[string]string{"boot": "another"})
	again = hold()
	if has(again, "1") {
		t.Error("a layer of another boot was used")
	}
	again.release()

	// What is old, and what a process has left, goes when another is made.
	old := time.Now().Add(-maxUnusedAge - time.Hour)
	if err := os.Chtimes(filepath.Join(store, "boot"), old, old); err != nil {
		t.Fatal(err)
	}
	files(t, parent, map[string]string{"other.lock": "", "other/boot": "", "other/them/x": "", "other/" + oncePrefix + "X/upper/f": ""})
	store = layerStore(parent, "/home", "/elsewhere", true)
	hold().release()
	rootedfs.AwaitRemovals(time.Minute)
	names := slices.Sorted(maps.Keys(treeOf(t, parent, false)))
	want := []string{"", "/other", "/other.lock", "/other/boot", "/other/them", "/other/them/x"}
	name := "/" + filepath.Base(store)
	want = append(want, name, name+".lock", name+"/boot", name+"/lock", name+"/them", name+"/them/"+filepath.Base(lower))
	if slices.Sort(want); !slices.Equal(names, want) {
		t.Errorf("there is %q, want %q", names, want)
	}
}

// If a directory cannot be layered, the user's directory stays unchanged.
func TestWithoutOverlays(t *testing.T) {
	j := newJail(t, Options{})
	if !j.layered() {
		return // there are none at this tier
	}
	dir := t.TempDir()
	shm, err := os.MkdirTemp("/dev/shm", "stockade-test-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(shm)
	files(t, dir, map[string]string{"read/a": "mine", "alone/a": "mine", "upper1/x": "", "upper2/x": "kept"})
	p, err := j.plan(mechanisms[0], policy.Exec{Mounts: []policy.Mount{{Host: dir}}}, dir)
	if err != nil {
		t.Fatal(err)
	}
	read, alone := filepath.Join(dir, "read"), filepath.Join(dir, "alone")
	p.world.Layers = []wire.Layer{ // upper and work on two file systems
		{Path: read, Lower: []string{read}, Upper: filepath.Join(dir, "upper1"), Work: shm},
		{Path: alone, Lower: []string{alone}, Upper: filepath.Join(dir, "upper1"), Work: shm, Alone: filepath.Join(dir, "upper2")},
	}
	h, err := startHelper(t.Context(), p.world)
	if err != nil {
		t.Fatal(err)
	}
	if got := h.ready.NoLayers; len(got) != 2 || got[read] == "" {
		t.Errorf("it says %q", got)
	}
	out := newHeadTail(1000)
	w := j.Redact.Writer(out)
	end, err := h.run(t.Context(), wire.Command{Program: "/bin/bash", Argv: []string{"bash", "-c", "echo x > read/a; cat read/a; echo new > alone/x; ls alone"}, Dir: dir}, streams{stdout: w, stderr: w}, nil)
	_ = w.Flush()
	if err != nil || end.Code == nil || *end.Code != 0 {
		t.Fatalf("%+v %v: %s", end, err, out.bytes())
	}
	if !strings.HasSuffix(string(out.bytes()), "mine"+"x\n") {
		t.Errorf("it sees %q", out.bytes())
	}
	for name, want := range map[string]string{"read/a": "mine", "alone/a": "mine", "upper2/x": "new\n"} {
		if text, _ := os.ReadFile(filepath.Join(dir, name)); string(text) != want {
			t.Errorf("%s is %q", name, text)
		}
	}
}

// Go takes what was built outside, and what was built inside before.
func TestGoUsesItsCache(t *testing.T) {
	if *tier < 1 {
		return // there are no caches
	}
	home, dir := newHome(t)
	files(t, dir, map[string]string{"go.mod": "module example.com/p\n\ngo 1.20\n", "p.go": "package p\n"})
	outside := exec.Command("go", "build", "./...")
	outside.Dir, outside.Env = dir, []string{"HOME=" + home, "PATH=" + systemPath}
	if out, err := outside.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	j := newJail(t, Options{Home: home, LayersDir: newLayers(t), Caches: CacheNames})
	for i, step := range []struct {
		command string
		built   bool
	}{
		{"go build -v ./...", !j.layered()}, // without layers it has a cache of its own
		{"go build -v ./...", false},
		{"echo 'var X = 1' >> p.go; go build -v ./...", true},
		{"go build -v ./...", false},
	} {
		out := in(t, j, dir, step.command)
		ended(t, out, 0)
		if got := strings.Contains(string(out.Stderr), "example.com/p"); got != step.built {
			t.Errorf("%d: %s: built is %v: %s", i, step.command, got, describe(out))
		}
	}
}

// Commands can fill a cache that the user does not have, and it is kept.
func TestCachesThatAreNotThereYet(t *testing.T) {
	if *tier < 1 {
		return // there are no caches
	}
	home, dir := t.TempDir(), t.TempDir()
	if err := os.Symlink(t.TempDir(), filepath.Join(home, ".npm")); err != nil {
		t.Fatal(err)
	}
	files(t, home, map[string]string{".cargo": "a file"})
	files(t, dir, map[string]string{"go.mod": "module example.com/p\n\ngo 1.20\n", "p.go": "package p\n"})
	before := treeOf(t, home, true)
	j := newJail(t, Options{Home: home, LayersDir: newLayers(t), Caches: CacheNames})
	for _, built := range []bool{true, false} {
		out := in(t, j, dir, "go build -v ./...; cat ~/.cache/go-build/page; echo page >~/.cache/go-build/page; cat ~/.cache/pip/page; echo page >~/.cache/pip/page; ls -A ~/.npm ~/.cargo")
		if got := strings.Contains(string(out.Stderr), "example.com/p"); got != built || (string(out.Stdout) == "page\n") == built {
			t.Errorf("built is %v, and is to be %v: %s", got, built, describe(out))
		}
		if len(out.Notes) > 0 {
			t.Errorf("it says %q", out.Notes)
		}
	}
	if after := treeOf(t, home, true); !maps.Equal(before, after) {
		t.Errorf("the home was %q, and is %q", before, after)
	}
	// As soon as the user has one it is seen, with what was written before.
	j.background.Wait()
	files(t, home, map[string]string{".cache/go-build/mine": "mine"})
	if out := in(t, j, dir, "cat ~/.cache/go-build/mine ~/.cache/go-build/page"); string(out.Stdout) != "minepage\n" && j.layered() {
		t.Errorf("beside the user's own: %s", describe(out))
	}
	// What was written over it is a part of it, and not shown without it.
	in(t, j, dir, "rm ~/.cache/go-build/mine")
	if err := os.RemoveAll(filepath.Join(home, ".cache/go-build")); err != nil {
		t.Fatal(err)
	}
	if out := in(t, j, dir, "ls ~/.cache/go-build"); len(out.Stdout) > 0 && j.layered() {
		t.Errorf("the layer alone has %s", describe(out))
	}
}

func TestTheIdentityOfTheUser(t *testing.T) {
	for name, test := range map[string]struct{ text, want string }{
		"a name and an address":       {"[user]\n\tname = Ada L\n\temail = a@b\n", "[user]\n\tname = \"Ada L\"\n[user]\n\temail = \"a@b\"\n"},
		"quotes around it":            {"[User]\nName=\"Ada\"\n", "[user]\n\tname = \"Ada\"\n"},
		"the default branch":          {"[init]\ndefaultBranch = trunk", "[init]\n\tdefaultbranch = \"trunk\"\n"},
		"the last of two":             {"[user]\nname=a\n[core]\nname=c\n[user]\nname=b\n", "[user]\n\tname = \"b\"\n"},
		"nothing":                     {"", ""},
		"what runs something":         {"[core]\npager=x\neditor=x\nsshCommand=x\n[alias]\nx=!x\n[user]\nsigningkey=x\n[credential]\nhelper=x\n[include]\npath=x\n", ""},
		"a section below":             {"[user \"x\"]\nname=a\n", ""},
		"quotes inside, an escape":    {"[user]\nname=a\"b\nemail=a\\nb\n", ""},
		"a comment, a control letter": {"[user]\nname=a # b\nemail=a\x01b\n", ""},
		"too long":                    {"[user]\nname=" + strings.Repeat("x", maxIdentity+1), ""},
	} {
		t.Run(name, func(t *testing.T) {
			home := t.TempDir()
			files(t, home, map[string]string{".gitconfig": test.text})
			if got := gitConfig(home); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
	home := t.TempDir()
	files(t, home, map[string]string{".config/git/config": "[user]\nname=a\nemail=e\n", ".gitconfig": "[user]\nname=b\n"})
	if got := gitConfig(home); got != "[user]\n\tname = \"b\"\n[user]\n\temail = \"e\"\n" {
		t.Errorf("of both files: %q", got)
	}
}

func TestTheTableOfCaches(t *testing.T) {
	var names, bases []string
	for _, c := range caches {
		names = append(names, c.name)
		for l := range c.layers {
			bases = append(bases, filepath.Base(l))
		}
	}
	slices.Sort(names)
	if !slices.Equal(names, slices.Sorted(slices.Values(CacheNames))) {
		t.Errorf("the caches are %q", names)
	}
	slices.Sort(bases)
	if len(slices.Compact(slices.Clone(bases))) != len(bases) {
		t.Errorf("two layers have the same directory: %q", bases)
	}
}
