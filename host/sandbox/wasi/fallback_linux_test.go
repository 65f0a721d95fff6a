package wasi

import (
	"testing"

	"github.com/stockade-dev/stockade/host/internal/hosttest"
	"github.com/stockade-dev/stockade/host/rootedfs"
)

func TestMain(m *testing.M) {
	hosttest.UseMemoryTemp()
	hosttest.Main(m)
}

// os.Root has to give the protection that the kernel gives with openat2. The tests that
// take long look up no names that the others do not, and the exchanges are done in both
// ways anyway.
func TestWithoutOpenat2(t *testing.T) {
	if len(roots(t)) == 1 {
		t.Log("there is no openat2 here, so all tests are without")
		return
	}
	hosttest.WithoutOpenat2(t, "^(TestExchangeOfDirectoryAndLink|TestListingStreams)$",
		"TestRootOfTheHost", "TestAttacks", "TestLinkInsideTheMountWorks", "TestMaskedDirectoryIsNotReached", "TestAStagedGuestSeesWhatAnyOtherSees")
}

// TestRootOfTheHost shows that mounts are opened with the best root that the host has.
func TestRootOfTheHost(t *testing.T) {
	w := newWorld(t)
	m := w.open(w.rw("ws")).mounts[0]
	_, kernel := m.root.(rootedfs.ContentRoot)
	if want := len(roots(t)) == 2; kernel != want || kernel && hosttest.NoOpenat2() {
		t.Errorf("the mount is a %T", m.root)
	}
}
