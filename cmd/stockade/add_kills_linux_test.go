package main

import (
	"crypto/sha256"
	"encoding/hex"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stockade-dev/stockade/host/registry/store"
	"github.com/stockade-dev/stockade/host/wasm/wasmtest"
)

var addKills = flag.Int("add-kills", 15, "how many programs are killed while they add, update or remove a module")

// person is somebody with a home of their own, who runs the program.
type person struct {
	t         testing.TB
	home, dir string
	env       []string
}

func newPerson(t testing.TB) *person {
	p := &person{t: t, home: t.TempDir(), dir: t.TempDir()}
	p.env = append(os.Environ(), "HOME="+p.home, "TEST_ACCOUNT_HOME="+p.home, "TEST_ADMINISTRATOR="+filepath.Join(p.home, "etc"), "NO_COLOR=1",
		"XDG_CONFIG_HOME=", "XDG_DATA_HOME=", "XDG_STATE_HOME=", "XDG_CACHE_HOME=")
	return p
}

func (p *person) command(args ...string) *exec.Cmd {
	cmd := exec.CommandContext(p.t.Context(), "stockade", args...)
	cmd.Dir, cmd.Env = p.dir, p.env
	return cmd
}

// runs runs the program, which has to succeed.
func (p *person) runs(args ...string) string {
	p.t.Helper()
	var message strings.Builder
	cmd := p.command(args...)
	cmd.Stderr = &message
	out, err := cmd.Output()
	if err != nil {
		p.t.Fatalf("stockade %s: %v\n%s%s", strings.Join(args, " "), err, out, message.String())
	}
	return string(out)
}

// modules is where the program keeps the modules of a person without settings.
func (p *person) modules() *store.Store {
	return store.Open(filepath.Join(p.home, ".local", "share", "stockade", "modules"))
}

// put writes a module whose one tool, now, returns its arguments, and returns its
// SHA-256.
func (p *person) put(name, version string) string {
	p.t.Helper()
	code := wasmtest.Tool(wasmtest.ToolOptions{Call: wasmtest.EchoArgs(), Manifest: fmt.Sprintf(
		`{"abi":"stockade:tool@0.1.0","name":%q,"version":%q,"tools":[{"name":"now","description":"It was made for a test.","parameters":{"type":"object"}}]}`, name, version)})
	if err := os.WriteFile(filepath.Join(p.dir, name+".wasm"), code, 0o600); err != nil {
		p.t.Fatal(err)
	}
	sum := sha256.Sum256(code)
	return hex.EncodeToString(sum[:])
}

// has is the version of the one module that was added; empty: there is none.
func (p *person) has() string {
	p.t.Helper()
	records, err := p.modules().Records()
	if err != nil || len(records) > 1 {
		p.t.Fatalf("%v, %v", records, err)
	}
	if len(records) == 0 {
		return ""
	}
	if r := records[0]; r.Name != "weather" || r.Off != "" {
		p.t.Fatalf("%+v", r)
	}
	return records[0].Manifest.Version
}

// TestKilledProgramsLeaveTheOldStateOrTheNewOne kills the program with SIGKILL at
// random moments of all its time, while it adds, updates or removes a module that
// nothing has compiled before. What is there then is the old state or the new one,
// it is whole, and its tool can be called.
func TestKilledProgramsLeaveTheOldStateOrTheNewOne(t *testing.T) {
	p := newPerson(t)
	took := map[string]time.Duration{} // of a run that was not killed
	old, updated, spare := map[string]int{}, map[string]int{}, 0
	kills, killing := 0, false
	for n := 1; kills < *addKills; n++ {
		if n > 20**addKills+100 {
			t.Fatalf("only %d programs were killed", kills)
		}
		what := []string{"add", "update", "update", "remove"}[n%4]
		switch was := p.has(); {
		case what == "add" && was != "":
			p.runs("tool", "remove", "weather")
		case what != "add" && was == "":
			p.runs("tool", "add", "--yes", "--sha256", p.put("weather", fmt.Sprintf("1.0.%d", n)), "weather.wasm")
		}
		was, next := p.has(), fmt.Sprintf("1.1.%d", n)
		sum := p.put("weather", next)
		args := []string{"tool", what, "--yes", "--sha256", sum, map[string]string{"add": "weather.wasm", "update": "weather"}[what]}
		if what == "remove" {
			args, next = []string{"tool", "remove", "weather"}, ""
		}
		killing = killing || len(took) == 3
		cmd := p.command(args...)
		var message strings.Builder
		cmd.Stderr = &message
		begin := time.Now()
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if killing {
			// What it changes it changes at its end: half of them are killed there.
			after := rand.N(took[what])
			if rand.IntN(2) == 0 {
				after = took[what]*2/3 + after/2
			}
			time.AfterFunc(after, func() { _ = cmd.Process.Kill() })
		}
		err := cmd.Wait()
		killed := cmd.ProcessState.ExitCode() == -1
		now := p.has()
		switch {
		case killed:
			kills++
		case err != nil:
			t.Fatalf("%s: %v: %s", what, err, message.String())
		default:
			took[what] = time.Since(begin)
		}
		switch {
		case now == next:
			updated[what]++
		case now == was && killed:
			old[what]++
		default:
			t.Fatalf("%s, killed: %v: there is %q, neither the old %q nor the new %q", what, killed, now, was, next)
		}
		for _, f := range p.modules().Verify() {
			if f.Spare {
				spare++
			}
		}
		if out := p.runs("tool", "verify"); !strings.Contains(out, "as they were approved") {
			t.Fatalf("%s, killed: %v: %s", what, killed, out)
		}
		if now != "" {
			if out := p.runs("call", "weather_now", `{"place":"here"}`); !strings.Contains(out, `"here"`) {
				t.Fatalf("%s, killed: %v: %s", what, killed, out)
			}
		}
	}
	t.Logf("%d were killed; the old state after %v, the new one after %v; %d files that nothing names", kills, old, updated, spare)

	// Whatever was left behind goes with the next one that is removed.
	if p.has() == "" {
		p.runs("tool", "add", "--yes", "--sha256", p.put("weather", "2.0.0"), "weather.wasm")
	}
	p.runs("tool", "remove", "weather")
	if found := p.modules().Verify(); len(found) > 0 {
		t.Errorf("left in the store: %v", found)
	}
}
