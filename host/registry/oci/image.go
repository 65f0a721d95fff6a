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
	"path"
	"slices"
	"strings"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/stockade-dev/stockade/host/sandbox/admit"
)

// Types of Docker's, and limits on the layers of an artifact, all of them together.
const (
	dockerManifestType = "application/vnd.docker.distribution.manifest.v2+json"
	dockerIndexType    = "application/vnd.docker.distribution.manifest.list.v2+json"
	referenceName      = "vnd.docker.reference.type" // of the annotation of what buildx puts beside an image

	maxLayers        = 32
	maxUnpackedBytes = admit.MaxBytes + 16<<20
	maxEntries       = 1024
	maxNameBytes     = 512 // of one entry
)

// imageOf returns the image that an index means: the one for WebAssembly, or the only
// one. What is no index is returned as it is.
func imageOf(ctx context.Context, from place, d ocispec.Descriptor) (ocispec.Descriptor, error) {
	if d.MediaType != ocispec.MediaTypeImageIndex && d.MediaType != dockerIndexType {
		return d, nil
	}
	var index ocispec.Index
	if err := document(ctx, from, d, &index); err != nil {
		return d, err
	}
	var images, wasm []ocispec.Descriptor
	var names []string
	for _, e := range index.Manifests {
		p := cmp.Or(e.Platform, &ocispec.Platform{})
		if e.Annotations[referenceName] != "" || p.OS == "unknown" || slices.ContainsFunc(images, func(o ocispec.Descriptor) bool { return o.Digest == e.Digest }) {
			continue
		}
		images, names = append(images, e), append(names, fmt.Sprintf("%s (%s/%s)", e.Digest, p.OS, p.Architecture))
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
	return d, fmt.Errorf("it is an index of %d images; name one of them by its digest, @sha256:HEX: %s", len(images), shown(strings.Join(names, ", ")))
}

// unpacker goes through the layers of an artifact. Nothing is written to a disk.
type unpacker struct {
	packed, left   int64    // the bytes of the layers so far, and those that may still be unpacked
	entries        int      // of archives, so far
	files, modules []string // the names of all files so far, and of the modules among them
	code           []byte   // of the last module
}

// moduleOf fetches the layers of an artifact and returns the one module in them.
func moduleOf(ctx context.Context, from place, layers []ocispec.Descriptor, progress func(done, total int64)) ([]byte, error) {
	u := unpacker{left: maxUnpackedBytes}
	for _, l := range layers {
		data, err := read(ctx, from, l, admit.MaxBytes-u.packed, progress)
		if err == nil {
			err = u.layer(l, data)
		}
		if err != nil {
			return nil, err
		}
	}
	if len(u.modules) > 1 {
		return nil, fmt.Errorf("it holds %d modules: %s; push the one that is meant by itself", len(u.modules), shown(strings.Join(u.modules, ", ")))
	}
	if u.modules == nil {
		return nil, fmt.Errorf("none of its %d files is a WebAssembly module: %s", len(u.files), shown(strings.Join(u.files, ", ")))
	}
	return u.code, nil
}

// layer goes through a file or an archive, as its bytes say: oras gives each file the type
// of an archive.
func (u *unpacker) layer(d ocispec.Descriptor, data []byte) error {
	u.packed += d.Size
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
	return u.file(cmp.Or(d.Annotations[ocispec.AnnotationTitle], fmt.Sprintf("%s (%s)", d.Digest, d.MediaType)), bytes.NewReader(data))
}

// archive goes through a tar archive. Layers are not laid over each other: what would take
// the place of a file is refused.
func (u *unpacker) archive(r io.Reader) error {
	limited := &io.LimitedReader{R: r, N: u.left + 1}
	for files := tar.NewReader(limited); ; {
		h, err := files.Next()
		switch u.left = limited.N - 1; {
		case u.left < 0:
			return fmt.Errorf("it has more than %d bytes once it is unpacked", maxUnpackedBytes)
		case err == io.EOF:
			return nil
		case err != nil:
			return fmt.Errorf("its layer cannot be unpacked: %w", err)
		}
		name := path.Clean("/" + h.Name)
		switch u.entries++; {
		case u.entries > maxEntries || len(h.Name) > maxNameBytes:
			err = fmt.Errorf("it holds more than %d files and directories, or a name of more than %d bytes", maxEntries, maxNameBytes)
		case h.Typeflag != tar.TypeReg && h.Typeflag != tar.TypeDir, strings.HasPrefix(path.Base(name), ".wh."):
			err = fmt.Errorf("%s is a link, a device or a whiteout; a module comes in an image FROM scratch, as a regular file", shown(h.Name))
		case slices.Contains(u.files, name):
			err = fmt.Errorf("%s is in it twice", shown(h.Name))
		case h.Typeflag == tar.TypeReg:
			err = u.file(name, files)
		}
		if err != nil {
			return err
		}
	}
}

// file takes a file that is a module, and the name of any other.
func (u *unpacker) file(name string, r io.Reader) (err error) {
	u.files = append(u.files, name)
	file := bufio.NewReader(r)
	if head, _ := file.Peek(4); string(head) != "\x00asm" {
		return nil
	}
	u.modules = append(u.modules, name)
	if u.code, err = io.ReadAll(io.LimitReader(file, admit.MaxBytes+1)); len(u.code) > admit.MaxBytes {
		err = fmt.Errorf("%s has more than the %d bytes that a module may have", shown(name), admit.MaxBytes)
	}
	return err
}
