package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"

	"github.com/stockade-dev/stockade/host/door"
	"github.com/stockade-dev/stockade/host/instructions"
)

const (
	writeInstructions = `Write a file AGENTS.md at the root of the workspace: what somebody who has never seen this project has to know to work in it.
Look first: list the directories, read the README, the files that build it (Makefile, go.mod, package.json, Cargo.toml, pyproject.toml and the like), some of the code and of its tests, and CLAUDE.md or other notes for agents if there are any.
Then write, in at most 100 lines: what the project is for, in two sentences; the commands that build it, test it and check its style, as they stand in its files; where things are; the rules of style that the code follows; what is easily done wrong.
Write what you have seen and nothing that you guess, and nothing that holds for every project. Use file_write, once.`
	reviseInstructions = `Read AGENTS.md at the root of the workspace, and look whether it is still right: whether its commands, files and directories are there, and whether something that one has to know is missing.
Look at the files that build the project, at its directories and at some of its code. Change with file_edit only what is wrong or missing, and say in a few words what that was. If nothing is, say so and change nothing.`
)

// initProject asks the model to write AGENTS.md, or to revise it. The offline model cannot do
// that: for it the program writes the file from the visible structure of the project.
func (t *conversation) initProject(ctx context.Context, arg string) error {
	path := filepath.Join(t.a.Workspace, instructions.Names[0])
	_, err := os.Lstat(path)
	switch there := !errors.Is(err, os.ErrNotExist); {
	case arg != "" && arg != "again":
		return errors.New("use /init, or /init again if there is an AGENTS.md")
	case there && arg == "":
		return errors.New("there is an AGENTS.md already; /init again checks whether it is still right")
	case !there && arg != "":
		return errors.New("there is no AGENTS.md yet; /init writes one")
	case !t.a.Config.AgentsMD:
		t.a.s.note("agents_md is false: the model will not get the file")
	}
	if t.Provider != door.ProviderOffline {
		prompt := writeInstructions
		if arg != "" {
			prompt = reviseInstructions
		}
		return t.show(ctx, prompt, "")
	}
	if arg != "" {
		return errors.New("the offline model cannot tell whether a text is right")
	}
	if !slices.Contains(t.tools.Names(), "file_write") {
		return errors.New("the tool file_write, which would write it, is not offered")
	}
	text, err := instructions.Draft(t.a.Workspace)
	if err != nil {
		return err
	}
	return t.showCalls(t.call(ctx, "file_write", map[string]any{"path": instructions.Names[0], "content": text}))
}
