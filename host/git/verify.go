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

// Lie is something by which git would find another object than the one whose name it
// has, or one that nobody has looked at.
type Lie struct{ Path, What string }

func (l *Lie) Error() string { return fmt.Sprintf("%s: %s", l.Path, l.What) }

// verify hashes all that is new among the objects. It returns the files that are beyond
// a bound, or in a format that is not known.
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

// verifyFile verifies one. What git takes for no object is for others to tell.
func (s *store) verifyFile(ctx context.Context, name string, done map[string]bool) error {
	now := s.files.changed[name][after]
	if now.Mode&fs.ModeSymlink != 0 {
		return &Lie{name, "it is a symbolic link, and what is there would count as an object"}
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

// verifyPack verifies a pack and its index. One of which git has noted down before where
// its objects are may not become another one.
func (s *store) verifyPack(ctx context.Context, base string) error {
	p, err := s.openPack(after, base)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // without the other file, git does not look at this one
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
			return &Lie{base + end, "it is another one than before under the same name"}
		}
	}
	if !fresh {
		return nil
	}
	for _, end := range []string{".rev", ".bitmap"} {
		// Those that a command writes are left out by the stage.
		if v, err := s.files.version(after, s.top, base+end); err != nil || v != nil && s.files.changed[base+end] == nil {
			return &Lie{base + end, "it was there before its pack; remove it"}
		}
	}
	list := s.dir + "/pack/multi-pack-index"
	text, err := s.files.text(after, s.top, list, maxPack/4)
	if err != nil {
		return err
	}
	if s.files.changed[list] == nil && strings.Contains(text, base[strings.LastIndexByte(base, '/')+1:]+".idx") {
		return &Lie{list, "it has listed a pack before that was there; remove it"}
	}
	return p.verify(ctx, &s.files.left.bytes)
}

// verifyLoose hashes a loose object.
func (s *store) verifyLoose(name, id string, v *tool.Version) error {
	f, kind, size, err := s.z.openLoose(v)
	var is string
	if err == nil {
		defer f.Close()
		if !take(&s.files.left.bytes, size) {
			return errTooLong
		}
		is, err = s.z.sum(len(id), kind, size)
	}
	switch {
	case err != nil:
		return &Lie{name, "it is no object: " + err.Error()}
	case is != id:
		return &Lie{name, "it is another object"}
	}
	return nil
}
