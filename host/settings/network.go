package settings

import "github.com/stockade-dev/stockade/host/policy/network"

// NetRules returns the user's network rules: network.allow, network.deny, and allow, the rules
// of --allow-net.
func (s *Settings) NetRules(allow []string) ([]network.Rule, error) {
	var rules []network.Rule
	set := s.Config.Network
	for _, part := range []struct {
		parse        func(string) (network.Rule, error)
		texts        []string
		before, hint string
	}{
		{network.ParseRule, set.Allow, "", "mend network.allow in " + s.Config.Source("network.allow")},
		{network.ParseDenial, set.Deny, "", "mend network.deny in " + s.Config.Source("network.deny")},
		{network.ParseRule, allow, "--allow-net: ", "for example --allow-net api.example.com or --allow-net http://127.0.0.1:8080"},
	} {
		for _, text := range part.texts {
			r, err := part.parse(text)
			if err != nil {
				return nil, mistake(part.hint, "%s%v", part.before, err)
			}
			rules = append(rules, r)
		}
	}
	return rules, nil
}
