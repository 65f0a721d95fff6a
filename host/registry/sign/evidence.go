package sign

// Evidence holds the signatures that came with a module. They are not verified yet.
type Evidence struct {
	Envelopes [][]byte // DSSE envelopes, each as JSON
	Cosign    []Cosign // signatures that cosign made with a key
	Bundles   [][]byte `json:",omitempty"` // sigstore bundles of cosign 3, the JSON of each
	Unread    []string `json:",omitempty"` // formats of signatures that we cannot read, in the registry's words
}

// Cosign is one signature in the format of cosign's simple signing.
type Cosign struct {
	Payload   []byte // JSON
	Signature string // signature of Payload, in base64
}
