package foreign

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/stockade-dev/stockade/host/jail"
	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/policy/network"
	"github.com/stockade-dev/stockade/host/registry/description"
	"github.com/stockade-dev/stockade/host/sandbox"
	"github.com/stockade-dev/stockade/host/services"
	"github.com/stockade-dev/stockade/host/tool"
)

// RunCompileChild makes this process compile a module and exit, if it was started for
// that. A main function must call it first.
func RunCompileChild() {
	if len(os.Args) > 1 && os.Args[1] == sandbox.ChildCommand {
		os.Exit(sandbox.CompileChild(os.Args[2:]))
	}
}

// NewSandbox returns a sandbox like that of the program, with compiled code in the
// directory cache. HTTP requests of its guests go to server, on this machine, whatever
// their host; if server is empty they fail.
func NewSandbox(cache, server string) *sandbox.Sandbox {
	var set services.Set
	if server != "" {
		set.HTTP = redirector(server)
	}
	return sandbox.New(sandbox.Options{CacheDir: cache, Spawn: jail.RunHelper, AllowLarge: true, Services: set})
}

// Prepared is a module whose tools can be called.
type Prepared struct {
	Module   *tool.Module
	Manifest tool.Manifest
	Dir      string // directory that its tools see
}

// Prepare adds a description, which may be empty, to the bytes of a module, and reads the
// list of its tools. A module that does not run is an error with the reason.
func Prepare(ctx context.Context, box *sandbox.Sandbox, name string, code []byte, toml, dir string) (*Prepared, error) {
	mod := tool.NewModule(fileName(name), tool.OriginFile, fileName(name)+".wasm", code)
	if toml != "" {
		d, err := description.Parse(name+".toml", []byte(withWorkspace(toml, dir)))
		if err != nil {
			return nil, err
		}
		if mod, err = d.Add(ctx, box, mod); err != nil {
			return nil, err
		}
	}
	manifest, err := box.Describe(ctx, mod)
	return &Prepared{mod, manifest, dir}, err
}

func fileName(name string) string { return strings.ReplaceAll(name, "/", "-") }

// Grant makes a call of a tool, and grants all that the tool asks for. An empty name is
// the first tool.
func (r *Prepared) Grant(name string, args json.RawMessage, limits policy.Limits) (tool.Call, policy.Grant, error) {
	i := slices.IndexFunc(r.Manifest.Tools, func(s tool.Spec) bool { return s.Name == cmp.Or(name, r.Manifest.Tools[0].Name) })
	if i < 0 {
		return tool.Call{}, policy.Grant{}, fmt.Errorf("there is no tool %s", name)
	}
	spec := r.Manifest.Tools[i]
	schema, err := tool.CompileSchema(spec.Parameters)
	if err != nil {
		return tool.Call{}, policy.Grant{}, err
	}
	var rules []network.Rule
	if spec.Capabilities.Network != "" {
		if len(spec.Capabilities.Hosts) == 0 {
			rules = append(rules, network.Rule{Allow: true, Name: builtinHost})
		}
		for _, h := range spec.Capabilities.Hosts {
			rule, err := network.ParseRule(h)
			if err != nil {
				return tool.Call{}, policy.Grant{}, err
			}
			rules = append(rules, rule)
		}
	}
	entry := &tool.Entry{Spec: spec, Schema: schema, Module: r.Module}
	call := tool.Call{ID: "call-1", Tool: spec.Name, Args: args, Cwd: r.Dir}
	decision := policy.New(policy.Options{
		Mounts: []policy.Mount{{Host: r.Dir, Write: spec.Capabilities.Files == tool.FilesWrite}}, Network: network.New(rules), Limits: limits,
	}).Decide(call, entry, policy.Facts{})
	var grant policy.Grant
	if decision.Effect() == policy.Ask {
		grant, err = decision.Approve(policy.Answer{Allow: true, Scope: policy.ScopeOnce, By: "test"}, 1)
	} else {
		grant, err = decision.Grant()
	}
	return call, grant, err
}

// Outcome is the result of a call.
type Outcome struct {
	tool.Result
	ChangedFiles []string // names relative to the directory
}

// String returns the outcome in one line.
func (o Outcome) String() string {
	text := string(o.Output)
	if o.Err != nil {
		text = fmt.Sprintf("failed, %s: %s", o.Err.Code, o.Err.Message)
		if o.Err.ExitCode != nil {
			text += fmt.Sprintf(" (exit code %d)", *o.Err.ExitCode)
		}
		if out := strings.TrimSpace(o.Err.Stdout + o.Err.Stderr); out != "" {
			text += ": " + out
		}
	}
	if len(o.ChangedFiles) > 0 {
		text += "; wrote " + strings.Join(o.ChangedFiles, ", ")
	}
	return text
}

// Call calls a tool, and commits the changes that it leaves. report is called with the
// messages and progress of the tool; it may be nil.
func (r *Prepared) Call(ctx context.Context, box *sandbox.Sandbox, name string, args json.RawMessage, limits policy.Limits, report func(tool.Progress)) (o Outcome, err error) {
	call, grant, err := r.Grant(name, args, limits)
	if err != nil {
		return o, err
	}
	result, staged, err := box.Run(ctx, grant, r.Module, call, report)
	o.Result = result
	if err != nil || staged == nil {
		return o, err
	}
	defer func() { err = errors.Join(err, staged.Drop()) }()
	changes, err := staged.Changes(ctx)
	if err != nil {
		return o, err
	}
	for _, c := range changes {
		name, err := filepath.Rel(r.Dir, c.Path)
		if err != nil {
			return o, err
		}
		o.ChangedFiles = append(o.ChangedFiles, filepath.ToSlash(name))
	}
	return o, staged.Commit(ctx, grant)
}

// Calls reads the arguments for the tools of a file NAME.wasm from NAME.json in the same
// folder: an object with a list of arguments for each tool. Other tools are called with
// {}. There need not be such a file.
func Calls(file string) (func(name string) []json.RawMessage, error) {
	calls := map[string][]json.RawMessage{}
	data, err := os.ReadFile(strings.TrimSuffix(file, ".wasm") + ".json")
	if err == nil {
		err = json.Unmarshal(data, &calls)
	}
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return func(name string) []json.RawMessage {
		if with := calls[name]; len(with) > 0 {
			return with
		}
		return []json.RawMessage{[]byte("{}")}
	}, err
}

// Workspace writes [Files] into a directory.
func Workspace(dir string) error {
	if err := os.MkdirAll(filepath.Join(dir, "sub"), 0o755); err != nil {
		return err
	}
	for name, content := range Files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
			return err
		}
	}
	return nil
}

func sortedKeys(m map[string]string) []string { return slices.Sorted(maps.Keys(m)) }

func withWorkspace(text, dir string) string {
	return strings.ReplaceAll(text, "WORKSPACE", dir)
}
