// Package patch reads patches in the form that begins with *** Begin Patch, which
// models write. What it says of a patch is what the tool does that applies it, and
// what the host decides by: both read it with this package.
//
// A patch is sections, one for each file, that add, delete or update it. The section
// of an update holds hunks. A hunk is lines of the file, of which some are removed
// and others added; an anchor is a line of the file that stands somewhere above.
//
// A unified diff that says the same is read as such a patch.
package patch

import (
	"fmt"
	"regexp"
	"strings"
	"sync"
)

// What a patch may have at most.
const (
	MaxBytes = 1 << 20
	MaxFiles = 128
	MaxHunks = 1000
)

// Grammar is the form of a patch in one line.
const Grammar = `"*** Begin Patch", then for each file "*** Add File: PATH" with lines that begin with +, "*** Delete File: PATH", ` +
	`or "*** Update File: PATH" with hunks ("@@", then lines that begin with a blank, - or +), and last "*** End Patch"`

const (
	begin     = "*** Begin Patch"
	end       = "*** End Patch"
	endOfFile = "*** End of File"
	moveTo    = "*** Move to: "
	fence     = "```"
)

// Op is what a section does with its file.
type Op string

// The operations, as they stand in the header of a section.
const (
	Add    Op = "Add"
	Delete Op = "Delete"
	Update Op = "Update"
)

// File is one section.
type File struct {
	Op     Op
	Path   string // as package filename writes it
	MoveTo string // of an update; empty: it stays where it is
	Mode   string // [Executable] or [Plain], as a unified diff says; empty: the mode stays
	Line   int    // of the patch, where the section begins, counted from 1
	Text   string // of a file that is added
	Hunks  []Hunk // of an update
}

// The modes of a [File].
const (
	Executable = "100755"
	Plain      = "100644"
)

// Hunk is a piece of an update.
type Hunk struct {
	Line    int      // of the patch, where its lines begin
	Anchors []string // lines above it, each below the one before
	// Lines are those of the hunk, each with a blank, - or + in front.
	Lines []string
	End   bool // they are the last of the file
	// NoOldEnd and NoNewEnd report whether the last line has no newline, before and after. Then End is set.
	NoOldEnd, NoNewEnd bool
	At                 int // the line of the file at which a unified diff has it; 0 if nobody says
}

// Parse reads a patch. It leaves out what may stand around one: blank lines, a fence of
// Markdown, and the command with which a shell would be told of it. The line
// *** Begin Patch may be missing. Errors say at which line of the patch they are.
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
	at    int
	diff  bool // it is a unified one
	empty int  // lines at the end of the hunk that have not even the blank
}

func (p *parser) line() string { return p.lines[p.at] }

func (p *parser) skipBlank() {
	for p.at < len(p.lines) && strings.TrimSpace(p.line()) == "" {
		p.at++
	}
}

// errorAt is an error at a line, counted from 0.
func (p *parser) errorAt(at int, format string, args ...any) error {
	return fmt.Errorf("line %d of the patch: %s", at+1, fmt.Sprintf(format, args...))
}

// unwrap leaves the sections.
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

// command is the first line of a patch that is handed to a shell.
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
		return f, p.errorAt(p.at, `here begins a file, with "*** Add File: PATH", "*** Delete File: PATH" or "*** Update File: PATH", and not %q`, cut(p.line()))
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
		return p.errorAt(f.Line-1, `nothing is said of %q: "*** Update File" has hunks, which begin with @@`, cut(f.Path))
	}
	return nil
}

// skipAnchorless leaves out blank lines where nothing but another section follows: in
// front of a hunk they are lines of it.
func (p *parser) skipAnchorless() {
	from := p.at
	if p.skipBlank(); p.at < len(p.lines) && !isHeader(p.line()) && !strings.HasPrefix(p.line(), "@@") {
		p.at = from
	}
}

func (p *parser) hunk() (Hunk, error) {
	var h Hunk
	for ; p.at < len(p.lines) && strings.HasPrefix(p.line(), "@@"); p.at++ {
		// Of @@ -1,3 +1,4 @@ the numbers are those of an old version, or made up, and what
		// stands behind them need not be near.
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
	// They stand between sections more often than in a file.
	h.Lines = h.Lines[:len(h.Lines)-p.empty]
	if len(h.Lines) == 0 {
		return h, p.errorAt(h.Line-1, "the hunk has no lines")
	}
	return h, nil
}

// add adds the current line to a hunk.
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

// Old are the lines that the hunk expects in the file.
func (h Hunk) Old() []string {
	var old []string
	for _, line := range h.Lines {
		if line[0] != '+' {
			old = append(old, line[1:])
		}
	}
	return old
}

// cut is the beginning of a text for an error.
func cut(s string) string {
	const most = 60
	for i := range s {
		if i > most {
			return s[:i] + "..."
		}
	}
	return s
}
