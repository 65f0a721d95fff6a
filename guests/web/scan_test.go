package main

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"

	"golang.org/x/net/html"
)

// scanned lists what the scanner finds: tags of known elements, and the text between
// them as it is written.
func scanned(src []byte) (out []string) {
	text := func(b []byte) {
		if n := len(out); n > 0 && strings.HasPrefix(out[n-1], "=") {
			out[n-1] += string(b)
		} else {
			out = append(out, "="+string(b))
		}
	}
	s := scanner{src: src}
	for {
		switch t := s.next(); t.kind {
		case endToken:
			return out
		case openToken:
			line, seen := "<"+t.name.String(), map[string]bool{}
			for a := (attributes{src: t.attrs}); a.next(); {
				name := lower(a.name)
				if first, _ := t.attribute(name); !seen[name] { // the first counts
					line += fmt.Sprintf(" %s=%q", name, html.UnescapeString(string(first)))
				}
				seen[name] = true
			}
			out = append(out, line)
		case closeToken:
			out = append(out, ">"+t.name.String())
		default:
			text(t.text)
		}
	}
}

// lower changes ASCII alone, as the names of attributes are compared.
func lower(b []byte) string {
	out := bytes.Clone(b)
	for i, c := range out {
		if c >= 'A' && c <= 'Z' {
			out[i] = c + 'a' - 'A'
		}
	}
	return string(out)
}

// tokenized is the same, of another tokenizer.
func tokenized(src []byte) (out []string) {
	z := html.NewTokenizer(bytes.NewReader(src))
	for {
		kind := z.Next()
		raw := string(z.Raw())
		switch kind {
		case html.ErrorToken:
			if z.Err() != io.EOF {
				panic(z.Err())
			}
			return out
		case html.TextToken:
			if n := len(out); n > 0 && strings.HasPrefix(out[n-1], "=") {
				out[n-1] += raw
			} else {
				out = append(out, "="+raw)
			}
		case html.StartTagToken, html.SelfClosingTagToken:
			name, more := z.TagName()
			line := "<" + elementOf(name).String()
			for more {
				var key, value []byte
				key, value, more = z.TagAttr()
				line += fmt.Sprintf(" %s=%q", key, value)
			}
			out = append(out, line)
		case html.EndTagToken:
			name, _ := z.TagName()
			out = append(out, ">"+elementOf(name).String())
		}
	}
}

var documents = []string{
	"",
	"a < b > c <3 </3 <",
	"<p>one<P CLASS=x>two</p >three",
	`<a href="a>b" title='"'>x</a><a href=/x/y/>z</a><br/><br / ><img src = "x"  alt= y z>`,
	"<!doctype html><!-- a > b --><!--><p>c<!---->d<!--e--!>f<!--g",
	"<?xml version='1.0'?><!bogus><p>x</ bogus>y</>z",
	"<title>a & <b> </titl></TITLE ><style>p{}</p></style>x<textarea><p></textarea>y",
	"<script>if (a<b) '</p>'</script>z<xmp><p></xmp><iframe><p></iframe>",
	"<p a=1 b c='2' d=\"3\" =e f==g \"h>i",
	"<p a='1",
	"<p",
	"</p",
	"<title>never ends",
	"<abbr>x</abbr><averyveryverylongname y=z>w</averyveryverylongname>",
	"<p/ a><p/a/b=c/>",
	"<!-",
	"<a b='&amp;&lt;' c=&quot;>&amp;</a>",
}

// comparable reports whether both read a document by the same rules: the other takes
// noscript for raw text, knows escapes within scripts and normalizes what it reads.
func comparable(src []byte) bool {
	all := bytes.ToLower(src)
	for _, not := range []string{"<noscript", "<script", "<plaintext", "\x00", "\r"} {
		if bytes.Contains(all, []byte(not)) {
			return false
		}
	}
	return true
}

func TestTheScannerFindsWhatAnotherFinds(t *testing.T) {
	n := 0
	for _, doc := range documents {
		if !comparable([]byte(doc)) {
			continue
		}
		n++
		if got, want := fmt.Sprintf("%q", scanned([]byte(doc))), fmt.Sprintf("%q", tokenized([]byte(doc))); got != want {
			t.Errorf("%q:\n got %s\nwant %s", doc, got, want)
		}
	}
	if n < 12 {
		t.Errorf("only %d documents were compared", n)
	}
	if got := scanned([]byte("<script>if (a<b) '</p>'</script >z")); fmt.Sprint(got) != "[<script =if (a<b) '</p>' >script =z]" {
		t.Errorf("a script is %q", got)
	}
}

func FuzzScanner(f *testing.F) {
	for _, doc := range documents {
		f.Add([]byte(doc))
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		got := scanned(src)
		if !comparable(src) {
			return
		}
		if want := tokenized(src); fmt.Sprintf("%q", got) != fmt.Sprintf("%q", want) {
			t.Errorf("%q:\n got %q\nwant %q", src, got, want)
		}
	})
}
