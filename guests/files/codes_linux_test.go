package main

import (
	"encoding/binary"
	"fmt"
	"strings"
	"syscall"
	"testing"

	"github.com/stockade-dev/stockade/guests/internal/codetest"
)

// byPath is each tool with a call that is about a file.
func byPath(t *testing.T) map[string]func(path string) error {
	update := func(path string) string {
		return "*** Begin Patch\n*** Update File: " + path + "\n@@\n-a\n+b\n*** End Patch"
	}
	return map[string]func(path string) error{
		"ls":         func(path string) error { return errOf(ls(t.Context(), lsArgs{Path: path})) },
		"glob":       func(path string) error { return errOf(glob(t.Context(), globArgs{Pattern: "*", Path: path})) },
		"grep":       func(path string) error { return errOf(grep(t.Context(), grepArgs{Pattern: "a", Path: path})) },
		"file_read":  func(path string) error { return errOf(fileRead(t.Context(), readArgs{Path: path})) },
		"filesystem": func(path string) error { return errOf(filesystem(t.Context(), filesystemArgs{"read", path})) },
		"file_write": func(path string) error { return errOf(fileWrite(t.Context(), writeArgs{Path: path, Content: "b\n"})) },
		"file_edit": func(path string) error {
			return errOf(fileEdit(t.Context(), editArgs{Path: path, OldString: "a", NewString: "b"}))
		},
		"replace_lines": func(path string) error {
			return errOf(replaceLines(t.Context(), replaceArgs{Path: path, LineStart: 1, LineEnd: 1, NewContent: "b"}))
		},
		"insert_lines": func(path string) error {
			return errOf(insertLines(t.Context(), insertArgs{Path: path, LineStart: 1, NewContent: "b"}))
		},
		"apply_patch": func(path string) error { return errOf(applyPatch(t.Context(), patchArgs{Patch: update(path)})) },
	}
}

// TestCodes: a model or a script tells these failures apart without reading them.
func TestCodes(t *testing.T) {
	img := string(drawing(t, 64, 48))
	tree(t, map[string]string{
		"f": "a\n", "twice": "a\na\n", "crlf": "a\r\n", "latin": "\xfc\na\n", "bin": "\x7fELF\x02\x01\x00\x00\x00\x00\x00\x00", "utf32": wide(binary.LittleEndian, 4, "abcd"),
		"half": "\xff\xfea\x00\n\x00b", "large": strings.Repeat("x", maxEditBytes+1), "long": strings.Repeat("x", maxReadOutput+1), "dir/": "", "dangling": "->nowhere", "big": "a\n" + strings.Repeat("x", 2<<20),
		"broken.png": img[:40], "large.png": img + strings.Repeat("\x00", 8<<20), "many": strings.Repeat("a", maxReplacements+1),
	})
	if err := syscall.Mkfifo("pipe", 0o666); err != nil {
		t.Fatal(err)
	}
	tools := byPath(t)
	var cases []codetest.Case
	add := func(tool, code, name string, call func() error) {
		cases = append(cases, codetest.Case{Name: name, Tool: tool, Code: code, Call: call})
	}
	of := func(tool, code, path string) {
		add(tool, code, path, func() error { return tools[tool](path) })
	}
	for tool := range tools {
		missing := "gone"
		if tool == "file_write" {
			missing = "dangling"
		}
		of(tool, "NOT_FOUND", missing)
		of(tool, "NOT_A_DIRECTORY", "f/x")
		switch tool {
		case "ls", "glob":
			of(tool, "NOT_A_DIRECTORY", "f")
			of(tool, "NOT_A_DIRECTORY", "pipe")
		default:
			of(tool, "NOT_A_FILE", "pipe")
		}
	}
	for _, tool := range []string{"file_read", "filesystem"} {
		of(tool, "BINARY_FILE", "bin")
		of(tool, "UNKNOWN_ENCODING", "utf32")
	}
	of("filesystem", "NOT_A_FILE", "dir")
	of("filesystem", "TOO_LARGE", "large")
	add("filesystem", "NOT_A_DIRECTORY", "a file to list", func() error { return errOf(filesystem(t.Context(), filesystemArgs{"list", "f"})) })
	of("file_read", "IMAGE_BROKEN", "broken.png")
	of("file_read", "IMAGE_TOO_LARGE", "large.png")
	add("file_read", "OUT_OF_RANGE", "a page behind the end", func() error { return errOf(fileRead(t.Context(), readArgs{Path: "f", Offset: 2})) })
	add("file_read", "LINE_TOO_LONG", "a line for one page", func() error { return errOf(fileRead(t.Context(), readArgs{Path: "long", Raw: true})) })
	add("glob", "BAD_PATTERN", "no pattern", func() error { return errOf(glob(t.Context(), globArgs{Pattern: "[a"})) })
	add("grep", "BAD_PATTERN", "no filter", func() error { return errOf(grep(t.Context(), grepArgs{Pattern: "a", FileFilter: "[a"})) })

	of("file_write", "NOT_A_FILE", "dir")
	write := func(path string) error {
		return errOf(fileWrite(t.Context(), writeArgs{Path: path, ExpectedSHA256: hashOf(nil)}))
	}
	add("file_write", "NOT_FOUND", "a hash of what is not there", func() error { return write("gone") })
	add("file_write", "CONTENT_CHANGED", "other content than was seen", func() error { return write("f") })
	add("file_write", "TOO_LARGE", "a hash of a large file", func() error { return write("large") })
	add("file_write", "NO_SPACE", "a full disk", func() error {
		return onFullDisk(t, func() error {
			return errOf(fileWrite(t.Context(), writeArgs{Path: "big", Content: strings.Repeat("x", 2<<20)}))
		})
	})

	update := func(section string, hash map[string]string) func() error {
		return func() error {
			return errOf(applyPatch(t.Context(), patchArgs{Patch: "*** Begin Patch\n" + section + "\n*** End Patch", ExpectedSHA256: hash}))
		}
	}
	for tool, calls := range map[string]struct{ changed, same, foreign func() error }{
		"file_edit": {
			func() error {
				return errOf(fileEdit(t.Context(), editArgs{Path: "f", OldString: "a", NewString: "b", ExpectedSHA256: hashOf(nil)}))
			},
			func() error { return errOf(fileEdit(t.Context(), editArgs{Path: "f", OldString: "a", NewString: "a"})) },
			func() error {
				return errOf(fileEdit(t.Context(), editArgs{Path: "latin", OldString: "a", NewString: "→"}))
			},
		},
		"replace_lines": {
			func() error {
				return errOf(replaceLines(t.Context(), replaceArgs{Path: "f", LineStart: 1, LineEnd: 1, NewContent: "b", ExpectedSHA256: hashOf(nil)}))
			},
			func() error {
				return errOf(replaceLines(t.Context(), replaceArgs{Path: "f", LineStart: 1, LineEnd: 1, NewContent: "a"}))
			},
			func() error {
				return errOf(replaceLines(t.Context(), replaceArgs{Path: "latin", LineStart: 1, LineEnd: 1, NewContent: "→"}))
			},
		},
		"insert_lines": {
			func() error {
				return errOf(insertLines(t.Context(), insertArgs{Path: "f", LineStart: 1, NewContent: "b", ExpectedSHA256: hashOf(nil)}))
			},
			nil, // it always changes something
			func() error {
				return errOf(insertLines(t.Context(), insertArgs{Path: "latin", LineStart: 1, NewContent: "→"}))
			},
		},
		"apply_patch": {
			update("*** Update File: f\n@@\n-a\n+b", map[string]string{"f": hashOf(nil)}),
			update("*** Update File: f\n@@\n-a\n+a", nil),
			update("*** Update File: latin\n@@\n-a\n+→", nil),
		},
	} {
		of(tool, "NOT_A_FILE", "dir")
		of(tool, "BINARY_FILE", "bin")
		of(tool, "UNKNOWN_ENCODING", "utf32")
		of(tool, "UNKNOWN_ENCODING", "half")
		of(tool, "TOO_LARGE", "large")
		add(tool, "CONTENT_CHANGED", "other content than was seen", calls.changed)
		if calls.same != nil {
			add(tool, "NO_CHANGE", "what is there already", calls.same)
		}
		add(tool, "NOT_ENCODABLE", "a character that the file cannot have", calls.foreign)
		add(tool, "NO_SPACE", "a full disk", func() error { return onFullDisk(t, func() error { return tools[tool]("big") }) })
	}
	add("file_write", "NOT_ENCODABLE", "a character that the encoding cannot have", func() error {
		return errOf(fileWrite(t.Context(), writeArgs{Path: "new", Content: "→", Encoding: encodingOf("koi8-r")}))
	})
	of("file_edit", "NOT_UNIQUE", "twice")
	of("file_edit", "NO_MATCH", "long")
	add("file_edit", "TOO_MANY", "too much to replace", func() error {
		return errOf(fileEdit(t.Context(), editArgs{Path: "many", OldString: "a", NewString: "b", ReplaceAll: true}))
	})
	add("replace_lines", "OUT_OF_RANGE", "a line behind the last", func() error {
		return errOf(replaceLines(t.Context(), replaceArgs{Path: "f", LineStart: 2, LineEnd: 2, NewContent: "b"}))
	})
	add("insert_lines", "OUT_OF_RANGE", "a line behind the last", func() error {
		return errOf(insertLines(t.Context(), insertArgs{Path: "f", LineStart: 3, NewContent: "b"}))
	})
	add("replace_lines", "NUMBERED_LINES", "a number before the line", func() error {
		return errOf(replaceLines(t.Context(), replaceArgs{Path: "f", LineStart: 1, LineEnd: 1, NewContent: "1: b"}))
	})
	add("insert_lines", "NUMBERED_LINES", "a number before the line", func() error {
		return errOf(insertLines(t.Context(), insertArgs{Path: "f", LineStart: 1, NewContent: "1: b"}))
	})
	of("apply_patch", "NO_MATCH", "long")
	of("apply_patch", "NOT_UNIQUE", "twice")
	add("file_edit", "NOT_READ", "several occurrences in a file that was not read", func() error {
		return errOf(fileEdit(t.Context(), editArgs{Path: "twice", OldString: "a", NewString: "b", ReplaceAll: true, ExpectedSHA256: unseen}))
	})
	add("apply_patch", "NOT_READ", "the deletion of a file that was not read", update("*** Delete File: f", map[string]string{"f": unseen}))
	add("apply_patch", "INVALID_PATCH", "no patch", update("", nil))
	add("apply_patch", "INVALID_PATCH", "a file twice", update("*** Delete File: f\n*** Delete File: ./f", nil))
	add("apply_patch", "FILE_EXISTS", "a new file that is there", update("*** Add File: f\n+b", nil))
	add("apply_patch", "NOT_A_FILE", "a pipe to delete", update("*** Delete File: pipe", nil))
	codetest.Run(t, cases)
}

// If a tool fails, it fails with a code that it documents, for every kind of path.
func TestCodesOfAnyPath(t *testing.T) {
	files := map[string]string{"f": "a\n", "bin": "\x00", "utf16": "\xff\xfea\x00", "utf32": wide(binary.BigEndian, 4, "abcd"), "half": "\xff\xfea", "empty": "",
		"dir/": "", "link": "->f", "dangling": "->nowhere", "loop": "->loop", "dir/.git/": "", "to-dir": "->dir", "deep": "->f/x"}
	for tool := range byPath(t) {
		tree(t, files)
		if err := syscall.Mkfifo("pipe", 0o666); err != nil {
			t.Fatal(err)
		}
		paths := []string{"", ".", "/dev/null", "gone", "gone/x", "f/", "f/x", "pipe", "pipe/x", "a\x00", "*", strings.Repeat("x", 300), strings.Repeat("d/", 3000)}
		for path := range files {
			paths = append(paths, path)
		}
		for _, path := range paths {
			if err := byPath(t)[tool](path); err != nil {
				codetest.CheckDocumented(t, tool, fmt.Errorf("%.20q: %w", path, err))
			}
		}
	}
}

// onFullDisk makes a call while no file may have more than a MiB.
func onFullDisk(t *testing.T, call func() error) error {
	t.Helper()
	var was syscall.Rlimit
	err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &was)
	if err == nil {
		err = syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: 1 << 20, Max: was.Max})
	}
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &was); err != nil {
			t.Fatal(err)
		}
	}()
	return call()
}
