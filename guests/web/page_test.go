package main

import (
	"math"
	"net/url"
	"strings"
	"testing"
)

// rendered is a document as it is returned from an offset on.
func rendered(doc string, offset, limit int) (text string, next int) {
	w := &window{offset: offset, limit: limit}
	p := page{out: w}
	p.base, _ = url.Parse("https://a.example/dir/page")
	p.render([]byte(doc))
	return w.text()
}

func TestPages(t *testing.T) {
	for name, c := range map[string]struct{ doc, want string }{
		"a title stands first":               {"<head><title> My &amp;\n page </title></head><p>x", "Title: My & page\n\nx"},
		"another title does not":             {"<p>x<title>no</title>", "x"},
		"headings":                           {"<h1>One</h1>a<h3><a href=#x>Three</a></h3><h2></h2>b", "# One\n\na\n\n### Three\n\nb"},
		"white space is one blank":           {"<p>a \n\t b<b> c</b>d <i> e</i></p>", "a b cd e"},
		"paragraphs and line ends":           {"<p>a<br>b</p><div>c</div><div>d</div>", "a\nb\n\nc\nd"},
		"lists":                              {"<ul><li>a<li><p>b</p><ol><li>c</li><li>d</li></ol></li><li></li></ul>e", "- a\n- b\n  1. c\n  2. d\n\ne"},
		"a list of definitions":              {"<dl><dt>a<dd>b<dt>c<dd>d</dl>", "a\n  b\nc\n  d"},
		"a table":                            {"<table><tr><th>a<th>b<tr><td>1<td><p>2</p><tr><td><td>3</table>c", "a | b\n1 | 2\n| 3\n\nc"},
		"text that is laid out already":      {"a<pre>\n x  <b>y</b>\n\n z</pre>b", "a\n\n```\n x  y\n\n z\n```\n\nb"},
		"lines that are blocks in such text": {"<pre><div>a</div><div>b</div></pre>", "```\na\nb\n```"},
		"code":                               {"use <code>x := <b>1</b></code>, or", "use `x := 1`, or"},
		"a rule":                             {"a<hr>b", "a\n\n---\n\nb"},
		"links":                              {`<a href="/x?y=1&amp;z">a b</a> <a href=other>c</a> <a href=https://b.example/>d</a>`, "[a b](/x?y=1&z) [c](/dir/other) [d](https://b.example/)"},
		"links that lead nowhere":            {`<a href="#x">a</a> <a href="javascript:x()">b</a> <a href="mailto:c@d">c</a> <a href="data:,x">d</a> <a>e</a>`, "a b c d e"},
		"a link without text":                {`<a href=/x><svg><path/></svg></a>a`, "a"},
		"a link around blocks":               {`<a href=/x><div>a</div><div>b</div></a><p>c`, "[a b](/x)\n\nc"},
		"a link that never ends":             {`<a href=/x>a<a href=/y>b`, "[a](/x)[b](/y)"},
		"a link with brackets":               {`<a href="/x_(y)">a</a>`, "[a](/x_%28y%29)"},
		"a password in a link":               {`<a href="https://u:p@b.example/">a</a>`, "[a](https://b.example/)"},
		"a base":                             {`<base href="https://b.example/c/"><a href=d>a</a>`, "[a](/c/d)"},
		"images":                             {`<img alt="A cat" src=x><img src=y><a href=/z><img alt=dog></a>`, "[image: A cat][dog](/z)"},
		"what is no text":                    {"a<script>b</script><style>c</style><nav>d</nav><select><option>e</select><svg><title>f</title></svg><template>g</template><textarea>h</textarea>i", "ai"},
		"without scripts there is noscript":  {"a<noscript><p>b</noscript>", "a\n\nb"},
		"nested elements that are left out":  {"<nav>a<nav>b</nav>c</nav>d", "d"},
		"an element that is closed at once":  {"a<svg/>b", "ab"},
		"what a page hides":                  {`a<div hidden>b<div>c</div></div><span style="display : none">d</span><div style="VISIBILITY:hidden">e</div><span aria-hidden=true>f</span>g`, "ag"},
		"a paragraph may have no end tag":    {`<p hidden>a<p>b`, "[hidden text: a]\n\nb"},
		"hidden text is marked":              {`a <b style="color:red; DISPLAY : none !important">b <i>c</i></b> d`, "a [hidden text: b c] d"},
		"it cannot close its mark":           {`<p hidden>a] b &#91;c&rsqb; d<p>e`, "[hidden text: a) b (c) d]\n\ne"},
		"nor with tags that end nothing":     {`<em hidden>a</b></p></i>b<em>c</em>d</em>e`, "[hidden text: a b c d]e"},
		"nor within what ends elsewhere":     {`<em hidden>a<div></em>b</div>c</em>d`, "[hidden text: a b c]d"},
		"nor by closing at once":             {`<div hidden/>a<div/>b</div>c</div>d`, "d"},
		"nor from within a table":            {`<div hidden><table><tr><td></div>a</table></div>b`, "b"},
		"written with entities and escapes":  {`<b style="display&#58;none">a</b><b style="dis\70lay:none">b</b><b style="display/**/:/*x*/none">c</b>d`, "[hidden text: a][hidden text: b][hidden text: c]d"},
		"behind much else":                   {`<p style="` + strings.Repeat("a:b;", 1000) + `display:none">a<p>b`, "[hidden text: a]\n\nb"},
		"by size, place and colour": {`<b style="font-size:0px">a</b><b style="opacity:0">b</b><b style="position:absolute;left:-9999px">c</b><b style="color:#FFF;background:white">d</b><b style="visibility:collapse">e</b>`,
			"[hidden text: a][hidden text: b][hidden text: c][hidden text: d][hidden text: e]"},
		"by its size": {`<p style="height:0;overflow:hidden">a<p style="clip:rect(0 0 0 0)">b<p style="transform:scale(0)">c<p style="height:1em;overflow:hidden">d`,
			"[hidden text: a]\n\n[hidden text: b]\n\n[hidden text: c]\n\nd"},
		"by a style sheet in other ways": {`<style>body{opacity:0} x-y{display:none} @media screen{.a{display:none}} @media (max-width:1px){.b{display:none}} @keyframes f{from{opacity:0}} .c{display:none}</style>` +
			`<x-y>1</x-y><b class=a>2</b><b class=b>3</b><from>4</from><b class=c>5</b>6`, "[hidden text: 1][hidden text: 2]34[hidden text: 5]6"},
		"a style sheet that is none": {`<style>} } .a{display:none;{ .b{{display:none}} </style><b class=b>1</b>`, "1"},
		"what only looks so":         {`<b style="font-size:0.9em;opacity:.5;left:-20px;color:#fff;background:#000;text-indent:1em">a</b><b class=x id=y aria-hidden=true>b</b>`, "ab"},
		"by a style sheet": {`<style>/* .d{display:none} */ @import "x"; .a, p.b > i, #c{color:red;display:none} @media print{.e{display:none} .f{color:red}} .g:hover{display:none} h1.h{visibility:hidden}</style>` +
			`<b class="z a">1</b><i class=b>2</i><span id=c>3</span><b class=d>4</b><b class=e>5</b><b class=g>6</b><div class=h>7</div>8`, "[hidden text: 1]2[hidden text: 3]456[hidden text: 7]\n8"},
		"a hidden cell and a hidden item":        {`<table><tr><td>a<td hidden>b<ul><li>c</ul>d<td>e</table><ul><li hidden>f<ol><li>g</ol>h<li>i</ul>j`, "a[hidden text: b c d] | e\n\n[hidden text: f g h]\n- i\n\nj"},
		"a hidden list ends with what holds it":  {`<ul><li>a<li hidden>b</ul>c`, "- a[hidden text: b]\n\nc"},
		"what has no content ends at once":       {`<input style="display:none"><img hidden alt=a><br hidden>b`, "b"},
		"characters that nobody sees":            {"a\x01b\u200bc\u202ed\U000e0041e\ufefff\U000e0100g\U000e01efh\u206fi", "abcdefghi"},
		"entities":                               {"&lt;b&gt; &eacute; &#x41; &nosuch; &amp;lt;", "<b> é A &nosuch; &lt;"},
		"what is not UTF-8":                      {"a\xffb", "a\uFFFDb"},
		"upper case":                             {"<UL><LI>a</UL><P>b", "- a\n\nb"},
		"lists that never end":                   {strings.Repeat("<ul><li>", 100) + "a", strings.Repeat("  ", maxDepth-1) + "- a"},
		"closing tags of nothing":                {"</ul></pre></table></a></nav>a</code>", "a`"},
		"a document that is not closed":          {"<p>a<!-- b", "a"},
		"nothing":                                {"", ""},
		"a cell, and a table within":             {"<table><tr><td>a<table><tr><td>b</table><td>c</table>", "a\n\nb | c"},
		"a header and a footer are text as well": {"<header>a</header><main>b</main><footer>c</footer>", "a\n\nb\n\nc"},
	} {
		got, next := rendered(c.doc, 0, 10000)
		if strings.TrimLeft(got, "\n ") != strings.TrimLeft(c.want, " ") || next != 0 {
			t.Errorf("%s:\n got %q, %d\nwant %q", name, got, next, c.want)
		}
	}
}

// TestPartsMakeTheWhole: whatever the size of the parts, no byte is lost or repeated.
func TestPartsMakeTheWhole(t *testing.T) {
	doc := "<title>Größe</title><ul>" + strings.Repeat("<li>Zeile ü <a href=/x>zwölf</a> 🙂 und mehr &amp; so</li>", 60) + "</ul><pre>" + strings.Repeat("ä  b\n", 50) + "</pre>"
	whole, next := rendered(doc, 0, 1<<20)
	if next != 0 || len(whole) < 2500 {
		t.Fatalf("the whole has %d bytes, %d", len(whole), next)
	}
	for _, limit := range []int{1000, 1001, 1002, 1003, 2500, len(whole) - 1, len(whole), len(whole) + 1} {
		var b strings.Builder
		for offset, n := 0, 0; ; n++ {
			part, next := rendered(doc, offset, limit)
			b.WriteString(part)
			if len(part) > limit || n > 100 {
				t.Fatalf("limit %d: a part has %d bytes, after %d", limit, len(part), n)
			}
			if next == 0 {
				break
			}
			offset = next
		}
		if b.String() != whole {
			t.Errorf("limit %d: the parts have %d bytes, the whole %d", limit, b.Len(), len(whole))
		}
	}
	for _, offset := range []int{len(whole) + 10, math.MaxInt} {
		if text, next := rendered(doc, offset, 1000); text != "" || next != 0 {
			t.Errorf("behind the end, at %d, there is %q, %d", offset, text, next)
		}
	}
	if text, _ := rendered("<p>ü", 1, 1000); text != "" {
		t.Errorf("in the middle of a character there is %q", text)
	}
}

// TestTextWithoutCharacters: it is taken in pieces, too, and these end.
func TestTextWithoutCharacters(t *testing.T) {
	doc := strings.Repeat("\x80", 3*chunkBytes)
	page, _ := rendered(doc, 0, 100)
	w := &window{limit: 100}
	writePlain(w, []byte(doc))
	text, _ := w.text()
	if page != "\uFFFD" || text != "\uFFFD\uFFFD\uFFFD" {
		t.Errorf("as a page it is %q, as text %q", page, text)
	}
}

func FuzzPage(f *testing.F) {
	for _, doc := range documents {
		f.Add(doc, 0, 10)
	}
	f.Fuzz(func(t *testing.T, doc string, offset, limit int) {
		offset, limit = min(max(offset, 0), 1<<20), min(max(limit, 1), 1<<20)
		if text, next := rendered(doc, offset, limit); len(text) > 3*limit || next != 0 && next <= offset && text != "" {
			t.Errorf("it returns %d bytes from %d on with the limit %d; next %d", len(text), offset, limit, next)
		}
	})
}
