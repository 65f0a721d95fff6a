package main

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/stockade-dev/stockade/host/shellword"
	"github.com/stockade-dev/stockade/host/tool"
)

func TestAFlagSurvivesAShell(t *testing.T) {
	for _, value := range []string{
		"make test", "plain", "", "echo 'it''s'", `echo "$HOME" \ $(id) ` + "`id`", "a\nb\n", "a;b|c&d>e<f", "*?[a]{b,c}~!#",
		"'", "''", `\'`, "\t", "é€😀", "-n", "ends with )", "(", "a=b=c", "\x1b[31m", "%s\\n",
	} {
		shell, flag := "bash", formatFlag("--allow", value)
		if shellword.IsPOSIX(flag) {
			shell = "sh"
		}
		out, err := exec.Command(shell, "-c", `printf '%s\0' `+flag).Output()
		if err != nil {
			t.Fatalf("%q: %v", value, err)
		}
		if words := strings.Split(string(out), "\x00"); len(words) != 3 || words[0] != "--allow" || words[1] != value {
			t.Errorf("%q became %q", value, words)
		}
	}
}

// TestAHintNamesFlagsForAPersonOnly: a hint that only a person with this program can
// follow names its flags to that person, and no flags to others.
func TestAHintNamesFlagsForAPersonOnly(t *testing.T) {
	for _, c := range []struct {
		hint          tool.Hint
		model, person string
	}{
		{tool.Advise("narrow the call, or raise tool_fuel in ").And(tool.ActionHint(tool.HintSettings, "")),
			"narrow the call, or raise tool_fuel in the settings", "narrow the call, or raise tool_fuel in your own agent.toml"},
		{tool.Advise("answer yes, or add ").And(tool.ActionHint(tool.HintAllow, "bash(command=a b)")),
			`answer yes, or add the rule "bash(command=a b)"`, "answer yes, or add --allow 'bash(command=a b)'"},
		{tool.ActionHint(tool.HintAllow, "").And(tool.Advise(" answers")), "a rule of this run answers", "--allow answers"},
		{tool.Advise("leave out ").And(tool.ActionHint(tool.HintUndeny, "bash")), `leave out the denial of "bash" of this run`, "leave out --deny bash"},
		{tool.Advise("add ").And(tool.ActionHint(tool.HintAllowHost, "b.example")), `add the rule "b.example" of the network`, "add --allow-net b.example"},
		{tool.ActionHint(tool.HintAllowHost, "").And(tool.Advise(" says who may be reached")),
			"a rule of the network says who may be reached", "--allow-net HOST says who may be reached"},
		{tool.ActionHint(tool.HintMount, "").And(tool.Advise(" shows tools another directory")),
			"a mount shows tools another directory", "--mount DIR, or DIR:ro, shows tools another directory"},
		{tool.ActionHint(tool.HintModule, ""), "the person can look at what the module is and asks for", "`stockade tool info` shows what a module is and asks for"},
		{tool.ActionHint(tool.HintLarge, ""), "the person can have it compiled all the same", "`stockade tool compile --large` compiles it all the same"},
		{tool.ActionHint(tool.HintGrant, "weather read host=*.a.example host secret=KEY exec"), "the person can give it to the tool",
			"`stockade tool grant weather --read DIR --host '*.a.example' --host HOST --secret KEY --exec` gives it to the tool"},
		{tool.ActionHint(tool.HintSetSecret, "A"), "the person can set it", "stockade secret set A"},
	} {
		if got := c.hint.String(); got != c.model {
			t.Errorf("a model reads %q, want %q", got, c.model)
		}
		if got := hintText(c.hint); got != c.person {
			t.Errorf("a person reads %q, want %q", got, c.person)
		}
		if got := chatHintText(c.hint); got != c.person && !strings.Contains(c.person, "--allow-net") || strings.Contains(got, "--allow-net") {
			t.Errorf("a person in a chat reads %q, want %q without a flag for a host", got, c.person)
		}
	}
}
