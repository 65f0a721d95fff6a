package rootedfs

import "testing"

func TestMountTableEscapes(t *testing.T) {
	if got := unescape(`/a\040b\134\011`); got != "/a b\\\t" {
		t.Errorf("got %q", got)
	}
	if got := unescape(`/a\04`); got != `/a\04` {
		t.Errorf("got %q", got)
	}
}
