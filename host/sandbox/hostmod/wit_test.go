package hostmod

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero/api"

	"github.com/stockade-dev/stockade/host/sandbox/abi"
	"github.com/stockade-dev/stockade/host/sandbox/search"
	"github.com/stockade-dev/stockade/host/wasm/wasmtest"
)

// The files in wit/ are the source of truth. This test parses the part of WIT that they use,
// flattens it as the canonical ABI does, and compares the host with it.

// typ is a WIT type. A record, a variant and an enum have a name.
type typ struct {
	kind  string // a primitive, or: list option result record variant enum
	args  []*typ // of list, option and result; nil stands for _
	names []string
	types []*typ // of fields and cases; nil is a case without payload
}

type function struct {
	params []*typ
	result *typ
}

type iface struct {
	types map[string]*typ
	funcs map[string]function
}

type world struct {
	pkg              string
	ifaces           map[string]*iface
	imports, exports []string
}

var token = regexp.MustCompile(`//[^\n]*|[a-z%][a-z0-9-]*(?::[a-z-]+@[0-9.]+)?|->|[{}()<>:;,=.]|_|\S`)

type parser struct {
	tokens []string
	w      *world
	scope  *iface
}

// parseWIT reads a package: the texts of its files.
func parseWIT(files map[string]string) (w *world, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%v", r)
		}
	}()
	w = &world{ifaces: map[string]*iface{}}
	// What others use comes first.
	for _, name := range slices.SortedFunc(maps.Keys(files), func(a, b string) int {
		return strings.Compare(strings.Replace(a, "types", "", 1), strings.Replace(b, "types", "", 1))
	}) {
		p := &parser{w: w}
		for _, t := range token.FindAllString(files[name], -1) {
			if !strings.HasPrefix(t, "//") {
				p.tokens = append(p.tokens, t)
			}
		}
		p.file(name)
	}
	return w, nil
}

func (p *parser) peek() string {
	if len(p.tokens) == 0 {
		return ""
	}
	return p.tokens[0]
}

func (p *parser) next() string {
	t := p.peek()
	if t == "" {
		panic("unexpected end")
	}
	p.tokens = p.tokens[1:]
	return t
}

// keywords of WIT are names only with a % in front.
var keywords = strings.Fields("as async bool borrow char constructor enum export f32 f64 flags from func future import include interface " +
	"list map option own package record resource result s8 s16 s32 s64 static stream string tuple type u8 u16 u32 u64 use variant with world")

func named(t string) string {
	if slices.Contains(keywords, t) {
		panic(fmt.Sprintf("the keyword %s is the name of something; write %%%s", t, t))
	}
	return strings.TrimPrefix(t, "%")
}

func (p *parser) name() string { return named(p.next()) }

func (p *parser) want(texts ...string) {
	for _, t := range texts {
		if got := p.next(); got != t {
			panic(fmt.Sprintf("%q where %q should be", got, t))
		}
	}
}

func (p *parser) try(t string) bool {
	if p.peek() != t {
		return false
	}
	p.next()
	return true
}

// list reads items up to the closing token, with commas between them, and maybe after the
// last.
func (p *parser) list(end string, item func()) {
	for !p.try(end) {
		item()
		if !p.try(",") {
			p.want(end)
			return
		}
	}
}

func (p *parser) file(name string) {
	p.want("package")
	if pkg := p.next(); p.w.pkg == "" || p.w.pkg == pkg {
		p.w.pkg = pkg
	} else {
		panic(name + " is of another package")
	}
	p.want(";")
	for p.peek() != "" {
		switch what, id := p.next(), p.name(); what {
		case "interface":
			p.scope = &iface{map[string]*typ{}, map[string]function{}}
			p.w.ifaces[id] = p.scope
			p.want("{")
			for !p.try("}") {
				p.item()
			}
		case "world":
			p.want("{")
			for !p.try("}") {
				switch p.next() {
				case "import":
					p.w.imports = append(p.w.imports, p.next())
				case "export":
					p.w.exports = append(p.w.exports, p.next())
				default:
					panic(name + ": something else in the world")
				}
				p.want(";")
			}
		default:
			panic(name + ": " + what)
		}
	}
}

func (p *parser) item() {
	switch what := p.next(); what {
	case "type":
		id := p.name()
		p.want("=")
		p.scope.types[id] = p.typ()
		p.want(";")
	case "use":
		from := p.w.ifaces[p.next()]
		p.want(".", "{")
		p.list("}", func() {
			id := p.next()
			if p.scope.types[id] = from.types[id]; from.types[id] == nil {
				panic("no type " + id)
			}
		})
		p.want(";")
	case "record", "variant", "enum":
		t := &typ{kind: what}
		p.scope.types[p.name()] = t
		p.want("{")
		p.list("}", func() {
			t.names = append(t.names, p.name())
			var of *typ
			switch {
			case what == "record":
				p.want(":")
				of = p.typ()
			case what == "variant" && p.try("("):
				of = p.typ()
				p.want(")")
			}
			t.types = append(t.types, of)
		})
	default:
		p.want(":", "func", "(")
		f := function{}
		p.list(")", func() {
			p.name()
			p.want(":")
			f.params = append(f.params, p.typ())
		})
		if p.try("->") {
			f.result = p.typ()
		}
		p.want(";")
		p.scope.funcs[named(what)] = f
	}
}

func (p *parser) typ() *typ {
	id := p.next()
	switch id {
	case "_":
		return nil
	case "bool", "u8", "u16", "u32", "u64", "s32", "s64", "string":
		return &typ{kind: id}
	case "list", "option", "result":
		t := &typ{kind: id}
		p.want("<")
		p.list(">", func() { t.args = append(t.args, p.typ()) })
		return t
	}
	t := p.scope.types[id]
	if t == nil {
		panic("no type " + id)
	}
	return t
}

// cases returns the payloads of a type that lowers as a variant, or nil.
func (t *typ) cases() []*typ {
	switch t.kind {
	case "variant", "enum":
		return t.types
	case "option":
		return []*typ{nil, t.args[0]}
	case "result":
		return append(slices.Clone(t.args), nil)[:2]
	}
	return nil
}

func (t *typ) align() int {
	if t == nil {
		return 1
	}
	most := 1
	switch t.kind {
	case "u16":
		return 2
	case "u32", "s32", "string", "list":
		return 4
	case "u64", "s64":
		return 8
	case "record":
		for _, f := range t.types {
			most = max(most, f.align())
		}
		return most
	}
	for _, c := range t.cases() {
		most = max(most, c.align())
	}
	return most
}

func alignTo(n, align int) int { return (n + align - 1) / align * align }

func (t *typ) size() int {
	if t == nil {
		return 0
	}
	switch t.kind {
	case "bool", "u8", "enum":
		return 1
	case "u16", "u32", "s32", "u64", "s64":
		return t.align()
	case "string", "list":
		return 8
	case "record":
		n := 0
		for _, f := range t.types {
			n = alignTo(n, f.align()) + f.size()
		}
		return alignTo(n, t.align())
	}
	most := 0
	for _, c := range t.cases() {
		most = max(most, c.size())
	}
	return alignTo(t.payload()+most, t.align())
}

// payload returns the offset of a variant's payload. No variant here has so many cases that
// the discriminant needs more than a byte.
func (t *typ) payload() int {
	most := 1
	for _, c := range t.cases() {
		most = max(most, c.align())
	}
	return most
}

// field returns the offset of a record's field.
func (t *typ) field(name string) int {
	n := 0
	for i, f := range t.types {
		n = alignTo(n, f.align())
		if t.names[i] == name {
			return n
		}
		n += f.size()
	}
	panic("no field " + name)
}

func (t *typ) flat() []api.ValueType {
	if t == nil {
		return nil
	}
	switch t.kind {
	case "u64", "s64":
		return []api.ValueType{i64}
	case "string", "list":
		return []api.ValueType{i32, i32}
	case "record":
		var out []api.ValueType
		for _, f := range t.types {
			out = append(out, f.flat()...)
		}
		return out
	}
	cases := t.cases()
	if cases == nil {
		return []api.ValueType{i32}
	}
	var joined []api.ValueType
	for _, c := range cases {
		for i, v := range c.flat() {
			switch {
			case i == len(joined):
				joined = append(joined, v)
			case joined[i] != v:
				joined[i] = i64
			}
		}
	}
	return append([]api.ValueType{i32}, joined...)
}

// String shows the structure of a type.
func (t *typ) String() string {
	if t == nil {
		return "_"
	}
	parts := t.args
	if t.types != nil {
		parts = t.types
	}
	if len(parts) == 0 {
		return t.kind
	}
	var b strings.Builder
	for i, part := range parts {
		if i > 0 {
			b.WriteByte(' ')
		}
		if t.names != nil {
			b.WriteString(t.names[i] + ":")
		}
		b.WriteString(part.String())
	}
	return t.kind + "(" + b.String() + ")"
}

const (
	maxFlatParams  = 16
	maxFlatResults = 1
)

func (f function) lower(imported bool) abi.Signature {
	var sig abi.Signature
	for _, p := range f.params {
		sig.Params = append(sig.Params, p.flat()...)
	}
	if len(sig.Params) > maxFlatParams {
		sig.Params = []api.ValueType{i32}
	}
	switch flat := f.result.flat(); {
	case len(flat) <= maxFlatResults:
		sig.Results = flat
	case imported:
		sig.Params = append(sig.Params, i32) // where the result goes
	default:
		sig.Results = []api.ValueType{i32}
	}
	return sig
}

func show(sig abi.Signature) string {
	list := func(types []api.ValueType) string {
		var out []string
		for _, t := range types {
			out = append(out, api.ValueTypeName(t))
		}
		return strings.Join(out, " ")
	}
	s := "(" + list(sig.Params) + ")"
	if len(sig.Results) > 0 {
		s += " -> " + list(sig.Results)
	}
	return s
}

// differences lists the places where the host or README.md differs from the files.
func differences(files map[string]string, readme string) (out []string) {
	w, err := parseWIT(files)
	if err != nil {
		return []string{err.Error()}
	}
	defer func() {
		if r := recover(); r != nil { // a type or a field that is gone
			out = append(out, fmt.Sprint(r))
		}
	}()
	same := func(what string, got, want any) {
		if fmt.Sprint(got) != fmt.Sprint(want) {
			out = append(out, fmt.Sprintf("%s: the host has %v, wit says %v", what, got, want))
		}
	}
	same("package", abi.ManifestABI, w.pkg)

	// Names and signatures.
	want, got, table := map[string]string{}, map[string]string{}, map[string]string{}
	lowered := func(names []string, imported bool, name func(iface, fn string) string) {
		for _, i := range names {
			for fn, f := range w.ifaces[i].funcs {
				want[name(i, fn)] = show(f.lower(imported))
			}
		}
	}
	lowered(w.imports, true, func(i, fn string) string { return i + "." + fn })
	lowered(w.exports, false, func(i, fn string) string { return i + "#" + fn })
	for _, f := range Functions {
		got[f.Interface+"."+f.Name] = show(f.Signature)
	}
	for name, sig := range abi.Exports {
		got[strings.NewReplacer(abi.Package+"/", "", "@"+abi.Version, "").Replace(name)] = show(sig)
	}
	for _, row := range regexp.MustCompile("(?m)^\\| (`[^|]*[.#][^|]*) \\| `([^|]*)` \\|$").FindAllStringSubmatch(readme, -1) {
		for name := range strings.SplitSeq(row[1], ", ") {
			table[strings.Trim(name, "`")] = row[2]
		}
	}
	same("functions", got, want)
	same("README.md", table, want)

	// Layouts.
	types := func(i, name string) *typ {
		t := w.ifaces[i].types[name]
		if t == nil {
			panic("no type " + i + "." + name)
		}
		return t
	}
	result := func(i, fn string) *typ { return w.ifaces[i].funcs[fn].result }
	of := func(t *typ) layout {
		e := t.args[1]
		return layout{uint32(t.size()), uint32(t.align()), t.payload(), t.payload() + e.payload()}
	}
	same("exec.run", execResult, of(result("exec", "run")))
	same("http.fetch", httpResult, of(result("http", "fetch")))
	for _, fn := range []string{"get", "set", "delete", "keys"} {
		same("kv."+fn, kvResult, of(result("kv", fn)))
	}
	same("secrets.placeholder", secretsResult, of(result("secrets", "placeholder")))
	value := result("config", "get")
	same("config.get", []int{int(configResult.size), int(configResult.align), configResult.payload}, []int{value.size(), value.align(), value.payload()})
	same("search.list", searchListResult, of(result("search", "list")))
	same("search.stat", searchStatResult, of(result("search", "stat")))
	same("search.begin", searchBeginResult, of(result("search", "begin")))
	same("search.collect", searchCollectResult, of(result("search", "collect")))
	found, at := types("search", "found"), searchCollectResult.payload
	for name, offset := range map[string]int{"lines": searchFoundLines, "text": searchFoundText, "failed": searchFoundFailed, "more": searchFoundMore} {
		same("search found "+name, offset, at+found.field(name))
	}
	line := types("search", "line")
	for name, offset := range map[string]int{"number": searchLineNumber, "file": searchLineFile, "size": searchLineSize, "matches": searchLineMatches, "cut": searchLineCut} {
		same("search line "+name, offset, line.field(name))
	}
	same("search line", []int{searchLineBytes, 8}, []int{line.size(), line.align()})
	listing := result("search", "list").args[0].args[0] // the option
	same("search listing", []int{searchListingBytes, searchListingNames, searchListingKinds}, []int{
		listing.size(), listing.payload() + listing.args[0].field("names"), listing.payload() + listing.args[0].field("kinds"),
	})
	info := result("search", "stat").args[0].args[0] // the option
	for name, offset := range map[string]int{"size": searchInfoSize, "modified": searchInfoModified, "changed": searchInfoChanged, "kind": searchInfoKind} {
		same("search info "+name, offset, info.payload()+info.args[0].field(name))
	}
	same("search info", []int{searchInfoBytes, 8}, []int{info.size(), info.align()})
	outcome := types("exec", "outcome")
	at = execResult.payload
	for name, offset := range map[string]int{
		"code": execCode, "signal": execSignal, "timed-out": execTimedOut,
		"stdout": execStdout, "stderr": execStderr, "truncated": execTruncated,
	} {
		same("exec outcome "+name, offset, at+outcome.field(name))
	}
	response, header := types("http", "response"), types("http", "header")
	for name, offset := range map[string]int{
		"status": httpStatus, "url": httpURL, "headers": httpHeaders, "body": httpBody, "truncated": httpTruncated,
	} {
		same("http response "+name, offset, httpResult.payload+response.field(name))
	}
	same("http header", []int{httpHeaderBytes, 0, httpHeaderValue}, []int{header.size(), header.field("name"), header.field("value")})

	call, output, content := result("tools", "call"), types("types", "output"), types("types", "content")
	same("result", []int{abi.ResultSize, abi.ResultPayload}, []int{call.size(), call.payload()})
	same("alignment of the result", 4, call.align())
	same("output", []int{abi.OutputContent, abi.OutputStructured}, []int{output.field("content"), output.field("structured")})
	same("error", abi.ErrorPayload, types("types", "error").payload())
	same("content", []int{abi.ContentSize, abi.ContentPayload}, []int{content.size(), content.payload()})
	blob, link := types("types", "blob"), types("types", "link")
	same("blob", []int{abi.BlobMime, abi.BlobData}, []int{blob.field("mime"), blob.field("data")})
	same("link", []int{abi.LinkURI, abi.LinkTitle, abi.LinkMime}, []int{link.field("uri"), link.field("title"), link.field("mime")})
	same("wasmtest content", wasmtest.ContentBytes, content.size())

	// The order of cases, which is what their numbers mean.
	order := func(what string, t *typ, names map[string]int) {
		wit := map[string]int{}
		for i, name := range t.names {
			wit[name] = i
		}
		same(what, names, wit)
	}
	denied := func(i string, number int) {
		same(i+" error denied", number, slices.Index(types(i, "error").names, "denied"))
	}
	order("error", types("types", "error"), map[string]int{
		"invalid-input": int(abi.InvalidInput), "unknown-tool": int(abi.UnknownTool), "not-found": int(abi.NotFound),
		"denied": int(abi.Denied), "io": int(abi.IO), "parse": int(abi.Parse), "unavailable": int(abi.Unavailable),
		"cancelled": int(abi.Cancelled), "failed": int(abi.Failed),
	})
	order("wasmtest error", types("types", "error"), map[string]int{
		"invalid-input": wasmtest.ErrorInvalidInput, "unknown-tool": wasmtest.ErrorUnknownTool, "not-found": wasmtest.ErrorNotFound,
		"denied": wasmtest.ErrorDenied, "io": wasmtest.ErrorIO, "parse": wasmtest.ErrorParse, "unavailable": wasmtest.ErrorUnavailable,
		"cancelled": wasmtest.ErrorCancelled, "failed": wasmtest.ErrorFailed,
	})
	order("content", content, map[string]int{
		"text": int(abi.ContentText), "json": int(abi.ContentJSON), "image": int(abi.ContentImage), "resource": int(abi.ContentResource),
	})
	order("wasmtest content", content, map[string]int{
		"text": wasmtest.ContentText, "json": wasmtest.ContentJSON, "image": wasmtest.ContentImage, "resource": wasmtest.ContentResource,
	})
	order("exec error", types("exec", "error"), map[string]int{"denied": int(execDenied), "not-found": int(execNotFound), "failed": int(execFailed)})
	order("search error", types("search", "error"), map[string]int{"denied": searchDenied, "invalid": searchInvalid})
	order("search kind", types("search", "kind"), map[string]int{
		"file": int(search.File), "directory": int(search.Directory), "link": int(search.Link), "other": int(search.Other),
	})
	order("http error", types("http", "error"), map[string]int{
		"denied": int(httpDenied), "invalid": int(httpInvalid), "dns": int(httpDNS), "connect": int(httpConnect), "tls": int(httpTLS),
		"timeout": int(httpTimeout), "too-large": int(httpTooLarge), "protocol": int(httpProtocol),
	})
	denied("kv", kvDenied)
	denied("secrets", secretsDenied)
	same("log levels", levels, types("log", "level").names)

	// What the host reads and writes field by field.
	same("call-context", "record(call-id:string cwd:string deadline-ms:option(u64) locale:option(string))", types("types", "call-context"))
	same("content", "variant(text:string json:string image:record(mime:string data:list(u8)) "+
		"resource:record(uri:string title:option(string) mime:option(string)))", content)
	same("output", "record(content:list("+content.String()+") structured:option(string))", output)
	same("config value", "option(string)", value)
	same("command", "record(argv:list(string) cwd:option(string) timeout-ms:u32 max-output:u32 merge-stderr:bool)", types("exec", "command"))
	same("http header", "record(name:string value:string)", header)
	same("http request", "record(method:string url:string headers:list("+header.String()+") body:option(list(u8)) timeout-ms:option(u32) max-bytes:option(u32))",
		types("http", "request"))
	same("http response", "record(status:u16 url:string headers:list("+header.String()+") body:list(u8) truncated:bool)", response)
	same("http error", "variant(denied:string invalid:string dns:string connect:string tls:string timeout:_ too-large:u64 protocol:string)", types("http", "error"))
	same("search error", "variant(denied:string invalid:string)", types("search", "error"))
	same("query", "record(files:string pattern:string context:u32 max-matches:u32 max-text:u32 max-chars:u32)", types("search", "query"))
	same("found", "record(lines:list(record(number:u64 file:u32 size:u32 matches:bool cut:bool)) text:string failed:u32 more:bool)", found)
	same("listing", "option(record(names:string kinds:list(enum(file:_ directory:_ link:_ other:_))))", listing)
	same("info", "option(record(size:u64 modified:s64 changed:s64 kind:enum(file:_ directory:_ link:_ other:_)))", info)
	same("outcome", "record(code:option(s32) signal:option(s32) timed-out:bool stdout:list(u8) stderr:list(u8) truncated:bool)", outcome)
	return out
}

func readWIT(t *testing.T) (files map[string]string, readme string) {
	t.Helper()
	dir := filepath.Join("..", "..", "..", "wit")
	paths, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(paths) < 10 {
		t.Fatalf("wit/ holds %v, %v", paths, err)
	}
	files = map[string]string{}
	for _, p := range paths {
		data, err := os.ReadFile(p)
		if err != nil {
			t.Fatal(err)
		}
		switch filepath.Base(p) {
		case "README.md":
			readme = string(data)
		case "embed.go":
		default:
			files[filepath.Base(p)] = string(data)
		}
	}
	return files, readme
}

func TestTheHostIsWhatWITSays(t *testing.T) {
	for _, d := range differences(readWIT(t)) {
		t.Error(d)
	}
}

// TestAChangeOfWITIsNoticed proves that the test above can fail.
func TestAChangeOfWITIsNoticed(t *testing.T) {
	for _, c := range []struct{ file, from, to string }{
		{"types.wit", "@0.1.0", "@0.1.1"},
		{"exec.wit", "run: func", "start: func"},
		{"kv.wit", "delete: func(key: string) -> result<_, error>;", ""},
		{"http.wit", "timeout-ms: option<u32>,", ""},
		{"exec.wit", "timeout-ms: u32", "timeout-ms: u64"},
		{"exec.wit", "timeout-ms: u32,\n    max-output: u32,", "max-output: u32,\n    timeout-ms: u32,"},
		{"exec.wit", "code: option<s32>,\n    signal: option<s32>,", "signal: option<s32>,\n    code: option<s32>,"},
		{"exec.wit", "stdout: list<u8>,\n    stderr: list<u8>,", "stderr: list<u8>,\n    stdout: list<u8>,"},
		{"exec.wit", "truncated: bool", "truncated: u32"},
		{"exec.wit", "denied(string), not-found(string)", "not-found(string), denied(string)"},
		{"exec.wit", "failed(string)", "failed(u64)"},
		{"http.wit", "too-large(u64)", "too-large(u32)"},
		{"http.wit", "connect(string),\n    tls(string)", "tls(string),\n    connect(string)"},
		{"http.wit", "name: string, value: string", "value: string, name: string"},
		{"http.wit", "status: u16", "status: u32"},
		{"http.wit", "truncated: bool", "truncated: u32"},
		{"http.wit", "method: string,\n    url: string", "url: string,\n    method: string"},
		{"http.wit", "denied(string),\n    invalid(string)", "invalid(string),\n    denied(string)"},
		{"kv.wit", "denied(string), quota(u64)", "quota(u64), denied(string)"},
		{"kv.wit", "quota(u64)", "quota(u32)"},
		{"secrets.wit", "denied(string), missing", "missing, denied(string)"},
		{"config.wit", "option<string>", "string"},
		{"config.wit", "option<string>", "option<list<u8>>"},
		{"log.wit", "trace, debug", "debug, trace"},
		{"progress.wit", "done: u64", "done: u32"},
		{"types.wit", "text(string),\n    json(json)", "json(json),\n    text(string)"},
		{"types.wit", "image(blob)", "image(link)"},
		{"types.wit", "title: option<string>, mime: option<string>", "mime: option<string>, title: option<string>"},
		{"types.wit", "mime: string, data: list<u8>", "data: list<u8>, mime: string"},
		{"types.wit", "content: list<content>, structured: option<json>", "structured: option<json>, content: list<content>"},
		{"types.wit", "cancelled,\n    failed(string)", "failed(string),\n    cancelled"},
		{"types.wit", "failed(string),", "failed(string), gone(string),"},
		{"types.wit", "call-id: string,\n    cwd: string,", "cwd: string,\n    call-id: string,"},
		{"types.wit", "locale: option<string>,", ""},
		{"tools.wit", "name: string, args: json", "name: string"},
		{"tools.wit", "describe: func() -> json", "describe: func() -> u64"},
		{"search.wit", "%list: func", "list: func"}, // which other parsers do not read
		{"search.wit", "file, directory, %link", "directory, file, %link"},
		{"search.wit", "names: string, kinds: list<kind>", "kinds: list<kind>, names: string"},
		{"search.wit", "option<listing>", "listing"},
		{"search.wit", "modified: s64, changed: s64", "changed: s64, modified: s64"},
		{"search.wit", "number: u64", "number: u32"},
		{"search.wit", "matches: bool", "matches: u32"},
		{"search.wit", "max-text: u32", "max-lines: u32"},
		{"search.wit", "context: u32", "context: u64"},
		{"search.wit", "text: string,", ""},
		{"search.wit", "invalid(string)", "invalid"},
		{"world.wit", "import search;", ""},
		{"world.wit", "import exec;", ""},
		{"world.wit", "import config;", ""},
		{"world.wit", "export tools;", ""},
		{"README.md", "`() -> i32`", "`() -> i64`"},
		{"README.md", "`kv.get`, ", ""},
	} {
		files, readme := readWIT(t)
		text := files[c.file]
		if c.file == "README.md" {
			text = readme
		}
		changed := strings.Replace(text, c.from, c.to, 1)
		if changed == text {
			t.Errorf("%s does not hold %q", c.file, c.from)
			continue
		}
		if c.file == "README.md" {
			readme = changed
		} else {
			files[c.file] = changed
		}
		if len(differences(files, readme)) == 0 {
			t.Errorf("%s with %q in place of %q goes unnoticed", c.file, c.to, c.from)
		}
	}
}
