package oci

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/content"
	"oras.land/oras-go/v2/errdef"

	"github.com/stockade-dev/stockade/host/sandbox/admit"
)

// Meta holds the annotations of a module's manifest, and options of its push.
type Meta struct {
	Title       string // name of the layer, such as notes.wasm; empty: none
	Version     string
	Description string
	// Created is the build time of the module. The same module with the same Meta always
	// gives the same manifest.
	Created time.Time
	// NoOverwrite makes Push return [ErrPublished] if the tag already names another module.
	NoOverwrite bool
}

// ErrPublished is returned when the tag names another module and Meta.NoOverwrite is set.
var ErrPublished = errors.New("it is published already, with other bytes")

// Push pushes a module with its signatures (DSSE envelopes), and returns the digest of
// its manifest. Signatures that the module already has in the registry stay. The tag is
// moved last: a concurrent pull gets either the old artifact or the whole new one.
func (c *Client) Push(ctx context.Context, ref Reference, module []byte, meta Meta, envelopes [][]byte) (manifestDigest string, err error) {
	if ref.Tag == "" || ref.Digest != "" {
		return "", fmt.Errorf("push %s: name a tag, and no digest", ref)
	}
	ctx, cancel := c.withDeadline(ctx)
	defer cancel()
	to := c.repository(ref)
	to.Client.(*session).pushing = true
	d, err := push(ctx, to, ref.Tag, module, meta, envelopes)
	if err != nil {
		return "", fmt.Errorf("push %s: %w", ref, explain(ctx, to, err))
	}
	return d, nil
}

type target interface {
	readOnlyTarget
	Exists(ctx context.Context, d ocispec.Descriptor) (bool, error)
	Push(ctx context.Context, d ocispec.Descriptor, r io.Reader) error
	PushReference(ctx context.Context, d ocispec.Descriptor, r io.Reader, reference string) error
}

func push(ctx context.Context, to target, tag string, module []byte, meta Meta, envelopes [][]byte) (string, error) {
	if len(module) > admit.MaxBytes || !bytes.HasPrefix(module, []byte("\x00asm")) {
		return "", fmt.Errorf("it is no WebAssembly module of at most %d bytes", admit.MaxBytes)
	}
	for _, e := range envelopes {
		if err := checkEnvelope(e); err != nil {
			return "", err
		}
	}
	layer := content.NewDescriptorFromBytes(layerType, module)
	if meta.Title != "" {
		layer.Annotations = map[string]string{ocispec.AnnotationTitle: meta.Title}
	}
	created := meta.Created.UTC().Format(time.RFC3339)
	config, err := json.Marshal(struct {
		Created      string   `json:"created"`
		Architecture string   `json:"architecture"`
		OS           string   `json:"os"`
		LayerDigests []string `json:"layerDigests"`
	}{created, "wasm", "wasip1", []string{string(layer.Digest)}})
	if err != nil {
		return "", err
	}
	m := ocispec.Manifest{
		ArtifactType: ArtifactType,
		Config:       content.NewDescriptorFromBytes(configType, config),
		Layers:       []ocispec.Descriptor{layer},
		Annotations:  map[string]string{ocispec.AnnotationCreated: created},
	}
	for name, value := range map[string]string{ocispec.AnnotationVersion: meta.Version, ocispec.AnnotationDescription: meta.Description} {
		if value != "" {
			m.Annotations[name] = value
		}
	}
	if meta.NoOverwrite {
		if err := checkTag(ctx, to, tag, layer); err != nil {
			return "", err
		}
	}
	if err := blob(ctx, to, layer, module); err != nil {
		return "", fmt.Errorf("its module: %w", err)
	}
	d, data, err := put(ctx, to, m, config)
	if err != nil {
		return "", err
	}
	for _, e := range envelopes {
		if err := attach(ctx, to, d, e); err != nil {
			return "", err
		}
	}
	return string(d.Digest), to.PushReference(ctx, d, bytes.NewReader(data), tag)
}

// checkTag returns [ErrPublished] if a tag leads to a module other than the one in layer.
func checkTag(ctx context.Context, to target, tag string, layer ocispec.Descriptor) error {
	d, err := to.Resolve(ctx, tag)
	if errors.Is(err, errdef.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	if m, err := fetchManifest(ctx, to, d); err != nil || len(m.Layers) != 1 || m.Layers[0].Digest != layer.Digest {
		return fmt.Errorf("%w: %s", ErrPublished, d.Digest)
	}
	return nil
}

// attach pushes a signature as a referrer of the manifest subject.
func attach(ctx context.Context, to target, subject ocispec.Descriptor, envelope []byte) error {
	if err := checkEnvelope(envelope); err != nil {
		return err
	}
	layer := content.NewDescriptorFromBytes(envelopeType, envelope)
	if err := blob(ctx, to, layer, envelope); err != nil {
		return fmt.Errorf("a signature: %w", err)
	}
	_, _, err := put(ctx, to, ocispec.Manifest{
		ArtifactType: SignatureType,
		Config:       ocispec.DescriptorEmptyJSON,
		Layers:       []ocispec.Descriptor{layer},
		Subject:      &ocispec.Descriptor{MediaType: subject.MediaType, Digest: subject.Digest, Size: subject.Size},
	}, []byte("{}"))
	return err
}

func checkEnvelope(e []byte) error {
	if len(e) > maxSignatureBytes || !json.Valid(e) {
		return fmt.Errorf("a signature is not JSON of at most %d bytes", maxSignatureBytes)
	}
	return nil
}

// put pushes a manifest and its configuration, without a tag.
func put(ctx context.Context, to target, m ocispec.Manifest, config []byte) (ocispec.Descriptor, []byte, error) {
	if err := blob(ctx, to, m.Config, config); err != nil {
		return ocispec.Descriptor{}, nil, fmt.Errorf("its configuration: %w", err)
	}
	m.Versioned, m.MediaType = specs.Versioned{SchemaVersion: 2}, ocispec.MediaTypeImageManifest
	data, err := json.Marshal(m)
	if err != nil {
		return ocispec.Descriptor{}, nil, err
	}
	d := content.NewDescriptorFromBytes(m.MediaType, data)
	d.ArtifactType = m.ArtifactType
	if err := to.Push(ctx, d, bytes.NewReader(data)); err != nil {
		return ocispec.Descriptor{}, nil, fmt.Errorf("its manifest: %w", err)
	}
	return d, data, nil
}

// blob pushes data, unless the target has it already.
func blob(ctx context.Context, to target, d ocispec.Descriptor, data []byte) error {
	there, err := to.Exists(ctx, d)
	if err != nil || there {
		return err
	}
	return to.Push(ctx, d, bytes.NewReader(data))
}
