package linear

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
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
	for name, load := range map[string]func(*os.File, int) (*Image, error){"mapped": load, "copied": loadCopy} {
		loaded, err := load(f, len(content))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		defer loaded.Close()
		if !bytes.Equal(loaded.Bytes(), content) {
			t.Errorf("%s: what was loaded is not what was written", name)
		}
		m, err := loaded.Map(1 << 20)
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close()
		m.region[0], m.region[3*PageSize], m.region[30*PageSize] = 1, 2, 3
		if _, err := m.Reset(); err != nil {
			t.Fatal(err)
		}
		if err := m.Verify(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	written, err := os.ReadFile(f.Name())
	if err != nil || !bytes.Equal(written, content) {
		t.Errorf("what memories do is in the file: %v", err)
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
	if short, err := Load(f, int64(len(content))); err == nil {
		short.Close()
		t.Error("a short file is an image")
	}
}

// Reading a hole of a mapped file in memory allocates memory. If there is none left, that
// ends the process.
func TestToLookAtAnImageTakesNoRoom(t *testing.T) {
	image, err := NewImage(append(make([]byte, 39*PageSize), 1))
	if err != nil {
		t.Fatal(err)
	}
	defer image.Close()
	fd, err := unix.MemfdCreate("file", unix.MFD_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	f := os.NewFile(uintptr(fd), "file")
	defer f.Close()
	if err := image.Write(f); err != nil {
		t.Fatal(err)
	}
	room := func() int64 {
		var st unix.Stat_t
		if err := unix.Fstat(fd, &st); err != nil {
			t.Fatal(err)
		}
		return st.Blocks
	}
	before := room()
	loaded, err := Load(f, int64(40*PageSize))
	if err != nil {
		t.Fatal(err)
	}
	defer loaded.Close()
	m, err := loaded.Map(1 << 20)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if err := m.Verify(); err != nil { // looks at all pages of both
		t.Error(err)
	}
	if after := room(); after != before {
		t.Errorf("the file takes %d blocks, and took %d", after, before)
	}
}
