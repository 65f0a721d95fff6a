package search

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/sandbox/wasi"
	"github.com/stockade-dev/stockade/host/stage"
	"github.com/stockade-dev/stockade/sdk/go/lines"
)

// world is a file system over a fresh directory ws, which stands beside out.
type world struct {
	*wasi.FS
	ws    string
	units uint64
}

func newWorld(t *testing.T, masked []string, opts *wasi.Options, files map[string]string) *world {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	w := &world{ws: filepath.Join(dir, "ws")}
	for name, content := range files {
		name = filepath.Join(dir, name)
		err := os.MkdirAll(filepath.Dir(name), 0o777)
		if target, ok := strings.CutPrefix(content, "->"); ok && err == nil {
			err = os.Symlink(target, name)
		} else if err == nil {
			err = os.WriteFile(name, []byte(content), 0o666)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for i, name := range masked {
		masked[i] = filepath.Join(w.ws, name)
	}
	w.FS, err = wasi.New([]policy.Mount{{Host: w.ws, Write: opts != nil && opts.Stage != nil}}, masked, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close() })
	return w
}

// Pay, Left, Yield and WithoutTurn implement a [Payer] that can pay for anything.
func (w *world) Pay(units uint64) error { w.units += units; return nil }

func (w *world) Left() uint64            { return math.MaxUint64 }
func (w *world) Yield(uint64) error      { return nil }
func (w *world) WithoutTurn(wait func()) { wait() }

// purse is a payer with a fixed amount of fuel.
type purse struct {
	left   int64
	paid   int64
	yields int
	refill bool // it has more again when it is to pay
}

var errBroke = errors.New("broke")

func (p *purse) Pay(units uint64) error {
	p.paid += int64(units)
	if p.left -= int64(units); p.left < 0 && !p.refill {
		return errBroke
	}
	return nil
}

func (p *purse) Left() uint64            { return uint64(max(p.left, 0)) }
func (p *purse) Yield(uint64) error      { p.yields++; return nil }
func (p *purse) WithoutTurn(wait func()) { wait() }

func (w *world) names(names ...string) []string {
	out := make([]string, len(names))
	for i, name := range names {
		out[i] = filepath.ToSlash(filepath.Join(w.ws, name))
	}
	return out
}

// lines searches and shows the result as file:line:text. If the search is cheap it runs in
// every way, and the results have to be the same.
func (w *world) lines(t *testing.T, q Query) (out []string, f *Found) {
	t.Helper()
	f, err := find(t.Context(), w.FS, q, w)
	if err != nil {
		t.Fatal(err)
	}
	if paid := w.units; paid < backgroundUnits/8 {
		for name, f2 := range w.inBackground(t, q) {
			if !slices.Equal(f.Lines, f2.Lines) || !bytes.Equal(f.Text, f2.Text) || f.Failed != f2.Failed || f.More != f2.More {
				t.Errorf("when the guest comes %s: %.1000v, want %.1000v", name, f2, f)
			}
		}
		w.units = paid
	}
	at := 0
	for _, l := range f.Lines {
		out = append(out, fmt.Sprintf("%d:%d:%s", l.File, l.Number, f.Text[at:at+l.Size]))
		at += l.Size
	}
	if at != len(f.Text) {
		t.Errorf("%d bytes of text are of lines, of %d", at, len(f.Text))
	}
	return out, f
}

// Whatever leads out of the mount, or to what is masked, is as if it could not
// be read.
func TestNothingOutsideIsSearched(t *testing.T) {
	w := newWorld(t, []string{"masked", "dir/secret"}, nil, map[string]string{
		"ws/f": "key inside\n", "ws/masked": "key masked\n", "ws/dir/secret/f": "key masked\n", "ws/dir/f": "key inside\n",
		"out/f": "key outside\n", "ws/link": "->../out/f", "ws/dirlink": "->../out", "ws/abs": "->/etc/passwd", "ws/alias": "->masked", "ws/inner": "->f",
	})
	files := append(w.names("f", "masked", "dir/secret/f", "dir/f", "link", "dirlink/f", "abs", "alias", "inner", "missing", "dir"),
		w.ws+"/../out/f", w.ws+"/dirlink/../f", "/etc/passwd", "", "relative", "/", "\x00", w.ws+"/"+strings.Repeat("x", 5000), "/proc/self/environ")
	got, f := w.lines(t, Query{Files: files, Pattern: "key|root|=", MaxMatches: 100, MaxText: 1 << 10, MaxChars: 100})
	want := []string{"0:1:key inside", "3:1:key inside", "8:1:key inside", "12:1:key inside"}
	if !slices.Equal(got, want) || f.Failed != len(files)-len(want) {
		t.Errorf("found %q, %d of %d failed", got, f.Failed, len(files))
	}
	listings, err := List(t.Context(), w.FS, append(w.names("", "dir", "dir/secret", "dirlink", "missing", "f"), "/etc", w.ws+"/..", "/proc/self"), w)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for i, l := range listings {
		if l.Missing && len(l.Entries) > 0 {
			t.Errorf("%d is missing and lists %v", i, l.Entries)
		}
		for _, e := range l.Entries {
			names = append(names, fmt.Sprintf("%d/%s %d", i, e.Name, e.Kind))
		}
	}
	wantNames := []string{"0/abs 2", "0/alias 2", "0/dir 1", "0/dirlink 2", "0/f 0", "0/inner 2", "0/link 2", "1/f 0", "7/ws 1"}
	if !slices.Equal(names, wantNames) {
		t.Errorf("listed %q, want %q", names, wantNames)
	}
}

// Names that are looked up together have the same results as each alone.
func TestEachNameIsWhatLstatSays(t *testing.T) {
	set, err := stage.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer set.Drop()
	for _, opts := range []*wasi.Options{nil, {Stage: set}} {
		w := newWorld(t, []string{"masked", "dir/secret"}, opts, map[string]string{
			"ws/f": "inside\n", "ws/masked": "x\n", "ws/dir/secret/f": "x\n", "ws/dir/f": "in\n", "ws/dir/sub/g": "", "out/f": "outside\n",
			"ws/link": "->../out/f", "ws/dirlink": "->../out", "ws/alias": "->masked", "ws/inner": "->dir",
		})
		names := append(w.names("f", "dir/f", "dir/secret/f", "dir/sub/g", "dir/sub", "dir/f", "masked", "link", "dirlink/f", "alias", "inner/f", "inner", "missing", "dir", ""),
			w.ws+"/inner/", w.ws+"/../out/f", w.ws+"/..", "/etc/passwd", "", "relative", "/", "\x00", w.ws+"/"+strings.Repeat("x", 5000))
		got, err := Stat(t.Context(), w.FS, names, w)
		if err != nil || len(got) != len(names) {
			t.Fatalf("%d infos, %v", len(got), err)
		}
		missing := 0
		for i, name := range names {
			want := Info{Missing: true}
			if st, errno := w.Lstat(name); errno == 0 {
				want = Info{Kind: kindOf(st.Type), Size: st.Size, Modified: st.Mtim, Changed: st.Ctim}
			} else {
				missing++
			}
			if got[i] != want {
				t.Errorf("%.100q is %+v, want %+v", name, got[i], want)
			}
		}
		if missing != 10 {
			t.Errorf("%d names are missing", missing)
		}
	}
}

func TestStagedChangesAreSearched(t *testing.T) {
	set, err := stage.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer set.Drop()
	w := newWorld(t, nil, &wasi.Options{Stage: set}, map[string]string{"ws/a": "old key\n", "ws/b": "old\n", "ws/c": "old key\n"})
	for name, flag := range map[string]wasi.Flag{"b": wasi.ReadWrite | wasi.Truncate, "d": wasi.ReadWrite | wasi.Create} {
		h, errno := w.Open(w.names(name)[0], flag)
		if errno != 0 {
			t.Fatal(errno)
		}
		if _, errno := h.(*wasi.File).Write([]byte("new key\n")); errno != 0 {
			t.Fatal(errno)
		}
		h.Close()
	}
	if errno := w.Unlink(w.names("c")[0]); errno != 0 {
		t.Fatal(errno)
	}
	got, f := w.lines(t, Query{Files: w.names("a", "b", "c", "d"), Pattern: "key", MaxMatches: 100, MaxText: 1 << 10, MaxChars: 100})
	if want := []string{"0:1:old key", "1:1:new key", "3:1:new key"}; !slices.Equal(got, want) || f.Failed != 1 {
		t.Errorf("found %q, %d failed", got, f.Failed)
	}
}

// Results and costs depend neither on the speed of goroutines nor on the number of files that
// may be open.
func TestEveryRunIsTheSame(t *testing.T) {
	files := map[string]string{}
	var names []string
	for i := range 300 {
		name := fmt.Sprintf("f%03d", i)
		files["ws/"+name] = strings.Repeat("some line\n", i*i%977) + fmt.Sprintf("hit %d\nhit again\n", i) + strings.Repeat("x", i*31%501)
		names = append(names, name)
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	var want []string
	var units uint64
	for run := range 12 {
		runtime.GOMAXPROCS(1 + run%4)
		var fuel uint64
		w := newWorld(t, nil, &wasi.Options{Limits: wasi.Limits{Charge: func(u uint64) { fuel += u }}}, files)
		got, f := w.lines(t, Query{Files: w.names(names...), Pattern: "^h[i]t", Context: 1, MaxMatches: 333, MaxText: 1 << 18, MaxChars: 100})
		if !f.More || f.Failed != 0 {
			t.Fatalf("more %v, failed %d", f.More, f.Failed)
		}
		if run == 0 {
			want, units = got, fuel+w.units
		} else if !slices.Equal(got, want) || fuel+w.units != units {
			t.Fatalf("run %d: %d lines for %d units, and %d for %d before", run, len(got), fuel+w.units, len(want), units)
		}
	}
	w := newWorld(t, nil, &wasi.Options{Limits: wasi.Limits{MaxOpenFiles: 3}}, files)
	held, errno := w.Open(w.names("f000")[0], wasi.ReadOnly)
	if errno != 0 {
		t.Fatal(errno)
	}
	got, _ := w.lines(t, Query{Files: w.names(names...), Pattern: "^h[i]t", Context: 1, MaxMatches: 333, MaxText: 1 << 18, MaxChars: 100})
	if !slices.Equal(got, want) {
		t.Errorf("with few open files: %d lines, want %d", len(got), len(want))
	}
	held.Close()
	for range 3 { // all were closed
		if _, errno := w.Open(w.names("f000")[0], wasi.ReadOnly); errno != 0 {
			t.Error(errno)
		}
	}
}

func TestResultsAreCapped(t *testing.T) {
	long := strings.Repeat("x", 3000) + "\n"
	w := newWorld(t, nil, nil, map[string]string{"ws/many": strings.Repeat("hit\n", 5000), "ws/wide": strings.Repeat(long, 500), "ws/lone": "a\nb\nhit\nc\nhit\nd\n"})
	const all = 1 << 30
	huge := Query{Files: w.names("many", "many"), Pattern: "hit", Context: all, MaxMatches: all, MaxText: all, MaxChars: all}
	if got, f := w.lines(t, huge); len(got) != MaxMatches || !f.More {
		t.Errorf("%d lines, more %v", len(got), f.More)
	}
	huge.Files, huge.Pattern = w.names("wide", "wide"), "x"
	if _, f := w.lines(t, huge); len(f.Text) > MaxText+(2*MaxContext+1)*MaxChars*4 || !f.More || !f.Lines[0].Cut {
		t.Errorf("%d bytes, more %v", len(f.Text), f.More)
	}
	// What stands before a match that there is no room for goes with it.
	got, f := w.lines(t, Query{Files: w.names("lone"), Pattern: "hit", Context: 1, MaxMatches: 1, MaxText: all, MaxChars: 9})
	if want := []string{"0:2:b", "0:3:hit", "0:4:c"}; !slices.Equal(got, want) || !f.More {
		t.Errorf("found %q, more %v", got, f.More)
	}
	if got, f := w.lines(t, Query{Files: w.names("lone"), Pattern: "hit", Context: 1}); len(got) != 0 || !f.More {
		t.Errorf("found %q, more %v without room for anything", got, f.More)
	}
}

func TestHostilePatternsAreRefused(t *testing.T) {
	w := newWorld(t, nil, nil, map[string]string{"ws/f": "x\n"})
	for _, p := range []string{
		strings.Repeat("x", MaxPattern+1), "(", "x{1001}", strings.Repeat(`\pL{900}`, 100), strings.Repeat("(", 500) + strings.Repeat("){9}", 100),
		strings.Repeat("((a{9}|b{9}){9}){9}", 40), strings.Repeat("(?i:.{999})", 90),
	} {
		start := time.Now()
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := find(t.Context(), w.FS, Query{Files: w.names("f"), Pattern: p, MaxMatches: 1}, w)
		runtime.ReadMemStats(&after)
		if !errors.Is(err, ErrPattern) {
			t.Errorf("%.30q: %v", p, err)
		}
		if used := after.TotalAlloc - before.TotalAlloc; used > 256<<20 || time.Since(start) > 20*time.Second {
			t.Errorf("%.30q took %v and %d MiB", p, time.Since(start), used>>20)
		}
	}
}

// Each of these searches takes hours without a deadline.
func TestTheDeadlineEndsEverySearch(t *testing.T) {
	w := newWorld(t, nil, nil, map[string]string{"ws/sparse": strings.Repeat("x", 9000), "ws/line": strings.Repeat("x", 1<<20) + "\n", "ws/lines": strings.Repeat(strings.Repeat("x", 1000)+"\n", 4000)})
	if err := os.Truncate(filepath.Join(w.ws, "sparse"), 1<<42); err != nil {
		t.Fatal(err)
	}
	for file, pattern := range map[string]string{"sparse": "zebra", "line": "(x?){500}(x?){400}[ab]", "lines": "(x?){500}(x?){400}[ab]"} {
		for _, n := range []int{1, 100} {
			ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			start := time.Now()
			_, err := find(ctx, w.FS, Query{Files: slices.Repeat(w.names(file), n), Pattern: pattern, MaxMatches: 1}, w)
			cancel()
			if took := time.Since(start); !errors.Is(err, context.DeadlineExceeded) || took > 20*time.Second {
				t.Errorf("%s, %d times: %v after %v", file, n, err, took)
			}
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := List(ctx, w.FS, w.names("", ""), w); !errors.Is(err, context.Canceled) {
		t.Errorf("list: %v", err)
	}
	if _, err := Stat(ctx, w.FS, w.names("", ""), w); !errors.Is(err, context.Canceled) {
		t.Errorf("stat: %v", err)
	}
}

func TestWhoCannotPayGetsNothing(t *testing.T) {
	files := map[string]string{}
	for i := range 200 {
		files[fmt.Sprintf("ws/f%d", i)] = strings.Repeat("line\n", 10_000)
	}
	w := newWorld(t, nil, nil, files)
	for _, budget := range []uint64{0, 10_000, 100_000, 1_000_000} {
		pay := &purse{left: int64(budget)}
		var all []string
		for i := range 200 {
			all = append(all, w.names(fmt.Sprintf("f%d", i))...)
		}
		if f, err := find(t.Context(), w.FS, Query{Files: all, Pattern: "li[n]+e", MaxMatches: 9}, pay); err != errBroke || f != nil {
			t.Errorf("with %d units: %v", budget, err)
		}
		pay.left = int64(budget) / 1000
		if _, err := List(t.Context(), w.FS, slices.Repeat(w.names(""), 100), pay); err != errBroke {
			t.Errorf("list with %d units: %v", budget/1000, err)
		}
		pay.left = int64(budget) / 1000
		if _, err := Stat(t.Context(), w.FS, all, pay); err != errBroke {
			t.Errorf("stat with %d units: %v", budget/1000, err)
		}
	}
	for range 256 { // nothing was left open
		if _, errno := w.Open(w.names("f1")[0], wasi.ReadOnly); errno != 0 {
			t.Fatal(errno)
		}
	}
}

func TestWhatIsDoneIsPaidFor(t *testing.T) {
	const size = 8 << 20
	w := newWorld(t, nil, nil, map[string]string{"ws/f": strings.Repeat("some text\n", size/10)})
	for pattern, least := range map[string]uint64{"zebra": size >> shiftRead * 2, "zebra|giraffe": size >> shiftRead * 3, "[x-z]{2}": size * 9 / 10 * costMatch} {
		w.units = 0
		w.lines(t, Query{Files: w.names("f"), Pattern: pattern, MaxMatches: 1})
		if w.units < least*9/10 || w.units > 10*least {
			t.Errorf("%s costs %d, and not about %d", pattern, w.units, least)
		}
	}
}

func TestListSaysNoMoreThanAResultHolds(t *testing.T) {
	files := map[string]string{}
	for i := range 30 {
		files["ws/a/"+strings.Repeat("n", 200)+fmt.Sprint(i)] = ""
	}
	w := newWorld(t, nil, nil, files)
	listings, err := List(t.Context(), w.FS, slices.Repeat(w.names("a"), 1000), w)
	if err != nil || len(listings) < 100 || len(listings) > 300 {
		t.Errorf("%d listings, %v", len(listings), err)
	}
}

// A bug in another goroutine must not end the process.
func TestAPanicOfAWorkerComesToTheGuest(t *testing.T) {
	files := map[string]string{}
	for i := range 100 {
		files[fmt.Sprintf("ws/f%d", i)] = "x\n"
	}
	w := newWorld(t, nil, nil, files)
	q := &Query{MaxMatches: 1}
	for i := range 100 {
		q.Files = append(q.Files, w.names(fmt.Sprintf("f%d", i))...)
	}
	r := newRun(w.FS, q, &lines.Pattern{}, w, func() error { return nil }) // not compiled
	defer func() {
		if p := recover(); p == nil || !strings.Contains(fmt.Sprint(p), "nil pointer") {
			t.Errorf("recovered %v", p)
		}
	}()
	_, _ = r.searchAll()
}

// A file that looks like a secret is not searched, whatever leads to it; all other files are.
func TestSecretFilesAreNotSearched(t *testing.T) {
	w := newWorld(t, nil, nil, map[string]string{
		"ws/.env": "hit\n", "ws/a": "hit\n", "ws/d/server.key": "hit\n", "ws/l": "->.env", "ws/self": "->.", "ws/.env.example": "hit\n",
	})
	lines, f := w.lines(t, Query{Files: w.names(".env", "a", "d/server.key", "l", "self/.env", "self/l", ".env.example"), Pattern: "hit", MaxMatches: 9, MaxText: MaxText, MaxChars: 9})
	if len(lines) != 2 || f.Failed != 5 {
		t.Errorf("found %v, and %d failed", lines, f.Failed)
	}
	if refused := w.Refusals(); len(refused) != 2 {
		t.Errorf("refused %v", refused)
	}
}

// find searches at once and returns the lines.
func find(ctx context.Context, fs *wasi.FS, q Query, pay Payer) (*Found, error) {
	r, err := prepare(ctx, fs, q, pay)
	if err != nil {
		return nil, err
	}
	return r.searchAll()
}
