package foreign

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/stockade-dev/stockade/host/tool"
)

// Pair is a plugin of Extism's SDK that runs on both hosts.
type Pair struct {
	Name      string
	Functions []string
	Runs      []Run    // each is tried; none: without a description
	Inputs    []string // in addition to [Inputs]
	// WASIErrors maps each error text that WASI, and not Extism, gives the plugin on the
	// other host to the text on this one.
	WASIErrors map[string]string
}

// Inputs are the inputs of each plugin. A text that is not UTF-8 cannot be among the
// arguments of a call here, which are JSON.
var Inputs = []string{"", "hello world", `{"a": [1, "ü", null]}`, "\x00\n\u2028 \U0001f600", strings.Repeat("aeiou xyz. ", 1<<20/11)}

// Pairs lists the plugins of Extism's SDK that run alone.
var Pairs = []Pair{
	{Name: "config", Functions: []string{"run_test"}, Runs: []Run{{}, runConfigured("thing", "hello"), runConfigured("thing", `"ü`), runConfigured("other", "x")}},
	{Name: "count_vowels", Functions: []string{"count_vowels"}, Runs: []Run{{}, runConfigured("vowels", "xyz")}},
	{Name: "count_vowels_std", Functions: []string{"_start"}, Runs: []Run{{}, runConfigured("thing", "hello")}},
	{Name: "exit", Functions: []string{"_start"}, Runs: []Run{{}, runConfigured("code", "0"), runConfigured("code", "500"), runConfigured("code", "-1"), runConfigured("code", "abc")}},
	{Name: "fail", Functions: []string{"run_test"}},
	{Name: "fs", Functions: []string{"run_test"}, Runs: []Run{{}, {Files: "read"}}},
	{Name: "fs_std", Functions: []string{"run_test"}, Runs: []Run{{}, {Files: "read"}}},
	{Name: "hello", Functions: []string{"run_test"}},
	{Name: "hello_haskell", Functions: []string{"testing"}, Runs: []Run{{}, runConfigured("greeting", "Howdy")}},
	{Name: "http", Functions: []string{"run_test"}, Runs: []Run{{Hosts: []string{builtinHost}}}},
	{Name: "http_headers", Functions: []string{"http_get"}, Runs: []Run{{Hosts: []string{builtinHost}}}, Inputs: []string{
		`{"url":"https://` + builtinHost + `/x"}`, `{"url":"https://` + builtinHost + `/missing","method":"POST","headers":{"some-name":"v"}}`,
	}},
	{Name: "input_offset", Functions: []string{"input_offset_length"}, Inputs: []string{strings.Repeat("x", 200)}},
	{Name: "log", Functions: []string{"run_test"}},
	{Name: "println", Functions: []string{"run_test"}},
	{Name: "read_write", Functions: []string{"try_read", "try_write"}, Runs: []Run{
		{}, {Files: "read"},
		{Config: map[string]string{"path": "WORKSPACE/test.txt"}, Files: "read"},
		{Config: map[string]string{"path": "WORKSPACE/test.txt"}, Files: "write"},
		{Config: map[string]string{"path": "WORKSPACE/none.txt"}, Files: "read"},
		{Config: map[string]string{"path": "WORKSPACE/test.txt"}},
		{Config: map[string]string{"path": "WORKSPACE/new.txt"}, Files: "write"},
	}, WASIErrors: map[string]string{
		"Function not implemented (os error 52)":                                                           "Read-only file system (os error 69)",
		"failed to find a pre-opened file descriptor through which \"WORKSPACE/test.txt\" could be opened": "Operation not permitted (os error 63)",
	}},
	{Name: "replace", Functions: []string{"run_test"}},
	{Name: "sleep", Functions: []string{"run_test"}, Runs: []Run{{}, runConfigured("duration", "0"), runConfigured("duration", "x")}},
	{Name: "std_command", Functions: []string{"_start"}},
	{Name: "var", Functions: []string{"run_test"}},
}

// Excluded maps the other plugins to the reasons why they are left out.
var Excluded = map[string]string{
	"alloc":          "allocates for ever: it ends where the memory does, which each host limits in its own way",
	"host":           "needs a function of the program that embeds it, extism:host/user mult",
	"host_memory":    "needs a function of the program that embeds it, host to_upper",
	"host_multiple":  "needs functions of the program that embeds it, extism:host/user hostGreenMessage and hostPurpleMessage",
	"lib":            "is a library for main, and exports nothing that takes no parameter",
	"main":           "needs another module, lib",
	"nested.c.instr": "needs the functions of an observer, and is no plugin: it imports nothing of Extism",
	"noop":           "is no plugin: it imports nothing of Extism, so it is a command here",
}

// Diff describes how a result differs from the answer of Extism's host; empty: it does
// not.
func Diff(want Answer, got tool.Result) string {
	if want.Code == 0 && want.Err == "" {
		if got.Err != nil {
			return fmt.Sprintf("it fails: %s; and there it says %.200q", got.Summary(), want.Output)
		}
		if out := outputOf(want.Output); !bytes.Equal(out, got.Output) {
			return fmt.Sprintf("it says %.200s; and there %.200s", got.Output, out)
		}
		return ""
	}
	switch {
	case got.Err == nil:
		return fmt.Sprintf("it says %.200s; and there it fails with code %d: %s", got.Output, want.Code, want.Err)
	case got.Err.ExitCode == nil:
		return fmt.Sprintf("it fails without a code: %s; and there with code %d: %s", got.Err.Message, want.Code, want.Err)
	case uint32(*got.Err.ExitCode) != want.Code:
		return fmt.Sprintf("it fails with code %d; and there with %d", *got.Err.ExitCode, want.Code)
	case want.Err != "" && !strings.HasPrefix(want.Err, "module closed") && got.Err.Message != want.Err:
		return fmt.Sprintf("it fails with %.200q; and there with %.200q", got.Err.Message, want.Err)
	}
	return ""
}

// outputOf returns the expected result for an output of Extism's host: a JSON object is
// the result itself, other text is wrapped, and for bytes that are not text only the size
// is given.
func outputOf(out []byte) []byte {
	switch {
	case !utf8.Valid(out):
		return tool.Text(fmt.Sprintf("%d bytes that are not text", len(out)))
	case json.Valid(out) && bytes.HasPrefix(bytes.TrimLeft(out, " \t\r\n"), []byte("{")):
		return out
	}
	return tool.Text(string(out))
}
