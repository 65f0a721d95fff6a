package stage

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// movesName is the file in the private directory of a set that says what
// a commit has given a temporary name. It is there only during the commit.
const movesName = "moves"

// moves is what a commit leaves to whoever finds temporary files if the process
// is killed. It is not synchronized: a process that ends takes nothing along
// that it has written, and after a crash of the host the names tell enough.
type moves struct {
	set  *Set
	file *os.File
}

// note says what is about to get a temporary name, or to be there.
func (m *moves) note(temp, place spot) error {
	if m.set.root == nil {
		return nil // in memory only
	}
	if m.file == nil {
		file, err := m.set.root.OpenFile(movesName, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
		if err != nil {
			return err
		}
		m.file = file
	}
	_, err := fmt.Fprintf(m.file, "%q was %q\n", temp, place)
	return err
}

func (m *moves) end() error {
	if m.file == nil {
		return nil
	}
	err := errors.Join(m.file.Close(), m.set.root.Remove(movesName))
	m.file = nil
	return err
}

// unfinished returns the names of files that say what commits, which ended with
// their process, have left under temporary names: a line for each, with that
// name and the one that it belongs under. Of two lines for one name the last
// counts. Sets had dir as Options.Dir.
func unfinished(dir string) ([]string, error) {
	return filepath.Glob(filepath.Join(dir, ".stockade-stage-*", movesName))
}
