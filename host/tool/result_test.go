package tool

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite the files in testdata")

// The files in testdata/envelope are the contract of the envelope: fields may be added, but
// existing ones stay.
func TestEnvelopeIsAsDocumented(t *testing.T) {
	code := 2
	usage := Usage{Duration: 3 * time.Millisecond, OutputBytes: 23, FuelUsed: 81234, PeakMemoryBytes: 3407872, Start: time.UnixMilli(1705680000000)}
	for name, r := range map[string]Result{
		"success":       {Output: json.RawMessage(`{"output":"a<b>\nb","count":2}`), Usage: usage},
		"limit_reached": {Output: Text("a"), Usage: usage, LimitMessage: "Tool call limit reached (50). Answer now with what you have."},
		"failure":       {Usage: usage, Err: &Error{Message: "read a.txt: no such file", Code: CodeFailed, Type: IOError, Hint: Advise("use ls")}},
		"failure_at_the_limit": {Usage: usage, LimitMessage: "Tool call limit reached (50).",
			Err: &Error{Message: "not run", Code: CodeLimitReached, Type: ValidationFailed}},
		"denial": {Err: &Error{
			Message: "bash was denied: it starts a process, and the answer was no (terminal)", Code: CodeDenied, Type: PermissionDenied,
			Hint: Advise("do not try again in another way"), Rule: "risk high", Allow: "bash(command=make test)", AllowHint: Advise("leave out ").And(ActionHint(HintUndeny, "bash")),
		}},
		"timeout": {Usage: usage, Err: &Error{
			Message: "Tool 'bash' timed out after 30s", Code: CodeTimeout, Stdout: "partial...\n", Stderr: "warning\n",
		}},
		"exit_code": {Usage: usage, Err: &Error{Message: "exit status 2", Code: CodeFailed, Type: InternalError, ExitCode: &code, Stderr: "no rule"}},
	} {
		t.Run(name, func(t *testing.T) {
			var got bytes.Buffer
			if err := json.Indent(&got, r.Envelope(), "", "  "); err != nil {
				t.Fatal(err)
			}
			got.WriteByte('\n')
			file := filepath.Join("testdata", "envelope", name+".json")
			if *update {
				if err := os.WriteFile(file, got.Bytes(), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got.String()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestEnvelopeIsJSONWhateverTheToolReturned(t *testing.T) {
	deep := strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000)
	for _, out := range []string{"", "{", "plain", "{} {}", "\xff\x00", `"` + "\xff" + `"`, deep, `{"a":1}`} {
		for _, r := range []Result{
			{Output: json.RawMessage(out)},
			{Err: &Error{Message: out, Stdout: out, Stderr: out, Hint: Advise("%s", out), AllowHint: Advise("%s", out), Rule: out, Allow: out}, LimitMessage: out},
		} {
			e := r.Envelope()
			if !json.Valid(e) || bytes.ContainsRune(e, '\n') {
				t.Errorf("%.40q gives %.200q", out, e)
			}
		}
	}
}

func TestAFailureWithoutATypeIsInternal(t *testing.T) {
	var e struct {
		Type ErrorType `json:"error_type"`
		At   int64     `json:"timestamp"`
	}
	if err := json.Unmarshal(Result{Err: &Error{}}.Envelope(), &e); err != nil || e.Type != InternalError {
		t.Errorf("got %+v, %v", e, err)
	}
}

func TestSummaryIsForPeople(t *testing.T) {
	ok := Result{Usage: Usage{OutputBytes: 12, Duration: 3 * time.Millisecond}}.Summary()
	bad := Failed(CodeTrap, InternalError, "%s trapped", "ls").Summary()
	if ok != "ok, 12 bytes in 3 ms" || bad != "failed (TOOL_TRAP): ls trapped" {
		t.Errorf("got %q and %q", ok, bad)
	}
}

func TestShortenLeavesWhatFits(t *testing.T) {
	out := json.RawMessage(`{ "output" : "abc" }`)
	if got := Shorten(out, len(out)); !bytes.Equal(got, out) {
		t.Errorf("got %s", got)
	}
}

func TestShortenKeepsTheHeadTheTailAndTheOtherFields(t *testing.T) {
	out := Text("HEAD" + strings.Repeat("x", 10_000) + "TAIL")
	out = append(bytes.TrimSuffix(out, []byte("}")), `,"count":7}`...)
	var got struct {
		Output    string
		Count     int
		Truncated bool
	}
	short := Shorten(out, 1000)
	if err := json.Unmarshal(short, &got); err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(got.Output, "HEADx") || !strings.HasSuffix(got.Output, "xTAIL") || got.Count != 7 || !got.Truncated ||
		!strings.Contains(got.Output, "of 10008 bytes left out") {
		t.Errorf("got %+v", got)
	}
	if len(short) > 1000+125 || len(short) < 500 {
		t.Errorf("%d bytes for a limit of 1000", len(short))
	}
}

func TestShortenKeepsTheEndsOfBothOutputs(t *testing.T) {
	var got struct{ Output, Stderr string }
	out := Marshal(map[string]string{"output": "HEAD" + strings.Repeat("x", 10_000) + "TAIL", "stderr": "head" + strings.Repeat("y", 10_000) + "tail"})
	short := Shorten(out, 1000)
	if err := json.Unmarshal(short, &got); err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(got.Output, "HEADx") || !strings.HasSuffix(got.Output, "xTAIL") || !strings.HasPrefix(got.Stderr, "heady") || !strings.HasSuffix(got.Stderr, "ytail") ||
		len(short) > 1000+125 || len(got.Output) < len(got.Stderr) {
		t.Errorf("%d bytes: %+v", len(short), got)
	}
}

func checkShort(t *testing.T, out json.RawMessage, limit int) {
	t.Helper()
	short := Shorten(out, limit)
	if len(out) <= limit {
		if !bytes.Equal(short, out) {
			t.Errorf("limit %d: %d bytes that fit were changed", limit, len(out))
		}
		return
	}
	var fields map[string]any
	if err := json.Unmarshal(short, &fields); err != nil || !utf8.Valid(short) {
		t.Fatalf("limit %d: %.200q: %v", limit, short, err)
	}
	if fields["truncated"] != true {
		t.Errorf("limit %d: nothing says that %.200s was cut", limit, short)
	}
	if bound := max(limit+max(limit, 0)/8, limit+minShortened, minShortened); len(short) > bound {
		t.Errorf("limit %d: %d bytes became %d, bound %d", limit, len(out), len(short), bound)
	}
}

func TestShortenHoldsItsLimitForPathologicalOutput(t *testing.T) {
	field := func(name, value string) string { return `"` + name + `":` + string(Marshal(value)) }
	big := strings.Repeat("x", 50_000)
	for name, out := range map[string]string{
		"quotes":                         `{` + field("output", strings.Repeat(`"`, 50_000)) + `}`,
		"control characters":             `{` + field("output", strings.Repeat("\x00", 50_000)) + `}`,
		"runes of three bytes":           `{` + field("output", strings.Repeat("€", 50_000)) + `}`,
		"runes of four bytes":            `{` + field("output", "a"+strings.Repeat("😀", 50_000)) + `}`,
		"line separators":                `{` + field("output", strings.Repeat("\u2028", 50_000)) + `}`,
		"escapes for plain letters":      `{"output":"` + strings.Repeat(`\u0061`, 20_000) + `"}`,
		"a huge other field":             `{` + field("output", big) + `,` + field("big", big) + `}`,
		"a huge other field, no text":    `{"output":"",` + field("big", big) + `}`,
		"a huge other field, null":       `{"output":null,` + field("big", big) + `}`,
		"a huge other field, short text": `{` + field("output", "ab") + `,` + field("big", big) + `}`,
		"many other fields":              `{"output":"a"` + strings.Repeat(`,"k":1`, 10_000) + `}`,
		"a huge key":                     `{` + field(big, "a") + `,"output":"b"}`,
		"a huge key of broken bytes":     `{"` + strings.Repeat("\xff", 50_000) + `":1,` + field("output", big) + `}`,
		"a huge standard error":          `{` + field("output", "ab") + `,` + field("stderr", big) + `}`,
		"two huge outputs":               `{` + field("output", big) + `,` + field("stderr", strings.Repeat("\x00", 50_000)) + `}`,
		"a standard error of numbers":    `{"output":"a","stderr":[1` + strings.Repeat(`,1`, 20_000) + `]}`,
		"an output that is a number":     `{"output":1,` + field("big", big) + `}`,
		"an array":                       `["` + big + `"]`,
		"no JSON":                        big,
		"bytes that are not UTF-8":       strings.Repeat("\xff", 50_000),
		"a string of such bytes":         `{"output":"` + strings.Repeat("\xff", 50_000) + `"}`,
		"white space":                    strings.Repeat(" ", 50_000) + `{"output":"a"}`,
	} {
		t.Run(name, func(t *testing.T) {
			for _, limit := range []int{-1, 0, 1, 2, 31, 64, 100, 1000, 4096, 49_999, 50_000, 60_000, 100_000, len(out) - 1, len(out)} {
				checkShort(t, json.RawMessage(out), limit)
			}
		})
	}
}

func TestShortenMakesNothingOfAMillionFields(t *testing.T) {
	var b bytes.Buffer
	b.WriteString(`{"output":"x"`)
	for i := range 100_000 {
		fmt.Fprintf(&b, `,"%d":0`, i)
	}
	b.WriteByte('}')
	if n := testing.AllocsPerRun(1, func() { Shorten(b.Bytes(), 1000) }); n > 10_000 {
		t.Errorf("%.0f allocations", n)
	}
}

func FuzzShorten(f *testing.F) {
	f.Add(`{"output":"`+strings.Repeat("a", 300)+`"}`, 100)
	f.Add(`{"output":"","big":"`+strings.Repeat("a", 300)+`"}`, 100)
	f.Add(`{"output":"`+strings.Repeat(`\u0000`, 300)+`","n":1}`, 400)
	f.Add(strings.Repeat("é\xff", 100), 90)
	f.Add(`{"output":"","`+strings.Repeat("k", 35)+`":"`+strings.Repeat("a", 236)+"\xa3"+`"}`, 290)
	f.Fuzz(func(t *testing.T, out string, limit int) {
		if limit < 1<<30 {
			// The host has made the output of guests UTF-8.
			checkShort(t, json.RawMessage(strings.ToValidUTF8(out, "\uFFFD")), limit)
		}
	})
}

func TestForModel(t *testing.T) {
	code := 3
	edit := Result{Output: json.RawMessage(`{"output":"<ok>","diff":"d","sha256":{"a":"b"},"x":[1]}`), Unsent: []string{"sha256", "diff"}, Note: "n"}
	edit.Usage.Duration, edit.Usage.FuelUsed = 5_000_000, 7
	edit.Usage.Network = []Traffic{{Host: "https://a:443", Refused: 1}}
	failed := Failed(CodeUnseen, ValidationFailed, "no")
	ran := Failed(CodeFailed, InternalError, "no")
	ran.Err.ExitCode, ran.Err.Stderr, ran.LimitMessage = &code, "oh", "stop"
	for _, c := range []struct{ envelope, want string }{
		{string(edit.Envelope()), `{"tool_success":true,"result":{"output":"<ok>","x":[1]},"note":"n","metadata":{"execution_time_ms":5,"network":[{"host":"https://a:443","requests":0,"sent_bytes":0,"received_bytes":0,"refused":1}]}}`},
		{string(failed.Envelope()), `{"tool_success":false,"error":"no","error_code":"CONTENT_NOT_SEEN","error_type":"validation_failed","metadata":{"execution_time_ms":0}}`},
		{string(ran.Envelope()), `{"tool_success":false,"error":"no","error_code":"TOOL_FAILED","error_type":"internal_error","exit_code":3,"stderr":"oh","limit_reached":true,"limit_message":"stop","metadata":{"execution_time_ms":0}}`},
		{`{"tool_success":true,"result":{"output":"(9 bytes, left out)"}}`, `{"tool_success":true,"result":{"output":"(9 bytes, left out)"}}`},
		{`{"tool_success":true,"result":[1],"more":2}`, `{"tool_success":true,"result":[1],"more":2}`},
		{`{"tool_success":true} {}`, `{"tool_success":true} {}`},
		{`{"result":1}`, `{"result":1}`},
		{"plain", "plain"},
	} {
		if got := ForModel(c.envelope, []string{"sha256", "diff"}); got != c.want {
			t.Errorf("of %s\ngot  %s\nwant %s", c.envelope, got, c.want)
		}
	}
	if got := ForModel(`{"tool_success":true,"result":["sha256"]}`, []string{"sha256"}); got != `{"tool_success":true,"result":["sha256"]}` {
		t.Errorf("a result that is no object: %s", got)
	}
}
