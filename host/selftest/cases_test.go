package selftest

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/tool"
)

// The cases are the attacks that the threat model numbers: F on files, R on
// processor, memory and calls into the host. Each is carried out on the real
// sandbox, over files that are really there. Cases on files run on three kinds
// of mount, and say for each call what the guest is answered on each; what the
// host looks like afterwards is compared with what it looked like before.

// numbered is one case.
type numbered struct {
	id, title string
	// files builds what a guest tries. It runs once for each kind of mount.
	files func(x *onMount)
	// run carries out a case that has nothing to do with mounts.
	run func(t *testing.T, target *Sandbox)
	// open says what of the case nothing covers yet, and why.
	open string
	// inMemory is of cases with so many changes that a disk would take seconds:
	// their files are in memory where the system has a place for that.
	inMemory bool
}

// mountKind is how the directory ws of a case is mounted.
type mountKind int

const (
	writable mountKind = iota
	readOnly
	absent
)

var mountKinds = []mountKind{writable, readOnly, absent}

func (k mountKind) String() string { return [...]string{"rw", "ro", "absent"}[k] }

func allCases() []numbered {
	return slices.Concat(nameCases(), linkCases(), readOnlyCases(), specialCases(), amountCases(), mountCases(),
		cpuCases(), memoryCases(), outputCases(), stateCases(), cacheCases())
}

// TestCases carries out all cases, or with -run those of a number.
func TestCases(t *testing.T) {
	target := realTarget(t)
	for _, c := range allCases() {
		t.Run(c.id, func(t *testing.T) {
			if c.run != nil {
				c.run(t, target)
				return
			}
			for _, kind := range mountKinds {
				t.Run(kind.String(), func(t *testing.T) { tryFiles(t, target, c, kind) })
			}
		})
	}
}

// TestTheListOfCasesIsComplete holds the list against the numbers of the
// threat model, and says what is open.
func TestTheListOfCasesIsComplete(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range allCases() {
		if seen[c.id] {
			t.Errorf("%s is there twice", c.id)
		}
		seen[c.id] = true
		if (c.files == nil) == (c.run == nil) || c.title == "" {
			t.Errorf("%s has no title, or not one test", c.id)
		}
		if c.id[0] == 'F' && c.files == nil {
			t.Errorf("%s does not run on every kind of mount", c.id)
		}
		if c.open != "" {
			t.Logf("open in %s, %s: %s", c.id, c.title, c.open)
		}
	}
	for letter, last := range map[string]int{"F": 42, "R": 27} {
		for i := range last {
			id := fmt.Sprintf("%s%02d", letter, i+1)
			if !seen[id] {
				t.Errorf("%s is missing", id)
			}
			delete(seen, id)
		}
	}
	for id := range seen {
		t.Errorf("there is no %s", id)
	}
}

// onMount is a case on files while it is put together. Beside ws, as the kind
// of mount says, the guest has the directory else with write, which shows that
// it can use files, whatever it is refused.
type onMount struct {
	*trial
	*script
	t       *testing.T
	kind    mountKind
	guest   Guest
	changes []string // directories in which the host or the guest may change things
	answers []answer
	checks  []func(report) error
	meant   int // calls that are the attack
}

// answer is what a call has to return.
type answer struct {
	*call
	what string
	want string // error numbers, of which one has to come; "ok" is none
}

func tryFiles(t *testing.T, target Target, c numbered, kind mountKind) {
	if _, err := os.Stat("/dev/shm"); err == nil && c.inMemory {
		t.Setenv("TMPDIR", "/dev/shm")
	}
	a := Attack{Name: strings.ToLower(c.id), Area: Files, run: func(trial *trial) (string, error) {
		return "", newOnMount(t, trial, kind).carryOut(c.files)
	}}
	if r := one(t, target, a, DefaultPatience); !r.Pass {
		t.Errorf("%s: %s", c.title, r.Detail)
	}
}

func newOnMount(t *testing.T, trial *trial, kind mountKind) *onMount {
	x := &onMount{trial: trial, script: &script{}, t: t, kind: kind}
	x.guest = Guest{Files: tool.FilesWrite, Mounts: []policy.Mount{{Host: x.host("else"), Write: true}}}
	if kind != absent {
		x.guest.Mounts = append(x.guest.Mounts, policy.Mount{Host: x.host("ws"), Write: kind == writable})
	}
	x.must(os.Mkdir(x.host("else"), 0o700))
	x.must(x.write("else/inside", inside))
	return x
}

func (x *onMount) carryOut(files func(*onMount)) error {
	read, content := x.reading("else/inside", len(inside))
	x.want(read, "the guest opens its own file", "ok")
	x.content(content, inside)
	x.meant = 0
	files(x)
	if x.meant == 0 {
		return notTried("the case asks for no answer")
	}
	if err := x.look(x.changes...); err != nil {
		return notTried("%v", err)
	}
	r, err := x.report(x.guest, x.script)
	if err != nil {
		return err
	}
	for _, a := range x.answers {
		got := "ok"
		if e := r.errno(a.call); e != 0 {
			got = e.String()
		}
		switch {
		case r.times(a.call) == 0:
			err = errors.Join(err, notTried("the guest did not get as far as: %s", a.what))
		case !slices.Contains(strings.Fields(a.want), got):
			err = errors.Join(err, fmt.Errorf("%s: %s, want %s", a.what, got, a.want))
		}
	}
	for _, check := range x.checks {
		err = errors.Join(err, check(r))
	}
	return err
}

// must ends the case where it cannot be prepared.
func (x *onMount) must(errs ...error) {
	x.t.Helper()
	if err := errors.Join(errs...); err != nil {
		x.t.Fatal(err)
	}
}

// on picks what holds for the kind of mount: one value for all, or three.
func on[T any](kind mountKind, values []T) T {
	if len(values) == 1 {
		return values[0]
	}
	return values[kind]
}

// want says what a call has to return: the same on all kinds of mount, or one
// after the other for rw, ro and absent.
func (x *onMount) want(c *call, what string, want ...string) {
	x.answers = append(x.answers, answer{c, what, on(x.kind, want)})
	x.meant++
}

// content says what has to be read.
func (x *onMount) content(s span, want ...string) {
	x.checks = append(x.checks, func(r report) error {
		if got, want := strings.TrimRight(string(r.span(s)), "\x00"), on(x.kind, want); got != want {
			return fmt.Errorf("the guest reads %q, want %q", got, want)
		}
		return nil
	})
}

// finally says what has to be true of the host in the end.
func (x *onMount) finally(check func() error) {
	x.checks = append(x.checks, func(report) error { return check() })
}

// holds says what a file of the host has to hold in the end. A file that must
// not be there holds "-".
func (x *onMount) holds(name string, want ...string) {
	x.finally(func() error {
		got := "-"
		if b, err := os.ReadFile(x.host(name)); err == nil {
			got = string(b)
		} else if _, err := os.Lstat(x.host(name)); err == nil {
			got = "there"
		}
		if want := on(x.kind, want); got != want {
			return fmt.Errorf("the host was changed: %s holds %.80q, want %.80q", name, got, want)
		}
		return nil
	})
}

// may says where things may change in the end, on a mount with write.
func (x *onMount) may(change ...string) {
	if x.kind == writable {
		x.changes = append(x.changes, change...)
	}
}

// in is a name in the scratch directory.
func (x *onMount) in(name string) place { return x.at(x.trial.guest(name)) }

// reading opens a name and reads from it into the report, if it can be opened.
func (x *onMount) reading(name string, n int) (*call, span) {
	f := x.open(x.in(name), 0, mayRead, 0)
	_, content := x.read(f.fd, n)
	x.add("fd_close", f.fd)
	return f.call, content
}

// reads tries to read a name.
func (x *onMount) reads(name string, want ...string) {
	x.readsAt(x.in(name), "read "+clip(name, 80), want...)
}

func (x *onMount) readsAt(p place, what string, want ...string) {
	f := x.open(p, 0, mayRead, 0)
	list := x.words(bufferBase, 48)
	x.add("fd_read", f.fd, list.at, 1, x.words(0).at)
	x.add("fd_close", f.fd)
	x.want(f.call, what, want...)
}

// writes tries to open a name for writing, and writes.
func (x *onMount) writes(name string, oflags int, want ...string) {
	f := x.open(x.in(name), oflags, mayRead|mayWrite, 0)
	x.put(f.fd, "overwritten")
	x.add("fd_close", f.fd)
	x.want(f.call, "write to "+clip(name, 80), want...)
}

// meanwhile does something on the host when the guest says that it has come so far.
func (x *onMount) meanwhile(do func() error) {
	x.log("meanwhile")
	done := errors.New("the guest did not say how far it is")
	x.guest.Said = func(tool.Progress) {
		if done != nil {
			done = do()
		}
	}
	x.finally(func() error { return done })
}

// attacks carries out attacks that are in the list of selftest already, in its
// own way.
func attacks(names ...string) func(*testing.T, *Sandbox) {
	return func(t *testing.T, target *Sandbox) {
		for _, name := range names {
			i := slices.IndexFunc(Attacks(), func(a Attack) bool { return a.Name == name })
			if i < 0 {
				t.Errorf("there is no attack %q", name)
				continue
			}
			if r := one(t, target, Attacks()[i], DefaultPatience); !r.Pass {
				t.Errorf("%s: %s", name, r.Detail)
			}
		}
	}
}

// allOf runs one part of a case after the other.
func allOf(parts ...func(*testing.T, *Sandbox)) func(*testing.T, *Sandbox) {
	return func(t *testing.T, target *Sandbox) {
		for _, p := range parts {
			p(t, target)
		}
	}
}

// try is a part of a case that is carried out like an attack.
func try(run func(*trial) error) func(*testing.T, *Sandbox) {
	return func(t *testing.T, target *Sandbox) {
		t.Helper()
		a := Attack{Name: "case", run: func(trial *trial) (string, error) { return "", run(trial) }}
		if r := one(t, target, a, 2*time.Minute); !r.Pass {
			t.Error(r.Detail)
		}
	}
}
