package jail

import (
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// programArg is the first argument of this test binary where it is a random
// program, see [randomProgram].
const programArg = "random-program"

func init() { programs[programArg] = randomProgram }

// randomProgram runs the steps of a seed in the current directory, and prints the result of
// each step.
func randomProgram(args []string) {
	unix.Umask(0o022)
	seed, _ := strconv.ParseUint(args[0], 10, 64)
	steps, _ := strconv.Atoi(args[1])
	p := program{rand.New(rand.NewPCG(seed, 1))}
	for i := range steps {
		what, err := p.step(i)
		errno := syscall.Errno(0)
		if err != nil {
			errno = syscall.EIO
			if path, ok := err.(*fs.PathError); ok {
				err = path.Err
			} else if link, ok := err.(*os.LinkError); ok {
				err = link.Err
			}
			if e, ok := err.(syscall.Errno); ok {
				errno = e
			}
		}
		fmt.Println(i, what, errno)
	}
}

type program struct{ *rand.Rand }

// programNames are the names in a tree. They are few, so that steps meet.
var programNames = []string{"a", "b", "c", "d"}

// name returns a path of one to three levels.
func (p program) name() string {
	name := programNames[p.IntN(len(programNames))]
	for range p.IntN(3) {
		name = filepath.Join(name, programNames[p.IntN(len(programNames))])
	}
	return name
}

func (p program) mode(of ...fs.FileMode) fs.FileMode { return of[p.IntN(len(of))] }

// plantedMark is an attribute of the files with which a program begins.
const plantedMark = "user.planted"

// plant makes the files with which a program begins.
func (p program) plant() {
	for range 12 {
		name := p.name()
		_ = os.MkdirAll(filepath.Dir(name), 0o755)
		switch p.IntN(4) {
		case 0:
			_ = os.Mkdir(name, 0o755)
		case 1:
			_ = os.Symlink(p.name(), name)
		default:
			if os.WriteFile(name, []byte("planted "+name), p.mode(0o644, 0o600, 0o755)) == nil {
				_ = unix.Setxattr(name, plantedMark, []byte("x"), 0)
			}
		}
	}
	for range 4 {
		name := p.name()
		switch st, err := os.Lstat(name); {
		case err != nil:
		case st.Mode().IsRegular():
			_ = os.Chmod(name, p.mode(0o444, 0o200, 0o000))
		case st.IsDir():
			mode := p.mode(0o500, 0o555, 0o300, 0o000)
			if os.Getuid() != 0 {
				mode |= 0o500 // of no other can we tell what a command has changed in it
			}
			_ = os.Chmod(name, mode)
		}
	}
}

func (p program) step(i int) (string, error) {
	a, b := p.name(), p.name()
	text := fmt.Appendf(nil, "step %d", i)
	write := func(flag int, off int64) error {
		f, err := os.OpenFile(a, flag, 0o644)
		if err != nil {
			return err
		}
		defer f.Close()
		if off < 0 {
			return nil
		}
		_, err = f.WriteAt(text, off)
		return err
	}
	switch p.IntN(24) {
	case 0:
		return "write " + a, os.WriteFile(a, text, 0o644)
	case 1:
		f, err := os.OpenFile(a, os.O_WRONLY|os.O_APPEND, 0)
		if err == nil {
			_, err = f.Write(text)
			f.Close()
		}
		return "append " + a, err
	case 2:
		return "overwrite " + a, write(os.O_RDWR, 3)
	case 3:
		return "open " + a, write(os.O_RDWR, -1)
	case 4:
		return "truncate " + a, os.Truncate(a, int64(p.IntN(9000)))
	case 5:
		return "unlink " + a, unix.Unlink(a)
	case 6:
		return "rmdir " + a, unix.Rmdir(a)
	case 7:
		return "remove all " + a, os.RemoveAll(a)
	case 8, 9:
		return "mkdir " + a, os.Mkdir(a, 0o755)
	case 10:
		return "mkdir all " + a, os.MkdirAll(a, 0o755)
	case 11, 12, 13:
		return "rename " + a + " " + b, unix.Rename(a, b)
	case 14:
		return "rename new " + a + " " + b, unix.Renameat2(unix.AT_FDCWD, a, unix.AT_FDCWD, b, unix.RENAME_NOREPLACE)
	case 15:
		return "exchange " + a + " " + b, unix.Renameat2(unix.AT_FDCWD, a, unix.AT_FDCWD, b, unix.RENAME_EXCHANGE)
	case 16:
		if _, err := unix.Lgetxattr(a, plantedMark, nil); err == nil {
			return "link " + a, nil // an overlay makes two files of one that it lies over
		}
		return "link " + a + " " + b, unix.Link(a, b)
	case 17:
		return "symlink " + a + " " + b, os.Symlink(a, b)
	case 18:
		st, err := os.Lstat(a)
		if err != nil || st.Mode().Type() == fs.ModeSymlink {
			return "chmod " + a, err
		}
		mode := p.mode(0o644, 0o600, 0o755, 0o700, 0o500, 0o444, 0o000)
		return "chmod " + a, os.Chmod(a, mode)
	case 19:
		old := time.Unix(int64(1e9+p.IntN(1000)), 0)
		return "times " + a, os.Chtimes(a, old, old)
	case 20: // as editors save
		temp := a + ".tmp"
		err := os.WriteFile(temp, text, 0o644)
		if err == nil {
			err = unix.Rename(temp, a)
		}
		return "save " + a, err
	case 21: // as somebody who cleans up
		if err := os.RemoveAll(a); err != nil {
			return "anew " + a, err
		}
		return "anew " + a, os.MkdirAll(filepath.Join(a, "b"), 0o755)
	case 22:
		f, err := os.OpenFile(a, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
		if err == nil {
			_, err = f.Write(text)
			f.Close()
		}
		return "create " + a, err
	}
	text, err := os.ReadFile(a)
	if err == nil {
		err = os.WriteFile(b, text, 0o644)
	}
	return "copy " + a + " " + b, err
}
