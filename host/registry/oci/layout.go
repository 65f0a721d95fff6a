package oci

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/errdef"

	"github.com/stockade-dev/stockade/host/registry/sign"
)

// Limits on an OCI image layout; what exceeds one is an error.
const (
	maxIndexBytes   = 4 << 20
	maxIndexEntries = 4096
	maxLayoutBytes  = 4 << 10 // size of the file oci-layout

	maxReferrersBytes = 16 << 20 // size of all manifests together that are read to find signatures
)

// Layout names an artifact in a folder that is an OCI image layout. Such a folder holds
// no names of repositories.
type Layout struct {
	Dir string
	Tag string // tag of the artifact; may be empty
	// Digest is the digest of the manifest, "sha256:HEX"; it wins over Tag. If both are
	// empty, the layout must hold one artifact only.
	Digest string
}

// ParseLayout reads PATH, PATH:TAG or PATH@sha256:HEX. If a folder exists under the whole
// name, the name is a path.
func ParseLayout(s string) Layout {
	l := Layout{Dir: s}
	if isFolder(l.Dir) {
		return l
	}
	if i := strings.LastIndexByte(s, '@'); i > 0 && sign.ValidDigest(s[i+1:]) {
		l.Dir, l.Digest = s[:i], s[i+1:]
	}
	if isFolder(l.Dir) {
		return l
	}
	if i := strings.LastIndexByte(l.Dir, ':'); i > 0 && tagRE().MatchString(l.Dir[i+1:]) {
		l.Dir, l.Tag = l.Dir[:i], l.Dir[i+1:]
	}
	return l
}

func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// IsLayout reports whether a folder is an OCI image layout, that is, has a file oci-layout.
func IsLayout(dir string) bool {
	info, err := os.Stat(filepath.Join(dir, ocispec.ImageLayoutFile))
	return err == nil && info.Mode().IsRegular()
}

// String returns PATH[:TAG][@sha256:HEX].
func (l Layout) String() string { return formatReference(l.Dir, l.Tag, l.Digest) }

// Pull is [Client.Pull] from a folder. It writes nothing there, and follows no link out of it.
func (l Layout) Pull(ctx context.Context) (*Artifact, error) {
	a, err := l.pull(ctx)
	if err != nil {
		return nil, fmt.Errorf("pull %s: %w", l, err)
	}
	return a, nil
}

func (l Layout) pull(ctx context.Context) (*Artifact, error) {
	f, err := openFolder(l.Dir)
	if err != nil {
		return nil, err
	}
	defer f.root.Close()
	return pull(ctx, f, cmp.Or(l.Digest, l.Tag), nil)
}

// Push is [Client.Push] into a folder, which becomes a layout if it is empty or does not
// exist. Only one program at a time may push.
func (l Layout) Push(ctx context.Context, module []byte, meta Meta, envelopes [][]byte) (manifestDigest string, err error) {
	if l.Tag == "" || l.Digest != "" {
		return "", fmt.Errorf("push %s: name a tag, such as %s:1.0.0, and no digest", l, l.Dir)
	}
	f, err := makeFolder(l.Dir)
	if err == nil {
		defer f.root.Close()
		manifestDigest, err = push(ctx, f, l.Tag, module, meta, envelopes)
	}
	if err != nil {
		return "", fmt.Errorf("push %s: %w", l, err)
	}
	return manifestDigest, nil
}

// Tags returns the tags of the layout.
func (l Layout) Tags() (tags []string, err error) {
	f, err := openFolder(l.Dir)
	if err != nil {
		return nil, err
	}
	defer f.root.Close()
	for _, d := range f.index.Manifests {
		tags = append(tags, d.Annotations[ocispec.AnnotationRefName])
	}
	return tags, nil
}

// folder is an open layout. The layout store of oras reads everything that an index lists
// as soon as it is opened, however large it is.
type folder struct {
	root  *os.Root
	index ocispec.Index
}

func openFolder(dir string) (*folder, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	f := &folder{root: root}
	if err := f.load(); err != nil {
		root.Close()
		return nil, err
	}
	return f, nil
}

func (f *folder) load() error {
	var layout ocispec.ImageLayout
	data, err := f.file(ocispec.ImageLayoutFile, maxLayoutBytes)
	if err != nil {
		return fmt.Errorf("it is no OCI image layout: %w", err)
	}
	if json.Unmarshal(data, &layout) != nil || layout.Version != ocispec.ImageLayoutVersion {
		return fmt.Errorf("%s does not say that it is a layout of version %s", ocispec.ImageLayoutFile, ocispec.ImageLayoutVersion)
	}
	if data, err = f.file(ocispec.ImageIndexFile, maxIndexBytes); err != nil {
		return err
	}
	if json.Unmarshal(data, &f.index) != nil || f.index.SchemaVersion != 2 {
		return fmt.Errorf("%s is no OCI image index", ocispec.ImageIndexFile)
	}
	if n := len(f.index.Manifests); n > maxIndexEntries {
		return fmt.Errorf("%s has %d entries, more than %d", ocispec.ImageIndexFile, n, maxIndexEntries)
	}
	return nil
}

func (f *folder) open(name string) (*os.File, error) {
	info, err := f.root.Stat(name) // to open a named pipe would block
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", name)
	}
	return f.root.Open(name)
}

// file returns the content of a file of at most maxBytes bytes.
func (f *folder) file(name string, maxBytes int64) ([]byte, error) {
	file, err := f.open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, maxBytes+1))
	if err == nil && int64(len(data)) > maxBytes {
		err = fmt.Errorf("%s has more than %d bytes", name, maxBytes)
	}
	return data, err
}

// Resolve implements readOnlyTarget. An empty reference means the only artifact.
func (f *folder) Resolve(_ context.Context, reference string) (ocispec.Descriptor, error) {
	var found []ocispec.Descriptor
	var names []string
	for _, d := range f.index.Manifests {
		tag := d.Annotations[ocispec.AnnotationRefName]
		match := tag == reference || string(d.Digest) == reference
		if reference == "" {
			// Signatures do not count as artifacts here.
			match = !isSignature(d.ArtifactType) && !strings.HasPrefix(tag, "sha256-")
		}
		if tag != "" && len(names) < 10 {
			names = append(names, shortLine(tag))
		}
		if match && !slices.ContainsFunc(found, func(o ocispec.Descriptor) bool { return o.Digest == d.Digest }) {
			found = append(found, d)
		}
	}
	if len(found) == 1 {
		return found[0], nil
	}
	has := "it has no tags"
	if len(names) > 0 {
		has = "it has " + strings.Join(names, ", ")
	}
	if len(found) > 1 {
		return ocispec.Descriptor{}, fmt.Errorf("the layout holds %d artifacts of that name: name one by its tag or digest; %s", len(found), has)
	}
	return ocispec.Descriptor{}, fmt.Errorf("the layout does not have %q: %w; %s", reference, errdef.ErrNotFound, has)
}

func blobName(d ocispec.Descriptor) (string, error) {
	if !sign.ValidDigest(string(d.Digest)) {
		return "", fmt.Errorf("%q is not the digest of a SHA-256", shortLine(string(d.Digest)))
	}
	return path.Join(ocispec.ImageBlobsDir, "sha256", strings.TrimPrefix(string(d.Digest), "sha256:")), nil
}

// Fetch implements readOnlyTarget.
func (f *folder) Fetch(_ context.Context, d ocispec.Descriptor) (io.ReadCloser, error) {
	name, err := blobName(d)
	if err != nil {
		return nil, err
	}
	return f.open(name)
}

// Referrers implements readOnlyTarget. A layout has no list of referrers: they are among
// the entries of its index, or in an index under the tag for registries without a list.
func (f *folder) Referrers(ctx context.Context, subject ocispec.Descriptor, _ string, fn func([]ocispec.Descriptor) error) error {
	entries := slices.Clone(f.index.Manifests)
	tag := strings.Replace(string(subject.Digest), ":", "-", 1)
	if d, err := f.Resolve(ctx, tag); err == nil && d.MediaType == ocispec.MediaTypeImageIndex {
		var index ocispec.Index
		data, err := read(ctx, f, d, maxListBytes, nil)
		if err != nil {
			return err
		}
		if json.Unmarshal(data, &index) != nil {
			return fmt.Errorf("what is tagged %s is no OCI image index", tag)
		}
		entries = append(entries, index.Manifests...)
	}
	var found []ocispec.Descriptor
	left := int64(maxReferrersBytes)
	for _, d := range entries {
		if d.MediaType != ocispec.MediaTypeImageManifest || d.Annotations[ocispec.AnnotationRefName] != "" ||
			d.ArtifactType != "" && !isSignature(d.ArtifactType) ||
			slices.ContainsFunc(found, func(o ocispec.Descriptor) bool { return o.Digest == d.Digest }) {
			continue
		}
		if left -= d.Size; d.Size < 0 || left < 0 {
			return fmt.Errorf("the manifests that may be signatures have more than %d bytes", maxReferrersBytes)
		}
		m, err := fetchManifest(ctx, f, d)
		if err != nil {
			return fmt.Errorf("the manifest %s: %w", shortLine(string(d.Digest)), err)
		}
		if m.Subject != nil && m.Subject.Digest == subject.Digest {
			found = append(found, d)
		}
	}
	return fn(found)
}

// makeFolder opens a layout, after making it if the folder is empty or missing.
func makeFolder(dir string) (*folder, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	if len(entries) > 0 {
		return openFolder(dir)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	f := &folder{root: root, index: ocispec.Index{Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispec.MediaTypeImageIndex, Manifests: []ocispec.Descriptor{}}}
	if err = f.save(); err == nil {
		err = f.write(ocispec.ImageLayoutFile, []byte(`{"imageLayoutVersion":"`+ocispec.ImageLayoutVersion+`"}`))
	}
	if err != nil {
		root.Close()
		return nil, err
	}
	return f, nil
}

// write replaces a file of the layout; a reader sees the old file or the new one.
func (f *folder) write(name string, data []byte) (err error) {
	if err := f.root.MkdirAll(path.Dir(name), 0o755); err != nil {
		return err
	}
	tmp := path.Join(path.Dir(name), "."+path.Base(name)+".new")
	if err := f.root.Remove(tmp); err != nil && !errors.Is(err, fs.ErrNotExist) { // left by a write that did not finish
		return err
	}
	file, err := f.root.OpenFile(tmp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = file.Write(data)
	if err = errors.Join(err, file.Sync(), file.Close()); err == nil {
		err = f.root.Rename(tmp, name)
	}
	if err != nil {
		_ = f.root.Remove(tmp)
	}
	return err
}

func (f *folder) save() error {
	data, err := json.Marshal(f.index)
	if err != nil {
		return err
	}
	return f.write(ocispec.ImageIndexFile, data)
}

// Exists implements target.
func (f *folder) Exists(_ context.Context, d ocispec.Descriptor) (bool, error) {
	name, err := blobName(d)
	if err != nil {
		return false, err
	}
	info, err := f.root.Stat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil && info.Mode().IsRegular() && info.Size() == d.Size, err
}

// Push implements target. A manifest becomes an entry of the index.
func (f *folder) Push(_ context.Context, d ocispec.Descriptor, r io.Reader) error {
	name, err := blobName(d)
	if err != nil {
		return err
	}
	data, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	if err := f.write(name, data); err != nil {
		return err
	}
	if d.MediaType != ocispec.MediaTypeImageManifest || slices.ContainsFunc(f.index.Manifests, func(o ocispec.Descriptor) bool { return o.Digest == d.Digest }) {
		return nil
	}
	f.index.Manifests = append(f.index.Manifests, d)
	return f.save()
}

// PushReference implements target.
func (f *folder) PushReference(ctx context.Context, d ocispec.Descriptor, r io.Reader, tag string) error {
	if err := f.Push(ctx, d, r); err != nil {
		return err
	}
	var kept []ocispec.Descriptor
	for _, o := range f.index.Manifests {
		switch {
		case o.Annotations[ocispec.AnnotationRefName] == tag && o.Digest != d.Digest: // the tag moves
			delete(o.Annotations, ocispec.AnnotationRefName)
		case o.Digest == d.Digest && o.Annotations[ocispec.AnnotationRefName] == "", o.Annotations[ocispec.AnnotationRefName] == tag:
			continue // replaced by the entry that is added below
		}
		kept = append(kept, o)
	}
	d.Annotations = map[string]string{ocispec.AnnotationRefName: tag}
	f.index.Manifests = append(kept, d)
	return f.save()
}
