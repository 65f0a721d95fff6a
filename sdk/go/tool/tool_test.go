package tool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stockade-dev/stockade/sdk/go/internal/abi"
)

type nested struct {
	Deep []float64 `json:"deep"`
}

type everything struct {
	Name  string            `json:"name" desc:"A <name>."`
	Sort  string            `json:"sort,omitempty" enum:"name,size" default:"name"`
	Count int               `json:"count,omitempty" min:"1" max:"1000" default:"500"`
	Share *float64          `json:"share" min:"0.5"`
	On    bool              `json:"on,omitzero" default:"true"`
	Tags  []string          `json:"tags,omitempty"`
	Data  []byte            `json:"data,omitempty"`
	Env   map[string]int    `json:"env,omitempty"`
	In    nested            `json:"in"`
	Any   json.RawMessage   `json:"any,omitempty"`
	Other any               `json:"other,omitempty"`
	When  time.Time         `json:"-"`
	Plain uint8             // no tag
	_     int               // not an argument
	List  []nested          `json:"list,omitempty"`
	Maps  map[string]nested `json:"maps,omitempty"`
}

func TestSchema(t *testing.T) {
	e, err := newEntry("x", "X.", func(context.Context, everything) (string, error) { return "", nil })
	if err != nil {
		t.Fatal(err)
	}
	want := `{"type":"object","properties":{` +
		`"name":{"type":"string","description":"A <name>."},` +
		`"sort":{"type":"string","enum":["name","size"],"default":"name"},` +
		`"count":{"type":"integer","minimum":1,"maximum":1000,"default":500},` +
		`"share":{"type":"number","minimum":0.5},` +
		`"on":{"type":"boolean","default":true},` +
		`"tags":{"type":"array","items":{"type":"string"}},` +
		`"data":{"type":"string","contentEncoding":"base64"},` +
		`"env":{"type":"object","additionalProperties":{"type":"integer"}},` +
		`"in":{"type":"object","properties":{"deep":{"type":"array","items":{"type":"number"}}},"required":["deep"],"additionalProperties":false},` +
		`"any":{},"other":{},"Plain":{"type":"integer"},` +
		`"list":{"type":"array","items":{"type":"object","properties":{"deep":{"type":"array","items":{"type":"number"}}},"required":["deep"],"additionalProperties":false}},` +
		`"maps":{"type":"object","additionalProperties":{"type":"object","properties":{"deep":{"type":"array","items":{"type":"number"}}},"required":["deep"],"additionalProperties":false}}},` +
		`"required":["name","in","Plain"],"additionalProperties":false}`
	if diff := cmp.Diff(want, string(e.Parameters)); diff != "" {
		t.Errorf("schema (-want +got):\n%s", diff)
	}
	if !json.Valid(e.Parameters) {
		t.Error("schema is not JSON")
	}
}

type (
	recursive struct{ Next *recursive }
	embedding struct{ nested }
	twice     struct {
		A int
		B int `json:"A"`
	}
	defaultRequired struct {
		A int `json:"a" default:"1"`
	}
	defaultBad struct {
		A int `json:"a,omitempty" default:"x"`
	}
	defaultNested struct {
		In struct {
			A int `json:"a,omitempty" default:"1"`
		} `json:"in"`
	}
	enumOfInt struct {
		A int `json:"a" enum:"1,2"`
	}
	minOfText struct {
		A string `json:"a" min:"1"`
	}
	minTooLarge struct {
		A int8 `json:"a" min:"300"`
	}
	channel struct{ C chan int }
	intKeys struct{ M map[int]int }
	self    struct{ R json.Number }
	decoder struct{ D decodesItself }
)

type decodesItself struct{}

func (*decodesItself) UnmarshalJSON([]byte) error { return nil }

func entryOf[In any](name string, opts ...Option) error {
	_, err := newEntry(name, "X.", func(context.Context, In) (string, error) { return "", nil }, opts...)
	return err
}

func TestRegistrationMistakes(t *testing.T) {
	tests := map[string]struct {
		err  error
		want string
	}{
		"empty name":              {entryOf[nested](""), "name is not"},
		"name with a dot":         {entryOf[nested]("a.b"), "name is not"},
		"name too long":           {entryOf[nested](strings.Repeat("a", 65)), "name is not"},
		"not a struct":            {entryOf[string]("x"), "is not a struct"},
		"recursive type":          {entryOf[recursive]("x"), "contains itself"},
		"embedded field":          {entryOf[embedding]("x"), "embeds"},
		"two fields of one name":  {entryOf[twice]("x"), "two fields"},
		"default but required":    {entryOf[defaultRequired]("x"), "add omitempty"},
		"default of a wrong type": {entryOf[defaultBad]("x"), "invalid syntax"},
		"default below the top":   {entryOf[defaultNested]("x"), "only top-level"},
		"enum of numbers":         {entryOf[enumOfInt]("x"), "enum needs a string"},
		"min of a string":         {entryOf[minOfText]("x"), "min needs a number"},
		"min out of range":        {entryOf[minTooLarge]("x"), "out of range"},
		"channel":                 {entryOf[channel]("x"), "has no JSON Schema"},
		"map with number keys":    {entryOf[intKeys]("x"), "has no JSON Schema"},
		"decodes itself":          {entryOf[decoder]("x"), "decodes itself"},
		"unknown command":         {entryOf[nested]("x", RunsCommand("command", "")), `names the argument "command"`},
		"unknown timeout":         {entryOf[nested]("x", RunsCommand("deep", "t")), `names the argument "t"`},
		"a secret's name":         {entryOf[nested]("x", UsesSecret("1A", "")), "UsesSecret: the name"},
		"no secret's name":        {entryOf[nested]("x", UsesSecret("", "")), "UsesSecret: the name"},
		"a secret twice":          {entryOf[nested]("x", UsesSecret("A", ""), UsesSecret("a", "X")), "twice"},
		"a secret's host":         {entryOf[nested]("x", UsesSecret("A", "", "https://a.example/")), "not a host"},
		"a host with a scheme":    {entryOf[nested]("x", UsesNetwork("https://a.example")), "not a host"},
		"a pattern in a host":     {entryOf[nested]("x", UsesNetwork("a.*.example")), "not a host"},
		"all hosts below nothing": {entryOf[nested]("x", UsesNetwork("*.")), "not a host"},
		"more hosts than 32":      {entryOf[nested]("x", UsesNetwork(make([]string, 33)...)), "may name 32"},
		"unknown network":         {entryOf[nested]("x", RunsCommand("deep", ""), CommandNetwork("n")), `names the argument "n"`},
		"network alone":           {entryOf[nested]("x", CommandNetwork("deep")), "CommandNetwork without RunsCommand"},
		"timeout alone":           {entryOf[nested]("x", RunsCommand("", "deep")), "without the argument"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if tt.err == nil || !strings.Contains(tt.err.Error(), tt.want) {
				t.Errorf("error %v does not say %q", tt.err, tt.want)
			}
		})
	}
	if err := entryOf[self]("x"); err != nil {
		t.Errorf("json.Number: %v", err)
	}
	if _, err := newEntry("x", " ", func(context.Context, nested) (string, error) { return "", nil }); err == nil {
		t.Error("an empty description was accepted")
	}
	if _, err := newEntry[nested, string]("x", "X.", nil); err == nil {
		t.Error("a nil function was accepted")
	}
}

// registryWith returns a registry with one tool of each kind that the tests need.
func registryWith(t *testing.T) *registry {
	t.Helper()
	r := new(registry)
	r.setModule("mod", "1.2.3")
	for _, make := range []func() (*entry, error){
		func() (*entry, error) {
			return newEntry("args", "Returns its arguments.", func(_ context.Context, in everything) (everything, error) { return in, nil })
		},
		func() (*entry, error) {
			return newEntry("text", "Returns a text.", func(context.Context, struct{}) (string, error) { return "a <b> & \u2028", nil }, ReadsFiles())
		},
		func() (*entry, error) {
			return newEntry("list", "Returns a list.", func(context.Context, struct{}) ([]int, error) { return []int{1}, nil }, WritesFiles(), ReadsFiles())
		},
		func() (*entry, error) {
			return newEntry("panic", "Panics.", func(context.Context, struct{}) (int, error) { var list []int; return list[len(list)], nil })
		},
		func() (*entry, error) {
			return newEntry("unencodable", "Returns what JSON cannot hold.", func(context.Context, struct{}) (any, error) { return make(chan int), nil })
		},
		func() (*entry, error) {
			return newEntry("call", "Returns its call.", func(ctx context.Context, _ struct{}) (map[string]any, error) {
				c := CallFrom(ctx)
				deadline, has := ctx.Deadline()
				wd, err := os.Getwd()
				return map[string]any{"id": c.ID, "dir": c.Dir, "locale": c.Locale, "has": has, "same": deadline.Equal(c.Deadline), "wd": wd}, err
			}, ReadsFiles())
		},
		func() (*entry, error) {
			return newEntry("run", "Runs.", func(context.Context, struct {
				Command string `json:"command"`
				Seconds int    `json:"seconds,omitempty"`
				Network bool   `json:"network,omitempty"`
			}) (string, error) {
				return "", Cancelled("enough")
			}, RunsCommand("command", "seconds"), CommandNetwork("network"))
		},
	} {
		e, err := make()
		if err == nil {
			err = r.add(e)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return r
}

func TestManifest(t *testing.T) {
	r := registryWith(t)
	var m struct {
		ABI, Name, Version string
		Tools              []struct {
			Name, Description string
			Parameters        json.RawMessage
			Capabilities      json.RawMessage
		}
	}
	if err := json.Unmarshal(r.manifest(), &m); err != nil {
		t.Fatal(err)
	}
	if m.ABI != "stockade:tool@0.1.0" || m.Name != "mod" || m.Version != "1.2.3" {
		t.Errorf("head is %q %q %q", m.ABI, m.Name, m.Version)
	}
	want := map[string]string{"args": `{}`, "text": `{"files":"read"}`, "list": `{"files":"write"}`, "panic": `{}`, "unencodable": `{}`,
		"call": `{"files":"read"}`, "run": `{"exec":"command","exec_timeout":"seconds","exec_network":"network"}`}
	for _, tool := range m.Tools {
		if string(tool.Capabilities) != want[tool.Name] {
			t.Errorf("%s asks for %s, want %s", tool.Name, tool.Capabilities, want[tool.Name])
		}
	}
	if len(m.Tools) != len(want) {
		t.Errorf("%d tools", len(m.Tools))
	}
	if a, b := string(r.manifest()), string(registryWith(t).manifest()); a != b {
		t.Error("two equal modules have different manifests")
	}
	r.setConfig("color", "red")
	if text := string(r.manifest()); !strings.Contains(text, `"config":{"color":"red"},"tools":[`) {
		t.Errorf("what is declared is not in the manifest: %.200s", text)
	}
	if err := r.add(r.entries[0]); err == nil {
		t.Error("a second tool of the same name was accepted")
	}
}

func TestPanicsAtInit(t *testing.T) {
	tests := map[string]struct {
		call func()
		want string
	}{
		"module twice":  {func() { r := &registry{name: "a"}; r.setModule("b", "") }, `already named "a"`},
		"bad module":    {func() { new(registry).setModule("a b", "") }, "name is not"},
		"no module":     {func() { new(registry).manifest() }, "never called"},
		"config twice":  {func() { r := new(registry); r.setConfig("a", "1"); r.setConfig("a", "2") }, "declared already"},
		"bad config":    {func() { new(registry).setConfig("a b", "") }, "name is not"},
		"bad tool name": {func() { Register("a b", "X.", func(context.Context, nested) (string, error) { return "", nil }) }, `tool.Register("a b")`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if text := fmt.Sprint(recover()); !strings.Contains(text, tt.want) {
					t.Errorf("panic %q does not say %q", text, tt.want)
				}
			}()
			tt.call()
		})
	}
}

func TestCallResults(t *testing.T) {
	tests := map[string]struct{ tool, args, want string }{
		"defaults fill what is absent": {"args", `{"name":"n","in":{"deep":[]},"Plain":1}`,
			`{"name":"n","sort":"name","count":500,"share":null,"on":true,"in":{"deep":[]},"Plain":1}`},
		"arguments win over defaults": {"args", `{"name":"","sort":"size","count":2,"share":0.5,"on":false,"in":{"deep":[1]},"Plain":1,"data":"AAE=","any":[1]}`,
			`{"name":"","sort":"size","count":2,"share":0.5,"data":"AAE=","in":{"deep":[1]},"any":[1],"Plain":1}`},
		"text is wrapped, without HTML escapes": {"text", `{}`, `{"output":"a <b> & \u2028"}`},
		"a list is wrapped":                     {"list", ``, `{"output":[1]}`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, _, fault := registryWith(t).call(Call{}, tt.tool, []byte(tt.args))
			if fault != nil {
				t.Fatal(fault)
			}
			if diff := cmp.Diff(tt.want, string(got)); diff != "" {
				t.Errorf("result (-want +got):\n%s", diff)
			}
		})
	}
}

func TestCallErrors(t *testing.T) {
	tests := map[string]struct {
		call       Call
		tool, args string
		code       Code
		text       string
	}{
		"unknown tool":         {Call{}, "nope", `{}`, CodeUnknownTool, `module mod has no tool "nope"`},
		"unknown argument":     {Call{}, "text", `{"x":1}`, CodeInvalidInput, `unknown field "x"`},
		"wrong type":           {Call{}, "args", `{"name":1}`, CodeInvalidInput, "arguments of args"},
		"not JSON":             {Call{}, "text", `{`, CodeInvalidInput, "unexpected"},
		"more than one value":  {Call{}, "text", `{}{}`, CodeInvalidInput, "more than one"},
		"panic":                {Call{}, "panic", `{}`, CodeFailed, "panic: runtime error: index out of range"},
		"result without JSON":  {Call{}, "unencodable", `{}`, CodeFailed, "encode the result"},
		"directory not there":  {Call{Dir: "/no/such/dir"}, "text", `{}`, CodeDenied, "/no/such/dir is not in a granted"},
		"cancelled":            {Call{}, "run", `{"command":"x"}`, CodeCancelled, "enough"},
		"number out of range":  {Call{}, "args", `{"Plain":256}`, CodeInvalidInput, `arguments of args: argument "Plain" is the number 256; write a smaller one, in digits alone`},
		"number as of a float": {Call{}, "args", `{"Plain":1e1}`, CodeInvalidInput, `argument "Plain" is the number 1e1; write`},
		"not an object":        {Call{}, "args", `[]`, CodeInvalidInput, "arguments of args"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			result, _, fault := registryWith(t).call(tt.call, tt.tool, []byte(tt.args))
			if fault == nil {
				t.Fatalf("no error but %s", result)
			}
			if fault.Code != tt.code || !strings.Contains(fault.Error(), tt.text) {
				t.Errorf("got %v: %v", fault.Code, fault)
			}
		})
	}
}

func TestCallContext(t *testing.T) {
	t.Chdir(t.TempDir())
	dir, err := os.MkdirTemp(".", "cwd")
	if err == nil {
		dir, err = os.Getwd()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir("/")
	call := Call{ID: "c1", Dir: dir, Locale: "de", Deadline: time.Now().Add(time.Hour)}
	text, _, fault := registryWith(t).call(call, "call", nil)
	if fault != nil {
		t.Fatal(fault)
	}
	var got struct {
		ID, Dir, Locale, Wd string
		Has, Same           bool
	}
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	if got.ID != "c1" || got.Dir != dir || got.Locale != "de" || !got.Has || !got.Same || got.Wd != dir {
		t.Errorf("got %+v", got)
	}
}

func TestAsError(t *testing.T) {
	_, missing := os.Open("/no/such/file")
	tests := map[string]struct {
		err  error
		code Code
	}{
		"a typed error":         {Parse("x"), CodeParse},
		"a wrapped one":         {fmt.Errorf("more: %w", Unavailable("x")), CodeUnavailable},
		"a code over a cause":   {IO("x: %w", fs.ErrNotExist), CodeIO},
		"a missing file":        {missing, CodeNotFound},
		"no permission":         {&fs.PathError{Op: "open", Path: "p", Err: fs.ErrPermission}, CodeDenied},
		"cancelled":             {fmt.Errorf("walk: %w", context.Canceled), CodeCancelled},
		"another path error":    {&fs.PathError{Op: "read", Path: "p", Err: errors.New("disk")}, CodeIO},
		"a link error":          {&os.LinkError{Op: "rename", Old: "a", New: "b", Err: errors.New("disk")}, CodeIO},
		"deadline":              {context.DeadlineExceeded, CodeFailed},
		"anything else":         {errors.New("x"), CodeFailed},
		"a refusal by the host": {abi.Sentinel("denied", fs.ErrPermission), CodeDenied},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got := AsError(tt.err)
			if got.Code != tt.code || got.Error() != tt.err.Error() {
				t.Errorf("got %v: %v", got.Code, got)
			}
			if !errors.Is(got, tt.err) {
				t.Error("the cause is lost")
			}
		})
	}
	if AsError(nil) != nil {
		t.Error("nil became an error")
	}
	for code, name := range map[Code]string{CodeInvalidInput: "invalid-input", CodeFailed: "failed", 99: "code 99"} {
		if code.String() != name {
			t.Errorf("code %d is %q", uint8(code), code)
		}
	}
}

func TestCoded(t *testing.T) {
	missing := fmt.Errorf("look: %w", Coded("NO_KEY", NotFound("the key is not there")))
	for name, tt := range map[string]struct {
		err        error
		code, wire string
	}{
		"a code stands before the text":                  {Coded("NOT_UNIQUE", InvalidInput("3 times")), "NOT_UNIQUE", "NOT_UNIQUE: 3 times"},
		"also where the error was wrapped":               {missing, "NO_KEY", "NO_KEY: look: the key is not there"},
		"the outer of two counts":                        {Coded("OUTER", Coded("INNER", errors.New("x"))), "OUTER", "OUTER: x"},
		"a plain error has none":                         {IO("disk"), "", "disk"},
		"one that begins like one keeps its words":       {NotFound("README: no such file"), "", "NOT_FOUND: README: no such file"},
		"so it does with a code":                         {Coded("GONE", NotFound("README: no such file")), "GONE", "GONE: README: no such file"},
		"small letters are no code":                      {Coded("not_unique", Failed("x")), "", "x"},
		"nor is what is too short":                       {Coded("AB", Failed("x")), "", "x"},
		"nor what begins with a digit":                   {Coded("4XX", Failed("x")), "", "x"},
		"nor what is longer than 40":                     {Coded(strings.Repeat("A", 41), Failed("x")), "", "x"},
		"a code without any blank behind it is no more ": {Failed("HTTP:404"), "", "HTTP:404"},
	} {
		t.Run(name, func(t *testing.T) {
			if strings.HasPrefix(tt.err.Error(), "N") && tt.code != "" || CodeOf(tt.err) != tt.code {
				t.Errorf("the code is %q, and the text %q", CodeOf(tt.err), tt.err)
			}
			if kind, got := lift(lower(nil, nil, AsError(tt.err))); got != tt.wire || kind != AsError(tt.err).Code.String() {
				t.Errorf("the host gets %s %q, want %q", kind, got, tt.wire)
			}
		})
	}
	if Coded("GONE", nil) != nil {
		t.Error("nil became an error")
	}
	if AsError(missing).Code != CodeNotFound {
		t.Error("the kind is lost")
	}
}

// lift reads a lowered result<output, error> as a host does, and frees it.
func lift(ptr uint32) (kind string, text string) {
	area := abi.Record(abi.Take(ptr, 24))
	defer abi.Post(ptr)
	if !area.Bool(0) {
		if area.U32(8) != 0 {
			return "content", ""
		}
		return fmt.Sprintf("structured %d", area.Case(12)), area.Text(16)
	}
	if Code(area.Case(4)) == CodeCancelled {
		return "cancelled", ""
	}
	return Code(area.Case(4)).String(), area.Text(8)
}

func TestHostsAndSecretsInTheManifest(t *testing.T) {
	e, err := newEntry("x", "X.", func(context.Context, nested) (string, error) { return "", nil },
		UsesNetwork("a.example", "*.b.example"), UsesSecret("TOKEN", "X-Key", "a.example", "b.example:8443"), UsesSecret("Other", ""), UsesHostOf("url"), UsesSecretWhen("engine", "paid", "PAID", "X-Key"))
	if err != nil {
		t.Fatal(err)
	}
	got, err := encode(e.Capabilities)
	want := `{"network":"http","hosts":["a.example","*.b.example"],"hosts_of":["url"],"secrets":[{"name":"TOKEN","hosts":["a.example","b.example:8443"],"header":"X-Key"},{"name":"Other"},` +
		`{"name":"PAID","header":"X-Key","when":"engine=paid"}]}`
	if string(got) != want || err != nil {
		t.Errorf("got %s, %v", got, err)
	}
}

func TestDocumentation(t *testing.T) {
	fn := func(context.Context, struct {
		Path string `json:"path"`
	}) (string, error) {
		return "", nil
	}
	e, err := newEntry("x", "X.", fn, Errors("NOT_UNIQUE: twice", "NOT_FOUND: nowhere"), Limits("8 MiB"), Errors("IO_ERROR: disk"), Example(`{"path":"<a>"}`, "reads"))
	if err != nil {
		t.Fatal(err)
	}
	got, err := encode(e.Doc)
	want := `{"errors":["NOT_UNIQUE: twice","NOT_FOUND: nowhere","IO_ERROR: disk"],"limits":["8 MiB"],"examples":[{"args":{"path":"<a>"},"text":"reads"}]}`
	if string(got) != want || err != nil {
		t.Errorf("got %s, %v", got, err)
	}
	for name, tt := range map[string]struct {
		opt  Option
		says string
	}{
		"an error without a code":           {Errors("it does not work"), "is not CODE: TEXT"},
		"an error without a text":           {Errors("NOT_UNIQUE: "), "is not CODE: TEXT"},
		"a limit without words":             {Limits(""), "has not 1 to 400 bytes"},
		"a novel":                           {Limits(strings.Repeat("x", 401)), "has not 1 to 400 bytes"},
		"too many":                          {Limits(make([]string, 17)...), "a tool may have 32, 16 and 8"},
		"an example with another argument":  {Example(`{"pat":"x"}`, "x"), `unknown field "pat"`},
		"an example that is no object":      {Example(`null`, "x"), "are not the arguments"},
		"an example without any arguments":  {Example(``, "x"), "are not the arguments"},
		"an example of two calls":           {Example(`{"path":"x"}{}`, "x"), "more than one"},
		"an example that nobody would read": {Example(`{"path":"`+strings.Repeat("x", 2<<10)+`"}`, "x"), "at most 2048"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := newEntry("x", "X.", fn, tt.opt); err == nil || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("got %v, want %q", err, tt.says)
			}
		})
	}
}

func TestLower(t *testing.T) {
	for size := range 65 {
		text := strings.Repeat("x", size)
		if kind, got := lift(lower([]byte(text), nil, nil)); kind != "structured 1" || got != text {
			t.Errorf("%d bytes came back as %s %q", size, kind, got)
		}
	}
	for code := CodeInvalidInput; code <= CodeFailed; code++ {
		want := "text of \uFFFD"
		if code == CodeCancelled {
			want = ""
		}
		if kind, got := lift(lower(nil, nil, &Error{code, errors.New("text of \xff")})); kind != code.String() || got != want {
			t.Errorf("%v came back as %s %q", code, kind, got)
		}
	}
	r := registryWith(t)
	ptr := r.describe()
	area := abi.Record(abi.Take(ptr, 8))
	if got := area.Text(0); got != string(r.manifest()) {
		t.Errorf("describe returned %q", got)
	}
	abi.Post(ptr)
	if n := abi.Live(); n != 0 {
		t.Errorf("%d blocks left", n)
	}
}

func TestDeadlineAfter(t *testing.T) {
	now := time.Unix(1000, 0)
	if got := deadlineAfter(now, 1500); !got.Equal(now.Add(1500 * time.Millisecond)) {
		t.Errorf("got %v", got)
	}
	if got := deadlineAfter(now, 1<<63); !got.IsZero() {
		t.Errorf("a deadline beyond time is %v", got)
	}
}

type drawn struct {
	Output string `json:"output"`
	images []Image
}

func (d drawn) Images() []Image { return d.images }

func TestImagesOfAResult(t *testing.T) {
	r := new(registry)
	r.setModule("mod", "1")
	e, err := newEntry("draw", "Draws.", func(context.Context, struct{}) (drawn, error) {
		return drawn{"two", []Image{{"image/png", []byte("first")}, {"image/gif", nil}}}, nil
	})
	if err == nil {
		err = r.add(e)
	}
	if err != nil {
		t.Fatal(err)
	}
	text, images, fault := r.call(Call{}, "draw", nil)
	if string(text) != `{"output":"two"}` || len(images) != 2 || fault != nil {
		t.Fatalf("got %s, %d images, %v", text, len(images), fault)
	}
	ptr := lower(text, images, fault)
	area := abi.Record(abi.Take(ptr, 24))
	if n := area.U32(8); n != 2 || area.Text(16) != string(text) {
		t.Fatalf("%d contents", n)
	}
	list := abi.Record(abi.Take(area.U32(4), 2*contentSize))
	for i, want := range images {
		c := list[i*contentSize:]
		if c.Case(0) != contentImage || c.Text(4) != want.Mime || string(c.Bytes(12)) != string(want.Data) {
			t.Errorf("image %d is %x", i, c)
		}
	}
	abi.Post(ptr)
	if n := abi.Live(); n != 0 {
		t.Errorf("%d blocks left", n)
	}
}
