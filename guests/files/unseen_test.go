package main

import (
	"os"
	"testing"

	"github.com/stockade-dev/stockade/guests/internal/codetest"
	"github.com/stockade-dev/stockade/sdk/go/tool"
)

const unseen = tool.Unseen

// A file that was not read changes only where its old text is there exactly and once, and then no
// hash of it is reported.
func TestTextProvesAnEditOfAFileThatWasNotRead(t *testing.T) {
	const content = "one\ntwo \nthree\none\n"
	edit := func(old string, all bool) func() (string, error) {
		return func() (string, error) {
			r, err := fileEdit(t.Context(), editArgs{Path: "f", OldString: old, NewString: "X", ReplaceAll: all, ExpectedSHA256: unseen})
			return r.SHA256, err
		}
	}
	patch := func(sections string) func() (string, error) {
		return func() (string, error) {
			in := patchOf(sections)
			in.ExpectedSHA256 = map[string]string{"f": unseen}
			r, err := applyPatch(t.Context(), in)
			return r.SHA256["f"] + r.SHA256["g"], err
		}
	}
	for name, tt := range map[string]struct {
		call func() (string, error)
		code string // empty: it changes the file
	}{
		"text that is there once":                {edit("three", false), ""},
		"once, with replace_all":                 {edit("three", true), ""},
		"twice":                                  {edit("one\n", false), "NOT_UNIQUE"},
		"twice, with replace_all":                {edit("one\n", true), "NOT_READ"},
		"not at all":                             {edit("four", false), "NO_MATCH"},
		"a hunk that is there once":              {patch("*** Update File: f\n@@\n-three\n+X"), ""},
		"two hunks that are there once":          {patch("*** Update File: f\n@@\n-two \n+Y\n@@\n-three\n+X"), ""},
		"a hunk, and a new name":                 {patch("*** Update File: f\n*** Move to: g\n@@\n-three\n+X"), ""},
		"a hunk that is there twice":             {patch("*** Update File: f\n@@\n-one\n+X"), "NOT_READ"},
		"a hunk chosen by a line above":          {patch("*** Update File: f\n@@ three\n-one\n+X"), "NOT_READ"},
		"a hunk that has to be at the end":       {patch("*** Update File: f\n@@\n-one\n+X\n*** End of File"), "NOT_READ"},
		"a hunk with other white space":          {patch("*** Update File: f\n@@\n-two\n+X"), "NO_MATCH"},
		"a hunk that only adds":                  {patch("*** Update File: f\n@@\n+X\n*** End of File"), "NOT_READ"},
		"the second hunk is there twice":         {patch("*** Update File: f\n@@\n-three\n+X\n@@\n-one\n+X"), "NOT_READ"},
		"only a new name":                        {patch("*** Update File: f\n*** Move to: g"), "NOT_READ"},
		"deleted":                                {patch("*** Delete File: f"), "NOT_READ"},
		"by line number, which needs to be read": {func() (string, error) { return lineEdit(t) }, "INVALID_ARGUMENTS"},
	} {
		t.Run(name, func(t *testing.T) {
			tree(t, map[string]string{"f": content})
			hash, err := tt.call()
			if tt.code == "" {
				if err != nil || hash != "" {
					t.Errorf("got the hash %q, %v", hash, err)
				}
				return
			}
			if err == nil {
				t.Fatal("it works")
			}
			code := codetest.CodeOf(err)
			if now, readErr := os.ReadFile("f"); code != tt.code || readErr != nil || string(now) != content {
				t.Errorf("got %s: %v; the file has %q, %v", code, err, now, readErr)
			}
		})
	}
}

func lineEdit(t *testing.T) (string, error) {
	r, err := replaceLines(t.Context(), replaceArgs{Path: "f", LineStart: 1, LineEnd: 1, NewContent: "X", ExpectedSHA256: unseen})
	return r.SHA256, err
}
