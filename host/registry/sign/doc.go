// Package sign makes and verifies signatures of modules: keys, the statements that they
// sign, and the formats in which signatures come.
//
// A [Statement] identifies a module: the repository where it is published, its name and
// version, the SHA-256 of its bytes and of the descriptions of its tools. A signer's keys sign
// it as a DSSE envelope (https://github.com/secure-systems-lab/dsse):
//
//	envelope, err := sign.Sign(statement, key)
//
//	signed, err := sign.Open(envelope)                // checks the form; nothing is believed yet
//	statement, by, err := signed.Verify(keys)         // the statement, if one of these keys signed it
//
// [VerifyCosign] verifies signatures that cosign made with a key, and [VerifyBundle]
// signatures of cosign 3. They state less: the digest of an OCI manifest, and at most a
// repository. See RATIONALE, "Why an own DSSE statement beside cosign's?".
//
// A key is ed25519 or ECDSA on P-256, and its algorithm is part of it: nothing in a file
// chooses how a signature is verified, and the ID of a key is made from the key. Package trust
// decides which keys belong to which publisher. This package reads no clock and no files.
package sign
