package tool

import (
	"slices"
	"strings"
)

// hostCodes are codes of the host, beside those that begin with TOOL_. A tool cannot give them in
// the text of an error, so the text cannot provoke a decision that depends on them. An error case
// of the ABI gives some of them, such as DENIED.
var hostCodes = []Code{
	CodeUnknownTool, CodeUnseen, CodeLinesMoved, CodeDenied, CodeFilesChanged, CodeNotKept, CodeNotAdmitted, CodeInterrupted, CodeLimitReached, CodeHost,
}

// FromHost reports whether this is a code of the host, which a tool cannot give in the text of
// an error. This includes all codes that begin with TOOL_ except [CodeFailed]. It is false for
// codes that host and tools both give, such as [CodeInvalidArgs].
func (c Code) FromHost() bool {
	return slices.Contains(hostCodes, c) || c != CodeFailed && strings.HasPrefix(string(c), "TOOL_")
}

// leadingCode returns the code at the beginning of a text that goes on with a colon and a
// blank; empty if there is none.
func leadingCode(text string) string {
	code, _, ok := strings.Cut(text[:min(len(text), 42)], ": ")
	if !ok || len(code) < 3 || code[0] < 'A' || code[0] > 'Z' || strings.Trim(code, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") != "" {
		return ""
	}
	return code
}

// CutCode separates the error text of a tool from the code at its beginning: 3 to 40 capitals,
// digits and '_', the first a capital, then a colon and a blank. Without a code it returns
// fallback and the whole text. A code of the host stays in the text, unless it is fallback.
func CutCode(text string, fallback Code) (Code, string) {
	found := leadingCode(text)
	if code := Code(found); found != "" && (code == fallback || !code.FromHost()) {
		return code, text[len(found)+len(": "):]
	}
	return fallback, text
}
