//go:build bench

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"github.com/stockade-dev/stockade/host/jail"
	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/services"
	"github.com/stockade-dev/stockade/host/stage"
	"github.com/stockade-dev/stockade/host/tool"
)

// The ways to run a command, by name; noise is plain once more.
const (
	plain   = "plain"
	noise   = "noise"
	bwrap   = "bwrap"
	cold    = "cold"
	waiting = "waiting"
	staged  = "staged"
)

var names = []string{plain, noise, bwrap, cold, waiting, staged}

// workload is a command in a workspace. cold and waiting are the targets, as multiples of
// the time of plain bash; staged is a multiple of waiting. 0: none.
type workload struct {
	Name, Command         string
	Many                  bool // in the workspace of many names
	cold, waiting, staged float64
}

// Commands of about 150 ms that start processes, or open files.
const (
	forks  = "for ((i = 0; i < 400; i++)); do (:); done"
	writes = "for ((i = 0; i < 10000; i++)); do echo $i >> file$((i % 100)); done"
)

var workloads = []workload{
	{Name: "empty", Command: ":", cold: 4.3, waiting: 1.9, staged: 1.2},
	{Name: "forks", Command: forks, waiting: 1.05},
	{Name: "writes", Command: writes, waiting: 1.05},
	{Name: "build", Command: "gcc -O1 -c unit*.c && gcc -o program unit*.o", staged: 1.4},
	{Name: "many-names-empty", Command: ":", Many: true},
	{Name: "many-names-forks", Command: forks, Many: true},
	{Name: "many-names-walk", Command: "find . -type f | wc -l", Many: true},
}

// units is the number of files that a build compiles.
const units = 6

// manyNames is the number of names in the large workspace, in directories of ten.
const manyNames = 20_000

// settleTime is the pause before time is taken.
const settleTime = 60 * time.Millisecond

// setup holds everything that the workloads share.
type setup struct {
	dir         string // parent of both workspaces
	few, many   string
	bash, bwrap string // bwrap is empty if it does not work
	jail        *jail.Jail
	area        *stage.Area // of stages
}

func setUp() (*setup, error) {
	s := new(setup)
	s.jail = jail.New(jail.Options{Areas: func(yield func(*stage.Area) bool) { yield(s.area) }})
	if t := s.jail.Tiers(); t.Tier == policy.TierNone {
		return nil, fmt.Errorf("there is no jail: %q", t.Unavailable)
	}
	var err error
	if s.bash, err = exec.LookPath("bash"); err != nil {
		return nil, err
	}
	// Not below the temporary directory, which is another one in the jail.
	if s.dir, err = os.MkdirTemp("../../../bin", "jail-"); err != nil {
		return nil, fmt.Errorf("%w: run make build", err)
	}
	if s.dir, err = filepath.Abs(s.dir); err != nil {
		return nil, err
	}
	s.few, s.many = filepath.Join(s.dir, "few"), filepath.Join(s.dir, "many")
	if err := os.Mkdir(s.few, 0o755); err != nil {
		return nil, err
	}
	if s.area = stage.NewArea(filepath.Join(s.dir, "stages"), func(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) }); s.area.Dir() == "" {
		return nil, errors.New("there is no place for stages")
	}
	for i := range units {
		text := fmt.Sprintf("#include <stdio.h>\nint f%d(int n) { return printf(\"%%d\", n) + n; }\n", i)
		if i == 0 {
			text += "int main(void) { return f0(1) - 2; }\n"
		}
		if err := os.WriteFile(filepath.Join(s.few, fmt.Sprintf("unit%d.c", i)), []byte(text), 0o644); err != nil {
			return nil, err
		}
	}
	for i := range manyNames / 10 {
		sub := filepath.Join(s.many, strconv.Itoa(i/100), strconv.Itoa(i))
		err := os.MkdirAll(sub, 0o755)
		for j := range 9 {
			err = errors.Join(err, os.WriteFile(filepath.Join(sub, "file"+strconv.Itoa(j)+".go"), nil, 0o644))
		}
		if err != nil {
			return nil, err
		}
	}
	if s.bwrap, err = exec.LookPath("bwrap"); err == nil && start(s.few, s.bubblewrap(s.few, ":")...) != nil {
		s.bwrap = ""
	} else if err != nil && s.jail.Tiers().Tier > 1 {
		return nil, fmt.Errorf("%w: install bubblewrap", err)
	}
	return s, nil
}

func (s *setup) close() error {
	return errors.Join(s.jail.Close(), s.area.Close(), os.RemoveAll(s.dir))
}

func (s *setup) bubblewrap(dir, command string) []string {
	return []string{
		s.bwrap, "--ro-bind", "/", "/", "--bind", dir, dir, "--dev", "/dev", "--chdir", dir,
		"--unshare-all", "--die-with-parent", "--new-session", s.bash, "-c", command,
	}
}

// way is a way to run one command. prepare runs before, and is not timed.
type way struct {
	name         string
	prepare, run func() error
}

func (s *setup) ways(l workload) []way {
	dir := s.few
	if l.Many {
		dir = s.many
	}
	wait := func() error { time.Sleep(settleTime); return nil }
	bash := func() error { return start(dir, s.bash, "-c", l.Command) }
	all := []way{{plain, wait, bash}, {noise, wait, bash}}
	if s.bwrap != "" {
		all = append(all, way{bwrap, wait, func() error { return start(dir, s.bubblewrap(dir, l.Command)...) }})
	}
	var grant policy.Grant
	approve := func(on bool) (err error) {
		grant, err = s.approve(dir, l.Command, on)
		return err
	}
	jailed := func() error { return s.runJailed(grant, dir, l.Command, false) }
	all = append(all,
		way{cold, func() error { return errors.Join(s.jail.Close(), approve(false), wait()) }, jailed},
		way{waiting, func() error { return errors.Join(s.warmHelper(dir, false), approve(false), wait()) }, jailed})
	if s.jail.WhyNotStaged([]policy.Mount{{Host: dir, Write: true}}) == "" {
		all = append(all, way{staged, func() error { return errors.Join(s.warmHelper(dir, true), approve(true), wait()) },
			func() error { return s.runJailed(grant, dir, l.Command, true) }})
	}
	return all
}

// start runs a program to its end.
func start(dir string, argv ...string) error {
	cmd := exec.Command(argv[0], argv[1:]...)
	var stdout, stderr bytes.Buffer
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%w: %s", err, stderr.Bytes())
	}
	return nil
}

// runJailed runs a command in the jail. With on, it runs on a stage, and its changes are
// listed and committed.
func (s *setup) runJailed(grant policy.Grant, dir, command string, on bool) (err error) {
	cmd := services.Command{Argv: []string{"bash", "-c", command}, Dir: dir}
	if on {
		if cmd.Stage, err = stage.New(&stage.Options{Dir: s.area.Dir()}); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, cmd.Stage.Drop()) }()
	}
	ended, err := s.jail.Run(context.Background(), grant, cmd)
	if err == nil && (ended.Code == nil || *ended.Code != 0) {
		err = fmt.Errorf("it failed: %s", ended.Stderr)
	}
	if err != nil || !on {
		return err
	}
	if _, err := cmd.Stage.Changes(context.Background()); err != nil {
		return err
	}
	return cmd.Stage.Commit(context.Background())
}

// warmHelper runs a command, after which a helper of the jail waits for the next.
func (s *setup) warmHelper(dir string, on bool) error {
	grant, err := s.approve(dir, ":", on)
	if err != nil {
		return err
	}
	return s.runJailed(grant, dir, ":", on)
}

// approve returns the grant of a bash call that a person has approved; with on, on a
// stage.
func (s *setup) approve(dir, command string, on bool) (policy.Grant, error) {
	args, err := json.Marshal(map[string]string{"command": command})
	if err != nil {
		return policy.Grant{}, err
	}
	entry := &tool.Entry{
		Spec:   tool.Spec{Definition: tool.Definition{Name: "bash"}, Capabilities: tool.Capabilities{Exec: "command"}},
		Module: &tool.Module{Origin: tool.OriginBuiltin},
	}
	opts := policy.Options{Mounts: []policy.Mount{{Host: dir, Write: true}}, Tier: func() policy.Tier { return s.jail.Tiers().Tier }}
	if on {
		opts.WhyNotStaged = s.jail.WhyNotStaged
	}
	d := policy.New(opts).Decide(tool.Call{ID: "c", Tool: "bash", Args: args, Cwd: dir}, entry, policy.Facts{})
	return d.Approve(policy.Answer{Allow: true}, 1)
}
