package repo

import (
	"bufio"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/stockade-dev/stockade/host/git/format"
)

// Ref is a reference.
type Ref struct {
	Name string // such as refs/heads/main
	ID   ID
}

// Head holds the branch and the commit to which HEAD refers.
type Head struct {
	Branch string // usually refs/heads/NAME; "": HEAD is detached
	ID     ID     // commit of HEAD; zero: the branch has no commits
}

// Head reads HEAD.
func (r *Repo) Head() (Head, error) {
	id, branch, err := r.ref("HEAD")
	if errors.Is(err, fs.ErrNotExist) && branch != "" {
		return Head{Branch: branch}, nil
	}
	if errors.Is(err, fs.ErrNotExist) {
		return Head{}, Corrupt("there is no HEAD")
	}
	return Head{branch, id}, err
}

const maxSymbolic = 5 // symbolic references in a chain, as in git; more are an error

// ref resolves a reference to an ID. If name is symbolic, last is the name of the final
// reference, otherwise "". If that reference does not exist, the error is fs.ErrNotExist.
func (r *Repo) ref(name string) (id ID, last string, err error) {
	for range maxSymbolic + 1 {
		text, err := r.readRef(name)
		if err != nil {
			return ID{}, last, err
		}
		if id, ok := parseID(text); ok {
			return id, last, nil
		}
		target, ok := strings.CutPrefix(text, "ref:")
		if target = strings.TrimSpace(target); !ok || !strings.HasPrefix(target, "refs/") || !format.IsRef(target) {
			if _, long := parseID(text[:min(len(text), 40)]); long && len(text) == 64 {
				return ID{}, last, Unsupported("the repository names its objects by SHA-256; bash runs git itself")
			}
			return ID{}, last, Corrupt("the reference %q holds neither a name of an object nor one of a reference", name)
		}
		name, last = target, target
	}
	return ID{}, last, Corrupt("the reference %q leads to others without end", name)
}

// readRef returns the text of a reference, without white space at its end.
func (r *Repo) readRef(name string) (string, error) {
	dir := r.CommonDir
	if format.IsPerWorktreeRef(name) {
		dir = r.GitDir // each worktree has its own
	}
	file := filepath.Join(dir, filepath.FromSlash(name))
	if info, err := os.Stat(file); err == nil && info.Mode().IsRegular() {
		text, err := readSmall(file, maxPointerFile)
		if err == nil {
			return strings.TrimRight(string(text), " \t\r\n"), nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return "", Corrupt("read the reference %q: %v", name, err)
		}
	}
	if !strings.HasPrefix(name, "refs/") {
		return "", fs.ErrNotExist
	}
	var found string
	err := r.packedRefs(func(ref string, id string) bool {
		if ref == name {
			found = id
		}
		return found == ""
	})
	if err == nil && found == "" {
		err = fs.ErrNotExist
	}
	return found, err
}

// packedRefs calls yield with each packed reference and the text of its ID, until yield
// returns false.
func (r *Repo) packedRefs(yield func(name, id string) bool) error {
	f, err := os.Open(filepath.Join(r.CommonDir, "packed-refs"))
	if err != nil {
		return nil // there are none
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || info.Size() > maxPackedRefs {
		return TooLarge("packed-refs has more than %d MiB; git for-each-ref, run by bash, reads it", maxPackedRefs>>20)
	}
	scan := bufio.NewScanner(f)
	for n := 0; scan.Scan(); n++ {
		if n%4096 == 0 {
			if err := r.Check(); err != nil {
				return err
			}
		}
		line := scan.Bytes()
		if len(line) < 42 || line[0] == '#' || line[0] == '^' || line[40] != ' ' {
			continue
		}
		if !yield(string(line[41:]), string(line[:40])) {
			return nil
		}
	}
	if err := scan.Err(); err != nil {
		return Corrupt("read packed-refs: %v", err)
	}
	return nil
}

const (
	// MaxRefs limits the references that [Repo.Refs] lists; further ones are left out.
	MaxRefs     = 10_000
	maxRefDepth = 16 // levels of directories with references as files; deeper ones are not listed
)

// Refs lists the references whose names begin with below, such as refs/heads/, sorted by name.
// If more than [MaxRefs] exist, more is set, and refs holds that many, maybe not the first.
// References that cannot be read are left out.
func (r *Repo) Refs(below string) (refs []Ref, more bool, err error) {
	found := map[string]ID{}
	err = r.packedRefs(func(name, id string) bool {
		if strings.HasPrefix(name, below) && format.IsRef(name) {
			if id, ok := parseID(id); ok {
				found[name] = id
			}
		}
		return len(found) <= MaxRefs
	})
	if err != nil {
		return nil, false, err
	}
	var walk func(name string, depth int)
	walk = func(name string, depth int) {
		entries, err := readDir(filepath.Join(r.CommonDir, filepath.FromSlash(name)))
		if err != nil || depth == maxRefDepth || r.Check() != nil {
			return
		}
		for _, e := range entries {
			full := name + e.Name()
			switch {
			case len(found) > MaxRefs:
				return
			case !format.IsRef(full):
			case e.IsDir():
				walk(full+"/", depth+1)
			default:
				if id, _, err := r.ref(full); err == nil {
					found[full] = id
				}
			}
		}
	}
	walk(below, 0)
	for name, id := range found {
		refs = append(refs, Ref{name, id})
	}
	slices.SortFunc(refs, func(a, b Ref) int { return strings.Compare(a.Name, b.Name) })
	if more = len(refs) > MaxRefs; more {
		refs = refs[:MaxRefs]
	}
	return refs, more, r.Check()
}

// Names lists the short names of branches, tags and remote branches, for hints.
func (r *Repo) Names() (names []string) {
	for _, below := range []string{"refs/heads/", "refs/tags/", "refs/remotes/"} {
		refs, _, _ := r.Refs(below)
		for _, ref := range refs {
			names = append(names, strings.TrimPrefix(ref.Name, below))
		}
	}
	return names
}
