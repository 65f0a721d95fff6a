package diff

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stockade-dev/stockade/host/tool"
)

// hostile are names that could be taken for our words, or that control a terminal.
var hostile = []string{
	"removed", "directory", "branch", "1", "index", "a", "created", "git:", "from", "renamed", "other changes", "files in .", "and 30 more", "(symbolic link)",
	"new\nline", "\x1b[2J", `quo"te`, `back\slash`, "\xff\xfe", "\u202egpj", "...", " ", "@@ -1 +1 @@", "--- a", "\r", strings.Repeat("long", 60), "\x00",
}

// anyChanges returns random changes with hostile names, all of different paths.
func anyChanges(r *rand.Rand, n int) (changes []tool.Change) {
	dirs := []string{"/ws"}
	kinds := []tool.ChangeKind{tool.Created, tool.Created, tool.Modified, tool.Modified, tool.Removed, tool.Renamed, tool.DirectoryCreated, tool.DirectoryRemoved, tool.ModeChanged, tool.TimesChanged}
	modes := []fs.FileMode{0o644, 0o644, 0o644, 0o755, 0o666, 0o644 | fs.ModeSetuid, fs.ModeSymlink | 0o777, fs.ModeNamedPipe | 0o644}
	some := func(i int) *tool.Version {
		v := file(strings.Repeat("x", i%7) + "\n")
		v.Mode = modes[r.IntN(len(modes))]
		if v.Mode&fs.ModeSymlink != 0 {
			v.Size, v.Target = 0, hostile[r.IntN(len(hostile))]
		}
		return v
	}
	for i := range n {
		dir := dirs[r.IntN(len(dirs))]
		if r.IntN(40) == 0 {
			dir += "/.git/" + []string{"refs/heads", "refs/tags", "objects/aa", "logs", "hooks"}[r.IntN(5)]
		}
		c := tool.Change{Path: fmt.Sprintf("%s/%s %d", dir, hostile[r.IntN(len(hostile))], i), Kind: kinds[r.IntN(len(kinds))]}
		if r.IntN(3) == 0 { // the whole name could be ours
			c.Path = fmt.Sprintf("%s/%d/%s", dir, i, hostile[r.IntN(len(hostile))])
		}
		switch c.Kind {
		case tool.Created:
			c.After = some(i)
		case tool.Removed:
			c.Before = some(i)
		case tool.DirectoryCreated:
			c.After = &tool.Version{Mode: fs.ModeDir | 0o755}
		case tool.DirectoryRemoved:
			c.Before = &tool.Version{Mode: fs.ModeDir | 0o755}
		case tool.Renamed:
			c.From = c.Path + " before"
			c.Before, c.After = some(i), some(i)
		default:
			c.Before, c.After = some(i), some(i+1)
		}
		if c.Kind == tool.DirectoryCreated || c.Kind == tool.DirectoryRemoved {
			dirs = append(dirs, c.Path)
		}
		changes = append(changes, c)
	}
	slices.SortFunc(changes, func(a, b tool.Change) int { return strings.Compare(a.Path, b.Path) })
	return changes
}

// caring returns a care other than CarePlain for some changes.
func caring(c tool.Change) Care {
	switch {
	case strings.Contains(c.Path, "hooks"):
		return CareRunByGit
	case strings.Contains(c.Path, "index"):
		return CareSpecial
	}
	return CarePlain
}

// Whatever the changes and the number of lines are, each change belongs to one line, the sums
// agree, and each number comes with a directory.
func TestEachChangeIsToldOnce(t *testing.T) {
	for seed := range uint64(25) {
		r := rand.New(rand.NewPCG(seed, 1))
		n := 1 + r.IntN(400)
		if seed == 0 {
			n = 100_000
		}
		changes := anyChanges(r, n)
		s := group(t.Context(), changes, "/ws", caring)
		moved := 0
		for _, c := range s.Changes {
			if c.Kind == tool.Renamed && c.From != c.Path+" before" { // a removal and a creation became one change
				moved++
			}
		}
		if len(s.Changes) != n-moved {
			t.Fatalf("seed %d: of %d changes there are %d, and %d are moves", seed, n, len(s.Changes), moved)
		}
		told := 0
		for _, r := range s.repositories {
			told += len(r.described)
		}
		check := func(name string, entries []Entry) {
			seen := make([]bool, len(s.Changes)-told)
			for _, e := range entries {
				files, bytes, places := 0, int64(0), 0
				for _, i := range e.Members {
					if seen[i] {
						t.Fatalf("seed %d, %s: %q is told twice", seed, name, s.Changes[i].Path)
					}
					seen[i] = true
					c := s.Changes[i]
					if v := cmp.Or(c.After, c.Before); !v.Mode.IsDir() {
						files++
						if v.Mode.IsRegular() {
							bytes += v.Size
						}
					}
					if want := careOf(c, caring); want != e.Care {
						t.Fatalf("seed %d, %s: %q of care %d is told with those of %d", seed, name, c.Path, want, e.Care)
					}
					if e.Form == FormSeveral && !slices.ContainsFunc(e.Places, func(p Place) bool {
						return c.Path == p.Dir || strings.HasPrefix(c.Path, strings.TrimSuffix(p.Dir, "/")+"/")
					}) {
						t.Fatalf("seed %d, %s: no directory of %q is named: %v", seed, name, c.Path, e.Places)
					}
				}
				for _, p := range e.Places {
					places += p.Changes
				}
				if files != e.Files || len(e.Members)-files != e.Dirs || bytes != e.Bytes || e.Form == FormSeveral && places != len(e.Members) {
					t.Fatalf("seed %d, %s: %d files with %d bytes, and %d in places, are told as %+v", seed, name, files, bytes, places, e)
				}
			}
			if i := slices.Index(seen, false); i >= 0 {
				t.Fatalf("seed %d, %s: %q is not told", seed, name, s.Changes[i].Path)
			}
		}
		check("all", s.Entries)
		for _, most := range []int{1, 5, 10, 30} {
			check(fmt.Sprint(most), s.short(most))
			lines := s.SummaryLines(most)
			for _, l := range lines {
				if strings.ContainsAny(l.Words, "\n\r\x1b\x00") {
					t.Fatalf("seed %d: a line holds another one: %q", seed, l.Words)
				}
			}
			// The first lines are those with a care, the highest first.
			if !slices.IsSortedFunc(lines, func(a, b SummaryLine) int { return cmp.Compare(b.Care, a.Care) }) {
				t.Fatalf("seed %d: the lines are out of order", seed)
			}
			if careful := slices.IndexFunc(lines, func(l SummaryLine) bool { return l.Care == CarePlain }); careful > max(most, 2*int(CareHeldByGit)) {
				t.Fatalf("seed %d: %d lines of %d are careful ones", seed, careful, most)
			}
		}
		if order := s.Order(); len(order) != len(s.Changes)-told {
			t.Fatalf("seed %d: %d of %d changes are shown", seed, len(order), len(s.Changes)-told)
		}
	}
}

// Different entries have different words, so that no name can fake another line.
func TestNoNameIsAnotherLine(t *testing.T) {
	changes := []tool.Change{{Path: "/ws/photos", Kind: tool.DirectoryRemoved, Before: &tool.Version{Mode: fs.ModeDir | 0o755}}}
	for i := range 40 {
		changes = append(changes, tool.Change{Path: fmt.Sprintf("/ws/photos/%02d", i), Kind: tool.Removed, Before: file("x")})
	}
	for _, name := range hostile {
		changes = append(changes, tool.Change{Path: "/ws/" + name, Kind: tool.Modified, Before: file("a\n"), After: file("b\n")})
	}
	lines := New(t.Context(), changes, "/ws", nil).SummaryLines(3)
	if lines[0].Words != "directory removed photos with 40 files (40 bytes)" || lines[0].Care != CareRemoved || len(lines[0].Members) != 41 {
		t.Errorf("%+v", lines[0])
	}
}

// Secrets, modes and files that git runs come before plain changes, however many these are.
func TestWhatNeedsCareComesFirst(t *testing.T) {
	var changes []tool.Change
	add := func(kind tool.ChangeKind, name string, mode fs.FileMode) {
		v := file("x\n")
		v.Mode = mode
		c := tool.Change{Path: "/ws/" + name, Kind: kind, After: v}
		if kind == tool.Removed {
			c.Before, c.After = file("y\n"), nil
		}
		changes = append(changes, c)
	}
	for i := range 300 {
		add(tool.Created, fmt.Sprintf("plain/%d/f", i), 0o644)
		add(tool.Removed, fmt.Sprintf("old/%d/f", i%7*100+i), 0o644)
		add(tool.Created, fmt.Sprintf("bin/%d", i), 0o755)
		add(tool.Created, fmt.Sprintf("open/%d/f", i), 0o666)
		add(tool.Created, fmt.Sprintf("hooks/%d", i), 0o755)
		add(tool.Created, fmt.Sprintf("index/%d/f", i), 0o644)
	}
	want := []string{
		"300 files that git runs or obeys: in hooks (600 bytes)",
		"removed 300 files: in old (600 bytes)",
		"300 paths that need care: in index (600 bytes)",
		"created 300 executables in bin (600 bytes)",
		"300 changes by which anybody may write, or a file runs as somebody else: in open (600 bytes)",
		"300 other changes: in plain (600 bytes)",
	}
	s := New(t.Context(), changes, "/ws", caring)
	var got []string
	for _, l := range s.SummaryLines(6) {
		got = append(got, l.Words)
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
	order := s.Order()
	if c := s.At(order[0]); !strings.HasPrefix(c.Path, "/ws/hooks/") {
		t.Errorf("the first that is shown is %s", c.Path)
	}
	if c := s.At(order[300]); c.Kind != tool.Removed {
		t.Errorf("the next one is %s", c.Path)
	}
}

// A large difference does not displace a small one, and up to 64 MiB all are shown.
func TestSmallDifferencesComeFirst(t *testing.T) {
	var changes []tool.Change
	large := strings.Repeat("a line of text\n", 1<<20/15)
	for i := range 5 {
		changes = append(changes, tool.Change{Path: fmt.Sprintf("/ws/a%d", i), Kind: tool.Created, After: file(large)})
	}
	changes = append(changes, tool.Change{Path: "/ws/z", Kind: tool.Created, After: file("sixth\n")})
	s := New(t.Context(), changes, "/ws", nil)
	order := s.Order()
	if s.At(order[0]).Path != "/ws/z" || !s.ShowsAll() {
		t.Errorf("%s comes first; whole %t", s.At(order[0]).Path, s.ShowsAll())
	}
	for _, i := range order {
		text := ""
		for _, h := range s.Text(i).Hunks {
			for l := range h.Lines() {
				text += strings.Repeat(l.Text+"\n", l.Count)
			}
		}
		if want, _ := s.At(i).After.Content(1 << 30); text != string(want) {
			t.Errorf("%s: %d bytes are shown", s.At(i).Path, len(text))
		}
	}
	// Contents that are too large, or not text, are listed, and ShowsAll is false.
	for name, c := range map[string]struct {
		extra *tool.Version
		kind  tool.ChangeKind
		whole bool
		words string
	}{
		"no text":          {file("\x00\x01"), tool.Created, false, "x: it is no text (2 bytes)"},
		"too much":         {&tool.Version{Size: maxShown, Mode: 0o644}, tool.Created, false, "x: there is too much of it (67108864 bytes)"},
		"what is gone":     {file("\x00\x01"), tool.Removed, true, "x: it is no text (2 bytes)"},
		"what cannot open": {&tool.Version{Size: 1, Mode: 0o644, Open: func() (io.ReadCloser, error) { return nil, fs.ErrPermission }}, tool.Created, false, `x: it cannot be read: "permission denied" (1 byte)`},
	} {
		extra := tool.Change{Path: "/ws/x", Kind: c.kind, After: c.extra}
		if c.kind == tool.Removed {
			extra.Before, extra.After = c.extra, nil
		}
		s := New(t.Context(), append(slices.Clone(changes), extra), "/ws", nil)
		i := slices.IndexFunc(s.SummaryLines(30), func(l SummaryLine) bool { return l.Words == c.words && l.NotShown == !c.whole })
		if s.ShowsAll() != c.whole || i < 0 {
			t.Errorf("%s: whole %t, %+v", name, s.ShowsAll(), s.SummaryLines(30))
		}
	}
}

// The digest covers all that is shown.
func TestADigestCoversWhatIsShown(t *testing.T) {
	base := func() []tool.Change {
		return []tool.Change{{Path: "/ws/a", Kind: tool.Modified, Before: file("a"), After: file("b")}, {Path: "/ws/.git/refs/tags/t", Kind: tool.Created, After: file(strings.Repeat("a", 40))}}
	}
	seen := map[[32]byte]string{}
	for name, change := range map[string]func(c []tool.Change) []tool.Change{
		"as it is":   func(c []tool.Change) []tool.Change { return c },
		"a path":     func(c []tool.Change) []tool.Change { c[0].Path = "/ws/c"; return c },
		"a kind":     func(c []tool.Change) []tool.Change { c[0].Kind = tool.Renamed; return c },
		"its name":   func(c []tool.Change) []tool.Change { c[0].From = "/ws/b"; return c },
		"a mode":     func(c []tool.Change) []tool.Change { c[0].After.Mode = 0o755; return c },
		"a content":  func(c []tool.Change) []tool.Change { c[0].After = file("c"); return c },
		"the former": func(c []tool.Change) []tool.Change { c[0].Before = file("c"); return c },
		"a target":   func(c []tool.Change) []tool.Change { c[0].After.Target = "x"; return c },
		"a tag":      func(c []tool.Change) []tool.Change { c[1].After = file(strings.Repeat("b", 40)); return c },
		"one less":   func(c []tool.Change) []tool.Change { return c[:1] },
	} {
		sum := New(t.Context(), change(base()), "/ws", nil).Digest()
		if other, ok := seen[sum]; ok {
			t.Errorf("%s and %s are one", name, other)
		}
		seen[sum] = name
	}
}

// Secrets are removed from each text, and the lines with secrets are counted.
func TestASecretInADifference(t *testing.T) {
	hide := func(s string) string {
		return strings.ReplaceAll(strings.ReplaceAll(s, "hunter2", "[redacted]"), "two\nlines", "[redacted]")
	}
	for name, c := range map[string]struct {
		before, after, want string
		hidden              int
	}{
		"none":                    {"a\n", "b\n", "-a\n+b\n", 0},
		"one":                     {"a\nhunter2\n", "b\nhunter2\n", "-a\n+b\n [redacted]\n", 1},
		"one and another one":     {"k=hunter2\n", "k=hunter2 hunter2\n", "-k=[redacted]\n+k=[redacted] [redacted]\n", 2},
		"of several lines":        {"a\ntwo\nlines\nb\n", "a\ntwo\nlines\nc\n", " a\n [redacted]\n [redacted]\n-b\n+c\n", 2},
		"of several lines, twice": {"two\nlines\nevil\ntwo\nlines\n", "two\nlines\nEVIL\ntwo\nlines\n", " [redacted]\n [redacted]\n-evil\n+EVIL\n [redacted]\n [redacted]\n", 4},
		"a part of one":           {"a\ntwo\nlines\n", "a\ntwo\nLINES\n", " a\n [redacted]\n-[redacted]\n+LINES\n", 2},
	} {
		text := New(t.Context(), []tool.Change{modified(c.before, c.after)}, "/ws", nil).Redacted(hide).Text(0)
		got := ""
		for _, h := range text.Hunks {
			for l := range h.Lines() {
				got += strings.Repeat(string(l.Op)+l.Text+"\n", l.Count)
			}
		}
		s := New(t.Context(), []tool.Change{modified(c.before, c.after)}, "/ws", nil)
		if hides := s.Redacted(hide).HidesSecrets(); s.HidesSecrets() || hides != strings.Contains(c.want, "+k=[redacted]") {
			t.Errorf("%s: what comes is hidden: %t", name, hides)
		}
		if got != c.want || text.Hidden != c.hidden {
			t.Errorf("%s: %d hidden, got\n%s", name, text.Hidden, got)
		}
	}
}

// The error about a content that cannot be read contains no secret.
func TestASecretInAnError(t *testing.T) {
	open := func() (io.ReadCloser, error) { return nil, errors.New("hunter2") }
	c := tool.Change{Path: "/ws/a", Kind: tool.Created, After: &tool.Version{Size: 1, Mode: 0o644, Open: open}}
	s := New(t.Context(), []tool.Change{c}, "/ws", nil).Redacted(func(s string) string { return strings.ReplaceAll(s, "hunter2", "[redacted]") })
	if lines := s.SummaryLines(9); lines[0].Words != "a: it cannot be read: [redacted] (1 byte)" {
		t.Errorf("%q", lines[0].Words)
	}
}

// A difference in the log is parsed as it was written.
func TestAStoredDifferenceIsReadAsItWas(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 3))
		text := func() (out string) {
			for range r.IntN(30) {
				out += []string{"a", "", "--- a/x", "+++ b/x", "@@ -1 +1 @@", "-", "+", " ", "\\ No newline at end of file", "... 12 bytes of this diff are not shown"}[r.IntN(10)] + "\n"
			}
			return strings.TrimSuffix(out, strings.Repeat("\n", r.IntN(2)))
		}
		c := modified(text(), text())
		stored, _, _ := Unified(c, "/ws", func([]byte) bool { return false })
		var want []Line
		for _, h := range New(t.Context(), []tool.Change{c}, "/ws", nil).Text(0).Hunks {
			for l := range h.Lines() {
				for i := range l.Count {
					want = append(want, Line{Op: l.Op, Number: l.Number + i, Text: l.Text, Count: 1})
				}
				if l.NoEnd {
					want = append(want, Line{Text: NoEnd, Count: 1})
				}
			}
		}
		if got := ParseUnified(stored); stored != "" && !slices.Equal(got, want) {
			t.Fatalf("seed %d: %q is read as %v, want %v", seed, stored, got, want)
		}
	}
}

func TestPlaces(t *testing.T) {
	for _, c := range []struct {
		dirs string
		want []Place
	}{
		{"/ws/a", []Place{{"/ws/a", 1, false}}},
		{"/ws/a /ws/a /ws/b", []Place{{"/ws/a", 2, false}, {"/ws/b", 1, false}}},
		{"/ws/a/1 /ws/a/2 /ws/a/3 /ws/b/1 /ws/b/2", []Place{{"/ws/a", 3, false}, {"/ws/b", 2, false}}},
		{"/a /b /c /d /e", []Place{{"/", 5, false}}},
		{strings.Repeat("/ws/photos ", 9) + "/ws/a /ws/b /ws/c /ws/d", []Place{{"/ws/photos", 9, false}, {"/ws/a", 1, false}, {"/ws/b", 1, false}, {"/ws", 2, true}}},
		{strings.Repeat("/ws/x/photos ", 9) + "/ws/x/a /ws/x/b /ws/x/c /ws/y", []Place{{"/ws/x/photos", 9, false}, {"/ws/x/a", 1, false}, {"/ws/x/b", 1, false}, {"/ws", 2, true}}},
		{"/ws /ws/a /ws/ab", []Place{{"/ws", 1, false}, {"/ws/a", 1, false}, {"/ws/ab", 1, false}}},
		{"/ws/ab/c /ws/a/c", []Place{{"/ws/a/c", 1, false}, {"/ws/ab/c", 1, false}}},
	} {
		dirs := map[string]int{}
		for dir := range strings.FieldsSeq(c.dirs) {
			dirs[filepath.Clean(dir)]++
		}
		if got := places(dirs); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v", c.dirs, got)
		}
	}
}

// Files that are moved out of a directory are listed with the directory, however many other
// changes there are; and changed files come before new ones.
func TestWhatIsMovedAwayIsTold(t *testing.T) {
	var changes []tool.Change
	for i := range 40 {
		changes = append(changes, tool.Change{Path: fmt.Sprintf("/ws/node_modules/c/%d", i), From: fmt.Sprintf("/ws/docs/%d", i), Kind: tool.Renamed, Before: file("x"), After: file("x")},
			tool.Change{Path: fmt.Sprintf("/ws/a%d", i), Kind: tool.DirectoryCreated, After: &tool.Version{Mode: fs.ModeDir | 0o755}},
			tool.Change{Path: fmt.Sprintf("/ws/z/%d/f", i), Kind: tool.Modified, Before: file("x"), After: file("y")})
	}
	program := tool.Change{Path: "/ws/bin/a", From: "/ws/scripts/a", Kind: tool.Renamed, Before: file("x"), After: file("x")}
	program.After.Mode = 0o755
	lines := New(t.Context(), append(changes, program), "/ws", nil).SummaryLines(10)
	if lines[1].Words != "40 files moved to another directory: in node_modules/c (40 bytes), moved out of: in docs" || lines[1].Care != CareMoved {
		t.Errorf("%+v", lines[1])
	}
	if lines[0].Words != "renamed bin/a from scripts/a (mode -rwxr-xr-x, before -rw-r--r--)" || !strings.HasPrefix(lines[2].Words, "modified z/") {
		t.Errorf("%q, %q", lines[0].Words, lines[2].Words)
	}
}
