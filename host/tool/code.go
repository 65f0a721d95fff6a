package tool

import (
	"slices"
	"strings"
)

// hostCodes are the codes with which the host says what it has found itself. What is
// decided by one of them is not for a tool to bring about by its words.
var hostCodes = []Code{
	CodeUnknownTool, CodeUnseen, CodeLinesMoved, CodeDenied, CodeFilesChanged, CodeNotKept, CodeNotAdmitted, CodeInterrupted, CodeLimitReached, CodeHost,
}

// FromHost reports whether it is the host that says this code, and no tool. All codes
// that begin with TOOL_ are the host's, but for [CodeFailed], which says that it was the
// tool. Both say [CodeInvalidArgs], about arguments.
func (c Code) FromHost() bool {
	return slices.Contains(hostCodes, c) || c != CodeFailed && strings.HasPrefix(string(c), "TOOL_")
}

// leadingCode is the code at the beginning of a text, without the colon and the blank
// behind it, or empty.
func leadingCode(text string) string {
	code, _, ok := strings.Cut(text[:min(len(text), 42)], ": ")
	if !ok || len(code) < 3 || code[0] < 'A' || code[0] > 'Z' || strings.Trim(code, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") != "" {
		return ""
	}
	return code
}

// CutCode takes the code of a tool's own off the text of its error, at the beginning of
// which it stands: 3 to 40 capitals, digits and '_', and a colon with a blank. Without
// one the code is fallback. One of the host's is no tool's to give, and stays in the
// text, unless the failure has it anyway.
func CutCode(text string, fallback Code) (Code, string) {
	found := leadingCode(text)
	if code := Code(found); found != "" && (code == fallback || !code.FromHost()) {
		return code, text[len(found)+len(": "):]
	}
	return fallback, text
}
