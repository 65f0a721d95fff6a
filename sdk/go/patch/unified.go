package patch

import (
	"regexp"
	"strconv"
	"strings"
	"sync"
)

// isDiff reports whether a file of a unified diff begins here.
func (p *parser) isDiff() bool {
	line := p.line()
	return strings.HasPrefix(line, "diff ") || strings.HasPrefix(line, "Index: ") || p.isPair(p.at)
}

// isPair reports whether the two lines that name a file stand there.
func (p *parser) isPair(at int) bool {
	return at+1 < len(p.lines) && strings.HasPrefix(p.lines[at], "--- ") && strings.HasPrefix(p.lines[at+1], "+++ ")
}

// around are the lines that stand above those names and say nothing else.
var around = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(diff |Index: |index |=====|new file mode |deleted file mode |old mode |new mode )`)
})

var hunkHeader = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^@@ -(\d{1,9})(?:,(\d{1,9}))? \+\d{1,9}(?:,(\d{1,9}))? @@`)
})

const nowhere = "/dev/null"

// diffFile reads one file of a unified diff. What such a diff can say beyond a patch, as
// a rename, is refused.
func (p *parser) diffFile() (File, error) {
	for p.at < len(p.lines) && around().MatchString(p.line()) {
		p.at++
	}
	if p.at >= len(p.lines) || !p.isPair(p.at) {
		at := min(p.at, len(p.lines)-1)
		return File{}, p.fault(at, "in a unified diff the lines --- and +++ name each file before its hunks, and this is %q; a patch is %s", cut(p.lines[at]), Grammar)
	}
	f := File{Op: Update, Line: p.at + 1}
	from, to := diffPath(p.lines[p.at][4:]), diffPath(p.lines[p.at+1][4:])
	a, isA := strings.CutPrefix(from, "a/")
	b, isB := strings.CutPrefix(to, "b/")
	switch {
	case from == nowhere && to != nowhere:
		f.Op, f.Path = Add, b
	case to == nowhere && from != nowhere:
		f.Op, f.Path = Delete, a
	case isA && isB && a == b:
		f.Path = a
	case from == to:
		f.Path = from
	default:
		return f, p.fault(p.at, "%q and %q are not the same file: to move one, a patch is %s", cut(from), cut(to), Grammar)
	}
	if f.Path == "" || f.Path == nowhere || f.Path[0] == '"' {
		return f, p.fault(p.at, "%q is no path that is read here; a patch is %s", cut(f.Path), Grammar)
	}
	p.at += 2
	for p.skipBlank(); p.at < len(p.lines) && strings.HasPrefix(p.line(), "@@"); p.skipBlank() {
		h, err := p.diffHunk()
		if err != nil {
			return f, err
		}
		f.Hunks = append(f.Hunks, h)
	}
	switch {
	case f.Op == Update && len(f.Hunks) == 0:
		return f, p.fault(f.Line-1, "the diff says nothing of %q: its hunks are missing", cut(f.Path))
	case f.Op == Add:
		var text strings.Builder // a sum of strings would take half a minute for 1 MiB
		for _, h := range f.Hunks {
			for _, line := range h.Lines {
				if line[0] != '+' {
					return f, p.fault(h.Line-1, "every line of a file that is added begins with +, and a line of this hunk is %q", cut(line))
				}
				text.WriteString(line[1:] + "\n")
			}
		}
		f.Text = text.String()
	}
	if f.Op != Update {
		f.Hunks = nil // of a file that is deleted its hash says what it was
	}
	return f, nil
}

// diffPath is a path without the time that may stand behind it.
func diffPath(text string) string {
	path, _, _ := strings.Cut(text, "\t")
	return strings.TrimSpace(path)
}

// diffHunk reads a hunk: as many lines as its header says, or as there are, since a model
// counts badly.
func (p *parser) diffHunk() (Hunk, error) {
	m := hunkHeader().FindStringSubmatch(p.line())
	if m == nil {
		return p.hunk()
	}
	p.at++
	h := Hunk{Line: p.at + 1}
	h.At, _ = strconv.Atoi(m[1]) // digits
	allOld, allAdded := counted(m[2]), counted(m[3])
	old, added, empty := 0, 0, 0
	for ; p.at < len(p.lines); p.at++ {
		line := p.line()
		if strings.HasPrefix(line, "@@") || strings.HasPrefix(line, "diff ") || strings.HasPrefix(line, "Index: ") {
			break
		}
		if p.isPair(p.at) {
			if old == allOld && added == allAdded {
				break
			}
			return h, p.fault(p.at, "here another file may begin, or two lines may change: the header of the hunk says which if it counts its lines rightly; a patch is %s", Grammar)
		}
		switch {
		case line == "":
			empty++
			old++
			added++
			h.Lines = append(h.Lines, " ")
			continue
		case line[0] == '\\':
			continue
		case line[0] == '+':
			added++
		case line[0] == '-':
			old++
		case line[0] == ' ':
			old++
			added++
		default:
			return h, p.fault(p.at, "a line of a hunk begins with a blank (the file has it), - or +, and this is %q", cut(line))
		}
		empty = 0
		h.Lines = append(h.Lines, line)
	}
	if old != allOld || added != allAdded {
		h.Lines = h.Lines[:len(h.Lines)-empty]
	}
	if len(h.Lines) == 0 {
		return h, p.fault(h.Line-1, "the hunk has no lines")
	}
	return h, nil
}

// counted is how many lines a header says; without a number it is one.
func counted(text string) int {
	if text == "" {
		return 1
	}
	n, _ := strconv.Atoi(text) // digits
	return n
}
