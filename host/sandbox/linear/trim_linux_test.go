package linear

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"
	"unsafe"
)

func TestTrimGivesPagesBack(t *testing.T) {
	content := bytes.Repeat([]byte("image"), 100*PageSize)
	image, err := NewImage(content)
	if err != nil {
		t.Fatal(err)
	}
	defer image.Close()
	for _, method := range Methods() {
		m, err := image.MapFor(method, uint64(len(image.bytes))+1<<20)
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close()
		clear(m.region[:len(content)])
		if _, err := m.Reset(); err != nil {
			t.Fatal(err)
		}
		before := resident(t, m)
		if err := m.Trim(); err != nil {
			t.Fatal(err)
		}
		if after := resident(t, m); after != 0 || before == 0 && method != MethodDrop {
			t.Errorf("%s: %d kB were resident, and %d kB after Trim", method, before, after)
		}
		if err := m.Verify(); err != nil {
			t.Errorf("%s: %v", method, err)
		}
	}
}

// resident returns the size of the part of a memory's image that is in physical memory, in
// kB.
func resident(t *testing.T, m *Memory) (kB int) {
	t.Helper()
	f, err := os.Open("/proc/self/smaps")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	start := fmt.Sprintf("%x-", uintptr(unsafe.Pointer(unsafe.SliceData(m.region))))
	found := false
	for lines := bufio.NewScanner(f); lines.Scan(); {
		found = found || strings.HasPrefix(lines.Text(), start)
		if found && strings.HasPrefix(lines.Text(), "Rss:") {
			if _, err := fmt.Sscanf(lines.Text(), "Rss: %d kB", &kB); err != nil {
				t.Fatal(err)
			}
			return kB
		}
	}
	t.Fatal("the memory is not mapped")
	panic("not reached")
}
