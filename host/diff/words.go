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

// Limits of [Set.String], [Of] and of words in a line. What is beyond is counted.
const (
	maxNamed  = 1000      // changes
	maxChange = 64 << 10  // bytes of the diff of one file
	maxTotal  = 256 << 10 // bytes of all diffs
	maxWord   = 100       // bytes of one text from a file that is shown within a line
)

// String describes the set as text: first the lines of [Set.Told], then the differences in unified
// format.
func (s *Set) String() string {
	if s == nil {
		return ""
	}
	var out strings.Builder
	for _, t := range s.Told(maxNamed) {
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

// Summary describes changes in about so many lines at most. The last line may say how many
// changes are left out.
func Summary(ctx context.Context, changes []tool.Change, dir string, most int, dirs ...*git.Dir) (lines []string) {
	for _, t := range group(ctx, changes, dir, nil, dirs...).Told(most) {
		lines = append(lines, t.Words)
	}
	return lines
}

// Told is a line of words, and the entry that it is about.
type Told struct {
	Words string
	Red   bool // it says that something is not shown
	Cut   bool // [Set.All] names more than this line does
	Entry      // has no members if the line is about no entry
}

// Alone reports whether the line is about exactly one change.
func (t Told) Alone() bool { return len(t.Members) > 0 && t.Form == Single }

// Told returns the lines that describe all changes, about so many entries at most: first entries
// with a care, then what git has done and what is not shown, then plain entries.
func (s *Set) Told(most int) []Told { return s.told(most, false) }

// All returns the lines of all entries, with all names that [Set.Told] only counts.
func (s *Set) All() []Told { return s.told(len(s.Entries), true) }

func (s *Set) told(most int, all bool) []Told {
	var careful, other, plain []Told
	for _, e := range s.short(most) {
		t := Told{Words: s.words(e), Entry: e}
		if e.Care == Plain {
			plain = append(plain, t)
		} else {
			careful = append(careful, t)
		}
	}
	if s.NoTime {
		other = append(other, Told{Words: "there was no time to look at all of this", Red: true})
	}
	for _, r := range s.repositories {
		other = append(other, s.repository(r, all)...)
	}
	return slices.Concat(careful, other, s.unshown(), plain)
}

// maxLosses limits the facts about a loss that have a line of their own.
const maxLosses = 8

// repository returns the lines about one repository: first what was not looked at, then what is
// lost, then the rest.
func (s *Set) repository(r *repository, all bool) []Told {
	begin := "git: "
	if name := s.name(r.root); name != "." {
		begin = "git in " + name + ": "
	}
	var lost []Told
	unlooked, rest := Told{Red: true}, Told{}
	for _, f := range slices.SortedStableFunc(slices.Values(r.facts), func(a, b fact) int { return cmp.Compare(a.loss, b.loss) }) {
		words, cut := s.fact(f, all)
		line := &rest
		switch {
		case f.loss == unseen:
			line = &unlooked
		case f.loss < noLoss && len(lost) < maxLosses:
			lost = append(lost, Told{})
			line = &lost[len(lost)-1]
		}
		if line.Words == "" {
			line.Words = begin + words
		} else {
			line.Words += "; " + words
		}
		line.Cut = line.Cut || cut
	}
	out := slices.Concat([]Told{unlooked}, lost, []Told{rest})
	return slices.DeleteFunc(out, func(t Told) bool { return t.Words == "" })
}

// maxUnshown is the number of contents up to which each one that is not shown has its own line.
const maxUnshown = 3

// unshown returns the lines about contents that are not shown.
func (s *Set) unshown() (out []Told) {
	if len(s.Unshown) <= maxUnshown {
		for _, u := range s.Unshown {
			c := s.At(u.Change)
			words := s.name(c.Path) + ": " + u.why[0]
			if u.err != nil {
				words += ": " + word(clip(s.concealed(u.err.Error())))
			}
			if u.known && c.After != nil {
				words += ", and the content stays"
			}
			out = append(out, Told{Words: words + " (" + bytesOf(u.bytes) + ")", Red: !u.known})
		}
		return out
	}
	for _, why := range []why{noText, tooLong, tooMany, unreadable} {
		for _, known := range []bool{false, true} {
			files, bytes, dirs := 0, int64(0), map[string]int{}
			for _, u := range s.Unshown {
				if u.why == why && u.known == known {
					files, bytes = files+1, bytes+u.bytes
					dirs[filepath.Dir(s.At(u.Change).Path)]++
				}
			}
			if files == 0 {
				continue
			}
			words := fmt.Sprintf("the content of %s is not shown, for %s: %s (%s)", count(files, "file"), why[min(files, 2)-1], s.placeWords(places(dirs)), size(bytes))
			if known {
				words += ", and nothing comes with it"
			}
			out = append(out, Told{Words: words, Red: !known})
		}
	}
	return out
}

// words describes an entry in one line.
func (s *Set) words(e Entry) string {
	c := e.Change
	switch {
	case e.Form == Several:
		return s.severalWords(e)
	case e.Form == Beside && c.Kind == tool.Times:
		return fmt.Sprintf("times of %s in %s", count(e.Files, "file"), s.name(filepath.Dir(c.Path)))
	case e.Form == Beside:
		what := "file"
		if e.Care == Program {
			what = "executable"
		}
		return fmt.Sprintf("%s %s in %s (%s)", c.Kind, count(e.Files, what), s.name(filepath.Dir(c.Path)), size(e.Bytes))
	case e.Form == Tree && e.Files > 0:
		mode := ""
		if c.Kind == tool.DirectoryCreated {
			mode = numbers(c)
		}
		return fmt.Sprintf("%s %s with %s (%s)%s", c.Kind, s.name(c.Path), count(e.Files, "file"), size(e.Bytes), mode)
	case e.Care == Held:
		in := "the index"
		if e.Where != "" {
			in = "commit " + id(e.Where)
		}
		if c.Before == nil {
			return in + " holds " + s.naming(c) + ", which the worktree does not have"
		}
		return in + " holds another " + s.naming(c)
	}
	return string(c.Kind) + " " + s.naming(c)
}

// Headline describes one change in one line.
func (s *Set) Headline(i int) string { return s.words(s.single(i)) }

// cares are the words for one and for several changes of a care.
var cares = map[Care][2]string{
	Plain:   {"other change", "other changes"},
	Moved:   {"file moved to another directory", "files moved to another directory"},
	Open:    {"change by which anybody may write, or a file runs as somebody else", "changes by which anybody may write, or a file runs as somebody else"},
	Program: {"executable", "executables"},
	Special: {"path that needs care", "paths that need care"},
	Runs:    {"file that git runs or goes by", "files that git runs or goes by"},
	Held:    {"file that git holds otherwise than the worktree", "files that git holds otherwise than the worktree"},
}

// severalWords describes an entry of form Several.
func (s *Set) severalWords(e Entry) string {
	n := e.Files + e.Dirs
	what := fmt.Sprintf("%d %s", n, cares[e.Care][min(n, 2)-1])
	switch {
	case e.Care == Gone && e.Files == 0:
		what = "removed " + count(e.Dirs, "directory")
	case e.Care == Gone && e.Dirs == 0:
		what = "removed " + count(e.Files, "file")
	case e.Care == Gone:
		what = "removed " + count(e.Files, "file") + " and " + count(e.Dirs, "directory")
	}
	moved := ""
	if len(e.From) > 0 {
		moved = ", moved out of: " + s.placeWords(e.From)
	}
	return fmt.Sprintf("%s: %s (%s)%s", what, s.placeWords(e.Places), size(e.Bytes), moved)
}

// placeWords says how many changes are in which directories.
func (s *Set) placeWords(places []Place) string {
	var in []string
	for _, p := range places {
		where := "in"
		if p.Others {
			where = "elsewhere in"
		}
		in = append(in, fmt.Sprintf("%d %s %s", p.Changes, where, clip(s.name(p.Dir))))
	}
	if len(in) == 1 {
		return "in " + clip(s.name(places[0].Dir))
	}
	return strings.Join(in, ", ")
}

// naming names the file of a change, with its link target, other names, size, mode and time.
func (s *Set) naming(c tool.Change) string {
	words := s.name(c.Path)
	if c.Kind == tool.Renamed {
		words += " from " + s.name(c.From)
	}
	for _, v := range []*tool.Version{c.After, c.Before} {
		if v != nil && v.Mode&fs.ModeSymlink != 0 {
			if v.Target != "" {
				return words + " (symbolic link to " + word(s.concealed(v.Target)) + ")"
			}
			return words + " (symbolic link)"
		}
	}
	if c.After != nil && c.After.Twin != "" {
		words += " (the same file as " + s.name(c.After.Twin) + ")"
	}
	if c.Kind == tool.Modified && c.Before != nil && c.Before.Names > 1 {
		words += fmt.Sprintf(" (one of %d names of a file: the others keep what it was)", c.Before.Names)
	}
	words += numbers(c)
	if c.After != nil && c.After.ModTime != nil {
		words += " (time set to " + c.After.ModTime.UTC().Format(time.RFC3339) + ")"
	}
	return words
}

// NoEnd marks a line that does not end in a newline.
const NoEnd = `\ No newline at end of file`

// unified returns a difference in unified format. Notes about the whole file stand behind the file
// names, each in a line that begins with a backslash, as NoEnd does.
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
	fmt.Fprintf(out, "@@ -%s +%s @@\n", place(h.Was, h.WasEnd-h.Was), place(h.Is, h.IsEnd-h.Is))
	for l := range h.Lines() {
		row := string(l.Op) + l.Text + "\n"
		if l.NoEnd {
			row += NoEnd + "\n"
		}
		out.WriteString(strings.Repeat(row, l.Times))
	}
}

var hunkStart = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@`) })

// Stored splits a diff that [Of] has written into lines. Op is 0 for lines that are no part of a
// hunk, and for lines that begin with a backslash.
func Stored(unified string) (lines []Line) {
	was, is := 0, 0
	for text := range strings.SplitSeq(strings.TrimRight(unified, "\n"), "\n") {
		if m := hunkStart().FindStringSubmatch(text); m != nil {
			was, _ = strconv.Atoi(m[1])
			is, _ = strconv.Atoi(m[2])
			continue
		}
		l := Line{Text: text, Times: 1}
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
		} // else it says that the last line has no end
		if l.Op != 0 && text != "" {
			l.Text = text[1:]
		}
		lines = append(lines, l)
	}
	return lines
}

// cut returns a diff, or its beginning if it is longer than maxChange.
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

// concealed returns a text with the secrets hidden.
func (s *Set) concealed(text string) string {
	if s.hide == nil {
		return text
	}
	return s.hide(text)
}

// name returns a path, relative to the directory of the set if it is below, as one word.
func (s *Set) name(path string) string {
	path = s.concealed(path)
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

// clip shortens a text to about maxWord bytes.
func clip(s string) string {
	if len(s) <= maxWord {
		return s
	}
	n := maxWord
	for n > maxWord-utf8.UTFMax && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + "..."
}

// numbers returns the sizes of a file, and its mode if that changes, lets a new file be executed or
// anybody write to it, or is not 0755 in a new directory.
func numbers(c tool.Change) string {
	s := ""
	switch before, after := c.Before, c.After; {
	case regular(before) && regular(after):
		if before.Size != after.Size {
			s = fmt.Sprintf(" (%d bytes, before %d)", after.Size, before.Size)
		}
	case regular(after):
		s = " (" + bytesOf(after.Size) + ")"
		if after.Mode&0o111 != 0 || forOthers(after) {
			s += fmt.Sprintf(" (mode %v)", after.Mode)
		}
	case before == nil && after != nil && after.Mode.IsDir() && after.Mode != fs.ModeDir|0o755:
		s = fmt.Sprintf(" (mode %v)", after.Mode)
	case regular(before):
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
