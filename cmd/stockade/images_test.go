package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"strings"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"github.com/rogpeppe/go-internal/testscript"
	"oras.land/oras-go/v2"
	ocicontent "oras.land/oras-go/v2/content"
	"oras.land/oras-go/v2/registry"
	"oras.land/oras-go/v2/registry/remote"
)

// image pushes files to the registry in a form that other programs use, and puts the
// digest into the variable MANIFEST:
//
//	image scratch|docker|index|file|notation REPOSITORY:TAG FILE...
//
// The forms are an image FROM scratch, the same by Docker, the same in an index beside an
// attestation, a plain file, and an image that notation has signed.
func image(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 3 {
		ts.Fatalf("usage: image FORM REPOSITORY:TAG FILE...")
	}
	form := args[0]
	repository, tag, _ := strings.Cut(args[1], ":")
	ctx := context.Background()
	to := &remote.Repository{Reference: registry.Reference{Registry: ts.Getenv("REGISTRY"), Repository: repository}, PlainHTTP: true}
	blob := func(mediaType string, data []byte) ocispec.Descriptor {
		d := ocicontent.NewDescriptorFromBytes(mediaType, data)
		ts.Check(to.Push(ctx, d, bytes.NewReader(data)))
		return d
	}
	var archive bytes.Buffer
	zipped := gzip.NewWriter(&archive)
	w := tar.NewWriter(zipped)
	for _, name := range args[2:] {
		text := ts.ReadFile(name)
		ts.Check(w.WriteHeader(&tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: 0o644, Size: int64(len(text))}))
		_, err := w.Write([]byte(text))
		ts.Check(err)
	}
	ts.Check(w.Close())
	ts.Check(zipped.Close())
	manifest := func(mediaType string, m any) ocispec.Descriptor {
		data, err := json.Marshal(m)
		ts.Check(err)
		return blob(mediaType, data)
	}
	image := ocispec.Manifest{MediaType: ocispec.MediaTypeImageManifest, Config: blob(ocispec.MediaTypeImageConfig, []byte("{}")),
		Layers: []ocispec.Descriptor{blob(ocispec.MediaTypeImageLayerGzip, archive.Bytes())}}
	image.SchemaVersion = 2
	var d ocispec.Descriptor
	switch form {
	case "docker":
		image.MediaType = "application/vnd.docker.distribution.manifest.v2+json"
		image.Config.MediaType, image.Layers[0].MediaType = "application/vnd.docker.container.image.v1+json", "application/vnd.docker.image.rootfs.diff.tar.gzip"
	case "file", "notation":
		image.ArtifactType, image.Layers[0] = "application/vnd.unknown.artifact.v1", blob(ocispec.MediaTypeImageLayer, []byte(ts.ReadFile(args[2])))
		image.Layers[0].Annotations = map[string]string{ocispec.AnnotationTitle: args[2]}
	}
	d = manifest(image.MediaType, image)
	switch form {
	case "index":
		d.Platform = &ocispec.Platform{OS: "linux", Architecture: "amd64"}
		image.Layers = []ocispec.Descriptor{blob("application/vnd.in-toto+json", []byte("{}"))}
		beside := manifest(image.MediaType, image)
		beside.Platform = &ocispec.Platform{OS: "unknown", Architecture: "unknown"}
		beside.Annotations = map[string]string{"vnd.docker.reference.type": "attestation-manifest", "vnd.docker.reference.digest": string(d.Digest)}
		index := ocispec.Index{MediaType: ocispec.MediaTypeImageIndex, Manifests: []ocispec.Descriptor{d, beside}}
		index.SchemaVersion = 2
		d = manifest(index.MediaType, index)
	case "notation":
		_, err := oras.PackManifest(ctx, to, oras.PackManifestVersion1_1, "application/vnd.cncf.notary.signature",
			oras.PackManifestOptions{Subject: &d, Layers: []ocispec.Descriptor{blob("application/jose+json", []byte("{}"))}})
		ts.Check(err)
	}
	ts.Check(to.Tag(ctx, d, tag))
	ts.Setenv("MANIFEST", string(d.Digest))
}
