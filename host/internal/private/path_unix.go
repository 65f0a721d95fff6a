//go:build unix

package private

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// maxLinks is how many symbolic links may lead to a directory.
const maxLinks = 40

// CheckPath refuses a path that another user could make lead elsewhere: each directory
// on the way, and each link, has to belong to the user or to root, and nobody else may
// write to the directory, but in one with the sticky bit. A group that the user
// has alone, with the user's number, is the user. What is not there yet is not looked at.
func CheckPath(path string) error {
	path, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	at, rest := "/", strings.Split(path, "/")
	for links := 0; ; {
		st, err := os.Lstat(at)
		if os.IsNotExist(err) {
			return nil
		}
		if err != nil {
			return err
		}
		owner, mine := Owner(st)
		if !mine && owner != 0 {
			return fmt.Errorf("%s, which leads to %s, belongs to another user (%d), who could put something else there: move what is yours to a directory of your own", at, path, owner)
		}
		if st.Mode().Type() == fs.ModeSymlink {
			if links++; links > maxLinks {
				return fmt.Errorf("%s: %w", path, syscall.ELOOP)
			}
			target, err := os.Readlink(at)
			if err != nil {
				return err
			}
			if at = filepath.Dir(at); filepath.IsAbs(target) {
				at = "/"
			}
			rest = append(strings.Split(target, "/"), rest...)
		} else if st.IsDir() && writableByOthers(st) {
			return fmt.Errorf("others may write to %s (mode %04o), which leads to %s, and so put something else there: take that away: chmod go-w %[1]s", at, st.Mode().Perm(), path)
		}
		for len(rest) > 0 && rest[0] == "" {
			rest = rest[1:]
		}
		if len(rest) == 0 {
			return nil
		}
		at, rest = filepath.Join(at, rest[0]), rest[1:]
	}
}

// writableByOthers reports whether others than its owner can put something else into the place of
// what is in a directory.
func writableByOthers(st fs.FileInfo) bool {
	mode := st.Mode()
	sys, ok := st.Sys().(*syscall.Stat_t)
	own := ok && sys.Uid != 0 && sys.Uid == sys.Gid && mode&0o002 == 0
	return mode&0o022 != 0 && mode&fs.ModeSticky == 0 && !own
}
