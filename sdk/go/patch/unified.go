package patch

import (
	"regexp"
	"strconv"
	"strings"
	"sync"

	"github.com/stockade-dev/stockade/sdk/go/filename"
)

// isDiff reports whether a file of a unified diff begins at the current line.
func (p *parser) isDiff() bool {
	line := p.line()
	return strings.HasPrefix(line, "diff ") || strings.HasPrefix(line, "Index: ") || p.isPair(p.at)
}

// isPair reports whether the lines --- and +++, which name a file, are at this position.
func (p *parser) isPair(at int) bool {
	return at+1 < len(p.lines) && strings.HasPrefix(p.lines[at], "--- ") && strings.HasPrefix(p.lines[at+1], "+++ ")
}

// preambleLine matches the lines that may precede --- and +++.
var preambleLine = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(diff --git |diff |Index: |=====|index |(?:dis)?similarity index |` +
		`new file mode |deleted file mode |old mode |new mode |rename from |rename to )(.*)`)
})

var hunkHeader = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^@@ -(\d{1,9})(?:,(\d{1,9}))? \+\d{1,9}(?:,(\d{1,9}))? @@`)
})

const nowhere = "/dev/null"

// diffFile parses one file of a unified diff, with the lines that git adds above its hunks. A
// line that no tool can carry out is an error.
func (p *parser) diffFile() (File, error) {
	f := File{Op: Update, Line: p.at + 1}
	names, from, to := "", "", ""
	for ; p.at < len(p.lines) && !p.isPair(p.at); p.at++ {
		m := preambleLine().FindStringSubmatch(p.line())
		if m == nil || m[1] == "diff --git " && names != "" {
			break
		}
		switch value := m[2]; m[1] {
		case "diff --git ":
			names = value
		case "new file mode ":
			f.Op, f.Mode = Add, value
		case "new mode ":
			f.Mode = value
		case "deleted file mode ":
			f.Op = Delete
		case "rename from ":
			from = diffPath(value)
		case "rename to ":
			to = diffPath(value)
		}
		if f.Mode != "" && f.Mode != Executable && f.Mode != Plain {
			return f, p.errorAt(p.at, "a file has the mode %s or %s, and not %q: no tool makes links or submodules", Plain, Executable, cut(f.Mode))
		}
	}
	at, a, b := p.at, "", ""
	if p.isPair(at) {
		f.Line, p.at = at+1, at+2
		a, b = diffPath(p.lines[at][4:]), diffPath(p.lines[at+1][4:])
	}
	switch {
	case from != "" && to != "":
		f.Op, f.Path, f.MoveTo = Update, from, to
	case a == nowhere:
		f.Op, f.Path = Add, strings.TrimPrefix(b, "b/")
	case b == nowhere:
		f.Op, f.Path = Delete, strings.TrimPrefix(a, "a/")
	case a == b && a != "":
		f.Path = a
	case a != "":
		f.Path = sameName(a + " " + b)
	default:
		f.Path = sameName(names)
	}
	switch {
	case f.Path == "" && a == "" && b == "":
		at = min(at, len(p.lines)-1)
		return f, p.errorAt(at, "in a unified diff the lines --- and +++ name each file before its hunks, and this is %q; a patch is %s", cut(p.lines[at]), Grammar)
	case f.Path == "":
		return f, p.errorAt(at, "%q and %q are not the same file: to move one, a patch is %s", cut(a), cut(b), Grammar)
	case f.Path == nowhere:
		return f, p.errorAt(at, "%q cannot be the path of a file; a patch is %s", cut(f.Path), Grammar)
	}
	for p.skipBlank(); p.at < len(p.lines) && strings.HasPrefix(p.line(), "@@"); p.skipBlank() {
		h, err := p.diffHunk()
		if err != nil {
			return f, err
		}
		f.Hunks = append(f.Hunks, h)
	}
	switch {
	case f.Op == Update && len(f.Hunks) == 0 && f.MoveTo == "" && f.Mode == "":
		return f, p.errorAt(f.Line-1, "no change for %q: its hunks are missing", cut(f.Path))
	case f.Op == Add:
		var text strings.Builder // a sum of strings would take half a minute for 1 MiB
		for _, h := range f.Hunks {
			for _, line := range h.Lines {
				if line[0] != '+' {
					return f, p.errorAt(h.Line-1, "every line of a file that is added begins with +, and a line of this hunk is %q", cut(line))
				}
				text.WriteString(line[1:] + "\n")
			}
		}
		f.Text = text.String()
		if n := len(f.Hunks); n > 0 && f.Hunks[n-1].NoNewEnd {
			f.Text = strings.TrimSuffix(f.Text, "\n")
		}
	}
	if f.Op != Update {
		f.Hunks = nil // the old content of a deleted file is known by its hash
	}
	return f, nil
}

// sameName returns the path in a text that names a file twice, such as a/x b/x; otherwise "".
func sameName(names string) string {
	half := len(names) / 2 // the blank between two names of the same length
	path := strings.TrimPrefix(diffPath(names[:half]), "a/")
	if strings.TrimPrefix(diffPath(names[half:]), "b/") != path {
		return ""
	}
	return path
}

// diffPath returns the path in a line of a diff, without the time after the path. Git puts an
// unusual path into quotation marks.
func diffPath(text string) string {
	path, _, _ := strings.Cut(text, "\t")
	path = strings.TrimSpace(path)
	if name, err := strconv.Unquote(path); err == nil && path[0] == '"' {
		return filename.Show(name)
	}
	return path
}

// diffHunk parses a hunk up to the next hunk or file, because models count lines badly. The
// counts in the header only decide about lines with two meanings.
func (p *parser) diffHunk() (Hunk, error) {
	m := hunkHeader().FindStringSubmatch(p.line())
	if m == nil {
		return p.hunk()
	}
	p.at++
	h := Hunk{Line: p.at + 1}
	p.empty = 0
	h.At, _ = strconv.Atoi(m[1]) // digits
	allOld, allAdded := counted(m[2]), counted(m[3])
	for ; p.at < len(p.lines); p.at++ {
		line := p.line()
		if strings.HasPrefix(line, "@@") || strings.HasPrefix(line, "diff ") || strings.HasPrefix(line, "Index: ") {
			break
		}
		if p.isPair(p.at) {
			if h.hasLines(allOld, allAdded) {
				break
			}
			return h, p.errorAt(p.at, "this may begin another file, or be two changed lines of the hunk: its header must count its lines exactly; a patch is %s", Grammar)
		}
		if err := p.add(&h); err != nil {
			return h, err
		}
	}
	if !h.hasLines(allOld, allAdded) {
		h.Lines = h.Lines[:len(h.Lines)-p.empty]
	}
	if len(h.Lines) == 0 {
		return h, p.errorAt(h.Line-1, "the hunk has no lines")
	}
	return h, nil
}

// hasLines reports whether the hunk has these numbers of lines before and after the change.
func (h Hunk) hasLines(before, after int) bool {
	for _, line := range h.Lines {
		if line[0] != '+' {
			before--
		}
		if line[0] != '-' {
			after--
		}
	}
	return before == 0 && after == 0
}

// counted returns the number of lines in a hunk's header; 1 if it is left out.
func counted(text string) int {
	if text == "" {
		return 1
	}
	n, _ := strconv.Atoi(text) // digits
	return n
}
