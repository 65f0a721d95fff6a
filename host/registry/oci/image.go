package oci

import (
	"archive/tar"
	"bufio"
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strings"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/stockade-dev/stockade/host/sandbox/admit"
)

// Media types and an annotation that Docker uses for images.
const (
	dockerManifestType = "application/vnd.docker.distribution.manifest.v2+json"
	dockerIndexType    = "application/vnd.docker.distribution.manifest.list.v2+json"
	attestationName    = "vnd.docker.reference.type" // an annotation of attestations, which are listed beside their image
)

// Limits on all layers of an artifact together. More are an error.
const (
	maxLayers        = 32
	maxUnpackedBytes = admit.MaxBytes + 16<<20
)

// imageOf returns the image that an index stands for: its image for WebAssembly, or else its
// only image. It is an error if the index leaves a choice. If d is no index, it returns d.
func imageOf(ctx context.Context, from readOnlyTarget, d ocispec.Descriptor) (ocispec.Descriptor, error) {
	if d.MediaType != ocispec.MediaTypeImageIndex && d.MediaType != dockerIndexType {
		return d, nil
	}
	var index ocispec.Index
	if err := fetchDocument(ctx, from, d, &index); err != nil {
		return d, err
	}
	var images, wasm []ocispec.Descriptor
	var names []string
	for _, e := range index.Manifests {
		p := cmp.Or(e.Platform, &ocispec.Platform{})
		if e.Annotations[attestationName] != "" || p.OS == "unknown" {
			continue
		}
		images = append(images, e)
		names = append(names, fmt.Sprintf("%s (%s/%s)", e.Digest, p.OS, p.Architecture))
		if strings.HasPrefix(p.Architecture, "wasm") || strings.HasPrefix(p.OS, "wasi") {
			wasm = append(wasm, e)
		}
	}
	switch {
	case len(wasm) == 1:
		return wasm[0], nil
	case len(images) == 1:
		return images[0], nil
	}
	return d, fmt.Errorf("it is an index of %d images; name one of them by its digest, @sha256:HEX: %s", len(images), shortLine(strings.Join(names, ", ")))
}

// unpacker finds the module in the layers of an artifact. It writes nothing to a disk.
type unpacker struct {
	left    int64           // number of bytes that may still be unpacked
	files   map[string]bool // the names of all files so far
	modules []string        // the names of the modules among these files
	code    []byte          // the content of the module that was read last
}

// moduleOf fetches the layers of an artifact and returns the only module in them. Several or
// none are an error.
func moduleOf(ctx context.Context, from readOnlyTarget, layers []ocispec.Descriptor, progress func(done, total int64)) ([]byte, error) {
	u := unpacker{left: maxUnpackedBytes, files: map[string]bool{}}
	left := int64(admit.MaxBytes)
	for _, l := range layers {
		data, err := read(ctx, from, l, left, progress)
		if err == nil {
			left -= l.Size
			err = u.layer(l, data)
		}
		if err != nil {
			return nil, err
		}
	}
	if len(u.modules) == 1 {
		return u.code, nil
	}
	names, format := u.modules, "it holds %d modules: %s; push the one that is meant by itself"
	if names == nil {
		names, format = slices.Sorted(maps.Keys(u.files)), "none of its %d files is a WebAssembly module: %s"
	}
	return nil, fmt.Errorf(format, len(names), shortLine(strings.Join(names[:min(len(names), 10)], ", ")))
}

// layer reads a layer, which is a file or an archive. The data decide between the two, because
// oras gives each file the type of an archive.
func (u *unpacker) layer(d ocispec.Descriptor, data []byte) error {
	switch {
	case strings.HasSuffix(d.MediaType, "zstd") || bytes.HasPrefix(data, []byte("\x28\xb5\x2f\xfd")):
		return errors.New("its layer is compressed with zstd; push it with gzip, or the module as it is")
	case bytes.HasPrefix(data, []byte("\x1f\x8b")):
		unzipped, err := gzip.NewReader(bytes.NewReader(data))
		if err != nil {
			return err
		}
		return u.archive(unzipped)
	case len(data) > 512 && string(data[257:262]) == "ustar":
		return u.archive(bytes.NewReader(data))
	}
	return u.file(cmp.Or(d.Annotations[ocispec.AnnotationTitle], string(d.Digest)), bytes.NewReader(data))
}

// archive reads a tar archive. A second entry for the same path is an error, also in another
// layer: layers are not laid over each other.
func (u *unpacker) archive(r io.Reader) error {
	limited := &io.LimitedReader{R: r, N: u.left + 1}
	for files := tar.NewReader(limited); ; {
		h, err := files.Next()
		u.left = limited.N - 1
		switch {
		case u.left < 0:
			return fmt.Errorf("it has more than %d bytes once it is unpacked", maxUnpackedBytes)
		case err == io.EOF:
			return nil
		case err != nil:
			return fmt.Errorf("its layer cannot be unpacked: %w", err)
		}
		name := path.Clean("/" + h.Name)
		switch {
		case h.Typeflag != tar.TypeReg && h.Typeflag != tar.TypeDir, strings.HasPrefix(path.Base(name), ".wh."):
			return fmt.Errorf("%s is a link, a device or a whiteout; a module comes in an image FROM scratch, as a regular file", shortLine(h.Name))
		case u.files[name]:
			return fmt.Errorf("%s is in it twice", shortLine(h.Name))
		case h.Typeflag == tar.TypeReg:
			if err := u.file(name, files); err != nil {
				return err
			}
		}
	}
}

// file reads a file of the artifact. Only the content of a module is kept.
func (u *unpacker) file(name string, r io.Reader) (err error) {
	u.files[name] = true
	file := bufio.NewReader(r)
	if head, _ := file.Peek(4); string(head) != "\x00asm" {
		return nil
	}
	u.modules = append(u.modules, name)
	u.code, err = io.ReadAll(io.LimitReader(file, admit.MaxBytes+1))
	if len(u.code) > admit.MaxBytes {
		return fmt.Errorf("%s has more than the %d bytes that a module may have", shortLine(name), admit.MaxBytes)
	}
	return err
}
