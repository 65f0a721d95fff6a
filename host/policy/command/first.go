package command

import (
	"slices"
	"strings"
)

// firstWords names programs with their subcommands, and after "|" the flags that change neither what
// a program runs nor where. Without a subcommand: a program that runs nothing, with any flag.
var firstWords = map[string]string{
	"go":    "build test vet fmt | -count -run -bench -v -race -cover -short -timeout -p -o -json",
	"cargo": "build test check fmt | -p -q -v --release --workspace --all", "npm": "ci test | -s --silent", "git": "add commit mv | -A -a -m -q -am -qm -qam --all",
	"mkdir": "", "cp": "", "mv": "", "touch": "", "ln": "", "chmod": "",
}

// FirstWords returns the words by which a person knows a command again: the program, and its
// subcommand where it has some. Nil: it is not known to run nothing that its arguments name.
func FirstWords(words []string) []string {
	text, known := firstWords[words[0]]
	names, flags, _ := strings.Cut(text, "|")
	unknown := func(word string) bool {
		flag, _, _ := strings.Cut(word, "=")
		return strings.HasPrefix(word, "-") && !slices.Contains(strings.Fields(flags), flag)
	}
	switch {
	case known && names == "":
		return words[:1]
	case len(words) < 2 || !slices.Contains(strings.Fields(names), words[1]) || slices.ContainsFunc(words[2:], unknown):
		return nil
	}
	return words[:2]
}
