package wasmtest_test

import (
	"bytes"
	"testing"

	"github.com/stockade-dev/stockade/host/wasm"
	"github.com/stockade-dev/stockade/host/wasm/wasmtest"
)

func TestBombs(t *testing.T) {
	seen := map[string]bool{}
	for _, b := range wasmtest.Bombs() {
		t.Run(b.Name, func(t *testing.T) {
			if seen[b.Name] {
				t.Error("a second one has this name")
			}
			seen[b.Name] = true
			module := b.Module()
			_, err := wasm.Decode(module)
			if b.Want == wasmtest.Malformed {
				if err == nil {
					t.Error("it decodes")
				}
				return
			}
			if b.Small == nil {
				return // the error need not be visible here
			}
			if err != nil {
				t.Error(err)
			}
			for _, code := range [][]byte{module, b.Small()} {
				m, err := wasm.Decode(code)
				if err != nil {
					t.Fatal(err)
				}
				if got := wasm.Classify(m); got.Kind != wasm.Native {
					t.Errorf("it is %s", got)
				}
			}
			if small := b.Small(); len(small) > 4096 {
				t.Errorf("the small one has %d bytes", len(small))
			}
		})
	}
}

// A mutant that made something fail must be there the next time.
func TestBombsAreTheSameEveryTime(t *testing.T) {
	first, second := wasmtest.Bombs(), wasmtest.Bombs()
	for i, b := range first {
		if other := second[i]; b.Name != other.Name || b.Kind != other.Kind || b.Want != other.Want {
			t.Fatalf("number %d is %q, then %q", i, b.Name, other.Name)
		}
		if b.Kind == "mutant" && !bytes.Equal(b.Module(), second[i].Module()) {
			t.Errorf("%s differs", b.Name)
		}
	}
}
