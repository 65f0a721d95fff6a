package transcript

import (
	"strings"
	"testing"

	"github.com/stockade-dev/stockade/host/llm"
)

func TestArgumentsAreWhatAPersonWouldSay(t *testing.T) {
	many := "*** Begin Patch\\n" + strings.Repeat("*** Delete File: x\\n", 7) + "*** End Patch"
	for _, tt := range []struct{ tool, args, want string }{
		{"replace_lines", `{"path":"a.go","line_start":3,"line_end":5,"new_content":"x"}`, "a.go, lines 3 to 5"},
		{"replace_lines", `{"path":"a.go","line_start":3,"line_end":3,"new_content":"x"}`, "a.go, line 3"},
		{"insert_lines", `{"path":"a.go","line_start":3,"new_content":"x"}`, "a.go, before line 3"},
		{"file_read", `{"path":"a.go","offset":-3,"raw":true}`, "a.go, the last 3 lines, raw"},
		{"http_fetch", `{"url":"https://a.example/\u001b"}`, "https://a.example/<U+001B>"},
		{"http_fetch", `{"body":"x","method":"POST","url":"https://a.example/"}`, "POST https://a.example/"},
		{"web_search", `{"query":"wasm fuel"}`, `"wasm fuel"`},
		{"git", `{"operation":"blame","path":"src/server.c"}`, "blame src/server.c"},
		{"git", `{"operation":"log"}`, "log"},
		{"git", `{"operation":"diff","staged":true,"revision":"HEAD~2"}`, "diff staged HEAD~2"},
		{"filesystem", `{"operation":"exists","path":"a.go"}`, "exists a.go"},
		{"apply_patch", `{"patch":"*** Begin Patch\n*** Update File: a.go\n@@\n-x\n*** Add File: b\u001b[31m.go\n+x\n*** End Patch"}`, "a.go, b<U+001B>[31m.go"},
		{"apply_patch", `{"patch":"` + many + `"}`, "x, x, x, x, x, and 2 more"},
		{"apply_patch", `{"patch":"no patch"}`, `"no patch"`},
	} {
		if got := mainArgs(llm.FunctionData{Name: tt.tool, Arguments: tt.args}); got != tt.want {
			t.Errorf("%s %s: got %q, want %q", tt.tool, tt.args, got, tt.want)
		}
	}
}
