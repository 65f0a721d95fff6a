package stage

import (
	"context"
	"errors"
	"testing"

	"github.com/stockade-dev/stockade/host/policy"
)

func TestACommitThatIsMadeIsToldFromOneThatIsNot(t *testing.T) {
	for _, done := range []bool{false, true} {
		err := markUntidy(&CommitError{Err: context.Canceled, Done: done})
		if errors.Is(err, policy.ErrUntidy) != done || !errors.Is(err, context.Canceled) {
			t.Errorf("done %v: %v", done, err)
		}
	}
	if err := markUntidy(nil); err != nil {
		t.Error(err)
	}
}
