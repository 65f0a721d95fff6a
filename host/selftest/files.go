package selftest

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/sandbox/wasi"
	"github.com/stockade-dev/stockade/host/tool"
)

// fileAttack is a script against files. Selftest carries it out on one kind of
// mount; the tests, on all kinds, and hold every answer against the one that
// the script wants.
type fileAttack struct {
	name, tries string
	kinds       []Kind    // those for which it is tried; nil is all
	by          string    // what refuses it
	on          mountKind // the kind of mount on which it is an attack
	same        bool      // all refusals have to be the same
	build       func(x *onMount)
}

// mountKind is how the directory ws is mounted.
type mountKind int

const (
	writable mountKind = iota
	readOnly
	absent
)

func (k mountKind) String() string { return [...]string{"rw", "ro", "absent"}[k] }

// outside is what a guest is told of a name that leads out of its mounts.
const outside = "EPERM"

func (a fileAttack) run(t *trial) (string, error) {
	refusals, err := t.carryOut(a, a.on, false)
	switch {
	case err != nil:
		return "", err
	case len(refusals) == 0:
		return "", notTried("the script holds no attack")
	case a.same && len(refusals) > 1:
		return "", fmt.Errorf("the answers differ: %s", errnos(refusals))
	}
	return fmt.Sprintf("files: %s (%s)", a.by, errnos(refusals)), nil
}

// carryOut carries an attack out on a kind of mount.
func (t *trial) carryOut(a fileAttack, kind mountKind, exact bool) ([]wasi.Errno, error) {
	x := &onMount{trial: t, script: &script{}, kind: kind, end: func() {}}
	x.grant = Guest{Files: tool.FilesWrite, Mounts: []policy.Mount{{Host: x.host("else"), Write: true}}}
	if kind != absent {
		x.grant.Mounts = append(x.grant.Mounts, policy.Mount{Host: x.host("ws"), Write: kind == writable})
	}
	x.control()
	a.build(x)
	defer x.end()
	if err := errors.Join(x.unplanted, x.look(x.changes...)); err != nil {
		return nil, notTried("%v", err)
	}
	r, err := x.report(x.grant, x.script)
	if err != nil {
		return nil, err
	}
	refusals, err := r.compare(x.script, exact)
	for _, check := range x.checks {
		if checked := check(r); checked != nil && (err == nil || !isUntried(checked)) {
			err = checked
		}
	}
	return refusals, err
}

// onMount is an attack on files while it is put together, for one kind of
// mount. Beside ws, the guest has the directory else with write, which shows
// that it can use files, whatever it is refused.
type onMount struct {
	*trial
	*script
	kind      mountKind
	grant     Guest
	changes   []string // directories in which the host or the guest may change things
	checks    []func(report) error
	unplanted error
	end       func() // of what goes on meanwhile
}

// control has the guest read its own file, so that a refusal means something.
func (x *onMount) control() {
	f := x.open(x.in("else/inside"), 0, mayRead, 0)
	f.must("the guest opens its own file")
	_, content := x.read(f.fd, len(inside))
	x.add("fd_close", f.fd)
	x.finally(func(r report) error {
		if got := string(r.span(content)); got != inside {
			return notTried("the guest reads %q from its own file", got)
		}
		return nil
	})
}

// plant notes what went wrong where the attack was prepared.
func (x *onMount) plant(errs ...error) {
	x.unplanted = errors.Join(x.unplanted, errors.Join(errs...))
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
func (x *onMount) want(c *call, what string, want ...string) { c.wants(what, on(x.kind, want)) }

// finally checks something in the end.
func (x *onMount) finally(check func(report) error) { x.checks = append(x.checks, check) }

// content says what has to be read.
func (x *onMount) content(s span, want ...string) {
	x.finally(func(r report) error {
		if got, want := strings.TrimRight(string(r.span(s)), "\x00"), on(x.kind, want); got != want {
			return fmt.Errorf("the guest reads %q, want %q", got, want)
		}
		return nil
	})
}

// holds says what a file of the host has to hold in the end. A file that must
// not be there holds "-".
func (x *onMount) holds(name string, want ...string) {
	x.finally(func(report) error {
		got := "-"
		fi, err := os.Lstat(x.host(name))
		switch {
		case err != nil:
		case !fi.Mode().IsRegular() || fi.Size() > 4<<10: // it may be a tebibyte
			got = fmt.Sprintf("%s of %d bytes", fi.Mode(), fi.Size())
		default:
			b, err := os.ReadFile(x.host(name))
			if err != nil {
				return err
			}
			got = string(b)
		}
		if want := on(x.kind, want); got != want {
			return fmt.Errorf("the host was changed: %s holds %.80q, want %.80q", name, got, want)
		}
		return nil
	})
}

// most says how often a call may be made before it is refused, and how often
// it has to be where ws can be written to.
func (x *onMount) most(c *call, least, most int, what string) {
	x.finally(func(r report) error {
		n := r.times(c)
		if x.detail = fmt.Sprintf("refused the %d. time", n); n > most || x.kind == writable && n < least {
			return fmt.Errorf("%d %s", n, what)
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
func (x *onMount) in(name string) place { return x.at(x.guest(name)) }

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
	x.read(f.fd, 48)
	x.add("fd_close", f.fd)
	x.want(f.call, what, want...)
}

// writes tries to open a name for writing, and writes.
func (x *onMount) writes(name string, oflags int, want ...string) {
	x.writesAt(x.in(name), oflags, "write to "+clip(name, 80), want...)
}

func (x *onMount) writesAt(p place, oflags int, what string, want ...string) {
	f := x.open(p, oflags, mayRead|mayWrite, 0)
	x.put(f.fd, "overwritten")
	x.add("fd_close", f.fd)
	x.want(f.call, what, want...)
}

// opens tries to open a name, and does nothing with it.
func (x *onMount) opens(name string, oflags, rights, fdflags int, what string, want ...string) {
	x.want(x.open(x.in(name), oflags, rights, fdflags).call, what+" "+clip(name, 80), want...)
}

// changing tries everything that changes an existing file by a name.
func (x *onMount) changing(name string, want ...string) {
	x.writes(name, 0, want...)
	x.writes(name, oCreate|oTruncate, want...)
	x.opens(name, oTruncate, mayRead, 0, "truncate", want...)
	x.opens(name, 0, mayWrite, fdAppend, "append to", want...)
}

// seesLink shows that a link is there.
func (x *onMount) seesLink(names ...string) {
	for _, n := range names {
		x.want(x.stat(x.in(n), 0), "see "+n, "ok", "ok", outside)
	}
}

// meanwhile does something on the host when the guest says that it has come so far.
func (x *onMount) meanwhile(do func() error) {
	x.log("meanwhile")
	done := notTried("the guest did not say how far it is")
	x.grant.Said = func(tool.Progress) {
		if isUntried(done) {
			done = do()
		}
	}
	x.finally(func(report) error { return done })
}

func isUntried(err error) bool {
	_, ok := errors.AsType[*untried](err)
	return ok
}

// fileAttackList is every attack that is a script against files.
func fileAttackList() []fileAttack {
	return slices.Concat(nameAttacks(), linkAttacks(), closedAttacks(), readOnlyAttacks(), specialFileAttacks(), mountAttacks(), amountAttacks())
}

func fileAttacks() []Attack {
	var out []Attack
	for _, a := range fileAttackList() {
		out = append(out, Attack{Name: a.name, Tries: a.tries, kinds: a.kinds, run: a.run})
	}
	return append(out,
		Attack{Name: "nothing-mounted-read", Tries: "Read files as a tool that asked for none.", run: nothingMounted(func(t *trial, s *script) {
			for _, n := range []string{t.guest("ws/inside"), "inside", "etc/passwd", "proc/self/environ", "../" + t.guest("ws/inside")} {
				s.steal(s.at(n), "open "+n)
			}
		})},
		Attack{Name: "nothing-mounted-write", Tries: "Make files as a tool that asked for none.", run: nothingMounted(func(t *trial, s *script) {
			s.overwrite(s.at(t.guest("ws/made")), oCreate, "create ws/made")
			s.mkdir(s.at(t.guest("ws/made"))).refused("mkdir ws/made")
		})},
		Attack{Name: "other-mount", kinds: reactors, Tries: "Reach the directory of another tool, which runs at the same time.", run: otherMount},
		Attack{Name: "symlink-exchanged", Tries: "Open a file in a directory that is exchanged for a symbolic link again and again.", run: exchanged},
		Attack{Name: "disk-quota", Tries: "Let files grow to 1.2 GiB together.", run: diskQuota},
	)
}
