package prompt

import (
	"fmt"
	"io/fs"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stockade-dev/stockade/host/diff"
	"github.com/stockade-dev/stockade/host/git"
	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/tool"
)

// photos returns the removal of a directory with forty files.
func photos() []tool.Change {
	out := []tool.Change{{Path: "/ws/photos", Kind: tool.DirectoryRemoved, Before: &tool.Version{Mode: fs.ModeDir | 0o755}}}
	for i := range 40 {
		out = append(out, removed(fmt.Sprintf("photos/%02d.txt", i), "a photo\n"))
	}
	return out
}

// bash returns a question about a command with these changes.
func bash(changes ...tool.Change) Question {
	return Question{Question: policy.Question{Tool: "bash", Reason: "it changes files", Command: "make", Dir: "/ws", Tier: 3, Scopes: []policy.Scope{policy.ScopeOnce}, Changes: set(changes...)}}
}

// Changes that must not be overlooked stand in the first rows, whatever files are called,
// however many there are, on a small screen and below a long command.
func TestWhatMustNotBeOverlooked(t *testing.T) {
	main := tool.Change{Path: "/ws/.git/refs/heads/main", Kind: tool.Created, After: version(strings.Repeat("a", 40))}
	hook := created(".git/hooks/pre-commit", "rm -rf ~\n")
	hook.After.Mode = 0o755
	names := []string{"removed", "directory", "photos", "branch", "1", "index", "a", "git:", "main", "created", "executables"}
	var others []tool.Change
	for i := range 30 {
		others = append(others, edited(fmt.Sprintf("src/%d/f.go", i), "one\n", "two\n"))
	}
	for name, c := range map[string]struct {
		changes []tool.Change
		wants   []string
	}{
		"a directory that is gone": {photos(), []string{"│ directory removed photos with 40 files (320 bytes)"}},
		"what git has done":        {[]tool.Change{main}, []string{"│ git: branch main at aaaaaaaaaa"}},
		"a program, among others":  {[]tool.Change{hook}, []string{"│ created .git/hooks/pre-commit (9 bytes) (mode -rwxr-xr-x)"}},
		"all of these": {slices.Concat(photos(), []tool.Change{main, hook}), []string{
			"│ directory removed photos with 40 files (320 bytes)", "│ created .git/hooks/pre-commit (9 bytes) (mode -rwxr-xr-x)", "│ git: branch main at aaaaaaaaaa"}},
		"files that are gone here and there": {slices.Concat(func() (out []tool.Change) {
			for i := range 40 {
				out = append(out, removed(fmt.Sprintf("old/%d/f", i), "x\n"))
			}
			return out
		}()), []string{"│ removed 40 files: in old (80 bytes)"}},
		"what is no text": {[]tool.Change{created("x.bin", "\x00")}, []string{"! x.bin: it is no text (1 byte)"}},
	} {
		for _, evil := range names {
			for _, v := range []View{{}, {Height: 14}, {Width: 200, Height: 50}} {
				q := bash(slices.Concat(c.changes, others, []tool.Change{edited(evil, "a\n", "b\n"), edited("d/"+evil, "a\n", "b\n")})...)
				q.Command = strings.Repeat("echo\necho 1\n", 50)
				rows := ForCall(q).Rows(v)
				begin := slices.IndexFunc(rows, func(r string) bool { return strings.Contains(r, "it would change") })
				for _, want := range c.wants {
					at := slices.IndexFunc(rows, func(r string) bool { return strings.Contains(r, want) })
					if begin < 0 || at < 0 || at > begin+4 {
						t.Fatalf("%s, %q, %d rows: row %d is %q of\n%s", name, evil, v.Height, at, want, lines(rows))
					}
				}
			}
		}
	}
}

// pages returns all that [d] shows.
func pages(t *testing.T, p *Prompt, v View) (all []string, n int) {
	t.Helper()
	for {
		rows := p.Expand(v, Choice{Letter: keyFullText, shows: true})
		all, n = append(all, rows...), n+1
		if len(rows) > 2*pageRows {
			t.Errorf("a page has %d rows", len(rows))
		}
		if !strings.Contains(rows[len(rows)-1], "[d] goes on") {
			return all, n
		}
		all = all[:len(all)-1]
	}
}

func TestALargeDifferenceHidesNone(t *testing.T) {
	var changes []tool.Change
	for i := range 5 {
		var text strings.Builder
		for j := range 12_000 {
			fmt.Fprintf(&text, "line %d of %d\n", j, i)
		}
		changes = append(changes, created(fmt.Sprintf("a%d", i), text.String()))
	}
	q := bash(append(changes, edited("sixth", "good\n", "EVIL\n"))...)
	p := ForCall(q)
	if shown := lines(p.Rows(View{})); !strings.Contains(shown, "1 + EVIL") {
		t.Errorf("the sixth is not shown:\n%s", shown)
	}
	all, n := pages(t, p, View{})
	text := lines(all)
	for i := range 5 {
		for _, j := range []int{0, 6000, 11_999} {
			if line := fmt.Sprintf("%5d + line %d of %d\n", j+1, j, i); strings.Count(text, line) != 1 {
				t.Errorf("%q is there %d times", line, strings.Count(text, line))
			}
		}
	}
	if n < 50 || strings.Index(text, "EVIL") > strings.Index(text, "line 0 of 0") {
		t.Errorf("%d pages, and the small one comes later", n)
	}
	if again, _ := pages(t, p, View{}); !slices.Equal(again, all) {
		t.Error("behind the last page is not the first one")
	}
}

// TestEachChangeHasARow: in the question and behind [d], each change has one row that
// names or counts it.
func TestEachChangeHasARow(t *testing.T) {
	words := []string{"removed", "directory", "branch", "1", "index", "a", "git:", "new\nline", "\x1b[2J", `quo"te`, "\xff", "\u202e", strings.Repeat("long", 60), "│ created", "  +1 -1"}
	token := func(i int) string { return fmt.Sprintf("q%dq", i) }
	for seed := range uint64(30) {
		r := rand.New(rand.NewPCG(seed, 2))
		n := 1 + r.IntN(120)
		var changes []tool.Change
		for i := range n {
			name := words[r.IntN(len(words))] + token(i) + words[r.IntN(len(words))]
			if r.IntN(2) == 0 {
				name = fmt.Sprintf("d%d/%s", r.IntN(4), name)
			}
			c := []tool.Change{created(name, fmt.Sprintln(i)), edited(name, "a\n", "b\n"), removed(name, fmt.Sprintln(-i))}[r.IntN(3)]
			if c.After != nil && r.IntN(5) == 0 {
				c.After.Mode = []fs.FileMode{0o755, 0o666}[r.IntN(2)]
			}
			changes = append(changes, c)
		}
		q := bash(changes...)
		v := View{Width: 5000, Height: 4000} // a line is a row, and none is folded
		named := map[int]int{}
		count := func(rows []string) {
			for _, row := range rows {
				for i := range n {
					if strings.Contains(row, token(i)) {
						named[i]++
					}
				}
			}
		}
		count(ForCall(q).Rows(v))
		for _, told := range q.Changes.SummaryLines(foldRows - 2) {
			if !told.IsSingle() {
				for _, i := range told.Members {
					named[slices.IndexFunc(changes, func(c tool.Change) bool { return c.Path == q.Changes.At(i).Path })]++
				}
			}
		}
		for i := range n {
			if named[i] != 1 {
				t.Fatalf("seed %d: %q is told %d times in the question:\n%s", seed, changes[i].Path, named[i], lines(ForCall(q).Rows(v)))
			}
		}
		clear(named)
		all, _ := pages(t, ForCall(q), v)
		count(all)
		for i := range n {
			if named[i] != 1 {
				t.Fatalf("seed %d: %q is named %d times behind [d]", seed, changes[i].Path, named[i])
			}
		}
	}
}

// A text that looks like another one is warned of, even in the only difference.
func TestADifferenceIsLookedAt(t *testing.T) {
	hidden := edited("a", "x\n", "y\u202e\n")
	for _, changes := range [][]tool.Change{{hidden}, {hidden, edited("b", "x\n", "y\n")}} {
		if rows := lines(ForCall(bash(changes...)).Rows(View{})); !strings.Contains(rows, "! it holds characters that are invisible") {
			t.Errorf("%d files: no warning in\n%s", len(changes), rows)
		}
	}
}

// In a batch, [d] says how much more there is of all calls, not of one alone.
func TestABatchSaysHowMuchComes(t *testing.T) {
	q := bash(created("a", strings.Repeat("x\ny\n", 2*pageRows)))
	rows := forCalls([]Question{q, q, q}).Expand(View{}, Choice{Letter: keyFullText, shows: true})
	if last := rows[len(rows)-1]; !strings.Contains(last, "[d] goes on, 2 changes come after this one") {
		t.Errorf("%q", last)
	}
}

// [d] is offered for a line about git that only counts names, and shows all of them.
func TestAllNamesOfGit(t *testing.T) {
	for name, c := range map[string]struct {
		dir  func(names []string) *git.Dir
		want string // the last name, in words
	}{
		"the same":  {func(n []string) *git.Dir { return &git.Dir{Matches: n} }, "f99"},
		"taken out": {func(n []string) *git.Dir { return &git.Dir{UntrackedFiles: n} }, "f99"},
		"gone":      {func(n []string) *git.Dir { return &git.Dir{RemovedFiles: n} }, "f99"},
		"flags":     {func(n []string) *git.Dir { return &git.Dir{Flagged: n} }, "f99"},
		"stashes":   {func(n []string) *git.Dir { return &git.Dir{Dropped: n} }, "f99"},
		"commits lost": {func(n []string) *git.Dir {
			return &git.Dir{Refs: []git.Ref{{Name: "refs/heads/x", Before: "a", After: "b", LostCommits: n}}}
		}, "f99"},
		"many references": {func(n []string) *git.Dir {
			d := &git.Dir{}
			for _, name := range n {
				d.Refs = append(d.Refs, git.Ref{Name: "refs/tags/" + name, After: "b"})
			}
			return d
		}, "tag f99 at b"},
	} {
		var names []string
		for i := range 100 {
			names = append(names, fmt.Sprintf("f%02d", i))
		}
		dir := c.dir(names)
		dir.Path = "/ws/.git"
		q := bash()
		q.Changes = diff.New(t.Context(), []tool.Change{{Path: "/ws/.git/packed-refs", Kind: tool.Created, After: version("x")}}, "/ws", nil, dir)
		p, v := ForCall(q), View{Width: 5000, Height: 4000}
		rows := lines(append(p.Rows(v), p.Keys(v)...))
		all, _ := pages(t, p, v)
		if strings.Contains(rows, c.want) || !strings.Contains(rows, "[d]") || !strings.Contains(lines(all), c.want) {
			t.Errorf("%s: the question is\n%s\nand all of it\n%s", name, rows, lines(all))
		}
	}
}

// A question says how many places hold a known secret, and so does each difference.
func TestSecretsInDifferencesAreCounted(t *testing.T) {
	q := bash(edited("a", "k = 1\n", "k = hunter2\n"), edited("b", "hunter2\nx\n", "hunter2\ny\n"))
	q.Changes = q.Changes.Redacted(func(s string) string { return strings.ReplaceAll(s, "hunter2", "[redacted]") })
	p := ForCall(q)
	rows := lines(p.Rows(View{}))
	all, _ := pages(t, p, View{})
	if !strings.Contains(rows, "     ! 2 lines of it hold a known secret, which is not shown") || strings.Contains(rows+lines(all), "hunter2") {
		t.Errorf("it shows\n%s", rows)
	}
	if strings.Count(lines(all), "     ! 1 line of it holds a known secret, which is not shown") != 2 {
		t.Errorf("[d] shows\n%s", lines(all))
	}
}

// A question that is still shown reads nothing after the call has ended.
func TestNothingIsReadAfterTheAnswer(t *testing.T) {
	q := bash(edited("a", "1\n", "2\n"))
	p := ForCall(q)
	q.Changes.Close()
	all, _ := pages(t, p, View{})
	if text := q.Changes.Text(0); text.Err == nil || strings.Contains(lines(all), "+ 2") {
		t.Errorf("it shows %+v\n%s", text, lines(all))
	}
	var none *diff.Set
	none.Close()
}
