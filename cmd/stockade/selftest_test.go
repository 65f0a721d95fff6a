package main

import (
	"context"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/selftest"
	"github.com/stockade-dev/stockade/host/selftest/machine"
)

func TestAttacksThatDidNotPass(t *testing.T) {
	results := []selftest.Result{
		{Attack: selftest.Attack{Name: "first", Area: selftest.Files, Description: "Try this."}, Pass: true,
			Mechanism: "files: <masked> (EPERM)", Detail: "3 times", Duration: 12 * time.Millisecond},
		{Attack: selftest.Attack{Name: "second-one", Area: selftest.Files, Description: "Try that."}, Detail: "it worked:\nmade \x1b[31m"},
		{Attack: selftest.Attack{Name: "stopped", Area: selftest.State, Description: "Try it twice.", Kind: machine.Native}, Pass: true, Mechanism: "state: no"},
		{Attack: selftest.Attack{Name: "stopped", Area: selftest.State, Description: "Try it twice.", Kind: machine.Plugin}, Pass: true, Mechanism: "state: no, too"},
		{Attack: selftest.Attack{Name: "theirs", Area: selftest.State, Description: "Try it.", Kind: machine.Command}, Pass: true, Mechanism: "state: no"},
		{Attack: selftest.Attack{Name: "third", Area: selftest.State, Description: "Try more.", Kind: machine.Native}, Pass: true, Mechanism: "state: no"},
		{Attack: selftest.Attack{Name: "third", Area: selftest.State, Description: "Try more.", Kind: machine.Command}, Detail: "could not be tried: no"},
	}
	for name, c := range map[string]struct {
		json, verbose  bool
		tier           policy.Tier
		left           map[selftest.Area]string
		missing        string
		stdout, stderr string
	}{
		"as a table": {
			tier: 2,
			stdout: `FILES
  first       pass  files: <masked> (EPERM)
  second-one  FAIL  it worked:\nmade <U+001B>[31m

STATE
  stopped           pass  state: no
  theirs (command)  pass  state: no
  third (native)    pass  state: no
  third (command)   FAIL  could not be tried: no

7 attacks in 1.5 s on ` + runtime.GOOS + "/" + runtime.GOARCH + `, tier 2: 5 passed, 2 failed
`,
			stderr: "stockade: 2 of 7 attacks did not pass\n",
		},
		"with what they try": {
			verbose: true, missing: "memory", left: map[selftest.Area]string{selftest.Jail: "nothing confines it"},
			stdout: `FILES
  first  pass  files: <masked> (EPERM)
    Try this. 12 ms. 3 times.
  second-one  FAIL  it worked:\nmade <U+001B>[31m
    Try that. 0 ms.
`,
			stderr: "stockade: the area jail was not attacked: nothing confines it\n" +
				"stockade: not on this system: limits on memory of the process that compiles\nstockade: 2 of 7 attacks did not pass\n",
		},
		"as JSON": {
			json: true, tier: 2,
			stdout: `[
  {
    "name": "first",
    "area": "files",
    "kind": "native",
    "tries": "Try this.",
    "result": "pass",
    "mechanism": "files: <masked> (EPERM)",
    "detail": "3 times",
    "duration_ms": 12
  },
  {
    "name": "second-one",
    "area": "files",
    "kind": "native",
    "tries": "Try that.",
    "result": "fail",
    "mechanism": "",
`,
			stderr: "stockade: 2 of 7 attacks did not pass\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			var stdout, stderr strings.Builder
			a := &app{s: &stdio{out: &stdout, err: &stderr}}
			a.flags.json, a.flags.verbose = c.json, c.verbose
			err := showAttacks(a, results, 1500*time.Millisecond, c.tier, c.left, c.missing)
			if code := reportError(a.s, context.Background(), err); code != exitError {
				t.Errorf("exit code %d", code)
			}
			if !strings.HasPrefix(stdout.String(), c.stdout) {
				t.Errorf("stdout is\n%s\nwant\n%s", &stdout, c.stdout)
			}
			if stderr.String() != c.stderr {
				t.Errorf("stderr is %q, want %q", &stderr, c.stderr)
			}
		})
	}
	var stderr strings.Builder
	a := &app{s: &stdio{out: &stderr, err: &stderr}}
	if err := showAttacks(a, results[:1], 0, 0, nil, ""); err != nil {
		t.Errorf("all passed: %v", err)
	}
}

func TestProgressOfAttacks(t *testing.T) {
	for _, tty := range []bool{true, false} {
		var stderr strings.Builder
		a := &app{s: &stdio{err: &stderr, errTTY: tty}}
		a.showProgress("1 of 2: an attack")
		a.showProgress("")
		if shown := strings.Contains(stderr.String(), "1 of ") && strings.HasSuffix(stderr.String(), "\r\x1b[K"); shown != tty || !tty && stderr.Len() > 0 {
			t.Errorf("terminal %v: %q", tty, &stderr)
		}
	}
}
