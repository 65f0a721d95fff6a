package session

import (
	"github.com/stockade-dev/stockade/host/llm"
	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/tool"
)

// The bodies of events, by type. Messages, tool calls and tool results have an
// llm.Message, progress has a tool.Progress. Together with the envelope of tool results they are the
// documented contract of `--json`: new fields may come, old ones stay.

// Started is the body of session.started.
type Started struct {
	Program   string   `json:"program"` // version
	Workspace string   `json:"workspace"`
	Mounts    []string `json:"mounts"` // PATH:ro or PATH:rw
	Tools     []string `json:"tools"`
	// UIDMap is the map of user IDs of the program, if it runs in a user namespace: the
	// administrator's policy may then differ from the one of the machine.
	UIDMap string `json:"uid_map,omitempty"`
}

// TurnStarted is the body of turn.started.
type TurnStarted struct {
	Prompt    string `json:"prompt"`
	Provider  string `json:"provider"`
	Model     string `json:"model"`
	Workspace string `json:"workspace"`
}

// Decision is the body of call.decision.
type Decision struct {
	Tool   string `json:"tool"`
	Effect string `json:"effect"` // what policy says: allow, ask, deny
	Risk   string `json:"risk"`
	Rule   string `json:"rule"`
	Source string `json:"source"`
	Origin string `json:"origin,omitempty"` // where the rule is written
	Reason string `json:"reason"`
	// SkippedQuestion is the reason for which a person would have been asked, if the call ran on a
	// stage and changed nothing there. The other fields are the decision after that.
	SkippedQuestion string `json:"unasked,omitempty"`
	// AllowHint is what would allow a call that was denied, as data.
	AllowHint  tool.Hint    `json:"change,omitempty"`
	Answer     *bool        `json:"answer,omitempty"` // what a person said, where policy asks
	Scope      policy.Scope `json:"scope,omitempty"`
	AnsweredBy string       `json:"by,omitempty"`
	// QuestionID is the ID of what was asked, in hexadecimal, if something was.
	QuestionID string `json:"question,omitempty"`
	// Tier is how far the process would be confined; nil where the tool starts none.
	Tier *policy.Tier `json:"tier,omitempty"`
	// Histories are the git directories of repositories, if the decision is about their
	// histories and not about the call: that the host searches one, or what commands
	// may read of them.
	Histories []string `json:"histories,omitempty"`
}

// Intent is the body of call.intended: what is about to run.
type Intent struct {
	Tool       string       `json:"tool"`
	Caller     string       `json:"caller"`
	Module     string       `json:"module"`
	Digest     string       `json:"digest"` // sha256 of the module
	ArgsDigest string       `json:"args_sha256"`
	Lines      []int        `json:"lines,omitempty"` // line_start and line_end as it runs, where edits of the same step have moved them
	Cwd        string       `json:"cwd"`
	Mounts     []string     `json:"mounts"`            // PATH:ro or PATH:rw; what the call sees, or its process
	Secrets    []string     `json:"secrets,omitempty"` // names of those that it may have placeholders of
	Exec       bool         `json:"exec"`
	Tier       *policy.Tier `json:"tier,omitempty"`    // how far its process is confined at least
	Network    []string     `json:"network,omitempty"` // [not ][PROTOCOL://]HOST[:PORT], and "only" with what a layer leaves of it; what the call may reach
	// Changes is what becomes of what its process changes in files; empty where it
	// starts none. Only of staged ones is there an event call.changes.
	Changes     policy.ChangesMode `json:"changes,omitempty"`
	Rehearsal   bool               `json:"rehearsal,omitempty"` // it runs first, and whether its changes are made is decided then
	TimeoutMS   int64              `json:"timeout_ms"`
	MemoryBytes uint64             `json:"memory_limit_bytes"`
	Fuel        uint64             `json:"fuel_limit"`
}

// Changes is the body of call.changes: what a call is about to change.
type Changes struct {
	Tool  string   `json:"tool"`
	Files []Change `json:"files"` // of the first 10,000
	More  int      `json:"more,omitempty"`
	// Summary is what they are in short, where that takes fewer lines.
	Summary []string `json:"summary,omitempty"`
}

// Change is one of Changes.
type Change struct {
	Path   string          `json:"path"` // as filename.UTF8 writes it, and so is From
	From   string          `json:"from,omitempty"`
	Kind   tool.ChangeKind `json:"kind"`
	Before *Version        `json:"before,omitempty"`
	After  *Version        `json:"after,omitempty"`
	// Diff shows the change of a text, in unified format: at most 64 KiB, the last
	// line says if there is more. Empty for what is no text, for what looks like a
	// secret or holds a known one, and where the call changes many files. Added and
	// Removed count its lines, all of them.
	Diff    string `json:"diff,omitempty"`
	Added   int    `json:"added,omitempty"`
	Removed int    `json:"removed,omitempty"`
	// NoPreimage says why the store has no image of the content before, by which the
	// change could be undone, where there was one.
	NoPreimage NoPreimage `json:"no_image,omitempty"`
}

// NoPreimage is why a content is not kept.
type NoPreimage string

// The reasons.
const (
	NoPreimageSecret     NoPreimage = "secret"     // the file looks like a secret, or holds a known one
	NoPreimageLarge      NoPreimage = "large"      // it has more than MaxImageBytes
	NoPreimageMany       NoPreimage = "many"       // what the call changes has more than MaxImagesBytes, or is too much to be read
	NoPreimageUnreadable NoPreimage = "unreadable" // nobody may read it
)

// Version is a file before or after a change.
type Version struct {
	Bytes    int64  `json:"bytes"`
	Mode     string `json:"mode"`
	SHA256   string `json:"sha256,omitempty"` // of a regular file of at most 16 MiB
	Target   string `json:"target,omitempty"` // of a symbolic link
	HardLink string `json:"twin,omitempty"`   // another name of the same file
}

// ToolStoreChanges is the body of call.kept: what a call that has succeeded has changed in the store
// of its module.
type ToolStoreChanges struct {
	Tool   string `json:"tool"`
	Module string `json:"module"` // its name
	// Owner is whose store that is: "builtin:NAME", "signer:SIGNER#NAME" or "sha256:DIGEST".
	Owner   string           `json:"owner"`
	Set     []ToolStoreEntry `json:"set,omitempty"`
	Deleted []string         `json:"deleted,omitempty"`
}

// ToolStoreEntry is one of Kept. Text is the value if it is one, else Base64 is; an empty
// value has neither.
type ToolStoreEntry struct {
	Key       string `json:"key"`
	Text      string `json:"text,omitempty"`
	Base64    string `json:"base64,omitempty"`
	ExpiresMS int64  `json:"expires_ms,omitempty"` // since 1970; absent: never
}

// StepEnded is the body of step.ended.
type StepEnded struct {
	Finish     llm.FinishReason `json:"finish_reason"`
	Usage      llm.Usage        `json:"usage"`
	DurationMS int64            `json:"duration_ms"` // of all its requests, with the waits between them
	// Restarts is how often the request was sent again. What the failed attempts have
	// used is in the usage of the turn alone, as is that of a step that has no end.
	Restarts int `json:"restarts,omitempty"`
	// Cost is in US dollars; nil if the price is not known.
	Cost *float64 `json:"cost,omitempty"`
	// Provider and Model have answered in the place of those of the turn, which had failed.
	// Empty: it was those.
	Provider string `json:"provider,omitempty"`
	Model    string `json:"model,omitempty"`
}

// EndReason says why a turn ended.
type EndReason string

// The reasons.
const (
	EndAnswered  EndReason = "answered"
	EndCut       EndReason = "cut"       // the provider cut the answer: its length or its content filter
	EndLimit     EndReason = "limit"     // the loop reached its limit of steps, or a turn came to nothing new
	EndProvider  EndReason = "provider"  // the provider failed
	EndError     EndReason = "error"     // the host or the log failed
	EndCancelled EndReason = "cancelled" // interrupted
)

// TurnEnded is the body of turn.ended.
type TurnEnded struct {
	Reason     EndReason `json:"reason"`
	Error      string    `json:"error,omitempty"`
	Hint       string    `json:"hint,omitempty"`  // what to do about the error
	Limit      string    `json:"limit,omitempty"` // the key of the limit that was reached
	Steps      int       `json:"steps"`
	Calls      int       `json:"calls"`
	Failed     int       `json:"failed_calls"`
	Denied     int       `json:"denied_calls"`            // of Failed
	Stopped    int       `json:"stopped_calls,omitempty"` // of Failed: by who asked for them
	Usage      llm.Usage `json:"usage"`
	DurationMS int64     `json:"duration_ms"`
	// Context is how full the context of the model was at the end; nil if that is not known.
	Context *ContextUse `json:"context,omitempty"`
	// Cost is in US dollars, of the requests whose price is known; nil if none is.
	Cost *float64 `json:"cost,omitempty"`
}

// ContextUse is how many tokens of its context a model has used.
type ContextUse struct {
	Used  int64 `json:"used"`
	Limit int64 `json:"limit"`
}

// Delta is the body of delta, which is not stored.
type Delta struct {
	Text string `json:"text"`
}

// Reasoning is the body of delta.reasoning, which is not stored. What the model thinks is
// a part of its message.
type Reasoning struct {
	Bytes int `json:"bytes"` // of it, since the one before
}

// Restart is the body of delta.restart, which is not stored.
type Restart struct {
	Error    string `json:"error"`
	WaitMS   int64  `json:"wait_ms,omitempty"`  // before the request is sent again
	Attempt  int    `json:"attempt,omitempty"`  // that comes after the wait, from 2
	Attempts int    `json:"attempts,omitempty"` // there are at most
	Profile  string `json:"profile,omitempty"`  // that is asked instead, without a wait
}

// CallState is the body of call.state, which is not stored.
type CallState struct {
	State string `json:"state"`
	Tool  string `json:"tool"`
	Fault bool   `json:"fault,omitempty"` // it is completed by a fault of the host, and maybe not recorded
}
