package main

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/stockade-dev/stockade/host/egress"
	"github.com/stockade-dev/stockade/host/policy"
)

// egress makes the one way out to the network.
func (a *app) egress() (*egress.Egress, error) {
	opts := egress.Options{Proxy: a.Config.Network.Proxy, ProxyResolves: a.Config.Network.ProxyResolves, Redact: a.known, Logger: a.logger()}
	authorities, err := readAuthorities(policy.RouteOf(a.Layers))
	if err != nil {
		return nil, err
	}
	opts.Authorities = authorities
	for _, name := range a.Config.Network.CAFiles {
		if rest, ok := strings.CutPrefix(name, "~/"); ok {
			name = filepath.Join(a.s.env("HOME"), rest)
		}
		pem, err := os.ReadFile(name)
		if err != nil {
			return nil, usageError("mend network.ca_files in "+a.Config.Source("network.ca_files"), "certificate authorities: %v", err)
		}
		opts.Authorities = append(opts.Authorities, egress.Authorities{Name: name, PEM: pem})
	}
	out, err := egress.New(opts)
	if err != nil {
		return nil, usageError("`stockade config` shows where network.proxy and network.ca_files come from", "%v", err)
	}
	return out, nil
}

// readAuthorities reads the files that the administrator's policy names, of which
// the same is asked as of that: whoever can write to one can read what is sent.
func readAuthorities(route policy.Route) ([]egress.Authorities, error) {
	var out []egress.Authorities
	for _, file := range route.CAFiles {
		pem, err := administrator().At(file.Value).Bytes()
		if err != nil {
			return nil, usageError("nothing reaches the network until an administrator has mended it", "certificate authorities of the %s: %v", file.From, err)
		}
		out = append(out, egress.Authorities{Name: file.Value, PEM: pem})
	}
	return out, nil
}

// checkRoute checks a route without taking it.
func checkRoute(route policy.Route) error {
	var opts egress.Options
	if route.Proxy != nil {
		opts.Proxy = route.Proxy.URL
	}
	authorities, err := readAuthorities(route)
	if err != nil {
		return err
	}
	opts.Authorities = authorities
	if _, err := egress.New(opts); err != nil {
		return usageError("", "%v", err)
	}
	return nil
}
