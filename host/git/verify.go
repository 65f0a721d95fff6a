package git

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/stockade-dev/stockade/host/tool"
)

// IntegrityError is returned for a file that is damaged, or through which git would find a
// wrong object under some id, or an object that was not verified. A file of objects that exceeds
// a limit or has an unknown format is no error; it is in [Dir.Unseen].
type IntegrityError struct{ Path, Problem string }

func (l *IntegrityError) Error() string { return fmt.Sprintf("%s: %s", l.Path, l.Problem) }

// verify hashes the objects in all new or changed files of s.dir. unseen lists the files that
// exceed a limit or have an unknown format.
func (s *store) verify(ctx context.Context) (unseen []string, err error) {
	var names []string
	for name, c := range s.files.changed {
		if (name == s.dir || strings.HasPrefix(name, s.dir+"/")) && c[after] != nil {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	done := map[string]bool{}
	for _, name := range names {
		err := ctx.Err()
		if err == nil {
			err = s.verifyFile(ctx, name, done)
		}
		switch {
		case errors.Is(err, errTooLong), errors.Is(err, errFormat):
			unseen = append(unseen, name)
		case err != nil:
			return nil, err
		}
	}
	return unseen, nil
}

// verifyFile verifies the objects in one new or changed file. It skips files in which git never
// looks for objects. It verifies a pack and its index once: done holds the paths of such packs,
// without .idx or .pack, and verifyFile adds to it.
func (s *store) verifyFile(ctx context.Context, name string, done map[string]bool) error {
	now := s.files.changed[name][after]
	if now.Mode&fs.ModeSymlink != 0 {
		return &IntegrityError{name, "it is a symbolic link, whose target would count as an object"}
	}
	if id, ok := s.looseID(name); ok && now.Mode.IsRegular() {
		return s.verifyLoose(name, id, now)
	}
	base, ok := strings.CutSuffix(name, ".idx")
	if !ok {
		base, ok = strings.CutSuffix(name, ".pack")
	}
	if !ok || !strings.HasPrefix(base, s.dir+"/pack/") || done[base] {
		return nil
	}
	done[base] = true
	return s.verifyPack(ctx, base)
}

// verifyPack verifies a pack and its index, if one of them is new. It returns an IntegrityError
// also if the content of either was replaced, or if older files already describe a new pack.
func (s *store) verifyPack(ctx context.Context, base string) error {
	p, err := s.openPack(after, base)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // git ignores a pack without an index, and an index without a pack
	}
	if err != nil {
		return err
	}
	defer p.close()
	fresh := false
	for _, end := range []string{".idx", ".pack"} {
		c := s.files.changed[base+end]
		if c == nil || c[before] == nil {
			fresh = fresh || c != nil
			continue
		}
		was, err := c[before].SHA256()
		if err != nil {
			return err
		}
		if is, err := c[after].SHA256(); err != nil || is != was {
			return &IntegrityError{base + end, "it was replaced by another file of the same name"}
		}
	}
	if !fresh {
		return nil
	}
	for _, end := range []string{".rev", ".bitmap"} {
		// The stage drops files with these endings that a command writes.
		if v, err := s.files.version(after, s.top, base+end); err != nil || v != nil && s.files.changed[base+end] == nil {
			return &IntegrityError{base + end, "it was there before its pack; remove it"}
		}
	}
	list := s.dir + "/pack/multi-pack-index"
	text, err := s.files.text(after, s.top, list, maxPack/4)
	if err != nil {
		return err
	}
	if s.files.changed[list] == nil && strings.Contains(text, base[strings.LastIndexByte(base, '/')+1:]+".idx") {
		return &IntegrityError{list, "it listed the pack before the pack was there; remove it"}
	}
	return p.verify(ctx, &s.files.left.bytes)
}

func (s *store) verifyLoose(name, id string, v *tool.Version) error {
	f, kind, size, err := s.z.openLoose(v)
	var is string
	if err == nil {
		defer f.Close()
		if !spend(&s.files.left.bytes, size) {
			return errTooLong
		}
		is, err = s.z.sum(len(id), kind, size)
	}
	switch {
	case err != nil:
		return &IntegrityError{name, "it is no object: " + err.Error()}
	case is != id:
		return &IntegrityError{name, "it is another object"}
	}
	return nil
}
