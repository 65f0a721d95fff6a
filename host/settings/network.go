package settings

import "github.com/stockade-dev/stockade/host/policy/network"

// NetRules are the user's: network.allow, network.deny, and those of --allow-net.
func (s *Settings) NetRules(allow []string) ([]network.Rule, error) {
	var rules []network.Rule
	for _, part := range []struct {
		parse func(string) (network.Rule, error)
		texts []string
		key   string
	}{{network.ParseRule, s.Config.Network.Allow, "network.allow"}, {network.ParseDenial, s.Config.Network.Deny, "network.deny"}} {
		for _, text := range part.texts {
			r, err := part.parse(text)
			if err != nil {
				return nil, mistake("mend "+part.key+" in "+s.Config.Source(part.key), "%v", err)
			}
			rules = append(rules, r)
		}
	}
	for _, text := range allow {
		r, err := network.ParseRule(text)
		if err != nil {
			return nil, mistake("for example --allow-net api.example.com or --allow-net http://127.0.0.1:8080", "--allow-net: %v", err)
		}
		rules = append(rules, r)
	}
	return rules, nil
}
