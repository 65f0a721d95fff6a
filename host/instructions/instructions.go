// Package instructions reads what a project says to agents: AGENTS.md at the root
// of the workspace, or CLAUDE.md where there is none.
//
// What is read is text of whoever wrote the project. It goes to a model as data,
// and nobody decides by it: see RATIONALE, "Why does AGENTS.md need no trust?" It is read
// like the file of a stranger: a regular file of that very directory and no link,
// no more than a part of it, and with nothing in it that does not show.
//
//	f, err := instructions.Read(workspace, 0) // f.Name is empty if there is none
package instructions

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"syscall"
	"unicode"
	"unicode/utf8"

	"github.com/stockade-dev/stockade/host/rootedfs"
	"github.com/stockade-dev/stockade/host/visible"
)

// Names are those of the file, the first that can be read counts.
var Names = []string{"AGENTS.md", "CLAUDE.md"}

// MaxBytes is how much of the file is read, and how long its text is at most.
const MaxBytes = 32 << 10

// File is what was read.
type File struct {
	Name  string // empty: there is none
	Bytes int64  // of the file
	// Text is the file, or the first lines of it. What does not show in it, and is
	// no line end or tab, stands there by its code, such as <U+200B>, and a byte
	// that is no character by <0x9B>.
	Text        string
	HiddenCount int // how many stand there by their codes
	NextLine    int // the line that follows what was read; 0: it is the whole file
}

// Read reads the file in a directory, at most so many bytes of it, and makes no longer
// text of them; 0 is [MaxBytes].
// That there is a file and it cannot be read is an error, where there is no other.
func Read(dir string, most int) (File, error) {
	root, _, err := rootedfs.Open(dir)
	if err != nil {
		return File{}, err
	}
	defer root.Close()
	return readFirst(root, most)
}

func readFirst(root rootedfs.Root, most int) (File, error) {
	if most <= 0 || most > MaxBytes {
		most = MaxBytes
	}
	var first error
	for _, name := range Names {
		f, err := read(root, name, most)
		if err == nil {
			return f, nil
		}
		if !errors.Is(err, fs.ErrNotExist) && first == nil {
			first = fmt.Errorf("%s is not read: %w", name, err)
		}
	}
	return File{}, first
}

func read(root rootedfs.Root, name string, most int) (File, error) {
	f, err := open(root, name)
	if err != nil {
		if e, ok := errors.AsType[*fs.PathError](err); ok {
			err = e.Err // the person knows the path
		}
		return File{}, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err == nil {
		err = root.RefuseKernelFile(f, info)
	}
	if err != nil {
		return File{}, err
	}
	if !info.Mode().IsRegular() {
		return File{}, errors.New("it is no regular file")
	}
	data, err := io.ReadAll(io.LimitReader(f, int64(most)+1))
	if err != nil {
		return File{}, err
	}
	if bytes.IndexByte(data, 0) >= 0 {
		return File{}, errors.New("it is no text: it holds a NUL byte")
	}
	out := File{Name: name, Bytes: max(info.Size(), int64(len(data)))}
	whole := len(data) <= most
	if !whole {
		data = data[:most]
		last := len(data) - 1 // where its last character begins, of which a part may be missing
		for last > 0 && !utf8.RuneStart(data[last]) {
			last--
		}
		if !utf8.FullRune(data[last:]) {
			data = data[:last]
		}
	}
	data = bytes.TrimPrefix(data, []byte("\uFEFF"))
	text, hidden, n := escapeHidden(data, most)
	if !whole || n < len(data) {
		if end := bytes.LastIndexByte(data[:n], '\n'); end >= 0 { // else it is one long line
			n = end + 1
			text, hidden, _ = escapeHidden(data[:n], most)
		}
		out.NextLine = bytes.Count(data[:n], []byte("\n")) + 1
	}
	out.Text, out.HiddenCount = strings.TrimRight(text, "\n"), hidden
	return out, nil
}

// open opens what is no link. Not every root can tell by opening.
func open(root rootedfs.Root, name string) (*os.File, error) {
	f, err := root.OpenNoSymlinks(name, os.O_RDONLY)
	if !errors.Is(err, syscall.ELOOP) {
		return f, err
	}
	info, err := root.Lstat(name)
	switch {
	case err != nil:
		return nil, err
	case info.Mode().Type() == fs.ModeSymlink:
		return nil, errors.New("it is a symbolic link, which may lead to anything")
	}
	if f, err = root.OpenFile(name, os.O_RDONLY|rootedfs.Nonblock, 0); err != nil {
		return nil, err
	}
	if now, err := f.Stat(); err != nil || !os.SameFile(info, now) { // a link may have taken its place
		return nil, errors.Join(errors.New("it was exchanged while it was opened"), f.Close())
	}
	return f, nil
}

// escapeHidden is a text in which everything shows as what it is: what a person who looks
// at the file does not see, a model does not read unseen. It ends where it would have
// more than most bytes, because a code is longer than what it stands for; n is how
// much of data is in it.
func escapeHidden(data []byte, most int) (text string, hidden, n int) {
	var b strings.Builder
	var last rune
	for n < len(data) {
		r, size := utf8.DecodeRune(data[n:])
		piece, code := string(r), false
		switch {
		case r == utf8.RuneError && size == 1:
			piece, code = fmt.Sprintf("<0x%02X>", data[n]), true
		case r == '\r' && bytes.HasPrefix(data[n+size:], []byte("\n")):
			piece = ""
		case visible.IsHidden(r) && (r != emoji || !unicode.Is(unicode.So, last)):
			piece, code = fmt.Sprintf("<U+%04X>", r), true
		}
		if b.Len()+len(piece) > most {
			break
		}
		b.WriteString(piece)
		if code {
			hidden++
		}
		last, n = r, n+size
	}
	return b.String(), hidden, n
}

// emoji asks that the symbol before it is shown as a picture, as editors write it.
const emoji = '\uFE0F'
