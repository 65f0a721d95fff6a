package keys

import (
	"fmt"
	"strings"
)

// Sample says how a sample file is written.
type Sample struct {
	Head string // what the file begins with
	// CommentHeads: also the heads of tables are commented out.
	CommentHeads bool
	// Names has a name for each word of the table that stands for any. Heads of tables
	// below such a name are commented out, too.
	Names map[string]string
}

// Sample writes a file that sets nothing: every key commented out, with its
// example, below what it is for.
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

// comment writes text as comment lines of TOML, of at most 80 characters.
func comment(b *strings.Builder, text string) {
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
