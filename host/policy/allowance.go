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

// access is what of the world is open to a tool, should it ask for files, commands or
// the network: what the options open, or what the tool was given, as far as the
// ceiling permits.
type access struct {
	fromAllowance bool // it was given to this tool alone
	mounts        []Mount
	masked        []string
	network       *network.Network // not nil
	whyNotStaged  func() string    // why commands with these mounts cannot be staged
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

// accessOf is what is open to a tool.
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
	} else { // of what tools may reach, what it names
		all := *p.defaultAccess
		s = &all
		s.network = all.network.Restrict(network.SourceManifest, asked)
	}
	kept, _ := p.accessOfEntry.LoadOrStore(e, s)
	return kept.(*access)
}

// allowance is what a tool was given; own is false for one that has whatever tools
// are shown. A tool that was added, and of which nothing is said, was given nothing.
func allowance(e *tool.Entry) (a tool.Allowance, own bool) {
	if e.Allowed != nil {
		return *e.Allowed, true
	}
	return a, e.Module.Origin == tool.OriginAdded
}

// mountsOf are the directories of an allowance. One that is given for both reading
// and writing was given twice, and can be written. What is no clean absolute path is
// left out.
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

// hostsOf are the hosts of an allowance. What is no host is left out.
func hostsOf(a tool.Allowance) []network.Rule { return hostRules(a.Hosts, network.ParseRule) }

// askedBy are the hosts that a tool wants; nil: any that it is given.
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

// sees returns the mount in which a path of the host is, by its name, unless it
// is in what is masked there: nobody is asked about what no answer opens.
func (s *access) sees(host string) (m Mount, ok bool) {
	for _, o := range s.mounts {
		if paths.In(host, o.Host) && len(o.Host) > len(m.Host) { // the innermost
			m, ok = o, true
		}
	}
	masked := func(dir string) bool { return paths.In(host, dir) }
	return m, ok && !slices.ContainsFunc(s.masked, masked)
}

// Sees returns the mount of a tool in which a path of the host is, by its name,
// unless it is in what is masked there.
func (p *Policy) Sees(e *tool.Entry, host string) (Mount, bool) { return p.accessOf(e).sees(host) }

// allowanceText is an allowance in words that change when anything does.
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

// describeAllowance says for a person what a tool was given, each thing with what a layer leaves
// of it.
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
