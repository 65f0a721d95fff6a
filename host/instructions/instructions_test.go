package instructions

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stockade-dev/stockade/host/rootedfs"
)

func project(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		name = filepath.Join(dir, name)
		var err error
		if target, ok := strings.CutPrefix(text, "->"); ok {
			err = os.Symlink(target, name)
		} else {
			err = os.WriteFile(name, []byte(text), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

type opener func(string) (rootedfs.Root, os.FileInfo, error)

// opens holds the ways to open a workspace.
var opens = map[string]opener{"this kernel": rootedfs.Open, "one that cannot be told to follow no link": rootedfs.OpenOSRoot}

func readIn(t *testing.T, open opener, dir string) (File, error) {
	t.Helper()
	root, _, err := open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	return readFirst(root, 0)
}

func TestRead(t *testing.T) {
	outside := filepath.Join(project(t, map[string]string{"secret": "swordfish"}), "secret")
	for name, c := range map[string]struct {
		files map[string]string
		want  File
		err   string
	}{
		"none":                            {},
		"an empty one":                    {map[string]string{"AGENTS.md": ""}, File{Name: "AGENTS.md"}, ""},
		"AGENTS.md comes first":           {map[string]string{"AGENTS.md": "tabs\n", "CLAUDE.md": "blanks"}, File{Name: "AGENTS.md", Bytes: 5, Text: "tabs"}, ""},
		"CLAUDE.md where there is none":   {map[string]string{"CLAUDE.md": "blanks"}, File{Name: "CLAUDE.md", Bytes: 6, Text: "blanks"}, ""},
		"a link out of the workspace":     {map[string]string{"AGENTS.md": "->" + outside}, File{}, "AGENTS.md is not read: it is a symbolic link, which may lead to anything"},
		"a link to a secret of the place": {map[string]string{".env": "KEY=swordfish", "AGENTS.md": "->.env"}, File{}, "it is a symbolic link"},
		"a link to nothing":               {map[string]string{"AGENTS.md": "->nothing"}, File{}, "it is a symbolic link"},
		"a link to the other name":        {map[string]string{"AGENTS.md": "->CLAUDE.md", "CLAUDE.md": "blanks"}, File{Name: "CLAUDE.md", Bytes: 6, Text: "blanks"}, ""},
		"no text":                         {map[string]string{"AGENTS.md": "\x7fELF\x00\x01"}, File{}, "it is no text"},
		"line ends and a mark of Windows": {map[string]string{"AGENTS.md": "\uFEFFa\r\nb\r\n"}, File{Name: "AGENTS.md", Bytes: 9, Text: "a\nb"}, ""},
		"what does not show": {map[string]string{"AGENTS.md": "a\x1b[2J\u200bb\U000e0041\x9b\rc"},
			File{Name: "AGENTS.md", Bytes: 16, Text: "a<U+001B>[2J<U+200B>b<U+E0041><0x9B><U+000D>c", HiddenCount: 5}, ""},
		"pictures and letters": {map[string]string{"AGENTS.md": "⚠️ größe\tx"}, File{Name: "AGENTS.md", Bytes: 16, Text: "⚠️ größe\tx"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			for kernel, open := range opens {
				got, err := readIn(t, open, project(t, c.files))
				if got != c.want {
					t.Errorf("%s: got  %+v\nwant %+v", kernel, got, c.want)
				}
				if c.err == "" && err != nil || c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)) {
					t.Errorf("%s: error %v, want %q", kernel, err, c.err)
				}
			}
		})
	}
}

func TestALongFileIsCutAtALine(t *testing.T) {
	line := strings.Repeat("x", 99) + "\n"
	dir := project(t, map[string]string{"AGENTS.md": strings.Repeat(line, 1000)})
	if err := os.Truncate(filepath.Join(dir, "AGENTS.md"), 100<<20); err != nil { // NUL bytes, which nobody reads
		t.Fatal(err)
	}
	f, err := Read(dir, 0)
	if err != nil || f.Bytes != 100<<20 || len(f.Text) != MaxBytes/100*100-1 || f.NextLine != MaxBytes/100+1 || !strings.HasSuffix(f.Text, "\n"+line[:99]) {
		t.Errorf("%d bytes of %d, next line %d, %v", len(f.Text), f.Bytes, f.NextLine, err)
	}
	f, err = Read(dir, 250)
	if err != nil || f.Text != line+line[:99] || f.NextLine != 3 {
		t.Errorf("of 250 bytes: %q, next line %d, %v", f.Text, f.NextLine, err)
	}
	f, err = Read(project(t, map[string]string{"AGENTS.md": "a" + strings.Repeat("ö", 300)}), 250)
	if err != nil || !utf8.ValidString(f.Text) || len(f.Text) < 240 || f.HiddenCount != 0 || f.NextLine != 1 {
		t.Errorf("of one line: %q, %d hidden, %v", f.Text, f.HiddenCount, err)
	}
	f, err = Read(project(t, map[string]string{"AGENTS.md": strings.Repeat("\u200b\n", 60)}), 250) // <U+200B> has more bytes
	if err != nil || f.Text != strings.TrimSuffix(strings.Repeat("<U+200B>\n", 27), "\n") || f.HiddenCount != 27 || f.NextLine != 28 {
		t.Errorf("of codes: %q, %d hidden, next line %d, %v", f.Text, f.HiddenCount, f.NextLine, err)
	}
}
