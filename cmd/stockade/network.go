package main

import (
	"github.com/stockade-dev/stockade/host/egress"
	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/settings"
)

func (a *app) egress() (*egress.Egress, error) {
	opts, err := a.Egress(adminPolicyPlace(), a.s.env)
	if err != nil {
		return nil, err
	}
	opts.Redact, opts.Logger = a.redactor, a.logger()
	out, err := egress.New(opts)
	if err != nil {
		return nil, usageError("`stockade config` shows where network.proxy and network.ca_files come from", "%v", err)
	}
	return out, nil
}

func checkRoute(route policy.Route) error {
	opts, err := settings.RouteOptions(adminPolicyPlace(), route)
	if err != nil {
		return err
	}
	if _, err := egress.New(opts); err != nil {
		return usageError("", "%v", err)
	}
	return nil
}
