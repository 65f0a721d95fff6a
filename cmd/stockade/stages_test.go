package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestStagesOfDeadProcessesAreRemovedUnlessTheyTellOfFiles(t *testing.T) {
	parent := t.TempDir()
	for name, file := range map[string]string{"stage-1": "content", "stage-2": "moves"} {
		private := filepath.Join(parent, name, ".stockade-stage-1")
		if err := os.MkdirAll(private, 0o700); err != nil {
			t.Fatal(err)
		}
		for _, p := range []string{filepath.Join(private, file), filepath.Join(parent, name+".lock")} {
			if err := os.WriteFile(p, nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	var said []string
	_, end, err := stageDir(parent, func(format string, args ...any) { said = append(said, fmt.Sprintf(format, args...)) })
	if err != nil {
		t.Fatal(err)
	}
	if err := end(); err != nil {
		t.Error(err)
	}
	kept := filepath.Join(parent, "stage-2", ".stockade-stage-1", "moves")
	if _, err := os.Stat(kept); err != nil {
		t.Error(err)
	}
	if len(said) != 1 || !strings.Contains(said[0], kept) {
		t.Errorf("it says %q", said)
	}
	if left, err := filepath.Glob(filepath.Join(parent, "*")); err != nil || len(left) != 2 {
		t.Errorf("left %v, %v", left, err)
	}
}
