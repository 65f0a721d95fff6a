//go:build !wasip1

package main

import (
	"os"
	"testing"

	"github.com/stockade-dev/stockade/guests/git/repo"
	"github.com/stockade-dev/stockade/guests/internal/codetest"
)

// TestCodes checks the codes by which a model or a script tells failures apart.
// fixture.fails looks up the codes of the errors in other tests.
func TestCodes(t *testing.T) {
	f := newFixture(t)
	f.put("a", "hello\n")
	f.put("binary", "\x00\x01")
	f.put(".env", "k=v\n")
	f.commit("one")
	f.put("a", "hello again\n")
	f.commit("two")
	if err := os.Remove(".env"); err != nil {
		t.Fatal(err)
	}
	call := func(in args) func() error {
		return func() error { _, err := run(t.Context(), in); return err }
	}
	cases := []codetest.Case{
		{Name: "no such operation", Code: "INVALID_ARGUMENTS", Call: call(args{Operation: "push"})},
		{Name: "no such revision", Code: "UNKNOWN_REVISION", Call: call(args{Operation: "log", Revision: "mian"})},
		{Name: "no such path", Code: "NOT_FOUND", Call: call(args{Operation: "blame", Path: "b"})},
		{Name: "blame of a binary file", Code: "PARSE_ERROR", Call: call(args{Operation: "blame", Path: "binary"})},
		{Name: "blame of a secret that is gone", Code: "DENIED", Call: call(args{Operation: "blame", Path: ".env", Revision: "HEAD"})},
		{Name: "what git alone can", Code: "UNSUPPORTED", Call: call(args{Operation: "log", Revision: "HEAD@{1}"})},
		{Name: "too much", Code: "TOO_LARGE", Call: func() error {
			defer func(was int) { repo.MaxWork = was }(repo.MaxWork)
			repo.MaxWork = 1
			return call(args{Operation: "diff", Revision: "HEAD~1..HEAD"})()
		}},
		{Name: "a damaged repository", Code: "CORRUPT_REPOSITORY", Call: func() error {
			f.put(".git/HEAD", "ref: refs/../../outside\n")
			return call(args{Operation: "log"})()
		}},
		{Name: "no repository", Code: "NOT_A_REPOSITORY", Call: func() error {
			t.Chdir(t.TempDir())
			return call(args{Operation: "status"})()
		}},
		{Name: "a working directory that is gone", Code: "IO_ERROR", Call: func() error {
			dir := t.TempDir()
			t.Chdir(dir)
			if err := os.Remove(dir); err != nil {
				t.Fatal(err)
			}
			return call(args{Operation: "status"})()
		}},
	}
	for i := range cases {
		cases[i].Tool = "git"
	}
	codetest.Run(t, cases)
}
