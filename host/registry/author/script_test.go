package author

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stockade-dev/stockade/host/services"
	"github.com/stockade-dev/stockade/host/tool"
)

func TestWhatIsWrongInAFileOfTests(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		line int
		says string
	}{
		"an empty file":                 {"", 1, "no call"},
		"only comments":                 {"# a\n\n# b\n", 3, "no call"},
		"a word that there is not":      {"call a\nresult x\nfoo bar\n", 3, `no word "foo"`},
		"bytes that are no text":        {"call a\xff\n", 1, "UTF-8"},
		"too much":                      {strings.Repeat("#\n", maxScriptBytes), 1, "at most"},
		"too many calls":                {strings.Repeat("call a\n", 1001), 1001, "more than 1000"},
		"a line that belongs to none":   {"    text\ncall a\n", 1, "belongs to nothing"},
		"a line below a comment":        {"call a\n# b\n    text\n", 3, "belongs to nothing"},
		"a line with three spaces":      {"call a\nresult\n   x\n", 3, "four spaces"},
		"a call of nothing":             {"call\n", 1, "the name of a tool"},
		"arguments that are no JSON":    {"call a {\n", 1, "JSON object"},
		"arguments that are a list":     {"call a [1]\n", 1, "JSON object"},
		"a result without a call":       {"result x\ncall a\n", 1, "before the first call"},
		"two results":                   {"call a\nresult x\nerror y\n", 3, "line 1 has a result already"},
		"a result twice in one":         {"call a\nresult x\n    y\n", 2, "not both"},
		"a result behind a file":        {"call a\nhas f\nresult x\n", 3, "right behind"},
		"an error without a kind":       {"call a\nerror\n", 2, "kind"},
		"an error with its text behind": {"call a\nerror io_error no file\n", 2, "kind"},
		"a file behind a call":          {"call a\nfile b\n", 2, "stands behind a call"},
		"a grant behind a call":         {"call a\nallow files\n", 2, "stands behind a call"},
		"a grant that there is not":     {"allow exec\ncall a\n", 1, "allow files rw"},
		"a host that is none":           {"allow host a b\ncall a\n", 1, "rule"},
		"a file outside":                {"file ../a\ncall a\n", 1, "not the name of a file"},
		"a file at the root":            {"file /etc/passwd\ncall a\n", 1, "not the name of a file"},
		"a file of a long way round":    {"file a/./b\ncall a\n", 1, "not the name of a file"},
		"a file without a name":         {"file\ncall a\n", 1, "not the name of a file"},
		"a file twice":                  {"file a\nfile a\ncall a\n", 2, "already"},
		"a file outside, looked at":     {"call a\nhas ../a\n", 2, "not the name of a file"},
		"a secret without a value":      {"secret a\ncall a\n", 1, "NAME VALUE"},
		"an answer without a URL":       {"http GET\n    200\ncall a\n", 1, "METHOD URL"},
		"an answer of another kind":     {"http GET ftp://a.example\n    200\ncall a\n", 1, "METHOD URL"},
		"an answer without a status":    {"http GET https://a.example\ncall a\n", 1, "status"},
		"a status that is none":         {"http GET https://a.example\n    ok\ncall a\n", 1, "status"},
		"a status that is no answer":    {"http GET https://a.example\n    100\ncall a\n", 1, "status"},
		"a header that is none":         {"http GET https://a.example\n    200\n    sunny\ncall a\n", 1, "behind an empty line"},
		"a wanted header that is none":  {"http GET https://a.example\n    > sunny\n    200\ncall a\n", 1, "is no header"},
	} {
		_, err := ParseScript("x.txt", []byte(c.text))
		e, ok := errors.AsType[*SyntaxError](err)
		if !ok || e.Line != c.line || !strings.Contains(e.Message, c.says) {
			t.Errorf("%s: it says %v; want line %d: %s", name, err, c.line, c.says)
		}
	}
}

// answers is a caller whose tools answer with their arguments, or fail with what
// these say.
type answers struct{ w Environment }

func (a answers) Call(_ context.Context, call tool.Call) (tool.Result, error) {
	var args struct{ Text, Fail, Write string }
	if err := json.Unmarshal(call.Args, &args); err != nil {
		return tool.Result{}, err
	}
	switch {
	case call.Caller != tool.CallerAgent || call.Cwd != a.w.Dir:
		return tool.Result{}, errors.New("not as an agent calls")
	case args.Fail != "":
		return tool.Failed(tool.CodeFailed, tool.NotFound, "%s", args.Fail), nil
	case args.Write != "":
		return tool.Result{Output: tool.Text("written")}, os.WriteFile(filepath.Join(call.Cwd, args.Write), []byte(args.Text), 0o600)
	case args.Text != "":
		return tool.Result{Output: tool.Text(args.Text)}, nil
	}
	return tool.Result{Output: json.RawMessage(`{"n":1,"dir":` + string(tool.Marshal(call.Cwd)) + `}`)}, nil
}

// run runs a file and returns the lines that have problems, with these.
func run(t *testing.T, s *Script) map[int]string {
	t.Helper()
	problems := map[int]string{}
	dir := ""
	err := s.Run(t.Context(), func(w Environment) (Session, error) { dir = w.Dir; return answers{w}, nil }, func(o Outcome) {
		if len(o.Problems) > 0 {
			problems[o.Line] = strings.Join(o.Problems, "\n")
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(dir); err == nil {
		t.Errorf("%s is left", dir)
	}
	return problems
}

const unexpected = `# A comment that stays.
allow files rw
file a.txt
    hello

call t {"Text": "one"}
result two
call t {}
call t
    {"Text":
     "a\n\n  b\nc"}
result
call t {"Fail": "no file in here"}
error not_found
    no file
call t {"Fail": "no file"}
error io_error
call t {"Fail": "no file"}
result x
call t {"Text": "x"}
error TOOL_FAILED
call t {"Fail": "no dog"}
error TOOL_FAILED
    no file
call t {"Write": "b.txt", "Text": "new\n"}
result written
has a.txt
	hello
has b.txt
    old
gone a.txt
has c.txt
`

func TestUpdateWritesDownWhatCame(t *testing.T) {
	s, err := ParseScript("x.txt", []byte(unexpected))
	if err != nil {
		t.Fatal(err)
	}
	problems := run(t, s)
	for line, says := range map[int]string{
		6: "-two\n+one", 8: "no result is expected of it", 9: "@@ -0,0 +1,4 @@\n+a\n+\n+  b\n+c", 16: "error io_error, and ends with\nerror not_found", 18: "ends with\nerror not_found",
		20: "ends with\nresult x", 22: `does not hold "no file"`, 25: "-old\n+new",
	} {
		if !strings.Contains(problems[line], says) {
			t.Errorf("line %d: %q; want %q", line, problems[line], says)
		}
	}
	if len(problems) != 8 {
		t.Errorf("there are problems in %d lines: %v", len(problems), problems)
	}
	const want = `# A comment that stays.
allow files rw
file a.txt
    hello

call t {"Text": "one"}
result one
call t {}
result
    {
      "n": 1,
      "dir": "$DIR"
    }
call t
    {"Text":
     "a\n\n  b\nc"}
result
    a

      b
    c
call t {"Fail": "no file in here"}
error not_found
    no file
call t {"Fail": "no file"}
error not_found
    no file
call t {"Fail": "no file"}
error not_found
    no file
call t {"Text": "x"}
result x
call t {"Fail": "no dog"}
error TOOL_FAILED
    no dog
call t {"Write": "b.txt", "Text": "new\n"}
result written
has a.txt
	hello
has b.txt
    new
has a.txt
    hello
gone c.txt
`
	updated := s.update()
	if string(updated) != want {
		t.Errorf("the file is now\n%s", updated)
	}
	if s, err = ParseScript("x.txt", updated); err != nil {
		t.Fatal(err)
	}
	if problems := run(t, s); len(problems) > 0 || string(s.update()) != want {
		t.Errorf("what was written down is not what comes: %v", problems)
	}
}

func TestWhatIsTheSame(t *testing.T) {
	for _, c := range []struct {
		want, got string
		same      bool
	}{
		{"a", "a\n", true},
		{"a", "a ", false},
		{`{"a":1,"b":[2]}`, "{\n \"b\": [2], \"a\": 1}", true},
		{`{"a":1}`, `{"a":1.0}`, false},
		{`{"a":10000000000000000001}`, `{"a":10000000000000000002}`, false},
		{`{"a":1}`, `{"a":1} {}`, false},
		{`{"a":1}`, "text", false},
	} {
		if got := same(c.want, c.got); got != c.same {
			t.Errorf("%q and %q: %v", c.want, c.got, got)
		}
	}
}

func TestAFileGivesOnlyWhatItSays(t *testing.T) {
	key := []tool.Secret{{Name: "key"}}
	for _, c := range []struct {
		text   string
		asks   tool.Capabilities
		allows bool
	}{
		{"", tool.Capabilities{}, true},
		{"", tool.Capabilities{Files: tool.FilesRead}, false},
		{"allow files\n", tool.Capabilities{Files: tool.FilesRead}, true},
		{"allow files\n", tool.Capabilities{Files: tool.FilesWrite}, false},
		{"allow files rw\n", tool.Capabilities{Files: tool.FilesWrite}, true},
		{"", tool.Capabilities{Network: tool.NetworkHTTP}, false},
		{"allow host a.example\n", tool.Capabilities{Network: tool.NetworkHTTP}, true},
		{"allow host a.example\n", tool.Capabilities{Network: tool.NetworkHTTP, Secrets: key}, false},
		{"allow host a.example\nsecret other value\n", tool.Capabilities{Network: tool.NetworkHTTP, Secrets: key}, false},
		{"allow host a.example\nsecret key value\n", tool.Capabilities{Network: tool.NetworkHTTP, Secrets: key}, true},
		{"allow files rw\nallow host a.example\n", tool.Capabilities{Exec: "command"}, false},
	} {
		s, err := ParseScript("x.txt", []byte(c.text+"call t\nresult x\n"))
		if err != nil {
			t.Fatal(err)
		}
		if got := s.allows(c.asks); got != c.allows {
			t.Errorf("%q, and it asks for %v: %v", c.text, c.asks, got)
		}
	}
}

func TestRecordedAnswers(t *testing.T) {
	s, err := ParseScript("x.txt", []byte(`http POST https://a.example/x
    > x-key: one
    >
    > body
    201
    x-b: 2
    X-A: 1

    first

    line
http POST https://a.example/x
    200
http GET https://a.example/x
    204
call t
result x
`))
	if err != nil {
		t.Fatal(err)
	}
	service := &replay{answers: s.answers}
	post := services.Request{Method: "POST", URL: "https://a.example/x", Body: []byte("body\n")}
	key := map[string][]string{"X-Key": {"one"}}
	for i, c := range []struct {
		name    string
		req     services.Request
		headers map[string][]string
		line    int    // of the answer; 0: there is none
		problem string // and this is said
	}{
		{"another URL", services.Request{Method: "POST", URL: "https://a.example/y"}, key, 0, "POST https://a.example/y is not recorded"},
		{"another method", services.Request{Method: "PUT", URL: post.URL}, key, 0, "is not recorded"},
		{"the request as it was recorded", post, key, 1, ""},
		{"it again: the next that is like it", post, key, 12, ""},
		{"once more", post, key, 0, "is not recorded"},
		{"one that wants nothing of the request", services.Request{Method: "GET", URL: post.URL}, nil, 14, ""},
	} {
		a := service.find(c.req, c.headers)
		problems := strings.Join(service.takeProblems(), "\n")
		if (a == nil) != (c.line == 0) || a != nil && a.line != c.line || !strings.Contains(problems, c.problem) || c.problem == "" && problems != "" {
			t.Errorf("%d, %s: %+v, %s", i, c.name, a, problems)
		}
	}
	if a := s.answers[0]; a.status != 201 || a.body != "first\n\nline" || len(a.headers) != 2 || a.headers[0] != [2]string{"X-B", "2"} {
		t.Errorf("the answer is %+v", a)
	}
	for _, a := range s.answers[1:] {
		a.used = true
	}
	s.answers[0].used = false
	for name, c := range map[string]struct {
		req     services.Request
		headers map[string][]string
		says    string
	}{
		"another header": {post, map[string][]string{"X-Key": {"two"}}, "X-Key"},
		"no header":      {post, nil, "X-Key"},
		"another body":   {services.Request{Method: "POST", URL: post.URL, Body: []byte("other")}, key, "body"},
	} {
		a := service.find(c.req, c.headers)
		if problems := strings.Join(service.takeProblems(), "\n"); a != nil || !strings.Contains(problems, "not the request in line 1") || !strings.Contains(problems, c.says) {
			t.Errorf("%s: %+v, %s", name, a, problems)
		}
	}
}
