package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stockade-dev/stockade/guests/internal/codetest"
	"github.com/stockade-dev/stockade/sdk/go/tool"
)

// tree makes files in a fresh directory and makes that the working directory.
// A name that ends in / is a directory; content that starts with -> is a link.
func tree(t *testing.T, files map[string]string) {
	t.Helper()
	t.Chdir(t.TempDir())
	for name, content := range files {
		put(t, name, content)
	}
}

func put(t *testing.T, name, content string) {
	t.Helper()
	err := os.MkdirAll(filepath.Dir(name), 0o777)
	if err == nil {
		if target, ok := strings.CutPrefix(content, "->"); ok {
			err = os.Symlink(target, name)
		} else if strings.HasSuffix(name, "/") {
			err = os.MkdirAll(name, 0o777)
		} else {
			err = os.WriteFile(name, []byte(content), 0o666)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
}

func content(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// works calls a tool and expects success.
func works[In, Out any](t *testing.T, fn func(context.Context, In) (Out, error), in In) Out {
	t.Helper()
	out, err := fn(t.Context(), in)
	if err != nil {
		t.Fatalf("%+v: %v", in, err)
	}
	return out
}

// fails calls a tool and expects an error with the code and all texts of want.
func fails[In, Out any](t *testing.T, fn func(context.Context, In) (Out, error), in In, code tool.Code, want ...string) {
	t.Helper()
	_, err := fn(t.Context(), in)
	if err == nil {
		t.Fatalf("%+v: no error", in)
	}
	codetest.CheckDocumented(t, codetest.ToolOf(fn), err)
	if got := tool.AsError(err).Code; got != code {
		t.Errorf("%+v: %v, want %v: %v", in, got, code, err)
	}
	for _, w := range want {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("%+v: error %q does not say %q", in, err, w)
		}
	}
}

func errOf[T any](_ T, err error) error { return err }
