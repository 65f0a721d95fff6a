//go:build linux

// Package probe attacks the jail from inside.
//
// A [Victim] is set up outside: files, a process, ports and sockets. The jailed
// process is this program, started with the arguments of [Victim.Args]; it hands
// them to [Main], which tries to get at the victim in as many ways as there are
// names in [Attacks], and does what a command has to be able to do. [Read] reads
// what it says, and [Victim.Check] looks at what has happened to the victim: a
// probe need not be believed.
//
// A probe needs nothing in the jail but this program, and the workspace as its
// working directory. Attacks that find no target of their kind on this machine
// are [Impossible]: that is no success of the jail, and tests have to say which
// they expect.
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

// Command is the first argument of a process that probes, or that is the victim
// of probes: a program that was started with it passes the others to [Main],
// and does nothing else.
const Command = "jail-probe"

// An Outcome is how a probe ended.
type Outcome string

// The outcomes. Of what has to work, Succeeded is the good one.
const (
	Blocked    Outcome = "held"       // an error stopped it
	Succeeded  Outcome = "succeeded"  //
	Impossible Outcome = "impossible" // this machine has not what it takes
)

// A Result is what a probe says.
type Result struct {
	Probe   string  `json:"probe"`
	Outcome Outcome `json:"outcome"`
	Why     string  `json:"why,omitempty"` // the error
}

// A Spec says where the victim is. It is JSON on a command line.
type Spec struct {
	ID       string         `json:"id"`       // of this victim: part of the names that it has on the machine
	Outside  string         `json:"outside"`  // its directory, which has a file for each attack on files
	Secret   string         `json:"secret"`   // what the files contain, the environment and the memory
	Victim   int            `json:"victim"`   // its process
	Program  int            `json:"program"`  // the process that started the jail
	Address  uint64         `json:"address"`  // of the secret in the memory of the victim
	FD       int            `json:"fd"`       // a file that the victim has open
	Ports    map[string]int `json:"ports"`    // of 127.0.0.1, by the probes that try them
	Segment  int            `json:"segment"`  // its System V shared memory
	Networks string         `json:"networks"` // the network namespace outside
	Inotify  int            `json:"inotify"`  // how many instances of inotify a user may have
}

// file is the file outside for one attack.
func (s Spec) file(probe string) string { return s.Outside + "/" + probe }

// ownFile is a file of the attacker's, in the workspace.
func (s Spec) ownFile(name string) string { return "probe-" + s.ID + "-" + name }

func (s Spec) socket() string { return s.Outside + "/socket" }

// abstract is the name of a socket that is no file.
func (s Spec) abstract() string { return "@stockade-" + s.ID }

func (s Spec) sharedFile() string { return "/dev/shm/stockade-" + s.ID }

// An impossible says why a probe says nothing about the jail.
type impossible string

func (i impossible) Error() string { return string(i) }

// A probe tries one thing. It returns nil if it could.
type probe struct {
	name string
	run  func(Spec) error
}

var attacks = slices.Concat(files, processes, networks, kernel)

// Attacks are the names of what must not succeed, in their order.
func Attacks() []string { return names(attacks) }

// Work are the names of what has to succeed.
func Work() []string { return names(work) }

func names(of []probe) (out []string) {
	for _, p := range of {
		out = append(out, p.name)
	}
	return out
}

// Main does what the arguments after [Command] say and returns the code with
// which the process ends. Its output are lines of JSON, one [Result] each.
func Main(args []string) int {
	runtime.LockOSThread() // attacks that end with a thread, such as ptrace, last as long as the process
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

// Read reads what a probing process has printed. It is an error if a result is
// missing: a process that was killed half way has shown nothing.
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
