package tool

import (
	"crypto/sha256"
	"encoding/json"
)

// Caller says who asked for a call.
type Caller string

// The callers.
const (
	CallerAgent  Caller = "agent"  // the model, through the loop
	CallerPerson Caller = "person" // `stockade call`
	CallerMCP    Caller = "mcp"    // a client of the MCP server
)

// Call is one use of a tool: what its caller says, and no more.
type Call struct {
	ID     string
	Tool   string
	Args   json.RawMessage // as the caller sent them until dispatch has checked them
	Caller Caller
	Cwd    string // absolute path on the host; relative paths in the arguments start here

	// Turn and Step say where in the session the call stands; 0 outside a turn.
	Turn, Step int
}

// ArgsDigest identifies the arguments: what was approved is what runs.
func (c Call) ArgsDigest() [32]byte { return sha256.Sum256(c.Args) }

// Progress is what a tool says while it runs: how far it is, a message for the
// operator, or what its process writes.
type Progress struct {
	Level   string  `json:"level,omitempty"` // of a message; empty for progress
	Message string  `json:"message,omitempty"`
	Hint    Hint    `json:"hint,omitempty"` // what the operator can do about it
	Done    uint64  `json:"done,omitempty"`
	Total   *uint64 `json:"total,omitempty"`  // absent when unknown
	Output  string  `json:"output,omitempty"` // goes on where that of the call's last one ended
}
