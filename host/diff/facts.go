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
	FactCommits                   // there are commits [Name: a branch, or "" for none; Count, Subject; Files that the index has not]
	FactRewritten                 // a branch leads to commits that do not follow [also From, To, Guess]
	FactStash                     // commits are added to the stash [Count, Subject]
	FactRef                       // a reference is there, or leads elsewhere [Name, From: "" for a new one, To]
	FactRefGone                   // a reference is gone [Name]
	FactIndex                     // what is staged has changed [Files]
	FactStopped                   // an operation waits, and would go on [Name; Steps, and More of these; Unread]
	FactEnded                     // an operation has ended [Name]
	FactObjects                   // there are new objects [Count]
	FactLost                      // objects are gone [Count]
	FactOwn                       // changes that say nothing to a person [Count]
)

// Fact is one thing that git has done. No field holds words: names, hashes and subjects
// are as others have written them.
type Fact struct {
	Kind     FactKind
	Name     string // of a reference, in full
	From, To string // hashes, or what stands in their place
	Count    int
	Subject  string // of the newest commit
	Guess    bool   // it is not known for sure
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
