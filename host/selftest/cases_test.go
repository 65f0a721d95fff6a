package selftest

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stockade-dev/stockade/host/internal/hosttest"
	"github.com/stockade-dev/stockade/host/selftest/machine"
)

// The cases are the attacks that the threat model numbers: F on files, R on processor,
// memory and calls into the host. Attacks that a person can try, too, are in the list of
// attacks; here they run on all kinds of mount, and every result is compared with the
// expected one. The others take too long or too much for a person's machine, or look into
// this process.

// testCase is one case.
type testCase struct {
	id, title string
	attacks   string                           // names in the list of attacks, separated by spaces
	files     []fileAttack                     // run on all kinds of mount
	also      func(t *testing.T, box *Sandbox) // independent of mounts
	open      string                           // the part of the case that nothing covers yet, with the reason
}

func allCases() []testCase {
	return slices.Concat(fileCases(), cpuCases(), memoryCases(), outputCases(), stateCases(), cacheCases())
}

// TestCases runs the parts of the cases that are not in the list, and those on files;
// TestEveryAttackIsStopped runs the rest of the list. In make test the kinds of mount
// take turns.
func TestCases(t *testing.T) {
	target := realTarget(t)
	scripts := map[string]fileAttack{}
	for _, a := range fileAttackList() {
		scripts[a.name] = a
	}
	var turn mountKind
	for _, c := range allCases() {
		t.Run(c.id, func(t *testing.T) {
			files := c.files
			for name := range strings.FieldsSeq(c.attacks) {
				if a, ok := scripts[name]; ok {
					files = append(files, a)
				} else if !isListed(name) {
					t.Errorf("there is no attack %q", name)
				}
			}
			for _, a := range files {
				turn = (turn + 1) % (absent + 1)
				for kind := writable; kind <= absent; kind++ {
					if !hosttest.Whole() && kind != turn {
						continue
					}
					t.Run(a.name+"/"+kind.String(), func(t *testing.T) {
						inMemory(t)
						tryFiles(t, target, a, kind)
					})
				}
			}
			if c.also != nil {
				c.also(t, target)
			}
		})
	}
}

// inMemory puts the files of a test in memory if the system has such a place: they are
// made anew for each attack, which takes as long on a disk as the attack itself.
// TestEveryAttackIsStopped runs the list on the disk. Compiled code stays on the disk,
// too: the memory of a container may be 64 MiB.
func inMemory(t *testing.T) {
	if _, err := os.Stat("/dev/shm"); err == nil {
		t.Setenv("TMPDIR", "/dev/shm")
	}
}

// isListed reports whether an attack is in the list, or would be if the system had the
// files for it.
func isListed(name string) bool {
	return len(specialFileAttacks()) == 0 || slices.ContainsFunc(Attacks(), func(a Attack) bool { return a.Name == name })
}

// mustCarryOut carries out an attack, again if it could not be tried: a race needs two
// threads that run, which a busy machine may not grant for a moment.
func mustCarryOut(t *testing.T, target Target, a Attack, patience time.Duration) {
	t.Helper()
	r := one(t, target, a, patience)
	for range 9 {
		if r.Pass || !strings.HasPrefix(r.Detail, "could not be tried") {
			break
		}
		r = one(t, target, a, patience)
	}
	if !r.Pass {
		t.Errorf("%s: %s", a.Name, r.Detail)
	}
}

// tryFiles compares every result with the one that the attack expects.
func tryFiles(t *testing.T, target Target, a fileAttack, kind mountKind) {
	mustCarryOut(t, target, Attack{Name: a.name, Area: Files, run: func(trial *trial) (string, error) {
		_, err := trial.carryOut(a, kind, true)
		return "", err
	}}, DefaultPatience)
}

// TestTheListOfCasesIsComplete compares the list with the numbers of the threat model,
// reports open cases, and finds every attack on files in it.
func TestTheListOfCasesIsComplete(t *testing.T) {
	seen, tried := map[string]bool{}, map[string]bool{}
	for _, c := range allCases() {
		if seen[c.id] {
			t.Errorf("%s is there twice", c.id)
		}
		seen[c.id] = true
		if c.attacks == "" && c.files == nil && c.also == nil || c.title == "" {
			t.Errorf("%s has no title, or no test", c.id)
		}
		for name := range strings.FieldsSeq(c.attacks) {
			tried[name] = true
		}
		if c.open != "" {
			t.Logf("open in %s, %s: %s", c.id, c.title, c.open)
		}
	}
	for _, a := range fileAttackList() {
		if !tried[a.name] {
			t.Errorf("no case carries out %s on all kinds of mount", a.name)
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

// ofEveryKind runs a part of a case with every kind of module; in make test, with one of
// them.
func ofEveryKind(part func(*trial) error) func(*trial) error {
	return func(t *trial) error {
		kinds := machine.Kinds
		if !hosttest.Whole() {
			kinds = kinds[:1]
		}
		for _, t.kind = range kinds {
			if err := part(t); err != nil {
				return fmt.Errorf("%s: %w", t.kind, err)
			}
		}
		return nil
	}
}

// try runs a part of a case like an attack.
func try(parts ...func(*trial) error) func(*testing.T, *Sandbox) {
	return func(t *testing.T, target *Sandbox) {
		t.Helper()
		for _, run := range parts {
			mustCarryOut(t, target, Attack{Name: "case", run: func(trial *trial) (string, error) { return "", run(trial) }}, 2*time.Minute)
		}
	}
}
