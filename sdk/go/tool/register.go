package tool

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
)

// abiName is the WIT package that this SDK implements; see wit/ in the repository.
const abiName = "stockade:tool@0.1.0"

// validName reports whether a name has 1 to 64 letters, digits, '_' or '-'. It does without
// package regexp, which every module would contain.
func validName(s string) bool {
	const allowed = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-"
	return s != "" && len(s) <= 64 && strings.Trim(s, allowed) == ""
}

// std holds the tools of this module, for its exports.
var std = new(registry)

// Module names the module: 1 to 64 letters, digits, '_' or '-', and a version such as "0.1.0".
// It is called once, from an init function. It panics if the name is bad or on a second call.
func Module(name, version string) { std.setModule(name, version) }

// Config declares a name whose value the module reads with package config, and the default value. A
// name is 1 to 64 letters, digits, '_' or '-'; a value has at most 8 KiB, and a module at most 64
// names. It is called from an init function, and panics if the name is bad or declared already.
//
// The host sets values of built-in modules only.
func Config(name, value string) { std.setConfig(name, value) }

// Register offers fn as a tool. It is called from an init function.
//
// The name is 1 to 64 letters, digits, '_' or '-', unique in the module. The
// description tells the model when and how to use the tool.
//
// In is a struct, whose exported fields are the arguments. Tags describe them:
//
//	json:"name"            the argument's name; ",omitempty" or ",omitzero" makes it optional, as does a pointer type
//	desc:"Which file."     what the model reads about it
//	enum:"name,size"       the values that a string may have
//	min:"1" max:"1000"     the bounds of a number, inclusive
//	default:"name"         the value of an optional argument that is absent
//
// Fields may be strings, bools, numbers, json.RawMessage or any (any JSON value), and slices,
// arrays, maps with string keys, pointers and structs of them; []byte is base64 text. A type
// with UnmarshalText is a string. The schema allows no other arguments. The host checks
// arguments against the schema before the call; fn still sees what Go's types allow, such as
// an empty string.
//
// Register panics when the name, In or an option is wrong.
func Register[In, Out any](name, description string, fn func(context.Context, In) (Out, error), opts ...Option) {
	e, err := newEntry(name, description, fn, opts...)
	if err == nil {
		err = std.add(e)
	}
	if err != nil {
		panic(fmt.Sprintf("tool.Register(%q): %v", name, err))
	}
}

// Option asks for a capability of a tool, or documents the tool. A person or a policy decides
// whether the tool gets the capability. A tool without options sees no files.
type Option func(*entry)

// ReadsFiles asks for the granted directories, read-only.
func ReadsFiles() Option {
	return func(e *entry) {
		if e.Capabilities.Files == "" {
			e.Capabilities.Files = "read"
		}
	}
}

// WritesFiles asks for the granted directories, to read and to write.
func WritesFiles() Option {
	return func(e *entry) { e.Capabilities.Files = "write" }
}

// RunsCommand asks for one process through package exec. The argument commandArg, a string,
// holds the bash command that is shown to a person and run; the host runs exactly this
// command. The argument timeoutArg holds its time limit in whole seconds; empty: there is no
// such argument.
func RunsCommand(commandArg, timeoutArg string) Option {
	return func(e *entry) {
		e.Capabilities.Exec = commandArg
		e.Capabilities.ExecTimeout = timeoutArg
	}
}

// CommandNetwork names a boolean argument: if it is true in a call, the command needs the
// network. Then a person is asked, and the command reaches the hosts that are granted;
// otherwise it reaches none. It is used together with [RunsCommand].
func CommandNetwork(arg string) Option {
	return func(e *entry) { e.Capabilities.ExecNetwork = arg }
}

// UsesNetwork asks for requests through package http. hosts are the hosts that the tool wants,
// at most 32: NAME, "*.NAME" for all subdomains, or NAME:PORT; the default port is 443. A
// person sees them and can grant them all with one key. Without hosts the person names them.
// The tool reaches only hosts that are granted.
func UsesNetwork(hosts ...string) Option {
	return func(e *entry) {
		e.Capabilities.Network = "http"
		e.Capabilities.Hosts = append(e.Capabilities.Hosts, hosts...)
	}
}

// UsesHostOf asks for requests through package http to one host: that of the URL which the
// module is configured with under the name config, see [Config].
func UsesHostOf(config string) Option {
	return func(e *entry) {
		e.Capabilities.Network = "http"
		e.Capabilities.HostsOf = append(e.Capabilities.HostsOf, config)
	}
}

// UsesSecret asks for a secret. Its name is 1 to 64 letters, digits, '_' or '-', the first a
// letter. The tool gets a placeholder from package secrets. The host replaces the placeholder
// by the value, in a request of package http to one of the hosts and in this one header. A
// host is NAME or NAME:PORT, such as "api.github.com"; the default port is 443. Without hosts,
// or with an empty header, the person decides where the secret goes. A tool asks for at most
// 16 secrets.
func UsesSecret(name, header string, hosts ...string) Option {
	return func(e *entry) {
		e.Capabilities.Secrets = append(e.Capabilities.Secrets, secret{Name: name, Hosts: hosts, Header: header})
	}
}

// UsesSecretWhen is like [UsesSecret], but asks for the secret only if the module is
// configured with this value under the name config, see [Config].
func UsesSecretWhen(config, value, name, header string, hosts ...string) Option {
	return func(e *entry) {
		e.Capabilities.Secrets = append(e.Capabilities.Secrets, secret{Name: name, Hosts: hosts, Header: header, When: config + "=" + value})
	}
}

// KeepsData asks for a store. Data that a successful call sets with package kv is there for
// later calls of the module's tools in the same session.
func KeepsData() Option { return func(e *entry) { e.Capabilities.Store = true } }

// ReportsContent declares that the field "sha256" of the result holds the SHA-256, in hex, of
// the file that the argument pathArg names, with its content after the call. The host records
// that the conversation has seen this content.
func ReportsContent(pathArg string) Option {
	return func(e *entry) { e.Content = &content{Path: pathArg} }
}

// NeedsContent is for a tool that changes a part of the file that the argument pathArg names,
// and must not change an unseen version. The host refuses a model's call for a file that the
// conversation has not seen. Otherwise it fills the argument hashArg with the SHA-256, in hex,
// of the content that the conversation saw most recently; the tool compares. The result has
// the new hash as with [ReportsContent].
func NeedsContent(pathArg, hashArg string) Option {
	return func(e *entry) { e.Content = &content{Path: pathArg, Hash: hashArg} }
}

// NeedsLines is like [NeedsContent], for a tool whose arguments line_start and, if it has it,
// line_end are line numbers. They refer to the content that the model had seen before the
// reply that makes the call. If other calls of that reply have moved the lines, the host
// adjusts the numbers. It needs the field "replaced" in the results of those calls: [FIRST,
// OLD, NEW], for OLD lines from FIRST on that are NEW lines now. Without that field it refuses
// the call.
func NeedsLines(pathArg, hashArg string) Option {
	return func(e *entry) { e.Content = &content{Path: pathArg, Hash: hashArg, Lines: true} }
}

// NeedsPatched is like [NeedsContent], for a tool that applies the patch in the argument
// patchArg, in the form of package patch. The argument hashArg is an object, which the host
// fills with the SHA-256 of each file that the patch updates or deletes, by its path in the
// patch. The field "sha256" of the result is such an object, too, for all files that exist
// after the call. Rules about the argument "path" apply to the paths of the patch.
func NeedsPatched(patchArg, hashArg string) Option {
	return func(e *entry) { e.Content = &content{Patch: patchArg, Hash: hashArg} }
}

// Unseen is the hash of a file that the conversation has not seen, see [FindsText].
const Unseen = "unseen"

// FindsText stands behind [NeedsContent] or [NeedsPatched], for a tool that finds what it changes
// by its text: text that is in the file exactly and once shows that the model knows what it
// changes. For an unseen file that may be read without a question, the host then does not refuse
// the call, but puts [Unseen] in the place of the hash. The tool must fail if it would change
// anything else in that file, and must report no hash of that file.
func FindsText() Option { return func(e *entry) { e.Content.Exact = true } }

// PerMinute limits the calls of the tool that a session may begin in a minute, 1 to 60. The
// host also spaces them one second apart: it lets one call wait, and refuses calls above the
// limit with RATE_LIMITED. It is for tools whose service does not bear more.
func PerMinute(calls int) Option { return func(e *entry) { e.PerMinute = calls } }

// Errors documents the errors of a tool, for its callers and for authors of scripts: each is
// "CODE: when it occurs, and what to do then". They come in addition to the errors that any
// call can end with. No model reads the texts of Errors, [Limits] and [Example]. A tool has at
// most 32 errors, 16 limits and 8 examples, each text with 1 to 400 bytes.
func Errors(lines ...string) Option {
	return func(e *entry) { e.doc().Errors = append(e.doc().Errors, lines...) }
}

// Limits documents the limits of a tool, such as "files of up to 8 MiB". See [Errors].
func Limits(lines ...string) Option {
	return func(e *entry) { e.doc().Limits = append(e.doc().Limits, lines...) }
}

// Example documents one call: its arguments, a JSON object of at most 2 KiB that the tool must
// accept, and its effect. See [Errors].
func Example(args, text string) Option {
	return func(e *entry) {
		e.doc().Examples = append(e.doc().Examples, example{Args: json.RawMessage(args), Text: text})
	}
}

// registry holds the tools of a module. Init functions fill it, one after another; afterwards
// it never changes.
type registry struct {
	name, version string
	config        map[string]string
	entries       []*entry
	warmers       []func()
}

type capabilities struct {
	Files       string `json:"files,omitempty"`
	Exec        string `json:"exec,omitempty"`
	ExecTimeout string `json:"exec_timeout,omitempty"`
	ExecNetwork string `json:"exec_network,omitempty"`
	Network     string `json:"network,omitempty"`

	Hosts   []string `json:"hosts,omitempty"`
	HostsOf []string `json:"hosts_of,omitempty"`
	Store   bool     `json:"store,omitempty"`
	Secrets []secret `json:"secrets,omitempty"`
}

type secret struct {
	Name   string   `json:"name"`
	Hosts  []string `json:"hosts,omitempty"`
	Header string   `json:"header,omitempty"`
	When   string   `json:"when,omitempty"`
}

const (
	maxHosts   = 32
	maxSecrets = 16
)

// checkHosts returns an error for a bad list of hosts. Like checkSecrets, it leaves the rules
// for names of hosts to the host program.
func (c capabilities) checkHosts() error {
	if len(c.Hosts) > maxHosts {
		return fmt.Errorf("UsesNetwork names %d hosts; a tool may name %d", len(c.Hosts), maxHosts)
	}
	for _, h := range c.Hosts {
		if name := strings.TrimPrefix(h, "*."); !plainHost(name) {
			return fmt.Errorf("UsesNetwork: %q is not a host, NAME, *.NAME or NAME:PORT", h)
		}
	}
	return nil
}

// plainHost reports whether a name has no character of a URL or a pattern.
func plainHost(name string) bool { return name != "" && !strings.ContainsAny(name, " /*@") }

// checkSecrets returns an error for a bad list of secrets. The rules for names of hosts and
// headers are left to the host program.
func (c capabilities) checkSecrets() error {
	if len(c.Secrets) > maxSecrets {
		return fmt.Errorf("UsesSecret asks for %d secrets; a tool may have %d", len(c.Secrets), maxSecrets)
	}
	seen := map[string]bool{}
	for _, s := range c.Secrets {
		if !validName(s.Name) || strings.ContainsAny(s.Name[:1], "0123456789_-") {
			return fmt.Errorf("UsesSecret: the name %q is not 1 to 64 letters, digits, '_' or '-', the first a letter", s.Name)
		}
		if lower := strings.ToLower(s.Name); seen[lower] {
			return fmt.Errorf("UsesSecret asks for %q twice", s.Name)
		} else {
			seen[lower] = true
		}
		for _, h := range s.Hosts {
			if !plainHost(h) {
				return fmt.Errorf("UsesSecret: %q is not a host, NAME or NAME:PORT", h)
			}
		}
	}
	return nil
}

type content struct {
	Path  string `json:"path,omitempty"`
	Patch string `json:"patch,omitempty"`
	Hash  string `json:"hash,omitempty"`
	Lines bool   `json:"lines,omitempty"`
	Exact bool   `json:"exact,omitempty"`
}

// entry is one tool. Its JSON is the tool's part of the manifest.
type entry struct {
	Name         string          `json:"name"`
	Description  string          `json:"description"`
	Parameters   json.RawMessage `json:"parameters"`
	Capabilities capabilities    `json:"capabilities"`
	Content      *content        `json:"content,omitempty"`
	PerMinute    int             `json:"per_minute,omitempty"`
	Doc          *doc            `json:"doc,omitempty"`

	run  func(ctx context.Context, args []byte) (any, error)
	warm func() []byte // see warm.go
}

type doc struct {
	Errors   []string  `json:"errors,omitempty"`
	Limits   []string  `json:"limits,omitempty"`
	Examples []example `json:"examples,omitempty"`
}

type example struct {
	Args json.RawMessage `json:"args"`
	Text string          `json:"text"`
}

func (e *entry) doc() *doc {
	if e.Doc == nil {
		e.Doc = new(doc)
	}
	return e.Doc
}

// check returns an error for documentation that the host would refuse. fits returns an error
// if a tool does not accept the arguments of an example.
func (d *doc) check(fits func(args []byte) error) error {
	const maxErrors, maxLimits, maxExamples, maxText, maxArgs = 32, 16, 8, 400, 2 << 10
	if len(d.Errors) > maxErrors || len(d.Limits) > maxLimits || len(d.Examples) > maxExamples {
		return fmt.Errorf("%d errors, %d limits and %d examples; a tool may have %d, %d and %d",
			len(d.Errors), len(d.Limits), len(d.Examples), maxErrors, maxLimits, maxExamples)
	}
	texts := append(slices.Clone(d.Errors), d.Limits...)
	for _, line := range d.Errors {
		if code, text, _ := strings.Cut(line, ": "); !validCode(code) || text == "" {
			return fmt.Errorf("Errors: %q is not CODE: TEXT, with a code of 3 to 40 capitals, digits or '_'", line)
		}
	}
	for _, ex := range d.Examples {
		if err := fits(ex.Args); err != nil || len(ex.Args) > maxArgs || !bytes.HasPrefix(ex.Args, []byte("{")) {
			return errors.Join(fmt.Errorf("Example: %q are not the arguments of a call, an object of at most %d bytes", ex.Args, maxArgs), err)
		}
		texts = append(texts, ex.Text)
	}
	for _, text := range texts {
		if text == "" || len(text) > maxText {
			return fmt.Errorf("Errors, Limits or Example: %q has not 1 to %d bytes", text, maxText)
		}
	}
	return nil
}

func newEntry[In, Out any](name, description string, fn func(context.Context, In) (Out, error), opts ...Option) (*entry, error) {
	if !validName(name) {
		return nil, errors.New("the name is not 1 to 64 letters, digits, '_' or '-'")
	}
	if strings.TrimSpace(description) == "" {
		return nil, errors.New("the description is empty")
	}
	if fn == nil {
		return nil, errors.New("the function is nil")
	}
	in := reflect.TypeFor[In]()
	args, err := argumentsOf(in)
	if err != nil {
		return nil, err
	}
	e := &entry{Name: name, Description: description, Parameters: args.schema}
	for _, opt := range opts {
		opt(e)
	}
	for _, arg := range []string{e.Capabilities.Exec, e.Capabilities.ExecTimeout, e.Capabilities.ExecNetwork} {
		if arg != "" && !args.has(arg) {
			return nil, fmt.Errorf("RunsCommand or CommandNetwork names the argument %q, which %v does not have", arg, in)
		}
	}
	if e.Capabilities.ExecTimeout+e.Capabilities.ExecNetwork != "" && e.Capabilities.Exec == "" {
		return nil, errors.New("RunsCommand without the argument that holds the command, or CommandNetwork without RunsCommand")
	}
	if err := errors.Join(e.Capabilities.checkHosts(), e.Capabilities.checkSecrets()); err != nil {
		return nil, err
	}
	if c := e.Content; c != nil && (!args.has(c.Path+c.Patch) || c.Hash != "" && !args.has(c.Hash)) {
		return nil, fmt.Errorf("the content option names the arguments %q and %q, which %v does not have both", c.Path+c.Patch, c.Hash, in)
	}
	decode := func(raw []byte) (v In, err error) {
		if err := json.Unmarshal(args.defaults, &v); err != nil {
			return v, Failed("defaults: %w", err)
		}
		if err := decodeArgs(raw, &v); err != nil {
			return v, InvalidInput("arguments of %s: %w", name, err)
		}
		return v, nil
	}
	if e.Doc != nil {
		if err := e.Doc.check(func(args []byte) error { _, err := decode(args); return err }); err != nil {
			return nil, err
		}
	}
	e.run = func(ctx context.Context, raw []byte) (any, error) {
		v, err := decode(raw)
		if err != nil {
			return nil, err
		}
		return fn(ctx, v)
	}
	e.warm = warmer[In, Out](decode)
	return e, nil
}

// decodeArgs decodes arguments. An unknown argument is an error, because the model can correct
// the mistake only if it is told.
func decodeArgs(raw []byte, v any) error {
	if len(bytes.TrimSpace(raw)) == 0 {
		raw = []byte("{}")
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields()
	if err := dec.Decode(v); err != nil {
		// The schema accepts whole numbers that no Go integer can hold.
		if bad, ok := errors.AsType[*json.UnmarshalTypeError](err); ok && strings.HasPrefix(bad.Value, "number ") {
			return fmt.Errorf("argument %q is the %.60s; write a smaller one, in digits alone", bad.Field, bad.Value)
		}
		return err
	}
	if _, err := dec.Token(); err != io.EOF {
		return errors.New("more than one JSON value")
	}
	return nil
}

func (r *registry) setModule(name, version string) {
	if r.name != "" {
		panic(fmt.Sprintf("tool.Module(%q): the module is already named %q", name, r.name))
	}
	if !validName(name) {
		panic(fmt.Sprintf("tool.Module(%q): the name is not 1 to 64 letters, digits, '_' or '-'", name))
	}
	r.name, r.version = name, version
}

func (r *registry) setConfig(name, value string) {
	if !validName(name) {
		panic(fmt.Sprintf("tool.Config(%q): the name is not 1 to 64 letters, digits, '_' or '-'", name))
	}
	if _, ok := r.config[name]; ok {
		panic(fmt.Sprintf("tool.Config(%q): it is declared already", name))
	}
	if r.config == nil {
		r.config = map[string]string{}
	}
	r.config[name] = value
}

func (r *registry) add(e *entry) error {
	if r.find(e.Name) != nil {
		return errors.New("a tool of this name is already registered")
	}
	r.entries = append(r.entries, e)
	return nil
}

func (r *registry) find(name string) *entry {
	for _, e := range r.entries {
		if e.Name == name {
			return e
		}
	}
	return nil
}

// Manifest returns the manifest that the host reads, a JSON object. It is for the module's
// tests.
func Manifest() []byte { return std.manifest() }

// manifest returns the manifest, for describe. It panics if Module was never called: only now
// is it certain that all init functions have run.
func (r *registry) manifest() []byte {
	if r.name == "" {
		panic("tool.Module was never called: the module has no name")
	}
	text, err := encode(struct {
		ABI     string            `json:"abi"`
		Name    string            `json:"name"`
		Version string            `json:"version,omitempty"`
		Config  map[string]string `json:"config,omitempty"`
		Tools   []*entry          `json:"tools"`
	}{abiName, r.name, r.version, r.config, r.entries})
	if err != nil {
		panic(err) // strings and checked JSON only
	}
	return text
}

// encode is json.Marshal without HTML escapes, which a model would see.
func encode(v any) ([]byte, error) {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), nil
}
