package dispatch

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/policy/paths"
	"github.com/stockade-dev/stockade/host/tool"
)

// NamedFiles returns the files that the arguments of a call name, with links followed, for the
// policy's decision. Of the words of a command it returns only files that look like secrets.
// It opens no file, and looks only at places that a mount shows, and for the HEAD of git
// directories above them. If a name leads elsewhere by the time the call runs, that opens
// nothing: the grant holds for the files found here.
func NamedFiles(p *policy.Policy, call tool.Call, entry *tool.Entry) []policy.NamedFile {
	var named []policy.NamedFile
	if entry.Capabilities.Files != tool.FilesNone {
		named = policy.PathArgs(call, entry)
	}
	for i := range named {
		f := &named[i]
		follow(p, entry, f)
		f.InRepository = f.Path != "" && entry.Capabilities.Files == tool.FilesWrite && slices.ContainsFunc(paths.PossibleRepositories(filepath.ToSlash(f.Path), false), func(dir string) bool {
			_, err := os.Lstat(filepath.Join(dir, "HEAD"))
			return err == nil
		})
	}
	for _, f := range policy.CommandArgs(call, entry) {
		follow(p, entry, &f)
		// Files that git has to read are not kept from commands.
		if s, secret := paths.SpecialForRead(paths.Guest(f.Path)); secret && !s.OfGit() && f.Regular {
			named = append(named, f)
		}
	}
	return named
}

// follow fills in Path and Regular of f, with links followed, if a mount shows its name.
func follow(p *policy.Policy, entry *tool.Entry, f *policy.NamedFile) {
	m, ok := p.Sees(entry, f.Name)
	if !ok {
		return
	}
	var st fs.FileInfo
	f.Path, st = followLinks(m.Host, f.Name)
	f.Regular = st != nil && st.Mode().IsRegular()
}

// maxLinks limits the symbolic links that are followed for one name, as Linux does.
const maxLinks = 40

// followLinks returns the path of a name below root with links followed, and its file. It follows
// as the file system of a guest does. The path is empty if a link is absolute or leads out of
// root, or after more than maxLinks. A missing file has a path, and a FileInfo of nil.
func followLinks(root, name string) (string, fs.FileInfo) {
	rel, err := filepath.Rel(root, name)
	if err != nil {
		return "", nil
	}
	sep := string(filepath.Separator)
	at, links := root, 0
	st, err := os.Lstat(root)
	for todo := strings.Split(rel, sep); len(todo) > 0; {
		part := todo[0]
		todo = todo[1:]
		switch part {
		case "", ".":
			continue
		case "..":
			if at == root {
				return "", nil
			}
			at = filepath.Dir(at)
			continue
		}
		next := filepath.Join(at, part)
		if st, err = os.Lstat(next); err != nil {
			return filepath.Join(append([]string{next}, todo...)...), nil
		}
		if st.Mode().Type() != fs.ModeSymlink {
			at = next
			continue
		}
		target, err := os.Readlink(next)
		if links++; err != nil || links > maxLinks || filepath.IsAbs(target) {
			return "", nil
		}
		todo = append(strings.Split(filepath.FromSlash(target), sep), todo...)
	}
	if err != nil {
		return at, nil
	}
	return at, st
}
