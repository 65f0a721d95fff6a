package sign

// Evidence holds the signatures that came with a module. They are not verified yet.
type Evidence struct {
	Envelopes [][]byte // DSSE envelopes, each as JSON
	Cosign    []Cosign // signatures that cosign made with a key
	Bundles   [][]byte `json:",omitempty"` // sigstore bundles of cosign 3, the JSON of each
	Unread    []string `json:",omitempty"` // names of the signature formats that we cannot read, as the registry writes them
}

// Cosign is one signature in the format of cosign's simple signing.
type Cosign struct {
	Payload   []byte // JSON
	Signature string // signature of Payload, in base64
}
