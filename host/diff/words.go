package diff

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/stockade-dev/stockade/host/git"
	"github.com/stockade-dev/stockade/host/tool"
)

// Limits of [Set.String], of [Unified] and of words in a line.
const (
	maxNamed  = 1000      // number of changes; the others are counted
	maxChange = 64 << 10  // bytes of the diff of one file; the others are counted
	maxTotal  = 256 << 10 // bytes of all diffs; the changes after these are counted
	maxWord   = 100       // bytes of a text within a line, after which clip cuts the text
)

// String returns the lines of [Set.SummaryLines], then the differences in unified format.
func (s *Set) String() string {
	if s == nil {
		return ""
	}
	var out strings.Builder
	for _, t := range s.SummaryLines(maxNamed) {
		out.WriteString(t.Words + "\n")
	}
	room, order := out.Len()+maxTotal, s.Order()
	for i, at := range order {
		if out.Len() > room || i == maxNamed {
			fmt.Fprintf(&out, "... the content of %d changes is not shown\n", len(order)-i)
			break
		}
		if t := s.Text(at); t.Err == nil {
			out.WriteString(cut(s.unified(t)))
		}
	}
	return out.String()
}

// Summary describes changes in about limit lines at most. A line may stand for many changes,
// which it only counts.
func Summary(ctx context.Context, changes []tool.Change, dir string, limit int, dirs ...*git.Dir) (lines []string) {
	for _, t := range group(ctx, changes, dir, nil, dirs...).SummaryLines(limit) {
		lines = append(lines, t.Words)
	}
	return lines
}

// SummaryLine is a line of words, and its entry.
type SummaryLine struct {
	Words     string
	NotShown  bool // the line reports something, maybe new, that is not shown
	Shortened bool // facts of git in the line are only counted; [Set.AllLines] names them
	Entry          // entry of the line; zero, without Members: the line is about no entry
}

// IsSingle reports whether the line is about exactly one change.
func (t SummaryLine) IsSingle() bool { return len(t.Members) > 0 && t.Form == FormSingle }

// SummaryLines returns lines that describe all changes, for about limit entries at most. In
// this order: entries with a care, facts of git, contents that are not shown, and plain
// entries.
func (s *Set) SummaryLines(limit int) []SummaryLine { return s.summaryLines(limit, false) }

// AllLines returns lines like [Set.SummaryLines], but one for each entry, and with all names in
// facts of git.
func (s *Set) AllLines() []SummaryLine { return s.summaryLines(len(s.Entries), true) }

func (s *Set) summaryLines(limit int, all bool) []SummaryLine {
	var careful, other, plain []SummaryLine
	for _, e := range s.short(limit) {
		t := SummaryLine{Words: s.words(e), Entry: e}
		if e.Care == CarePlain {
			plain = append(plain, t)
		} else {
			careful = append(careful, t)
		}
	}
	if s.TimedOut {
		other = append(other, SummaryLine{Words: "there was no time to look at all of this", NotShown: true})
	}
	for _, r := range s.repositories {
		other = append(other, s.repositoryLines(r, all)...)
	}
	return slices.Concat(careful, other, s.unshownLines(), plain)
}

// maxLosses limits the losses of a repository with a line each; the others share its last line.
const maxLosses = 8

// repositoryLines returns the lines about one repository: first what was not examined, so that
// something may be lost, then what is lost, then the rest. If all is set, nothing is shortened.
func (s *Set) repositoryLines(r *repository, all bool) []SummaryLine {
	begin := "git: "
	if name := s.name(r.root); name != "." {
		begin = "git in " + name + ": "
	}
	var lost []SummaryLine
	unlooked, rest := SummaryLine{NotShown: true}, SummaryLine{}
	for _, f := range slices.SortedStableFunc(slices.Values(r.facts), func(a, b fact) int { return cmp.Compare(a.loss, b.loss) }) {
		words, cut := s.fact(f, all)
		line := &rest
		switch {
		case f.loss == lossUnknown:
			line = &unlooked
		case f.loss < lossNone && len(lost) < maxLosses:
			lost = append(lost, SummaryLine{})
			line = &lost[len(lost)-1]
		}
		if line.Words == "" {
			line.Words = begin + words
		} else {
			line.Words += "; " + words
		}
		line.Shortened = line.Shortened || cut
	}
	out := slices.Concat([]SummaryLine{unlooked}, lost, []SummaryLine{rest})
	return slices.DeleteFunc(out, func(t SummaryLine) bool { return t.Words == "" })
}

const maxUnshown = 3 // contents that are not shown but get a line each; if more, all are grouped by reason

func (s *Set) unshownLines() (out []SummaryLine) {
	if len(s.Unshown) <= maxUnshown {
		for _, u := range s.Unshown {
			c := s.At(u.Change)
			words := s.name(c.Path) + ": " + u.reason[0]
			if u.err != nil {
				words += ": " + word(tool.Clip(s.redact(u.err.Error()), maxWord))
			}
			if u.nothingNew && c.After != nil {
				words += ", and the content stays"
			}
			out = append(out, SummaryLine{Words: words + " (" + bytesOf(u.bytes) + ")", NotShown: !u.nothingNew})
		}
		return out
	}
	for _, why := range []reason{noText, tooLong, tooMany, unreadable} {
		for _, known := range []bool{false, true} {
			files, bytes, dirs := 0, int64(0), map[string]int{}
			for _, u := range s.Unshown {
				if u.reason == why && u.nothingNew == known {
					files, bytes = files+1, bytes+u.bytes
					dirs[filepath.Dir(s.At(u.Change).Path)]++
				}
			}
			if files == 0 {
				continue
			}
			words := fmt.Sprintf("the content of %s is not shown, for %s: %s (%s)", count(files, "file"), why[min(files, 2)-1], s.placeWords(places(dirs)), size(bytes))
			if known {
				words += ", and nothing in it is new"
			}
			out = append(out, SummaryLine{Words: words, NotShown: !known})
		}
	}
	return out
}

func (s *Set) words(e Entry) string {
	c := e.Change
	switch {
	case e.Form == FormSeveral:
		return s.severalWords(e)
	case e.Form == FormSameDir && c.Kind == tool.TimesChanged:
		return fmt.Sprintf("times of %s in %s", count(e.Files, "file"), s.name(filepath.Dir(c.Path)))
	case e.Form == FormSameDir:
		what := "file"
		if e.Care == CareExecutable {
			what = "executable"
		}
		return fmt.Sprintf("%s %s in %s (%s)", c.Kind, count(e.Files, what), s.name(filepath.Dir(c.Path)), size(e.Bytes))
	case e.Form == FormTree && e.Files > 0:
		mode := ""
		if c.Kind == tool.DirectoryCreated {
			mode = sizeAndMode(c)
		}
		return fmt.Sprintf("%s %s with %s (%s)%s", c.Kind, s.name(c.Path), count(e.Files, "file"), size(e.Bytes), mode)
	case e.Care == CareHeldByGit:
		in := "the index"
		if e.Commit != "" {
			in = "commit " + id(e.Commit)
		}
		if c.Before == nil {
			return in + " holds " + s.describeFile(c) + ", which the worktree does not have"
		}
		return in + " holds another version of " + s.describeFile(c)
	}
	return string(c.Kind) + " " + s.describeFile(c)
}

// Headline describes the change with an index in one line.
func (s *Set) Headline(i int) string { return s.words(s.single(i)) }

// cares holds the words for one and for several changes of a care, except for CareRemoved.
var cares = map[Care][2]string{
	CarePlain:      {"other change", "other changes"},
	CareIgnored:    {"change that git ignores", "changes that git ignores"},
	CareMoved:      {"file moved to another directory", "files moved to another directory"},
	CareExposed:    {"change by which anybody may write, or a file runs as somebody else", "changes by which anybody may write, or a file runs as somebody else"},
	CareExecutable: {"executable", "executables"},
	CareSpecial:    {"path that needs care", "paths that need care"},
	CareRunByGit:   {"file that git runs or obeys", "files that git runs or obeys"},
	CareHeldByGit:  {"file that differs between git and the worktree", "files that differ between git and the worktree"},
}

func (s *Set) severalWords(e Entry) string {
	n := e.Files + e.Dirs
	what := fmt.Sprintf("%d %s", n, cares[e.Care][min(n, 2)-1])
	switch {
	case e.Care == CareRemoved && e.Files == 0:
		what = "removed " + count(e.Dirs, "directory")
	case e.Care == CareRemoved && e.Dirs == 0:
		what = "removed " + count(e.Files, "file")
	case e.Care == CareRemoved:
		what = "removed " + count(e.Files, "file") + " and " + count(e.Dirs, "directory")
	}
	moved := ""
	if len(e.From) > 0 {
		moved = ", moved out of: " + s.placeWords(e.From)
	}
	return fmt.Sprintf("%s: %s (%s)%s", what, s.placeWords(e.Places), size(e.Bytes), moved)
}

// placeWords lists directories, and the number of changes in each if there are several.
func (s *Set) placeWords(places []Place) string {
	var in []string
	for _, p := range places {
		where := "in"
		if p.Others {
			where = "elsewhere in"
		}
		in = append(in, fmt.Sprintf("%d %s %s", p.Changes, where, tool.Clip(s.name(p.Dir), maxWord)))
	}
	if len(in) == 1 {
		return "in " + tool.Clip(s.name(places[0].Dir), maxWord)
	}
	return strings.Join(in, ", ")
}

// describeFile returns the name of the file of a change, followed by its old name, link target,
// other names, size, mode and time, each only if the change is about it.
func (s *Set) describeFile(c tool.Change) string {
	words := s.name(c.Path)
	if c.Kind == tool.Renamed {
		words += " from " + s.name(c.From)
	}
	for _, v := range []*tool.Version{c.After, c.Before} {
		if v != nil && v.Mode&fs.ModeSymlink != 0 {
			if v.Target != "" {
				return words + " (symbolic link to " + word(s.redact(v.Target)) + ")"
			}
			return words + " (symbolic link)"
		}
	}
	if c.After != nil && c.After.HardLink != "" {
		words += " (the same file as " + s.name(c.After.HardLink) + ")"
	}
	if c.Kind == tool.Modified && c.Before != nil && c.Before.LinkCount > 1 {
		words += fmt.Sprintf(" (one of %d names of a file: the other names keep the old content)", c.Before.LinkCount)
	}
	words += sizeAndMode(c)
	if c.After != nil && c.After.ModTime != nil {
		words += " (time set to " + c.After.ModTime.UTC().Format(time.RFC3339) + ")"
	}
	return words
}

// NoEnd is the line after a line that does not end in a newline.
const NoEnd = `\ No newline at end of file`

// unified returns a difference in unified format. Notes about the whole file follow the file
// names. Each is a line that begins with a backslash, like NoEnd. If no line differs, it
// returns the name with the first note; empty: there is no note either.
func (s *Set) unified(t *Text) string {
	name := s.name(t.Change.Path)
	if len(t.Hunks) == 0 {
		if len(t.Notes) == 0 {
			return ""
		}
		return name + ": " + t.Notes[0] + "\n"
	}
	from, to := "a/"+name, "b/"+name
	if t.Change.Kind == tool.Renamed {
		from = "a/" + s.name(t.Change.From)
	}
	if t.Change.Before == nil {
		from = "/dev/null"
	}
	if t.Change.After == nil {
		to = "/dev/null"
	}
	var out strings.Builder
	fmt.Fprintf(&out, "--- %s\n+++ %s\n", from, to)
	for _, note := range t.Notes {
		out.WriteString("\\ " + note + "\n")
	}
	for _, h := range t.Hunks {
		h.unified(&out)
	}
	return out.String()
}

func (h Hunk) unified(out *strings.Builder) {
	place := func(first, n int) string {
		switch n {
		case 0:
			return fmt.Sprintf("%d,0", first-1)
		case 1:
			return strconv.Itoa(first)
		}
		return fmt.Sprintf("%d,%d", first, n)
	}
	fmt.Fprintf(out, "@@ -%s +%s @@\n", place(h.OldStart, h.OldEnd-h.OldStart), place(h.NewStart, h.NewEnd-h.NewStart))
	for l := range h.Lines() {
		row := string(l.Op) + l.Text + "\n"
		if l.NoEnd {
			row += NoEnd + "\n"
		}
		out.WriteString(strings.Repeat(row, l.Count))
	}
}

var hunkStart = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@`) })

// ParseUnified splits a text of [Unified] into lines, without the headers of file and hunks. Op
// is 0 for lines that are not of a file: notes, NoEnd, and the line that stands for the end of
// a diff that was cut.
func ParseUnified(unified string) (lines []Line) {
	was, is := 0, 0
	for text := range strings.SplitSeq(strings.TrimRight(unified, "\n"), "\n") {
		if m := hunkStart().FindStringSubmatch(text); m != nil {
			was, _ = strconv.Atoi(m[1])
			is, _ = strconv.Atoi(m[2])
			continue
		}
		l := Line{Text: text, Count: 1}
		switch {
		case was == 0 && is == 0:
			if strings.HasPrefix(text, "--- ") || strings.HasPrefix(text, "+++ ") || strings.HasPrefix(text, "@@") {
				continue
			}
		case strings.HasPrefix(text, "-"):
			l.Op, l.Number, was = '-', was, was+1
		case strings.HasPrefix(text, "+"):
			l.Op, l.Number, is = '+', is, is+1
		case strings.HasPrefix(text, " ") || text == "":
			l.Op, l.Number, was, is = ' ', is, was+1, is+1
		} // else it is NoEnd
		if l.Op != 0 && text != "" {
			l.Text = text[1:]
		}
		lines = append(lines, l)
	}
	return lines
}

// cut returns a diff. Beyond maxChange, a line that counts bytes replaces its end.
func cut(unified string) string {
	if len(unified) <= maxChange {
		return unified
	}
	head := strings.ToValidUTF8(unified[:maxChange-maxCutLine], "")
	head = head[:strings.LastIndexByte(head, '\n')+1]
	return head + fmt.Sprintf("... %d bytes of this diff are not shown\n", len(unified)-len(head))
}

// maxCutLine limits the bytes of the last line of a cut diff.
const maxCutLine = 80

func (s *Set) redact(text string) string {
	if s.hide == nil {
		return text
	}
	return s.hide(text)
}

// name returns a path without secrets, relative to s.Dir if it is below, as one word.
func (s *Set) name(path string) string {
	path = s.redact(path)
	if rel, err := filepath.Rel(s.Dir, path); err == nil && filepath.IsLocal(rel) {
		path = filepath.ToSlash(rel)
	}
	return word(path)
}

// word returns a text as it is if it is one printable word, and quoted otherwise.
func word(s string) string {
	odd := func(r rune) bool { return !unicode.IsPrint(r) || r == ' ' || r == '"' || r == '\\' }
	if s != "" && utf8.ValidString(s) && strings.IndexFunc(s, odd) < 0 {
		return s
	}
	return strconv.Quote(s)
}

// sizeAndMode returns the size of a new or removed file, or both sizes if the size changes, and
// the mode in these cases: the mode changes, a new file is executable or has any of
// bitsForOthers, or a new directory is not 0755.
func sizeAndMode(c tool.Change) string {
	s := ""
	switch before, after := c.Before, c.After; {
	case before.IsFile() && after.IsFile():
		if before.Size != after.Size {
			s = fmt.Sprintf(" (%d bytes, before %d)", after.Size, before.Size)
		}
	case after.IsFile():
		s = " (" + bytesOf(after.Size) + ")"
		if after.Mode&0o111 != 0 || opensToOthers(after) {
			s += fmt.Sprintf(" (mode %v)", after.Mode)
		}
	case before == nil && after != nil && after.Mode.IsDir() && after.Mode != fs.ModeDir|0o755:
		s = fmt.Sprintf(" (mode %v)", after.Mode)
	case before.IsFile():
		s = " (" + bytesOf(before.Size) + ")"
	}
	if c.Before != nil && c.After != nil && c.Before.Mode != c.After.Mode {
		s += fmt.Sprintf(" (mode %v, before %v)", c.After.Mode, c.Before.Mode)
	}
	return s
}

// size formats a number of bytes with a decimal unit.
func size(n int64) string {
	const units = "kMGT"
	v, unit := float64(n), -1
	for v >= 1000 && unit < len(units)-1 {
		v /= 1000
		unit++
	}
	if unit < 0 {
		return bytesOf(n)
	}
	return fmt.Sprintf("%.1f %cB", v, units[unit])
}

func bytesOf(n int64) string { return count(int(n), "byte") }

// count formats a number and a noun, in the plural where needed.
func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	if stem, ok := strings.CutSuffix(what, "y"); ok {
		what = stem + "ie"
	}
	return fmt.Sprintf("%d %ss", n, what)
}
