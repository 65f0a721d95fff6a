package source

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/mod/semver"

	"github.com/stockade-dev/stockade/host/internal/regular"
	"github.com/stockade-dev/stockade/host/registry/oci"
	"github.com/stockade-dev/stockade/host/registry/sign"
	"github.com/stockade-dev/stockade/host/sandbox/admit"
)

// SignatureSuffix is added to the file name of a module to get the name of its signature file.
const SignatureSuffix = ".dsse.json"

// Limits on signature files and on folders; what exceeds one is an error.
const (
	maxSignatures     = 64
	maxSignatureBytes = 64 << 10 // size of each signature in a signature file
	maxFileBytes      = 1 << 20  // size of a signature file
	maxEntries        = 10_000   // number of files in a folder
)

// Options gives access to the network. The zero Options permit only files of this machine.
type Options struct {
	// Client returns a client that reaches the server at this URL, which has no path.
	// Nil: the network is not used.
	Client func(base string) (*http.Client, error)
	// Credentials is for registries. Nil: requests are anonymous, as they should be
	// unless a person has named the reference.
	Credentials oci.Credentials
	// Progress is called with the number of bytes of the module that have arrived, and
	// their total; 0: the total is unknown. May be nil.
	Progress func(done, total int64)
	Warn     func(text string) // called with the reason why a login is not used; may be nil
}

// Candidate is a module that may be added.
type Candidate struct {
	Code   []byte
	Digest string // SHA-256 of Code, in hex
	// Source is a reference for fetching the module again; a path is absolute.
	Source string
	// Repository is HOST/REPOSITORY, to which signatures are bound, and ManifestDigest is
	// "sha256:HEX". Both are empty for a file; a layout has only ManifestDigest.
	Repository     string
	ManifestDigest string
	Evidence       sign.Evidence
}

// Fetch reads the module that a reference names, and its signatures.
func Fetch(ctx context.Context, ref string, opts Options) (*Candidate, error) {
	scheme, _, ok := strings.Cut(ref, "://")
	switch {
	case !ok:
		return fetchLocal(ctx, ref, opts)
	case scheme == "oci":
		return fetchArtifact(ctx, ref, opts)
	case scheme == "https" || scheme == "http":
		return fetchWeb(ctx, ref, opts)
	}
	return nil, fmt.Errorf("fetch %.200q: a module is fetched from a file, a folder, https://..., oci://HOST/REPOSITORY:TAG or a folder that is an OCI image layout; %.20q is none of these", ref, scheme+"://")
}

func fetchArtifact(ctx context.Context, s string, opts Options) (*Candidate, error) {
	ref, err := oci.ParseReference(s)
	if err != nil {
		return nil, err
	}
	client, err := opts.client(ref.Base())
	if err != nil {
		return nil, err
	}
	c := oci.Client{HTTP: client, Credentials: opts.Credentials, Progress: opts.Progress, Warn: opts.Warn}
	a, err := c.Pull(ctx, ref)
	if err != nil {
		return nil, err
	}
	out := candidateOf(a, ref.String())
	out.Repository = ref.Repository()
	return out, nil
}

func candidateOf(a *oci.Artifact, source string) *Candidate {
	return &Candidate{Code: a.Code, Digest: a.Digest, Source: source, ManifestDigest: a.ManifestDigest, Evidence: a.Evidence}
}

func (o Options) client(base string) (*http.Client, error) {
	if o.Client == nil {
		return nil, fmt.Errorf("%s is not reached: the network is not used here", base)
	}
	return o.Client(base)
}

// NewestReference returns a reference with the tag of the newest version in the place of ref;
// empty: no version is newer than the module. version is the module's version, used if the tag
// of ref is no version. A pre-release counts only if the module's version is one, too.
func NewestReference(ctx context.Context, ref, version string, opts Options) (newest string, err error) {
	r, err := oci.ParseReference(ref)
	place, tag := oci.Scheme+r.Repository(), r.Tag
	var tags []string
	if err == nil {
		c := oci.Client{Credentials: opts.Credentials}
		if c.HTTP, err = opts.client(r.Base()); err == nil {
			tags, err = c.Tags(ctx, r)
		}
	} else if l := oci.ParseLayout(ref); oci.IsLayout(l.Dir) {
		place, tag = l.Dir, l.Tag
		tags, err = l.Tags()
	} else {
		return "", nil
	}
	if v := strings.TrimPrefix(tag, "v"); sign.ValidVersion(v) {
		version = v
	}
	if !sign.ValidVersion(version) {
		return "", err
	}
	highest := "v" + version
	prerelease := semver.Prerelease(highest) != ""
	for _, tag := range tags {
		v := "v" + strings.TrimPrefix(tag, "v")
		if sign.ValidVersion(v[1:]) && semver.Compare(v, highest) > 0 && (prerelease || semver.Prerelease(v) == "") {
			highest, newest = v, place+":"+tag
		}
	}
	return newest, err
}

// fetchLocal fetches a file, a folder or a layout of this machine.
func fetchLocal(ctx context.Context, ref string, opts Options) (*Candidate, error) {
	if strings.ContainsRune(ref, 0) || ref == "" {
		return nil, errors.New("fetch a module: no file is named")
	}
	path, err := filepath.Abs(ref)
	if err != nil {
		return nil, err
	}
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		if l := oci.ParseLayout(path); l.Dir != path && oci.IsLayout(l.Dir) {
			return fetchLayout(ctx, l)
		}
		return nil, fmt.Errorf("fetch %s: there is no such file or folder; a module of a registry is oci://HOST/REPOSITORY:TAG", ref)
	}
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return fetchFile(filepath.Dir(path), filepath.Base(path), opts)
	}
	if oci.IsLayout(path) {
		return fetchLayout(ctx, oci.Layout{Dir: path})
	}
	name, err := soleModule(path)
	if err != nil {
		return nil, fmt.Errorf("fetch %s: %w", path, err)
	}
	return fetchFile(path, name, opts)
}

func fetchLayout(ctx context.Context, l oci.Layout) (*Candidate, error) {
	a, err := l.Pull(ctx)
	if err != nil {
		return nil, err
	}
	return candidateOf(a, l.String()), nil
}

// soleModule returns the name of the only module in a folder. Several or none are an error.
func soleModule(dir string) (string, error) {
	f, err := os.Open(dir)
	if err != nil {
		return "", err
	}
	defer f.Close()
	entries, err := f.ReadDir(maxEntries)
	if err != nil && !errors.Is(err, io.EOF) {
		return "", err
	}
	if len(entries) == maxEntries {
		return "", fmt.Errorf("the folder has %d entries or more; name the file", maxEntries)
	}
	var found []string
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), ".wasm") && !e.IsDir() {
			found = append(found, e.Name())
		}
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return "", errors.New("the folder has no file NAME.wasm and is no OCI image layout")
	}
	return "", fmt.Errorf("the folder has %d files NAME.wasm; name one of them", len(found))
}

// fetchFile reads the module called name in the folder dir, and its signature file.
func fetchFile(dir, name string, opts Options) (*Candidate, error) {
	path := filepath.Join(dir, name)
	f, info, err := regular.Open(path)
	if err != nil {
		return nil, fmt.Errorf("fetch %s: %w", path, err)
	}
	defer f.Close()
	out, err := candidate(f, info.Size(), path, opts)
	if err != nil {
		return nil, fmt.Errorf("fetch %s: %w", path, err)
	}
	s, _, err := regular.Open(path + SignatureSuffix)
	if errors.Is(err, fs.ErrNotExist) {
		return out, nil
	}
	if err == nil {
		defer s.Close()
		out.Evidence, err = evidence(s)
	}
	if err != nil {
		return nil, fmt.Errorf("the signatures %s: %w", path+SignatureSuffix, err)
	}
	return out, nil
}

// candidate reads a module from r. size is its size in bytes if it is known; 0: unknown.
func candidate(r io.Reader, size int64, source string, opts Options) (*Candidate, error) {
	if size > admit.MaxBytes {
		return nil, fmt.Errorf("it has %d bytes, more than the %d that a module may have", size, admit.MaxBytes)
	}
	if opts.Progress != nil {
		r = &counter{r: r, total: size, tell: opts.Progress}
	}
	code, err := io.ReadAll(io.LimitReader(r, admit.MaxBytes+1))
	if err != nil {
		return nil, err
	}
	if len(code) > admit.MaxBytes {
		return nil, fmt.Errorf("it has more than the %d bytes that a module may have", admit.MaxBytes)
	}
	if !bytes.HasPrefix(code, []byte("\x00asm")) {
		return nil, errors.New("it is no WebAssembly module")
	}
	sum := sha256.Sum256(code)
	return &Candidate{Code: code, Digest: hex.EncodeToString(sum[:]), Source: source}, nil
}

type counter struct {
	r           io.Reader
	done, total int64
	tell        func(done, total int64)
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	if n > 0 {
		c.done += int64(n)
		c.tell(c.done, c.total)
	}
	return n, err
}

// evidence reads the content of a signature file.
func evidence(r io.Reader) (sign.Evidence, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxFileBytes+1))
	if err != nil {
		return sign.Evidence{}, err
	}
	if len(data) > maxFileBytes {
		return sign.Evidence{}, fmt.Errorf("it has more than %d bytes", maxFileBytes)
	}
	all := []json.RawMessage{data}
	if bytes.HasPrefix(bytes.TrimSpace(data), []byte("[")) {
		all = nil
		err = json.Unmarshal(data, &all)
	}
	if err != nil || len(all) == 0 || len(all) > maxSignatures {
		return sign.Evidence{}, fmt.Errorf("it is neither a DSSE envelope nor a JSON array of 1 to %d", maxSignatures)
	}
	var out sign.Evidence
	for _, e := range all {
		e = bytes.TrimSpace(e)
		if len(e) > maxSignatureBytes || !json.Valid(e) || e[0] != '{' {
			return sign.Evidence{}, fmt.Errorf("it holds something else than a DSSE envelope of at most %d bytes", maxSignatureBytes)
		}
		out.Envelopes = append(out.Envelopes, e)
	}
	return out, nil
}
