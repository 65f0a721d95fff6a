package settings

import (
	"slices"

	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/tool"
)

// CheckNames looks for rules that speak of no call because of how something is
// written: in a flag or a variable that is a mistake. A file may name tools of
// modules that are in none of the catalogs, and is warned about.
func (s *Settings) CheckNames(known ...*tool.Catalog) (warned int, err error) {
	for _, l := range s.Layers {
		for _, r := range slices.Concat(l.Ceiling.Rules, l.Answers) {
			doubt := r.Doubt(policy.TierNone, known...)
			switch {
			case doubt == "":
			case r.Source == policy.SourceFlag:
				return 0, mistake("`stockade tool list` shows the tools", "--deny %s: %s", r, doubt)
			case r.Source == policy.SourceEnv:
				return 0, mistake("`stockade tool list` shows the tools", "%s: %s: %s", denyVariable, r, doubt)
			default:
				warned++
				s.warn("", "%s: the rule %q: %s", r.Origin, r, doubt)
			}
		}
	}
	return warned, nil
}

// NetRules are the user's: network.allow, network.deny, and those of --allow-net.
func (s *Settings) NetRules(allow []string) ([]policy.NetRule, error) {
	var rules []policy.NetRule
	for _, part := range []struct {
		effect policy.Effect
		texts  []string
		key    string
	}{{policy.Allow, s.Config.Network.Allow, "network.allow"}, {policy.Deny, s.Config.Network.Deny, "network.deny"}} {
		for _, text := range part.texts {
			r, err := policy.ParseNetRule(part.effect, text)
			if err != nil {
				return nil, mistake("mend "+part.key+" in "+s.Config.Source(part.key), "%v", err)
			}
			r.Source = policy.SourceSettings
			rules = append(rules, r)
		}
	}
	for _, text := range allow {
		r, err := policy.ParseNetRule(policy.Allow, text)
		if err != nil {
			return nil, mistake("for example --allow-net api.example.com or --allow-net http://127.0.0.1:8080", "--allow-net: %v", err)
		}
		r.Source = policy.SourceFlag
		rules = append(rules, r)
	}
	return rules, nil
}
