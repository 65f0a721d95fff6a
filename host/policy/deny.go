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

// A call that would fail whatever a person answers is denied without a question, as far
// as its text shows that: a person who says yes expects that the call succeeds. The
// file system of a guest and the network connections check everything again.

// MountsRule is the rule of a denial because no mount shows a path, or lets the call change
// it.
const MountsRule = "mounts"

// denyImpossible denies a call that cannot succeed, whatever a person answers. It may also
// make the call ask, see askForHost.
func (p *Policy) denyImpossible(d *Decision, args *match.Arguments) {
	if d.effect == Deny {
		return
	}
	for _, f := range d.facts.Files {
		if p.denyFile(d, f); d.effect == Deny {
			return
		}
	}
	if p.denyNetwork(d, args); d.effect == Deny || d.entry.Capabilities.Exec == "" {
		return
	}
	if command, _ := args.Text(d.entry.Capabilities.Exec); len(command) > maxArgument {
		d.deny(byDefault("command"), fmt.Sprintf("its command has %d bytes, and the system accepts no more than %d", len(command), maxArgument),
			tool.Advise("write it to a file, and call bash with that file"))
		return
	}
	// A confined process has to see its working directory.
	if _, seen := d.access.sees(d.call.Cwd); !seen && p.tier() > TierNone {
		p.denyUnseen(d, NamedFile{Name: d.call.Cwd})
	}
}

// maxArgument limits the command of a call, in bytes; a longer one is denied. Linux allows 128
// KiB for an argument, with the zero byte at the end.
const maxArgument = 128<<10 - 1

// deny denies the call. hint names a change after which the call is allowed, or says that
// there is none; nil: to remove the rule or bound that decides.
func (d *Decision) deny(by Decider, reason string, hint tool.Hint) {
	d.setOutcome(Deny, by, reason)
	d.hint, d.also = hint, nil
}

// denyFile denies the call if it cannot reach f, a file that it names. A call of a tool that
// changes files is also denied if f is closed, or if f is read-only and the tool declares this
// argument as the file that it changes.
func (p *Policy) denyFile(d *Decision, f NamedFile) {
	in := func(dir string) bool { return paths.In(f.Name, dir) || f.Path != "" && paths.In(f.Path, dir) }
	for _, h := range p.ceiling.Hidden {
		if in(h.Value) {
			d.deny(h.From.decider("files.hidden"), fmt.Sprintf("%q is hidden from tools", f.Name), nil)
			return
		}
	}
	if slices.ContainsFunc(p.masked, in) {
		d.deny(byDefault(MountsRule), fmt.Sprintf("%q is in what no tool sees, such as our own configuration", f.Name), tool.Advise("no answer and no rule shows it to a tool"))
		return
	}
	m, seen := d.access.sees(f.Name)
	system := func(dir string) bool { return paths.In(f.Name, dir) && (m.Host == dir || !paths.In(m.Host, dir)) }
	if slices.ContainsFunc(paths.SystemDirs(), system) {
		d.deny(byDefault(MountsRule), fmt.Sprintf("%q is where the system shows the kernel and its processes", f.Name), tool.Advise("no answer and no rule shows it to a tool"))
		return
	}
	writes := d.entry.Capabilities.Files == tool.FilesWrite
	switch above := func(m Mount) bool { return paths.In(m.Host, f.Name) }; {
	case !seen && !writes && slices.ContainsFunc(d.access.mounts, above):
		// The directories above a mount can be listed.
	case !seen:
		p.denyUnseen(d, f)
	case f.Path == "":
		d.deny(byDefault(MountsRule), fmt.Sprintf("a symbolic link leads from %q out of %s, or is an absolute one", f.Name, m.Host),
			tool.Advise("name the target of the link, if tools may see it"))
	case !writes:
	case !m.Write && d.entry.Content.Argument() == f.Arg:
		_, _, from := p.ceiling.PermitsMount(Mount{Host: m.Host, Write: true})
		reason := fmt.Sprintf("%q is in a directory that tools can only read", f.Name)
		if from != (Provenance{}) {
			d.deny(from.decider("files.directories"), reason, nil)
			return
		}
		if d.access.fromAllowance {
			d.deny(byDefault(MountsRule), reason, tool.GrantHint(d.entry, "write"))
			return
		}
		d.deny(byDefault(MountsRule), reason, tool.Advise("this is because of %s; without it, tools can change the files there", m.Origin))
	default:
		s, special := paths.SpecialForChange(paths.Guest(f.Path))
		closed := special && s.Care == paths.Closed
		if !closed && f.InRepository {
			s, closed = paths.RepositorySpecial, true
		}
		if closed {
			d.deny(byDefault("closed "+s.Pattern), "it changes "+specialPath{paths.Guest(f.Path), s}.String(), tool.Advise(paths.ClosedHint))
		}
	}
}

func (p *Policy) denyUnseen(d *Decision, f NamedFile) {
	reason := fmt.Sprintf("%q is in no directory that tools are shown", f.Name)
	if d.access.fromAllowance {
		reason = fmt.Sprintf("%q is in no directory that the tool was given", f.Name)
	}
	if len(d.access.mounts) > 0 {
		reason += "; those are " + strings.Join(each(d.access.mounts, func(m Mount) string { return m.Host }), ", ")
	}
	if _, ok, from := p.ceiling.PermitsMount(Mount{Host: filepath.Dir(f.Name)}); !ok {
		d.deny(from.decider("files.directories"), reason, nil)
		return
	}
	if d.access.fromAllowance {
		d.deny(byDefault(MountsRule), reason, tool.GrantHint(d.entry, "read"))
		return
	}
	d.deny(byDefault(MountsRule), reason, tool.ActionHint(tool.HintMount, "").And(tool.Advise(" shows tools another directory")))
}

// denyNetwork denies the call if it names a URL that cannot be reached, or if no host at all
// can be reached. In the second case, a rule that allows the tool is enough, except for a
// command. If a yes can open the host, denyNetwork makes the call ask.
func (p *Policy) denyNetwork(d *Decision, args *match.Arguments) {
	if !d.reachesNetwork() {
		return
	}
	for _, o := range d.origins(args) {
		if d.opensHost != "" && o.Protocol == network.HTTPS && o.Port == 443 && o.Host.Name() == d.opensHost {
			continue
		}
		denial, denied := errors.AsType[*network.Denial](d.access.network.Decide(o.Host.String(), o.Port, o.Protocol).Err())
		if !denied {
			continue
		}
		change := tool.Advise("no rule opens it")
		if denial.AllowRule != nil {
			change = tool.Advise("add ").And(tool.ActionHint(tool.HintAllowHost, denial.AllowRule.String()))
			if other := otherProtocol(o); d.access.network.Decide(o.Host.String(), other.Port, other.Protocol).Err() == nil {
				change = tool.Advise("over %s it is allowed; for %s ", other.Protocol, o.Protocol).And(change)
			}
		} else if denial.Source == network.SourceAllowance {
			change = tool.GrantHint(d.entry, "host")
		} else if i := slices.IndexFunc(p.ceiling.Hosts, func(l List) bool { return string(l.From.Source) == denial.Source }); i >= 0 && denial.Rule == "" {
			change = p.ceiling.Hosts[i].From.decider("network.hosts").removalHint()
		} else if denial.Rule != "" {
			change = tool.Advise("take the rule %q away", denial.Rule)
		}
		d.deny(Decider{Rule: "network", Source: Source(denial.Source)}, (&network.Denial{Host: denial.Host, Port: denial.Port, Protocol: denial.Protocol, Reason: denial.Reason}).Error(), change)
		return
	}
	if d.opensHost != "" {
		p.askForHost(d)
		return
	}
	if !d.access.network.Closed() {
		return
	}
	if d.effect == Allow && !d.execNetwork { // a rule allows it, perhaps because it needs no host
		d.reason += "; no host may be reached"
		return
	}
	for _, l := range p.ceiling.Hosts {
		if len(l.Values) == 0 {
			d.deny(l.From.decider("network.hosts"), "it reaches the network, and no host may be reached", nil)
			return
		}
	}
	by, change := Decider{Rule: "network", Source: SourceSettings}, tool.ActionHint(tool.HintAllowHost, "").And(tool.Advise(" says who may be reached"))
	if d.access.fromAllowance {
		by.Source, change = SourceAllowance, tool.GrantHint(d.entry, "host")
	}
	if rules := hostRules(d.entry.Capabilities.Hosts, network.ParseRule); !d.access.fromAllowance && len(rules) > 0 {
		change = tool.Advise("add ")
		for i, r := range rules {
			if i > 0 {
				change = change.And(tool.Advise(" or "))
			}
			change = change.And(tool.ActionHint(tool.HintAllowHost, r.String()))
		}
	}
	for _, l := range p.ceiling.Hosts {
		change = change.And(tool.Advise("; the %s permits %s: %s", l.From.Source, strings.Join(l.Values, ", "), l.From.Origin))
	}
	d.deny(by, "it reaches the network, and no host may be reached", change)
}

// mayAskForHost reports whether a call of the tool may lead to a question about a host. Only a
// built-in tool that makes the requests itself may, and only if a person can be asked.
func (p *Policy) mayAskForHost(d *Decision) bool {
	c := d.entry.Capabilities
	return p.canAsk && !isThirdParty(d.entry) && !d.access.fromAllowance && c.Network == tool.NetworkHTTP && c.Exec == ""
}

// hasHostToAsk reports whether some call of the tool may lead to a question about a host.
func (p *Policy) hasHostToAsk(d *Decision) bool {
	if p.mayAskForHost(d) && len(d.entry.Capabilities.Hosts) == 0 {
		return d.access.network.CanAddHost()
	}
	return p.hostToAsk(d, d.args()) != ""
}

// hostToAsk returns a host that the call asks for, over https on port 443, and that no rule
// opens, but a yes can. Empty: there is none. If the manifest of the tool lists hosts, that
// host must be the only one, whatever the arguments are.
func (p *Policy) hostToAsk(d *Decision, args *match.Arguments) string {
	if !p.mayAskForHost(d) {
		return ""
	}
	var origins []network.Origin
	if hosts := d.entry.Capabilities.Hosts; len(hosts) == 0 {
		origins = d.origins(args)
	} else if r, err := network.ParseRule(hosts[0]); err == nil && len(hosts) == 1 && !r.Subdomains {
		if host, err := network.ParseHost(r.Name); err == nil {
			origins = []network.Origin{{Protocol: r.Protocol, Host: host, Port: r.Port}}
		}
	}
	for _, o := range origins {
		if o.Protocol != network.HTTPS || o.Port != 443 {
			continue
		}
		if _, ok := d.access.network.WithHost(o.Host.Name()); ok {
			return o.Host.Name() // further hosts are denied
		}
	}
	return ""
}

// askForHost makes the call ask for d.opensHost, even if a rule allows the tool, unless that
// rule opens the host.
func (p *Policy) askForHost(d *Decision) {
	unopened := "no rule opens " + d.opensHost
	if d.effect == Ask {
		d.reason += ", and " + unopened
	} else {
		opened := false
		p.allowing(d, func(r *Rule) { opened = opened || r.OpensHost == d.opensHost })
		if opened {
			return
		}
		d.setOutcome(Ask, byDefault("network"), fmt.Sprintf("%s; that asks even if a rule allows the tool, as %q does", unopened, d.by.Rule))
	}
	if !d.mustAsk {
		d.hint = tool.Advise("answer yes, or add ").And(tool.ActionHint(tool.HintAllowHost, d.opensHost), tool.Advise(" and "), tool.ActionHint(tool.HintAllow, d.minimalRule().String()))
	}
}

// origins returns the servers of the URLs in the arguments. An argument that is no URL is
// left out; the tool reports it.
func (d *Decision) origins(args *match.Arguments) (out []network.Origin) {
	for _, url := range urlArgs(args) {
		if !strings.Contains(url, "://") && !isThirdParty(d.entry) { // built-in tools accept a URL without a scheme
			url = "https://" + url
		}
		if o, _, err := network.ParseOrigin(url); err == nil {
			out = append(out, o)
		}
	}
	return out
}

// otherProtocol returns the server with the other protocol, https for http and http for any
// other, and with its default port if the server had the default port.
func otherProtocol(o network.Origin) network.Origin {
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

// urlArgs returns the texts, sorted, of the arguments whose names end with url, uri, urls or
// uris, in upper or lower case. It does not look into lists.
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
