package policy

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/stockade-dev/stockade/host/policy/match"
	"github.com/stockade-dev/stockade/host/policy/network"
	"github.com/stockade-dev/stockade/host/policy/paths"
	"github.com/stockade-dev/stockade/host/tool"
)

// What no answer opens is denied before anybody is asked, as far as the words of
// a call tell it: whoever says yes expects that the call succeeds. The file
// system of a guest and the way to the network refuse the rest, and all of this
// again.

// MountsRule is the rule of a decision about a path that no mount shows.
const MountsRule = "mounts"

// bar denies a call that cannot succeed, whatever anybody answers.
func (p *Policy) bar(d *Decision, args *match.Arguments) {
	if d.effect == Deny {
		return
	}
	for _, f := range d.facts.Files {
		if p.barFile(d, f); d.effect == Deny {
			return
		}
	}
	if p.barNetwork(d, args); d.effect == Deny || d.entry.Capabilities.Exec == "" {
		return
	}
	if command, _ := args.Text(d.entry.Capabilities.Exec); len(command) > maxArgument {
		d.bar(byDefault("command"), fmt.Sprintf("its command has %d bytes, and the system takes none of more than %d", len(command), maxArgument),
			tool.Advise("write it to a file, and call bash with that file"))
		return
	}
	// What is confined sees the directory in which it starts.
	if _, seen := d.share.sees(d.call.Cwd); !seen && p.tier() > TierNone {
		p.barUnseen(d, NamedFile{Named: d.call.Cwd})
	}
}

// maxArgument is the longest argument of a program: Linux takes 128 KiB with the
// byte at the end.
const maxArgument = 128<<10 - 1

// bar denies, and says what would change that; nil is to take away what decides.
func (d *Decision) bar(by Decider, reason string, change tool.Hint) {
	d.decided(Deny, by, reason)
	d.change, d.also = change, nil
}

// barFile denies a call because of a file that it names.
func (p *Policy) barFile(d *Decision, f NamedFile) {
	in := func(dir string) bool { return paths.In(f.Named, dir) || f.Path != "" && paths.In(f.Path, dir) }
	for _, h := range p.ceiling.Hidden {
		if in(h.Value) {
			d.bar(h.From.says("files.hidden"), fmt.Sprintf("%q is hidden from tools", f.Named), nil)
			return
		}
	}
	if slices.ContainsFunc(p.masked, in) {
		d.bar(byDefault(MountsRule), fmt.Sprintf("%q is in what no tool sees, such as our own configuration", f.Named), tool.Advise("no answer and no rule shows it to a tool"))
		return
	}
	m, seen := d.share.sees(f.Named)
	system := func(dir string) bool { return paths.In(f.Named, dir) && (m.Host == dir || !paths.In(m.Host, dir)) }
	if slices.ContainsFunc(paths.SystemDirs(), system) {
		d.bar(byDefault(MountsRule), fmt.Sprintf("%q is where the system shows the kernel and its processes", f.Named), tool.Advise("no answer and no rule shows it to a tool"))
		return
	}
	writes := d.entry.Capabilities.Files == tool.FilesWrite
	switch above := func(m Mount) bool { return paths.In(m.Host, f.Named) }; {
	case !seen && !writes && slices.ContainsFunc(d.share.mounts, above):
		// What leads to a mount can be listed.
	case !seen:
		p.barUnseen(d, f)
	case f.Path == "":
		d.bar(byDefault(MountsRule), fmt.Sprintf("a symbolic link leads from %q out of %s, or is an absolute one", f.Named, m.Host),
			tool.Advise("name what it leads to, if tools are shown that"))
	case !writes:
	case !m.Write && d.entry.Content.Argument() == f.Arg:
		_, _, from := p.ceiling.PermitsMount(Mount{Host: m.Host, Write: true})
		reason := fmt.Sprintf("%q is in a directory that tools can only read", f.Named)
		if from != (From{}) {
			d.bar(from.says("files.directories"), reason, nil)
			return
		}
		if d.share.own {
			d.bar(byDefault(MountsRule), reason, tool.Grant(d.entry, "write"))
			return
		}
		d.bar(byDefault(MountsRule), reason, tool.Advise("%s says so; without that tools can change what is in it", m.Named))
	default:
		s, special := paths.Change(paths.Guest(f.Path))
		closed := special && s.Care == paths.Closed
		if !closed && f.InRepository {
			s, closed = paths.RepositorySpecial, true
		}
		if closed {
			d.bar(byDefault("closed "+s.Pattern), "it changes "+specialPath{paths.Guest(f.Path), s}.String(), tool.Advise(paths.ClosedHint))
		}
	}
}

// barUnseen denies a call because of a file that is in no mount.
func (p *Policy) barUnseen(d *Decision, f NamedFile) {
	reason := fmt.Sprintf("%q is in no directory that tools are shown", f.Named)
	if d.share.own {
		reason = fmt.Sprintf("%q is in no directory that the tool was given", f.Named)
	}
	if len(d.share.mounts) > 0 {
		reason += "; those are " + strings.Join(each(d.share.mounts, func(m Mount) string { return m.Host }), ", ")
	}
	if _, ok, from := p.ceiling.PermitsMount(Mount{Host: filepath.Dir(f.Named)}); !ok {
		d.bar(from.says("files.directories"), reason, nil)
		return
	}
	if d.share.own {
		d.bar(byDefault(MountsRule), reason, tool.Grant(d.entry, "read"))
		return
	}
	d.bar(byDefault(MountsRule), reason, tool.Do(tool.HintMount, "").And(tool.Advise(" shows tools another directory")))
}

// barNetwork denies a call because of a URL that it names, or where it would ask
// and nobody can be reached.
func (p *Policy) barNetwork(d *Decision, args *match.Arguments) {
	if !d.reachesNetwork() {
		return
	}
	for _, o := range d.origins(args) {
		if d.opens != "" && o.Protocol == network.HTTPS && o.Port == 443 && o.Host.Name() == d.opens {
			continue
		}
		denial, denied := errors.AsType[*network.Denial](d.share.network.Decide(o.Host.String(), o.Port, o.Protocol).Err())
		if !denied {
			continue
		}
		change := tool.Advise("no rule opens it")
		if denial.Grant != nil {
			change = tool.Advise("add ").And(tool.Do(tool.HintAllowHost, denial.Grant.String()))
			if other := otherwise(o); d.share.network.Decide(o.Host.String(), other.Port, other.Protocol).Err() == nil {
				change = tool.Advise("over %s it is allowed; for %s ", other.Protocol, o.Protocol).And(change)
			}
		} else if denial.Source == network.Allowance {
			change = tool.Grant(d.entry, "host")
		} else if i := slices.IndexFunc(p.ceiling.Hosts, func(l List) bool { return string(l.From.Source) == denial.Source }); i >= 0 && denial.Rule == "" {
			change = p.ceiling.Hosts[i].From.says("network.hosts").takeAway()
		} else if denial.Rule != "" {
			change = tool.Advise("take the rule %q away", denial.Rule)
		}
		d.bar(Decider{Rule: "network", Source: Source(denial.Source)}, (&network.Denial{Host: denial.Host, Port: denial.Port, Protocol: denial.Protocol, Reason: denial.Reason}).Error(), change)
		return
	}
	if d.opens != "" {
		p.asksHost(d)
		return
	}
	if !d.share.network.Closed() {
		return
	}
	if d.effect == Allow && !d.online { // whoever has allowed it may know that it needs nobody
		d.reason += "; no host may be reached"
		return
	}
	for _, l := range p.ceiling.Hosts {
		if len(l.Values) == 0 {
			d.bar(l.From.says("network.hosts"), "it reaches the network, and no host may be reached", nil)
			return
		}
	}
	by, change := Decider{Rule: "network", Source: SourceSettings}, tool.Do(tool.HintAllowHost, "").And(tool.Advise(" says who may be reached"))
	if d.share.own {
		by.Source, change = SourceAllowance, tool.Grant(d.entry, "host")
	}
	if rules := hostRules(d.entry.Capabilities.Hosts, network.ParseRule); !d.share.own && len(rules) > 0 {
		change = tool.Advise("add ")
		for i, r := range rules {
			if i > 0 {
				change = change.And(tool.Advise(" or "))
			}
			change = change.And(tool.Do(tool.HintAllowHost, r.String()))
		}
	}
	for _, l := range p.ceiling.Hosts {
		change = change.And(tool.Advise("; the %s permits %s: %s", l.From.Source, strings.Join(l.Values, ", "), l.From.Origin))
	}
	d.bar(by, "it reaches the network, and no host may be reached", change)
}

// opener reports whether calls of a tool may ask for a host that no rule opens: of those
// that are built in, for what they do themselves.
func (p *Policy) opener(d *Decision) bool {
	c := d.entry.Capabilities
	return p.askHosts && !foreign(d.entry) && !d.share.own && c.Network == tool.NetworkHTTP && c.Exec == ""
}

// mayOpen reports whether some call of a tool can ask for a host.
func (p *Policy) mayOpen(d *Decision) bool {
	if p.opener(d) && len(d.entry.Capabilities.Hosts) == 0 {
		return d.share.network.Openable()
	}
	return p.toOpen(d, d.args()) != ""
}

// toOpen is the host that the call would reach, that no rule opens and that a yes can
// open; empty if there is none. A tool that names whom it reaches has to name one host.
func (p *Policy) toOpen(d *Decision, args *match.Arguments) string {
	if !p.opener(d) {
		return ""
	}
	var origins []network.Origin
	if hosts := d.entry.Capabilities.Hosts; len(hosts) == 0 {
		origins = d.origins(args)
	} else if r, err := network.ParseRule(hosts[0]); err == nil && len(hosts) == 1 && !r.Below {
		if host, err := network.ParseHost(r.Name); err == nil {
			origins = []network.Origin{{Protocol: r.Protocol, Host: host, Port: r.Port}}
		}
	}
	for _, o := range origins {
		if o.Protocol != network.HTTPS || o.Port != 443 {
			continue
		}
		if _, ok := d.share.network.Opened(o.Host.Name()); ok {
			return o.Host.Name() // another one is denied
		}
	}
	return ""
}

// asksHost asks about the host that the call would open, also where a rule allows the
// tool, but for one that opens it.
func (p *Policy) asksHost(d *Decision) {
	lacks := "no rule opens " + d.opens
	if d.effect == Ask {
		d.reason += ", and " + lacks
	} else {
		opened := false
		p.allowing(d, func(r *Rule) { opened = opened || r.Opens == d.opens })
		if opened {
			return
		}
		d.decided(Ask, byDefault("network"), fmt.Sprintf("%s; that asks even where a rule allows the tool, and %q does", lacks, d.by.Rule))
	}
	if !d.floor {
		d.change = tool.Advise("answer yes, or add ").And(tool.Do(tool.HintAllowHost, d.opens), tool.Advise(" and "), tool.Do(tool.HintAllow, d.answer().String()))
	}
}

// origins are the servers of the URLs that the arguments name. What is no URL the tool
// will say.
func (d *Decision) origins(args *match.Arguments) (out []network.Origin) {
	for _, url := range urlArgs(args) {
		if !strings.Contains(url, "://") && !foreign(d.entry) { // which ours take so
			url = "https://" + url
		}
		if o, _, err := network.ParseOrigin(url); err == nil {
			out = append(out, o)
		}
	}
	return out
}

// otherwise is the same server over the other protocol.
func otherwise(o network.Origin) network.Origin {
	switch o.Protocol {
	case network.HTTP:
		o.Protocol = network.HTTPS
		if o.Port == 80 {
			o.Port = 443
		}
	default:
		o.Protocol = network.HTTP
		if o.Port == 443 {
			o.Port = 80
		}
	}
	return o
}

// urlArgs are the texts of arguments that are named like a URL.
func urlArgs(args *match.Arguments) []string {
	var out []string
	for name, raw := range args.Object() {
		end := strings.TrimSuffix(strings.ToLower(name), "s")
		if !strings.HasSuffix(end, "url") && !strings.HasSuffix(end, "uri") {
			continue
		}
		if s, ok := match.Text(raw); ok {
			out = append(out, s)
		}
	}
	slices.Sort(out)
	return out
}
