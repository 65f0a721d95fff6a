package main

import (
	"fmt"
	"strings"

	"github.com/stockade-dev/stockade/cmd/stockade/internal/terminal"
	"github.com/stockade-dev/stockade/host/jail"
	"github.com/stockade-dev/stockade/host/policy"
)

// tierEffects describes for each tier of confinement what a command can see and reach.
var tierEffects = [policy.MaxTier + 1][]string{
	0: {
		"nothing confines a command: it reads, changes and sends whatever you can",
		"so it is refused, unless you write bash.min_tier = 0 in your own agent.toml",
	},
	1: {
		"it opens what is mounted and the system's programs, nothing else of yours",
		"it sees which other files and processes there are, and can change the times\n  and modes of your other files",
		"what looks like a secret in a mount is not hidden from it",
		"it has no network",
	},
	2: {
		"it opens what is mounted and the system's programs, nothing else of yours",
		"what looks like a secret there cannot be opened, unless you show it",
		"it has no network but the hosts that you allow, for a call that asks for them",
	},
	3: {
		"it sees what is mounted and the system's programs, nothing else of yours",
		"what looks like a secret there cannot be opened, unless you show it",
		"it has no network but the hosts that you allow, for a call that asks for them",
	},
}

// remedies maps the cause that prevents a better tier to a way to reach it.
var remedies = map[jail.Cause]string{
	jail.CausePlatform:      "bash.min_tier = 0 in your own agent.toml runs commands unconfined",
	jail.CauseHelper:        "build it with `make build`",
	jail.CauseLandlock:      "Linux 6.12 has all of it; /sys/kernel/security/lsm shows whether it is on,\nand lsm=landlock,... on the command line of the kernel switches it on",
	jail.CauseMaxNamespaces: "sudo sysctl user.max_user_namespaces=10000",
	jail.CauseUserNamespace: "sudo sysctl kernel.unprivileged_userns_clone=1",
	jail.CauseAppArmor:      "a profile of AppArmor that lets stockade use userns; or, for all programs:\nsudo sysctl kernel.apparmor_restrict_unprivileged_userns=0",
	jail.CauseSeccomp:       "a filter of system calls limits this program, as in a container: make it\npermit user namespaces and mounts (docker run --security-opt seccomp=FILE)",
}

// changesText describes what happens to the file changes of a command; empty: the call is
// denied.
func changesText(x policy.Explanation) string {
	switch {
	case x.Changes == "": // the call is denied
		return ""
	case x.Changes == policy.ChangesNone:
		return "none: it can change no file"
	case x.Changes == policy.ChangesDirect:
		return "direct: it changes files while it runs" + prefixIfSet(", because ", x.AskFirstReason)
	case x.AskFirstReason != "":
		return "staged: made after it has run; you are asked before it runs, because " + x.AskFirstReason
	}
	return "staged: made after it has run, when they are known"
}

// showJail prints the tier of a tool's commands on this machine, ways to a better tier, and
// what happens to their file changes.
func showJail(s *stdio, t jail.Tiers, changes policy.Explanation) error {
	var b strings.Builder
	has := ""
	if t.Mechanism != "" {
		has = " (" + t.Mechanism + ")"
	}
	fmt.Fprintf(&b, "\nA command runs in jail %s of %d here%s:\n", t.Tier, policy.MaxTier, has)
	for _, line := range tierEffects[t.Tier] {
		fmt.Fprintf(&b, "- %s\n", line)
	}
	if t.Tier > policy.TierNone {
		b.WriteString("- all processes that it has started end with it\n")
	}
	switch {
	case t.Tier == policy.TierNone:
	case changes.AskFirstReason != "":
		fmt.Fprintf(&b, "- you are asked about it before it runs: %s\n", terminal.Line(changes.AskFirstReason))
	case changes.Changes == policy.ChangesStaged:
		b.WriteString("- its changes are kept apart, and made after you have seen them\n")
	case changes.Changes == policy.ChangesNone:
		b.WriteString("- it can change no file\n")
	}
	shown := map[jail.Cause]bool{"": true}
	for _, l := range t.Unavailable {
		what := "no tier above"
		if l.Tier > policy.TierNone {
			what = fmt.Sprintf("not %s (%s)", l.Tier, l.Mechanism)
		}
		fmt.Fprintf(&b, "\n%s:\n%s\n", what, terminal.Line(l.Why))
		if !shown[l.Cause] {
			fmt.Fprintf(&b, "hint: %s\n", remedies[l.Cause])
		}
		shown[l.Cause] = true
	}
	_, err := fmt.Fprint(s.out, b.String())
	return err
}
