// Package patch parses patches in the form that begins with *** Begin Patch, which
// models write. The tool that applies a patch and the host that decides about it both
// use this package, and so agree about its meaning.
//
// A patch consists of sections. Each adds, deletes or updates one file. The section of an
// update holds hunks. A hunk holds lines of the file, some of them removed or added. An
// anchor is a line of the file somewhere above the hunk.
//
// A unified diff is parsed as such a patch.
package patch

import (
	"fmt"
	"regexp"
	"strings"
	"sync"
)

// Limits of a patch: its bytes, files and hunks. A larger patch is an error.
const (
	MaxBytes = 1 << 20
	MaxFiles = 128
	MaxHunks = 1000
)

// Grammar describes the form of a patch in one line.
const Grammar = `"*** Begin Patch", then for each file "*** Add File: PATH" with lines that begin with +, "*** Delete File: PATH", ` +
	`or "*** Update File: PATH" with hunks ("@@", then lines that begin with a blank, - or +), and last "*** End Patch"`

const (
	begin     = "*** Begin Patch"
	end       = "*** End Patch"
	endOfFile = "*** End of File"
	moveTo    = "*** Move to: "
	fence     = "```"
)

// Op is the operation of a section on its file.
type Op string

// The operations, as in the header of a section.
const (
	Add    Op = "Add"
	Delete Op = "Delete"
	Update Op = "Update"
)

// File is one section of a patch.
type File struct {
	Op     Op
	Path   string // path of the file, in the form of package filename
	MoveTo string // new path of an updated file; empty: the path stays
	Mode   string // [Executable] or [Plain], from a unified diff; empty: the mode stays
	Line   int    // first line of the section in the patch, counted from 1
	Text   string // content of an added file
	Hunks  []Hunk // changes of an updated file
}

// The modes of a [File].
const (
	Executable = "100755"
	Plain      = "100644"
)

// Hunk is one change of an update.
type Hunk struct {
	Line    int      // line of the patch at which the lines of the hunk begin, counted from 1
	Anchors []string // lines of the file above the hunk, in their order
	Lines   []string // lines of the hunk, each after a blank, - or +
	End     bool     // set if the hunk ends with the last line of the file
	// NoOldEnd and NoNewEnd are set if the last line has no newline before and after the
	// change. If one is set, End is set.
	NoOldEnd, NoNewEnd bool
	At                 int // line of the file at which a unified diff places the hunk; 0: unknown
}

// Parse parses a patch. It ignores blank lines, a Markdown fence and a shell command around
// the patch. The line *** Begin Patch may be missing. Most errors name the line of the patch.
func Parse(text string) ([]File, error) {
	if len(text) > MaxBytes {
		return nil, fmt.Errorf("the patch has %d bytes, more than the limit of %d", len(text), MaxBytes)
	}
	p := &parser{lines: strings.Split(strings.ReplaceAll(text, "\r\n", "\n"), "\n")}
	if err := p.unwrap(); err != nil {
		return nil, err
	}
	var files []File
	hunks := 0
	for p.skipBlank(); p.at < len(p.lines); p.skipBlank() {
		read := p.file
		if p.diff {
			read = p.diffFile
		}
		f, err := read()
		if err != nil {
			return nil, err
		}
		files = append(files, f)
		if hunks += len(f.Hunks); len(files) > MaxFiles || hunks > MaxHunks {
			return nil, fmt.Errorf("the patch has more than %d files or %d hunks: make several of it", MaxFiles, MaxHunks)
		}
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("the patch names no file; a patch is %s", Grammar)
	}
	return files, nil
}

type parser struct {
	lines []string
	at    int  // position of the current line
	diff  bool // set if the patch is a unified diff
	empty int  // number of empty lines at the end of the current hunk
}

func (p *parser) line() string { return p.lines[p.at] }

func (p *parser) skipBlank() {
	for p.at < len(p.lines) && strings.TrimSpace(p.line()) == "" {
		p.at++
	}
}

// errorAt returns an error about the line at this position, counted from 0.
func (p *parser) errorAt(at int, format string, args ...any) error {
	return fmt.Errorf("line %d of the patch: %s", at+1, fmt.Sprintf(format, args...))
}

// unwrap removes everything around the sections.
func (p *parser) unwrap() error {
	trim := func() {
		for len(p.lines) > 0 && strings.TrimSpace(p.lines[len(p.lines)-1]) == "" {
			p.lines = p.lines[:len(p.lines)-1]
		}
		p.skipBlank()
	}
	if trim(); p.at < len(p.lines) && strings.HasPrefix(p.line(), fence) {
		p.at++
	}
	if last := len(p.lines) - 1; last >= p.at && p.lines[last] == fence {
		p.lines = p.lines[:last]
	}
	trim()
	if last := len(p.lines) - 1; last > p.at {
		if m := command().FindStringSubmatch(p.line()); m != nil && p.lines[last] == m[1] {
			p.lines = p.lines[:last]
			p.at++
			trim()
		}
	}
	if p.at >= len(p.lines) {
		return fmt.Errorf("the patch is empty; a patch is %s", Grammar)
	}
	switch first := strings.TrimSpace(p.line()); {
	case first == begin:
		p.at++
	case isHeader(first):
	case p.isDiff():
		p.diff = true
		return nil
	case strings.HasPrefix(first, "@@"):
		return p.errorAt(p.at, "no file is named above the hunk; a patch is %s", Grammar)
	default:
		return p.errorAt(p.at, "%q is not the beginning of a patch; a patch is %s", cut(p.line()), Grammar)
	}
	last := len(p.lines) - 1
	if last < p.at || strings.TrimSpace(p.lines[last]) != end {
		return p.errorAt(last, "the patch does not end with %q: it may be incomplete; send all of it", end)
	}
	p.lines = p.lines[:last]
	p.skipBlank()
	p.diff = p.at < len(p.lines) && p.isDiff()
	return nil
}

// command is the first line of a shell command that holds a patch.
var command = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^apply_patch\s+<<\s*['"]?(\w+)['"]?\s*$`) })

var ops = []Op{Add, Delete, Update}

func header(op Op) string { return "*** " + string(op) + " File: " }

func isHeader(line string) bool {
	for _, op := range ops {
		if strings.HasPrefix(line, header(op)) {
			return true
		}
	}
	return false
}

func (p *parser) file() (File, error) {
	f := File{Line: p.at + 1}
	for _, op := range ops {
		if name, ok := strings.CutPrefix(p.line(), header(op)); ok {
			f.Op, f.Path = op, strings.TrimSpace(name)
		}
	}
	switch {
	case f.Op == "":
		return f, p.errorAt(p.at, `a file must begin here, with "*** Add File: PATH", "*** Delete File: PATH" or "*** Update File: PATH", and not %q`, cut(p.line()))
	case f.Path == "":
		return f, p.errorAt(p.at, "the path is missing")
	}
	p.at++
	switch f.Op {
	case Add:
		var text strings.Builder
		for ; p.at < len(p.lines) && strings.HasPrefix(p.line(), "+"); p.at++ {
			text.WriteString(p.line()[1:] + "\n")
		}
		f.Text = text.String()
		if p.at < len(p.lines) && strings.HasPrefix(p.line(), `\ `) { // No newline at end of file
			f.Text = strings.TrimSuffix(f.Text, "\n")
			p.at++
		}
		p.skipBlank()
		if p.at < len(p.lines) && !isHeader(p.line()) {
			return f, p.errorAt(p.at, "every line of a file that is added begins with +, an empty one too, and this is %q", cut(p.line()))
		}
	case Update:
		return f, p.update(&f)
	}
	return f, nil
}

func (p *parser) update(f *File) error {
	if p.at < len(p.lines) {
		if name, ok := strings.CutPrefix(p.line(), moveTo); ok {
			if f.MoveTo = strings.TrimSpace(name); f.MoveTo == "" {
				return p.errorAt(p.at, "the path is missing")
			}
			p.at++
		}
	}
	for p.skipAnchorless(); p.at < len(p.lines) && !isHeader(p.line()); p.skipAnchorless() {
		h, err := p.hunk()
		if err != nil {
			return err
		}
		f.Hunks = append(f.Hunks, h)
	}
	if len(f.Hunks) == 0 && f.MoveTo == "" {
		return p.errorAt(f.Line-1, `no change for %q: "*** Update File" needs hunks, which begin with @@`, cut(f.Path))
	}
	return nil
}

// skipAnchorless skips blank lines if a hunk with @@, another section or the end follows.
// Otherwise they belong to the hunk that follows.
func (p *parser) skipAnchorless() {
	from := p.at
	if p.skipBlank(); p.at < len(p.lines) && !isHeader(p.line()) && !strings.HasPrefix(p.line(), "@@") {
		p.at = from
	}
}

func (p *parser) hunk() (Hunk, error) {
	var h Hunk
	for ; p.at < len(p.lines) && strings.HasPrefix(p.line(), "@@"); p.at++ {
		// The numbers in @@ -1,3 +1,4 @@ may be outdated or invented, and the text after
		// them need not be near the hunk.
		if anchor := strings.TrimSpace(p.line()[2:]); anchor != "" && !hunkRanges().MatchString(anchor) {
			h.Anchors = append(h.Anchors, anchor)
		}
	}
	h.Line, p.empty = p.at+1, 0
	for ; p.at < len(p.lines) && !strings.HasPrefix(p.line(), "@@") && !isHeader(p.line()); p.at++ {
		if p.line() == endOfFile {
			h.End = true
			p.at++
			break
		}
		if err := p.add(&h); err != nil {
			return h, err
		}
	}
	// Empty lines at the end of a hunk mostly separate sections.
	h.Lines = h.Lines[:len(h.Lines)-p.empty]
	if len(h.Lines) == 0 {
		return h, p.errorAt(h.Line-1, "the hunk has no lines")
	}
	return h, nil
}

func (p *parser) add(h *Hunk) error {
	line := p.line()
	switch {
	case line == "" && (h.NoOldEnd || h.NoNewEnd):
		return nil
	case line == "":
		p.empty++
		h.Lines = append(h.Lines, " ")
		return nil
	case strings.HasPrefix(line, `\ `) && len(h.Lines) > 0: // No newline at end of file
		last := h.Lines[len(h.Lines)-1][0]
		h.NoOldEnd = h.NoOldEnd || last != '+'
		h.NoNewEnd = h.NoNewEnd || last != '-'
		h.End = true
	case !strings.ContainsRune(" -+", rune(line[0])):
		return p.errorAt(p.at, "a line of a hunk begins with a blank (the file has it), - or +, and this is %q", cut(line))
	case h.NoOldEnd && line[0] != '+', h.NoNewEnd && line[0] != '-':
		return p.errorAt(p.at, `%q stands below "\ No newline at end of file", which belongs below the last line`, cut(line))
	default:
		h.Lines = append(h.Lines, line)
	}
	p.empty = 0
	return nil
}

var hunkRanges = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^-\d+(,\d+)? \+\d+(,\d+)? @@`) })

// Old returns the lines that the hunk expects in the file.
func (h Hunk) Old() []string {
	var old []string
	for _, line := range h.Lines {
		if line[0] != '+' {
			old = append(old, line[1:])
		}
	}
	return old
}

// cut shortens a text for an error message.
func cut(s string) string {
	const maxBytes = 60
	for i := range s {
		if i > maxBytes {
			return s[:i] + "..."
		}
	}
	return s
}
