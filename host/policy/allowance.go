package policy

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/stockade-dev/stockade/host/policy/network"
	"github.com/stockade-dev/stockade/host/policy/paths"
	"github.com/stockade-dev/stockade/host/tool"
)

// access holds the mounts and hosts that are open to a tool, if it asks for files, commands or
// the network. They come from the options or from the tool's allowance, restricted by the
// ceiling; the hosts also by the tool's manifest.
type access struct {
	fromAllowance bool // set if they come from the tool's allowance
	mounts        []Mount
	masked        []string         // paths that no tool sees, even inside a mount
	network       *network.Network // not nil
	whyNotStaged  func() string    // reason why commands with these mounts cannot be staged; empty: they can
}

func (p *Policy) newAccess(mounts []Mount, open *network.Network) *access {
	s := &access{masked: p.masked, network: p.ceiling.RestrictNetwork(open)}
	for _, m := range mounts {
		if m, ok, _ := p.ceiling.PermitsMount(m); ok {
			s.mounts = append(s.mounts, m)
		}
	}
	s.whyNotStaged = sync.OnceValue(func() string { return p.whyNotStaged(s.mounts) })
	return s
}

func (p *Policy) accessOf(e *tool.Entry) *access {
	a, own := allowance(e)
	if !own && len(e.Capabilities.Hosts) == 0 {
		return p.defaultAccess
	}
	if s, ok := p.accessOfEntry.Load(e); ok {
		return s.(*access)
	}
	var s *access
	asked := askedBy(e)
	if own {
		s = p.newAccess(mountsOf(a), p.defaultAccess.network.ForTool(hostsOf(a), asked))
		s.fromAllowance = true
	} else { // the default access, restricted to the hosts in its manifest
		all := *p.defaultAccess
		s = &all
		s.network = all.network.Restrict(network.SourceManifest, asked)
	}
	kept, _ := p.accessOfEntry.LoadOrStore(e, s)
	return kept.(*access)
}

// allowance returns the allowance of a tool. own is false for a tool with the default access.
// A tool that was added without an allowance has an empty one.
func allowance(e *tool.Entry) (a tool.Allowance, own bool) {
	if e.Allowed != nil {
		return *e.Allowed, true
	}
	return a, e.Module.Origin == tool.OriginAdded
}

// mountsOf returns the directories of an allowance as mounts. A directory in both lists can be
// written. An entry that is no clean absolute path is left out.
func mountsOf(a tool.Allowance) []Mount {
	var out []Mount
	add := func(dirs []string, write bool) {
		for _, dir := range dirs {
			if filepath.IsAbs(dir) && filepath.Clean(dir) == dir && !slices.ContainsFunc(out, func(m Mount) bool { return m.Host == dir }) {
				out = append(out, Mount{Host: dir, Write: write, Origin: "what the tool was given"})
			}
		}
	}
	add(a.Write, true)
	add(a.Read, false)
	return out
}

// hostsOf returns the hosts of an allowance. An entry that is no host is left out.
func hostsOf(a tool.Allowance) []network.Rule { return hostRules(a.Hosts, network.ParseRule) }

// askedBy returns the valid hosts that the manifest of a tool lists. Nil: it lists none, and the
// tool may reach every host that it was given.
func askedBy(e *tool.Entry) []network.Rule {
	if len(e.Capabilities.Hosts) == 0 {
		return nil
	}
	return hostRules(e.Capabilities.Hosts, network.ParseAsked)
}

func hostRules(texts []string, parse func(string) (network.Rule, error)) []network.Rule {
	out := []network.Rule{}
	for _, text := range texts {
		if r, err := parse(text); err == nil {
			out = append(out, r)
		}
	}
	return out
}

// sees returns the innermost mount that holds a host path, going by its name. It fails if no
// mount does, or the path is masked: no answer opens such a path, so nobody is asked.
func (s *access) sees(host string) (m Mount, ok bool) {
	for _, o := range s.mounts {
		if paths.In(host, o.Host) && len(o.Host) > len(m.Host) { // the innermost
			m, ok = o, true
		}
	}
	masked := func(dir string) bool { return paths.In(host, dir) }
	return m, ok && !slices.ContainsFunc(s.masked, masked)
}

// Sees returns the innermost mount of a tool that holds a host path, going by its name. It
// fails if no mount does, or the path is masked.
func (p *Policy) Sees(e *tool.Entry, host string) (Mount, bool) { return p.accessOf(e).sees(host) }

// allowanceText returns an allowance as text. Different allowances have different texts; the
// order in a list makes no difference.
func allowanceText(a tool.Allowance) string {
	var out []string
	for _, part := range []struct {
		what   string
		values []string
	}{{"read", a.Read}, {"write", a.Write}, {"host", a.Hosts}, {"secret", a.Secrets}} {
		for _, v := range slices.Sorted(slices.Values(part.values)) {
			out = append(out, fmt.Sprintf("%s=%q", part.what, v))
		}
	}
	if a.Exec {
		out = append(out, "exec")
	}
	if a.Store {
		out = append(out, "store")
	}
	if out == nil {
		return "nothing"
	}
	return strings.Join(out, " ")
}

// describeAllowance describes the allowance of a tool for a person: one text for each
// directory, host, secret and right, or one for an empty allowance. The text of a directory or
// host also tells if it is not permitted, that of a host also if the manifest does not ask for
// it. The result is nil for a tool with the default access.
func (p *Policy) describeAllowance(e *tool.Entry) []string {
	a, own := allowance(e)
	if !own {
		return nil
	}
	out := []string{}
	for _, m := range mountsOf(a) {
		word := map[bool]string{false: "to read", true: "to change"}[m.Write]
		switch kept, ok, from := p.ceiling.PermitsMount(m); {
		case !ok:
			word += ", which is not permitted: " + from.String()
		case kept.Write != m.Write:
			word += ", of which reading is permitted: " + from.String()
		}
		out = append(out, fmt.Sprintf("%q %s", m.Host, word))
	}
	left := p.accessOf(e).network
	for _, r := range hostsOf(a) {
		text := "the host " + r.String()
		if !slices.Contains(left.OpenRules(), r.String()) {
			text += ", which is not permitted, or not asked for"
		}
		out = append(out, text)
	}
	for _, name := range a.Secrets {
		out = append(out, "the secret "+name)
	}
	if a.Exec {
		out = append(out, "commands, each of which is asked about")
	}
	if a.Store {
		out = append(out, "a store, which its other tools read")
	}
	if len(out) == 0 {
		out = append(out, "nothing but computing")
	}
	return out
}
