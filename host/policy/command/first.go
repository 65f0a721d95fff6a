package command

import (
	"slices"
	"strings"
)

// subcommands names, of programs that can run others, the subcommands that by themselves run
// only what belongs to the project: they build, test or format it, or keep its history. Empty:
// the program has no subcommands.
var subcommands = map[string]string{
	"go": "build test vet fmt mod get install clean", "cargo": "build test check fmt clippy doc add", "npm": "ci install test", "pnpm": "install add test", "yarn": "install add test", "uv": "sync lock add", "poetry": "install lock add", "bundle": "install",
	"git": "add apply cherry-pick commit merge mv restore revert rm switch checkout", "pytest": "", "tsc": "", "eslint": "", "prettier": "", "jest": "", "mocha": "",
}

// runningFlags are the beginnings of arguments that make such a program run what they name, or read
// a file that can. The short ones are whole arguments of go, which has -count and -parallel.
var runningFlags = []string{"-exec", "--exec", "-toolexec", "--toolexec", "-vettool", "--vettool", "-ldflags", "--ldflags", "-gccgoflags", "-overlay", "-modfile", "-C", "-c", "--config", "--script-shell", "--upload-pack", "--receive-pack", "-p", "--plugin", "-r", "--require"}

// FirstWords returns the words by which a person knows a command again: the program, and its
// subcommand where the program is known to have some. ok is false for a program that runs what
// its arguments name, and for one that a workspace can hold.
func FirstWords(words []string) (first []string, ok bool) {
	switch {
	case len(words) == 0 || MayBeWritten(words[0]):
		return nil, false
	case !RunsOthers(words):
		return words[:1], true
	}
	names, known := subcommands[words[0]]
	runs := func(word string) bool {
		return slices.ContainsFunc(runningFlags, func(flag string) bool {
			return strings.HasPrefix(word, flag) && (words[0] != "go" || len(flag) > 2 || flag == "-C")
		})
	}
	switch {
	case !known || slices.ContainsFunc(words[1:], runs):
		return nil, false
	case names == "":
		return words[:1], true
	}
	return words[:min(len(words), 2)], len(words) > 1 && slices.Contains(strings.Fields(names), words[1])
}
