package tool

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
)

const bashTool = `{"name":"bash","description":"d","parameters":{"type":"object","properties":{"command":{"type":"string"},"timeout_seconds":{"type":"integer"},"argv":{"type":"array"}}},"capabilities":{"exec":"command","exec_timeout":"timeout_seconds"}}`

func manifest(tools string) string {
	return `{"abi":"stockade:tool@0.1.0","name":"m","tools":[` + tools + `]}`
}

func aTool(name, description, parameters, capabilities string) string {
	return manifest(fmt.Sprintf(`{"name":%q,"description":%q,"parameters":%s,"capabilities":%s}`, name, description, parameters, capabilities))
}

func documented(doc string) string {
	return manifest(`{"name":"a","description":"d","parameters":{"type":"object"},"doc":{` + doc + `}}`)
}

// Documentation is for people: a change of it does not ask a person again who has approved a
// tool, and models do not see it.
func TestDocumentationIsNoPartOfWhatIsApproved(t *testing.T) {
	plain, err := ParseManifest([]byte(documented(``)))
	if err != nil {
		t.Fatal(err)
	}
	m, err := ParseManifest([]byte(documented(`"errors":["NOT_UNIQUE: twice"],"limits":["8 MiB"],"examples":[{"args":{"a":1},"text":"does it"}]`)))
	if err != nil {
		t.Fatal(err)
	}
	spec := m.Tools[0]
	if d := spec.Doc; d == nil || len(d.Errors) != 1 || len(d.Limits) != 1 || string(d.Examples[0].Args) != `{"a":1}` {
		t.Errorf("got %+v", spec.Doc)
	}
	if m.Fingerprint() != plain.Fingerprint() {
		t.Error("the fingerprint is another one")
	}
	if text := string(Marshal(spec.Definition)); strings.Contains(text, "NOT_UNIQUE") || strings.Contains(text, "doc") {
		t.Errorf("the model reads %s", text)
	}
}

func TestParseManifest(t *testing.T) {
	m, err := ParseManifest([]byte(manifest(bashTool + `,{"name":"ls","description":"d","parameters":{"type":"object"},"capabilities":{"files":"read"}}`)))
	if err != nil {
		t.Fatal(err)
	}
	want := Capabilities{Exec: "command", ExecTimeout: "timeout_seconds"}
	if m.Name != "m" || len(m.Tools) != 2 || !reflect.DeepEqual(m.Tools[0].Capabilities, want) || m.Tools[1].Capabilities.Files != FilesRead {
		t.Errorf("got %+v", m)
	}
}

func TestAToolAsksForNothingUnlessItSaysSo(t *testing.T) {
	m, err := ParseManifest([]byte(manifest(`{"name":"a","description":"d","parameters":{"type":"object"}}`)))
	if err != nil || !reflect.DeepEqual(m.Tools[0].Capabilities, Capabilities{}) {
		t.Errorf("got %+v, %v", m, err)
	}
}

func TestParseManifestRefuses(t *testing.T) {
	const object = `{"type":"object","properties":{"a":{"type":"string"},"n":{"type":"integer"},"u":{}}}`
	many := strings.Repeat(bashTool+",", maxToolsPerModule) + bashTool
	names := ""
	for i := range maxConfig {
		names += fmt.Sprintf(`,"n%d":""`, i)
	}
	for name, c := range map[string]struct{ in, want string }{
		"nothing":                           {``, "not one complete JSON value"},
		"an array":                          {`[]`, "cannot unmarshal array"},
		"two manifests":                     {manifest(bashTool) + manifest(bashTool), "not one complete JSON value"},
		"a manifest without tools":          {manifest(``), "holds no tool"},
		"a module without a name":           {`{"tools":[` + bashTool + `]}`, `module name ""`},
		"a module with a path for a name":   {`{"name":"../m","tools":[` + bashTool + `]}`, "module name"},
		"a key twice":                       {`{"name":"m","name":"m","tools":[` + bashTool + `]}`, `key "name" twice`},
		"a capability that there is not":    {aTool("a", "d", object, `{"file":"read"}`), `tools: 0: capabilities: unknown key "file" (did you mean "files"?); the keys here are: exec, exec_network, exec_timeout, files, hosts, hosts_of, network, secrets`},
		"a capability in another case":      {aTool("a", "d", object, `{"Files":"read"}`), `unknown key "Files" (did you mean "files"?)`},
		"a key that secrets do not have":    {aTool("a", "d", object, `{"network":"http","secrets":[{"name":"A","hosts":["a.example"],"use":"b"}]}`), `secrets: 0: unknown key "use"`},
		"capabilities by another name":      {manifest(strings.Replace(bashTool, `"capabilities"`, `"capabilties"`, 1)), `unknown key "capabilties" (did you mean "capabilities"?)`},
		"content by another name":           {manifest(strings.Replace(bashTool, `"capabilities"`, `"content":{"path":"command","Hash":"argv"},"capabilities"`, 1)), `content: unknown key "Hash" (did you mean "hash"?)`},
		"content of an unknown argument":    {manifest(strings.Replace(bashTool, `"capabilities"`, `"content":{"path":"b"},"capabilities"`, 1)), `content names the argument "b"`},
		"content of a path and a patch":     {manifest(strings.Replace(bashTool, `"capabilities"`, `"content":{"path":"command","patch":"command"},"capabilities"`, 1)), "either path or patch"},
		"content whose hash is a list":      {manifest(strings.Replace(bashTool, `"capabilities"`, `"content":{"path":"command","hash":"argv"},"capabilities"`, 1)), `the argument "argv" for the hash`},
		"lines without a hash":              {manifest(strings.Replace(bashTool, `"capabilities"`, `"content":{"path":"command","lines":true},"capabilities"`, 1)), "lines without hash"},
		"exact without a hash":              {manifest(strings.Replace(bashTool, `"capabilities"`, `"content":{"path":"command","exact":true},"capabilities"`, 1)), "without hash"},
		"exact with lines":                  {manifest(strings.Replace(bashTool, `"capabilities"`, `"content":{"path":"command","hash":"command","lines":true,"exact":true},"capabilities"`, 1)), "both lines and exact"},
		"a key of its own":                  {`{"abi":"x","name":"m","tool":[]}`, `manifest: unknown key "tool" (did you mean "tools"?)`},
		"a value that is a novel":           {`{"name":"m","config":{"a":"` + strings.Repeat("x", MaxConfigBytes+1) + `"},"tools":[` + bashTool + `]}`, `config: the value of "a" has 8193 bytes`},
		"a dictionary of names":             {`{"name":"m","config":{"x":""` + names + `},"tools":[` + bashTool + `]}`, "65 names, more than the limit of 64"},
		"capabilities twice":                {manifest(strings.Replace(bashTool, `"name"`, `"capabilities":{},"name"`, 1)), `key "capabilities" twice`},
		"a bomb":                            {strings.Repeat(`{"a":`, 40_000), "nests deeper"},
		"too many bytes":                    {`{"name":"` + strings.Repeat("x", MaxManifestBytes) + `"}`, "more than the limit"},
		"too many tools":                    {manifest(many), "more than the limit"},
		"two tools of one name":             {manifest(bashTool + "," + bashTool), `two tools are named "bash"`},
		"a tool without a name":             {aTool("", "d", object, `{}`), `name ""`},
		"a name with a space":               {aTool("a b", "d", object, `{}`), "name"},
		"a name with a line end":            {aTool("a\n", "d", object, `{}`), "name"},
		"a name with a parenthesis":         {aTool("a(b", "d", object, `{}`), "name"},
		"a name that is not ASCII":          {aTool("lś", "d", object, `{}`), "name"},
		"a name of 65 letters":              {aTool(strings.Repeat("a", 65), "d", object, `{}`), "name"},
		"a tool without a description":      {aTool("a", "", object, `{}`), "description has 0 bytes"},
		"a description that is a novel":     {aTool("a", strings.Repeat("x", maxDescriptionBytes+1), object, `{}`), "description has"},
		"parameters that are no object":     {aTool("a", "d", `{"type":"array"}`, `{}`), `has type "array"`},
		"parameters that are null":          {aTool("a", "d", `null`, `{}`), "parameters"},
		"no parameters":                     {manifest(`{"name":"a","description":"d"}`), "is missing"},
		"a remote reference":                {aTool("a", "d", `{"type":"object","properties":{"a":{"$ref":"http://127.0.0.1/"}}}`, `{}`), "$ref"},
		"a schema that refers to itself":    {aTool("a", "d", `{"type":"object","allOf":[{"$ref":"#"}]}`, `{}`), "without end"},
		"files that are something else":     {aTool("a", "d", object, `{"files":"all"}`), `capability files is "all"`},
		"exec of an unknown argument":       {aTool("a", "d", object, `{"exec":"b"}`), `capability exec names the argument "b"`},
		"exec of an integer":                {aTool("a", "d", object, `{"exec":"n"}`), `whose type is not "string"`},
		"exec of anything":                  {aTool("a", "d", object, `{"exec":"u"}`), `whose type is not "string"`},
		"a time limit of an unknown one":    {aTool("a", "d", object, `{"exec":"a","exec_timeout":"b"}`), `capability exec_timeout names the argument "b"`},
		"a network of an unknown argument":  {aTool("a", "d", object, `{"exec":"a","exec_network":"b"}`), `capability exec_network names the argument "b"`},
		"a network without a command":       {aTool("a", "d", object, `{"exec_network":"n"}`), "exec_network without exec"},
		"a time limit without a command":    {aTool("a", "d", object, `{"exec_timeout":"n"}`), "exec_timeout without exec"},
		"capabilities that are not strings": {aTool("a", "d", object, `{"exec":true}`), "cannot unmarshal"},
		"an error that has no code":         {documented(`"errors":["it fails"]`), `"it fails" is not "CODE: TEXT"`},
		"an error that is only a code":      {documented(`"errors":["NOT_UNIQUE: "]`), `is not "CODE: TEXT"`},
		"a limit without words":             {documented(`"limits":[" "]`), "limits: a text has 1 bytes"},
		"a limit that is a novel":           {documented(`"limits":["` + strings.Repeat("x", maxDocText+1) + `"]`), "limits: a text has 401 bytes"},
		"too many limits":                   {documented(`"limits":["x"` + strings.Repeat(`,"x"`, maxDocLimits) + `]`), "17 limits, more than the limit of 16"},
		"an example without arguments":      {documented(`"examples":[{"text":"x"}]`), "args are no JSON object"},
		"an example of large arguments":     {documented(`"examples":[{"text":"x","args":{"a":"` + strings.Repeat("x", maxDocArgs) + `"}}]`), "args are no JSON object of at most 2048 bytes"},
		"an example without a text":         {documented(`"examples":[{"args":{}}]`), "examples: a text has 0 bytes"},
		"an example with another key":       {documented(`"examples":[{"args":{},"text":"x","run":true}]`), `doc: examples: 0: unknown key "run"`},
		"documentation by another name":     {documented(`"hints":["x"]`), `doc: unknown key "hints"`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ParseManifest([]byte(c.in))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("got %.300v, want %q in it", err, c.want)
			}
			if len(err.Error()) > 1000 {
				t.Errorf("the error has %d bytes", len(err.Error()))
			}
		})
	}
}

// FuzzParseManifest checks that an accepted manifest has all properties that the rest of the
// program relies on.
func FuzzParseManifest(f *testing.F) {
	f.Add([]byte(manifest(bashTool)))
	f.Add([]byte(manifest(`{"name":"a","description":"d","parameters":` + readSchema + `}`)))
	f.Add([]byte(manifest(`{"name":"a","description":"d","parameters":` + treeSchema + `,"capabilities":{"files":"write"}}`)))
	f.Add([]byte(`{"name":"m","tools":[{"parameters":{"type":"object","$ref":"#"}}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := ParseManifest(data)
		if err != nil {
			return
		}
		seen := map[string]bool{}
		for _, s := range m.Tools {
			if !ValidName(s.Name) || seen[s.Name] || s.Description == "" {
				t.Errorf("tool %+v", s.Definition)
			}
			seen[s.Name] = true
			schema, err := CompileSchema(s.Parameters)
			if err != nil {
				t.Fatalf("%s: %v", s.Name, err)
			}
			if exec := s.Capabilities.Exec; exec != "" && !schema.IsString(exec) {
				t.Errorf("%s: exec %q", s.Name, exec)
			}
			_, _ = schema.Check(t.Context(), json.RawMessage(`{"a":[{"b":1}],"path":"x"}`))
		}
		if _, err := NewCatalog(map[*Module]Manifest{{Name: m.Name}: m}); err != nil {
			t.Error(err)
		}
	})
}
