// Command git is the guest module with the tool git: it shows a repository without
// starting a process. It reads the repository itself and changes nothing, see RATIONALE,
// "Why does the tool git read the repository itself?"
//
// Words: a change is a file that differs between two sides; a side is a tree, the index or the
// files of the worktree. A commit leads to the commits of its history. A page is the part of
// an output that one call returns.
//
// The module may run in 64 MiB of memory.
package main

import (
	"context"
	"runtime"
	"runtime/debug"

	"github.com/stockade-dev/stockade/guests/git/repo"
	"github.com/stockade-dev/stockade/sdk/go/tool"
)

func init() {
	// Most allocations are large and short-lived.
	const softLimit = 44 << 20
	debug.SetMemoryLimit(softLimit)
	tool.Module("git", "0.1.0")
	tool.Config(hiddenName, "")
	tool.Register("git", "Look at a git repository, read-only: status (as --short --branch), log, diff, show, blame, branches. "+
		"Starts no process, so no hook or filter runs. A long output ends with how to go on.",
		run, tool.ReadsFiles(),
		tool.Errors("NOT_A_REPOSITORY: path is in no repository, or its git directory is not among the granted ones; grant it with --mount",
			"UNKNOWN_REVISION: revision names nothing; the error says what may have been meant, and operation branches lists what there is",
			"NOT_FOUND: no file matches path, or the revision has none of that name; the error says where to look",
			"CORRUPT_REPOSITORY: an object is missing or is not one, or the index or a reference is not as git makes them; git fsck, run by bash, tells more",
			"TOO_LARGE: more than a limit, and there is no part to show; name a path or a smaller range, or run git by bash",
			"UNSUPPORTED: only git itself, run by bash, does that: SHA-256, reftable, a split or sparse index, objects that a partial clone has left out, @{...}; "+
				"or files are compared that are not there: of a bare repository, or of one of which only .git is granted",
			"PARSE_ERROR: blame of a binary file",
			"DENIED: blame of a file that looks like a secret, and is no longer there",
			"IO_ERROR: a file could not be read",
			"INVALID_ARGUMENTS: an argument that the operation does not have, or an offset beyond the end"),
		tool.Limits("50 KiB of output, 200 commits and 1000 lines of blame a call",
			"files of up to 2 MiB are compared line by line, objects of up to 8 MiB are read, and an index of up to 32 MiB",
			"no configuration is read, neither the repository's nor a person's: origin/BRANCH stands for what a branch follows, files in core.excludesFile "+
				"are untracked, and no filter, textconv, external diff, replacement or graft applies; of .gitattributes it knows text, eol, diff, binary and filter=lfs",
			"whether a file of the worktree may be executed is not seen",
			"a file that looks like a secret is shown only if a call names it as path and a person says yes; of a commit it is not shown if it is no longer there",
			"a merge is compared with its first parent: show names its files, and format=patch has their lines; blame follows a file that was renamed, log does not",
			"250,000 commits are looked at for log of a path or blame, and 150,000 for a range, or fewer if they are much work: some 50,000, "+
				"with a commit-graph and its changed paths (git commit-graph write --reachable --changed-paths) all of them; what was found by then is shown, with how to go on",
			"some 20,000 files are read again of which the index does not tell whether they have changed, and 10,000 references of a kind are listed"),
		tool.Example(`{"operation":"status"}`, "the branch and what has changed"),
		tool.Example(`{"operation":"diff","revision":"main...HEAD","format":"numstat"}`, "which files a branch changes, and by how many lines"),
		tool.Example(`{"operation":"log","path":"src/main.go","format":"full"}`, "the commits that have changed a file"),
		tool.Example(`{"operation":"show","revision":"HEAD~3:README.md"}`, "a file as it was three commits ago"),
		tool.Example(`{"operation":"blame","path":"main.go","offset":100,"limit":20}`, "who has last changed the lines 100 to 119"))
}

type args struct {
	Operation string `json:"operation" desc:"What to look at." enum:"status,log,diff,show,blame,branches"`
	Path      string `json:"path,omitempty" desc:"Only this file or directory. Also chooses the repository; default: that of the working directory."`
	Revision  string `json:"revision,omitempty" desc:"Branch, tag or commit, such as HEAD~2; A..B for log and diff; REV:PATH shows a file. diff compares it with the files."`
	Staged    bool   `json:"staged,omitempty" desc:"diff: what is staged."`
	Format    string `json:"format,omitempty" desc:"log: oneline or full; log, diff and show: patch or numstat." enum:"oneline,full,patch,numstat"`
	Limit     int    `json:"limit,omitempty" desc:"log: commits, default 20; others: lines." min:"1" max:"1000"`
	Offset    int    `json:"offset,omitempty" desc:"Where to go on: commits of log or lines to skip; blame: the first line." min:"0"`
}

type result struct {
	Output     string `json:"output"`
	NextOffset int    `json:"next_offset,omitempty"` // offset of the next page; absent when the output is complete
}

// call is one call of the tool.
type call struct {
	args
	*repo.Repo
	cwd        string
	pathFilter string // path of the call, relative to the top of the repository; "": all files
	page       page
	notes      []string // notes for the end of the output

	partial     bool          // set if files beyond maxReread were not compared
	hiddenPaths []string      // paths that a policy hides, relative to the top of the repository
	indexes     []*repo.Index // readable ones of [repo.Repo.Indexes]; nil: not read yet

	attrs         map[string]*attributeFile // attribute rules, by directory
	infoAttrs     []attributeRule           // rules of info/attributes, which have precedence
	comparedIndex *repo.Index               // index with which diff or blame compares; nil in status, too
}

func run(ctx context.Context, in args) (result, error) {
	n := 0
	check := func() error {
		if n++; n%16 == 0 {
			runtime.Gosched() // there is one thread: without this the deadline's timer does not fire
		}
		return ctx.Err()
	}
	c, err := open(in, check)
	if err != nil {
		return result{}, err
	}
	defer c.Close()
	if err := c.checkArgs(); err != nil {
		return result{}, err
	}
	switch in.Operation {
	case "status":
		err = c.status()
	case "log":
		err = c.log()
	case "diff":
		err = c.diff()
	case "show":
		err = c.show()
	case "blame":
		err = c.blame()
	case "branches":
		err = c.branches()
	case "secrets":
		err = c.secrets()
	default:
		err = tool.InvalidInput("operation %q is not one of status, log, diff, show, blame, branches", in.Operation)
	}
	if err != nil && err != errFull {
		return result{}, c.explain(err)
	}
	return c.result(), nil
}

// checkArgs refuses staged, revision and format where the operation ignores them, since the
// caller expects an effect.
func (c *call) checkArgs() error {
	refuse := func(given bool, name, of string) error {
		if given {
			return tool.InvalidInput("%s is for %s, not for %s", name, of, c.Operation)
		}
		return nil
	}
	is := func(ops ...string) bool {
		for _, op := range ops {
			if c.Operation == op {
				return true
			}
		}
		return false
	}
	err := refuse(c.Staged && !is("diff"), "staged", "diff")
	if err == nil {
		err = refuse(c.Revision != "" && is("status", "branches"), "revision", "log, diff, show and blame")
	}
	if err == nil {
		err = refuse(c.Format != "" && is("status", "blame", "branches"), "format", "log, diff and show")
	}
	return err
}
