package main

import (
	"strings"
	"testing"
)

func BenchmarkPage(b *testing.B) {
	for _, piece := range []string{"<div>", "<a href=/x>", "<ul><li>", "word ", "w", "&amp;", "<p class=\"x y\">Some text with <b>bold</b> and <a href=\"/path/to/x\" title=y>a link</a>.</p>\n"} {
		doc := strings.Repeat(piece, (1<<20)/len(piece))
		b.Run(piece[:min(len(piece), 12)], func(b *testing.B) {
			b.SetBytes(int64(len(doc)))
			for b.Loop() {
				rendered(doc, 1<<19, 1000)
			}
		})
	}
}
