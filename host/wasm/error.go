package wasm

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"sync"
	"unicode"
	"unicode/utf8"
)

// The errors of Decode for a file that is no core module, or too large. They are wrapped in a
// sentence; test with errors.Is.
var (
	// ErrNotWasm is returned when the file is not WebAssembly; the text of the error names the
	// likely format.
	ErrNotWasm = errors.New("not a WebAssembly module")
	// ErrComponent is returned when the file is a WebAssembly component, not a core module.
	ErrComponent = errors.New("a component, not a core module")
	// ErrVersion is returned when the version is neither 1 nor one of components, and by
	// [DecodeComponent] for any other version of components than that of WASI 0.2 and 0.3.
	ErrVersion = errors.New("unsupported version of the WebAssembly binary format")
	// ErrTooLarge is returned when the file has more than [MaxModuleBytes], or would have.
	ErrTooLarge = errors.New("module is too large")
)

// FormatError is the error for a file with the header of a core module or component that breaks
// the binary format, exceeds one of the Max constants, or uses an unsupported extension.
type FormatError struct {
	Offset int    // byte of the file at which the violation begins; may be 0 with an Extension
	What   string // the violation; lower case, no full stop; may be empty with an Extension
	// Extension names the extension of WebAssembly that the module uses and the host does not
	// run; empty: the module is malformed or exceeds a limit.
	Extension string
}

func (e *FormatError) Error() string {
	if e.Extension != "" {
		return fmt.Sprintf("it uses %s, which this host does not run", e.Extension)
	}
	return fmt.Sprintf("malformed module at byte %d: %s", e.Offset, e.What)
}

var (
	magic       = []byte("\x00asm")
	version1    = []byte{1, 0, 0, 0}
	headerBytes = len(magic) + len(version1)

	componentVersion = []byte{13, 0, 1, 0} // version of the component model in WASI 0.2 and 0.3
)

func checkHeader(data []byte) error {
	switch {
	case len(data) == 0:
		return fmt.Errorf("%w: the file is empty", ErrNotWasm)
	case !bytes.HasPrefix(data, magic) && (len(data) >= len(magic) || !bytes.HasPrefix(magic, data)):
		return fmt.Errorf("%w: it looks like %s", ErrNotWasm, looksLike(data))
	case len(data) < headerBytes:
		return fmt.Errorf("%w: the file ends within the header, after %d bytes", ErrNotWasm, len(data))
	case len(data) > MaxModuleBytes:
		return fmt.Errorf("%w: %d bytes, more than %d", ErrTooLarge, len(data), MaxModuleBytes)
	}
	version := data[len(magic):headerBytes]
	switch {
	case bytes.Equal(version, version1):
		return nil
	case version[2] == 1 && version[3] == 0: // the layer field of the component model
		return fmt.Errorf("the file is %w", ErrComponent)
	}
	return fmt.Errorf("%w: % x", ErrVersion, version)
}

var signatures = []struct{ prefix, what string }{
	{"\x7fELF", "an ELF executable or library"},
	{"MZ", "a Windows executable"},
	{"\xcf\xfa\xed\xfe", "a Mach-O executable"},
	{"\xce\xfa\xed\xfe", "a Mach-O executable"},
	{"\xca\xfe\xba\xbe", "a universal Mach-O executable or a Java class"},
	{"\x1f\x8b", "gzip; unpack it first"},
	{"\x28\xb5\x2f\xfd", "zstd; unpack it first"},
	{"BZh", "bzip2; unpack it first"},
	{"\xfd7zXZ\x00", "xz; unpack it first"},
	{"PK\x03\x04", "a zip archive; unpack it first"},
	{"!<arch>\n", "a static library (ar archive)"},
	{"BC\xc0\xde", "LLVM bitcode; link it first"},
	{"version https://git-lfs.github.com/", "a Git LFS pointer; run git lfs pull"},
	{"#!", "a script"},
	{"SQLite format 3\x00", "a SQLite database"},
}

// looksLike returns the likely format of a file, from its first bytes, as the end of a sentence.
func looksLike(data []byte) string {
	for _, s := range signatures {
		if bytes.HasPrefix(data, []byte(s.prefix)) {
			return s.what
		}
	}
	const tarMagicAt = 257
	if len(data) > tarMagicAt && bytes.HasPrefix(data[tarMagicAt:], []byte("ustar")) {
		return "a tar archive; unpack it first"
	}
	head := data[:min(len(data), 512)]
	if len(data) > len(head) {
		head = trimPartialRune(head)
	}
	if !utf8.Valid(head) || bytes.ContainsFunc(head, func(r rune) bool {
		return unicode.IsControl(r) && !unicode.IsSpace(r)
	}) {
		return "some other binary file"
	}
	text := bytes.ToLower(bytes.TrimLeftFunc(bytes.TrimPrefix(head, []byte("\ufeff")), unicode.IsSpace))
	for _, s := range []struct{ prefix, what string }{
		{"<!doctype html", "an HTML page; the download may have failed"},
		{"<html", "an HTML page; the download may have failed"},
		{"<", "XML or HTML"},
		{"{", "JSON"},
		{"[", "JSON"},
		{"(module", "WebAssembly text; assemble it first"},
		{"(component", "WebAssembly text; assemble it first"},
		{";;", "WebAssembly text; assemble it first"},
	} {
		if bytes.HasPrefix(text, []byte(s.prefix)) {
			return s.what
		}
	}
	if javaScript().Match(text) {
		return "JavaScript"
	}
	return "text"
}

// javaScript returns a pattern for the start of a text, which must be in lower case. Only
// JavaScript begins like this.
var javaScript = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(?:(?:/\*[^*]*\*/|//[^\n]*\n)\s*)*(?:['"]use strict['"]|export (?:default|async|const|function|class|\{|\*)|` +
		`import (?:['"{*]|[\w$]+(?:, *\{[^}]*\})? from ['"])|(?:const|let|var) [\w${}, ]+ = (?:require\(|async |\(|function)|(?:async )?function[ *]|module\.exports)`)
})

// trimPartialRune removes a rune that the end of b cuts off.
func trimPartialRune(b []byte) []byte {
	for i := 1; i < utf8.UTFMax && i <= len(b); i++ {
		if utf8.RuneStart(b[len(b)-i]) {
			if !utf8.FullRune(b[len(b)-i:]) {
				return b[:len(b)-i]
			}
			break
		}
	}
	return b
}
