package oci

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/errdef"

	"github.com/stockade-dev/stockade/host/registry/sign"
)

// Our own media types, and those of modules and signatures.
const (
	ArtifactType  = "application/vnd.stockade.tool.v1"
	SignatureType = "application/vnd.stockade.signature.v1+json"

	envelopeType = "application/vnd.dsse.envelope.v1+json"
	configType   = "application/vnd.wasm.config.v0+json"
	layerType    = "application/wasm"

	cosignType  = "application/vnd.dev.cosign.artifact.sig.v1+json"
	payloadType = "application/vnd.dev.cosign.simplesigning.v1+json"
	// Annotations: the signature of cosign over a payload, its certificate, and the type of
	// the statement in a bundle.
	cosignName      = "dev.cosignproject.cosign/signature"
	certificateName = "dev.sigstore.cosign/certificate"
	predicateName   = "dev.sigstore.bundle.predicateType"
)

// Limits on the content that a registry sends; what exceeds one is an error.
const (
	maxManifestBytes  = 256 << 10
	maxListBytes      = 1 << 20 // size of one page in a list of referrers
	maxSignatures     = 64
	maxSignatureBytes = 64 << 10
	maxEvidenceBytes  = 4 << 20 // size of all signatures together, with their manifests
)

// Artifact is a module that was pulled.
type Artifact struct {
	ManifestDigest string // "sha256:HEX"; the digest of the index if the reference leads to an index
	Code           []byte
	Digest         string        // the SHA-256 of Code, in hex
	Evidence       sign.Evidence // the signatures that were found, not verified yet
}

// Pull fetches the module that a reference names, and its signatures.
func (c *Client) Pull(ctx context.Context, ref Reference) (*Artifact, error) {
	ctx, cancel := c.withDeadline(ctx)
	defer cancel()
	from := c.repository(ref)
	a, err := pull(ctx, from, cmp.Or(ref.Digest, ref.Tag), c.Progress)
	if err != nil {
		return nil, fmt.Errorf("pull %s: %w", ref, explain(ctx, from, err))
	}
	return a, nil
}

// readOnlyTarget is a place from which artifacts are read: a repository or a layout.
type readOnlyTarget interface {
	Resolve(ctx context.Context, reference string) (ocispec.Descriptor, error)
	Fetch(ctx context.Context, d ocispec.Descriptor) (io.ReadCloser, error)
	Referrers(ctx context.Context, d ocispec.Descriptor, artifactType string, fn func([]ocispec.Descriptor) error) error
}

func pull(ctx context.Context, from readOnlyTarget, reference string, progress func(done, total int64)) (*Artifact, error) {
	d, err := from.Resolve(ctx, reference)
	if err != nil {
		return nil, err
	}
	image, err := imageOf(ctx, from, d)
	if err != nil {
		return nil, fmt.Errorf("its index: %w", err)
	}
	m, err := fetchManifest(ctx, from, image)
	if err != nil {
		return nil, fmt.Errorf("its manifest: %w", err)
	}
	switch n := len(m.Layers); {
	case m.Subject != nil:
		return nil, errors.New("it is about another artifact, and not a module")
	case n == 0 || n > maxLayers:
		return nil, fmt.Errorf("it has %d layers, and not 1 to %d", n, maxLayers)
	}
	// Signatures first: they are small, and if they cannot be read, the module is not
	// fetched. If there is an index, other programs sign the index.
	a := &Artifact{ManifestDigest: string(d.Digest)}
	if a.Evidence, err = fetchSignatures(ctx, from, d); err != nil {
		return nil, fmt.Errorf("its signatures: %w", err)
	}
	if a.Code, err = moduleOf(ctx, from, m.Layers, progress); err != nil {
		return nil, fmt.Errorf("its module: %w", err)
	}
	a.Digest = fmt.Sprintf("%x", sha256.Sum256(a.Code))
	return a, nil
}

func fetchManifest(ctx context.Context, from readOnlyTarget, d ocispec.Descriptor) (m ocispec.Manifest, err error) {
	if d.MediaType != ocispec.MediaTypeImageManifest && d.MediaType != dockerManifestType {
		return m, fmt.Errorf("it is %s, and not the manifest of an image", shortLine(d.MediaType))
	}
	err = fetchDocument(ctx, from, d, &m)
	return m, err
}

// fetchDocument fetches a manifest or an index and decodes it into to. It refuses a document
// that could be read as both.
func fetchDocument(ctx context.Context, from readOnlyTarget, d ocispec.Descriptor, to any) error {
	data, err := read(ctx, from, d, maxManifestBytes, nil)
	if err != nil {
		return err
	}
	var has struct {
		SchemaVersion                       int
		MediaType                           string
		Manifests, Config, Layers, FSLayers json.RawMessage
	}
	if json.Unmarshal(data, to) != nil || json.Unmarshal(data, &has) != nil {
		return errors.New("it is not the JSON of a manifest")
	}
	_, index := to.(*ocispec.Index)
	switch {
	case has.SchemaVersion != 2 || has.MediaType != "" && has.MediaType != d.MediaType:
		return fmt.Errorf("it says that it is %s of version %d", shortLine(has.MediaType), has.SchemaVersion)
	case has.FSLayers != nil || index && (has.Config != nil || has.Layers != nil) || !index && has.Manifests != nil:
		return errors.New("other programs would take it for an index or for a manifest of another version")
	}
	return nil
}

// read fetches the content of a descriptor. It is an error if the size or the digest differs
// from the descriptor, or if there are more than maxBytes bytes.
func read(ctx context.Context, from readOnlyTarget, d ocispec.Descriptor, maxBytes int64, progress func(done, total int64)) ([]byte, error) {
	if !sign.ValidDigest(string(d.Digest)) {
		return nil, fmt.Errorf("%q is not the digest of a SHA-256", shortLine(string(d.Digest)))
	}
	if d.Size <= 0 || d.Size > maxBytes {
		return nil, fmt.Errorf("it has %d bytes, and not between 1 and %d", d.Size, maxBytes)
	}
	body, err := from.Fetch(ctx, d)
	if err != nil {
		return nil, err
	}
	defer body.Close()
	var data bytes.Buffer
	data.Grow(int(min(d.Size, 1<<20)) + bytes.MinRead)
	for int64(data.Len()) <= d.Size {
		n, err := io.CopyN(&data, body, min(d.Size+1-int64(data.Len()), 64<<10))
		if progress != nil && n > 0 {
			progress(min(int64(data.Len()), d.Size), d.Size)
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
	}
	if int64(data.Len()) != d.Size {
		return nil, fmt.Errorf("%s bytes came instead of %d", atMost(int64(data.Len()), d.Size), d.Size)
	}
	if sum := sha256.Sum256(data.Bytes()); "sha256:"+hex.EncodeToString(sum[:]) != string(d.Digest) {
		return nil, fmt.Errorf("what came has the SHA-256 %x, and not that of %s", sum, d.Digest)
	}
	return data.Bytes(), nil
}

// atMost returns n as text, or "more" if n is greater than limit.
func atMost(n, limit int64) string {
	if n > limit {
		return "more"
	}
	return fmt.Sprint(n)
}

// evidence collects the signatures of an artifact, and enforces the limits on them.
type evidence struct {
	from  readOnlyTarget
	n     int   // number of signatures so far
	bytes int64 // size of the signatures and their manifests so far
	found sign.Evidence
}

// fetchSignatures returns the signatures of a manifest or an index. They are not verified yet.
func fetchSignatures(ctx context.Context, from readOnlyTarget, subject ocispec.Descriptor) (sign.Evidence, error) {
	e := &evidence{from: from}
	var refs []ocispec.Descriptor
	err := from.Referrers(ctx, subject, "", func(page []ocispec.Descriptor) error {
		for _, d := range page {
			if slices.Contains(readTypes, d.ArtifactType) || isSignature(d.ArtifactType) {
				refs = append(refs, d)
			}
		}
		if len(refs) > maxSignatures {
			return fmt.Errorf("there are more than %d", maxSignatures)
		}
		return nil
	})
	if err != nil {
		return sign.Evidence{}, err
	}
	for _, d := range refs {
		if err := e.referrer(ctx, d, subject); err != nil {
			return sign.Evidence{}, err
		}
	}
	// By default, older versions of cosign put their signatures under this tag.
	d, err := from.Resolve(ctx, strings.Replace(string(subject.Digest), ":", "-", 1)+".sig")
	if errors.Is(err, errdef.ErrNotFound) {
		return e.found, nil
	}
	if err == nil {
		var m ocispec.Manifest
		if m, err = e.manifest(ctx, d); err == nil {
			err = e.payloads(ctx, m)
		}
	}
	if err != nil {
		return sign.Evidence{}, fmt.Errorf("those of cosign: %w", err)
	}
	return e.found, nil
}

// readTypes are the artifact types of the referrers that we fetch. Some registries give the
// type of the configuration in its place, so the empty types are among them.
var readTypes = []string{SignatureType, sign.BundleType, cosignType, ocispec.MediaTypeEmptyJSON, ""}

// isSignature reports whether the name of an artifact type looks like that of a signature.
func isSignature(kind string) bool {
	kind = strings.ToLower(kind)
	return slices.ContainsFunc([]string{"sig", "notary", "gpg", "pgp", "dsse"}, func(word string) bool { return strings.Contains(kind, word) })
}

// noteUnread records a format of signatures that we cannot read. It ignores other artifacts.
func (e *evidence) noteUnread(form string) {
	if form = shortLine(form); isSignature(form) && !slices.Contains(e.found.Unread, form) {
		e.found.Unread = append(e.found.Unread, form)
	}
}

// referrer reads one referrer. If it turns out to be no signature, it is ignored.
func (e *evidence) referrer(ctx context.Context, d, subject ocispec.Descriptor) error {
	if !slices.Contains(readTypes, d.ArtifactType) || d.MediaType != ocispec.MediaTypeImageManifest && d.ArtifactType != SignatureType {
		e.noteUnread(d.ArtifactType)
		return nil
	}
	m, err := e.manifest(ctx, d)
	if err != nil {
		return err
	}
	kind := cmp.Or(m.ArtifactType, m.Config.MediaType)
	var layerType string
	var to *[][]byte
	switch kind {
	case SignatureType:
		layerType, to = envelopeType, &e.found.Envelopes
	case sign.BundleType:
		if says := m.Annotations[predicateName]; says != "" && says != sign.CosignPredicate { // such as an SBOM, which may be large
			e.noteUnread("a sigstore attestation of " + says)
			return nil
		}
		layerType, to = sign.BundleType, &e.found.Bundles
	case cosignType:
	default:
		e.noteUnread(kind)
		return nil
	}
	if m.Subject == nil || m.Subject.Digest != subject.Digest {
		return fmt.Errorf("the referrer %s is about another artifact", d.Digest)
	}
	if kind == cosignType {
		return e.payloads(ctx, m)
	}
	if len(m.Layers) != 1 || m.Layers[0].MediaType != layerType {
		return fmt.Errorf("the referrer %s is not one layer of %s", d.Digest, layerType)
	}
	data, err := e.read(ctx, m.Layers[0])
	if err != nil {
		return err
	}
	if !json.Valid(data) {
		return fmt.Errorf("the signature in the referrer %s is not JSON", d.Digest)
	}
	*to = append(*to, data)
	return nil
}

// payloads reads the signatures in a manifest of an older cosign: each layer holds one.
func (e *evidence) payloads(ctx context.Context, m ocispec.Manifest) error {
	for _, layer := range m.Layers {
		signature := layer.Annotations[cosignName]
		if layer.MediaType != payloadType || signature == "" || len(signature) > maxSignatureBytes {
			return fmt.Errorf("a layer of %s has no signature", shortLine(layer.MediaType))
		}
		data, err := e.read(ctx, layer)
		if err != nil {
			return err
		}
		if layer.Annotations[certificateName] != "" {
			e.noteUnread("cosign with a certificate")
		}
		e.found.Cosign = append(e.found.Cosign, sign.Cosign{Payload: data, Signature: signature})
	}
	return nil
}

func (e *evidence) manifest(ctx context.Context, d ocispec.Descriptor) (ocispec.Manifest, error) {
	if err := e.count(d); err != nil {
		return ocispec.Manifest{}, err
	}
	return fetchManifest(ctx, e.from, d)
}

func (e *evidence) read(ctx context.Context, d ocispec.Descriptor) ([]byte, error) {
	if e.n++; e.n > maxSignatures {
		return nil, fmt.Errorf("there are more than %d", maxSignatures)
	}
	if err := e.count(d); err != nil {
		return nil, err
	}
	return read(ctx, e.from, d, maxSignatureBytes, nil)
}

func (e *evidence) count(d ocispec.Descriptor) error {
	if d.Size > maxEvidenceBytes || e.bytes+d.Size > maxEvidenceBytes {
		return fmt.Errorf("they have more than %d bytes", maxEvidenceBytes)
	}
	e.bytes += max(d.Size, 0)
	return nil
}
