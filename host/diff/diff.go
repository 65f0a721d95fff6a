// Package diff shows people what a call changes, as a unified diff.
package diff

import (
	"bytes"
	"fmt"
	"io"
	"path/filepath"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/aymanbagabas/go-udiff"

	"github.com/stockade-dev/stockade/host/tool"
)

// What is shown at most. The rest is counted.
const (
	maxText    = 512 << 10 // bytes of a file that are compared
	maxChange  = 64 << 10  // bytes of the diff of one file
	maxTotal   = 256 << 10
	contextFor = 3 // lines around each difference
)

// Unified describes changes in the order that they have, each with a line that
// says what it is, and text files with their differences in unified format.
// Names are relative to dir where they are below it. Changes that cannot be
// shown as text are still named, with their sizes; what is too long is cut, and
// that is said.
func Unified(changes []tool.Change, dir string) string {
	var out strings.Builder
	for i, c := range changes {
		if out.Len() > maxTotal {
			fmt.Fprintf(&out, "... and %d changes more\n", len(changes)-i)
			break
		}
		one(&out, c, dir)
	}
	return out.String()
}

func one(out *strings.Builder, c tool.Change, dir string) {
	name := shown(c.Path, dir)
	fmt.Fprintf(out, "%s %s", c.Kind, name)
	if c.Kind == tool.Renamed {
		fmt.Fprintf(out, " from %s", shown(c.From, dir))
	}
	fmt.Fprintf(out, "%s\n", numbers(c))
	if c.Kind == tool.Times || c.Kind == tool.Removed && c.Before != nil && !c.Before.Mode.IsRegular() {
		return
	}
	before, err := text(c.Before)
	var after string
	if err == nil {
		after, err = text(c.After)
	}
	if err != nil {
		fmt.Fprintf(out, "  (not shown: %v)\n", err)
		return
	}
	if before == after {
		return
	}
	from, to := "a/"+name, "b/"+name
	if c.Kind == tool.Renamed {
		from = "a/" + shown(c.From, dir)
	}
	if c.Before == nil {
		from = "/dev/null"
	}
	if c.After == nil {
		to = "/dev/null"
	}
	unified, err := udiff.ToUnified(from, to, before, udiff.Lines(before, after), contextFor)
	if err != nil {
		fmt.Fprintf(out, "  (not shown: %v)\n", err)
		return
	}
	if cut := len(unified) - maxChange; cut > 0 {
		head := strings.ToValidUTF8(unified[:maxChange], "")
		unified = head[:strings.LastIndexByte(head, '\n')+1] + fmt.Sprintf("... %d bytes of this diff are not shown\n", len(unified)-len(head))
	}
	out.WriteString(unified)
	if !strings.HasSuffix(unified, "\n") {
		out.WriteByte('\n')
	}
}

// shown is a name as one word of one line.
func shown(path, dir string) string {
	if rel, err := filepath.Rel(dir, path); err == nil && filepath.IsLocal(rel) {
		path = filepath.ToSlash(rel)
	}
	plain := utf8.ValidString(path) && strings.IndexFunc(path, func(r rune) bool { return !unicode.IsPrint(r) }) < 0
	if plain {
		return path
	}
	return strconv.Quote(path)
}

// numbers are the sizes, and the mode where that changes.
func numbers(c tool.Change) string {
	file := func(v *tool.Version) bool { return v != nil && v.Mode.IsRegular() }
	s := ""
	switch {
	case file(c.Before) && file(c.After):
		if c.Before.Size != c.After.Size {
			s = fmt.Sprintf(" (%d bytes, before %d)", c.After.Size, c.Before.Size)
		}
	case file(c.After):
		s = fmt.Sprintf(" (%d bytes)", c.After.Size)
	case file(c.Before):
		s = fmt.Sprintf(" (%d bytes)", c.Before.Size)
	}
	if c.Before != nil && c.After != nil && c.Before.Mode != c.After.Mode {
		s += fmt.Sprintf(" (mode %v, before %v)", c.After.Mode, c.Before.Mode)
	}
	return s
}

// text is the content of a version that is text; empty for one that is not
// there or has no content.
func text(v *tool.Version) (string, error) {
	if v == nil || !v.Mode.IsRegular() {
		return "", nil
	}
	if v.Size > maxText {
		return "", fmt.Errorf("%d bytes are too long to compare", v.Size)
	}
	r, err := v.Open()
	if err != nil {
		return "", err
	}
	defer r.Close()
	data, err := io.ReadAll(io.LimitReader(r, maxText+1))
	switch {
	case err != nil:
		return "", err
	case bytes.IndexByte(data, 0) >= 0 || !utf8.Valid(data):
		return "", fmt.Errorf("it is not UTF-8 text")
	}
	return string(data), nil
}
