package linear

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

func TestLoadIsWhatWasWritten(t *testing.T) {
	content := make([]byte, 40*PageSize) // with holes at the beginning, in between and at the end
	for _, page := range []int{3, 4, 17, 30} {
		content[page*PageSize+page] = byte(page)
	}
	image, err := NewImage(content)
	if err != nil {
		t.Fatal(err)
	}
	defer image.Close()
	f, err := os.Create(filepath.Join(t.TempDir(), "image"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := image.Write(f); err != nil {
		t.Fatal(err)
	}
	loaded, err := Load(f, int64(len(content)))
	if err != nil {
		t.Fatal(err)
	}
	defer loaded.Close()
	if !bytes.Equal(loaded.Bytes(), content) {
		t.Error("what was loaded is not what was written")
	}
	for _, size := range []int64{0, -1, 1, int64(PageSize) + 1, 1 << 40} {
		if i, err := Load(f, size); err == nil {
			i.Close()
			t.Errorf("an image of %d bytes was loaded", size)
		}
	}
	// A file that is shorter than it was has lost what is missing.
	if err := f.Truncate(int64(3 * PageSize)); err != nil {
		t.Fatal(err)
	}
	short, err := Load(f, int64(len(content)))
	if err == nil {
		defer short.Close()
		if bytes.Equal(short.Bytes(), content) {
			t.Error("a short file is the whole image")
		}
	}
}
