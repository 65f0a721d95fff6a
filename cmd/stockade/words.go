package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/sandbox/admit"
	"github.com/stockade-dev/stockade/host/shellword"
	"github.com/stockade-dev/stockade/host/tool"
	"github.com/stockade-dev/stockade/host/wasm"
)

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}

// prefixIfSet returns s after separator, or "" if s is empty.
func prefixIfSet(separator, s string) string {
	if s == "" {
		return ""
	}
	return separator + s
}

// hintText returns a hint as text, with commands and flags of this program.
func hintText(h tool.Hint) string { return h.Render(hintPartText) }

// chatHintText is hintText for a person in a chat, who cannot give a flag for a host there.
func chatHintText(h tool.Hint) string {
	return h.Render(func(p tool.HintPart) string {
		switch {
		case p.Code != tool.HintAllowHost:
			return hintPartText(p)
		case p.Key == "":
			return "network.allow of agent.toml"
		}
		return fmt.Sprintf("%q to network.allow of agent.toml", p.Key)
	})
}

// hintPartText returns a part of a hint as a command or a flag of this program.
func hintPartText(p tool.HintPart) string {
	switch p.Code {
	case tool.HintSettings:
		return "your own agent.toml"
	case tool.HintAllow:
		if p.Key == "" {
			return "--allow"
		}
		return formatFlag("--allow", p.Key)
	case tool.HintUndeny:
		return formatFlag("--deny", p.Key)
	case tool.HintAllowHost:
		if p.Key == "" {
			return "--allow-net HOST"
		}
		return formatFlag("--allow-net", p.Key)
	case tool.HintMount:
		return "--mount DIR, or DIR:ro,"
	case tool.HintModule:
		return "`stockade tool info` shows what a module is and asks for"
	case tool.HintLarge:
		return "`stockade tool compile --large` compiles it all the same"
	case tool.HintSetSecret:
		return "stockade secret set " + p.Key
	case tool.HintConfine:
		return "`stockade tool info bash` says what is missing"
	case tool.HintGrant:
		return "`" + grantCommand(p.Key) + "` gives it to the tool"
	}
	return fmt.Sprintf("%s %s", p.Code, p.Key) // a newer version has written the log
}

// grantCommand returns the command that allows a tool more. key has the form of
// [tool.GrantHint].
func grantCommand(key string) string {
	name, things, _ := strings.Cut(key, " ")
	out := formatFlag("stockade tool grant", name)
	for _, thing := range strings.Fields(things) {
		switch kind, value, _ := strings.Cut(thing, "="); kind {
		case "read", "write":
			out += " --" + kind + " DIR"
		case "host", "secret":
			if value == "" {
				out += " --" + kind + " " + strings.ToUpper(kind)
			} else {
				out += " " + formatFlag("--"+kind, value)
			}
		default:
			out += " --" + kind
		}
	}
	return out
}

// formatFlag returns a flag for copying. If the value has invisible or misleading characters,
// the flag works only in bash and zsh, and otherwise in any shell; with a NUL, in none.
func formatFlag(name, value string) string {
	word, ok := shellword.Quote(value)
	if !ok {
		word = value
	}
	return name + " " + word
}

// allowFlag returns the flag --allow for a rule; "" if rule is empty.
func allowFlag(rule string) string {
	if rule == "" {
		return ""
	}
	return formatFlag("--allow", rule)
}

// refusedHint returns a hint about a module that may not run; empty: no hint is known.
func refusedHint(err error) string {
	if _, ok := errors.AsType[*admit.LargeError](err); ok {
		return hintText(tool.ActionHint(tool.HintLarge, ""))
	}
	if e, ok := errors.AsType[*admit.KindError](err); ok {
		return runAdvice(e)
	}
	return ""
}

// runAdvice returns advice about a module of a kind that does not run; empty: there is none.
func runAdvice(e *admit.KindError) string {
	const build = "build it as a program for WASI preview 1 (wasm32-wasip1 in Rust, GOOS=wasip1 in Go), or with the interface of `stockade help abi`"
	switch {
	case e.MainRuns && strings.Contains(e.Path, "://"):
		return "download it; `stockade tool info` then says how to take out its largest core module, which is of a kind that runs"
	case e.MainRuns:
		return "to take out its largest core module, which is of a kind that runs: " + formatFlag("wasm-tools component unbundle --module-dir DIR -o rest.wasm", e.Path)
	}
	switch e.Shape.Kind {
	case wasm.Incompatible:
		return fmt.Sprintf("build it for %s@%s (`stockade help abi`)", wasm.NativeInterface, wasm.NativeVersion)
	case wasm.Library:
		return "it needs a program around it; build the two together for WASI preview 1"
	case wasm.Unknown, wasm.ComponentModel, wasm.World, wasm.Reactor:
		return build
	}
	return ""
}

// withFlagHints returns an explanation whose hint and rule are flags of this program.
func withFlagHints(x policy.Explanation) policy.Explanation {
	x.HintText, x.AllowRule = hintText(x.Hint), allowFlag(x.AllowRule)
	return x
}
