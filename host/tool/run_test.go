package tool

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
)

func TestARunTakesTheArgumentsOfACall(t *testing.T) {
	for name, c := range map[string]struct {
		run  Run
		args string
		want Run // Input is "{args}" unless it is given
	}{
		"strings stand as they are, the rest as JSON": {
			Run{Args: []string{"{s}", "{n}", "{b}", "{o}"}}, `{"s":"a \"b\"\n","n":12345678901234567890,"b":false,"o":{"k":[1,"<"]}}`,
			Run{Args: []string{"a \"b\"\n", "12345678901234567890", "false", `{"k":[1,"<"]}`}}},
		"in the middle of others": {
			Run{Args: []string{"--n={n}", "{s}:{n}"}}, `{"s":"x","n":1.50}`, Run{Args: []string{"--n=1.50", "x:1.50"}}},
		"braces": {
			Run{Args: []string{"{{}", "{{{s}}", "a}b{{"}, Stdin: "{{{{"}, `{"s":"{n}"}`, Run{Args: []string{"{}", "{{n}}", "a}b{"}, Stdin: "{{"}},
		"what is not there is left out, and so is null": {
			Run{Args: []string{"x", "a{s}", "{n}", "b"}, Env: map[string]string{"A": "{s}", "B": "b"}, Stdin: "<{s}>"}, `{"n":null}`,
			Run{Args: []string{"x", "b"}, Env: map[string]string{"B": "b"}, Stdin: "<>"}},
		"an array becomes as many": {
			Run{Args: []string{"a", "{l}", "b"}}, `{"l":["x","",2,null,[3]]}`, Run{Args: []string{"a", "x", "", "2", "[3]", "b"}}},
		"an array with something beside it is JSON": {
			Run{Args: []string{"l={l}"}, Stdin: "{l}"}, `{"l":["x"]}`, Run{Args: []string{`l=["x"]`}, Stdin: `["x"]`}},
		"an array that is empty is nothing": {Run{Args: []string{"a", "{l}"}}, `{"l":[]}`, Run{Args: []string{"a"}}},
		"a text that is the input":          {Run{}, `{"input":"x"}`, Run{Input: "x"}},
		"an input that is no text":          {Run{}, `{"input":["x"]}`, Run{}},
		"an input that is not all":          {Run{}, `{"input":"x","y":1}`, Run{}},
		"all of them, and where":            {Run{Args: []string{"{cwd}"}, Stdin: "{args}", Input: "at {cwd}"}, `{"s":"x"}`, Run{Args: []string{"/w"}, Stdin: `{"s":"x"}`, Input: "at /w"}},
		"an option goes with its value": {
			Run{Args: []string{"--out", "{s}", "--", "{p}"}}, `{"p":"-x"}`, Run{Args: []string{"--", "-x"}}},
		"it stays with its value": {
			Run{Args: []string{"--out", "{s}", "--", "{p}"}}, `{"s":"o","p":"-x"}`, Run{Args: []string{"--out", "o", "--", "-x"}}},
		"so it does with an empty list, null, and a text around": {
			Run{Args: []string{"-v", "-a", "{l}", "-b", "{n}", "-c", "x{s}", "-d", "{m}", "--", "{p}"}}, `{"l":[],"n":null,"m":[null],"p":"-x"}`,
			Run{Args: []string{"-v", "--", "-x"}}},
		"one with its value in it stays, and so does what follows --": {
			Run{Args: []string{"--a=b", "{s}", "--", "-x", "{s}", "--", "{s}", "y"}}, `{}`, Run{Args: []string{"--a=b", "--", "-x", "--", "y"}}},
		"standard input is no option": {Run{Args: []string{"-", "{s}"}}, `{}`, Run{Args: []string{"-"}}},
		"one within a word goes with it": {
			Run{Args: []string{"--a={s}", "-b{s}", "-c", "{s}", "x"}}, `{}`, Run{Args: []string{"x"}}},
		"behind the end of options":      {Run{Args: []string{"-v", "--", "a", "{l}", "{s}"}}, `{"l":["-1","-2"],"s":"-3"}`, Run{Args: []string{"-v", "--", "a", "-1", "-2", "-3"}}},
		"it does not begin the argument": {Run{Args: []string{"./{s}", "-{s}"}}, `{"s":"-x"}`, Run{Args: []string{"./-x", "--x"}}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := c.run.Expand(json.RawMessage(c.args), "/w")
			if c.want.Input == "" {
				c.want.Input = c.args
			}
			if err != nil || !reflect.DeepEqual(got, c.want) {
				t.Errorf("got  %q, %v\nwant %q", got, err, c.want)
			}
		})
	}
}

func TestAModelChoosesNoOptions(t *testing.T) {
	huge := func(n int) string { return `{"s":"` + strings.Repeat("x", n) + `"}` }
	for name, c := range map[string]struct {
		args       []string
		call, want string
	}{
		"an option":                           {[]string{"{s}"}, `{"s":"-rf"}`, `the argument "s" begins with '-' here ("-rf")`},
		"a long one":                          {[]string{"a", "{s}"}, `{"s":"--eval=1"}`, `begins with '-'`},
		"the end of options":                  {[]string{"{s}", "{n}"}, `{"s":"--","n":1}`, `begins with '-'`},
		"standard input":                      {[]string{"{s}"}, `{"s":"-"}`, `begins with '-'`},
		"a number below zero":                 {[]string{"{n}"}, `{"n":-1}`, `begins with '-'`},
		"behind nothing":                      {[]string{"{s}{n}"}, `{"s":"","n":-1}`, `the argument "s, n" begins with '-'`},
		"what the text says, at their choice": {[]string{"{s}-x"}, `{"s":""}`, `begins with '-'`},
		"in a list":                           {[]string{"{l}"}, `{"l":["a","-x"]}`, `the argument "l" begins with '-' here ("-x")`},
		"second, behind an option":            {[]string{"-c", "{l}"}, `{"l":["a","-x"]}`, `begins with '-'`},
		"behind an option or a flag":          {[]string{"-n", "{s}"}, `{"s":"--config=x"}`, `the argument "s" begins with '-'`},
		"first of a list, behind one":         {[]string{"-n", "{l}"}, `{"l":["-x"]}`, `the argument "l" begins with '-'`},
		"before the end of options":           {[]string{"-n", "{s}", "--"}, `{"s":"-x"}`, `begins with '-'`},
		"behind one that has its value":       {[]string{"-c", "{n}", "{s}"}, `{"n":1,"s":"-x"}`, `begins with '-'`},
		"behind one whose value looks so":     {[]string{"-c", "{n}", "{s}"}, `{"n":-1,"s":"-x"}`, `the argument "n" begins with '-'`},
		"behind one whose value is --":        {[]string{"-c", "{n}", "{s}"}, `{"n":"--","s":"-x"}`, `the argument "n" begins with '-'`},
		"behind one with its value in it":     {[]string{"--mode=fast", "{s}"}, `{"s":"-x"}`, `begins with '-'`},
		"behind one that they have finished":  {[]string{"-j{n}", "{s}"}, `{"n":1,"s":"-x"}`, `begins with '-'`},
		"in place of one that is left out":    {[]string{"-c", "{n}", "{s}"}, `{"s":"-x"}`, `begins with '-'`},
		"in place of an empty list":           {[]string{"-c", "{l}", "{s}"}, `{"l":[],"s":"-x"}`, `begins with '-'`},
		"behind what follows an option":       {[]string{"-c", "a", "{s}"}, `{"s":"-x"}`, `begins with '-'`},
		"a NUL byte":                          {[]string{"--", "a{s}"}, `{"s":"b\u0000c"}`, `holds a NUL byte`},
		"a NUL byte in a list":                {[]string{"--", "{l}"}, `{"l":["b\u0000c"]}`, `holds a NUL byte`},
		"a huge one":                          {[]string{"{s}"}, huge(maxArgumentBytes + 1), `more than 1024 KiB`},
		"many that are huge together":         {[]string{"{s}", "{s}", "{s}"}, huge(maxArgumentBytes / 2), `more than 1024 KiB`},
		"one text of many":                    {[]string{strings.Repeat("{s}", 2000)}, huge(1000), `more than 1024 KiB`},
		"many":                                {[]string{"{l}"}, `{"l":[1` + strings.Repeat(",1", maxArguments) + `]}`, `more than 4096 arguments`},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := (&Run{Args: c.args}).Expand(json.RawMessage(c.call), "/w")
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %.200s, %.200v; want an error with %s", fmt.Sprintf("%q", got.Args), err, c.want)
			}
		})
	}
	for name, r := range map[string]Run{
		"a NUL byte in a variable": {Env: map[string]string{"A": "{s}"}},
	} {
		if got, err := r.Expand(json.RawMessage(`{"s":"\u0000"}`), "/w"); err == nil {
			t.Errorf("%s: got %q", name, got.Env)
		}
	}
	large := Run{Env: map[string]string{"A": "{s}", "B": "{s}"}, Args: []string{"{s}"}, Stdin: "{s}"}
	if _, err := large.Expand(json.RawMessage(huge(maxArgumentBytes/3-10)), "/w"); err != nil {
		t.Error(err)
	}
	if _, err := large.Expand(json.RawMessage(huge(maxArgumentBytes/3+10)), "/w"); err == nil {
		t.Error("arguments and environment were not counted together")
	}
	long := Run{Stdin: strings.Repeat("{s}", 20)}
	if got, err := long.Expand(json.RawMessage(huge(maxArgumentBytes)), "/w"); err == nil {
		t.Errorf("a standard input had %d bytes", len(got.Stdin))
	}
}

func TestWarningsOfARun(t *testing.T) {
	for args, want := range map[string]string{
		"-n {path}":                   `no "--" stands before {path} in args: a value that begins with '-' is refused there`,
		"--out {opt} -- {path}":       `no "--" stands before {opt} in args: a value that begins with '-' is refused there`,
		"{a}{b}":                      `no "--" stands before {a} in args: a value that begins with '-' is refused there`,
		"-{a}":                        `"-{a}" in args lets the model choose an option`,
		"--{a}=x":                     `"--{a}=x" in args lets the model choose an option`,
		"--out={opt} ./{a} -- {path}": "",
		"-- -{a}":                     "",
		"{cwd} {args}":                "",
		"-v":                          "",
	} {
		if got := strings.Join((&Run{Args: strings.Fields(args)}).Warnings(), "; "); got != want {
			t.Errorf("%s: %q, want %q", args, got, want)
		}
	}
}

func TestRunsInAManifestAreChecked(t *testing.T) {
	many := func(s string) []string { return slices.Repeat([]string{s}, maxRunTexts+1) }
	const schema = `{"type":"object","properties":{"s":{"type":"string"},"cwd":{"type":"string"}}}`
	for name, c := range map[string]struct {
		run  Run
		want string // of the error; "" for none
	}{
		"all kinds":           {Run{Args: []string{"-c", "{s}", "{{", "{args}"}, Stdin: "{s}", Env: map[string]string{"A_1": "{s}"}}, ""},
		"an unknown one":      {Run{Args: []string{"{code}"}}, `args: {code} is not a parameter of the tool`},
		"in stdin":            {Run{Stdin: "{code}"}, `stdin: {code}`},
		"in input":            {Run{Input: "{code}"}, `input: {code}`},
		"in a variable":       {Run{Env: map[string]string{"A": "{code}"}}, `env: A: {code}`},
		"one with two senses": {Run{Args: []string{"{cwd}"}}, `{cwd} has a meaning of its own`},
		"an open brace":       {Run{Args: []string{"a{s"}}, `has a brace without {NAME}`},
		"an empty one":        {Run{Args: []string{"{}"}}, `has a brace without {NAME}`},
		"a NUL byte":          {Run{Args: []string{"\x00"}}, `holds a NUL byte`},
		"a variable's name":   {Run{Env: map[string]string{"A=B": ""}}, `env: "A=B" is not`},
		"no name":             {Run{Env: map[string]string{"": ""}}, `env: "" is not`},
		"PWD":                 {Run{Env: map[string]string{"PWD": "/"}}, `PWD is the working directory`},
		"too many":            {Run{Args: many("a")}, `more than the limit of 128`},
	} {
		t.Run(name, func(t *testing.T) {
			manifest := Manifest{ABI: "wasi:command", Name: "m", Tools: []Spec{{
				Definition: Definition{Name: "t", Description: "d", Parameters: json.RawMessage(schema)}, Run: &c.run}}}
			_, err := ParseManifest(Marshal(manifest))
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

// FuzzRunExpand looks for a value of a call that became an option.
func FuzzRunExpand(f *testing.F) {
	f.Add("-c {s} -- {l}", "-x", "-y", "a")
	f.Add("{s}{t} {l}", "", "-x", "--")
	f.Add("-c {t} {s}", "--", "-x", "")
	f.Add("--a=b {s} -j{t} {l}", "-x", "", "-\x00")
	f.Add("{s}-x {{{t}", "", "-x", "--")
	f.Fuzz(func(t *testing.T, texts, s, u, v string) {
		r := &Run{Args: strings.Fields(texts), Env: map[string]string{"A": "{s}"}, Stdin: "{t}"}
		args := Marshal(map[string]any{"s": s, "t": u, "l": []string{u, v}, "n": nil})
		got, err := r.Expand(args, "/w")
		if err != nil {
			return
		}
		// fixed holds the arguments that contain no value of the call.
		fixed := map[string]bool{}
		for _, text := range r.Args {
			if p, err := parseTemplate(text); err == nil && !slices.ContainsFunc(p, func(p piece) bool { return p.name != "" }) {
				fixed[literalText(p)] = true
			}
		}
		for i, a := range got.Args {
			if strings.ContainsRune(a, 0) {
				t.Fatalf("%q became %q", texts, got.Args)
			}
			if !strings.HasPrefix(a, "-") || fixed[a] || slices.ContainsFunc(r.Args, func(text string) bool { return strings.HasPrefix(text, "-") && strings.Contains(text, "{") }) {
				continue
			}
			before := slices.Contains(got.Args[:i], "--") && fixed["--"]
			if i > 0 {
				before = before || fixed[got.Args[i-1]] && strings.HasPrefix(got.Args[i-1], "-")
			}
			if !before {
				t.Fatalf("%q with %q became %q: %d is an option", texts, args, got.Args, i)
			}
		}
		if fmt.Sprint(got.Env) == "" || !json.Valid([]byte(got.Input)) {
			t.Fatalf("input is %q", got.Input)
		}
	})
}

func literalText(pieces []piece) (s string) {
	for _, p := range pieces {
		s += p.text
	}
	return s
}
