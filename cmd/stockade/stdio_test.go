package main

import (
	"slices"
	"testing"
)

func TestAMessageIsBrokenBetweenWords(t *testing.T) {
	for _, test := range []struct {
		name, line string
		rows       []string
	}{
		{"a short one is a row", "stockade: no", []string{"stockade: no"}},
		{"a long one is several, of which none looks like a message", "stockade: the folder is in the workspace, which is refused",
			[]string{"stockade: the folder is in the", "     workspace, which is refused"}},
		{"a line below the first keeps its place", "     which is what the folder of the workspace says",
			[]string{"     which is what the folder of", "     the workspace says"}},
		{"a command stays whole", "hint: the list is shown by `stockade session list` and others",
			[]string{"hint: the list is shown by", "     `stockade session list` and", "     others"}},
		{"a command that is longer than a row stays whole", "hint: say `stockade policy revoke a2d1afd3; stockade x` first",
			[]string{"hint: say", "     `stockade policy revoke a2d1afd3; stockade x`", "     first"}},
		{"a mark that is alone marks nothing", "stockade: there is a ` in the name of the file",
			[]string{"stockade: there is a ` in the", "     name of the file"}},
		{"a command without marks stays whole", "hint: to allow it: --allow 'bash(command=go test ./...)'", []string{"hint: to allow it: --allow 'bash(command=go test ./...)'"}},
		{"but not what is said beside it", "stockade: it is in no directory that tools see; --mount DIR shows another", []string{"stockade: it is in no directory", "     that tools see;", "     --mount DIR shows another"}},
		{"so does one of ours", "hint: stockade call file_write path=a.txt content=b", []string{"hint: stockade call file_write path=a.txt content=b"}},
	} {
		if got := wrapMessage(test.line, 32); !slices.Equal(got, test.rows) {
			t.Errorf("%s: %q", test.name, got)
		}
	}
	long := "stockade: the folder is in the workspace, which is refused"
	if got := wrapMessage(long, -1); !slices.Equal(got, []string{long}) {
		t.Errorf("without a terminal it is %q", got)
	}
}
