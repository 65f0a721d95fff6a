package selftest

import (
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// scratch is the directory of one attack:
//
//	ws/           the workspace
//	   inside     "inside: for the guest"
//	   d/deep     "deeper"
//	else/         mounted with write in every attack
//	   inside     "inside: for the guest"
//	ws2/          granted to nobody, with nearly the same name
//	   secret     the canary
//	out/          granted to nobody
//	   secret     the canary
//	   dir/
type scratch struct {
	base   string
	canary string
}

// insideText is the content of the files called inside.
const insideText = "inside: for the guest"

func newScratch(base string) (*scratch, error) {
	s := &scratch{base: base, canary: "canary-" + rand.Text()}
	for _, dir := range []string{"ws/d", "else", "ws2", "out/dir"} {
		if err := os.MkdirAll(s.hostPath(dir), 0o700); err != nil {
			return nil, err
		}
	}
	for name, content := range map[string]string{
		"ws/inside": insideText, "else/inside": insideText, "ws/d/deep": "deeper", "out/secret": s.canary, "ws2/secret": s.canary,
	} {
		if err := s.write(name, content); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// hostPath returns the host's name of a path in the scratch directory.
func (s *scratch) hostPath(name string) string {
	return filepath.Join(s.base, filepath.FromSlash(name))
}

// guestPath returns the guest's name of the same path. It is not cleaned.
func (s *scratch) guestPath(name string) string { return guestName(s.base) + "/" + name }

// guestName returns a name of the host in the form that guests use, relative to "/".
func guestName(host string) string {
	return strings.TrimPrefix(filepath.ToSlash(host), "/")
}

func (s *scratch) write(name, content string) error {
	return os.WriteFile(s.hostPath(name), []byte(content), 0o600)
}

// link plants a symbolic link.
func (s *scratch) link(target, name string) error {
	return os.Symlink(filepath.FromSlash(target), s.hostPath(name))
}

// state describes every file that a guest might have changed, by name. The content of
// directories in without is left out.
func (s *scratch) state(without ...string) (map[string]string, error) {
	state := map[string]string{}
	err := filepath.WalkDir(s.base, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(s.base, name)
		if err != nil {
			return err
		}
		fi, err := d.Info()
		if err != nil {
			return err
		}
		for _, w := range without {
			if rel == w {
				state[rel] = fi.Mode().String()
				return filepath.SkipDir
			}
		}
		description := fmt.Sprint(fi.Mode(), " ", fi.ModTime().UnixNano())
		switch {
		case fi.Mode().IsRegular():
			content, err := os.ReadFile(name)
			if err != nil {
				return err
			}
			description += fmt.Sprintf(" %d %x", fi.Size(), sha256.Sum256(content))
		case fi.Mode().Type() == fs.ModeSymlink:
			target, err := os.Readlink(name)
			if err != nil {
				return err
			}
			description += " -> " + target
		}
		state[rel] = description
		return nil
	})
	return state, err
}

// diffStates returns the differences between two states, or nil.
func diffStates(before, after map[string]string) error {
	var errs []error
	for name, was := range before {
		is, ok := after[name]
		switch {
		case !ok:
			errs = append(errs, fmt.Errorf("the host was changed: %s is gone", name))
		case is != was:
			errs = append(errs, fmt.Errorf("the host was changed: %s", name))
		}
	}
	for name := range after {
		if _, ok := before[name]; !ok {
			errs = append(errs, fmt.Errorf("the host was changed: %s was made", name))
		}
	}
	return errors.Join(errs...)
}
