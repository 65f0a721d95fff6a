package session

import (
	"github.com/stockade-dev/stockade/host/llm"
	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/tool"
)

// The bodies of events, by type. The body of messages, tool calls and tool results is an
// llm.Message, and that of progress a tool.Progress. Together with the envelope of tool results,
// bodies are the documented contract of `--json`: new fields may be added, old ones stay.

// Started is the body of session.started.
type Started struct {
	Program   string   `json:"program"` // name and version of the program that began the session
	Workspace string   `json:"workspace"`
	Mounts    []string `json:"mounts"` // PATH:ro or PATH:rw
	Tools     []string `json:"tools"`
	// UIDMap is the map of user IDs if the program runs in a user namespace, else empty. In a
	// namespace, the administrator's policy may differ from that of the machine.
	UIDMap string `json:"uid_map,omitempty"`
	// Conversation is set if the session was opened with a model, as by a chat, even if nothing was
	// asked yet. Versions before 2026-12 have not recorded it.
	Conversation bool `json:"conversation,omitempty"`
}

// Forked is the body of session.forked. The events behind it, as many as Events says, are copies
// of those of another session. They have happened there, and count there.
type Forked struct {
	From   string `json:"from"`   // ID of the other session
	Turn   int    `json:"turn"`   // number of its newest turn that was copied
	Events int    `json:"events"` // number of copied events
	Head   string `json:"head"`   // Hash of the newest event that was copied, in hexadecimal
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
	Effect string `json:"effect"` // effect of the policy: allow, ask or deny
	Risk   string `json:"risk"`
	Rule   string `json:"rule"`
	Source string `json:"source"`
	Origin string `json:"origin,omitempty"` // place at which the rule is written
	Reason string `json:"reason"`
	// SkippedQuestion is the reason to ask a person, if the call first ran on a stage and changed
	// nothing there, so that nobody was asked. The other fields then hold the decision after the
	// stage. Empty: no question was skipped.
	SkippedQuestion string       `json:"unasked,omitempty"`
	AllowHint       tool.Hint    `json:"change,omitempty"`       // change of policy that would allow the denied call
	Answer          *bool        `json:"answer,omitempty"`       // answer, false also without a person; nil: no question
	Scope           policy.Scope `json:"scope,omitempty"`        // scope of the answer
	AnsweredBy      string       `json:"by,omitempty"`           // who has answered
	QuestionID      string       `json:"question,omitempty"`     // ID in hexadecimal; empty: no question was asked
	RestOfStep      bool         `json:"rest_of_step,omitempty"` // the no holds for all later calls of the reply
	OutputOnly      bool         `json:"output_only,omitempty"`  // with a no: the changes of the command are dropped, its output is given out
	Tier            *policy.Tier `json:"tier,omitempty"`         // confinement of the process; nil: there is none
	// Histories holds git directories. If it is not empty, the decision is not about the call but
	// about their histories: whether the host searches one, or what commands may read of them.
	Histories []string `json:"histories,omitempty"`
}

// Question is the body of awaiting_permission: a question that waits for an answer, without
// secrets. An answer has to name both ID and Change.
type Question struct {
	ID        string   `json:"question"` // as in Decision
	Change    string   `json:"change"`   // SHA-256 of the changes that a person would be shown, in hex; zeros: they are not known
	Tool      string   `json:"tool"`
	Risk      string   `json:"risk"`
	Reason    string   `json:"reason"`
	Warning   string   `json:"warning,omitempty"` // what should be known before an answer
	Command   string   `json:"command,omitempty"`
	Dir       string   `json:"dir"`
	Paths     []string `json:"paths,omitempty"`     // files that the arguments name, absolute
	Network   []string `json:"network,omitempty"`   // rules about the hosts that the call could reach
	OpensHost string   `json:"opens,omitempty"`     // host that no rule opens, and a yes does
	Secrets   []string `json:"secrets,omitempty"`   // names of secrets that the tool would use
	Histories []string `json:"histories,omitempty"` // as in Decision
	Names     []string `json:"names,omitempty"`     // some files in these histories that look like secrets
	AskFirst  string   `json:"first,omitempty"`     // why it is asked before it runs; empty: it has run, or runs no command
	Failed    bool     `json:"failed,omitempty"`    // the call has run and failed: it changes nothing
	Output    string   `json:"output,omitempty"`    // end of the output of a command that has run
	Changes   string   `json:"changes,omitempty"`   // the changes in words, and the first of them in unified format
	Expires   string   `json:"expires"`             // time in RFC 3339; a later answer is a no
}

// Intent is the body of call.intended: a call that is about to run.
type Intent struct {
	Tool       string       `json:"tool"`
	Caller     string       `json:"caller"`
	Module     string       `json:"module"`
	Digest     string       `json:"digest"`          // SHA-256 of the module
	ArgsDigest string       `json:"args_sha256"`     // SHA-256 of the arguments
	Lines      []int        `json:"lines,omitempty"` // line_start and line_end of the call, if edits of the same step have moved them
	Cwd        string       `json:"cwd"`
	Mounts     []string     `json:"mounts"`            // directories that the call or its process sees: PATH:ro or PATH:rw
	Secrets    []string     `json:"secrets,omitempty"` // names of secrets that the call may have placeholders for
	Exec       bool         `json:"exec"`              // the call may start a process
	Tier       *policy.Tier `json:"tier,omitempty"`    // least confinement of its process; nil: it starts none
	Network    []string     `json:"network,omitempty"` // hosts that the call may reach: [not ][PROTOCOL://]HOST[:PORT]; "only HOST ..." holds all that a layer permits
	// Changes is the handling of file changes by its process; empty: it starts none. Only staged
	// changes have an event call.changes.
	Changes     policy.ChangesMode `json:"changes,omitempty"`
	Rehearsal   bool               `json:"rehearsal,omitempty"` // the call runs first; whether its changes are made is decided later
	TimeoutMS   int64              `json:"timeout_ms"`
	MemoryBytes uint64             `json:"memory_limit_bytes"`
	Fuel        uint64             `json:"fuel_limit"`
}

// Changes is the body of call.changes: changes that a call is about to make.
type Changes struct {
	Tool  string   `json:"tool"`
	Files []Change `json:"files"`          // the first 10,000 changes
	More  int      `json:"more,omitempty"` // number of changes that are not in Files
	// Summary describes the changes in fewer lines than Files has elements; empty: it would not.
	Summary []string `json:"summary,omitempty"`
}

// Change is a change of one file.
type Change struct {
	Path   string          `json:"path"`           // in the form of filename.UTF8, like From
	From   string          `json:"from,omitempty"` // old path of a renamed file
	Kind   tool.ChangeKind `json:"kind"`
	Before *Version        `json:"before,omitempty"`
	After  *Version        `json:"after,omitempty"`
	// Diff shows the change of a text in unified format, at most 64 KiB; if more was cut off, its
	// last line says so. It is empty if the file is not a text or has more than 128 KiB, if it looks
	// like a secret or holds a known one, and if the call changes many files. Beside a diff, Added
	// and Removed count all added and removed lines, including those cut off.
	Diff    string `json:"diff,omitempty"`
	Added   int    `json:"added,omitempty"`
	Removed int    `json:"removed,omitempty"`
	// NoPreimage is the reason why the store gets no content of the file before the change, so that
	// the change cannot be undone. Empty: the store gets it, or the change loses no content.
	NoPreimage NoPreimage `json:"no_image,omitempty"`
}

// NoPreimage is a reason why the content of a file before a change is not kept.
type NoPreimage string

// The reasons why the content of a file before a change is not kept.
const (
	NoPreimageSecret     NoPreimage = "secret"     // the file looks like a secret, or holds one, also in its name
	NoPreimageLarge      NoPreimage = "large"      // the file has more than MaxPreimageBytes
	NoPreimageMany       NoPreimage = "many"       // the changed files have more than MaxPreimagesBytes, or are too many to read
	NoPreimageUnreadable NoPreimage = "unreadable" // the file cannot be read
)

// Version is a file before or after a change.
type Version struct {
	Bytes    int64  `json:"bytes"`
	Mode     string `json:"mode"`
	SHA256   string `json:"sha256,omitempty"` // hash of a regular file, in hex; empty: too large, or not read
	Target   string `json:"target,omitempty"` // target of a symbolic link
	HardLink string `json:"twin,omitempty"`   // another name of the same file
}

// ToolStoreChanges is the body of call.kept: the changes of a successful call in its module's
// store.
type ToolStoreChanges struct {
	Tool   string `json:"tool"`
	Module string `json:"module"` // name of the module
	// Owner is the owner of the store: "builtin:NAME", "signer:SIGNER#NAME" or "sha256:DIGEST".
	Owner   string           `json:"owner"`
	Set     []ToolStoreEntry `json:"set,omitempty"`     // entries that were added or changed
	Deleted []string         `json:"deleted,omitempty"` // keys that were deleted
}

// ToolStoreEntry is an entry of a module's store. The value is in Text if it is text, else in
// Base64; an empty value has neither.
type ToolStoreEntry struct {
	Key       string `json:"key"`
	Text      string `json:"text,omitempty"`
	Base64    string `json:"base64,omitempty"`
	ExpiresMS int64  `json:"expires_ms,omitempty"` // milliseconds since 1970; 0: never
}

// StepEnded is the body of step.ended.
type StepEnded struct {
	Finish     llm.FinishReason `json:"finish_reason"`
	Usage      llm.Usage        `json:"usage"`
	DurationMS int64            `json:"duration_ms"` // duration of all requests of the step, and of the waits between
	// Restarts is the number of times that the request was sent again. The usage of failed
	// attempts is only in the usage of the turn, like that of a step without an end.
	Restarts int      `json:"restarts,omitempty"`
	Cost     *float64 `json:"cost,omitempty"` // price of the step in US dollars; nil: not known
	// Provider and Model name the model that has answered, if it is not the model of the turn,
	// which then has failed. Empty: the model of the turn has answered.
	Provider string `json:"provider,omitempty"`
	Model    string `json:"model,omitempty"`
}

// ContextReduced is the body of context.reduced: parts of the conversation that requests leave
// out from now on.
type ContextReduced struct {
	Chars int                `json:"chars"` // characters that are left out
	Parts []ContextReduction `json:"parts"` // in the order in which they are left out
}

// ContextPart is a part of a message.
type ContextPart string

// The parts of messages that can be left out.
const (
	PartResult    ContextPart = "result"    // the text of a result; its head and its tail stay
	PartPrompt    ContextPart = "prompt"    // the words of a person; their head and their tail stay
	PartArguments ContextPart = "arguments" // the arguments of a call
	PartReasoning ContextPart = "reasoning" // the thoughts of the model
	PartImages    ContextPart = "images"
)

// ContextReduction is a part of one message that requests leave out.
type ContextReduction struct {
	Part    ContextPart `json:"part"`
	Call    string      `json:"call,omitempty"`   // ID of the call of the message; empty: it has none
	Images  int         `json:"images,omitempty"` // number of images that are left out, from the first on
	Head    int         `json:"head,omitempty"`   // bytes that stay at the beginning of the text
	Tail    int         `json:"tail,omitempty"`   // bytes that stay at the end of the text
	Message int         `json:"message"`          // number of the message in the session, from 1
}

// ContextCompacted is the body of context.compacted: a summary that later requests have in place
// of earlier messages.
type ContextCompacted struct {
	Through  int         `json:"through"`           // number of the newest message that it replaces, from 1
	Messages int         `json:"messages"`          // number of messages that it replaces beside an earlier summary
	Chars    int         `json:"chars"`             // characters by which the conversation is shorter
	Focus    string      `json:"focus,omitempty"`   // what matters to the person, in their words; empty: not said
	Summary  string      `json:"summary,omitempty"` // text of the model; empty: there is none
	Error    string      `json:"error,omitempty"`   // why there is no summary of a model; empty: there is one, or none was asked for
	Message  llm.Message `json:"message"`           // message that requests have in place of the others

	Provider   string    `json:"provider,omitempty"` // provider of the model that was asked; empty: none was
	Model      string    `json:"model,omitempty"`
	Usage      llm.Usage `json:"usage"`
	Cost       *float64  `json:"cost,omitempty"` // US dollars; nil: not known
	DurationMS int64     `json:"duration_ms"`
}

// EndReason is the reason why a turn ended.
type EndReason string

// The reasons why a turn ends.
const (
	EndAnswered  EndReason = "answered"
	EndCut       EndReason = "cut"       // the provider cut the answer: its length, or its content filter
	EndLimit     EndReason = "limit"     // the loop reached its limit of steps, or the turn made no progress
	EndProvider  EndReason = "provider"  // the provider failed
	EndError     EndReason = "error"     // the host or the log failed
	EndCancelled EndReason = "cancelled" // the turn was interrupted
)

// TurnEnded is the body of turn.ended.
type TurnEnded struct {
	Reason     EndReason   `json:"reason"`
	Error      string      `json:"error,omitempty"`
	Hint       string      `json:"hint,omitempty"`          // advice about the error
	Limit      string      `json:"limit,omitempty"`         // key of the limit that was reached; or why an answer was cut
	Steps      int         `json:"steps"`                   // number of steps of the turn
	Calls      int         `json:"calls"`                   // number of calls of tools
	Failed     int         `json:"failed_calls"`            // number of calls without success
	Denied     int         `json:"denied_calls"`            // number of Failed that policy or a person has denied
	Stopped    int         `json:"stopped_calls,omitempty"` // number of Failed that the caller has cancelled
	Usage      llm.Usage   `json:"usage"`
	DurationMS int64       `json:"duration_ms"`
	Context    *ContextUse `json:"context,omitempty"` // use of the model's context at the end; nil: not known
	Cost       *float64    `json:"cost,omitempty"`    // US dollars of requests with a known price; nil: none
}

// Rewound is the body of conversation.rewound.
type Rewound struct {
	Turn int `json:"turn"` // first turn that is no part of the conversation any more
}

// ContextUse is the number of tokens that a model has used of its context.
type ContextUse struct {
	Used  int64 `json:"used"`
	Limit int64 `json:"limit"`
}

// Delta is the body of delta, a piece of the model's answer. It is not stored.
type Delta struct {
	Text string `json:"text"`
}

// Reasoning is the body of delta.reasoning, which is not stored. The message has the reasoning.
type Reasoning struct {
	Bytes int `json:"bytes"` // bytes of reasoning since the previous such event
}

// CallWriting is the body of delta.call, which is not stored: a call whose arguments are arriving. It
// may never be made.
type CallWriting struct {
	Number  int    `json:"number"`            // number of the call in the reply, from 1, in the order of arrival
	Tool    string `json:"tool"`              // name of the tool, as the model writes it
	Subject string `json:"subject,omitempty"` // its path, command, URL or pattern; empty: not there yet
	Bytes   int    `json:"bytes"`             // bytes of the arguments so far
}

// Restart is the body of delta.restart, which is not stored: a failed request is sent again.
type Restart struct {
	Error    string `json:"error"`              // error of the failed attempt
	WaitMS   int64  `json:"wait_ms,omitempty"`  // time until the next attempt
	Attempt  int    `json:"attempt,omitempty"`  // number of the next attempt, from 2
	Attempts int    `json:"attempts,omitempty"` // greatest number of attempts
	Profile  string `json:"profile,omitempty"`  // profile that is asked next, without a wait; empty: the same
}

// CallState is the body of call.state, which is not stored.
type CallState struct {
	State string `json:"state"`
	Tool  string `json:"tool"`
	Fault bool   `json:"fault,omitempty"` // a fault of the host has ended the call, which may not be recorded
}
