package tool

import (
	"slices"
	"strings"
)

// Missing lists the capabilities that an added tool asks for and was not given: "read",
// "write", "exec", "host" (or "host=HOST" for each host that it names), "store" and
// "secret=NAME". Hosts are listed all or not at all, because a rule for one host may cover
// another one, which this package cannot see. It is nil for any other tool.
func (e *Entry) Missing() []string {
	if e.Module.Origin != OriginAdded {
		return nil
	}
	var allowed Allowance
	if e.Allowed != nil {
		allowed = *e.Allowed
	}
	asks, has := e.Requested, e.Requested.Restrict(allowed)
	var out []string
	if asks.Files != has.Files {
		if asks.Files == FilesRead {
			out = append(out, "read")
		} else {
			out = append(out, "write")
		}
	}
	if asks.Exec != has.Exec {
		out = append(out, "exec")
	}
	if asks.Network != has.Network {
		for _, h := range asks.Hosts {
			out = append(out, "host="+h)
		}
		if len(asks.Hosts) == 0 {
			out = append(out, "host")
		}
	}
	if asks.Store != has.Store {
		out = append(out, "store")
	}
	given := SecretNames(has.Secrets)
	for _, name := range SecretNames(asks.Secrets) {
		if !slices.Contains(given, name) {
			out = append(out, "secret="+name)
		}
	}
	return out
}

// GrantHint returns the hint that a person can give things to an added tool, each in the form
// of [Entry.Missing]. Its key is the name of the module and the things, separated by blanks.
func GrantHint(e *Entry, things ...string) Hint {
	name := strings.TrimSuffix(e.Module.Prefix, "_")
	if name == "" {
		name = e.Module.Name
	}
	return ActionHint(HintGrant, strings.Join(append([]string{name}, things...), " "))
}

// MissingHint returns a hint with the result of Missing in words, and a [GrantHint]; nil if
// nothing is missing.
func (e *Entry) MissingHint() Hint {
	missing := e.Missing()
	if len(missing) == 0 {
		return nil
	}
	var words []string
	for _, m := range missing {
		kind, name, _ := strings.Cut(m, "=")
		word := map[string]string{
			"read": "files to read", "write": "files to change", "exec": "commands", "host": "hosts", "store": "a store", "secret": "the secret " + name,
		}[kind]
		if !slices.Contains(words, word) {
			words = append(words, word)
		}
	}
	return Advise("%s asks for more than it was given (%s): ", e.Name, strings.Join(words, ", ")).And(GrantHint(e, missing...))
}
