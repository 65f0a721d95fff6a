package diff

import "github.com/stockade-dev/stockade/host/tool"

// Repository is what git has done in one.
type Repository struct {
	Root  string
	Facts []Fact
	Held  []Content     // what a commit or an index holds, and the worktree does not
	Told  []tool.Change // which the facts tell of; all others are entries
}

// FactKind is what a [Fact] says; Name, From and the other fields are its arguments.
type FactKind uint8

// The kinds. What each has is in brackets.
const (
	FactNew       FactKind = iota // a new repository
	FactOnBranch                  // HEAD leads to a branch [Name]
	FactDetached                  // HEAD is on no branch [To]
	FactCommits                   // there are commits [Name: a branch, or "" for none; Count, Gained, Subject]
	FactRewritten                 // a branch leads to what does not follow [also From, To; Steps: the subjects of commits that are lost, and More, Guess]
	FactStashed                   // stashes are new [Steps: what they are called, and More]
	FactDropped                   // stashes are gone [likewise]
	FactRefs                      // more references are others [Count]
	FactRef                       // a reference is there, or leads elsewhere [Name, From: "" for a new one, To, Forward; Steps, More, Guess]
	FactRefGone                   // a reference is gone [Name; Steps, More, Guess]
	FactLog                       // a log of a reference has lost entries [Name, Count]
	FactLogGone                   // a log is gone [Name, Count]
	FactSame                      // what commits or the index hold of files that are the same in the worktree [Files, More]
	FactEnds                      // of these, with other ends of lines there [Count]
	FactTaken                     // likewise, and that the worktree did not have [Files, More]
	FactStays                     // files gone from a commit or the index that stay in the worktree [Files, More]
	FactFlags                     // files of which git is told whether to look at them [Files, More]
	FactModule                    // a submodule is at a commit [Name, To]
	FactOlder                     // there are more commits than were looked at [Count]
	FactUnseen                    // something could not be looked at [Files: which objects, if it is these]
	FactStopped                   // an operation waits, and would go on [Name; Steps, and More of these; Unread]
	FactEnded                     // an operation has ended [Name]
	FactObjects                   // there are new objects [Count]
	FactDerived                   // what git has made of other files to be faster is gone
	FactLost                      // objects are gone, and nowhere else [Count]
	FactOwn                       // changes that say nothing to a person [Count]
)

// Fact is one thing that git has done. No field holds words: names, hashes and subjects
// are as others have written them.
type Fact struct {
	Kind     FactKind
	In       string // the git directory of a worktree or submodule, in .git; empty: it is .git
	Name     string // of a reference, in full
	From, To string // hashes, or what stands in their place
	Count    int
	Gained   int    // commits that others led to before
	Subject  string // of the newest commit
	Guess    bool   // there may be more, of nobody knows how many
	Forward  bool   // what was there leads to what is
	Files    []string
	More     int // of Files or Steps, beside these; -1: it is not known how many
	Steps    []string
	Unread   bool // Steps could not be read
	// Unseen says that something is behind it which nobody has looked at: then no answer
	// holds for more than the call.
	Unseen bool
}

// Content is a file that a commit or the index holds.
type Content struct {
	Where  string      // the hash of the commit; empty: it is the index
	Change tool.Change // from what the worktree has, to what is held
}
