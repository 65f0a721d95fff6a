package keys

import (
	"fmt"
	"strings"
)

// Sample holds options for writing a sample file.
type Sample struct {
	Head         string // the first lines of the file
	CommentHeads bool   // comments out the heads of tables, too
	// Names gives an example for each upper-case word in the names of keys, which stands for
	// any name. Heads of tables with such an example are commented out, too.
	Names map[string]string
}

// Sample returns a file that sets nothing: it explains each key, and comments out an example.
func (t Table) Sample(s Sample) string {
	var b strings.Builder
	b.WriteString(s.Head)
	table := ""
	for _, k := range t {
		words, named := strings.Split(k.Name, "."), false
		for n, word := range words {
			if name, ok := s.Names[word]; ok {
				words[n], named = name, true
			}
		}
		last := len(words) - 1
		if at := strings.Join(words[:last], "."); at != table {
			table = at
			head := "[" + strings.ReplaceAll(at, "[]", "") + "]"
			if list, ok := strings.CutSuffix(at, "[]"); ok {
				head = "[[" + list + "]]"
			}
			if s.CommentHeads || named {
				head = "#" + head
			}
			fmt.Fprintf(&b, "\n%s\n", head)
		}
		b.WriteByte('\n')
		comment(&b, k.Doc)
		comment(&b, fmt.Sprintf("(%s; %s)", k.Kind.Summary, k.Note))
		fmt.Fprintf(&b, "#%s = %s\n", words[last], k.Example)
	}
	return b.String()
}

// comment writes a text as TOML comments, in lines of at most 80 characters.
func comment(b *strings.Builder, text string) {
	const maxLine = 80
	line := "#"
	for word := range strings.FieldsSeq(text) {
		if len(line)+1+len(word) > maxLine && line != "#" {
			b.WriteString(line + "\n")
			line = "#"
		}
		line += " " + word
	}
	b.WriteString(line + "\n")
}
