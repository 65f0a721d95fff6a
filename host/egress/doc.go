// Package egress is the only way out to the network: every connection to another machine is
// made here, after policy has decided.
//
//	decide    a network.Network decides whether this host, port and protocol may be reached;
//	          nothing is looked up before
//	resolve   the name is looked up once; each address is checked, and one that may not be
//	          reached refuses the whole name (a proxy may resolve instead, see [Options])
//	dial      a checked address is dialled, never the name
//
// [Egress.Fetch] makes an HTTP request for a guest, under a policy.Grant. It parses the URL
// once, decides about each redirect anew, and takes secrets that a server repeats out of the
// answer. It limits the bytes that are sent, received and decompressed, the time of each phase
// and the total time. [Egress.Client] is for the provider of the model, and
// [Egress.FollowingClient] for the registries and web servers from which a person fetches
// modules. [Egress.ServeProxy] is the proxy of a command that runs confined: its requests are
// decided, resolved and dialled in the same way.
//
// The environment is not read: no HTTP_PROXY, no SSL_CERT_FILE. A proxy and further
// certificate authorities come with [Options], from a user or an administrator.
//
// Everything that a guest, a command, a name server, a proxy or an HTTP server sends is
// hostile. Errors of Fetch and ServeProxy are [*services.Error] values. If the rules of the network
// deny a request, the error wraps a [*network.Denial]; if one more rule would allow it, the Denial
// holds the smallest. An Egress is safe for concurrent use. See RATIONALE, "Why does one bad
// address refuse a name?" and "Why does a command's proxy read how TLS begins?"
package egress
