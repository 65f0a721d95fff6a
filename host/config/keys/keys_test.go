package keys

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var table = Table{
	{Name: "name", Kind: Text("text", "a text", nil), Example: `""`, Doc: "A text."},
	{Name: "day", Kind: Instant(), Note: "note 5", Example: "2027-01-31T00:00:00Z", Doc: "A day."},
	{Name: "server.port", Kind: Integer(1, 0, ""), Example: "1", Doc: "A number."},
	{Name: "tools.NAME.allow", Kind: Boolean(), Note: "note 0", Example: "true", Doc: "A switch."},
	{Name: "tools.NAME.args.ARGUMENT.maximum", Kind: Number(), Note: "note 1", Example: "1.5", Doc: "A bound."},
	{Name: "rules[].effect", Kind: Choice("deny", "ask"), Note: "note 2", Example: `"deny"`, Doc: "An effect."},
	{Name: "rules[].where", Kind: List("texts", `["a"]`, 0, nil), Note: "note 3", Example: `["a"]`, Doc: "Conditions."},
	{Name: "rules[].for.days", Kind: Integer(1, 0, ""), Note: "note 4", Example: "1", Doc: "A time."},
}

func TestSettingsAreReadInTheOrderOfTheFile(t *testing.T) {
	f, err := table.Parse("f", []byte(`server = {port = 2}

[tools."a b"]
allow = false
args.x.maximum = 3

[[rules]]
effect = "ask"
[[rules]]

[[rules]]
where = []
effect = "deny"
for.days = 2
`), nil)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, s := range f.Settings {
		name := "table"
		if s.Key >= 0 {
			name = table[s.Key].Name
		}
		got = append(got, fmt.Sprintf("%d %s: %s = %v", f.Line(s), s, name, s.Value))
	}
	want := []string{
		"1 server: table = <nil>",
		"1 server.port: server.port = 2",
		`3 tools."a b": table = <nil>`,
		`4 tools."a b".allow: tools.NAME.allow = false`,
		`5 tools."a b".args.x.maximum: tools.NAME.args.ARGUMENT.maximum = 3`,
		"7 [[rules]] 1: table = <nil>",
		"7 [[rules]] 1: effect: rules[].effect = ask",
		"9 [[rules]] 2: table = <nil>",
		"11 [[rules]] 3: table = <nil>",
		"11 [[rules]] 3: effect: rules[].effect = deny",
		"11 [[rules]] 3: for: table = <nil>",
		"11 [[rules]] 3: for.days: rules[].for.days = 2",
		"11 [[rules]] 3: where: rules[].where = []",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("settings (-want +got):\n%s", diff)
	}
}

func TestMistakesNameTheirPlaceAndTheNearestKey(t *testing.T) {
	for src, want := range map[string]string{
		"[tools.bash]\nalow = true":                `f:2: unknown key "tools.bash.alow" (did you mean "tools.bash.allow"?)`,
		"[tool.bash]\nallow = true":                `f:2: unknown key "tool.bash.allow" (did you mean "tools.bash.allow"?)`,
		"port = 1":                                 `f:1: unknown key "port" (did you mean "server.port"?)`,
		"[tools.a.allow]\nx = 1":                   "f:1: tools.a.allow: it is a table; write true or false, without quotes",
		"[[rule]]\neffect = 'ask'":                 `f:1: unknown key "rule" (did you mean "rules"?)`,
		"day = 2027-01-31":                         "f:1: day: it is a date or time; write a date and time with its zone, without quotes, such as 2027-01-31T00:00:00Z",
		"tools = 1":                                "f:1: tools: it is an integer; write a table: [tools] and its keys below it",
		"tools.a = 1":                              "f:1: tools.a: it is an integer; write a table: [tools.a] and its keys below it",
		"tools.a.args.b.maximum = 'x'":             "f:1: tools.a.args.b.maximum: it is a string; write a number",
		"server.port = 0":                          "f:1: server.port: 0 is out of range; write a whole number from 1",
		"rules = 1":                                "f:1: rules: it is an integer; write [[rules]] and its keys below it",
		"rules = [1]":                              "f:1: rules: it is an array; write [[rules]] and its keys below it",
		"[rules]\neffect = 'ask'":                  "f:1: rules: it is a table; write [[rules]] and its keys below it",
		"[[rules]]\n\n[[rules]]\neffct = 'a'":      `f:3: unknown key "rules.effct" (did you mean "rules.effect"?)`,
		"[[rules]]\na.b = 1":                       `f:1: unknown key "rules.a"`,
		"[[rules]]\nfor.dais = 1":                  `f:1: unknown key "rules.for.dais" (did you mean "rules.for.days"?)`,
		"[[rules]]\nfor = 1":                       "f:1: [[rules]] 1: for: it is an integer; write a table: [rules.for] and its keys below it",
		"rules = [{}, {effect = 'allow'}]":         `f: [[rules]] 2: effect: "allow" is not one of "deny", "ask"`,
		"[[rules]]\n[[rules]]\nwhere = ['a', 1.5]": `f:2: [[rules]] 2: where: entry 2 is a float; write a list such as ["a"]`,
	} {
		f, err := table.Parse("f", []byte(src), nil)
		if f != nil || err == nil || err.Error() != want {
			t.Errorf("%s\ngot  %v\nwant %s", src, err, want)
		}
	}
	if _, err := table.Parse("f", []byte("x = 1"), func(path []string) string { return "; no " + path[0] }); err == nil || !strings.HasSuffix(err.Error(), `"x"; no x`) {
		t.Errorf("the owner of the table was not asked: %v", err)
	}
}

// A file can be anybody's, and the names in it are theirs.
func TestAFileOfManyNamesIsReadAtOnce(t *testing.T) {
	var src strings.Builder
	for i := range 30_000 {
		fmt.Fprintf(&src, "tools.a%d.allow = true\n", i)
	}
	start := time.Now()
	f, err := table.Parse("f", []byte(src.String()), nil)
	if err != nil || len(f.Settings) != 30_000 {
		t.Fatal(err)
	}
	if d := time.Since(start); d > 10*time.Second {
		t.Errorf("it took %s", d)
	}
}

func TestTheSampleShowsEveryKey(t *testing.T) {
	got := table[3:].Sample(Sample{Head: "# Head.\n", CommentHeads: true, Names: map[string]string{"NAME": "grep", "ARGUMENT": "path"}})
	want := `# Head.

#[tools.grep]

# A switch.
# (boolean; note 0)
#allow = true

#[tools.grep.args.path]

# A bound.
# (number; note 1)
#maximum = 1.5

#[[rules]]

# An effect.
# (one of "deny", "ask"; note 2)
#effect = "deny"

# Conditions.
# (list of texts; note 3)
#where = ["a"]

#[rules.for]

# A time.
# (integer, from 1; note 4)
#days = 1
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
