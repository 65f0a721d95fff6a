package secret

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stockade-dev/stockade/host/tool"
)

// kept creates a file with one secret and returns its folder.
func kept(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	if err := newTestFile(t, dir).Set(t.Context(), aRecord("TOKEN", "value-of-token")); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestFilesArePrivateAndHoldNoValue(t *testing.T) {
	dir := kept(t)
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		if runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
			t.Errorf("%s has the mode %v", path, info.Mode())
		}
		data, err := os.ReadFile(path)
		clean(t, path, string(data), "value-of-token", "api.example.com")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestAFileThatIsNotAsItWasWritten(t *testing.T) {
	dir := kept(t)
	path := filepath.Join(dir, "data", "s")
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	refused := func(what string, data []byte) {
		t.Helper()
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		f := newTestFile(t, dir)
		_, err := f.Get(t.Context(), "TOKEN")
		if err == nil || errors.Is(err, ErrNotFound) || !errors.Is(err, ErrDamaged) && !errors.Is(err, ErrFormat) && !errors.Is(err, ErrWrongKey) {
			t.Fatalf("%s: %v", what, err)
		}
		clean(t, what, err.Error(), "value-of-token")
		// A writer must not lose the secrets in it.
		if err := f.Set(t.Context(), aRecord("NEW", "another-value")); err == nil {
			t.Fatalf("%s: it was replaced", what)
		}
		if now, err := os.ReadFile(path); err != nil || !bytes.Equal(now, data) {
			t.Fatalf("%s: it was written to, %v", what, err)
		}
	}
	for n := range good {
		refused("cut short", good[:n])
		changed := bytes.Clone(good)
		changed[n] ^= 1
		refused("changed", changed)
	}
	refused("longer", append(bytes.Clone(good), 0))
	refused("of another kind", []byte("[secrets]\nTOKEN = 1\n"))
	refused("of a newer version", bytes.Replace(good, []byte(" v1\n"), []byte(" v2\n"), 1))

	if err := os.WriteFile(path, good, 0o600); err != nil {
		t.Fatal(err)
	}
	if r, err := newTestFile(t, dir).Get(t.Context(), "TOKEN"); err != nil || r.Value.Reveal() != "value-of-token" {
		t.Errorf("the file as it was: %v", err)
	}
}

func TestTheWrongKey(t *testing.T) {
	dir := kept(t)
	key := filepath.Join(dir, "state", "k")
	if err := os.WriteFile(key, []byte(strings.Repeat("00", 32)), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := newTestFile(t, dir).Get(t.Context(), "TOKEN"); !errors.Is(err, ErrWrongKey) || !strings.Contains(err.Error(), key) {
		t.Errorf("another key: %v", err)
	}
	if err := os.WriteFile(key, []byte("not hex"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := newTestFile(t, dir).Get(t.Context(), "TOKEN"); !errors.Is(err, ErrDamaged) {
		t.Errorf("no key: %v", err)
	}
	if err := os.Remove(key); err != nil {
		t.Fatal(err)
	}
	f := newTestFile(t, dir)
	if err := f.Set(t.Context(), aRecord("NEW", "another-value")); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "key of the secrets is gone") {
		t.Errorf("the key is gone: %v", err)
	}
	if _, err := os.Stat(key); err == nil {
		t.Error("another key was made, and what is in the file is lost")
	}
}

func TestPassphrases(t *testing.T) {
	dir, asked := t.TempDir(), 0
	f := passphraseFile(dir, "correct horse", &asked)
	for range 3 {
		if err := f.Set(t.Context(), aRecord("TOKEN", "value-of-token")); err != nil {
			t.Fatal(err)
		}
	}
	if asked != 1 {
		t.Errorf("it was asked for %d times", asked)
	}
	if _, err := os.Stat(filepath.Join(dir, "state", "k")); err == nil {
		t.Error("there is a key file beside the passphrase")
	}
	_, err := passphraseFile(dir, "wrong horse", &asked).Get(t.Context(), "TOKEN")
	if !errors.Is(err, ErrWrongKey) || !strings.Contains(err.Error(), "not its passphrase") {
		t.Errorf("the wrong one: %v", err)
	}
	clean(t, "the wrong one", err.Error(), "wrong horse", "correct horse")
	if _, err := newTestFile(t, dir).Get(t.Context(), "TOKEN"); !errors.Is(err, ErrUnavailable) {
		t.Errorf("nobody to ask: %v", err)
	}
	refusing := NewFile(FileOptions{Path: filepath.Join(dir, "data", "s"), AskPassphrase: func(context.Context, bool) ([]byte, error) { return nil, fs.ErrClosed }})
	if _, err := refusing.Get(t.Context(), "TOKEN"); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("a person who does not answer: %v", err)
	}
	// After a wrong passphrase, the right one works in the same process.
	answers := []string{"wrong", "correct horse"}
	again := NewFile(FileOptions{Path: filepath.Join(dir, "data", "s"), AskPassphrase: func(context.Context, bool) ([]byte, error) {
		next := answers[0]
		answers = answers[1:]
		return []byte(next), nil
	}})
	if _, err := again.Get(t.Context(), "TOKEN"); !errors.Is(err, ErrWrongKey) {
		t.Error(err)
	}
	if r, err := again.Get(t.Context(), "TOKEN"); err != nil || r.Value.Reveal() != "value-of-token" {
		t.Errorf("the right one behind the wrong one: %v", err)
	}
}

// TestACrashLosesNothing interrupts a change at each step that can be observed from
// outside. The old records must still be there.
func TestACrashLosesNothing(t *testing.T) {
	dir := kept(t)
	data := filepath.Join(dir, "data")
	// The file of a process that was killed before the rename.
	if err := os.WriteFile(filepath.Join(data, ".s-123"), []byte("half of a fi"), 0o600); err != nil {
		t.Fatal(err)
	}
	if r, err := newTestFile(t, dir).Get(t.Context(), "TOKEN"); err != nil || r.Value.Reveal() != "value-of-token" {
		t.Errorf("%v", err)
	}
	// In a folder that cannot be written there is an error, and the old file stays.
	before, err := os.ReadFile(filepath.Join(data, "s"))
	if err != nil {
		t.Fatal(err)
	}
	if err := writePrivate(filepath.Join(data, "s", "below"), []byte("x")); err == nil {
		t.Error("a file is a folder")
	}
	if after, err := os.ReadFile(filepath.Join(data, "s")); err != nil || !bytes.Equal(before, after) {
		t.Error("the file has changed")
	}
	// The key exists before the first file that needs it.
	dir = t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "data", "s"), 0o700); err != nil { // no file can take its place
		t.Fatal(err)
	}
	f := newTestFile(t, dir)
	if err := f.Set(t.Context(), aRecord("TOKEN", "value-of-token")); err == nil {
		t.Error("a directory was replaced")
	}
}

func TestMaxRecords(t *testing.T) {
	dir := t.TempDir()
	f := newTestFile(t, dir)
	err := f.change(t.Context(), func([]storedRecord) ([]storedRecord, error) {
		var all []storedRecord
		for i := range maxRecords {
			all = append(all, aRecord("N"+strings.Repeat("x", i%60)+string(rune('a'+i/60)), "value-of-token").stored())
		}
		return all, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Set(t.Context(), aRecord("ONE_MORE", "value-of-token")); err == nil {
		t.Error("there is no limit")
	}
}

// TestWhatCanBeWrittenCanBeRead uses records that grow most when they are encoded.
func TestWhatCanBeWrittenCanBeRead(t *testing.T) {
	r := Record{Info: Info{Name: strings.Repeat("N", 64), Header: strings.Repeat("&", 64), SetAt: time.Now()}, Value: NewValue(strings.Repeat("\x01", MaxValueBytes))}
	for i := range tool.MaxHostsPerSecret {
		r.Hosts = append(r.Hosts, fmt.Sprintf("%s%02d:65535", strings.Repeat("a.", 125), i))
	}
	if err := r.Check(); err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(r.stored())
	if err != nil || len(data)+100 > maxRecordBytes {
		t.Errorf("a record has %d bytes, %v", len(data), err)
	}
	dir := t.TempDir()
	f := newTestFile(t, dir)
	many := make([]storedRecord, maxRecords)
	for i := range many {
		many[i] = r.stored()
		many[i].Name = fmt.Sprintf("N%063d", i)
	}
	if err := f.change(t.Context(), func([]storedRecord) ([]storedRecord, error) { return many, nil }); err != nil {
		t.Fatal(err)
	}
	if names, err := newTestFile(t, dir).Names(t.Context()); len(names) != maxRecords || err != nil {
		t.Errorf("%d records are there, %v", len(names), err)
	}
}

// TestAKeyIsNotDerivedAtAnyPrice checks that a file can ask for only a little more work
// than this program's own files.
func TestAKeyIsNotDerivedAtAnyPrice(t *testing.T) {
	good := newPassphraseOrigin()
	for what, change := range map[string]func(*origin){
		"passes": func(o *origin) { o.Passes = 17 }, "memory": func(o *origin) { o.MemoryKiB = 1 << 20 }, "all memory": func(o *origin) { o.MemoryKiB = 1<<32 - 1 },
		"no passes": func(o *origin) { o.Passes = 0 }, "no lanes": func(o *origin) { o.Lanes = 0 }, "no memory": func(o *origin) { o.MemoryKiB = 0 },
	} {
		o := good
		change(&o)
		data, err := seal(make([]byte, 32), o, []byte("[]"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := parseHeader(data); !errors.Is(err, ErrDamaged) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// The format of files on disk: these were written by the first version.
func TestTheFormatStays(t *testing.T) {
	key := make([]byte, 32)
	for i := range key {
		key[i] = byte(i)
	}
	passphrase := origin{Source: sourcePassphrase, Passes: 3, MemoryKiB: 64 << 10, Lanes: 4}
	for i := range passphrase.Salt {
		passphrase.Salt[i] = byte(0xa0 + i)
	}
	for file, want := range map[string]origin{
		"73746f636b61646520736563726574732076310a0100000000000000000000000000000000000000000000000000e0df44b62f5f835a000000123060637548fb7d7163ebce8d99de9659d909aabed823b02fd9fe905bced31b24dc79ae20a83d5fa57331": {Source: sourceKeyFile},
		"73746f636b61646520736563726574732076310a02000000030001000004a0a1a2a3a4a5a6a7a8a9aaabacadaeafe0df44b62f5f835a00000012b1791523fabffbe9f130e8214862a4c9cfe5b948a47c0c2350b8b7605985d1938c60ecb0057e86a7f9b9": passphrase,
	} {
		data, err := hex.DecodeString(file)
		if err != nil {
			t.Fatal(err)
		}
		h, err := parseHeader(data)
		if err != nil || h.Origin != want {
			t.Errorf("it says %+v, %v", h.Origin, err)
		}
		if text, err := open(key, h, data); err != nil || string(text) != "[]" {
			t.Errorf("it holds %q, %v", text, err)
		}
		again, err := seal(key, want, []byte("[]"))
		const nonce = headerBytes - 24 // and what it changes
		if err != nil || !bytes.Equal(again[:nonce], data[:nonce]) || len(again) != len(data) {
			t.Errorf("it is written as %x, %v", again, err)
		}
	}
}

// FuzzFile checks that reading any file ends, allocates little, and reports a file that is
// not ours.
func FuzzFile(f *testing.F) {
	key := bytes.Repeat([]byte{7}, 32)
	good, err := seal(key, origin{Source: sourceKeyFile}, []byte(`[{"name":"A","value":"abcd"}]`))
	if err != nil {
		f.Fatal(err)
	}
	pass, err := seal(key, newPassphraseOrigin(), []byte(`[]`))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add(pass)
	f.Add(good[:headerBytes])
	f.Add([]byte(magic))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, data []byte) {
		h, err := parseHeader(data)
		if err != nil {
			if !errors.Is(err, ErrDamaged) && !errors.Is(err, ErrFormat) {
				t.Errorf("%v", err)
			}
			return
		}
		if h.Origin.MemoryKiB > maxMemoryKiB && h.Origin.Source == sourcePassphrase {
			t.Errorf("it asks for %d KiB", h.Origin.MemoryKiB)
		}
		text, err := open(key, h, data)
		// Seeds are sealed anew in each process, so only their plaintext is compared.
		if err == nil && string(text) != `[{"name":"A","value":"abcd"}]` && string(text) != "[]" {
			t.Errorf("%x is taken for ours and says %q", data, text)
		}
	})
}
