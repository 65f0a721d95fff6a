package jail

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/stockade-dev/stockade/host/jail/wire"
	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/policy/paths"
)

// cache describes the files of one toolchain in the user's home that commands see. All paths
// are relative to the home. None holds credentials.
type cache struct {
	name string
	// layers holds the directories that commands may change, each in a layer over the user's
	// directory, with the kind of files in the layer. The user need not have the directory.
	layers map[string]layerContent
	shown  []string // patterns of directories that commands can only read; missing ones are skipped
	bin    []string // directories for PATH, within shown; missing ones are skipped
	// offline holds variables, NAME=VALUE, for commands without a network: they make the tool
	// use its cache, and report at once what it cannot fetch.
	offline []string
}

// layerContent is the kind of files in a layer. It decides which commands share the layer.
type layerContent int

const (
	// fetched: files that tools load from registries, such as sources. Builds compile them,
	// and tools run some of them.
	fetched layerContent = iota
	// built: files that one build leaves for the next, useless if they cannot be changed.
	built
)

// unapprovedGroup is the group of built layers that unprivileged commands share, see
// [policy.Exec.IsPrivileged].
const unapprovedGroup = "unasked"

// group returns the name of the group of layers that a command with the terms e uses for this
// content. adds reports whether files that the command writes may be kept for later commands
// of the group. If not, the command sees the files of the group, and its own files are lost
// when it ends. Each group has layers of its own.
//
// So nothing passes from an unprivileged command to a privileged one, neither into what it
// compiles nor into what it runs.
func (c layerContent) group(e policy.Exec) (with string, adds bool) {
	switch {
	case c == fetched:
		return "fetched", e.ReachesHosts()
	case e.IsPrivileged():
		with = "approved"
	default:
		with = unapprovedGroup
	}
	return with, len(e.Opened) == 0 // after a secret was opened, the command's files could hold it
}

// layer is a layer over a cache's directory, for one command.
type layer struct {
	path           string // path of the directory on the host
	group          string // group of commands that share the layer, see layerContent.group
	mayAdd         bool   // files that the command writes may be kept for later commands of the group
	mustBeWritable bool   // the layer is useless to a command that cannot change the files
}

// key returns GROUP/NAME: the path of the layer relative to its store, without the .alone that
// it ends with while the user does not have the directory.
func (s layer) key() string { return filepath.Join(s.group, filepath.Base(s.path)) }

// caches lists the known caches, in the order of their directories in PATH. Logs in ~/.npm
// are left out, and files in ~/.cargo that could hold a token.
var caches = []cache{
	{
		name: "go", layers: map[string]layerContent{"go/pkg/mod": fetched, ".cache/go-build": built},
		shown: []string{"go/bin", "sdk/go*"}, bin: []string{"go/bin"},
		offline: []string{"GOPROXY=off"},
	},
	{
		name: "cargo", layers: map[string]layerContent{".cargo/registry": fetched, ".cargo/git": fetched},
		shown: []string{".cargo/bin", ".rustup"}, bin: []string{".cargo/bin"},
		offline: []string{"CARGO_NET_OFFLINE=true"},
	},
	{
		name: "npm", layers: map[string]layerContent{".npm/_cacache": fetched, ".npm/_npx": fetched},
		offline: []string{"npm_config_offline=true"},
	},
	{
		name: "pip", layers: map[string]layerContent{".cache/pip": fetched}, // including built wheels
		shown: []string{".pyenv", ".local/lib/python*/site-packages"}, bin: []string{".pyenv/shims", ".pyenv/bin"},
		offline: []string{"PIP_RETRIES=0", "PIP_DISABLE_PIP_VERSION_CHECK=1"},
	},
}

// addCaches adds the caches of Options.Caches, with their toolchains, to a plan. It adds none
// if the command runs as another user, or has its home elsewhere in a new root. It skips
// directories that overlap with a mount of the grant or a masked path, or are behind a link.
func (p *plan) addCaches(j *Jail, terms policy.Exec) {
	w, home := &p.world, p.home
	if w.UID != os.Getuid() || w.NewRoot && w.Home != home {
		return // another user's caches, or the home is mounted as a whole
	}
	free := func(name string) bool {
		apart := func(other string) bool { return !paths.In(name, other) && !paths.In(other, name) }
		for _, m := range terms.Mounts {
			if !apart(m.Host) {
				return false
			}
		}
		for _, masked := range terms.Masked {
			if !apart(masked) {
				return false
			}
		}
		return true
	}
	files := os.DirFS(home)
	// found returns the existing directories that match a pattern.
	found := func(pattern string) (out []string) {
		names, _ := fs.Glob(files, pattern)
		for _, rel := range names {
			name := filepath.Join(home, rel)
			if st, err := os.Stat(name); err != nil || !st.IsDir() || !free(name) {
				continue
			}
			if real, err := filepath.EvalSymlinks(name); err != nil || real != name {
				note := name + " is not shown to commands: it is, or is below, a symbolic link"
				if !slices.Contains(p.notes, note) {
					p.notes = append(p.notes, note)
				}
				continue
			}
			out = append(out, rel)
		}
		return out
	}
	// missing reports whether a directory does not exist, and no link is on the way to it.
	missing := func(rel string) bool {
		dir := filepath.Join(home, rel)
		if _, err := os.Lstat(dir); !errors.Is(err, fs.ErrNotExist) || !free(dir) {
			return false
		}
		for {
			dir = filepath.Dir(dir)
			if real, err := filepath.EvalSymlinks(dir); !errors.Is(err, fs.ErrNotExist) {
				return real == dir
			}
		}
	}
	show := func(rel string) {
		w.Binds = append(w.Binds, wire.Bind{Path: filepath.Join(home, rel), Optional: true})
		p.links[rel] = filepath.Join(home, rel)
	}
	var bin []string
	for _, c := range caches {
		if !slices.Contains(j.Caches, c.name) {
			continue
		}
		shown, dirs := c.shown, c.bin
		if c.name == "npm" {
			if node := defaultNode(files); node != "" {
				shown, dirs = []string{node}, []string{node + "/bin"}
			}
		}
		for _, pattern := range shown {
			for _, rel := range found(pattern) {
				show(rel)
			}
		}
		for _, rel := range dirs {
			if len(found(rel)) > 0 {
				bin = append(bin, filepath.Join(home, rel))
			}
		}
		for _, rel := range slices.Sorted(maps.Keys(c.layers)) {
			with, adds := c.layers[rel].group(terms)
			l := layer{filepath.Join(home, rel), with, adds, c.layers[rel] == built}
			if j.LayersDir != "" && (len(found(rel)) > 0 || missing(rel) && (adds || p.hasKept(l))) {
				p.layers = append(p.layers, l)
			}
		}
		if !w.Network {
			p.env = append(p.env, c.offline...)
		}
	}
	p.path = strings.Join(append(bin, systemPath), ":")
}

// hasKept reports whether the store has files of earlier commands for a directory that the
// user does not have. If not, a command that may not add to the layer gets no layer, and uses
// its own home.
func (p *plan) hasKept(l layer) bool {
	_, err := os.Lstat(filepath.Join(p.storeDir, l.key()+".alone"))
	return err == nil
}

// defaultNode returns the directory of nvm's default Node.js, relative to the home; "": none.
func defaultNode(home fs.FS) string {
	want := "default"
	for range 4 { // an alias can name another alias
		text, err := fs.ReadFile(home, ".nvm/alias/"+want)
		if err != nil || len(text) > 100 {
			break
		}
		want = strings.TrimSpace(string(text))
	}
	want = "v" + strings.TrimPrefix(want, "v")
	versions, _ := fs.Glob(home, ".nvm/versions/node/v*")
	slices.SortFunc(versions, compareVersions)
	for _, dir := range slices.Backward(versions) {
		if v := filepath.Base(dir); v == want || want == "vnode" || strings.HasPrefix(v, want+".") {
			return dir
		}
	}
	return ""
}

// compareVersions orders names like v1.10.2 by the numbers between the dots.
func compareVersions(a, b string) int {
	return slices.CompareFunc(strings.Split(a, "."), strings.Split(b, "."), func(a, b string) int {
		if len(a) != len(b) {
			return len(a) - len(b)
		}
		return strings.Compare(a, b)
	})
}
