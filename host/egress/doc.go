// Package egress is the one way out to the network: whatever connects to
// another machine does it here, after policy has decided.
//
//	decide    a network.Network says whether this host, port and protocol may be
//	          reached; nothing is looked up before it has
//	resolve   the name is looked up once; each address is checked, and one that
//	          may not be reached refuses the whole name
//	dial      an address that was checked is connected to, never the name
//
// [Egress.Fetch] makes an HTTP request for a guest, under a policy.Grant: it
// parses the URL once, decides each redirect anew, and bounds what is sent, what
// comes back, what that becomes when it is decompressed, and the time of each
// phase and of the whole; secrets that a server repeats are taken out of its
// answer. [Egress.Client] is for the provider of the model, and
// [Egress.FollowingClient] for registries and web servers that a person fetches
// modules from. [Egress.ServeProxy] is the proxy of a command that runs confined:
// whatever it asks for is decided, resolved and dialled in the same way.
//
// The environment is not read: no HTTP_PROXY, no SSL_CERT_FILE. A proxy and
// further certificate authorities come with [Options], from the user's or the
// administrator's configuration.
//
// Whatever a guest, a command, a name server, a proxy or an HTTP server sends is
// hostile. Errors are [*effect.Error] values; a refusal wraps a [*network.Denial],
// which knows the smallest rule that would allow it. An Egress is safe for
// concurrent use. See RATIONALE, "Why does one bad address refuse a name?" and "Why
// does a command's proxy read how TLS begins?"
package egress
