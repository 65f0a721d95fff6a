// Package sign is about who has signed a module: keys, what a signature says,
// and the formats in which it comes.
//
// A [Statement] says which module is meant: where it is published, its name and
// version, the SHA-256 of its bytes and of all that its tools say of themselves. A
// signer's keys sign it as a DSSE envelope
// (https://github.com/secure-systems-lab/dsse):
//
//	envelope, err := sign.Sign(statement, key)
//
//	signed, err := sign.Open(envelope)                // its form; nothing is believed yet
//	statement, by, err := signed.Verify(keys)         // what it says, if one of these keys says it
//
// Signatures that cosign made with a key are verified by [VerifyCosign] and, those of
// cosign 3, [VerifyBundle]. They say less: the digest of an OCI manifest, and a
// repository or none. See RATIONALE, "Why an own DSSE statement beside cosign's?".
//
// A key is ed25519 or ECDSA on P-256, and its kind is part of it: nothing in a
// file chooses how a signature is verified, and the ID of a key is made from the
// key. Which keys are whose is for package trust. This package knows no clock and
// no files, and imports nothing of ours.
package sign
