package stage

import (
	"testing"

	"github.com/stockade-dev/stockade/host/internal/hosttest"
)

func TestMain(m *testing.M) { hosttest.Main(m) }

// The tests that take long look up no names that the others do not.
func TestWithoutOpenat2(t *testing.T) {
	if hosttest.NoOpenat2() {
		return
	}
	hosttest.WithoutOpenat2(t, "^(TestTheHostInterferesWithACommit(OfAnOverlay)?|TestForgedLayers|TestACommitThatFailsIsUndone|TestAChangeSetIsBounded|TestTheNamesOfChangesAreBounded)$",
		"TestChanges", "TestACommitIsRefused")
}
