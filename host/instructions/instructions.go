// Package instructions reads a project's instructions for agents: AGENTS.md at the root of the
// workspace, or CLAUDE.md if there is none.
//
// The text comes from the project's authors. It goes to a model as data, and no decision depends
// on it: see RATIONALE, "Why does AGENTS.md need no trust?" The file is read like that of a
// stranger: it must be a regular file in that directory and not a link, its size is limited, and
// hidden characters are replaced by visible codes.
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

// Names holds the possible names of the file. The first that can be read is used.
var Names = []string{"AGENTS.md", "CLAUDE.md"}

// MaxBytes limits the bytes that are read of the file, and its text; the rest is cut off.
const MaxBytes = 32 << 10

// File is the result of [Read].
type File struct {
	Name  string // name of the file; empty: there is none
	Bytes int64  // size of the file
	// Text is the text of the file, or of its first lines. Hidden characters, except line ends and
	// tabs, are replaced by codes such as <U+200B>, and invalid bytes by codes such as <0x9B>.
	Text        string
	HiddenCount int // number of characters and bytes that codes replace in Text
	NextLine    int // number of the first line that is not in Text, from 1; 0: Text is complete
}

// Read reads the file in a directory. limit is the number of bytes that are read of it, and that
// its text may have, at most and by default (0) [MaxBytes]. If a file exists but none can be
// read, it returns an error.
func Read(dir string, limit int) (File, error) {
	root, _, err := rootedfs.Open(dir)
	if err != nil {
		return File{}, err
	}
	defer root.Close()
	return readFirst(root, limit)
}

func readFirst(root rootedfs.Root, limit int) (File, error) {
	if limit <= 0 || limit > MaxBytes {
		limit = MaxBytes
	}
	var first error
	for _, name := range Names {
		f, err := read(root, name, limit)
		if err == nil {
			return f, nil
		}
		if !errors.Is(err, fs.ErrNotExist) && first == nil {
			first = fmt.Errorf("%s is not read: %w", name, err)
		}
	}
	return File{}, first
}

func read(root rootedfs.Root, name string, limit int) (File, error) {
	f, err := open(root, name)
	if err != nil {
		if e, ok := errors.AsType[*fs.PathError](err); ok {
			err = e.Err // the caller knows the path
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
	data, err := io.ReadAll(io.LimitReader(f, int64(limit)+1))
	if err != nil {
		return File{}, err
	}
	if bytes.IndexByte(data, 0) >= 0 {
		return File{}, errors.New("it is no text: it holds a NUL byte")
	}
	out := File{Name: name, Bytes: max(info.Size(), int64(len(data)))}
	whole := len(data) <= limit
	if !whole {
		data = data[:limit]
		last := len(data) - 1 // start of the last character, which may be incomplete
		for last > 0 && !utf8.RuneStart(data[last]) {
			last--
		}
		if !utf8.FullRune(data[last:]) {
			data = data[:last]
		}
	}
	data = bytes.TrimPrefix(data, []byte("\uFEFF"))
	text, hidden, n := escapeHidden(data, limit)
	if !whole || n < len(data) {
		if end := bytes.LastIndexByte(data[:n], '\n'); end >= 0 { // otherwise the text is one long line
			n = end + 1
			text, hidden, _ = escapeHidden(data[:n], limit)
		}
		out.NextLine = bytes.Count(data[:n], []byte("\n")) + 1
	}
	out.Text, out.HiddenCount = strings.TrimRight(text, "\n"), hidden
	return out, nil
}

// open opens a file, but not through a link. Not every root detects links when it opens a file.
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
	if now, err := f.Stat(); err != nil || !os.SameFile(info, now) { // it may have been replaced by a link
		return nil, errors.Join(errors.New("it was replaced while it was opened"), f.Close())
	}
	return f, nil
}

// escapeHidden returns a text whose hidden characters are replaced by codes: a model must not
// read text that a person does not see. The text has at most limit bytes, and so covers perhaps
// only the first n bytes of data, because a code is longer than its character. hidden is the
// number of codes.
func escapeHidden(data []byte, limit int) (text string, hidden, n int) {
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
		if b.Len()+len(piece) > limit {
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

// emoji is the variation selector that shows the symbol before it as a picture. Editors insert it.
const emoji = '\uFE0F'
