package rootedfs

import (
	"os"
	"testing"

	"github.com/stockade-dev/stockade/host/internal/hosttest"
)

// No system call is made for a file on the device of the directory. For a closed file it would
// be an error.
func TestOneDeviceIsAskedAboutOnce(t *testing.T) {
	w := hosttest.New(t)
	ws, _, err := Open(w.Path("ws"))
	if err != nil {
		t.Fatal(err)
	}
	defer ws.Close()
	dir, _, err := OpenDir(ws, "d")
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	file, err := dir.Open("g.txt")
	if err != nil {
		t.Fatal(err)
	}
	fi, err := file.Stat()
	if err != nil {
		t.Fatal(err)
	}
	file.Close()
	if err := dir.RefuseKernelFile(file, fi); err != nil {
		t.Errorf("a file of the same device: %v", err)
	}
	elsewhere, err := os.Stat("/proc/self/environ")
	if err != nil {
		t.Fatal(err)
	}
	if err := dir.RefuseKernelFile(file, elsewhere); err == nil {
		t.Error("a file of another device was not asked about")
	}
}
