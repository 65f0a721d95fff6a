package jail

import (
	"errors"
	"flag"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stockade-dev/stockade/host/jail/wire"
	"github.com/stockade-dev/stockade/host/policy"
)

var all = flag.Bool("all", false, "all tiers, and jails that go without a layer: make test-jail")

// again is an environment variable. It marks a test binary that a test has started, and names
// its case.
const again = "STOCKADE_TEST_AGAIN"

// toNobody lets a command run as nobody if this is root, with a directory for its files.
func toNobody(t *testing.T, c *exec.Cmd) {
	t.Helper()
	dir, err := os.MkdirTemp("", "jail-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { removeTree(dir) })
	if os.Getuid() == 0 {
		const nobody = 65534
		if err := os.Chown(dir, nobody, nobody); err != nil {
			t.Fatal(err)
		}
		c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	}
	c.Dir = dir
	c.Env = append(os.Environ(), "TMPDIR="+dir, "HOME="+dir)
}

// TestOtherTiersAndUsers runs the tests of this package again at other tiers and as other
// users, except for tests that do not depend on them.
func TestOtherTiersAndUsers(t *testing.T) {
	if !*all || os.Getenv(again) != "" {
		return
	}
	const same = "^(TestOtherTiersAndUsers|TestWhereNamespacesAreForbidden|TestAHelper|TestHeadTail|TestAttacks|TestMutants|TestCases|TestTheListOfCasesIsComplete|TestNoPieceOfASecretIsLeftWhereOutputIsCut)$"
	for name, flags := range map[string][]string{
		"tier 3":                        {"-tier=3", "-kills=0"},
		"tier 2, without Landlock":      {"-tier=2", "-kills=0"},
		"tier 2, without a root of its": {"-tier=2", "-no-root", "-kills=0"},
		"tier 1":                        {"-tier=1"},
		"tier 0":                        {"-tier=-1"},
	} {
		for _, nobody := range []bool{false, true} {
			user := "the same user"
			if nobody {
				user = "nobody"
			}
			if !nobody && name == "tier 3" {
				continue // that is this run
			}
			if nobody && (os.Getuid() != 0 || name != "tier 3") {
				continue // that is this user, or differs in nothing else
			}
			t.Run(name+", "+user, func(t *testing.T) {
				c := exec.CommandContext(t.Context(), "/proc/self/exe", append(flags, "-test.v", "-test.skip="+same)...)
				c.Env = os.Environ()
				if nobody {
					toNobody(t, c)
				}
				c.Env = append(c.Env, again+"=tiers")
				if out, err := c.CombinedOutput(); err != nil || strings.Contains(string(out), "--- SKIP") {
					t.Errorf("%v\n%s", err, failures(string(out)))
				}
			})
		}
	}
}

// failures returns the lines of a verbose output that are about failures.
func failures(out string) string {
	var kept []string
	for line := range strings.Lines(out) {
		if l := strings.TrimSpace(line); !strings.HasPrefix(l, "=== ") && !strings.HasPrefix(l, "--- PASS") {
			kept = append(kept, line)
		}
	}
	return strings.Join(kept, "")
}

const mayNamespaces = "/proc/sys/user/max_user_namespaces"

// TestWhereNamespacesAreForbidden runs in a user namespace that allows no further namespaces,
// from the beginning or later.
func TestWhereNamespacesAreForbidden(t *testing.T) {
	needHelper(t)
	dir := t.TempDir()
	command := "touch mark"
	mark := filepath.Join(dir, "mark")
	switch os.Getenv(again) {
	case "forbidden":
		j := New(Options{})
		defer j.Close()
		if got := j.Tiers(); got.Tier != 1 || len(got.Unavailable) != 3 || !strings.Contains(got.Unavailable[0].Why, mayNamespaces[len("/proc/sys/user/"):]) {
			t.Errorf("it is %+v", got)
		}
		*tier = 1
		if out, err := j.Run(t.Context(), grantFor(t, dir, command, policy.Limits{}), bash(dir, command)); err != nil || out.Code == nil || *out.Code != 0 {
			t.Errorf("%s, %v", describe(out), err)
		}
		if _, err := os.Stat(mark); err != nil {
			t.Error(err)
		}
	case "forbidden later":
		g := grantFor(t, dir, command, policy.Limits{})
		if err := os.WriteFile(mayNamespaces, []byte("0"), 0); err != nil {
			t.Fatal(err)
		}
		refused(t, testJail(t), g, dir, command, "max_user_namespaces")
	case "":
		for _, of := range []string{"forbidden", "forbidden later"} {
			inner := `exec "$@"`
			if of == "forbidden" {
				inner = "echo 0 > " + mayNamespaces + " && exec setpriv --ambient-caps=-all --inh-caps=-all " + `"$@"`
			}
			c := exec.CommandContext(t.Context(), "unshare", "-U", "--map-user=1000", "--map-group=1000", "--keep-caps",
				"sh", "-c", inner, "sh", "/proc/self/fd/3", "-test.v", "-test.run=^"+t.Name()+"$")
			toNobody(t, c)
			self, err := os.Open("/proc/self/exe")
			if err != nil {
				t.Fatal(err)
			}
			defer self.Close()
			c.ExtraFiles = []*os.File{self}
			c.Env = append(c.Env, again+"="+of)
			if out, err := c.CombinedOutput(); err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()+" (") {
				t.Errorf("%s: %v\n%s", of, err, out)
			}
		}
	}
}

// refused fails the test unless a command is refused for a reason and has not run, not even
// at a lower tier.
func refused(t *testing.T, j *Jail, g policy.Grant, dir, command, reason string) {
	t.Helper()
	out, err := j.Run(t.Context(), g, bash(dir, command))
	if err == nil || !strings.Contains(err.Error(), reason) {
		t.Errorf("got %s, %v; want %s", describe(out), err, reason)
	}
	if _, err := os.Stat(filepath.Join(dir, "mark")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("it ran: %v", err)
	}
}

func TestASetUpThatFailsRefuses(t *testing.T) {
	needHelper(t)
	if *tier < 0 {
		return // nothing is set up
	}
	base := t.TempDir()
	const command = "touch mark"
	withChange := func(f func(*wire.World)) *Jail { return newJail(t, Options{change: f}) }
	noImage := func() (int, error) { return -1, errors.New("there is no image") }
	for name, c := range map[string]struct {
		jail   func() *Jail
		reason string
	}{
		"something to be mounted is gone": {func() *Jail {
			return withChange(func(w *wire.World) { w.Binds = append(w.Binds, wire.Bind{Path: base + "/none"}) })
		}, base + "/none"},
		"no helper at the beginning": {func() *Jail { helperImage = noImage; return newJail(t, Options{}) }, "here is tier 0"},
		"no helper later": {func() *Jail {
			j := newJail(t, Options{})
			j.Tiers()
			helperImage = noImage
			return j
		}, "there is no image"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			g := grantFor(t, dir, command, policy.Limits{})
			testJail(t).background.Wait() // it uses the image, too
			defer func(old func() (int, error)) { helperImage = old }(helperImage)
			j := c.jail()
			defer j.Close()
			refused(t, j, g, dir, command, c.reason)
		})
	}
}

// TestWhatAShellCanBeGiven: the longest argument that Linux takes has 128 KiB with
// the zero byte at its end. The policy allows none that is longer.
func TestWhatAShellCanBeGiven(t *testing.T) {
	longest := "exit 3 #"
	longest += strings.Repeat("x", 128<<10-1-len(longest))
	ended(t, run(t, t.TempDir(), longest, policy.Limits{}), 3)
	ended(t, run(t, t.TempDir(), "-x", policy.Limits{}), 2) // an option
	dir := t.TempDir()
	const zero = "touch mark \x00"
	refused(t, testJail(t), grantFor(t, dir, zero, policy.Limits{}), dir, zero, "invalid argument")
}

// TestTheLikelyTierIsNotTried: it is a guess until the tier is needed.
func TestTheLikelyTierIsNotTried(t *testing.T) {
	for name, c := range map[string]struct{ hindered, tried bool }{
		"nothing is known to be in the way": {false, false},
		"something is":                      {true, true},
	} {
		j := newJail(t, Options{})
		tried := false
		find := j.tiers
		j.tiers = func() (Tiers, mechanism) { tried = true; return find() }
		j.bestTierBlocked = func() bool { return c.hindered }
		if likely := j.LikelyTier(); tried != c.tried || !tried && likely != j.maxTier {
			t.Errorf("%s: %s, tried: %v", name, likely, tried)
		}
		if is := j.Tiers().Tier; j.LikelyTier() != is {
			t.Errorf("%s: %s is likely where %s was found", name, j.LikelyTier(), is)
		}
	}
}
