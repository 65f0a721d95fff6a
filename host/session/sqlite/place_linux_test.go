package sqlite

import (
	"strings"
	"testing"

	"github.com/stockade-dev/stockade/host/internal/hosttest"
)

// Processes are killed here, and not the machine.
func init() { hosttest.UseMemoryTemp() }

func TestNetworkFileSystemsAreRefused(t *testing.T) {
	for magic, name := range map[uint32]string{
		0x6969: "NFS", 0xfe534d42: "SMB2", 0xff534d42: "CIFS", 0x01021997: "9p",
		0xef53: "", 0x9123683e: "", 0x58465342: "", 0x01021994: "", 0x794c7630: "", 0x65735546: "",
	} {
		err := checkMagic(magic)
		if name == "" {
			if err != nil {
				t.Errorf("%#x: %v", magic, err)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), "("+name+")") || !strings.Contains(err.Error(), "write-ahead log") {
			t.Errorf("%#x: got %v, want that %s has no shared memory", magic, err, name)
		}
	}
}
