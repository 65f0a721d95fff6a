package sign

// Evidence is the signatures that came with a module, as they were found and not
// believed yet.
type Evidence struct {
	// Envelopes are DSSE envelopes, the JSON of each.
	Envelopes [][]byte
	// Cosign are signatures that cosign made with a key.
	Cosign  []Cosign
	Bundles [][]byte `json:",omitempty"` // sigstore bundles of cosign 3, the JSON of each
	Unread  []string `json:",omitempty"` // forms of signatures that are not read here, as the registry names them
}

// Cosign is one signature in the format of cosign's simple signing.
type Cosign struct {
	Payload   []byte // JSON
	Signature string // of the payload, in base64
}
