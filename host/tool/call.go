package tool

import (
	"crypto/sha256"
	"encoding/json"
)

// Caller is the kind of caller that has made a call.
type Caller string

const (
	CallerAgent  Caller = "agent"  // the model, through the loop
	CallerPerson Caller = "person" // a person, for example with `stockade call`
	CallerMCP    Caller = "mcp"    // a client of the MCP server
)

// Call is one use of a tool, as its caller has made it.
type Call struct {
	ID     string
	Tool   string
	Args   json.RawMessage // arguments from the caller; dispatch replaces them by checked ones
	Caller Caller
	Cwd    string // absolute path on the host; relative paths in the arguments start here

	Turn, Step int // numbers of the turn in the session and of the step in the turn; 0 outside a turn
}

// ArgsDigest returns the SHA-256 of the arguments. It binds a grant to the approved arguments.
func (c Call) ArgsDigest() [32]byte { return sha256.Sum256(c.Args) }

// Progress is a report during a call: the progress of the tool, a message of the tool or the
// host, or output of a command.
type Progress struct {
	Level   string  `json:"level,omitempty"` // level of a logged message, such as "warn"; else empty
	Message string  `json:"message,omitempty"`
	Hint    Hint    `json:"hint,omitempty"`   // action that the operator can take
	Done    uint64  `json:"done,omitempty"`   // units of work so far
	Total   *uint64 `json:"total,omitempty"`  // units of work in all; nil: unknown
	Output  string  `json:"output,omitempty"` // continues the Output of earlier reports of the call
}
