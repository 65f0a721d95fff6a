// Package repo reads a repository of git: its objects, loose and packed, its
// references, and its index. It writes nothing, starts nothing, and knows no
// configuration: what a repository says that git should run is never looked at.
//
// All that it reads may have been made to overwhelm it. Sizes are checked before
// anything is allocated, chains and depths have an end, and packs are read in
// pages: the module may run in 64 MiB.
//
// Words: the git directory is what git calls $GIT_DIR, and the common directory is
// what several worktrees share, usually the same. An ID is the SHA-1 of an object.
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

// Kind is what an object is. The numbers are those of packs.
type Kind uint8

// The kinds.
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

// ID names an object.
type ID [20]byte

func (id ID) String() string { return hex.EncodeToString(id[:]) }

// IsZero reports whether it names nothing.
func (id ID) IsZero() bool { return id == ID{} }

// parseID reads 40 hexadecimal digits.
func parseID(s string) (id ID, ok bool) {
	if len(s) != 2*len(id) {
		return id, false
	}
	_, err := hex.Decode(id[:], []byte(s))
	return id, err == nil
}

// Repo is an open repository. It is used by one goroutine.
type Repo struct {
	GitDir     string
	CommonDir  string
	Worktree   string // the top of the files; "" of a bare repository
	OpenedPath string // the path by which it was opened, relative to Worktree

	cancelled      func() error // asked from time to time whether to go on; nil: yes
	spent          int          // work, see [MaxWork]
	workLimit      int          // how much of it may be done
	pages          pages
	cache          cache
	inflater       inflater
	delta          []byte   // buffer for a delta, reused
	objects        []string // directories of objects, first its own
	packs          []*pack
	graphs         []*graph // the layers of a commit-graph, the lowest first
	graphsOpened   bool     // they were looked for
	bloom          bloomKey
	nodes          map[ID]*CommitNode // of commits that were read and are not in the graph
	packsListed    bool               // packs are
	lostAlternates []string           // alternates that could not be opened
	partialClone   bool               // a partial clone
	shallow        map[ID]bool
	lookups        map[lookupKey]Entry
	loose          map[byte][]ID // the names in a directory of loose objects, once listed
}

// maxAbove is how many directories above a path may be looked at.
const maxAbove = 256

// Open opens the repository that a path, absolute and clean, is in. The path need
// not exist.
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

// openAt returns nil if the directory is not the top of a repository.
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

// isRepository decides as git does. What a worktree shares is elsewhere.
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
	maxPointerFile = 4 << 10  // of a file that names another, or holds a reference
	maxShallow     = 1 << 20  // of the list of commits without parents
	maxPackedRefs  = 64 << 20 // of the packed references, which are never held as a whole
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

// realPath returns an absolute, clean path without links, as far as these can be seen: those above
// the granted directories cannot.
func realPath(path string) string {
	left := 40 // links that are followed
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

// Shallow reports whether history ends earlier than that of the repository it was
// cloned from.
func (r *Repo) Shallow() bool { return len(r.shallow) > 0 }

// Close closes all files.
func (r *Repo) Close() {
	for _, p := range r.packs {
		p.close()
	}
	r.dropGraphs()
}

// maxAlternates limits the directories of objects that are searched for alternates.
const maxAlternates = 32

// addAlternates follows objects/info/alternates, as far as the directories can be
// seen: what is not granted does not exist for the module.
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

// readSmall reads a file that has at most so many bytes.
func readSmall(name string, most int) ([]byte, error) {
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
	if info.Size() > int64(most) {
		return nil, errTooLong
	}
	// The file may grow meanwhile; what it has now has room at once.
	var text bytes.Buffer
	text.Grow(int(info.Size()) + bytes.MinRead)
	if _, err := text.ReadFrom(io.LimitReader(f, int64(most)+1)); err != nil {
		return nil, err
	}
	if text.Len() > most {
		err = errTooLong
	}
	return text.Bytes(), err
}

var errTooLong = errors.New("it is too long")
