package sign

// Evidence holds the signatures that came with a module. They are not verified yet.
type Evidence struct {
	// Envelopes are DSSE envelopes, the JSON of each.
	Envelopes [][]byte
	// Cosign are signatures that cosign made with a key.
	Cosign  []Cosign
	Bundles [][]byte `json:",omitempty"` // sigstore bundles of cosign 3, the JSON of each
	Unread  []string `json:",omitempty"` // the forms of signatures that we cannot read, as the registry names them
}

// Cosign is one signature in the format of cosign's simple signing.
type Cosign struct {
	Payload   []byte // JSON
	Signature string // over the payload, in base64
}
