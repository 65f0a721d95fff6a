package settings

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/stockade-dev/stockade/host/config/policyfile"
	"github.com/stockade-dev/stockade/host/egress"
	"github.com/stockade-dev/stockade/host/policy"
)

// Egress returns the options of the network: the proxy, and the certificate authorities of the
// administrator and the settings. In the paths of the settings, "~/" at the start stands for HOME.
func (s *Settings) Egress(administrator policyfile.Place, env func(string) string) (egress.Options, error) {
	opts, err := RouteOptions(administrator, policy.RouteOf(s.Layers))
	if err != nil {
		return egress.Options{}, err
	}
	opts.Proxy, opts.ProxyResolves = s.Config.Network.Proxy, s.Config.Network.ProxyResolves
	opts.ProxyFrom, opts.IgnoredProxyVariable = s.Config.Source("network.proxy"), UnreadProxy(env)
	for _, name := range s.Config.Network.CAFiles {
		if rest, ok := strings.CutPrefix(name, "~/"); ok {
			name = filepath.Join(env("HOME"), rest)
		}
		pem, err := os.ReadFile(name)
		if err != nil {
			return egress.Options{}, mistake("mend network.ca_files in "+s.Config.Source("network.ca_files"), "certificate authorities: %v", err)
		}
		opts.Authorities = append(opts.Authorities, egress.Authorities{Name: name, PEM: pem})
	}
	return opts, nil
}

// UnreadProxy returns the name of an environment variable that sets a proxy; such a variable
// is not used. Empty: there is none.
func UnreadProxy(env func(string) string) string {
	for _, name := range []string{"HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy", "HTTP_PROXY", "http_proxy"} {
		if env(name) != "" {
			return name
		}
	}
	return ""
}

// RouteOptions returns the options of the administrator's route alone: the URL of its proxy, and
// its certificate authorities. Its files must be as safe as the administrator's policy: anybody
// who can write to one can read everything that is sent.
func RouteOptions(administrator policyfile.Place, route policy.Route) (egress.Options, error) {
	var opts egress.Options
	if route.Proxy != nil {
		opts.Proxy = route.Proxy.URL
	}
	for _, file := range route.CAFiles {
		pem, err := administrator.WithPath(file.Value).Bytes()
		if err != nil {
			return opts, mistake("nothing reaches the network until an administrator has mended it", "certificate authorities of the %s: %v", file.From, err)
		}
		opts.Authorities = append(opts.Authorities, egress.Authorities{Name: file.Value, PEM: pem})
	}
	return opts, nil
}
