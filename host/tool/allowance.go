package tool

import "slices"

// Allowance holds the permissions that a person gives to an added tool. The zero value permits
// computing only. The layers of the policy narrow it further.
type Allowance struct {
	Read    []string `json:"read,omitempty"`    // absolute and clean directories
	Write   []string `json:"write,omitempty"`   // directories like those of Read; the tool can also read them
	Hosts   []string `json:"hosts,omitempty"`   // in the form of network.ParseRule
	Secrets []string `json:"secrets,omitempty"` // names of secrets
	Exec    bool     `json:"exec,omitempty"`    // run commands, each after the usual question
	Store   bool     `json:"store,omitempty"`   // keep data beyond a call, shared within its module
}

// Equal reports whether two allowances are the same, with their lists in the same order.
func (a Allowance) Equal(b Allowance) bool {
	return a.Exec == b.Exec && a.Store == b.Store && slices.Equal(a.Read, b.Read) && slices.Equal(a.Write, b.Write) && slices.Equal(a.Hosts, b.Hosts) && slices.Equal(a.Secrets, b.Secrets)
}

// IsZero reports whether the allowance permits computing only.
func (a Allowance) IsZero() bool { return a.Equal(Allowance{}) }

// With returns the union of two allowances, with sorted lists.
func (a Allowance) With(b Allowance) Allowance {
	both := func(a, b []string) []string {
		out := slices.Concat(a, b)
		slices.Sort(out)
		return slices.Compact(out)
	}
	return Allowance{
		Read: both(a.Read, b.Read), Write: both(a.Write, b.Write), Hosts: both(a.Hosts, b.Hosts),
		Secrets: both(a.Secrets, b.Secrets), Exec: a.Exec || b.Exec, Store: a.Store || b.Store,
	}
}

// Without returns the allowance without the permissions that b has, too. It compares the
// entries of lists as text.
func (a Allowance) Without(b Allowance) Allowance {
	left := func(a, b []string) []string {
		return slices.DeleteFunc(slices.Clone(a), func(s string) bool { return slices.Contains(b, s) })
	}
	return Allowance{
		Read: left(a.Read, b.Read), Write: left(a.Write, b.Write), Hosts: left(a.Hosts, b.Hosts),
		Secrets: left(a.Secrets, b.Secrets), Exec: a.Exec && !b.Exec, Store: a.Store && !b.Store,
	}
}

// Restrict returns the part of the capabilities that an allowance permits. It keeps all hosts
// if the allowance has any: the policy compares them.
func (c Capabilities) Restrict(a Allowance) Capabilities {
	switch {
	case len(a.Write) > 0:
	case len(a.Read) > 0 && c.Files != FilesNone:
		c.Files = FilesRead
	default:
		c.Files = FilesNone
	}
	if !a.Exec {
		c.Exec, c.ExecTimeout, c.ExecNetwork = "", "", ""
	}
	if len(a.Hosts) == 0 {
		c.Network, c.Hosts, c.HostsOf = NetworkNone, nil, nil
	}
	c.Store = c.Store && a.Store
	c.Secrets = slices.DeleteFunc(slices.Clone(c.Secrets), func(s Secret) bool { return !slices.Contains(a.Secrets, s.Name) })
	return c
}
