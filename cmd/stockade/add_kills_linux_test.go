package main

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

var addKills = flag.Int("add-kills", 6, "how many programs are killed while they add, update or remove a module")

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
	if r := records[0]; r.Name != "weather" || r.OffReason != "" {
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
			// The program changes files at the end of its run: half of the kills fall
			// there.
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
			if f.Unneeded {
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
