// Package source fetches a module and its signatures. A person names the module by one of
// these references:
//
//	PATH/NAME.wasm                        a file
//	PATH                                  a folder with one such file
//	PATH, PATH:TAG, PATH@sha256:HEX       a folder that is an OCI image layout
//	https://HOST/PATH                     a file of a web server
//	oci://HOST/REPOSITORY:TAG, @sha256:HEX  an artifact of a registry
//
// The signatures of a file are in a second file beside it, or at the same address of the
// web server, whose name has [SignatureSuffix] at its end: one DSSE envelope, or several
// in a JSON array. If that file is missing, there are no signatures; other content is an
// error. For servers on this machine, http:// is as good as https://.
//
// A module is read once and stays in memory: the bytes that are hashed are the bytes that
// are used. Nothing is verified here. The caller gives a client, from package egress, for
// the host in a reference; that client decides about every redirect.
package source
