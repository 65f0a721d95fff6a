//go:build !wasip1

package digest

import (
	"encoding/hex"
	"testing"

	"github.com/stockade-dev/stockade/sdk/go/internal/abi"
)

func TestOfWhatStandardsSay(t *testing.T) {
	for text, want := range map[string][2]string{
		"":    {"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855", "da39a3ee5e6b4b0d3255bfef95601890afd80709"},
		"abc": {"ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad", "a9993e364706816aba3e25717850c26c9cd0d89d"},
	} {
		sha256, sha1 := SHA256([]byte(text)), SHA1([]byte(text))
		if got := [2]string{hex.EncodeToString(sha256[:]), hex.EncodeToString(sha1[:])}; got != want {
			t.Errorf("of %q: %v, want %v", text, got, want)
		}
	}
	if n := abi.Live(); n != 0 {
		t.Errorf("%d blocks left", n)
	}
}
