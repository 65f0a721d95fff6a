// Package description reads a person's description of a module that does not describe
// itself: a WASI command, or an Extism plugin. It is a few lines of TOML:
//
//	name = "python"
//	[tools.run]
//	description = "Runs a script in Python; what it prints is the result."
//	args = ["-c", "{code}"]
//	[tools.run.parameters.code]
//	type = "string"
//	required = true
//
// [Parse] checks everything that can be checked without the module. [Description.Add] puts the
// description into a module, as a manifest in the custom section in which native modules have
// theirs: from then on it is part of the bytes that are hashed, compared, signed and shared.
// [Copy] puts it into a newer version. See RATIONALE, "Why does a description become part of
// the module?"
//
// A module asks only for the access in its description, whatever the module imports.
package description

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/stockade-dev/stockade/host/config/keys"
	"github.com/stockade-dev/stockade/host/internal/regular"
	"github.com/stockade-dev/stockade/host/tool"
)

// Limits on a description; more is an error. Those of a manifest, which it becomes, apply,
// too.
const (
	maxArgs    = 64
	maxConfig  = 64 // entries
	maxHosts   = 32
	maxSecrets = 16
	maxText    = 8 << 10 // bytes of a text
)

// table holds every key of a file with a description.
var table = slices.Concat(keys.Table{
	{Name: "name", Kind: keys.Text("name", "a name in quotes", tool.CheckName)},
	{Name: "version", Kind: keys.Text("version", `a version in quotes, such as "1.2.0"`, textUpTo(64))},
	{Name: "config.NAME", Kind: keys.Text("text", "a text in quotes", textUpTo(maxText))},
}, needKeys(""), keys.Table{
	{Name: "tools.NAME.description", Kind: keys.Text("text", "a text in quotes", nil)},
	{Name: "tools.NAME.args", Kind: keys.List("arguments", `["-c", "{code}"]`, maxArgs, textUpTo(maxText))},
	{Name: "tools.NAME.stdin", Kind: keys.Text("text", `a text in quotes, such as "{input}"`, textUpTo(maxText))},
	{Name: "tools.NAME.input", Kind: keys.Text("text", `a text in quotes, such as "{input}"`, textUpTo(maxText))},
	{Name: "tools.NAME.function", Kind: keys.Text("name", "the name of an export in quotes", textUpTo(256))},
	{Name: "tools.NAME.env.NAME", Kind: keys.Text("text", "a text in quotes", textUpTo(maxText))},
}, needKeys("tools.NAME."), keys.Table{
	{Name: "tools.NAME.parameters.NAME", Kind: keys.Object(`a table such as { type = "string", required = true }`)},
})

// needKeys returns the keys that describe the access of a tool or a module. at is the prefix
// of their names.
func needKeys(at string) keys.Table {
	return keys.Table{
		{Name: at + "files", Kind: keys.Choice(string(tool.FilesRead), string(tool.FilesWrite))},
		{Name: at + "network", Kind: keys.Boolean()},
		{Name: at + "hosts", Kind: keys.List("hosts", `["api.example.org"]`, maxHosts, nil)},
		{Name: at + "secrets", Kind: keys.List("secrets", `["API_KEY"]`, maxSecrets, keys.Valid(tool.ValidSecretName, "1 to 64 letters, digits, '_' or '-', the first a letter"))},
	}
}

// textUpTo returns a check for texts of at most maxBytes bytes without NUL: only these can be
// arguments of a program.
func textUpTo(maxBytes int) func(string) error {
	return func(s string) error {
		switch {
		case len(s) > maxBytes:
			return fmt.Errorf("it has %d bytes; at most %d are accepted", len(s), maxBytes)
		case strings.ContainsRune(s, 0):
			return errors.New("it holds a NUL, which no program can be given")
		}
		return nil
	}
}

// Description is the content of a file that describes a module.
type Description struct {
	path          string
	file          *keys.File
	name, version string
	config        map[string]string
	needs         tool.Capabilities       // access of all tools, if the module lists the tools itself
	tools         []toolDescription       // tools in the order of the file; nil: the module lists them itself
	settings      map[string]keys.Setting // all settings of the file by their dotted names
}

type toolDescription struct {
	name         string
	firstSetting keys.Setting // the first key of the file about this tool, for messages
	description  string
	run          tool.Run
	needs        tool.Capabilities
	parameters   map[string]json.RawMessage
}

// Read reads a description from a file. Mistakes in it are [keys.Error] values, joined.
func Read(path string) (*Description, error) {
	f, _, err := regular.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, keys.MaxFileBytes+1))
	if err != nil {
		return nil, err
	}
	return Parse(path, data)
}

// Parse reads a description from the content of a file. path is for messages.
func Parse(path string, data []byte) (*Description, error) {
	file, err := table.Parse(path, data, nil)
	if err != nil {
		return nil, err
	}
	d := &Description{path: path, file: file, config: map[string]string{}, settings: map[string]keys.Setting{}}
	for _, s := range file.Settings {
		d.settings[strings.Join(s.Path, ".")] = s
		switch {
		case s.Path[0] == "tools" && len(s.Path) > 1:
			d.readToolKey(s)
		case s.Path[0] != "tools" && s.Key >= 0:
			d.readModuleKey(s)
		}
	}
	_, tools := d.settings["tools"]
	if tools && d.tools == nil {
		file.Fail(d.settings["tools"], errors.New("it holds no tool; write [tools.NAME]"))
	}
	for _, key := range []string{"files", "network", "hosts", "secrets"} {
		if s, ok := d.settings[key]; ok && d.tools != nil {
			file.Fail(s, fmt.Errorf("in a file with [tools.NAME], each tool has needs of its own: write it below [tools.%s]", d.tools[0].name))
		}
	}
	d.checkNetwork("", d.needs)
	var wrong []error
	for _, t := range d.tools {
		d.checkNetwork("tools."+t.name+".", t.needs)
		if err := tool.CheckName(t.name); err != nil {
			wrong = append(wrong, d.errorAtTool(t, err))
		} else if t.description == "" {
			wrong = append(wrong, d.errorAtTool(t, errors.New("it has no description, which is what the model knows of it")))
		}
	}
	if err := errors.Join(append([]error{file.Err()}, wrong...)...); err != nil {
		return nil, err
	}
	return d, nil
}

// readModuleKey reads a key that is about the module as a whole.
func (d *Description) readModuleKey(s keys.Setting) {
	switch s.Path[0] {
	case "name":
		d.name = s.Value.(string)
	case "version":
		d.version = s.Value.(string)
	case "config":
		if len(d.config) == maxConfig {
			d.file.Fail(s, fmt.Errorf("config has more than %d entries", maxConfig))
			return
		}
		if _, ok := d.settings["config"]; !ok { // config.KEY = "..."
			d.settings["config"] = s
		}
		d.config[s.Path[1]] = s.Value.(string)
	default:
		readNeed(&d.needs, s.Path[0], s.Value)
	}
}

func (d *Description) readToolKey(s keys.Setting) {
	i := slices.IndexFunc(d.tools, func(t toolDescription) bool { return t.name == s.Path[1] })
	if i < 0 {
		i = len(d.tools)
		d.tools = append(d.tools, toolDescription{name: s.Path[1], firstSetting: s, run: tool.Run{Env: map[string]string{}}, parameters: map[string]json.RawMessage{}})
	}
	if s.Key < 0 {
		return
	}
	switch t := &d.tools[i]; s.Path[2] {
	case "description":
		t.description = s.Value.(string)
	case "args":
		t.run.Args = s.Value.([]string)
	case "stdin":
		t.run.Stdin = s.Value.(string)
	case "input":
		t.run.Input = s.Value.(string)
	case "function":
		t.run.Function = s.Value.(string)
	case "env":
		t.run.Env[s.Path[3]] = s.Value.(string)
	case "parameters":
		if err := checkJSON(s.Value); err != nil {
			d.file.Fail(s, err)
			return
		}
		schema := tool.Marshal(s.Value)
		if _, err := tool.FlatSchema(map[string]json.RawMessage{s.Path[3]: schema}); err != nil {
			d.file.Fail(s, err)
			return
		}
		t.parameters[s.Path[3]] = schema
	default:
		readNeed(&t.needs, s.Path[2], s.Value)
	}
}

// readNeed adds one key about access to c. key is its name without the prefix.
func readNeed(c *tool.Capabilities, key string, value any) {
	switch key {
	case "files":
		c.Files = tool.Files(value.(string))
	case "network":
		if value.(bool) {
			c.Network = tool.NetworkHTTP
		}
	case "hosts":
		c.Hosts = value.([]string)
	case "secrets":
		for _, s := range value.([]string) {
			c.Secrets = append(c.Secrets, tool.Secret{Name: s})
		}
	}
	if len(c.Hosts) > 0 {
		c.Network = tool.NetworkHTTP
	}
}

// checkNetwork reports a mistake if the description names hosts although network = false.
func (d *Description) checkNetwork(at string, c tool.Capabilities) {
	if s, ok := d.settings[at+"network"]; ok && s.Value == false && len(c.Hosts) > 0 {
		d.file.Fail(s, errors.New("it is false, and there are hosts; leave one of them out"))
	}
}

// checkJSON returns an error for a value that TOML can hold and JSON cannot, such as a date.
func checkJSON(v any) error {
	switch v := v.(type) {
	case time.Time:
		return errors.New("it holds a date without quotes, which JSON does not have")
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return errors.New("it holds a number that JSON does not have")
		}
	case []any:
		for _, e := range v {
			if err := checkJSON(e); err != nil {
				return err
			}
		}
	case []map[string]any:
		for _, e := range v {
			if err := checkJSON(e); err != nil {
				return err
			}
		}
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			if err := checkJSON(v[key]); err != nil {
				return err
			}
		}
	}
	return nil
}

// errorAt returns an error about a setting, with its place in the file.
func (d *Description) errorAt(s keys.Setting, err error) error {
	return &keys.Error{Path: d.path, Line: d.file.Line(s), Message: fmt.Sprintf("%s: %v", s, err)}
}

// errorAtTool returns an error about a tool as a whole.
func (d *Description) errorAtTool(t toolDescription, err error) error {
	return &keys.Error{Path: d.path, Line: d.file.Line(t.firstSetting), Message: fmt.Sprintf("[tools.%s]: %v", t.name, err)}
}

// spec returns the entry of the manifest for a tool. abi is the ABI of the module.
func (d *Description) spec(t toolDescription, abi string) (tool.Spec, error) {
	s := tool.Spec{Definition: tool.Definition{Name: t.name, Description: t.description}, Capabilities: t.needs}
	var err error
	if s.Parameters, err = tool.FlatSchema(t.parameters); err != nil {
		return s, d.errorAtTool(t, err)
	}
	run := t.run
	if len(run.Env) == 0 {
		run.Env = nil
	}
	for _, part := range []struct {
		key string
		set bool
		abi bool // modules of this ABI have the key
	}{
		{"args", run.Args != nil, abi == tool.ABICommand},
		{"stdin", run.Stdin != "", abi == tool.ABICommand},
		{"env", run.Env != nil, abi == tool.ABICommand},
		{"input", run.Input != "", abi != tool.ABICommand},
		{"function", run.Function != "", abi != tool.ABICommand},
	} {
		if part.set && !part.abi {
			return s, d.errorAtTool(t, fmt.Errorf("%s has no meaning for %s", part.key, tool.Manifest{ABI: abi}.Kind()))
		}
	}
	if abi == tool.ABICommand || run.Input != "" { // without an input, a plugin gets all arguments
		for _, name := range slices.Sorted(maps.Keys(t.parameters)) {
			if !run.UsesArgument(name) {
				return s, d.errorAt(d.settings["tools."+t.name+".parameters."+name], fmt.Errorf("it is not used: write {%s} where it belongs, in args, env, stdin or the input of a plugin", name))
			}
		}
	}
	switch {
	case abi == tool.ABICommand:
		s.Run = &run
	case abi == tool.ABIExtism:
		run.Function = cmp.Or(run.Function, t.name)
		s.Run = &run
	case run.Function != "" || run.Input != "":
		s.Run = &run
	}
	// Each tool is checked by itself, so that a mistake has a place in the file.
	if _, err := tool.ParseManifest(tool.Marshal(tool.Manifest{ABI: abi, Name: t.name, Tools: []tool.Spec{s}})); err != nil {
		return s, d.errorAtTool(t, errors.New(strings.TrimPrefix(err.Error(), "manifest: tool 0: "+t.name+": ")))
	}
	return s, nil
}
