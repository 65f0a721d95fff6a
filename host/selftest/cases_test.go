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

// The cases are the attacks that the threat model numbers: F on files, R on
// processor, memory and calls into the host. Those that a person can try, too,
// are in the list of attacks; here they are carried out on all kinds of mount,
// and every answer is held against the one that the script wants. The others
// take too long or too much for a person's machine, or look into this process.

// testCase is one case.
type testCase struct {
	id, title string
	attacks   string                           // of the list, by their names
	files     []fileAttack                     // on all kinds of mount, too
	also      func(t *testing.T, box *Sandbox) // has nothing to do with mounts
	open      string                           // what of the case nothing covers yet, and why
}

func allCases() []testCase {
	return slices.Concat(fileCases(), cpuCases(), memoryCases(), outputCases(), stateCases(), cacheCases())
}

// TestCases carries out what of the cases is not in the list, and what is on
// files; the rest of the list is that of TestEveryAttackIsStopped. In make test the kinds of
// mount take turns.
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

// inMemory has the files of a test in memory where the system has a place for that: they
// are made anew for each attack, which takes a disk as long as the attack itself. On the
// disk, the list is carried out by TestEveryAttackIsStopped. Compiled code stays there, too:
// the memory of a container may be 64 MiB.
func inMemory(t *testing.T) {
	if _, err := os.Stat("/dev/shm"); err == nil {
		t.Setenv("TMPDIR", "/dev/shm")
	}
}

// isListed reports whether an attack is in the list, or would be where the system
// has the files for it.
func isListed(name string) bool {
	return len(specialFileAttacks()) == 0 || slices.ContainsFunc(Attacks(), func(a Attack) bool { return a.Name == name })
}

// mustCarryOut carries an attack out, again where it could not be tried: a race needs two
// that run, which a busy machine may not grant for a moment.
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

// tryFiles holds every answer against the one that the attack wants.
func tryFiles(t *testing.T, target Target, a fileAttack, kind mountKind) {
	mustCarryOut(t, target, Attack{Name: a.name, Area: Files, run: func(trial *trial) (string, error) {
		_, err := trial.carryOut(a, kind, true)
		return "", err
	}}, DefaultPatience)
}

// TestTheListOfCasesIsComplete holds the list against the numbers of the
// threat model, says what is open, and finds every attack on files in it.
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

// ofEveryKind is a part of a case that is tried with every kind of module; in make test,
// with one of them.
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

// try is a part of a case that is carried out like an attack.
func try(parts ...func(*trial) error) func(*testing.T, *Sandbox) {
	return func(t *testing.T, target *Sandbox) {
		t.Helper()
		for _, run := range parts {
			mustCarryOut(t, target, Attack{Name: "case", run: func(trial *trial) (string, error) { return "", run(trial) }}, 2*time.Minute)
		}
	}
}
