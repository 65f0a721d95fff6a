// Package trust reads trust.toml, which lists publishers with their keys, and judges the
// signatures that came with a module.
//
//	[[publisher]]
//	name = "example.org"                          # the signer, as people and the policy know it
//	namespaces = ["registry.example.org/tools"]   # what it may sign
//	keys = ["ed25519:...", "ecdsa-p256:..."]
//	threshold = 2                                 # number of keys that have to sign; default 1
//	expires = 2027-01-01T00:00:00Z                # it signs nothing new after this; default never
//
//	[[revoked]]
//	key = "ed25519:..."                           # a key or its ID; or
//	digest = "sha256:..."                         # a module, or its OCI manifest
//	why = "stolen"
//
// A namespace is a repository with everything below it, or a host: registry.example.org/tools
// holds registry.example.org/tools/weather and not registry.example.org/toolsmith. "file:NAME"
// holds the module of that name whose statement has no repository, and "file:*" any such
// module. "*" holds everything; it is never a default.
//
// [Parse] reads the user's file and the administrator's, and [Combine] puts them together,
// the administrator's first. A revocation in any file counts. A publisher of a later file
// does not count if an earlier file has a publisher with the same name or key. It also
// cannot sign in a namespace that a publisher of an earlier file has by name, that is, not
// by a *. So the administrator's signer of a module stays its signer: see RATIONALE, "Why
// does a user's publisher not count for the administrator's list?".
//
// [Rules.Judge] judges a module. Signatures of unknown keys count as none, and are no
// error: the policy and the person decide whether a module without a signer may come in.
package trust
