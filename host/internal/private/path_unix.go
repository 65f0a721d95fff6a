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

// maxLinks limits the symbolic links in a path.
const maxLinks = 40

// CheckPath returns an error if another user could make a path lead elsewhere. Each directory
// and each link on the way must belong to the user or to root. Nobody else may write to the
// directories, unless they have the sticky bit. A group with the number of the user counts as
// the user. Parts of the path that do not exist yet are not checked.
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
			return fmt.Errorf("%s, which leads to %s, belongs to another user (%d), who could put something else there: move your files to a directory of your own", at, path, owner)
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

// writableByOthers reports whether anybody but the owner of a directory can replace its
// entries.
func writableByOthers(st fs.FileInfo) bool {
	mode := st.Mode()
	sys, ok := st.Sys().(*syscall.Stat_t)
	own := ok && sys.Uid != 0 && sys.Uid == sys.Gid && mode&0o002 == 0
	return mode&0o022 != 0 && mode&fs.ModeSticky == 0 && !own
}
