package dispatch

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/tool"
)

// BenchmarkChanges records the changes of an edit, and those of a package manager.
func BenchmarkChanges(b *testing.B) {
	dir := b.TempDir()
	onDisk := func(name, content string) *tool.Version {
		name = filepath.Join(dir, name)
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			b.Fatal(err)
		}
		return &tool.Version{Size: int64(len(content)), Mode: 0o600, Open: func() (io.ReadCloser, error) { return os.Open(name) }}
	}
	text := strings.Repeat("a line of a file like many\n", 400)
	edit := tool.Change{Path: "/work/a.go", Kind: tool.Modified, Before: onDisk("before", text), After: onDisk("after", text+"one more\n")}
	var created, removed []tool.Change
	for i := range 5000 {
		v := onDisk(fmt.Sprint(i), strings.Repeat(fmt.Sprintf("line %d\n", i), 300))
		path := fmt.Sprintf("/work/node_modules/p%d/%d.js", i/20, i)
		created = append(created, tool.Change{Path: path, Kind: tool.Created, After: v})
		removed = append(removed, tool.Change{Path: path, Kind: tool.Removed, Before: v})
	}
	for name, changes := range map[string][]tool.Change{"an edit": {edit}, "5000 new files": created, "5000 files removed": removed} {
		b.Run(name, func(b *testing.B) {
			p := &pending{d: New(newWorld(b, policy.Options{}).options), call: aCall("file_write", `{}`)}
			for b.Loop() {
				if _, _, err := p.describeChanges(b.Context(), changes); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
