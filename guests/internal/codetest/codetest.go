// Package codetest tests the error codes of a module's tools. The codes that a tool documents,
// see tool.Errors, must be the codes of its calls that fail.
package codetest

import (
	"encoding/json"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/stockade-dev/stockade/sdk/go/tool"
)

// Case is a call that must fail. Code is the code that the host makes of its error.
type Case struct {
	Name, Tool, Code string
	Call             func() error
}

// Run makes the calls. Each must end with its code, and the tool must document that code.
// Each code that a tool documents must be that of a case.
func Run(t *testing.T, cases []Case) {
	t.Helper()
	documented := documentedCodes(t)
	for _, c := range cases {
		t.Run(c.Tool+": "+c.Name, func(t *testing.T) {
			err := c.Call()
			if err == nil {
				t.Fatal("it works")
			}
			if code := CodeOf(err); code != c.Code {
				t.Errorf("the code is %s, want %s: %v", code, c.Code, err)
			}
			CheckDocumented(t, c.Tool, err)
		})
	}
	for name, codes := range documented {
		for _, code := range codes {
			if !slices.ContainsFunc(cases, func(c Case) bool { return c.Tool == name && c.Code == code }) {
				t.Errorf("%s documents %s, and no case ends with it", name, code)
			}
		}
	}
}

// CheckDocumented reports an error whose code the tool name does not document. Codes that
// every tool may have are accepted.
func CheckDocumented(t testing.TB, name string, err error) {
	t.Helper()
	codes, known := documentedCodes(t)[name]
	if code := CodeOf(err); !known || !slices.Contains(codes, code) && !slices.Contains(commonCodes, code) {
		t.Errorf("%s does not document the code %s: %v", name, code, err)
	}
}

// commonCodes are codes of arguments, rules, disks and callers, which no tool has to document.
var commonCodes = []string{"INVALID_ARGUMENTS", "DENIED", "IO_ERROR", "TOOL_CANCELLED"}

// ToolOf returns the name of the tool that a function implements, by the function's name:
// fileEdit is file_edit.
func ToolOf(function any) string {
	name := runtime.FuncForPC(reflect.ValueOf(function).Pointer()).Name()
	var b strings.Builder
	for _, r := range name[strings.LastIndexByte(name, '.')+1:] {
		if unicode.IsUpper(r) {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}

// CodeOf returns the code that the host makes of an error: its own, or that of its kind.
func CodeOf(err error) string {
	if code := tool.CodeOf(err); code != "" {
		return code
	}
	return map[tool.Code]string{
		tool.CodeInvalidInput: "INVALID_ARGUMENTS", tool.CodeNotFound: "NOT_FOUND", tool.CodeDenied: "DENIED", tool.CodeIO: "IO_ERROR",
		tool.CodeParse: "PARSE_ERROR", tool.CodeUnavailable: "UNAVAILABLE", tool.CodeCancelled: "TOOL_CANCELLED", tool.CodeFailed: "TOOL_FAILED",
	}[tool.AsError(err).Code]
}

func documentedCodes(t testing.TB) map[string][]string {
	t.Helper()
	var manifest struct {
		Tools []struct {
			Name string
			Doc  struct{ Errors []string }
		}
	}
	if err := json.Unmarshal(tool.Manifest(), &manifest); err != nil {
		t.Fatal(err)
	}
	out := map[string][]string{}
	for _, tl := range manifest.Tools {
		out[tl.Name] = []string{}
		for _, line := range tl.Doc.Errors {
			code, _, _ := strings.Cut(line, ":")
			out[tl.Name] = append(out[tl.Name], code)
		}
	}
	return out
}
