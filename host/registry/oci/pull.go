package oci

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/errdef"

	"github.com/stockade-dev/stockade/host/registry/sign"
	"github.com/stockade-dev/stockade/host/sandbox/admit"
)

// The media types that are ours, and those of the layers of modules.
const (
	ArtifactType  = "application/vnd.stockade.tool.v1"
	SignatureType = "application/vnd.stockade.signature.v1+json"

	envelopeType = "application/vnd.dsse.envelope.v1+json"
	configType   = "application/vnd.wasm.config.v0+json"
	layerType    = "application/wasm"
	streamType   = "application/octet-stream"

	cosignType  = "application/vnd.dev.cosign.artifact.sig.v1+json"
	payloadType = "application/vnd.dev.cosign.simplesigning.v1+json"
	cosignName  = "dev.cosignproject.cosign/signature" // of the annotation of a payload
)

// Limits on what is read.
const (
	maxManifestBytes  = 256 << 10
	maxListBytes      = 1 << 20 // of a page of referrers
	maxSignatures     = 64
	maxSignatureBytes = 64 << 10
	maxEvidenceBytes  = 4 << 20 // of all signatures together, with their manifests
)

var layerTypes = []string{layerType, "application/vnd.wasm.content.layer.v1+wasm", "application/vnd.module.wasm.content.layer.v1+wasm", streamType}

// Artifact is a module as it came.
type Artifact struct {
	ManifestDigest string // "sha256:HEX"
	Code           []byte
	Digest         string // the SHA-256 of Code, in hex
	// Evidence is the signatures that were found; none were verified.
	Evidence sign.Evidence
}

// Pull fetches the module that a reference names, and its signatures.
func (c *Client) Pull(ctx context.Context, ref Reference) (*Artifact, error) {
	ctx, cancel := c.begin(ctx)
	defer cancel()
	a, err := pull(ctx, c.repository(ref), ref.wanted(), c.Progress)
	if err != nil {
		return nil, fmt.Errorf("pull %s: %w", ref, explain(ctx, err))
	}
	return a, nil
}

// place is where artifacts are: a repository or a layout.
type place interface {
	Resolve(ctx context.Context, reference string) (ocispec.Descriptor, error)
	Fetch(ctx context.Context, d ocispec.Descriptor) (io.ReadCloser, error)
	Referrers(ctx context.Context, d ocispec.Descriptor, artifactType string, fn func([]ocispec.Descriptor) error) error
}

func pull(ctx context.Context, from place, reference string, progress func(done, total int64)) (*Artifact, error) {
	d, err := from.Resolve(ctx, reference)
	if err != nil {
		return nil, err
	}
	m, err := manifest(ctx, from, d)
	if err != nil {
		return nil, fmt.Errorf("its manifest: %w", err)
	}
	layer, err := moduleOf(m)
	if err != nil {
		return nil, err
	}
	// Signatures first: they are small, and where they cannot be had the module is of
	// no use.
	a := &Artifact{ManifestDigest: string(d.Digest)}
	if a.Evidence, err = signatures(ctx, from, d); err != nil {
		return nil, fmt.Errorf("its signatures: %w", err)
	}
	if a.Code, err = read(ctx, from, layer, admit.MaxBytes, progress); err != nil {
		return nil, fmt.Errorf("its module: %w", err)
	}
	if !bytes.HasPrefix(a.Code, []byte("\x00asm")) {
		return nil, errors.New("its layer is no WebAssembly module")
	}
	a.Digest = strings.TrimPrefix(string(layer.Digest), "sha256:")
	return a, nil
}

// manifest fetches the manifest of one artifact.
func manifest(ctx context.Context, from place, d ocispec.Descriptor) (m ocispec.Manifest, err error) {
	switch d.MediaType {
	case ocispec.MediaTypeImageManifest:
	case ocispec.MediaTypeImageIndex, "application/vnd.docker.distribution.manifest.list.v2+json":
		return m, errors.New("it is an index of several artifacts; name one of them by its digest")
	default:
		return m, fmt.Errorf("it is %s, and not an OCI image manifest", shown(d.MediaType))
	}
	data, err := read(ctx, from, d, maxManifestBytes, nil)
	if err != nil {
		return m, err
	}
	var other struct {
		Manifests, FSLayers json.RawMessage
	}
	if json.Unmarshal(data, &m) != nil || json.Unmarshal(data, &other) != nil {
		return m, errors.New("it is not the JSON of a manifest")
	}
	switch {
	case m.SchemaVersion != 2 || m.MediaType != "" && m.MediaType != d.MediaType:
		return m, fmt.Errorf("it says that it is %s of version %d", shown(m.MediaType), m.SchemaVersion)
	case other.Manifests != nil || other.FSLayers != nil:
		return m, errors.New("other programs would take it for an index or for a manifest of another version")
	}
	return m, nil
}

// moduleOf returns the one layer of a manifest.
func moduleOf(m ocispec.Manifest) (ocispec.Descriptor, error) {
	if m.Subject != nil {
		return ocispec.Descriptor{}, errors.New("it is about another artifact, and not a module")
	}
	if n := len(m.Layers); n != 1 {
		return ocispec.Descriptor{}, fmt.Errorf("it has %d layers; a module has one", n)
	}
	layer := m.Layers[0]
	for _, t := range layerTypes {
		if layer.MediaType == t {
			return layer, nil
		}
	}
	if strings.HasSuffix(layer.MediaType, "gzip") || strings.HasSuffix(layer.MediaType, "zstd") {
		return layer, fmt.Errorf("its layer is compressed (%s), as those of containers are; a module is pushed as it is", shown(layer.MediaType))
	}
	return layer, fmt.Errorf("its layer is %s, and not %s", shown(layer.MediaType), layerType)
}

// read fetches what a descriptor describes, and returns exactly that.
func read(ctx context.Context, from place, d ocispec.Descriptor, most int64, progress func(done, total int64)) ([]byte, error) {
	if !sign.ValidDigest(string(d.Digest)) {
		return nil, fmt.Errorf("%q is not the digest of a SHA-256", shown(string(d.Digest)))
	}
	if d.Size <= 0 || d.Size > most {
		return nil, fmt.Errorf("it has %d bytes, and not between 1 and %d", d.Size, most)
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

func atMost(n, most int64) string {
	if n > most {
		return "more"
	}
	return fmt.Sprint(n)
}

// evidence reads signatures, and counts.
type evidence struct {
	from  place
	n     int
	bytes int64
	found sign.Evidence
}

// signatures returns the signatures of a manifest.
func signatures(ctx context.Context, from place, subject ocispec.Descriptor) (sign.Evidence, error) {
	e := &evidence{from: from}
	var refs []ocispec.Descriptor
	err := from.Referrers(ctx, subject, "", func(page []ocispec.Descriptor) error {
		for _, d := range page {
			// Some registries put the type of the configuration there.
			if d.ArtifactType == SignatureType || d.ArtifactType == cosignType || d.ArtifactType == "" || d.ArtifactType == ocispec.MediaTypeEmptyJSON {
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
	// Where cosign puts them unless it is told to make referrers.
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

// referrer reads one referrer; it may turn out to be no signature.
func (e *evidence) referrer(ctx context.Context, d, subject ocispec.Descriptor) error {
	if d.MediaType != ocispec.MediaTypeImageManifest && d.ArtifactType != SignatureType {
		return nil // of others, which may be of any kind
	}
	m, err := e.manifest(ctx, d)
	if err != nil {
		return err
	}
	kind := m.ArtifactType
	if kind == "" {
		kind = m.Config.MediaType
	}
	if kind != SignatureType && kind != cosignType {
		return nil
	}
	if m.Subject == nil || m.Subject.Digest != subject.Digest {
		return fmt.Errorf("the referrer %s is about another artifact", d.Digest)
	}
	if kind == cosignType {
		return e.payloads(ctx, m)
	}
	if len(m.Layers) != 1 || m.Layers[0].MediaType != envelopeType {
		return fmt.Errorf("the referrer %s is not one layer of %s", d.Digest, envelopeType)
	}
	data, err := e.read(ctx, m.Layers[0])
	if err != nil {
		return err
	}
	if !json.Valid(data) {
		return fmt.Errorf("the envelope in the referrer %s is not JSON", d.Digest)
	}
	e.found.Envelopes = append(e.found.Envelopes, data)
	return nil
}

// payloads reads the signatures in a manifest of cosign's, a layer for each.
func (e *evidence) payloads(ctx context.Context, m ocispec.Manifest) error {
	for _, layer := range m.Layers {
		signature := layer.Annotations[cosignName]
		if layer.MediaType != payloadType || signature == "" || len(signature) > maxSignatureBytes {
			return fmt.Errorf("a layer of %s has no signature", shown(layer.MediaType))
		}
		data, err := e.read(ctx, layer)
		if err != nil {
			return err
		}
		e.found.Cosign = append(e.found.Cosign, sign.Cosign{Payload: data, Signature: signature})
	}
	return nil
}

func (e *evidence) manifest(ctx context.Context, d ocispec.Descriptor) (ocispec.Manifest, error) {
	if err := e.count(d); err != nil {
		return ocispec.Manifest{}, err
	}
	return manifest(ctx, e.from, d)
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
