package selftest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/stockade-dev/stockade/host/jail/probe"
	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/services"
	"github.com/stockade-dev/stockade/host/tool"
)

// jailAttacks are attacks of a command. One process carries out all of them.
func jailAttacks() []Attack {
	var all []Attack
	for i, name := range probe.Attacks() {
		all = append(all, Attack{
			kinds:       native,
			Name:        "command-" + strings.NewReplacer(" ", "-", "_", "-").Replace(strings.ToLower(name)),
			Description: "Have a jailed command attack what lies outside: " + name + ".",
			run:         func(t *trial) (string, error) { return t.checkProbe(name) },
			slow:        i == 0, // it runs all others
		})
	}
	return all
}

// prober is a target that has a jail.
type prober interface {
	// probes runs all attacks on the jail the first time, and returns the same results
	// later.
	probes(context.Context) (probes, error)
}

// probes holds the results of the attacks on a jail.
type probes struct {
	results map[string]probe.Result
	done    map[string]string // by attack, the change seen outside; empty: none
	tier    policy.Tier
}

// isHarmless reports whether a tier leaves an attack open because it is harmless: a
// program without a file has no more rights than one with a file, and below tier 3
// attributes of the user's own files can be seen and changed. In tier 1 the user and a
// command share the inotify instances.
func isHarmless(name string, tier policy.Tier) bool {
	return name == "memfd exec" || tier == 1 && name == "inotify instances" || tier < policy.MaxTier && slices.Contains([]string{"chdir", "chmod", "setxattr", "stat", "utimes"}, name)
}

// checkProbe returns what stopped an attack on the jail.
func (t *trial) checkProbe(name string) (string, error) {
	target, ok := t.target.(prober)
	if !ok {
		return "", newUntried("the target runs no commands")
	}
	p, err := target.probes(t.ctx)
	if err != nil {
		return "", newUntried("%v", err)
	}
	for _, work := range probe.Work() {
		if r := p.results[work]; r.Outcome != probe.Succeeded {
			return "", newUntried("a command cannot even do this: %s: %s", work, r.Why)
		}
	}
	r := p.results[name]
	switch {
	case r.Outcome == probe.Succeeded && isHarmless(name, p.tier):
		return fmt.Sprintf("%s: left open, harmless", p.tier), nil
	case p.done[name] != "": // whatever the probe says
		return "", fmt.Errorf("it worked: %s", p.done[name])
	case r.Outcome == probe.Succeeded:
		return "", errors.New("it worked")
	case r.Outcome == probe.Impossible:
		return "this machine: " + r.Why, nil
	}
	return fmt.Sprintf("%s: %s", p.tier, r.Why), nil
}

// probes implements prober.
func (s *Sandbox) probes(ctx context.Context) (probes, error) {
	s.probeOnce.Do(func() { s.probeResult, s.probeErr = s.probe(ctx) })
	return s.probeResult, s.probeErr
}

func (s *Sandbox) probe(ctx context.Context) (p probes, err error) {
	if s.Tier == nil || s.Tier() == policy.TierNone {
		return p, errors.New("nothing confines commands here")
	}
	p.tier = s.Tier()
	dir, err := Scratch()
	if err != nil {
		return p, err
	}
	defer os.RemoveAll(dir)
	workspace, program := filepath.Join(dir, "workspace"), filepath.Join(dir, "program", "stockade")
	for _, d := range []string{workspace, filepath.Dir(program)} {
		if err := os.Mkdir(d, 0o755); err != nil {
			return p, err
		}
	}
	if err := probe.CopySelf(program); err != nil {
		return p, err
	}
	v, err := probe.NewVictim(dir, workspace, func(ctx context.Context, dir string, args ...string) error {
		_, err := s.opts.Spawn(ctx, dir, args...)
		return err
	})
	if err != nil {
		return p, err
	}
	defer v.Close()
	command := "exec '" + strings.Join(append([]string{program}, v.Args()...), "' '") + "'" // the paths contain no such quote
	ended, err := s.command(ctx, command, workspace, filepath.Dir(program))
	if err != nil {
		return p, err
	}
	if p.results, err = probe.Read(ended.Stdout); err != nil {
		return p, fmt.Errorf("%w (%.200q)", err, ended.Stderr)
	}
	p.done, err = v.Check()
	return p, err
}

// command runs a bash command, as if a person had approved it.
func (s *Sandbox) command(ctx context.Context, command, workspace, programs string) (services.CommandResult, error) {
	args, err := json.Marshal(map[string]string{"command": command})
	if err != nil {
		return services.CommandResult{}, err
	}
	entry := &tool.Entry{
		Spec:   tool.Spec{Definition: tool.Definition{Name: toolName}, Capabilities: tool.Capabilities{Exec: "command"}},
		Module: &tool.Module{Origin: tool.OriginBuiltin},
	}
	p := policy.New(policy.Options{Mounts: []policy.Mount{{Host: workspace, Write: true}, {Host: programs}}, Tier: s.Tier})
	d := p.Decide(tool.Call{ID: "selftest_jail", Tool: toolName, Args: args, Caller: tool.CallerPerson, Cwd: workspace}, entry, policy.Facts{})
	grant, err := d.Approve(policy.Answer{Allow: true}, 1)
	if err != nil {
		return services.CommandResult{}, err
	}
	return s.opts.Services.Exec.Run(ctx, grant, services.Command{Argv: []string{"bash", "-c", command}, Dir: workspace})
}
