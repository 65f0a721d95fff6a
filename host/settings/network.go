package settings

import "github.com/stockade-dev/stockade/host/policy"

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
