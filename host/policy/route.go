package policy

// Route is the way to the network that a layer imposes on everybody. Only the administrator's
// counts. The zero value leaves the way to the user's settings.
type Route struct {
	Proxy   *Proxy    // nil: the proxy of the user's settings
	CAFiles []Setting // files of certificate authorities, besides the system's and the user's
}

// Proxy is the HTTP proxy for all connections to the internet.
type Proxy struct {
	URL      string
	Resolves bool // set if the proxy gets host names, resolves them and checks the addresses
	From     Provenance
}

// RouteOf returns the route of the administrator's layer; zero if there is none.
func RouteOf(layers []Layer) Route {
	for _, l := range layers {
		if l.Source == SourceAdmin {
			return l.Route
		}
	}
	return Route{}
}
