package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stockade-dev/stockade/guests/internal/codetest"
)

// TestCodes: a model or a script tells these failures apart without reading them.
func TestCodes(t *testing.T) {
	_, empty := newShelf(1 << 20)
	values, full := newShelf(0)
	for n := range 3 {
		values.values[fmt.Sprint(prefix, n+1)] = `{"content":"a","status":"pending"}`
	}
	add := func(s store, content string) func() error {
		return func() error { _, err := s.add(addArgs{content}); return err }
	}
	update := func(s store, id, status, content string) func() error {
		return func() error { _, err := s.update(updateArgs{id, status, content}); return err }
	}
	codetest.Run(t, []codetest.Case{
		{Name: "an empty task", Tool: "add_task", Code: "INVALID_ARGUMENTS", Call: add(empty, "")},
		{Name: "a long one", Tool: "add_task", Code: "INVALID_ARGUMENTS", Call: add(empty, strings.Repeat("x", maxContent+1))},
		{Name: "no room", Tool: "add_task", Code: "STORE_FULL", Call: add(full, "b")},
		{Name: "no such task", Tool: "update_task", Code: "NOT_FOUND", Call: update(empty, "task_1", completed, "")},
		{Name: "no such status", Tool: "update_task", Code: "INVALID_ARGUMENTS", Call: update(full, "task_1", "done", "")},
		{Name: "no room", Tool: "update_task", Code: "STORE_FULL", Call: update(full, "task_1", pending, "longer")},
		{Name: "nothing to tell", Tool: "system_info", Code: "UNAVAILABLE", Call: func() error {
			_, err := infoFrom(func(string) (string, bool) { return "", false })
			return err
		}},
	})
}
