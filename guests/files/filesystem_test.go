package main

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stockade-dev/stockade/sdk/go/tool"
)

func TestFilesystem(t *testing.T) {
	tree(t, map[string]string{"f": "a\r\nü\n", "dir/.h": "x", "dir/sub/": "", "link": "->f", "dangling": "->nowhere"})
	at := time.Date(2024, 2, 3, 4, 5, 6, 0, time.UTC)
	for _, name := range []string{"f", "dir"} {
		if err := os.Chtimes(name, at, at); err != nil {
			t.Fatal(err)
		}
	}
	const modified = "2024-02-03T04:05:06Z"
	yes, no := true, false
	size := int64(6)
	do := func(operation, path string) filesystemResult {
		t.Helper()
		return works(t, filesystem, filesystemArgs{Operation: operation, Path: path})
	}
	for _, tt := range []struct {
		operation, path string
		want            filesystemResult
	}{
		{"read", "f", filesystemResult{Output: "a\r\nü\n", SHA256: hashOf([]byte("a\r\nü\n"))}},
		{"exists", "f", filesystemResult{Output: "true", Exists: &yes}},
		{"exists", "dangling", filesystemResult{Output: "true", Exists: &yes}},
		{"exists", "g", filesystemResult{Output: "false", Exists: &no}},
		{"exists", "f/g", filesystemResult{Output: "false", Exists: &no}},
		{"exists", "no/such/file", filesystemResult{Output: "false", Exists: &no}},
		{"metadata", "f", filesystemResult{Output: "f: file of 6 bytes, modified " + modified, Type: "file", Size: &size, Modified: modified}},
		{"metadata", "dir", filesystemResult{Output: "dir: directory, modified " + modified, Type: "directory", Modified: modified}},
	} {
		if diff := cmp.Diff(tt.want, do(tt.operation, tt.path)); diff != "" {
			t.Errorf("%s %s (-want +got):\n%s", tt.operation, tt.path, diff)
		}
	}
	if out := do("metadata", "link"); out.Type != "link" || out.Target != "f" || out.Size != nil || !strings.HasSuffix(out.Output, "leads to f") {
		t.Errorf("a link is %+v", out)
	}
	if out := do("list", "dir"); out.Count != 2 || !strings.Contains(out.Output, ".h\n") || !strings.Contains(out.Output, "sub/\n") {
		t.Errorf("a directory is %+v", out)
	}
}

func TestFilesystemErrors(t *testing.T) {
	tree(t, map[string]string{"f": "x", "dir/": "", "bin": "\x00\x01", "img.png": "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR", "latin": "\xfc", "wide": "\xff\xfea\x00", "large": strings.Repeat("x", maxWholeRead+1)})
	for _, tt := range []struct{ operation, path, code, says string }{
		{"read", "", "", "path is empty"},
		{"read", "g", "", "did you mean f?"},
		{"read", "dir", "NOT_A_FILE", "is a directory; ls lists it"},
		{"read", "bin", "BINARY_FILE", "binary"},
		{"read", "img.png", "BINARY_FILE", "is an image, and no text; file_read shows it to you"},
		{"read", "latin", "UNKNOWN_ENCODING", "file_read shows other encodings"},
		{"read", "wide", "UNKNOWN_ENCODING", "file_read shows other encodings"},
		{"read", "large", "TOO_LARGE", "file_read reads it in pages"},
		{"list", "f", "NOT_A_DIRECTORY", "not a directory"},
		{"list", "g", "", "no such file"},
		{"metadata", "g", "", "no such file"},
		{"metadata", "f/g", "NOT_A_DIRECTORY", "a part of the path is a file"},
		{"exists", "a\x00", "", "NUL"},
	} {
		_, err := filesystem(t.Context(), filesystemArgs{Operation: tt.operation, Path: tt.path})
		if err == nil || tool.CodeOf(err) != tt.code || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%s %s: %q %v", tt.operation, tt.path, tool.CodeOf(err), err)
		}
	}
}
