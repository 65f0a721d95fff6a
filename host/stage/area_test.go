package stage

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stockade-dev/stockade/host/rootedfs"
)

func TestStagesOfDeadProcessesAreRemovedUnlessTheyTellOfFiles(t *testing.T) {
	parent := filepath.Join(t.TempDir(), "[a]") // which is no pattern
	// The second area has a step that cannot be undone: somebody else has seen to it.
	lost := `{"op":"rename","from_dir":"/nowhere","from":"a","to_dir":"/nowhere","to":"b","comes":{"Ino":1}}` + "\n"
	lost += `{"op":"times","to_dir":"/nowhere","to":"b"}` + "\n"
	for name, file := range map[string]string{"stage-1": "content", "stage-2": "journal"} {
		private := filepath.Join(parent, name, ".stockade-stage-1")
		if err := os.MkdirAll(private, 0o700); err != nil {
			t.Fatal(err)
		}
		for _, p := range []string{filepath.Join(private, file), filepath.Join(parent, name+".lock")} {
			if err := os.WriteFile(p, []byte(lost), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	var said []string
	area := NewArea(parent, func(format string, args ...any) { said = append(said, fmt.Sprintf(format, args...)) })
	rootedfs.AwaitRemovals(time.Minute)
	if left, err := os.ReadDir(parent); err != nil || len(left) != 2 {
		t.Errorf("before anything is changed there are %v, %v", left, err)
	}
	dir := area.Dir()
	if st, err := os.Stat(dir); err != nil || !st.IsDir() || filepath.Dir(dir) != parent || area.Dir() != dir {
		t.Errorf("changes are kept in %q: %v", dir, err)
	}
	if err := area.Close(); err != nil {
		t.Error(err)
	}
	kept := filepath.Join(parent, "stage-2", ".stockade-stage-1", "journal")
	if _, err := os.Stat(kept); err != nil {
		t.Error(err)
	}
	if len(said) != 1 || !strings.Contains(said[0], kept) {
		t.Errorf("it says %q", said)
	}
	if left, err := os.ReadDir(parent); err != nil || len(left) != 2 {
		t.Errorf("left %v, %v", left, err)
	}
}

func TestWithoutAPlaceForThemChangesStayInMemory(t *testing.T) {
	parent := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(parent, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	said := 0
	area := NewArea(parent, func(string, ...any) { said++ })
	if dir := area.Dir() + area.Dir(); dir != "" || said != 1 {
		t.Errorf("changes are kept in %q, which was told %d times", dir, said)
	}
	if err := area.Close(); err != nil {
		t.Error(err)
	}
}
