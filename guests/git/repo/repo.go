// Package repo reads a git repository: its objects, loose and packed, its references, and
// its index. It writes nothing, starts nothing, and reads no configuration, so it never
// follows a repository's wish to run a program.
//
// Every file may be hostile. Sizes are checked before memory is allocated, chains and
// depths are limited, and packs are read in pages: the module may run in 64 MiB.
//
// Words: the git directory is git's $GIT_DIR. The common directory is shared by all worktrees
// of a repository, and usually is the git directory. An ID is the SHA-1 of an object.
package repo

import (
	"bytes"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/stockade-dev/stockade/host/git/format"
)

// Kind is the type of an object. The numbers are those of packs.
type Kind uint8

// The kinds of objects.
const (
	KindCommit Kind = 1
	KindTree   Kind = 2
	KindBlob   Kind = 3
	KindTag    Kind = 4
)

func (k Kind) String() string {
	if int(k) < len(format.Kinds) {
		return format.Kinds[k]
	}
	return ""
}

// ID is the SHA-1 of an object.
type ID [20]byte

func (id ID) String() string { return hex.EncodeToString(id[:]) }

// IsZero reports whether id is the zero ID, which names no object.
func (id ID) IsZero() bool { return id == ID{} }

// parseID parses 40 hexadecimal digits.
func parseID(s string) (id ID, ok bool) {
	if len(s) != 2*len(id) {
		return id, false
	}
	_, err := hex.Decode(id[:], []byte(s))
	return id, err == nil
}

// Repo is an open repository. It is used by one goroutine.
type Repo struct {
	GitDir     string // git's $GIT_DIR
	CommonDir  string // directory that all worktrees share
	Worktree   string // top directory of the files; "": it is bare, or was opened inside the git directory
	OpenedPath string // path given to Open, relative to Worktree or the bare repository

	cancelled      func() error // returns an error once the call must end; nil: only its work limits it
	spent          int          // units of work so far, see [MaxWork]
	workLimit      int          // units of work above which Check returns an error
	pages          pages
	cache          cache
	inflater       inflater
	delta          []byte   // reused buffer for a delta
	objects        []string // directories of objects: that of the repository, then alternates
	packs          []*pack  // packs in objects, the one used last first
	graphs         []*graph // layers of the commit-graph, the lowest first
	graphsOpened   bool     // set if no commit-graph remains to be opened: openGraphs or Tips was called
	bloom          bloomKey
	nodes          map[ID]*CommitNode  // nodes read from objects, not the commit-graph; up to maxNodes
	packsListed    bool                // set once listPacks was called
	lostAlternates []string            // alternates that do not exist or are not granted
	partialClone   bool                // set by listPacks if some objects may be only at the remote
	shallow        map[ID]bool         // commits at which a shallow clone ends; empty: it is not shallow
	lookups        map[lookupKey]Entry // results of lookup; a zero entry: the tree lacks the name
	loose          map[byte][]ID       // IDs of the loose objects, by first byte, once listed
}

const maxAbove = 256 // directories, from a path upwards, that are searched for a repository

// Open opens the repository that holds a path, which must be absolute and clean and need not
// exist. Later reads call check from time to time, and end with its error. Nil: only the limit
// [MaxWork] ends them.
func Open(path string, check func() error) (*Repo, error) {
	dir := path
	for range maxAbove {
		if r, err := openAt(dir, check); r != nil || err != nil {
			if r != nil {
				r.OpenedPath, err = filepath.Rel(dir, path)
			}
			return r, err
		}
		up := filepath.Dir(dir)
		if up == dir {
			break
		}
		dir = up
	}
	return nil, notRepository("%s is in no git repository that is among the granted directories; start at the top of one, or grant it with --mount", path)
}

// openAt opens the repository whose top is dir; nil: dir is not the top of one.
func openAt(dir string, check func() error) (*Repo, error) {
	dotGit := filepath.Join(dir, ".git")
	info, err := os.Stat(dotGit)
	switch {
	case err == nil && info.IsDir():
		if !isRepository(dotGit) {
			return nil, nil
		}
		return newRepo(dotGit, dir, check)
	case err == nil && info.Mode().IsRegular():
		text, err := readSmall(dotGit, maxPointerFile)
		if err != nil {
			return nil, Corrupt("read %s: %v", dotGit, err)
		}
		target, ok := strings.CutPrefix(strings.TrimRight(string(text), "\r\n"), "gitdir: ")
		if !ok || target == "" || strings.ContainsRune(target, 0) {
			return nil, Corrupt("%s names no git directory", dotGit)
		}
		if !filepath.IsAbs(target) {
			target = filepath.Join(dir, target)
		}
		if target = filepath.Clean(target); !isRepository(target) {
			whole := target // a linked worktree needs all of its repository
			if in := filepath.Dir(target); filepath.Base(in) == "worktrees" {
				whole = filepath.Dir(in)
			}
			return nil, notRepository("%s leads to the git directory %s, which does not exist or is not among the granted directories; if you trust that it is the repository of this directory, grant it with --mount %s", dotGit, target, whole)
		}
		return newRepo(target, dir, check)
	case isBare(dir):
		return newRepo(dir, "", check)
	}
	return nil, nil
}

// isRepository reports whether dir is a git directory, by git's rule. That of a linked
// worktree has its objects elsewhere.
func isRepository(dir string) bool {
	_, err := os.Lstat(filepath.Join(dir, "HEAD"))
	_, err2 := os.Stat(filepath.Join(dir, "commondir"))
	return err == nil && err2 == nil || isBare(dir)
}

func isBare(dir string) bool {
	_, err := os.Lstat(filepath.Join(dir, "HEAD"))
	return err == nil && isDir(filepath.Join(dir, "objects")) && isDir(filepath.Join(dir, "refs"))
}

func isDir(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.IsDir()
}

const (
	maxPointerFile = 4 << 10  // bytes of a file that names others; a longer one is not read
	maxShallow     = 1 << 20  // bytes of the list of commits at which a shallow clone ends; more are an error
	maxPackedRefs  = 64 << 20 // bytes of the packed references, read line by line; more are an error
)

func newRepo(gitDir, worktree string, check func() error) (*Repo, error) {
	if gitDir = realPath(gitDir); worktree != "" {
		worktree = realPath(worktree)
	}
	r := &Repo{GitDir: gitDir, CommonDir: gitDir, Worktree: worktree, workLimit: MaxWork, cancelled: check,
		loose: map[byte][]ID{}, lookups: map[lookupKey]Entry{}, nodes: map[ID]*CommitNode{}}
	if text, err := readSmall(filepath.Join(gitDir, "commondir"), maxPointerFile); err == nil {
		common := strings.TrimRight(string(text), "\r\n")
		if !filepath.IsAbs(common) {
			common = filepath.Join(gitDir, common)
		}
		if r.CommonDir = realPath(filepath.Clean(common)); !isDir(filepath.Join(r.CommonDir, "objects")) {
			return nil, notRepository("the worktree %s belongs to the repository %s, which does not exist or is not among the granted directories; grant it with --mount", worktree, r.CommonDir)
		}
	}
	if isDir(filepath.Join(r.CommonDir, "reftable")) {
		return nil, Unsupported("the repository keeps its references in the format reftable; bash runs git itself")
	}
	r.objects = []string{filepath.Join(r.CommonDir, "objects")}
	r.addAlternates()
	text, err := readSmall(filepath.Join(r.CommonDir, "shallow"), maxShallow)
	if err == nil {
		r.shallow = map[ID]bool{}
		for line := range strings.Lines(string(text)) {
			if id, ok := parseID(strings.TrimSpace(line)); ok {
				r.shallow[id] = true
			}
		}
	} else if errors.Is(err, errTooLong) {
		return nil, TooLarge("the shallow clone ends at so many commits that their list has more than %d MiB; git itself, run by bash, reads it", maxShallow>>20)
	} else if !errors.Is(err, fs.ErrNotExist) {
		return nil, Corrupt("read the list of commits at which the shallow clone ends: %v", err)
	}
	return r, nil
}

// realPath resolves the symbolic links in an absolute, clean path. Links above the granted
// directories cannot be seen, and stay, as do links after the first 40.
func realPath(path string) string {
	left := 40 // links that may still be followed
	for at := 1; at < len(path) && left > 0; {
		end := at + strings.IndexByte(path[at:]+"/", '/')
		target, err := os.Readlink(path[:end])
		if err != nil {
			at = end + 1
			continue
		}
		if !filepath.IsAbs(target) {
			target = filepath.Join(path[:at], target)
		}
		path, at = filepath.Join(target, path[end:]), 1
		left--
	}
	return path
}

// Shallow reports whether the clone is shallow, so that its history ends early.
func (r *Repo) Shallow() bool { return len(r.shallow) > 0 }

// Close closes all files of the repository.
func (r *Repo) Close() {
	for _, p := range r.packs {
		p.close()
	}
	r.dropGraphs()
}

const maxAlternates = 32 // directories of objects; further ones are ignored

// addAlternates adds the directories of objects in objects/info/alternates, from which the
// repository borrows objects, and those in their alternates, if they exist and are granted.
func (r *Repo) addAlternates() {
	for i := 0; i < len(r.objects); i++ {
		text, err := readSmall(filepath.Join(r.objects[i], "info", "alternates"), maxPointerFile)
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(text)) {
			line = strings.TrimRight(line, "\r\n")
			if line == "" || line[0] == '#' || strings.ContainsRune(line, 0) {
				continue
			}
			if !filepath.IsAbs(line) {
				line = filepath.Join(r.objects[i], line)
			}
			dir := realPath(filepath.Clean(line))
			switch {
			case slices.Contains(r.objects, dir) || len(r.objects) == maxAlternates:
			case isDir(dir):
				r.objects = append(r.objects, dir)
			case len(r.lostAlternates) < maxAlternates:
				r.lostAlternates = append(r.lostAlternates, dir)
			}
		}
	}
}

// readSmall reads a regular file. For one of more than maxBytes bytes it returns errTooLong.
func readSmall(name string, maxBytes int) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("is not a file")
	}
	if info.Size() > int64(maxBytes) {
		return nil, errTooLong
	}
	// Room for the current size. The file may still grow.
	var text bytes.Buffer
	text.Grow(int(info.Size()) + bytes.MinRead)
	if _, err := text.ReadFrom(io.LimitReader(f, int64(maxBytes)+1)); err != nil {
		return nil, err
	}
	if text.Len() > maxBytes {
		err = errTooLong
	}
	return text.Bytes(), err
}

var errTooLong = errors.New("it is too long")
