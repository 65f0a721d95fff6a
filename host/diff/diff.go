// Package diff shows people what a call changes, as a unified diff.
package diff

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/aymanbagabas/go-udiff"

	"github.com/stockade-dev/stockade/host/tool"
)

// What is shown at most. The rest is counted.
const (
	maxNamed   = 1000      // changes
	maxText    = 128 << 10 // bytes of a file that are compared
	maxChange  = 64 << 10  // bytes of the diff of one file
	maxTotal   = 256 << 10 // bytes of all diffs
	maxEqual   = 64 << 20  // bytes of a file that is read to see whether it is another's copy
	maxWord    = 100       // bytes of what a file holds that is told in words
	contextFor = 3         // lines around each difference
)

// budget is what is read at most for one question.
type budget struct {
	index   int64 // bytes of indexes
	names   int64 // bytes of the names in them
	commits int64
	trees   int64
	objects int64 // bytes of those, as they are and compressed
	moved   int64 // bytes that are hashed to find what was moved
	equal   int64 // bytes that are hashed to see whether a content stays
	indexes map[*tool.Version]index
}

func newBudget() *budget {
	return &budget{
		index: 64 << 20, names: 64 << 20, commits: 1000, trees: 2000, objects: 64 << 20, moved: 64 << 20, equal: 256 << 20,
		indexes: map[*tool.Version]index{},
	}
}

// take reports whether n is left, and takes it.
func take(left *int64, n int64) bool {
	if n > *left {
		return false
	}
	*left -= n
	return true
}

// Unified describes changes in the order that they have: first in short, where a
// directory that is new or gone is one line with all that is in it, and what git has
// done in its own directory is told in its words; then each by its name, where that
// says more; and then text files with their differences in unified format, as far as
// there is room. Names are relative to dir where they are below it. It reports
// whether all changes are named, or counted with the new or former directory in which
// they are, and ctx has not ended before.
func Unified(ctx context.Context, changes []tool.Change, dir string) (text string, all bool) {
	var out strings.Builder
	left := newBudget()
	short, others, beside := summary(ctx, changes, dir, left)
	named := short[:min(len(short), maxNamed)]
	for _, line := range named {
		out.WriteString(line)
	}
	if more := len(short) - len(named); more > 0 {
		fmt.Fprintf(&out, "... and %d changes more\n", more)
	}
	room := out.Len() + maxTotal
	if len(short) < len(others) {
		listed := others[:min(len(others), maxNamed)]
		fmt.Fprintf(&out, "\nall of these %d:\n", len(others))
		for _, c := range listed {
			out.WriteString(headline(c, dir))
		}
		if more := len(others) - len(listed); more > 0 {
			fmt.Fprintf(&out, "... and %d more\n", more)
		}
	}
	shownContent := others[:min(len(others), maxNamed)]
	for i, c := range shownContent {
		if out.Len() > room || ctx.Err() != nil {
			fmt.Fprintf(&out, "... the content of %d changes is not shown\n", len(shownContent)-i)
			break
		}
		differences(&out, c, dir, left)
	}
	return out.String(), len(named) == len(short) && (!beside || len(others) <= maxNamed) && ctx.Err() == nil
}

// Summary describes changes in short, as [Unified] does, in at most so many lines, of
// which the last may say how many there are beyond. What is gone comes first.
func Summary(ctx context.Context, changes []tool.Change, dir string, most int) []string {
	lines, _, _ := summary(ctx, changes, dir, newBudget())
	if more := len(lines) - most + 1; more > 1 {
		lines = append(lines[:most-1], fmt.Sprintf("and %d changes more", more)) // at least 2
	}
	for i := range lines {
		lines[i] = strings.TrimSuffix(lines[i], "\n")
	}
	return lines
}

// summary are the lines, and the changes that are not told in git's words. beside says
// that some stand for files in a directory that holds others. After the end of ctx
// nothing is read, and the first line says so.
func summary(ctx context.Context, changes []tool.Change, dir string, left *budget) (lines []string, others []tool.Change, beside bool) {
	found, others := repositories(changes, left)
	for _, r := range found {
		words, rest := r.words(ctx)
		if len(words) > 0 {
			in := ""
			if name := shown(r.root, dir); name != "." {
				in = " in " + name
			}
			lines = append(lines, "git"+in+": "+strings.Join(words, "; ")+"\n")
		}
		others = append(others, rest...)
	}
	others = moves(ctx, others, left)
	if ctx.Err() != nil {
		lines = slices.Insert(lines, 0, "there was no time to look at all of this\n")
	}
	short := shorten(others)
	if len(short) > minGroup || len(short) < len(others) { // what is gone is what nobody must overlook
		slices.SortStableFunc(short, func(a, b group) int { return cmp.Compare(a.order(), b.order()) })
	}
	for _, g := range short {
		lines = append(lines, g.line(dir))
		beside = beside || g.beside
	}
	return lines, others, beside
}

// group is a change, with those below a directory that is new or gone, or those of
// the same kind beside it.
type group struct {
	tool.Change
	files  int
	bytes  int64
	beside bool
}

// minGroup is how many changes there are at least of which some are told as one.
const minGroup = 12

// minTimes is minGroup for files of which nothing but the time is another.
const minTimes = 3

// maxMoved is how large a file is of which it is looked up whether it was moved, and
// how many there are.
const (
	maxMoved  = 16 << 20
	maxMovers = 500
)

// moves is [Moves] within a budget.
func moves(ctx context.Context, changes []tool.Change, left *budget) []tool.Change {
	gone := map[int64][]int{} // by size
	movers := 0
	movable := func(v *tool.Version) bool { return regular(v) && v.Size > 0 && v.Size <= maxMoved }
	for i, c := range changes {
		if movers < maxMovers && c.Kind == tool.Removed && movable(c.Before) {
			gone[c.Before.Size] = append(gone[c.Before.Size], i)
			movers++
		}
	}
	if movers == 0 {
		return changes
	}
	out := slices.Clone(changes)
	took := map[int]bool{}
	by := map[[sha256.Size]byte][]int{} // those gone that were hashed: each once
	hash := func(v *tool.Version) (sum [sha256.Size]byte, ok bool) {
		if ctx.Err() != nil || !take(&left.moved, v.Size) {
			return sum, false
		}
		sum, err := v.SHA256()
		return sum, err == nil
	}
	looked := 0
	for i, c := range changes {
		if looked >= maxMovers {
			break
		}
		if c.Kind != tool.Created || !movable(c.After) || c.After.Twin != "" {
			continue
		}
		candidates, ok := gone[c.After.Size]
		if !ok {
			continue
		}
		looked++
		for _, j := range candidates {
			if sum, ok := hash(changes[j].Before); ok {
				by[sum] = append(by[sum], j)
			}
		}
		gone[c.After.Size] = nil
		after, ok := hash(c.After)
		if j := by[after]; ok && len(j) > 0 {
			by[after], took[j[0]] = j[1:], true
			out[i] = renamed(changes[j[0]], c)
		}
	}
	return alike(ctx, without(out, took))
}

// renamed is what is gone in one change and new in another one as a change of its name.
func renamed(gone, made tool.Change) tool.Change {
	return tool.Change{Path: made.Path, From: gone.Path, Kind: tool.Renamed, Before: gone.Before, After: made.After}
}

// without leaves out the changes at some places, in place.
func without(changes []tool.Change, places map[int]bool) []tool.Change {
	kept := changes[:0]
	for i, c := range changes {
		if !places[i] {
			kept = append(kept, c)
		}
	}
	return kept
}

// shorten makes one of the changes below each directory that is new or gone, and of
// files that are new or changed in another one, if there are many. What is gone is
// named otherwise.
func shorten(changes []tool.Change) (out []group) {
	// What is below a directory follows it.
	key := func(c tool.Change) string { return strings.ReplaceAll(c.Path, "/", "\x00") }
	changes = slices.SortedStableFunc(slices.Values(changes), func(a, b tool.Change) int { return strings.Compare(key(a), key(b)) })
	for _, c := range changes {
		if n := len(out) - 1; n >= 0 && len(changes) >= minGroup && out[n].holds(c) {
			if v := cmp.Or(c.After, c.Before); regular(v) {
				out[n].bytes += v.Size
			}
			if c.Kind == tool.Created || c.Kind == tool.Removed {
				out[n].files++
			}
			continue
		}
		out = append(out, group{Change: c})
	}
	type place struct {
		kind tool.ChangeKind
		dir  string
	}
	groups := func(g group) bool { return regular(g.After) && (g.Kind != tool.Created || !forOthers(g.After)) }
	placeOf := func(g group) place { return place{g.Kind, filepath.Dir(g.Path)} }
	in := map[place]int{}
	for _, g := range out {
		if (g.Kind == tool.Created || g.Kind == tool.Modified || g.Kind == tool.Times) && groups(g) {
			in[placeOf(g)]++
		}
	}
	first := map[place]int{}
	short := out[:0]
	for _, g := range out {
		p := placeOf(g)
		if in[p] < minGroup && (g.Kind != tool.Times || in[p] < minTimes) || !groups(g) {
			short = append(short, g)
			continue
		}
		i, ok := first[p]
		if !ok {
			i = len(short)
			first[p], short = i, append(short, group{Change: g.Change, beside: true})
		}
		short[i].files++
		short[i].bytes += g.After.Size
	}
	return short
}

// size is a number of bytes in short.
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

// holds reports whether a change is a part of what a directory is told as.
func (g *group) holds(c tool.Change) bool {
	switch g.Kind {
	case tool.DirectoryCreated:
		return strings.HasPrefix(c.Path, g.Path+"/") && (c.Kind == tool.Created || c.Kind == tool.DirectoryCreated) && c.After.Target == "" && !forOthers(c.After)
	case tool.DirectoryRemoved:
		return strings.HasPrefix(c.Path, g.Path+"/") && (c.Kind == tool.Removed || c.Kind == tool.DirectoryRemoved)
	}
	return false
}

// order is where it stands among many.
func (g *group) order() int {
	switch g.Kind {
	case tool.Removed, tool.DirectoryRemoved:
		return 0
	case tool.Times:
		return 2
	}
	return 1
}

func (g *group) line(dir string) string {
	switch {
	case g.beside && g.Kind == tool.Times:
		return fmt.Sprintf("times of %s in %s\n", count(g.files, "file"), shown(filepath.Dir(g.Path), dir))
	case g.beside:
		return fmt.Sprintf("%s %s in %s (%s)\n", g.Kind, count(g.files, "file"), shown(filepath.Dir(g.Path), dir), size(g.bytes))
	case g.files == 0:
		return headline(g.Change, dir)
	}
	mode := ""
	if g.Kind == tool.DirectoryCreated {
		mode = numbers(g.Change)
	}
	return fmt.Sprintf("%s %s with %s (%s)%s\n", g.Kind, shown(g.Path, dir), count(g.files, "file"), size(g.bytes), mode)
}

func headline(c tool.Change, dir string) string {
	s := string(c.Kind) + " " + shown(c.Path, dir)
	if c.Kind == tool.Renamed {
		s += " from " + shown(c.From, dir)
	}
	for _, v := range []*tool.Version{c.After, c.Before} {
		if v != nil && v.Mode&fs.ModeSymlink != 0 {
			if v.Target != "" {
				return s + " (symbolic link to " + shown(v.Target, "") + ")\n"
			}
			return s + " (symbolic link)\n"
		}
	}
	if c.After != nil && c.After.Twin != "" {
		s += " (the same file as " + shown(c.After.Twin, dir) + ")"
	}
	if c.Kind == tool.Modified && c.Before != nil && c.Before.Names > 1 {
		s += fmt.Sprintf(" (one of %d names of a file: the others keep what it was)", c.Before.Names)
	}
	s += numbers(c)
	if c.After != nil && c.After.ModTime != nil {
		s += " (time set to " + c.After.ModTime.UTC().Format(time.RFC3339) + ")"
	}
	return s + "\n"
}

// differences shows what is in a file that is changed.
func differences(out *strings.Builder, c tool.Change, dir string, left *budget) {
	if c.Kind == tool.Times || !regular(c.Before) && !regular(c.After) {
		return
	}
	name := shown(c.Path, dir)
	before, after, err := texts(c)
	if err != nil {
		fmt.Fprintf(out, "%s: %v%s\n", name, err, becomes(c, left))
		return
	}
	if before == after {
		return
	}
	unified, err := unified(c, dir, before, after)
	if err != nil {
		fmt.Fprintf(out, "%s: %v\n", name, err)
		return
	}
	out.WriteString(cut(unified))
}

// content is a text, and how a file has it.
type content struct{ text, encoding string }

// fits reports whether the encoding of another content may be that of this one, too.
func (c content) fits(other content) bool {
	ascii := strings.IndexFunc(c.text, func(r rune) bool { return r >= utf8.RuneSelf }) < 0
	return c == content{} || c.encoding == "" && ascii && other.encoding == windows
}

// unified is the difference between two texts of a change. What is to be known of all of
// the file stands in it behind the names, in lines that begin as the one which says that
// the last line has no end. Where all lines end in CRLF that is not in the lines.
func unified(c tool.Change, dir string, before, after content) (string, error) {
	name := shown(c.Path, dir)
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
	was, wasEnds := ends(before.text)
	is, isEnds := ends(after.text)
	var notes []string
	switch {
	case c.Before == nil && isEnds == "CRLF":
		notes = append(notes, "its lines end in CRLF")
	case wasEnds != "" && isEnds != "" && wasEnds != isEnds:
		notes = append(notes, "line endings change from "+wasEnds+" to "+isEnds)
	}
	if wasEnds == mixed || isEnds == mixed { // then each shows
		was, is = before.text, after.text
	}
	switch encoding := cmp.Or(after.encoding, before.encoding); {
	case before.encoding != after.encoding && !before.fits(after) && !after.fits(before):
		notes = append(notes, "the encoding changes from "+cmp.Or(before.encoding, "UTF-8")+" to "+cmp.Or(after.encoding, "UTF-8"))
	case encoding != "":
		notes = append(notes, "it is in "+encoding)
	}
	if was == is {
		return name + ": " + strings.Join(notes, "; ") + ", and nothing else\n", nil
	}
	text, err := udiff.ToUnified(from, to, was, udiff.Lines(was, is), contextFor)
	if text != "" && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	if at := strings.Index(text, "\n@@ "); at >= 0 {
		head, hunks := text[:at+1], text[at+1:]
		for _, note := range notes {
			head += "\\ " + note + "\n"
		}
		text = head + hunks
	}
	return text, err
}

// mixed says that lines end both ways.
const mixed = "a mix of both"

// ends is a text without the CR at the end of its lines, and how these end; empty if none
// does.
func ends(text string) (without, end string) {
	all, crlf := strings.Count(text, "\n"), strings.Count(text, "\r\n")
	switch {
	case all == 0:
		return text, ""
	case crlf == 0:
		return text, "LF"
	case crlf < all:
		return text, mixed
	}
	return strings.ReplaceAll(text, "\r\n", "\n"), "CRLF"
}

// cut is the beginning of a diff that is too long.
func cut(unified string) string {
	if len(unified) <= maxChange {
		return unified
	}
	head := strings.ToValidUTF8(unified[:maxChange-maxCutLine], "")
	head = head[:strings.LastIndexByte(head, '\n')+1]
	return head + fmt.Sprintf("... %d bytes of this diff are not shown\n", len(unified)-len(head))
}

// maxCutLine is how long the last line of a diff is that was cut.
const maxCutLine = 80

// Of is the change of one text file in unified format, 64 KiB at most, and how many
// lines it adds and removes, all of them counted. Names are as in [Unified]. It is
// empty for what is no text, or has more than 128 KiB before or after, and where
// secret says yes to one of both: of a secret of several lines a diff may have a few,
// which nobody knows for a part of it.
func Of(c tool.Change, dir string, secret func(text []byte) bool) (text string, added, removed int) {
	before, after, err := texts(c)
	if err != nil || before == after {
		return "", 0, 0
	}
	text, err = unified(c, dir, before, after)
	if err != nil {
		return "", 0, 0
	}
	for i, line := range strings.Split(text, "\n") {
		switch {
		case i < 2 || line == "": // the names
		case line[0] == '+':
			added++
		case line[0] == '-':
			removed++
		}
	}
	if secret([]byte(before.text)) || secret([]byte(after.text)) {
		return "", added, removed
	}
	return cut(text), added, removed
}

func texts(c tool.Change) (before, after content, err error) {
	if before, err = contentOf(c.Before); err == nil {
		after, err = contentOf(c.After)
	}
	return before, after, err
}

// becomes says of content that is not shown whether it is another one.
func becomes(c tool.Change, left *budget) string {
	switch {
	case !regular(c.Before) || !regular(c.After):
		return ""
	case c.Before.Size != c.After.Size:
		return ", and the content changes"
	case c.Before.Size > maxEqual || !take(&left.equal, 2*c.Before.Size):
		return ", and the content may change"
	}
	before, err := c.Before.SHA256()
	if err != nil {
		return ", and the content may change"
	}
	if after, err := c.After.SHA256(); err != nil || after != before {
		return ", and the content changes"
	}
	return ", and the content stays"
}

func regular(v *tool.Version) bool { return v != nil && v.Mode.IsRegular() }

// shown is a name as one word of one line.
func shown(path, dir string) string {
	if rel, err := filepath.Rel(dir, path); err == nil && filepath.IsLocal(rel) {
		path = filepath.ToSlash(rel)
	}
	return word(path)
}

// word is a text as one word of one line.
func word(s string) string {
	odd := func(r rune) bool { return !unicode.IsPrint(r) || r == ' ' || r == '"' || r == '\\' }
	if s != "" && utf8.ValidString(s) && strings.IndexFunc(s, odd) < 0 {
		return s
	}
	return strconv.Quote(s)
}

// clip cuts a text that is long.
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

// forOthers reports whether anybody may write to it, or it is executed as somebody
// else.
func forOthers(v *tool.Version) bool {
	return v.Mode&(0o002|fs.ModeSetuid|fs.ModeSetgid) != 0
}

// numbers are the sizes, and the mode where that changes, or lets a new file be
// executed or anybody write to it, or is not what a new directory has.
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

// contentOf is the content of a version that is text; empty for one that is not
// there or has no content.
func contentOf(v *tool.Version) (content, error) {
	if !regular(v) {
		return content{}, nil
	}
	if v.Size > maxText {
		return content{}, fmt.Errorf("%d bytes are too long to compare", v.Size)
	}
	r, err := v.Open()
	if err != nil {
		return content{}, err
	}
	defer r.Close()
	data, err := io.ReadAll(io.LimitReader(r, maxText+1))
	if err != nil {
		return content{}, err
	}
	text, encoding, ok := decoded(data)
	if !ok {
		return content{}, errNoText
	}
	return content{text, encoding}, nil
}

var errNoText = errors.New("it is no text")

func bytesOf(n int64) string {
	if n == 1 {
		return "1 byte"
	}
	return fmt.Sprintf("%d bytes", n)
}
