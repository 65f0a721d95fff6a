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

// fileAttack is a script against files. Selftest runs it on one kind of mount; the tests
// run it on all kinds, and compare every result with the expected one.
type fileAttack struct {
	name, description string
	kinds             []Kind    // the kinds of modules for which it is tried; nil is all
	refusedBy         string    // the expected mechanism of the refusal
	mount             mountKind // the kind of mount on which it is an attack
	sameAnswer        bool      // all refusals must have the same error number
	build             func(x *fileTrial)
}

// mountKind is the way in which the directory ws is mounted.
type mountKind int

const (
	writable mountKind = iota
	readOnly
	absent
)

func (k mountKind) String() string { return [...]string{"rw", "ro", "absent"}[k] }

// outside is the error for a name that leads out of the guest's mounts.
const outside = "EPERM"

func (a fileAttack) run(t *trial) (string, error) {
	refusals, err := t.carryOut(a, a.mount, false)
	switch {
	case err != nil:
		return "", err
	case len(refusals) == 0:
		return "", newUntried("the script holds no attack")
	case a.sameAnswer && len(refusals) > 1:
		return "", fmt.Errorf("the answers differ: %s", joinErrnos(refusals))
	}
	return fmt.Sprintf("files: %s (%s)", a.refusedBy, joinErrnos(refusals)), nil
}

// carryOut runs an attack on a kind of mount, and returns the error numbers of the
// refusals. With exact, each must be the expected number.
func (t *trial) carryOut(a fileAttack, kind mountKind, exact bool) ([]wasi.Errno, error) {
	x := &fileTrial{trial: t, script: &script{}, kind: kind, cleanup: func() {}}
	x.grant = Guest{Files: tool.FilesWrite, Mounts: []policy.Mount{{Host: x.hostPath("else"), Write: true}}}
	if kind != absent {
		x.grant.Mounts = append(x.grant.Mounts, policy.Mount{Host: x.hostPath("ws"), Write: kind == writable})
	}
	x.control()
	a.build(x)
	defer x.cleanup()
	if err := errors.Join(x.plantErr, x.noteState(x.allowedChanges...)); err != nil {
		return nil, newUntried("%v", err)
	}
	r, err := x.runReport(x.grant, x.script)
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

// fileTrial builds an attack on files for one kind of mount. In addition to ws, the guest
// has the directory else with write, which shows that it can use files even if everything
// in ws is refused.
type fileTrial struct {
	*trial
	*script
	kind           mountKind
	grant          Guest
	allowedChanges []string // directories in which the host or the guest may change things
	checks         []func(report) error
	plantErr       error
	cleanup        func() // stops what goes on at the same time
}

// control makes the guest read its own file, so that a refusal means something.
func (x *fileTrial) control() {
	f := x.open(x.scratchPlace("else/inside"), 0, rightsRead, 0)
	f.mustSucceed("the guest opens its own file")
	_, content := x.read(f.fd, len(insideText))
	x.add("fd_close", f.fd)
	x.finally(func(r report) error {
		if got := string(r.span(content)); got != insideText {
			return newUntried("the guest reads %q from its own file", got)
		}
		return nil
	})
}

// plant records errors of the preparation of the attack. The attack then counts as not
// tried.
func (x *fileTrial) plant(errs ...error) {
	x.plantErr = errors.Join(x.plantErr, errors.Join(errs...))
}

// forMount returns the value for a kind of mount: values has one for all kinds, or three.
func forMount[T any](kind mountKind, values []T) T {
	if len(values) == 1 {
		return values[0]
	}
	return values[kind]
}

// expect sets the result that a call must have: the same on all kinds of mount, or one
// each for rw, ro and absent.
func (x *fileTrial) expect(c *call, what string, want ...string) {
	c.expect(what, forMount(x.kind, want))
}

// finally adds a check for the end.
func (x *fileTrial) finally(check func(report) error) { x.checks = append(x.checks, check) }

// expectContent checks the content that was read into s.
func (x *fileTrial) expectContent(s span, want ...string) {
	x.finally(func(r report) error {
		if got, want := strings.TrimRight(string(r.span(s)), "\x00"), forMount(x.kind, want); got != want {
			return fmt.Errorf("the guest reads %q, want %q", got, want)
		}
		return nil
	})
}

// holds checks the content of a file of the host at the end. "-" means that there must be
// no file.
func (x *fileTrial) holds(name string, want ...string) {
	x.finally(func(report) error {
		got := "-"
		fi, err := os.Lstat(x.hostPath(name))
		switch {
		case err != nil:
		case !fi.Mode().IsRegular() || fi.Size() > 4<<10: // it may be a tebibyte
			got = fmt.Sprintf("%s of %d bytes", fi.Mode(), fi.Size())
		default:
			b, err := os.ReadFile(x.hostPath(name))
			if err != nil {
				return err
			}
			got = string(b)
		}
		if want := forMount(x.kind, want); got != want {
			return fmt.Errorf("the host was changed: %s holds %.80q, want %.80q", name, got, want)
		}
		return nil
	})
}

// limitTimes checks that a call was made at most most times, and at least least times if
// ws is writable.
func (x *fileTrial) limitTimes(c *call, least, most int, what string) {
	x.finally(func(r report) error {
		n := r.callCount(c)
		if x.detail = fmt.Sprintf("refused the %d. time", n); n > most || x.kind == writable && n < least {
			return fmt.Errorf("%d %s", n, what)
		}
		return nil
	})
}

// allowChanges names directories that may change, if ws is writable.
func (x *fileTrial) allowChanges(change ...string) {
	if x.kind == writable {
		x.allowedChanges = append(x.allowedChanges, change...)
	}
}

// scratchPlace returns the place of a name in the scratch directory.
func (x *fileTrial) scratchPlace(name string) place { return x.place(x.guestPath(name)) }

// readInto opens a name and reads n bytes into the report, if it can be opened.
func (x *fileTrial) readInto(name string, n int) (*call, span) {
	f := x.open(x.scratchPlace(name), 0, rightsRead, 0)
	_, content := x.read(f.fd, n)
	x.add("fd_close", f.fd)
	return f.call, content
}

// tryRead tries to read a name.
func (x *fileTrial) tryRead(name string, want ...string) {
	x.tryReadAt(x.scratchPlace(name), "read "+clip(name, 80), want...)
}

func (x *fileTrial) tryReadAt(p place, what string, want ...string) {
	f := x.open(p, 0, rightsRead, 0)
	x.read(f.fd, 48)
	x.add("fd_close", f.fd)
	x.expect(f.call, what, want...)
}

// tryWrite tries to open a name for writing, and writes.
func (x *fileTrial) tryWrite(name string, oflags int, want ...string) {
	x.tryWriteAt(x.scratchPlace(name), oflags, "write to "+clip(name, 80), want...)
}

func (x *fileTrial) tryWriteAt(p place, oflags int, what string, want ...string) {
	f := x.open(p, oflags, rightsRead|rightsWrite, 0)
	x.writeText(f.fd, "overwritten")
	x.add("fd_close", f.fd)
	x.expect(f.call, what, want...)
}

// tryOpen tries to open a name, and does nothing with it.
func (x *fileTrial) tryOpen(name string, oflags, rights, fdflags int, what string, want ...string) {
	x.expect(x.open(x.scratchPlace(name), oflags, rights, fdflags).call, what+" "+clip(name, 80), want...)
}

// tryChanges tries everything that changes an existing file by a name.
func (x *fileTrial) tryChanges(name string, want ...string) {
	x.tryWrite(name, 0, want...)
	x.tryWrite(name, oCreate|oTruncate, want...)
	x.tryOpen(name, oTruncate, rightsRead, 0, "truncate", want...)
	x.tryOpen(name, 0, rightsWrite, fdAppend, "append to", want...)
}

// expectLink checks that links exist.
func (x *fileTrial) expectLink(names ...string) {
	for _, n := range names {
		x.expect(x.stat(x.scratchPlace(n), 0), "see "+n, "ok", "ok", outside)
	}
}

// whileGuestWaits does something on the host while the guest waits at this point of the
// script.
func (x *fileTrial) whileGuestWaits(do func() error) {
	x.log("meanwhile")
	done := newUntried("the guest did not say how far it is")
	x.grant.OnProgress = func(tool.Progress) {
		if isUntried(done) {
			done = do()
		}
	}
	x.finally(func(report) error { return done })
}

func isUntried(err error) bool {
	_, ok := errors.AsType[*untriedError](err)
	return ok
}

// fileAttackList lists every attack that is a script against files.
func fileAttackList() []fileAttack {
	return slices.Concat(nameAttacks(), linkAttacks(), closedAttacks(), readOnlyAttacks(), specialFileAttacks(), mountAttacks(), amountAttacks())
}

func fileAttacks() []Attack {
	var out []Attack
	for _, a := range fileAttackList() {
		out = append(out, Attack{Name: a.name, Description: a.description, kinds: a.kinds, run: a.run})
	}
	return append(out,
		Attack{Name: "nothing-mounted-read", Description: "Read files as a tool that asked for none.", run: unmountedAttack(func(t *trial, s *script) {
			for _, n := range []string{t.guestPath("ws/inside"), "inside", "etc/passwd", "proc/self/environ", "../" + t.guestPath("ws/inside")} {
				s.steal(s.place(n), "open "+n)
			}
		})},
		Attack{Name: "nothing-mounted-write", Description: "Make files as a tool that asked for none.", run: unmountedAttack(func(t *trial, s *script) {
			s.overwrite(s.place(t.guestPath("ws/made")), oCreate, "create ws/made")
			s.mkdir(s.place(t.guestPath("ws/made"))).mustBeRefused("mkdir ws/made")
		})},
		Attack{Name: "other-mount", kinds: reactors, Description: "Reach the directory of another tool, which runs at the same time.", run: otherMount},
		Attack{Name: "symlink-exchanged", Description: "Open a file in a directory that is exchanged for a symbolic link again and again.", run: symlinkExchange},
		Attack{Name: "disk-quota", Description: "Let files grow to 1.2 GiB together.", run: diskQuota},
	)
}
