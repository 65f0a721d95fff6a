// Package oci fetches modules and their signatures from OCI registries and image
// layouts, and pushes them there.
//
// A [Reference] names an artifact of a registry, a [Layout] one in a folder, for
// machines without a network. A tag is resolved once; from then on the SHA-256 of
// the manifest, or of the index, names everything. Of an index the image for
// WebAssembly is taken, or the only one. Each byte that is returned has been hashed.
// An artifact holds one module: as a layer, or as a file in the archives that are the
// layers of an image FROM scratch.
//
// Signatures are found, and not believed: that is for package trust. Ours and those of
// cosign 3 are referrers of the manifest, by the API or by the tag for registries that
// lack it; older ones of cosign are under its tag. Other forms are named and not read.
//
// A registry is hostile: what it sends is bounded before it is read, in size, number
// and time, and one that answers nonsense about signatures is not one that has none.
// It is reached with a client of package egress, which decides about redirects and
// token services as about any host. A login is sent to the registry that was named
// and to its token service, encrypted or on this machine, and never along with a
// redirect.
package oci
