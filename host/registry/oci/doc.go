// Package oci fetches modules and their signatures from OCI registries and image
// layouts, and pushes them there.
//
// A [Reference] names an artifact of a registry. A [Layout] names an artifact in a folder, for
// machines without a network. A tag is resolved once; from then on everything is named by the
// SHA-256 of the manifest, or of the index. An index stands for its image for WebAssembly, or
// for its only image. All bytes that are returned have been compared with their hashes. An
// artifact holds one module: as a layer, or as a file in the archives that are the layers of
// an image FROM scratch.
//
// Signatures are found here and verified in package trust. Our signatures and those of cosign
// 3 are referrers, artifacts that name the manifest as their subject. They are found by the
// API, or by a tag in registries that lack the API; older versions of cosign use a tag of
// their own. Other formats are named and not read.
//
// A registry is hostile: its answers are limited in size, number and time before they are
// read. Nonsense about signatures is an error, and does not count as no signatures. The
// registry is reached with a client of package egress, which decides about redirects and
// token services as about any host. A login is sent to the registry that was named and to
// its token service, encrypted or on this machine, and never along with a redirect.
package oci
