package tool

import (
	"crypto/sha256"
	"encoding/json"
)

// Caller is the kind of caller that has made a call.
type Caller string

// The kinds of callers.
const (
	CallerAgent  Caller = "agent"  // the model, through the loop
	CallerPerson Caller = "person" // `stockade call`
	CallerMCP    Caller = "mcp"    // a client of the MCP server
)

// Call is one use of a tool, as its caller has made it.
type Call struct {
	ID     string
	Tool   string
	Args   json.RawMessage // those of the caller, which dispatch replaces by checked arguments
	Caller Caller
	Cwd    string // absolute path on the host; relative paths in the arguments start here

	// Turn and Step are the numbers of the turn in the session and of the step in the
	// turn; 0 outside a turn.
	Turn, Step int
}

// ArgsDigest returns the SHA-256 of the arguments. With it a grant is bound to the
// arguments that were approved.
func (c Call) ArgsDigest() [32]byte { return sha256.Sum256(c.Args) }

// Progress is a report of a running tool: its progress, a message for the operator, or
// output of its process.
type Progress struct {
	Level   string  `json:"level,omitempty"` // of a message; empty for progress
	Message string  `json:"message,omitempty"`
	Hint    Hint    `json:"hint,omitempty"`   // an action that the operator can take
	Done    uint64  `json:"done,omitempty"`   // units of work so far
	Total   *uint64 `json:"total,omitempty"`  // units of work in all; nil: unknown
	Output  string  `json:"output,omitempty"` // follows the Output of the call's last report
}
