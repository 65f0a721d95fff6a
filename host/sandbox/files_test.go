package sandbox_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stockade-dev/stockade/guests/gueststest"
	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/sandbox"
	"github.com/stockade-dev/stockade/host/tool"
)

// Files are read in pages, and edited up to 8 MiB, in 64 MiB of memory.
func TestLargeFilesInLittleMemory(t *testing.T) {
	gueststest.Need(t)
	code, err := os.ReadFile(filepath.Join("..", "..", "guests", "wasm", "files.wasm"))
	if err != nil {
		t.Fatal(err)
	}
	parent := "/dev/shm" // where 100 MB are no disk's
	if _, err := os.Stat(parent); err != nil {
		parent = ""
	}
	dir, err := os.MkdirTemp(parent, "stockade-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	line := strings.Repeat("x", 92)
	write := func(name string, lines int) {
		var text bytes.Buffer
		text.Grow(lines * 100)
		for i := range lines {
			fmt.Fprintf(&text, "%7d %s", i+1, line[1:])
			text.WriteByte('\n')
		}
		mustWrite(t, filepath.Join(dir, name), text.String())
	}
	const lines = 1_000_000
	write("large", lines)
	if st, err := os.Stat(filepath.Join(dir, "large")); err != nil || st.Size() != 100*lines {
		t.Fatalf("%v, %v", st.Size(), err)
	}
	box := newBox(t, sandbox.Options{AllowLarge: true, CacheDir: sharedCache})
	call := func(name string, files tool.Files, args map[string]any, out any) {
		t.Helper()
		r := granted(t, module(code), ask{
			tool: name, args: string(tool.Marshal(args)), cwd: dir, limits: policy.Limits{MemoryBytes: 64 << 20, Timeout: 5 * time.Minute},
			mounts: []policy.Mount{{Host: dir, Write: true}}, caps: tool.Capabilities{Files: files},
		}).mustRun(t, box)
		if r.Err != nil {
			t.Fatalf("%s %.200s: %s, %d bytes, %d fuel", name, tool.Marshal(args), r.Summary(), r.Usage.PeakMemoryBytes, r.Usage.FuelUsed)
		}
		if peak := r.Usage.PeakMemoryBytes; name == "file_read" && peak > 16<<20 {
			t.Errorf("%s %s took %d bytes of memory", name, tool.Marshal(args), peak)
		}
		if err := json.Unmarshal(r.Output, out); err != nil {
			t.Fatal(err)
		}
	}

	var page struct {
		Output     string `json:"output"`
		NextOffset int    `json:"next_offset"`
		Lines      int    `json:"lines"`
	}
	for _, tt := range []struct {
		args        map[string]any
		first, last int
		next        int
	}{
		{map[string]any{"offset": 1, "limit": 10}, 1, 10, 11},
		{map[string]any{"offset": lines / 2, "limit": 10}, lines / 2, lines/2 + 9, lines/2 + 10},
		{map[string]any{"offset": lines - 9, "limit": 2000}, lines - 9, lines, 0},
		{map[string]any{"offset": -10, "limit": 5}, lines - 9, lines - 5, lines - 4},
		{map[string]any{"offset": lines - 9, "limit": 10, "raw": true}, lines - 9, lines, 0},
	} {
		tt.args["path"] = "large"
		page.NextOffset, page.Lines = 0, 0
		call("file_read", tool.FilesRead, tt.args, &page)
		text := fmt.Sprintf("%7d x", tt.first)
		if tt.args["raw"] == nil {
			text = fmt.Sprintf("%d: %s", tt.first, text)
		}
		if !strings.HasPrefix(page.Output, text) || !strings.Contains(page.Output, fmt.Sprintf("%7d x", tt.last)) || page.NextOffset != tt.next || tt.next == 0 && page.Lines != lines {
			t.Errorf("%v: %.120q, next %d, %d lines", tt.args, page.Output, page.NextOffset, page.Lines)
		}
	}

	// The largest edit, and a patch, which holds what becomes of all its files.
	const most = 8 << 20 / 100
	write("edited", most)
	var edited struct {
		Lines int `json:"lines"`
	}
	if call("replace_lines", tool.FilesWrite, map[string]any{"path": "edited", "line_start": 1000, "line_end": 1001, "new_content": "a"}, &edited); edited.Lines != most-1 {
		t.Errorf("%d lines", edited.Lines)
	}
	patch := "*** Begin Patch\n"
	for i := range 3 {
		name := fmt.Sprintf("part%d", i)
		write(name, 10_000)
		patch += fmt.Sprintf("*** Update File: %s\n@@\n-   5000 %s\n+other\n", name, line[1:])
	}
	var patched struct {
		Files int `json:"files"`
	}
	if call("apply_patch", tool.FilesWrite, map[string]any{"patch": patch + "*** End Patch"}, &patched); patched.Files != 3 {
		t.Errorf("%d files were patched", patched.Files)
	}
}
