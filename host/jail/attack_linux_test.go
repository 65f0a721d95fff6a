package jail

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stockade-dev/stockade/host/jail/probe"
	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/services"
	"github.com/stockade-dev/stockade/host/tool"
)

const nobody = 65534

// asNobody runs the test again as nobody if this is root.
func asNobody(t *testing.T) {
	t.Helper()
	if os.Getuid() != 0 {
		return
	}
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe", "-test.run=^"+t.Name()+"$", "-test.v", fmt.Sprintf("-all=%v", *all))
	toNobody(t, cmd)
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()+" (") {
		t.Errorf("as nobody: %v\n%s", err, out)
	}
}

// shortDir returns a directory that everybody may enter, with a name that is short enough for
// sockets in it.
func shortDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "j-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { removeTree(dir) })
	if err := os.Chmod(dir, 0o711); err != nil {
		t.Fatal(err)
	}
	return dir
}

// jailOf returns a jail of one kind.
func jailOf(t testing.TB, k mechanism) *Jail {
	t.Helper()
	if err := tryMechanism(k); err != nil {
		t.Fatalf("tier %d (%s): %v", k.tier, k.description, err)
	}
	j := New(Options{})
	j.tiers = func() (Tiers, mechanism) { return Tiers{Tier: k.tier}, k }
	t.Cleanup(func() { _ = j.Close() })
	return j
}

// victim is the target of the probes, with the arguments of the probing program.
type victim struct {
	*probe.Victim
	workspace string
	programs  string // the directory of the program, which is this one
}

// newVictim sets up a victim. It and the workspace belong to a user.
func newVictim(t testing.TB, uid int) victim {
	t.Helper()
	dir := shortDir(t)
	v := victim{workspace: filepath.Join(dir, "workspace"), programs: filepath.Join(dir, "programs")}
	for _, d := range []string{v.workspace, v.programs} {
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	err := errors.Join(probe.CopySelf(filepath.Join(v.programs, "probe")), os.Chown(v.workspace, uid, uid))
	if err != nil {
		t.Fatal(err)
	}
	v.Victim, err = probe.NewVictim(dir, v.workspace, func(ctx context.Context, dir string, args ...string) error {
		err := filepath.WalkDir(dir, func(name string, _ fs.DirEntry, err error) error { return errors.Join(err, os.Lchown(name, uid, uid)) })
		cmd := exec.CommandContext(ctx, "/proc/self/exe", args...)
		cmd.Dir, cmd.Env = dir, []string{}
		if uid != os.Getuid() {
			cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(uid)}}
		}
		if err := errors.Join(err, cmd.Start()); err != nil {
			return err
		}
		_ = cmd.Wait()
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(v.Close)
	return v
}

// command returns the command that probes.
func (v victim) command() string {
	words := append([]string{filepath.Join(v.programs, "probe")}, v.Args()...)
	return "exec '" + strings.Join(words, "' '") + "'" // their JSON has no such quote
}

// mounts returns the mounts of the command, in the policy of a user who has a secret.
func (v victim) mounts() policy.Options {
	return policy.Options{
		Mounts: []policy.Mount{{Host: v.workspace, Write: true}, {Host: v.programs}},
		Masked: []string{filepath.Join(v.workspace, "masked")},
	}
}

// attacked runs all probes in a jail, and returns their results. Results that probes cannot
// know are compared with the state of the victim.
func attacked(t *testing.T, j *Jail, v victim) map[string]probe.Result {
	t.Helper()
	out := runIn(t, j, v.command(), v.mounts())
	ended(t, out, 0)
	results, err := probe.Read(out.Stdout)
	if err != nil {
		t.Fatalf("%v: %s", err, describe(out))
	}
	done, err := v.Check()
	if err != nil {
		t.Fatal(err)
	}
	for name, what := range done {
		if results[name].Outcome != probe.Succeeded {
			t.Errorf("%s: it says %v, but %s", name, results[name], what)
		}
	}
	return results
}

// runIn approves a command in the first of the mounts, and runs it.
func runIn(t testing.TB, j *Jail, command string, opts policy.Options) services.CommandResult {
	t.Helper()
	args, err := json.Marshal(map[string]string{"command": command})
	if err != nil {
		t.Fatal(err)
	}
	entry := &tool.Entry{
		Spec:   tool.Spec{Definition: tool.Definition{Name: "bash"}, Capabilities: tool.Capabilities{Exec: "command"}},
		Module: &tool.Module{Origin: tool.OriginBuiltin},
	}
	dir := opts.Mounts[0].Host
	opts.Tier = func() policy.Tier { return j.Tiers().Tier }
	opts.Rules = append(opts.Rules, historyRules(opts)...)
	g, err := policy.New(opts).Decide(tool.Call{ID: "c", Tool: "bash", Args: args, Cwd: dir}, entry, policy.Facts{}).Approve(policy.Answer{Allow: true}, 1)
	if err != nil {
		t.Fatal(err)
	}
	out, err := j.Run(t.Context(), g, bash(dir, command))
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// outcomes returns the names of the attacks with an outcome, in alphabetical order.
func outcomes(results map[string]probe.Result, of probe.Outcome) []string {
	all := probe.Attacks()
	slices.Sort(all)
	return slices.DeleteFunc(all, func(name string) bool { return results[name].Outcome != of })
}

// succeed returns the attacks that succeed in a kind of jail. In a root of the command's own
// the victim is out of reach. Elsewhere Landlock does not cover calls that read and change
// the attributes of a file: see Tiers.
func succeed(k mechanism) []string {
	harmless := []string{"memfd exec"}
	if !k.newRoot {
		harmless = append(harmless, "chdir", "chmod", "setxattr", "stat", "utimes")
	}
	if !k.namespaces {
		harmless = append(harmless, "inotify instances") // they are limited by user namespace
	}
	slices.Sort(harmless)
	return harmless
}

// TestAttacks runs all probes in all kinds of jail: as nobody, as root in a workspace of
// root's, and as root in a workspace of another user, who also owns the victim. Without -all
// it tests the best kind only.
func TestAttacks(t *testing.T) {
	needHelper(t)
	asNobody(t)
	for _, k := range mechanisms {
		if !*all && k.tier != mechanisms[0].tier {
			continue
		}
		owners := []int{os.Getuid()}
		if os.Getuid() == 0 {
			owners = append(owners, nobody)
		}
		for _, uid := range owners {
			t.Run(fmt.Sprintf("tier %d with %s, workspace of %d", k.tier, k.description, uid), func(t *testing.T) {
				results := attacked(t, jailOf(t, k), newVictim(t, uid))
				if got, want := outcomes(results, probe.Succeeded), succeed(k); !slices.Equal(got, want) {
					t.Errorf("%q succeed, want %q", got, want)
				}
				var impossible []string
				if uid == 0 {
					impossible = []string{"set-uid program"} // it is root already
				}
				if got := outcomes(results, probe.Impossible); !slices.Equal(got, impossible) {
					t.Errorf("%q say nothing, want %q", got, impossible)
				}
				for _, name := range probe.Work() {
					if results[name].Outcome != probe.Succeeded {
						t.Errorf("%+v", results[name])
					}
				}
			})
		}
	}
}
