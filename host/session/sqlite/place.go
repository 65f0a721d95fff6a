package sqlite

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"github.com/stockade-dev/stockade/host/internal/private"
)

// OpenError is returned if a store cannot be opened, by [Open] or by [Verify].
type OpenError struct {
	Path    string
	Problem string // the problem with the file; empty: Err explains it
	Hint    string // advice for a person; may be empty
	Err     error  // the cause, such as session.ErrNewer; may be nil
}

func (e *OpenError) Error() string {
	s := "open session store " + e.Path
	if e.Problem != "" {
		s += ": " + e.Problem
	}
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

func (e *OpenError) Unwrap() error { return e.Err }

// createMu is held while a new database file is open outside SQLite. Closing such a file drops all
// POSIX locks of the process on it, even those of a Store that has opened it meanwhile.
var createMu sync.Mutex

// prepare ensures that there is a database file at path. It returns an error if somebody else
// could have put the file there, or can write it.
func prepare(path string) error {
	folder := filepath.Dir(path)
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return &OpenError{Path: path, Err: err}
	}
	if err := checkFolder(path, folder); err != nil {
		return err
	}
	createMu.Lock()
	defer createMu.Unlock()
	if err := checkFile(path, path); !errors.Is(err, fs.ErrNotExist) {
		if err != nil {
			return err
		}
		return checkBeside(path)
	}
	// SQLite would delete a log beside a new database. If the database has appeared
	// meanwhile, the log belongs to it.
	for _, suffix := range []string{"-wal", "-journal"} {
		if _, err := os.Lstat(path + suffix); err != nil {
			continue
		}
		if err := checkFile(path, path); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return &OpenError{
			Path:    path,
			Problem: fmt.Sprintf("the database is missing, but %s is there", filepath.Base(path)+suffix),
			Hint:    "put the database back beside it, or move it away to begin a new store",
		}
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return checkFile(path, path) // another process has created it meanwhile
	}
	if err != nil {
		return &OpenError{Path: path, Err: err}
	}
	if err := errors.Join(f.Close(), private.SyncFolder(folder)); err != nil {
		return &OpenError{Path: path, Err: err}
	}
	return nil
}

// checkBeside checks the files that SQLite keeps beside the database, and the reserve. A foreign
// one would be as dangerous as a foreign database.
func checkBeside(path string) error {
	for _, suffix := range []string{"-wal", "-shm", "-journal", reserveSuffix} {
		if err := checkFile(path, path+suffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// checkFile checks the owner, the mode and the type of one file of the store at path. The error
// wraps fs.ErrNotExist if there is no such file.
func checkFile(path, file string) error {
	info, err := os.Lstat(file)
	if err != nil {
		return &OpenError{Path: path, Err: err}
	}
	refuse := func(problem, hint string) error {
		if file != path {
			problem = filepath.Base(file) + " " + problem
		}
		return &OpenError{Path: path, Problem: problem, Hint: hint}
	}
	switch mode := info.Mode(); {
	case mode&fs.ModeSymlink != 0:
		return refuse("is a symbolic link", "name the file that the link leads to")
	case !mode.IsRegular():
		return refuse("is not a regular file", "name another file")
	case private.HasModes && mode.Perm()&0o022 != 0:
		return refuse(fmt.Sprintf("can be written by others (mode %04o)", mode.Perm()),
			fmt.Sprintf("if nobody has, run: chmod 600 %s", file))
	}
	if owner, mine := private.Owner(info); !mine {
		return refuse(fmt.Sprintf("belongs to another user (id %d)", owner), "use a store of your own")
	}
	return nil
}

// checkFolder returns an error if everybody can replace files in the folder of the store at path,
// or if the folder is on a network file system.
func checkFolder(path, folder string) error {
	info, err := os.Stat(folder)
	if err != nil {
		return &OpenError{Path: path, Err: err}
	}
	// With the sticky bit, others can add files but cannot replace ours.
	if private.HasModes && info.Mode().Perm()&0o002 != 0 && info.Mode()&fs.ModeSticky == 0 {
		return &OpenError{
			Path:    path,
			Problem: fmt.Sprintf("everybody can replace files in %s (mode %04o)", folder, info.Mode().Perm()),
			Hint:    fmt.Sprintf("run: chmod 700 %s", folder),
		}
	}
	if err := checkFileSystem(folder); err != nil {
		return &OpenError{Path: path, Err: err, Hint: localDiskHint}
	}
	return nil
}
