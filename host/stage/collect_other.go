//go:build !linux

package stage

import (
	"errors"
	"os"
)

// NoteWrite does nothing: only Linux has overlays.
func NoteWrite() {}

func canRenameBetween(string, string) bool { return false }

func ownedByNonRoot(os.FileInfo) bool { return false }

func copyOwnerAndMode(dir string, other os.FileInfo) error { return os.Chmod(dir, other.Mode().Perm()) }

func (u *upper) prepareForRename(bool) error { return errors.ErrUnsupported }

func (l *Layer) sync() error { return errors.ErrUnsupported }
