// Package trust is about trust.toml: which keys sign for which publisher, and what
// that makes of the signatures that came with a module.
//
//	[[publisher]]
//	name = "example.org"                          # the signer, as people and the policy know it
//	namespaces = ["registry.example.org/tools"]   # what it may sign
//	keys = ["ed25519:...", "ecdsa-p256:..."]
//	threshold = 2                                 # how many of the keys have to sign; default 1
//	expires = 2027-01-01T00:00:00Z                # after which it signs nothing new; default never
//
//	[[revoked]]
//	key = "ed25519:..."                           # a key or its ID; or
//	digest = "sha256:..."                         # a module, or its OCI manifest
//	why = "stolen"
//
// A namespace is a repository with all below it, or a host: registry.example.org/tools
// holds registry.example.org/tools/weather and not registry.example.org/toolsmith.
// "file:NAME" is the module of that name whose statement has no repository, and
// "file:*" any such module. "*" is everything, and has to be written.
//
// There is a user's file and an administrator's, both read by [Parse] and put
// together by [Combine], the administrator's first. What any of them revokes is
// revoked. A publisher of a later file does not count where an earlier one has a
// publisher of its name, or has its key, and signs nothing in a namespace that a
// publisher of an earlier file has by name, so not by a *. So whoever is the signer
// for the administrator stays it: see RATIONALE, "Why does a user's publisher not
// count for the administrator's list?".
//
// [Rules.Judge] has the say about a module. Signatures of unknown keys are as good
// as none, and no error: whether a module without signer may come in is for the
// policy and the person.
package trust
