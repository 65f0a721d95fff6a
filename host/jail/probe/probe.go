//go:build linux

// Package probe attacks the jail from inside.
//
// A [Victim] is set up outside: files, a process, ports and sockets. The jailed process is
// this program, with the arguments of [Victim.Args], which it passes to [Main]. Main tries to
// reach the victim in the ways of [Attacks], and to do the things of [Work] that a command
// needs. [Read] reads its results, and [Victim.Check] examines the victim, so that results
// need not be trusted.
//
// In the jail a probe needs only this program, and the workspace as its working directory.
// Attacks that have no target on this machine are [Impossible]. That is no success of the
// jail, and tests have to state which ones they expect.
package probe

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
)

// Command is the first argument of a process that probes, or is the victim of probes. A
// program that is started with it passes the other arguments to [Main] and does nothing else.
const Command = "jail-probe"

// Outcome is the end of a probe.
type Outcome string

// The outcomes. An attack should be Blocked, and a probe of [Work] should be Succeeded.
const (
	Blocked    Outcome = "held"       // an error stopped the probe
	Succeeded  Outcome = "succeeded"  // the probe did what it tried
	Impossible Outcome = "impossible" // the machine lacks something that the probe needs
)

// Result is the result of one probe.
type Result struct {
	Probe   string  `json:"probe"`
	Outcome Outcome `json:"outcome"`
	Why     string  `json:"why,omitempty"` // error of the probe; "": it succeeded
}

// Spec describes the victim to the probes. It is passed as JSON on a command line.
type Spec struct {
	ID       string         `json:"id"`       // id of this victim, a part of its names on the machine
	Outside  string         `json:"outside"`  // directory of the victim, with files for the attacks on files
	Secret   string         `json:"secret"`   // content of the files, and a part of the environment and the memory
	Victim   int            `json:"victim"`   // process id of the victim
	Program  int            `json:"program"`  // process id of the program that started the jail
	Address  uint64         `json:"address"`  // address of the secret in the victim's memory
	FD       int            `json:"fd"`       // descriptor of a file that the victim has open
	Ports    map[string]int `json:"ports"`    // ports of 127.0.0.1, by the names of the probes that try them
	Segment  int            `json:"segment"`  // id of the victim's System V shared memory
	Networks string         `json:"networks"` // network namespace outside of the jail
	Inotify  int            `json:"inotify"`  // number of inotify instances that a user may have
}

// file returns the path of the victim's file for one attack.
func (s Spec) file(probe string) string { return s.Outside + "/" + probe }

// ownFile returns the path of a file of the probe itself, in the workspace.
func (s Spec) ownFile(name string) string { return "probe-" + s.ID + "-" + name }

func (s Spec) socket() string { return s.Outside + "/socket" }

// abstract returns the name of the victim's abstract Unix socket, which is no file.
func (s Spec) abstract() string { return "@stockade-" + s.ID }

func (s Spec) sharedFile() string { return "/dev/shm/stockade-" + s.ID }

// impossible is the reason why a probe cannot test the jail on this machine.
type impossible string

func (i impossible) Error() string { return string(i) }

// probe is one attempt. run returns nil if the attempt succeeds.
type probe struct {
	name string
	run  func(Spec) error
}

var attacks = slices.Concat(files, processes, networks, kernel)

// Attacks returns the names of the probes that must not succeed, in their order.
func Attacks() []string { return names(attacks) }

// Work returns the names of the probes that have to succeed.
func Work() []string { return names(work) }

func names(of []probe) (out []string) {
	for _, p := range of {
		out = append(out, p.name)
	}
	return out
}

// Main carries out the arguments after [Command], and returns the exit code. An attack prints
// its results: lines of JSON, one [Result] each.
func Main(args []string) int {
	runtime.LockOSThread() // attacks that end with their thread, such as ptrace, last until the process ends
	var err error
	switch {
	case len(args) == 2 && args[0] == "attack":
		err = probeAll(args[1])
	case len(args) == 2 && args[0] == "victim":
		err = beVictim(args[1])
	case len(args) == 2 && args[0] == "inner":
		return innerMain(args[1])
	default:
		err = errors.New("these are no arguments of a probe")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func probeAll(text string) error {
	var s Spec
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		return fmt.Errorf("read what to probe: %w", err)
	}
	out := json.NewEncoder(os.Stdout)
	for _, p := range slices.Concat(work, attacks) {
		r := Result{Probe: p.name, Outcome: Succeeded}
		var not impossible
		if err := p.run(s); errors.As(err, &not) {
			r.Outcome, r.Why = Impossible, err.Error()
		} else if err != nil {
			r.Outcome, r.Why = Blocked, err.Error()
		}
		if err := out.Encode(r); err != nil {
			return err
		}
	}
	return nil
}

// Read parses the output of a probing process. The results are by name of the probe. It is an
// error if a result is missing: a process that was killed early has proved nothing.
func Read(output []byte) (map[string]Result, error) {
	results := map[string]Result{}
	known := slices.Concat(Work(), Attacks())
	for dec := json.NewDecoder(bytes.NewReader(output)); ; {
		var r Result
		if err := dec.Decode(&r); err == io.EOF {
			break
		} else if err != nil {
			return nil, fmt.Errorf("read results: %w", err)
		}
		if _, twice := results[r.Probe]; twice || !slices.Contains(known, r.Probe) ||
			!slices.Contains([]Outcome{Blocked, Succeeded, Impossible}, r.Outcome) {
			return nil, fmt.Errorf("read results: %q, %q is no result", r.Probe, r.Outcome)
		}
		results[r.Probe] = r
	}
	var missing []string
	for _, name := range known {
		if _, ok := results[name]; !ok {
			missing = append(missing, name)
		}
	}
	if missing != nil {
		return nil, fmt.Errorf("read results: nothing about %s", strings.Join(missing, ", "))
	}
	return results, nil
}
