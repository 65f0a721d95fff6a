// Package oci fetches modules and their signatures from OCI registries and image
// layouts, and pushes them there.
//
// A [Reference] names an artifact of a registry, a [Layout] one in a folder, for
// machines without a network. A tag is resolved once; from then on the SHA-256 of
// the manifest names everything, and each byte that is returned has been hashed. An
// artifact has one layer, the module, in the CNCF's layout for WebAssembly or one of
// those before it:
//
//	config    application/vnd.wasm.config.v0+json, empty, or another that is not read
//	layer     application/wasm
//	          application/vnd.wasm.content.layer.v1+wasm
//	          application/vnd.module.wasm.content.layer.v1+wasm
//	          application/octet-stream
//
// Signatures are found, and not believed: that is for package trust. Ours are
// referrers of the manifest, by the API or by the tag for registries that lack it;
// cosign's are found where cosign puts them.
//
// A registry is hostile: what it sends is bounded before it is read, in size, number
// and time, and one that answers nonsense about signatures is not one that has none.
// It is reached with a client of package egress, which decides about redirects and
// token services as about any host. A login is sent to the registry that was named
// and to its token service, encrypted or on this machine, and never along with a
// redirect.
package oci
