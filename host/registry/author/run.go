package author

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/stockade-dev/stockade/host/diff"
	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/policy/network"
	"github.com/stockade-dev/stockade/host/secret"
	"github.com/stockade-dev/stockade/host/services"
	"github.com/stockade-dev/stockade/host/tool"
)

// Environment describes how the calls in a file of tests are made. The caller of [Script.Run]
// makes the calls through the policy and the sandbox, like those of an agent.
type Environment struct {
	Dir      string // the directory for relative paths. Run removes it before it returns.
	Mounts   []policy.Mount
	Network  []network.Rule
	Services services.Set // in the place of the network and the person's secrets
	// Allows reports whether the file grants all that a tool asks for. Its answer replaces the
	// answer of a person whom the policy asks. Commands never run.
	Allows func(tool.Capabilities) bool
}

// Session makes calls. A door.Session is a Session.
type Session interface {
	Call(ctx context.Context, call tool.Call) (tool.Result, error)
}

// Outcome is the result of comparing one call of a file with its expectation.
type Outcome struct {
	Line     int
	Tool     string
	Args     string // arguments of the call, on one line
	Usage    tool.Usage
	Problems []string // each of one or more lines; none: the call went as expected
}

// Run makes the calls of a file in a new directory and compares the results with the
// expectations. It reports the outcome of each call after the call; an outcome without a tool
// is about the whole file. An error means that Run could not make the calls.
func (s *Script) Run(ctx context.Context, open func(Environment) (Session, error), report func(Outcome)) (err error) {
	s.replaces = nil
	for _, a := range s.answers {
		a.used = false
	}
	dir, err := os.MkdirTemp("", "stockade-test-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return err
	}
	for _, f := range s.files {
		if err := create(dir, f.rest, []byte(f.text())); err != nil {
			return err
		}
	}
	service := &replay{answers: s.answers}
	w := Environment{Dir: dir, Network: s.hosts, Services: services.Set{HTTP: service, Secrets: scriptSecrets{s}}, Allows: s.allows}
	if s.mayRead {
		w.Mounts = []policy.Mount{{Host: dir, Write: s.mayWrite, Origin: "allow files in " + s.Name}}
	}
	caller, err := open(w)
	if err != nil {
		return err
	}
	for i, c := range s.calls {
		args := strings.ReplaceAll(string(c.args), "$DIR", dir)
		result, err := caller.Call(ctx, tool.Call{ID: fmt.Sprintf("call_%d", i+1), Tool: c.tool, Args: json.RawMessage(args), Caller: tool.CallerAgent, Cwd: dir})
		if err != nil {
			return err
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		var line bytes.Buffer
		if err := json.Compact(&line, c.args); err != nil {
			return err // never: the arguments were checked to be JSON
		}
		o := Outcome{Line: c.line, Tool: c.tool, Args: line.String(), Usage: result.Usage, Problems: service.takeProblems()}
		known := len(s.replaces)
		unrecorded := len(o.Problems) > 0
		o.Problems = append(o.Problems, s.compare(ctx, c, result, dir)...)
		for _, sec := range c.fileChecks {
			o.Problems = append(o.Problems, s.compareFile(ctx, sec, dir)...)
		}
		if unrecorded { // a result without a recorded answer is no expectation to save
			s.replaces = s.replaces[:known]
		}
		report(o)
	}
	for _, a := range s.answers {
		if !a.used {
			report(Outcome{Line: a.line, Problems: []string{fmt.Sprintf("nobody has asked for %s %s", a.method, a.url)}})
		}
	}
	return nil
}

// allows reports whether the file grants all that a tool asks for.
func (s *Script) allows(c tool.Capabilities) bool {
	switch {
	case c.Exec != "",
		c.Files == tool.FilesRead && !s.mayRead, c.Files == tool.FilesWrite && !s.mayWrite,
		c.Network != tool.NetworkNone && len(s.hosts) == 0:
		return false
	}
	return !slices.ContainsFunc(c.Secrets, func(asked tool.Secret) bool {
		return !slices.ContainsFunc(s.secrets, func(line secretLine) bool { return line.name == asked.Name })
	})
}

type scriptSecrets struct{ s *Script }

// Placeholders implements [services.Secrets]. If the tool names no hosts for a secret,
// the secret may go to the hosts of the file, as if the person had named these.
func (k scriptSecrets) Placeholders(granted []tool.Secret) services.Placeholders {
	return secret.NewTable(granted, func(_ context.Context, name string) (secret.Record, error) {
		for _, line := range k.s.secrets {
			if line.name != name {
				continue
			}
			r := secret.Record{Info: secret.Info{Name: name}, Value: secret.NewValue(line.value)}
			if slices.ContainsFunc(granted, func(g tool.Secret) bool { return g.Name == name && len(g.Hosts) == 0 }) {
				for _, rule := range k.s.hosts {
					if host, err := tool.NormalHost(rule.String()); err == nil {
						r.Hosts = append(r.Hosts, host)
					}
				}
			}
			return r, r.Check()
		}
		return secret.Record{}, secret.ErrNotFound
	})
}

// compare describes the differences between a result and its expectation. It also records the
// lines that would make the expectation right, for [Script.Save].
func (s *Script) compare(ctx context.Context, c *call, r tool.Result, dir string) []string {
	got, text := asSection(r, dir)
	if c.expect == nil {
		s.replace(nil, c.end, got)
		return []string{"no result is expected of it; --update writes down what it answers:\n" + strings.Join(got, "\n")}
	}
	want := strings.Join(c.expect.body, "\n")
	switch {
	case c.expect.keyword == "result" && r.Err == nil && same(want, text):
		return nil
	case c.expect.keyword == "result" && r.Err == nil:
		s.replace(c.expect, 0, got)
		return []string{"the result is another:\n" + difference("result", pretty(want), text)}
	case c.expect.keyword == "error" && r.Err != nil && kindIs(r.Err, c.expect.rest):
		missing := slices.DeleteFunc(slices.Clone(c.expect.body), func(line string) bool { return strings.Contains(text, strings.TrimSpace(line)) })
		if len(missing) == 0 {
			return nil
		}
		s.replace(c.expect, 0, append([]string{"error " + c.expect.rest}, indentLines(text)...))
		return []string{fmt.Sprintf("the message does not hold %q; it is:\n%s", missing[0], text)}
	}
	s.replace(c.expect, 0, got)
	want = "result"
	if c.expect.keyword == "error" {
		want = "error " + c.expect.rest
	}
	return []string{fmt.Sprintf("the call should end with %s, and ends with\n%s", want, strings.Join(got, "\n"))}
}

func kindIs(e *tool.Error, kind string) bool { return kind == string(e.Code) || kind == string(e.Type) }

// asSection returns a result as lines for a file of tests, and as text for comparing.
func asSection(r tool.Result, dir string) (lines []string, text string) {
	if r.Err != nil {
		text = strings.TrimSpace(strings.ReplaceAll(r.Err.Message, dir, "$DIR"))
		kind := string(r.Err.Code)
		if r.Err.Code == tool.CodeFailed && r.Err.Type != "" { // the type is more exact
			kind = string(r.Err.Type)
		}
		return append([]string{"error " + kind}, indentLines(text)...), text
	}
	var fields map[string]json.RawMessage
	if json.Unmarshal(r.Output, &fields) != nil || len(fields) != 1 || json.Unmarshal(fields["output"], &text) != nil {
		text = pretty(string(r.Output))
	}
	text = strings.TrimRight(strings.ReplaceAll(text, dir, "$DIR"), "\n")
	if text != "" && len(text) < 100 && !strings.Contains(text, "\n") && strings.TrimSpace(text) == text {
		return []string{"result " + text}, text
	}
	return append([]string{"result"}, indentLines(text)...), text
}

// pretty indents a JSON object, and returns other text unchanged.
func pretty(text string) string {
	var out bytes.Buffer
	if !strings.HasPrefix(strings.TrimSpace(text), "{") || json.Indent(&out, []byte(text), "", "  ") != nil {
		return text
	}
	return out.String()
}

// same reports whether two texts are equal. JSON objects are compared by meaning.
func same(want, got string) bool {
	want, got = strings.TrimRight(want, "\n"), strings.TrimRight(got, "\n")
	if want == got {
		return true
	}
	a, err := decodeObject(want)
	if err != nil {
		return false
	}
	b, err := decodeObject(got)
	return err == nil && reflect.DeepEqual(a, b)
}

func decodeObject(text string) (out map[string]any, err error) {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	if err = d.Decode(&out); err == nil && d.More() {
		err = errors.New("there is more behind it")
	}
	return out, err
}

// compareFile describes the differences of a file after a call from the expected file.
func (s *Script) compareFile(ctx context.Context, sec section, dir string) []string {
	root, err := os.OpenRoot(dir) // a tool may have made links
	if err != nil {
		return []string{err.Error()}
	}
	defer root.Close()
	got, err := readAll(root, sec.rest)
	missing := errors.Is(err, fs.ErrNotExist)
	switch {
	case err != nil && !missing:
		return []string{fmt.Sprintf("the file %s cannot be read: %v", sec.rest, err)}
	case sec.keyword == "gone" && !missing:
		s.replace(&sec, 0, append([]string{"has " + sec.rest}, indentLines(got)...))
		return []string{fmt.Sprintf("the file %s is there", sec.rest)}
	case sec.keyword == "has" && missing:
		s.replace(&sec, 0, []string{"gone " + sec.rest})
		return []string{fmt.Sprintf("there is no file %s", sec.rest)}
	case sec.keyword == "has" && strings.TrimRight(got, "\n") != strings.TrimRight(sec.text(), "\n"):
		s.replace(&sec, 0, append([]string{"has " + sec.rest}, indentLines(got)...))
		return []string{"the file holds something else:\n" + difference(sec.rest, sec.text(), got)}
	}
	return nil
}

func readAll(root *os.Root, name string) (string, error) {
	st, err := root.Stat(filepath.FromSlash(name))
	if err != nil {
		return "", err
	}
	if !st.Mode().IsRegular() || st.Size() > maxScriptBytes {
		return "", fmt.Errorf("it is no file of at most %d bytes", maxScriptBytes)
	}
	content, err := root.ReadFile(filepath.FromSlash(name))
	return string(content), err
}

// difference returns a unified diff from the expected text to the actual text.
func difference(name, want, got string) string {
	change := tool.Change{Path: "/" + name, Kind: tool.Modified, Before: version(want), After: version(got)}
	text, _, _ := diff.Unified(change, "/", func([]byte) bool { return false })
	return strings.TrimRight(text, "\n")
}

func version(text string) *tool.Version {
	if text = strings.TrimRight(text, "\n"); text != "" {
		text += "\n"
	}
	return &tool.Version{Size: int64(len(text)), Mode: 0o644, Open: func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(text)), nil }}
}
