// Package source fetches a module and its signatures from where a person says they
// are:
//
//	PATH/NAME.wasm                        a file
//	PATH                                  a folder with one such file
//	PATH, PATH:TAG, PATH@sha256:HEX       a folder that is an OCI image layout
//	https://HOST/PATH                     a file of a web server
//	oci://HOST/REPOSITORY:TAG, @sha256:HEX  an artifact of a registry
//
// Beside a file, and at the same address of a web server, its signatures are in a
// file whose name has [SignatureSuffix] at its end: one DSSE envelope, or several in
// a JSON array. Where it is not there, there are none; where it is not that, it is an
// error. On this machine itself http:// is as good as https://.
//
// What is returned was read once and is in memory: what is hashed is what is used.
// Nothing is verified, and nothing of it is believed. The caller says how the one
// host that a reference names is reached; every redirect is then a matter of its
// client, from package egress.
package source
