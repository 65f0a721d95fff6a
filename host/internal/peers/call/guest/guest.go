// Package guest makes calls of a tool's module the way that a program does: with a grant,
// in a sandbox that caches compiled code.
package guest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/stockade-dev/stockade/host/jail"
	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/sandbox"
	"github.com/stockade-dev/stockade/host/tool"
)

// Call is a call of a tool with its grant.
type Call struct {
	Module *tool.Module
	Grant  policy.Grant
	Call   tool.Call
}

// FromFile returns a call of the only tool of a module. The tool and the file have the
// module's name. The tool sees dir.
func FromFile(file, dir, args string) (*Call, error) {
	code, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	return New(nameOf(file), code, dir, args)
}

// New is FromFile for the bytes of a module.
func New(name string, code []byte, dir, args string) (*Call, error) {
	return readingCall(tool.NewModule(name, tool.OriginFile, name+".wasm", code), dir, args)
}

// FromInstalled is FromFile for a module with a known digest, like an installed one: it
// is not read before it has to be compiled.
func FromInstalled(file, digest, dir, args string) (*Call, error) {
	st, err := os.Stat(file)
	if err != nil {
		return nil, err
	}
	return readingCall(&tool.Module{
		Name: nameOf(file), Digest: digest, Bytes: st.Size(), Origin: tool.OriginFile, Path: file,
		Read: func() ([]byte, error) { return os.ReadFile(file) },
	}, dir, args)
}

func nameOf(file string) string {
	name, _, _ := strings.Cut(filepath.Base(file), ".")
	return name
}

// NewWriting is New for a tool that changes files of dir.
func NewWriting(name string, code []byte, dir, args string) (*Call, error) {
	return grantedCall(tool.NewModule(name, tool.OriginFile, name+".wasm", code), dir, args, tool.FilesWrite)
}

func readingCall(mod *tool.Module, dir, args string) (*Call, error) {
	return grantedCall(mod, dir, args, tool.FilesRead)
}

func grantedCall(mod *tool.Module, dir, args string, files tool.Files) (*Call, error) {
	schema, err := tool.CompileSchema(json.RawMessage(`{"type":"object"}`))
	if err != nil {
		return nil, err
	}
	entry := &tool.Entry{
		Spec:   tool.Spec{Definition: tool.Definition{Name: mod.Name}, Capabilities: tool.Capabilities{Files: files}},
		Schema: schema, Module: mod,
	}
	call := tool.Call{ID: "call-1", Tool: mod.Name, Args: json.RawMessage(args), Cwd: dir}
	decision := policy.New(policy.Options{
		Mounts: []policy.Mount{{Host: dir, Write: files == tool.FilesWrite}},
		Masked: []string{filepath.Join(dir, ".stockade", "policy.toml")}, // as in every workspace
	}).Decide(call, entry, policy.Facts{})
	var grant policy.Grant
	if decision.Effect() == policy.Ask {
		grant, err = decision.Approve(policy.Answer{Allow: true, Scope: policy.ScopeOnce, By: "benchmark"}, 1)
	} else {
		grant, err = decision.Grant()
	}
	return &Call{mod, grant, call}, err
}

// Run makes the call in a fresh instance, and commits its changes.
func (c *Call) Run(ctx context.Context, box *sandbox.Sandbox) ([]byte, error) {
	out, _, err := c.Measure(ctx, box)
	return out, err
}

// Measure is Run, and returns the usage of the call.
func (c *Call) Measure(ctx context.Context, box *sandbox.Sandbox) ([]byte, tool.Usage, error) {
	r, staged, err := box.Run(ctx, c.Grant, c.Module, c.Call, nil)
	if err == nil && r.Err != nil {
		err = errors.New(r.Summary())
	}
	if staged != nil {
		if err == nil {
			err = staged.Commit(ctx, c.Grant)
		}
		err = errors.Join(err, staged.Drop())
	}
	return r.Output, r.Usage, err
}

// NewSandbox returns a sandbox like that of the program, with compiled code in the
// directory cache. The process that compiles is this program again, see RunCompileChild.
func NewSandbox(cache string) *sandbox.Sandbox {
	return sandbox.New(sandbox.Options{CacheDir: cache, Spawn: jail.RunHelper, AllowLarge: true})
}

// RunCompileChild makes this process compile a module and exit, if it was started for
// that. A main function must call it first.
func RunCompileChild() {
	if len(os.Args) > 1 && os.Args[1] == sandbox.ChildCommand {
		os.Exit(sandbox.CompileChild(os.Args[2:]))
	}
}

// Cache makes a directory for compiled code, for this user only.
func Cache(parent string) (string, error) {
	dir, err := filepath.Abs(filepath.Join(parent, "compiled"))
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("make a cache: %w", err)
	}
	return dir, nil
}
