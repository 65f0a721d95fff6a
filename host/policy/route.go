package policy

// Route is how the network is reached, as far as a layer binds everybody to it.
// Only the administrator's counts. The zero value leaves it to the settings of
// the user.
type Route struct {
	Proxy   *Proxy
	CAFiles []Setting // with certificate authorities, beside the system's and the user's
}

// Proxy is the HTTP proxy through which the internet is reached.
type Proxy struct {
	URL      string
	Resolves bool // it gets names instead of addresses, and checks where they lead
	From     Provenance
}

// RouteOf returns the route of the layer that may bind others to one.
func RouteOf(layers []Layer) Route {
	for _, l := range layers {
		if l.Source == SourceAdmin {
			return l.Route
		}
	}
	return Route{}
}
