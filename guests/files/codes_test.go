package main

import (
	"strings"
	"testing"

	"github.com/stockade-dev/stockade/sdk/go/tool"
)

// TestCodes: a model or a script tells these failures apart without reading them.
func TestCodes(t *testing.T) {
	tree(t, map[string]string{"f": "a b a\n", "bin": "\x00", "large": strings.Repeat("x", maxEditBytes+1), "dir/": ""})
	for _, tt := range []struct {
		name, code string
		call       func() error
	}{
		{"the text occurs twice", "NOT_UNIQUE", func() error { return errOf(fileEdit(t.Context(), editArgs{Path: "f", OldString: "a", NewString: "x"})) }},
		{"it does not occur", "NO_MATCH", func() error { return errOf(fileEdit(t.Context(), editArgs{Path: "f", OldString: "c", NewString: "x"})) }},
		{"a binary file to edit", "BINARY_FILE", func() error {
			return errOf(fileEdit(t.Context(), editArgs{Path: "bin", OldString: "c", NewString: "x"}))
		}},
		{"a large file to edit", "TOO_LARGE", func() error {
			return errOf(fileEdit(t.Context(), editArgs{Path: "large", OldString: "c", NewString: "x"}))
		}},
		{"a hash of a large file to write", "TOO_LARGE", func() error {
			return errOf(fileWrite(t.Context(), writeArgs{Path: "large", ExpectedSHA256: hashOf(nil)}))
		}},
		{"a directory to edit", "NOT_A_FILE", func() error {
			return errOf(fileEdit(t.Context(), editArgs{Path: "dir", OldString: "c", NewString: "x"}))
		}},
		{"other content than was seen", "CONTENT_CHANGED", func() error {
			return errOf(fileWrite(t.Context(), writeArgs{Path: "f", ExpectedSHA256: hashOf(nil)}))
		}},
		{"a file to list", "NOT_A_DIRECTORY", func() error { return errOf(ls(t.Context(), lsArgs{Path: "f"})) }},
		{"a page behind the end", "OUT_OF_RANGE", func() error { return errOf(fileRead(t.Context(), readArgs{Path: "f", Offset: 2, Limit: 1})) }},
		{"a pattern that is none", "BAD_PATTERN", func() error { return errOf(glob(t.Context(), globArgs{Pattern: "[a"})) }},
		{"a path that is not there", "", func() error { return errOf(fileRead(t.Context(), readArgs{Path: "g"})) }}, // the kind says it
	} {
		t.Run(tt.name, func(t *testing.T) {
			if err := tt.call(); err == nil || tool.CodeOf(err) != tt.code {
				t.Errorf("the code is %q, want %q: %v", tool.CodeOf(err), tt.code, err)
			}
		})
	}
}

func errOf[T any](_ T, err error) error { return err }
