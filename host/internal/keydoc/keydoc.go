// Package keydoc writes what is said of keys of configuration into sample files
// and tables.
package keydoc

import "strings"

// Cell keeps a text within its cell of a Markdown table.
func Cell(s string) string { return strings.ReplaceAll(s, "|", `\|`) }

// Comment writes text as comment lines of TOML, of at most 80 characters.
func Comment(b *strings.Builder, text string) {
	const most = 80
	line := "#"
	for word := range strings.FieldsSeq(text) {
		if len(line)+1+len(word) > most && line != "#" {
			b.WriteString(line + "\n")
			line = "#"
		}
		line += " " + word
	}
	b.WriteString(line + "\n")
}
